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
//! 3. Slots are filled for the first time in the order of their positions, a block at a
//!    time at most, so a ring is never initialised: making one costs O(1) however large.
//! 4. tail ≤ `limit`; pushes before it need no look at anything.
//!
//! A full ring is followed by one of twice the size; one that is more than eight times
//! too large, by a smaller one. So there are at most log₂ n rings, and a single one once
//! the queue has stopped growing: then a position is read like an array, with one
//! comparison more.

use crate::snapshot::{Codec, Reader, Result, Writer};

const SMALLEST: usize = 16;
/// So many pushes or evictions go by between two looks at what is to be done: whether a
/// ring is full, passed, or too large. Up to twice as many entries may be moved then, to
/// give back a ring far too large for them.
const BLOCK: usize = 64;

#[derive(Clone, Debug)]
struct Ring<P> {
    /// At most `cap`, which is a power of two, or 0 where there is no ring yet.
    slots: Vec<P>,
    mask: usize,
    /// The position of the first slot.
    start: usize,
}

impl<P> Ring<P> {
    fn new(cap: usize, start: usize) -> Self {
        Self {
            slots: Vec::with_capacity(cap),
            mask: cap.saturating_sub(1),
            start,
        }
    }

    fn cap(&self) -> usize {
        if self.slots.capacity() == 0 {
            0
        } else {
            self.mask + 1
        }
    }

    #[inline]
    fn slot(&self, position: usize) -> usize {
        (position - self.start) & self.mask
    }
}

/// Entries by position. Positions rise for ever: the oldest entry is at [`Queue::head`],
/// the next one pushed will be at [`Queue::tail`].
#[derive(Debug)]
pub struct Queue<P> {
    last: Ring<P>,
    head: usize,
    tail: usize,
    /// Up to here there is room in slots that have been filled before.
    limit: usize,
    /// Rings before the last, each with the position behind its youngest entry.
    older: Vec<(Ring<P>, usize)>,
    /// Rings given back whose slots need dropping, which is done a few at a time.
    retired: Vec<Vec<P>>,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        Self::starting_at(0, 0)
    }
}

/// A copy holds what is there, in one ring, at the same positions.
impl<P: Clone> Clone for Queue<P> {
    fn clone(&self) -> Self {
        let mut copy = Self::starting_at(self.head, fitting(self.len()));
        for entry in self.iter() {
            copy.push(entry.clone());
        }
        copy
    }
}

fn fitting(len: usize) -> usize {
    len.next_power_of_two().max(SMALLEST)
}

impl<P> Queue<P> {
    fn starting_at(head: usize, cap: usize) -> Self {
        Self {
            last: Ring::new(cap, head),
            head,
            tail: head,
            limit: head,
            older: Vec::new(),
            retired: Vec::new(),
        }
    }

    #[inline]
    pub fn head(&self) -> usize {
        self.head
    }

