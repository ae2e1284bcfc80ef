//! The first-in first-out structures alone, without times and raw values. An item is one
//! evict, one insert and one query.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use slidewise_core::aggregate::counted::CountedSumF64;
use slidewise_core::aggregate::record::{Record, RecordPlan};
use slidewise_core::aggregate::word::{Extreme, SumF64, SumI64};
use slidewise_core::aggregate::{AggSpec, DType, Kind};
use slidewise_core::monoid::{Invertible, Monoid};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::two_stacks::TwoStacks;

use crate::Value;
use crate::bloom::Bloom;
use crate::report::Report;
use crate::words::{BareMax, WrappingSum};

pub fn cases(report: &mut Report) {
    let max = |dtype| Extreme { dtype, min: false };
    all(report, "sum i64", &SumI64, |x| x as i64);
    subtracting(report, "sum i64", &SumI64, |x| x as i64);
    all(report, "sum f64", &SumF64, |x| x as f64 * 0.01);
    subtracting(report, "sum f64", &CountedSumF64, |x| x as f64 * 0.01);
    all(report, "max i64", &max(DType::I64), |x| x as i64);
    all(report, "wrapping sum i64", &WrappingSum, |x| x as i64);
    subtracting(report, "wrapping sum i64", &WrappingSum, |x| x as i64);
    all(report, "bare max i64", &BareMax, |x| x as i64);
    let positive = |x| [(x as f64 + 1.0).to_bits()];
    let geometric_mean = Record::<[u64; 1], [u64; 4]>::new(record(Kind::GeometricMean));
    all(report, "geometric_mean f64", &geometric_mean, positive);
    let stddev = Record::<[u64; 1], [u64; 8]>::new(record(Kind::Stddev));
    all(report, "stddev f64", &stddev, positive);
    // Windows of 2^22 would take gigabytes.
    let n = std::mem::replace(&mut report.settings.n, 1 << 16);
    all(report, "bloom 512 bytes, n = 2^16,", &Bloom, |x| x as i64);
    report.settings.n = n;
}

fn record(kind: Kind) -> RecordPlan {
    let agg = AggSpec {
        kind,
        of: Some(0),
        by: None,
        ddof: 0,
    };
    RecordPlan::new(&[agg], &[DType::F64])
}

fn all<M: Monoid>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    let m = monoid;
    one(report, name, "two_stacks_lite", value, || {
        TwoStacksLite::new(m.clone())
    });
    one(report, name, "daba_lite", value, || {
        DabaLite::new(m.clone())
    });
    one(report, name, "two_stacks", value, || {
        TwoStacks::new(m.clone(), true)
    });
    one(report, name, "aba", value, || Aba::new(m.clone(), true));
    one(report, name, "daba", value, || Daba::new(m.clone(), true));
    one(report, name, "daba uncached", value, || {
        Daba::new(m.clone(), false)
    });
}

fn subtracting<M: Invertible>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    one(report, name, "subtract_on_evict", value, || {
        SubtractOnEvict::new(monoid.clone())
    });
}

fn one<M, F>(
    report: &mut Report,
    name: &str,
    what: &str,
    value: impl Value<M>,
    make: impl Fn() -> F,
) where
    M: Monoid,
    F: Fifo<M>,
{
    let n = report.settings.n;
    report.rate(format!("{what} {name}"), || slide(make(), value, n));
}

fn slide<M: Monoid, F: Fifo<M>>(mut fifo: F, value: impl Value<M>, n: usize) -> (usize, Duration) {
    let monoid = fifo.monoid().clone();
    for item in 0..n as u64 {
        fifo.insert(monoid.lift(&value(item % 101)));
    }
    let mut next = 0;
    // Once round first, so that no page of a ring is new.
    for _ in 0..2 * n {
        fifo.evict();
        fifo.insert(monoid.lift(&value(7)));
    }
    let items = (2 * n).max(1 << 22);
    let start = ThreadTime::now();
    for _ in 0..items {
        fifo.evict();
        fifo.insert(monoid.lift(&value(next)));
        black_box(fifo.query());
        next = if next == 100 { 0 } else { next + 1 };
    }
    (items, start.elapsed())
}
