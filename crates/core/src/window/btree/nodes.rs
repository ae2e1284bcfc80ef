//! The nodes of a B-tree by index, in columns: what one step reads lies side by side, an
//! arity given at run time costs one multiplication, and a copy is a few `memcpy`s.

use std::mem::{needs_drop, replace};

pub(in crate::window) type Id = u32;
pub(in crate::window) const NONE: Id = Id::MAX;

#[derive(Clone, Copy, Debug)]
struct Head {
    parent: Id,
    /// Where its children lie; `NONE` for a leaf.
    block: Id,
    len: u8,
    level: u8,
    left: bool,
    right: bool,
}

/// A node's aggregate and the number of entries it stands for.
#[derive(Clone, Debug)]
pub(in crate::window) struct Agg<P> {
    pub partial: P,
    pub count: u32,
}

/// An arena of nodes of up to `stride` entries each.
#[derive(Clone, Debug)]
pub(in crate::window) struct Nodes<P> {
    stride: usize,
    heads: Vec<Head>,
    aggs: Vec<Agg<P>>,
    times: Vec<i64>,
    values: Vec<P>,
    /// `stride + 1` children per block.
    blocks: Vec<Id>,
    spare: Vec<Id>,
    spare_blocks: Vec<Id>,
    /// Roots of subtrees cut off, taken apart one node per allocation (bulk FiBA §6).
    pending: Vec<Id>,
    blank: P,
}

impl<P: Clone> Nodes<P> {
    /// `blank` fills slots without a value.
    pub fn new(stride: usize, blank: P) -> Self {
        Self {
            stride,
            heads: Vec::new(),
            aggs: Vec::new(),
            times: Vec::new(),
            values: Vec::new(),
            blocks: Vec::new(),
            spare: Vec::new(),
            spare_blocks: Vec::new(),
            pending: Vec::new(),
            blank,
        }
    }

    #[inline(always)]
    fn head(&self, id: Id) -> &Head {
        &self.heads[id as usize]
    }

    #[inline(always)]
    fn head_mut(&mut self, id: Id) -> &mut Head {
        &mut self.heads[id as usize]
    }

    #[inline(always)]
    fn base(&self, id: Id) -> usize {
        id as usize * self.stride
    }

    #[inline(always)]
    fn block_base(&self, id: Id) -> usize {
        self.head(id).block as usize * (self.stride + 1)
    }

    /// Entries in the node; one less than its arity.
    #[inline(always)]
    pub fn len(&self, id: Id) -> usize {
        usize::from(self.head(id).len)
    }

    #[inline(always)]
    pub fn arity(&self, id: Id) -> usize {
        self.len(id) + 1
    }

    /// Distance from the leaves.
    #[inline(always)]
    pub fn level(&self, id: Id) -> usize {
        usize::from(self.head(id).level)
    }

    #[inline(always)]
    pub fn is_leaf(&self, id: Id) -> bool {
        self.head(id).level == 0
    }

    #[inline(always)]
    pub fn parent(&self, id: Id) -> Id {
        self.head(id).parent
    }

    #[inline(always)]
    pub fn set_parent(&mut self, id: Id, parent: Id) {
        self.head_mut(id).parent = parent;
    }

    /// Whether it is on the left and on the right spine; the root is on both.
    #[inline(always)]
    pub fn spines(&self, id: Id) -> (bool, bool) {
        (self.head(id).left, self.head(id).right)
    }

    pub fn set_left(&mut self, id: Id, on: bool) {
        self.head_mut(id).left = on;
    }

    pub fn set_right(&mut self, id: Id, on: bool) {
        self.head_mut(id).right = on;
    }

    #[inline(always)]
    pub fn times(&self, id: Id) -> &[i64] {
        &self.times[self.base(id)..][..self.len(id)]
    }

    #[inline(always)]
    pub fn values(&self, id: Id) -> &[P] {
        &self.values[self.base(id)..][..self.len(id)]
    }

    pub fn value_mut(&mut self, id: Id, at: usize) -> &mut P {
        let base = self.base(id);
        &mut self.values[base + at]
    }

    /// The children of an inner node; none for a leaf.
    #[inline(always)]
    pub fn children(&self, id: Id) -> &[Id] {
        if self.is_leaf(id) {
            return &[];
        }
        &self.blocks[self.block_base(id)..][..self.arity(id)]
    }

    #[inline(always)]
    pub fn child(&self, id: Id, at: usize) -> Id {
        self.blocks[self.block_base(id) + at]
    }

