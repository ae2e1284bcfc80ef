//! The rings of a [queue](super::queue) that grows or shrinks.
//!
//! ```text
//! positions   head ............ start ........................ tail
//!             |  older rings    |  the last ring, cap slots     |
//! ```
//!
//! Invariants:
//! 1. The entry at position p ≥ `last.start` lies in slot (p − start) mod cap of the last
//!    ring, the others in the older ring with the largest start up to p.
//! 2. Only the last ring gets new entries. An older one is freed when the head has
//!    passed its end.
//! 3. Slots are filled for the first time in the order of their positions, a block at a
//!    time at most, so a ring is never initialised: making one costs O(1) however large.
//!
//! A full ring is followed by one of at least twice the size; one that is not a quarter
//! full, by one of half the size at most, so that half as many entries must come or go
//! before the next. So there are at most log₂ n rings, and:
//!
//! 4. Of the older rings, each but the first holds as many entries as it has slots, and has
//!    at least twice as many as the one before it.
//!
//! Therefore the ring of a position follows from the bits of a number, without a search:
//! see [`Rings::older_by_place`].

use std::collections::VecDeque;

use crate::window::steps::Step;

pub const MIN_RING: usize = 16;
/// The number of evictions between two maintenance steps, which test whether a ring is
/// passed or too large. Up to twice as many entries may be moved then, to give back a ring
/// far too large for them.
pub const BLOCK: usize = 64;
/// Memory comes back when less than one in so many slots is used: there is then room for twice
/// the entries, and O(1) per operation pays for the next change.
pub const SPARE: usize = 4;
/// The number of slots of retired rings, which hold blanks, that each step drops.
const DISPOSED: usize = 16 * BLOCK;

#[derive(Debug)]
struct Ring<P> {
    /// At most `cap`; those that have been filled once.
    slots: Vec<P>,
    /// A power of two.
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

    fn slot(&self, position: usize) -> usize {
        position.wrapping_sub(self.start) & (self.cap - 1)
    }
}

#[derive(Debug)]
pub struct Rings<P> {
    last: Ring<P>,
    /// The rings before it, oldest first, each with the position after its youngest entry.
    older: VecDeque<(Ring<P>, usize)>,
    /// The numbers of slots of the older rings but the first, a bit each.
    exact: usize,
    /// Slots of retired rings that need dropping, a few at a time.
    retired: Vec<Vec<P>>,
}

/// The capacity of a ring for a number of entries.
pub fn fitting(len: usize) -> usize {
    len.next_power_of_two().max(MIN_RING)
}

/// Whether a ring of `cap` slots is far too large for `len` entries.
pub fn is_too_large(cap: usize, len: usize) -> bool {
    cap > SPARE * BLOCK && len < cap / SPARE
}

/// Hands over the entries at the positions from..to of a ring, which are not none, as runs
/// that lie side by side, the youngest run first.
pub fn runs_back<P>(slots: &mut [P], first: usize, last: usize, each: &mut impl FnMut(&mut [P])) {
    if first <= last {
        each(&mut slots[first..=last]);
    } else {
        each(&mut slots[..=last]);
        each(&mut slots[first..]);
    }
}

impl<P> Rings<P> {
    /// One empty ring of at least `cap` slots.
    pub fn new(cap: usize, start: usize) -> Self {
        Self::of(Ring::new(cap.max(MIN_RING), start))
    }

    /// One ring whose slots are all filled.
    pub fn filled(slots: Vec<P>, start: usize) -> Self {
        Self::of(Ring {
            cap: slots.len(),
            slots,
            start,
        })
    }

    fn of(last: Ring<P>) -> Self {
        Self {
            last,
            older: VecDeque::new(),
            exact: 0,
            retired: Vec::new(),
        }
    }

