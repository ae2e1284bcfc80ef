//! The partial aggregator, which folds entries into slices for the final aggregator.
//!
//! ```text
//!   entries   a b c | d e | f g h i | j k
//!             rest    slices          open
//! ```
//! Invariants (checked by `check`):
//! 1. `begins`, the starts of closed slices, are ascending from `head` on. The last slice ends
//!    at `open_begin`, where the open slice begins.
//! 2. The final aggregator holds the fold of each closed slice, `open` that of the open
//!    one, if it has entries.
//! 3. The entries before the first slice are the rest of a partly evicted slice, and are in no
//!    slice.

use super::super::fifo::entries::partition;
use super::super::fifo::queue::Queue;
use super::super::fifo::{Fifo, fold, read_place, write_place};
use super::final_aggregator::{FinalAggregator, Wanted};
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The parts of the latest entries: a rest in no whole slice, closed slices and, unless all
/// entries are within it, the open slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub rest: usize,
    pub slices: usize,
    pub open: bool,
}

pub struct Slices<M: Monoid> {
    monoid: M,
    /// The number of entries that were evicted, and of those that were inserted, so far.
    head: usize,
    tail: usize,
    begins: Queue<usize>,
    open_begin: usize,
    open: Option<M::Partial>,
    aggregator: Box<dyn FinalAggregator<M>>,
}

impl<M: Monoid> Slices<M> {
    pub fn new(monoid: M, aggregator: Box<dyn FinalAggregator<M>>) -> Self {
        Self {
            monoid,
            head: 0,
            tail: 0,
            begins: Queue::default(),
            open_begin: 0,
            open: None,
            aggregator,
        }
    }

    /// Closes the open slice, if it has entries.
    pub fn cut(&mut self) {
        if let Some(slice) = self.open.take() {
            self.aggregator.insert(slice);
            self.begins.push(self.open_begin);
        }
        self.open_begin = self.tail;
    }

    /// Drops the slices. [`Slices::refold`] then adds each of the entries to new slices.
    pub fn restart(&mut self, ranges: usize) {
        self.aggregator = self.aggregator.fresh(ranges);
        self.begins.clear();
        (self.open_begin, self.tail) = (self.head, self.head);
        self.open = None;
    }

    /// Combines an entry to the end of the open slice.
    #[inline]
    pub fn refold(&mut self, value: M::Partial) {
        self.open = Some(match self.open.take() {
            Some(older) => self.monoid.combine(&older, &value),
            None => value,
        });
        self.tail += 1;
    }

    pub fn slice_count(&self) -> usize {
        self.begins.len()
    }

    pub fn open(&self) -> Option<&M::Partial> {
        self.open.as_ref()
    }

    pub fn is_monotonic(&self) -> bool {
        self.aggregator.is_monotonic()
    }

    /// The parts of the `count` latest entries.
    pub fn parts(&self, count: usize) -> Parts {
        let from = self.tail - count;
        if from > self.open_begin {
            return Parts {
                rest: count,
                slices: 0,
                open: false,
            };
        }
        let (first, end) = (self.begins.head(), self.begins.tail());
        let at = partition(first, end, |at| *self.begins.get(at) < from);
        let begin = if at == end {
            self.open_begin
        } else {
            *self.begins.get(at)
        };
        Parts {
            rest: begin - from,
            slices: end - at,
            open: true,
        }
    }

    /// As [`FinalAggregator::answers`].
    pub fn answers(&mut self, wanted: &[Wanted], each: &mut dyn FnMut(usize, M::Partial)) {
        self.aggregator.answers(wanted, each);
    }
}

impl<M: Monoid> Clone for Slices<M> {
    fn clone(&self) -> Self {
        Self {
            monoid: self.monoid.clone(),
            head: self.head,
            tail: self.tail,
            begins: self.begins.clone(),
            open_begin: self.open_begin,
            open: self.open.clone(),
            aggregator: self.aggregator.boxed_clone(),
        }
    }
}

impl<M: Monoid> Fifo<M> for Slices<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline]
    fn insert(&mut self, value: M::Partial) {
        self.refold(value);
    }

    fn evict(&mut self) {
        self.evict_many(1);
    }

    fn evict_many(&mut self, count: usize) {
        self.head += count;
        let (from, to) = (self.begins.head(), self.begins.tail());
        let mut at = from;
        while at < to && *self.begins.get(at) < self.head {
            at += 1;
        }
        if at > from {
            self.begins.evict_many(at - from, || 0);
            self.aggregator.evict(at - from);
        }
        if self.open_begin < self.head {
            self.open = None;
            self.open_begin = self.tail;
        }
    }

    fn query(&mut self) -> M::Partial {
        unreachable!("a window with queries folds entries outside slices itself")
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone(), self.aggregator.fresh(1))
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        if values.len() != self.len() {
            return Err(format!("{} entries, not {}", self.len(), values.len()));
        }
        let ends = self.begins.iter().skip(1).chain([&self.open_begin]);
        let bounds: Vec<(usize, usize)> = self.begins.iter().copied().zip(ends.copied()).collect();
        let inside = |(from, to): &(usize, usize)| self.head <= *from && from < to;
        let open = (self.head..=self.tail).contains(&self.open_begin);
        if !open || !bounds.iter().all(inside) {
            return Err(format!(
                "slices at {bounds:?} of {}..{}",
                self.head, self.tail
            ));
        }
        let folded =
            |from: usize, to: usize| fold(&self.monoid, &values[from - self.head..to - self.head]);
        let slices: Vec<M::Partial> = bounds.iter().map(|(from, to)| folded(*from, *to)).collect();
        self.aggregator.check(&slices)?;
        let whole = folded(self.open_begin, self.tail);
        match &self.open {
            None if self.open_begin == self.tail => Ok(()),
            Some(open) if self.open_begin < self.tail && self.monoid.same(open, &whole) => Ok(()),
            other => Err(format!("an open slice of {other:?} instead of {whole:?}")),
        }
    }

    fn bytes(&self) -> usize {
        self.begins.bytes() + self.aggregator.bytes()
    }

    fn write(&self, out: &mut Writer) {
        write_place(self.len(), out);
        (self.begins.len() as u64).write(out);
        for begin in self.begins.iter().chain([&self.open_begin]) {
            write_place(begin - self.head, out);
        }
        if let Some(open) = &self.open {
            open.write(out);
        }
        self.aggregator.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.head = 0;
        self.tail = read_place(input, 0, usize::MAX)?;
        let count = input.length::<u64>()?;
        let mut least = 0;
        for _ in 0..count {
            let begin = read_place(input, least, self.tail)?;
            self.begins.push(begin);
            least = begin + 1;
        }
        self.open_begin = read_place(input, least, self.tail)?;
        if self.open_begin < self.tail {
            self.open = Some(self.monoid.read_partial(input)?);
        }
        self.aggregator.read(input)?;
        if self.aggregator.len() == count {
            return Ok(());
        }
        damaged(format!("{count} slices, {} folded", self.aggregator.len()))
    }
}
