//! Windows of many keys: the entries of each, and their answers at any time.
//!
//! A [`Store`] holds one sequence of entries per key, which all windows and aggregations
//! share. It keeps no state of a window: a window of any length that ends at any time is
//! folded when it is asked for ([`tree`]), so there is nothing to declare beforehand.
//! Rows come in batches in any order.
//!
//! Keys fall into shards by hash, each behind a lock of its own: questions about one key
//! wait for the batch in one shard at most, and see all rows of a batch or none.
//!
//! | what   | costs                                                                      |
//! |--------|----------------------------------------------------------------------------|
//! | ingest | O(1) amortised per row at a key's right edge, else O(log n) plus a leaf     |
//! | query  | O(log n) combines and two leaves, for all windows that end together         |
//! | space  | time and value of an entry and a tenth; some 60 bytes and the key, per key  |

mod blocks;
mod keys;
mod run;
mod shard;
mod tree;

use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::DefaultHashBuilder;

use crate::aggregate::column::Column;
use crate::aggregate::{AggSpec, Aggregation, Answer, DType, Visitor, plan_few};
use crate::monoid::Entry;
use crate::rolling::{Error, Length, Output, Overflow, Span, fill_columns};
pub use keys::KeyColumn;
use shard::{Row, Shard, in_order};

const SHARDS: usize = 16;
/// Rows that a batch inserts at a time while it holds the lock of a shard.
const ROWS_PER_HOLD: usize = 64;

