//! b_int: base intervals, the fold of every dyadic interval, composed per query.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Arasu, Widom: Resource sharing in continuous sliding-window           |
//! |        | aggregates (2004), as described in SlickDeque (2018), §2.2            |
//! | order  | in order                                                              |
//! | laws   | associative                                                           |
//! | costs  | insert: amortised 1 combine, worst log₂ n; evict: 0; query of the     |
//! |        | whole or of any part: at most 2 log₂ n combines                       |
//! | space  | 48 to 96 bytes per entry of a sum of int64: a time, a value and 2 to  |
//! |        | 4 partials                                                            |
//! | choose | for many ranges over one stream, queried rarely                       |
//!
//! # Idea
//! Level 0 keeps the values, level ℓ the folds of aligned runs of 2^ℓ of them. A run's fold
//! is made when its last value arrives. Any range is at most two runs of each level: a
//! query takes the fewest, from the oldest on, each time the longest that starts there.
//!
//! # Invariants (checked by `check`)
//! 1. The capacity is a power of two, and no less than the length.
//! 2. Each level holds the fold of every interval of it that is complete and wholly in the
//!    window.
//!
//! # Deviations
//! The ring doubles when the window outgrows it; published for windows of a fixed range.

use super::dyadic::Dyadic;
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Reader, Result, Writer};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::shared::Shared;

#[derive(Clone, Debug)]
pub struct BInt<M: Monoid> {
    monoid: M,
    intervals: Dyadic<M::Partial>,
}

impl<M: Monoid> BInt<M> {
    pub fn new(monoid: M) -> Self {
        let intervals = Dyadic::new(monoid.identity());
        Self { monoid, intervals }
    }
}

impl<M: Monoid> Fifo<M> for BInt<M> {
    const PARTS: bool = true;

    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn len(&self) -> usize {
        self.intervals.len()
    }

    fn insert(&mut self, value: M::Partial) {
        self.intervals.push(&self.monoid, value);
    }

    fn evict(&mut self) {
        self.evict_many(1);
    }

    fn evict_many(&mut self, count: usize) {
        let head = self.intervals.head + count as u64;
        self.intervals.drop_until(head, &self.monoid.identity());
    }

    fn query(&mut self) -> M::Partial {
        let (head, tail) = (self.intervals.head, self.intervals.tail);
        self.intervals.fold(&self.monoid, head, tail)
    }

    fn query_part(&mut self, from: usize, to: usize) -> M::Partial {
        let head = self.intervals.head;
        let (from, to) = (head + from as u64, head + to as u64);
        self.intervals.fold(&self.monoid, from, to)
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        self.intervals.check(&self.monoid, values)
    }

    fn bytes(&self) -> usize {
        self.intervals.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.intervals.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.intervals.read(&self.monoid, input)
    }
}

impl<M: Monoid> Shared<M> for BInt<M> {}
