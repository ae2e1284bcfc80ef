//! recalculate: folds the whole window for every query; the oracle of the tests.
//!
//! | card     |                                                                     |
//! |----------|---------------------------------------------------------------------|
//! | paper    | the baseline of all five: Tangwongsan, Hirzel, Schneider 2015       |
//! |          | (DABA), Figure 20; ISS of the Reactive Aggregator; Naive of         |
//! |          | SlickDeque                                                          |
//! | order    | any                                                                 |
//! | laws     | associative                                                         |
//! | costs    | insert O(n) moves when late, evict O(1), query n − 1 combines       |
//! | space    | 32 to 64 bytes per entry of a sum of int64: the entries, no         |
//! |          | partials                                                            |
//! | choose   | to check another algorithm, or for windows of a few entries         |
//!
//! Invariant: entries are ordered by time, those of one time in order of arrival; under
//! [`Ties::Combine`] times are distinct. There is nothing else that could be wrong.

use std::collections::VecDeque;

use super::fifo::checks::{check_times, check_values};
use super::fifo::queue::Queue;
use super::fifo::shared::Shared;
use super::fifo::{Fifo, fold};
use super::{Batch, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

#[derive(Clone, Debug)]
pub struct Recalculate<M: Monoid> {
    monoid: M,
    ties: Ties,
    entries: VecDeque<(i64, Entry<M>)>,
}

impl<M: Monoid> Recalculate<M> {
    pub fn new(monoid: M, ties: Ties) -> Self {
        Self {
            monoid,
            ties,
            entries: VecDeque::new(),
        }
    }

    fn fold<'a>(&'a self, entries: impl Iterator<Item = &'a (i64, Entry<M>)>) -> M::Partial {
        let mut entries = entries.peekable();
        let Some((_, first)) = entries.next() else {
            return self.monoid.identity();
        };
        let mut acc = first.partial(&self.monoid);
        for (_, entry) in entries {
            match entry {
                Entry::Raw(value) => self.monoid.absorb(&mut acc, value),
                Entry::Lifted(partial) => acc = self.monoid.combine(&acc, partial),
            }
        }
        acc
    }
}

impl<M: Monoid> Window<M> for Recalculate<M> {
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        let at = self
            .entries
            .partition_point(|(present, _)| *present <= time);
        if self.ties == Ties::Combine && at > 0 && self.entries[at - 1].0 == time {
            let monoid = &self.monoid;
            let older = self.entries[at - 1].1.partial(monoid);
            let whole = monoid.combine(&older, &entry.partial(monoid));
            self.entries[at - 1].1 = Entry::from_partial(monoid, whole);
        } else {
            self.entries.insert(at, (time, entry));
        }
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        for (time, entry) in batch.into_entries() {
            self.insert(time, entry);
        }
    }

    fn evict(&mut self) -> Option<i64> {
        self.entries.pop_front().map(|(time, _)| time)
    }

    fn evict_at(&mut self, time: i64) -> bool {
        let at = self.entries.partition_point(|(present, _)| *present < time);
        let present = self
            .entries
            .get(at)
            .is_some_and(|(found, _)| *found == time);
        if present {
            self.entries.remove(at);
        }
        present
    }

    fn evict_until(&mut self, time: i64) -> usize {
        let count = self
            .entries
            .partition_point(|(present, _)| *present <= time);
        self.entries.drain(..count);
        count
    }

    fn query(&mut self) -> M::Partial {
        self.fold(self.entries.iter())
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        let from = self.entries.partition_point(|(time, _)| *time < lo);
        let to = self.entries.partition_point(|(time, _)| *time <= hi);
        self.fold(self.entries.range(from..to.max(from)))
    }

    fn len(&mut self) -> usize {
        self.entries.len()
    }

    fn oldest(&mut self) -> Option<i64> {
        self.entries.front().map(|(time, _)| *time)
    }

    fn youngest(&mut self) -> Option<i64> {
        self.entries.back().map(|(time, _)| *time)
    }

    fn clear(&mut self) {
        self.entries = VecDeque::new();
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        for (time, entry) in &self.entries {
            visit(*time, entry.partial(&self.monoid));
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        check_times(self.entries.iter().map(|(time, _)| time), self.ties)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.entries.capacity() * size_of::<(i64, Entry<M>)>()
    }

    fn write(&self, out: &mut Writer) {
        (self.entries.len() as u64).write(out);
        for (time, entry) in &self.entries {
            time.write(out);
            entry.write(out);
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let count = input.length::<i64>()?;
        for _ in 0..count {
            let time = i64::read(input)?;
            let entry = Entry::read(&self.monoid, input)?;
            self.entries.push_back((time, entry));
        }
        self.check().or_else(damaged)
    }

    fn monoid(&self) -> &M {
        &self.monoid
    }
}

/// The same for values in order of arrival, and for many ranges: each is folded anew.
#[derive(Clone, Debug)]
pub struct RecalculateQueue<M: Monoid> {
    monoid: M,
    values: Queue<M::Partial>,
}

impl<M: Monoid> RecalculateQueue<M> {
    pub fn new(monoid: M) -> Self {
        Self {
            monoid,
            values: Queue::default(),
        }
    }
}

impl<M: Monoid> Fifo<M> for RecalculateQueue<M> {
    const PARTS: bool = true;

    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn insert(&mut self, value: M::Partial) {
        self.values.push(value);
    }

    fn evict(&mut self) {
        self.values.evict(|| self.monoid.identity());
    }

    fn query(&mut self) -> M::Partial {
        fold(&self.monoid, self.values.iter())
    }

    fn query_part(&mut self, from: usize, to: usize) -> M::Partial {
        let head = self.values.head();
        let part = (head + from..head + to).map(|at| self.values.get(at));
        fold(&self.monoid, part)
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        check_values(&self.monoid, values, self.values.iter())
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.values.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.values = Queue::read(input, |input| self.monoid.read_partial(input))?;
        Ok(())
    }
}

impl<M: Monoid> Shared<M> for RecalculateQueue<M> {}
