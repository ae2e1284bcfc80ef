//! daba: the De-Amortized Banker's Aggregator.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §6, Figures 14 and 17      |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | worst case, in combines: with caching query 1, insert 3, evict 2;      |
//! |          | without it query 1, insert 4, evict 3. An entry keeps its place, but   |
//! |          | that at most 127 move at once when a window has shrunk to them         |
//! | space    | 48 to 96 bytes per entry of a sum of int64: a time, a value and two    |
//! |          | partials; up to 144 until a window that grew has slid by twice its     |
//! |          | length; up to 192 in one that has shrunk                               |
//! | choose   | to compare with: daba_lite does the same in half the memory            |
//!
//! Idea: start folding the back the other way before the front runs out, when both are of
//! the same length, and do one step of it with every insert and evict; then it is done
//! exactly when it is needed. Meanwhile the old front and back are sublists of the new
//! front: l_L, whose aggregates end at R, and l_R, whose aggregates begin there. A step
//! gives the oldest of l_L and the youngest of l_R the aggregates that they will keep.
//!
//! ```text
//! vals   v0     v1       v2    v3     v4    v5
//! aggs   v0…v5  v1…v2    v2    v3     v5    …
//!        F      L        .     R      A     B    E     (an example; see figure 10)
//! ```
//!
//! Invariants (§6.3), besides those of the [`Pointers`]:
//! 1. F ≤ i < L: `aggs[i] = vals[i] ⊗ … ⊗ vals[B−1]`.
//! 2. L ≤ i < R: `aggs[i] = vals[i] ⊗ … ⊗ vals[R−1]`.
//! 3. R ≤ i < A: `aggs[i] = vals[R] ⊗ … ⊗ vals[i]`.
//! 4. A ≤ i < B: `aggs[i] = vals[i] ⊗ … ⊗ vals[B−1]`.
//! 5. B ≤ i < E: `aggs[i] = vals[B] ⊗ … ⊗ vals[i]`.
//! 6. With caching: `r_plus_a` is Σ_R ⊗ Σ_A while l_L and l_R shrink.
//!
//! Parameter: `caching`, which is figure 17. Without it figure 14.

use std::mem::needs_drop;

use super::items::Items;
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::checks::{check_prefixes, check_suffixes, check_whole};
use slidewise_core::window::fifo::daba_pointers::{DabaStep, Pointers};

#[derive(Clone, Debug)]
pub struct Daba<M: Monoid> {
    items: Items<M>,
    at: Pointers,
    r_plus_a: M::Partial,
}

impl<M: Monoid> Daba<M> {
    pub fn new(monoid: M, caching: bool) -> Self {
        Self {
            at: Pointers::default(),
            r_plus_a: monoid.identity(),
            items: Items::new(monoid, caching),
        }
    }

    /// Does one step of the pending rebuild: gives the oldest of l_L and the youngest of l_R their
    /// final aggregates, or moves pointers only.
    #[inline(always)]
    fn step<const PLAIN: bool>(&mut self) {
        if !self.at.is_shrinking() {
            return self.at.ride();
        }
        let (l, a) = self.at.shrink();
        let caching = self.items.is_caching();
        let Items { monoid, queue, .. } = &mut self.items;
        let sum_a = queue.at::<PLAIN>(a + 1).agg.clone();
        let youngest = queue.at::<PLAIN>(a);
        let agg = monoid.combine(&youngest.val, &sum_a);
        let sum_r = std::mem::replace(&mut youngest.agg, agg);
        let oldest = &mut queue.at::<PLAIN>(l).agg;
        *oldest = if caching {
            monoid.combine(oldest, &self.r_plus_a)
        } else {
            monoid.combine(&monoid.combine(oldest, &sum_r), &sum_a)
        };
        self.release_unneeded();
    }

    /// The reversal starts, with its first step: l_A is still empty.
    fn flip(&mut self) {
        self.at
            .flip(self.items.queue.head(), self.items.queue.tail());
        let (l, a) = self.at.shrink();
        let sum_r = self.items.agg(a).clone();
        let sum = self.items.monoid.combine(self.items.agg(l), &sum_r);
        let youngest = self.items.val(a).clone();
        self.items.set_agg(l, sum);
        self.items.set_agg(a, youngest);
        if self.items.is_caching() {
            self.r_plus_a = sum_r;
        }
        self.release_unneeded();
    }

    /// Drops the fold of R and A, which may be the last owner of a value.
    #[inline]
    fn release_unneeded(&mut self) {
        if needs_drop::<M::Partial>() && !self.at.is_shrinking() {
            self.r_plus_a = self.items.monoid.identity();
        }
    }

    fn fixup(&mut self) {
        match self.at.step(self.items.queue.head()) {
            DabaStep::Step => self.step::<false>(),
            DabaStep::Flip => self.flip(),
            DabaStep::Restart => self.at.restart(self.items.queue.tail()),
        }
    }
}

impl<M: Monoid> Fifo<M> for Daba<M> {
    fn monoid(&self) -> &M {
        &self.items.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.items.queue.len()
    }

    #[inline(always)]
    fn insert(&mut self, value: M::Partial) {
        if self.at.is_under_way() && self.items.queue.has_room() {
            self.items.insert::<true>(value, self.at.b);
            self.step::<true>();
        } else {
            self.aside(|me| me.insert_aside(value));
        }
    }

    fn insert_aside(&mut self, value: M::Partial) {
        if self.at.is_under_way() && self.items.queue.has_room() {
            return self.insert(value);
        }
        self.items.insert::<false>(value, self.at.b);
        self.fixup();
    }

    #[inline(always)]
    fn evict(&mut self) {
        if self.at.is_under_way() && self.items.queue.stays_plain() {
            self.items.evict::<true>();
            self.step::<true>();
        } else {
            self.aside(Self::evict_aside);
        }
    }

    fn evict_aside(&mut self) {
        if self.at.is_under_way() && self.items.queue.stays_plain() {
            return self.evict();
        }
        self.items.evict::<false>();
        self.fixup();
    }

    #[inline(always)]
    fn query(&mut self) -> M::Partial {
        self.items.query(self.at.b)
    }

    #[inline(always)]
    fn fresh(&self) -> Self {
        Self::new(self.items.monoid.clone(), self.items.is_caching())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (f, e) = (self.items.queue.head(), self.items.queue.tail());
        self.at.check(f, e)?;
        self.items.check_values(values)?;
        let (l, r, a, b) = (self.at.l, self.at.r, self.at.a(), self.at.b);
        self.items.check_back(b)?;
        let part = |from: usize, to: usize| &values[from - f..to - f];
        let kept = |from: usize, to: usize| self.items.aggs(from, to);
        let monoid = &self.items.monoid;
        self.at.check_front(monoid, f, values, kept(f, l))?;
        check_suffixes(monoid, part(l, r), kept(l, r), "l_L")?;
        check_prefixes(monoid, part(r, a), kept(r, a), "l_R")?;
        check_suffixes(monoid, part(a, b), kept(a, b), "l_A")?;
        check_prefixes(monoid, part(b, e), kept(b, e), "l_B")?;
        if self.items.is_caching() && l != r {
            check_whole(monoid, part(r, b), &self.r_plus_a, format_args!("R + A"))?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.items.queue.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.r_plus_a.write(out);
        self.items.write(out);
        self.at.write(self.items.queue.head(), out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.r_plus_a = self.items.monoid.read_partial(input)?;
        self.items.read(input)?;
        self.at = Pointers::read(input, self.items.queue.len())?;
        self.items.copy_back(self.at.b);
        Ok(())
    }
}
