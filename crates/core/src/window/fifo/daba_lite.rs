//! daba_lite: DABA with one aggregate per entry.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | DABA: Tangwongsan, Hirzel, Schneider 2015, §6; the lite form is        |
//! |          | theirs, too: In-Order Sliding-Window Aggregation in Worst-Case         |
//! |          | Constant Time (2021, VLDBJ 30), which bulk FiBA (2023) cites           |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | worst case, in combines: query 1, insert 3, evict 2, and 2 and 1 on    |
//! |          | average. An entry keeps its place, but that at most 127 move at once   |
//! |          | when a window has shrunk to them                                       |
//! | space    | 32 to 64 bytes per entry of a sum of int64: a time, a value and a      |
//! |          | partial; up to 96 until a window that grew has slid by twice its       |
//! |          | length; up to 128 in one that has shrunk                               |
//! | choose   | in order, where every single operation must be fast                    |
//!
//! Idea: of the two partials that `daba` keeps per entry only one is ever
//! read again. In l_R and l_B that is the value, as long as the fold of each is kept in
//! one place; in the rest of the front it is the aggregate.
//!
//! Invariants, besides those of the [`Pointers`]:
//! 1. F ≤ i < L: `slots[i]` is the fold of the values i..B.
//! 2. L ≤ i < R: `slots[i]` is the fold of the values i..R.
//! 3. R ≤ i < A and B ≤ i < E: `slots[i]` is the value i.
//! 4. A ≤ i < B: `slots[i]` is the fold of the values i..B.
//! 5. `agg_b` is the fold of B..E; the identity if there are none.
//! 6. `agg_ra` is the fold of R..B while l_L and l_R shrink.

use std::mem::needs_drop;

use super::Fifo;
use super::checks::{check_suffixes, check_values, check_whole};
use super::daba_pointers::{DabaStep, Pointers};
use super::queue::Queue;
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer};

#[derive(Clone, Debug)]
pub struct DabaLite<M: Monoid> {
    monoid: M,
    slots: Queue<M::Partial>,
    at: Pointers,
    agg_b: M::Partial,
    agg_ra: M::Partial,
}

impl<M: Monoid> DabaLite<M> {
    pub fn new(monoid: M) -> Self {
        Self {
            slots: Queue::default(),
            at: Pointers::default(),
            agg_b: monoid.identity(),
            agg_ra: monoid.identity(),
            monoid,
        }
    }

    /// Does one step of the pending rebuild.
    #[inline(always)]
    fn step<const PLAIN: bool>(&mut self) {
        if !self.at.is_shrinking() {
            return self.at.ride();
        }
        let (l, a) = self.at.shrink();
        let oldest = self.slots.at::<PLAIN>(l);
        *oldest = self.monoid.combine(oldest, &self.agg_ra);
        let younger = self.slots.at::<PLAIN>(a + 1).clone();
        let youngest = self.slots.at::<PLAIN>(a);
        *youngest = self.monoid.combine(youngest, &younger);
        self.release_unneeded();
    }

    /// Drops the fold of R and A, which may be the last owner of a value.
    #[inline]
    fn release_unneeded(&mut self) {
        if needs_drop::<M::Partial>() && !self.at.is_shrinking() {
            self.agg_ra = self.monoid.identity();
        }
    }

    /// The first step of all that follow a flip: the youngest of l_R stays as it is.
    fn flip(&mut self) {
        let empty = self.monoid.identity();
        self.agg_ra = std::mem::replace(&mut self.agg_b, empty);
        self.at.flip(self.slots.head(), self.slots.tail());
        let (l, _) = self.at.shrink();
        let oldest = self.slots.get_mut(l);
        *oldest = self.monoid.combine(oldest, &self.agg_ra);
        self.release_unneeded();
    }

    fn fixup(&mut self) {
        match self.at.step(self.slots.head()) {
            DabaStep::Step => self.step::<false>(),
            DabaStep::Flip => self.flip(),
            DabaStep::Restart => {
                self.agg_b = self.monoid.identity();
                self.at.restart(self.slots.tail());
            }
        }
    }

    #[inline(always)]
    fn push<const PLAIN: bool>(&mut self, value: M::Partial) {
        self.agg_b = if self.at.b == self.slots.tail() {
            value.clone()
        } else {
            self.monoid.combine(&self.agg_b, &value)
        };
        self.slots.push_as::<PLAIN>(value);
    }

    #[inline(always)]
    fn pop<const PLAIN: bool>(&mut self) {
        self.slots.evict_as::<PLAIN>(|| self.monoid.identity());
    }
}

impl<M: Monoid> Fifo<M> for DabaLite<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    fn insert(&mut self, value: M::Partial) {
        if self.at.is_under_way() && self.slots.has_room() {
            self.push::<true>(value);
            self.step::<true>();
        } else {
            self.aside(|me| me.insert_aside(value));
        }
    }

    fn insert_aside(&mut self, value: M::Partial) {
        if self.at.is_under_way() && self.slots.has_room() {
            return self.insert(value);
        }
        self.push::<false>(value);
        self.fixup();
    }

    #[inline(always)]
    fn evict(&mut self) {
        if self.at.is_under_way() && self.slots.stays_plain() {
            self.pop::<true>();
            self.step::<true>();
        } else {
            self.aside(Self::evict_aside);
        }
    }

    fn evict_aside(&mut self) {
        if self.at.is_under_way() && self.slots.stays_plain() {
            return self.evict();
        }
        self.pop::<false>();
        self.fixup();
    }

    #[inline(always)]
    fn query(&mut self) -> M::Partial {
        let (f, e) = (self.slots.head(), self.slots.tail());
        if f == e {
            return self.monoid.identity();
        }
        // The front of a window that is not empty is not empty either.
        let front = self.slots.get(f);
        if self.at.b == e {
            return front.clone();
        }
        self.monoid.combine(front, &self.agg_b)
    }

    #[inline(always)]
    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (f, e) = (self.slots.head(), self.slots.tail());
        self.at.check(f, e)?;
        if values.len() != e - f {
            return Err(format!("F {f}, E {e} of {} values", values.len()));
        }
        let (l, r, a, b) = (self.at.l, self.at.r, self.at.a(), self.at.b);
        let monoid = &self.monoid;
        let part = |from: usize, to: usize| &values[from - f..to - f];
        let kept = |from: usize, to: usize| self.slots.iter().take(to - f).skip(from - f);
        for (from, to) in [(r, a), (b, e)] {
            check_values(monoid, part(from, to), kept(from, to))?;
        }
        self.at.check_front(monoid, f, values, kept(f, l))?;
        check_suffixes(monoid, part(l, r), kept(l, r), "l_L")?;
        check_suffixes(monoid, part(a, b), kept(a, b), "l_A")?;
        check_whole(monoid, part(b, e), &self.agg_b, format_args!("agg B"))?;
        if l == r {
            return Ok(());
        }
        check_whole(monoid, part(r, b), &self.agg_ra, format_args!("agg RA"))
    }

    fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.agg_b.write(out);
        self.agg_ra.write(out);
        self.slots.write(out);
        self.at.write(self.slots.head(), out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.agg_b = self.monoid.read_partial(input)?;
        self.agg_ra = self.monoid.read_partial(input)?;
        self.slots = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.at = Pointers::read(input, self.slots.len())?;
        Ok(())
    }
}
