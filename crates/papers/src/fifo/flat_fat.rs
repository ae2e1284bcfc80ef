//! flat_fat: the flat fixed-size aggregator, a complete binary tree in one array.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Tangwongsan, Hirzel, Schneider, Wu: Reactive Aggregator (2015, PVLDB  |
//! |        | 8(7)), §4; as a window, SlickDeque (2018), §2.2                       |
//! | order  | in order                                                              |
//! | laws   | associative                                                           |
//! | costs  | new: n − 1 combines; update of m locations: m (1 + ⌈log₂(n/m)⌉);      |
//! |        | aggregate: 0; prefix, suffix: log₂ n; range: 2 log₂ n. As a window:   |
//! |        | insert, evict: 0, the next query updates what changed and takes, if   |
//! |        | ⊗ does not commute and the buffer is inverted, up to 2 log₂ n more    |
//! | space  | 52 to 120 bytes per entry of a sum of int64: a time, a value and 2 to |
//! |        | 4 partials                                                            |
//! | choose | for many ranges over one stream, of a known length                    |
//!
//! # Idea
//! Leaf i lies at n + i, the children of node v at 2v and 2v + 1, the root at 1. A change of
//! leaves is propagated level by level, so that shared ancestors are made anew once. A
//! window uses the leaves as a circular buffer; if that is *inverted* (its back before its
//! front), the answer is suffix(front) ⊗ prefix(back), or the root where ⊗ commutes.
//!
//! # Invariants (checked by `check`)
//! 1. n is a power of two.
//! 2. A node holds a value if a leaf below it does: else it is ⊥, which is skipped.
//! 3. T(v) = T(left(v)) ⊗ T(right(v)), but where leaves have changed since the last update.
//!
//! # Deviations
//! 1. ⊥ is not stored: the buffer's front and length give the leaves that hold values
//!    (§5.2), and by one bit per node only while there are holes.
//! 2. Changes wait for the next query, in a batch; all is made anew where that costs less.
//! 3. The window doubles the tree when it is full, and halves it again, not below the
//!    given capacity, when an eighth is left. Published for a fixed size.

use std::mem::needs_drop;

use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::shared::Shared;

/// The most leaves that are made before there are values for them.
const AHEAD: usize = 1 << 20;

/// The leaves made for a window of which a capacity is given. A very large one is grown
/// into, so that a number alone takes no memory.
pub fn least_capacity(capacity: usize) -> usize {
    capacity.clamp(1, AHEAD).next_power_of_two()
}

/// The leaves that hold a value; the others are ⊥.
#[derive(Clone, Debug)]
enum Live {
    /// A circular buffer without holes.
    Span { front: usize, len: usize },
    /// One bit per node.
    Marks(Vec<u64>),
}

/// FlatFAT over `capacity` leaves, a power of two.
#[derive(Clone, Debug)]
pub struct FlatFat<M: Monoid> {
    monoid: M,
    /// The tree; index 0 is not used.
    nodes: Vec<M::Partial>,
    live: Live,
    /// Nodes to make anew, for `update`.
    work: Vec<usize>,
}

impl<M: Monoid> FlatFat<M> {
    /// A tree over these values; the next power of two is the number of leaves. n − 1 combines.
    pub fn new(monoid: M, values: impl ExactSizeIterator<Item = M::Partial>) -> Self {
        let (len, capacity) = (values.len(), values.len().next_power_of_two());
        let mut fat = Self::with_capacity(monoid, capacity);
        for (slot, value) in values.enumerate() {
            fat.set(slot, value);
        }
        fat.set_span(0, len);
        fat.rebuild();
        fat
    }

