//! What nodes keep: Π↑, Π inner, Π↙, Π↘ (FiBA §3.2), their repair, and folds over a range.

use super::{BTree, Id};
use crate::monoid::Monoid;
use crate::window::Ties;
use crate::window::shape::Kind;

/// What the pass down has to repair: the root, and each spine from some level on.
///
/// These are FiBA's hit_left and hit_right, as levels instead of flags, so that one pass
/// down serves single and inner and bulk operations.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::window) struct Stale {
    pub root: bool,
    /// Levels above the leaves, plus one; 0 for none.
    pub left: usize,
    pub right: usize,
}

/// A fold that starts from nothing without a combine.
pub(in crate::window) struct Fold<'a, M: Monoid> {
    monoid: &'a M,
    acc: Option<M::Partial>,
}

impl<'a, M: Monoid> Fold<'a, M> {
    pub fn new(monoid: &'a M) -> Self {
        Self { monoid, acc: None }
    }

    #[inline]
    pub fn add(&mut self, partial: &M::Partial) {
        self.acc = Some(match &self.acc {
            Some(acc) => self.monoid.combine(acc, partial),
            None => partial.clone(),
        });
    }

    pub fn done(self) -> M::Partial {
        self.acc.unwrap_or_else(|| self.monoid.identity())
    }
}

impl<M: Monoid> BTree<M> {
    pub(in crate::window) fn repair(&mut self, id: Id) {
        let (agg, count) = self.local(id);
        self.nodes.set_agg(id, agg, count);
    }

    /// The aggregate a node should keep, and the entries it stands for: from its contents,
    /// its children and, on a spine, its parent.
    pub(super) fn local(&self, id: Id) -> (M::Partial, u32) {
        let kind = self.kind(id);
        if self.nodes.is_leaf(id) {
            return self.local_leaf(id, kind);
        }
        let mut fold = Fold::new(&self.monoid);
        let mut count = self.nodes.len(id) as u32;
        let parent = self.nodes.parent(id);
        let inherits = parent != self.root;
        if kind == Kind::Right && inherits {
            fold.add(self.nodes.agg(parent));
            count += self.nodes.count(parent);
        }
        let children = self.nodes.children(id);
        let last = children.len() - 1;
        let from = usize::from(matches!(kind, Kind::Left | Kind::Inner));
        for (at, value) in self.nodes.values(id).iter().enumerate() {
            if at >= from {
                fold.add(self.nodes.agg(children[at]));
                count += self.nodes.count(children[at]);
            }
            fold.add(value);
        }
        if matches!(kind, Kind::Left | Kind::Up) {
            fold.add(self.nodes.agg(children[last]));
            count += self.nodes.count(children[last]);
        }
        if kind == Kind::Left && inherits {
            fold.add(self.nodes.agg(parent));
            count += self.nodes.count(parent);
        }
        (fold.done(), count)
    }

    /// The same for a leaf.
    #[inline]
    fn local_leaf(&self, id: Id, kind: Kind) -> (M::Partial, u32) {
        let parent = self.nodes.parent(id);
        let inherits = matches!(kind, Kind::Left | Kind::Right) && parent != self.root;
        let mut count = self.nodes.len(id) as u32;
        if inherits {
            count += self.nodes.count(parent);
        }
        let mut values = self.nodes.values(id).iter();
        let first = match kind {
            Kind::Right if inherits => Some(self.nodes.agg(parent)),
            _ => values.next(),
        };
        let Some(first) = first else {
            return (self.monoid.identity(), count);
        };
        let mut acc = first.clone();
        for value in values {
            acc = self.monoid.combine(&acc, value);
        }
        if kind == Kind::Left && inherits {
            acc = self.monoid.combine(&acc, self.nodes.agg(parent));
        }
        (acc, count)
    }

    /// A node has changed: repairs its Π↑, or leaves it to the pass down.
    pub(in crate::window) fn touch(&mut self, id: Id) {
        if self.kind(id) == Kind::Up {
            self.repair(id);
            return;
        }
        if id == self.root {
            self.stale.root = true;
            return;
        }
        // On both spines for as long as it takes to become the root.
        let (left, right) = self.nodes.spines(id);
        let level = self.nodes.level(id) + 1;
        if left {
            self.stale.left = self.stale.left.max(level);
        }
        if right {
            self.stale.right = self.stale.right.max(level);
        }
    }

