//! The workloads. Each gives the items it took and the time it spent on them, an item
//! being one evict, one insert and one query unless it says otherwise.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::{Batch, Ties, Window};

use crate::{Tree, Value};

/// Times far above those of the stream: the `d` entries that stay youngest.
const FAR: i64 = 1 << 60;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A window of `n`, of which `d` stay youngest for ever.
pub fn filled<M: Monoid>(monoid: &M, value: impl Value<M>, n: usize, d: usize) -> Tree<M> {
    let mut window = Tree::new(monoid.clone(), Ties::Combine);
    for time in 0..n - d {
        window.insert(time as i64, Entry::Raw(value(time as u64 % 101)));
    }
    for time in 0..d {
        window.insert(FAR + time as i64, Entry::Raw(value(time as u64 % 101)));
    }
    window
}

/// Every item belongs before the same `d` youngest ones.
pub fn constant_lag<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    d: usize,
) -> (usize, Duration) {
    let mut window = filled(monoid, value, n, d);
    let items = n.min(1 << 22);
    let start = ThreadTime::now();
    for item in 0..items {
        window.evict();
        window.insert((n - d + item) as i64, Entry::Raw(value(item as u64 % 101)));
        black_box(window.query());
    }
    (items, start.elapsed())
}

/// Item `i` arrives as number `i + lag`, its lag drawn from `0..d`.
pub fn arrivals(count: usize, d: usize) -> Vec<i64> {
    let mut random = Random(42);
    let mut order: Vec<(u64, i64)> = (0..count as u64)
        .map(|i| (i + random.next() % d as u64, i as i64))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, time)| time).collect()
}

pub fn random_lag<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    d: usize,
) -> (usize, Duration) {
    let items = n.min(1 << 22);
    let times = arrivals(n + items, d);
    let mut window = Tree::new(monoid.clone(), Ties::Combine);
    for &time in &times[..n] {
        window.insert(time, Entry::Raw(value(time as u64 % 101)));
    }
    let start = ThreadTime::now();
    for &time in &times[n..] {
        window.evict();
        window.insert(time, Entry::Raw(value(time as u64 % 101)));
        black_box(window.query());
    }
    (items, start.elapsed())
}

/// Items in order, except one in `every`, which is late by up to 1024.
pub fn rarely_late<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    every: usize,
) -> (usize, Duration) {
    let mut random = Random(42);
    let mut window = filled(monoid, value, n, 0);
    // Items in order take even times, late ones the odd times between them.
    let base = 2 * n as i64;
    let mut turn = |items: std::ops::Range<usize>| {
        for item in items {
            let late = item % every == 0;
            let lag = if late {
                2 * (random.next() % 1024) as i64 + 1
            } else {
                0
            };
            window.evict();
            let time = base + 2 * item as i64 - lag;
            window.insert(time, Entry::Raw(value(item as u64 % 101)));
            black_box(window.query());
        }
    };
    turn(0..2048);
    let start = ThreadTime::now();
    turn(2048..2048 + n);
    (n, start.elapsed())
}

/// Evicts and inserts `m` at a time, before the `d` youngest. Building the batch counts.
pub fn bulk<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    m: usize,
    d: usize,
) -> (usize, Duration) {
    let mut window = filled(monoid, value, n, d);
    let rounds = (2 * n / m).max(1);
    let start = ThreadTime::now();
    for round in 0..rounds {
        window.evict_until((round * m + m - 1) as i64);
        // Values as the published driver makes them: a remainder for each would cost a
        // fifth of all that is measured.
        let first = (n - d + round * m) as i64;
        let times = first..first + m as i64;
        let batch = Batch {
            values: times.clone().map(|time| value(time as u64)).collect(),
            times: times.collect(),
            lifted: Vec::new(),
        };
        window.insert_batch(batch);
        black_box(window.query());
    }
    (rounds * m, start.elapsed())
}

/// `m` entries scattered over the youngest `span`, which has a gap for each of them.
pub fn scattered<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    m: usize,
    span: usize,
    how: &str,
) -> (usize, Duration) {
    let rounds = 256;
    let gap = 1024;
    let mut random = Random(7);
    let mut window = Tree::new(monoid.clone(), Ties::Combine);
    for item in 0..n as i64 {
        window.insert(item * gap, Entry::Raw(value(item as u64 % 101)));
    }
    let low = (n - span) as i64 * gap;
    let mut spent = Duration::ZERO;
    for _ in 0..rounds {
        let mut times: Vec<i64> = (0..m)
            .map(|_| low + (random.next() % (span as u64 * gap as u64)) as i64)
            .collect();
        times.sort_unstable();
        times.dedup();
        let start = ThreadTime::now();
        if how == "bulk" {
            let values = times.iter().map(|time| value(*time as u64 % 101)).collect();
            window.insert_batch(Batch {
                times,
                values,
                lifted: Vec::new(),
            });
        } else {
            for time in times {
                window.insert(time, Entry::Raw(value(time as u64 % 101)));
                black_box(window.query());
                if how == "alone" {
                    // `len` inserts the staged entries.
                    black_box(window.len());
                }
            }
        }
        black_box(window.query());
        spent += start.elapsed();
        window.evict_until(i64::MIN);
    }
    (rounds * m, spent)
}

/// The `last`th time that an in-order window has all its entries replaced.
pub fn turnover<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    last: usize,
) -> (usize, Duration) {
    let mut window = filled(monoid, value, n, 0);
    let mut spent = Duration::ZERO;
    for round in 1..=last {
        let start = ThreadTime::now();
        for item in 0..n {
            window.evict();
            let time = (n * round + item) as i64;
            window.insert(time, Entry::Raw(value(item as u64 % 101)));
            black_box(window.query());
        }
        spent = start.elapsed();
    }
    (n, spent)
}
