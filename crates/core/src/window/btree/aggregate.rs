//! What nodes keep: Π↑, Π inner, Π↙, Π↘ (FiBA §3.2), their repair, and folds over a range.

use super::{Agg, BTree, Id};
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
        let agg = self.local(id);
        self.nodes.set_agg(id, agg);
    }

    /// The aggregate a node should keep: from its contents, its children and, on a spine,
    /// its parent.
    pub(super) fn local(&self, id: Id) -> Agg<M::Partial> {
        let (kind, parent) = (self.kind(id), self.nodes.parent(id));
        let inherits = matches!(kind, Kind::Left | Kind::Right) && parent != self.root;
        let parent = inherits.then(|| self.nodes.agg(parent));
        if self.nodes.is_leaf(id) {
            self.local_leaf(id, kind, parent)
        } else {
            self.local_inner(id, kind, parent)
        }
    }

    #[inline]
    fn local_leaf(&self, id: Id, kind: Kind, parent: Option<&Agg<M::Partial>>) -> Agg<M::Partial> {
        let mut values = self.nodes.values(id).iter();
        let mut count = self.nodes.len(id) as u32;
        let first = match parent {
            Some(parent) if kind == Kind::Right => Some(&parent.partial),
            _ => values.next(),
        };
        let mut partial = match first {
            Some(first) => first.clone(),
            None => self.monoid.identity(),
        };
        for value in values {
            partial = self.monoid.combine(&partial, value);
        }
        if let Some(parent) = parent {
            count += parent.count;
            if kind == Kind::Left {
                partial = self.monoid.combine(&partial, &parent.partial);
            }
        }
        Agg { partial, count }
    }

    fn local_inner(&self, id: Id, kind: Kind, parent: Option<&Agg<M::Partial>>) -> Agg<M::Partial> {
        let (nodes, monoid) = (&self.nodes, &self.monoid);
        let children = nodes.children(id);
        let mut count = nodes.len(id) as u32;
        let Some((first, values)) = nodes.values(id).split_first() else {
            // About to make room for its only child.
            return nodes.agg(children[0]).clone();
        };
        let mut partial = match kind {
            Kind::Left | Kind::Inner => first.clone(),
            Kind::Up | Kind::Right => {
                let child = nodes.agg(children[0]);
                count += child.count;
                match parent {
                    Some(parent) => {
                        let older = monoid.combine(&parent.partial, &child.partial);
                        monoid.combine(&older, first)
                    }
                    None => monoid.combine(&child.partial, first),
                }
            }
        };
        for (child, value) in children[1..].iter().zip(values) {
            let child = nodes.agg(*child);
            count += child.count;
            partial = monoid.combine(&partial, &child.partial);
            partial = monoid.combine(&partial, value);
        }
        if matches!(kind, Kind::Left | Kind::Up) {
            let child = nodes.agg(nodes.last_child(id));
            count += child.count;
            partial = monoid.combine(&partial, &child.partial);
        }
        if let Some(parent) = parent {
            count += parent.count;
            if kind == Kind::Left {
                partial = monoid.combine(&partial, &parent.partial);
            }
        }
        Agg { partial, count }
    }

    /// The same for a finger, where nothing above has changed.
    pub(in crate::window) fn repair_finger(&mut self, id: Id, kind: Kind) {
        let parent = self.nodes.parent(id);
        let parent = (parent != self.root).then(|| self.nodes.agg(parent));
        let agg = self.local_leaf(id, kind, parent);
        self.nodes.set_agg(id, agg);
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
        let count = |id| self.nodes.agg(id).count as usize;
        let root = count(self.root);
        if self.fingers.is_none() || self.nodes.is_leaf(self.root) {
            return root;
        }
        root + count(self.left_finger) + count(self.right_finger)
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
            fold.add(&nodes.agg(id).partial);
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
