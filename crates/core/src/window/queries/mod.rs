//! Queries with range and slide over one stream, answered by one shared plan.
//!
//! Entries are folded into slices between the edges of the plan, once for all queries
//! (SlickDeque 2018, §2.3, §3.2 lines 4, 17, 18 and 26); a final aggregator makes answers
//! of slices when they fall due. [`plan`] says where the edges are, [`schedule`] when
//! answers fall due.
//!
//! An answer is final: it falls due when no more entries of its window can arrive. If entries
//! may be late, they *wait*, in order of time, until no entry can arrive before them; then they
//! are passed on in order. So a slice is folded in order for any aggregation, and every final
//! aggregator works for streams out of order, too.
//!
//! Entries are kept beside their slices, as in [`SharedWindow`](super::fifo::shared), because the
//! window of `query`, or of a query that is added later, may begin within a slice.
//!
//! If only slices are kept (`slices` of [`ScheduleOptions`](schedule::ScheduleOptions)), entries
//! join the slice that they belong to while it waits, and it is passed on as one entry, whose time
//! is the first of the slice. So the space is that of the slices, and all else stays the same. An
//! entry joins its slice in order of arrival: late ones need a combine that commutes.
//!
//! Invariants of [`QueryWindow`] (checked by `check`):
//! 1. Waiting entries are later than all that were passed on.
//! 2. While `loading`, no entry is in a slice and no answer falls due.

mod admission;
mod answers;
pub mod data_driven;
pub mod final_aggregator;
pub mod plan;
mod planning;
mod rest;
pub mod schedule;
mod slices;
mod waiting;

