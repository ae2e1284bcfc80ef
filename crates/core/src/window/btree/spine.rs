//! The two spines, level by level from the finger up to the root.

use super::{Agg, Id, NONE};
use crate::window::shape::Kind;
use crate::window::steps::Step;

/// A node of a spine.
#[derive(Clone, Debug)]
pub(super) struct Rung<P> {
    pub id: Id,
    /// Its aggregate without what its parent hands down.
    pub own: Agg<P>,
    /// Π↙ or Π↘.
    pub agg: Agg<P>,
    /// Of a node that is not a leaf, the separator beside the child that is on the spine, too:
    /// what a climb looks at.
    pub edge: i64,
}

impl<P> Rung<P> {
    /// Notes the separator of a node with these times. (A leaf's goes unasked for.)
    #[inline(always)]
    pub fn note_edge(&mut self, times: &[i64], side: Kind) {
        let edge = match side {
            Kind::Left => times.first(),
            _ => times.last(),
        };
        self.edge = edge.copied().unwrap_or_default();
    }
}

/// A spine and what of it is to be repaired by the next pass down. The root, which is on
/// both, keeps its aggregate elsewhere.
#[derive(Clone, Debug)]
pub(in crate::window) struct Spine<P> {
    pub(super) rungs: Vec<Rung<P>>,
    /// A bit per level whose node has changed: FiBA's hit_left and hit_right.
    pub(super) stale: u64,
    blank: P,
}

impl<P: Clone> Spine<P> {
    pub fn new(blank: P) -> Self {
        Self {
            rungs: Vec::new(),
            stale: 0,
            blank,
        }
    }

    /// The level of the root.
    #[inline(always)]
    pub fn height(&self) -> usize {
        self.rungs.len() - 1
    }

    #[inline(always)]
    pub fn finger(&self) -> Id {
        self.rungs[0].id
    }

    #[inline(always)]
    pub fn at(&self, level: usize) -> Id {
        self.rungs[level].id
    }

    /// The lowest node below the root beside which the separator holds; that of the root
    /// must.
    #[inline(always)]
    pub fn climb(&self, holds: impl Fn(i64) -> bool) -> Id {
        let mut level = 0;
        Step::Visit.note();
        while level + 2 < self.rungs.len() && !holds(self.rungs[level + 1].edge) {
            level += 1;
            Step::Visit.note();
        }
        self.rungs[level].id
    }

    /// The root's separator at this side, unless it is a leaf.
    pub fn root_edge(&self) -> Option<i64> {
        let height = self.height();
        (height > 0).then(|| self.rungs[height].edge)
    }

    #[inline(always)]
    pub fn mark(&mut self, level: usize) {
        self.stale |= 1 << level;
    }

    /// Makes a node that of its level.
    pub fn set(&mut self, level: usize, id: Id) {
        self.rungs[level].id = id;
        self.mark(level);
    }

    /// Makes a node the root.
    pub fn plant(&mut self, level: usize, root: Id) {
        let nothing = Agg {
            partial: self.blank.clone(),
            count: 0,
        };
        let rung = Rung {
            id: NONE,
            own: nothing.clone(),
            agg: nothing,
            edge: 0,
        };
        // Drops the aggregate that it kept while it was on the spine.
        self.rungs.truncate(level);
        self.rungs.resize(level + 1, rung);
        self.set(level, root);
        // What inherited from it, or from another root's child, inherits anew.
        if level > 0 {
            self.mark(level - 1);
        }
    }

    pub fn bytes(&self) -> usize {
        self.rungs.capacity() * size_of::<Rung<P>>()
    }
}
