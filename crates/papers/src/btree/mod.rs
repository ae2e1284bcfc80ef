//! btree: the classic B-tree augmented with aggregates, the baseline of FiBA.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Tangwongsan, Hirzel, Schneider: FiBA (2019, PVLDB 12(10)), §3.1       |
//! | order  | any                                                                   |
//! | laws   | associative                                                           |
//! | costs  | insert, evict, evict(t): O(log n), worst case too; in order 2 combines|
//! |        | per level, the leaf, and what splits and merges change; query: 0      |
//! |        | combines; range: O(log n); insert_many, evict_until: as many single   |
//! |        | steps                                                                 |
//! | space  | 62 to 122 bytes per entry of a sum of int64: μ = 4; with 2 up to 152, |
//! |        | with 8 up to 109, with 16 up to 103                                   |
//! | choose | to measure what fingers and location-sensitive aggregates bring       |
//!
//! # Idea
//! All nodes hold entries, ordered by time; a node of arity a holds a − 1 of them between its a
//! children. Every node keeps Π↑, the aggregate of its whole subtree, so that of the root is the
//! answer. After a change, the Π↑ on the whole path to the root are repaired.
//!
//! # Invariants (checked by `check`, for `fiba_published` too, which shares all nodes)
//! 1. Size: MIN_ARITY = μ ≤ a ≤ MAX_ARITY = 2μ; the root has 2 ≤ a if it is not a leaf.
//! 2. Height: all leaves are at level 0, a parent is one level above its children.
//! 3. Order: times rise, from a child through the entry behind it to the next child.
//!    Strictly under `Ties::Combine`.
//! 4. Aggregates: each node keeps that of its kind; here all nodes keep Π↑. A node with Π↑ has
//!    the number of entries below it in its parent, and keeps Π inner unless it is a leaf.
//! 5. Links: parents, spines and fingers are those of the tree.
//! 6. Memory: every node of the arenas is in the tree, free, or waits to be freed.
//!
//! # Deviations
//! Nodes are addressed by index; leaves are in an arena of their own. The Π↑ of a node is stored in
//! its parent, beside its index, so a fold of the parent reads no children. An inner node also
//! stores its Π inner, the fold without its outermost children: a change below one of these takes
//! two combines, and a change between them folds Π inner again. With `Ties::Keep` an insert goes after all entries of its time, and an evict takes
//! the first of them, in whichever node it is.

mod aggregate;
mod check;
mod fiba_published;
mod node;
mod nodes;
mod persist;
mod rebalance;
mod sized;
mod slots;
mod spine;

use aggregate::own_leaf;
pub(crate) use node::{Child, Id, Inner, NONE, Node, is_leaf};
pub(crate) use nodes::Nodes;
pub use sized::BTree;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Result, Writer};
use slidewise_core::window::shape::{PartialKind, Shape};
use slidewise_core::window::steps::Step;
use slidewise_core::window::{Batch, Ties, Window};
pub(crate) use spine::Spine;

/// The smallest arities of a tree.
pub const ARITIES: std::ops::RangeInclusive<usize> = 2..=16;

/// Variants of the tree with fingers, for experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Bulk operations as in the paper of 2023, or as loops.
    pub bulk: bool,
    /// Cut subtrees wait on a free list, or are taken apart at once.
    pub free_list: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bulk: true,
            free_list: true,
        }
    }
}

/// A tree of nodes of up to `E` entries and `K` = `E` + 1 children each.
#[derive(Clone, Debug)]
pub(crate) struct Tree<M: Monoid, const E: usize, const K: usize> {
    pub(crate) monoid: M,
    pub(crate) ties: Ties,
    /// The options of a tree with fingers; `None` for the classic tree.
    pub(crate) fingers: Option<Options>,
    /// μ.
    pub(crate) min_arity: usize,
    pub(crate) nodes: Nodes<M::Partial, E, K>,
    pub(crate) root: Id,
    /// The aggregate of the root.
    pub(crate) top: M::Partial,
    pub(crate) left: Spine<M::Partial>,
    pub(crate) right: Spine<M::Partial>,
    pub(crate) len: usize,
    path: SearchPath,
}

/// The most levels of a tree of fewer than 2³¹ leaves.
const LEVELS: usize = 32;

/// By level, the child that the last search descended to, and the level where it began.
#[derive(Clone, Copy, Debug, Default)]
struct SearchPath {
    places: [u8; LEVELS],
    start: usize,
}

impl SearchPath {
    #[inline(always)]
    fn at(&self, level: usize) -> usize {
        usize::from(self.places[level % LEVELS])
    }

    #[inline(always)]
    fn set(&mut self, level: usize, at: usize) {
        self.places[level % LEVELS] = at as u8;
    }
}

