//! Two stacks over a column: the fold of every window, one after the other.
//!
//! ```text
//!     lo           mid          hi
//!      | suffixes   | back       |      answer = suffixes[lo] ⊗ back[hi]
//! ```
//!
//! When `lo` passes `mid`, the window is folded anew from its young end (the *flip*) and
//! `mid` moves to `hi`. Nothing is ever subtracted. Between two flips there is no branch
//! to mispredict: the folds behind `mid` are written down for a block of windows, then
//! front and back are joined for [`LANES`] windows at a time, word by word, so that the
//! joins go through vector registers. ≤ 3 combines per row.
//!
//! A window that shares nothing with the one before it starts with a flip too. So the
//! answers of a group do not depend on what came before it.

use std::array::from_fn;

use super::Block;

/// Windows joined together.
const LANES: usize = 64;

/// What is folded: a column, and an associative operation over it. A fold is `N` words.
pub(super) trait Scan<const N: usize> {
    type Word: Copy + Default;
    /// Whether folds may lose digits, see [`Self::is_worn`].
    const WEARS: bool = false;

    fn identity(&self) -> [Self::Word; N];
    /// `fold ⊗ value[at]`.
    fn absorb(&self, fold: [Self::Word; N], at: usize) -> [Self::Word; N];
    fn join(older: [Self::Word; N], younger: [Self::Word; N]) -> [Self::Word; N];

    /// `lo..hi` is about to be folded anew: what folds are relative to may change now.
    /// A `fresh` window has nothing to do with those before it.
    fn renew(&mut self, _lo: usize, _hi: usize, _fresh: bool) {}
    /// Whether the fold of `lo..hi` has lost so many digits that a flip is due.
    #[inline(always)]
    fn is_worn(&self, _fold: [Self::Word; N], _lo: usize, _hi: usize) -> bool {
        false
    }
}

/// The folds of a block's windows, each word in a column of its own.
pub(super) type Folds<W, const N: usize> = [Vec<W>; N];

#[derive(Debug)]
pub(super) struct Flip<S: Scan<N>, const N: usize> {
    pub(super) scan: S,
    /// `suffixes[k]` folds `base + k..mid`; the last is the identity.
    suffixes: Vec<[S::Word; N]>,
    base: usize,
    mid: usize,
    /// The fold of `mid..hi`.
    back: [S::Word; N],
    hi: usize,
    /// The fold of `mid..first + k`, for the windows at hand.
    backs: Vec<[S::Word; N]>,
}

impl<S: Scan<N>, const N: usize> Flip<S, N> {
    pub(super) fn new(scan: S) -> Self {
        let identity = scan.identity();
        Self {
            scan,
            suffixes: vec![identity],
            base: 0,
            mid: 0,
            back: identity,
            hi: 0,
            backs: Vec::new(),
        }
    }

    /// The fold of each window of a block, which follows that of the last call.
    pub(super) fn answer(&mut self, block: &Block<'_>, folds: &mut Folds<S::Word, N>) {
        for column in folds.iter_mut() {
            column.resize(block.lo.len(), S::Word::default());
        }
        let mut at = 0;
        while at < block.lo.len() {
            let (lo, hi) = (block.lo[at], block.hi[at]);
            if lo > self.mid || (lo == self.hi && hi > lo) {
                self.flip(lo, hi, lo >= self.hi);
            }
            let until = self.until(block, at);
            at = if block.hi[until - 1] - self.hi <= 4 * (until - at) + LANES {
                self.run(block, at, until, folds)
            } else {
                self.step(block, at, folds)
            };
        }
    }

    /// The first window after `at` that takes a flip.
    #[inline(always)]
    fn until(&self, block: &Block<'_>, at: usize) -> usize {
        let (lo, hi) = (&block.lo[at..], &block.hi[at..]);
        if self.hi == self.mid {
            // Nothing lies behind `mid` yet: the next window may begin there.
            let same = hi.partition_point(|hi| *hi == self.mid).max(1);
            if lo.get(same) == Some(&self.mid) {
                return at + same;
            }
        }
        at + lo.partition_point(|lo| *lo <= self.mid)
    }

