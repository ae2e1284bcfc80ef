//! Queries with range and slide over one stream: entries per second by the number of
//! queries, of one window for all and of a window for each. Prints tables.
//!
//! `cargo bench -p slidewise-papers --bench queries -- [FILTER] [--repeat 3]`
//!
//! Entries are a second apart. `nested` has slides from a minute to an hour, which divide
//! their ranges of up to six hours; `ragged` has slides of any number of seconds up to half
//! an hour, and ranges up to two hours. `late` has the entries of `nested` out of order by up
//! to a minute. Time is thread CPU time, of inserts and answers together.

use std::hint::black_box;

use cpu_time::ThreadTime;
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, SumI64};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::Window;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::planned::{algorithm as core, queries};
use slidewise_core::window::queries::final_aggregator::{FinalAggregator, of_structure};
use slidewise_core::window::queries::plan::{Query, Unit};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};
use slidewise_core::window::queries::{Planning, QueryWindow};
use slidewise_papers::algorithm::Algorithm;
use slidewise_papers::planned;

const QUERIES: [usize; 6] = [1, 4, 16, 64, 256, 1024];
/// The number of entries that a run inserts into all windows together, about.
const INSERTS: usize = 1 << 25;
/// Two days of entries at most, and nine hours at least.
const MAX_ENTRIES: usize = 1 << 18;
const MIN_ENTRIES: usize = 1 << 15;
const LATE: i64 = 60;

struct Settings {
    filter: String,
    repeat: usize,
}

fn settings() -> Settings {
    let mut settings = Settings {
        filter: String::new(),
        repeat: 3,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the option");
        match word.as_str() {
            "--bench" => {}
            "--repeat" => settings.repeat = value().parse().expect("a number"),
            _ => settings.filter = word,
        }
    }
    settings
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn queries(case: &str, count: usize) -> Vec<Option<Query>> {
    const MINUTES: [i64; 8] = [1, 2, 5, 10, 15, 20, 30, 60];
    let mut random = Random(7);
    let mut draw = || {
        let (range, slide) = match case {
            "ragged" => (1 + random.below(7200) as i64, 1 + random.below(1800) as i64),
            _ => {
                let slide = 60 * MINUTES[random.below(8) as usize];
                let most = 6 * 3600 / slide;
                (slide * (1 + random.below(most as u64) as i64), slide)
            }
        };
        Some(Query {
            unit: Unit::Time,
            range,
            slide,
        })
    };
    (0..count).map(|_| draw()).collect()
}

/// The times of entries, and their values.
fn entries(case: &str, count: usize) -> Vec<(i64, i64)> {
    let mut random = Random(3);
    let mut latest = i64::MIN;
    let each = (0..count as i64).map(|at| {
        let back = if case == "late" {
            random.below(LATE as u64) as i64
        } else {
            0
        };
        let time = (at - back).max(latest.saturating_sub(LATE));
        latest = latest.max(time);
        (time, random.below(1000) as i64)
    });
    each.collect()
}

fn window<M: Monoid<In = i64>>(
    monoid: &M,
    of: &dyn FinalAggregator<M>,
    case: &str,
    queries: Vec<Option<Query>>,
) -> QueryWindow<M> {
    let terms = ScheduleOptions {
        late: (case == "late").then_some(LATE),
        ..ScheduleOptions::default()
    };
    let mut window = QueryWindow::new(monoid.clone(), of.fresh(1), 0);
    window.start(Schedule::new(terms, queries));
    window
}

/// Entries per second, and answers per entry.
fn run<M: Monoid<In = i64>>(windows: &mut [QueryWindow<M>], entries: &[(i64, i64)]) -> (f64, f64) {
    let start = ThreadTime::now();
    let mut answers = 0;
    for (time, value) in entries {
        for window in &mut *windows {
            window.insert(*time, Entry::Raw(*value));
            answers += black_box(window.take_due()).len();
        }
    }
    let count = entries.len() as f64;
    (
        count / start.elapsed().as_secs_f64(),
        answers as f64 / count,
    )
}

fn median(mut runs: Vec<(f64, f64)>) -> (f64, f64) {
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs[runs.len() / 2]
}

fn compare<M: Monoid<In = i64>>(
    settings: &Settings,
    name: &str,
    monoid: &M,
    of: &dyn FinalAggregator<M>,
) {
    for case in ["nested", "ragged", "late"] {
        let title = format!("{case} {name}");
        if !title.contains(&settings.filter) {
            continue;
        }
        println!("\n{title}\n");
        println!("| queries | answers per entry | one window | a window each | times |");
        println!("|--------:|------------------:|-----------:|--------------:|------:|");
        for count in QUERIES {
            let all = queries(case, count);
            let together = entries(case, MAX_ENTRIES);
            let apart = entries(case, (INSERTS / count).clamp(MIN_ENTRIES, MAX_ENTRIES));
            let shared = (0..settings.repeat).map(|_| {
                let mut windows = [window(monoid, of, case, all.clone())];
                run(&mut windows, &together)
            });
            let (shared, answers) = median(shared.collect());
            let each = (0..settings.repeat).map(|_| {
                let single = |query: &Option<Query>| window(monoid, of, case, vec![*query]);
                let mut windows: Vec<_> = all.iter().map(single).collect();
                run(&mut windows, &apart)
            });
            let (each, _) = median(each.collect());
            println!(
                "| {count} | {answers:.3} | {:.2} M/s | {:.3} M/s | {:.1} |",
                shared / 1e6,
                each / 1e6,
                shared / each
            );
        }
    }
}

fn main() {
    let settings = settings();
    let max = Extreme {
        dtype: DType::I64,
        min: false,
    };
    compare(
        &settings,
        "sum slick_deque",
        &SumI64,
        &*of_structure(SlickDequeInv::new(SumI64, 1), 1),
    );
    compare(
        &settings,
        "max slick_deque",
        &max,
        &*of_structure(SlickDeque::new(max), 1),
    );
    let core = [
        ("flat_fit", core::Algorithm::FlatFit),
        ("fiba", core::Algorithm::Fiba),
    ]
    .map(|(name, algorithm)| (name, queries::aggregator(algorithm, &SumI64)));
    let papers = [
        ("flat_fat", Algorithm::FlatFat { capacity: 64 }),
        ("b_int", Algorithm::BInt),
        ("daba_chain", Algorithm::DabaChain),
    ]
    .map(|(name, algorithm)| (name, planned::aggregator(algorithm, &SumI64)));
    for (name, of) in core.into_iter().chain(papers) {
        compare(&settings, &format!("sum {name}"), &SumI64, &*of);
    }
}