    /// A tree of ⊥ leaves.
    ///
    /// # Panics
    /// If the capacity is not a power of two.
    pub fn with_capacity(monoid: M, capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "a capacity of {capacity}");
        Self {
            nodes: vec![monoid.identity(); 2 * capacity],
            live: Live::Span { front: 0, len: 0 },
            work: Vec::new(),
            monoid,
        }
    }

    pub fn monoid(&self) -> &M {
        &self.monoid
    }

    /// Leaves.
    pub fn capacity(&self) -> usize {
        self.nodes.len() / 2
    }

    /// The value of a leaf that is not ⊥.
    pub fn leaf(&self, slot: usize) -> &M::Partial {
        &self.nodes[self.capacity() + slot]
    }

    /// Writes a leaf; what is above it is stale until `update` or `rebuild`.
    pub fn set(&mut self, slot: usize, value: M::Partial) {
        let leaf = self.capacity() + slot;
        self.nodes[leaf] = value;
    }

    /// Makes a leaf ⊥, given that the marks or the span say so too. What owns memory is
    /// dropped, above the leaf as well.
    pub fn clear_leaf(&mut self, slot: usize) {
        if needs_drop::<M::Partial>() {
            let mut node = self.capacity() + slot;
            while node > 0 {
                self.nodes[node] = self.monoid.identity();
                node /= 2;
            }
        }
    }

    /// Sets the leaves that hold values: those from `front` on, circularly.
    pub fn set_span(&mut self, front: usize, len: usize) {
        if let Live::Span { .. } = self.live {
            self.live = Live::Span { front, len };
        }
    }

    /// Whether there may be holes.
    pub fn is_marked(&self) -> bool {
        matches!(self.live, Live::Marks(_))
    }

    /// Starts to mark ⊥ by a bit per node; [`Self::mark`] marks leaves.
    pub fn keep_marks(&mut self) {
        let mut marks = vec![0; self.nodes.len().div_ceil(64)];
        for node in (1..self.nodes.len()).filter(|node| self.is_live(*node)) {
            marks[node / 64] |= 1 << (node % 64);
        }
        self.live = Live::Marks(marks);
    }

    /// Marks a leaf, and what is above it as far as that changes.
    pub fn mark(&mut self, slot: usize, live: bool) {
        let leaf = self.capacity() + slot;
        let Live::Marks(marks) = &mut self.live else {
            return;
        };
        let (mut node, mut on) = (leaf, live);
        while node > 0 {
            let (word, bit) = (&mut marks[node / 64], 1 << (node % 64));
            *word = if on { *word | bit } else { *word & !bit };
            let sibling = node ^ 1;
            on |= marks[sibling / 64] >> (sibling % 64) & 1 == 1;
            node /= 2;
        }
    }

    /// Whether any leaf below the node holds a value.
    pub fn is_live(&self, node: usize) -> bool {
        match &self.live {
            Live::Marks(marks) => marks[node / 64] >> (node % 64) & 1 == 1,
            Live::Span { front, len } => {
                let capacity = self.capacity();
                let below = capacity >> node.ilog2();
                let from = node * below - capacity;
                let end = front + len;
                let ahead = from < end && *front < from + below;
                *len > 0 && (ahead || from + capacity < end)
            }
        }
    }

    /// Whether a leaf holds a value.
    pub fn holds(&self, slot: usize) -> bool {
        self.is_live(self.capacity() + slot)
    }

    /// The first of the leaves `from..to` that holds a value; skips whole subtrees of ⊥.
    pub fn first_live(&self, from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            let mut node = self.capacity() + at;
            if self.is_live(node) {
                return Some(at);
            }
            let mut width = 1;
            while node.is_multiple_of(2) && !self.is_live(node / 2) {
                node /= 2;
                width *= 2;
            }
            at += width;
        }
        None
    }

    /// Moves a leaf's value to a leaf that was ⊥; what is above both is stale.
    pub fn shift(&mut self, from: usize, to: usize) {
        let capacity = self.capacity();
        self.nodes.swap(capacity + from, capacity + to);
    }

    /// Ends the marks of holes: the span gives the leaves that are ⊥.
    pub fn drop_marks(&mut self, front: usize, len: usize) {
        self.live = Live::Span { front, len };
    }

    /// Makes all nodes anew: one combine less than there are values.
    pub fn rebuild(&mut self) {
        for node in (1..self.capacity()).rev() {
            self.pull(node);
        }
    }

    /// Makes anew what depends on these leaves, which were written or are ⊥ now.
    pub fn update(&mut self, slots: &[u32]) {
        let capacity = self.capacity();
        match *slots {
            _ if slots.len() >= capacity => self.rebuild(),
            [slot] => self.climb(slot as usize, slot as usize),
            [one, other] => self.climb(one as usize, other as usize),
            _ => self.update_levels(slots),
        }
    }

    /// Makes anew what is above two leaves, or one: level by level, until their paths meet.
    fn climb(&mut self, one: usize, other: usize) {
        let capacity = self.capacity();
        let (mut one, mut other) = (capacity + one, capacity + other);
        if let Live::Span { len, .. } = self.live
            && len == capacity
            && one == other
        {
            return self.climb_full(one);
        }
        while one > 1 {
            (one, other) = (one / 2, other / 2);
            self.pull(one);
            if one != other {
                self.pull(other);
            }
        }
    }

    /// Makes anew what is above a leaf of a full tree. A small fold stays in registers: read
    /// back from the node just written, each level would wait for the store.
    fn climb_full(&mut self, leaf: usize) {
        let wide = needs_drop::<M::Partial>() || size_of::<M::Partial>() > 32;
        let (mut node, mut fold) = (leaf, self.nodes[leaf].clone());
        while node > 1 {
            let sibling = &self.nodes[node ^ 1];
            let own = if wide { &self.nodes[node] } else { &fold };
            let whole = match node % 2 {
                0 => self.monoid.combine(own, sibling),
                _ => self.monoid.combine(sibling, own),
            };
            node /= 2;
            if !wide {
                fold = whole.clone();
            }
            self.nodes[node] = whole;
        }
    }

    /// Makes anew what is above leaves, level by level.
    fn update_levels(&mut self, slots: &[u32]) {
        let capacity = self.capacity();
        let mut work = std::mem::take(&mut self.work);
        let parents = slots.iter().map(|slot| (capacity + *slot as usize) / 2);
        work.extend(parents.filter(|node| *node > 0));
        work.sort_unstable();
        while !work.is_empty() {
            work.dedup();
            for node in &mut work {
                self.pull(*node);
                *node /= 2;
            }
            // All of a level, so the root comes alone.
            work.retain(|node| *node > 0);
        }
        self.work = work;
    }

    fn pull(&mut self, node: usize) {
        let (left, right) = (2 * node, 2 * node + 1);
        let whole = match (self.is_live(left), self.is_live(right)) {
            (true, true) => self.monoid.combine(&self.nodes[left], &self.nodes[right]),
            (true, false) => self.nodes[left].clone(),
            (false, true) => self.nodes[right].clone(),
            (false, false) if needs_drop::<M::Partial>() => self.monoid.identity(),
            (false, false) => return,
        };
        self.nodes[node] = whole;
    }

    /// The fold of all leaves. No combines.
    pub fn aggregate(&self) -> M::Partial {
        if self.is_live(1) {
            self.nodes[1].clone()
        } else {
            self.monoid.identity()
        }
    }

    /// The fold of leaves 0 to `slot`. At most log₂ n combines.
    pub fn prefix(&self, slot: usize) -> M::Partial {
        let mut node = self.capacity() + slot;
        let mut acc = self.is_live(node).then(|| self.nodes[node].clone());
        while node > 1 {
            if node % 2 == 1 && self.is_live(node - 1) {
                acc = Some(self.before(node - 1, acc));
            }
            node /= 2;
        }
        acc.unwrap_or_else(|| self.monoid.identity())
    }

    /// The fold of leaves `slot` to n − 1. At most log₂ n combines.
    pub fn suffix(&self, slot: usize) -> M::Partial {
        let mut node = self.capacity() + slot;
        let mut acc = self.is_live(node).then(|| self.nodes[node].clone());
        while node > 1 {
            if node.is_multiple_of(2) && self.is_live(node + 1) {
                acc = Some(self.behind(acc, node + 1));
            }
            node /= 2;
        }
        acc.unwrap_or_else(|| self.monoid.identity())
    }

    /// The fold of leaves `from..to`, by the fewest nodes. At most 2 log₂ n combines.
    pub fn range(&self, from: usize, to: usize) -> M::Partial {
        let (mut left, mut right) = (None, None);
        let (mut low, mut high) = (self.capacity() + from, self.capacity() + to);
        while low < high {
            if low % 2 == 1 {
                if self.is_live(low) {
                    left = Some(self.behind(left, low));
                }
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                if self.is_live(high) {
                    right = Some(self.before(high, right));
                }
            }
            (low, high) = (low / 2, high / 2);
        }
        match (left, right) {
            (Some(left), Some(right)) => self.monoid.combine(&left, &right),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => self.monoid.identity(),
        }
    }

    fn before(&self, node: usize, acc: Option<M::Partial>) -> M::Partial {
        match &acc {
            Some(acc) => self.monoid.combine(&self.nodes[node], acc),
            None => self.nodes[node].clone(),
        }
    }

    fn behind(&self, acc: Option<M::Partial>, node: usize) -> M::Partial {
        match &acc {
            Some(acc) => self.monoid.combine(acc, &self.nodes[node]),
            None => self.nodes[node].clone(),
        }
    }

    /// The fold of all leaves that hold values, the oldest of which is the one at `front`.
    pub fn whole(&self, front: usize, len: usize) -> M::Partial {
        if front + len <= self.capacity() || self.monoid.commutative() {
            self.aggregate()
        } else {
            self.circular(front, len)
        }
    }

    /// The fold of `len` leaves from `front` on, circularly.
    pub fn circular(&self, front: usize, len: usize) -> M::Partial {
        let capacity = self.capacity();
        let back = front + len;
        if len == 0 {
            self.monoid.identity()
        } else if back <= capacity {
            match (front, back) {
                (0, back) if back == capacity => self.aggregate(),
                (0, back) => self.prefix(back - 1),
                (front, back) if back == capacity => self.suffix(front),
                (front, back) => self.range(front, back),
            }
        } else {
            let older = self.suffix(front);
            self.monoid
                .combine(&older, &self.prefix(back - capacity - 1))
        }
    }

    /// Checks that every node above is made of those below.
    pub fn check(&self) -> std::result::Result<(), String> {
        for node in 1..self.capacity() {
            let (left, right) = (2 * node, 2 * node + 1);
            let (left_live, right_live) = (self.is_live(left), self.is_live(right));
            if self.is_live(node) != (left_live || right_live) {
                return Err(format!("⊥ at node {node}"));
            }
            let whole = match (left_live, right_live) {
                (true, true) => self.monoid.combine(&self.nodes[left], &self.nodes[right]),
                (true, false) => self.nodes[left].clone(),
                (false, true) => self.nodes[right].clone(),
                (false, false) => continue,
            };
            if !self.monoid.same(&whole, &self.nodes[node]) {
                let kept = &self.nodes[node];
                return Err(format!("node {node} holds {kept:?} instead of {whole:?}"));
            }
        }
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        let marks = match &self.live {
            Live::Marks(marks) => marks.capacity() * size_of::<u64>(),
            Live::Span { .. } => 0,
        };
        self.nodes.capacity() * size_of::<M::Partial>()
            + self.work.capacity() * size_of::<usize>()
            + marks
    }
}

