//! A queue that never moves many entries: what the first-in first-out structures stand on.
//!
//! A vector that grows copies all it holds, which no worst case of O(1) survives. Here an
//! entry keeps its place from insert to evict, unless it is among the last hundred of a
//! ring that is given back:
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
//! 4. Without a `past` the queue is *plain*: one ring, all of whose slots have been filled
//!    once. So their number is a power of two, or zero.
//!
//! A full ring is followed by one of twice the size; one that is more than eight times
//! too large, by a smaller one. So there are at most log₂ n rings, and the queue is plain
//! soon after it has stopped growing. Then a position is read with an `and` and nothing
//! else: that `p & (len − 1)` lies within a slice needs no proof but that it is not empty.
//!
//! What is done rarely takes the queue by value and gives it back. A call that borrowed
//! it would make the compiler keep head, tail and ring in memory, in loops that need them
//! in registers: a window of the simplest kind is twice as fast this way. For the same
//! reason a structure asks once per operation whether its queue is plain, and does by
//! value, as a whole, what it does on others.

use crate::snapshot::{Codec, Reader, Result, Writer};

const SMALLEST: usize = 16;
/// So many evictions go by between two looks at what is to be done: whether a ring is
/// passed or too large. Up to twice as many entries may be moved then, to give back a ring
/// far too large for them.
const BLOCK: usize = 64;
/// So many slots of retired rings, which hold blanks, are dropped at each look.
const DISPOSED: usize = 16 * BLOCK;

#[derive(Clone, Debug)]
struct Ring<P> {
    /// At most `cap`; those that have been filled once.
    slots: Vec<P>,
    /// A power of two, or 0 where there is no ring yet.
    cap: usize,
    /// The position of the first slot.
    start: usize,
}

impl<P> Ring<P> {
    fn new(cap: usize, start: usize) -> Self {
        Self {
            slots: Vec::with_capacity(cap),
            cap,
            start,
        }
    }

    fn is_filled(&self) -> bool {
        self.slots.len() == self.cap
    }

    fn slot(&self, position: usize) -> usize {
        position.wrapping_sub(self.start) & self.cap.wrapping_sub(1)
    }

    /// The slot of a position in a ring whose slots are all filled.
    #[inline]
    fn filled_slot(&self, position: usize) -> usize {
        position.wrapping_sub(self.start) & self.slots.len().wrapping_sub(1)
    }

    /// The slots of the positions from..to, which are not none, youngest run first.
    fn runs_back(&mut self, from: usize, to: usize, each: &mut impl FnMut(&mut [P])) {
        let (first, last) = (self.slot(from), self.slot(to - 1));
        if first <= last {
            each(&mut self.slots[first..=last]);
        } else {
            each(&mut self.slots[..=last]);
            each(&mut self.slots[first..]);
        }
    }
}

/// What keeps a queue from being plain. May be empty: then the last ring is being filled.
#[derive(Debug)]
struct Past<P> {
    /// Rings before the last one, oldest first, each with the position behind its
    /// youngest entry.
    rings: Vec<(Ring<P>, usize)>,
    /// Slots of rings given back that need dropping, which is done a few at a time.
    retired: Vec<Vec<P>>,
}

impl<P> Default for Past<P> {
    fn default() -> Self {
        Self {
            rings: Vec::new(),
            retired: Vec::new(),
        }
    }
}

impl<P> Past<P> {
    #[cold]
    #[inline(never)]
    fn get_mut(&mut self, position: usize) -> &mut P {
        let ring = self.ring_at(position);
        let slot = ring.slot(position);
        &mut ring.slots[slot]
    }

    #[cold]
    #[inline(never)]
    fn get(&self, position: usize) -> &P {
        let mut rings = self.rings.iter().rev();
        let found = rings.find(|(ring, _)| position >= ring.start);
        let (ring, _) = found.expect("a position before the head");
        &ring.slots[ring.slot(position)]
    }

    fn ring_at(&mut self, position: usize) -> &mut Ring<P> {
        let mut rings = self.rings.iter_mut().rev();
        let found = rings.find(|(ring, _)| position >= ring.start);
        &mut found.expect("a position before the head").0
    }

