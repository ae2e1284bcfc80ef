//! The costs of a shared plan, asserted by counting: entries are folded into slices once for
//! all queries, and a final aggregator takes the combines of SlickDeque §4.1 per slice.

use crate::common::Random;
use crate::common::monoids::{Affine, Largest, Tally, take_combines};
use crate::suite::full_windows::{RANGES, SLIDES, all_ranges, in_full_windows};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::Window;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::planned::algorithm::Algorithm;
use slidewise_core::window::planned::queries::aggregator;
use slidewise_core::window::queries::final_aggregator::of_structure;
use slidewise_core::window::queries::plan::{Query, Unit, count_edges};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};
use slidewise_core::window::queries::{Planning, QueryWindow};

/// Inv: 2n per slice, exactly.
#[test]
fn slick_deque_inv_takes_two_per_slice_and_range() {
    let of = |monoid: &Tally<0>| of_structure(SlickDequeInv::new(monoid.clone(), 1), 1);
    in_full_windows(Tally::<0>, of, |slide, n, spent| {
        let within = slide as u64 - 1;
        // A range of one slice is empty before the next: nothing is subtracted from.
        let inverses = if n == 1 { spent.1.min(1) } else { n };
        assert_eq!(spent, (within + n, inverses), "slide {slide}, {n} ranges");
    });
}

/// Naive: n² / 2 − n / 2 per slice, exactly.
#[test]
fn recalculating_takes_half_the_square() {
    let of = |monoid: &Affine<0>| aggregator(Algorithm::Recalculate, monoid);
    in_full_windows(Affine::<0>, of, |slide, n, spent| {
        let within = slide as u64 - 1;
        assert_eq!(
            spent,
            (within + (n * n - n) / 2, 0),
            "slide {slide}, {n} ranges"
        );
    });
}

/// FlatFIT: n − 1 per slice.
#[test]
fn flat_fit_takes_one_per_slice_and_range() {
    let of = |monoid: &Affine<0>| aggregator(Algorithm::FlatFit, monoid);
    in_full_windows(Affine::<0>, of, |slide, n, (spent, _)| {
        let most = slide as u64 - 1 + n;
        assert!(spent <= most, "{spent} for slide {slide}, {n} ranges");
    });
}

/// Non-Inv: fewer than two comparisons per slice, amortised, for all ranges together.
#[test]
fn slick_deque_takes_less_than_two_per_slice() {
    for slide in SLIDES {
        for n in RANGES {
            for sign in [1, -1] {
                let of = of_structure(SlickDeque::new(Largest), 1);
                let mut window = all_ranges(Largest, of, slide, n);
                let slices = 3 * n + 100;
                take_combines();
                for at in 0..slices * slide {
                    window.insert(at, Entry::Raw(sign * (at % (n * slide))));
                }
                let within = slices * (slide - 1);
                let spent = take_combines() as i64 - within;
                assert!(spent < 2 * slices, "{spent} in {slices} slices");
            }
        }
    }
}

/// Queries whose windows begin at the same edges share their slices: many cost one.
#[test]
fn edges_in_common_are_cut_once() {
    let unit = Unit::Time;
    let timed = |range, slide| Query { unit, range, slide };
    // Per composite slide of 12: begins at multiples of 2, of 3, and of 4 less one.
    let queries = [timed(6, 2), timed(8, 4), timed(9, 3), timed(13, 4)];
    let (composite, counts) = count_edges(&queries, 0);
    assert_eq!((composite, counts[2]), (Some(12), Some(10)));
    let of = aggregator(Algorithm::FlatFit, &Affine::<0>);
    let mut window = QueryWindow::new(Affine::<0>, of, 0);
    let queries = queries.map(Some).to_vec();
    window.start(Schedule::new(ScheduleOptions::default(), queries));
    for time in 0..120 {
        window.insert(time, Entry::Raw(1));
    }
    // The longest range, 13, has the edges of one composite slide and one more entry.
    assert!(
        (10..=12).contains(&window.slice_count()),
        "{}",
        window.slice_count()
    );
}

