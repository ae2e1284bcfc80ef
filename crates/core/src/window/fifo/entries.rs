//! The entries of a window in order: their times and raw values.
//!
//! They lie beside an [in-order structure](super::in_order), which keeps folds only. Code on
//! entries does not depend on the structure, so it is compiled once per monoid and not once
//! per window.
//!
//! Invariants:
//! 1. `times` and `values` hold the same positions; times are in order.
//! 2. `lifted` holds `(position, partial)` of the entries that no raw value expresses, by
//!    rising position; their place in `values` holds anything.

use super::checks::check_times;
use super::queue::Queue;
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer};
use crate::window::{Batch, Ties};

#[derive(Debug)]
pub struct Entries<M: Monoid> {
    pub times: Queue<i64>,
    pub values: Queue<M::In>,
    lifted: Queue<(usize, M::Partial)>,
}

impl<M: Monoid> Default for Entries<M> {
    fn default() -> Self {
        Self {
            times: Queue::default(),
            values: Queue::default(),
            lifted: Queue::default(),
        }
    }
}

impl<M: Monoid> Clone for Entries<M> {
    #[inline(never)]
    fn clone(&self) -> Self {
        Self {
            times: self.times.clone(),
            values: self.values.clone(),
            lifted: self.lifted.clone(),
        }
    }
}

impl<M: Monoid> Entries<M> {
    pub fn push(&mut self, time: i64, entry: Entry<M>) {
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
    pub fn partial(&self, monoid: &M, position: usize) -> M::Partial {
        match self.lifted(position) {
            Some(partial) => partial.clone(),
            None => monoid.lift(self.values.get(position)),
        }
    }

    /// The entry at a position, raw where a raw value expresses it: what was combined
    /// with a missing value may have become one.
    fn entry(&self, monoid: &M, position: usize) -> Entry<M> {
        match self.lifted(position) {
            Some(partial) => Entry::from_partial(monoid, partial.clone()),
            None => Entry::Raw(self.values.get(position).clone()),
        }
    }

    /// The partial of the youngest entry, which must be there.
    #[inline]
    pub fn open(&self, monoid: &M) -> M::Partial {
        let youngest = self.times.tail() - 1;
        if !self.lifted.is_empty() {
            let (position, partial) = self.lifted.get(self.lifted.tail() - 1);
            if *position == youngest {
                return partial.clone();
            }
        }
        monoid.lift(self.values.get(youngest))
    }

    /// Combines a value behind the youngest entry.
    pub fn combine_open(&mut self, monoid: &M, entry: &Entry<M>) {
        let whole = monoid.combine(&self.open(monoid), &entry.partial(monoid));
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

    /// Drops the `count` oldest entries.
    pub fn drop_oldest(&mut self, monoid: &M, count: usize) {
        if count == 1 {
            self.times.evict(|| 0);
            self.values.evict(M::In::default);
        } else {
            self.times.evict_many(count, || 0);
            self.values.evict_many(count, M::In::default);
        }
        let head = self.times.head();
        while !self.lifted.is_empty() && self.lifted.get(self.lifted.head()).0 < head {
            self.lifted.evict(|| (0, monoid.identity()));
        }
    }

    pub fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
        self.lifted.clear();
    }

    #[inline(never)]
    pub fn for_each(&self, monoid: &M, visit: &mut dyn FnMut(i64, M::Partial)) {
        for position in self.times.head()..self.times.tail() {
            visit(*self.times.get(position), self.partial(monoid, position));
        }
    }

    /// A copy of all entries.
    #[inline(never)]
    pub fn to_batch(&self, monoid: &M) -> Batch<M> {
        let mut batch = Batch::with_capacity(self.times.len());
        for position in self.times.head()..self.times.tail() {
            batch.push(*self.times.get(position), self.entry(monoid, position));
        }
        batch
    }

    /// The partials of the `count` oldest entries.
    #[inline(never)]
    pub fn oldest_partials(&self, monoid: &M, count: usize) -> Vec<M::Partial> {
        let head = self.times.head();
        let positions = head..head + count;
        positions.map(|at| self.partial(monoid, at)).collect()
    }

    /// Checks the invariants.
    pub fn check(&self, ties: Ties) -> std::result::Result<(), String> {
        check_times(self.times.iter(), ties)?;
        if (self.values.head(), self.values.tail()) != (self.times.head(), self.times.tail()) {
            return Err("times and values are out of step".to_owned());
        }
        let places: Vec<usize> = self.lifted.iter().map(|(at, _)| *at).collect();
        check_places(&places, self.times.head(), self.times.tail())
    }

    #[inline(never)]
    pub fn bytes(&self) -> usize {
        self.times.bytes() + self.values.bytes() + self.lifted.bytes()
    }

    #[inline(never)]
    pub fn write(&self, monoid: &M, out: &mut Writer) {
        (self.times.len() as u64).write(out);
        for position in self.times.head()..self.times.tail() {
            self.times.get(position).write(out);
            self.entry(monoid, position).write(out);
        }
    }

    /// Reads what `write` wrote, into none; gives how many there are.
    #[inline(never)]
    pub fn read(&mut self, monoid: &M, input: &mut Reader<'_>) -> Result<usize> {
        let count = input.length::<i64>()?;
        for _ in 0..count {
            let time = i64::read(input)?;
            self.push(time, Entry::read(monoid, input)?);
        }
        Ok(count)
    }
}

/// The positions of the entries with `lo <= time <= hi`.
pub fn span(times: &Queue<i64>, lo: i64, hi: i64) -> (usize, usize) {
    let (head, tail) = (times.head(), times.tail());
    let from = partition(head, tail, |at| *times.get(at) < lo);
    let to = partition(from, tail, |at| *times.get(at) <= hi);
    (from, to)
}

/// The first position in `from..to` for which `before` no longer holds.
pub fn partition(mut from: usize, mut to: usize, before: impl Fn(usize) -> bool) -> usize {
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

/// Positions of lifted entries among those from head to tail.
fn check_places(places: &[usize], head: usize, tail: usize) -> std::result::Result<(), String> {
    let rising = places.windows(2).all(|pair| pair[0] < pair[1]);
    if rising && places.iter().all(|at| (head..tail).contains(at)) {
        return Ok(());
    }
    Err(format!("lifted entries at {places:?} of {head}..{tail}"))
}
