//! Insertion: append at the right finger, stage what is late, and one bulk algorithm for
//! all that goes inside.

use super::leaf::{Leaf, Run};
use super::sorted::{count_before, gallop};
use super::tree::{Child, Children, Id, Spine, Tree};
use crate::monoid::{Entry, Monoid, Slot};
use crate::window::{Batch, Ties};

/// Late entries wait for company: a bulk insert of many costs far less per entry. A large
/// window lets more of them wait, so that those of one leaf come together.
const STAGED: std::ops::RangeInclusive<usize> = 64..=4096;
const STAGED_SHARE: usize = 1024;

/// New nodes to the right of a node that was split, in order.
type Siblings<P> = Vec<Child<P>>;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// One combine for an entry younger than all, but for every `L`th.
    #[inline(always)]
    pub(super) fn insert(&mut self, time: i64, entry: Entry<M>) {
        let leaf = &mut self.leaves[self.right[0] as usize];
        let end = leaf.end();
        if let Entry::Raw(value) = &entry
            && end < L
            && end > 0
            && leaf.times[end - 1] < time
        {
            self.monoid.absorb(&mut self.tail, value);
            leaf.times[end] = time;
            leaf.values[end] = value.clone();
            leaf.end += 1;
            self.inserted += 1;
            return;
        }
        self.insert_otherwise(time, entry);
    }

    #[inline(never)]
    fn insert_otherwise(&mut self, time: i64, entry: Entry<M>) {
        let Entry::Raw(value) = entry else {
            self.settle();
            return self.insert_one(time, entry);
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

    fn append(&mut self, time: i64, value: M::In) {
        if self.right_leaf().is_full() {
            self.open_leaf(time);
        }
        self.monoid.absorb(&mut self.tail, &value);
        let id = self.right[0];
        self.leaves[id as usize].push(time, value, false);
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
    fn combine_slot(&mut self, id: Id, at: usize, younger: &M::Partial) {
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

    // -- staging ---------------------------------------------------------------------

    /// A commutative tail can take a late value at once, wherever it belongs.
    fn stage(&mut self, time: i64, value: M::In) {
        if M::COMMUTATIVE {
            self.monoid.absorb(&mut self.tail, &value);
        }
        self.staged_min = self.staged_min.min(time);
        self.staged.push((time, value));
        let most = self.settled_len() / STAGED_SHARE;
        if self.staged.len() >= most.clamp(*STAGED.start(), *STAGED.end()) {
            self.settle();
        }
    }

    /// Moves what is staged into the tree.
    pub(super) fn settle(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        let staged = std::mem::take(&mut self.staged);
        let order = arrival_sorted(&staged, self.staged_min);
        self.staged_min = i64::MAX;
        let mut batch = Batch::with_capacity(staged.len());
        batch
            .times
            .extend(order.iter().map(|&at| staged[usize::from(at)].0));
        let values = order.iter().map(|&at| staged[usize::from(at)].1.clone());
        batch.values.extend(values);
        self.staged = staged;
        self.staged.clear();
        batch.settle_ties(&self.monoid, self.ties);
        let run = Run::from_batch(batch, &mut self.slab);
        self.stale.tail = true;
        self.insert_late(&run, 0, run.len());
        self.repair();
    }

    // -- batches ---------------------------------------------------------------------

    /// Inserts a sorted batch with settled ties.
    pub(super) fn insert_batch(&mut self, batch: Batch<M>) {
        if batch.is_empty() {
            return;
        }
        self.settle();
        let run = Run::from_batch(batch, &mut self.slab);
        let late = match self.settled_len() {
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
            self.insert_late(&run, 0, late);
            self.repair();
        }
        self.append_run(&run, late, run.len());
    }

    fn insert_one(&mut self, time: i64, entry: Entry<M>) {
        let mut batch = Batch::with_capacity(1);
        batch.push(time, entry);
        self.insert_batch(batch);
    }

    /// Entries younger than all: whole leaves at a time.
    fn append_run(&mut self, run: &Run<M::In>, mut from: usize, to: usize) {
        self.inserted += (to - from) as u64;
        while from < to {
            if self.right_leaf().is_full() {
                self.open_leaf(run.times[from]);
            }
            let id = self.right[0];
            let room = L - self.leaf(id).end();
            let upto = to.min(from + room);
            self.leaf_mut(id).extend(run, from, upto);
            // A leaf that closes next is folded then; its tail would be lost work.
            if upto == to || self.height() == 0 {
                let part = self.fold_run(run, from, upto);
                self.tail = self.monoid.combine(&self.tail, &part);
            }
            from = upto;
        }
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
                return;
            }
            self.stale.suffix = true;
        }
        let opened = self.new_leaf();
        let opened = self.new_child(key, opened);
        self.close_right(0, opened);
        self.restart_tail();
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
    fn grow_root(&mut self, siblings: Siblings<M::Partial>) {
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

    // -- the inside ------------------------------------------------------------------

    /// Inserts `run[from..to]`, none of it younger than all entries.
    ///
    /// Finger search from the nearer end finds the lowest spine node above all sites;
    /// one recursive pass goes down to the sites and up again, sharing the paths.
    fn insert_late(&mut self, run: &Run<M::In>, from: usize, to: usize) {
        let (level, spine) = self.top_of_sites(run.times[from], run.times[to - 1]);
        let id = if spine.left {
            self.left[level]
        } else {
            self.right[level]
        };
        if spine.left {
            self.stale.left = self.stale.left.max(level);
            self.stale.suffix = true;
        }
        if spine.right {
            self.stale.right = self.stale.right.max(level);
            self.stale.tail = true;
        }
        let siblings = self.insert_below(level, id, spine, run, from, to);
        self.add_above(level, spine, siblings);
        self.find_spines();
    }

    /// The lowest spine node whose subtree takes all times from `lo` to `hi`.
    fn top_of_sites(&self, lo: i64, hi: i64) -> (usize, Spine) {
        for level in 0..self.height() {
            let above = self.children(self.right[level + 1]);
            if lo >= above[above.len() - 1].key {
                return (
                    level,
                    Spine {
                        left: false,
                        right: true,
                    },
                );
            }
            if hi < self.children(self.left[level + 1])[1].key {
                return (
                    level,
                    Spine {
                        left: true,
                        right: false,
                    },
                );
            }
        }
        (self.height(), Spine::ROOT)
    }

    /// Interleaves below `id`; gives the nodes split off to its right.
    fn insert_below(
        &mut self,
        level: usize,
        id: Id,
        spine: Spine,
        run: &Run<M::In>,
        mut from: usize,
        to: usize,
    ) -> Siblings<M::Partial> {
        if level == 0 {
            return self.interleave(id, spine, run, from, to);
        }
        if level == 2 && to - from >= 4 {
            self.fetch_sites(id, &run.times[from..to]);
        }
        let mut at = 0;
        while from < to {
            let children = self.children(id);
            let arity = children.len();
            at += count_before(&children[at + 1..], |child| child.key <= run.times[from]);
            let upto = match children.get(at + 1) {
                Some(next) => from + gallop(&run.times[from..to], |time| *time < next.key),
                None => to,
            };
            let child = children[at].id;
            let child_spine = spine.of_child(at, arity);
            let siblings = self.insert_below(level - 1, child, child_spine, run, from, upto);
            self.note_inserted(level, id, spine, at, &siblings, run, from, upto);
            if !siblings.is_empty() {
                let split = siblings.len();
                self.children_mut(id).splice(at + 1..at + 1, siblings);
                at += split;
            }
            from = upto;
        }
        self.split_inner(level, id, spine)
    }

    /// Reads ahead, side by side, what the insertions below a node of level 2 will read
    /// one after the other: in a large tree every leaf is a few cache misses.
    fn fetch_sites(&self, id: Id, times: &[i64]) {
        if std::mem::needs_drop::<M::In>() {
            return;
        }
        let mut sites = Vec::with_capacity(times.len());
        let mut from = 0;
        while from < times.len() {
            let above = self.children(id);
            let at = self.child_behind(id, times[from]);
            let parents = self.children(above[at].id);
            let site = self.child_behind(above[at].id, times[from]);
            sites.push(parents[site].id);
            let next = parents.get(site + 1).or(above.get(at + 1));
            from += next.map_or(times.len(), |next| {
                gallop(&times[from..], |time| *time < next.key)
            });
        }
        for site in sites {
            let leaf = self.leaf(site);
            std::hint::black_box(leaf.end);
            for at in (0..L).step_by((L / 4).max(1)) {
                std::hint::black_box(leaf.times[at]);
                std::hint::black_box(leaf.values[at].clone());
            }
        }
    }

    /// Brings up to date what `id` keeps of its child `at` after an insertion below it.
    #[allow(clippy::too_many_arguments)]
    fn note_inserted(
        &mut self,
        level: usize,
        id: Id,
        spine: Spine,
        at: usize,
        siblings: &[Child<M::Partial>],
        run: &Run<M::In>,
        from: usize,
        to: usize,
    ) {
        let arity = self.children(id).len();
        let child_spine = spine.of_child(at, arity);
        let still_last = child_spine.right && siblings.is_empty();
        if child_spine.left || still_last {
            return;
        }
        let few = to - from < if level == 1 { L / 4 } else { F / 4 };
        let (agg, count) =
            if M::COMMUTATIVE && few && siblings.is_empty() && run.promoted.is_empty() {
                let child = &self.children(id)[at];
                let part = self.fold_run(run, from, to);
                let agg = self.monoid.combine(&child.agg, &part);
                (agg, self.count_of(child.id, level - 1))
            } else {
                self.summary(self.children(id)[at].id, level - 1)
            };
        let child = &mut self.children_mut(id)[at];
        child.agg = agg;
        child.count = count;
    }

    fn count_of(&self, id: Id, level: usize) -> u32 {
        match level {
            0 => self.leaf(id).len() as u32,
            _ => self.children(id).iter().map(|child| child.count).sum(),
        }
    }

    /// Splits an inner node of more than `F` children into even parts.
    fn split_inner(&mut self, level: usize, id: Id, spine: Spine) -> Siblings<M::Partial> {
        let arity = self.children(id).len();
        if arity <= F {
            return Vec::new();
        }
        let parts = arity.div_ceil(F);
        let mut siblings = Vec::with_capacity(parts - 1);
        let mut rest = self.children_mut(id).split_off(arity / parts);
        for part in 1..parts {
            let size = arity * (part + 1) / parts - arity * part / parts;
            let tail = rest.split_off(size);
            let last = part + 1 == parts;
            siblings.push(self.sibling(level, rest, spine.right && last));
            rest = tail;
        }
        siblings
    }

    fn sibling(
        &mut self,
        level: usize,
        children: Children<M::Partial>,
        on_right: bool,
    ) -> Child<M::Partial> {
        let key = children[0].key;
        let id = self.new_inner(children);
        let mut child = self.new_child(key, id);
        if !on_right {
            (child.agg, child.count) = self.summary(id, level);
        }
        child
    }

    /// Hands split-off nodes to the spine above `level`, as far up as nodes overflow.
    fn add_above(&mut self, mut level: usize, spine: Spine, mut siblings: Siblings<M::Partial>) {
        while !siblings.is_empty() {
            if level == self.height() {
                self.grow_root(siblings);
                level += 1;
                siblings = self.split_inner(level, self.left[level], Spine::ROOT);
                continue;
            }
            let parent = if spine.left {
                self.left[level + 1]
            } else {
                self.right[level + 1]
            };
            let parent_spine = Spine {
                left: spine.left || level + 1 == self.height(),
                right: spine.right || level + 1 == self.height(),
            };
            let children = self.children(parent);
            let at = if spine.left { 0 } else { children.len() - 1 };
            let child = children[at].id;
            if !parent_spine.of_child(at, children.len()).left {
                let (agg, count) = self.summary(child, level);
                let child = &mut self.children_mut(parent)[at];
                (child.agg, child.count) = (agg, count);
            }
            self.children_mut(parent).splice(at + 1..at + 1, siblings);
            level += 1;
            if parent_spine.left {
                self.stale.left = self.stale.left.max(level);
            }
            if parent_spine.right {
                self.stale.right = self.stale.right.max(level);
            }
            siblings = self.split_inner(level, parent, parent_spine);
        }
    }

    // -- leaves ----------------------------------------------------------------------

    /// Interleaves `run[from..to]` with a leaf; gives the leaves split off to its right.
    fn interleave(
        &mut self,
        id: Id,
        spine: Spine,
        run: &Run<M::In>,
        from: usize,
        to: usize,
    ) -> Siblings<M::Partial> {
        self.leaf_mut(id).compact();
        if self.leaf(id).len() + (to - from) <= L {
            self.interleave_in_place(id, run, from, to);
            return Vec::new();
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (first, last) = (run.times[from], run.times[to - 1]);
        let (leaf, site) = (self.leaf(id), self.leaf(id).upper(first));
        let siblings = if leaf.upper(last) == site && !self.joins(id, site, first) {
            leaf.copy_out(0, leaf.end(), &mut scratch);
            let behind = (&scratch, site, leaf.end());
            self.inserted += (to - from) as u64;
            let pieces = [(&scratch, 0, site), (run, from, to), behind];
            self.distribute(id, spine, &pieces, Some(site + to - from))
        } else {
            self.merge(id, run, from, to, &mut scratch);
            self.distribute(id, spine, &[(&scratch, 0, scratch.len())], None)
        };
        self.scratch = scratch;
        siblings
    }

    fn interleave_in_place(&mut self, id: Id, run: &Run<M::In>, from: usize, to: usize) {
        let mut sites = [0_u8; 64];
        let mut fresh = 0;
        for at in from..to {
            let time = run.times[at];
            let site = self.leaf(id).upper(time);
            if self.joins(id, site, time) {
                self.join(id, site - 1, run, at);
                sites[at - from] = u8::MAX;
            } else {
                sites[at - from] = site as u8;
                fresh += 1;
            }
        }
        self.inserted += fresh as u64;
        let leaf = self.leaf_mut(id);
        let mut end = leaf.end();
        leaf.end += fresh as u16;
        for at in (from..to).rev() {
            let site = sites[at - from];
            if site == u8::MAX {
                continue;
            }
            let site = usize::from(site);
            leaf.slide_up(site, end, fresh);
            end = site;
            fresh -= 1;
            let slot = site + fresh;
            leaf.times[slot] = run.times[at];
            leaf.values[slot] = run.values[at].clone();
            let promoted = u64::from(run.is_promoted(at)) << slot;
            leaf.promoted = leaf.promoted & !(1 << slot) | promoted;
        }
    }

    /// Whether an entry for `site` combines with the one before it.
    fn joins(&self, id: Id, site: usize, time: i64) -> bool {
        self.ties == Ties::Combine && site > 0 && self.leaf(id).times[site - 1] == time
    }

    fn join(&mut self, id: Id, slot: usize, run: &Run<M::In>, at: usize) {
        let promoted = run.is_promoted(at);
        let younger = self.lift_slot(&run.values[at], promoted);
        self.combine_slot(id, slot, &younger);
        if promoted {
            self.slab.release(run.values[at].handle());
        }
    }

    /// Merges leaf and run into `merged`.
    fn merge(&mut self, id: Id, run: &Run<M::In>, from: usize, to: usize, merged: &mut Run<M::In>) {
        let mut taken = 0;
        let mut at = from;
        while at < to {
            let time = run.times[at];
            let leaf = self.leaf(id);
            let site = taken + gallop(&leaf.taken()[taken..], |present| *present <= time);
            leaf.copy_out(taken, site, merged);
            if self.joins(id, site, time) {
                self.join(id, site - 1, run, at);
                let leaf = self.leaf(id);
                merged.pop();
                leaf.copy_out(site - 1, site, merged);
                (taken, at) = (site, at + 1);
                continue;
            }
            let upto = match leaf.taken().get(site) {
                Some(next) => at + gallop(&run.times[at..to], |time| time < next),
                None => to,
            };
            merged.extend(run, at, upto);
            self.inserted += (upto - at) as u64;
            (taken, at) = (site, upto);
        }
        let leaf = self.leaf(id);
        leaf.copy_out(taken, leaf.end(), merged);
    }

    /// Writes the pieces, end to end, to the leaf and as many new ones as they need. If
    /// all that is new went into one gap, `cut` is the position behind it, where more of
    /// the same may follow.
    fn distribute(
        &mut self,
        id: Id,
        spine: Spine,
        pieces: &[Piece<'_, M::In>],
        cut: Option<usize>,
    ) -> Siblings<M::Partial> {
        let total = pieces.iter().map(|(_, from, to)| to - from).sum();
        let sizes = leaf_sizes::<L>(total, cut);
        self.leaf_mut(id).reset();
        extend_from_pieces(self.leaf_mut(id), pieces, 0, sizes[0]);
        let mut from = sizes[0];
        let mut siblings = Vec::with_capacity(sizes.len() - 1);
        for (at, size) in sizes.iter().enumerate().skip(1) {
            let new = self.new_leaf();
            let leaf = self.leaf_mut(new);
            extend_from_pieces(leaf, pieces, from, from + size);
            let mut child = self.new_child(self.leaf(new).first_time(), new);
            if !(spine.right && at + 1 == sizes.len()) {
                (child.agg, child.count) = self.summary(new, 0);
            }
            siblings.push(child);
            from += size;
        }
        siblings
    }
}

/// Entries `from..to` of a run.
type Piece<'a, In> = (&'a Run<In>, usize, usize);

/// Appends positions `from..to` of the pieces, counted end to end.
fn extend_from_pieces<In: Slot, const L: usize>(
    leaf: &mut Leaf<In, L>,
    pieces: &[Piece<'_, In>],
    from: usize,
    to: usize,
) {
    let mut base = 0;
    for (run, first, last) in pieces {
        let len = last - first;
        let (lo, hi) = (from.clamp(base, base + len), to.clamp(base, base + len));
        if lo < hi {
            leaf.extend(run, first + lo - base, first + hi - base);
        }
        base += len;
    }
}

/// Positions in order of time, equal times in order of arrival; `min` is the least time.
fn arrival_sorted<In>(staged: &[(i64, In)], min: i64) -> Vec<u16> {
    let positions = 0..staged.len() as u16;
    if staged.is_sorted_by_key(|(time, _)| *time) {
        return positions.collect();
    }
    // Times that span less than 2^48 sort as single words, position below.
    let offsets = staged.iter().map(|(time, _)| time.wrapping_sub(min) as u64);
    if offsets.clone().all(|offset| offset < 1 << 48) {
        let words = offsets
            .zip(positions)
            .map(|(offset, at)| offset << 16 | u64::from(at));
        let mut words: Vec<u64> = words.collect();
        sort_words(&mut words);
        return words.into_iter().map(|word| word as u16).collect();
    }
    let mut order: Vec<u16> = positions.collect();
    order.sort_by_key(|&at| staged[usize::from(at)].0);
    order
}

/// Late entries are often nearly in order: by insertion while that stays cheap.
fn sort_words(words: &mut [u64]) {
    let mut budget = 8 * words.len();
    for at in 1..words.len() {
        let word = words[at];
        let mut site = at;
        while site > 0 && words[site - 1] > word {
            words[site] = words[site - 1];
            site -= 1;
        }
        words[site] = word;
        match budget.checked_sub(at - site) {
            Some(left) => budget = left,
            None => return words.sort_unstable(),
        }
    }
}

/// How to spread `total` entries over leaves.
///
/// Scattered entries: evenly. Entries that all went into one gap: what lies before `cut`
/// fills leaves to the brim, since the next ones will go to the same place; no leaf gets
/// less than a quarter, so that a split is followed by many inserts before the next.
fn leaf_sizes<const L: usize>(total: usize, cut: Option<usize>) -> Vec<usize> {
    let even = |total: usize, parts: usize| {
        (0..parts).map(move |part| total * (part + 1) / parts - total * part / parts)
    };
    let least = (L / 4).max(1);
    let Some(cut) = cut.filter(|_| total > L) else {
        return even(total, total.div_ceil(L)).collect();
    };
    let cut = cut.clamp(least, total - least);
    let behind = total - cut;
    let full = std::iter::repeat_n(L, cut / L);
    let rest = Some(cut % L).filter(|rest| *rest > 0);
    let mut sizes: Vec<usize> = Vec::new();
    for size in full.chain(rest).chain(even(behind, behind.div_ceil(L))) {
        match sizes.last_mut() {
            Some(before) if *before < least || size < least => {
                let pair = *before + size;
                *before = if pair <= L { pair } else { pair.div_ceil(2) };
                sizes.extend(Some(pair / 2).filter(|_| pair > L));
            }
            _ => sizes.push(size),
        }
    }
    sizes
}
