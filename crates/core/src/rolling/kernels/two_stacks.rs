//! Two stacks over a column: the fold of every window, one after the other.
//!
//! ```text
//!     lo           mid          hi
//!      | suffixes   | back       |      answer = suffixes[lo] ⊗ back[hi]
//! ```
//!
//! When `lo` passes `mid`, the window is folded anew from its latest row backwards (the
//! *flip*) and `mid` moves to `hi`. No value is subtracted. Between two flips there is no
//! branch to mispredict: the folds behind `mid` are stored for a block of windows, then
//! front and back are joined window by window, independently of one another. ≤ 3 combines
//! per row.
//!
//! A window that shares no row with the previous one also starts with a flip. So the
//! answers of a group do not depend on earlier groups.

use std::ops::Range;

use super::{PresentCounts, RowBlock};

/// Windows per test whether one needs a rebase.
const LANES: usize = 64;

/// A column and an associative operation over it.
pub(super) trait Scan: Copy {
    type Fold: Copy;
    /// The lowered value of a window's fold.
    type Lowered: Copy + Default;
    /// Whether folds may lose digits, see [`Self::needs_rebase`]. Only then counts are read.
    const REBASES: bool = false;

    fn identity(&self) -> Self::Fold;
    /// `fold ⊗ value[at]`.
    fn absorb(&self, fold: Self::Fold, at: usize) -> Self::Fold;
    fn join(&self, older: Self::Fold, younger: Self::Fold) -> Self::Fold;
    /// Stores the folds of `fold` with one row after the other; returns the last.
    #[inline(always)]
    fn forward(
        &self,
        rows: Range<usize>,
        fold: Self::Fold,
        slots: &mut [Self::Fold],
    ) -> Self::Fold {
        let mut fold = fold;
        for (slot, at) in slots.iter_mut().zip(rows) {
            fold = self.absorb(fold, at);
            *slot = fold;
        }
        fold
    }
    /// Stores the fold of each row and all later ones.
    #[inline(always)]
    fn backward(&self, rows: Range<usize>, slots: &mut [Self::Fold]) {
        let identity = self.identity();
        let mut fold = identity;
        for (slot, at) in slots.iter_mut().zip(rows).rev() {
            fold = self.join(self.absorb(identity, at), fold);
            *slot = fold;
        }
    }
    /// Lowers a fold over `count` values.
    fn lower(&self, fold: Self::Fold, count: f64) -> Self::Lowered;

    /// Called before `lo..hi` is folded anew: the pivot may change now. A `fresh` window
    /// shares no row with earlier ones.
    fn renew(&mut self, _lo: usize, _hi: usize, _fresh: bool) {}
    /// Whether a fold has lost so many digits that the window must be folded anew.
    #[inline(always)]
    fn needs_rebase(&self, _fold: Self::Fold, _lowered: Self::Lowered, _count: f64) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct TwoStacks<'a, S: Scan> {
    pub(super) scan: S,
    counts: PresentCounts<'a>,
    /// `suffixes[k]` folds `base + k..mid`; the last is the identity.
    suffixes: Vec<S::Fold>,
    base: usize,
    mid: usize,
    /// The fold of `mid..hi`.
    back: S::Fold,
    hi: usize,
    /// `backs[k]` folds `mid..first + k`, for the windows at hand.
    backs: Vec<S::Fold>,
}

impl<'a, S: Scan> TwoStacks<'a, S> {
    pub(super) fn new(scan: S, counts: PresentCounts<'a>) -> Self {
        let identity = scan.identity();
        Self {
            scan,
            counts,
            suffixes: vec![identity],
            base: 0,
            mid: 0,
            back: identity,
            hi: 0,
            backs: Vec::new(),
        }
    }

    /// The next window begins at `lo` and shares no row with those before it.
    pub(super) fn restart(&mut self, lo: usize) {
        (self.mid, self.hi) = (lo, lo);
    }

    /// The lowered value of each window of a block, which follows that of the last call.
    #[inline(always)]
    pub(super) fn answer(&mut self, block: &RowBlock<'_>, lowered: &mut [S::Lowered]) {
        let mut at = 0;
        while at < block.lo.len() {
            let (lo, hi) = (block.lo[at], block.hi[at]);
            if lo > self.mid || (lo == self.hi && hi > lo) {
                self.flip(lo, hi, lo >= self.hi);
            }
            let until = self.until(block, at);
            at = if block.hi[until - 1] - self.hi <= 4 * (until - at) + LANES {
                let windows = (&block.lo[at..until], &block.hi[at..until]);
                at + self.run(windows, &mut lowered[at..until])
            } else {
                lowered[at] = self.step(block.lo[at], block.hi[at]);
                at + 1
            };
        }
    }

