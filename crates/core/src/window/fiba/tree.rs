//! The memory of the tree: leaves and inner nodes in arenas, spines, deferred free list.

use super::late_buffer::LateBuffer;
use super::leaf::{Leaf, SortedRun};
use super::path::{Id, Path};
use super::search::count_before;
use crate::monoid::{HandleSlot, Monoid, Slab};
use crate::window::Ties;
use crate::window::steps::Step;

/// A child as its parent sees it.
#[derive(Clone, Debug)]
pub(super) struct Child<P> {
    /// No time in this child is below, none in the child before is above. The first
    /// child's key is never read: it counts as minus infinity.
    pub(super) key: i64,
    pub(super) id: Id,
    /// Entries below. Like `agg`, not kept for children on a spine.
    pub(super) count: u32,
    /// Π↑ of the child, unless it is on a spine.
    pub(super) agg: P,
}

pub(super) type Children<P> = Vec<Child<P>>;

/// New nodes to the right of a node that was split, in order.
pub(super) type Siblings<P> = Vec<Child<P>>;

/// The ends of the window that a node belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spine {
    pub(super) left: bool,
    pub(super) right: bool,
}

impl Spine {
    pub(super) const ROOT: Self = Self {
        left: true,
        right: true,
    };
    pub(super) const LEFT: Self = Self {
        left: true,
        right: false,
    };
    pub(super) const RIGHT: Self = Self {
        left: false,
        right: true,
    };

    /// The spines that child `at` of `arity` is on.
    pub(super) fn of_child(self, at: usize, arity: usize) -> Self {
        Self {
            left: self.left && at == 0,
            right: self.right && at + 1 == arity,
        }
    }

    pub(super) fn any(self) -> bool {
        self.left || self.right
    }
}

/// The aggregates that must be recomputed before the next query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stale {
    /// Levels up to which the left (right) spine changed, 0 for none.
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) suffix: bool,
    /// Only the front slot of `suffix`.
    pub(super) head: bool,
    pub(super) tail: bool,
}

impl Stale {
    /// The node of `level` on these spines changed.
    pub(super) fn mark(&mut self, level: usize, spine: Spine) {
        if spine.left {
            self.left = self.left.max(level);
        }
        if spine.right {
            self.right = self.right.max(level);
        }
    }

    /// A finger changed.
    pub(super) fn mark_finger(&mut self, spine: Spine) {
        self.suffix |= spine.left;
        self.tail |= spine.right;
    }
}

/// Nodes to use again. Cut subtrees wait whole in `pending`, as (root, level), and are
/// taken apart one node per allocation (bulk FiBA §6).
#[derive(Clone, Debug, Default)]
pub(super) struct Spare {
    leaves: Vec<Id>,
    inners: Vec<Id>,
    pending: Vec<(Id, u8)>,
}

