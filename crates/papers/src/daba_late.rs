//! daba_late: a tree for entries within the latency bound, DABA Lite for older ones.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §9, on windows that are    |
//! |          | not strictly first in first out, after Srivastava and Widom            |
//! | order    | any, as long as an entry is no later than the latency bound            |
//! | laws     | associative                                                            |
//! | costs    | in combines: query 5; insert amortised O(log d) for d younger entries, |
//! |          | and amortised O(1) to move on (after a pause, all that has become old  |
//! |          | at once); evict 2, worst case, of what is older than the bound         |
//! | space    | 32 to 122 bytes per entry of a sum of int64: as daba_lite for old      |
//! |          | entries, a node's share of the tree for young ones                     |
//! | choose   | a long window whose late entries are not very late                     |
//!
//! Idea: an entry that is less late than the *latency bound* is inserted into a small
//! balanced tree. When the youngest entry is later by the bound, no entry can arrive before
//! it any more: it moves from the tree to DABA. The size of the tree depends on the bound,
//! not on the length of the window.
//!
//! ```text
//!   old: DABA Lite, in order         | young: tree, any order
//!   oldest ......................... | youngest − bound ....... youngest
//! ```
//!
//! Invariants (checked by `check`):
//! 1. Every time in `old` is before every time in `young`.
//! 2. After an insert all of `young` is younger than the youngest minus the bound.
//!
//! Deviations: an entry later than the bound is accepted unless `old` has a younger one.
//! The tree is FiBA as published, whose fingers make both ends cheap.

use crate::btree::Options;
use crate::btree::Tree;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::{Batch, Refused, Ties, Window};

/// The minimum arity, and the size of a node that is about to be split.
const ARITY: usize = 4;
const NODE: usize = 2 * ARITY;

#[derive(Clone, Debug)]
pub struct DabaLate<M: Monoid> {
    /// The latency bound; `MAX` if there is none.
    bound: i64,
    old: InOrder<M, DabaLite<M>>,
    young: Tree<M, NODE, { NODE + 1 }>,
}

impl<M: Monoid> DabaLate<M> {
    /// An empty window for entries that are less than `bound` late, in ticks; at least 0,
    /// and `i64::MAX` for entries however late.
    pub fn new(monoid: M, ties: Ties, bound: i64) -> Self {
        assert!(bound >= 0, "a latency bound of {bound}");
        let options = Options {
            bulk: true,
            free_list: true,
        };
        Self {
            bound,
            old: InOrder::new(DabaLite::new(monoid.clone()), ties),
            young: Tree::empty(monoid, ties, ARITY, Some(options)),
        }
    }

    /// Whether an entry of this time belongs to the old ones: one of them is as young.
    fn is_old(&mut self, time: i64) -> bool {
        self.old.youngest().is_some_and(|youngest| time <= youngest)
    }

    /// Moves the entries to `old` that are older than the youngest by the bound.
    fn move_overdue(&mut self) {
        let Some(youngest) = self.young.youngest() else {
            return;
        };
        let bound = (self.bound < i64::MAX).then_some(self.bound);
        let Some(until) = bound.and_then(|bound| youngest.checked_sub(bound)) else {
            return;
        };
        while let Some((time, value)) = self.young.first() {
            if time > until || time == youngest {
                return;
            }
            let entry = Entry::from_partial(self.young.monoid(), value);
            self.young.evict();
            self.old.insert(time, entry);
        }
    }

    fn join(&self, old: Option<M::Partial>, young: Option<M::Partial>) -> M::Partial {
        let monoid = self.old.monoid();
        match (old, young) {
            (Some(old), Some(young)) => monoid.combine(&old, &young),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => monoid.identity(),
        }
    }
}

impl<M: Monoid> Window<M> for DabaLate<M> {
    fn admits(&mut self, time: i64) -> std::result::Result<(), Refused> {
        self.old.admits(time)
    }

    fn admits_evict(&mut self, time: i64) -> std::result::Result<(), Refused> {
        if self.is_old(time) {
            return self.old.admits_evict(time);
        }
        Ok(())
    }

    fn admits_range(&mut self, lo: i64, hi: i64) -> std::result::Result<(), Refused> {
        self.old.admits_range(lo, hi)
    }

    fn insert(&mut self, time: i64, entry: Entry<M>) {
        if self.is_old(time) {
            self.old.insert(time, entry);
            return;
        }
        self.young.insert(time, entry);
        self.move_overdue();
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        if batch.times.first().is_some_and(|first| self.is_old(*first)) {
            for (time, entry) in batch.into_entries() {
                self.insert(time, entry);
            }
            return;
        }
        self.young.insert_batch(batch);
        self.move_overdue();
    }

    fn evict(&mut self) -> Option<i64> {
        self.old.evict().or_else(|| self.young.evict())
    }

    fn evict_at(&mut self, time: i64) -> bool {
        if self.is_old(time) {
            return self.old.evict_at(time);
        }
        self.young.evict_at(time)
    }

    fn evict_until(&mut self, time: i64) -> usize {
        self.old.evict_until(time) + self.young.evict_until(time)
    }

    fn query(&mut self) -> M::Partial {
        let old = (!self.old.is_empty()).then(|| self.old.query());
        let young = (!self.young.is_empty()).then(|| self.young.query());
        self.join(old, young)
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        let reaches = self.old.youngest().is_some_and(|youngest| lo <= youngest);
        let old = reaches.then(|| self.old.query_range(lo, hi));
        let young = (!self.young.is_empty()).then(|| self.young.query_range(lo, hi));
        self.join(old, young)
    }

    fn len(&mut self) -> usize {
        self.old.len() + self.young.len()
    }

    fn oldest(&mut self) -> Option<i64> {
        self.old.oldest().or_else(|| self.young.oldest())
    }

    fn youngest(&mut self) -> Option<i64> {
        self.young.youngest().or_else(|| self.old.youngest())
    }

    fn clear(&mut self) {
        self.old.clear();
        self.young.clear();
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        self.old.for_each(visit);
        self.young.for_each(visit);
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.old.check()?;
        self.young.check()?;
        let mut both = self.clone();
        match (both.old.youngest(), both.young.oldest()) {
            (Some(old), Some(young)) if old >= young => {
                Err(format!("an old entry at {old}, a young one at {young}"))
            }
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<i64>() + self.old.bytes() + self.young.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.bound.write(out);
        self.old.write(out);
        self.young.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let bound = i64::read(input)?;
        if bound != self.bound {
            return damaged(format!("a latency bound of {bound}, not {}", self.bound));
        }
        self.old.read(input)?;
        self.young.read(input)?;
        self.check().or_else(damaged)
    }

    fn monoid(&self) -> &M {
        self.old.monoid()
    }
}
