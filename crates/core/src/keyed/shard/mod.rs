//! A shard of the keys: their numbers, and the sequence of entries of each.

mod cells;
mod scan;

use std::hash::BuildHasher;

use super::keys::{Hashed, KeyColumn, Keys, grow};
use super::run::{Run, RunItem};
use super::tree::{Forest, PrefetchStep, Root};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};
pub(super) use cells::read_entries;
pub use cells::{Cells, FoldedEntries, Reach};
pub use scan::{KeyList, MAX_WINDOWS};

/// Up to this number of rows of a key are appended one by one if their block has no room.
const MAX_SINGLE_APPENDS: usize = 4;

/// A row of a batch as one number, ordered by key, time and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Placed(u128);

impl Placed {
    pub fn new(key: u32, time: i64, row: u32) -> Self {
        // Flips the sign bit, so that negative times sort first.
        let time = time as u64 ^ 1 << 63;
        Self(u128::from(key) << 96 | u128::from(time) << 32 | u128::from(row))
    }

    pub fn key(self) -> u32 {
        (self.0 >> 96) as u32
    }

    pub fn time(self) -> i64 {
        ((self.0 >> 32) as u64 ^ 1 << 63) as i64
    }

    pub fn row(self) -> usize {
        self.0 as u32 as usize
    }
}

/// Sorts the rows of a batch by key, time and row; `keys` is the number of keys of the shard.
pub(super) fn sort_placed(mut placed: Vec<Placed>, keys: usize) -> Vec<Placed> {
    if placed.len() < keys / 4 {
        placed.sort_unstable();
        return placed;
    }
    // A counting sort by key; rows without a key come last. Rows of a key may be in order.
    let key_of = |row: &Placed| (row.key() as usize).min(keys);
    let mut places = vec![0_u32; keys + 2];
    for row in &placed {
        places[key_of(row) + 1] += 1;
    }
    for key in 0..keys {
        places[key + 1] += places[key];
    }
    let mut sorted = vec![Placed(0); placed.len()];
    for row in placed {
        let place = &mut places[key_of(&row)];
        sorted[*place as usize] = row;
        *place += 1;
    }
    for of_key in sorted.chunk_by_mut(|a, b| a.key() == b.key()) {
        if !of_key.is_sorted() {
            of_key.sort_unstable();
        }
    }
    sorted
}

/// An entry to remove, and its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removal {
    pub hash: u64,
    pub key: u32,
    pub time: i64,
    pub number: i64,
}

/// Rows with their numbers, if the store has them.
#[derive(Debug)]
pub(super) struct Incoming<'a, M: Monoid> {
    pub batch: Batch<M>,
    pub numbers: &'a [i64],
}

impl<M: Monoid> Incoming<'_, M> {
    /// Reads the values of some rows, like [`Shard::prefetch`].
    pub fn prefetch(&self, rows: &[Placed]) {
        if !std::mem::needs_drop::<M::In>() {
            for row in rows {
                std::hint::black_box(self.batch.values[row.row()].clone());
            }
        }
    }

    fn item(&self, placed: Placed) -> RunItem<M> {
        let row = placed.row();
        RunItem {
            time: placed.time(),
            number: self.number(row),
            entry: entry_of(&self.batch, row),
        }
    }

    fn number(&self, row: usize) -> i64 {
        self.numbers.get(row).copied().unwrap_or(0)
    }

    /// Appends rows to a run, column by column, so that cache misses overlap.
    fn fill(&self, rows: &[Placed], run: &mut Run<M>) {
        run.times.extend(rows.iter().map(|row| row.time()));
        let numbers = rows.iter().map(|row| self.number(row.row()));
        run.numbers.extend(numbers);
        let entries = rows.iter().map(|row| entry_of(&self.batch, row.row()));
        run.entries.extend(entries);
    }
}

/// Packed: with many keys of few entries, heads are a fourth of the memory.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(4))]
struct Head {
    /// The time of the last entry.
    last: i64,
    /// The first session ends here or later: all entries up to here are in it. So where it
    /// ends is looked for from here on.
    closing: i64,
    root: Root,
}

