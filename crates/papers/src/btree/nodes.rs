//! The nodes of a B-tree by index. Leaves, without room for children, have an arena of their own.

use std::array::from_fn;
use std::mem::{needs_drop, replace};

use super::node::{Child, Id, Inner, LEAF, NONE, Node, is_leaf, move_entries};
use super::slots::{prefix, shift_down_by, shift_in, short_loop, transfer};
use slidewise_core::window::shape::PartialKind;
use slidewise_core::window::steps::Step;

/// Nodes of up to `E` entries and `K` = `E` + 1 children each.
#[derive(Clone, Debug)]
pub(crate) struct Nodes<P, const E: usize, const K: usize> {
    leaves: Vec<Node<P, E>>,
    inner: Vec<Inner<P, E, K>>,
    spare_leaves: Vec<Id>,
    spare_inner: Vec<Id>,
    /// The inner nodes at the top of cut subtrees; each allocation frees the children of one
    /// (bulk FiBA §6).
    pending: Vec<Id>,
    blank: P,
}

impl<P: Clone, const E: usize, const K: usize> Nodes<P, E, K> {
    /// `blank` fills slots without a value.
    pub fn new(blank: P) -> Self {
        Self {
            leaves: Vec::new(),
            inner: Vec::new(),
            spare_leaves: Vec::new(),
            spare_inner: Vec::new(),
            pending: Vec::new(),
            blank,
        }
    }

    #[inline(always)]
    pub fn leaf(&self, id: Id) -> &Node<P, E> {
        &self.leaves[(id & !LEAF) as usize]
    }

    #[inline(always)]
    pub fn leaf_mut(&mut self, id: Id) -> &mut Node<P, E> {
        &mut self.leaves[(id & !LEAF) as usize]
    }

    #[inline(always)]
    pub fn inner(&self, id: Id) -> &Inner<P, E, K> {
        &self.inner[id as usize]
    }

    #[inline(always)]
    pub fn inner_mut(&mut self, id: Id) -> &mut Inner<P, E, K> {
        &mut self.inner[id as usize]
    }

    #[inline(always)]
    pub fn node(&self, id: Id) -> &Node<P, E> {
        match is_leaf(id) {
            true => self.leaf(id),
            false => &self.inner(id).node,
        }
    }

    #[inline(always)]
    fn node_mut(&mut self, id: Id) -> &mut Node<P, E> {
        match is_leaf(id) {
            true => self.leaf_mut(id),
            false => &mut self.inner_mut(id).node,
        }
    }

    /// The number of entries; one less than the arity.
    #[inline(always)]
    pub fn len(&self, id: Id) -> usize {
        self.node(id).len()
    }

    #[inline(always)]
    pub fn arity(&self, id: Id) -> usize {
        self.len(id) + 1
    }

    /// The distance from the leaves.
    #[inline(always)]
    pub fn level(&self, id: Id) -> usize {
        match is_leaf(id) {
            true => 0,
            false => usize::from(self.inner(id).node.level),
        }
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
        self.node(id).times()
    }

    #[inline(always)]
    pub fn values(&self, id: Id) -> &[P] {
        let node = self.node(id);
        &node.values[..node.len()]
    }

    pub fn value_mut(&mut self, id: Id, at: usize) -> &mut P {
        &mut self.node_mut(id).values[at]
    }

    /// The children of an inner node; none for a leaf.
    #[inline(always)]
    pub fn children(&self, id: Id) -> &[Child<P>] {
        if is_leaf(id) {
            return &[];
        }
        let inner = self.inner(id);
        &inner.children[..=inner.node.len()]
    }

    #[inline(always)]
    pub fn child(&self, id: Id, at: usize) -> Id {
        self.inner(id).children[at].id
    }

    pub fn last_child(&self, id: Id) -> Id {
        self.child(id, self.len(id))
    }

    /// The position of a node in its parent. (Without a branch that depends on it.)
    #[inline(always)]
    pub fn position(&self, id: Id) -> usize {
        let siblings = self.children(self.parent(id)).iter().enumerate();
        let position = siblings.fold(usize::MAX, |found, (at, child)| {
            short_loop();
            if child.id == id { at } else { found }
        });
        debug_assert_eq!(self.child(self.parent(id), position), id);
        position
    }

    /// The number of entries that an aggregate of that kind covers, without what the parent
    /// hands down.
    #[inline(always)]
    pub fn entries(&self, id: Id, kind: PartialKind) -> usize {
        match is_leaf(id) {
            true => self.leaf(id).len(),
            false => self.inner(id).entries(kind),
        }
    }

