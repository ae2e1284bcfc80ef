//! A store of one monoid: shards of keys behind locks.

use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::DefaultHashBuilder;

use super::answering::{AHEAD, Answering, Point, bounds};
use super::grid::Grid;
use super::keys::KeyColumn;
use super::shard::{Gone, Incoming, KeyList, Row, Shard, sort_rows};
use super::{Answers, EntryList, Points, Request, Rows, Store, Visit};
use crate::aggregate::Aggregation;
use crate::aggregate::column::Column;
use crate::monoid::Entry;
use crate::rolling::{Overflow, Span, fill_columns};

const SHARDS: usize = 16;
/// Rows that a batch inserts at a time while it holds the lock of a shard.
const ROWS_PER_HOLD: usize = 64;

pub(super) struct Sharded<A: Aggregation<i64>> {
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

impl<A: Aggregation<i64>> Sharded<A> {
    pub fn new(aggregation: A, request: Request) -> Self {
        let shard = || RwLock::new(Shard::new(request.numbered));
        Self {
            aggregation,
            hasher: DefaultHashBuilder::default(),
            batch: RwLock::new(()),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            request,
        }
    }

    /// Row `row` of columns as an entry.
    fn entry(&self, columns: &[Column<'_, i64>], row: usize) -> Entry<A> {
        let cells: Vec<_> = columns.iter().map(|column| column.cell(row)).collect();
        self.aggregation.entry(&cells)
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

    /// The entries to remove from each shard, by key and in order; they are held, or not.
    fn gone_by_shard(&self, gone: EntryList<'_>) -> Vec<Vec<Gone>> {
        let by_shard = self.by_shard(gone.keys).into_iter().zip(&self.shards);
        let found = by_shard.map(|(rows, shard)| {
            let shard = read(shard);
            let of_row = |row: Row| {
                let (hash, row) = (row.hash, row.row as usize);
                Some(Gone {
                    hash,
                    key: shard.keys.find(hash, gone.keys.key(row))?,
                    time: gone.times[row],
                    number: gone.numbers[row],
                })
            };
            let mut gone: Vec<Gone> = rows.into_iter().filter_map(of_row).collect();
            gone.sort_unstable_by_key(|gone| (gone.key, gone.time, gone.number));
            gone
        });
        found.collect()
    }

    /// Visits the shard and the number of each key, after whole batches.
    fn each_key(&self, keys: KeyColumn<'_>, mut visit: impl FnMut(usize, &Shard<A>, Option<u32>)) {
        let several = keys.len() > 1;
        let _all = several.then(|| read(&self.batch));
        for row in 0..keys.len() {
            let key = keys.key(row);
            let hash = self.hasher.hash_one(key);
            let shard = read(&self.shards[shard_of(hash)]);
            let number = shard.keys.find(hash, key);
            visit(row, &shard, number);
        }
    }

    /// Visits all shards after a whole batch.
    fn each_shard(&self, mut visit: impl FnMut(&Shard<A>)) {
        let _all = read(&self.batch);
        self.shards.iter().for_each(|shard| visit(&read(shard)));
    }
}

/// Takes the items of the first key off.
fn take_key<'a, T>(items: &mut &'a [T], key: impl Fn(&T) -> u32, first: u32) -> &'a [T] {
    // Mostly a few, of many.
    let count = items.iter().take_while(|item| key(item) == first).count();
    let (taken, rest) = items.split_at(count);
    *items = rest;
    taken
}

impl<A: Aggregation<i64>> Store for Sharded<A> {
    fn insert(&self, gone: EntryList<'_>, rows: Rows<'_>) {
        let incoming = Incoming {
            batch: self.aggregation.stage_columns(rows.times, rows.columns),
            numbers: rows.numbers,
        };
        let mut by_shard = self.by_shard(rows.keys);
        let _all = write(&self.batch);
        let gone = self.gone_by_shard(gone);
        for ((shard, of_shard), gone) in self.shards.iter().zip(&mut by_shard).zip(&gone) {
            // Readers wait for a few rows, and for all of a key's.
            for some in of_shard.chunks_mut(ROWS_PER_HOLD) {
                write(shard).number(rows.keys, some);
            }
            sort_rows(of_shard, &incoming.batch);
            let (mut rows, mut gone) = (&of_shard[..], &gone[..]);
            while !rows.is_empty() || !gone.is_empty() {
                let mut shard = write(shard);
                let mut count = 0;
                while count < ROWS_PER_HOLD {
                    let keys = (
                        rows.first().map(|row| row.key),
                        gone.first().map(|gone| gone.key),
                    );
                    let key = match keys {
                        (Some(of_rows), Some(of_gone)) => of_rows.min(of_gone),
                        (Some(key), None) | (None, Some(key)) => key,
                        (None, None) => break,
                    };
                    let leaving = take_key(&mut gone, |gone| gone.key, key);
                    let coming = take_key(&mut rows, |row| row.key, key);
                    shard.change(&self.aggregation, leaving, coming, &incoming);
                    count += leaving.len() + coming.len();
                }
            }
        }
    }