/// The position of an entry, or where it is to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub node: Id,
    pub at: usize,
    pub present: bool,
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    pub(crate) fn empty(monoid: M, ties: Ties, min_arity: usize, fingers: Option<Options>) -> Self {
        const { assert!(K == E + 1) };
        debug_assert!(2 * min_arity <= E);
        let nodes = Nodes::new(monoid.identity());
        let top = monoid.identity();
        let (left, right) = (Spine::new(monoid.identity()), Spine::new(monoid.identity()));
        let mut tree = Self {
            monoid,
            ties,
            fingers,
            min_arity,
            nodes,
            root: NONE,
            top,
            left,
            right,
            len: 0,
            path: SearchPath::default(),
        };
        let root = tree.nodes.allocate(0);
        tree.set_root(root);
        tree.refresh_spines();
        tree
    }

    /// MAX_ARITY − 1.
    pub(crate) fn most(&self) -> usize {
        2 * self.min_arity - 1
    }

    /// Makes a node the root. If the spines below change, the caller sets them.
    pub(crate) fn set_root(&mut self, root: Id) {
        self.root = root;
        self.nodes.set_parent(root, NONE);
        let level = self.nodes.level(root);
        self.left.set_root(level, root);
        self.right.set_root(level, root);
    }

    /// The site of an insert at `time`: after all entries at or before it.
    fn site_of_insert(&mut self, time: i64) -> Site {
        let (start, level) = match self.fingers {
            Some(_) => self.climb_for_insert(time),
            None => self.top_start(),
        };
        self.path.start = level;
        self.descend_for_insert(start, level, time)
    }

    #[inline(always)]
    fn descend_for_insert(&mut self, start: Id, level: usize, time: i64) -> Site {
        let (mut node, mut level) = (start, level);
        let distinct = self.ties == Ties::Combine;
        while !is_leaf(node) {
            Step::Visit.note();
            let inner = self.nodes.inner(node);
            let (at, tied) = inner.node.seek(time);
            if tied && distinct {
                let (at, present) = (at - 1, true);
                return Site { node, at, present };
            }
            self.path.set(level, at);
            node = inner.children[at].id;
            level -= 1;
        }
        Step::Visit.note();
        let (at, tied) = self.nodes.leaf(node).seek(time);
        let present = tied && distinct;
        let at = at - usize::from(present);
        Site { node, at, present }
    }

    /// The site of the entry before position `at`, if an insert at `time` combines with it.
    pub(crate) fn tied(&self, node: Id, at: usize, time: i64) -> Option<Site> {
        let tied = self.ties == Ties::Combine && at > 0 && self.nodes.times(node)[at - 1] == time;
        tied.then(|| Site {
            node,
            at: at - 1,
            present: true,
        })
    }

    /// The first entry of that time.
    fn find(&mut self, time: i64) -> Option<Site> {
        let ((mut node, mut level), mut found) = match self.fingers {
            Some(_) => self.climb_to_find(time),
            None => (self.top_start(), None),
        };
        self.path.start = level;
        loop {
            Step::Visit.note();
            let at = self.nodes.below(node, time);
            if self.nodes.times(node).get(at) == Some(&time) {
                found = Some(Site {
                    node,
                    at,
                    present: true,
                });
                if self.ties == Ties::Combine {
                    return found;
                }
            }
            if is_leaf(node) {
                return found;
            }
            self.path.set(level, at);
            node = self.nodes.child(node, at);
            level -= 1;
        }
    }

    /// The root and its level.
    #[inline(always)]
    pub(crate) fn top_start(&self) -> (Id, usize) {
        (self.root, self.left.height())
    }

    pub(crate) fn insert_partial(&mut self, time: i64, value: M::Partial) {
        if self.fingers.is_some() && self.right_finger_takes(time) {
            self.extend_right_finger(&value);
            self.nodes.append_to_leaf(self.right.finger(), time, value);
            self.len += 1;
            return;
        }
        let Site { node, at, present } = self.site_of_insert(time);
        if present {
            self.combine_at(node, at, &value);
            self.refresh(node, self.nodes.level(node), 0);
            return;
        }
        self.len += 1;
        let (most, leaf) = (self.most(), self.nodes.leaf_mut(node));
        leaf.insert(at, time, value);
        let (parent, full) = (leaf.parent(), leaf.len() > most);
        let until = self.path.start;
        if full || until == 0 {
            let (top, level) = self.rebalance_for_insert(node);
            self.refresh(top, level, 1);
        } else {
            let partial = own_leaf(&self.monoid, self.nodes.leaf(node));
            self.refresh_above(parent, 1, partial, 1, until);
        }
    }

    /// Whether an entry can be appended to the right finger without a change of another node.
    #[inline(always)]
    fn right_finger_takes(&self, time: i64) -> bool {
        let finger = self.right.finger();
        let leaf = self.nodes.leaf(finger);
        let last = leaf.times().last();
        last.is_some_and(|last| *last < time) && leaf.len() < self.most() && finger != self.root
    }

    pub(crate) fn combine_at(&mut self, node: Id, at: usize, value: &M::Partial) {
        let whole = self.monoid.combine(&self.nodes.values(node)[at], value);
        *self.nodes.value_mut(node, at) = whole;
    }

    fn evict_from(&mut self, Site { node, at, .. }: Site) {
        self.len -= 1;
        if is_leaf(node) {
            self.nodes.remove(node, at);
            let (top, level) = self.rebalance_for_evict(node);
            self.refresh(top, level, -1);
        } else {
            self.evict_inner(node, at);
        }
        self.give_back();
    }

    /// Releases the memory of a large tree when only a leaf is left.
    #[inline(always)]
    pub(crate) fn give_back(&mut self) {
        const KEPT_NODES: usize = 64;
        if is_leaf(self.root) && self.nodes.capacity() > KEPT_NODES {
            self.rebuild();
        }
    }

    #[cold]
    fn rebuild(&mut self) {
        let (mut times, mut values) = (Vec::new(), Vec::new());
        self.nodes
            .drain(self.root, &mut times, &mut values, &mut Vec::new());
        self.nodes = Nodes::new(self.monoid.identity());
        let root = self.nodes.allocate(0);
        self.nodes.fill(root, &times, &mut values, &[]);
        self.set_root(root);
        self.refresh_spines();
    }

    /// The earliest entry.
    pub(crate) fn first(&self) -> Option<(i64, M::Partial)> {
        let node = self.first_leaf();
        let time = *self.nodes.times(node).first()?;
        Some((time, self.nodes.values(node)[0].clone()))
    }

    /// Whether entries up to a time are the earliest one at most. The second lies beside it, or
    /// in the parent of its leaf.
    fn ends_with_first(&self, time: i64) -> bool {
        let leaf = self.first_leaf();
        let second = match self.nodes.times(leaf) {
            [_, second, ..] => Some(*second),
            _ if leaf == self.root => None,
            _ => Some(self.nodes.times(self.nodes.parent(leaf))[0]),
        };
        second.is_none_or(|second| second > time)
    }

    fn first_leaf(&self) -> Id {
        if self.fingers.is_some() {
            return self.left.finger();
        }
        self.oldest_leaf(self.root)
    }
}

