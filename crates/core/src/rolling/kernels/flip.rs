//! Two stacks over a column: the fold of every window, one after the other.
//!
//! ```text
//!     lo           mid          hi
//!      | suffixes   | back       |      answer = suffixes[lo] ⊗ back
//! ```
//!
//! When `lo` passes `mid`, the window is folded anew from its young end (the *flip*) and
//! `mid` moves to `hi`. Nothing is ever subtracted. Between two flips there is no branch
//! to mispredict: a row is an absorb and a join. ≤ 3 combines per row.

use super::Block;

/// What is folded: a column, and an associative operation over it.
pub(super) trait Scan {
    type Fold: Copy;
    fn identity(&self) -> Self::Fold;
    /// `fold ⊗ value[at]`.
    fn absorb(&self, fold: Self::Fold, at: usize) -> Self::Fold;
    fn join(&self, older: Self::Fold, younger: Self::Fold) -> Self::Fold;

    /// `lo..hi` is about to be folded anew: what folds are relative to may change now.
    fn renew(&mut self, _lo: usize, _hi: usize) {}
    /// Whether the fold of `lo..hi` has lost so many digits that a flip is due.
    #[inline(always)]
    fn is_worn(&self, _fold: &Self::Fold, _lo: usize, _hi: usize) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct Flip<S: Scan> {
    pub(super) scan: S,
    /// `suffixes[k]` folds `base + k..mid`; the last is the identity.
    suffixes: Vec<S::Fold>,
    base: usize,
    mid: usize,
    /// The fold of `mid..hi`.
    back: S::Fold,
    hi: usize,
}

impl<S: Scan> Flip<S> {
    pub(super) fn new(scan: S) -> Self {
        let identity = scan.identity();
        Self {
            scan,
            suffixes: vec![identity],
            base: 0,
            mid: 0,
            back: identity,
            hi: 0,
        }
    }

    /// Appends the fold of each window of a block, which follows that of the last call.
    pub(super) fn answer(&mut self, block: &Block<'_>, folds: &mut Vec<S::Fold>) {
        let mut at = 0;
        while at < block.lo.len() {
            if block.lo[at] > self.mid {
                self.flip(block.lo[at], block.hi[at]);
            }
            let until = at + block.lo[at..].partition_point(|lo| *lo <= self.mid);
            at = self.run(block, at, until, folds);
        }
    }

    /// Windows that begin before `mid`; gives the first that was not answered.
    #[inline(always)]
    fn run(
        &mut self,
        block: &Block<'_>,
        from: usize,
        until: usize,
        folds: &mut Vec<S::Fold>,
    ) -> usize {
        let (mut back, mut hi) = (self.back, self.hi);
        let windows = block.lo[from..until].iter().zip(&block.hi[from..until]);
        for (at, (&lo, &end)) in windows.enumerate() {
            while hi < end {
                back = self.scan.absorb(back, hi);
                hi += 1;
            }
            let fold = self.scan.join(self.suffixes[lo - self.base], back);
            if self.scan.is_worn(&fold, lo, end) {
                self.flip(lo, end);
                folds.push(self.suffixes[0]);
                return from + at + 1;
            }
            folds.push(fold);
        }
        (self.back, self.hi) = (back, hi);
        until
    }

    #[inline(never)]
    fn flip(&mut self, lo: usize, hi: usize) {
        self.scan.renew(lo, hi);
        self.fold_suffixes(lo, hi);
        if self.scan.is_worn(&self.suffixes[0], lo, hi) {
            // From very far off, the first look only comes near.
            self.scan.renew(lo, hi);
            self.fold_suffixes(lo, hi);
        }
        (self.base, self.mid, self.hi) = (lo, hi, hi);
        self.back = self.scan.identity();
    }

    fn fold_suffixes(&mut self, lo: usize, hi: usize) {
        let identity = self.scan.identity();
        let mut fold = identity;
        self.suffixes.clear();
        self.suffixes.resize(hi - lo + 1, fold);
        for (suffix, at) in self.suffixes[..hi - lo].iter_mut().zip(lo..hi).rev() {
            fold = self.scan.join(self.scan.absorb(identity, at), fold);
            *suffix = fold;
        }
    }
}
