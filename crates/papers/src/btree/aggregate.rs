//! The aggregates of nodes: Π↑, Π inner, Π↙, Π↘ (FiBA §3.2), their repair, and folds over
//! ranges.

use std::mem::needs_drop;

use super::node::known;
use super::slots::short_loop;
use super::spine::edge;
use super::{Child, Id, Inner, LEVELS, Node, Nodes, Spine, Tree, is_leaf};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::shape::PartialKind;
use slidewise_core::window::steps::Step;

/// A fold whose first element costs no combine.
pub(crate) struct Fold<'a, M: Monoid> {
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
    kind: PartialKind,
) -> M::Partial {
    match is_leaf(id) {
        true => own_leaf(monoid, nodes.leaf(id)),
        false => own_inner(monoid, nodes.inner(id), kind),
    }
}

/// The loop runs over all `E` slots and ends early, because the compiler unrolls a loop of
/// constant length, and not one over a slice.
#[inline(always)]
pub(super) fn own_leaf<M: Monoid, const E: usize>(
    monoid: &M,
    leaf: &Node<M::Partial, E>,
) -> M::Partial {
    let (values, len) = (leaf.values(), leaf.len());
    if len == 0 {
        return monoid.identity();
    }
    let mut partial = values[0].clone();
    for (at, value) in values[1..].iter().enumerate() {
        short_loop();
        if at + 1 == len {
            break;
        }
        partial = monoid.combine(&partial, value);
    }
    partial
}

#[inline(always)]
fn own_inner<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    inner: &Inner<M::Partial, E, K>,
    kind: PartialKind,
) -> M::Partial {
    if inner.node.len() == 0 {
        // A root with one child, which takes its place next.
        return inner.children[0].partial.clone();
    }
    with_ends(monoid, inner, middle(monoid, inner), kind)
}

/// Adds the outermost children that an aggregate of that kind covers to Π inner.
#[inline(always)]
fn with_ends<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    Inner { node, children, .. }: &Inner<M::Partial, E, K>,
    mut partial: M::Partial,
    kind: PartialKind,
) -> M::Partial {
    if matches!(kind, PartialKind::Left | PartialKind::Up) {
        partial = monoid.combine(&partial, &children[node.len()].partial);
    }
    if matches!(kind, PartialKind::Right | PartialKind::Up) {
        partial = monoid.combine(&children[0].partial, &partial);
    }
    partial
}

/// Π inner of a node with entries: without its outermost children.
#[inline(always)]
pub(super) fn middle<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    Inner { node, children, .. }: &Inner<M::Partial, E, K>,
) -> M::Partial {
    let (values, len) = (node.values(), node.len());
    let mut partial = values[0].clone();
    for at in 1..E {
        short_loop();
        if at == len {
            break;
        }
        partial = monoid.combine(&partial, &children[at].partial);
        partial = monoid.combine(&partial, &values[at]);
    }
    partial
}

/// Stores the new Π↑ of a child and gives that of its parent. The Π inner of the parent is
/// folded again only if it covers the child.
#[inline(always)]
fn renew<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    inner: &mut Inner<M::Partial, E, K>,
    at: usize,
    partial: M::Partial,
) -> M::Partial {
    let len = inner.node.len();
    if at == 0 {
        let rest = monoid.combine(&inner.middle, &inner.children[len].partial);
        let whole = monoid.combine(&partial, &rest);
        inner.children[0].partial = partial;
        return whole;
    }
    if at == len {
        let rest = monoid.combine(&inner.children[0].partial, &inner.middle);
        let whole = monoid.combine(&rest, &partial);
        inner.children[at].partial = partial;
        return whole;
    }
    inner.children[at].partial = partial;
    inner.middle = middle(monoid, inner);
    let rest = monoid.combine(&inner.middle, &inner.children[len].partial);
    monoid.combine(&inner.children[0].partial, &rest)
}