/// A queue on FlatFAT: its leaves as a circular buffer.
#[derive(Clone, Debug)]
pub struct FlatFatQueue<M: Monoid> {
    fat: FlatFat<M>,
    least: usize,
    front: usize,
    len: usize,
    /// Leaves that changed since the last update; all of them once it is as long as that.
    changed: Vec<u32>,
}

impl<M: Monoid> FlatFatQueue<M> {
    /// An empty queue with room for `capacity` values, rounded up to a power of two.
    pub fn new(monoid: M, capacity: usize) -> Self {
        let least = least_capacity(capacity);
        Self {
            fat: FlatFat::with_capacity(monoid, least),
            least,
            front: 0,
            len: 0,
            changed: Vec::new(),
        }
    }

    fn slot(&self, at: usize) -> usize {
        (self.front + at) & (self.fat.capacity() - 1)
    }

    /// Notes a leaf; in a full buffer an insert takes the one that the evict left.
    fn change(&mut self, slot: usize) {
        let is_noted = self.changed.last() == Some(&(slot as u32));
        if !is_noted && self.changed.len() < self.fat.capacity() {
            self.changed.push(slot as u32);
        }
    }

    /// Brings the tree up to date.
    fn trigger(&mut self) {
        if !self.changed.is_empty() {
            self.fat.update(&self.changed);
            self.changed.clear();
        }
    }

