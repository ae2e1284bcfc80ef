//! The changes of a batch to a shard, key by key.

use super::shard::{Placed, Removal};

/// Iterates over keys: the entries of a shard to remove and the rows to insert, both in order.
pub(super) struct Changes<'a> {
    removals: &'a [Removal],
    pub rows: &'a [Placed],
}

impl<'a> Changes<'a> {
    pub fn new(removals: &'a [Removal], rows: &'a [Placed]) -> Self {
        Self { removals, rows }
    }

    pub fn is_done(&self) -> bool {
        self.removals.is_empty() && self.rows.is_empty()
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = (&'a [Removal], &'a [Placed]);

    fn next(&mut self) -> Option<Self::Item> {
        let of_removals = self.removals.first().map(|one| one.key);
        let of_rows = self.rows.first().map(|row| row.key());
        let key = of_removals.into_iter().chain(of_rows).min()?;
        let removed = take_key(&mut self.removals, |one| one.key, key);
        let inserted = take_key(&mut self.rows, |row| row.key(), key);
        Some((removed, inserted))
    }
}

/// Splits off the items of the first key.
fn take_key<'a, T>(items: &mut &'a [T], key: impl Fn(&T) -> u32, first: u32) -> &'a [T] {
    // Not a binary search: these are mostly a few of many.
    let count = items.iter().take_while(|item| key(item) == first).count();
    let (taken, rest) = items.split_at(count);
    *items = rest;
    taken
}