/// Repairs the aggregates of the changed nodes of a spine, and of the nodes below them there.
#[inline(always)]
fn refresh_spine<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    nodes: &mut Nodes<M::Partial, E, K>,
    spine: &mut Spine<M::Partial>,
    side: PartialKind,
) {
    if spine.stale == 0 {
        return;
    }
    let height = spine.height();
    let stale = spine.stale & ((1 << height) - 1);
    if stale == 0 {
        return;
    }
    spine.recount |= stale;
    let (ids, edges) = (&spine.ids, &mut spine.edges);
    let levels = &mut spine.levels[..height];
    let mut level = stale.ilog2() as usize;
    loop {
        short_loop();
        let (below, above) = levels.split_at_mut(level + 1);
        let aggs = &mut below[level];
        if stale >> level & 1 != 0 {
            let id = ids[level % LEVELS];
            if is_leaf(id) {
                aggs.own = own_leaf(monoid, nodes.leaf(id));
            } else {
                let inner = nodes.inner(id);
                edges[level % LEVELS] = edge(inner.node.times(), side);
                aggs.own = own_inner(monoid, inner, side);
            }
            if needs_drop::<M::Partial>() {
                nodes.drop_agg(id);
            }
        }
        aggs.agg = match above.first() {
            Some(parent) => inherit(monoid, &aggs.own, &parent.agg, side),
            None => aggs.own.clone(),
        };
        if level == 0 {
            return;
        }
        level -= 1;
    }
}

/// As `refresh_spine`, after a change below a node of that level only.
#[inline(always)]
fn refresh_level<M: Monoid, const E: usize, const K: usize>(
    monoid: &M,
    inner: &Inner<M::Partial, E, K>,
    spine: &mut Spine<M::Partial>,
    level: usize,
    side: PartialKind,
) {
    spine.recount |= 1 << level;
    let own = own_inner(monoid, inner, side);
    hand_down(monoid, spine, level, own, side);
}

/// Sets the own part of a node of a spine, and computes the aggregates of that level and of
/// those below, from their own parts and from what the parents hand down.
#[inline(always)]
fn hand_down<M: Monoid>(
    monoid: &M,
    spine: &mut Spine<M::Partial>,
    level: usize,
    own: M::Partial,
    side: PartialKind,
) {
    let height = spine.height();
    let levels = &mut spine.levels[..height];
    levels[level].own = own;
    for level in (0..=level).rev() {
        short_loop();
        let (below, above) = levels.split_at_mut(level + 1);
        let aggs = &mut below[level];
        aggs.agg = match above.first() {
            Some(parent) => inherit(monoid, &aggs.own, &parent.agg, side),
            None => aggs.own.clone(),
        };
    }
}