#[derive(Debug)]
pub(super) struct Shard<M: Monoid> {
    pub keys: Keys,
    /// By the number of the key.
    heads: Vec<Head>,
    forest: Forest<M>,
    /// Entries at or before this time may be evicted, except the last ones of each key, this many.
    until: Option<i64>,
    keep_rows: usize,
    /// No head has an earlier one.
    closing: i64,
    /// That of the sessions they are about.
    gap: Option<i64>,
    run: Run<M>,
    /// Empty between calls.
    found: Vec<Option<u32>>,
}

impl<M: Monoid> Shard<M> {
    pub fn new(numbered: bool) -> Self {
        Self {
            keys: Keys::default(),
            heads: Vec::new(),
            forest: Forest::new(numbered),
            until: None,
            keep_rows: 0,
            closing: i64::MAX,
            gap: None,
            run: Run::default(),
            found: Vec::new(),
        }
    }

    /// Finds the numbers of the keys of rows; adds new keys.
    pub fn number(
        &mut self,
        keys: KeyColumn<'_>,
        times: &[i64],
        rows: &[Hashed],
        placed: &mut Vec<Placed>,
    ) {
        let mut found = std::mem::take(&mut self.found);
        self.keys.find_all(keys, rows, &mut found);
        for (Hashed { hash, row }, known) in rows.iter().zip(found.drain(..)) {
            let add = || self.keys.find_or_add(*hash, keys.key(*row as usize));
            let (number, new) = known.map_or_else(add, |number| (number, false));
            if new {
                let head = Head {
                    last: i64::MIN,
                    closing: i64::MIN,
                    root: Root::Empty,
                };
                match self.heads.get_mut(number as usize) {
                    Some(place) => *place = head,
                    None => {
                        grow(&mut self.heads, 1);
                        self.heads.push(head);
                    }
                }
            }
            placed.push(Placed::new(number, times[*row as usize], *row));
        }
        self.found = found;
    }

    /// Keys have numbers below this.
    pub fn numbers(&self) -> usize {
        self.heads.len()
    }

    /// Reads where the entries of keys are, likewise.
    pub fn prefetch_heads(&self, numbers: &[Option<u32>]) {
        let heads = numbers.iter().flatten();
        let seen = heads.fold(0, |seen, number| seen ^ self.heads[*number as usize].last);
        std::hint::black_box(seen);
    }

    /// Prefetches the entries of the keys of some rows, which are needed next. The cache misses
    /// of different keys overlap here; the work per key afterwards is too long for that.
    pub fn prefetch(&self, rows: &[Placed]) {
        let seen = rows.iter().fold(0, |seen, row| {
            let head = self.heads.get(row.key() as usize);
            seen ^ head.map_or(0, |head| self.forest.prefetch(head.root))
        });
        std::hint::black_box(seen);
    }

    /// As `prefetch`, for queries of a few keys, which of trees also read the folds of children.
    /// Each step is for all keys, so that their cache misses overlap. Of many keys it would read
    /// more than a cache holds.
    pub fn prefetch_for_query(&self, rows: &[Placed]) {
        let heads = rows
            .iter()
            .filter_map(|row| self.heads.get(row.key() as usize));
        let mut seen = 0;
        for step in PrefetchStep::STEPS {
            seen ^= heads.clone().fold(0, |seen, head| {
                seen ^ self.forest.prefetch_step(head.root, step)
            });
        }
        std::hint::black_box(seen);
    }

    /// Removes entries of a key, then inserts rows; both are in order. Removes a key without
    /// entries.
    pub fn change(
        &mut self,
        monoid: &M,
        removals: &[Removal],
        rows: &[Placed],
        incoming: &Incoming<'_, M>,
    ) {
        self.remove(monoid, removals);
        if !rows.is_empty() {
            self.insert(monoid, rows, incoming);
        } else if let Some(first) = removals.first()
            && self.heads[first.key as usize].root == Root::Empty
        {
            self.keys.remove(first.hash, first.key);
        }
    }