    /// A node has changed: repairs upwards as far as Π↑ are concerned.
    pub(in crate::window) fn refresh(&mut self, id: Id) {
        let mut id = id;
        loop {
            self.touch(id);
            if self.kind(id) != Kind::Up || id == self.root {
                return;
            }
            id = self.nodes.parent(id);
        }
    }

    /// The pass down: the root, then the spines towards the fingers.
    pub(in crate::window) fn settle(&mut self) {
        let stale = std::mem::take(&mut self.stale);
        if stale.root {
            self.repair(self.root);
        }
        if stale.left == 1 {
            self.repair(self.left_finger);
        } else if stale.left > 1 {
            let mut id = self.above(self.left_finger, stale.left - 1);
            self.repair(id);
            while !self.nodes.is_leaf(id) {
                id = self.nodes.child(id, 0);
                self.repair(id);
            }
        }
        if stale.right == 1 {
            self.repair(self.right_finger);
        } else if stale.right > 1 {
            let mut id = self.above(self.right_finger, stale.right - 1);
            self.repair(id);
            while !self.nodes.is_leaf(id) {
                id = self.nodes.last_child(id);
                self.repair(id);
            }
        }
    }

    /// The node of that level on the way up from a finger, below the root.
    fn above(&self, finger: Id, level: usize) -> Id {
        let mut id = finger;
        while id != self.root && self.nodes.level(id) < level {
            let parent = self.nodes.parent(id);
            if parent == self.root {
                break;
            }
            id = parent;
        }
        id
    }

    /// Entries in the tree, as the aggregates have them.
    pub(in crate::window) fn counted(&self) -> usize {
        let root = self.nodes.count(self.root) as usize;
        if self.fingers.is_none() || self.nodes.is_leaf(self.root) {
            return root;
        }
        let ends = [self.left_finger, self.right_finger];
        root + ends
            .map(|id| self.nodes.count(id) as usize)
            .iter()
            .sum::<usize>()
    }

    /// The fold over lo ≤ time ≤ hi below a node that holds all of it (FiBA fig. 10).
    pub(in crate::window) fn fold_between(&self, top: Id, lo: i64, hi: i64) -> M::Partial {
        let mut fold = Fold::new(&self.monoid);
        self.fold_below(top, Some(lo), Some(hi), &mut fold);
        fold.done()
    }

    /// A bound that everything below a child satisfies is `None` there: published as ±∞.
    /// The printed line 20 would skip a middle child; going by position, none is.
    fn fold_below(&self, id: Id, lo: Option<i64>, hi: Option<i64>, fold: &mut Fold<'_, M>) {
        let nodes = &self.nodes;
        if lo.is_none() && hi.is_none() && self.kind(id) == Kind::Up {
            fold.add(nodes.agg(id));
            return;
        }
        let first = lo.map_or(0, |lo| nodes.below(id, lo));
        let last = hi
            .map_or(nodes.len(id), |hi| nodes.up_to(id, hi))
            .max(first);
        let values = nodes.values(id);
        if nodes.is_leaf(id) {
            for value in &values[first..last] {
                fold.add(value);
            }
            return;
        }
        // An entry at the bound itself leaves nothing for the child beyond it, but ties.
        let times = nodes.times(id);
        let distinct = self.ties == Ties::Combine;
        let skip_first = distinct && first < last && times.get(first).copied() == lo;
        let skip_last = distinct && first < last && Some(times[last - 1]) == hi;
        let children = nodes.children(id).iter().enumerate();
        for (at, child) in children.take(last + 1).skip(first) {
            let skip = (at == first && skip_first) || (at == last && skip_last);
            if !skip {
                let lo = lo.filter(|_| at == first);
                let hi = hi.filter(|_| at == last);
                self.fold_below(*child, lo, hi, fold);
            }
            if at < last {
                fold.add(&values[at]);
            }
        }
    }
}
