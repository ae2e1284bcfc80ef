//! The whole-table fold: two stacks over a sorted group.
//!
//! The window `[lo, hi)` is split at `mid`. Before `mid` the fold of every suffix is kept;
//! after it there is one running fold:
//!
//! ```text
//!     lo           mid          hi
//!      | suffixes   | back       |      answer = suffixes[lo] ⊗ back
//! ```
//!
//! When `lo` passes `mid`, the window is folded anew from its latest row (the *flip*) and
//! `mid` moves to `hi`. Each row is pushed once and flipped at most once, and each window
//! takes one combine: ≤ 3 per row.

use super::frame_bounds::FramePointers;
use super::query_points::Others;
use super::{Error, FrameUnit, Group, Ranges, RowAnswers, Sink, Span};
use crate::aggregate::Aggregation;
use crate::aggregate::collect::Element;
use crate::monoid::{Entry, Monoid};
use crate::window::fiba::Fiba;
use crate::window::{self, Window};

/// Answers one span for every row of a group.
pub(super) fn answer<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    (index, span): (usize, Span),
    ties: FrameUnit,
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let mut pointers = FramePointers::new(&group.times, span, ties);
    let mut fold = SlidingFold::new(group.aggregation, &group.entries);
    let mut known = None;
    for (position, &row) in group.rows.iter().enumerate() {
        let (lo, hi) = pointers.at(position);
        // Peers share one window, which is folded and lowered once.
        if known != Some((lo, hi)) {
            answers.lower(group.aggregation, &fold.slide(lo, hi));
            known = Some((lo, hi));
        }
        answers.put(index, row)?;
    }
    Ok(())
}

/// Answers windows over a whole table, given as ranges. Each group begins anew, so that its
/// answers do not depend on earlier groups. `only` selects groups.
pub(super) fn answer_ranges<T: Element, A: Aggregation<T>, S: Sink<T>>(
    table: &Group<'_, A>,
    index: usize,
    (ranges, only): (&Ranges<'_>, Option<&[bool]>),
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let monoid = table.aggregation;
    for (from, group) in ranges.groups(only) {
        let mut fold = SlidingFold::new(monoid, &table.entries[from..]);
        let mut others = OthersFold::default();
        for (row, (lo, hi), behind) in group {
            let mut partial = fold.slide(lo - from, hi - from);
            if let Some(behind) = behind {
                let (before, after) = others.fold(monoid, &table.entries, behind);
                partial = monoid.combine(&monoid.combine(&partial, before), after);
            }
            answers.lower(monoid, &partial);
            answers.put(index, row)?;
        }
    }
    Ok(())
}

/// The folds of the rows of one time before and after each of them. Each row is folded twice.
struct OthersFold<P> {
    rows: (usize, usize),
    /// By number of rows, the fold of the first.
    before: Vec<P>,
    /// By number of rows, the fold of the last.
    after: Vec<P>,
}

impl<P> Default for OthersFold<P> {
    fn default() -> Self {
        Self {
            rows: (0, 0),
            before: Vec::new(),
            after: Vec::new(),
        }
    }
}

impl<P> OthersFold<P> {
    fn fold<M: Monoid<Partial = P>>(
        &mut self,
        monoid: &M,
        entries: &[Entry<M>],
        others: Others,
    ) -> (&P, &P) {
        let rows = (others.from, others.to);
        if self.rows != rows {
            let entries = &entries[rows.0..rows.1];
            self.before = vec![monoid.identity()];
            self.after = vec![monoid.identity()];
            for (one, last) in entries.iter().zip(entries.iter().rev()) {
                let before = self.before.last().expect("one is there");
                self.before
                    .push(monoid.combine(before, &one.partial(monoid)));
                let after = self.after.last().expect("one is there");
                self.after
                    .push(monoid.combine(&last.partial(monoid), after));
            }
            self.rows = rows;
        }
        (
            &self.before[others.without - others.from],
            &self.after[others.to - others.without - 1],
        )
    }
}

/// Two stacks keep a partial per row of the window; for wide partials a tree is used, which
/// keeps one per leaf and takes a few more combines.
pub(super) enum SlidingFold<'a, M: Monoid> {
    Stacks(TwoStacks<'a, M>),
    FibaFold(FibaFold<'a, M>),
}

impl<'a, M: Monoid> SlidingFold<'a, M> {
    pub fn new(monoid: &'a M, entries: &'a [Entry<M>]) -> Self {
        if const { M::WIDE } && monoid.wide() {
            return Self::FibaFold(FibaFold::new(monoid, entries));
        }
        Self::Stacks(TwoStacks::new(monoid, entries))
    }

    /// The fold of `entries[lo..hi]`. Neither end lies before that of an earlier call.
    pub fn slide(&mut self, lo: usize, hi: usize) -> M::Partial {
        match self {
            Self::Stacks(stacks) => stacks.slide(lo, hi),
            // A constant, so that for most monoids the tree is not compiled.
            Self::FibaFold(tree) => {
                if const { M::WIDE } {
                    return tree.slide(lo, hi);
                }
                unreachable!("partials are not wide")
            }
        }
    }
}

/// The fold over a range whose ends only move forward; entries are in a tree by position.
pub(super) struct FibaFold<'a, M: Monoid> {
    entries: &'a [Entry<M>],
    window: Fiba<M, 64, 32>,
    lo: usize,
    hi: usize,
}

impl<'a, M: Monoid> FibaFold<'a, M> {
    fn new(monoid: &M, entries: &'a [Entry<M>]) -> Self {
        Self {
            entries,
            window: Fiba::new(monoid.clone(), window::Ties::Keep),
            lo: 0,
            hi: 0,
        }
    }

    fn slide(&mut self, lo: usize, hi: usize) -> M::Partial {
        self.hi = self.hi.max(lo);
        for (place, entry) in self.entries.iter().enumerate().take(hi).skip(self.hi) {
            self.window.insert(place as i64, entry.clone());
        }
        self.hi = self.hi.max(hi);
        if lo > self.lo {
            self.window.evict_until(lo as i64 - 1);
            self.lo = lo;
        }
        self.window.query()
    }
}

/// The fold over a range of entries whose ends only move forward.
#[derive(Debug)]
pub struct TwoStacks<'a, M: Monoid> {
    monoid: &'a M,
    entries: &'a [Entry<M>],
    /// `suffixes[k]` is the fold of `entries[mid − 1 − k..mid]`; as long as the front.
    suffixes: Vec<M::Partial>,
    mid: usize,
    /// The fold of `entries[mid..hi]`.
    back: M::Partial,
    hi: usize,
}