    fn resize(&mut self, capacity: usize) {
        let mut fat = FlatFat::with_capacity(self.fat.monoid.clone(), capacity);
        for at in 0..self.len {
            fat.set(at, self.fat.leaf(self.slot(at)).clone());
        }
        fat.set_span(0, self.len);
        (self.fat, self.front) = (fat, 0);
        // All values are folded.
        self.changed = (0..self.len as u32).collect();
    }
}

impl<M: Monoid> Fifo<M> for FlatFatQueue<M> {
    const PARTS: bool = true;

    fn monoid(&self) -> &M {
        &self.fat.monoid
    }

    fn len(&self) -> usize {
        self.len
    }

    fn insert(&mut self, value: M::Partial) {
        if self.len == self.fat.capacity() {
            self.resize(2 * self.len);
        }
        let slot = self.slot(self.len);
        self.fat.set(slot, value);
        self.len += 1;
        self.fat.set_span(self.front, self.len);
        self.change(slot);
    }

    fn evict(&mut self) {
        let slot = self.front;
        self.front = self.slot(1);
        self.len -= 1;
        self.fat.set_span(self.front, self.len);
        self.fat.clear_leaf(slot);
        self.change(slot);
        if self.len < self.fat.capacity() / 8 && self.fat.capacity() > self.least {
            self.resize(self.fat.capacity() / 2);
        }
    }

