//! A window that answers for many ranges over one stream at once.
//!
//! All ranges end at the youngest entry; each reaches back by a number of entries or a length
//! of time (SlickDeque 2018, §2.3 and §3.2: queries that differ in range share their folds).
//! The structures keep values in order of arrival; [`SharedWindow`] keeps times, and the
//! begins of the ranges.
//!
//! Invariants of [`SharedWindow`] (checked by `check`):
//! 1. `begins` lie between the oldest entry and the end, and one is at the oldest: entries
//!    that no range reaches were evicted.
//! 2. `order` names all ranges, by rising begin.
//!
//! Entries of equal time stay apart, because ranges count entries.

use super::in_order::InOrder;
use super::queue::Queue;
use super::{Fifo, read_place, write_place};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer, damaged};
use crate::window::{Batch, Refused, Ties, Window};

/// A first-in first-out structure that answers for several of its ends.
pub trait Shared<M: Monoid>: Fifo<M> {
    /// Whether it keeps its ranges apart: then [`Shared::slide`] says where each begins,
    /// and [`Shared::answers`] is for all of them. Others answer for any of the youngest.
    const MONOTONIC: bool = false;

    /// An empty one of the same kind, for a number of ranges.
    fn for_ranges(&self, _ranges: usize) -> Self {
        self.fresh()
    }

    /// Sets the number of the youngest values that each range holds: `counts` fall, and no
    /// range begins earlier than before. The first range holds all values.
    fn slide(&mut self, _counts: &[usize]) {}

    /// Whether the structure answers for ranges that hold `counts` values, for checkers.
    fn holds(&self, _counts: &[usize]) -> bool {
        true
    }

    /// The folds of `counts` of the youngest values, each with its place in `counts`, which
    /// are those of the last [`Shared::slide`] plus the values inserted since.
    fn answers(&mut self, counts: &[usize], mut each: impl FnMut(usize, M::Partial)) {
        for (range, count) in counts.iter().enumerate() {
            each(range, self.query_last(*count));
        }
    }
}

/// The reach of a range, back from the youngest entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A number of entries.
    Entries(usize),
    /// Entries younger than the youngest minus this.
    Time(i64),
}

impl Reach {
    /// The new begin of a range, which began at `before`. Amortised O(1).
    fn begin(self, times: &Queue<i64>, before: usize) -> usize {
        let tail = times.tail();
        match self {
            Self::Entries(count) => before.max(tail.saturating_sub(count)),
            Self::Time(_) if times.is_empty() => before,
            Self::Time(length) => {
                let Some(until) = times.get(tail - 1).checked_sub(length) else {
                    return before;
                };
                let mut ahead = before..tail;
                ahead.find(|at| *times.get(*at) > until).unwrap_or(tail)
            }
        }
    }
}

/// A window over the longest of several ranges.
#[derive(Clone, Debug)]
pub struct SharedWindow<M: Monoid, F> {
    window: InOrder<M, F>,
    /// The begin of each range, by number.
    begins: Vec<usize>,
    /// The numbers of the ranges, the longest first.
    order: Vec<usize>,
    /// The number of entries of each, in that order: for the present call.
    counts: Vec<usize>,
    /// Answers of the present call, by number.
    answers: Vec<Option<M::Partial>>,
}

/// Orders ranges by their begins. One function for all windows: the sort is 8 kB.
pub(in crate::window) fn sort_ranges(order: &mut [usize], begins: &[usize]) {
    if !order.is_sorted_by_key(|range| begins[*range]) {
        order.sort_by_key(|range| begins[*range]);
    }
}

/// Checks where ranges begin, of positions from head to tail, and their order.
fn check_ranges(
    begins: &[usize],
    order: &[usize],
    (head, tail): (usize, usize),
) -> std::result::Result<(), String> {
    let inside = begins.iter().all(|at| (head..=tail).contains(at));
    if !inside || begins.iter().min() != Some(&head) {
        return Err(format!("ranges from {begins:?} of {head}..{tail}"));
    }
    let rising = order.is_sorted_by_key(|range| begins[*range]);
    let mut numbers = order.to_vec();
    numbers.sort_unstable();
    if rising && numbers.into_iter().eq(0..begins.len()) {
        return Ok(());
    }
    Err(format!("ranges in order {order:?}"))
}

impl<M: Monoid, F: Shared<M>> SharedWindow<M, F> {
    /// A window on an empty structure, for a number of ranges. [`Window::slide`] sets how far
    /// they reach, after every insert.
    pub fn new(fifo: F, ranges: usize) -> Self {
        assert!(ranges > 0, "no ranges");
        Self {
            window: InOrder::new(fifo, Ties::Keep),
            begins: vec![0; ranges],
            order: (0..ranges).collect(),
            counts: Vec::with_capacity(ranges),
            answers: vec![None; ranges],
        }
    }

