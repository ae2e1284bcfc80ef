//! The most frequent values: Space Saving, with merges.
//!
//! | card   |                                                                        |
//! |--------|------------------------------------------------------------------------|
//! | papers | Metwally, Agrawal, El Abbadi 2005, §3; Agarwal et al. 2012, §3 (merge) |
//! | laws   | merges in any grouping and order to the same guarantee, not to the     |
//! |        | same counts; exact while there are no more different values than m     |
//! | error  | counts are too large by n/(m+1) at most, and each has its error bound  |
//! | costs  | absorb and merge O(m)                                                  |
//!
//! Each kept value has a count and a bound on the error of the count. A value that is not
//! kept may have occurred up to *floor* times, so it starts with that count.
//!
//! Invariants:
//!
//! 1. At most m counters, by rising hash.
//! 2. A value occurred at least count − error times and at most count times; one without a
//!    counter at most floor times.
//! 3. Σ (count − floor) + (m + 1) floor ≤ n: dropping raises the floor by the excess d of
//!    the largest that is dropped, which m + 1 counters had. So floor ≤ n/(m+1).
//!
//! Deviation: values are distinguished by 64-bit hashes, and one value represents all with
//! its hash.

use super::super::Cell;
use super::super::collect::Element;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

#[derive(Clone, Debug, PartialEq)]
pub struct Counter<T> {
    pub hash: u64,
    pub count: u64,
    pub error: u64,
    pub item: Cell<T>,
}

#[derive(Clone, Debug)]
pub struct Hitters<T> {
    counters: Vec<Counter<T>>,
    floor: u64,
    total: u64,
}

impl<T> Default for Hitters<T> {
    fn default() -> Self {
        Self {
            counters: Vec::new(),
            floor: 0,
            total: 0,
        }
    }
}

/// Equal if over equally many values; the rest depends on grouping.
impl<T> PartialEq for Hitters<T> {
    fn eq(&self, other: &Self) -> bool {
        self.total == other.total
    }
}

impl<T: Clone> Hitters<T> {
    pub fn one(hash: u64, item: Cell<T>) -> Self {
        Self {
            counters: vec![Counter {
                hash,
                count: 1,
                error: 0,
                item,
            }],
            floor: 0,
            total: 1,
        }
    }

    /// The same of other items with the same hashes.
    #[must_use]
    pub fn map(&self, item: impl Fn(&Cell<T>) -> Cell<T>) -> Self {
        let mut other = self.clone();
        for counter in &mut other.counters {
            counter.item = item(&counter.item);
        }
        other
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// The greatest count that a value without a counter may have.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    #[must_use]
    pub fn merged(&self, other: &Self, most: usize) -> Self {
        let (mut left, mut right) = (
            self.counters.iter().peekable(),
            other.counters.iter().peekable(),
        );
        let mut counters = Vec::with_capacity(self.counters.len() + other.counters.len());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.hash.cmp(&b.hash),
            };
            let mine = if order.is_le() { left.next() } else { None };
            let its = if order.is_ge() { right.next() } else { None };
            let counted = |counter: Option<&Counter<T>>, floor| {
                counter.map_or((floor, floor), |counter| (counter.count, counter.error))
            };
            let (a, b) = (counted(mine, self.floor), counted(its, other.floor));
            let Some(known) = mine.or(its) else { break };
            counters.push(Counter {
                hash: known.hash,
                count: a.0.saturating_add(b.0),
                error: a.1.saturating_add(b.1),
                item: known.item.clone(),
            });
        }
        let mut merged = Self {
            counters,
            floor: self.floor.saturating_add(other.floor),
            total: self.total.saturating_add(other.total),
        };
        merged.drop_beyond(most);
        merged
    }

    fn drop_beyond(&mut self, most: usize) {
        if self.counters.len() <= most {
            return;
        }
        let rank = |counter: &Counter<T>| (std::cmp::Reverse(counter.count), counter.hash);
        self.counters
            .select_nth_unstable_by_key(most, |counter| rank(counter));
        self.floor = self.floor.max(self.counters[most].count);
        self.counters.truncate(most);
        self.counters.sort_unstable_by_key(|counter| counter.hash);
    }

    /// The k largest counts, the largest first; equal ones by their hashes.
    pub fn top(&self, k: usize) -> Vec<Counter<T>> {
        let mut all: Vec<&Counter<T>> = self.counters.iter().collect();
        all.sort_unstable_by_key(|counter| (std::cmp::Reverse(counter.count), counter.hash));
        all.into_iter().take(k).cloned().collect()
    }
}

impl<T: Element> Hitters<T> {
    pub fn write(&self, out: &mut Writer) {
        out.all(&[self.total, self.floor, self.counters.len() as u64]);
        for counter in &self.counters {
            out.all(&[counter.hash, counter.count, counter.error]);
            counter.item.write(out);
        }
    }

    pub fn read(most: usize, input: &mut Reader<'_>) -> Result<Self> {
        let [total, floor] = <[u64; 2]>::read(input)?;
        let length = input.length::<[u64; 3]>()?;
        let mut counters = Vec::with_capacity(length);
        for _ in 0..length {
            let [hash, count, error] = <[u64; 3]>::read(input)?;
            let item = Cell::read(input)?;
            counters.push(Counter {
                hash,
                count,
                error,
                item,
            });
        }
        let sorted = counters.windows(2).all(|pair| pair[0].hash < pair[1].hash);
        let counted = counters
            .iter()
            .all(|counter| counter.error < counter.count && counter.count <= total);
        if !sorted || !counted || length > most || floor > total {
            return damaged("counters that do not count");
        }
        Ok(Self {
            counters,
            floor,
            total,
        })
    }
}