    pub fn last_child(&self, id: Id) -> Id {
        self.child(id, self.len(id))
    }

    /// # Panics
    /// If it is no child of its parent: a broken tree.
    pub fn position(&self, id: Id) -> usize {
        let mut siblings = self.children(self.parent(id)).iter();
        siblings
            .position(|child| *child == id)
            .expect("a child of its parent")
    }

    #[inline(always)]
    pub fn agg(&self, id: Id) -> &Agg<P> {
        &self.aggs[id as usize]
    }

    #[inline(always)]
    pub fn set_agg(&mut self, id: Id, agg: Agg<P>) {
        self.aggs[id as usize] = agg;
    }

    /// How many entries have a time below `time`.
    #[inline(always)]
    pub fn below(&self, id: Id, time: i64) -> usize {
        self.times(id).partition_point(|present| *present < time)
    }

    /// How many entries have a time up to `time`.
    #[inline(always)]
    pub fn up_to(&self, id: Id, time: i64) -> usize {
        self.times(id).partition_point(|present| *present <= time)
    }

    /// An empty node; an inner one has room for one child at once.
    pub fn allocate(&mut self, level: usize) -> Id {
        let id = self.reuse().unwrap_or_else(|| self.grow());
        let block = if level == 0 { NONE } else { self.new_block() };
        *self.head_mut(id) = Head {
            parent: NONE,
            block,
            len: 0,
            level: level as u8,
            left: false,
            right: false,
        };
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
        if self.is_leaf(id) {
            return;
        }
        let (base, arity) = (self.block_base(id), self.arity(id));
        self.pending
            .extend_from_slice(&self.blocks[base..base + arity]);
        self.spare_blocks.push(self.head(id).block);
    }

    fn grow(&mut self) -> Id {
        let id = Id::try_from(self.heads.len()).expect("fewer than 2^32 nodes");
        assert!(id != NONE, "fewer than 2^32 nodes");
        self.heads.push(Head {
            parent: NONE,
            block: NONE,
            len: 0,
            level: 0,
            left: false,
            right: false,
        });
        self.aggs.push(Agg {
            partial: self.blank.clone(),
            count: 0,
        });
        self.times.resize(self.times.len() + self.stride, 0);
        self.values
            .resize(self.values.len() + self.stride, self.blank.clone());
        id
    }

    fn new_block(&mut self) -> Id {
        if let Some(block) = self.spare_blocks.pop() {
            return block;
        }
        let block = self.blocks.len() / (self.stride + 1);
        self.blocks
            .resize(self.blocks.len() + self.stride + 1, NONE);
        block as Id
    }

    /// Frees one node; its children live on elsewhere.
    pub fn release(&mut self, id: Id) {
        self.vacate(id, 0, self.len(id));
        if needs_drop::<P>() {
            self.aggs[id as usize].partial = self.blank.clone();
        }
        if !self.is_leaf(id) {
            self.spare_blocks.push(self.head(id).block);
        }
        self.spare.push(id);
    }

    /// Frees a whole subtree: later, a node at a time, if `deferred`. Values that own
    /// memory are let go at once all the same.
    pub fn cut(&mut self, id: Id, deferred: bool) {
        self.pending.push(id);
        if deferred && !needs_drop::<P>() {
            return;
        }
        while let Some(id) = self.pending.pop() {
            let (base, children) = (self.block_base_of_inner(id), self.children(id).len());
            self.pending
                .extend_from_slice(&self.blocks[base..base + children]);
            self.release(id);
        }
    }

    fn block_base_of_inner(&self, id: Id) -> usize {
        if self.is_leaf(id) {
            0
        } else {
            self.block_base(id)
        }
    }

    /// Lets go of values that own memory.
    fn vacate(&mut self, id: Id, from: usize, to: usize) {
        if needs_drop::<P>() {
            let base = self.base(id);
            self.values[base + from..base + to].fill(self.blank.clone());
        }
    }

    /// Puts an entry at position `at`, and a child right behind it if the node is inner.
    pub fn insert(&mut self, id: Id, at: usize, time: i64, value: P, child: Id) {
        let (base, len) = (self.base(id), self.len(id));
        let times = &mut self.times[base + at..=base + len];
        shift_up(times);
        times[0] = time;
        let values = &mut self.values[base + at..=base + len];
        shift_up(values);
        values[0] = value;
        if !self.is_leaf(id) {
            let base = self.block_base(id);
            let children = &mut self.blocks[base + at + 1..=base + len + 1];
            shift_up(children);
            children[0] = child;
            self.set_parent(child, id);
        }
        self.head_mut(id).len += 1;
    }

