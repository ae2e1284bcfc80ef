//! reactive: the Reactive Aggregator, a circular buffer on FlatFAT that resizes itself.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Tangwongsan, Hirzel, Schneider, Wu: Reactive Aggregator (2015, PVLDB  |
//! |        | 8(7)), §5                                                             |
//! | order  | inserts in order, evicts anywhere                                     |
//! | laws   | associative                                                           |
//! | costs  | insert, evict, evict(t): 0 combines at once, amortised O(1) moves;    |
//! |        | query: m (1 + ⌈log₂(n/m)⌉) for m events since the last, and 2 log₂ n  |
//! |        | more if the buffer is inverted and ⊗ does not commute; range:         |
//! |        | 2 log₂ n                                                              |
//! | space  | 44 to 104 bytes per entry of a sum of int64: a time and 2 to 8        |
//! |        | partials                                                              |
//! | choose | in-order streams whose entries are taken back out of order            |
//!
//! # Idea
//! Events only write leaves and note which; a query (a *trigger*) updates the tree once for
//! all of them. An entry evicted in the middle leaves a hole, ⊥. A full buffer is compacted
//! if at most 3/4 of it are entries, else doubled; one with less than 1/4 is halved. Both
//! are paid by the evictions and inserts that led there.
//!
//! # Invariants (checked by `check`)
//! 1. `span` leaves from `front` on, circularly, are the buffer; its first and last one are
//!    entries, the others entries or ⊥, all beyond are ⊥.
//! 2. Times rise along the buffer, holes included; strictly so under `Ties::Combine`.
//! 3. At least 1/4 of the capacity are entries, unless it is the least there is.
//! 4. Those of FlatFAT, once the noted leaves are updated.
//!
//! # Deviations
//! Without holes nothing is marked (§5.2): only their first eviction makes marks, one bit
//! per node, until the buffer is next compacted or resized. Resizing waits with the
//! combines for the next query.

use crate::fifo::flat_fat::{FlatFat, least_capacity};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::fifo::checks::check_times;
use slidewise_core::window::{Batch, Refused, Ties, Window};

/// The least capacity, if none is given.
pub const MIN_CAPACITY: usize = 8;

#[derive(Clone, Debug)]
pub struct Reactive<M: Monoid> {
    ties: Ties,
    fat: FlatFat<M>,
    /// The least capacity: a power of two.
    least: usize,
    times: Vec<i64>,
    front: usize,
    span: usize,
    /// n_tuples: the entries, which is what is not a hole.
    tuples: usize,
    /// Leaves that changed since the last trigger.
    changed: Vec<u32>,
}

impl<M: Monoid> Reactive<M> {
    pub fn new(monoid: M, ties: Ties) -> Self {
        Self::with_capacity(monoid, ties, MIN_CAPACITY)
    }

    /// An empty window with room for `capacity` entries, rounded up to a power of two, that
    /// never has less: as long as it suffices, no event moves entries but over holes.
    pub fn with_capacity(monoid: M, ties: Ties, capacity: usize) -> Self {
        let least = least_capacity(capacity);
        Self {
            ties,
            fat: FlatFat::with_capacity(monoid, least),
            least,
            times: vec![0; least],
            front: 0,
            span: 0,
            tuples: 0,
            changed: Vec::new(),
        }
    }

    fn capacity(&self) -> usize {
        self.times.len()
    }

    fn slot(&self, at: usize) -> usize {
        (self.front + at) & (self.capacity() - 1)
    }

    fn time(&self, at: usize) -> i64 {
        self.times[self.slot(at)]
    }

    /// Notes a leaf; in a full buffer an insert takes the one that the evict left.
    fn change(&mut self, slot: usize) {
        let is_noted = self.changed.last() == Some(&(slot as u32));
        if !is_noted && self.changed.len() < self.capacity() {
            self.changed.push(slot as u32);
        }
    }

    fn trigger(&mut self) {
        if !self.changed.is_empty() {
            self.fat.update(&self.changed);
            self.changed.clear();
        }
    }