    /// Removes entries of a key, which are in order.
    pub fn remove(&mut self, monoid: &M, removals: &[Removal]) {
        let Some(first) = removals.first() else {
            return;
        };
        let head = &mut self.heads[first.key as usize];
        let removals: Vec<(i64, i64)> = removals.iter().map(|one| (one.time, one.number)).collect();
        if self.forest.remove(monoid, &mut head.root, &removals) == 0 {
            return;
        }
        let Some(last) = self.forest.last_time(head.root) else {
            head.last = i64::MIN;
            return;
        };
        head.last = last;
        // Entries of the first session before the first removed one are still in it.
        let before = self.forest.last_until(head.root, removals[0].0);
        let before = before.or_else(|| self.forest.first(head.root, i64::MIN));
        head.closing = head.closing.min(before.unwrap_or(i64::MIN));
        self.closing = self.closing.min(head.closing);
    }

    /// Inserts the rows of one key, in order of time.
    pub fn insert(&mut self, monoid: &M, rows: &[Placed], incoming: &Incoming<'_, M>) {
        let head = &mut self.heads[rows[0].key() as usize];
        let earliest = rows[0].time();
        if head.root == Root::Empty || earliest < head.closing {
            let first = self.forest.first(head.root, i64::MIN);
            if first.is_none_or(|first| earliest < first) {
                head.closing = earliest;
                self.closing = self.closing.min(earliest);
            }
        }
        let mut done = 0;
        let until = match self.forest.has_room(head.root, rows.len()) {
            true => None,
            false => removed(&self.forest, head.root, self.until, self.keep_rows),
        };
        if earliest >= head.last {
            self.forest.make_room(&mut head.root, rows.len(), until);
        }
        while let Some(row) = rows.get(done) {
            // Many rows are merged in one step.
            let fits = row.time() >= head.last
                && (rows.len() - done <= MAX_SINGLE_APPENDS || self.forest.has_room(head.root, 1));
            if !fits
                || !self
                    .forest
                    .append(&mut head.root, incoming.item(*row), until)
            {
                break;
            }
            head.last = row.time();
            done += 1;
        }
        if done == rows.len() {
            return;
        }
        let mut run = std::mem::take(&mut self.run);
        incoming.fill(&rows[done..], &mut run);
        let count = run.len();
        let until = removed(&self.forest, head.root, self.until, self.keep_rows);
        self.forest
            .insert(monoid, &mut head.root, (&run, 0, count), until);
        head.last = head.last.max(run.times[count - 1]);
        if let Some(until) = removed(&self.forest, head.root, self.until, self.keep_rows) {
            self.forest.evict(monoid, &mut head.root, until);
        }
        run.clear();
        self.run = run;
    }

    /// Folds the entries of a key: see [`super::Store::fold_cells`].
    pub fn fold_cells(
        &mut self,
        monoid: &M,
        number: usize,
        (cells, (since, until)): (&Cells, Reach),
        out: &mut FoldedEntries,
    ) {
        debug_assert!(!self.forest.blocks.numbered, "rows are found again");
        let evicted = self.until.filter(|_| self.keep_rows == 0);
        let head = &mut self.heads[number];
        let after = since.map_or(Some(i64::MIN), |since| since.checked_add(1));
        let first = after.and_then(|after| self.forest.first(head.root, after));
        if first.is_none_or(|first| first > until) {
            return;
        }
        if let Some(evicted) = evicted {
            self.forest.evict(monoid, &mut head.root, evicted);
        }
        let (mut run, mut folded) = (std::mem::take(&mut self.run), Run::default());
        self.forest.take(&mut head.root, &mut run);
        let key = self.keys.key(number as u32);
        let visit = |time, bytes: &[u8]| out.push(key, time, bytes);
        run.fold_cells(monoid, (cells, (since, until)), &mut folded, visit);
        let count = folded.len();
        self.forest
            .insert(monoid, &mut head.root, (&folded, 0, count), None);
        run.clear();
        self.run = run;
    }

    #[inline]
    pub fn fold(
        &self,
        monoid: &M,
        number: Option<u32>,
        range: (i64, i64),
        acc: &mut Option<M::Partial>,
    ) {
        if let Some(number) = number {
            self.forest
                .fold(monoid, self.heads[number as usize].root, range, acc);
        }
    }

