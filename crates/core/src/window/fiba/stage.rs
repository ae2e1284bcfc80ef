//! Late entries, waiting to go in together.

use super::leaf::Run;
use super::tree::Tree;
use crate::monoid::{Entry, Monoid, Slot};
use crate::window::Ties;

/// Late entries wait for company: a bulk insert of many costs far less per entry. A large
/// window lets more of them wait, so that those of one leaf come together.
const STAGED: std::ops::RangeInclusive<usize> = 64..=4096;
const STAGED_SHARE: usize = 1024;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// A commutative tail can take a late value at once, wherever it belongs.
    pub(super) fn stage(&mut self, time: i64, value: M::In) {
        if self.monoid.commutative() {
            self.monoid.absorb(&mut self.tail, &value);
            self.monoid.absorb(&mut self.staged_agg, &value);
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
        let mut staged = std::mem::take(&mut self.staged);
        let mut run = std::mem::take(&mut self.arrived);
        if staged.is_sorted_by_key(|(time, _)| *time) {
            for (time, value) in &staged {
                self.join_run(&mut run, *time, value);
            }
        } else {
            for at in arrival_sorted(&staged, self.staged_min) {
                let (time, value) = &staged[usize::from(at)];
                self.join_run(&mut run, *time, value);
            }
        }
        staged.clear();
        self.staged = staged;
        self.staged_min = i64::MAX;
        self.staged_agg = self.monoid.identity();
        self.stale.tail = true;
        self.insert_late(run.piece(0, run.len()));
        self.repair();
        run.clear();
        self.arrived = run;
    }

    /// Puts a value at the end of a run, or combines it behind the last of its time.
    fn join_run(&mut self, run: &mut Run<M::In>, time: i64, value: &M::In) {
        if self.ties == Ties::Keep || run.times.last() != Some(&time) {
            return run.push(time, value.clone(), false);
        }
        let last = run.len() - 1;
        let promoted = run.is_promoted(last);
        let mut whole = self.lift_slot(&run.values[last], promoted);
        self.monoid.absorb(&mut whole, value);
        if promoted {
            self.slab.release(run.values[last].handle());
        }
        run.pop();
        run.push_entry(
            time,
            Entry::<M>::from_partial(&self.monoid, whole),
            &mut self.slab,
        );
    }
}

/// Positions in order of time, equal times in order of arrival; `min` is the least time.
fn arrival_sorted<In>(staged: &[(i64, In)], min: i64) -> Vec<u16> {
    let positions = 0..staged.len() as u16;
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
