//! The nodes of a B-tree by index: head, times and values of a node in one struct of fixed
//! room, its children in a block of their own. Beside each child lies its Π↑, so that its
//! parent is folded without a look at what it holds.

use std::array::from_fn;
use std::mem::{needs_drop, replace};

use super::slots::{few, prefix, shift_down_by, shift_in, transfer, transfer_within};
use crate::window::steps::Step;

pub(in crate::window) type Id = u32;
pub(in crate::window) const NONE: Id = Id::MAX;

/// A node in one piece, but for the children of those that have any.
#[derive(Clone, Debug)]
struct Node<P, const E: usize> {
    parent: Id,
    /// The block of its children; `NONE` for a leaf.
    block: Id,
    len: u8,
    level: u8,
    times: [i64; E],
    values: [P; E],
}

impl<P: Clone, const E: usize> Node<P, E> {
    /// Moves the entries behind the `count` from position `at` on into their place.
    #[inline(always)]
    fn close(&mut self, at: usize, count: usize) {
        let len = usize::from(self.len);
        self.len -= count as u8;
        let (times, values) = (&mut self.times[at..len], &mut self.values[at..len]);
        for at in count..times.len() {
            few();
            times[at - count] = times[at];
            transfer_within(values, at, at - count);
        }
    }
}

/// A node's aggregate and the number of entries it stands for.
#[derive(Clone, Debug)]
pub(in crate::window) struct Agg<P> {
    pub partial: P,
    pub count: u32,
}

/// A child and its Π↑. That of a child on a spine, which keeps another aggregate, is not
/// kept up to date.
#[derive(Clone, Debug)]
pub(in crate::window) struct Child<P> {
    pub id: Id,
    pub count: u32,
    pub partial: P,
}

impl<P: Clone> Child<P> {
    pub fn new(id: Id, Agg { partial, count }: Agg<P>) -> Self {
        Self { id, count, partial }
    }

    /// Its Π↑.
    #[inline(always)]
    pub fn agg(&self) -> Agg<P> {
        Agg {
            partial: self.partial.clone(),
            count: self.count,
        }
    }
}

/// An arena of nodes of up to `E` entries and `K` = `E` + 1 children each.
#[derive(Clone, Debug)]
pub(in crate::window) struct Nodes<P, const E: usize, const K: usize> {
    nodes: Vec<Node<P, E>>,
    blocks: Vec<[Child<P>; K]>,
    spare: Vec<Id>,
    spare_blocks: Vec<Id>,
    /// Roots of subtrees cut off, taken apart one node per allocation (bulk FiBA §6).
    pending: Vec<Id>,
    blank: P,
}

impl<P: Clone, const E: usize, const K: usize> Nodes<P, E, K> {
    /// `blank` fills slots without a value.
    pub fn new(blank: P) -> Self {
        Self {
            nodes: Vec::new(),
            blocks: Vec::new(),
            spare: Vec::new(),
            spare_blocks: Vec::new(),
            pending: Vec::new(),
            blank,
        }
    }

    #[inline(always)]
    fn node(&self, id: Id) -> &Node<P, E> {
        &self.nodes[id as usize]
    }

    #[inline(always)]
    fn node_mut(&mut self, id: Id) -> &mut Node<P, E> {
        &mut self.nodes[id as usize]
    }

    /// The slots for children of an inner node.
    #[inline(always)]
    fn block(&self, id: Id) -> &[Child<P>; K] {
        &self.blocks[self.node(id).block as usize]
    }

    #[inline(always)]
    fn block_mut(&mut self, id: Id) -> &mut [Child<P>; K] {
        &mut self.blocks[self.nodes[id as usize].block as usize]
    }

    /// Entries in the node; one less than its arity.
    #[inline(always)]
    pub fn len(&self, id: Id) -> usize {
        usize::from(self.node(id).len)
    }

    #[inline(always)]
    pub fn arity(&self, id: Id) -> usize {
        self.len(id) + 1
    }

