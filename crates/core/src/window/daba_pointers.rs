//! The pointers of DABA and DABA Lite, and how they move.
//!
//! ```text
//! F ≤ L ≤ R ≤ A ≤ B ≤ E      l_F = F..B, of which l_L = L..R, l_R = R..A, l_A = A..B
//!                            l_B = B..E
//! ```
//! F and E are the head and the tail of the queue; the others are kept here.
//!
//! Invariants on sizes (§6.3): the window is empty, or |l_L| = |l_R| and
//! |l_L| + |l_R| + |l_A| + 1 = |l_F| − |l_B|. So there are always enough inserts and
//! evicts left to finish the reversal, a step each, before its result is needed.

use super::fifo::{fold, join, read_place, write_place};
use crate::monoid::Monoid;
use crate::snapshot::{Reader, Result, Writer};

#[derive(Clone, Copy, Debug, Default)]
pub struct Pointers {
    pub l: usize,
    pub r: usize,
    pub a: usize,
    pub b: usize,
}

/// What is to be done after an insert or an evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The oldest of l_L and the youngest of l_R get their final aggregates (figure 12).
    Shrink,
    /// Pointers go ahead, contents stay (figure 13).
    FreeRide,
    /// The reversal starts, with a step of [`Step::Shrink`] to follow (figure 11).
    Flip,
    /// All pointers go to the end: the window holds one entry, or none.
    Restart,
}

impl Pointers {
    /// The next step. The common cases come first: F = B implies L = B.
    #[inline]
    pub fn step(&self, f: usize) -> Step {
        if self.l != self.r {
            Step::Shrink
        } else if self.l != self.b {
            Step::FreeRide
        } else if f != self.b {
            Step::Flip
        } else {
            Step::Restart
        }
    }

    /// After a [`Step::Shrink`] of the contents.
    #[inline]
    pub fn shrink(&mut self) {
        self.l += 1;
        self.a -= 1;
    }

    #[inline]
    pub fn ride(&mut self) {
        self.l += 1;
        self.r += 1;
        self.a += 1;
    }

    /// Turns the old l_F and l_B into l_L and l_R.
    pub fn flip(&mut self, f: usize, e: usize) {
        self.l = f;
        self.a = e;
        self.b = e;
    }

    pub fn restart(&mut self, e: usize) {
        *self = Self {
            l: e,
            r: e,
            a: e,
            b: e,
        };
    }

    /// Checks order and sizes (§6.3).
    pub fn check(&self, f: usize, e: usize) -> std::result::Result<(), String> {
        let Self { l, r, a, b } = *self;
        let fault = || Err(format!("F {f}, L {l}, R {r}, A {a}, B {b}, E {e}"));
        if ![f, l, r, a, b, e].is_sorted() {
            return fault();
        }
        let empty = f == e && l == e;
        let balanced = r - l == a - r && (b - l) + 1 + (e - b) == b - f;
        if empty || balanced { Ok(()) } else { fault() }
    }

    /// Checks what both keep for F..L: the folds of the values from there to B.
    pub fn check_front<'a, M: Monoid>(
        &self,
        monoid: &M,
        f: usize,
        values: &[M::Partial],
        kept: impl DoubleEndedIterator<Item = &'a M::Partial> + ExactSizeIterator,
    ) -> std::result::Result<(), String> {
        let mut younger = (self.l != self.b).then(|| fold(monoid, &values[self.l - f..self.b - f]));
        for (value, kept) in values[..self.l - f].iter().zip(kept).rev() {
            let whole = join(monoid, Some(value), younger.as_ref());
            if !monoid.same(&whole, kept) {
                return Err(format!("front {kept:?} instead of {whole:?}"));
            }
            younger = Some(whole);
        }
        Ok(())
    }

    pub fn write(&self, f: usize, out: &mut Writer) {
        for pointer in [self.l, self.r, self.a, self.b] {
            write_place(pointer - f, out);
        }
    }

    /// Reads pointers into a queue of `len` entries whose head is at 0.
    pub fn read(input: &mut Reader<'_>, len: usize) -> Result<Self> {
        let l = read_place(input, 0, len)?;
        let r = read_place(input, l, len)?;
        let a = read_place(input, r, len)?;
        let b = read_place(input, a, len)?;
        let pointers = Self { l, r, a, b };
        match pointers.check(0, len) {
            Ok(()) => Ok(pointers),
            Err(why) => crate::snapshot::damaged(why),
        }
    }
}
