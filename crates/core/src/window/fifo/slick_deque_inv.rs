//! slick_deque for aggregations with an inverse: a running answer per range.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Shein, Chrysanthis, Labrinidis 2018 (SlickDeque), §3.2, Algorithm 1    |
//! | order    | in order                                                               |
//! | laws     | associative, with an inverse                                           |
//! | costs    | 1 combine and 1 inverse per slide and range, exactly; answers none     |
//! | space    | a partial per entry of the longest range, and one per range            |
//! | choose   | many ranges over one stream, queried often                             |
//!
//! Idea: a value that enters is combined into the answer of every range; a value that leaves
//! a range is subtracted from its answer. [`slick_deque`](super::slick_deque) is for selective
//! aggregations.
//!
//! Invariants (checked by `check`):
//! 1. `begins` rise, and lie between the head and the tail of `values`; the first is at
//!    the head.
//! 2. `wholes[r]` is the fold of those values from `begins[r]` on that an inverse takes out
//!    again, up to rounding; the identity if there are none.
//! 3. `stuck` holds the others (infinities, NaN) in a structure that needs no inverse, and
//!    `places` their positions. They are kept apart only if the aggregation commutes
//!    ([`Invertible::stands_apart`]); beside one that does not, they are in `wholes`, and
//!    every slide folds the rest anew until they have left.
//!
//! Deviations: positions rise for ever instead of wrapping at the longest range; 3, and
//! that a sum of floats which overflowed is folded anew, as in
//! [`subtract_on_evict`](super::subtract_on_evict).

use super::checks::{check_same, check_values};
use super::entries::partition;
use super::flat_fit::FlatFit;
use super::queue::Queue;
use super::shared::Shared;
use super::{Fifo, fold, read_place, write_place};
use crate::monoid::Invertible;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// Inv for many ranges. Only for aggregations with an inverse:
///
/// ```
/// use slidewise_core::aggregate::word::SumI64;
/// use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
/// SlickDequeInv::new(SumI64, 2);
/// ```
///
/// The maximum has none:
///
/// ```compile_fail,E0277
/// use slidewise_core::aggregate::{DType, word::Extreme};
/// use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
/// SlickDequeInv::new(Extreme { dtype: DType::I64, min: false }, 2);
/// ```
#[derive(Clone, Debug)]
pub struct SlickDequeInv<M: Invertible> {
    monoid: M,
    values: Queue<M::Partial>,
    begins: Vec<usize>,
    wholes: Vec<M::Partial>,
    stuck: FlatFit<M>,
    places: Queue<usize>,
}

impl<M: Invertible> SlickDequeInv<M> {
    /// An empty queue for a number of ranges, at least one.
    pub fn new(monoid: M, ranges: usize) -> Self {
        assert!(ranges > 0, "no ranges");
        Self {
            values: Queue::default(),
            begins: vec![0; ranges],
            wholes: vec![monoid.identity(); ranges],
            stuck: FlatFit::new(monoid.clone()),
            places: Queue::default(),
            monoid,
        }
    }

    /// The number of stuck values from a position on.
    fn stuck_from(&self, begin: usize) -> usize {
        let (head, tail) = (self.places.head(), self.places.tail());
        tail - partition(head, tail, |at| *self.places.get(at) < begin)
    }

    /// Moves the begin of a range to a position.
    fn advance(&mut self, range: usize, begin: usize) {
        for at in self.begins[range]..begin {
            self.take(range, at);
        }
        self.begins[range] = self.begins[range].max(begin);
    }

    /// [`SlickDequeInv::advance`] by one value, the usual case; false if the step needs more
    /// than an inverse.
    #[inline]
    fn step(&mut self, range: usize, begin: usize) -> bool {
        let before = self.begins[range];
        if before + 1 != begin || begin == self.values.tail() || !self.places.is_empty() {
            return before == begin;
        }
        let whole = &mut self.wholes[range];
        *whole = self.monoid.inverse(whole, self.values.get(before));
        self.begins[range] = begin;
        if !self.monoid.undoes(&self.wholes[range]) {
            self.wholes[range] = self.fold_invertible(begin);
        }
        true
    }

    /// Takes a range's oldest value out.
    fn take(&mut self, range: usize, at: usize) {
        let oldest = self.values.get(at);
        let left = self.values.tail() - at - 1;
        if self.monoid.stands_apart(oldest) {
            return;
        }
        if left == 0 || !self.places.is_empty() && self.stuck_from(at) == left {
            self.wholes[range] = self.monoid.identity();
            return;
        }
        let whole = self.monoid.inverse(&self.wholes[range], oldest);
        self.wholes[range] = if self.monoid.undoes(&whole) {
            whole
        } else {
            self.fold_invertible(at + 1)
        };
    }

