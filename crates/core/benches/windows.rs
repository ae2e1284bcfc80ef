//! Throughput of windows in thread CPU time: items per second, each item one evict, one
//! insert and one query. Prints a table; `--json FILE` records it.
//!
//! `cargo bench -p slidewise-core -- [filter] [--log-n 22] [--repeat 3] [--json FILE]`

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, SumF64, SumI64};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::{Batch, Ties, Window};

type Tree<M> = Fiba<M, 64, 32>;

/// Times far above those of the stream: the `d` entries that stay youngest.
const FAR: i64 = 1 << 60;

struct Settings {
    filter: String,
    n: usize,
    repeat: usize,
    json: Option<String>,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn main() {
    let settings = settings();
    let mut report = Report::default();
    for (name, value) in [("sum i64", 0), ("sum f64", 1), ("max f64", 2)] {
        match value {
            0 => cases(name, &SumI64, |x| x as i64, &settings, &mut report),
            1 => cases(name, &SumF64, |x| x as f64 * 0.01, &settings, &mut report),
            _ => {
                let max = Extreme {
                    dtype: DType::F64,
                    min: false,
                };
                cases(name, &max, |x| x as i64, &settings, &mut report);
            }
        }
    }
    report.write(&settings);
}

fn settings() -> Settings {
    let mut settings = Settings {
        filter: String::new(),
        n: 1 << 22,
        repeat: 3,
        json: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the option");
        match word.as_str() {
            "--bench" => {}
            "--log-n" => settings.n = 1 << value().parse::<u32>().expect("a number"),
            "--repeat" => settings.repeat = value().parse().expect("a number"),
            "--json" => settings.json = Some(value()),
            _ => settings.filter = word,
        }
    }
    settings
}

fn cases<M: Monoid>(
    name: &str,
    monoid: &M,
    value: impl Fn(u64) -> M::In + Copy,
    settings: &Settings,
    report: &mut Report,
) {
    let n = settings.n;
    let mut run = |case: String, work: &dyn Fn() -> (usize, Duration)| {
        report.case(&format!("{name} {case}"), settings, work);
    };
    for d in [0, 16, 1 << 10, 1 << 16, 1 << 20]
        .into_iter()
        .filter(|d| *d < n)
    {
        run(format!("constant lag d={d}"), &|| {
            constant_lag(monoid, value, n, d)
        });
    }
    for d in [16, 1 << 10, 1 << 16, 1 << 20]
        .into_iter()
        .filter(|d| *d < n)
    {
        run(format!("random lag d={d}"), &|| {
            random_lag(monoid, value, n, d)
        });
    }
    for (m, d) in [
        (64, 0),
        (1024, 0),
        (65536, 0),
        (64, 1024),
        (1024, 1024),
        (65536, 1024),
    ] {
        run(format!("bulk m={m} d={d}"), &|| {
            bulk(monoid, value, n, m, d)
        });
    }
    for bulk in [false, true] {
        let how = if bulk { "bulk" } else { "loop" };
        run(format!("scattered {how} m=1024 over 65536"), &|| {
            scattered(monoid, value, n, 1024, 1 << 16, bulk)
        });
    }
    run("12 turnovers later d=0".into(), &|| {
        late_turnover(monoid, value, n.min(1 << 20))
    });
}

/// A window of `n`, of which `d` stay youngest for ever.
fn filled<M: Monoid>(monoid: &M, value: impl Fn(u64) -> M::In, n: usize, d: usize) -> Tree<M> {
    let mut window = Tree::new(monoid.clone(), Ties::Combine);
    for time in 0..n - d {
        window.insert(time as i64, Entry::Raw(value(time as u64 % 101)));
    }
    for time in 0..d {
        window.insert(FAR + time as i64, Entry::Raw(value(time as u64 % 101)));
    }
    window
}

/// Every item belongs right before the same `d` youngest ones.
fn constant_lag<M: Monoid>(
    monoid: &M,
    value: impl Fn(u64) -> M::In + Copy,
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
fn arrivals(count: usize, d: usize) -> Vec<i64> {
    let mut random = Random(42);
    let mut order: Vec<(u64, i64)> = (0..count as u64)
        .map(|i| (i + random.next() % d as u64, i as i64))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, time)| time).collect()
}

fn random_lag<M: Monoid>(
    monoid: &M,
    value: impl Fn(u64) -> M::In,
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

/// Evicts and inserts `m` at a time, before the `d` youngest. Building the batch counts.
fn bulk<M: Monoid>(
    monoid: &M,
    value: impl Fn(u64) -> M::In + Copy,
    n: usize,
    m: usize,
    d: usize,
) -> (usize, Duration) {
    let mut window = filled(monoid, value, n, d);
    let rounds = (2 * n / m).max(1);
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

/// `m` entries scattered over the youngest `span`, which has a gap for each of them.
fn scattered<M: Monoid>(
    monoid: &M,
    value: impl Fn(u64) -> M::In + Copy,
    n: usize,
    m: usize,
    span: usize,
    bulk: bool,
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
        if bulk {
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
            }
        }
        black_box(window.query());
        spent += start.elapsed();
        window.evict_until(i64::MIN);
    }
    (rounds * m, spent)
}

/// The rate of the 13th turnover of an in-order window.
fn late_turnover<M: Monoid>(
    monoid: &M,
    value: impl Fn(u64) -> M::In + Copy,
    n: usize,
) -> (usize, Duration) {
    let mut window = filled(monoid, value, n, 0);
    let mut turnover = |round: usize| {
        let start = ThreadTime::now();
        for item in 0..n {
            window.evict();
            window.insert(
                (n * (round + 1) + item) as i64,
                Entry::Raw(value(item as u64 % 101)),
            );
            black_box(window.query());
        }
        start.elapsed()
    };
    for round in 0..12 {
        turnover(round);
    }
    (n, turnover(12))
}

#[derive(Default)]
struct Report {
    lines: Vec<(String, f64)>,
}

impl Report {
    fn case(&mut self, name: &str, settings: &Settings, work: &dyn Fn() -> (usize, Duration)) {
        if !name.contains(&settings.filter) {
            return;
        }
        let mut rates: Vec<f64> = (0..settings.repeat)
            .map(|_| {
                let (items, spent) = work();
                items as f64 / spent.as_secs_f64() / 1e6
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        println!("{name:<45} {median:>8.1} M items/s   {rates:.1?}");
        self.lines.push((name.to_owned(), median));
    }

    fn write(&self, settings: &Settings) {
        let Some(path) = &settings.json else { return };
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|(name, rate)| format!("  \"{name}\": {rate:.2}"))
            .collect();
        let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
        std::fs::write(path, text).expect("the record can be written");
    }
}
