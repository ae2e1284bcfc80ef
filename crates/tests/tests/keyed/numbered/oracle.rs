//! The entries of each key as a list, and what a store must answer about them.

use std::collections::{BTreeMap, BTreeSet};

use slidewise_core::keyed::Grid;

use crate::Rows;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) number: i64,
    pub(super) int: Option<i64>,
    pub(super) float: f64,
}

/// The entries of each key, in order.
#[derive(Default)]
pub(super) struct Oracle(pub(super) BTreeMap<u32, Vec<Row>>);

impl Oracle {
    pub(super) fn insert(&mut self, key: u32, row: Row) {
        let rows = self.0.entry(key).or_default();
        let at = rows.partition_point(|held| held.time <= row.time);
        rows.insert(at, row);
    }

    pub(super) fn remove(&mut self, key: u32, time: i64, number: i64) {
        let Some(rows) = self.0.get_mut(&key) else {
            return;
        };
        rows.retain(|row| (row.time, row.number) != (time, number));
        if rows.is_empty() {
            self.0.remove(&key);
        }
    }

    pub(super) fn rows(&self, key: u32) -> &[Row] {
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn numbers(&self, key: u32, (lo, hi): (i64, i64)) -> Vec<i64> {
        let within = |row: &&Row| (lo..=hi).contains(&row.time);
        self.rows(key)
            .iter()
            .filter(within)
            .map(|row| row.number)
            .collect()
    }

    pub(super) fn table(&self) -> Rows {
        let mut table = Rows::default();
        for (key, rows) in &self.0 {
            for row in rows {
                table.push(*key, row.time, row.int, row.float);
            }
        }
        table
    }

    /// The rows of the sessions that are over.
    pub(super) fn close(&mut self, gap: i64, until: i64) -> BTreeMap<u32, Vec<i64>> {
        let mut closed = BTreeMap::new();
        for (key, rows) in &mut self.0 {
            let sessions = rows.chunk_by(|a, b| b.time - a.time <= gap);
            let over = sessions.take_while(|session| session[session.len() - 1].time <= until);
            let count: usize = over.map(<[Row]>::len).sum();
            if count > 0 {
                closed.insert(*key, rows.drain(..count).map(|row| row.number).collect());
            }
        }
        self.0.retain(|_, rows| !rows.is_empty());
        closed
    }

    /// When the earliest session of all keys ends.
    pub(super) fn first_session(&self, gap: i64) -> Option<i64> {
        let end = |rows: &Vec<Row>| {
            let mut sessions = rows.chunk_by(|a, b| b.time - a.time <= gap);
            sessions.next().and_then(<[Row]>::last).map(|row| row.time)
        };
        self.0.values().filter_map(end).min()
    }

    pub(super) fn windows(
        &self,
        grid: &Grid,
        since: Option<i64>,
        until: i64,
    ) -> BTreeSet<(i64, u32)> {
        let mut found = BTreeSet::new();
        for (key, rows) in &self.0 {
            for row in rows {
                let mut end = grid.end_after(row.time);
                while end - i128::from(grid.length) <= row.time.into() && end <= until.into() {
                    if since.is_none_or(|since| end > since.into()) {
                        found.insert((end as i64, *key));
                    }
                    end += i128::from(grid.every);
                }
            }
        }
        found
    }
}