    /// The number of entries of each range, the longest first.
    fn range_lengths(&self) -> impl Iterator<Item = usize> {
        let tail = self.window.times().tail();
        self.order
            .iter()
            .map(move |range| tail - self.begins[*range])
    }

    fn count(&mut self) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.clear();
        counts.extend(self.range_lengths());
        self.counts = counts;
    }

    /// Updates order, counts and contents after the begins of ranges have changed.
    fn reorder_ranges(&mut self) {
        sort_ranges(&mut self.order, &self.begins);
        self.count();
        let idle = self.window.times().len() - self.counts[0];
        self.window.evict_oldest(idle);
        self.window.structure_mut().slide(&self.counts);
    }

    /// Updates the begins after the oldest entries have left.
    fn follow(&mut self) {
        let head = self.window.times().head();
        for begin in &mut self.begins {
            *begin = head.max(*begin);
        }
        self.reorder_ranges();
    }
}

impl<M: Monoid, F: Shared<M>> Window<M> for SharedWindow<M, F> {
    fn admits(&mut self, time: i64) -> std::result::Result<(), Refused> {
        self.window.admits(time)
    }

    fn admits_evict(&mut self, time: i64) -> std::result::Result<(), Refused> {
        self.window.admits_evict(time)
    }

    fn admits_range(&mut self, lo: i64, hi: i64) -> std::result::Result<(), Refused> {
        self.window.admits_range(lo, hi)
    }

    fn insert(&mut self, time: i64, entry: Entry<M>) {
        self.window.insert(time, entry);
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        self.window.insert_batch(batch);
    }

    fn slide(&mut self, reaches: &[Reach]) {
        let times = self.window.times();
        for (begin, reach) in self.begins.iter_mut().zip(reaches) {
            *begin = reach.begin(times, *begin);
        }
        self.reorder_ranges();
    }

    fn evict(&mut self) -> Option<i64> {
        let time = self.window.evict();
        self.follow();
        time
    }

    fn evict_at(&mut self, time: i64) -> bool {
        let found = self.window.evict_at(time);
        self.follow();
        found
    }

    fn evict_until(&mut self, time: i64) -> usize {
        let count = self.window.evict_until(time);
        self.follow();
        count
    }

    fn query(&mut self) -> M::Partial {
        self.window.query()
    }

    fn query_each(&mut self, mut visit: impl FnMut(&M, M::Partial)) {
        self.count();
        let (order, answers) = (&self.order, &mut self.answers);
        let keep = |place: usize, answer| answers[order[place]] = Some(answer);
        self.window.structure_mut().answers(&self.counts, keep);
        for answer in self.answers.iter_mut().filter_map(Option::take) {
            visit(self.window.monoid(), answer);
        }
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        self.window.query_range(lo, hi)
    }

    fn len(&mut self) -> usize {
        self.window.len()
    }

    fn oldest(&mut self) -> Option<i64> {
        self.window.oldest()
    }

    fn youngest(&mut self) -> Option<i64> {
        self.window.youngest()
    }

    fn clear(&mut self) {
        self.window.clear();
        self.begins.fill(self.window.times().head());
        self.reorder_ranges();
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        self.window.for_each(visit);
    }

    fn take(&mut self) -> Batch<M> {
        let batch = self.window.take();
        self.clear();
        batch
    }

    fn check(&self) -> std::result::Result<(), String> {
        let (head, tail) = (self.window.times().head(), self.window.times().tail());
        check_ranges(&self.begins, &self.order, (head, tail))?;
        let counts: Vec<usize> = self.range_lengths().collect();
        if !self.window.structure().holds(&counts) {
            return Err(format!(
                "the structure answers for other ranges than {counts:?}"
            ));
        }
        self.window.check()
    }

    fn bytes(&self) -> usize {
        let words = self.begins.capacity() + self.order.capacity() + self.counts.capacity();
        size_of::<Self>() - size_of::<InOrder<M, F>>()
            + self.window.bytes()
            + words * size_of::<usize>()
            + self.answers.capacity() * size_of::<Option<M::Partial>>()
    }

    fn write(&self, out: &mut Writer) {
        self.window.write(out);
        for begin in &self.begins {
            write_place(begin - self.window.times().head(), out);
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.window.read(input)?;
        let (head, len) = (self.window.times().head(), self.window.times().len());
        for begin in &mut self.begins {
            *begin = head + read_place(input, 0, len)?;
        }
        if self.begins.iter().min() != Some(&head) {
            return damaged("entries that no range reaches");
        }
        self.reorder_ranges();
        self.check().or_else(damaged)
    }

    fn monoid(&self) -> &M {
        self.window.monoid()
    }
}