    /// The slots and the start of a single ring whose slots are all filled, if that is
    /// what there is.
    pub fn take_filled(&mut self) -> Option<(Vec<P>, usize)> {
        let filled = self.last.slots.len() == self.last.cap;
        let done = filled && self.older.is_empty() && self.retired.is_empty();
        done.then(|| (std::mem::take(&mut self.last.slots), self.last.start))
    }

    pub fn get(&self, position: usize) -> &P {
        let ring = if position >= self.last.start {
            &self.last
        } else {
            &self.older[self.older_at(position)].0
        };
        &ring.slots[ring.slot(position)]
    }

    pub fn get_mut(&mut self, position: usize) -> &mut P {
        let ring = self.ring_at(position);
        let slot = ring.slot(position);
        &mut ring.slots[slot]
    }

    fn ring_at(&mut self, position: usize) -> &mut Ring<P> {
        if position >= self.last.start {
            return &mut self.last;
        }
        let at = self.older_at(position);
        &mut self.older[at].0
    }

    /// The index of the older ring that holds a position, by a look at two of them at most:
    /// the youngest, which holds half of them or more, and one other.
    #[inline]
    fn older_at(&self, position: usize) -> usize {
        let youngest = self.older.len() - 1;
        Step::Ring.note();
        if position >= self.older[youngest].0.start {
            return youngest;
        }
        self.older_by_place(position)
    }

    /// Laid end to end, the rings behind the first have their slots up to `exact`, and
    /// each is larger than those before it together. So the highest bit of a place among
    /// them gives the ring, or the one before that.
    fn older_by_place(&self, position: usize) -> usize {
        let back = self.last.start - position;
        let Some(place) = self.exact.checked_sub(back) else {
            return 0;
        };
        let smaller = match place.checked_ilog2() {
            Some(log) => self.exact & ((1 << log) - 1),
            None => 0,
        };
        let at = 1 + smaller.count_ones() as usize;
        Step::Ring.note();
        at + usize::from(position >= self.older[at].1)
    }

    /// All entries as runs that lie side by side, the youngest run first.
    pub fn runs_back(&mut self, head: usize, mut tail: usize, each: &mut impl FnMut(&mut [P])) {
        while head < tail {
            let ring = self.ring_at(tail - 1);
            let from = head.max(ring.start);
            let (first, last) = (ring.slot(from), ring.slot(tail - 1));
            runs_back(&mut ring.slots, first, last, each);
            tail = from;
        }
    }

    /// The number of entries in the last ring.
    fn live(&self, head: usize, tail: usize) -> usize {
        tail - head.max(self.last.start)
    }

    /// The slot for an entry at `tail`, if one is free that has been filled before and
    /// the push needs no other work.
    #[inline(never)]
    pub fn free(&mut self, head: usize, tail: usize) -> Option<&mut P> {
        let live = self.live(head, tail);
        if live == self.last.cap || !self.retired.is_empty() {
            return None;
        }
        let slot = self.last.slot(tail);
        self.last.slots.get_mut(slot)
    }

    /// Puts an entry at `tail`, and fills a block of slots for others.
    pub fn push(&mut self, head: usize, tail: usize, entry: P)
    where
        P: Clone,
    {
        self.dispose();
        let live = self.live(head, tail);
        if live == self.last.cap {
            self.open(2 * live, head, tail);
        }
        let slot = self.last.slot(tail);
        let slots = &mut self.last.slots;
        if !std::mem::needs_drop::<P>() {
            let filled = (slots.len() + BLOCK).min(self.last.cap);
            slots.resize(filled, entry.clone());
        }
        if slot < slots.len() {
            slots[slot] = entry;
        } else {
            slots.push(entry);
        }
    }

