//! A queue that never moves many entries, for the first-in first-out structures.
//!
//! A vector that grows copies all its entries, so its worst case is not O(1). Here an entry
//! keeps its place from insert to evict, unless it is among the last 127 of a ring that is
//! freed. A queue that grows or shrinks lies in several [`Rings`]; soon after it has stopped,
//! it is *plain*:
//!
//! 1. A plain queue has one ring, all of whose slots have been filled once: `slots`. Their
//!    number is a power of two, and the entry at position p lies in slot
//!    (p − start) mod that number.
//! 2. One that is not plain has no `slots`. It has `rings`, or is new and empty.
//!
//! In a plain queue a position is read with an `and` and nothing else: `p & (len − 1)` lies
//! within every slice that is not empty, and `slots` is not empty if the queue is plain.
//!
//! Rare operations, dropping included, take the queue by value and return it. A
//! call that borrowed it would make the compiler keep head, tail and slots in memory, in
//! loops that need them in registers: a window of the simplest kind is twice as fast this
//! way. For the same reason a structure tests once per operation whether its queue is
//! plain, and runs the whole operation by value if it is not.

pub use super::rings::{BLOCK, SPARE};
use super::rings::{Rings, fitting, is_too_large, runs_back};
use crate::snapshot::{Codec, Reader, Result, Writer};

/// Entries by position. Positions rise for ever: the oldest entry is at [`Queue::head`],
/// the next one pushed will be at [`Queue::tail`].
#[derive(Debug)]
pub struct Queue<P> {
    slots: Vec<P>,
    start: usize,
    head: usize,
    tail: usize,
    rings: Option<Box<Rings<P>>>,
}

impl<P> Default for Queue<P> {
    #[inline]
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            start: 0,
            head: 0,
            tail: 0,
            rings: None,
        }
    }
}

/// Drops by value, too: else the cleanup after a panic would borrow the queue.
impl<P> Drop for Queue<P> {
    #[inline(always)]
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.slots), self.rings.take());
    }
}

#[inline(never)]
fn give_back<P>(slots: Vec<P>, rings: Option<Box<Rings<P>>>) {
    drop((slots, rings));
}

/// A copy holds the entries in one ring, at the same positions.
impl<P: Clone> Clone for Queue<P> {
    fn clone(&self) -> Self {
        let mut rings = Rings::new(fitting(self.len()), self.head);
        rings.extend(self.head, self.head, self.iter().cloned());
        let mut copy = Self::default();
        (copy.head, copy.tail) = (self.head, self.tail);
        copy.rings = Some(Box::new(rings));
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

    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether the queue is plain and stays so if one more entry is pushed.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.len() < self.slots.len()
    }

    /// Whether the queue is plain and stays so if one more entry is evicted.
    #[inline]
    pub fn stays_plain(&self) -> bool {
        self.is_plain() && !(self.head + 1).is_multiple_of(BLOCK)
    }

    /// The slot of a position in a plain queue.
    #[inline(always)]
    fn slot(&self, position: usize) -> usize {
        position.wrapping_sub(self.start) & self.slots.len().wrapping_sub(1)
    }

    /// The entry at a position from head to tail; others panic or give leftovers.
    #[inline]
    pub fn get(&self, position: usize) -> &P {
        if self.is_plain() {
            return &self.slots[self.slot(position)];
        }
        get_in(self.rings.as_deref(), position)
    }

    /// The entry at a position, to be changed.
    #[inline]
    pub fn get_mut(&mut self, position: usize) -> &mut P {
        self.at::<false>(position)
    }

    /// [`Queue::get_mut`]. Here and below, `PLAIN` means that the caller has tested that the
    /// queue is plain, and stays so; otherwise the function tests it.
    #[inline(always)]
    pub fn at<const PLAIN: bool>(&mut self, position: usize) -> &mut P {
        if PLAIN || self.is_plain() {
            let slot = self.slot(position);
            return &mut self.slots[slot];
        }
        get_mut_in(self.rings.as_deref_mut(), position)
    }

    #[inline]
    pub fn set(&mut self, position: usize, entry: P) {
        *self.get_mut(position) = entry;
    }

    /// All entries as runs that lie side by side, the youngest run first.
    pub fn runs_back(&mut self, mut each: impl FnMut(&mut [P])) {
        if self.is_empty() {
            return;
        }
        match &mut self.rings {
            Some(rings) => rings.runs_back(self.head, self.tail, &mut each),
            None => {
                let (first, last) = (self.slot(self.head), self.slot(self.tail - 1));
                runs_back(&mut self.slots, first, last, &mut each);
            }
        }
    }

