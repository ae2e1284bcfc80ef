//! Entries of one key in order of time, read from blocks or to be written to them.

use crate::monoid::{Entry, Monoid};

/// The number of entries for which an empty run keeps memory.
const KEPT: usize = 512;

#[derive(Debug)]
pub(super) struct Run<M: Monoid> {
    pub times: Vec<i64>,
    /// The numbers of rows; zeros in a store without numbers.
    pub numbers: Vec<i64>,
    pub entries: Vec<Entry<M>>,
}

/// An entry with its row and value.
#[derive(Debug)]
pub(super) struct RunItem<M: Monoid> {
    pub time: i64,
    /// The number of its row; 0 in a store without numbers.
    pub number: i64,
    pub entry: Entry<M>,
}

impl<M: Monoid> Default for Run<M> {
    fn default() -> Self {
        Self {
            times: Vec::new(),
            numbers: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl<M: Monoid> Run<M> {
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// The bytes on the heap.
    pub fn bytes(&self) -> usize {
        let words = self.times.capacity() + self.numbers.capacity();
        words * size_of::<i64>() + self.entries.capacity() * size_of::<Entry<M>>()
    }

    pub fn push(&mut self, item: RunItem<M>) {
        self.times.push(item.time);
        self.numbers.push(item.number);
        self.entries.push(item.entry);
    }

    pub fn item(&self, at: usize) -> RunItem<M> {
        RunItem {
            time: self.times[at],
            number: self.numbers[at],
            entry: self.entries[at].clone(),
        }
    }

    /// Empties it, and frees large memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.numbers.clear();
        self.entries.clear();
        self.times.shrink_to(KEPT);
        self.numbers.shrink_to(KEPT);
        self.entries.shrink_to(KEPT);
    }

    /// Removes the entries at these ascending positions.
    pub fn remove(&mut self, places: &[usize]) {
        let is_left = |at: usize| places.binary_search(&at).is_err();
        retain(&mut self.times, is_left);
        retain(&mut self.numbers, is_left);
        retain(&mut self.entries, is_left);
    }

    /// Merges the entries `from..to` of a later batch: after those of equal time.
    pub fn merge(&mut self, batch: &Self, from: usize, to: usize) {
        if (self.times.last()).is_none_or(|last| *last <= batch.times[from]) {
            (from..to).for_each(|at| self.push(batch.item(at)));
            return;
        }
        let older = std::mem::take(self);
        let rows = older.times.into_iter().zip(older.numbers);
        let mut held = rows.zip(older.entries).peekable();
        for at in from..to {
            let time = batch.times[at];
            while let Some(((time, number), entry)) = held.next_if(|((held, _), _)| *held <= time) {
                self.push(RunItem {
                    time,
                    number,
                    entry,
                });
            }
            self.push(batch.item(at));
        }
        for ((time, number), entry) in held {
            self.push(RunItem {
                time,
                number,
                entry,
            });
        }
    }
}

/// Keeps the items at some positions.
fn retain<T>(items: &mut Vec<T>, is_left: impl Fn(usize) -> bool) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        is_left(at - 1)
    });
}
