//! Rolling aggregates over a whole table: rows per second of thread CPU time, by window
//! length, with outputs made anew at every call.
//!
//! `cargo bench -p slidewise-core --bench rolling -- [FILTER] [--rows 10000000]`

use std::hint::black_box;
use std::time::Instant;

use cpu_time::ThreadTime;
use slidewise_core::aggregate::column::{Column, Values};
use slidewise_core::aggregate::{AggSpec, Kind};
use slidewise_core::rolling::{Closed, Length, Request, Span, rolling};

/// About 100, 10,000 and 1,000,000 rows: rows are 1,000 time units apart on average.
const LENGTHS: [i64; 3] = [100_000, 10_000_000, 1_000_000_000];

fn main() {
    let mut filter = String::new();
    let mut rows = 10_000_000;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => {}
            "--rows" => rows = words.next().expect("a number").parse().expect("a number"),
            _ => filter = word,
        }
    }
    let table = Table::new(rows);
    let one = |kind| vec![(kind, 0)];
    for (name, kinds) in [
        ("count", vec![(Kind::Count, 0)]),
        ("sum f64", one(Kind::Sum)),
        ("mean f64", one(Kind::Mean)),
        ("sum i64", vec![(Kind::Sum, 1)]),
        ("mean i64", vec![(Kind::Mean, 1)]),
        ("max f64", one(Kind::Max)),
        ("min i64", vec![(Kind::Min, 1)]),
        ("stddev f64", one(Kind::Stddev)),
        ("stddev i64", vec![(Kind::Stddev, 1)]),
        ("first f64", one(Kind::First)),
        (
            "sum, max, stddev f64",
            vec![(Kind::Sum, 0), (Kind::Max, 0), (Kind::Stddev, 0)],
        ),
    ] {
        if name.contains(&filter) {
            let workload = Workload::of(&kinds);
            report(name, LENGTHS.map(|length| table.rate(workload, &[length])));
        }
    }
    let sum = one(Kind::Sum);
    for (threads, name) in [
        (1, "1000 keys, sum f64"),
        (2, "1000 keys, 2 threads"),
        (4, "1000 keys, 4 threads"),
    ] {
        if name.contains(&filter) {
            let workload = Workload {
                keyed: true,
                threads,
                ..Workload::of(&sum)
            };
            report(name, LENGTHS.map(|length| table.rate(workload, &[length])));
        }
    }
    let three = [(Kind::Sum, 0), (Kind::Max, 0), (Kind::Stddev, 0)];
    let name = "4 lengths, sum, max, sd";
    if name.contains(&filter) {
        let lengths = [100_000, 1_000_000, 10_000_000, 100_000_000];
        report(name, [table.rate(Workload::of(&three), &lengths)]);
    }
}

fn report<const N: usize>(name: &str, rates: [f64; N]) {
    let rates: String = rates.iter().map(|rate| format!(" {rate:8.1}")).collect();
    println!("{name:24}{rates} M rows/s");
}

/// The computation over a table.
#[derive(Clone, Copy)]
struct Workload<'a> {
    kinds: &'a [(Kind, usize)],
    keyed: bool,
    /// More than one are measured by wall time.
    threads: usize,
}

impl<'a> Workload<'a> {
    fn of(kinds: &'a [(Kind, usize)]) -> Self {
        Self {
            kinds,
            keyed: false,
            threads: 1,
        }
    }
}

struct Table {
    times: Vec<i64>,
    floats: Vec<f64>,
    integers: Vec<i64>,
    keys: Vec<u32>,
}

impl Table {
    /// Times as of a Poisson process.
    fn new(rows: usize) -> Self {
        let mut state = 42_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut now = 0.0;
        let mut table = Self {
            times: Vec::new(),
            floats: Vec::new(),
            integers: Vec::new(),
            keys: Vec::new(),
        };
        for _ in 0..rows {
            now -= (1.0 - next()).ln() * 1000.0;
            table.times.push(now as i64);
            table
                .floats
                .push(100.0 + 30.0 * (next() + next() + next() - 1.5));
            table.integers.push((next() * 1000.0) as i64);
            table.keys.push((next() * 1000.0) as u32);
        }
        table
    }

    /// M rows per second, the best of three calls.
    fn rate(&self, workload: Workload<'_>, lengths: &[i64]) -> f64 {
        let columns =
            [Values::F64(&self.floats), Values::I64(&self.integers)].map(|values| Column {
                values,
                validity: None,
            });
        let aggs: Vec<AggSpec> = workload
            .kinds
            .iter()
            .map(|&(kind, of)| AggSpec {
                kind,
                of: Some(of),
                by: None,
                ddof: 1,
            })
            .collect();
        let spans: Vec<Span> = lengths
            .iter()
            .map(|&length| Span {
                length: Length::Time(length),
                closed: Closed::Right,
                offset: 0,
            })
            .collect();
        // Columns that are not used would be sorted, too.
        let used = workload.kinds.iter().map(|(_, of)| of + 1).max();
        let columns = &columns[..used.expect("there is a request")];
        let request = Request {
            groups: workload.keyed.then_some(&self.keys[..]),
            threads: workload.threads,
            ..Request::new(&self.times, columns, &aggs, &spans)
        };
        let spent = (0..3).map(|_| {
            let (cpu, wall) = (ThreadTime::now(), Instant::now());
            black_box(rolling(request, &mut || true)).expect("nothing overflows");
            match workload.threads {
                1 => cpu.elapsed(),
                _ => wall.elapsed(),
            }
        });
        let best = spent.min().expect("three calls");
        self.times.len() as f64 / best.as_secs_f64() / 1e6
    }
}
