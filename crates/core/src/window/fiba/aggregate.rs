//! Keeps location-sensitive partial aggregates, and answers queries from them.
//!
//! `query = suffix[start] ⊗ mid ⊗ tail`: the left finger, all between the fingers, the
//! right finger. Structural code changes contents and marks what is stale; `repair`
//! recomputes it level by level, down each spine as far as it was touched.

use super::leaf::RunSlice;
use super::path::Id;
use super::tree::{Child, Spine, Stale, Tree};
use crate::monoid::{HandleSlot, Monoid};
use crate::window::steps::Step;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    pub(super) fn lift_slot(&self, slot: &M::In, promoted: bool) -> M::Partial {
        if promoted {
            self.slab.get(slot.handle()).clone()
        } else {
            self.monoid.lift(slot)
        }
    }

    /// `acc ⊗` the fold of `values`, `promoted_at` giving the positions of handles.
    fn fold_slots(&self, values: &[M::In], promoted: impl Iterator<Item = usize>) -> M::Partial {
        let mut acc: Option<M::Partial> = None;
        let mut join = |part: M::Partial| {
            acc = Some(match &acc {
                Some(acc) => self.monoid.combine(acc, &part),
                None => part,
            });
        };
        let mut from = 0;
        for at in promoted {
            if from < at {
                join(self.monoid.fold(&values[from..at]));
            }
            join(self.slab.get(values[at].handle()).clone());
            from = at + 1;
        }
        if from < values.len() {
            join(self.monoid.fold(&values[from..]));
        }
        acc.unwrap_or_else(|| self.monoid.identity())
    }

    /// The fold of slots `from..to` of a leaf.
    pub(super) fn fold_leaf(&self, id: Id, from: usize, to: usize) -> M::Partial {
        let leaf = self.leaf(id);
        let mut bits = leaf.promoted_in(from, to);
        if bits == 0 {
            return self.monoid.fold(&leaf.values[from..to]);
        }
        let promoted = std::iter::from_fn(|| {
            (bits != 0).then(|| {
                let at = bits.trailing_zeros() as usize - from;
                bits &= bits - 1;
                at
            })
        });
        self.fold_slots(&leaf.values[from..to], promoted)
    }

    pub(super) fn fold_slice(&self, slice: RunSlice<'_, M::In>) -> M::Partial {
        let RunSlice { run, from, to } = slice;
        let first = run.promoted.partition_point(|&at| (at as usize) < from);
        let promoted = run.promoted[first..].iter().map(|&at| at as usize);
        let promoted = promoted.take_while(|&at| at < to).map(|at| at - from);
        self.fold_slots(&run.values[from..to], promoted)
    }

    /// The fold of the aggregates of `children`.
    pub(super) fn fold_children(&self, children: &[Child<M::Partial>]) -> M::Partial {
        let Some((first, rest)) = children.split_first() else {
            return self.monoid.identity();
        };
        let mut acc = first.agg.clone();
        for child in rest {
            acc = self.monoid.combine(&acc, &child.agg);
        }
        acc
    }

    /// Π↑ and entry count of a subtree off the spines.
    pub(super) fn summary(&self, id: Id, level: usize) -> (M::Partial, u32) {
        if level == 0 {
            let leaf = self.leaf(id);
            return (
                self.fold_leaf(id, leaf.start(), leaf.end()),
                leaf.len() as u32,
            );
        }
        let children = self.children(id);
        let count = children.iter().map(|child| child.count).sum();
        (self.fold_children(children), count)
    }

    /// Recomputes what `parent` keeps of its child `at`, unless it is on a spine.
    pub(super) fn refresh(&mut self, parent: Id, at: usize, child_level: usize, spine: Spine) {
        let children = self.children(parent);
        if spine.of_child(at, children.len()).any() {
            return;
        }
        let (agg, count) = self.summary(children[at].id, child_level);
        let child = &mut self.children_mut(parent)[at];
        child.agg = agg;
        child.count = count;
    }

    // -- repair ----------------------------------------------------------------------

    /// Recomputes everything marked stale.
    pub(super) fn repair(&mut self) {
        let Stale {
            left,
            right,
            suffix,
            head,
            tail,
        } = std::mem::take(&mut self.stale);
        if left > 0 || right > 0 {
            self.repair_spines(left, right);
        }
        if self.height() == 0 {
            if suffix || head || tail {
                self.flip = self.left_leaf().end();
                self.rebuild_suffix();
                self.rebuild_tail();
            }
            return;
        }
        if suffix {
            self.flip = self.left_leaf().end();
            self.rebuild_suffix();
        } else if head {
            self.flip = self.left_leaf().end();
            self.fold_head();
        }
        if tail {
            self.rebuild_tail();
        }
    }

    /// Π↙ and Π↘ from the given levels down, Π inner if the root is among them.
    fn repair_spines(&mut self, left: usize, right: usize) {
        let height = self.height();
        self.left_agg.resize(height.max(1), self.monoid.identity());
        self.right_agg.resize(height.max(1), self.monoid.identity());
        for level in (1..height.min(left + 1)).rev() {
            let own = self.fold_children(&self.children(self.left[level])[1..]);
            self.left_agg[level] = match self.left_agg.get(level + 1) {
                Some(above) => self.monoid.combine(&own, above),
                None => own,
            };
        }
        for level in (1..height.min(right + 1)).rev() {
            let children = self.children(self.right[level]);
            let own = self.fold_children(&children[..children.len() - 1]);
            self.right_agg[level] = match self.right_agg.get(level + 1) {
                Some(above) => self.monoid.combine(above, &own),
                None => own,
            };
        }
        if left.max(right) >= height {
            self.inner_agg = match height {
                0 => self.monoid.identity(),
                _ => {
                    let children = self.children(self.left[height]);
                    self.fold_children(&children[1..children.len() - 1])
                }
            };
        }
        self.rebuild_mid();
    }

    pub(super) fn rebuild_mid(&mut self) {
        self.mid = if self.height() < 2 {
            self.inner_agg.clone()
        } else {
            let left = self.monoid.combine(&self.left_agg[1], &self.inner_agg);
            self.monoid.combine(&left, &self.right_agg[1])
        };
    }

    /// Folds the left finger as a whole, for the slot at its front.
    pub(super) fn fold_head(&mut self) {
        self.drop_all_suffix();
        let start = self.left_leaf().start();
        self.suffix[start] = self.fold_leaf(self.left[0], start, self.flip);
        self.known = start + 1;
    }

    /// Folds the left finger from `flip` back.
    pub(super) fn rebuild_suffix(&mut self) {
        self.known = self.flip;
        self.drop_all_suffix();
        let leaf = &self.leaves[self.left[0] as usize];
        let (start, flip) = (leaf.start(), self.flip);
        // The far end of a large window is not in cache: fetch its lines side by side.
        if !std::mem::needs_drop::<M::In>() {
            for line in leaf.values[start..flip].chunks(8) {
                std::hint::black_box(line[0].clone());
            }
        }
        let promoted = leaf.promoted_in(start, flip);
        let slots = leaf.values[start..flip]
            .iter()
            .zip(&mut self.suffix[start..flip]);
        let mut acc: Option<M::Partial> = None;
        for (at, (slot, suffix)) in slots.enumerate().rev() {
            let own = if promoted != 0 && leaf.is_promoted(start + at) {
                self.slab.get(slot.handle()).clone()
            } else {
                self.monoid.lift(slot)
            };
            let fold = match &acc {
                Some(acc) => self.monoid.combine(&own, acc),
                None => own,
            };
            *suffix = fold.clone();
            acc = Some(fold);
        }
    }

    /// Drops the folds of the former finger, if they own memory.
    fn drop_all_suffix(&mut self) {
        if std::mem::needs_drop::<M::Partial>() {
            self.suffix.fill(self.monoid.identity());
        }
    }

    fn rebuild_tail(&mut self) {
        let id = self.right[0];
        let leaf = self.leaf(id);
        let from = if self.height() == 0 {
            self.flip
        } else {
            leaf.start()
        };
        let leaf = self.fold_leaf(id, from, leaf.end());
        self.tail = if self.staged.entries.is_empty() || !self.monoid.commutative() {
            leaf
        } else {
            self.monoid.combine(&leaf, &self.staged.agg)
        };
    }

    /// Single leaf: the whole becomes the suffix, the tail starts anew (Two-Stacks flip).
    pub(super) fn flip_leaf(&mut self) {
        self.stale.suffix = true;
        self.repair();
    }

    // -- answers ---------------------------------------------------------------------

    /// Two combines. In a single leaf `mid` is the identity, and the tail may be all.
    #[inline(always)]
    pub(super) fn answer(&self) -> M::Partial {
        let start = self.left_leaf().start();
        if start < self.flip {
            let head = self.monoid.combine(&self.suffix[start], &self.mid);
            return self.monoid.combine(&head, &self.tail);
        }
        self.tail.clone()
    }

    /// The fold over times in `lo..=hi`; nothing may be staged.
    pub(super) fn answer_range(&self, lo: i64, hi: i64) -> M::Partial {
        if self.tree_len() == 0 {
            return self.monoid.identity();
        }
        if lo <= self.left_leaf().first_time() && hi >= self.right_leaf().last_time() {
            return self.answer();
        }
        let (level, id, spine) = self.lowest_spine_node(|key| lo > key, |key| hi < key);
        self.fold_between(level, id, spine, Some(lo), Some(hi))
    }

    /// Finger search: climbs both spines at once to the lowest node whose subtree is all
    /// that matters. `right` says so of a right subtree by the key it begins at, `left`
    /// of a left subtree by the key it ends before.
    pub(super) fn lowest_spine_node(
        &self,
        right: impl Fn(i64) -> bool,
        left: impl Fn(i64) -> bool,
    ) -> (usize, Id, Spine) {
        for level in 0..self.height() {
            Step::Visit.note();
            let above = self.children(self.right[level + 1]);
            if right(above[above.len() - 1].key) {
                return (level, self.right[level], Spine::RIGHT);
            }
            if left(self.children(self.left[level + 1])[1].key) {
                return (level, self.left[level], Spine::LEFT);
            }
        }
        (self.height(), self.left[self.height()], Spine::ROOT)
    }

    /// The key of the leaf behind the one that `time` belongs to.
    pub(super) fn next_leaf_key(&self, time: i64) -> Option<i64> {
        let (level, mut id, spine) = self.lowest_spine_node(|key| time >= key, |key| time < key);
        let mut next = match spine {
            Spine::LEFT => Some(self.children(self.left[level + 1])[1].key),
            _ => None,
        };
        for _ in 0..level {
            Step::Visit.note();
            let at = self.child_behind(id, time);
            let children = self.children(id);
            next = children.get(at + 1).map(|child| child.key).or(next);
            id = children[at].id;
        }
        next
    }

    /// `None` bounds are open: everything on that side of the subtree counts.
    fn fold_between(
        &self,
        level: usize,
        id: Id,
        spine: Spine,
        lo: Option<i64>,
        hi: Option<i64>,
    ) -> M::Partial {
        Step::Visit.note();
        if level == 0 {
            let leaf = self.leaf(id);
            let from = lo.map_or(leaf.start(), |lo| leaf.lower(lo));
            let to = hi.map_or(leaf.end(), |hi| leaf.upper(hi));
            return self.fold_leaf(id, from, to.max(from));
        }
        let children = self.children(id);
        let first = lo.map_or(0, |lo| self.child_before(id, lo));
        let last = hi
            .map_or(children.len() - 1, |hi| self.child_behind(id, hi))
            .max(first);
        let mut acc: Option<M::Partial> = None;
        for at in first..=last {
            let lo = lo.filter(|_| at == first);
            let hi = hi.filter(|_| at == last);
            let child_spine = spine.of_child(at, children.len());
            let part = if lo.is_none() && hi.is_none() && !child_spine.any() {
                children[at].agg.clone()
            } else {
                self.fold_between(level - 1, children[at].id, child_spine, lo, hi)
            };
            acc = Some(match acc {
                Some(acc) => self.monoid.combine(&acc, &part),
                None => part,
            });
        }
        acc.expect("an inner node has children")
    }
}
