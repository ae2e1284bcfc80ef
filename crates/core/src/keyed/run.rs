//! Entries of one key in order of time, on their way into or out of blocks.

use crate::monoid::{Entry, Monoid};

/// Entries whose memory an empty run keeps.
const KEPT: usize = 512;

#[derive(Debug)]
pub(super) struct Run<M: Monoid> {
    pub times: Vec<i64>,
    pub entries: Vec<Entry<M>>,
}

impl<M: Monoid> Default for Run<M> {
    fn default() -> Self {
        Self {
            times: Vec::new(),
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
        self.times.capacity() * size_of::<i64>() + self.entries.capacity() * size_of::<Entry<M>>()
    }

    pub fn push(&mut self, time: i64, entry: Entry<M>) {
        self.times.push(time);
        self.entries.push(entry);
    }

    /// Empties it; much memory is given back.
    pub fn clear(&mut self) {
        self.times.clear();
        self.entries.clear();
        self.times.shrink_to(KEPT);
        self.entries.shrink_to(KEPT);
    }

    /// Merges the entries `from..to` of a later batch in: behind those of equal time.
    pub fn merge(&mut self, batch: &Self, from: usize, to: usize) {
        let mut older = std::mem::take(self);
        let mut held = older
            .times
            .drain(..)
            .zip(older.entries.drain(..))
            .peekable();
        for at in from..to {
            let time = batch.times[at];
            while let Some((time, entry)) = held.next_if(|(present, _)| *present <= time) {
                self.push(time, entry);
            }
            self.push(time, batch.entries[at].clone());
        }
        for (time, entry) in held {
            self.push(time, entry);
        }
    }
}
