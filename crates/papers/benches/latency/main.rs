//! Measures the latency of single calls: p50 to p99.999 and the longest, in nanoseconds of
//! wall time, of windows of the core over the sum of integers. Prints a table; `--json FILE`
//! records it, with the curves.
//!
//! `cargo bench -p slidewise-papers --bench latency -- [FILTER] [--log-n 14]... [--repeat 3]
//! [--json FILE]`
//!
//! Every item is an evict, an insert in order and a query. They are timed together, and each
//! alone in a separate run. Time for which the thread waited for a core does not count, if
//! the system reports it (Linux). Every figure is the lowest of the repeats, as other load of
//! the machine only adds time.

mod samples;

use std::hint::black_box;
use std::time::Instant;

use slidewise_core::aggregate::word::SumI64;
use slidewise_core::monoid::Entry;
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::{Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;
use slidewise_papers::daba_late::DabaLate;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::daba_chain::DabaChain;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;
use slidewise_papers::fifo::two_stacks::TwoStacks;
use slidewise_papers::reactive::Reactive;

use samples::{Samples, Summary};

struct Settings {
    filter: String,
    log_n: Vec<u32>,
    repeat: usize,
    json: Option<String>,
}

fn main() {
    let settings = settings();
    let timer = timer_cost();
    println!("the timer itself takes {timer} ns, which are not subtracted\n");
    println!(
        "{:<24} {:>4} {:<8} {:>9} {:>6} {:>7} {:>7} {:>8} {:>9} {:>9}",
        "algorithm", "n", "timed", "samples", "p50", "p99", "p99.9", "p99.99", "p99.999", "longest"
    );
    let mut lines = Vec::new();
    for log_n in &settings.log_n {
        all(&settings, *log_n, &mut lines);
    }
    if let Some(path) = settings.json {
        let lines = lines.join(",\n");
        let text = format!("{{\"timer_ns\": {timer}, \"cases\": [\n{lines}\n]}}\n");
        std::fs::write(path, text).expect("the record can be written");
    }
}

fn all(settings: &Settings, log_n: u32, lines: &mut Vec<String>) {
    let mut fifo = Cases {
        settings,
        log_n,
        lines,
    };
    fifo.fifo("subtract_on_evict", || SubtractOnEvict::new(SumI64));
    fifo.fifo("two_stacks", || TwoStacks::new(SumI64, true));
    fifo.fifo("two_stacks_lite", || TwoStacksLite::new(SumI64));
    fifo.fifo("aba", || Aba::new(SumI64, true));
    fifo.fifo("daba", || Daba::new(SumI64, true));
    fifo.fifo("daba uncached", || Daba::new(SumI64, false));
    fifo.fifo("daba_lite", || DabaLite::new(SumI64));
    fifo.fifo("daba_chain", || DabaChain::new(SumI64, 1));
    fifo.fifo("slick_deque", || SlickDequeInv::new(SumI64, 1));
    fifo.fifo("flat_fat", || FlatFatQueue::new(SumI64, 1));
    fifo.fifo("flat_fit", || FlatFit::new(SumI64));
    fifo.fifo("b_int", || BInt::new(SumI64));
    fifo.fifo("amta", || Amta::new(SumI64));
    fifo.window("reactive", || Reactive::new(SumI64, Ties::Combine));
    fifo.window("daba_late", || DabaLate::new(SumI64, Ties::Combine, 1000));
    fifo.window("fiba", || {
        Fiba::<SumI64, 64, 32>::new(SumI64, Ties::Combine)
    });
    fifo.window("btree", || BTree::new(SumI64, Ties::Combine, 4));
    fifo.window("fiba_published", || {
        BTree::with_fingers(SumI64, Ties::Combine, 4, Options::default())
    });
}

struct Cases<'a> {
    settings: &'a Settings,
    log_n: u32,
    lines: &'a mut Vec<String>,
}

impl Cases<'_> {
    fn fifo<F: Fifo<SumI64>>(&mut self, name: &str, make: impl Fn() -> F) {
        self.window(name, || InOrder::new(make(), Ties::Combine));
    }

    fn window<W: Window<SumI64>>(&mut self, name: &str, make: impl Fn() -> W) {
        if !name.contains(&self.settings.filter) {
            return;
        }
        let runs = (0..self.settings.repeat).map(|_| measure(make(), 1 << self.log_n));
        let runs: Vec<_> = runs.collect();
        for (at, timed) in ["item", "evict", "insert", "query"].iter().enumerate() {
            let summaries = runs.iter().map(|run| &run[at]);
            let best = Summary::lowest(summaries);
            println!("{name:<24} 2^{:<2} {timed:<8} {best}", self.log_n);
            self.lines.push(format!(
                r#"  {{"algorithm": "{name}", "n": {}, "timed": "{timed}", {}}}"#,
                1_u64 << self.log_n,
                best.to_json()
            ));
        }
    }
}

/// Whole items, evicts, inserts and queries.
fn measure<W: Window<SumI64>>(mut window: W, n: usize) -> [Summary; 4] {
    for time in 0..n {
        window.insert(time as i64, value(time));
    }
    // Several whole windows, so that what happens once per window happens several times.
    let items = (2 * n).max(1 << 21);
    let mut time = n;
    let mut slide = |window: &mut W, samples: &mut Samples| {
        let start = Instant::now();
        window.evict();
        window.insert(time as i64, value(time));
        black_box(window.query());
        samples.take(start.elapsed());
        time += 1;
    };
    let mut whole = Samples::with_capacity(items);
    // Several times round first: a ring has up to twice the entries, and no page of it is
    // to be new.
    for _ in 0..3 * n {
        slide(&mut window, &mut Samples::with_capacity(1));
    }
    for _ in 0..items {
        slide(&mut window, &mut whole);
    }
    let mut parts = [(); 3].map(|()| Samples::with_capacity(items));
    for _ in 0..items {
        let start = Instant::now();
        window.evict();
        let evicted = Instant::now();
        window.insert(time as i64, value(time));
        let inserted = Instant::now();
        black_box(window.query());
        let before_query = Instant::now();
        parts[0].take(evicted - start);
        parts[1].take(inserted - evicted);
        parts[2].take(before_query - inserted);
        time += 1;
    }
    let [evicts, inserts, queries] = parts.map(Samples::summary);
    [whole.summary(), evicts, inserts, queries]
}

fn value(time: usize) -> Entry<SumI64> {
    Entry::Raw((time % 101) as i64)
}

/// The typical measurement of an empty region.
fn timer_cost() -> u128 {
    let mut costs: Vec<u128> = (0..100_001)
        .map(|_| Instant::now().elapsed().as_nanos())
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

fn settings() -> Settings {
    let mut settings = Settings {
        filter: String::new(),
        log_n: Vec::new(),
        repeat: 3,
        json: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the option");
        match word.as_str() {
            "--bench" => {}
            "--log-n" => settings.log_n.push(value().parse().expect("a number")),
            "--repeat" => settings.repeat = value().parse::<usize>().expect("a number").max(1),
            "--json" => settings.json = Some(value()),
            _ => settings.filter = word,
        }
    }
    if settings.log_n.is_empty() {
        settings.log_n = vec![14, 22];
    }
    settings
}
