//! Rebalancing after an insert or evict (FiBA §3.2, figs. 7 and 8): split, merge, move, and
//! changes of height. Π↑ are repaired on the way up, other aggregates in the pass down.

use super::node::known;
use super::{Id, Tree, is_leaf};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::steps::Step;

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    /// Splits overfull nodes from a leaf upwards. Returns the topmost node that changed, which
    /// the caller refreshes, and its level.
    #[inline(always)]
    pub(super) fn rebalance_for_insert(&mut self, leaf: Id) -> (Id, usize) {
        let (mut node, mut level) = (leaf, 0);
        while self.nodes.len(node) > self.most() {
            if node == self.root {
                self.height_increase();
            }
            node = match level {
                0 => self.split::<true>(node, level),
                _ => self.split::<false>(node, level),
            };
            level += 1;
        }
        (node, level)
    }

    pub(crate) fn height_increase(&mut self) {
        let old = self.root;
        let root = self.nodes.allocate(self.nodes.level(old) + 1);
        self.nodes.set_first_child(root, old);
        self.set_root(root);
    }

    /// Replaces the root by its only child.
    pub(crate) fn height_decrease(&mut self) {
        let old = self.root;
        let child = self.nodes.child(old, 0);
        self.nodes.release(old);
        self.set_root(child);
    }

    /// 2μ + 1 children become μ + 1 and μ. Returns the parent.
    #[inline(never)]
    fn split<const LEAF: bool>(&mut self, node: Id, level: usize) -> Id {
        Step::Split.note();
        let node = known::<LEAF>(node);
        let sibling = known::<LEAF>(self.nodes.allocate(level));
        let (time, value) = self.nodes.split(node, self.min_arity, sibling);
        let (parent, at) = self.place(node, level);
        let on_spine = self.fingers.is_some() && self.right.at(level) == node;
        let child = match on_spine {
            true => self.nodes.child_of(sibling),
            false => self.whole_child(sibling),
        };
        self.hand_right_end(node, sibling, level);
        self.nodes.set_parent(sibling, parent);
        self.nodes.inner_mut(parent).insert(at, time, value, child);
        self.touch_child::<LEAF>(parent, at, level);
        parent
    }

    /// The parent of a node and the position there: that of the last search, unless the search
    /// began below the parent.
    #[inline(always)]
    fn place(&self, node: Id, level: usize) -> (Id, usize) {
        let parent = known::<false>(self.nodes.parent(node));
        let at = self.path.at(level + 1);
        match self.nodes.children(parent).get(at) {
            Some(child) if child.id == node => (parent, at),
            _ => (parent, self.nodes.position(node)),
        }
    }

    /// Replaces `from` by `to` on the right spine: `to` was split off at its right, or took all
    /// of its contents.
    #[inline]
    pub(crate) fn hand_right_end(&mut self, from: Id, to: Id, level: usize) {
        if self.right.at(level) == from {
            self.right.set(level, to);
        }
    }

    /// Repairs underfull nodes from a leaf upwards. Returns the topmost node that changed, which
    /// the caller refreshes, and its level.
    #[inline(always)]
    pub(super) fn rebalance_for_evict(&mut self, leaf: Id) -> (Id, usize) {
        let (mut node, mut level) = (leaf, 0);
        while node != self.root && self.nodes.arity(node) < self.min_arity {
            let parent = match level {
                0 => self.fill_up::<true>(node, level),
                _ => self.fill_up::<false>(node, level),
            };
            if parent == self.root && self.nodes.len(parent) == 0 {
                self.height_decrease();
                return (self.root, level);
            }
            node = parent;
            level += 1;
        }
        (node, level)
    }

    /// Brings a node that lacks one entry back to its arity. Returns the parent.
    #[inline(never)]
    fn fill_up<const LEAF: bool>(&mut self, node: Id, level: usize) -> Id {
        let (parent, at) = self.place(known::<LEAF>(node), level);
        let sibling_at = self.pick_eviction_sibling(parent, at);
        let sibling = known::<LEAF>(self.nodes.child(parent, sibling_at));
        if self.nodes.arity(sibling) > self.min_arity {
            self.move_one::<LEAF>(parent, at, sibling_at, level);
        } else {
            self.merge::<LEAF>(parent, at.min(sibling_at), level);
        }
        parent
    }

    /// The larger of the siblings next to child `at`.
    #[inline]
    fn pick_eviction_sibling(&self, parent: Id, at: usize) -> usize {
        let arity = |at: usize| self.nodes.arity(self.nodes.child(parent, at));
        if at == 0 {
            return 1;
        }
        let last = self.nodes.len(parent);
        if at < last && arity(at + 1) > arity(at - 1) {
            at + 1
        } else {
            at - 1
        }
    }

    /// Merges child `at + 1` into child `at`, with the entry between them.
    #[inline(always)]
    fn merge<const LEAF: bool>(&mut self, parent: Id, at: usize, level: usize) {
        Step::Merge.note();
        let node = known::<LEAF>(self.nodes.child(parent, at));
        let sibling = known::<LEAF>(self.nodes.child(parent, at + 1));
        let (time, value) = self.nodes.remove(known::<false>(parent), at);
        self.nodes.append(node, time, value);
        self.nodes.pour(sibling, node);
        self.hand_right_end(sibling, node, level);
        self.nodes.release(sibling);
        self.touch_child::<LEAF>(parent, at, level);
    }

    /// Moves one entry and one child from a sibling that is not at its least arity, by way of
    /// the entry between the two.
    #[inline(always)]
    fn move_one<const LEAF: bool>(
        &mut self,
        parent: Id,
        at: usize,
        sibling_at: usize,
        level: usize,
    ) {
        Step::Borrow.note();
        let parent = known::<false>(parent);
        let node = known::<LEAF>(self.nodes.child(parent, at));
        let sibling = known::<LEAF>(self.nodes.child(parent, sibling_at));
        let between = at.min(sibling_at);
        if sibling_at > at {
            let separator = self.nodes.take(parent, between);
            let (time, value) = self.nodes.rotate_first(sibling, node, separator);
            self.nodes.exchange(parent, between, time, value);
        } else {
            let (time, value, child) = self.nodes.pop_back(sibling);
            let (time, value) = self.nodes.exchange(parent, between, time, value);
            self.nodes.push_front(node, time, value, child);
        }
        self.touch_child::<LEAF>(parent, at, level);
        self.touch_child::<LEAF>(parent, sibling_at, level);
    }

    /// Evicts from an inner node: replaces the entry by a neighbour from a leaf.
    pub(super) fn evict_inner(&mut self, node: Id, at: usize) {
        let left = self.nodes.child(node, at);
        let right = self.nodes.child(node, at + 1);
        let (leaf, from) = if self.nodes.arity(right) > self.min_arity {
            (self.oldest_leaf(right), 0)
        } else {
            let leaf = self.youngest_leaf(left);
            (leaf, self.nodes.len(leaf) - 1)
        };
        let (time, value) = self.nodes.remove(leaf, from);
        self.nodes.exchange(node, at, time, value);
        let (top, level) = self.rebalance_for_evict(leaf);
        if top == self.root || level >= self.nodes.level(node) {
            self.refresh(top, level, -1);
            return;
        }
        // Rebalancing ended below the node, so its id is still valid.
        let mut id = top;
        while id != node {
            self.touch(id);
            id = self.nodes.parent(id);
        }
        self.refresh(node, self.nodes.level(node), -1);
    }

    pub(super) fn oldest_leaf(&self, id: Id) -> Id {
        let mut id = id;
        while !is_leaf(id) {
            id = self.nodes.child(id, 0);
            Step::Visit.note();
        }
        id
    }

    fn youngest_leaf(&self, id: Id) -> Id {
        let mut id = id;
        while !is_leaf(id) {
            id = self.nodes.last_child(id);
            Step::Visit.note();
        }
        id
    }
}
