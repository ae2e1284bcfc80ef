//! Stages late entries, and moves them into the tree together.

use super::leaf::SortedRun;
use super::tree::Tree;
use crate::monoid::{Entry, HandleSlot, Monoid};
use crate::window::{Batch, Ties};

/// Late entries are staged until they fill at least a leaf: a bulk insert of many costs far
/// less per entry. A large window stages more, so that several go to one leaf.
const MAX_STAGED: usize = 1 << 14;
const STAGED_SHARE: usize = 256;

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    #[inline(always)]
    pub(super) fn stage(&mut self, time: i64, value: M::In) {
        if self.monoid.commutative() {
            self.monoid.absorb(&mut self.tail, &value);
        }
        self.staged.push(&self.monoid, time, value);
        if self.staged.entries.len() >= L {
            self.flush_if_many();
        }
    }

    #[inline]
    pub(super) fn flush_if_many(&mut self) {
        if self.staged.entries.len() >= self.most_staged() {
            self.flush_staged();
        }
    }

    fn most_staged(&self) -> usize {
        (self.tree_len() / STAGED_SHARE).clamp(L, MAX_STAGED)
    }

    /// Whether a batch should be staged, as single late entries are: it is small and
    /// scattered over many leaves.
    pub(super) fn should_stage(&self, batch: &Batch<M>) -> bool {
        batch.len() <= self.most_staged() / 4
            && batch.lifted.is_empty()
            && self.monoid.commutative()
            && self.height() > 0
            && self.is_scattered(&batch.times)
    }

    /// Whether a quarter of a leaf's worth from the middle would spread over several leaves.
    fn is_scattered(&self, times: &[i64]) -> bool {
        let reach = (L / 4).min(times.len() - 1);
        let at = (times.len() - 1 - reach) / 2;
        let (oldest, youngest) = (times[at], times[at + reach]);
        match self.next_leaf_key(oldest) {
            Some(next) => reach == 0 || youngest >= next,
            None => false,
        }
    }

    /// Stages a batch, of which most entries are late; those in order are staged as well.
    pub(super) fn stage_batch(&mut self, batch: Batch<M>) {
        let part = self.monoid.fold(&batch.values);
        self.tail = self.monoid.combine(&self.tail, &part);
        let staged = &mut self.staged;
        staged.agg = self.monoid.combine(&staged.agg, &part);
        staged.late += batch.len() as u64;
        staged.oldest = staged.oldest.min(batch.times[0]);
        staged.youngest = staged.youngest.max(batch.times[batch.len() - 1]);
        staged
            .entries
            .extend(batch.times.into_iter().zip(batch.values));
        self.set_stages_all(true);
        self.flush_if_many();
    }

    /// Moves what is staged into the tree.
    #[inline]
    pub(super) fn flush_staged(&mut self) {
        if !self.staged.entries.is_empty() {
            self.flush_some();
        }
    }

    #[inline(never)]
    fn flush_some(&mut self) {
        let mut entries = self.staged.take_sorted(&self.monoid);
        let mut run = std::mem::take(&mut self.arrived);
        self.join_run(&mut run, &entries);
        entries.clear();
        self.staged.entries = entries;
        self.stale.tail = true;
        self.insert_run(&run);
        run.clear();
        self.arrived = run;
        let often = self.staged.judge(self.inserted, L);
        self.set_stages_all(often && self.monoid.commutative() && self.height() > 0);
    }

    /// Whether to stage all arrivals, or only late ones.
    pub(super) fn set_stages_all(&mut self, all: bool) {
        self.staged.stages_all = all;
        let finger = self.right_leaf();
        self.bound = if all || finger.len() == 0 {
            i64::MAX
        } else {
            finger.last_time()
        };
    }

    /// Appends values in order of time to a run; those of one time combine if they should.
    fn join_run(&mut self, run: &mut SortedRun<M::In>, entries: &[(i64, M::In)]) {
        let repeats = |pair: &[(i64, M::In)]| pair[0].0 == pair[1].0;
        if self.ties == Ties::Keep || !entries.windows(2).any(repeats) {
            run.times.extend(entries.iter().map(|(time, _)| *time));
            run.values
                .extend(entries.iter().map(|(_, value)| value.clone()));
            return;
        }
        for (time, value) in entries {
            if run.times.last() == Some(time) {
                self.join_last(run, *time, value);
            } else {
                run.push(*time, value.clone(), false);
            }
        }
    }

    /// Combines a value behind the last of a run, which has its time.
    fn join_last(&mut self, run: &mut SortedRun<M::In>, time: i64, value: &M::In) {
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
