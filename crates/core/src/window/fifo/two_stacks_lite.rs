//! two_stacks_lite: two stacks in one queue, one aggregate per entry.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | two stacks are folklore; the lite form, which keeps one aggregate per  |
//! |          | entry, is of Tangwongsan, Hirzel, Schneider: In-Order Sliding-Window   |
//! |          | Aggregation in Worst-Case Constant Time (2021, VLDBJ 30)               |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | amortised ≤ 3 combines per insert, evict and query together; a single  |
//! |          | evict up to n − 1                                                      |
//! | space    | 32 to 64 bytes per entry of a sum of int64: a time, a value and a      |
//! |          | partial; up to 96 until a window that grew has slid by twice its       |
//! |          | length; up to 128 in one that has shrunk                               |
//! | choose   | for throughput in order                                                |
//!
//! Idea: the front stack holds, for each of the older entries, the fold from it to the
//! end of the front, so that its first slot is the fold of all of it. The back keeps the
//! values as they came, and their fold in one place. When the front runs out, the values
//! of the back are folded from the youngest to the oldest in place (*flip*) and become
//! the front.
//!
//! ```text
//! aggs    v0⊗v1⊗v2 | v1⊗v2 | v2 || v3 | v4          back = v3⊗v4
//!         head                     split     tail
//! ```
//!
//! Invariants:
//! 1. head ≤ split ≤ tail.
//! 2. For head ≤ i < split: `aggs[i]` is the fold of the values i..split.
//! 3. For split ≤ i < tail: `aggs[i]` is the value i.
//! 4. `back` is the fold of the values split..tail, the identity if there are none.
//!
//! Deviation: bulk eviction that reaches into the back flips what is left of it at once,
//! instead of first flipping what then leaves.

use super::checks::{check_suffixes, check_values, check_whole};
use super::queue::Queue;
use super::{Fifo, join, read_place, write_place};
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer};

#[derive(Clone, Debug)]
pub struct TwoStacksLite<M: Monoid> {
    monoid: M,
    aggs: Queue<M::Partial>,
    split: usize,
    back: M::Partial,
}

impl<M: Monoid> TwoStacksLite<M> {
    pub fn new(monoid: M) -> Self {
        Self {
            aggs: Queue::default(),
            split: 0,
            back: monoid.identity(),
            monoid,
        }
    }

    /// Makes the back the front.
    fn flip(&mut self) {
        let monoid = self.monoid.clone();
        let mut acc = None;
        self.aggs
            .runs_back(|run| fold_suffixes(&monoid, run, &mut acc));
        self.split = self.aggs.tail();
        self.back = monoid.identity();
    }

    #[inline(always)]
    fn push<const PLAIN: bool>(&mut self, value: M::Partial) {
        self.back = if self.split == self.aggs.tail() {
            value.clone()
        } else {
            self.monoid.combine(&self.back, &value)
        };
        self.aggs.push_as::<PLAIN>(value);
    }

    #[inline(always)]
    fn pop<const PLAIN: bool>(&mut self) {
        if !PLAIN && self.split == self.aggs.head() {
            self.flip();
        }
        self.aggs.evict_as::<PLAIN>(|| self.monoid.identity());
    }

    #[inline(always)]
    fn answer(&self) -> M::Partial {
        if self.split == self.aggs.head() {
            return self.back.clone();
        }
        let front = self.aggs.get(self.aggs.head());
        if self.split == self.aggs.tail() {
            return front.clone();
        }
        self.monoid.combine(front, &self.back)
    }
}

/// Turns each value into the fold of it and all younger ones; `younger` is that of what
/// follows the run.
fn fold_suffixes<M: Monoid>(monoid: &M, run: &mut [M::Partial], younger: &mut Option<M::Partial>) {
    for slot in run.iter_mut().rev() {
        *slot = join(monoid, Some(slot), younger.as_ref());
        *younger = Some(slot.clone());
    }
}

impl<M: Monoid> Fifo<M> for TwoStacksLite<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.aggs.len()
    }

    #[inline(always)]
    fn insert(&mut self, value: M::Partial) {
        if self.aggs.has_room() {
            self.push::<true>(value);
        } else {
            self.aside(|me| me.push::<false>(value));
        }
    }

    fn insert_many(&mut self, values: impl ExactSizeIterator<Item = M::Partial>) {
        let mut none = self.split == self.aggs.tail();
        let (monoid, back) = (&self.monoid, &mut self.back);
        self.aggs.extend(values.inspect(|value| {
            *back = if std::mem::take(&mut none) {
                (*value).clone()
            } else {
                monoid.combine(back, value)
            };
        }));
    }

    #[inline(always)]
    fn evict(&mut self) {
        if self.split != self.aggs.head() && self.aggs.stays_plain() {
            self.pop::<true>();
        } else {
            self.aside(Self::pop::<false>);
        }
    }

    fn evict_many(&mut self, count: usize) {
        let into_back = self.aggs.head() + count > self.split;
        self.aggs.evict_many(count, || self.monoid.identity());
        if into_back {
            self.flip();
        }
    }

    #[inline(always)]
    fn query(&mut self) -> M::Partial {
        if self.aggs.is_plain() {
            self.answer()
        } else {
            self.aside(|me| me.answer())
        }
    }

    #[inline(always)]
    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (head, tail) = (self.aggs.head(), self.aggs.tail());
        if values.len() != self.len() || self.split < head || self.split > tail {
            return Err(format!(
                "{} values at {head}..{}..{tail}",
                values.len(),
                self.split
            ));
        }
        let (front, back) = values.split_at(self.split - head);
        check_suffixes(
            &self.monoid,
            front,
            self.aggs.iter().take(front.len()),
            "front",
        )?;
        check_values(&self.monoid, back, self.aggs.iter().skip(front.len()))?;
        check_whole(&self.monoid, back, &self.back, format_args!("back"))
    }

    fn bytes(&self) -> usize {
        self.aggs.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.back.write(out);
        self.aggs.write(out);
        write_place(self.split - self.aggs.head(), out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.back = self.monoid.read_partial(input)?;
        self.aggs = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.split = read_place(input, 0, self.aggs.len())?;
        Ok(())
    }
}