    /// Puts many entries, the first one at `tail`; drops in step what is retired.
    pub fn extend(
        &mut self,
        head: usize,
        mut tail: usize,
        mut entries: impl ExactSizeIterator<Item = P>,
    ) {
        for _ in 0..entries.len().div_ceil(BLOCK) {
            self.dispose();
        }
        while entries.len() > 0 {
            let live = self.live(head, tail);
            let cap = self.last.cap;
            if live == cap || live == 0 && cap < entries.len() {
                self.open(fitting(entries.len().max(2 * live)), head, tail);
                continue;
            }
            let slot = self.last.slot(tail);
            let run = entries.len().min(cap - live).min(cap - slot);
            let slots = &mut self.last.slots;
            let filled = run.min(slots.len() - slot);
            for (slot, entry) in slots[slot..slot + filled].iter_mut().zip(&mut entries) {
                *slot = entry;
            }
            slots.extend(entries.by_ref().take(run - filled));
            tail += run;
        }
    }

    /// Follows the last ring by one of `cap` slots. This and [`Rings::compact`] are rare, and
    /// the same for all that calls them.
    #[inline(never)]
    pub fn open(&mut self, cap: usize, head: usize, tail: usize) {
        let full = std::mem::replace(&mut self.last, Ring::new(cap, tail));
        if tail > head.max(full.start) {
            if !self.older.is_empty() {
                debug_assert!(self.exact < full.cap && full.cap <= tail - head);
                self.exact |= full.cap;
            }
            self.older.push_back((full, tail));
        } else {
            self.retire(full.slots);
        }
    }

    /// Gives back what is not needed any more; may move up to `most` entries for that.
    /// There is a blank where entries need dropping.
    pub fn look_after(&mut self, head: usize, tail: usize, most: usize, blank: Option<P>)
    where
        P: Clone,
    {
        self.dispose();
        while self.older.front().is_some_and(|(_, end)| *end <= head) {
            let passed = self.older.pop_front();
            passed
                .into_iter()
                .for_each(|(ring, _)| self.retire(ring.slots));
            if let Some((first, _)) = self.older.front() {
                self.exact &= !first.cap;
            }
        }
        let len = tail - head;
        if len < most && self.capacity() > SPARE * len.max(BLOCK) {
            self.compact(head, tail, blank);
        } else if is_too_large(self.last.cap, len)
            && (self.older.is_empty() || tail == self.last.start)
        {
            self.open(fitting(2 * len), head, tail);
        }
    }

    /// Moves all entries into one small ring.
    #[inline(never)]
    fn compact(&mut self, head: usize, tail: usize, blank: Option<P>)
    where
        P: Clone,
    {
        let mut small = Ring::new(fitting(2 * (tail - head)), head);
        for position in head..tail {
            small.slots.push(match &blank {
                None => self.get(position).clone(),
                Some(blank) => std::mem::replace(self.get_mut(position), blank.clone()),
            });
        }
        let large = std::mem::replace(&mut self.last, small);
        self.exact = 0;
        for (ring, _) in std::mem::take(&mut self.older) {
            self.retire(ring.slots);
        }
        self.retire(large.slots);
    }

    fn retire(&mut self, slots: Vec<P>) {
        if std::mem::needs_drop::<P>() && !slots.is_empty() {
            self.retired.push(slots);
        }
    }

    /// Drops some of what is retired.
    fn dispose(&mut self) {
        if !std::mem::needs_drop::<P>() {
            return;
        }
        let Some(slots) = self.retired.last_mut() else {
            return;
        };
        slots.truncate(slots.len().saturating_sub(DISPOSED));
        if slots.is_empty() {
            self.retired.pop();
        }
    }

    fn capacity(&self) -> usize {
        self.last.cap + self.older.iter().map(|(ring, _)| ring.cap).sum::<usize>()
    }

    /// Not inline: every queue of every structure calls it.
    #[inline(never)]
    pub fn bytes(&self) -> usize {
        let retired: usize = self.retired.iter().map(Vec::capacity).sum();
        (self.capacity() + retired) * size_of::<P>()
            + size_of::<Self>()
            + self.older.capacity() * size_of::<(Ring<P>, usize)>()
            + self.retired.capacity() * size_of::<Vec<P>>()
    }
}
