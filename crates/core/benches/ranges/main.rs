//! Many ranges over one stream: slides per second and combines per slide, by algorithm and
//! number of ranges. Prints tables; `--json FILE` records them.
//!
//! `cargo bench -p slidewise-core --bench ranges -- [FILTER] [--repeat 3] [--json FILE]`
//!
//! A slide is an evict, an insert, and the answers of all ranges. `every` has the ranges 1
//! to n over a window of n (SlickDeque's max-multi-query, figures 12 and 13); `spread` has
//! q ranges spread evenly over a window of 2^16. Time is thread CPU time.

mod counted;

use std::hint::black_box;

use cpu_time::ThreadTime;
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, SumI64};
use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::window::amta::Amta;
use slidewise_core::window::b_int::BInt;
use slidewise_core::window::daba_chain::DabaChain;
use slidewise_core::window::flat_fat::FlatFatQueue;
use slidewise_core::window::flat_fit::FlatFit;
use slidewise_core::window::recalculate::RecalculateQueue;
use slidewise_core::window::shared::Shared;
use slidewise_core::window::slick_deque::SlickDeque;
use slidewise_core::window::slick_deque_inv::SlickDequeInv;

use counted::{Counted, take_combines};

const QUERIES: [usize; 6] = [1, 4, 16, 64, 256, 1024];
const SPREAD: usize = 1 << 16;
/// About so many answers are given in a run.
const ANSWERS: usize = 1 << 22;

struct Settings {
    filter: String,
    repeat: usize,
    json: Option<String>,
}

fn settings() -> Settings {
    let mut settings = Settings {
        filter: String::new(),
        repeat: 3,
        json: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the option");
        match word.as_str() {
            "--bench" => {}
            "--repeat" => settings.repeat = value().parse().expect("a number"),
            "--json" => settings.json = Some(value()),
            _ => settings.filter = word,
        }
    }
    settings
}

fn main() {
    let mut table = Table {
        settings: settings(),
        lines: Vec::new(),
    };
    let max = Extreme {
        dtype: DType::I64,
        min: false,
    };
    println!(
        "{:<36} {:>6} {:>12} {:>12}",
        "case", "q", "slides/s", "combines"
    );
    for every in [true, false] {
        for q in QUERIES {
            let lengths = lengths(every, q);
            let kind = if every { "every" } else { "spread" };
            let mut case = Case {
                table: &mut table,
                name: format!("{kind} sum i64"),
                lengths: &lengths,
            };
            case.inverting(SumI64);
            case.general(SumI64);
            case.name = format!("{kind} max i64");
            case.selecting(max);
            case.general(max);
        }
    }
    table.write();
}

/// The longest first.
fn lengths(every: bool, q: usize) -> Vec<usize> {
    let longest = if every { q } else { SPREAD };
    (1..=q).rev().map(|at| longest / q * at).collect()
}

struct Case<'a> {
    table: &'a mut Table,
    name: String,
    lengths: &'a [usize],
}

impl Case<'_> {
    fn inverting<M: Invertible<In = i64>>(&mut self, monoid: M) {
        let q = self.lengths.len();
        self.run(
            "slick_deque",
            &monoid,
            |monoid| SlickDequeInv::new(monoid, q),
            |monoid| SlickDequeInv::new(monoid, q),
        );
    }

    fn selecting<M: Selective<In = i64>>(&mut self, monoid: M) {
        self.run("slick_deque", &monoid, SlickDeque::new, SlickDeque::new);
    }

    fn general<M: Monoid<In = i64>>(&mut self, monoid: M) {
        let (n, q) = (self.lengths[0], self.lengths.len());
        self.run("flat_fit", &monoid, FlatFit::new, FlatFit::new);
        self.run(
            "flat_fat",
            &monoid,
            |monoid| FlatFatQueue::new(monoid, n),
            |monoid| FlatFatQueue::new(monoid, n),
        );
        self.run("b_int", &monoid, BInt::new, BInt::new);
        self.run("amta", &monoid, Amta::new, Amta::new);
        self.run(
            "daba_chain",
            &monoid,
            |monoid| DabaChain::new(monoid, q),
            |monoid| DabaChain::new(monoid, q),
        );
        if n < SPREAD {
            self.run(
                "recalculate",
                &monoid,
                RecalculateQueue::new,
                RecalculateQueue::new,
            );
        }
    }

    /// Timed with the monoid itself, and counted with one that counts.
    fn run<M, F, G>(
        &mut self,
        what: &str,
        monoid: &M,
        make: impl Fn(M) -> F,
        counting: impl Fn(Counted<M>) -> G,
    ) where
        M: Monoid<In = i64>,
        F: Shared<M>,
        G: Shared<Counted<M>>,
    {
        let name = format!("{} {what}", self.name);
        if !name.contains(&self.table.settings.filter) {
            return;
        }
        let slides = (ANSWERS / self.lengths.len()).min(1 << 20);
        let mut rates: Vec<f64> = (0..self.table.settings.repeat)
            .map(|_| slide(make(monoid.clone()), self.lengths, slides))
            .collect();
        rates.sort_by(f64::total_cmp);
        let few = slides.min(1 << 13);
        slide(counting(Counted(monoid.clone())), self.lengths, few);
        let combines = take_combines() as f64 / few as f64;
        self.table.line(name, self.lengths.len(), rates, combines);
    }
}

/// Slides per second, once the window is full.
fn slide<M, F>(mut fifo: F, lengths: &[usize], slides: usize) -> f64
where
    M: Monoid<In = i64>,
    F: Shared<M>,
{
    let monoid = fifo.monoid().clone();
    let mut state = 1_u64;
    let mut value = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        monoid.lift(&((state >> 40) as i64))
    };
    for _ in 0..lengths[0] {
        fifo.insert(value());
    }
    let mut step = |fifo: &mut F| {
        fifo.evict();
        fifo.insert(value());
        fifo.slide(lengths);
        fifo.answers(lengths, |_, answer| {
            black_box(answer);
        });
    };
    fifo.slide(lengths);
    for _ in 0..slides / 8 {
        step(&mut fifo);
    }
    take_combines();
    let start = ThreadTime::now();
    for _ in 0..slides {
        step(&mut fifo);
    }
    slides as f64 / start.elapsed().as_secs_f64()
}

struct Line {
    name: String,
    q: usize,
    rates: Vec<f64>,
    combines: f64,
}

struct Table {
    settings: Settings,
    lines: Vec<Line>,
}

impl Table {
    fn line(&mut self, name: String, q: usize, rates: Vec<f64>, combines: f64) {
        let median = rates[rates.len() / 2];
        println!("{name:<36} {q:>6} {median:>12.0} {combines:>12.2}");
        self.lines.push(Line {
            name,
            q,
            rates,
            combines,
        });
    }

    fn write(&self) {
        let Some(path) = &self.settings.json else {
            return;
        };
        let lines = self.lines.iter().map(|line| {
            let Line {
                name,
                q,
                rates,
                combines,
            } = line;
            format!(
                r#"  {{"case": "{name}", "ranges": {q}, "slides/s": {rates:.0?}, "combines": {combines:.2}}}"#
            )
        });
        let text = format!("[\n{}\n]\n", lines.collect::<Vec<_>>().join(",\n"));
        std::fs::write(path, text).expect("the record can be written");
    }
}
