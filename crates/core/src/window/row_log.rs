//! The rows of a window, for as long as the type of one of its columns is open.
//!
//! A window runs as if an open column, of which only nulls have come, were int64. If its
//! first number is a float, the window is filled anew from this log. Rows are in order of
//! time, those of one time in order of arrival. They lie in chunks, column by column, and a
//! column that has only nulls in a chunk takes no memory there: a row costs 8 bytes for
//! its time and 16 for each column that has values.
//!
//! Costs, for n rows: appending and removing at the old end amortised O(1) moves, O(log n)
//! comparisons; anywhere else O(log n) comparisons and at most `ROWS` moves per column.
//!
//! Invariants (checked by `check`):
//! 1. No chunk is empty, its times rise, and they lie from its key on and below the key of
//!    the next chunk. So rows of equal time lie in one chunk.
//! 2. A chunk of more than `ROWS` rows is of one time.
//! 3. A chunk's columns have no rows, if all are null, or as many as there are times.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use super::Ties;
use crate::aggregate::Cell;

/// The most rows of a chunk, unless they are of one time.
const ROWS: usize = 256;

#[derive(Clone, Debug)]
pub struct RowLog<T> {
    chunks: BTreeMap<i64, Chunk<T>>,
    len: usize,
}

impl<T> Default for RowLog<T> {
    fn default() -> Self {
        Self {
            chunks: BTreeMap::new(),
            len: 0,
        }
    }
}

#[derive(Clone, Debug)]
struct Chunk<T> {
    times: VecDeque<i64>,
    columns: Vec<VecDeque<Cell<T>>>,
}

