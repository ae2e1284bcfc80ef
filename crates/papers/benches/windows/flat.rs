//! The flat structures in order: slides of one (an evict, an insert, a query) and of many.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::{Ties, Window};
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;
use slidewise_papers::reactive::Reactive;

use crate::Value;
use crate::report::Report;

pub fn cases<M: Monoid>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    let n = report.settings.n;
    let fat = || FlatFatQueue::new(monoid.clone(), n);
    let (fit, b_int) = (
        || FlatFit::new(monoid.clone()),
        || BInt::new(monoid.clone()),
    );
    let amta = || Amta::new(monoid.clone());
    report.rate(format!("{name} amta"), || slide(amta(), value, n, 1));
    report.rate(format!("{name} b_int"), || slide(b_int(), value, n, 1));
    report.rate(format!("{name} flat_fat"), || slide(fat(), value, n, 1));
    report.rate(format!("{name} flat_fit"), || slide(fit(), value, n, 1));
    report.rate(format!("{name} reactive"), || reactive(monoid, value, n));
    for m in [64, 1024, 65536].into_iter().filter(|m| *m < n) {
        report.rate(format!("{name} amta bulk m={m}"), || {
            slide(amta(), value, n, m)
        });
        report.rate(format!("{name} flat_fat bulk m={m}"), || {
            slide(fat(), value, n, m)
        });
    }
}

/// Evicts and inserts `m` at a time; counts entries.
fn slide<M: Monoid, F: Fifo<M>>(
    mut fifo: F,
    value: impl Value<M>,
    n: usize,
    m: usize,
) -> (usize, Duration) {
    let monoid = fifo.monoid().clone();
    let lifted = |item: usize| monoid.lift(&value(item as u64 % 101));
    for item in 0..n {
        fifo.insert(lifted(item));
    }
    let rounds = (n / m).max(1);
    let start = ThreadTime::now();
    for round in 0..rounds {
        fifo.evict_many(m);
        for item in 0..m {
            fifo.insert(lifted(round * m + item));
        }
        black_box(fifo.query());
    }
    (rounds * m, start.elapsed())
}

fn reactive<M: Monoid>(monoid: &M, value: impl Value<M>, n: usize) -> (usize, Duration) {
    let mut window = Reactive::new(monoid.clone(), Ties::Combine);
    for time in 0..n {
        window.insert(time as i64, Entry::Raw(value(time as u64 % 101)));
    }
    let start = ThreadTime::now();
    for time in n..2 * n {
        window.evict();
        window.insert(time as i64, Entry::Raw(value(time as u64 % 101)));
        black_box(window.query());
    }
    (n, start.elapsed())
}
