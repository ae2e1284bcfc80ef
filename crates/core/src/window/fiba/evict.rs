//! Evicts at the front, in bulk by cutting along a boundary, and anywhere.

use super::leaf::SortedRun;
use super::path::Id;
use super::tree::{Spine, Tree};
use crate::monoid::Monoid;
use crate::window::steps::Step;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    // -- the front -------------------------------------------------------------------

    /// Moves nothing and combines nothing, but for every `L`th entry.
    #[inline(always)]
    pub(super) fn evict(&mut self) -> Option<i64> {
        let leaf = &mut self.leaves[self.left[0] as usize];
        let start = leaf.start();
        // The time is read only if it is needed: at the far end of a large window it is a
        // cache miss.
        let time = leaf.times[start];
        if start + 1 < self.known
            && !leaf.is_promoted(start)
            && (self.staged.oldest == i64::MAX || time < self.staged.oldest)
        {
            leaf.start += 1;
            if std::mem::needs_drop::<M::In>() {
                leaf.values[start] = M::In::default();
            }
            self.drop_suffix(start, start + 1);
            self.evicted += 1;
            return Some(time);
        }
        self.evict_otherwise()
    }

    #[inline(never)]
    fn evict_otherwise(&mut self) -> Option<i64> {
        if self.tree_len() == 0 {
            return None;
        }
        if self.staged.oldest <= self.left_leaf().first_time() {
            self.flush_staged();
        }
        let id = self.left[0];
        let (at, time) = (self.left_leaf().start(), self.left_leaf().first_time());
        self.release_slots(id, at, at + 1);
        self.leaf_mut(id).pop_front();
        self.drop_suffix(at, at + 1);
        let (start, end) = (self.leaf(id).start(), self.leaf(id).end());
        self.evicted += 1;
        if start == end {
            self.drop_left_leaf();
        } else if start >= self.flip {
            self.flip_leaf();
        } else if start >= self.known {
            self.rebuild_suffix();
        }
        Some(time)
    }

    /// Drops the folds over evicted entries, if they own memory.
    #[inline]
    fn drop_suffix(&mut self, from: usize, to: usize) {
        if std::mem::needs_drop::<M::Partial>() {
            self.suffix[from..to].fill(self.monoid.identity());
        }
    }

    /// The left finger is empty: the next leaf becomes the finger.
    #[cold]
    #[inline(never)]
    fn drop_left_leaf(&mut self) {
        let id = self.left[0];
        if self.height() == 0 {
            if self.leaves.len() > Self::SPARE_LEAVES {
                return self.clear();
            }
            self.leaf_mut(id).reset();
            self.flip = 0;
            self.known = 0;
            self.tail = self.monoid.identity();
            return;
        }
        self.note_size();
        let parent = self.left[1];
        self.children_mut(parent).remove(0);
        self.free_leaf(id);
        self.stale.left = 1;
        self.stale.suffix = true;
        self.rebalance_left(1);
        self.finish_eviction();
        self.compact_if_few();
    }

    /// Repairs after a structural change; a tree that became a leaf takes in what is
    /// staged, which only taller trees do.
    fn finish_eviction(&mut self) {
        self.find_spines();
        if self.height() == 0 {
            self.stale.tail = true;
        }
        self.repair();
        if self.height() == 0 {
            self.flush_staged();
            self.set_stages_all(false);
        }
    }

    // -- bulk ------------------------------------------------------------------------

    /// Evicts all entries with times up to `time` in O(log m), m their number.
    pub(super) fn evict_until(&mut self, time: i64) -> usize {
        if self.tree_len() == 0 {
            return 0;
        }
        if self.staged.oldest <= time || time >= self.right_leaf().last_time() {
            self.flush_staged();
        }
        if time < self.left_leaf().first_time() {
            return 0;
        }
        if time >= self.right_leaf().last_time() {
            let count = self.tree_len();
            self.clear();
            return count;
        }
        self.note_size();
        let count = if time < self.left_leaf().last_time() {
            self.evict_within_finger(time)
        } else {
            self.cut(time)
        };
        self.evicted += count as u64;
        self.compact_if_few();
        count
    }

    fn evict_within_finger(&mut self, time: i64) -> usize {
        let id = self.left[0];
        let start = self.left_leaf().start();
        let count = self.trim(id, time);
        self.drop_suffix(start, start + count);
        let start = self.left_leaf().start();
        if start >= self.flip {
            self.flip_leaf();
        } else if start >= self.known {
            // The second cut within a leaf: more will follow, and cost nothing then.
            self.rebuild_suffix();
        }
        count
    }

    /// Drops the entries of a leaf up to `time`, moving nothing.
    fn trim(&mut self, id: Id, time: i64) -> usize {
        let (start, upto) = (self.leaf(id).start(), self.leaf(id).upper(time));
        self.release_slots(id, start, upto);
        let leaf = self.leaf_mut(id);
        if std::mem::needs_drop::<M::In>() {
            leaf.values[start..upto].fill_with(M::In::default);
        }
        leaf.start = upto as u16;
        upto - start
    }

    /// Cuts the tree along the boundary at `time`, which lies right of the left finger
    /// and left of the youngest entry.
    fn cut(&mut self, time: i64) -> usize {
        let mut top = 1;
        while top < self.height() && time >= self.children(self.left[top + 1])[1].key {
            top += 1;
            Step::Visit.note();
        }
        let spine = Spine {
            left: true,
            right: top == self.height(),
        };
        let count = self.cut_below(top, self.left[top], spine, time);
        if self.children(self.left[top]).is_empty() {
            let emptied = self.left[top];
            self.free_inner(emptied);
            top += 1;
            let parent = self.left[top];
            self.children_mut(parent).remove(0);
        }
        self.stale.left = top;
        // After few entries, the next cut is likely within the new finger.
        match 2 * count < L {
            true => self.stale.suffix = true,
            false => self.stale.head = true,
        }
        if top == self.height() {
            self.stale.right = top;
            self.stale.tail = true;
        }
        self.find_left_below(top);
        self.rebalance_left(top);
        self.finish_eviction();
        count
    }

    /// Cuts below one boundary node; what lies wholly before the boundary goes to the
    /// free list unseen. The node may be left without children.
    fn cut_below(&mut self, level: usize, id: Id, spine: Spine, time: i64) -> usize {
        Step::Visit.note();
        let boundary = self.child_behind(id, time);
        let arity = self.children(id).len();
        let mut count = 0;
        for at in 0..boundary {
            let (child, known) = (self.children(id)[at].id, self.children(id)[at].count);
            count += if spine.of_child(at, arity).left {
                self.count_left(level - 1)
            } else {
                known as usize
            };
            self.discard(child, level - 1);
        }
        let child = self.children(id)[boundary].id;
        let child_spine = spine.of_child(boundary, arity);
        count += if level == 1 {
            self.trim(child, time)
        } else {
            self.cut_below(level - 1, child, child_spine, time)
        };
        let gone = self.is_empty_node(child, level - 1);
        if gone && level == 1 {
            self.free_leaf(child);
        } else if gone {
            self.free_inner(child);
        }
        self.children_mut(id).drain(..boundary + usize::from(gone));
        count
    }

    fn is_empty_node(&self, id: Id, level: usize) -> bool {
        match level {
            0 => self.leaf(id).len() == 0,
            _ => self.children(id).is_empty(),
        }
    }

    /// Entries below the left spine's node of `level`; no count is kept for it.
    fn count_left(&self, level: usize) -> usize {
        let mut count = self.left_leaf().len();
        for level in 1..=level {
            let children = &self.children(self.left[level])[1..];
            count += children
                .iter()
                .map(|child| child.count as usize)
                .sum::<usize>();
        }
        count
    }

    // -- arity -----------------------------------------------------------------------

    /// Restores the arity of the left spine after nodes up to `top` lost children.
    ///
    /// Upwards first, as far as nodes underflow; then down from `top`, where each node is
    /// left with one child to spare so that its own child may merge. Going down, every
    /// node has a sibling under the same parent.
    fn rebalance_left(&mut self, top: usize) {
        let mut level = top;
        loop {
            self.collapse_root();
            let need = Self::MIN_ARITY + usize::from(level == top && top > 1);
            if level >= self.height() || self.children(self.left[level]).len() >= need {
                break;
            }
            self.balance_leftmost(level);
            level += 1;
        }
        for level in (1..top).rev() {
            self.find_left_below(level + 1);
            if level >= self.height() {
                continue;
            }
            if self.children(self.left[level]).len() <= Self::MIN_ARITY {
                self.balance_leftmost(level);
                self.collapse_root();
            }
        }
    }

    /// Balances the left spine's node of `level` with its sibling.
    fn balance_leftmost(&mut self, level: usize) {
        let spine = Spine {
            left: true,
            right: level + 1 == self.height(),
        };
        self.balance(level + 1, self.left[level + 1], spine, 0);
    }

    /// A root with a single child gives way to it ("make child root").
    fn collapse_root(&mut self) {
        while self.height() > 0 && self.children(self.left[self.height()]).len() == 1 {
            let height = self.height();
            let root = self.left[height];
            let child = self.children(root)[0].id;
            self.free_inner(root);
            self.left.pop();
            self.right.pop();
            self.left[height - 1] = child;
            self.right[height - 1] = child;
            self.stale.left = height;
            self.stale.right = height;
            self.stale.suffix = true;
            self.stale.tail = true;
        }
    }

    /// Derives the spines from the highest stale level down.
    pub(super) fn find_spines(&mut self) {
        let from = self.stale.left.max(self.stale.right).min(self.height());
        for level in (0..from).rev() {
            let children = self.children(self.right[level + 1]);
            let last = children.len() - 1;
            self.right[level] = children[last].id;
            self.drop_child_agg(self.right[level + 1], last);
        }
        self.find_left_below(from);
    }

    fn find_left_below(&mut self, level: usize) {
        for below in (0..level.min(self.height())).rev() {
            self.left[below] = self.children(self.left[below + 1])[0].id;
            self.drop_child_agg(self.left[below + 1], 0);
        }
    }

    /// Drops the cached aggregate of a child that joined a spine, if it owns memory.
    fn drop_child_agg(&mut self, parent: Id, at: usize) {
        if std::mem::needs_drop::<M::Partial>() {
            self.children_mut(parent)[at].agg = self.monoid.identity();
        }
    }

    /// Merges child `at` of an inner node with the next one, or shares their contents
    /// evenly; `level` is the parent's. Brings up to date what the parent keeps of both.
    fn balance(&mut self, level: usize, parent: Id, spine: Spine, at: usize) {
        let children = self.children(parent);
        let (left, right) = (children[at].id, children[at + 1].id);
        let key = children[at + 1].key;
        let merged = if level == 1 {
            self.balance_leaves(left, right)
        } else {
            self.balance_inners(left, right, key)
        };
        match merged {
            None => {
                self.children_mut(parent).remove(at + 1);
            }
            Some(key) => self.children_mut(parent)[at + 1].key = key,
        }
        self.stale.mark(level, spine);
        if level == 1 {
            self.stale.mark_finger(spine);
        }
        self.refresh(parent, at, level - 1, spine);
        if merged.is_some() {
            self.refresh(parent, at + 1, level - 1, spine);
        }
    }

    /// `None` if merged into `left`, else the new key of `right`.
    fn balance_inners(&mut self, left: Id, right: Id, key: i64) -> Option<i64> {
        let mut all = std::mem::take(self.children_mut(left));
        let mut younger = std::mem::take(self.children_mut(right));
        younger[0].key = key;
        all.append(&mut younger);
        let most = (F * 3 / 4).max(2 * Self::MIN_ARITY);
        if all.len() <= most {
            *self.children_mut(left) = all;
            self.free_inner(right);
            return None;
        }
        let younger = all.split_off(all.len().div_ceil(2));
        let key = younger[0].key;
        *self.children_mut(left) = all;
        *self.children_mut(right) = younger;
        Some(key)
    }

    fn balance_leaves(&mut self, left: Id, right: Id) -> Option<i64> {
        let mut all = std::mem::take(&mut self.scratch);
        for id in [left, right] {
            let leaf = self.leaf(id);
            leaf.copy_out(leaf.start(), leaf.end(), &mut all);
            self.leaf_mut(id).reset();
        }
        let key = self.share_leaves(left, right, &all);
        all.clear();
        self.scratch = all;
        key
    }

    fn share_leaves(&mut self, left: Id, right: Id, all: &SortedRun<M::In>) -> Option<i64> {
        let most = (L * 3 / 4).max(2 * Self::MIN_LEAF);
        if all.len() <= most {
            self.leaf_mut(left).extend(all.slice(0, all.len()));
            self.free_leaf(right);
            return None;
        }
        let half = all.len().div_ceil(2);
        self.leaf_mut(left).extend(all.slice(0, half));
        self.leaf_mut(right).extend(all.slice(half, all.len()));
        Some(all.times[half])
    }

    // -- anywhere --------------------------------------------------------------------

    /// Evicts the first entry of that time; nothing may be staged.
    pub(super) fn evict_at(&mut self, time: i64) -> bool {
        if self.tree_len() == 0 {
            return false;
        }
        if time == self.left_leaf().first_time() {
            self.evict();
            return true;
        }
        self.note_size();
        let (level, id, spine) = self.lowest_spine_node(|key| time > key, |key| time < key);
        if !self.remove_below(level, id, spine, time) {
            return false;
        }
        self.evicted += 1;
        self.stale.mark(level, spine);
        self.stale.mark_finger(spine);
        self.fix_underflow_above(level, spine);
        self.collapse_root();
        self.finish_eviction();
        self.compact_if_few();
        true
    }

    /// Removes the first entry of that time below a node, and fixes underflows below it.
    fn remove_below(&mut self, level: usize, id: Id, spine: Spine, time: i64) -> bool {
        Step::Visit.note();
        if level == 0 {
            return self.remove_slot(id, time);
        }
        // Entries of one time may begin in the last child with a smaller key and go on
        // in those whose key is equal.
        let mut at = self.child_before(id, time);
        loop {
            let arity = self.children(id).len();
            let child = self.children(id)[at].id;
            if self.remove_below(level - 1, child, spine.of_child(at, arity), time) {
                self.fix_underflow(level, id, spine, at);
                return true;
            }
            at += 1;
            if at == arity || self.children(id)[at].key > time {
                return false;
            }
        }
    }

    fn remove_slot(&mut self, id: Id, time: i64) -> bool {
        let leaf = &self.leaves[id as usize];
        let at = leaf.lower(time);
        if at == leaf.end() || leaf.times[at] != time {
            return false;
        }
        self.release_slots(id, at, at + 1);
        self.leaf_mut(id).remove(at);
        true
    }

    /// After an entry left child `at` of a node of `level`: merges the child if it is
    /// underfull, and brings up to date what the node keeps of it.
    fn fix_underflow(&mut self, level: usize, id: Id, spine: Spine, at: usize) {
        let arity = self.children(id).len();
        let child = self.children(id)[at].id;
        if self.is_empty_node(child, level - 1) {
            debug_assert_eq!(level, 1, "inner nodes have two children");
            self.children_mut(id).remove(at);
            self.free_leaf(child);
            return;
        }
        if !self.is_underfull(child, level - 1, spine.of_child(at, arity)) {
            self.refresh(id, at, level - 1, spine);
            return;
        }
        self.balance(level, id, spine, if at + 1 < arity { at } else { at - 1 });
    }

    fn is_underfull(&self, id: Id, level: usize, spine: Spine) -> bool {
        match level {
            0 => !spine.any() && self.leaf(id).len() < Self::MIN_LEAF,
            _ => self.children(id).len() < Self::MIN_ARITY,
        }
    }

    /// Fixes underflows upwards from the spine node of `level`.
    fn fix_underflow_above(&mut self, mut level: usize, spine: Spine) {
        while level < self.height() {
            let id = self.spine_node(level, spine);
            if !self.is_empty_node(id, level) && !self.is_underfull(id, level, spine) {
                break;
            }
            let (parent, parent_spine, at) = self.parent_on_spine(level, spine);
            self.fix_underflow(level + 1, parent, parent_spine, at);
            level += 1;
            self.stale.mark(level, parent_spine);
            self.stale.mark_finger(parent_spine);
        }
    }
}
