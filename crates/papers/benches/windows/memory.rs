//! Bytes per entry of one large window, and bytes of each of many small ones.

use std::hint::black_box;
use std::path::Path;

use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::{Ties, Window};

use crate::report::Report;
use crate::streams::{arrivals, filled};
use crate::{Tree, Value};

/// The number of small windows: enough that the allocator's own pages do not count.
const MANY: usize = 1 << 16;

const STATUS: &str = "/proc/self/status";

pub fn cases<M: Monoid>(report: &mut Report, name: &str, monoid: &M, value: impl Value<M>) {
    let (n, rss) = (report.settings.n, report.settings.rss);
    let how = if rss { "resident" } else { "counted" };
    for slides in [0, n] {
        let state = if slides == 0 { "fill" } else { "n slides" };
        let case = format!("{name} {how} after {state} in order");
        report.bytes(case, "bytes/entry", || {
            in_order(monoid, value, n, slides, rss) / n as f64
        });
    }
    for d in [1 << 10, 1 << 16] {
        let case = format!("{name} {how} after random lag d={d}");
        report.bytes(case, "bytes/entry", || {
            random_lag(monoid, value, n, d, rss) / n as f64
        });
    }
    for entries in [1, 10] {
        let case = format!("{name} {how} window of {entries}");
        report.bytes(case, "bytes/window", || {
            small(monoid, value, entries, rss) / MANY as f64
        });
    }
}

fn in_order<M: Monoid>(
    monoid: &M,
    value: impl Value<M>,
    n: usize,
    slides: usize,
    rss: bool,
) -> f64 {
    let before = resident(rss);
    let mut window = filled(monoid, value, n, 0);
    for item in n..n + slides {
        window.evict();
        window.insert(item as i64, Entry::Raw(value(item as u64 % 101)));
    }
    held(before, std::slice::from_ref(&window), rss)
}

/// After a fill and two turnovers, all of them out of order.
fn random_lag<M: Monoid>(monoid: &M, value: impl Value<M>, n: usize, d: usize, rss: bool) -> f64 {
    let times = arrivals(3 * n, d);
    let before = resident(rss);
    let mut window = Tree::new(monoid.clone(), Ties::Combine);
    for (arrived, &time) in times.iter().enumerate() {
        if arrived >= n {
            window.evict();
        }
        window.insert(time, Entry::Raw(value(time as u64 % 101)));
    }
    held(before, std::slice::from_ref(&window), rss)
}

fn small<M: Monoid>(monoid: &M, value: impl Value<M>, entries: usize, rss: bool) -> f64 {
    let before = resident(rss);
    let mut windows: Vec<Tree<M>> = Vec::with_capacity(MANY);
    for _ in 0..MANY {
        let mut window = Tree::new(monoid.clone(), Ties::Combine);
        for time in 0..entries {
            window.insert(time as i64, Entry::Raw(value(time as u64)));
        }
        windows.push(window);
    }
    held(before, &windows, rss)
}

fn held<M: Monoid>(before: f64, windows: &[Tree<M>], rss: bool) -> f64 {
    let bytes = if rss {
        resident(rss) - before
    } else {
        windows.iter().map(|window| window.bytes() as f64).sum()
    };
    black_box(windows);
    bytes
}

/// The resident memory of the process, in bytes; 0 if it is not measured.
fn resident(wanted: bool) -> f64 {
    if !wanted {
        return 0.0;
    }
    let text = std::fs::read_to_string(STATUS).expect("main looked that it is there");
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: f64 = words.and_then(|word| word.parse().ok()).expect("a number");
    kilobytes * 1024.0
}

/// Whether the system says what is resident.
pub fn can_see_resident() -> bool {
    Path::new(STATUS).exists()
}
