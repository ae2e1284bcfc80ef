//! Bulk evict (2023, §4): boundary search, pass up, pass down.

use super::super::{Id, NONE, Tree, is_leaf};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::steps;

/// One level of the boundary: a node with entries on both sides of it, its right
/// neighbour of the same level, and the entry between the two, which their least common
/// ancestor holds.
#[derive(Clone, Copy, Debug)]
struct BoundaryLevel {
    node: Id,
    /// How many of its entries go, and how many children with them.
    cut: usize,
    neighbor: Id,
    ancestor: Id,
    between: usize,
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    pub(crate) fn bulk_evict(&mut self, time: i64) -> usize {
        let before = self.len;
        let first = self.nodes.times(self.left.finger()).first();
        if first.is_none_or(|oldest| *oldest > time) {
            return 0;
        }
        let last = self.nodes.times(self.right.finger()).last();
        if last.is_some_and(|youngest| *youngest <= time) {
            self.evict_all();
            return before;
        }
        if is_leaf(self.root) {
            let cut = self.nodes.up_to(self.root, time);
            self.nodes.drop_front(self.root, cut);
            self.touch(self.root);
        } else if time < self.nodes.times(self.root)[0] {
            self.cut_below_left_spine(time);
        } else {
            self.cut_below_right_spine(time);
        }
        self.refresh_spines();
        self.len = self.counted();
        self.give_back();
        before - self.len
    }

    /// The subtree that was the tree goes to the free list in one piece.
    fn evict_all(&mut self) {
        self.discard(self.root);
        let root = self.nodes.allocate(0);
        self.set_root(root);
        self.refresh_spines();
        self.len = 0;
        self.give_back();
    }

    fn discard(&mut self, id: Id) {
        let deferred = self.fingers.is_some_and(|options| options.free_list);
        self.nodes.cut(id, deferred);
    }

    /// The boundary ends below a node of the left spine, which has a right sibling.
    fn cut_below_left_spine(&mut self, time: i64) {
        let (top, _) = self.left.climb(|separator| time < separator);
        let parent = self.nodes.parent(top);
        let neighbor = self.nodes.child(parent, 1);
        let steps = self.boundary(top, (neighbor, parent, 0), time);
        let gone = self.pass_up(&steps);
        let start = if gone { self.repair_loop(parent) } else { top };
        self.thread_left(start);
    }

    /// The boundary ends below a node of the right spine: whatever is above or left of it
    /// goes, and it becomes the root.
    fn cut_below_right_spine(&mut self, time: i64) {
        let last = *self.nodes.times(self.root).last().expect("an inner node");
        let top = if time < last {
            self.root
        } else {
            self.right.climb(|separator| separator <= time).0
        };
        let steps = self.boundary(top, (NONE, NONE, 0), time);
        let gone = self.pass_up(&steps);
        debug_assert!(!gone, "a node without a neighbour stays");
        self.make_node_root(top);
        if !is_leaf(top) && self.nodes.len(top) == 0 {
            // Make child root.
            self.height_decrease();
        }
        self.thread_left(self.root);
    }

    /// Step 1: the levels from `top` down; stops early where `time` itself is found.
    fn boundary(&self, top: Id, beside: (Id, Id, usize), time: i64) -> Vec<BoundaryLevel> {
        let (mut node, (mut neighbor, mut ancestor, mut between)) = (top, beside);
        let mut steps = Vec::new();
        loop {
            steps::Step::Visit.note();
            let cut = self.nodes.up_to(node, time);
            steps.push(BoundaryLevel {
                node,
                cut,
                neighbor,
                ancestor,
                between,
            });
            let found = cut > 0 && self.nodes.times(node)[cut - 1] == time;
            if is_leaf(node) || (found && self.ties == Ties::Combine) {
                return steps;
            }
            if cut < self.nodes.len(node) {
                neighbor = self.nodes.child(node, cut + 1);
                (ancestor, between) = (node, cut);
            } else if neighbor != NONE {
                neighbor = self.nodes.child(neighbor, 0);
            }
            node = self.nodes.child(node, cut);
        }
    }

