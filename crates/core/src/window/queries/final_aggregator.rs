//! The final aggregator, which combines slices into answers (SlickDeque 2018, §2.2).
//!
//! It is any structure that answers for several ranges, or a fiba of slices. Both implement
//! one trait object, so that a window with queries is compiled once per aggregation.

use super::super::fiba::Fiba;
use super::super::fifo::shared::{Shared, sort_ranges};
use super::super::fifo::{read_place, write_place};
use super::super::{Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The number of a range, and how many of the latest slices it has.
pub type Wanted = (usize, usize);

/// A queue of slices.
pub trait FinalAggregator<M: Monoid>: Send {
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether the first slice of a range may only move forward from answer to answer.
    fn is_monotonic(&self) -> bool;
    fn insert(&mut self, slice: M::Partial);
    /// Evicts the `count` earliest slices, which must exist.
    fn evict(&mut self, count: usize);
    /// Computes, per wanted range, the fold of its slices, which must exist; the counts fall.
    /// `each` receives positions in `wanted`.
    fn answers(&mut self, wanted: &[Wanted], each: &mut dyn FnMut(usize, M::Partial));
    /// An empty aggregator of the same kind, for a number of ranges.
    fn fresh(&self, ranges: usize) -> Box<dyn FinalAggregator<M>>;
    fn check(&self, slices: &[M::Partial]) -> std::result::Result<(), String>;
    /// The bytes on the heap.
    fn bytes(&self) -> usize;
    fn write(&self, out: &mut Writer);
    /// Reads the bytes of `write` into an empty aggregator for the same number of ranges.
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()>;
    fn boxed_clone(&self) -> Box<dyn FinalAggregator<M>>;
}

/// A final aggregator of a structure, for a number of ranges.
pub fn of_structure<M: Monoid, F: Shared<M>>(
    fifo: F,
    ranges: usize,
) -> Box<dyn FinalAggregator<M>> {
    Box::new(Structure {
        fifo: fifo.for_ranges(ranges.max(1)),
        begins: vec![0; if F::MONOTONIC { ranges.max(1) } else { 0 }],
        order: (0..if F::MONOTONIC { ranges.max(1) } else { 0 }).collect(),
        head: 0,
        tail: 0,
        counts: Vec::new(),
    })
}

/// Invariants: for a structure that keeps its ranges apart, `begins` has, per range, the number of
/// its first slice among all slices so far, and `order` the ranges sorted by that. Other
/// structures need neither.
/// Slices before the first range have left the structure; the caller may still hold them.
#[derive(Clone)]
struct Structure<F> {
    fifo: F,
    begins: Vec<usize>,
    order: Vec<usize>,
    /// The numbers of the earliest slice that is held and of the next one, among all so far.
    head: usize,
    tail: usize,
    counts: Vec<usize>,
}

impl<F> Structure<F> {
    /// Updates the first slices of ranges; the structure receives them as `counts`.
    fn begin<M: Monoid>(&mut self, wanted: &[Wanted])
    where
        F: Shared<M>,
    {
        for (range, count) in wanted {
            self.begins[*range] = self.begins[*range].max(self.tail - count);
        }
        for begin in &mut self.begins {
            *begin = self.head.max(*begin);
        }
        sort_ranges(&mut self.order, &self.begins);
        let first = self.begins[self.order[0]];
        let idle = first - (self.tail - self.fifo.len());
        if idle > 0 {
            self.fifo.evict_many(idle);
        }
        self.counts.clear();
        let begins = self.order.iter().map(|range| self.begins[*range]);
        self.counts.extend(begins.map(|begin| self.tail - begin));
        self.fifo.slide(&self.counts);
    }
}

impl<M: Monoid, F: Shared<M>> FinalAggregator<M> for Structure<F> {
    fn len(&self) -> usize {
        self.tail - self.head
    }

    fn is_monotonic(&self) -> bool {
        F::MONOTONIC
    }

    fn insert(&mut self, slice: M::Partial) {
        self.fifo.insert_aside(slice);
        self.tail += 1;
    }

    fn evict(&mut self, count: usize) {
        self.head += count;
        let oldest = self.tail - self.fifo.len();
        if self.head > oldest {
            self.fifo.evict_many(self.head - oldest);
        }
    }

    fn answers(&mut self, wanted: &[Wanted], each: &mut dyn FnMut(usize, M::Partial)) {
        if F::MONOTONIC {
            self.begin(wanted);
            let mut place_of = vec![usize::MAX; self.begins.len()];
            for (place, (range, _)) in wanted.iter().enumerate() {
                place_of[*range] = place;
            }
            let order = &self.order;
            self.fifo.answers(&self.counts, |rank, answer| {
                let place = place_of[order[rank]];
                if place != usize::MAX {
                    each(place, answer);
                }
            });
            return;
        }
        self.counts.clear();
        self.counts.extend(wanted.iter().map(|(_, count)| *count));
        self.fifo.answers(&self.counts, each);
    }

    fn fresh(&self, ranges: usize) -> Box<dyn FinalAggregator<M>> {
        of_structure(self.fifo.fresh(), ranges)
    }

    fn check(&self, slices: &[M::Partial]) -> std::result::Result<(), String> {
        let idle = slices.len().checked_sub(self.fifo.len());
        let idle = idle.filter(|idle| slices.len() == self.len() && (F::MONOTONIC || *idle == 0));
        match idle {
            Some(idle) => self.fifo.check(&slices[idle..]),
            None => Err(format!("{} slices of {}", self.fifo.len(), slices.len())),
        }
    }

    fn bytes(&self) -> usize {
        let words = self.begins.capacity() + self.order.capacity() + self.counts.capacity();
        size_of::<Self>() + self.fifo.bytes() + words * size_of::<usize>()
    }

    fn write(&self, out: &mut Writer) {
        write_place(self.tail - self.head, out);
        for begin in &self.begins {
            write_place(begin.saturating_sub(self.head), out);
        }
        self.fifo.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.tail = read_place(input, 0, usize::MAX)?;
        for begin in &mut self.begins {
            *begin = read_place(input, 0, self.tail)?;
        }
        self.fifo.read(input)?;
        let Some(oldest) = self.tail.checked_sub(self.fifo.len()) else {
            return damaged(format!("{} slices of {}", self.fifo.len(), self.tail));
        };
        sort_ranges(&mut self.order, &self.begins);
        // Evictions since the last answer changed first slices, but no count.
        let begins = self.order.iter().map(|range| self.begins[*range]);
        let counts: Vec<usize> = begins.map(|begin| self.tail - begin.max(oldest)).collect();
        if F::MONOTONIC && !self.fifo.holds(&counts) {
            return damaged(format!(
                "the structure answers for other ranges than {counts:?}"
            ));
        }
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn FinalAggregator<M>> {
        Box::new(self.clone())
    }
}

/// A fiba of slices, whose times are their numbers.
pub fn fiba<M: Monoid>(monoid: &M) -> Box<dyn FinalAggregator<M>> {
    // A constant, so that only the chosen size is compiled.
    if const { M::SMALL > 0 } {
        return Box::new(FibaOfSlices::<M, 64, 32>::new(monoid.clone()));
    }
    Box::new(FibaOfSlices::<M, 16, 8>::new(monoid.clone()))
}

#[derive(Clone)]
struct FibaOfSlices<M: Monoid, const L: usize, const F: usize> {
    fiba: Fiba<M, L, F>,
    /// The numbers of the earliest slice and of the next one.
    head: i64,
    tail: i64,
}

impl<M: Monoid, const L: usize, const F: usize> FibaOfSlices<M, L, F> {
    fn new(monoid: M) -> Self {
        Self {
            fiba: Fiba::new(monoid, Ties::Keep),
            head: 0,
            tail: 0,
        }
    }
}

impl<M: Monoid, const L: usize, const F: usize> FinalAggregator<M> for FibaOfSlices<M, L, F> {
    fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    fn is_monotonic(&self) -> bool {
        false
    }

    fn insert(&mut self, slice: M::Partial) {
        let entry = Entry::from_partial(self.fiba.monoid(), slice);
        self.fiba.insert(self.tail, entry);
        self.tail += 1;
    }

    fn evict(&mut self, count: usize) {
        self.head += count as i64;
        self.fiba.evict_until(self.head - 1);
    }

    fn answers(&mut self, wanted: &[Wanted], each: &mut dyn FnMut(usize, M::Partial)) {
        for (place, (_, count)) in wanted.iter().enumerate() {
            let from = self.tail - *count as i64;
            each(place, self.fiba.query_range(from, i64::MAX));
        }
    }

    fn fresh(&self, _ranges: usize) -> Box<dyn FinalAggregator<M>> {
        fiba(self.fiba.monoid())
    }

    fn check(&self, slices: &[M::Partial]) -> std::result::Result<(), String> {
        self.fiba.check()?;
        let mut copy = self.fiba.clone();
        let mut wanted = (self.head..).zip(slices);
        let mut same = slices.len() == self.len();
        let monoid = self.fiba.monoid().clone();
        copy.for_each(&mut |number, slice| {
            let next = wanted.next();
            same &= next.is_some_and(|(at, kept)| at == number && monoid.same(kept, &slice));
        });
        if same && wanted.next().is_none() {
            return Ok(());
        }
        Err("the fiba holds other slices".to_owned())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() - size_of::<Fiba<M, L, F>>() + self.fiba.bytes()
    }

    fn write(&self, out: &mut Writer) {
        out.all(&[self.head, self.tail]);
        self.fiba.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        (self.head, self.tail) = (i64::read(input)?, i64::read(input)?);
        self.fiba.read(input)?;
        let count = i64::try_from(self.fiba.len()).unwrap_or(i64::MAX);
        let least = (self.head, self.tail.checked_sub(count));
        if self.head < 0 || self.tail < self.head || least.1 != Some(self.head) {
            return damaged(format!(
                "{count} slices from {} to {}",
                self.head, self.tail
            ));
        }
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn FinalAggregator<M>> {
        Box::new(self.clone())
    }
}
