//! The aggregates of nodes: Π↑, Π inner, Π↙, Π↘ (FiBA §3.2), their repair, and folds over a
//! range.

use std::mem::needs_drop;

use super::slots::few;
use super::{Agg, Child, Id, Nodes, Spine, Tree};
use crate::monoid::Monoid;
use crate::window::Ties;
use crate::window::shape::Kind;
use crate::window::steps::Step;

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

/// The aggregate of a node of that kind, without the part that its parent hands down.
#[inline(always)]
pub(super) fn own<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    nodes: &Nodes<M::Partial, E, K>,
    id: Id,
    kind: Kind,
) -> Agg<M::Partial> {
    match nodes.is_leaf(id) {
        true => own_leaf(monoid, nodes.values(id)),
        false => own_inner(monoid, nodes.values(id), nodes.children(id), kind),
    }
}

#[inline(always)]
pub(super) fn own_leaf<M: Monoid>(monoid: &M, values: &[M::Partial]) -> Agg<M::Partial> {
    let count = values.len() as u32;
    let Some((first, values)) = values.split_first() else {
        let partial = monoid.identity();
        return Agg { partial, count };
    };
    let mut partial = first.clone();
    for value in values {
        few();
        partial = monoid.combine(&partial, value);
    }
    Agg { partial, count }
}

#[inline(always)]
fn own_inner<M: Monoid>(
    monoid: &M,
    values: &[M::Partial],
    children: &[Child<M::Partial>],
    kind: Kind,
) -> Agg<M::Partial> {
    let mut count = values.len() as u32;
    let Some((first, values)) = values.split_first() else {
        // About to make room for its only child.
        return children[0].agg();
    };
    let mut partial = match kind {
        Kind::Left | Kind::Inner => first.clone(),
        Kind::Up | Kind::Right => {
            count += children[0].count;
            monoid.combine(&children[0].partial, first)
        }
    };
    let (youngest, inner) = children[1..]
        .split_last()
        .expect("a child behind each entry");
    for (child, value) in inner.iter().zip(values) {
        few();
        count += child.count;
        partial = monoid.combine(&partial, &child.partial);
        partial = monoid.combine(&partial, value);
    }
    if matches!(kind, Kind::Left | Kind::Up) {
        count += youngest.count;
        partial = monoid.combine(&partial, &youngest.partial);
    }
    Agg { partial, count }
}

/// Repairs the changed nodes of a spine, and what the nodes below them inherit.
#[inline(always)]
fn refresh_spine<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    nodes: &mut Nodes<M::Partial, E, K>,
    spine: &mut Spine<M::Partial>,
    side: Kind,
) {
    let height = spine.height();
    let below = spine.stale & ((1 << height) - 1);
    let mut level = 63 - below.leading_zeros() as usize;
    let (below, above) = spine.rungs[..height].split_at_mut(level + 1);
    let mut parent = above.first().map(|rung| &rung.agg);
    for rung in below.iter_mut().rev() {
        few();
        if spine.stale >> level & 1 != 0 {
            rung.note_edge(nodes.times(rung.id), side);
            rung.own = own(monoid, nodes, rung.id, side);
            if needs_drop::<M::Partial>() {
                nodes.drop_agg(rung.id);
            }
        }
        rung.agg = match parent {
            Some(parent) => inherit(monoid, &rung.own, parent, side),
            None => rung.own.clone(),
        };
        parent = Some(&rung.agg);
        level = level.wrapping_sub(1);
    }
}

/// Finds the aggregate of a finger from its own part and its parent's.
#[inline(always)]
fn hand_down<M: Monoid>(monoid: &M, spine: &mut Spine<M::Partial>, side: Kind) {
    let height = spine.height();
    if let [finger, above @ ..] = &mut spine.rungs[..height] {
        finger.agg = match above.first() {
            Some(parent) => inherit(monoid, &finger.own, &parent.agg, side),
            None => finger.own.clone(),
        };
    }
}

