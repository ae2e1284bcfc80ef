//! A store of one monoid: shards of keys behind locks.

use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::DefaultHashBuilder;

use super::answering::{Answering, Point, Results, Sink, Spans, answer_one};
use super::changes::Changes;
use super::grid::Grid;
use super::keys::{Hashed, KeyColumn};
use super::number_columns::NumberColumns;
use super::shard::{
    Cells, FoldedEntries, Incoming, KeyList, Placed, Reach, Removal, Shard, read_entries,
    sort_placed,
};
use super::{
    Answers, EntryList, Expiry, Points, Rows, Store, StoreRequest, VisitAnswers, WindowEnds,
};
use crate::aggregate::Aggregation;
use crate::aggregate::column::Column;
use crate::monoid::Entry;
use crate::rolling::{Filling, Span, fill_columns};
use crate::snapshot;

const SHARDS: usize = 16;
/// The most rows that a batch inserts while it holds the lock of a shard.
const ROWS_PER_HOLD: usize = 64;
/// The number of rows whose entries are prefetched together for a query.
const ROWS_TOGETHER: usize = 16;
/// The number of a key without entries.
const NO_KEY: u32 = u32::MAX;

pub(super) struct Sharded<A: Aggregation<i64>> {
    aggregation: A,
    request: StoreRequest,
    hasher: DefaultHashBuilder,
    /// Held while a batch is inserted. Queries of several keys wait for it, so that they see all
    /// shards after the same batch.
    batch: RwLock<()>,
    shards: Vec<RwLock<Shard<A>>>,
}

/// Ignores poison: a panic while a lock is held breaks an invariant, which `check` finds, and
/// which the panic itself reports.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The shard of a hash, from bits that the tables of keys do not use.
fn shard_of(hash: u64) -> usize {
    (hash >> 60) as usize % SHARDS
}