    /// Drops the Π↑ and the Π inner of a node that keeps another aggregate.
    pub fn drop_agg(&mut self, id: Id) {
        if needs_drop::<P>() {
            let (parent, at) = (self.parent(id), self.position(id));
            self.inner_mut(parent).children[at].partial = self.blank.clone();
            self.vacate_middle(id);
        }
    }

    /// The number of entries before `time`.
    #[inline(always)]
    pub fn below(&self, id: Id, time: i64) -> usize {
        prefix::<E>(self.times(id), |present| present < time)
    }

    /// The number of entries at or before `time`.
    #[inline(always)]
    pub fn up_to(&self, id: Id, time: i64) -> usize {
        prefix::<E>(self.times(id), |present| present <= time)
    }

    /// An empty node. An inner node has one child, which is not set yet.
    #[inline]
    pub fn allocate(&mut self, level: usize) -> Id {
        Step::Allocate.note();
        let id = match level {
            0 => self.new_leaf(),
            _ => self.new_inner(),
        };
        let node = self.node_mut(id);
        (node.parent, node.len, node.level) = (NONE, 0, level as u8);
        id
    }

    #[inline(always)]
    fn new_leaf(&mut self) -> Id {
        match self.spare_leaves.pop() {
            Some(id) => id,
            None => self.make_leaf(),
        }
    }

    #[inline(never)]
    fn make_leaf(&mut self) -> Id {
        if let Some(id) = self.pending.pop() {
            self.free_children(id);
            self.spare_inner.push(id);
        }
        self.spare_leaves.pop().unwrap_or_else(|| {
            self.leaves.push(Node::new(0, &self.blank));
            place(self.leaves.len()) | LEAF
        })
    }

    #[inline(never)]
    fn new_inner(&mut self) -> Id {
        if let Some(id) = self.spare_inner.pop() {
            return id;
        }
        if let Some(id) = self.pending.pop() {
            self.free_children(id);
            return id;
        }
        self.inner.push(Inner {
            node: Node::new(1, &self.blank),
            middle: self.blank.clone(),
            children: from_fn(|_| self.child_of(NONE)),
        });
        place(self.inner.len())
    }

    /// Moves the children of a cut node to `pending`, and leaves to the spare ones.
    fn free_children(&mut self, id: Id) {
        Step::Free.note();
        let inner = &self.inner[id as usize];
        let list = match inner.node.level {
            1 => &mut self.spare_leaves,
            _ => &mut self.pending,
        };
        for child in &inner.children[..=inner.node.len()] {
            list.push(child.id);
        }
    }

    /// A node as a child, whose aggregate is not computed yet.
    pub fn child_of(&self, id: Id) -> Child<P> {
        let (partial, count) = (self.blank.clone(), 0);
        Child { id, count, partial }
    }

    /// Frees one node; its children stay in the tree.
    #[inline]
    pub fn release(&mut self, id: Id) {
        Step::Free.note();
        self.vacate(id, 0, self.len(id));
        if is_leaf(id) {
            self.spare_leaves.push(id);
        } else {
            self.vacate_children(id, 0, self.arity(id));
            self.vacate_middle(id);
            self.spare_inner.push(id);
        }
    }

    /// Frees a whole subtree; if `deferred`, later and one node at a time. Values that own
    /// memory are dropped at once in any case.
    pub fn cut(&mut self, id: Id, deferred: bool) {
        Step::Cut.note();
        if deferred && !needs_drop::<P>() {
            match is_leaf(id) {
                true => self.spare_leaves.push(id),
                false => self.pending.push(id),
            }
            return;
        }
        let mut cut = vec![id];
        while let Some(id) = cut.pop() {
            cut.extend(self.children(id).iter().map(|child| child.id));
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
            self.inner_mut(id).children[from..to].fill(blank);
        }
    }

    /// Drops the Π inner of a node if it owns memory.
    pub fn vacate_middle(&mut self, id: Id) {
        if needs_drop::<P>() && !is_leaf(id) {
            self.inner_mut(id).middle = self.blank.clone();
        }
    }

    /// Appends an entry to a leaf.
    #[inline(always)]
    pub fn append_to_leaf(&mut self, id: Id, time: i64, value: P) {
        self.leaf_mut(id).append(time, value);
    }