    /// The trees of the shard and the root of a key; `None` for no key.
    pub fn forest_of(&self, number: Option<u32>) -> Option<(&Forest<M>, Root)> {
        Some((&self.forest, self.heads[number? as usize].root))
    }

    /// The times and values of a key with a few entries; `None` for others.
    #[inline]
    pub fn raw(&self, number: Option<u32>) -> Option<(&[i64], &[M::In])> {
        let head = number.map(|number| self.heads[number as usize]);
        self.forest.raw(head.map_or(Root::Empty, |head| head.root))
    }

    /// The time at which the first leaf of a key at or after `lo` begins; `None` without a tree.
    pub fn leaf_start(&self, number: Option<u32>, lo: i64) -> Option<i64> {
        let head = self.heads[number? as usize];
        self.forest.leaf_start(head.root, lo)
    }

    /// The first time of a key at or after `lo`.
    pub fn first(&self, number: Option<u32>, lo: i64) -> Option<i64> {
        let head = self.heads[number? as usize];
        self.forest.first(head.root, lo)
    }

    /// Records that entries at or before a time may be evicted, except the last `keep_rows` of
    /// them per key; drops keys that keep no entries. Returns the number of keys dropped.
    pub fn evict(&mut self, hasher: &impl BuildHasher, until: i64, keep_rows: usize) -> usize {
        self.until = Some(self.until.map_or(until, |known| known.max(until)));
        self.keep_rows = self.keep_rows.max(keep_rows);
        match self.keep_rows {
            0 => self.drop_idle(hasher, until),
            _ => 0,
        }
    }

    /// Drops the keys whose entries are all at or before a time; returns their number.
    pub fn drop_idle(&mut self, hasher: &impl BuildHasher, until: i64) -> usize {
        let mut count = 0;
        for number in 0..self.heads.len() {
            let head = &mut self.heads[number];
            if head.root != Root::Empty && head.last <= until {
                self.forest.clear(&mut head.root);
                let hash = hasher.hash_one(self.keys.key(number as u32));
                self.keys.remove(hash, number as u32);
                count += 1;
            }
        }
        if self.keys.len() == 0 {
            // A shard without keys releases its memory.
            *self = Self {
                until: self.until,
                keep_rows: self.keep_rows,
                ..Self::new(self.forest.blocks.numbered)
            };
        }
        count
    }

    pub fn bytes(&self) -> usize {
        self.keys.heap_bytes()
            + self.heads.capacity() * size_of::<Head>()
            + self.forest.bytes()
            + self.run.bytes()
    }

    pub fn check(&self, monoid: &M) -> Result<(), String> {
        let mut keys = 0;
        for head in &self.heads {
            self.forest.check(monoid, head.root)?;
            let Some(last) = self.forest.last_time(head.root) else {
                continue;
            };
            keys += 1;
            if head.last != last {
                return Err("a key has another last time than its head states".into());
            }
            if head.closing > last || head.closing < self.closing {
                return Err("no session can end where the first one may".into());
            }
        }
        match keys == self.keys.len() {
            true => Ok(()),
            false => Err("keys without entries".into()),
        }
    }
}

/// The time up to which entries of a key may be evicted: of those at or before `until`, the
/// last `keep_rows` stay.
fn removed<M: Monoid>(
    forest: &Forest<M>,
    root: Root,
    until: Option<i64>,
    keep_rows: usize,
) -> Option<i64> {
    let until = until?;
    if keep_rows == 0 {
        return Some(until);
    }
    let kept = forest.time_from_end(root, until, keep_rows - 1)?;
    kept.checked_sub(1)
}

fn entry_of<M: Monoid>(batch: &Batch<M>, row: usize) -> Entry<M> {
    if !batch.lifted.is_empty()
        && let Ok(at) = batch.lifted.binary_search_by_key(&row, |(at, _)| *at)
    {
        return Entry::Lifted(batch.lifted[at].1.clone());
    }
    Entry::Raw(batch.values[row].clone())
}
