//! slick_deque: only candidates are kept, where a combine selects; subtract, where it can
//! be undone.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Shein, Chrysanthis, Labrinidis 2018 (SlickDeque), §3.2, Algorithms 1, 2|
//! | order    | in order                                                               |
//! | laws     | associative; with an inverse (Inv) or selective (Non-Inv)              |
//! | costs    | Inv: 1 combine and 1 inverse per slide and range. Non-Inv: < 2         |
//! |          | comparisons per slide and part amortised, worst n; all ranges in one   |
//! |          | walk                                                                   |
//! | space    | 32 to 64 bytes per entry of a sum of int64: Inv; Non-Inv one partial   |
//! |          | per candidate of each part, for min and max up to 80                   |
//! | choose   | many ranges over one stream; min and max over random data              |
//!
//! Idea (Non-Inv): a value that a younger one outdoes can show in no answer again, so it
//! is dropped. What remains is a deque of candidates, each outdone by none behind it; the
//! answer for any range that ends at the youngest is the first candidate inside it. A
//! partial of several parts (max and min of a range) has a deque per part.
//!
//! ```text
//! values      6 5 0 1 3 4 2      candidates for max   6@0 5@1 4@5 2@6
//! ```
//!
//! Inv is in [`slick_deque_inv`](super::slick_deque_inv); for a single range it is
//! [`subtract_on_evict`](super::subtract_on_evict).
//!
//! Invariants (checked by `check`):
//! 1. Positions of candidates rise and lie in head..tail; the last is tail − 1.
//! 2. A value of head..tail is a candidate for a part exactly if no younger one outdoes it.
//!
//! Deviations: positions rise for ever instead of wrapping at the window size, so the
//! comparisons of lines 31 and 36, which miss an `=` as printed, are not needed. The deque
//! is a ring that doubles when it is full, not a list of chunks of √n nodes (§4.2).

use std::collections::VecDeque;

use super::fifo::{Fifo, read_place, write_place};
use super::shared::Shared;
use crate::monoid::Selective;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// Non-Inv. Only for aggregations that select:
///
/// ```
/// use slidewise_core::aggregate::{DType, word::Extreme};
/// use slidewise_core::window::slick_deque::SlickDeque;
/// SlickDeque::new(Extreme { dtype: DType::I64, min: false });
/// ```
///
/// No value of a sum stands for the others:
///
/// ```compile_fail,E0277
/// use slidewise_core::aggregate::word::SumI64;
/// use slidewise_core::window::slick_deque::SlickDeque;
/// SlickDeque::new(SumI64);
/// ```
#[derive(Clone, Debug)]
pub struct SlickDeque<M: Selective> {
    monoid: M,
    /// The candidates for the first part of a partial. Most partials have no other.
    first: Candidates<M::Partial>,
    others: Vec<Candidates<M::Partial>>,
    head: usize,
    tail: usize,
}

/// Values of the deque of one part, with their positions.
type Candidates<P> = VecDeque<(usize, P)>;

impl<M: Selective> SlickDeque<M> {
    pub fn new(monoid: M) -> Self {
        let others = vec![VecDeque::new(); monoid.parts() - 1];
        Self {
            monoid,
            first: VecDeque::new(),
            others,
            head: 0,
            tail: 0,
        }
    }

    fn deques(&self) -> impl Iterator<Item = &Candidates<M::Partial>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    #[inline]
    fn drop_before(&mut self, head: usize) {
        self.head = head;
        drop_before(&mut self.first, head);
        for candidates in &mut self.others {
            drop_before(candidates, head);
        }
    }

    /// The partial of a candidate for the first part, and of those at these places for the
    /// others.
    #[inline]
    fn assembled(&self, first: &M::Partial, place: impl Fn(usize) -> usize) -> M::Partial {
        let mut partial = first.clone();
        for (other, candidates) in self.others.iter().enumerate() {
            let (_, by) = &candidates[place(other)];
            self.monoid.replace(other + 1, &mut partial, by);
        }
        partial
    }
}

