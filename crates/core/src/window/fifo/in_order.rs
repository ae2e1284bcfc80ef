//! Makes a window of a first-in first-out structure: times, ties, single entries.
//!
//! The structures keep folds of values only. This window also keeps the time and raw value
//! of each entry, to find a time, to return an entry, and to check that a call is in order.
//!
//! Invariant, beside those of [`Entries`]: under [`Ties::Keep`] the structure holds all
//! entries. Under [`Ties::Combine`] it holds all but the youngest: that one is open, so that
//! combining with it costs O(1) for any structure, and a query combines it after the answer
//! of the structure.

use super::Fifo;
use super::entries::{Entries, span};
use super::queue::Queue;
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer, damaged};
use crate::window::{Batch, Refused, Ties, Window};

#[derive(Clone, Debug)]
pub struct InOrder<M: Monoid, F> {
    fifo: F,
    ties: Ties,
    entries: Entries<M>,
}

impl<M: Monoid, F: Fifo<M>> InOrder<M, F> {
    /// A window on an empty structure.
    pub fn new(fifo: F, ties: Ties) -> Self {
        Self {
            fifo,
            ties,
            entries: Entries::default(),
        }
    }

    /// The structure, for its methods besides the whole fold.
    pub fn structure(&self) -> &F {
        &self.fifo
    }

    pub fn structure_mut(&mut self) -> &mut F {
        &mut self.fifo
    }

    /// The entries' times, by position.
    pub fn times(&self) -> &Queue<i64> {
        &self.entries.times
    }

    /// Evicts the `count` oldest entries, which must be there.
    pub fn evict_oldest(&mut self, count: usize) {
        if count > 0 {
            self.fifo.evict_many(count.min(self.fifo.len()));
            self.drop_oldest(count);
        }
    }

    /// The partial at a position.
    pub(in crate::window) fn partial(&self, position: usize) -> M::Partial {
        self.entries.partial(self.fifo.monoid(), position)
    }

    /// The partial of the youngest entry, which must be there.
    #[inline]
    fn open(&self) -> M::Partial {
        self.entries.open(self.fifo.monoid())
    }

    #[inline]
    fn combine_open(&mut self, entry: &Entry<M>) {
        self.entries.combine_open(self.fifo.monoid(), entry);
    }

    #[inline]
    fn drop_oldest(&mut self, count: usize) {
        self.entries.drop_oldest(self.fifo.monoid(), count);
    }

    /// Inserts entries that all have a raw value, one after the other in each queue.
    fn insert_raw(&mut self, times: &[i64], values: Vec<M::In>) {
        let mut from = 0;
        let mut closed = values.len();
        if self.ties == Ties::Combine {
            if self.youngest() == Some(times[0]) {
                self.combine_open(&Entry::Raw(values[0].clone()));
                from = 1;
            }
            if from == values.len() {
                return;
            }
            if !self.entries.times.is_empty() {
                let open = self.open();
                self.fifo.insert(open);
            }
            closed -= 1;
        }
        let monoid = self.fifo.monoid().clone();
        let lifted = values[from..closed].iter().map(|value| monoid.lift(value));
        self.fifo.insert_many(lifted);
        self.entries.times.extend(times[from..].iter().copied());
        self.entries.values.extend(values.into_iter().skip(from));
    }

    /// The positions of the entries with `lo <= time <= hi`.
    fn span(&self, lo: i64, hi: i64) -> (usize, usize) {
        span(&self.entries.times, lo, hi)
    }

    fn is_all_or_nothing(&self, from: usize, to: usize) -> bool {
        from == to || from == self.entries.times.head() && to == self.entries.times.tail()
    }

    /// The number of entries in the structure if the window has `count`.
    fn inside(&self, count: usize) -> usize {
        match self.ties {
            Ties::Keep => count,
            Ties::Combine => count.saturating_sub(1),
        }
    }
}

impl<M: Monoid, F: Fifo<M>> Window<M> for InOrder<M, F> {
    fn admits(&mut self, time: i64) -> std::result::Result<(), Refused> {
        match self.youngest() {
            Some(youngest) if time < youngest => Err(Refused::Late { time, youngest }),
            _ => Ok(()),
        }
    }