    /// Step 2, the eviction loop. Says whether the topmost node was merged away; the entry
    /// behind it is then used up, and both are still in its parent.
    fn pass_up(&mut self, steps: &[BoundaryLevel]) -> bool {
        for step in steps {
            self.set_left(step.node);
        }
        let mut gone = false;
        // The parent of a neighbour that changed.
        let mut affected = NONE;
        for step in steps.iter().rev() {
            for at in 0..step.cut {
                if let Some(child) = self.nodes.children(step.node).get(at) {
                    self.discard(child.id);
                }
            }
            if gone && step.cut == self.nodes.len(step.node) {
                // All of its children went, the last one into a neighbour's.
                self.nodes.drop_front(step.node, step.cut);
                self.nodes.release(step.node);
                self.set_left(step.neighbor);
                continue;
            }
            self.nodes
                .drop_front(step.node, step.cut + usize::from(gone));
            let repair = self.fix_underflow(step);
            gone = repair == Repair::Merged;
            if repair == Repair::Moved {
                affected = self.nodes.parent(step.neighbor);
            } else if affected != NONE && affected == step.neighbor {
                self.touch(step.neighbor);
                affected = self.nodes.parent(step.neighbor);
            }
        }
        gone
    }

    /// Step 2, the repair loop: the first child of `node` is gone, and so on upwards.
    /// Gives the highest node of the left spine that changed.
    fn repair_loop(&mut self, node: Id) -> Id {
        let mut node = node;
        loop {
            self.nodes.drop_front(node, 1);
            if node == self.root {
                if self.nodes.len(node) == 0 {
                    self.height_decrease();
                    return self.root;
                }
                self.touch(node);
                return node;
            }
            let parent = self.nodes.parent(node);
            let step = BoundaryLevel {
                node,
                cut: 0,
                neighbor: self.nodes.child(parent, 1),
                ancestor: parent,
                between: 0,
            };
            if self.fix_underflow(&step) != Repair::Merged {
                self.touch(node);
                return node;
            }
            node = parent;
        }
    }

    /// Brings a node of the new left spine back to its arity, with its neighbour's help.
    fn fix_underflow(&mut self, step: &BoundaryLevel) -> Repair {
        let BoundaryLevel {
            node,
            neighbor,
            ancestor,
            between,
            ..
        } = *step;
        let arity = self.nodes.arity(node);
        if neighbor == NONE || arity >= self.min_arity {
            return Repair::None;
        }
        let deficit = self.min_arity - arity;
        let surplus = self.nodes.arity(neighbor) - self.min_arity;
        let separator = self.nodes.take(ancestor, between);
        if deficit <= surplus {
            // Move batch.
            steps::Step::Borrow.note();
            let (time, value) = self.nodes.rotate_front(neighbor, node, deficit, separator);
            self.nodes.exchange(ancestor, between, time, value);
            self.touch(neighbor);
            self.touch(ancestor);
            return Repair::Moved;
        }
        steps::Step::Merge.note();
        self.nodes.prepend(node, separator, neighbor);
        self.nodes.release(node);
        self.set_left(neighbor);
        Repair::Merged
    }

    /// Frees everything above a node of the right spine, and left of it.
    fn make_node_root(&mut self, top: Id) {
        let mut above = self.nodes.parent(top);
        while above != NONE {
            for at in 0..self.nodes.len(above) {
                self.discard(self.nodes.child(above, at));
            }
            let next = self.nodes.parent(above);
            self.nodes.release(above);
            above = next;
        }
        self.set_root(top);
    }

    /// Step 3, as far as it is about the left spine.
    fn thread_left(&mut self, start: Id) {
        let mut id = start;
        self.set_left(id);
        while !is_leaf(id) {
            id = self.nodes.child(id, 0);
            self.set_left(id);
        }
    }

    fn set_left(&mut self, id: Id) {
        self.left.set(self.nodes.level(id), id);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    Moved,
    Merged,
}