fn drop_before<P>(candidates: &mut Candidates<P>, head: usize) {
    while candidates.front().is_some_and(|(at, _)| *at < head) {
        candidates.pop_front();
    }
    let (len, capacity) = (candidates.len(), candidates.capacity());
    if capacity > 8 * len.max(8) {
        candidates.shrink_to(2 * len);
    }
}

/// Adds a candidate for a part, after those that it outdoes are dropped.
#[inline]
fn add<M: Selective>(
    monoid: &M,
    part: usize,
    candidates: &mut Candidates<M::Partial>,
    (at, value): (usize, M::Partial),
) {
    while let Some((_, youngest)) = candidates.back()
        && monoid.outdoes(part, &value, youngest)
    {
        candidates.pop_back();
    }
    candidates.push_back((at, value));
}

impl<M: Selective> Fifo<M> for SlickDeque<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline]
    fn insert(&mut self, value: M::Partial) {
        for (other, candidates) in self.others.iter_mut().enumerate() {
            let entry = (self.tail, value.clone());
            add(&self.monoid, other + 1, candidates, entry);
        }
        add(&self.monoid, 0, &mut self.first, (self.tail, value));
        self.tail += 1;
    }

    #[inline]
    fn evict(&mut self) {
        self.drop_before(self.head + 1);
    }

    fn evict_many(&mut self, count: usize) {
        self.drop_before(self.head + count);
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        match self.first.front() {
            Some((_, value)) => self.assembled(value, |_| 0),
            None => self.monoid.identity(),
        }
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        if values.len() != self.len() {
            return Err(format!("{} entries, not {}", self.len(), values.len()));
        }
        let mut again = Self::new(self.monoid.clone());
        values.iter().for_each(|value| again.insert(value.clone()));
        for (found, wanted) in self.deques().zip(again.deques()) {
            let mut pairs = found.iter().zip(wanted);
            let same = pairs.all(|((at, value), (place, again))| {
                at - self.head == *place && self.monoid.same(value, again)
            });
            if !same || found.len() != wanted.len() {
                return Err(format!("candidates {found:?} instead of {wanted:?}"));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let nodes: usize = self.deques().map(VecDeque::capacity).sum();
        nodes * size_of::<(usize, M::Partial)>()
    }

    fn write(&self, out: &mut Writer) {
        write_place(self.len(), out);
        for candidates in self.deques() {
            (candidates.len() as u64).write(out);
            for (at, value) in candidates {
                write_place(at - self.head, out);
                value.write(out);
            }
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let len = read_place(input, 0, usize::MAX)?;
        (self.head, self.tail) = (0, len);
        for candidates in std::iter::once(&mut self.first).chain(&mut self.others) {
            let count = input.length::<M::Partial>()?;
            let mut least = 0;
            for _ in 0..count {
                let at = read_place(input, least, len)?;
                let value = self.monoid.read_partial(input)?;
                candidates.push_back((at, value));
                least = at + 1;
            }
            if least != len {
                return damaged(format!(
                    "the youngest candidate is not the youngest of {len}"
                ));
            }
        }
        Ok(())
    }
}

impl<M: Selective> Shared<M> for SlickDeque<M> {
    /// One walk from the head: longer ranges begin nearer to it.
    fn answers(&mut self, counts: &[usize], mut each: impl FnMut(usize, M::Partial)) {
        let mut first = self.first.iter().peekable();
        let mut places = vec![0; self.others.len()];
        for (range, count) in counts.iter().enumerate() {
            let start = self.tail - count;
            while first.next_if(|(at, _)| *at < start).is_some() {}
            for (candidates, place) in self.others.iter().zip(&mut places) {
                while candidates.get(*place).is_some_and(|(at, _)| *at < start) {
                    *place += 1;
                }
            }
            let answer = match first.peek() {
                Some((_, value)) => self.assembled(value, |other| places[other]),
                None => self.monoid.identity(),
            };
            each(range, answer);
        }
    }
}