    /// Distance from the leaves.
    #[inline(always)]
    pub fn level(&self, id: Id) -> usize {
        usize::from(self.node(id).level)
    }

    #[inline(always)]
    pub fn is_leaf(&self, id: Id) -> bool {
        self.node(id).level == 0
    }

    #[inline(always)]
    pub fn parent(&self, id: Id) -> Id {
        self.node(id).parent
    }

    #[inline(always)]
    pub fn set_parent(&mut self, id: Id, parent: Id) {
        self.node_mut(id).parent = parent;
    }

    #[inline(always)]
    pub fn times(&self, id: Id) -> &[i64] {
        let node = self.node(id);
        &node.times[..usize::from(node.len)]
    }

    #[inline(always)]
    pub fn values(&self, id: Id) -> &[P] {
        let node = self.node(id);
        &node.values[..usize::from(node.len)]
    }

    pub fn value_mut(&mut self, id: Id, at: usize) -> &mut P {
        &mut self.node_mut(id).values[at]
    }

    /// The children of an inner node; none for a leaf.
    #[inline(always)]
    pub fn children(&self, id: Id) -> &[Child<P>] {
        if self.is_leaf(id) {
            return &[];
        }
        &self.block(id)[..self.arity(id)]
    }

    #[inline(always)]
    pub fn child(&self, id: Id, at: usize) -> Id {
        self.block(id)[at].id
    }

    pub fn last_child(&self, id: Id) -> Id {
        self.child(id, self.len(id))
    }

    /// The position of a node in its parent. (Without a branch that depends on it.)
    #[inline(always)]
    pub fn position(&self, id: Id) -> usize {
        let siblings = self.children(self.parent(id)).iter().enumerate();
        let position = siblings.fold(usize::MAX, |found, (at, child)| {
            few();
            if child.id == id { at } else { found }
        });
        debug_assert_eq!(self.child(self.parent(id), position), id);
        position
    }

    /// Stores the Π↑ of the child at a position.
    #[inline(always)]
    pub fn set_agg(&mut self, parent: Id, at: usize, Agg { partial, count }: Agg<P>) {
        let child = &mut self.block_mut(parent)[at];
        child.partial = partial;
        child.count = count;
    }

    /// Drops the Π↑ of a node that keeps another aggregate.
    pub fn drop_agg(&mut self, id: Id) {
        if needs_drop::<P>() {
            let (partial, count) = (self.blank.clone(), 0);
            self.set_agg(self.parent(id), self.position(id), Agg { partial, count });
        }
    }

    /// How many entries have a time below `time`.
    #[inline(always)]
    pub fn below(&self, id: Id, time: i64) -> usize {
        prefix(self.times(id), |present| present < time)
    }

    /// How many entries have a time up to `time`.
    #[inline(always)]
    pub fn up_to(&self, id: Id, time: i64) -> usize {
        prefix(self.times(id), |present| present <= time)
    }

    /// An empty node; an inner one counts as having one child, which is not set yet.
    pub fn allocate(&mut self, level: usize) -> Id {
        Step::Allocate.note();
        let id = self.reuse().unwrap_or_else(|| self.grow());
        let block = if level == 0 { NONE } else { self.new_block() };
        let node = self.node_mut(id);
        (node.parent, node.block) = (NONE, block);
        (node.len, node.level) = (0, level as u8);
        id
    }

    fn reuse(&mut self) -> Option<Id> {
        if let Some(id) = self.spare.pop() {
            return Some(id);
        }
        let id = self.pending.pop()?;
        self.dismember(id);
        Some(id)
    }

    /// Hands the children of a cut node to `pending` and its block back.
    fn dismember(&mut self, id: Id) {
        Step::Free.note();
        if self.is_leaf(id) {
            return;
        }
        let node = &self.nodes[id as usize];
        let children = &self.blocks[node.block as usize][..=usize::from(node.len)];
        self.pending.extend(children.iter().map(|child| child.id));
        self.spare_blocks.push(node.block);
    }

