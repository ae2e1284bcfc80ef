//! Makes a window of a first-in first-out structure: times, ties, single entries.
//!
//! The structures know folds of values and nothing else. Beside them this keeps every
//! entry's time and raw value, in step, for what they cannot say: which time is where,
//! what each entry was, whether a call is in order at all.
//!
//! Invariants:
//! 1. `times` and `values` hold the same positions; times are in order.
//! 2. `lifted` holds `(position, partial)` of the entries that no raw value expresses, by
//!    rising position; their place in `values` holds anything.
//! 3. Under [`Ties::Keep`] the structure holds all entries. Under [`Ties::Combine`] it
//!    holds all but the youngest: that one is open, so that combining with it costs O(1)
//!    whatever the structure, and is combined behind the answer of the structure.

use super::fifo::Fifo;
use super::queue::Queue;
use super::{Batch, Refused, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

#[derive(Clone, Debug)]
pub struct InOrder<M: Monoid, F> {
    fifo: F,
    ties: Ties,
    times: Queue<i64>,
    values: Queue<M::In>,
    lifted: Queue<(usize, M::Partial)>,
}

impl<M: Monoid, F: Fifo<M>> InOrder<M, F> {
    /// A window on an empty structure.
    pub fn new(fifo: F, ties: Ties) -> Self {
        Self {
            fifo,
            ties,
            times: Queue::default(),
            values: Queue::default(),
            lifted: Queue::default(),
        }
    }

    /// The structure, for what it knows beside the fold of everything.
    pub fn structure(&self) -> &F {
        &self.fifo
    }

    pub fn structure_mut(&mut self) -> &mut F {
        &mut self.fifo
    }

    /// The entries' times, by position.
    pub fn times(&self) -> &Queue<i64> {
        &self.times
    }

    /// Evicts the `count` oldest entries, which must be there.
    pub fn evict_oldest(&mut self, count: usize) {
        if count > 0 {
            self.fifo.evict_many(count.min(self.fifo.len()));
            self.drop_oldest(count);
        }
    }

    fn push(&mut self, time: i64, entry: Entry<M>) {
        match entry {
            Entry::Raw(value) => self.values.push(value),
            Entry::Lifted(partial) => {
                self.lifted.push((self.times.tail(), partial));
                self.values.push(M::In::default());
            }
        }
        self.times.push(time);
    }

    /// The partial of the entry at a position, if no raw value expresses it. O(log) of
    /// the lifted ones where there are some.
    fn lifted(&self, position: usize) -> Option<&M::Partial> {
        let (from, to) = (self.lifted.head(), self.lifted.tail());
        let at = partition(from, to, |at| self.lifted.get(at).0 < position);
        let (found, partial) = (at < to).then(|| self.lifted.get(at))?;
        (*found == position).then_some(partial)
    }

    /// The partial at a position.
    pub(super) fn partial(&self, position: usize) -> M::Partial {
        match self.lifted(position) {
            Some(partial) => partial.clone(),
            None => self.fifo.monoid().lift(self.values.get(position)),
        }
    }

    /// The entry at a position, raw where a raw value expresses it: what was combined
    /// with a missing value may have become one.
    fn entry(&self, position: usize) -> Entry<M> {
        match self.lifted(position) {
            Some(partial) => Entry::from_partial(self.fifo.monoid(), partial.clone()),
            None => Entry::Raw(self.values.get(position).clone()),
        }
    }

    /// The partial of the youngest entry, which must be there.
    fn open(&self) -> M::Partial {
        let youngest = self.times.tail() - 1;
        if !self.lifted.is_empty() {
            let (position, partial) = self.lifted.get(self.lifted.tail() - 1);
            if *position == youngest {
                return partial.clone();
            }
        }
        self.fifo.monoid().lift(self.values.get(youngest))
    }

    /// Combines a value behind the youngest entry.
    fn combine_open(&mut self, entry: &Entry<M>) {
        let monoid = self.fifo.monoid();
        let whole = monoid.combine(&self.open(), &entry.partial(monoid));
        let youngest = self.times.tail() - 1;
        let last = self.lifted.tail().wrapping_sub(1);
        if !self.lifted.is_empty() && self.lifted.get(last).0 == youngest {
            self.lifted.set(last, (youngest, whole));
            return;
        }
        match Entry::from_partial(monoid, whole) {
            Entry::Raw(value) => self.values.set(youngest, value),
            Entry::Lifted(partial) => self.lifted.push((youngest, partial)),
        }
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
            if !self.times.is_empty() {
                let open = self.open();
                self.fifo.insert(open);
            }
            closed -= 1;
        }
        let monoid = self.fifo.monoid().clone();
        let lifted = values[from..closed].iter().map(|value| monoid.lift(value));
        self.fifo.insert_many(lifted);
        self.times.extend(times[from..].iter().copied());
        self.values.extend(values.into_iter().skip(from));
    }

    /// Drops the times and values of the `count` oldest entries.
    fn drop_oldest(&mut self, count: usize) {
        if count == 1 {
            self.times.evict(|| 0);
            self.values.evict(M::In::default);
        } else {
            self.times.evict_many(count, || 0);
            self.values.evict_many(count, M::In::default);
        }
        let head = self.times.head();
        while !self.lifted.is_empty() && self.lifted.get(self.lifted.head()).0 < head {
            self.lifted.evict(|| (0, self.fifo.monoid().identity()));
        }
    }

    /// The positions of the entries with `lo <= time <= hi`.
    fn span(&self, lo: i64, hi: i64) -> (usize, usize) {
        let (head, tail) = (self.times.head(), self.times.tail());
        let from = partition(head, tail, |at| *self.times.get(at) < lo);
        let to = partition(from, tail, |at| *self.times.get(at) <= hi);
        (from, to)
    }

    fn is_all_or_nothing(&self, from: usize, to: usize) -> bool {
        from == to || from == self.times.head() && to == self.times.tail()
    }

    /// How many entries the structure holds if `count` are there.
    fn inside(&self, count: usize) -> usize {
        match self.ties {
            Ties::Keep => count,
            Ties::Combine => count.saturating_sub(1),
        }
    }
}

