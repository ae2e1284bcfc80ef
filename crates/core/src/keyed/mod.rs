//! Windows of many keys: the entries of each, and their answers at any time.
//!
//! A [`Store`] holds one sequence of entries per key, which all windows and aggregations
//! share. It keeps no state of a window: a window of any length that ends at any time is
//! folded when it is queried ([`tree`]), so windows need no declaration. Rows come in
//! batches in any order. A numbered store has the number of the row of each entry, by which
//! entries are removed, and rows are found that are stored elsewhere.
//!
//! Keys are in shards by hash, each with a lock of its own: a query of one key waits for
//! the batch in one shard at most, and sees all rows of a batch or none.
//!
//! | what   | costs                                                                      |
//! |--------|----------------------------------------------------------------------------|
//! | ingest | O(1) amortised per row at a key's right edge, else O(log n) plus a leaf     |
//! | remove | O(log n) plus a leaf                                                        |
//! | fold   | O(n) for a key with new cells                                               |
//! | query  | O(log n) combines and two leaves, for all windows that end together         |
//! | space  | time, value and number of an entry and a tenth; some 60 bytes and the key, per key |

mod answering;
mod blocks;
mod changes;
mod grid;
mod keys;
mod number_columns;
mod rows_only;
mod run;
mod shard;
mod sharded;
mod sliding;
mod tree;

use crate::aggregate::column::Column;
use crate::aggregate::{AggSpec, Aggregation, Answer, DType, Visitor, plan_few};
use crate::rolling::{Length, Output, Span};
use crate::snapshot;
pub use answering::{Results, Spans};
pub use grid::Grid;
pub use keys::{KeyColumn, distinct};
pub use number_columns::{NumberColumn, NumberColumns};
use rows_only::RowsOnly;
pub use shard::{Cells, FoldedEntries, KeyList, MAX_WINDOWS, Reach};
use sharded::Sharded;

/// Keys, and the ends of windows with the indices of their keys.
pub type WindowEnds = (KeyList, Vec<(i64, u32)>);

