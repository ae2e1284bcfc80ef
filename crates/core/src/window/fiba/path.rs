//! A path of nodes from a leaf up to the root: the left spine, or the right one.

use std::ops::{Index, IndexMut};

/// The number of a node in its arena.
pub(super) type Id = u32;

/// Node ids by level. The leaf, the finger, lies in place: every call begins there.
#[derive(Clone, Debug)]
pub(super) struct Path {
    leaf: Id,
    above: Vec<Id>,
}

impl Path {
    /// The same node at every level up to `height`, to be filled in.
    pub(super) fn of(node: Id, height: usize) -> Self {
        Self {
            leaf: node,
            above: vec![node; height],
        }
    }

    /// The level of its last node.
    pub(super) fn height(&self) -> usize {
        self.above.len()
    }

    /// A new root.
    pub(super) fn push(&mut self, root: Id) {
        self.above.push(root);
    }

    /// Removes the root; the leaf stays.
    pub(super) fn pop(&mut self) {
        self.above.pop();
    }
}

impl Index<usize> for Path {
    type Output = Id;

    #[inline(always)]
    fn index(&self, level: usize) -> &Id {
        match level {
            0 => &self.leaf,
            level => &self.above[level - 1],
        }
    }
}

impl IndexMut<usize> for Path {
    #[inline(always)]
    fn index_mut(&mut self, level: usize) -> &mut Id {
        match level {
            0 => &mut self.leaf,
            level => &mut self.above[level - 1],
        }
    }
}
