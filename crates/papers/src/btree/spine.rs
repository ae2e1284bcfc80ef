//! The two spines, level by level from the finger up to the root.

use super::{Id, LEVELS, NONE, Nodes};
use slidewise_core::window::shape::PartialKind;
use slidewise_core::window::steps::Step;

/// The aggregates of a node of a spine.
#[derive(Clone, Debug)]
pub(super) struct LevelAggs<P> {
    /// The aggregate without the part of the parent.
    pub own: P,
    /// Π↙ or Π↘.
    pub agg: P,
}

/// The separator that a climb on that side compares with, for a node with these times. That of
/// a leaf is not used.
#[inline(always)]
pub(super) fn edge(times: &[i64], side: PartialKind) -> i64 {
    let edge = match side {
        PartialKind::Left => times.first(),
        _ => times.last(),
    };
    edge.copied().unwrap_or_default()
}

/// A spine, and its nodes that the next pass down repairs. The aggregate of the root, which is
/// on both spines, is stored in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Spine<P> {
    pub(super) levels: Vec<LevelAggs<P>>,
    /// The nodes by level.
    pub(super) ids: [Id; LEVELS],
    /// By level, the separator of an inner node beside its child on the spine: a climb compares
    /// with it.
    pub(super) edges: [i64; LEVELS],
    /// A bit per level whose node has changed: FiBA's hit_left and hit_right.
    pub(super) stale: u64,
    /// A bit per level whose part of `entries` is out of date. That of the finger always is.
    pub(super) recount: u64,
    /// By level, the entries of the node and below its children off the spine; the sum of all.
    entries: [u32; LEVELS],
    total: usize,
    blank: P,
}

impl<P: Clone> Spine<P> {
    pub fn new(blank: P) -> Self {
        Self {
            levels: Vec::new(),
            ids: [NONE; LEVELS],
            edges: [0; LEVELS],
            stale: 0,
            recount: 0,
            entries: [0; LEVELS],
            total: 0,
            blank,
        }
    }

    /// The level of the root.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.levels.len() - 1
    }

    #[inline(always)]
    pub fn finger(&self) -> Id {
        self.ids[0]
    }

    #[inline(always)]
    pub fn at(&self, level: usize) -> Id {
        self.ids[level % LEVELS]
    }

    /// The lowest node below the root for whose separator in the parent `holds` is true, and its
    /// level. It must be true for that of the root.
    #[inline(always)]
    pub fn climb(&self, holds: impl Fn(i64) -> bool) -> (Id, usize) {
        let mut level = 0;
        Step::Visit.note();
        while !holds(self.edge(level + 1)) {
            level += 1;
            Step::Visit.note();
        }
        (self.at(level), level)
    }

    #[inline(always)]
    pub fn edge(&self, level: usize) -> i64 {
        self.edges[level % LEVELS]
    }

    #[inline(always)]
    pub fn mark(&mut self, level: usize) {
        self.stale |= 1 << level;
    }

    /// Sets the node of a level.
    pub fn set(&mut self, level: usize, id: Id) {
        self.ids[level % LEVELS] = id;
        self.mark(level);
    }

    /// Makes a node the root.
    pub fn set_root(&mut self, level: usize, root: Id) {
        let aggs = LevelAggs {
            own: self.blank.clone(),
            agg: self.blank.clone(),
        };
        // Drops the aggregate that it kept while it was on the spine.
        self.recount = u64::from(u32::MAX);
        self.levels.truncate(level);
        self.levels.resize(level + 1, aggs);
        self.set(level, root);
        // The aggregate below depends on its parent, which is new.
        if level > 0 {
            self.mark(level - 1);
        }
    }

    /// The number of entries of the spine below the root, and below its nodes' children.
    pub fn count<const E: usize, const K: usize>(
        &mut self,
        nodes: &Nodes<P, E, K>,
        side: PartialKind,
    ) -> usize {
        let mut stale = self.recount | 1;
        while stale != 0 {
            let level = stale.trailing_zeros() as usize % LEVELS;
            let entries = match level < self.height() {
                true => nodes.entries(self.at(level), side),
                false => 0,
            };
            self.total = self.total + entries - self.entries[level] as usize;
            self.entries[level] = entries as u32;
            stale &= stale - 1;
        }
        self.recount = 0;
        self.total
    }

    pub fn bytes(&self) -> usize {
        self.levels.capacity() * size_of::<LevelAggs<P>>()
    }
}