    fn insert_answering(
        &self,
        rows: Rows<'_>,
        arrivals: &[i64],
        spans: &[Span],
        overflow: Overflow,
    ) -> Answers {
        let (aggs, dtypes) = (&self.request.aggs, &self.request.dtypes);
        let shape = (spans.len(), rows.keys.len());
        let incoming = Incoming {
            batch: self.aggregation.stage_columns(rows.times, rows.columns),
            numbers: rows.numbers,
        };
        let times = &incoming.batch.times;
        let mut by_shard = self.by_shard(rows.keys);
        let _all = write(&self.batch);
        fill_columns(aggs, dtypes, shape, overflow, |put| {
            let mut done = Ok(());
            let mut answering = Answering::new(&self.aggregation, spans);
            for (shard, of_shard) in self.shards.iter().zip(&mut by_shard) {
                for some in of_shard.chunks_mut(ROWS_PER_HOLD) {
                    write(shard).number(rows.keys, some);
                }
                let arrival = |row: &Row| arrivals[row.row as usize];
                of_shard.sort_unstable_by_key(|row| {
                    (row.key, arrival(row), times[row.row as usize], row.row)
                });
                for of_key in of_shard.chunk_by(|a, b| a.key == b.key) {
                    let mut shard = write(shard);
                    for together in of_key.chunk_by(|a, b| arrival(a) == arrival(b)) {
                        shard.insert(&self.aggregation, together, &incoming);
                        for row in together {
                            let at = row.row as usize;
                            let point = Point::of(Some(row.key), times[at]);
                            answering.answer(&shard, &point, &mut |span, answers| {
                                if done.is_ok() {
                                    done = put(span, at, answers);
                                }
                            });
                        }
                    }
                }
            }
            done
        })
    }

    fn query(&self, points: &Points<'_>, spans: &[Span], overflow: Overflow) -> Answers {
        let (aggs, dtypes) = (&self.request.aggs, &self.request.dtypes);
        let shape = (spans.len(), points.keys.len());
        let _all = (points.keys.len() > 1).then(|| read(&self.batch));
        fill_columns(aggs, dtypes, shape, overflow, |put| {
            let mut done = Ok(());
            let mut answering = Answering::new(&self.aggregation, spans);
            for (shard, mut rows) in self.shards.iter().zip(self.by_shard(points.keys)) {
                if rows.is_empty() {
                    continue;
                }
                let shard = read(shard);
                for row in &mut rows {
                    let key = points.keys.key(row.row as usize);
                    row.key = shard.keys.find(row.hash, key).unwrap_or(u32::MAX);
                }
                let time = |row: &Row| points.times[row.row as usize];
                rows.sort_unstable_by_key(|row| (row.key, time(row), row.row));
                for of_key in rows.chunk_by(|a, b| a.key == b.key) {
                    let number = Some(of_key[0].key).filter(|number| *number != u32::MAX);
                    answering.begin(of_key.len(), shard.is_tree(number));
                    for (at, row) in of_key.iter().enumerate() {
                        let ahead = of_key.get(at + AHEAD).unwrap_or(&of_key[of_key.len() - 1]);
                        let row_of = row.row as usize;
                        let plus = points.plus.map(|columns| self.entry(columns, row_of));
                        let point = Point {
                            number,
                            at: time(row),
                            ahead: time(ahead),
                            plus: plus.as_ref(),
                        };
                        answering.answer(&shard, &point, &mut |span, answers| {
                            if done.is_ok() {
                                done = put(span, row_of, answers);
                            }
                        });
                    }
                }
            }
            done
        })
    }