/// Between edges, an entry takes one combine, however many queries there are.
#[test]
fn an_entry_takes_one_combine() {
    let queries = (1..=64).map(|turn| {
        Some(Query {
            unit: Unit::Time,
            range: 1000 * turn,
            slide: 1000,
        })
    });
    for algorithm in [Algorithm::FlatFit, Algorithm::Fiba] {
        let of = aggregator(algorithm, &Affine::<0>);
        let mut window = QueryWindow::new(Affine::<0>, of, 0);
        window.start(Schedule::new(
            ScheduleOptions::default(),
            queries.clone().collect(),
        ));
        for time in 0..70_000 {
            window.insert(time, Entry::Raw(1));
        }
        take_combines();
        for time in 70_002..70_900 {
            window.insert(time, Entry::Raw(1));
        }
        let spent = take_combines();
        assert!(window.take_due().len() > 64);
        // Without the answers that fall due with the first of them.
        assert!(spent < 898 + 64 * 16, "{spent} by {algorithm:?}");
    }
}

/// The rest of a slice after an eviction is folded once, not by every query and each time.
#[test]
fn the_rest_of_a_slice_is_folded_once() {
    const SLIDE: i64 = 10_000;
    let queries = (1..=4).map(|slides| {
        Some(Query {
            unit: Unit::Time,
            range: slides * SLIDE,
            slide: SLIDE,
        })
    });
    for open in [false, true] {
        let of = aggregator(Algorithm::FlatFit, &Affine::<0>);
        let mut window = QueryWindow::new(Affine::<0>, of, 0);
        window.start(Schedule::new(
            ScheduleOptions::default(),
            queries.clone().collect(),
        ));
        let len = if open { SLIDE - 10 } else { SLIDE + 10 };
        for time in 1..=len {
            window.insert(time, Entry::Raw(1));
        }
        take_combines();
        for turn in 0..100 {
            window.evict();
            window.query_each(|_, _| ());
            let most = if turn == 0 { SLIDE as u64 + 40 } else { 16 };
            let spent = take_combines();
            assert!(spent <= most, "{spent} in turn {turn}, open: {open}");
        }
        window.check().unwrap();
    }
}

/// The combines per entry where slices of 100 ticks are kept, of entries up to `late` behind.
fn joins<M: Monoid<In = i64>>(monoid: M, late: i64) -> f64 {
    const ENTRIES: i64 = 30_000;
    let terms = ScheduleOptions {
        late: Some(late),
        slices: true,
        ..ScheduleOptions::default()
    };
    let query = Query {
        unit: Unit::Time,
        range: 1000,
        slide: 100,
    };
    let of = aggregator(Algorithm::FlatFit, &monoid);
    let mut window = QueryWindow::new(monoid, of, 1);
    window.start(Schedule::new(terms, vec![Some(query)]));
    let mut random = Random(7);
    take_combines();
    for time in 0..ENTRIES {
        let behind = random.below(late as u64 + 1) as i64;
        window.insert(time - behind, Entry::Raw(1));
    }
    assert!(window.slice_count() <= 10);
    assert!(window.len() as i64 <= 11 + (late + 100) / 100 + 1);
    take_combines() as f64 / ENTRIES as f64
}

/// Slices that are kept in place of entries: one combine with the slice, and one with the fold of
/// those that are open. A late entry has the leaf folded anew where all are in one.
#[test]
fn an_entry_joins_its_slice_for_few_combines() {
    for spent in [joins(Affine::<0>, 0), joins(Affine::<16>, 0)] {
        assert!(spent < 2.5, "{spent} in order");
    }
    for (slices, most) in [(8, 10.0), (30, 32.0), (80, 10.0), (800, 16.0)] {
        let late = 100 * slices;
        for spent in [joins(Tally::<0>, late), joins(Tally::<16>, late)] {
            assert!(spent < most, "{spent} of entries {slices} slices late");
        }
    }
}