/// Entries by key, with their aggregations: rows in, answers out.
pub trait Store: Send + Sync {
    /// Inserts rows, in any order; those of equal key and time stay in the order given.
    fn insert(&self, keys: KeyColumn<'_>, times: Vec<i64>, columns: &[Column<'_, i64>]) {
        self.replace(KeyColumn::default(), keys, times, columns);
    }
    /// The answers at query points, by span and aggregation.
    ///
    /// # Errors
    /// As [`crate::rolling::rolling`] says.
    fn query(&self, points: &Points<'_>, spans: &[Span], overflow: Overflow) -> Answers;
    /// The answers of one key at a time, by span.
    fn ask(&self, key: &[u8], at: i64, spans: &[Span], visit: &mut Visit<'_>);
    /// For each span and query point the time of the first entry of its window, if any.
    fn first_times(&self, points: &Points<'_>, spans: &[Span]) -> Vec<Vec<Option<i64>>>;
    /// Inserts rows, after it has dropped the keys in `gone` with all their entries: no
    /// question sees one without the other.
    fn replace(
        &self,
        gone: KeyColumn<'_>,
        keys: KeyColumn<'_>,
        times: Vec<i64>,
        columns: &[Column<'_, i64>],
    );
    /// The entries up to a time may go; keys without others do. Gives the number of keys.
    fn evict(&self, until: i64) -> usize;
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

type Answers = Result<Vec<Vec<Output>>, Error>;

/// Keys and times to answer at.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    pub keys: KeyColumn<'a>,
    pub times: &'a [i64],
    /// A row of each point that takes part as if it had arrived there, last of its time.
    pub plus: Option<&'a [Column<'a, i64>]>,
}

/// An empty store for a request.
///
/// # Panics
/// Like [`plan_few`].
pub fn store(aggs: &[AggSpec], dtypes: &[DType]) -> Box<dyn Store> {
    let request = Request {
        aggs: aggs.to_vec(),
        dtypes: dtypes.to_vec(),
    };
    plan_few(aggs, dtypes, Build(request))
}

struct Build(Request);

impl Visitor<i64> for Build {
    type Out = Box<dyn Store>;

    fn visit<A: Aggregation<i64>>(self, aggregation: A) -> Self::Out {
        Box::new(Sharded {
            aggregation,
            request: self.0,
            hasher: DefaultHashBuilder::default(),
            batch: RwLock::new(()),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
        })
    }
}

#[derive(Debug)]
struct Request {
    aggs: Vec<AggSpec>,
    dtypes: Vec<DType>,
}

struct Sharded<A: Aggregation<i64>> {
    aggregation: A,
    request: Request,
    hasher: DefaultHashBuilder,
    /// Held while a batch goes in; questions about several keys wait for it, so that they
    /// see all shards after the same batch.
    batch: RwLock<()>,
    shards: Vec<RwLock<Shard<A>>>,
}

/// A panic while a lock is held is a broken invariant, which `check` would show; it is
/// reported by the panic itself.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The shard of a hash: from bits that its table of keys does not use.
fn shard_of(hash: u64) -> usize {
    (hash >> 60) as usize % SHARDS
}

/// Spans with equal ends, from the shortest on: each takes over the fold of the one before.
fn by_end(spans: &[Span], at: i64) -> Vec<(i64, i64, usize)> {
    let mut intervals: Vec<(i64, i64, usize)> = (0..)
        .zip(spans)
        .map(|(index, span)| {
            let (lo, hi) = span.interval(at, None);
            let bound = |end: i128| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            match lo > i64::MAX.into() || hi < i64::MIN.into() {
                true => (i64::MAX, i64::MIN, index),
                false => (bound(lo), bound(hi), index),
            }
        })
        .collect();
    intervals.sort_by_key(|(lo, hi, _)| (std::cmp::Reverse(*hi), std::cmp::Reverse(*lo)));
    intervals
}

impl<A: Aggregation<i64>> Sharded<A> {
    /// Row `row` of columns as an entry.
    fn entry(&self, columns: &[Column<'_, i64>], row: usize) -> Entry<A> {
        let cells: Vec<_> = columns.iter().map(|column| column.cell(row)).collect();
        self.aggregation.entry(&cells)
    }

    /// The answers of a key at a time, with a row more, by span; spans with equal ends share
    /// their folds.
    fn answer(
        &self,
        shard: &Shard<A>,
        (number, at, plus): (Option<u32>, i64, Option<&Entry<A>>),
        spans: &[Span],
        visit: &mut Visit<'_>,
    ) {
        let monoid = &self.aggregation;
        let mut answers: Vec<Answer<i64>> = Vec::with_capacity(self.request.aggs.len());
        let mut acc: Option<A::Partial> = None;
        let mut known: Option<(i64, i64)> = None;
        for (lo, hi, span) in by_end(spans, at) {
            let is_longer = known.is_some_and(|(_, to)| to == hi) && lo <= hi;
            let end = match known {
                Some((from, _)) if is_longer => from.saturating_sub(1),
                _ => hi,
            };
            let mut older = None;
            if lo <= end && known.is_none_or(|(from, _)| !is_longer || lo < from) {
                shard.fold(monoid, number, (lo, end), &mut older);
            }
            acc = match (older, acc.take().filter(|_| is_longer)) {
                (Some(older), Some(rest)) => Some(monoid.combine(&older, &rest)),
                (older, rest) => older.or(rest),
            };
            if let Some(plus) = plus
                && !is_longer
                && (lo..=hi).contains(&at)
            {
                blocks::absorb(monoid, &mut acc, plus);
            }
            known = (lo <= hi).then_some((lo, hi));
            answers.clear();
            match &acc {
                Some(partial) => monoid.answers(partial, &mut answers),
                None => monoid.answers(&monoid.identity(), &mut answers),
            }
            visit(span, &answers);
        }
    }

    /// The rows of each shard.
    fn by_shard(&self, keys: KeyColumn<'_>) -> Vec<Vec<Row>> {
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); SHARDS];
        for row in 0..keys.len() {
            let hash = self.hasher.hash_one(keys.key(row));
            rows[shard_of(hash)].push(Row {
                hash,
                row: row as u32,
                key: 0,
            });
        }
        rows
    }

    fn each_point(
        &self,
        points: &Points<'_>,
        mut visit: impl FnMut(usize, &Shard<A>, Option<u32>),
    ) {
        let several = points.keys.len() > 1;
        let _all = several.then(|| read(&self.batch));
        for row in 0..points.keys.len() {
            let key = points.keys.key(row);
            let hash = self.hasher.hash_one(key);
            let shard = read(&self.shards[shard_of(hash)]);
            let number = shard.keys.find(hash, key);
            visit(row, &shard, number);
        }
    }
}

impl<A: Aggregation<i64>> Store for Sharded<A> {
    fn replace(
        &self,
        gone: KeyColumn<'_>,
        keys: KeyColumn<'_>,
        times: Vec<i64>,
        columns: &[Column<'_, i64>],
    ) {
        let batch = self.aggregation.stage_columns(times, columns);
        let mut rows = self.by_shard(keys);
        let gone_rows = self.by_shard(gone);
        let _all = write(&self.batch);
        for ((shard, rows), gone_rows) in self.shards.iter().zip(&mut rows).zip(&gone_rows) {
            if !gone_rows.is_empty() {
                let mut shard = write(shard);
                for row in gone_rows {
                    shard.remove(row.hash, gone.key(row.row as usize));
                }
                shard.number(keys, rows);
                shard.insert(&self.aggregation, in_order(rows, &batch), &batch);
                continue;
            }
            // Readers wait for a few rows, and for all of a key's.
            for some in rows.chunks_mut(ROWS_PER_HOLD) {
                write(shard).number(keys, some);
            }
            let mut rest = in_order(rows, &batch);
            while !rest.is_empty() {
                let some = rest.len().min(ROWS_PER_HOLD);
                let last = rest[some - 1].key;
                let end = some + rest[some..].partition_point(|row| row.key == last);
                write(shard).insert(&self.aggregation, &rest[..end], &batch);
                rest = &rest[end..];
            }
        }
    }

    fn query(&self, points: &Points<'_>, spans: &[Span], overflow: Overflow) -> Answers {
        let (aggs, dtypes) = (&self.request.aggs, &self.request.dtypes);
        let shape = (spans.len(), points.keys.len());
        fill_columns(aggs, dtypes, shape, overflow, |put| {
            let mut done = Ok(());
            self.each_point(points, |row, shard, number| {
                let plus = points.plus.map(|columns| self.entry(columns, row));
                let point = (number, points.times[row], plus.as_ref());
                self.answer(shard, point, spans, &mut |span, answers| {
                    if done.is_ok() {
                        done = put(span, row, answers);
                    }
                });
            });
            done
        })
    }

    fn ask(&self, key: &[u8], at: i64, spans: &[Span], visit: &mut Visit<'_>) {
        let hash = self.hasher.hash_one(key);
        let shard = read(&self.shards[shard_of(hash)]);
        let number = shard.keys.find(hash, key);
        self.answer(&shard, (number, at, None), spans, visit);
    }

    fn first_times(&self, points: &Points<'_>, spans: &[Span]) -> Vec<Vec<Option<i64>>> {
        let mut firsts = vec![vec![None; points.keys.len()]; spans.len()];
        self.each_point(points, |row, shard, number| {
            for (lo, hi, span) in by_end(spans, points.times[row]) {
                let mut first = shard.first(number, lo).filter(|first| *first <= hi);
                if points.plus.is_some() && (lo..=hi).contains(&points.times[row]) {
                    first = Some(first.unwrap_or(points.times[row]));
                }
                firsts[span][row] = first;
            }
        });
        firsts
    }

    fn evict(&self, until: i64) -> usize {
        let _all = write(&self.batch);
        let evict = |shard: &RwLock<Shard<A>>| write(shard).evict(&self.hasher, until);
        self.shards.iter().map(evict).sum()
    }

    fn len(&self) -> usize {
        self.shards.iter().map(|shard| read(shard).keys.len()).sum()
    }

    fn bytes(&self) -> usize {
        let shards = self.shards.iter().map(|shard| read(shard).bytes());
        size_of::<Self>() + shards.sum::<usize>()
    }

    fn check(&self) -> Result<(), String> {
        self.shards
            .iter()
            .try_for_each(|shard| read(shard).check(&self.aggregation))
    }
}

/// Whether a store answers a span: those of rows count entries, which it does not.
pub fn answers(span: &Span) -> bool {
    matches!(span.length, Length::Time(_))
}
