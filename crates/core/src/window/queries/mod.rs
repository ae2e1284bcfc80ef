//! Queries with range and slide over one stream, by one shared plan.
//!
//! Entries are folded into slices between the edges of the plan, once for all queries
//! (SlickDeque 2018, §2.3, §3.2 lines 4, 17, 18 and 26); a final aggregator makes answers
//! of slices when they fall due. [`plan`] says where the edges are, [`schedule`] when
//! answers fall due.
//!
//! An answer is final: it is given when no entry can come any more that takes part. Where
//! entries may be late, they *wait*, in order of time, until none can come before them;
//! then they are passed on as if they had come in order. So a slice is folded in order
//! whatever the aggregation, and every final aggregator serves streams out of order, too.
//!
//! Entries are kept beside their slices, as in [`SharedWindow`](super::shared): a query as
//! of now, and one that is added later, may begin within a slice.
//!
//! Invariants of [`QueryWindow`] (checked by `check`):
//! 1. Entries that wait are younger than all that were passed on.
//! 2. While `loading`, entries are in no slice; nothing falls due.

pub mod data_driven;
pub mod final_aggregator;
pub mod plan;
pub mod schedule;
mod slices;
mod waiting;

use super::entries::partition;
use super::fifo::{fold, join};
use super::in_order::InOrder;
use super::{Batch, Refused, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use final_aggregator::{FinalAggregator, Wanted};
use plan::{Query, Unit};
use schedule::Schedule;
use slices::Slices;
use waiting::{Waiting, waiting};

/// An answer that fell due: of which query, for the window that ends when.
#[derive(Clone, Debug)]
pub struct Due<A> {
    pub query: usize,
    pub end: i64,
    pub answer: A,
}

/// What is done with the queries of a window, whatever its aggregation.
pub trait Planning {
    fn schedule(&self) -> &Schedule;
    /// Goes by that schedule from now on. The entries that are there were inserted
    /// without one.
    fn start(&mut self, schedule: Schedule);
    /// Whether it has been started.
    fn is_started(&self) -> bool;
    /// Expects as many queries as that schedule has, before it is started.
    fn expect(&mut self, schedule: Schedule);
    /// Adds a query and gives its number.
    fn add(&mut self, query: Query) -> usize;
    /// Drops a query; false if there is none of that number.
    fn drop_query(&mut self, number: usize) -> bool;
    /// Whether so few ends fall due up to a time that all can be answered.
    ///
    /// # Errors
    /// [`Refused::Many`].
    fn admits_advance(&self, time: i64) -> std::result::Result<(), Refused>;
    /// Says that no entries come up to a time: ends up to it fall due.
    fn advance(&mut self, time: i64);
    /// How many slices there are, the open one included.
    fn slice_count(&self) -> usize;
    /// Says which of the entries that come next have flags: their places in order of
    /// time, rising, each with the set of its flags.
    fn announce(&mut self, flagged: &[(usize, u64)]);
}

pub struct QueryWindow<M: Monoid> {
    window: InOrder<M, Slices<M>>,
    /// Those that are not passed on yet; in use where entries may be late.
    waiting: Box<dyn Waiting<M>>,
    schedule: Schedule,
    loading: bool,
    due: Vec<Due<M::Partial>>,
    /// The queries that fall due, for the call at hand.
    numbers: Vec<usize>,
}

impl<M: Monoid> Clone for QueryWindow<M> {
    fn clone(&self) -> Self {
        Self {
            window: self.window.clone(),
            waiting: self.waiting.boxed_clone(),
            schedule: self.schedule.clone(),
            loading: self.loading,
            due: self.due.clone(),
            numbers: Vec::new(),
        }
    }
}

impl<M: Monoid> QueryWindow<M> {
    /// An empty window that answers so many queries, once it is told which they are
    /// ([`Planning::start`]).
    pub fn new(monoid: M, aggregator: Box<dyn FinalAggregator<M>>, queries: usize) -> Self {
        let unknown = Query {
            unit: Unit::Entries,
            range: 1,
            slide: 1,
        };
        let waiting = waiting(&monoid);
        Self {
            window: InOrder::new(Slices::new(monoid, aggregator), Ties::Keep),
            waiting,
            schedule: Schedule::new(schedule::Terms::default(), vec![Some(unknown); queries]),
            loading: true,
            due: Vec::new(),
            numbers: Vec::new(),
        }
    }

    fn may_be_late(&self) -> bool {
        self.schedule.terms.late.is_some()
    }

    /// How many entries that were passed on are younger than a time.
    fn count_behind(&self, time: Option<i64>) -> usize {
        let times = self.window.times();
        let Some(time) = time else {
            return times.len();
        };
        let (head, tail) = (times.head(), times.tail());
        tail - partition(head, tail, |at| *times.get(at) <= time)
    }

    // -- passing entries on --------------------------------------------------------------

    /// Passes an entry on, which is not older than those before.
    #[inline]
    fn pass_on(&mut self, time: i64, entry: Entry<M>) {
        if self.schedule.wakes(time) {
            self.close(time - 1);
        }
        self.window.insert(time, entry);
        self.schedule.pass_entries(time, 1);
        if self.schedule.calm_entries() == 0 {
            self.close_entries(time);
        }
    }

    /// The same for a sorted batch: what is between two edges or ends at once.
    fn pass_on_batch(&mut self, batch: Batch<M>) {
        let times = batch.times.clone();
        let mut entries = batch.into_entries();
        let mut at = 0;
        while at < times.len() {
            let time = times[at];
            if self.schedule.wakes(time) {
                self.close(time - 1);
            }
            let run = match self.schedule.last {
                // The first entry of all says where edges and ends are.
                None => 1,
                Some(_) => {
                    let calm = usize::try_from(self.schedule.calm_entries());
                    let most = calm.unwrap_or(usize::MAX).min(times.len() - at);
                    let until = self.schedule.calm_until();
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
            if self.schedule.calm_entries() == 0 {
                self.close_entries(last);
            }
        }
    }

    /// Passes on those for which no earlier entry is awaited, if anything falls due or
    /// `all` of them are to be.
    fn settle(&mut self, all: bool) {
        let Some(closed) = self.schedule.closed() else {
            return;
        };
        let behind = closed.saturating_add(1);
        if self.may_be_late()
            && (all || self.schedule.last.is_none() || self.schedule.wakes(behind))
            && self.waiting.oldest().is_some_and(|oldest| oldest <= closed)
        {
            let batch = self.waiting.take_until(closed);
            self.pass_on_batch(batch);
        }
        if all || self.schedule.wakes(behind) {
            self.close(closed);
        }
    }

    /// Ends slices and answers queries up to a time, which no entry is before any more.
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

    /// Ends the slice and answers queries that fall due by the number of entries.
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

    /// Evicts what no query reaches any more.
    #[inline]
    fn shed(&mut self) {
        let len = self.window.times().len();
        let data_driven = &self.schedule.data_driven;
        let longest = self.schedule.entries.longest;
        let longest = longest.max(data_driven.longest(self.schedule.count));
        let beyond = len - usize::try_from(longest).map_or(len, |longest| longest.min(len));
        if self.schedule.time.longest == 0 {
            self.window.evict_oldest(beyond);
            if self.may_be_late() && !data_driven.has_sessions() && self.waiting.len() > 0 {
                self.waiting = self.waiting.fresh();
            }
            return;
        }
        let Some(bound) = self.schedule.outlived() else {
            return;
        };
        let times = self.window.times();
        if beyond > 0 && *times.get(times.head()) <= bound {
            let outlived = len - self.count_behind(Some(bound));
            self.window.evict_oldest(outlived.min(beyond));
        }
        if self.may_be_late()
            && !self.schedule.data_driven.has_sessions()
            && self.waiting.oldest().is_some_and(|oldest| oldest <= bound)
        {
            self.waiting.evict_until(bound);
        }
    }

    /// Cuts the entries that were passed on into slices anew, for other queries.
    fn slice_anew(&mut self) {
        let ranges = self.schedule.range_count();
        self.window.structure_mut().restart(ranges);
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

    /// How many of the youngest entries are one session.
    fn session_held(&self, gap: i64) -> i64 {
        let times = self.window.times();
        let (head, tail) = (times.head(), times.tail());
        let far = |at: &usize| times.get(*at).abs_diff(*times.get(at - 1)) > gap.unsigned_abs();
        let begin = (head + 1..tail).rev().find(far).unwrap_or(head);
        (tail - begin) as i64
    }

    /// When the last session begins, if with an entry that waits.
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

    // -- answers -------------------------------------------------------------------------

    /// Answers the queries of those numbers, which rise.
    fn answer(&mut self, end: i64, numbers: &[usize]) {
        let mut wanted = Vec::with_capacity(numbers.len());
        for number in numbers {
            let query = self.schedule.queries()[*number].expect("only live queries fall due");
            let count = match query.unit {
                Unit::Time | Unit::TimeByEntries => self.count_behind(end.checked_sub(query.range)),
                Unit::Entries => self.count_last(query.range),
                // Without new entries the answer is that of the end before.
                Unit::LandmarkTime(_)
                    if !self.schedule.terms.empty
                        && self.count_behind(end.checked_sub(query.slide)) == 0 =>
                {
                    0
                }
                _ => self.count_of(*number),
            };
            if count > 0 || self.schedule.terms.empty {
                wanted.push((self.schedule.range_of(*number), count, *number));
            }
        }
        let answers = self.folds(&wanted);
        let due = wanted.iter().zip(answers);
        self.due.extend(due.map(|((_, _, query), answer)| Due {
            query: *query,
            end,
            answer,
        }));
    }

    /// How many entries the open window of a data-driven query has.
    fn count_of(&self, number: usize) -> usize {
        let schedule = &self.schedule;
        self.count_last(schedule.data_driven.held(number, schedule.count))
    }

    /// How many of the last `range` entries are still there.
    fn count_last(&self, range: i64) -> usize {
        let len = self.window.times().len();
        usize::try_from(range).map_or(len, |range| range.min(len))
    }

    /// The folds of the youngest entries that were passed on: for each range, so many.
    fn folds(&mut self, wanted: &[(usize, usize, usize)]) -> Vec<M::Partial> {
        let order = by_falling_count(wanted);
        // What is asked of the final aggregator: each number of slices once, or each range.
        let ranked = self.window.structure().is_ranked();
        let mut asked: Vec<Wanted> = Vec::with_capacity(order.len());
        let mut place_of = vec![usize::MAX; wanted.len()];
        for at in &order {
            let (range, count, _) = wanted[*at];
            let slices = self.window.structure().parts(count).slices;
            if slices == 0 {
                continue;
            }
            let same = |last: &Wanted| last.1 == slices && (!ranked || last.0 == range);
            if !asked.last().is_some_and(same) {
                asked.push((range, slices));
            }
            place_of[*at] = asked.len() - 1;
        }
        let mut folded = vec![None; asked.len()];
        if !asked.is_empty() {
            let keep = &mut |place: usize, answer| folded[place] = Some(answer);
            self.window.structure_mut().answers(&asked, keep);
        }
        let mut answers = vec![None; wanted.len()];
        let mut before: Option<usize> = None;
        for at in order {
            let count = wanted[at].1;
            answers[at] = match before.filter(|before| wanted[*before].1 == count) {
                Some(before) => answers[before].clone(),
                None => {
                    let slices = folded.get(place_of[at]).and_then(Option::as_ref);
                    Some(self.whole(count, slices))
                }
            };
            before = Some(at);
        }
        answers.into_iter().flatten().collect()
    }

    /// The fold of the `count` youngest entries, given that of their closed slices.
    fn whole(&self, count: usize, slices: Option<&M::Partial>) -> M::Partial {
        let parts = self.window.structure().parts(count);
        let monoid = self.window.monoid();
        let open = self.window.structure().open().filter(|_| parts.open);
        if parts.rest == 0 {
            return join(monoid, slices, open);
        }
        let from = self.window.times().tail() - count;
        let rest = self.fold_positions(from, from + parts.rest);
        match (slices, open) {
            (None, None) => rest,
            _ => monoid.combine(&rest, &join(monoid, slices, open)),
        }
    }

    fn fold_positions(&self, from: usize, to: usize) -> M::Partial {
        let rest: Vec<M::Partial> = (from..to).map(|at| self.window.partial(at)).collect();
        fold(self.window.monoid(), &rest)
    }

    /// [`QueryWindow::folds`] without the final aggregator: in one pass over the entries.
    fn folds_of_entries(&self, wanted: &[(usize, usize, usize)]) -> Vec<M::Partial> {
        let monoid = self.window.monoid();
        let mut answers = vec![monoid.identity(); wanted.len()];
        let (mut whole, mut done) = (None, 0);
        for at in by_falling_count(wanted).into_iter().rev() {
            let tail = self.window.times().tail();
            for position in (tail - wanted[at].1..tail - done).rev() {
                let older = self.window.partial(position);
                whole = Some(join(monoid, Some(&older), whole.as_ref()));
            }
            done = wanted[at].1;
            if let Some(whole) = &whole {
                answers[at] = whole.clone();
            }
        }
        answers
    }
}

/// The places of what is wanted, those of the most entries first and of the last range among
/// them. One function for all monoids: the sort is 5 kB.
fn by_falling_count(wanted: &[(usize, usize, usize)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((wanted[*at].1, wanted[*at].0)));
    order
}

impl<M: Monoid> Planning for QueryWindow<M> {
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn start(&mut self, schedule: Schedule) {
        let mut batch = self.window.take();
        self.schedule = schedule;
        self.loading = false;
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
        self.settle(true);
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
            self.slice_anew();
            self.shed();
        }
        found
    }

    fn admits_advance(&self, time: i64) -> std::result::Result<(), Refused> {
        self.schedule.admits(time, time)
    }

    fn advance(&mut self, time: i64) {
        if self.loading {
            return;
        }
        self.schedule.advanced = self.schedule.advanced.max(Some(time));
        self.settle(true);
        self.shed();
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

impl<M: Monoid> Window<M> for QueryWindow<M> {
    fn admits(&mut self, time: i64) -> std::result::Result<(), Refused> {
        match self.schedule.closed() {
            Some(closed) if time <= closed && !self.loading => Err(Refused::Late {
                time,
                youngest: closed.saturating_add(1),
            }),
            _ if self.loading => Ok(()),
            _ => {
                let late = self.schedule.terms.late.unwrap_or(0);
                self.schedule.admits(time, time.saturating_sub(late))
            }
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
            self.waiting.insert(time, entry);
            self.settle(false);
        } else {
            self.pass_on(time, entry);
        }
        self.shed();
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        if self.loading {
            self.window.insert_batch(batch);
            return;
        }
        let last = batch.times.last().copied();
        self.schedule.youngest = self.schedule.youngest.max(last);
        if self.may_be_late() {
            self.waiting.insert_batch(batch);
            self.settle(false);
        } else {
            self.pass_on_batch(batch);
        }
        self.shed();
    }

    fn evict(&mut self) -> Option<i64> {
        self.window.evict().or_else(|| self.waiting.evict())
    }

    fn evict_at(&mut self, time: i64) -> bool {
        self.oldest() == Some(time) && self.evict().is_some()
    }

    fn evict_until(&mut self, time: i64) -> usize {
        self.window.evict_until(time) + self.waiting.evict_until(time)
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
        // Windows to come may begin before those that end now, if entries may be late.
        let answers = if self.may_be_late() && self.window.structure().is_ranked() {
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
        let mut youngest = self.window.youngest();
        if self.waiting.len() > 0 {
            self.waiting.for_each(&mut |time, _| youngest = Some(time));
        }
        youngest
    }

    fn clear(&mut self) {
        self.window.clear();
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

    fn planning(&mut self) -> Option<&mut dyn Planning> {
        Some(self)
    }

    fn take_due(&mut self) -> Vec<Due<M::Partial>> {
        std::mem::take(&mut self.due)
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.window.check()?;
        self.waiting.check()?;
        let mut waiting = self.waiting.boxed_clone();
        if self.loading {
            return Ok(());
        }
        self.schedule.check()?;
        if waiting
            .oldest()
            .is_some_and(|oldest| Some(oldest) <= self.schedule.last)
        {
            return Err("an entry waits that others were passed on behind".to_owned());
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
        self.schedule = Schedule::read(input)?;
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