#[inline(always)]
fn inherit<M: Monoid>(
    monoid: &M,
    own: &M::Partial,
    parent: &M::Partial,
    side: PartialKind,
) -> M::Partial {
    match side {
        PartialKind::Left => monoid.combine(own, parent),
        _ => monoid.combine(parent, own),
    }
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    /// Repairs the Π↑ of a changed node, or leaves its aggregate to the pass down. Returns
    /// whether it has a Π↑: then the parent has changed, too.
    pub(crate) fn touch(&mut self, id: Id) -> bool {
        if self.marked(id, self.nodes.level(id)) {
            return false;
        }
        let child = self.whole_child(id);
        let (parent, at) = (self.nodes.parent(id), self.nodes.position(id));
        self.nodes.inner_mut(parent).children[at] = child;
        true
    }

    /// As `touch`, for the child at a position, which is at that level.
    #[inline]
    pub(super) fn touch_child<const LEAF: bool>(&mut self, parent: Id, at: usize, level: usize) {
        let id = known::<LEAF>(self.nodes.child(parent, at));
        if !self.marked(id, level) {
            self.nodes.inner_mut(parent).children[at] = self.whole_child(id);
        }
    }

    /// A node as a child of its parent, from its contents.
    #[inline(always)]
    pub(crate) fn whole_child(&mut self, id: Id) -> Child<M::Partial> {
        let partial = self.whole(id);
        let count = self.nodes.entries(id, PartialKind::Up) as u32;
        Child { id, count, partial }
    }

    /// Whether a node keeps another aggregate than Π↑; if so, marks it for the pass down.
    #[inline(always)]
    fn marked(&mut self, id: Id, level: usize) -> bool {
        let (left, right) = match self.fingers {
            Some(_) => (self.left.at(level) == id, self.right.at(level) == id),
            None => (id == self.root, false),
        };
        // A node that becomes the root is on both spines.
        if left {
            self.left.mark(level);
        }
        if right {
            self.right.mark(level);
        }
        left || right
    }

    /// Π↑ of a node, from its contents; stores its Π inner. Not inlined: compiled once per tree.
    #[inline(never)]
    fn whole(&mut self, id: Id) -> M::Partial {
        if is_leaf(id) {
            return own_leaf(&self.monoid, self.nodes.leaf(id));
        }
        let inner = self.nodes.inner_mut(id);
        if inner.node.len() == 0 {
            return inner.children[0].partial.clone();
        }
        let middle = middle(&self.monoid, inner);
        inner.middle = middle.clone();
        with_ends(&self.monoid, inner, middle, PartialKind::Up)
    }

    /// Repairs the aggregates after a change of a node on the path of the last search; it has
    /// `grown` more entries. Up to the node where the search began these are Π↑; the pass down
    /// repairs the others.
    #[inline(always)]
    pub(super) fn refresh(&mut self, id: Id, level: usize, grown: i32) {
        let until = self.path.start.min(self.left.height());
        if self.fingers.is_some() && level >= until {
            self.reached(id, level);
        } else {
            self.refresh_path(id, level, grown, until);
        }
    }

    #[inline(never)]
    fn refresh_path(&mut self, id: Id, level: usize, grown: i32, until: usize) {
        let partial = self.whole(id);
        if level < until {
            self.refresh_above(self.nodes.parent(id), level + 1, partial, grown, until);
        } else {
            debug_assert_eq!(id, self.root);
            self.finish(partial);
        }
    }

    /// As `refresh`, from the parent of a node with that new Π↑; the search began at level
    /// `until`.
    #[inline(always)]
    pub(super) fn refresh_above(
        &mut self,
        parent: Id,
        level: usize,
        partial: M::Partial,
        grown: i32,
        until: usize,
    ) {
        let (mut id, mut level, mut partial) = (parent, level, partial);
        loop {
            let at = self.path.at(level);
            let inner = self.nodes.inner_mut(id);
            let count = &mut inner.children[at].count;
            *count = count.wrapping_add_signed(grown);
            if level >= until {
                break;
            }
            partial = renew(&self.monoid, inner, at, partial);
            id = inner.node.parent();
            level += 1;
        }
        let (at, inner) = (self.path.at(level), self.nodes.inner_mut(id));
        if self.fingers.is_none() {
            debug_assert_eq!(id, self.root);
            let whole = renew(&self.monoid, inner, at, partial);
            return self.finish(whole);
        }
        inner.children[at].partial = partial;
        if level == self.left.height() || (self.left.stale | self.right.stale) != 0 {
            return self.reached(id, level);
        }
        // Only this node of the spines has changed, and its entries are as before.
        let (monoid, left, right) = (&self.monoid, &mut self.left, &mut self.right);
        if right.at(level) == id {
            refresh_level(monoid, inner, right, level, PartialKind::Right);
        } else {
            debug_assert_eq!(left.at(level), id, "searches begin on a spine");
            refresh_level(monoid, inner, left, level, PartialKind::Left);
        }
    }

    /// Ends a repair at a node of a spine.
    #[inline(always)]
    fn reached(&mut self, id: Id, level: usize) {
        let marked = self.marked(id, level);
        debug_assert!(marked, "searches begin on a spine");
        self.refresh_spines();
    }

    /// Ends a repair of the classic tree: sets Π↑ of the root.
    #[inline(always)]
    fn finish(&mut self, whole: M::Partial) {
        self.top = whole;
        (self.left.stale, self.right.stale) = (0, 0);
    }

    /// The pass down: the root, then the spines towards the fingers.
    #[inline(never)]
    pub(crate) fn refresh_spines(&mut self) {
        let height = self.left.height();
        if (self.left.stale | self.right.stale) >> height != 0 {
            let kind = self.kind(self.root);
            self.top = own(&self.monoid, &self.nodes, self.root, kind);
            let times = self.nodes.times(self.root);
            self.left.edges[height % LEVELS] = edge(times, PartialKind::Left);
            self.right.edges[height % LEVELS] = edge(times, PartialKind::Right);
        }
        if self.fingers.is_some() {
            let (monoid, nodes) = (&self.monoid, &mut self.nodes);
            refresh_spine(monoid, nodes, &mut self.left, PartialKind::Left);
            refresh_spine(monoid, nodes, &mut self.right, PartialKind::Right);
        }
        (self.left.stale, self.right.stale) = (0, 0);
    }

    /// Repairs the aggregates after an append to the right finger that changed no other node.
    #[inline]
    pub(crate) fn extend_right_finger(&mut self, value: &M::Partial) {
        let own = self.monoid.combine(&self.right.levels[0].own, value);
        hand_down(&self.monoid, &mut self.right, 0, own, PartialKind::Right);
    }

    /// Repairs the aggregates after a change of the left finger and no other node.
    #[inline]
    pub(crate) fn repair_left_finger(&mut self, own: M::Partial) {
        hand_down(&self.monoid, &mut self.left, 0, own, PartialKind::Left);
    }

    /// The aggregate that a node keeps.
    pub(super) fn kept(&self, id: Id) -> &M::Partial {
        let level = self.nodes.level(id);
        match self.kind(id) {
            _ if id == self.root => &self.top,
            PartialKind::Left => &self.left.levels[level].agg,
            PartialKind::Right => &self.right.levels[level].agg,
            _ => {
                let siblings = self.nodes.children(self.nodes.parent(id));
                &siblings[self.nodes.position(id)].partial
            }
        }
    }

    /// The aggregate that a node should keep, computed from its contents, the aggregates of its
    /// children and, on a spine, that of its parent.
    pub(super) fn local(&self, id: Id) -> M::Partial {
        let (kind, level) = (self.kind(id), self.nodes.level(id));
        let own = own(&self.monoid, &self.nodes, id, kind);
        match kind {
            _ if level + 1 >= self.left.height() => own,
            PartialKind::Left => {
                inherit(&self.monoid, &own, &self.left.levels[level + 1].agg, kind)
            }
            PartialKind::Right => {
                inherit(&self.monoid, &own, &self.right.levels[level + 1].agg, kind)
            }
            _ => own,
        }
    }

    /// The number of entries in the tree, by the counts of children. Of the spines it counts
    /// the nodes whose aggregates changed since the last call.
    pub(crate) fn counted(&mut self) -> usize {
        let root = self.nodes.entries(self.root, self.kind(self.root));
        if self.fingers.is_none() {
            return root;
        }
        let left = self.left.count(&self.nodes, PartialKind::Left);
        let right = self.right.count(&self.nodes, PartialKind::Right);
        root + left + right
    }

    /// The fold over lo ≤ time ≤ hi below a node that holds all of it (FiBA fig. 10).
    pub(crate) fn fold_between(&self, top: Id, lo: i64, hi: i64) -> M::Partial {
        let mut fold = Fold::new(&self.monoid);
        self.fold_below(top, Some(lo), Some(hi), &mut fold);
        fold.done()
    }

    /// A bound that all entries below a child satisfy is `None` (±∞ in the paper). Line 20 of
    /// the paper would skip a middle child; this goes by position and skips none.
    fn fold_below(&self, id: Id, lo: Option<i64>, hi: Option<i64>, fold: &mut Fold<'_, M>) {
        Step::Visit.note();
        let nodes = &self.nodes;
        let first = lo.map_or(0, |lo| nodes.below(id, lo));
        let last = hi
            .map_or(nodes.len(id), |hi| nodes.up_to(id, hi))
            .max(first);
        let values = nodes.values(id);
        if is_leaf(id) {
            for value in &values[first..last] {
                fold.add(value);
            }
            return;
        }
        // If an entry is at the bound, the child beyond it can only hold entries of equal time.
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
                if lo.is_none() && hi.is_none() && self.kind(child.id) == PartialKind::Up {
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