/// Entries by key, with their aggregations: rows in, answers out.
///
/// An eviction may keep some of its entries: windows that begin early enough hold them.
pub trait Store: Send + Sync {
    /// Removes entries, then inserts rows, in any order. Rows of equal key and time are inserted
    /// after those in the store, in the order given. A reader sees all changes of a key or none.
    /// Entries to remove that are missing are ignored; keys without entries are removed. Returns
    /// the number of keys that have changed.
    fn insert(&self, removals: EntryList<'_>, rows: Rows<'_>) -> usize;
    /// As `insert`; also answers each row over the windows that end at its time: over the entries
    /// before the batch, and the rows of the batch that arrived no later. `arrivals` are ranks.
    fn insert_answering(
        &self,
        removals: EntryList<'_>,
        rows: Rows<'_>,
        arrivals: &[i64],
        spans: &[Span],
    ) -> (Answers, usize);
    /// The answers at query points, by span and aggregation. Integers beyond int64 are missing;
    /// [`Output`] lists them.
    fn query(&self, points: &Points<'_>, spans: &[Span]) -> Answers;
    /// The answers of [`query`](Store::query) at a few points; none if one of them is not a
    /// number, or an integer beyond int64.
    fn query_numbers(&self, points: &Points<'_>, spans: &Spans) -> Option<NumberColumns>;
    /// The answers of one key at a time, by span.
    fn query_key(&self, key: &[u8], at: i64, spans: &Spans, visit: &mut VisitAnswers<'_>);
    /// For each span and query point the time of the first entry of its window, if any.
    fn first_times(&self, points: &Points<'_>, spans: &[Span]) -> Vec<Vec<Option<i64>>>;
    /// The answers of [`query`](Store::query), and the changes of the same windows as entries
    /// leave them: per span and query point the first ones, at most [`Results::most`]. Cost: that
    /// of a query for each time up to the last change.
    fn query_with_changes(
        &self,
        points: &Points<'_>,
        spans: &[Span],
        results: &Results,
    ) -> (Answers, Expiry);
    /// The time of the last entry of each key.
    fn last_times(&self, keys: KeyColumn<'_>) -> Vec<Option<i64>>;
    /// The numbers of the entries of each key between two times, both included, in order; and
    /// for each number the index of its key.
    fn rows(&self, keys: KeyColumn<'_>, ranges: (&[i64], &[i64])) -> (Vec<u32>, Vec<i64>);
    /// Whether the store holds the entries.
    fn holds(&self, entries: EntryList<'_>) -> Vec<bool>;
    /// All keys, by the time of the last entry, then by bytes.
    fn keys(&self) -> KeyList;
    /// The windows that hold an entry and end at `since < end <= until`: their keys, sorted like
    /// [`Store::keys`], and their ends with the indices of their keys, sorted. Without `since`,
    /// from the first entry on. None if there are more than [`MAX_WINDOWS`].
    fn windows(&self, grid: &Grid, since: Option<i64>, until: i64) -> Option<WindowEnds>;
    /// The first of these windows that ends after `since`. Cost: at most O(log n) per key; O(1)
    /// for keys without entries in its range; in the common case one key.
    fn next_window(&self, grid: &Grid, since: Option<i64>) -> Option<i64>;
    /// Removes the sessions whose last entry is at or before `until`; returns the numbers of
    /// their rows, key by key. Neighbours in a session are at most `gap` apart. Cost: that of
    /// their entries, and O(1) per key; after a call with another gap, that of all entries.
    fn sessions(&self, gap: i64, until: i64) -> Vec<i64>;
    /// A time before which no session has its last entry; none without entries. Cost: O(1) for
    /// the gap of the last call of `sessions`, otherwise O(log n) for each key.
    fn next_session(&self, gap: i64) -> Option<i64>;
    /// Folds the entries of each cell within the range, per key, into one at the time of the last,
    /// where that takes less memory; the range ends with a cell. Returns all entries within the
    /// range. Only for a store without numbers. Cost: O(log n) per key; that of all entries of
    /// the keys with entries in the range.
    fn fold_cells(&self, cells: &Cells, range: Reach) -> FoldedEntries;
    /// Inserts entries, as `fold_cells` returned them for the same request. Only for a store
    /// without numbers.
    ///
    /// # Errors
    /// If one is damaged; then none is inserted.
    fn insert_folded(
        &self,
        keys: KeyColumn<'_>,
        times: &[i64],
        entries: &[&[u8]],
    ) -> snapshot::Result<()>;
    /// Allows to evict, per key, the entries at or before a time, except the last `keep_rows` of
    /// them; removes keys without other entries. Returns the number of these keys.
    fn evict(&self, until: i64, keep_rows: usize) -> usize;
    /// Drops the keys whose last entry is at or before a time; returns their number.
    fn drop_idle(&self, until: i64) -> usize;
    /// The number of keys.
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn bytes(&self) -> usize;
    /// Checks the invariants.
    ///
    /// # Errors
    /// The invariant that does not hold.
    fn check(&self) -> Result<(), String>;
}

/// Receives the answers over one span.
pub type VisitAnswers<'a> = dyn FnMut(usize, &[Answer<i64>]) + 'a;

pub type Answers = Vec<Vec<Output>>;

/// The changes of windows as their entries leave in order of time.
#[derive(Debug)]
pub struct Expiry {
    /// Per span and query point, the number of changes, which are concatenated.
    pub counts: Vec<Vec<i64>>,
    /// Per change, the last time that left.
    pub times: Vec<i64>,
    /// Per change, the answers of the remaining entries, as of one span.
    pub answers: Answers,
}

/// Rows to insert.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pub keys: KeyColumn<'a>,
    pub times: Vec<i64>,
    pub columns: &'a [Column<'a, i64>],
    /// The numbers of rows; empty in a store without numbers.
    pub numbers: &'a [i64],
}

/// Entries by key, time and number; none in a store without numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryList<'a> {
    pub keys: KeyColumn<'a>,
    pub times: &'a [i64],
    pub numbers: &'a [i64],
}

/// Query points: keys and times.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    pub keys: KeyColumn<'a>,
    pub times: &'a [i64],
    /// Per point, an extra row, which counts as the last of its time.
    pub plus: Option<&'a [Column<'a, i64>]>,
}

/// An empty store for a request, which may be empty; with the numbers of rows if `numbered`.
///
/// # Panics
/// Like [`plan_few`].
pub fn store(aggs: &[AggSpec], dtypes: &[DType], numbered: bool) -> Box<dyn Store> {
    let request = StoreRequest {
        aggs: aggs.to_vec(),
        dtypes: dtypes.to_vec(),
        numbered,
    };
    match aggs {
        [] => Build(request).visit(RowsOnly),
        _ => plan_few(aggs, dtypes, Build(request)),
    }
}

struct Build(StoreRequest);

impl Visitor<i64> for Build {
    type Out = Box<dyn Store>;

    fn visit<A: Aggregation<i64>>(self, aggregation: A) -> Self::Out {
        Box::new(Sharded::new(aggregation, self.0))
    }
}

#[derive(Debug)]
struct StoreRequest {
    aggs: Vec<AggSpec>,
    dtypes: Vec<DType>,
    /// Whether rows have numbers.
    numbered: bool,
}

/// Whether a store answers a span: it does not count entries, as a span of rows would need.
pub fn answers(span: &Span) -> bool {
    !matches!(span.length, Length::Rows(_))
}
