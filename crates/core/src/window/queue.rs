//! A queue whose entries never move: what the first-in first-out structures stand on.
//!
//! A vector that grows copies all it holds, which no worst case of O(1) survives. Here an
//! entry keeps its place from insert to evict:
//!
//! ```text
//! positions   head ............ start ........................ tail
//!             |  older rings    |  the last ring, cap slots     |
//! ```
//!
//! Invariants:
//! 1. The entry at position p ≥ `last.start` lies in slot (p − start) mod cap of the last
//!    ring, the others in the older ring with the largest start up to p.
//! 2. Only the last ring gets new entries. An older one is given back when the head has
//!    passed its end.
//! 3. Slots are filled for the first time in the order of their positions, so a ring is
//!    never initialised: making one costs O(1) however large it is.
//!
//! A full ring is followed by one of twice the size; one that is more than eight times
//! too large, by a smaller one. So there are at most log₂ n rings, and a single one once
//! the queue has stopped growing: then a position is read like an array, with one
//! comparison more.

use crate::snapshot::{Codec, Reader, Result, Writer};

const SMALLEST: usize = 16;
/// So many entries may be moved in one step, to give back a ring far too large for them.
const FEW: usize = 64;
/// How many slots of a retired ring are dropped per step.
const DISPOSED: usize = 8;

#[derive(Clone, Debug)]
struct Ring<P> {
    slots: Vec<P>,
    /// A power of two, or 0 where there is no ring yet.
    cap: usize,
    /// The position of the first slot.
    start: usize,
    /// The position behind the youngest entry.
    end: usize,
}

impl<P> Ring<P> {
    fn new(cap: usize, start: usize) -> Self {
        Self {
            slots: Vec::with_capacity(cap),
            cap,
            start,
            end: start,
        }
    }

    #[inline]
    fn slot(&self, position: usize) -> usize {
        (position - self.start) & self.cap.wrapping_sub(1)
    }
}

/// Entries by position. Positions rise for ever: the oldest entry is at [`Queue::head`],
/// the next one pushed will be at [`Queue::tail`].
#[derive(Debug)]
pub struct Queue<P> {
    last: Ring<P>,
    older: Vec<Ring<P>>,
    /// Rings given back whose slots need dropping, which is done a few at a time.
    retired: Vec<Vec<P>>,
    head: usize,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        Self {
            last: Ring::new(0, 0),
            older: Vec::new(),
            retired: Vec::new(),
            head: 0,
        }
    }
}

/// A copy holds what is there, in one ring, at the same positions.
impl<P: Clone> Clone for Queue<P> {
    fn clone(&self) -> Self {
        let mut copy = Self {
            last: Ring::new(self.len().next_power_of_two().max(SMALLEST), self.head),
            head: self.head,
            ..Self::default()
        };
        for entry in self.iter() {
            copy.push(entry.clone());
        }
        copy
    }
}

impl<P> Queue<P> {
    #[inline]
    pub fn head(&self) -> usize {
        self.head
    }

    #[inline]
    pub fn tail(&self) -> usize {
        self.last.end
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.tail() - self.head
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at a position from head to tail; others panic or give leftovers.
    #[inline]
    pub fn get(&self, position: usize) -> &P {
        let ring = if position >= self.last.start {
            &self.last
        } else {
            self.ring_of(position)
        };
        &ring.slots[ring.slot(position)]
    }

    #[cold]
    fn ring_of(&self, position: usize) -> &Ring<P> {
        let mut rings = self.older.iter().rev();
        let found = rings.find(|ring| position >= ring.start);
        found.expect("a position before the head")
    }

    #[inline]
    pub fn set(&mut self, position: usize, entry: P) {
        *self.slot_mut(position) = entry;
    }

    #[inline]
    fn slot_mut(&mut self, position: usize) -> &mut P {
        let ring = if position >= self.last.start {
            &mut self.last
        } else {
            let mut rings = self.older.iter_mut().rev();
            let found = rings.find(|ring| position >= ring.start);
            found.expect("a position before the head")
        };
        let slot = ring.slot(position);
        &mut ring.slots[slot]
    }

    #[inline]
    pub fn push(&mut self, entry: P) {
        let live = self.last.end - self.head.max(self.last.start);
        let slot = self.last.slot(self.last.end);
        if live == self.last.cap || slot.is_multiple_of(FEW) && self.too_large() {
            self.open();
            self.last.slots.push(entry);
        } else if let Some(place) = self.last.slots.get_mut(slot) {
            *place = entry;
        } else {
            self.last.slots.push(entry);
        }
        self.last.end += 1;
    }

    fn too_large(&self) -> bool {
        self.last.cap > 8 * FEW && self.len() < self.last.cap / 8 && self.older.is_empty()
    }

    /// Follows the last ring by one of a size that fits.
    #[cold]
    fn open(&mut self) {
        self.dispose();
        let cap = if self.too_large() {
            (4 * self.len()).next_power_of_two().max(SMALLEST)
        } else {
            (2 * self.last.cap).max(SMALLEST)
        };
        let next = Ring::new(cap, self.last.end);
        let full = std::mem::replace(&mut self.last, next);
        if full.end > self.head {
            self.older.push(full);
        } else {
            self.retire(full.slots);
        }
    }

    /// Evicts the entry at the head. `blank` is what may lie in a slot of nobody.
    #[inline]
    pub fn evict(&mut self, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            let head = self.head;
            self.set(head, blank());
        }
        self.head += 1;
        if !self.older.is_empty() || !self.retired.is_empty() {
            self.give_back();
        }
        if self.len() == FEW {
            self.compact(FEW, blank);
        }
    }

