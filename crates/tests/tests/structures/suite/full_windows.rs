//! What a slice costs in full windows with queries.

use crate::common::monoids::{take_combines, take_inverses};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::Window;
use slidewise_core::window::queries::final_aggregator::FinalAggregator;
use slidewise_core::window::queries::plan::{Query, Unit};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};
use slidewise_core::window::queries::{Planning, QueryWindow};

pub const SLIDES: [i64; 3] = [1, 4, 25];
pub const RANGES: [i64; 4] = [1, 2, 16, 128];

/// Queries of 1 to n slices each, answered after every slice: max-multi-query.
pub fn all_ranges<M: Monoid>(
    monoid: M,
    aggregator: Box<dyn FinalAggregator<M>>,
    slide: i64,
    n: i64,
) -> QueryWindow<M> {
    let query = |slices| Query {
        unit: Unit::Entries,
        range: slices * slide,
        slide,
    };
    let queries = (1..=n).map(|slices| Some(query(slices))).collect();
    let mut window = QueryWindow::new(monoid, aggregator, 0);
    window.start(Schedule::new(ScheduleOptions::default(), queries));
    window
}

/// Combines and inverses for a slice and its answers.
fn slice<M: Monoid<In = i64>>(window: &mut QueryWindow<M>, slide: i64, at: i64) -> (u64, u64) {
    take_combines();
    take_inverses();
    for entry in at * slide..(at + 1) * slide {
        window.insert(entry, Entry::Raw(7));
    }
    let answers = window.take_due().len();
    assert_eq!(answers, window.schedule().live().count());
    (take_combines(), take_inverses())
}

/// Each case calls `check` with the slide, n, and what a slice takes of a full window.
pub fn in_full_windows<M: Monoid<In = i64>>(
    monoid: M,
    aggregator: impl Fn(&M) -> Box<dyn FinalAggregator<M>>,
    check: impl Fn(i64, u64, (u64, u64)),
) {
    for slide in SLIDES {
        for n in RANGES {
            let of = aggregator(&monoid);
            let mut window = all_ranges(monoid.clone(), of, slide, n);
            for at in 0..2 * n + 20 {
                let spent = slice(&mut window, slide, at);
                if at >= n {
                    check(slide, n as u64, spent);
                }
            }
        }
    }
}
