//! Reads over all keys: the keys, and their windows and sessions.

use std::hash::BuildHasher;
use std::ops::ControlFlow;

use super::super::grid::Grid;
use super::super::keys::KeyColumn;
use super::super::tree::Root;
use super::{Head, Shard};
use crate::monoid::Monoid;

/// The most windows that may fall due at once: some 10 GB of results.
pub const MAX_WINDOWS: usize = 1 << 27;

/// Keys as bytes, with the times of their last entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyList {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
    pub lasts: Vec<i64>,
}

impl Default for KeyList {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: vec![0],
            lasts: Vec::new(),
        }
    }
}

impl KeyList {
    pub fn view(&self) -> KeyColumn<'_> {
        KeyColumn {
            bytes: &self.bytes,
            offsets: &self.offsets,
        }
    }

    pub fn push(&mut self, key: &[u8], last: i64) {
        self.bytes.extend_from_slice(key);
        self.offsets.push(self.bytes.len());
        self.lasts.push(last);
    }

    /// Sorts by last time, then by the bytes of the key; returns the new index of each key.
    pub fn sort(&mut self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.lasts.len() as u32).collect();
        let view = self.view();
        order.sort_unstable_by_key(|at| (self.lasts[*at as usize], view.key(*at as usize)));
        let mut sorted = Self::default();
        let mut places = vec![0; order.len()];
        for (place, at) in order.iter().enumerate() {
            sorted.push(view.key(*at as usize), self.lasts[*at as usize]);
            places[*at as usize] = place as u32;
        }
        *self = sorted;
        places
    }
}

impl<M: Monoid> Shard<M> {
    /// The keys with entries, by number.
    fn held(&self) -> impl Iterator<Item = (u32, &Head)> {
        let heads = (0..).zip(&self.heads);
        heads.filter(|(_, head)| head.root != Root::Empty)
    }

    pub fn list_keys(&self, list: &mut KeyList) {
        for (number, head) in self.held() {
            list.push(self.keys.key(number), head.last);
        }
    }

    pub fn last_time(&self, number: Option<u32>) -> Option<i64> {
        let head = self.heads[number? as usize];
        (head.root != Root::Empty).then_some(head.last)
    }

    /// Appends the numbers of a key's entries from `lo` to `hi`, in order.
    pub fn rows(&self, number: Option<u32>, range: (i64, i64), out: &mut Vec<i64>) {
        if let Some(number) = number {
            let root = self.heads[number as usize].root;
            self.forest.rows(root, range, out);
        }
    }

    pub fn holds(&self, number: Option<u32>, time: i64, row: i64) -> bool {
        number.is_some_and(|number| {
            let root = self.heads[number as usize].root;
            self.forest.holds(root, time, row)
        })
    }

    /// Appends, by key, the ends of windows with an entry and `since < end <= until`; false if they
    /// are more than [`MAX_WINDOWS`].
    pub fn windows(
        &self,
        grid: &Grid,
        (since, until): (Option<i64>, i64),
        list: &mut KeyList,
        ends: &mut Vec<(i64, u32)>,
    ) -> bool {
        for (number, head) in self.held() {
            let before = ends.len();
            let key = list.lasts.len() as u32;
            let mut next = self.window_after(head, grid, since, None);
            // All windows up to the one that ends with this entry hold it.
            let hold_first = next.map_or(0, |(end, first)| {
                let last = i128::from(until).min(i128::from(first) + i128::from(grid.length));
                (last - i128::from(end)).max(0) / i128::from(grid.every)
            });
            if hold_first > MAX_WINDOWS as i128 {
                return false;
            }
            while let Some((end, first)) = next.filter(|(end, _)| *end <= until) {
                ends.push((end, key));
                next = self.window_after(head, grid, Some(end), Some(first));
            }
            if ends.len() > MAX_WINDOWS {
                return false;
            }
            if ends.len() > before {
                list.push(self.keys.key(number), head.last);
            }
        }
        true
    }