    /// Evicts `count` entries: O(1) where entries need no dropping, else O(count).
    pub fn evict_many(&mut self, count: usize, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            for position in self.head..self.head + count {
                self.set(position, blank());
            }
        }
        self.head += count;
        while self.older.first().is_some_and(|ring| ring.end <= self.head) {
            self.give_back();
        }
        self.compact(count.max(FEW), blank);
    }

    #[cold]
    fn give_back(&mut self) {
        self.dispose();
        if self.older.first().is_some_and(|ring| ring.end <= self.head) {
            let passed = self.older.remove(0);
            self.retire(passed.slots);
        }
    }

    fn retire(&mut self, slots: Vec<P>) {
        if std::mem::needs_drop::<P>() && !slots.is_empty() {
            self.retired.push(slots);
        }
    }

    fn dispose(&mut self) {
        let Some(slots) = self.retired.last_mut() else {
            return;
        };
        slots.truncate(slots.len().saturating_sub(DISPOSED));
        if slots.is_empty() {
            self.retired.pop();
        }
    }

    /// Moves the entries into a small ring, if they are no more than `most` and their
    /// rings are far too large for them.
    fn compact(&mut self, most: usize, blank: impl Fn() -> P) {
        let len = self.len();
        if len > most || self.capacity() <= 8 * len.max(FEW) {
            return;
        }
        let cap = (2 * len).next_power_of_two().max(SMALLEST);
        let mut small = Ring::new(cap, self.head);
        for position in self.head..self.tail() {
            let entry = std::mem::replace(self.slot_mut(position), blank());
            small.slots.push(entry);
        }
        small.end = self.tail();
        let large = std::mem::replace(&mut self.last, small);
        self.retire(large.slots);
        for ring in std::mem::take(&mut self.older) {
            self.retire(ring.slots);
        }
    }

    fn capacity(&self) -> usize {
        let older: usize = self.older.iter().map(|ring| ring.cap).sum();
        older + self.last.cap
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator {
        (self.head..self.tail()).map(|position| self.get(position))
    }

    /// Bytes held beside the struct itself.
    pub fn bytes(&self) -> usize {
        let retired: usize = self.retired.iter().map(Vec::capacity).sum();
        (self.capacity() + retired) * size_of::<P>()
            + self.older.capacity() * size_of::<Ring<P>>()
            + self.retired.capacity() * size_of::<Vec<P>>()
    }
}

impl<P: Codec> Queue<P> {
    /// Writes the entries; positions that refer to them go relative to the head.
    pub fn write(&self, out: &mut Writer) {
        (self.len() as u64).write(out);
        for entry in self.iter() {
            entry.write(out);
        }
    }

    /// Reads what [`Queue::write`] wrote, entry by entry through `each`; the head is 0.
    pub fn read(
        input: &mut Reader<'_>,
        mut each: impl FnMut(&mut Reader<'_>) -> Result<P>,
    ) -> Result<Self> {
        let count = input.length::<P>()?;
        let mut queue = Self::default();
        for _ in 0..count {
            queue.push(each(input)?);
        }
        Ok(queue)
    }
}