    fn query(&mut self) -> M::Partial {
        self.trigger();
        self.fat.whole(self.front, self.len)
    }

    fn query_part(&mut self, from: usize, to: usize) -> M::Partial {
        self.trigger();
        self.fat.circular(self.slot(from), to - from)
    }

    fn fresh(&self) -> Self {
        Self::new(self.fat.monoid.clone(), self.least)
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let mut fresh = self.clone();
        fresh.trigger();
        fresh.fat.check()?;
        if values.len() != self.len || self.len > self.fat.capacity() {
            return Err(format!("{} values in {}", values.len(), self.len));
        }
        for (at, value) in values.iter().enumerate() {
            let leaf = self.fat.leaf(self.slot(at));
            if !self.fat.monoid.same(leaf, value) {
                return Err(format!("leaf {at} holds {leaf:?} instead of {value:?}"));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.fat.bytes() + self.changed.capacity() * size_of::<u32>()
    }

    /// The buffer's offset decides how its values are grouped, so it is written too.
    fn write(&self, out: &mut Writer) {
        (self.len as u64).write(out);
        (self.fat.capacity() as u64).write(out);
        (self.front as u64).write(out);
        for at in 0..self.len {
            self.fat.leaf(self.slot(at)).write(out);
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let len = input.length::<M::Partial>()?;
        let (capacity, front) = (u64::read(input)?, u64::read(input)?);
        let is_minimal = capacity == self.least as u64;
        let grown = capacity > self.least as u64
            && capacity.is_power_of_two()
            && capacity / 8 <= len as u64;
        if !(is_minimal || grown) || len as u64 > capacity || front >= capacity {
            return damaged(format!("{len} of {capacity} leaves from {front} on"));
        }
        let capacity = capacity as usize;
        self.fat = FlatFat::with_capacity(self.fat.monoid.clone(), capacity);
        (self.front, self.len) = (front as usize, len);
        for at in 0..len {
            let value = self.fat.monoid.read_partial(input)?;
            let slot = self.slot(at);
            self.fat.set(slot, value);
        }
        self.fat.set_span(self.front, len);
        self.fat.rebuild();
        self.changed.clear();
        Ok(())
    }
}

impl<M: Monoid> Shared<M> for FlatFatQueue<M> {}
