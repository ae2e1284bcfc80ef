//! The costs promised on the card of `flat_fit`, asserted by counting combines.

use crate::common::Random;
use crate::common::monoids::Affine;
use crate::suite::drive::{combines, on_all_paths, queue};
use crate::suite::fifo_costs::{filled, value};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::flat_fit::FlatFit;

/// Three per slide, and per query with any operations between them; the window reset is paid
/// by the queries before it.
#[test]
fn flat_fit_slides_for_three() {
    let pays = [Some(0), Some(0), Some(3)];
    on_all_paths(
        pays,
        |_| queue(FlatFit::new(Affine::<0>)),
        |counts| {
            counts.at_worst([0, 0, counts.most - 1]);
            assert!(counts.debt <= 0, "{counts:?}");
        },
    );
}

/// Every range, every slide: each answer lies one combine from the one before.
#[test]
fn flat_fit_answers_all_ranges_for_one_each() {
    for n in [1_u64, 2, 16, 256] {
        let mut fifo = FlatFit::new(Affine::<0>);
        for item in 0..n {
            fifo.insert(value(item));
        }
        fifo.query();
        for item in 0..300 {
            fifo.evict();
            fifo.insert(value(item));
            let spent = combines(|| {
                for count in 1..=n {
                    fifo.query_last(count as usize);
                }
            });
            assert!(spent <= n, "{spent} for all ranges of {n}");
        }
    }
}

/// Few ranges, every slide: they share less than all do, and each still costs little.
#[test]
fn flat_fit_answers_few_ranges_for_a_few_each() {
    for (ranges, most) in [
        (&[64][..], 3.0),
        (&[64, 32], 4.0),
        (&[64, 32, 16, 8, 4, 2, 1], 7.0),
        (&[182, 132], 9.0),
        (&[145, 107, 65], 12.0),
    ] {
        let (mut fifo, slides) = (FlatFit::new(Affine::<0>), 20 * ranges[0] as u64);
        (0..ranges[0] as u64).for_each(|item| fifo.insert(value(item)));
        let mut spent = 0;
        for item in 0..slides {
            fifo.evict();
            fifo.insert(value(item));
            spent += combines(|| {
                for count in ranges {
                    fifo.query_last(*count);
                }
            });
        }
        let each = spent as f64 / slides as f64;
        assert!(each <= most, "{each} per slide for {ranges:?}");
    }
}

/// Any lengths of a large window, every slide: the 2 to 4 of the card, far from the log that
/// path compression allows.
#[test]
fn flat_fit_answers_any_ranges_for_four_each() {
    let mut random = Random(6);
    for (log, ranges) in [(10, 2), (10, 16), (15, 4), (15, 64), (17, 8), (17, 256)] {
        let n = 1_u64 << log;
        let counts: Vec<usize> = (0..ranges).map(|_| 1 + random.below(n) as usize).collect();
        let mut fifo = filled(FlatFit::new(Affine::<0>), n);
        let slides = 2 * n.max(1 << 12) / ranges.min(8);
        let spent = combines(|| {
            for item in 0..slides {
                fifo.evict();
                fifo.insert(value(item));
                for count in &counts {
                    fifo.query_last(*count);
                }
            }
        });
        let each = (spent as f64 - n as f64) / (slides * ranges) as f64;
        assert!(each <= 4.0, "{each} for each of {ranges} in {n}");
    }
}