#[derive(Clone, Debug)]
pub(super) struct Tree<M: Monoid, const L: usize, const F: usize> {
    pub(super) monoid: M,
    pub(super) ties: Ties,
    pub(super) leaves: Vec<Leaf<M::In, L>>,
    pub(super) inners: Vec<Children<M::Partial>>,
    pub(super) spare: Spare,
    pub(super) slab: Slab<M::Partial>,
    /// Spines by level: leaves (the fingers) at 0, the root last in both.
    pub(super) left: Path,
    pub(super) right: Path,
    /// The folds of the left finger: `suffix[i]` folds slots `i..flip`. Kept for the slot at the
    /// front, and for those before `known`, which is `flip`, or less after a bulk eviction, as
    /// the next one would have no use for the others.
    pub(super) suffix: Vec<M::Partial>,
    pub(super) known: usize,
    /// The end of the left finger; in a single leaf, the begin of the tail.
    pub(super) flip: usize,
    /// Π↙ by level: all below the left spine's node but its first child, then the
    /// spine above, without the root. Index 0 is not used.
    pub(super) left_agg: Vec<M::Partial>,
    /// Π↘ by level, likewise.
    pub(super) right_agg: Vec<M::Partial>,
    /// Π of the root without its outermost children.
    pub(super) inner_agg: M::Partial,
    /// Everything but the two fingers.
    pub(super) mid: M::Partial,
    /// The right finger (from `flip` on in a single leaf), and what is staged.
    pub(super) tail: M::Partial,
    pub(super) staged: LateBuffer<M>,
    /// Times above it may be appended to the right finger: the latest time in the tree, or
    /// `MAX` while all arrivals are staged.
    pub(super) bound: i64,
    /// Entries ever inserted and ever evicted. Two counters, so that the two ends of the
    /// window do not write one word in turn.
    pub(super) inserted: u64,
    pub(super) evicted: u64,
    /// The most entries that were there before an eviction, since nodes last moved.
    pub(super) most: usize,
    pub(super) stale: Stale,
    /// Buffers, empty between operations: staged entries in order, and a leaf's entries
    /// while they are spread anew.
    pub(super) arrived: SortedRun<M::In>,
    pub(super) scratch: SortedRun<M::In>,
}

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// Smallest arity of an inner node but the root, which has at least 2.
    pub(super) const MIN_ARITY: usize = if F / 8 > 2 { F / 8 } else { 2 };
    /// Smallest size of a leaf that is not a finger.
    pub(super) const MIN_LEAF: usize = if L / 8 > 1 { L / 8 } else { 1 };

    /// A window that became small frees memory if it has more leaves than these.
    pub(super) const SPARE_LEAVES: usize = 16;

    pub(super) fn new(monoid: M, ties: Ties) -> Self {
        const { assert!(F >= 4, "an inner node splits into two of arity 2 at least") };
        let identity = monoid.identity();
        Self {
            ties,
            leaves: vec![Leaf::new()],
            inners: Vec::new(),
            spare: Spare::default(),
            slab: Slab::default(),
            left: Path::of(0, 0),
            right: Path::of(0, 0),
            suffix: vec![identity.clone(); L],
            known: 0,
            flip: 0,
            left_agg: vec![identity.clone()],
            right_agg: vec![identity.clone()],
            inner_agg: identity.clone(),
            mid: identity.clone(),
            tail: identity,
            staged: LateBuffer::new(&monoid),
            bound: i64::MAX,
            inserted: 0,
            evicted: 0,
            most: 0,
            stale: Stale::default(),
            arrived: SortedRun::default(),
            scratch: SortedRun::default(),
            monoid,
        }
    }

    /// The root's level; 0 for a single leaf.
    #[inline]
    pub(super) fn height(&self) -> usize {
        self.left.height()
    }

    #[inline]
    pub(super) fn tree_len(&self) -> usize {
        (self.inserted - self.evicted) as usize
    }

    #[inline]
    pub(super) fn left_leaf(&self) -> &Leaf<M::In, L> {
        &self.leaves[self.left[0] as usize]
    }

    #[inline]
    pub(super) fn right_leaf(&self) -> &Leaf<M::In, L> {
        &self.leaves[self.right[0] as usize]
    }

    #[inline]
    pub(super) fn leaf(&self, id: Id) -> &Leaf<M::In, L> {
        &self.leaves[id as usize]
    }

    #[inline]
    pub(super) fn leaf_mut(&mut self, id: Id) -> &mut Leaf<M::In, L> {
        &mut self.leaves[id as usize]
    }

    #[inline]
    pub(super) fn children(&self, id: Id) -> &Children<M::Partial> {
        &self.inners[id as usize]
    }

    #[inline]
    pub(super) fn children_mut(&mut self, id: Id) -> &mut Children<M::Partial> {
        &mut self.inners[id as usize]
    }

    /// The node of `level` on that spine; the root is on both.
    pub(super) fn spine_node(&self, level: usize, spine: Spine) -> Id {
        if spine.left {
            self.left[level]
        } else {
            self.right[level]
        }
    }

    /// The parent of a spine's node, the spines it is on, and the node's place in it.
    pub(super) fn parent_on_spine(&self, level: usize, spine: Spine) -> (Id, Spine, usize) {
        let parent = self.spine_node(level + 1, spine);
        let at_root = level + 1 == self.height();
        let parent_spine = Spine {
            left: spine.left || at_root,
            right: spine.right || at_root,
        };
        let last = self.children(parent).len() - 1;
        (parent, parent_spine, if spine.left { 0 } else { last })
    }

    /// The child whose range holds `time`, if new entries go behind their equals.
    pub(super) fn child_behind(&self, id: Id, time: i64) -> usize {
        count_before(&self.children(id)[1..], |child| child.key <= time)
    }

    /// The first child that may hold `time`.
    pub(super) fn child_before(&self, id: Id, time: i64) -> usize {
        count_before(&self.children(id)[1..], |child| child.key < time)
    }

    pub(super) fn new_child(&self, key: i64, id: Id) -> Child<M::Partial> {
        Child {
            key,
            id,
            count: 0,
            agg: self.monoid.identity(),
        }
    }

    pub(super) fn new_leaf(&mut self) -> Id {
        Step::Allocate.note();
        while self.spare.leaves.is_empty() {
            let Some((id, level)) = self.spare.pending.pop() else {
                return grow(&mut self.leaves, Leaf::new());
            };
            self.take_apart(id, level);
        }
        let id = self.spare.leaves.pop().expect("just filled");
        self.release_promoted(id);
        self.leaf_mut(id).reset();
        id
    }

    pub(super) fn new_inner(&mut self, mut children: Children<M::Partial>) -> Id {
        Step::Allocate.note();
        // Room for all children and the one that will split it, no more.
        children.reserve_exact((F + 1).saturating_sub(children.len()));
        children.shrink_to(F + 1);
        if self.spare.inners.is_empty()
            && let Some((id, level)) = self.spare.pending.pop()
        {
            self.take_apart(id, level);
        }
        match self.spare.inners.pop() {
            Some(id) => {
                self.inners[id as usize] = children;
                id
            }
            None => grow(&mut self.inners, children),
        }
    }

    /// Frees an inner node and puts its children where freed nodes go.
    fn take_apart(&mut self, id: Id, level: u8) {
        Step::Free.note();
        let children = std::mem::take(&mut self.inners[id as usize]);
        self.spare.inners.push(id);
        for child in children {
            if level == 1 {
                self.spare.leaves.push(child.id);
            } else {
                self.spare.pending.push((child.id, level - 1));
            }
        }
    }

    /// Puts a subtree on the free list: O(1), unless its entries need dropping now.
    pub(super) fn discard(&mut self, id: Id, level: usize) {
        Step::Cut.note();
        if level > 0 {
            self.spare.pending.push((id, level as u8));
        } else {
            self.spare.leaves.push(id);
        }
        if std::mem::needs_drop::<M::In>() {
            self.drop_discarded();
        }
    }

    /// Drops discarded values that own memory (Python objects) at once.
    fn drop_discarded(&mut self) {
        while let Some((id, level)) = self.spare.pending.pop() {
            self.take_apart(id, level);
        }
        for at in (0..self.spare.leaves.len()).rev() {
            let id = self.spare.leaves[at];
            if self.leaf(id).end == 0 {
                break;
            }
            self.release_promoted(id);
            self.leaf_mut(id).reset();
        }
    }

    /// Frees an inner node whose children have moved elsewhere.
    pub(super) fn free_inner(&mut self, id: Id) {
        self.inners[id as usize] = Vec::new();
        self.spare.inners.push(id);
    }

    /// Frees a leaf whose entries have moved elsewhere.
    pub(super) fn free_leaf(&mut self, id: Id) {
        self.leaf_mut(id).reset();
        self.spare.leaves.push(id);
    }

    /// Looks at the leaf only if any entry at all is promoted: a leaf cut off unseen is
    /// a cache miss.
    fn release_promoted(&mut self, id: Id) {
        if self.slab.live() == 0 {
            return;
        }
        let leaf = &self.leaves[id as usize];
        self.release_slots(id, leaf.start(), leaf.end());
    }

    /// Gives back the partials of promoted slots about to go.
    pub(super) fn release_slots(&mut self, id: Id, from: usize, to: usize) {
        let leaf = &mut self.leaves[id as usize];
        let mut bits = leaf.promoted_in(from, to);
        leaf.promoted &= !bits;
        while bits != 0 {
            self.slab
                .release(leaf.values[bits.trailing_zeros() as usize].handle());
            bits &= bits - 1;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.monoid.clone(), self.ties);
    }

    pub(super) fn bytes(&self) -> usize {
        let inners: usize = self.inners.iter().map(Vec::capacity).sum();
        let partials =
            self.suffix.capacity() + self.left_agg.capacity() + self.right_agg.capacity();
        size_of::<Self>()
            + self.leaves.capacity() * size_of::<Leaf<M::In, L>>()
            + self.inners.capacity() * size_of::<Children<M::Partial>>()
            + inners * size_of::<Child<M::Partial>>()
            + partials * size_of::<M::Partial>()
            + self.slab.bytes()
            + self.staged.entries.capacity() * size_of::<(i64, M::In)>()
            + self.scratch.bytes()
            + self.arrived.bytes()
            + (self.spare.leaves.capacity() + self.spare.inners.capacity()) * size_of::<Id>()
            + self.spare.pending.capacity() * size_of::<(Id, u8)>()
    }
}

/// Appends to an arena. It does not grow by doubling: a large window should not hold twice
/// its size. On Linux, allocators (those of glibc and of musl) move a large block by mapping
/// its pages elsewhere, so it grows by a 32nd. Others may copy it: by an eighth, each node
/// is copied eight times in all.
fn grow<T>(arena: &mut Vec<T>, node: T) -> Id {
    const SHARE: usize = if cfg!(target_os = "linux") { 32 } else { 8 };
    if arena.len() == arena.capacity() {
        arena.reserve_exact(arena.len() / SHARE + 1);
    }
    arena.push(node);
    Id::try_from(arena.len() - 1).expect("fewer than 2^32 nodes")
}