    fn grow(&mut self) -> Id {
        let id = Id::try_from(self.nodes.len()).expect("fewer than 2^32 nodes");
        assert!(id != NONE, "fewer than 2^32 nodes");
        self.nodes.push(Node {
            parent: NONE,
            block: NONE,
            len: 0,
            level: 0,
            times: [0; E],
            values: from_fn(|_| self.blank.clone()),
        });
        id
    }

    fn new_block(&mut self) -> Id {
        if let Some(block) = self.spare_blocks.pop() {
            return block;
        }
        let block = self.blocks.len() as Id;
        self.blocks.push(from_fn(|_| self.child_of(NONE)));
        block
    }

    /// A node as a child, without an aggregate as yet.
    pub fn child_of(&self, id: Id) -> Child<P> {
        let (partial, count) = (self.blank.clone(), 0);
        Child { id, count, partial }
    }

    /// Frees one node; its children live on elsewhere.
    pub fn release(&mut self, id: Id) {
        Step::Free.note();
        self.vacate(id, 0, self.len(id));
        if !self.is_leaf(id) {
            self.vacate_children(id, 0, self.arity(id));
            self.spare_blocks.push(self.node(id).block);
        }
        self.spare.push(id);
    }

    /// Frees a whole subtree: later, a node at a time, if `deferred`. Values that own
    /// memory are dropped at once all the same.
    pub fn cut(&mut self, id: Id, deferred: bool) {
        Step::Cut.note();
        self.pending.push(id);
        if deferred && !needs_drop::<P>() {
            return;
        }
        while let Some(id) = self.pending.pop() {
            for at in 0..self.children(id).len() {
                let child = self.child(id, at);
                self.pending.push(child);
            }
            self.release(id);
        }
    }

    /// Drops values that own memory.
    fn vacate(&mut self, id: Id, from: usize, to: usize) {
        if needs_drop::<P>() {
            let blank = self.blank.clone();
            self.node_mut(id).values[from..to].fill(blank);
        }
    }

    /// Drops the aggregates of children that own memory.
    fn vacate_children(&mut self, id: Id, from: usize, to: usize) {
        if needs_drop::<P>() && from < to {
            let blank = self.child_of(NONE);
            self.block_mut(id)[from..to].fill(blank);
        }
    }

    /// Puts an entry at position `at`, and a child right behind it if the node is inner.
    #[inline]
    pub fn insert(&mut self, id: Id, at: usize, time: i64, value: P, child: Option<Child<P>>) {
        let node = self.node_mut(id);
        let len = usize::from(node.len);
        node.len += 1;
        let (times, values) = (&mut node.times[at..=len], &mut node.values[at..=len]);
        for at in (1..times.len()).rev() {
            few();
            times[at] = times[at - 1];
            transfer_within(values, at - 1, at);
        }
        (times[0], values[0]) = (time, value);
        if let Some(child) = child {
            self.set_parent(child.id, id);
            shift_in(&mut self.block_mut(id)[at + 1..=len + 1], child);
        }
    }

    /// Gives an inner node without entries its first child.
    pub fn set_first_child(&mut self, id: Id, child: Id) {
        self.block_mut(id)[0].id = child;
        self.set_parent(child, id);
    }

    /// Takes an entry out, and the child behind it out of an inner node.
    #[inline]
    pub fn remove(&mut self, id: Id, at: usize) -> (i64, P) {
        let entry = self.take(id, at);
        let node = self.node_mut(id);
        let len = usize::from(node.len);
        node.close(at, 1);
        if node.level > 0 {
            self.vacate_children(id, at + 1, at + 2);
            shift_down_by(&mut self.block_mut(id)[at + 1..=len], 1);
        }
        entry
    }