/// The first position in `from..to` for which `before` no longer holds.
pub(super) fn partition(mut from: usize, mut to: usize, before: impl Fn(usize) -> bool) -> usize {
    while from < to {
        let middle = from + (to - from) / 2;
        if before(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
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
        self.push(time, entry);
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        if batch.lifted.is_empty() && !batch.is_empty() {
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
        if self.ties == Ties::Keep || self.times.is_empty() {
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
        let head = self.times.head();
        if from == head && to == self.times.tail() {
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
        self.times.len()
    }

    #[inline]
    fn oldest(&mut self) -> Option<i64> {
        (!self.times.is_empty()).then(|| *self.times.get(self.times.head()))
    }

    #[inline]
    fn youngest(&mut self) -> Option<i64> {
        (!self.times.is_empty()).then(|| *self.times.get(self.times.tail() - 1))
    }

    fn clear(&mut self) {
        self.fifo.clear();
        self.times.clear();
        self.values.clear();
        self.lifted.clear();
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        for position in self.times.head()..self.times.tail() {
            visit(*self.times.get(position), self.partial(position));
        }
    }

    fn take(&mut self) -> Batch<M> {
        let mut batch = Batch::with_capacity(self.times.len());
        for position in self.times.head()..self.times.tail() {
            batch.push(*self.times.get(position), self.entry(position));
        }
        self.clear();
        batch
    }

    fn check(&self) -> std::result::Result<(), String> {
        let pairs = self.times.iter().zip(self.times.iter().skip(1));
        let ordered = match self.ties {
            Ties::Combine => pairs.into_iter().all(|(a, b)| a < b),
            Ties::Keep => pairs.into_iter().all(|(a, b)| a <= b),
        };
        if !ordered {
            return Err("times out of order".to_owned());
        }
        let (head, tail) = (self.times.head(), self.times.tail());
        if (self.values.head(), self.values.tail()) != (head, tail) {
            return Err("times and values are out of step".to_owned());
        }
        let places: Vec<usize> = self.lifted.iter().map(|(at, _)| *at).collect();
        let rising = places.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || places.iter().any(|at| !(head..tail).contains(at)) {
            return Err(format!("lifted entries at {places:?} of {head}..{tail}"));
        }
        let inside = self.inside(self.times.len());
        let partials = (head..head + inside).map(|position| self.partial(position));
        self.fifo.check(&partials.collect::<Vec<_>>())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.fifo.bytes()
            + self.times.bytes()
            + self.values.bytes()
            + self.lifted.bytes()
    }

    fn write(&self, out: &mut Writer) {
        (self.times.len() as u64).write(out);
        for position in self.times.head()..self.times.tail() {
            self.times.get(position).write(out);
            self.entry(position).write(out);
        }
        self.fifo.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let count = input.length::<i64>()?;
        for _ in 0..count {
            let time = i64::read(input)?;
            let entry = Entry::read(self.fifo.monoid(), input)?;
            self.push(time, entry);
        }
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
