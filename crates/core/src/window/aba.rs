//! aba: the Amortized Banker's Aggregator, two stacks in one queue.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §5, Figures 6 and 7        |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | amortised ≤ 3 combines per insert, evict and query together; a single  |
//! |          | evict up to n − 1; entries never move                                  |
//! | space    | two partials each                                                      |
//! | choose   | to compare with: two_stacks_lite does the same in half the memory      |
//!
//! Idea: lay the two stacks of [`two_stacks`](super::two_stacks) bottom to bottom into one
//! queue. Then *flip* copies nothing: it folds the back again, from its end to its start,
//! and moves the boundary.
//!
//! ```text
//! vals    v0         v1      v2   v3   v4
//! aggs    v0⊗v1⊗v2   v1⊗v2   v2   v3   v3⊗v4
//!         F                       B          E
//! ```
//!
//! Invariants (§5), with F and E the head and the tail of both queues:
//! 1. F ≤ B ≤ E.
//! 2. For F ≤ i < B: `aggs[i] = vals[i] ⊗ … ⊗ vals[B−1]`.
//! 3. For B ≤ i < E: `aggs[i] = vals[B] ⊗ … ⊗ vals[i]`.
//!
//! Parameter: `caching` keeps an answer until the window changes (end of §5).

use super::fifo::{
    Fifo, QueryCache, check_prefixes, check_suffixes, join, read_place, write_place,
};
use super::queue::Queue;
use crate::monoid::Monoid;
use crate::snapshot::{Reader, Result, Writer, damaged};

#[derive(Clone, Debug)]
pub struct Aba<M: Monoid> {
    monoid: M,
    vals: Queue<M::Partial>,
    aggs: Queue<M::Partial>,
    b: usize,
    cache: QueryCache<M::Partial>,
}

impl<M: Monoid> Aba<M> {
    pub fn new(monoid: M, caching: bool) -> Self {
        Self {
            monoid,
            vals: Queue::default(),
            aggs: Queue::default(),
            b: 0,
            cache: QueryCache::new(caching),
        }
    }

    /// Σ of the front, if there is one.
    fn sum_f(&self) -> Option<&M::Partial> {
        let f = self.aggs.head();
        (f != self.b).then(|| self.aggs.get(f))
    }

    /// Σ of the back, if there is one.
    fn sum_b(&self) -> Option<&M::Partial> {
        let e = self.aggs.tail();
        (self.b != e).then(|| self.aggs.get(e - 1))
    }

    fn flip(&mut self) {
        let (f, e) = (self.aggs.head(), self.aggs.tail());
        let mut acc = self.vals.get(e - 1).clone();
        self.aggs.set(e - 1, acc.clone());
        for i in (f..e - 1).rev() {
            acc = self.monoid.combine(self.vals.get(i), &acc);
            self.aggs.set(i, acc.clone());
        }
        self.b = e;
    }
}

impl<M: Monoid> Fifo<M> for Aba<M> {
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
    }

    #[inline]
    fn evict(&mut self) {
        self.cache.forget();
        if self.aggs.head() == self.b {
            self.flip();
        }
        self.vals.evict(|| self.monoid.identity());
        self.aggs.evict(|| self.monoid.identity());
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
        let ordered = f <= self.b && self.b <= e;
        if !ordered || (self.vals.head(), self.vals.tail()) != (f, e) || values.len() != e - f {
            return Err(format!(
                "F {f}, B {}, E {e} of {} values",
                self.b,
                values.len()
            ));
        }
        let same = |(value, kept)| self.monoid.same(value, kept);
        if !values.iter().zip(self.vals.iter()).all(same) {
            return Err("the queue does not hold the values as they came".to_owned());
        }
        let (front, back) = values.split_at(self.b - f);
        let kept = self.aggs.iter().take(front.len());
        check_suffixes(&self.monoid, front, kept, "front")?;
        let kept = self.aggs.iter().skip(front.len());
        check_prefixes(&self.monoid, back, kept, "back")
    }

    fn bytes(&self) -> usize {
        self.vals.bytes() + self.aggs.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.vals.write(out);
        self.aggs.write(out);
        write_place(self.b - self.aggs.head(), out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.vals = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.aggs = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.b = read_place(input, 0, self.vals.len())?;
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
