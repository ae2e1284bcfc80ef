//! daba_sources: a DABA Lite per source of data, under a tree of their answers.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §9, on sources that drift, |
//! |          | after Krishnamurthy et al.                                             |
//! | order    | in order within each source; between sources, none                     |
//! | laws     | associative and commutative                                            |
//! | costs    | in combines, for s sources: insert 3, evict 2; a query 2 for each      |
//! |          | source that changed since the last one, and m (1 + log₂(s/m)) for m    |
//! |          | of them; worst case all the same                                       |
//! | space    | a time, a value and a partial per entry                                |
//! | choose   | many devices, each in order, whose clocks or networks lag without      |
//! |          | bound                                                                  |
//!
//! Idea: a source that is in order needs no tree over its entries. Where order between
//! sources does not matter, only their answers need one: FlatFAT, with a source per leaf.
//!
//! Invariants (checked by `check`):
//! 1. Leaf s of `tree` is the answer of source s, unless s is among `changed`.
//! 2. Times of one source are in order.

use super::fifo::daba_lite::DabaLite;
use super::fifo::flat_fat::FlatFat;
use super::fifo::in_order::InOrder;
use super::{Refused, Ties, Window};
use crate::monoid::{Commutative, Entry};

/// Windows by source, numbered from 0. Only for commutative aggregations:
///
/// ```
/// use slidewise_core::aggregate::word::SumI64;
/// use slidewise_core::window::{Ties, daba_sources::DabaSources};
/// DabaSources::new(SumI64, Ties::Keep, 3);
/// ```
///
/// A list of all values in order is not:
///
/// ```compile_fail,E0277
/// use slidewise_core::aggregate::collect::Collect;
/// use slidewise_core::window::{Ties, daba_sources::DabaSources};
/// DabaSources::new(Collect::<i64>::new(), Ties::Keep, 3);
/// ```
#[derive(Clone, Debug)]
pub struct DabaSources<M: Commutative> {
    sources: Vec<InOrder<M, DabaLite<M>>>,
    tree: FlatFat<M>,
    changed: Vec<u32>,
    /// By source: whether it is in `changed`.
    marked: Vec<bool>,
}

impl<M: Commutative> DabaSources<M> {
    /// A window of empty sources; at least one.
    pub fn new(monoid: M, ties: Ties, sources: usize) -> Self {
        assert!(sources > 0, "no sources");
        let one = InOrder::new(DabaLite::new(monoid.clone()), ties);
        let nothing = (0..sources).map(|_| monoid.identity());
        Self {
            tree: FlatFat::new(monoid.clone(), nothing),
            sources: vec![one; sources],
            changed: Vec::new(),
            marked: vec![false; sources],
        }
    }

    fn change(&mut self, source: usize) {
        if !self.marked[source] {
            self.marked[source] = true;
            self.changed.push(source as u32);
        }
    }

    /// Inserts behind the youngest of its source, or refuses and changes nothing.
    pub fn insert(&mut self, source: usize, time: i64, entry: Entry<M>) -> Result<(), Refused> {
        self.sources[source].admits(time)?;
        self.sources[source].insert(time, entry);
        self.change(source);
        Ok(())
    }

    /// Evicts the oldest entry of a source and gives its time.
    pub fn evict(&mut self, source: usize) -> Option<i64> {
        let time = self.sources[source].evict()?;
        self.change(source);
        Some(time)
    }

    /// Evicts all entries with a time up to `time`; gives their number.
    pub fn evict_until(&mut self, time: i64) -> usize {
        let mut gone = 0;
        for source in 0..self.sources.len() {
            let count = self.sources[source].evict_until(time);
            if count > 0 {
                self.change(source);
            }
            gone += count;
        }
        gone
    }

    /// The fold of all entries, in no particular order.
    pub fn query(&mut self) -> M::Partial {
        for source in &self.changed {
            let at = *source as usize;
            self.marked[at] = false;
            self.tree.set(at, self.sources[at].query());
        }
        if !self.changed.is_empty() {
            self.tree.update(&self.changed);
            self.changed.clear();
        }
        self.tree.aggregate()
    }

    pub fn len(&mut self) -> usize {
        self.sources.iter_mut().map(Window::len).sum()
    }

    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// Checks every invariant; O(n).
    pub fn check(&self) -> Result<(), String> {
        for (number, source) in self.sources.iter().enumerate() {
            source.check()?;
            let (kept, own) = (self.tree.leaf(number), source.clone().query());
            if !self.marked[number] && !source.monoid().same(kept, &own) {
                return Err(format!("source {number}: {kept:?} instead of {own:?}"));
            }
        }
        if self.changed.is_empty() {
            return self.tree.check();
        }
        Ok(())
    }
}