    /// The first position of the buffer whose time is not below `time`.
    fn position(&self, below: impl Fn(i64) -> bool) -> usize {
        let (mut low, mut high) = (0, self.span);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(self.time(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The first entry from a position of the buffer on.
    fn entry_from(&self, at: usize) -> Option<usize> {
        let (start, capacity) = (self.front + at, self.capacity());
        let end = self.front + self.span;
        let straight = self.fat.first_live(start.min(capacity), end.min(capacity));
        let found = straight.or_else(|| {
            let wrapped = self
                .fat
                .first_live(start.saturating_sub(capacity), end.saturating_sub(capacity));
            wrapped.map(|slot| slot + capacity)
        });
        found.map(|slot| slot - self.front)
    }

    fn find(&self, time: i64) -> Option<usize> {
        let at = self.entry_from(self.position(|present| present < time))?;
        (self.time(at) == time).then_some(at)
    }

    fn append(&mut self, time: i64, value: M::Partial) {
        if self.span == self.capacity() {
            if 4 * self.tuples <= 3 * self.capacity() {
                self.compact();
            } else {
                self.resize(2 * self.capacity());
            }
        }
        let slot = self.slot(self.span);
        self.times[slot] = time;
        self.fat.set(slot, value);
        self.span += 1;
        self.tuples += 1;
        self.fat.set_span(self.front, self.span);
        self.fat.mark(slot, true);
        self.change(slot);
    }

    /// Shifts entries towards the front, over the holes.
    fn compact(&mut self) {
        let mut to = 0;
        for from in 0..self.span {
            let (source, target) = (self.slot(from), self.slot(to));
            if !self.fat.holds(source) {
                continue;
            }
            if from > to {
                self.fat.shift(source, target);
                self.times[target] = self.times[source];
                self.change(target);
            }
            to += 1;
        }
        for at in to..self.span {
            let slot = self.slot(at);
            self.fat.clear_leaf(slot);
            self.change(slot);
        }
        self.span = to;
        self.fat.drop_marks(self.front, to);
    }

    fn resize(&mut self, capacity: usize) {
        let mut fat = FlatFat::with_capacity(self.fat.monoid().clone(), capacity);
        let mut times = vec![0; capacity];
        let mut to = 0;
        for at in 0..self.span {
            let slot = self.slot(at);
            if self.fat.holds(slot) {
                fat.set(to, self.fat.leaf(slot).clone());
                times[to] = self.times[slot];
                to += 1;
            }
        }
        fat.set_span(0, to);
        (self.fat, self.times, self.front, self.span) = (fat, times, 0, to);
        self.changed = (0..to as u32).collect();
    }

    fn remove(&mut self, at: usize) {
        let slot = self.slot(at);
        self.tuples -= 1;
        let outer = at == 0 || at + 1 == self.span;
        if !outer && !self.fat.is_marked() {
            self.fat.keep_marks();
        }
        self.fat.mark(slot, false);
        if at == 0 {
            // Holes may follow it.
            let skip = match self.fat.is_marked() {
                true => self.entry_from(0).unwrap_or(self.span),
                false => 1,
            };
            self.front = self.slot(skip);
            self.span -= skip;
        } else if outer {
            self.span -= 1;
            while !self.fat.holds(self.slot(self.span - 1)) {
                self.span -= 1;
            }
        }
        self.fat.set_span(self.front, self.span);
        self.fat.clear_leaf(slot);
        self.change(slot);
        if 4 * self.tuples < self.capacity() && self.capacity() > self.least {
            self.resize(self.capacity() / 2);
        }
    }
}

impl<M: Monoid> Window<M> for Reactive<M> {
    fn admits(&mut self, time: i64) -> std::result::Result<(), Refused> {
        match self.youngest() {
            Some(youngest) if time < youngest => Err(Refused::Late { time, youngest }),
            _ => Ok(()),
        }
    }

    fn insert(&mut self, time: i64, entry: Entry<M>) {
        let value = entry.partial(self.fat.monoid());
        if self.ties == Ties::Combine && self.youngest() == Some(time) {
            let slot = self.slot(self.span - 1);
            let whole = self.fat.monoid().combine(self.fat.leaf(slot), &value);
            self.fat.set(slot, whole);
            self.change(slot);
        } else {
            self.append(time, value);
        }
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        for (time, entry) in batch.into_entries() {
            self.insert(time, entry);
        }
    }

    fn evict(&mut self) -> Option<i64> {
        let oldest = self.oldest();
        if oldest.is_some() {
            self.remove(0);
        }
        oldest
    }

    fn evict_at(&mut self, time: i64) -> bool {
        let found = self.find(time);
        if let Some(at) = found {
            self.remove(at);
        }
        found.is_some()
    }

    fn evict_until(&mut self, time: i64) -> usize {
        let before = self.tuples;
        while self.oldest().is_some_and(|oldest| oldest <= time) {
            self.remove(0);
        }
        before - self.tuples
    }

    fn query(&mut self) -> M::Partial {
        self.trigger();
        self.fat.whole(self.front, self.span)
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        self.trigger();
        let from = self.position(|time| time < lo);
        let to = self.position(|time| time <= hi).max(from);
        self.fat.circular(self.slot(from), to - from)
    }

    fn len(&mut self) -> usize {
        self.tuples
    }

    fn oldest(&mut self) -> Option<i64> {
        (self.span > 0).then(|| self.time(0))
    }

    fn youngest(&mut self) -> Option<i64> {
        (self.span > 0).then(|| self.time(self.span - 1))
    }

    fn clear(&mut self) {
        *self = Self::with_capacity(self.fat.monoid().clone(), self.ties, self.least);
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        for at in 0..self.span {
            let slot = self.slot(at);
            if self.fat.holds(slot) {
                visit(self.times[slot], self.fat.leaf(slot).clone());
            }
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        let capacity = self.capacity();
        let held = |at: usize| self.fat.holds(self.slot(at));
        let entries = (0..capacity).filter(|at| held(*at)).count();
        let outside = (self.span..capacity).any(held);
        if entries != self.tuples || outside {
            return Err(format!("{entries} entries, {} counted", self.tuples));
        }
        if self.span > 0 && !(held(0) && held(self.span - 1)) {
            return Err("a hole at an end".into());
        }
        if capacity > self.least && 4 * self.tuples < capacity {
            return Err(format!("{} entries in {capacity}", self.tuples));
        }
        let times: Vec<i64> = (0..self.span).map(|at| self.time(at)).collect();
        check_times(times.iter(), self.ties)?;
        let mut fresh = self.clone();
        fresh.trigger();
        fresh.fat.check()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.fat.bytes()
            + self.times.capacity() * size_of::<i64>()
            + self.changed.capacity() * size_of::<u32>()
    }

    /// The buffer's offset decides how its values are grouped, so it is written too.
    fn write(&self, out: &mut Writer) {
        (self.span as u64).write(out);
        (self.capacity() as u64).write(out);
        (self.front as u64).write(out);
        for at in 0..self.span {
            let slot = self.slot(at);
            let holds = self.fat.holds(slot);
            self.times[slot].write(out);
            u8::from(holds).write(out);
            if holds {
                self.fat.leaf(slot).write(out);
            }
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let span = input.length::<i64>()?;
        let (capacity, front) = (u64::read(input)?, u64::read(input)?);
        let least = self.least as u64;
        let fits = capacity.is_power_of_two()
            && capacity >= least
            && (capacity == least || capacity / 4 <= span as u64);
        if !fits || span as u64 > capacity || front >= capacity {
            return damaged(format!("{span} of {capacity} leaves from {front} on"));
        }
        let capacity = capacity as usize;
        let monoid = self.fat.monoid().clone();
        self.fat = FlatFat::with_capacity(monoid, capacity);
        self.times = vec![0; capacity];
        (self.front, self.span, self.tuples) = (front as usize, span, span);
        let mut holes = Vec::new();
        for at in 0..span {
            let slot = self.slot(at);
            self.times[slot] = i64::read(input)?;
            match u8::read(input)? {
                0 => holes.push(slot),
                1 => {
                    let value = self.fat.monoid().read_partial(input)?;
                    self.fat.set(slot, value);
                }
                tag => return damaged(format!("unknown entry tag {tag}")),
            }
        }
        self.fat.set_span(self.front, span);
        if !holes.is_empty() {
            self.fat.keep_marks();
        }
        self.tuples -= holes.len();
        for slot in holes {
            self.fat.mark(slot, false);
        }
        self.fat.rebuild();
        self.changed.clear();
        self.check().or_else(damaged)
    }

    fn monoid(&self) -> &M {
        self.fat.monoid()
    }
}