    /// Gives an inner node without entries its first child.
    pub fn set_first_child(&mut self, id: Id, child: Id) {
        let base = self.block_base(id);
        self.blocks[base] = child;
        self.set_parent(child, id);
    }

    /// Takes an entry out, and the child behind it out of an inner node.
    pub fn remove(&mut self, id: Id, at: usize) -> (i64, P) {
        let (base, len) = (self.base(id), self.len(id));
        let time = self.times[base + at];
        let value = self.take_value(id, at);
        shift_down(&mut self.times[base + at..base + len]);
        shift_down(&mut self.values[base + at..base + len]);
        if !self.is_leaf(id) {
            let base = self.block_base(id);
            shift_down(&mut self.blocks[base + at + 1..=base + len]);
        }
        self.head_mut(id).len -= 1;
        (time, value)
    }

    fn take_value(&mut self, id: Id, at: usize) -> P {
        if !needs_drop::<P>() {
            return self.values[self.base(id) + at].clone();
        }
        let blank = self.blank.clone();
        replace(self.value_mut(id, at), blank)
    }

    /// Puts an entry behind the last one; an inner node's last child is then missing.
    pub fn append(&mut self, id: Id, time: i64, value: P) {
        let at = self.base(id) + self.len(id);
        self.times[at] = time;
        self.values[at] = value;
        self.head_mut(id).len += 1;
    }

    /// Takes the last entry and the child behind it.
    pub fn pop_back(&mut self, id: Id) -> (i64, P, Id) {
        let child = if self.is_leaf(id) {
            NONE
        } else {
            self.last_child(id)
        };
        let (time, value) = self.remove(id, self.len(id) - 1);
        (time, value, child)
    }

    /// Puts an entry before the first one, and a child before that.
    pub fn push_front(&mut self, id: Id, time: i64, value: P, child: Id) {
        let len = self.len(id);
        if !self.is_leaf(id) {
            let base = self.block_base(id);
            let children = &mut self.blocks[base..=base + len + 1];
            shift_up(children);
            children[0] = child;
            self.set_parent(child, id);
        }
        let base = self.base(id);
        let times = &mut self.times[base..=base + len];
        shift_up(times);
        times[0] = time;
        let values = &mut self.values[base..=base + len];
        shift_up(values);
        values[0] = value;
        self.head_mut(id).len += 1;
    }

    /// Takes an entry out for [`Self::exchange`] to fill its place.
    pub fn take(&mut self, id: Id, at: usize) -> (i64, P) {
        (self.times(id)[at], self.take_value(id, at))
    }

    /// Swaps in another entry, in the same place.
    pub fn exchange(&mut self, id: Id, at: usize, time: i64, value: P) -> (i64, P) {
        let base = self.base(id);
        let old = replace(&mut self.times[base + at], time);
        (old, replace(&mut self.values[base + at], value))
    }

    /// Drops the first `count` entries, and as many children. An inner node may lose all
    /// its entries, not its last child.
    pub fn drop_front(&mut self, id: Id, count: usize) {
        let (base, len) = (self.base(id), self.len(id));
        self.vacate(id, 0, count);
        shift_down_by(&mut self.times[base..base + len], count);
        shift_down_by(&mut self.values[base..base + len], count);
        if !self.is_leaf(id) {
            let base = self.block_base(id);
            shift_down_by(&mut self.blocks[base..=base + len], count);
        }
        self.head_mut(id).len -= count as u8;
    }

    /// Moves the entries from position `at` on behind those of `to`, with the children
    /// from position `first` on.
    pub fn move_tail(&mut self, from: Id, at: usize, first: usize, to: Id, to_first: usize) {
        let (source, target) = (self.base(from) + at, self.base(to) + self.len(to));
        let count = self.len(from) - at;
        self.move_entries(source, target, count);
        if !self.is_leaf(from) {
            let children = self.arity(from) - first;
            let source = self.block_base(from) + first;
            let target = self.block_base(to) + to_first;
            self.move_children(source, target, children, to);
        }
        self.head_mut(from).len = at as u8;
        self.head_mut(to).len += count as u8;
    }

    fn move_entries(&mut self, source: usize, target: usize, count: usize) {
        for at in 0..count {
            self.times[target + at] = self.times[source + at];
        }
        for at in 0..count {
            transfer(&mut self.values, source + at, target + at);
        }
    }

