//! slick_deque: only candidates are kept, where a combine selects; subtract, where it can
//! be undone.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Shein, Chrysanthis, Labrinidis 2018 (SlickDeque), §3.2, Algorithms 1, 2|
//! | order    | in order                                                               |
//! | laws     | associative; with an inverse (Inv) or selective (Non-Inv)              |
//! | costs    | Inv: 1 combine and 1 inverse per slide and range. Non-Inv: < 2         |
//! |          | comparisons per slide and part amortised, worst n; a query compares    |
//! |          | nothing and searches O(log n) candidates per range and part            |
//! | space    | 32 to 64 bytes per entry of a sum of int64: Inv; Non-Inv a position    |
//! |          | and a part of a partial per candidate, for min and max up to 80        |
//! | choose   | many ranges over one stream; min and max over random data              |
//!
//! Idea (Non-Inv): a value that a younger one dominates can show in no answer again, so it
//! is dropped. What remains is a deque of candidates, each outdone by none behind it; the
//! answer for any range that ends at the youngest is the first candidate inside it. A
//! partial of several parts (max and min of a range) has a deque per part, which keeps that
//! part of its candidates only.
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
//! 2. A value of head..tail is a candidate for a part exactly if no younger one dominates it.
//!
//! Deviations: positions rise for ever instead of wrapping at the window size, so the
//! comparisons of lines 31 and 36, which miss an `=` as printed, are not needed. The deque
//! is a ring that doubles when it is full, not a list of chunks of √n nodes (§4.2). The paper
//! walks over all candidates to answer all ranges; here each range searches on from the last.

use std::collections::VecDeque;

use super::rings::SPARE;
use super::shared::Shared;
use super::{Fifo, read_place, write_place};
use crate::monoid::Selective;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use crate::window::steps::Step;

/// Non-Inv. Only for aggregations that select:
///
/// ```
/// use slidewise_core::aggregate::{DType, word::Extreme};
/// use slidewise_core::window::fifo::slick_deque::SlickDeque;
/// SlickDeque::new(Extreme { dtype: DType::I64, min: false });
/// ```
///
/// No value of a sum stands for the others:
///
/// ```compile_fail,E0277
/// use slidewise_core::aggregate::word::SumI64;
/// use slidewise_core::window::fifo::slick_deque::SlickDeque;
/// SlickDeque::new(SumI64);
/// ```
#[derive(Clone, Debug)]
pub struct SlickDeque<M: Selective> {
    monoid: M,
    /// Where parts are put together. (An identity of many words takes time to make.)
    blank: M::Partial,
    /// The candidates for the first part of a partial. Most partials have no other.
    first: Candidates<M::Part>,
    others: Vec<Candidates<M::Part>>,
    head: usize,
    tail: usize,
}

/// The candidates for one part, with their positions.
type Candidates<P> = VecDeque<(usize, P)>;

impl<M: Selective> SlickDeque<M> {
    pub fn new(monoid: M) -> Self {
        let others = vec![VecDeque::new(); monoid.parts() - 1];
        Self {
            blank: monoid.identity(),
            monoid,
            first: VecDeque::new(),
            others,
            head: 0,
            tail: 0,
        }
    }

