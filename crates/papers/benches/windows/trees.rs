//! The published trees: classic, FiBA, bulk FiBA, by arity, on the streams they were
//! published with.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::{Batch, Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;

use crate::Value;
use crate::report::Report;

/// Times far above those of the stream: the `d` entries that stay youngest.
const FAR: i64 = 1 << 60;

pub fn cases<M: Monoid>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    let n = report.settings.n;
    let fiba = |arity, bulk, free_list| {
        let options = Options { bulk, free_list };
        BTree::with_fingers(monoid.clone(), Ties::Combine, arity, options)
    };
    for d in [0, 16, 1024, 1 << 16].into_iter().filter(|d| *d < n) {
        for arity in [2, 4, 8, 16] {
            report.rate(format!("{name} btree{arity} d={d}"), || {
                let tree = BTree::new(monoid.clone(), Ties::Combine, arity);
                slides(tree, value, n, d)
            });
            report.rate(format!("{name} fiba_published{arity} d={d}"), || {
                slides(fiba(arity, true, true), value, n, d)
            });
        }
    }
    for d in [0, 1024] {
        for m in [64, 1024, 65536].into_iter().filter(|m| m + d < n) {
            for arity in [4, 8] {
                let forms = [
                    ("", true, true),
                    (" nofl", true, false),
                    (" loop", false, true),
                ];
                for (form, bulk, free_list) in forms {
                    let case = format!("{name} fiba_published{arity}{form} bulk m={m} d={d}");
                    report.rate(case, || {
                        bulk_slides(fiba(arity, bulk, free_list), value, n, m, d)
                    });
                }
            }
        }
    }
}

fn fill<M: Monoid>(window: &mut impl Window<M>, value: impl Value<M>, n: usize, d: usize) {
    for time in 0..n - d {
        window.insert(time as i64, Entry::Raw(value(time as u64 % 101)));
    }
    for time in 0..d {
        window.insert(FAR + time as i64, Entry::Raw(value(time as u64 % 101)));
    }
}

/// Every item belongs right before the same `d` youngest ones.
fn slides<M: Monoid>(
    mut window: impl Window<M>,
    value: impl Value<M>,
    n: usize,
    d: usize,
) -> (usize, Duration) {
    fill(&mut window, value, n, d);
    let items = n.min(1 << 22);
    let start = ThreadTime::now();
    for item in 0..items {
        window.evict();
        window.insert((n - d + item) as i64, Entry::Raw(value(item as u64 % 101)));
        black_box(window.query());
    }
    (items, start.elapsed())
}

/// Evicts and inserts `m` at a time, before the `d` youngest. Building the batch counts.
fn bulk_slides<M: Monoid>(
    mut window: impl Window<M>,
    value: impl Value<M>,
    n: usize,
    m: usize,
    d: usize,
) -> (usize, Duration) {
    fill(&mut window, value, n, d);
    let rounds = (n / m).max(1);
    let start = ThreadTime::now();
    for round in 0..rounds {
        window.evict_until((round * m + m - 1) as i64);
        let first = (n - d + round * m) as i64;
        let batch = Batch {
            times: (first..first + m as i64).collect(),
            values: (0..m as u64).map(|item| value(item % 101)).collect(),
            lifted: Vec::new(),
        };
        window.insert_batch(batch);
        black_box(window.query());
    }
    (rounds * m, start.elapsed())
}