impl<T: Clone> RowLog<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a row behind those of the same time.
    pub fn insert(&mut self, time: i64, row: impl IntoIterator<Item = Cell<T>>) {
        self.len += 1;
        let below = self.chunks.range_mut(..=time).next_back();
        let Some((_, chunk)) = below else {
            return self.insert_first(time, row);
        };
        if chunk.times.len() < ROWS || chunk.is_of(time) {
            return chunk.insert(time, row);
        }
        let at = chunk.boundary(time);
        let mut later = chunk.split(at);
        if later.times.front().is_some_and(|first| *first > time) {
            chunk.insert(time, row);
        } else {
            later.insert(time, row);
        }
        self.chunks.insert(later.times[0], later);
    }

    /// A row before the key of every chunk: the first chunk takes it, if there is room.
    fn insert_first(&mut self, time: i64, row: impl IntoIterator<Item = Cell<T>>) {
        let room = |chunk: &Chunk<T>| chunk.times.len() < ROWS;
        let first = self.chunks.first_entry();
        let first = first.filter(|entry| room(entry.get()));
        let mut chunk = first.map_or_else(Chunk::default, |entry| entry.remove());
        chunk.insert(time, row);
        self.chunks.insert(time, chunk);
    }

    /// Removes the rows of the entry of that time which a window evicts.
    pub fn evict_at(&mut self, time: i64, ties: Ties) {
        let Some((&key, chunk)) = self.chunks.range_mut(..=time).next_back() else {
            return;
        };
        let from = chunk.times.partition_point(|present| *present < time);
        let same = chunk.times.partition_point(|present| *present <= time) - from;
        let gone = match ties {
            Ties::Combine => same,
            Ties::Keep => same.min(1),
        };
        self.len -= gone;
        chunk.remove(from, from + gone);
        if chunk.times.len() < ROWS / 4 {
            self.tidy(key);
        }
    }

    /// Removes all rows up to and including a time.
    pub fn evict_until(&mut self, time: i64) {
        while let Some(mut first) = self.chunks.first_entry() {
            let chunk = first.get_mut();
            let gone = chunk.times.partition_point(|present| *present <= time);
            self.len -= gone;
            if gone < chunk.times.len() {
                return chunk.remove(0, gone);
            }
            first.remove();
        }
    }

    /// Removes a number of the oldest rows.
    pub fn evict_oldest(&mut self, count: usize) {
        let mut left = count.min(self.len);
        self.len -= left;
        while left > 0
            && let Some(mut first) = self.chunks.first_entry()
        {
            let rows = first.get().times.len();
            if left < rows {
                return first.get_mut().remove(0, left);
            }
            first.remove();
            left -= rows;
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// A chunk of few rows joins one beside it that has few, or gives memory back.
    fn tidy(&mut self, key: i64) {
        let rows = self.chunks[&key].times.len();
        if rows == 0 {
            self.chunks.remove(&key);
            return;
        }
        let few = |(_, beside): &(&i64, &Chunk<T>)| rows + beside.times.len() <= ROWS / 2;
        let next = self.chunks.range((Excluded(key), Unbounded)).next();
        let before = self.chunks.range(..key).next_back();
        let pair = match (before.filter(few), next.filter(few)) {
            (Some((before, _)), _) => Some((*before, key)),
            (None, next) => next.map(|(next, _)| (key, *next)),
        };
        if let Some((key, next)) = pair
            && let Some(next) = self.chunks.remove(&next)
            && let Some(chunk) = self.chunks.get_mut(&key)
        {
            chunk.append(next);
        } else if let Some(chunk) = self.chunks.get_mut(&key)
            && chunk.times.capacity() > 4 * rows
        {
            chunk.shrink(2 * rows);
        }
    }

    /// Visits all rows in order, each with the given number of cells.
    pub fn for_each(&self, width: usize, mut visit: impl FnMut(i64, &[Cell<T>])) {
        let mut row = vec![Cell::Null; width];
        for chunk in self.chunks.values() {
            for (at, time) in chunk.times.iter().enumerate() {
                for (cell, column) in row.iter_mut().zip(&chunk.columns) {
                    *cell = column.get(at).cloned().unwrap_or(Cell::Null);
                }
                row[chunk.columns.len().min(width)..].fill(Cell::Null);
                visit(*time, &row);
            }
        }
    }

    /// The times of all rows, in order.
    pub fn times(&self) -> impl Iterator<Item = i64> {
        self.chunks.values().flat_map(|chunk| &chunk.times).copied()
    }

    /// Memory held. O(n / `ROWS`).
    pub fn bytes(&self) -> usize {
        // Nodes of the map are half full at least.
        let chunks = self.chunks.len() * 2 * size_of::<(i64, Chunk<T>)>();
        chunks + self.chunks.values().map(Chunk::bytes).sum::<usize>()
    }

    pub fn check(&self) -> Result<(), String> {
        let mut below = None;
        for (key, chunk) in &self.chunks {
            let times = &chunk.times;
            let (Some(first), Some(last)) = (times.front(), times.back()) else {
                return Err(format!("the log's chunk {key} has no rows"));
            };
            if !times.iter().is_sorted() || first < key || below >= Some(*key) {
                return Err(format!("the log's chunk {key} is out of order"));
            }
            if times.len() > ROWS && first != last {
                return Err(format!("the log's chunk {key} has {} rows", times.len()));
            }
            let full = |column: &VecDeque<_>| [0, times.len()].contains(&column.len());
            if !chunk.columns.iter().all(full) {
                return Err(format!("the log's chunk {key} has ragged columns"));
            }
            below = Some(*last);
        }
        let rows: usize = self.chunks.values().map(|chunk| chunk.times.len()).sum();
        if rows != self.len {
            return Err(format!("the log has {rows} rows, not {}", self.len));
        }
        Ok(())
    }
}

impl<T> Default for Chunk<T> {
    fn default() -> Self {
        Self {
            times: VecDeque::new(),
            columns: Vec::new(),
        }
    }
}

impl<T: Clone> Chunk<T> {
    fn is_of(&self, time: i64) -> bool {
        self.times.front() == Some(&time) && self.times.back() == Some(&time)
    }

    fn insert(&mut self, time: i64, row: impl IntoIterator<Item = Cell<T>>) {
        let rows = self.times.len();
        let at = self.times.partition_point(|present| *present <= time);
        self.times.insert(at, time);
        for (place, cell) in row.into_iter().enumerate() {
            let null = matches!(cell, Cell::Null);
            if place >= self.columns.len() {
                if null {
                    continue;
                }
                self.columns.resize_with(place + 1, VecDeque::new);
            }
            let column = &mut self.columns[place];
            if column.is_empty() {
                if null {
                    continue;
                }
                column.resize_with(rows, || Cell::Null);
            }
            column.insert(at, cell);
        }
    }

    /// The place to split a full chunk, so that it has room for a row of that time: between
    /// two times, behind all rows if it comes last, else as near to the middle as possible.
    fn boundary(&self, time: i64) -> usize {
        let rows = self.times.len();
        if self.times[rows - 1] < time {
            return rows;
        }
        let middle = self.times[rows / 2];
        let from = self.times.partition_point(|present| *present < middle);
        let to = self.times.partition_point(|present| *present <= middle);
        if from > 0 && rows / 2 - from <= to - rows / 2 || to == rows {
            from
        } else {
            to
        }
    }

    /// Keeps the rows before a place and gives those from there on. Moves the fewer ones.
    fn split(&mut self, at: usize) -> Self {
        fn cut<V>(column: &mut VecDeque<V>, at: usize) -> VecDeque<V> {
            if column.is_empty() {
                return VecDeque::new();
            }
            if at >= column.len() / 2 {
                return column.split_off(at);
            }
            let earlier = column.drain(..at).collect();
            std::mem::replace(column, earlier)
        }
        Self {
            times: cut(&mut self.times, at),
            columns: self.columns.iter_mut().map(|each| cut(each, at)).collect(),
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.times.drain(from..to);
        for column in &mut self.columns {
            if !column.is_empty() {
                column.drain(from..to);
            }
        }
    }

    /// Takes the rows of the next chunk.
    fn append(&mut self, mut next: Self) {
        let (rows, more) = (self.times.len(), next.times.len());
        self.times.append(&mut next.times);
        let width = self.columns.len().max(next.columns.len());
        self.columns.resize_with(width, VecDeque::new);
        next.columns.resize_with(width, VecDeque::new);
        for (column, mut next) in self.columns.iter_mut().zip(next.columns) {
            if column.is_empty() && next.is_empty() {
                continue;
            }
            column.resize_with(rows, || Cell::Null);
            column.append(&mut next);
            column.resize_with(rows + more, || Cell::Null);
        }
    }

    fn shrink(&mut self, rows: usize) {
        self.times.shrink_to(rows);
        for column in &mut self.columns {
            column.shrink_to(rows);
        }
    }

    fn bytes(&self) -> usize {
        let cells: usize = self.columns.iter().map(VecDeque::capacity).sum();
        self.times.capacity() * size_of::<i64>()
            + cells * size_of::<Cell<T>>()
            + self.columns.capacity() * size_of::<VecDeque<Cell<T>>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Vec<(i64, Vec<Cell<i64>>)>;

    /// The rows of a log with a number of columns.
    fn rows(log: &RowLog<i64>, width: usize) -> Rows {
        let mut rows = Vec::new();
        log.for_each(width, |time, row| rows.push((time, row.to_vec())));
        rows
    }

    /// Numbers that look drawn at random.
    fn draws(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        }
    }

    #[test]
    fn a_log_holds_the_rows_of_a_sorted_list() {
        for (seed, times, ties) in [
            (1, 40, Ties::Keep),
            (2, 3000, Ties::Keep),
            (3, 40, Ties::Combine),
            (4, 100_000, Ties::Combine),
            (5, 2, Ties::Keep),
        ] {
            let mut draw = draws(seed);
            let (mut log, mut list) = (RowLog::default(), Rows::new());
            for step in 0..12_000 {
                let time = draw(times) as i64 - 20;
                let late = list.partition_point(|(present, _)| *present <= time);
                let growing = step % 4000 < 3000;
                match draw(20) {
                    0 if step % 10 == 0 => {
                        log.evict_until(time / 8);
                        list.retain(|(present, _)| *present > time / 8);
                    }
                    1 => {
                        let count = draw(3) as usize;
                        log.evict_oldest(count);
                        list.drain(..count.min(list.len()));
                    }
                    kind if kind < if growing { 4 } else { 18 } => {
                        log.evict_at(time, ties);
                        let from = list.partition_point(|(present, _)| *present < time);
                        let to = if ties == Ties::Keep {
                            late.min(from + 1)
                        } else {
                            late
                        };
                        list.drain(from..to);
                    }
                    kind => {
                        // The second column has values now and then, the last never.
                        let second = if step % 1000 < 500 && kind > 10 {
                            Cell::F64(step as f64)
                        } else {
                            Cell::Null
                        };
                        let row = vec![Cell::I64(step), second, Cell::Null];
                        log.insert(time, row.clone());
                        list.insert(late, (time, row));
                    }
                }
                if step % 500 == 0 {
                    log.check().unwrap();
                    assert_eq!(rows(&log, 3), list);
                }
            }
            log.check().unwrap();
            assert_eq!(rows(&log, 3), list);
            assert_eq!(log.len(), list.len());
        }
    }

    #[test]
    fn rows_of_one_time_share_a_chunk_and_split_from_others() {
        let mut log = RowLog::default();
        let mut list = Rows::new();
        for time in [5; 1000].into_iter().chain([4; 1000]).chain([6, 3, 5, 4]) {
            let row = vec![Cell::I64(list.len() as i64)];
            log.insert(time, row.clone());
            let at = list.partition_point(|(present, _)| *present <= time);
            list.insert(at, (time, row));
            log.check().unwrap();
        }
        assert_eq!(rows(&log, 1), list);
    }

    #[test]
    fn nulls_cost_their_times_in_whatever_order_they_come() {
        const COUNT: i64 = 100_000;
        let mut draw = draws(7);
        let orders: [(Vec<i64>, usize); 3] = [
            ((0..COUNT).collect(), 9),
            ((0..COUNT).rev().collect(), 19),
            ((0..COUNT).map(|_| draw(1 << 40) as i64).collect(), 19),
        ];
        for (times, most) in orders {
            let mut log = RowLog::<i64>::default();
            for time in times {
                log.insert(time, [Cell::Null, Cell::Null]);
            }
            log.check().unwrap();
            assert!(log.bytes() <= most * COUNT as usize, "{}", log.bytes());
            // The rest of many chunks does not keep their memory.
            for time in (0..COUNT).filter(|time| time % 64 != 0) {
                log.evict_at(time, Ties::Combine);
            }
            log.check().unwrap();
            let left = log.len().max(1);
            assert!(log.bytes() <= 24 * left + 4096, "{} of {left}", log.bytes());
        }
    }
}