    fn admits_evict(&mut self, time: i64) -> std::result::Result<(), Refused> {
        match self.oldest() {
            Some(oldest) if time != oldest => {
                let (from, to) = self.span(time, time);
                if from == to {
                    Ok(())
                } else {
                    Err(Refused::Inner { time, oldest })
                }
            }
            _ => Ok(()),
        }
    }

    fn admits_range(&mut self, lo: i64, hi: i64) -> std::result::Result<(), Refused> {
        let (from, to) = self.span(lo, hi);
        if F::PARTS || self.is_all_or_nothing(from, to) {
            Ok(())
        } else {
            Err(Refused::Range { lo, hi })
        }
    }

    #[inline]
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        if self.ties == Ties::Keep {
            let partial = entry.partial(self.fifo.monoid());
            self.fifo.insert(partial);
        } else if let Some(youngest) = self.youngest() {
            if youngest == time {
                self.combine_open(&entry);
                return;
            }
            let open = self.open();
            self.fifo.insert(open);
        }
        self.entries.push(time, entry);
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        if batch.lifted.is_empty() && batch.len() > 1 {
            self.insert_raw(&batch.times, batch.values);
            return;
        }
        for (time, entry) in batch.into_entries() {
            self.insert(time, entry);
        }
    }

    #[inline]
    fn evict(&mut self) -> Option<i64> {
        let time = self.oldest()?;
        if !self.fifo.is_empty() {
            self.fifo.evict();
        }
        self.drop_oldest(1);
        Some(time)
    }

    fn evict_at(&mut self, time: i64) -> bool {
        self.oldest() == Some(time) && self.evict().is_some()
    }

    fn evict_until(&mut self, time: i64) -> usize {
        let (head, to) = self.span(i64::MIN, time);
        self.evict_oldest(to - head);
        to - head
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        if self.ties == Ties::Keep || self.entries.times.is_empty() {
            return self.fifo.query();
        }
        if self.fifo.is_empty() {
            return self.open();
        }
        let closed = self.fifo.query();
        self.fifo.monoid().combine(&closed, &self.open())
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        let (from, to) = self.span(lo, hi);
        if from == to {
            return self.fifo.monoid().identity();
        }
        let head = self.entries.times.head();
        if from == head && to == self.entries.times.tail() {
            return self.query();
        }
        let (from, to) = (from - head, to - head);
        let closed = to.min(self.fifo.len());
        if closed == to {
            return self.fifo.query_part(from, to);
        }
        if from >= closed {
            return self.open();
        }
        let older = self.fifo.query_part(from, closed);
        self.fifo.monoid().combine(&older, &self.open())
    }

    fn len(&mut self) -> usize {
        self.entries.times.len()
    }

    #[inline]
    fn oldest(&mut self) -> Option<i64> {
        (!self.entries.times.is_empty()).then(|| *self.entries.times.get(self.entries.times.head()))
    }

    #[inline]
    fn youngest(&mut self) -> Option<i64> {
        (!self.entries.times.is_empty())
            .then(|| *self.entries.times.get(self.entries.times.tail() - 1))
    }

    fn clear(&mut self) {
        self.fifo.clear();
        self.entries.clear();
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        self.entries.for_each(self.fifo.monoid(), visit);
    }

    fn take(&mut self) -> Batch<M> {
        let batch = self.entries.to_batch(self.fifo.monoid());
        self.clear();
        batch
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.entries.check(self.ties)?;
        let inside = self.inside(self.entries.times.len());
        let partials = self.entries.oldest_partials(self.fifo.monoid(), inside);
        self.fifo.check(&partials)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.fifo.bytes() + self.entries.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.entries.write(self.fifo.monoid(), out);
        self.fifo.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let count = self.entries.read(self.fifo.monoid(), input)?;
        self.fifo.read(input)?;
        if self.fifo.len() != self.inside(count) {
            return damaged(format!("{count} entries, {} folded", self.fifo.len()));
        }
        self.check().or_else(damaged)
    }

    fn monoid(&self) -> &M {
        self.fifo.monoid()
    }
}
