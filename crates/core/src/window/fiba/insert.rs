//! Inserts at the right finger; late entries are staged, or inserted at their sites.
use super::leaf::{RunSlice, SortedRun};
use super::path::Id;
use super::tree::{Child, Siblings, Tree};
use crate::monoid::{Entry, HandleSlot, Monoid};
use crate::window::{Batch, Ties};

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// One combine for an entry younger than all, but for every `L`th.
    #[inline(always)]
    pub(super) fn insert(&mut self, time: i64, entry: Entry<M>) {
        let leaf = &mut self.leaves[self.right[0] as usize];
        let end = leaf.end();
        if let Entry::Raw(value) = &entry
            && end < L
            && self.bound < time
        {
            self.bound = time;
            self.monoid.absorb(&mut self.tail, value);
            leaf.times[end] = time;
            leaf.values[end] = value.clone();
            leaf.end += 1;
            self.inserted += 1;
            return;
        }
        match entry {
            Entry::Raw(value) if self.staged.stages_all => self.stage(time, value),
            entry => self.insert_otherwise(time, entry),
        }
    }

    #[inline(never)]
    fn insert_otherwise(&mut self, time: i64, entry: Entry<M>) {
        let value = match entry {
            Entry::Raw(value) => value,
            Entry::Lifted(partial) if !self.staged.stages_all && self.is_youngest(time) => {
                return self.append_lifted(time, partial);
            }
            late => return self.insert_one(time, late),
        };
        let Some(youngest) = self.youngest() else {
            return self.append(time, value);
        };
        if time < youngest && self.height() > 0 {
            self.stage(time, value);
        } else if time < youngest {
            self.insert_one(time, Entry::Raw(value));
        } else if time == youngest && self.ties == Ties::Combine {
            self.combine_youngest(Entry::Raw(value));
        } else {
            self.append(time, value);
        }
    }

    /// Whether an entry of that time goes behind all others.
    fn is_youngest(&self, time: i64) -> bool {
        self.youngest()
            .is_none_or(|youngest| time > youngest || (time == youngest && self.ties == Ties::Keep))
    }

    fn append_lifted(&mut self, time: i64, partial: M::Partial) {
        if self.right_leaf().is_full() {
            self.open_leaf(time);
        }
        self.tail = self.monoid.combine(&self.tail, &partial);
        let slot = M::In::from_handle(self.slab.store(partial));
        let id = self.right[0];
        self.leaves[id as usize].push(time, slot, true);
        self.bound = time;
        self.inserted += 1;
    }

    fn append(&mut self, time: i64, value: M::In) {
        if self.right_leaf().is_full() {
            self.open_leaf(time);
        }
        self.monoid.absorb(&mut self.tail, &value);
        let id = self.right[0];
        self.leaves[id as usize].push(time, value, false);
        self.bound = time;
        self.inserted += 1;
    }

    /// A value at the time of the youngest entry, which it joins.
    fn combine_youngest(&mut self, entry: Entry<M>) {
        let id = self.right[0];
        let last = self.leaf(id).end() - 1;
        let partial = entry.partial(&self.monoid);
        self.combine_slot(id, last, &partial);
        if self.height() > 0 || last >= self.flip {
            self.tail = self.monoid.combine(&self.tail, &partial);
        } else {
            self.stale.suffix = true;
            self.repair();
        }
    }

    /// Combines a younger partial behind the value of a slot.
    pub(super) fn combine_slot(&mut self, id: Id, at: usize, younger: &M::Partial) {
        let leaf = &self.leaves[id as usize];
        let promoted = leaf.is_promoted(at);
        let older = self.lift_slot(&leaf.values[at], promoted);
        let whole = self.monoid.combine(&older, younger);
        if promoted {
            self.slab.release(leaf.values[at].handle());
        }
        let (slot, promoted) = match Entry::<M>::from_partial(&self.monoid, whole) {
            Entry::Raw(value) => (value, false),
            Entry::Lifted(partial) => (M::In::from_handle(self.slab.store(partial)), true),
        };
        let leaf = &mut self.leaves[id as usize];
        leaf.values[at] = slot;
        leaf.promoted = leaf.promoted & !(1 << at) | u64::from(promoted) << at;
    }

    // -- batches ---------------------------------------------------------------------

    /// Inserts a sorted batch whose ties are combined.
    pub(super) fn insert_batch(&mut self, batch: Batch<M>) {
        if batch.is_empty() {
            return;
        }
        if self.should_stage(&batch) {
            return self.stage_batch(batch);
        }
        self.flush_staged();
        let run = SortedRun::from_batch(batch, &mut self.slab);
        self.insert_run(&run);
    }

    /// Inserts a sorted run whose ties are combined; nothing may be staged.
    pub(super) fn insert_run(&mut self, run: &SortedRun<M::In>) {
        let late = match self.tree_len() {
            0 => 0,
            _ => {
                let youngest = self.right_leaf().last_time();
                match self.ties {
                    Ties::Combine => run.times.partition_point(|&time| time <= youngest),
                    Ties::Keep => run.times.partition_point(|&time| time < youngest),
                }
            }
        };
        if late > 0 {
            self.stale.tail = true;
            self.insert_late(run.slice(0, late));
        }
        self.repair();
        self.append_run(run.slice(late, run.len()));
    }

    fn insert_one(&mut self, time: i64, entry: Entry<M>) {
        let mut batch = Batch::with_capacity(1);
        batch.push(time, entry);
        self.insert_batch(batch);
    }

    /// Entries younger than all: whole leaves at a time.
    fn append_run(&mut self, mut rest: RunSlice<'_, M::In>) {
        self.inserted += rest.len() as u64;
        while !rest.is_empty() {
            if self.right_leaf().is_full() {
                self.open_leaf(rest.times()[0]);
            }
            let id = self.right[0];
            let room = L - self.leaf(id).end();
            let (slice, behind) = rest.split(room.min(rest.len()));
            self.leaf_mut(id).extend(slice);
            // A leaf that closes next is folded then; its tail would be lost work.
            if behind.is_empty() || self.height() == 0 {
                let part = self.fold_slice(slice);
                self.tail = self.monoid.combine(&self.tail, &part);
            }
            rest = behind;
        }
        self.set_stages_all(self.staged.stages_all);
    }

    // -- the right end ---------------------------------------------------------------

    /// Makes room for younger entries behind a full right finger: in a single leaf by
    /// closing up to the front, else by opening a leaf. In-order leaves are 100 % full.
    #[cold]
    #[inline(never)]
    fn open_leaf(&mut self, key: i64) {
        let closed = self.right[0];
        if self.height() == 0 {
            let start = self.leaf(closed).start();
            if start >= (L / 4).max(1) {
                self.leaf_mut(closed).compact();
                self.suffix.rotate_left(start);
                self.flip -= start.min(self.flip);
                self.known -= start.min(self.known);
                return;
            }
            self.stale.suffix = true;
        }
        let opened = self.new_leaf();
        let opened = self.new_child(key, opened);
        self.close_right(0, opened);
        self.tail = self.staged.agg.clone();
        self.repair();
    }

    /// Adds a node behind the right spine's node of `level`, which leaves the spine.
    fn close_right(&mut self, level: usize, opened: Child<M::Partial>) {
        let closed = self.right[level];
        self.right[level] = opened.id;
        if level == self.height() {
            self.grow_root(vec![opened]);
            return;
        }
        let (agg, count) = self.summary(closed, level);
        let parent = self.right[level + 1];
        let children = self.children_mut(parent);
        let last = children.len() - 1;
        children[last].agg = agg.clone();
        children[last].count = count;
        children.push(opened);
        if children.len() <= F {
            self.append_to_right_agg(level + 1, &agg);
            return;
        }
        let keep = children.len() - Self::MIN_ARITY;
        let split = children.split_off(keep);
        let key = split[0].key;
        let id = self.new_inner(split);
        let split = self.new_child(key, id);
        self.stale.right = self.stale.right.max(level + 2);
        self.close_right(level + 1, split);
    }

    /// One closed node more below the right spine at `level`. Without a split on the way
    /// up that level is 1, and three aggregates grow by one combine each.
    fn append_to_right_agg(&mut self, level: usize, agg: &M::Partial) {
        if self.stale.right > 0 {
            self.stale.right = self.stale.right.max(level);
            return;
        }
        if level == self.height() {
            self.inner_agg = self.monoid.combine(&self.inner_agg, agg);
        } else {
            self.right_agg[level] = self.monoid.combine(&self.right_agg[level], agg);
        }
        self.mid = self.monoid.combine(&self.mid, agg);
    }

    /// Puts a root above the present one and the nodes that were split off it.
    pub(super) fn grow_root(&mut self, siblings: Siblings<M::Partial>) {
        let level = self.height();
        let old = self.left[level];
        let mut children = Vec::with_capacity(F + 1);
        children.push(self.new_child(i64::MIN, old));
        self.right[level] = siblings[siblings.len() - 1].id;
        children.extend(siblings);
        let root = self.new_inner(children);
        self.left.push(root);
        self.right.push(root);
        self.stale.left = level + 1;
        self.stale.right = level + 1;
    }
}