    /// Windows that begin before `mid`; gives the first that was not answered.
    #[inline(always)]
    fn run(
        &mut self,
        block: &Block<'_>,
        from: usize,
        until: usize,
        folds: &mut Folds<S::Word, N>,
    ) -> usize {
        let (first, end) = (self.hi, block.hi[until - 1].max(self.hi));
        self.backs
            .resize((end - first + 1).max(self.backs.len()), self.back);
        let mut back = self.back;
        self.backs[0] = back;
        for (slot, at) in self.backs[1..].iter_mut().zip(first..end) {
            back = self.scan.absorb(back, at);
            *slot = back;
        }
        for at in (from..until).step_by(LANES) {
            let count = LANES.min(until - at);
            let windows = (&block.lo[at..at + count], &block.hi[at..at + count]);
            let joined = self.join(windows, first);
            for (column, lanes) in folds.iter_mut().zip(&joined) {
                column[at..at + count].copy_from_slice(&lanes[..count]);
            }
            if S::WEARS
                && let Some(lane) = self.first_worn(windows, &joined)
            {
                let (lo, hi) = (windows.0[lane], windows.1[lane]);
                self.flip(lo, hi, false);
                for (column, word) in folds.iter_mut().zip(self.suffixes[0]) {
                    column[at + lane] = word;
                }
                return at + lane + 1;
            }
        }
        (self.back, self.hi) = (back, end);
        until
    }

    #[inline(always)]
    fn join(&self, windows: (&[usize], &[usize]), first: usize) -> [[S::Word; LANES]; N] {
        let mut older = [[S::Word::default(); LANES]; N];
        let mut younger = older;
        for (lane, (&lo, &hi)) in windows.0.iter().zip(windows.1).enumerate().take(LANES) {
            let front = self.suffixes[lo - self.base];
            let back = self.backs[hi - first];
            for word in 0..N {
                older[word][lane] = front[word];
                younger[word][lane] = back[word];
            }
        }
        for lane in 0..LANES {
            let joined = S::join(
                from_fn(|word| older[word][lane]),
                from_fn(|word| younger[word][lane]),
            );
            for word in 0..N {
                older[word][lane] = joined[word];
            }
        }
        older
    }

    #[inline(always)]
    fn first_worn(
        &self,
        windows: (&[usize], &[usize]),
        folds: &[[S::Word; LANES]; N],
    ) -> Option<usize> {
        let worn = |(lane, (&lo, &hi)): (usize, (&usize, &usize))| {
            self.scan
                .is_worn(from_fn(|word| folds[word][lane.min(LANES - 1)]), lo, hi)
        };
        let lanes = || windows.0.iter().zip(windows.1).enumerate();
        let any = lanes().fold(false, |any, lane| any | worn(lane));
        if any { lanes().position(worn) } else { None }
    }

    /// One window, far from the one before it: there is no use in writing down the folds
    /// of all rows between them.
    fn step(&mut self, block: &Block<'_>, at: usize, folds: &mut Folds<S::Word, N>) -> usize {
        let (lo, hi) = (block.lo[at], block.hi[at]);
        for place in self.hi..hi {
            self.back = self.scan.absorb(self.back, place);
        }
        self.hi = self.hi.max(hi);
        let mut fold = S::join(self.suffixes[lo - self.base], self.back);
        if self.scan.is_worn(fold, lo, hi) {
            self.flip(lo, hi, false);
            fold = self.suffixes[0];
        }
        for (column, word) in folds.iter_mut().zip(fold) {
            column[at] = word;
        }
        at + 1
    }

    #[inline(never)]
    fn flip(&mut self, lo: usize, hi: usize, fresh: bool) {
        self.scan.renew(lo, hi, fresh);
        self.fold_suffixes(lo, hi);
        if self.scan.is_worn(self.suffixes[0], lo, hi) {
            // From very far off, the first look only comes near.
            self.scan.renew(lo, hi, false);
            self.fold_suffixes(lo, hi);
        }
        (self.base, self.mid, self.hi) = (lo, hi, hi);
        self.back = self.scan.identity();
    }

    fn fold_suffixes(&mut self, lo: usize, hi: usize) {
        let identity = self.scan.identity();
        let mut fold = identity;
        // What stays from before is written over; only growth is filled.
        self.suffixes.truncate(hi - lo + 1);
        self.suffixes.resize(hi - lo + 1, fold);
        self.suffixes[hi - lo] = identity;
        for (suffix, at) in self.suffixes[..hi - lo].iter_mut().zip(lo..hi).rev() {
            fold = S::join(self.scan.absorb(identity, at), fold);
            *suffix = fold;
        }
    }
}
