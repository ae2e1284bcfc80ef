//! Bulk insertion into one leaf: interleaves, and spreads the overflow over new leaves.

use super::leaf::{Leaf, RunSlice, SortedRun};
use super::path::Id;
use super::search::gallop;
use super::tree::{Siblings, Spine, Tree};
use crate::monoid::{HandleSlot, Monoid};
use crate::window::Ties;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// Interleaves a piece with a leaf; gives the leaves split off to its right.
    pub(super) fn interleave(
        &mut self,
        id: Id,
        spine: Spine,
        slice: RunSlice<'_, M::In>,
    ) -> Siblings<M::Partial> {
        self.leaf_mut(id).compact();
        if self.leaf(id).len() + slice.len() <= L {
            self.interleave_in_place(id, slice);
            return Vec::new();
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let siblings = if let Some(site) = self.only_gap(id, slice) {
            let leaf = self.leaf(id);
            leaf.copy_out(0, leaf.end(), &mut scratch);
            let (before, behind) = scratch.slice(0, scratch.len()).split(site);
            self.inserted += slice.len() as u64;
            self.distribute(
                id,
                spine,
                &[before, slice, behind],
                Some(site + slice.len()),
            )
        } else {
            self.merge(id, slice, &mut scratch);
            self.distribute(id, spine, &[scratch.slice(0, scratch.len())], None)
        };
        scratch.clear();
        self.scratch = scratch;
        siblings
    }

    /// The site of a piece that goes into one gap of the leaf, and is all there is to
    /// insert or too much for any one leaf: more of the same may follow.
    fn only_gap(&self, id: Id, slice: RunSlice<'_, M::In>) -> Option<usize> {
        let times = slice.times();
        let site = self.leaf(id).upper(times[0]);
        let one = self.leaf(id).upper(times[times.len() - 1]) == site;
        let whole = slice.len() == slice.run.len() || slice.len() > L / 2;
        (one && whole && !self.joins(id, site, times[0])).then_some(site)
    }

    /// Handles a leaf that overflows by a few scattered entries: shares with the next leaf under
    /// the same parent, or makes three leaves of the two. Leaves stay fuller than by
    /// splitting in half. False if the leaf must be split otherwise.
    pub(super) fn spill(
        &mut self,
        parent: Id,
        spine: Spine,
        at: usize,
        slice: RunSlice<'_, M::In>,
    ) -> bool {
        let children = self.children(parent);
        let (arity, id) = (children.len(), children[at].id);
        let crowd = self.leaf(id).len() + slice.len();
        if crowd <= L || slice.len() > L / 4 || at + 1 >= arity {
            return false;
        }
        if spine.of_child(at + 1, arity).right || self.only_gap(id, slice).is_some() {
            return false;
        }
        let next = children[at + 1].id;
        let parts = if crowd + self.leaf(next).len() <= 2 * L - L / 8 {
            2
        } else {
            3
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        self.leaf_mut(id).compact();
        self.merge(id, slice, &mut scratch);
        self.leaf(next)
            .copy_out(0, self.leaf(next).end(), &mut scratch);
        self.share(parent, spine, at, &scratch, parts);
        scratch.clear();
        self.scratch = scratch;
        true
    }

    /// Spreads entries evenly over children `at`, `at + 1` and, if `parts` is 3, a new one.
    fn share(&mut self, parent: Id, spine: Spine, at: usize, all: &SortedRun<M::In>, parts: usize) {
        if parts == 3 {
            let new = self.new_leaf();
            let new = self.new_child(0, new);
            self.children_mut(parent).insert(at + 2, new);
        }
        for part in 0..parts {
            let (from, to) = (all.len() * part / parts, all.len() * (part + 1) / parts);
            let child = &mut self.children_mut(parent)[at + part];
            if part > 0 {
                child.key = all.times[from];
            }
            let id = child.id;
            self.leaf_mut(id).reset();
            self.leaf_mut(id).extend(all.slice(from, to));
            self.refresh(parent, at + part, 0, spine);
        }
    }

    fn interleave_in_place(&mut self, id: Id, slice: RunSlice<'_, M::In>) {
        let RunSlice { run, from, to } = slice;
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

    fn join(&mut self, id: Id, slot: usize, run: &SortedRun<M::In>, at: usize) {
        let promoted = run.is_promoted(at);
        let younger = self.lift_slot(&run.values[at], promoted);
        self.combine_slot(id, slot, &younger);
        if promoted {
            self.slab.release(run.values[at].handle());
        }
    }

    /// Appends leaf and piece, merged, to `merged`.
    fn merge(&mut self, id: Id, slice: RunSlice<'_, M::In>, merged: &mut SortedRun<M::In>) {
        let RunSlice { run, from, to } = slice;
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
            merged.extend(run.slice(at, upto));
            self.inserted += (upto - at) as u64;
            (taken, at) = (site, upto);
        }
        let leaf = self.leaf(id);
        leaf.copy_out(taken, leaf.end(), merged);
    }

    /// Writes the pieces, end to end, to the leaf and the new ones that they need. If
    /// all that is new went into one gap, `cut` is the position behind it, where more of
    /// the same may follow.
    fn distribute(
        &mut self,
        id: Id,
        spine: Spine,
        slices: &[RunSlice<'_, M::In>],
        cut: Option<usize>,
    ) -> Siblings<M::Partial> {
        let total = slices.iter().map(|slice| slice.len()).sum();
        let sizes = leaf_sizes::<L>(total, cut);
        self.leaf_mut(id).reset();
        extend_from_slices(self.leaf_mut(id), slices, 0, sizes[0]);
        let mut from = sizes[0];
        let mut siblings = Vec::with_capacity(sizes.len() - 1);
        for (at, size) in sizes.iter().enumerate().skip(1) {
            let new = self.new_leaf();
            let leaf = self.leaf_mut(new);
            extend_from_slices(leaf, slices, from, from + size);
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

/// Appends positions `from..to` of the pieces, counted end to end.
fn extend_from_slices<In: HandleSlot, const L: usize>(
    leaf: &mut Leaf<In, L>,
    slices: &[RunSlice<'_, In>],
    mut from: usize,
    mut to: usize,
) {
    for slice in slices {
        let len = slice.len();
        let (before, _) = slice.split(to.min(len));
        let (_, within) = before.split(from.min(before.len()));
        if !within.is_empty() {
            leaf.extend(within);
        }
        (from, to) = (from.saturating_sub(len), to.saturating_sub(len));
    }
}

/// The sizes of leaves that hold `total` entries.
///
/// Scattered entries are spread evenly. If all went into one gap, the entries before `cut`
/// fill leaves completely, since the next ones will go to the same place; no leaf gets
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
