//! Bulk insertion among the inner nodes: from the lowest common spine node down to the
//! sites, and up again splitting what overflows. (Bulk FiBA §5, one pass of recursion in
//! place of a queue of treelets per level.)

use super::leaf::RunSlice;
use super::path::Id;
use super::search::{count_before, gallop};
use super::tree::{Child, Children, Siblings, Spine, Tree};
use crate::monoid::Monoid;
use crate::window::steps::Step;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// Inserts a piece, none of it younger than all entries.
    ///
    /// Finger search from the nearer end finds the lowest spine node above all sites;
    /// one recursive pass goes down to the sites and up again, sharing the paths.
    pub(super) fn insert_late(&mut self, slice: RunSlice<'_, M::In>) {
        let (lo, hi) = (slice.times()[0], slice.times()[slice.len() - 1]);
        let (level, id, spine) = self.lowest_spine_node(|key| lo >= key, |key| hi < key);
        self.stale.mark(level, spine);
        self.stale.mark_finger(spine);
        let siblings = self.insert_below(level, id, spine, slice);
        self.add_above(level, spine, siblings);
        self.find_spines();
    }

    /// Interleaves below `id`; gives the nodes split off to its right.
    fn insert_below(
        &mut self,
        level: usize,
        id: Id,
        spine: Spine,
        mut rest: RunSlice<'_, M::In>,
    ) -> Siblings<M::Partial> {
        Step::Visit.note();
        if level == 0 {
            return self.interleave(id, spine, rest);
        }
        if level == 2 && rest.len() >= 4 {
            self.fetch_sites(id, rest.times());
        }
        let mut at = 0;
        while !rest.is_empty() {
            let children = self.children(id);
            let arity = children.len();
            at += count_before(&children[at + 1..], |child| child.key <= rest.times()[0]);
            let count = match children.get(at + 1) {
                Some(next) => gallop(rest.times(), |time| *time < next.key),
                None => rest.len(),
            };
            let (slice, behind) = rest.split(count);
            rest = behind;
            if level == 1 && self.spill(id, spine, at, slice) {
                continue;
            }
            let child = self.children(id)[at].id;
            let siblings = self.insert_below(level - 1, child, spine.of_child(at, arity), slice);
            self.note_inserted(level, id, spine, at, &siblings, slice);
            let split = siblings.len();
            self.children_mut(id).splice(at + 1..at + 1, siblings);
            at += split;
        }
        self.split_inner(level, id, spine)
    }

    /// Reads ahead, side by side, what the insertions below a node of level 2 will read
    /// one after the other: in a large tree every leaf is a few cache misses.
    fn fetch_sites(&self, id: Id, times: &[i64]) {
        if std::mem::needs_drop::<M::In>() {
            return;
        }
        let mut sites = Vec::with_capacity(times.len());
        let mut from = 0;
        while from < times.len() {
            let above = self.children(id);
            let at = self.child_behind(id, times[from]);
            let parents = self.children(above[at].id);
            let site = self.child_behind(above[at].id, times[from]);
            sites.push(parents[site].id);
            let next = parents.get(site + 1).or(above.get(at + 1));
            from += next.map_or(times.len(), |next| {
                gallop(&times[from..], |time| *time < next.key)
            });
        }
        for site in sites {
            let leaf = self.leaf(site);
            std::hint::black_box(leaf.end);
            for at in (0..L).step_by((L / 4).max(1)) {
                std::hint::black_box(leaf.times[at]);
                std::hint::black_box(leaf.values[at].clone());
            }
        }
    }

    /// Brings up to date what `id` keeps of its child `at` after an insertion below it.
    fn note_inserted(
        &mut self,
        level: usize,
        id: Id,
        spine: Spine,
        at: usize,
        siblings: &[Child<M::Partial>],
        slice: RunSlice<'_, M::In>,
    ) {
        let child_spine = spine.of_child(at, self.children(id).len());
        let still_last = child_spine.right && siblings.is_empty();
        if child_spine.left || still_last {
            return;
        }
        let few = slice.len() < if level == 1 { L / 4 } else { F / 4 };
        let plain = siblings.is_empty() && slice.run.promoted.is_empty();
        let (agg, count) = if self.monoid.commutative() && few && plain {
            let child = &self.children(id)[at];
            let agg = self.monoid.combine(&child.agg, &self.fold_slice(slice));
            (agg, self.count_of(child.id, level - 1))
        } else {
            self.summary(self.children(id)[at].id, level - 1)
        };
        let child = &mut self.children_mut(id)[at];
        child.agg = agg;
        child.count = count;
    }

    fn count_of(&self, id: Id, level: usize) -> u32 {
        match level {
            0 => self.leaf(id).len() as u32,
            _ => self.children(id).iter().map(|child| child.count).sum(),
        }
    }

    /// Splits an inner node of more than `F` children into even parts.
    fn split_inner(&mut self, level: usize, id: Id, spine: Spine) -> Siblings<M::Partial> {
        let arity = self.children(id).len();
        if arity <= F {
            return Vec::new();
        }
        let parts = arity.div_ceil(F);
        let mut siblings = Vec::with_capacity(parts - 1);
        let mut rest = self.children_mut(id).split_off(arity / parts);
        for part in 1..parts {
            let size = arity * (part + 1) / parts - arity * part / parts;
            let tail = rest.split_off(size);
            let last = part + 1 == parts;
            siblings.push(self.sibling(level, rest, spine.right && last));
            rest = tail;
        }
        siblings
    }

    fn sibling(
        &mut self,
        level: usize,
        children: Children<M::Partial>,
        on_right: bool,
    ) -> Child<M::Partial> {
        let key = children[0].key;
        let id = self.new_inner(children);
        let mut child = self.new_child(key, id);
        if !on_right {
            (child.agg, child.count) = self.summary(id, level);
        }
        child
    }

    /// Hands split-off nodes to the spine above `level`, as far up as nodes overflow.
    fn add_above(&mut self, mut level: usize, spine: Spine, mut siblings: Siblings<M::Partial>) {
        while !siblings.is_empty() {
            if level == self.height() {
                self.grow_root(siblings);
                level += 1;
                siblings = self.split_inner(level, self.left[level], Spine::ROOT);
                continue;
            }
            let (parent, parent_spine, at) = self.parent_on_spine(level, spine);
            let children = self.children(parent);
            let child = children[at].id;
            if !parent_spine.of_child(at, children.len()).left {
                let (agg, count) = self.summary(child, level);
                let child = &mut self.children_mut(parent)[at];
                (child.agg, child.count) = (agg, count);
            }
            self.children_mut(parent).splice(at + 1..at + 1, siblings);
            level += 1;
            self.stale.mark(level, parent_spine);
            siblings = self.split_inner(level, parent, parent_spine);
        }
    }
}
