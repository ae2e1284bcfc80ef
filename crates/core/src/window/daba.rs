//! daba: the De-Amortized Banker's Aggregator.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §6, Figures 14 and 17      |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | worst case, in combines: with caching query 1, insert 3, evict 2;      |
//! |          | without it query 1, insert 4, evict 3. Entries never move              |
//! | space    | two partials each, and one or two                                      |
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

use super::daba_pointers::{Pointers, Step};
use super::fifo::{Fifo, check_prefixes, check_suffixes, fold, join};
use super::items::Items;
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer};

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

    #[inline]
    fn sum_r(&self) -> Option<&M::Partial> {
        let a = self.at.a;
        (self.at.r != a).then(|| self.items.agg(a - 1))
    }

    #[inline]
    fn sum_a(&self) -> Option<&M::Partial> {
        let a = self.at.a;
        (a != self.at.b).then(|| self.items.agg(a))
    }

    #[inline]
    fn fixup(&mut self) {
        let (f, e) = (self.items.queue.head(), self.items.queue.tail());
        match self.at.step(f) {
            Step::Shrink => {}
            Step::FreeRide => return self.at.ride(),
            Step::Flip => {
                self.at.flip(f, e);
                if self.items.is_caching()
                    && let Some(sum) = self.sum_r()
                {
                    self.r_plus_a = sum.clone();
                }
            }
            Step::Restart => return self.at.restart(e),
        }
        self.shrink();
    }

    /// Gives the oldest of l_L and the youngest of l_R their final aggregates.
    #[inline]
    fn shrink(&mut self) {
        let (l, a) = (self.at.l, self.at.a);
        let monoid = &self.items.monoid;
        let oldest = self.items.agg(l);
        let sum = if self.items.is_caching() {
            monoid.combine(oldest, &self.r_plus_a)
        } else {
            let up_to_a = join(monoid, Some(oldest), self.sum_r());
            join(monoid, Some(&up_to_a), self.sum_a())
        };
        let youngest = join(monoid, Some(self.items.val(a - 1)), self.sum_a());
        self.items.set_agg(l, sum);
        self.items.set_agg(a - 1, youngest);
        if l + 1 == self.at.r {
            // Not needed any more, and it may be all that holds on to something.
            self.r_plus_a = self.items.monoid.identity();
        }
        self.at.shrink();
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

    #[inline]
    fn insert(&mut self, value: M::Partial) {
        self.items.insert(value, self.at.b);
        self.fixup();
    }

    #[inline]
    fn evict(&mut self) {
        self.items.evict();
        self.fixup();
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        self.items.query(self.at.b)
    }

    fn clear(&mut self) {
        *self = Self::new(self.items.monoid.clone(), self.items.is_caching());
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (f, e) = (self.items.queue.head(), self.items.queue.tail());
        self.at.check(f, e)?;
        self.items.check_values(values)?;
        let Pointers { l, r, a, b } = self.at;
        let part = |from: usize, to: usize| &values[from - f..to - f];
        let kept = |from: usize, to: usize| self.items.aggs(from, to);
        let monoid = &self.items.monoid;
        self.at.check_front(monoid, f, values, kept(f, l))?;
        check_suffixes(monoid, part(l, r), kept(l, r), "l_L")?;
        check_prefixes(monoid, part(r, a), kept(r, a), "l_R")?;
        check_suffixes(monoid, part(a, b), kept(a, b), "l_A")?;
        check_prefixes(monoid, part(b, e), kept(b, e), "l_B")?;
        if self.items.is_caching() && l != r {
            let sum = fold(monoid, part(r, b));
            if !monoid.same(&sum, &self.r_plus_a) {
                return Err(format!("R + A {:?} instead of {sum:?}", self.r_plus_a));
            }
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
        Ok(())
    }
}