impl<M: Monoid, const E: usize, const K: usize> Window<M> for Tree<M, E, K> {
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        let value = entry.partial(&self.monoid);
        self.insert_partial(time, value);
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        if batch.len() > 1 && self.fingers.is_some_and(|options| options.bulk) {
            self.bulk_insert(batch);
            return;
        }
        for (time, entry) in batch.into_entries() {
            self.insert(time, entry);
        }
    }

    fn evict(&mut self) -> Option<i64> {
        let node = self.first_leaf();
        let (time, leaf) = self.nodes.pop_front(node)?;
        let spare = node == self.root || leaf.len() + 1 >= self.min_arity;
        self.len -= 1;
        if self.fingers.is_some() && spare && node != self.root {
            let own = own_leaf(&self.monoid, leaf);
            self.repair_left_finger(own);
            return Some(time);
        }
        self.path = SearchPath::default();
        if self.fingers.is_none() {
            self.path.start = self.left.height();
        }
        let (top, level) = self.rebalance_for_evict(node);
        self.refresh(top, level, -1);
        self.give_back();
        Some(time)
    }

    fn evict_at(&mut self, time: i64) -> bool {
        let found = self.find(time);
        if let Some(site) = found {
            self.evict_from(site);
        }
        found.is_some()
    }

    fn evict_until(&mut self, time: i64) -> usize {
        if !self.ends_with_first(time) && self.fingers.is_some_and(|options| options.bulk) {
            return self.bulk_evict(time);
        }
        let before = self.len;
        while self.oldest().is_some_and(|oldest| oldest <= time) {
            self.evict();
        }
        before - self.len
    }

    fn query(&mut self) -> M::Partial {
        if self.fingers.is_none() || is_leaf(self.root) {
            return self.top.clone();
        }
        let [left, right] = [&self.left, &self.right].map(|spine| &spine.levels[0].agg);
        let older = self.monoid.combine(left, &self.top);
        self.monoid.combine(&older, right)
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        let top = match self.fingers {
            Some(_) => self.climb_for_range(lo, hi),
            None => self.root,
        };
        self.fold_between(top, lo, hi)
    }

    fn len(&mut self) -> usize {
        self.len
    }

    fn oldest(&mut self) -> Option<i64> {
        self.nodes.times(self.first_leaf()).first().copied()
    }

    fn youngest(&mut self) -> Option<i64> {
        self.nodes.times(self.right.finger()).last().copied()
    }

    fn clear(&mut self) {
        let monoid = self.monoid.clone();
        *self = Self::empty(monoid, self.ties, self.min_arity, self.fingers);
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        self.walk(self.root, visit);
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.check_all()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.bytes() + self.left.bytes() + self.right.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.write_tree(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.read_tree(input)?;
        self.check_all().or_else(slidewise_core::snapshot::damaged)
    }

    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn shape(&mut self) -> Option<Shape<M::Partial>> {
        Some(self.to_shape())
    }
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    /// Which aggregate a node keeps (FiBA fig. 2): with fingers, this depends on its position.
    pub(crate) fn kind(&self, id: Id) -> PartialKind {
        if self.fingers.is_none() {
            return PartialKind::Up;
        }
        if id == self.root {
            return PartialKind::Inner;
        }
        let level = self.nodes.level(id);
        if self.left.at(level) == id {
            PartialKind::Left
        } else if self.right.at(level) == id {
            PartialKind::Right
        } else {
            PartialKind::Up
        }
    }
}