    /// Inserts an entry at position `at`, and a child after it if the node is inner.
    #[inline]
    pub fn insert(&mut self, id: Id, at: usize, time: i64, value: P, child: Option<Child<P>>) {
        let Some(child) = child else {
            return self.node_mut(id).insert(at, time, value);
        };
        self.set_parent(child.id, id);
        self.inner_mut(id).insert(at, time, value, child);
    }

    /// Gives an inner node without entries its first child.
    pub fn set_first_child(&mut self, id: Id, child: Id) {
        self.inner_mut(id).children[0].id = child;
        self.set_parent(child, id);
    }

    /// Drops the first entry of a leaf; returns its time and the leaf.
    #[inline(always)]
    pub fn pop_front(&mut self, id: Id) -> Option<(i64, &Node<P, E>)> {
        let blank = needs_drop::<P>().then(|| self.blank.clone());
        let leaf = self.leaf_mut(id);
        let time = *leaf.times().first()?;
        if let Some(blank) = blank {
            leaf.values[0] = blank;
        }
        leaf.shift_down();
        Some((time, leaf))
    }

    /// Removes an entry, and from an inner node the child after it.
    #[inline]
    pub fn remove(&mut self, id: Id, at: usize) -> (i64, P) {
        let entry = self.take(id, at);
        if is_leaf(id) {
            self.leaf_mut(id).close(at, 1);
        } else {
            self.vacate_children(id, at + 1, at + 2);
            let inner = self.inner_mut(id);
            let len = inner.node.len();
            inner.node.close(at, 1);
            shift_down_by(&mut inner.children[at + 1..=len], 1);
        }
        entry
    }

    #[inline]
    fn take_value(&mut self, id: Id, at: usize) -> P {
        if !needs_drop::<P>() {
            return self.node(id).values[at].clone();
        }
        let blank = self.blank.clone();
        replace(self.value_mut(id, at), blank)
    }

    /// Appends an entry; the caller adds the last child of an inner node.
    #[inline]
    pub fn append(&mut self, id: Id, time: i64, value: P) {
        self.node_mut(id).append(time, value);
    }

    /// Removes the last entry and the child after it.
    pub fn pop_back(&mut self, id: Id) -> (i64, P, Option<Child<P>>) {
        let child = self.children(id).last().cloned();
        let (time, value) = self.remove(id, self.len(id) - 1);
        (time, value, child)
    }

    /// Inserts an entry at the front, and a child before it.
    pub fn push_front(&mut self, id: Id, time: i64, value: P, child: Option<Child<P>>) {
        let len = self.len(id);
        self.insert(id, 0, time, value, None);
        if let Some(child) = child {
            self.set_parent(child.id, id);
            shift_in(&mut self.inner_mut(id).children[..=len + 1], child);
        }
    }

    /// Takes an entry out; the caller fills or closes its slot.
    #[inline]
    pub fn take(&mut self, id: Id, at: usize) -> (i64, P) {
        (self.node(id).times[at], self.take_value(id, at))
    }

    /// Replaces an entry; returns the earlier one.
    #[inline]
    pub fn exchange(&mut self, id: Id, at: usize, time: i64, value: P) -> (i64, P) {
        let node = self.node_mut(id);
        let old = replace(&mut node.times[at], time);
        (old, replace(&mut node.values[at], value))
    }

    /// Drops the first `count` entries, and as many children. An inner node keeps its last
    /// child even if it loses all entries.
    #[inline]
    pub fn drop_front(&mut self, id: Id, count: usize) {
        self.vacate(id, 0, count);
        if is_leaf(id) {
            self.leaf_mut(id).close(0, count);
            return;
        }
        self.vacate_children(id, 0, count);
        let inner = self.inner_mut(id);
        let len = inner.node.len();
        inner.node.close(0, count);
        shift_down_by(&mut inner.children[..=len], count);
    }

    /// Two nodes of one level.
    #[inline(always)]
    fn pair(&mut self, one: Id, other: Id) -> [&mut Node<P, E>; 2] {
        let places = [one, other].map(|id| (id & !LEAF) as usize);
        if is_leaf(one) {
            return self.leaves.get_disjoint_mut(places).expect("two nodes");
        }
        let pair = self.inner.get_disjoint_mut(places).expect("two nodes");
        pair.map(|inner| &mut inner.node)
    }

    /// Moves all after the entry at position `keep` to an empty node; removes and returns that
    /// entry.
    #[inline(always)]
    pub fn split(&mut self, from: Id, keep: usize, to: Id) -> (i64, P) {
        let [source, target] = self.pair(from, to);
        let count = source.len() - keep - 1;
        move_entries(source, keep + 1, target, 0, count);
        (source.len, target.len) = (keep as u8, count as u8);
        if !is_leaf(from) {
            self.move_children(from, keep + 1, to, 0, count + 1);
        }
        self.take(from, keep)
    }

