//! Throughput of windows in thread CPU time, and the memory they hold. Prints a table;
//! `--json FILE` records it.
//!
//! `cargo bench -p slidewise-papers --bench windows -- [FILTER] [--log-n 22] [--repeat 3]
//! [--rss] [--list] [--json FILE]`
//!
//! Windows below 2^17 are measured in order only. `FILTER` takes the cases whose name
//! contains it. `--rss` measures memory as what the process holds resident instead of
//! asking `Window::bytes`, and measures nothing else.

mod bloom;
mod fifo;
mod flat;
mod memory;
mod report;
mod streams;
mod trees;
mod words;

use std::hint::black_box;

use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, SumF64, SumI64};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fiba::Fiba;

use report::{Report, Settings};

/// The form for cheap operations, which is what windows over numbers take.
type Tree<M> = Fiba<M, 64, 32>;

/// Distances between an item and the youngest one.
const LAGS: [usize; 4] = [16, 1 << 10, 1 << 16, 1 << 20];

/// The lags and batches of windows in any order fit no smaller ones.
const SMALLEST: usize = 1 << 17;

fn main() {
    let settings = Settings::from_arguments();
    if settings.rss && !memory::can_see_resident() {
        println!("This system does not say how much memory is resident: skipped.");
        return;
    }
    let mut report = Report::new(settings);
    let max = Extreme {
        dtype: DType::F64,
        min: false,
    };
    if report.settings.n >= SMALLEST {
        cases(&mut report, "sum i64", &SumI64, |x| x as i64);
        cases(&mut report, "sum f64", &SumF64, |x| x as f64 * 0.01);
        cases(&mut report, "max f64", &max, |x| x as i64);
    }
    if !report.settings.rss {
        fifo::cases(&mut report);
    }
    report.write();
}

/// The value of item `x` of a stream: one of 101 values.
trait Value<M: Monoid>: Fn(u64) -> M::In + Copy {}
impl<M: Monoid, T: Fn(u64) -> M::In + Copy> Value<M> for T {}

fn cases<M: Monoid>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    if !report.settings.rss {
        warm_up();
        rates(report, name, monoid, value);
        trees::cases(report, name, monoid, value);
        flat::cases(report, name, monoid, value);
    }
    memory::cases(report, name, monoid, value);
}

/// Once a block of some size was freed, glibc keeps that much for later instead of giving
/// it back at once. A process that has run for a while is in that state; without it the
/// batches of `bulk` measure page faults.
fn warm_up() {
    drop(black_box(vec![0_u8; 16 << 20]));
}

fn rates<M: Monoid>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    let n = report.settings.n;
    let below = |d: &usize| *d < n;
    for d in [0].into_iter().chain(LAGS).filter(below) {
        report.rate(format!("{name} constant lag d={d}"), || {
            streams::constant_lag(monoid, value, n, d)
        });
    }
    for d in LAGS.into_iter().filter(below) {
        report.rate(format!("{name} random lag d={d}"), || {
            streams::random_lag(monoid, value, n, d)
        });
    }
    for every in [64, 1024] {
        report.rate(format!("{name} one in {every} late, d=1024"), || {
            streams::rarely_late(monoid, value, n, every)
        });
    }
    for d in [0, 1024] {
        for m in [64, 1024, 65536].into_iter().filter(|m| m + d < n) {
            report.rate(format!("{name} bulk m={m} d={d}"), || {
                streams::bulk(monoid, value, n, m, d)
            });
        }
    }
    for how in ["bulk", "loop", "alone"] {
        report.rate(format!("{name} scattered {how} m=1024 over 65536"), || {
            streams::scattered(monoid, value, n, 1024, 1 << 16, how)
        });
    }
    for turnover in [1, 13] {
        report.rate(format!("{name} turnover {turnover} d=0"), || {
            streams::turnover(monoid, value, n, turnover)
        });
    }
}