impl<A: Aggregation<i64>> Sharded<A> {
    pub fn new(aggregation: A, request: StoreRequest) -> Self {
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
    fn by_shard(&self, keys: KeyColumn<'_>) -> Vec<Vec<Hashed>> {
        let mean = keys.len() / SHARDS;
        let mut rows: Vec<Vec<Hashed>> = Vec::new();
        rows.resize_with(SHARDS, || Vec::with_capacity(mean + mean / 8));
        for row in 0..keys.len() {
            let hash = self.hasher.hash_one(keys.key(row));
            let row = row as u32;
            rows[shard_of(hash)].push(Hashed { hash, row });
        }
        rows
    }

    /// The rows of a shard with the numbers of their keys; adds new keys.
    fn place(
        &self,
        shard: &RwLock<Shard<A>>,
        keys: KeyColumn<'_>,
        times: &[i64],
        rows: &[Hashed],
    ) -> Vec<Placed> {
        let mut placed = Vec::with_capacity(rows.len());
        // A few rows at a time, because readers wait.
        for some in rows.chunks(ROWS_PER_HOLD) {
            write(shard).number(keys, times, some, &mut placed);
        }
        placed
    }

    /// The answers of rows, which `fill` computes in this order.
    fn filled(
        &self,
        spans: &[Span],
        in_order: &[Vec<Placed>],
        fill: impl FnOnce(&mut Filling<'_, '_>),
    ) -> Answers {
        let mut ranks = vec![0; in_order.iter().map(Vec::len).sum()];
        for (rank, row) in (0..).zip(in_order.iter().flatten()) {
            ranks[row.row()] = rank;
        }
        let StoreRequest { aggs, dtypes, .. } = &self.request;
        fill_columns(aggs, dtypes, spans.len(), &ranks, fill)
    }

    /// The entries to remove from each shard, by key and in order; some may be missing.
    fn removals_by_shard(&self, removals: EntryList<'_>) -> Vec<Vec<Removal>> {
        let by_shard = self.by_shard(removals.keys).into_iter().zip(&self.shards);
        let found = by_shard.map(|(rows, shard)| {
            let shard = read(shard);
            let of_row = |Hashed { hash, row }: Hashed| {
                let row = row as usize;
                Some(Removal {
                    hash,
                    key: shard.keys.find(hash, removals.keys.key(row))?,
                    time: removals.times[row],
                    number: removals.numbers[row],
                })
            };
            let mut removals: Vec<Removal> = rows.into_iter().filter_map(of_row).collect();
            sort_removals(&mut removals);
            removals
        });
        found.collect()
    }

    /// Removes entries, then inserts a batch; returns the number of keys that have changed.
    fn apply(
        &self,
        removals: EntryList<'_>,
        keys: KeyColumn<'_>,
        incoming: &Incoming<'_, A>,
    ) -> usize {
        let mut changed = 0;
        let by_shard = self.by_shard(keys);
        let _all = write(&self.batch);
        let removals = self.removals_by_shard(removals);
        for ((shard, of_shard), removals) in self.shards.iter().zip(&by_shard).zip(&removals) {
            let placed = self.place(shard, keys, &incoming.batch.times, of_shard);
            let placed = sort_placed(placed, read(shard).numbers());
            let mut changes = Changes::new(removals, &placed);
            while !changes.is_done() {
                // Held over all rows of a key: readers must see all of them or none.
                let mut shard = write(shard);
                shard.prefetch(some(changes.rows));
                incoming.prefetch(some(changes.rows));
                let mut count = 0;
                while count < ROWS_PER_HOLD
                    && let Some((removed, inserted)) = changes.next()
                {
                    shard.change(&self.aggregation, removed, inserted, incoming);
                    count += removed.len() + inserted.len();
                    changed += 1;
                }
            }
        }
        changed
    }

    /// Visits the shard and the number of each key, after whole batches.
    fn each_key(&self, keys: KeyColumn<'_>, visit: impl FnMut(usize, &Shard<A>, Option<u32>)) {
        let several = keys.len() > 1;
        let _all = several.then(|| read(&self.batch));
        self.each_key_held(keys, visit);
    }

    /// As `each_key`, if the caller holds the lock of batches.
    fn each_key_held(
        &self,
        keys: KeyColumn<'_>,
        mut visit: impl FnMut(usize, &Shard<A>, Option<u32>),
    ) {
        for row in 0..keys.len() {
            let key = keys.key(row);
            let hash = self.hasher.hash_one(key);
            let shard = read(&self.shards[shard_of(hash)]);
            let number = shard.keys.find(hash, key);
            visit(row, &shard, number);
        }
    }

    /// The answers at query points; several points may see different batches.
    fn answers(&self, points: &Points<'_>, spans: &[Span]) -> Answers {
        let by_shard = self.by_shard(points.keys).into_iter().zip(&self.shards);
        let by_shard = by_shard.filter(|(rows, _)| !rows.is_empty());
        let (shards, in_order): (Vec<_>, Vec<Vec<Placed>>) = by_shard
            .map(|(rows, shard)| {
                let shard = read(shard);
                let mut found = Vec::with_capacity(rows.len());
                for some in rows.chunks(ROWS_PER_HOLD) {
                    shard.keys.find_all(points.keys, some, &mut found);
                }
                let place = |(Hashed { row, .. }, key): (Hashed, Option<u32>)| {
                    Placed::new(key.unwrap_or(NO_KEY), points.times[row as usize], row)
                };
                let placed = rows.into_iter().zip(found).map(place).collect();
                let placed = sort_placed(placed, shard.numbers());
                (shard, placed)
            })
            .unzip();
        let sorted = Spans::new(spans);
        self.filled(spans, &in_order, |filling| {
            let mut answering = Answering::new(&self.aggregation, &sorted, points.keys.len());
            for (shard, rows) in shards.iter().zip(&in_order) {
                self.answer_shard(&mut answering, shard, (rows, points, 0), filling);
            }
            answering.put(true, filling);
        })
    }

    /// Answers the rows of a shard, of which the first `prefetch` were read already.
    fn answer_shard(
        &self,
        answering: &mut Answering<'_, A>,
        shard: &Shard<A>,
        (rows, points, prefetch): (&[Placed], &Points<'_>, usize),
        sink: &mut dyn Sink,
    ) {
        let (mut done, mut prefetched) = (0, prefetch);
        for of_key in rows.chunk_by(|a, b| a.key() == b.key()) {
            if done >= prefetched {
                let next = &rows[done..rows.len().min(done + ROWS_TOGETHER)];
                shard.prefetch_for_query(next);
                prefetched = done + next.len();
            }
            done += of_key.len();
            let number = Some(of_key[0].key()).filter(|key| *key != NO_KEY);
            match points.plus {
                None => answering.fold_all(shard, number, of_key),
                Some(plus) => of_key.iter().for_each(|row| {
                    let point = Point {
                        number,
                        at: row.time(),
                        plus: Some(&self.entry(plus, row.row())),
                    };
                    answering.fold(shard, &point);
                }),
            }
            answering.put(false, sink);
        }
    }

    /// The answers at a few query points, in little memory. The entries of their keys are
    /// prefetched.
    fn numbers(&self, points: &Points<'_>, spans: &Spans) -> NumberColumns {
        let count = points.keys.len();
        let hashed = |row| Hashed {
            hash: self.hasher.hash_one(points.keys.key(row as usize)),
            row,
        };
        let mut hashes: Vec<Hashed> = (0..count as u32).map(hashed).collect();
        sort_by_shard(&mut hashes);
        let mut found = Vec::with_capacity(count);
        let mut shards = Vec::with_capacity(SHARDS.min(count));
        // Each step for all keys, so that cache misses overlap.
        for rows in hashes.chunk_by(|a, b| shard_of(a.hash) == shard_of(b.hash)) {
            let shard = read(&self.shards[shard_of(rows[0].hash)]);
            let first = found.len();
            shard.keys.find_near(rows, &mut found);
            shards.push((shard, first..found.len()));
        }
        for (shard, rows) in &shards {
            shard.prefetch_heads(&found[rows.clone()]);
        }
        let mut placed: Vec<Placed> = Vec::with_capacity(count);
        for (shard, rows) in &shards {
            let (of_shard, found) = (&hashes[rows.clone()], &mut found[rows.clone()]);
            shard.keys.confirm(points.keys, of_shard, found);
            let numbered = of_shard.iter().zip(found);
            placed.extend(numbered.map(|(Hashed { row, .. }, key)| {
                Placed::new(key.unwrap_or(NO_KEY), points.times[*row as usize], *row)
            }));
            sort_few(&mut placed[rows.clone()]);
        }
        let together = count <= ROWS_PER_HOLD;
        if together {
            for (shard, rows) in &shards {
                shard.prefetch_for_query(&placed[rows.clone()]);
            }
        }
        let order = placed.iter().map(|row| row.row() as u32).collect();
        let mut columns = NumberColumns::new(spans.len(), self.request.aggs.len(), order);
        let mut answering = Answering::new(&self.aggregation, spans, count);
        for (shard, rows) in &shards {
            let prefetch = if together { rows.len() } else { 0 };
            let rows = (&placed[rows.clone()], points, prefetch);
            self.answer_shard(&mut answering, shard, rows, &mut columns);
        }
        answering.put(true, &mut columns);
        columns
    }

    /// Visits all shards after a whole batch.
    fn each_shard(&self, mut visit: impl FnMut(&Shard<A>)) {
        let _all = read(&self.batch);
        self.shards.iter().for_each(|shard| visit(&read(shard)));
    }
}

/// Sorts rows by shard. This function and the next ones do not depend on the monoid, because each
/// sort takes some kB.
fn sort_by_shard(rows: &mut [Hashed]) {
    rows.sort_unstable_by_key(|row| (shard_of(row.hash), row.row));
}

/// Sorts rows by key and time.
fn sort_few(rows: &mut [Placed]) {
    rows.sort_unstable();
}

/// Sorts entries by key and time.
fn sort_removals(removals: &mut [Removal]) {
    removals.sort_unstable_by_key(|one| (one.key, one.time, one.number));
}

/// Sorts rows by key and arrival.
fn sort_by_arrival(placed: &mut [Placed], arrivals: &[i64]) {
    placed.sort_unstable_by_key(|row| (row.key(), arrivals[row.row()], *row));
}

/// The first rows, at most [`ROWS_PER_HOLD`].
fn some(rows: &[Placed]) -> &[Placed] {
    &rows[..rows.len().min(ROWS_PER_HOLD)]
}

impl<A: Aggregation<i64>> Store for Sharded<A> {
    fn insert(&self, removals: EntryList<'_>, rows: Rows<'_>) -> usize {
        let incoming = Incoming {
            batch: self.aggregation.stage_columns(rows.times, rows.columns),
            numbers: rows.numbers,
        };
        self.apply(removals, rows.keys, &incoming)
    }

    fn insert_answering(
        &self,
        removals: EntryList<'_>,
        rows: Rows<'_>,
        arrivals: &[i64],
        spans: &[Span],
    ) -> (Answers, usize) {
        let mut changed = 0;
        let incoming = Incoming {
            batch: self.aggregation.stage_columns(rows.times, rows.columns),
            numbers: rows.numbers,
        };
        let by_shard = self.by_shard(rows.keys);
        let _all = write(&self.batch);
        let in_order = self.shards.iter().zip(&by_shard).map(|(shard, rows_of)| {
            let mut placed = self.place(shard, rows.keys, &incoming.batch.times, rows_of);
            sort_by_arrival(&mut placed, arrivals);
            placed
        });
        let in_order: Vec<Vec<Placed>> = in_order.collect();
        let removals = self.removals_by_shard(removals);
        let sorted = Spans::new(spans);
        let answers = self.filled(spans, &in_order, |filling| {
            let mut answering = Answering::new(&self.aggregation, &sorted, rows.keys.len());
            for ((shard, rows), removals) in self.shards.iter().zip(&in_order).zip(&removals) {
                for (removed, inserted) in Changes::new(removals, rows) {
                    changed += 1;
                    let mut shard = write(shard);
                    if inserted.is_empty() {
                        shard.change(&self.aggregation, removed, inserted, &incoming);
                        continue;
                    }
                    shard.remove(&self.aggregation, removed);
                    for together in inserted.chunk_by(|a, b| arrivals[a.row()] == arrivals[b.row()])
                    {
                        shard.insert(&self.aggregation, together, &incoming);
                        answering.fold_all(&shard, Some(together[0].key()), together);
                        answering.put(false, filling);
                    }
                }
            }
            answering.put(true, filling);
        });
        (answers, changed)
    }

    fn query(&self, points: &Points<'_>, spans: &[Span]) -> Answers {
        let _all = (points.keys.len() > 1).then(|| read(&self.batch));
        self.answers(points, spans)
    }

    fn query_numbers(&self, points: &Points<'_>, spans: &Spans) -> Option<NumberColumns> {
        let _all = (points.keys.len() > 1).then(|| read(&self.batch));
        self.numbers(points, spans).finish()
    }

    fn query_key(&self, key: &[u8], at: i64, spans: &Spans, visit: &mut VisitAnswers<'_>) {
        let hash = self.hasher.hash_one(key);
        let shard = read(&self.shards[shard_of(hash)]);
        let number = shard.keys.find(hash, key);
        // Prefetch: the cache misses of the search and of the fold overlap.
        shard.prefetch_for_query(&[Placed::new(number.unwrap_or(NO_KEY), at, 0)]);
        let plus = None;
        let point = Point { number, at, plus };
        answer_one(&self.aggregation, spans, &shard, &point, visit);
    }

    fn first_times(&self, points: &Points<'_>, spans: &[Span]) -> Vec<Vec<Option<i64>>> {
        let mut firsts = vec![vec![None; points.keys.len()]; spans.len()];
        self.each_key(points.keys, |row, shard, number| {
            for (span, of) in spans.iter().enumerate() {
                let (lo, hi) = of.bounds(points.times[row]);
                firsts[span][row] = shard.first(number, lo).filter(|first| *first <= hi);
            }
        });
        firsts
    }

    fn query_with_changes(
        &self,
        points: &Points<'_>,
        spans: &[Span],
        results: &Results,
    ) -> (Answers, Expiry) {
        // One lock for both, so that they are of one prefix of the batches.
        let _all = read(&self.batch);
        let answers = self.answers(points, spans);
        let none = Spans::default();
        let mut answering = Answering::new(&self.aggregation, &none, 0);
        let (mut counts, mut times, mut folds) = (Vec::new(), Vec::new(), Vec::new());
        for span in spans {
            let mut counts_of = Vec::with_capacity(points.keys.len());
            self.each_key_held(points.keys, |row, shard, number| {
                let plus = points.plus.map(|columns| self.entry(columns, row));
                let point = Point {
                    number,
                    at: points.times[row],
                    plus: plus.as_ref(),
                };
                let before = times.len();
                answering.changes(shard, (row, &point), span, results, |time, fold| {
                    times.push(time);
                    folds.push(fold);
                });
                counts_of.push((times.len() - before) as i64);
            });
            counts.push(counts_of);
        }
        let StoreRequest { aggs, dtypes, .. } = &self.request;
        let ranks: Vec<u32> = (0..times.len() as u32).collect();
        let changed = fill_columns(aggs, dtypes, 1, &ranks, |filling| {
            Answering::put_folds(&self.aggregation, folds, filling);
        });
        let changes = Expiry {
            counts,
            times,
            answers: changed,
        };
        (answers, changes)
    }

    fn last_times(&self, keys: KeyColumn<'_>) -> Vec<Option<i64>> {
        let mut lasts = vec![None; keys.len()];
        self.each_key(keys, |row, shard, number| {
            lasts[row] = shard.last_time(number)
        });
        lasts
    }

    fn rows(&self, keys: KeyColumn<'_>, (since, until): (&[i64], &[i64])) -> (Vec<u32>, Vec<i64>) {
        let (mut points, mut numbers) = (Vec::new(), Vec::new());
        self.each_key(keys, |row, shard, number| {
            shard.rows(number, (since[row], until[row]), &mut numbers);
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

    fn windows(&self, grid: &Grid, since: Option<i64>, until: i64) -> Option<WindowEnds> {
        let (mut list, mut ends) = (KeyList::default(), Vec::new());
        let mut fit = true;
        self.each_shard(|shard| {
            fit = fit && shard.windows(grid, (since, until), &mut list, &mut ends);
        });
        if !fit {
            return None;
        }
        let places = list.sort();
        for (_, key) in &mut ends {
            *key = places[*key as usize];
        }
        ends.sort_unstable();
        Some((list, ends))
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

    fn fold_cells(&self, cells: &Cells, range: Reach) -> FoldedEntries {
        let mut folded = FoldedEntries::default();
        let _all = write(&self.batch);
        for shard in &self.shards {
            let numbers = read(shard).numbers();
            for number in 0..numbers {
                // Held for one key at a time, because readers wait.
                write(shard).fold_cells(&self.aggregation, number, (cells, range), &mut folded);
            }
        }
        folded
    }

    fn insert_folded(
        &self,
        keys: KeyColumn<'_>,
        times: &[i64],
        entries: &[&[u8]],
    ) -> snapshot::Result<()> {
        let batch = read_entries(&self.aggregation, times, entries)?;
        let numbers = &[];
        self.apply(EntryList::default(), keys, &Incoming { batch, numbers });
        Ok(())
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
