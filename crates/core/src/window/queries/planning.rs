//! Operations on the queries of a window, for any aggregation.

use super::QueryWindow;
use super::plan::{Query, Unit};
use super::schedule::Schedule;
use crate::monoid::Monoid;
use crate::window::{Batch, Refused, Window};

/// The queries of a window, for any aggregation.
pub trait Planning {
    fn schedule(&self) -> &Schedule;
    /// Starts a schedule. The present entries were inserted without one.
    fn start(&mut self, schedule: Schedule);
    /// Whether the schedule has been started.
    fn is_started(&self) -> bool;
    /// Sets the number of queries to that of a schedule, before it is started.
    fn expect(&mut self, schedule: Schedule);
    /// Adds a query and returns its number.
    fn add(&mut self, query: Query) -> usize;
    /// Drops a query; false if no query has that number.
    fn drop_query(&mut self, number: usize) -> bool;
    /// Whether a slice may have entries on both sides of a time, and only slices are kept.
    fn splits(&mut self, time: i64) -> bool;
    /// The first query whose window, in `query`, would begin where that splits a slice; and where.
    fn splitting(&mut self) -> Option<(usize, i64)>;
    /// Checks that the answers up to a time are not too many.
    ///
    /// # Errors
    /// [`Refused::Many`].
    fn admits_advance(&self, time: i64) -> Result<(), Refused>;
    /// Declares that no more entries arrive at or before a time: ends up to it fall due.
    fn advance(&mut self, time: i64);
    /// The number of slices, the open one included.
    fn slice_count(&self) -> usize;
    /// Announces flags of the next entries: ascending positions in order of time, each with its
    /// set of flags.
    fn announce(&mut self, flagged: &[(usize, u64)]);
}

impl<M: Monoid> Planning for QueryWindow<M> {
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn start(&mut self, schedule: Schedule) {
        let mut batch = self.window.take();
        self.schedule(schedule);
        self.loading = false;
        self.group(&mut batch);
        let last = self.schedule.last;
        let passed = batch.times.partition_point(|time| Some(*time) <= last);
        let mut waiting = Batch::default();
        let mut held = Batch::default();
        for (at, (time, entry)) in std::mem::take(&mut batch).into_entries().enumerate() {
            let into = if at < passed { &mut held } else { &mut waiting };
            into.push(time, entry);
        }
        self.window.insert_batch(held);
        self.waiting.insert_batch(waiting);
        self.slice_anew();
    }

    fn is_started(&self) -> bool {
        !self.loading
    }

    fn expect(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    fn add(&mut self, query: Query) -> usize {
        if self.loading {
            return self.schedule.add(query);
        }
        self.pass_on_closed(true);
        let number = self.schedule.add(query);
        if query.unit == Unit::Session {
            let held = self.session_held(query.range);
            self.schedule.begin_session(number, held);
        }
        self.slice_anew();
        number
    }

    fn drop_query(&mut self, number: usize) -> bool {
        let found = self.schedule.drop_query(number);
        if found && !self.loading {
            if self.schedule.terms.slices {
                let mut waiting = self.waiting.take_until(i64::MAX);
                self.group(&mut waiting);
                self.waiting.insert_batch(waiting);
            }
            self.slice_anew();
            self.evict_unused();
        }
        found
    }

    fn splits(&mut self, time: i64) -> bool {
        self.oldest() <= Some(time) && !self.is_empty() && !self.schedule.is_between_slices(time)
    }

    fn splitting(&mut self) -> Option<(usize, i64)> {
        let now = self.schedule.now()?;
        let live: Vec<_> = self.schedule.live().collect();
        let begin = |(number, query): (usize, Query)| Some((number, now.checked_sub(query.range)?));
        let mut begins = live.into_iter().filter_map(begin);
        begins.find(|(_, begin)| self.splits(*begin))
    }

    fn admits_advance(&self, time: i64) -> Result<(), Refused> {
        self.schedule.admits(time)
    }

    fn advance(&mut self, time: i64) {
        if self.loading {
            return;
        }
        self.schedule.advanced = self.schedule.advanced.max(Some(time));
        self.pass_on_closed(true);
        self.evict_unused();
    }

    fn slice_count(&self) -> usize {
        let slices = self.window.structure();
        slices.slice_count() + usize::from(slices.open().is_some())
    }

    fn announce(&mut self, flagged: &[(usize, u64)]) {
        if !self.loading {
            self.schedule
                .data_driven
                .announce(flagged, self.schedule.count);
        }
    }
}