    /// The first window with an entry that ends after `since`: its end, and the time of its first
    /// entry. `known`: the first entry of the window before.
    fn window_after(
        &self,
        head: &Head,
        grid: &Grid,
        since: Option<i64>,
        known: Option<i64>,
    ) -> Option<(i64, i64)> {
        let from = match since {
            Some(since) => since,
            None => self.forest.first(head.root, i64::MIN)?,
        };
        let mut end = grid.end_after(from);
        loop {
            let start = grid.start(end);
            if start > head.last || end - i128::from(grid.length) > i64::MAX.into() {
                return None;
            }
            let first = match known.filter(|known| *known >= start) {
                Some(known) => known,
                None => self.forest.first(head.root, start)?,
            };
            if i128::from(first) < end {
                return Some((i64::try_from(end).ok()?, first));
            }
            end = grid.end_after(first);
        }
    }

    /// The least end after `since` of a window with an entry, if one ends before `known`.
    pub fn next_window(&self, grid: &Grid, since: Option<i64>, known: Option<i64>) -> Option<i64> {
        let least = since.map(|since| grid.end_after(since));
        let mut best = known;
        for (_, head) in self.held() {
            if best.is_some_and(|best| least == Some(best.into())) {
                break;
            }
            let found = self.window_after(head, grid, since, None);
            best = match (best, found) {
                (Some(best), Some((end, _))) => Some(best.min(end)),
                (best, found) => best.or(found.map(|(end, _)| end)),
            };
        }
        best
    }

    /// No session of this gap ends before this time.
    pub fn next_session(&self, gap: i64) -> Option<i64> {
        if self.gap.is_some_and(|known| known != gap) {
            let first = |(_, head): (u32, &Head)| self.forest.first(head.root, i64::MIN);
            return self.held().filter_map(first).min();
        }
        (self.keys.len() > 0).then_some(self.closing)
    }

    /// Removes the sessions that end at or before `until`, and appends the numbers of their
    /// rows key by key.
    pub fn sessions(
        &mut self,
        monoid: &M,
        hasher: &impl BuildHasher,
        (gap, until): (i64, i64),
        out: &mut Vec<i64>,
    ) {
        if self.gap.replace(gap) != Some(gap) {
            // With another gap, one session may become several.
            for head in &mut self.heads {
                let first = self.forest.first(head.root, i64::MIN);
                head.closing = first.unwrap_or(i64::MIN);
                self.closing = self.closing.min(head.closing);
            }
        }
        if self.closing > until {
            return;
        }
        self.closing = i64::MAX;
        for number in 0..self.heads.len() {
            let head = &self.heads[number];
            if head.root == Root::Empty {
                continue;
            }
            if head.closing <= until {
                self.close_sessions(monoid, number, (gap, until), out);
            }
            let head = &self.heads[number];
            if head.root == Root::Empty {
                let hash = hasher.hash_one(self.keys.key(number as u32));
                self.keys.remove(hash, number as u32);
            } else {
                self.closing = self.closing.min(head.closing);
            }
        }
    }

    fn close_sessions(
        &mut self,
        monoid: &M,
        number: usize,
        (gap, until): (i64, i64),
        out: &mut Vec<i64>,
    ) {
        let head = &mut self.heads[number];
        // The first entry from `closing` on is in the first session; each entry is read once,
        // as `closing` rises.
        let mut closed = None;
        let mut open = head.closing;
        let mut previous: Option<i64> = None;
        let mut over = false;
        let range = (head.closing, i64::MAX);
        self.forest.visit(head.root, range, &mut |times, _| {
            for time in times {
                if let Some(previous) = previous
                    && time.abs_diff(previous) > gap.unsigned_abs()
                {
                    closed = Some(previous);
                }
                previous = Some(*time);
                open = *time;
                if *time > until {
                    over = true;
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        if !over {
            // All entries are at or before `until`.
            self.forest.rows(head.root, (i64::MIN, i64::MAX), out);
            self.forest.clear(&mut head.root);
            return;
        }
        head.closing = open;
        let Some(closed) = closed else {
            return;
        };
        let mut removals: Vec<(i64, i64)> = Vec::new();
        let range = (i64::MIN, closed);
        self.forest.visit(head.root, range, &mut |times, numbers| {
            removals.extend(times.iter().copied().zip(numbers.iter().copied()));
            ControlFlow::Continue(())
        });
        out.extend(removals.iter().map(|(_, number)| *number));
        removals.sort_unstable();
        // Whole leaves first, without reading them.
        self.forest.evict(monoid, &mut head.root, closed);
        self.forest.remove(monoid, &mut head.root, &removals);
    }
}