    fn retire(&mut self, slots: Vec<P>) {
        if std::mem::needs_drop::<P>() && !slots.is_empty() {
            self.retired.push(slots);
        }
    }

    /// Drops some of what is retired.
    fn dispose(&mut self) {
        let Some(slots) = self.retired.last_mut() else {
            return;
        };
        slots.truncate(slots.len().saturating_sub(DISPOSED));
        if slots.is_empty() {
            self.retired.pop();
        }
    }
}

/// Entries by position. Positions rise for ever: the oldest entry is at [`Queue::head`],
/// the next one pushed will be at [`Queue::tail`].
#[derive(Debug)]
pub struct Queue<P> {
    last: Ring<P>,
    head: usize,
    tail: usize,
    past: Option<Box<Past<P>>>,
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
    #[inline]
    fn starting_at(head: usize, cap: usize) -> Self {
        Self {
            last: Ring::new(cap, head),
            head,
            tail: head,
            past: (cap > 0).then(Box::default),
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

    /// Whether the queue is plain and stays so if one more entry is pushed.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.past.is_none() && self.len() < self.last.slots.len()
    }

    /// Whether the queue is plain and stays so if one more entry is evicted.
    #[inline]
    pub fn is_calm(&self) -> bool {
        self.past.is_none() && !(self.head + 1).is_multiple_of(BLOCK)
    }

    /// [`Queue::get_mut`], where `PLAIN` says that the queue is known to be.
    #[inline(always)]
    pub fn at<const PLAIN: bool>(&mut self, position: usize) -> &mut P {
        if PLAIN {
            debug_assert!(self.past.is_none());
            let slot = self.last.filled_slot(position);
            return &mut self.last.slots[slot];
        }
        self.get_mut(position)
    }

    /// The entry at a position from head to tail; others panic or give leftovers.
    #[inline]
    pub fn get(&self, position: usize) -> &P {
        match &self.past {
            None => &self.last.slots[self.last.filled_slot(position)],
            Some(past) if position < self.last.start => past.get(position),
            Some(_) => &self.last.slots[self.last.slot(position)],
        }
    }

    /// The entry at a position, to be changed.
    #[inline]
    pub fn get_mut(&mut self, position: usize) -> &mut P {
        let slot = match &mut self.past {
            None => self.last.filled_slot(position),
            Some(past) if position < self.last.start => return past.get_mut(position),
            Some(_) => self.last.slot(position),
        };
        &mut self.last.slots[slot]
    }

    #[inline]
    pub fn set(&mut self, position: usize, entry: P) {
        *self.get_mut(position) = entry;
    }

    /// All entries as runs that lie side by side, the youngest run first.
    pub fn runs_back(&mut self, mut each: impl FnMut(&mut [P])) {
        let mut to = self.tail;
        let from = self.head.max(self.last.start);
        if from < to {
            self.last.runs_back(from, to, &mut each);
            to = from;
        }
        while self.head < to {
            let past = self.past.as_mut().expect("a position before the head");
            let ring = past.ring_at(to - 1);
            let from = self.head.max(ring.start);
            ring.runs_back(from, to, &mut each);
            to = from;
        }
    }

    /// Whether a smaller ring should follow the last one: if no other one goes before it,
    /// or it is not in use yet.
    fn too_large(&self) -> bool {
        let cap = self.last.cap;
        let alone = self.past.as_ref().is_none_or(|past| past.rings.is_empty());
        cap > 8 * BLOCK && self.len() < cap / 8 && (alone || self.tail == self.last.start)
    }

    /// Follows the last ring by one of `cap` slots.
    fn open(&mut self, cap: usize) {
        let next = Ring::new(cap, self.tail);
        let full = std::mem::replace(&mut self.last, next);
        let past = self.past.get_or_insert_default();
        if self.tail > self.head.max(full.start) {
            past.rings.push((full, self.tail));
        } else {
            past.retire(full.slots);
        }
    }

    /// Makes the queue plain if nothing speaks against it.
    fn settle(&mut self) {
        let past = self.past.as_ref();
        let done = past.is_none_or(|past| past.rings.is_empty() && past.retired.is_empty());
        if done && self.last.is_filled() {
            self.past = None;
        }
    }

    fn capacity(&self) -> usize {
        let older = |past: &Past<P>| past.rings.iter().map(|(ring, _)| ring.cap).sum();
        self.last.cap + self.past.as_deref().map_or(0, older)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator + Clone {
        (self.head..self.tail).map(|position| self.get(position))
    }

    /// Bytes held beside the struct itself.
    pub fn bytes(&self) -> usize {
        let slots = self.capacity() * size_of::<P>();
        let Some(past) = &self.past else {
            return slots;
        };
        let retired: usize = past.retired.iter().map(Vec::capacity).sum();
        slots
            + retired * size_of::<P>()
            + size_of::<Past<P>>()
            + past.rings.capacity() * size_of::<(Ring<P>, usize)>()
            + past.retired.capacity() * size_of::<Vec<P>>()
    }
}

impl<P: Clone> Queue<P> {
    /// Pushes into a queue that [has room](Queue::has_room).
    #[inline(always)]
    pub fn push_within(&mut self, entry: P) {
        *self.at::<true>(self.tail) = entry;
        self.tail += 1;
    }

    #[inline]
    pub fn push(&mut self, entry: P) {
        if self.has_room() {
            self.push_within(entry);
        } else {
            *self = std::mem::take(self).with_room_for(entry);
        }
    }

    /// Pushes where there may be no room, and fills a block of slots for others.
    #[cold]
    #[inline(never)]
    fn with_room_for(mut self, entry: P) -> Self {
        if let Some(past) = &mut self.past {
            past.dispose();
        }
        let live = self.tail - self.head.max(self.last.start);
        if live == self.last.cap {
            self.open((2 * live).max(SMALLEST));
        }
        let slot = self.last.slot(self.tail);
        self.tail += 1;
        let slots = &mut self.last.slots;
        if std::mem::needs_drop::<P>() {
            if slot < slots.len() {
                slots[slot] = entry;
            } else {
                slots.push(entry);
            }
        } else {
            let filled = (slots.len() + BLOCK).min(self.last.cap);
            slots.resize(filled, entry.clone());
            slots[slot] = entry;
        }
        self.settle();
        self
    }

    /// Evicts from a queue that [is calm](Queue::is_calm).
    #[inline(always)]
    pub fn evict_calmly(&mut self, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            *self.at::<true>(self.head) = blank();
        }
        self.head += 1;
    }

    /// Evicts the entry at the head. `blank` is what may lie in a slot of nobody.
    #[inline]
    pub fn evict(&mut self, blank: impl Fn() -> P) {
        if std::mem::needs_drop::<P>() {
            self.set(self.head, blank());
        }
        self.head += 1;
        if self.head.is_multiple_of(BLOCK) {
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
        if let Some(past) = &mut self.past {
            past.dispose();
            while past.rings.first().is_some_and(|(_, end)| *end <= self.head) {
                let (passed, _) = past.rings.remove(0);
                past.retire(passed.slots);
            }
        }
        self.settle();
        let len = self.len();
        if len < most && self.capacity() > 8 * len.max(BLOCK) {
            self.compact(blank);
        } else if self.too_large() {
            self.open(fitting(4 * len));
        }
        self
    }

    /// Moves all entries into one small ring.
    fn compact(&mut self, blank: Option<P>) {
        let cap = if self.is_empty() {
            0
        } else {
            fitting(2 * self.len())
        };
        let mut small = Ring::new(cap, self.head);
        match blank {
            None => small.slots.extend(self.iter().cloned()),
            Some(blank) => {
                for position in self.head..self.tail {
                    let entry = std::mem::replace(self.get_mut(position), blank.clone());
                    small.slots.push(entry);
                }
            }
        }
        let large = std::mem::replace(&mut self.last, small);
        let past = self.past.get_or_insert_default();
        for (ring, _) in std::mem::take(&mut past.rings) {
            past.retire(ring.slots);
        }
        past.retire(large.slots);
        self.settle();
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