    /// The fold of the values that have an inverse, from a position on.
    #[cold]
    fn fold_invertible(&self, begin: usize) -> M::Partial {
        let rest = (begin..self.values.tail()).map(|at| self.values.get(at));
        fold(
            &self.monoid,
            rest.filter(|value| !self.monoid.stands_apart(value)),
        )
    }

    fn evict_stuck(&mut self, head: usize) {
        while !self.places.is_empty() && *self.places.get(self.places.head()) < head {
            self.places.evict(|| 0);
            self.stuck.evict();
        }
    }
}

impl<M: Invertible> Fifo<M> for SlickDequeInv<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    fn insert(&mut self, value: M::Partial) {
        if !self.monoid.stands_apart(&value) {
            for whole in &mut self.wholes {
                *whole = self.monoid.combine(whole, &value);
            }
        } else {
            self.places.push(self.values.tail());
            self.stuck.insert(value.clone());
        }
        self.values.push(value);
    }

    #[inline]
    fn evict(&mut self) {
        self.evict_many(1);
    }

    #[inline]
    fn evict_many(&mut self, count: usize) {
        let head = self.values.head() + count;
        for range in 0..self.begins.len() {
            if self.begins[range] >= head {
                break;
            }
            self.advance(range, head);
        }
        if count == 1 {
            self.values.evict(|| self.monoid.identity());
        } else {
            self.values.evict_many(count, || self.monoid.identity());
        }
        self.evict_stuck(head);
    }

    fn query(&mut self) -> M::Partial {
        let mut whole = self.monoid.identity();
        self.answers(&[self.len()], |_, answer| whole = answer);
        whole
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone(), self.begins.len())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        check_values(&self.monoid, values, self.values.iter())?;
        let (head, tail) = (self.values.head(), self.values.tail());
        let whole = self.begins[0] == head && self.begins.iter().all(|begin| *begin <= tail);
        if !whole || !self.begins.is_sorted() {
            return Err(format!("ranges from {:?} of {head}..{tail}", self.begins));
        }
        for (begin, kept) in self.begins.iter().zip(&self.wholes) {
            let whole = self.fold_invertible(*begin);
            check_same(&self.monoid, kept, &whole, format_args!("from {begin} on"))?;
        }
        let stuck = (head..tail).filter(|at| self.monoid.stands_apart(self.values.get(*at)));
        if !stuck.clone().eq(self.places.iter().copied()) {
            return Err(format!("stuck at {:?}", self.places));
        }
        let stuck: Vec<_> = stuck.map(|at| self.values.get(at).clone()).collect();
        self.stuck.check(&stuck)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
            + self.begins.capacity() * size_of::<usize>()
            + self.wholes.capacity() * size_of::<M::Partial>()
            + self.stuck.bytes()
            + self.places.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.values.write(out);
        for (begin, whole) in self.begins.iter().zip(&self.wholes) {
            write_place(begin - self.values.head(), out);
            whole.write(out);
        }
        self.stuck.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.values = Queue::read(input, |input| self.monoid.read_partial(input))?;
        let mut least = 0;
        for (begin, whole) in self.begins.iter_mut().zip(&mut self.wholes) {
            *begin = read_place(input, least, self.values.len())?;
            *whole = self.monoid.read_partial(input)?;
            least = *begin;
        }
        self.stuck.read(input)?;
        for (place, value) in self.values.iter().enumerate() {
            if self.monoid.stands_apart(value) {
                self.places.push(place);
            }
        }
        let (stuck, places) = (self.stuck.len(), self.places.len());
        if stuck == places {
            return Ok(());
        }
        damaged(format!("{stuck} values of {places} that nothing subtracts"))
    }
}

impl<M: Invertible> Shared<M> for SlickDequeInv<M> {
    const MONOTONIC: bool = true;

    fn for_ranges(&self, ranges: usize) -> Self {
        Self::new(self.monoid.clone(), ranges)
    }

    #[inline]
    fn slide(&mut self, counts: &[usize]) {
        let tail = self.values.tail();
        for (range, count) in counts.iter().enumerate() {
            if !self.step(range, tail - count) {
                self.advance(range, tail - count);
            }
        }
    }

    fn holds(&self, counts: &[usize]) -> bool {
        let begins = counts.iter().map(|count| self.values.tail() - count);
        begins.eq(self.begins.iter().copied())
    }

    #[inline]
    fn answers(&mut self, counts: &[usize], mut each: impl FnMut(usize, M::Partial)) {
        if self.places.is_empty() {
            let wholes = self.wholes[..counts.len()].iter().cloned();
            wholes
                .enumerate()
                .for_each(|(range, whole)| each(range, whole));
            return;
        }
        for range in 0..counts.len() {
            let count = self.stuck_from(self.begins[range]);
            let stuck = self.stuck.query_last(count);
            each(range, self.monoid.combine(&stuck, &self.wholes[range]));
        }
    }
}