    /// Changes the rings of a queue, and makes it plain if that leaves one that is filled.
    fn with_rings(&mut self, change: impl FnOnce(&mut Rings<P>)) {
        if self.is_plain() {
            let slots = std::mem::take(&mut self.slots);
            self.rings = Some(Box::new(Rings::filled(slots, self.start)));
        }
        let fresh = || Box::new(Rings::new(0, self.tail));
        let rings = self.rings.get_or_insert_with(fresh);
        change(rings);
        if let Some((slots, start)) = rings.take_filled() {
            (self.slots, self.start, self.rings) = (slots, start, None);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator + Clone {
        (self.head..self.tail).map(|position| self.get(position))
    }

    /// Bytes held beside the struct itself.
    pub fn bytes(&self) -> usize {
        let rings = self.rings.as_ref().map_or(0, |rings| rings.bytes());
        self.slots.len() * size_of::<P>() + rings
    }
}

#[cold]
#[inline(never)]
fn get_in<P>(rings: Option<&Rings<P>>, position: usize) -> &P {
    rings.expect("a queue with entries").get(position)
}

#[cold]
#[inline(never)]
fn get_mut_in<P>(rings: Option<&mut Rings<P>>, position: usize) -> &mut P {
    rings.expect("a queue with entries").get_mut(position)
}

impl<P: Clone> Queue<P> {
    #[inline]
    pub fn push(&mut self, entry: P) {
        self.push_as::<false>(entry);
    }

    #[inline(always)]
    pub fn push_as<const PLAIN: bool>(&mut self, entry: P) {
        if PLAIN || self.has_room() {
            *self.at::<true>(self.tail) = entry;
            self.tail += 1;
        } else if let Some(slot) = self.free() {
            *slot = entry;
            self.tail += 1;
        } else {
            *self = std::mem::take(self).with_room_for(entry);
        }
    }

    /// The slot for a push to a queue that is not plain, if the push needs no other work.
    #[inline(always)]
    fn free(&mut self) -> Option<&mut P> {
        let (head, tail) = (self.head, self.tail);
        self.rings.as_deref_mut()?.free(head, tail)
    }

    /// Pushes where there may be no room.
    #[cold]
    #[inline(never)]
    fn with_room_for(mut self, entry: P) -> Self {
        let (head, tail) = (self.head, self.tail);
        self.with_rings(|rings| rings.push(head, tail, entry));
        self.tail += 1;
        self
    }

    /// Pushes many entries in sequence.
    pub fn extend(&mut self, entries: impl ExactSizeIterator<Item = P>) {
        if entries.len() > 0 {
            *self = std::mem::take(self).extended(entries);
        }
    }

    #[inline(never)]
    fn extended(mut self, mut entries: impl ExactSizeIterator<Item = P>) -> Self {
        let (head, tail, count) = (self.head, self.tail, entries.len());
        if self.len() + count <= self.slots.len() {
            let first = self.slot(tail);
            let (wrapped, slots) = self.slots.split_at_mut(first);
            for run in [slots, wrapped] {
                for (slot, entry) in run.iter_mut().zip(&mut entries) {
                    *slot = entry;
                }
            }
        } else {
            self.with_rings(|rings| rings.extend(head, tail, entries));
        }
        self.tail += count;
        self
    }

    /// Evicts the entry at the head. `blank` makes the value of a free slot.
    #[inline]
    pub fn evict(&mut self, blank: impl Fn() -> P) {
        self.evict_as::<false>(blank);
    }

    #[inline(always)]
    pub fn evict_as<const PLAIN: bool>(&mut self, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            *self.at::<PLAIN>(self.head) = blank();
        }
        self.head += 1;
        if !PLAIN && self.head.is_multiple_of(BLOCK) {
            let blank = std::mem::needs_drop::<P>().then(blank);
            *self = std::mem::take(self).looked_after(2 * BLOCK, blank);
        }
    }

    /// Evicts `count` entries: O(count) at most, O(1) if the rings stay as they are and
    /// entries need no dropping.
    pub fn evict_many(&mut self, count: usize, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            for position in self.head..self.head + count {
                self.set(position, blank());
            }
        }
        self.head += count;
        let blank = std::mem::needs_drop::<P>().then(blank);
        *self = std::mem::take(self).looked_after(count.max(2 * BLOCK), blank);
    }

    /// Gives back what is not needed any more; may move up to `most` entries for that.
    /// There is a blank where entries need dropping.
    #[cold]
    #[inline(never)]
    fn looked_after(mut self, most: usize, blank: Option<P>) -> Self {
        let (head, tail) = (self.head, self.tail);
        if self.rings.is_some() || is_too_large(self.slots.len(), tail - head) {
            self.with_rings(|rings| rings.look_after(head, tail, most, blank));
        }
        self
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
