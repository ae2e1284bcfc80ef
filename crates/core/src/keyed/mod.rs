//! Windows of many keys: the entries of each, and their answers at any time.
//!
//! A [`Store`] holds one sequence of entries per key, which all windows and aggregations
//! share. It keeps no state of a window: a window of any length that ends at any time is
//! folded when it is asked for ([`tree`]), so there is nothing to declare beforehand.
//! Rows come in batches in any order. A numbered store knows of which row an entry is, so
//! that entries can be removed, and rows found that lie elsewhere.
//!
//! Keys fall into shards by hash, each behind a lock of its own: questions about one key
//! wait for the batch in one shard at most, and see all rows of a batch or none.
//!
//! | what   | costs                                                                      |
//! |--------|----------------------------------------------------------------------------|
//! | ingest | O(1) amortised per row at a key's right edge, else O(log n) plus a leaf     |
//! | remove | O(log n) plus a leaf                                                        |
//! | query  | O(log n) combines and two leaves, for all windows that end together         |
//! | space  | time, value and number of an entry and a tenth; some 60 bytes and the key, per key |

mod answering;
mod blocks;
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
pub use answering::{Results, Spans};
pub use grid::Grid;
pub use keys::{KeyColumn, distinct};
pub use number_columns::{NumberColumn, NumberColumns};
use rows_only::RowsOnly;
pub use shard::{KeyList, MAX_WINDOWS};
use sharded::Sharded;

/// Keys, and the ends of windows with the places of their keys.
pub type WindowEnds = (KeyList, Vec<(i64, u32)>);

