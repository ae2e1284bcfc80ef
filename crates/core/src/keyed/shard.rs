//! Some of the keys: their numbers, and the sequence of each.

use std::hash::BuildHasher;

use super::keys::{KeyColumn, Keys};
use super::run::Run;
use super::tree::{Forest, Root};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};

/// A row of a batch, and its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub hash: u64,
    pub row: u32,
    pub key: u32,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// The time of the last entry.
    last: i64,
    root: Root,
}

#[derive(Debug)]
pub(super) struct Shard<M: Monoid> {
    pub keys: Keys,
    /// By the number of the key.
    heads: Vec<Head>,
    forest: Forest<M>,
    /// Entries up to here may go.
    until: Option<i64>,
    run: Run<M>,
}

impl<M: Monoid> Default for Shard<M> {
    fn default() -> Self {
        Self {
            keys: Keys::default(),
            heads: Vec::new(),
            forest: Forest::default(),
            until: None,
            run: Run::default(),
        }
    }
}

impl<M: Monoid> Shard<M> {
    /// Gives rows the numbers of their keys, which are added if they are new.
    pub fn number(&mut self, keys: KeyColumn<'_>, rows: &mut [Row]) {
        for row in rows {
            let (number, new) = self.keys.find_or_add(row.hash, keys.key(row.row as usize));
            if new {
                let head = Head {
                    last: i64::MIN,
                    root: Root::Empty,
                };
                match self.heads.get_mut(number as usize) {
                    Some(place) => *place = head,
                    None => self.heads.push(head),
                }
            }
            row.key = number;
        }
    }

    /// Inserts rows of a batch that are [`in_order`].
    pub fn insert(&mut self, monoid: &M, rows: &[Row], batch: &Batch<M>) {
        for of_key in rows.chunk_by(|a, b| a.key == b.key) {
            self.insert_run(monoid, of_key, batch);
        }
    }

    /// Inserts the rows of one key, in order of time.
    fn insert_run(&mut self, monoid: &M, rows: &[Row], batch: &Batch<M>) {
        let head = &mut self.heads[rows[0].key as usize];
        let mut done = 0;
        while let Some(row) = rows.get(done) {
            let time = batch.times[row.row as usize];
            let entry = entry_of(batch, row.row as usize);
            if time < head.last || self.forest.append(&mut head.root, time, entry).is_err() {
                break;
            }
            head.last = time;
            done += 1;
        }
        if done == rows.len() {
            return;
        }
        let mut run = std::mem::take(&mut self.run);
        for row in &rows[done..] {
            let row = row.row as usize;
            run.push(batch.times[row], entry_of(batch, row));
        }
        let count = run.len();
        self.forest
            .insert(monoid, &mut head.root, (&run, 0, count), self.until);
        head.last = head.last.max(run.times[count - 1]);
        if let Some(until) = self.until {
            self.forest.evict(monoid, &mut head.root, until);
        }
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

    /// The first time of a key at or after `lo`.
    pub fn first(&self, number: Option<u32>, lo: i64) -> Option<i64> {
        let head = self.heads[number? as usize];
        self.forest.first(head.root, lo)
    }

    /// Drops a key, if it is there.
    pub fn remove(&mut self, hash: u64, key: &[u8]) {
        if let Some(number) = self.keys.find(hash, key) {
            self.forest.clear(&mut self.heads[number as usize].root);
            self.keys.remove(hash, number);
        }
    }

    /// Drops the keys whose entries are all at or before a time, and notes that others may
    /// lose theirs. Gives the number of keys dropped.
    pub fn evict(&mut self, hasher: &impl BuildHasher, until: i64) -> usize {
        self.until = Some(self.until.map_or(until, |known| known.max(until)));
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
        count
    }

    pub fn bytes(&self) -> usize {
        self.keys.heap_bytes()
            + self.heads.capacity() * size_of::<Head>()
            + self.forest.bytes()
            + self.run.bytes()
    }

    pub fn check(&self, monoid: &M) -> Result<(), String> {
        for head in &self.heads {
            self.forest.check(monoid, head.root)?;
        }
        Ok(())
    }
}

/// Rows sorted by key and time; those of equal time stay as they are in the batch.
pub(super) fn in_order<'a, M: Monoid>(rows: &'a mut [Row], batch: &Batch<M>) -> &'a [Row] {
    rows.sort_unstable_by_key(|row| (row.key, batch.times[row.row as usize], row.row));
    rows
}

fn entry_of<M: Monoid>(batch: &Batch<M>, row: usize) -> Entry<M> {
    if !batch.lifted.is_empty()
        && let Ok(at) = batch.lifted.binary_search_by_key(&row, |(at, _)| *at)
    {
        return Entry::Lifted(batch.lifted[at].1.clone());
    }
    Entry::Raw(batch.values[row].clone())
}