    fn take_value(&mut self, id: Id, at: usize) -> P {
        if !needs_drop::<P>() {
            return self.node(id).values[at].clone();
        }
        let blank = self.blank.clone();
        replace(self.value_mut(id, at), blank)
    }

    /// Puts an entry behind the last one; an inner node's last child is then missing.
    #[inline]
    pub fn append(&mut self, id: Id, time: i64, value: P) {
        let node = self.node_mut(id);
        let at = usize::from(node.len);
        node.times[at] = time;
        node.values[at] = value;
        node.len += 1;
    }

    /// Takes the last entry and the child behind it.
    pub fn pop_back(&mut self, id: Id) -> (i64, P, Option<Child<P>>) {
        let child = self.children(id).last().cloned();
        let (time, value) = self.remove(id, self.len(id) - 1);
        (time, value, child)
    }

    /// Puts an entry before the first one, and a child before that.
    pub fn push_front(&mut self, id: Id, time: i64, value: P, child: Option<Child<P>>) {
        let len = self.len(id);
        self.insert(id, 0, time, value, None);
        if let Some(child) = child {
            self.set_parent(child.id, id);
            shift_in(&mut self.block_mut(id)[..=len + 1], child);
        }
    }

    /// Takes an entry out; its place is for the caller to fill or to close.
    pub fn take(&mut self, id: Id, at: usize) -> (i64, P) {
        (self.node(id).times[at], self.take_value(id, at))
    }

    /// Swaps in another entry, in the same place.
    pub fn exchange(&mut self, id: Id, at: usize, time: i64, value: P) -> (i64, P) {
        let node = self.node_mut(id);
        let old = replace(&mut node.times[at], time);
        (old, replace(&mut node.values[at], value))
    }

    /// Drops the first `count` entries, and as many children. An inner node may lose all
    /// its entries, not its last child.
    #[inline]
    pub fn drop_front(&mut self, id: Id, count: usize) {
        self.vacate(id, 0, count);
        let node = self.node_mut(id);
        let len = usize::from(node.len);
        node.close(0, count);
        if node.level > 0 {
            self.vacate_children(id, 0, count);
            shift_down_by(&mut self.block_mut(id)[..=len], count);
        }
    }

    /// Two nodes.
    fn pair(&mut self, one: Id, other: Id) -> [&mut Node<P, E>; 2] {
        let places = [one as usize, other as usize];
        self.nodes.get_disjoint_mut(places).expect("two nodes")
    }

    /// Moves the entries from position `at` on behind those of `to`, with the children
    /// from position `first` on.
    pub fn move_tail(&mut self, from: Id, at: usize, first: usize, to: Id, to_first: usize) {
        let arity = self.arity(from);
        let [source, target] = self.pair(from, to);
        let (len, there) = (usize::from(source.len), usize::from(target.len));
        move_entries(source, at, target, there, len - at);
        source.len = at as u8;
        target.len += (len - at) as u8;
        if source.level > 0 {
            self.move_children(from, first, to, to_first, arity - first);
        }
    }

    fn move_children(&mut self, from: Id, at: usize, to: Id, there: usize, count: usize) {
        let places = [from, to].map(|id| self.node(id).block as usize);
        let [source, target] = self.blocks.get_disjoint_mut(places).expect("two nodes");
        let source = source[at..at + count].iter_mut();
        for (source, target) in source.zip(&mut target[there..there + count]) {
            few();
            self.nodes[source.id as usize].parent = to;
            transfer(source, target);
        }
    }

    /// Moves the first `count` entries of `from` behind those of `to`, with `count`
    /// children; keeps the separator between the two in order: the one given goes behind
    /// `to`'s entries first, the last one moved comes out in its stead.
    pub fn rotate_front(
        &mut self,
        from: Id,
        to: Id,
        count: usize,
        (time, value): (i64, P),
    ) -> (i64, P) {
        let arity = self.arity(to);
        self.append(to, time, value);
        let [source, target] = self.pair(from, to);
        move_entries(source, 0, target, arity, count - 1);
        target.len += (count - 1) as u8;
        if source.level > 0 {
            self.move_children(from, 0, to, arity, count);
        }
        let separator = self.take(from, count - 1);
        self.drop_front(from, count);
        separator
    }