/// Entries by key, with their aggregations: rows in, answers out.
///
/// Entries that an eviction lets go may be held on: they show in whatever reaches so far
/// back.
pub trait Store: Send + Sync {
    /// Removes entries, then inserts rows, in any order; those of equal key and time go
    /// behind those held, in the order given. A reader sees all changes of a key or none.
    /// Entries that are not held are ignored, and keys without entries go. Gives the number
    /// of keys that have changed.
    fn insert(&self, gone: EntryList<'_>, rows: Rows<'_>) -> usize;
    /// The same, and answers each row over the windows that end at its time: over the entries
    /// held before, and the rows of the batch that arrived no later. `arrivals` are ranks.
    fn insert_answering(
        &self,
        gone: EntryList<'_>,
        rows: Rows<'_>,
        arrivals: &[i64],
        spans: &[Span],
    ) -> (Answers, usize);
    /// The answers at query points, by span and aggregation; integers that int64 cannot hold
    /// are missing, as [`Output`] lists them.
    fn query(&self, points: &Points<'_>, spans: &[Span]) -> Answers;
    /// The answers of [`query`](Store::query) to a few questions; none if one of them is no
    /// number, or an integer that int64 cannot hold.
    fn query_numbers(&self, points: &Points<'_>, spans: &Spans) -> Option<NumberColumns>;
    /// The answers of one key at a time, by span.
    fn ask(&self, key: &[u8], at: i64, spans: &Spans, visit: &mut Visit<'_>);
    /// For each span and query point the time of the first entry of its window, if any.
    fn first_times(&self, points: &Points<'_>, spans: &[Span]) -> Vec<Vec<Option<i64>>>;
    /// The answers of [`query`](Store::query), and how the windows of the same entries change
    /// when entries leave them: for each span and query point the first changes, as many as
    /// [`Results::most`] at most. Cost: that of a query for each time up to there.
    fn query_with_changes(
        &self,
        points: &Points<'_>,
        spans: &[Span],
        results: &Results,
    ) -> (Answers, Expiry);
    /// The time of the last entry of each key.
    fn last_times(&self, keys: KeyColumn<'_>) -> Vec<Option<i64>>;
    /// The numbers of the entries of each key between two times, both included, in order.
    /// Gives for each number whose it is.
    fn rows(&self, keys: KeyColumn<'_>, ranges: (&[i64], &[i64])) -> (Vec<u32>, Vec<i64>);
    /// Whether entries are held.
    fn holds(&self, entries: EntryList<'_>) -> Vec<bool>;
    /// All keys, by the time of the last entry, then by bytes.
    fn keys(&self) -> KeyList;
    /// The windows that hold an entry and end at `since < end <= until`: the keys that have
    /// any, sorted like [`Store::keys`], and the ends with the places of their keys, sorted.
    /// Without `since` from the first entry on. None if there are more than [`MAX_WINDOWS`].
    fn windows(&self, grid: &Grid, since: Option<i64>, until: i64) -> Option<WindowEnds>;
    /// The first of these windows that ends behind `since`. Cost: O(log n) for each key at
    /// most; O(1) for those without entries in reach, and one key in the common case.
    fn next_window(&self, grid: &Grid, since: Option<i64>) -> Option<i64>;
    /// Removes the sessions whose last entry is at or before `until`; gives the numbers of
    /// their rows, key by key. Neighbours in a session are at most `gap` apart. Cost: that of
    /// their entries, and a look at each key; another gap than before begins anew.
    fn sessions(&self, gap: i64, until: i64) -> Vec<i64>;
    /// No session has its last entry before this time; none if there are no entries. Cost:
    /// O(1) for the gap of the sessions that were removed last, else O(log n) for each key.
    fn next_session(&self, gap: i64) -> Option<i64>;
    /// Of each key the entries up to a time may go, but the last `keep_rows` of them; keys without
    /// others do. Gives the number of keys.
    fn evict(&self, until: i64, keep_rows: usize) -> usize;
    /// Drops the keys whose last entry is at or before a time; gives their number.
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
    /// What is wrong.
    fn check(&self) -> Result<(), String>;
}

/// Receives the answers over one span.
pub type Visit<'a> = dyn FnMut(usize, &[Answer<i64>]) + 'a;

pub type Answers = Vec<Vec<Output>>;

/// How windows change when their entries leave, one time after the other.
#[derive(Debug)]
pub struct Expiry {
    /// By span and query point, how many changes there are. They lie one behind the other.
    pub counts: Vec<Vec<i64>>,
    /// The last time that has left.
    pub times: Vec<i64>,
    /// The answers of what is left, as of one span.
    pub answers: Answers,
}

/// Rows to insert.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pub keys: KeyColumn<'a>,
    pub times: Vec<i64>,
    pub columns: &'a [Column<'a, i64>],
    /// Empty in a store without them.
    pub numbers: &'a [i64],
}

/// Entries, by what makes them known; none in a store without numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryList<'a> {
    pub keys: KeyColumn<'a>,
    pub times: &'a [i64],
    pub numbers: &'a [i64],
}

/// Keys and times to answer at.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    pub keys: KeyColumn<'a>,
    pub times: &'a [i64],
    /// A row of each point that takes part as if it had arrived there, last of its time.
    pub plus: Option<&'a [Column<'a, i64>]>,
}

/// An empty store for a request, which may be empty; with the numbers of rows if `numbered`.
///
/// # Panics
/// Like [`plan_few`].
pub fn store(aggs: &[AggSpec], dtypes: &[DType], numbered: bool) -> Box<dyn Store> {
    let request = Request {
        aggs: aggs.to_vec(),
        dtypes: dtypes.to_vec(),
        numbered,
    };
    match aggs {
        [] => Build(request).visit(RowsOnly),
        _ => plan_few(aggs, dtypes, Build(request)),
    }
}

struct Build(Request);

impl Visitor<i64> for Build {
    type Out = Box<dyn Store>;

    fn visit<A: Aggregation<i64>>(self, aggregation: A) -> Self::Out {
        Box::new(Sharded::new(aggregation, self.0))
    }
}

#[derive(Debug)]
struct Request {
    aggs: Vec<AggSpec>,
    dtypes: Vec<DType>,
    /// Whether rows have numbers.
    numbered: bool,
}

/// Whether a store answers a span: those of rows count entries, which it does not.
pub fn answers(span: &Span) -> bool {
    matches!(span.length, Length::Time(_))
}