    /// Moves all of `from` to the end of `to`, whose last child is missing.
    #[inline(always)]
    pub fn pour(&mut self, from: Id, to: Id) {
        let [source, target] = self.pair(from, to);
        let (count, there) = (source.len(), target.len());
        move_entries(source, 0, target, there, count);
        (source.len, target.len) = (0, (there + count) as u8);
        if !is_leaf(from) {
            self.move_children(from, 0, to, there, count + 1);
        }
    }

    #[inline(never)]
    fn move_children(&mut self, from: Id, at: usize, to: Id, there: usize, count: usize) {
        let places = [from as usize, to as usize];
        let [source, target] = self.inner.get_disjoint_mut(places).expect("two nodes");
        let leaves = source.node.level == 1;
        let source = source.children[at..at + count].iter_mut();
        for (source, target) in source.zip(&mut target.children[there..there + count]) {
            short_loop();
            transfer(source, target);
        }
        for at in there..there + count {
            short_loop();
            let id = self.inner[to as usize].children[at].id;
            match leaves {
                true => self.leaf_mut(id).parent = to,
                false => self.inner_mut(id).node.parent = to,
            }
        }
    }

    /// [`Nodes::rotate_front`] of one entry.
    #[inline(always)]
    pub fn rotate_first(&mut self, from: Id, to: Id, (time, value): (i64, P)) -> (i64, P) {
        let arity = self.arity(to);
        self.append(to, time, value);
        if !is_leaf(from) {
            self.move_children(from, 0, to, arity, 1);
            let inner = self.inner_mut(from);
            let len = inner.node.len();
            shift_down_by(&mut inner.children[..=len], 1);
        }
        let separator = self.take(from, 0);
        self.node_mut(from).shift_down();
        separator
    }

    /// Moves the first `count` entries of `from`, with `count` children, to the end of `to`.
    /// The given separator goes to `to` before them; the last entry moved is the new one.
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
        if !is_leaf(from) {
            self.move_children(from, 0, to, arity, count);
        }
        let separator = self.take(from, count - 1);
        self.drop_front(from, count);
        separator
    }

    /// Moves all of `from`, and a separator after it, to the front of `to`.
    pub fn prepend(&mut self, from: Id, (time, value): (i64, P), to: Id) {
        let [source, target] = self.pair(from, to);
        let (more, len) = (source.len() + 1, target.len());
        target.times[..len + more].rotate_right(more);
        target.values[..len + more].rotate_right(more);
        move_entries(source, 0, target, 0, more - 1);
        target.times[more - 1] = time;
        target.values[more - 1] = value;
        source.len = 0;
        target.len += more as u8;
        if !is_leaf(from) {
            self.inner_mut(to).children[..=len + more].rotate_right(more);
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
        let blank = self.blank.clone();
        let node = self.node_mut(id);
        node.len = times.len() as u8;
        node.times[..times.len()].copy_from_slice(times);
        for (place, value) in node.values.iter_mut().zip(values) {
            *place = replace(value, blank.clone());
        }
        if !is_leaf(id) {
            self.inner_mut(id).children[..children.len()].clone_from_slice(children);
            for child in children {
                self.set_parent(child.id, id);
            }
        }
    }

    /// The number of allocated nodes, in use or not.
    pub fn capacity(&self) -> usize {
        self.leaves.len() + self.inner.len()
    }

    /// The number of nodes that are free or wait to be freed, including cut subtrees.
    pub fn idle(&self) -> usize {
        let mut waiting = self.pending.clone();
        let mut idle = self.spare_leaves.len() + self.spare_inner.len();
        while let Some(id) = waiting.pop() {
            idle += 1;
            waiting.extend(self.children(id).iter().map(|child| child.id));
        }
        idle
    }

    pub fn bytes(&self) -> usize {
        let lists = [&self.spare_leaves, &self.spare_inner, &self.pending];
        self.leaves.capacity() * size_of::<Node<P, E>>()
            + self.inner.capacity() * size_of::<Inner<P, E, K>>()
            + lists.map(Vec::capacity).iter().sum::<usize>() * size_of::<Id>()
    }
}

/// The index of the last of `len` nodes of an arena.
fn place(count: usize) -> Id {
    let id = Id::try_from(count - 1).ok().filter(|id| *id < LEAF - 1);
    id.expect("fewer than 2^31 nodes")
}
