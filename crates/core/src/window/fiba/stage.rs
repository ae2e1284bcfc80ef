//! Late entries, waiting to go in together.

use super::leaf::Run;
use super::tree::Tree;
use crate::monoid::Monoid;
use crate::window::Batch;

/// Late entries wait for company: a bulk insert of many costs far less per entry. A large
/// window lets more of them wait, so that those of one leaf come together.
const STAGED: std::ops::RangeInclusive<usize> = 64..=4096;
const STAGED_SHARE: usize = 1024;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// A commutative tail can take a late value at once, wherever it belongs.
    pub(super) fn stage(&mut self, time: i64, value: M::In) {
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
        self.insert_late(run.piece(0, run.len()));
        self.repair();
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