#[inline]
fn inherit<M: Monoid>(
    monoid: &M,
    own: &Agg<M::Partial>,
    parent: &Agg<M::Partial>,
    side: Kind,
) -> Agg<M::Partial> {
    let (older, younger) = match side {
        Kind::Left => (own, parent),
        _ => (parent, own),
    };
    Agg {
        partial: monoid.combine(&older.partial, &younger.partial),
        count: own.count + parent.count,
    }
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    /// A node has changed: repairs its Π↑, or leaves it to the pass down. Whether it was a
    /// Π↑, so that the parent has changed, too.
    pub(in crate::window) fn touch(&mut self, id: Id) -> bool {
        if self.marked(id, self.nodes.level(id)) {
            return false;
        }
        let agg = self.whole(id);
        self.nodes
            .set_agg(self.nodes.parent(id), self.nodes.position(id), agg);
        true
    }

    /// Touches the child at a position.
    pub(super) fn touch_child(&mut self, parent: Id, at: usize) {
        let id = self.nodes.child(parent, at);
        if !self.marked(id, self.nodes.level(id)) {
            let agg = self.whole(id);
            self.nodes.set_agg(parent, at, agg);
        }
    }

    /// Whether a node keeps something else than Π↑; the pass down then repairs it.
    #[inline]
    fn marked(&mut self, id: Id, level: usize) -> bool {
        let (left, right) = match self.fingers {
            Some(_) => (self.left.at(level) == id, self.right.at(level) == id),
            None => (id == self.root, false),
        };
        // On both for as long as it takes to become the root.
        if left {
            self.left.mark(level);
        }
        if right {
            self.right.mark(level);
        }
        left || right
    }

    /// Π↑ of a node, from its contents.
    #[inline]
    pub(in crate::window) fn whole(&self, id: Id) -> Agg<M::Partial> {
        own(&self.monoid, &self.nodes, id, Kind::Up)
    }

    /// A node of the last search's path has changed: repairs upwards as far as Π↑ are
    /// concerned.
    #[inline]
    pub(in crate::window) fn refresh(&mut self, id: Id) {
        let (mut id, mut level) = (id, self.nodes.level(id));
        while !self.marked(id, level) {
            let agg = self.whole(id);
            id = self.nodes.parent(id);
            level += 1;
            self.nodes.set_agg(id, self.trail.at(level), agg);
        }
    }

    /// The pass down: the root, then the spines towards the fingers.
    #[inline]
    pub(in crate::window) fn refresh_spines(&mut self) {
        let stale = (self.left.stale, self.right.stale);
        let height = self.left.height();
        if (stale.0 | stale.1) >> height != 0 {
            let kind = self.kind(self.root);
            self.top = own(&self.monoid, &self.nodes, self.root, kind);
            let times = self.nodes.times(self.root);
            self.left.rungs[height].note_edge(times, Kind::Left);
            self.right.rungs[height].note_edge(times, Kind::Right);
        }
        // The root hands nothing down.
        let below = (1 << height) - 1;
        if self.fingers.is_some() {
            if stale.0 & below != 0 {
                refresh_spine(&self.monoid, &mut self.nodes, &mut self.left, Kind::Left);
            }
            if stale.1 & below != 0 {
                refresh_spine(&self.monoid, &mut self.nodes, &mut self.right, Kind::Right);
            }
        }
        (self.left.stale, self.right.stale) = (0, 0);
    }

    /// An entry has gone to the end of the right finger, and no node above has changed.
    #[inline]
    pub(in crate::window) fn extend_right_finger(&mut self, value: &M::Partial) {
        let own = &mut self.right.rungs[0].own;
        own.partial = self.monoid.combine(&own.partial, value);
        own.count += 1;
        hand_down(&self.monoid, &mut self.right, Kind::Right);
    }

    /// The left finger has changed, and no node above has.
    #[inline]
    pub(in crate::window) fn repair_left_finger(&mut self) {
        let values = self.nodes.values(self.left.finger());
        self.left.rungs[0].own = own_leaf(&self.monoid, values);
        hand_down(&self.monoid, &mut self.left, Kind::Left);
    }

    /// The aggregate that a node keeps.
    pub(super) fn kept(&self, id: Id) -> Agg<M::Partial> {
        let level = self.nodes.level(id);
        match self.kind(id) {
            _ if id == self.root => self.top.clone(),
            Kind::Left => self.left.rungs[level].agg.clone(),
            Kind::Right => self.right.rungs[level].agg.clone(),
            _ => {
                let siblings = self.nodes.children(self.nodes.parent(id));
                siblings[self.nodes.position(id)].agg()
            }
        }
    }

    /// The aggregate that a node should keep: from its contents and its children's and, on
    /// a spine, its parent's aggregates.
    pub(super) fn local(&self, id: Id) -> Agg<M::Partial> {
        let (kind, level) = (self.kind(id), self.nodes.level(id));
        let own = own(&self.monoid, &self.nodes, id, kind);
        match kind {
            _ if level + 1 >= self.left.height() => own,
            Kind::Left => inherit(&self.monoid, &own, &self.left.rungs[level + 1].agg, kind),
            Kind::Right => inherit(&self.monoid, &own, &self.right.rungs[level + 1].agg, kind),
            _ => own,
        }
    }

    /// Entries in the tree, as the aggregates have them.
    pub(in crate::window) fn counted(&self) -> usize {
        let top = self.top.count as usize;
        if self.fingers.is_none() || self.left.height() == 0 {
            return top;
        }
        let fingers = [&self.left, &self.right].map(|spine| spine.rungs[0].agg.count as usize);
        top + fingers[0] + fingers[1]
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
        Step::Visit.note();
        let nodes = &self.nodes;
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
                if lo.is_none() && hi.is_none() && self.kind(child.id) == Kind::Up {
                    fold.add(&child.partial);
                } else {
                    self.fold_below(child.id, lo, hi, fold);
                }
            }
            if at < last {
                fold.add(&values[at]);
            }
        }
    }
}
