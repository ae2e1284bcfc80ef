//! A node as one struct of fixed size: its entries and, unless it is a leaf, its children, each
//! with its Π↑. So a fold of a node does not read its children.

use std::array::from_fn;

use super::slots::{prefix, short_loop, transfer, transfer_within};

/// The index of a node in its arena; the highest bit is set for leaves.
pub(in crate::window) type Id = u32;
pub(in crate::window) const NONE: Id = Id::MAX;
pub(super) const LEAF: Id = 1 << 31;

#[inline(always)]
pub(in crate::window) fn is_leaf(id: Id) -> bool {
    id & LEAF != 0
}

/// The fields of leaves and of inner nodes.
#[derive(Clone, Debug)]
pub(in crate::window) struct Node<P, const E: usize> {
    pub(super) parent: Id,
    pub(super) len: u8,
    pub(super) level: u8,
    pub(super) times: [i64; E],
    pub(super) values: [P; E],
}

/// A node with children.
#[derive(Clone, Debug)]
pub(in crate::window) struct Inner<P, const E: usize, const K: usize> {
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
        let (times, values) = (&mut self.times[at..=len], &mut self.values[at..=len]);
        for at in (1..times.len()).rev() {
            short_loop();
            times[at] = times[at - 1];
            transfer_within(values, at - 1, at);
        }
        (times[0], values[0]) = (time, value);
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

/// An aggregate of a node, and the number of entries that it covers.
#[derive(Clone, Debug)]
pub(in crate::window) struct Agg<P> {
    pub partial: P,
    pub count: u32,
}

/// A child and its Π↑, which is out of date for a child on a spine: that keeps another
/// aggregate.
#[derive(Clone, Debug)]
pub(in crate::window) struct Child<P> {
    pub id: Id,
    pub count: u32,
    pub partial: P,
}

impl<P: Clone> Child<P> {
    pub fn new(id: Id, Agg { partial, count }: Agg<P>) -> Self {
        Self { id, count, partial }
    }

    /// Its Π↑.
    #[inline(always)]
    pub fn agg(&self) -> Agg<P> {
        Agg {
            partial: self.partial.clone(),
            count: self.count,
        }
    }
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
