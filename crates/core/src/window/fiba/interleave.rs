//! Bulk insertion into one leaf: interleave, and spread over new leaves what overflows.

use super::leaf::{Leaf, Run};
use super::sorted::gallop;
use super::tree::{Id, Siblings, Spine, Tree};
use crate::monoid::{Monoid, Slot};
use crate::window::Ties;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// Interleaves `run[from..to]` with a leaf; gives the leaves split off to its right.
    pub(super) fn interleave(
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