    fn ask(&self, key: &[u8], at: i64, spans: &[Span], visit: &mut Visit<'_>) {
        let hash = self.hasher.hash_one(key);
        let shard = read(&self.shards[shard_of(hash)]);
        let number = shard.keys.find(hash, key);
        Answering::new(&self.aggregation, spans).answer(&shard, &Point::of(number, at), visit);
    }

    fn first_times(&self, points: &Points<'_>, spans: &[Span]) -> Vec<Vec<Option<i64>>> {
        let mut firsts = vec![vec![None; points.keys.len()]; spans.len()];
        self.each_key(points.keys, |row, shard, number| {
            for (span, of) in spans.iter().enumerate() {
                let Some((lo, hi)) = bounds(of, points.times[row]) else {
                    continue;
                };
                let mut first = shard.first(number, lo).filter(|first| *first <= hi);
                if points.plus.is_some() && (lo..=hi).contains(&points.times[row]) {
                    first = Some(first.unwrap_or(points.times[row]));
                }
                firsts[span][row] = first;
            }
        });
        firsts
    }

    fn last_times(&self, keys: KeyColumn<'_>) -> Vec<Option<i64>> {
        let mut lasts = vec![None; keys.len()];
        self.each_key(keys, |row, shard, number| {
            lasts[row] = shard.last_time(number)
        });
        lasts
    }

    fn rows(
        &self,
        keys: KeyColumn<'_>,
        (since, until): (&[i64], &[i64]),
        most: Option<usize>,
    ) -> (Vec<u32>, Vec<i64>) {
        let (mut points, mut numbers) = (Vec::new(), Vec::new());
        self.each_key(keys, |row, shard, number| {
            shard.rows(number, (since[row], until[row]), most, &mut numbers);
            points.resize(numbers.len(), row as u32);
        });
        (points, numbers)
    }

    fn holds(&self, entries: EntryList<'_>) -> Vec<bool> {
        let mut held = vec![false; entries.keys.len()];
        self.each_key(entries.keys, |row, shard, number| {
            held[row] = shard.holds(number, entries.times[row], entries.numbers[row]);
        });
        held
    }

    fn keys(&self) -> KeyList {
        let mut list = KeyList::default();
        self.each_shard(|shard| shard.list_keys(&mut list));
        list.sort();
        list
    }

    fn windows(&self, grid: &Grid, since: Option<i64>, until: i64) -> (KeyList, Vec<(i64, u32)>) {
        let (mut list, mut ends) = (KeyList::default(), Vec::new());
        self.each_shard(|shard| shard.windows(grid, (since, until), &mut list, &mut ends));
        let places = list.sort();
        for (_, key) in &mut ends {
            *key = places[*key as usize];
        }
        ends.sort_unstable();
        (list, ends)
    }

    fn next_window(&self, grid: &Grid, since: Option<i64>) -> Option<i64> {
        let mut best = None;
        self.each_shard(|shard| best = shard.next_window(grid, since, best));
        best
    }

    fn sessions(&self, gap: i64, until: i64) -> Vec<i64> {
        let mut numbers = Vec::new();
        let _all = write(&self.batch);
        for shard in &self.shards {
            write(shard).sessions(&self.aggregation, &self.hasher, (gap, until), &mut numbers);
        }
        numbers
    }

    fn next_session(&self, gap: i64) -> Option<i64> {
        let mut nexts = Vec::with_capacity(SHARDS);
        self.each_shard(|shard| nexts.extend(shard.next_session(gap)));
        nexts.into_iter().min()
    }

    fn evict(&self, until: i64, keep_rows: usize) -> usize {
        let _all = write(&self.batch);
        let evict = |shard: &RwLock<Shard<A>>| write(shard).evict(&self.hasher, until, keep_rows);
        self.shards.iter().map(evict).sum()
    }

    fn drop_idle(&self, until: i64) -> usize {
        let _all = write(&self.batch);
        let drop_idle = |shard: &RwLock<Shard<A>>| write(shard).drop_idle(&self.hasher, until);
        self.shards.iter().map(drop_idle).sum()
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
