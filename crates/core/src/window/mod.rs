//! Windows, all of which implement [`Window`]: a structure for any order ([`fiba`]),
//! structures for entries in order ([`fifo`]), [`queries`] with range and slide over one of
//! them, and what finds a window by the names of algorithm and aggregations ([`planned`]).

pub mod costs;
pub mod fiba;
pub mod fifo;
pub mod planned;
pub mod queries;
pub mod recalculate;
pub mod row_log;
pub mod shape;
pub mod steps;

pub use crate::batch::{Batch, Ties};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer};

/// An operation that the algorithm does not support; the window is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An insert before the youngest entry, if entries must be in order.
    Late { time: i64, youngest: i64 },
    /// The eviction of an entry that is not the oldest, if eviction is in order only.
    Inner { time: i64, oldest: i64 },
    /// A query of a part of the window, if only the whole can be queried.
    Range { lo: i64, hi: i64 },
    /// An entry, or an end of the wait for entries, with which more empty windows fall due than
    /// can be answered.
    Many { time: i64, ends: i64 },
}

/// A window over entries ordered by time.
///
/// Windows that take any order refuse nothing. The caller tests the others first
/// ([`Window::admits`], [`Window::admits_evict`], [`Window::admits_range`]).
///
/// Queries take `&mut self` because algorithms may finish deferred work first.
pub trait Window<M: Monoid>: Clone + Send {
    /// Whether an entry may be inserted at this time.
    fn admits(&mut self, _time: i64) -> std::result::Result<(), Refused> {
        Ok(())
    }
    /// Whether [`Window::evict_at`] may be called with this time.
    fn admits_evict(&mut self, _time: i64) -> std::result::Result<(), Refused> {
        Ok(())
    }
    /// Whether [`Window::query_range`] may be called with these bounds.
    fn admits_range(&mut self, _lo: i64, _hi: i64) -> std::result::Result<(), Refused> {
        Ok(())
    }

    fn insert(&mut self, time: i64, entry: Entry<M>);
    /// Inserts a batch sorted by time; equal times in order of arrival.
    fn insert_batch(&mut self, batch: Batch<M>);
    /// Evicts the oldest entry and gives its time.
    fn evict(&mut self) -> Option<i64>;
    /// Evicts the first entry of that time, if there is one.
    fn evict_at(&mut self, time: i64) -> bool;
    /// Evicts all entries with a time up to `time`; gives their number.
    fn evict_until(&mut self, time: i64) -> usize;
    fn query(&mut self) -> M::Partial;
    /// Every answer: the whole, or one for each range of a
    /// [`SharedWindow`](fifo::shared::SharedWindow).
    fn query_each(&mut self, mut visit: impl FnMut(&M, M::Partial)) {
        let whole = self.query();
        visit(self.monoid(), whole);
    }
    /// The fold over the entries with `lo <= time <= hi`.
    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial;
    fn len(&mut self) -> usize;
    fn oldest(&mut self) -> Option<i64>;
    fn youngest(&mut self) -> Option<i64>;
    fn clear(&mut self);
    /// Sets how far the ranges of a [`SharedWindow`](fifo::shared::SharedWindow) reach from the
    /// youngest entry, by number; evicts the entries that no range reaches.
    fn slide(&mut self, _reaches: &[fifo::shared::Reach]) {}
    /// The queries of a [`QueryWindow`](queries::QueryWindow); `None` of other windows.
    fn planning(&mut self) -> Option<&mut dyn queries::Planning> {
        None
    }
    /// The answers that fell due since the last call.
    fn take_due(&mut self) -> Vec<queries::Due<M::Partial>> {
        Vec::new()
    }
    /// All entries in order.
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial));
    /// All entries in order, as they were inserted; the window is empty afterwards.
    fn take(&mut self) -> Batch<M> {
        let monoid = self.monoid().clone();
        let mut batch = Batch::with_capacity(self.len());
        self.for_each(&mut |time, partial| {
            batch.push(time, Entry::from_partial(&monoid, partial));
        });
        self.clear();
        batch
    }
    /// Checks every invariant; O(n).
    fn check(&self) -> std::result::Result<(), String>;
    /// Bytes held, the struct itself included.
    fn bytes(&self) -> usize;
    fn write(&self, out: &mut Writer);
    /// Reads what `write` wrote, into an empty window of the same monoid and ties.
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()>;
    fn monoid(&self) -> &M;

    /// The present tree, for pictures; `None` without one.
    fn shape(&mut self) -> Option<shape::Shape<M::Partial>> {
        None
    }

    fn is_empty(&mut self) -> bool {
        self.oldest().is_none()
    }
}