use super::fifo::entries::partition;
use super::fifo::in_order::InOrder;
use super::{Batch, Refused, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use final_aggregator::FinalAggregator;
use plan::{Query, Unit};
pub use planning::Planning;
use rest::Rest;
use schedule::Schedule;
use slices::Slices;
use waiting::{Waiting, waiting};

/// An answer that fell due, with its query and the end of its window.
#[derive(Clone, Debug)]
pub struct Due<A> {
    pub query: usize,
    pub end: i64,
    pub answer: A,
}

pub struct QueryWindow<M: Monoid> {
    window: InOrder<M, Slices<M>>,
    /// Entries that are not passed on yet; used if entries may be late.
    waiting: Box<dyn Waiting<M>>,
    /// Folds of entries that were passed on and are in no slice any more.
    rest: Rest<M>,
    schedule: Schedule,
    loading: bool,
    due: Vec<Due<M::Partial>>,
    /// The queries that fall due; scratch memory of a call.
    numbers: Vec<usize>,
}

impl<M: Monoid> Clone for QueryWindow<M> {
    fn clone(&self) -> Self {
        Self {
            window: self.window.clone(),
            waiting: self.waiting.boxed_clone(),
            rest: Rest::default(),
            schedule: self.schedule.clone(),
            loading: self.loading,
            due: self.due.clone(),
            numbers: Vec::new(),
        }
    }
}

impl<M: Monoid> QueryWindow<M> {
    /// An empty window for a number of queries, which [`Planning::start`] sets.
    pub fn new(monoid: M, aggregator: Box<dyn FinalAggregator<M>>, queries: usize) -> Self {
        let unknown = Query {
            unit: Unit::Entries,
            range: 1,
            slide: 1,
        };
        let waiting = waiting(&monoid, Ties::Keep);
        Self {
            window: InOrder::new(Slices::new(monoid, aggregator), Ties::Keep),
            waiting,
            rest: Rest::default(),
            schedule: Schedule::new(
                schedule::ScheduleOptions::default(),
                vec![Some(unknown); queries],
            ),
            loading: true,
            due: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Sets the schedule of an empty window.
    fn schedule(&mut self, schedule: Schedule) {
        if schedule.terms.slices {
            self.waiting = waiting(self.window.monoid(), Ties::Combine);
        }
        self.schedule = schedule;
    }

    /// Gives the entries of a sorted batch the times that they have in the window.
    fn group(&self, batch: &mut Batch<M>) {
        if self.schedule.terms.slices {
            for time in &mut batch.times {
                *time = self.schedule.time_of(*time);
            }
            batch.combine_ties(self.window.monoid(), Ties::Combine);
        }
    }

    fn may_be_late(&self) -> bool {
        self.schedule.terms.late.is_some()
    }

    /// The number of entries that were passed on and are later than a time.
    fn count_behind(&self, time: Option<i64>) -> usize {
        let times = self.window.times();
        let Some(time) = time else {
            return times.len();
        };
        let (head, tail) = (times.head(), times.tail());
        tail - partition(head, tail, |at| *times.get(at) <= time)
    }

    // -- passing entries on --------------------------------------------------------------

    /// Passes on an entry, which is not before the last one.
    #[inline]
    fn pass_on(&mut self, time: i64, entry: Entry<M>) {
        if self.schedule.closes_before(time) {
            self.close(time - 1);
        }
        self.window.insert(time, entry);
        self.schedule.pass_entries(time, 1);
        if self.schedule.open_entries() == 0 {
            self.close_entries(time);
        }
    }

    /// As `pass_on`, for a sorted batch: all entries between two edges or ends at once.
    fn pass_on_batch(&mut self, batch: Batch<M>) {
        let times = batch.times.clone();
        let mut entries = batch.into_entries();
        let mut at = 0;
        while at < times.len() {
            let time = times[at];
            if self.schedule.closes_before(time) {
                self.close(time - 1);
            }
            let run = match self.schedule.last {
                // The positions of edges and ends are known with the first entry.
                None => 1,
                Some(_) => {
                    let open = usize::try_from(self.schedule.open_entries());
                    let most = open.unwrap_or(usize::MAX).min(times.len() - at);
                    let until = self.schedule.open_until();
                    let run = times[at..at + most].partition_point(|time| *time <= until);
                    run.max(1) // the first of a session
                }
            };
            let mut together = Batch::with_capacity(run);
            for (time, entry) in entries.by_ref().take(run) {
                together.push(time, entry);
            }
            at += run;
            let last = times[at - 1];
            self.window.insert_batch(together);
            self.schedule.pass_entries(last, run as i64);
            if self.schedule.open_entries() == 0 {
                self.close_entries(last);
            }
        }
    }

    /// Passes on the waiting entries before which none can arrive, if an answer falls due or
    /// `all` is set.
    fn pass_on_closed(&mut self, all: bool) {
        let Some(closed) = self.schedule.settled() else {
            return;
        };
        let behind = closed.saturating_add(1);
        let begins = self.schedule.begin(closed);
        if self.may_be_late()
            && (all || begins || self.schedule.closes_before(behind))
            && self.waiting.oldest().is_some_and(|oldest| oldest <= closed)
        {
            let batch = self.waiting.take_until(closed);
            self.pass_on_batch(batch);
        }
        if all || self.schedule.closes_before(behind) {
            self.close(closed);
        }
    }

    /// Closes slices and answers queries up to a time before which no more entries arrive.
    fn close(&mut self, limit: i64) {
        if self.schedule.last.is_none() {
            return;
        }
        if self.schedule.cuts(limit) {
            self.window.structure_mut().cut();
        }
        let mut numbers = std::mem::take(&mut self.numbers);
        while let Some(end) = self.schedule.next_due(limit, &mut numbers) {
            self.answer(end, &numbers);
        }
        self.numbers = numbers;
        self.close_sessions(limit);
        self.schedule.pass(limit);
    }

    /// Answers the sessions that no entry can extend any more.
    fn close_sessions(&mut self, limit: i64) {
        let Some(last) = self.schedule.last else {
            return;
        };
        let over = self.schedule.data_driven.over(last, limit);
        if !over.is_empty() {
            self.window.structure_mut().cut();
            self.answer(last, &over);
            self.schedule.data_driven.end_sessions(&over, last);
        }
    }

    /// Closes the slice and answers the queries that fall due by the number of entries.
    fn close_entries(&mut self, time: i64) {
        let mut numbers = std::mem::take(&mut self.numbers);
        let flags = self.schedule.flags_of_last(&mut numbers);
        if self.schedule.cuts_entries() || flags != 0 {
            self.window.structure_mut().cut();
        }
        if flags != 0 {
            self.answer(time, &numbers);
            let count = self.schedule.count;
            self.schedule.data_driven.pass_flags(flags, count);
        }
        self.schedule.due_entries(&mut numbers);
        self.answer(time, &numbers);
        self.numbers = numbers;
    }

    fn evict_oldest(&mut self, count: usize) {
        if count > 0 {
            self.window.evict_oldest(count);
            self.rest.evict(self.window.times().head());
        }
    }

    /// Evicts the entries that are in no window any more.
    #[inline]
    fn evict_unused(&mut self) {
        let len = self.window.times().len();
        let data_driven = &self.schedule.data_driven;
        let longest = self.schedule.entries.longest;
        let longest = longest.max(data_driven.longest(self.schedule.count));
        let has_sessions = data_driven.has_sessions();
        let beyond = len - usize::try_from(longest).map_or(len, |longest| longest.min(len));
        if self.schedule.time.longest == 0 {
            self.evict_oldest(beyond);
            if self.may_be_late() && !has_sessions && self.waiting.len() > 0 {
                self.waiting = self.waiting.fresh();
            }
            return;
        }
        let Some(bound) = self.schedule.expired_until() else {
            return;
        };
        let times = self.window.times();
        if beyond > 0 && *times.get(times.head()) <= bound {
            let expired = len - self.count_behind(Some(bound));
            self.evict_oldest(expired.min(beyond));
        }
        if self.may_be_late()
            && !has_sessions
            && self.waiting.oldest().is_some_and(|oldest| oldest <= bound)
        {
            self.waiting.evict_until(bound);
        }
    }

    /// Cuts the entries that were passed on into new slices, for other queries.
    fn slice_anew(&mut self) {
        let ranges = self.schedule.range_count();
        self.window.structure_mut().restart(ranges);
        self.rest = Rest::default();
        let (head, tail) = (self.window.times().head(), self.window.times().tail());
        let (time, entries) = (&self.schedule.time.edges, &self.schedule.entries.edges);
        let mut number = self.schedule.count - (tail - head) as i64;
        let mut walk_entries = entries.walk(number + 1);
        let mut edge_entries = entries.step(&mut walk_entries, number + 1);
        let mut walk = time.walk(i64::MIN);
        let mut edge = i64::MAX;
        for at in head..tail {
            let next = *self.window.times().get(at);
            if at == head || next > edge {
                edge = time.step(&mut walk, next);
                self.window.structure_mut().cut();
            }
            let value = self.window.partial(at);
            self.window.structure_mut().refold(value);
            number += 1;
            if number == edge_entries {
                edge_entries = entries.step(&mut walk_entries, number + 1);
                self.window.structure_mut().cut();
            }
        }
        if self.schedule.passed() >= Some(edge) && head < tail {
            self.window.structure_mut().cut();
        }
    }

    /// The number of latest entries that are one session.
    fn session_held(&self, gap: i64) -> i64 {
        let times = self.window.times();
        let (head, tail) = (times.head(), times.tail());
        let far = |at: &usize| times.get(*at).abs_diff(*times.get(at - 1)) > gap.unsigned_abs();
        let begin = (head + 1..tail).rev().find(far).unwrap_or(head);
        (tail - begin) as i64
    }

    /// The start of the last session, if it begins with a waiting entry.
    fn session_that_waits(&mut self, number: usize, gap: i64) -> Option<i64> {
        let open = self.count_of(number) > 0;
        let mut before = self.schedule.last.filter(|_| open);
        let mut begin = None;
        self.waiting.for_each(&mut |time, _| {
            let near = |before: i64| time.abs_diff(before) <= gap.unsigned_abs();
            if !before.is_some_and(near) {
                begin = Some(time);
            }
            before = Some(time);
        });
        begin
    }
}

impl<M: Monoid> Window<M> for QueryWindow<M> {
    fn admits(&mut self, time: i64) -> std::result::Result<(), Refused> {
        match self.schedule.closed() {
            Some(closed) if time <= closed && !self.loading => Err(Refused::Late {
                time,
                youngest: closed.saturating_add(1),
            }),
            _ if self.loading => Ok(()),
            _ => match self.schedule.first() {
                Some(first) if time < first => self.schedule.admits_before(time, first),
                _ => self.schedule.admits(time),
            },
        }
    }

    fn admits_evict(&mut self, time: i64) -> std::result::Result<(), Refused> {
        match self.oldest() {
            Some(oldest) if time > oldest => Err(Refused::Inner { time, oldest }),
            _ => Ok(()),
        }
    }

    #[inline]
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        if self.loading {
            self.window.insert(time, entry);
            return;
        }
        self.schedule.youngest = self.schedule.youngest.max(Some(time));
        if self.may_be_late() {
            let time = self.schedule.time_of(time);
            self.schedule.note_first(time);
            self.waiting.insert(time, entry);
            self.pass_on_closed(false);
        } else {
            self.pass_on(time, entry);
        }
        self.evict_unused();
    }

    fn insert_batch(&mut self, mut batch: Batch<M>) {
        if self.loading {
            self.window.insert_batch(batch);
            return;
        }
        let last = batch.times.last().copied();
        self.schedule.youngest = self.schedule.youngest.max(last);
        if self.may_be_late() {
            self.group(&mut batch);
            if let Some(first) = batch.times.first() {
                self.schedule.note_first(*first);
            }
            self.waiting.insert_batch(batch);
            self.pass_on_closed(false);
        } else {
            self.pass_on_batch(batch);
        }
        self.evict_unused();
    }

    fn evict(&mut self) -> Option<i64> {
        let Some(oldest) = self.window.evict() else {
            return self.waiting.evict();
        };
        self.rest.evict(self.window.times().head());
        Some(oldest)
    }

    fn evict_at(&mut self, time: i64) -> bool {
        self.oldest() == Some(time) && self.evict().is_some()
    }

    fn evict_until(&mut self, time: i64) -> usize {
        let passed = self.window.evict_until(time);
        self.rest.evict(self.window.times().head());
        passed + self.waiting.evict_until(time)
    }

    fn query(&mut self) -> M::Partial {
        self.query_range(i64::MIN, i64::MAX)
    }

    fn query_each(&mut self, mut visit: impl FnMut(&M, M::Partial)) {
        let now = self.schedule.now();
        let mut wanted = Vec::new();
        let mut bounds = Vec::new();
        let live: Vec<_> = self.schedule.live().collect();
        for (number, query) in live {
            let mut bound = match query.unit {
                Unit::Time | Unit::TimeByEntries => {
                    now.and_then(|now| now.checked_sub(query.range))
                }
                _ => None,
            };
            let mut count = match query.unit {
                Unit::Time | Unit::TimeByEntries => self.count_behind(bound),
                Unit::Entries => self.count_last(query.range),
                _ => self.count_of(number),
            };
            if query.unit == Unit::Session
                && let Some(begin) = self.session_that_waits(number, query.range)
            {
                (bound, count) = (begin.checked_sub(1), 0);
            }
            wanted.push((self.schedule.range_of(number), count, number));
            bounds.push(bound);
        }
        // If entries may be late, later windows may begin before those that end now.
        let answers = if self.may_be_late() && self.window.structure().is_monotonic() {
            self.folds_of_entries(&wanted)
        } else {
            self.folds(&wanted)
        };
        for (passed, bound) in answers.into_iter().zip(bounds) {
            let mut answer = passed;
            if self.waiting.len() > 0 {
                let from = bound.map_or(i64::MIN, |bound| bound.saturating_add(1));
                let waiting = self.waiting.fold(from, i64::MAX);
                answer = self.window.monoid().combine(&answer, &waiting);
            }
            visit(self.window.monoid(), answer);
        }
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        let times = self.window.times();
        let (head, tail) = (times.head(), times.tail());
        let from = partition(head, tail, |at| *times.get(at) < lo);
        let to = partition(from, tail, |at| *times.get(at) <= hi);
        let passed = self.fold_positions(from, to);
        let waiting = self.waiting.fold(lo, hi);
        self.window.monoid().combine(&passed, &waiting)
    }

    fn len(&mut self) -> usize {
        self.window.len() + self.waiting.len()
    }

    fn oldest(&mut self) -> Option<i64> {
        self.window.oldest().or_else(|| self.waiting.oldest())
    }

    fn youngest(&mut self) -> Option<i64> {
        let youngest = self.waiting.youngest().or_else(|| self.window.youngest());
        // That of a slice is its first time.
        youngest.map(|held| match self.schedule.terms.slices {
            true => self.schedule.youngest.unwrap_or(held),
            false => held,
        })
    }

    fn clear(&mut self) {
        self.window.clear();
        self.rest = Rest::default();
        self.waiting = self.waiting.fresh();
        self.schedule.restart();
        self.window
            .structure_mut()
            .restart(self.schedule.range_count());
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        self.window.for_each(visit);
        self.waiting.for_each(visit);
    }

    fn take(&mut self) -> Batch<M> {
        let mut batch = self.window.take();
        for (time, entry) in self.waiting.take_until(i64::MAX).into_entries() {
            batch.push(time, entry);
        }
        self.clear();
        batch
    }

    fn planning(&mut self) -> Option<&mut dyn Planning> {
        Some(self)
    }

    fn take_due(&mut self) -> Vec<Due<M::Partial>> {
        std::mem::take(&mut self.due)
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.window.check()?;
        self.waiting.check()?;
        let monoid = self.window.monoid();
        self.rest.check(monoid, |at| self.window.partial(at))?;
        let mut waiting = self.waiting.boxed_clone();
        if self.loading {
            return Ok(());
        }
        self.schedule.check()?;
        if waiting
            .oldest()
            .is_some_and(|oldest| Some(oldest) <= self.schedule.last)
        {
            return Err("an entry waits, and a later one was passed on".to_owned());
        }
        let held = i64::try_from(self.window.times().len()).unwrap_or(i64::MAX);
        let len = self.window.times().len();
        let tail = self.window.times().tail();
        let last = (len > 0).then(|| *self.window.times().get(tail - 1));
        if held <= self.schedule.count && last <= self.schedule.last {
            return Ok(());
        }
        Err(format!(
            "{held} entries up to {last:?} of {}",
            self.schedule.count
        ))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() - size_of::<InOrder<M, Slices<M>>>()
            + self.window.bytes()
            + self.waiting.bytes()
            + self.rest.bytes()
            + self.schedule.bytes()
            + self.due.capacity() * size_of::<Due<M::Partial>>()
    }

    fn write(&self, out: &mut Writer) {
        u8::from(self.loading).write(out);
        self.schedule.write(out);
        self.window.write(out);
        self.waiting.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.loading = match u8::read(input)? {
            0 => false,
            1 => true,
            tag => return damaged(format!("a schedule of kind {tag}")),
        };
        self.schedule(Schedule::read(input)?);
        let ranges = self.schedule.range_count();
        self.window.structure_mut().restart(ranges);
        self.window.read(input)?;
        self.waiting.read(input)?;
        if self.loading && self.len() > 0 || !self.may_be_late() && self.waiting.len() > 0 {
            return damaged("entries where there can be none");
        }
        self.check().or_else(damaged)
    }

    fn monoid(&self) -> &M {
        self.window.monoid()
    }
}
