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
use super::fifo::{Fifo, QueryCache, check_prefixes, check_suffixes, fold, join};
use super::queue::Queue;
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

#[derive(Clone, Debug)]
pub struct Daba<M: Monoid> {
    monoid: M,
    vals: Queue<M::Partial>,
    aggs: Queue<M::Partial>,
    at: Pointers,
    r_plus_a: M::Partial,
    cache: QueryCache<M::Partial>,
}

impl<M: Monoid> Daba<M> {
    pub fn new(monoid: M, caching: bool) -> Self {
        Self {
            vals: Queue::default(),
            aggs: Queue::default(),
            at: Pointers::default(),
            r_plus_a: monoid.identity(),
            cache: QueryCache::new(caching),
            monoid,
        }
    }

    fn sum_f(&self) -> Option<&M::Partial> {
        let f = self.aggs.head();
        (f != self.at.b).then(|| self.aggs.get(f))
    }

    fn sum_r(&self) -> Option<&M::Partial> {
        let Pointers { r, a, .. } = self.at;
        (r != a).then(|| self.aggs.get(a - 1))
    }

    fn sum_a(&self) -> Option<&M::Partial> {
        let Pointers { a, b, .. } = self.at;
        (a != b).then(|| self.aggs.get(a))
    }

    fn sum_b(&self) -> Option<&M::Partial> {
        let (b, e) = (self.at.b, self.aggs.tail());
        (b != e).then(|| self.aggs.get(e - 1))
    }

    #[inline]
    fn fixup(&mut self) {
        match self.at.step(self.aggs.head()) {
            Step::Shrink => self.shrink(),
            Step::FreeRide => self.at.ride(),
            rare => self.turn(rare),
        }
    }

    #[cold]
    fn turn(&mut self, step: Step) {
        let (f, e) = (self.aggs.head(), self.aggs.tail());
        if step == Step::Restart {
            self.at.restart(e);
            return;
        }
        self.at.flip(f, e);
        if self.cache.is_on()
            && let Some(sum) = self.sum_r()
        {
            self.r_plus_a = sum.clone();
        }
        self.shrink();
    }

    /// Gives the oldest of l_L and the youngest of l_R their final aggregates.
    fn shrink(&mut self) {
        let Pointers { l, a, .. } = self.at;
        let oldest = self.aggs.get(l);
        let sum = if self.cache.is_on() {
            self.monoid.combine(oldest, &self.r_plus_a)
        } else {
            let up_to_a = join(&self.monoid, Some(oldest), self.sum_r());
            join(&self.monoid, Some(&up_to_a), self.sum_a())
        };
        let youngest = join(&self.monoid, Some(self.vals.get(a - 1)), self.sum_a());
        self.aggs.set(l, sum);
        self.aggs.set(a - 1, youngest);
        if l + 1 == self.at.r {
            // Not needed any more, and it may be all that holds on to something.
            self.r_plus_a = self.monoid.identity();
        }
        self.at.shrink();
    }

    fn check_sublists(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (f, e) = (self.aggs.head(), self.aggs.tail());
        let Pointers { l, r, a, b } = self.at;
        let part = |from: usize, to: usize| &values[from - f..to - f];
        let kept = |from: usize, to: usize| self.aggs.iter().take(to - f).skip(from - f);
        let monoid = &self.monoid;
        // The aggregates of F..L end at B, so those of all of F..B are compared.
        let mut whole = fold(monoid, part(l, b));
        for i in (f..l).rev() {
            whole = match i + 1 == b {
                true => values[i - f].clone(),
                false => monoid.combine(&values[i - f], &whole),
            };
            if !monoid.same(&whole, self.aggs.get(i)) {
                return Err(format!("front {:?} instead of {whole:?}", self.aggs.get(i)));
            }
        }
        check_suffixes(monoid, part(l, r), kept(l, r), "l_L")?;
        check_prefixes(monoid, part(r, a), kept(r, a), "l_R")?;
        check_suffixes(monoid, part(a, b), kept(a, b), "l_A")?;
        check_prefixes(monoid, part(b, e), kept(b, e), "l_B")?;
        if self.cache.is_on() && l != r {
            let sum = fold(monoid, part(r, b));
            if !monoid.same(&sum, &self.r_plus_a) {
                return Err(format!("R + A {:?} instead of {sum:?}", self.r_plus_a));
            }
        }
        Ok(())
    }
}

impl<M: Monoid> Fifo<M> for Daba<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.vals.len()
    }

    #[inline]
    fn insert(&mut self, value: M::Partial) {
        self.cache.forget();
        let agg = join(&self.monoid, self.sum_b(), Some(&value));
        self.vals.push(value);
        self.aggs.push(agg);
        self.fixup();
    }

    #[inline]
    fn evict(&mut self) {
        self.cache.forget();
        self.vals.evict(|| self.monoid.identity());
        self.aggs.evict(|| self.monoid.identity());
        self.fixup();
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        if let Some(answer) = self.cache.kept() {
            return answer;
        }
        let answer = join(&self.monoid, self.sum_f(), self.sum_b());
        self.cache.keep(&answer);
        answer
    }

    fn clear(&mut self) {
        *self = Self::new(self.monoid.clone(), self.cache.is_on());
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (f, e) = (self.aggs.head(), self.aggs.tail());
        self.at.check(f, e)?;
        if (self.vals.head(), self.vals.tail()) != (f, e) || values.len() != e - f {
            return Err(format!("F {f}, E {e} of {} values", values.len()));
        }
        let same = |(value, kept)| self.monoid.same(value, kept);
        if !values.iter().zip(self.vals.iter()).all(same) {
            return Err("the queue does not hold the values as they came".to_owned());
        }
        self.check_sublists(values)
    }

    fn bytes(&self) -> usize {
        self.vals.bytes() + self.aggs.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.r_plus_a.write(out);
        self.vals.write(out);
        self.aggs.write(out);
        self.at.write(self.aggs.head(), out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.r_plus_a = self.monoid.read_partial(input)?;
        self.vals = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.aggs = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.at = Pointers::read(input, self.vals.len())?;
        if self.vals.len() == self.aggs.len() {
            return Ok(());
        }
        damaged(format!(
            "{} values, {} aggregates",
            self.vals.len(),
            self.aggs.len()
        ))
    }
}
