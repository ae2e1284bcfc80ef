//! A node as one struct of fixed size: its entries and, unless it is a leaf, its children, each
//! with its Π↑. So a fold of a node does not read its children.

use std::array::from_fn;

use super::slots::{prefix, shift_in, short_loop, transfer, transfer_within};
use slidewise_core::window::shape::PartialKind;

/// The index of a node in its arena; the highest bit is set for leaves.
pub(crate) type Id = u32;
pub(crate) const NONE: Id = Id::MAX;
pub(super) const LEAF: Id = 1 << 31;

#[inline(always)]
pub(crate) fn is_leaf(id: Id) -> bool {
    id & LEAF != 0
}

/// Tells the compiler that a node is a leaf, or that it is none.
#[inline(always)]
pub(super) fn known<const IS_LEAF: bool>(id: Id) -> Id {
    debug_assert_eq!(is_leaf(id), IS_LEAF);
    match IS_LEAF {
        true => id | LEAF,
        false => id & !LEAF,
    }
}

/// The fields of leaves and of inner nodes.
#[derive(Clone, Debug)]
pub(crate) struct Node<P, const E: usize> {
    pub(super) parent: Id,
    pub(super) len: u8,
    pub(super) level: u8,
    pub(super) times: [i64; E],
    pub(super) values: [P; E],
}

/// A node with children.
#[derive(Clone, Debug)]
pub(crate) struct Inner<P, const E: usize, const K: usize> {
    pub node: Node<P, E>,
    /// Π inner of a node that keeps Π↑: a change below an outermost child then takes two
    /// combines.
    pub middle: P,
    pub children: [Child<P>; K],
}

impl<P: Clone, const E: usize> Node<P, E> {
    pub(super) fn new(level: usize, blank: &P) -> Self {
        Self {
            parent: NONE,
            len: 0,
            level: level as u8,
            times: [0; E],
            values: from_fn(|_| blank.clone()),
        }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline(always)]
    pub fn parent(&self) -> Id {
        self.parent
    }

    #[inline(always)]
    pub fn times(&self) -> &[i64] {
        &self.times[..self.len()]
    }

    /// The slots for values.
    #[inline(always)]
    pub fn values(&self) -> &[P; E] {
        &self.values
    }

    /// The number of entries at or before `time`, and whether the last of them is at `time`.
    #[inline(always)]
    pub fn seek(&self, time: i64) -> (usize, bool) {
        let at = prefix::<E>(self.times(), |present| present <= time);
        (at, self.times[..at].last() == Some(&time))
    }

    /// Puts an entry at position `at`.
    #[inline(always)]
    pub(super) fn insert(&mut self, at: usize, time: i64, value: P) {
        let len = self.len();
        self.len += 1;
        for at in (at..len.min(E - 1)).rev() {
            short_loop();
            self.times[at + 1] = self.times[at];
            transfer_within(&mut self.values, at, at + 1);
        }
        (self.times[at], self.values[at]) = (time, value);
    }

    #[inline(always)]
    pub(super) fn append(&mut self, time: i64, value: P) {
        let at = self.len();
        self.times[at] = time;
        self.values[at] = value;
        self.len += 1;
    }

    /// Removes the first entry: moves all others down by one.
    #[inline(always)]
    pub(super) fn shift_down(&mut self) {
        let len = self.len();
        self.len -= 1;
        for at in 1..E {
            if at >= len {
                break;
            }
            self.times[at - 1] = self.times[at];
            transfer_within(&mut self.values, at, at - 1);
        }
    }

    /// Removes the `count` entries from position `at` on: moves those after them down.
    #[inline(always)]
    pub(super) fn close(&mut self, at: usize, count: usize) {
        let len = self.len();
        self.len -= count as u8;
        let (times, values) = (&mut self.times[at..len], &mut self.values[at..len]);
        for at in count..times.len() {
            short_loop();
            times[at - count] = times[at];
            transfer_within(values, at, at - count);
        }
    }
}

impl<P: Clone, const E: usize, const K: usize> Inner<P, E, K> {
    /// Inserts an entry at position `at`, and a child after it.
    #[inline(always)]
    pub(super) fn insert(&mut self, at: usize, time: i64, value: P, child: Child<P>) {
        self.node.insert(at, time, value);
        shift_in(&mut self.children[at + 1..=self.node.len()], child);
    }

    /// The entries of the node, and those below the children that an aggregate covers.
    pub(super) fn entries(&self, kind: PartialKind) -> usize {
        let len = self.node.len();
        let covered = match kind {
            PartialKind::Inner => 1..len,
            PartialKind::Left => 1..len + 1,
            PartialKind::Right => 0..len,
            _ => 0..len + 1,
        };
        let below = self.children[covered].iter();
        len + below.map(|child| child.count as usize).sum::<usize>()
    }
}

/// A child, the number of entries below it, and its Π↑. Both are out of date for a child on a
/// spine, which keeps another aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Child<P> {
    pub id: Id,
    pub count: u32,
    pub partial: P,
}

/// Moves entries from one node to another.
#[inline]
pub(super) fn move_entries<P: Clone, const E: usize>(
    source: &mut Node<P, E>,
    at: usize,
    target: &mut Node<P, E>,
    there: usize,
    count: usize,
) {
    let times = source.times[at..at + count].iter();
    let values = source.values[at..at + count].iter_mut();
    let places = target.times[there..there + count].iter_mut();
    let places = places.zip(&mut target.values[there..there + count]);
    for ((time, value), place) in times.zip(values).zip(places) {
        short_loop();
        *place.0 = *time;
        transfer(value, place.1);
    }
}