    #[inline]
    pub fn tail(&self) -> usize {
        self.tail
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at a position from head to tail; others panic or give leftovers.
    #[inline]
    pub fn get(&self, position: usize) -> &P {
        if position < self.last.start {
            return self.get_older(position);
        }
        &self.last.slots[self.last.slot(position)]
    }

    #[cold]
    fn get_older(&self, position: usize) -> &P {
        let mut rings = self.older.iter().rev();
        let found = rings.find(|(ring, _)| position >= ring.start);
        let (ring, _) = found.expect("a position before the head");
        &ring.slots[ring.slot(position)]
    }

    #[inline]
    pub fn set(&mut self, position: usize, entry: P) {
        *self.slot_mut(position) = entry;
    }

    #[inline]
    fn slot_mut(&mut self, position: usize) -> &mut P {
        if position < self.last.start {
            return self.older_slot_mut(position);
        }
        let slot = self.last.slot(position);
        &mut self.last.slots[slot]
    }

    #[cold]
    fn older_slot_mut(&mut self, position: usize) -> &mut P {
        let mut rings = self.older.iter_mut().rev();
        let found = rings.find(|(ring, _)| position >= ring.start);
        let (ring, _) = found.expect("a position before the head");
        let slot = ring.slot(position);
        &mut ring.slots[slot]
    }

    fn too_large(&self) -> bool {
        let cap = self.last.cap();
        cap > 8 * BLOCK && self.len() < cap / 8 && self.older.is_empty()
    }

    /// Evicts the entry at the head. `blank` is what may lie in a slot of nobody.
    #[inline]
    pub fn evict(&mut self, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            let head = self.head;
            self.set(head, blank());
        }
        self.head += 1;
        if self.head.is_multiple_of(BLOCK) {
            self.look_after(2 * BLOCK, blank);
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
        self.look_after(count.max(2 * BLOCK), blank);
    }

    /// Gives back what is not needed any more; may move up to `most` entries for that.
    #[cold]
    #[inline(never)]
    fn look_after(&mut self, most: usize, blank: impl Fn() -> P) {
        self.dispose();
        while self.older.first().is_some_and(|(_, end)| *end <= self.head) {
            let (passed, _) = self.older.remove(0);
            self.retire(passed.slots);
        }
        let len = self.len();
        if len < most && self.capacity() > 8 * len.max(BLOCK) {
            self.compact(blank);
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
        slots.truncate(slots.len().saturating_sub(BLOCK));
        if slots.is_empty() {
            self.retired.pop();
        }
    }

    /// Moves all entries into one small ring.
    fn compact(&mut self, blank: impl Fn() -> P) {
        let mut small = Ring::new(fitting(2 * self.len()), self.head);
        for position in self.head..self.tail {
            let entry = std::mem::replace(self.slot_mut(position), blank());
            small.slots.push(entry);
        }
        self.limit = self.tail;
        let large = std::mem::replace(&mut self.last, small);
        self.retire(large.slots);
        for (ring, _) in std::mem::take(&mut self.older) {
            self.retire(ring.slots);
        }
    }

    fn capacity(&self) -> usize {
        let older: usize = self.older.iter().map(|(ring, _)| ring.cap()).sum();
        older + self.last.cap()
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator {
        (self.head..self.tail).map(|position| self.get(position))
    }

    /// Bytes held beside the struct itself.
    pub fn bytes(&self) -> usize {
        let retired: usize = self.retired.iter().map(Vec::capacity).sum();
        (self.capacity() + retired) * size_of::<P>()
            + self.older.capacity() * size_of::<(Ring<P>, usize)>()
            + self.retired.capacity() * size_of::<Vec<P>>()
    }
}

impl<P: Clone> Queue<P> {
    #[inline]
    pub fn push(&mut self, entry: P) {
        if self.tail == self.limit {
            self.push_and_look(entry);
            return;
        }
        let slot = self.last.slot(self.tail);
        self.last.slots[slot] = entry;
        self.tail += 1;
    }

    /// Pushes where there may be no room, and makes some for a block of others.
    #[cold]
    #[inline(never)]
    fn push_and_look(&mut self, entry: P) {
        self.dispose();
        let live = self.tail - self.head.max(self.last.start);
        if live == self.last.cap() || self.too_large() {
            self.open();
        }
        let slot = self.last.slot(self.tail);
        match self.last.slots.get_mut(slot) {
            Some(place) => *place = entry,
            None => self.last.slots.push(entry),
        }
        self.tail += 1;
        self.limit = self.tail;
        if !std::mem::needs_drop::<P>() {
            let live = self.tail - self.head.max(self.last.start);
            let until_wrap = self.last.mask - slot;
            let room = BLOCK.min(self.last.cap() - live).min(until_wrap);
            let filled = self.last.slots.len().max(slot + 1 + room);
            let any = self.last.slots[slot].clone();
            self.last.slots.resize(filled, any);
            self.limit += room;
        }
    }

    /// Follows the last ring by one of a size that fits.
    fn open(&mut self) {
        let cap = if self.too_large() {
            fitting(4 * self.len())
        } else {
            (2 * self.last.cap()).max(SMALLEST)
        };
        let next = Ring::new(cap, self.tail);
        let full = std::mem::replace(&mut self.last, next);
        if self.tail > self.head {
            self.older.push((full, self.tail));
        } else {
            self.retire(full.slots);
        }
    }
}

impl<P: Codec + Clone> Queue<P> {
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