    /// Moves all of `from`, a separator behind it, before the entries of `to`.
    pub fn prepend(&mut self, from: Id, (time, value): (i64, P), to: Id) {
        let [source, target] = self.pair(from, to);
        let (more, len) = (usize::from(source.len) + 1, usize::from(target.len));
        target.times[..len + more].rotate_right(more);
        target.values[..len + more].rotate_right(more);
        move_entries(source, 0, target, 0, more - 1);
        target.times[more - 1] = time;
        target.values[more - 1] = value;
        source.len = 0;
        target.len += more as u8;
        if source.level > 0 {
            self.block_mut(to)[..=len + more].rotate_right(more);
            self.move_children(from, 0, to, 0, more);
        }
    }

    /// Moves all contents out, appending them to columns.
    pub fn drain(
        &mut self,
        id: Id,
        times: &mut Vec<i64>,
        values: &mut Vec<P>,
        children: &mut Vec<Child<P>>,
    ) {
        times.extend_from_slice(self.times(id));
        children.extend_from_slice(self.children(id));
        self.vacate_children(id, 0, self.children(id).len());
        for at in 0..self.len(id) {
            let value = self.take_value(id, at);
            values.push(value);
        }
        self.node_mut(id).len = 0;
    }

    /// Fills an empty node.
    pub fn fill(&mut self, id: Id, times: &[i64], values: &mut [P], children: &[Child<P>]) {
        let node = &mut self.nodes[id as usize];
        node.len = times.len() as u8;
        node.times[..times.len()].copy_from_slice(times);
        for (place, value) in node.values.iter_mut().zip(values) {
            *place = replace(value, self.blank.clone());
        }
        if node.level > 0 {
            self.block_mut(id)[..children.len()].clone_from_slice(children);
            for child in children {
                self.set_parent(child.id, id);
            }
        }
    }

    /// Nodes allocated, in use or not.
    pub fn capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Blocks of children that nodes have, spare ones, and all.
    pub fn blocks(&self) -> [usize; 3] {
        let free = self.spare.iter().map(|id| *id as usize);
        let mut has = vec![true; self.nodes.len()];
        free.for_each(|id| has[id] = false);
        let nodes = self.nodes.iter().zip(has);
        let used = nodes.filter(|(node, has)| *has && node.block != NONE && node.level > 0);
        [used.count(), self.spare_blocks.len(), self.blocks.len()]
    }

    /// Nodes that are free or wait to be, cut subtrees taken apart.
    pub fn idle(&self) -> usize {
        let mut waiting = self.pending.clone();
        let mut idle = self.spare.len();
        while let Some(id) = waiting.pop() {
            idle += 1;
            waiting.extend(self.children(id).iter().map(|child| child.id));
        }
        idle
    }

    pub fn bytes(&self) -> usize {
        let ids = self.spare.capacity() + self.spare_blocks.capacity() + self.pending.capacity();
        self.nodes.capacity() * size_of::<Node<P, E>>()
            + self.blocks.capacity() * size_of::<[Child<P>; K]>()
            + ids * size_of::<Id>()
    }
}

/// Moves entries from one node to another.
#[inline]
fn move_entries<P: Clone, const E: usize>(
    source: &mut Node<P, E>,
    at: usize,
    target: &mut Node<P, E>,
    there: usize,
    count: usize,
) {
    let times = source.times[at..at + count].iter();
    let values = source.values[at..at + count].iter_mut();
    let places = target.times[there..there + count].iter_mut();
    let places = places.zip(&mut target.values[there..there + count]);
    for ((time, value), place) in times.zip(values).zip(places) {
        few();
        *place.0 = *time;
        transfer(value, place.1);
    }
}
