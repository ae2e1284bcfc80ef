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
//!
//! Deviation: A is not kept, as it follows from |l_L| = |l_R|. So three pointers are kept
//! beside F and E, which a loop over a window can hold in registers, and one comparison
//! shows whether a reversal is in progress: each step moves L nearer to B.

use super::checks::check_same;
use super::{fold, join, read_place, write_place};
use crate::monoid::Monoid;
use crate::snapshot::{Reader, Result, Writer, damaged};

#[derive(Clone, Copy, Debug, Default)]
pub struct Pointers {
    pub l: usize,
    pub r: usize,
    pub b: usize,
}

/// The step that follows an insert or an evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DabaStep {
    /// Another step of the reversal: the oldest of l_L and the youngest of l_R get their
    /// final aggregates (figure 12). Where these have come to an end, pointers go ahead
    /// and contents stay (figure 13).
    Step,
    /// The reversal starts, with its first step (figure 11).
    Flip,
    /// All pointers go to the end: the window holds one entry, or none.
    Restart,
}

impl Pointers {
    #[inline]
    pub fn a(&self) -> usize {
        self.r + (self.r - self.l)
    }

    /// Whether the next step goes on with what has begun.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.l != self.b
    }

    /// Whether l_L and l_R are not empty and shrink.
    #[inline]
    pub fn is_shrinking(&self) -> bool {
        self.l != self.r
    }

    /// The next step.
    #[inline]
    pub fn step(&self, f: usize) -> DabaStep {
        if self.is_under_way() {
            DabaStep::Step
        } else if f != self.b {
            DabaStep::Flip
        } else {
            DabaStep::Restart
        }
    }

    /// The places of the oldest of l_L and the youngest of l_R, which are not empty.
    #[inline]
    pub fn shrink(&mut self) -> (usize, usize) {
        let oldest = self.l;
        self.l += 1;
        (oldest, self.a())
    }

    /// L, R and A go ahead together.
    #[inline]
    pub fn ride(&mut self) {
        self.l += 1;
        self.r += 1;
    }

    /// Turns the old l_F and l_B, of equal length, into l_L and l_R.
    pub fn flip(&mut self, f: usize, e: usize) {
        *self = Self {
            l: f,
            r: self.b,
            b: e,
        };
    }

    pub fn restart(&mut self, e: usize) {
        *self = Self { l: e, r: e, b: e };
    }

    /// Checks order and sizes (§6.3).
    pub fn check(&self, f: usize, e: usize) -> std::result::Result<(), String> {
        let (l, r, a, b) = (self.l, self.r, self.a(), self.b);
        let fault = || Err(format!("F {f}, L {l}, R {r}, A {a}, B {b}, E {e}"));
        if ![f, l, r, a, b, e].is_sorted() {
            return fault();
        }
        let empty = f == e && l == e;
        let begun = l == r || a < b;
        let balanced = begun && r - l == a - r && (b - l) + 1 + (e - b) == b - f;
        if empty || balanced { Ok(()) } else { fault() }
    }

    /// Checks what both keep for F..L: the folds of the values from there to B.
    pub fn check_front<'a, M: Monoid>(
        &self,
        monoid: &M,
        f: usize,
        values: &[M::Partial],
        kept: impl Iterator<Item = &'a M::Partial>,
    ) -> std::result::Result<(), String> {
        let l = self.l;
        let mut younger = (l != self.b).then(|| fold(monoid, &values[l - f..self.b - f]));
        let kept: Vec<&M::Partial> = kept.collect();
        for (value, kept) in values[..l - f].iter().zip(kept).rev() {
            let whole = join(monoid, Some(value), younger.as_ref());
            check_same(monoid, kept, &whole, format_args!("front"))?;
            younger = Some(whole);
        }
        Ok(())
    }

    pub fn write(&self, f: usize, out: &mut Writer) {
        for pointer in [self.l, self.r, self.a(), self.b] {
            write_place(pointer - f, out);
        }
    }

    /// Reads pointers into a queue of `len` entries whose head is at 0.
    pub fn read(input: &mut Reader<'_>, len: usize) -> Result<Self> {
        let l = read_place(input, 0, len)?;
        let r = read_place(input, l, len)?;
        let a = read_place(input, r, len)?;
        let b = read_place(input, a, len)?;
        let pointers = Self { l, r, b };
        if a != pointers.a() {
            return damaged(format!("L {l}, R {r} and A {a}"));
        }
        match pointers.check(0, len) {
            Ok(()) => Ok(pointers),
            Err(why) => damaged(why),
        }
    }
}