    /// The first window after `at` that takes a flip.
    #[inline(always)]
    fn until(&self, block: &RowBlock<'_>, at: usize) -> usize {
        let (lo, hi) = (&block.lo[at..], &block.hi[at..]);
        if self.hi == self.mid {
            // There are no rows behind `mid` yet: the next window may begin there.
            let same = hi.partition_point(|hi| *hi == self.mid).max(1);
            if lo.get(same) == Some(&self.mid) {
                return at + same;
            }
        }
        at + lo.partition_point(|lo| *lo <= self.mid)
    }

    /// Answers windows that begin before `mid`; returns their number.
    #[inline(always)]
    fn run(&mut self, (lo, hi): (&[usize], &[usize]), lowered: &mut [S::Lowered]) -> usize {
        let (first, end) = (self.hi, hi[hi.len() - 1]);
        let room = (end - first + 1).max(self.backs.len());
        self.backs.resize(room, self.back);
        self.backs[0] = self.back;
        let scan = self.scan;
        let slots = &mut self.backs[1..=end - first];
        let back = scan.forward(first..end, self.back, slots);
        for from in (0..lo.len()).step_by(LANES) {
            let until = lo.len().min(from + LANES);
            let windows = (&lo[from..until], &hi[from..until]);
            if let Some(rebased) = self.join(windows, first, &mut lowered[from..until]) {
                let at = from + rebased;
                self.flip(lo[at], hi[at], false);
                let count = self.counts.float(lo[at], hi[at]);
                lowered[at] = self.scan.lower(self.suffixes[0], count);
                return at + 1;
            }
        }
        (self.back, self.hi) = (back, end);
        lo.len()
    }

    /// Lowers the joins of front and back; returns the first that needs a rebase.
    #[inline(always)]
    fn join(
        &self,
        (lo, hi): (&[usize], &[usize]),
        first: usize,
        lowered: &mut [S::Lowered],
    ) -> Option<usize> {
        let (scan, counts, base) = (self.scan, self.counts, self.base);
        let (suffixes, backs) = (&self.suffixes[..], &self.backs[..]);
        let fold = |lo: usize, hi: usize| {
            let fold = scan.join(suffixes[lo - base], backs[hi - first]);
            (
                fold,
                if S::REBASES {
                    counts.float(lo, hi)
                } else {
                    0.0
                },
            )
        };
        let mut any = false;
        for ((slot, &lo), &hi) in lowered.iter_mut().zip(lo).zip(hi) {
            let (fold, count) = fold(lo, hi);
            *slot = scan.lower(fold, count);
            if S::REBASES {
                any |= scan.needs_rebase(fold, *slot, count);
            }
        }
        if !any {
            return None;
        }
        let mut windows = lowered.iter().zip(lo).zip(hi);
        windows.position(|((lowered, &lo), &hi)| {
            let (fold, count) = fold(lo, hi);
            self.scan.needs_rebase(fold, *lowered, count)
        })
    }

    /// One window far from the previous one: the folds of all rows between them need not be
    /// stored.
    fn step(&mut self, lo: usize, hi: usize) -> S::Lowered {
        for place in self.hi..hi {
            self.back = self.scan.absorb(self.back, place);
        }
        self.hi = hi;
        let count = self.counts.float(lo, hi);
        let fold = self.scan.join(self.suffixes[lo - self.base], self.back);
        let lowered = self.scan.lower(fold, count);
        if !self.scan.needs_rebase(fold, lowered, count) {
            return lowered;
        }
        self.flip(lo, hi, false);
        self.scan.lower(self.suffixes[0], count)
    }

    #[inline(never)]
    fn flip(&mut self, lo: usize, hi: usize, fresh: bool) {
        self.scan.renew(lo, hi, fresh);
        self.fold_suffixes(lo, hi);
        let whole = self.suffixes[0];
        let count = self.counts.float(lo, hi);
        let lowered = self.scan.lower(whole, count);
        if self.scan.needs_rebase(whole, lowered, count) {
            // For values that are very far from it, the first pivot is only an estimate.
            self.scan.renew(lo, hi, false);
            self.fold_suffixes(lo, hi);
        }
        (self.base, self.mid, self.hi) = (lo, hi, hi);
        self.back = self.scan.identity();
    }

    fn fold_suffixes(&mut self, lo: usize, hi: usize) {
        let identity = self.scan.identity();
        // Old content is overwritten; only the growth is filled.
        self.suffixes.truncate(hi - lo + 1);
        self.suffixes.resize(hi - lo + 1, identity);
        self.suffixes[hi - lo] = identity;
        self.scan.backward(lo..hi, &mut self.suffixes[..hi - lo]);
    }
}