    fn deques(&self) -> impl Iterator<Item = &Candidates<M::Part>> {
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

    /// The partial of one part and no other.
    #[inline]
    fn alone(&self, part: usize, candidate: &M::Part) -> M::Partial {
        let mut partial = self.blank.clone();
        self.monoid.replace(part, &mut partial, candidate);
        partial
    }

    /// A pass over each deque. From range to range only those parts are replaced whose
    /// candidate has left.
    fn answers_of_parts(&self, counts: &[usize], mut each: impl FnMut(usize, M::Partial)) {
        let mut answer = self.blank.clone();
        let mut places = vec![0; self.others.len() + 1];
        for (range, count) in counts.iter().enumerate() {
            if *count == 0 {
                each(range, self.blank.clone());
                continue;
            }
            let start = self.tail - count;
            for (part, (candidates, place)) in self.deques().zip(&mut places).enumerate() {
                let before = *place;
                *place = first_from(candidates, before, start);
                if range == 0 || *place != before {
                    self.monoid
                        .replace(part, &mut answer, &candidates[*place].1);
                }
            }
            each(range, answer.clone());
        }
    }

    /// The partial of the candidates at the heads of the deques, which are not empty.
    #[inline]
    fn whole(&self) -> M::Partial {
        let mut partial = self.blank.clone();
        for (part, candidates) in self.deques().enumerate() {
            self.monoid.replace(part, &mut partial, &candidates[0].1);
        }
        partial
    }
}

fn drop_before<P>(candidates: &mut Candidates<P>, head: usize) {
    while candidates.front().is_some_and(|(at, _)| *at < head) {
        candidates.pop_front();
    }
    let (len, capacity) = (candidates.len(), candidates.capacity());
    if capacity > SPARE * len.max(8) {
        candidates.shrink_to(2 * len);
    }
}

/// The first candidate at or after position `start`, from that at `place` on. There is one: the
/// youngest value.
///
/// Few candidates are left of random values, so the search tries the next ones first. All of a
/// monotonic run are candidates; then the distance of positions is that of places.
#[inline]
fn first_from<P>(candidates: &Candidates<P>, place: usize, start: usize) -> usize {
    let is_before = |place: usize| {
        Step::Visit.note();
        candidates[place].0 < start
    };
    Step::Visit.note();
    let distance = start.saturating_sub(candidates[place].0);
    if distance == 0 {
        return place;
    }
    // Positions rise by one at least.
    let last = (place + distance).min(candidates.len() - 1);
    if is_before(last - 1) {
        return last;
    }
    let (mut low, mut step) = (place + 1, 1);
    while low + step <= last && is_before(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = last.min(low + step - 1);
    while low < high {
        let middle = low.midpoint(high);
        match is_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Adds a candidate for a part, after those that it dominates are dropped.
#[inline]
fn add<M: Selective>(
    monoid: &M,
    part: usize,
    candidates: &mut Candidates<M::Part>,
    at: usize,
    value: &M::Partial,
) {
    let candidate = monoid.part(part, value);
    while let Some((_, youngest)) = candidates.back()
        && monoid.dominates(part, &candidate, youngest)
    {
        candidates.pop_back();
    }
    candidates.push_back((at, candidate));
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
        add(&self.monoid, 0, &mut self.first, self.tail, &value);
        for (other, candidates) in self.others.iter_mut().enumerate() {
            add(&self.monoid, other + 1, candidates, self.tail, &value);
        }
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
        if self.len() == 0 {
            return self.blank.clone();
        }
        self.whole()
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
        for (part, (found, wanted)) in self.deques().zip(again.deques()).enumerate() {
            let mut pairs = found.iter().zip(wanted);
            let same = pairs.all(|((at, value), (place, again))| {
                let [value, again] = [value, again].map(|one| self.alone(part, one));
                at - self.head == *place && self.monoid.same(&value, &again)
            });
            if !same || found.len() != wanted.len() {
                return Err(format!("candidates {found:?} instead of {wanted:?}"));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let nodes: usize = self.deques().map(VecDeque::capacity).sum();
        nodes * size_of::<(usize, M::Part)>()
    }

    fn write(&self, out: &mut Writer) {
        write_place(self.len(), out);
        for (part, candidates) in self.deques().enumerate() {
            (candidates.len() as u64).write(out);
            for (at, value) in candidates {
                write_place(at - self.head, out);
                self.alone(part, value).write(out);
            }
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let len = read_place(input, 0, usize::MAX)?;
        (self.head, self.tail) = (0, len);
        let deques = std::iter::once(&mut self.first).chain(&mut self.others);
        for (part, candidates) in deques.enumerate() {
            let count = input.length::<M::Partial>()?;
            let mut least = 0;
            for _ in 0..count {
                let at = read_place(input, least, len)?;
                let value = self.monoid.read_partial(input)?;
                candidates.push_back((at, self.monoid.part(part, &value)));
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
    /// One pass from the head: longer ranges begin nearer to it.
    fn answers(&mut self, counts: &[usize], mut each: impl FnMut(usize, M::Partial)) {
        if !self.others.is_empty() {
            return self.answers_of_parts(counts, each);
        }
        let mut place = 0;
        for (range, count) in counts.iter().enumerate() {
            if *count == 0 {
                each(range, self.blank.clone());
                continue;
            }
            place = first_from(&self.first, place, self.tail - count);
            each(range, self.alone(0, &self.first[place].1));
        }
    }
}