impl<'a, M: Monoid> TwoStacks<'a, M> {
    pub fn new(monoid: &'a M, entries: &'a [Entry<M>]) -> Self {
        Self {
            monoid,
            entries,
            suffixes: Vec::new(),
            mid: 0,
            back: monoid.identity(),
            hi: 0,
        }
    }

    /// The fold of `entries[lo..hi]`. Neither end lies before that of an earlier call.
    pub fn slide(&mut self, lo: usize, hi: usize) -> M::Partial {
        if lo > self.mid {
            self.flip(lo, hi);
        } else {
            self.suffixes.truncate(self.mid - lo);
            for entry in &self.entries[self.hi..hi] {
                absorb(self.monoid, &mut self.back, entry);
            }
            self.hi = hi;
        }
        match self.suffixes.last() {
            Some(front) if self.mid == self.hi => front.clone(),
            Some(front) => self.monoid.combine(front, &self.back),
            None => self.back.clone(),
        }
    }

    fn flip(&mut self, lo: usize, hi: usize) {
        self.suffixes.clear();
        for entry in self.entries[lo..hi].iter().rev() {
            let older = entry.partial(self.monoid);
            let suffix = match self.suffixes.last() {
                Some(younger) => self.monoid.combine(&older, younger),
                None => older,
            };
            self.suffixes.push(suffix);
        }
        self.mid = hi;
        self.hi = hi;
        self.back = self.monoid.identity();
    }
}

fn absorb<M: Monoid>(monoid: &M, acc: &mut M::Partial, entry: &Entry<M>) {
    match entry {
        Entry::Raw(value) => monoid.absorb(acc, value),
        Entry::Lifted(partial) => *acc = monoid.combine(acc, partial),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::aggregate::collect::{Collect, Seq};

    /// `collect`, which reveals any wrong order, counting its combines.
    #[derive(Clone, Default)]
    struct Counted {
        inner: Collect<i64>,
        combines: Arc<AtomicUsize>,
    }

    impl Monoid for Counted {
        type In = Seq<i64>;
        type Partial = Seq<i64>;
        const SMALL: usize = 0;

        fn commutative(&self) -> bool {
            false
        }
        fn identity(&self) -> Seq<i64> {
            Seq::Empty
        }
        fn lift(&self, value: &Seq<i64>) -> Seq<i64> {
            value.clone()
        }
        fn combine(&self, a: &Seq<i64>, b: &Seq<i64>) -> Seq<i64> {
            self.combines.fetch_add(1, Ordering::Relaxed);
            self.inner.combine(a, b)
        }
        fn unlift(&self, partial: Seq<i64>) -> Result<Seq<i64>, Seq<i64>> {
            Ok(partial)
        }
        fn same(&self, a: &Seq<i64>, b: &Seq<i64>) -> bool {
            a == b
        }
    }

    /// Ranges whose ends move forward by up to `step` at a time.
    fn ranges(seed: u64, count: usize, step: usize) -> Vec<(usize, usize)> {
        let mut state = seed;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (mut lo, mut hi) = (0, 0);
        let mut all = Vec::new();
        while hi < count {
            hi = (hi + next(step + 1)).min(count);
            lo = (lo + next(step + 1)).min(hi);
            all.push((lo, hi));
        }
        all
    }

    #[test]
    fn slides_answer_in_order_with_three_combines_per_row() {
        for seed in 0..200 {
            let count = [1, 2, 63, 64, 65, 300][seed as usize % 6];
            let step = [1, 2, 9, 80][seed as usize % 4];
            let monoid = Counted::default();
            let entries: Vec<Entry<Counted>> = (0..count as i64)
                .map(|value| match value % 5 {
                    0 => Entry::Lifted(Seq::One(value)),
                    _ => Entry::Raw(Seq::One(value)),
                })
                .collect();
            let mut stacks = TwoStacks::new(&monoid, &entries);
            let slides = ranges(seed, count, step);
            for &(lo, hi) in &slides {
                let expected: Vec<i64> = (lo as i64..hi as i64).collect();
                assert_eq!(stacks.slide(lo, hi).to_vec(), expected, "seed {seed}");
            }
            let combines = monoid.combines.load(Ordering::Relaxed);
            assert!(
                combines <= 2 * count + slides.len(),
                "seed {seed}: {combines}"
            );
        }
    }
}