    fn move_children(&mut self, source: usize, target: usize, count: usize, parent: Id) {
        for at in 0..count {
            let child = self.blocks[source + at];
            self.blocks[target + at] = child;
            self.set_parent(child, parent);
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
        let at = self.len(to);
        let (source, target) = (self.base(from), self.base(to) + at);
        self.times[target] = time;
        self.values[target] = value;
        self.move_entries(source, target + 1, count - 1);
        let separator = (
            self.times(from)[count - 1],
            self.take_value(from, count - 1),
        );
        if !self.is_leaf(from) {
            let (source, target) = (self.block_base(from), self.block_base(to) + arity);
            self.move_children(source, target, count, to);
        }
        self.head_mut(to).len += count as u8;
        self.drop_front(from, count);
        separator
    }

    /// Moves all of `from`, a separator behind it, before the entries of `to`.
    pub fn prepend(&mut self, from: Id, (time, value): (i64, P), to: Id) {
        let (more, len) = (self.len(from) + 1, self.len(to));
        let (source, target) = (self.base(from), self.base(to));
        self.times.copy_within(target..target + len, target + more);
        self.values[target..target + len + more].rotate_right(more);
        self.move_entries(source, target, more - 1);
        self.times[target + more - 1] = time;
        self.values[target + more - 1] = value;
        if !self.is_leaf(from) {
            let (source, target) = (self.block_base(from), self.block_base(to));
            self.blocks
                .copy_within(target..=target + len, target + more);
            self.move_children(source, target, more, to);
        }
        self.head_mut(from).len = 0;
        self.head_mut(to).len += more as u8;
    }

    /// Moves all contents out, appending them to columns.
    pub fn drain(&mut self, id: Id, times: &mut Vec<i64>, values: &mut Vec<P>) {
        times.extend_from_slice(self.times(id));
        for at in 0..self.len(id) {
            let value = self.take_value(id, at);
            values.push(value);
        }
        self.head_mut(id).len = 0;
    }

    /// Fills an empty node.
    pub fn fill(&mut self, id: Id, times: &[i64], values: &mut [P], children: &[Id]) {
        let base = self.base(id);
        self.times[base..base + times.len()].copy_from_slice(times);
        for (at, value) in values.iter_mut().enumerate() {
            self.values[base + at] = replace(value, self.blank.clone());
        }
        if !self.is_leaf(id) {
            let base = self.block_base(id);
            self.blocks[base..base + children.len()].copy_from_slice(children);
            for child in children {
                self.set_parent(*child, id);
            }
        }
        self.head_mut(id).len = times.len() as u8;
    }

    /// Nodes allocated, in use or not.
    pub fn capacity(&self) -> usize {
        self.heads.len()
    }

    /// Nodes that are free or wait to be, cut subtrees taken apart.
    pub fn idle(&self) -> usize {
        let mut waiting = self.pending.clone();
        let mut idle = self.spare.len();
        while let Some(id) = waiting.pop() {
            idle += 1;
            waiting.extend_from_slice(self.children(id));
        }
        idle
    }

    pub fn bytes(&self) -> usize {
        let ids = self.blocks.capacity()
            + self.spare.capacity()
            + self.spare_blocks.capacity()
            + self.pending.capacity();
        self.heads.capacity() * size_of::<Head>()
            + self.aggs.capacity() * size_of::<Agg<P>>()
            + self.values.capacity() * size_of::<P>()
            + self.times.capacity() * size_of::<i64>()
            + ids * size_of::<Id>()
    }
}

/// Moves all up by one. What owns memory is swapped, so that the last comes to the front;
/// all else is copied, which does not wait for the store before.
#[inline]
fn shift_up<T: Clone>(run: &mut [T]) {
    for at in (1..run.len()).rev() {
        transfer(run, at - 1, at);
    }
}

/// Moves all down by one.
#[inline]
fn shift_down<T: Clone>(run: &mut [T]) {
    shift_down_by(run, 1);
}

#[inline]
fn shift_down_by<T: Clone>(run: &mut [T], count: usize) {
    for at in count..run.len() {
        transfer(run, at, at - count);
    }
}

/// Moves one slot's contents to another; leaves something there that owns no more memory
/// than what was at the other.
#[inline]
fn transfer<T: Clone>(run: &mut [T], from: usize, to: usize) {
    if needs_drop::<T>() {
        run.swap(from, to);
    } else {
        run[to] = run[from].clone();
    }
}
