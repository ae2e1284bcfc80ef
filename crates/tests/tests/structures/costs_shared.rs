//! The costs on the cards of the structures for many ranges, asserted by counting.

use crate::common::costs::sizes;
use crate::common::monoids::{Affine, Largest, Tally, take_combines, take_inverses};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::Window;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::shared::{Reach, Shared, SharedWindow};
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::steps::{Step, take};

fn slide<M: Monoid, F: Shared<M>>(
    window: &mut SharedWindow<M, F>,
    reaches: &[Reach],
    at: usize,
    value: M::In,
) {
    window.insert(at as i64, Entry::Raw(value));
    window.slide(reaches);
    window.query_each(|_, _| ());
}

fn lengths(ranges: usize) -> Vec<Reach> {
    (1..=ranges).map(Reach::Entries).collect()
}

/// Inv: a combine and an inverse per slide and range, exactly, for all lengths. (The largest
/// window has fewer ranges: filling it takes a combine for each.)
#[test]
fn slick_deque_inv_costs_two_per_slide_and_range() {
    for log in sizes() {
        for ranges in [1, 2, 16, 128, 1024] {
            let n = 1_usize << log;
            if n * ranges > 1 << 23 {
                continue;
            }
            let lengths = (1..=ranges).map(|at| (n * at).div_ceil(ranges));
            let reaches: Vec<Reach> = lengths.map(Reach::Entries).collect();
            let mut window = SharedWindow::new(SlickDequeInv::new(Tally::<0>, ranges), ranges);
            for at in 0..n + 20 {
                take_combines();
                take_inverses();
                slide(&mut window, &reaches, at, 7);
                let spent = (take_combines(), take_inverses());
                let each = (ranges as u64, ranges as u64);
                assert!(at < n || spent == each, "{spent:?} for {ranges} of {n}");
            }
        }
    }
}

/// With all ranges queried at every slide, flat_fit takes a combine per range at most
/// (SlickDeque §4.1, max-multi-query).
#[test]
fn flat_fit_costs_one_per_slide_and_range() {
    for ranges in [1, 16, 1024] {
        let reaches = lengths(ranges);
        let mut window = SharedWindow::new(FlatFit::new(Affine::<0>), ranges);
        for at in 0..ranges + 100 {
            take_combines();
            slide(&mut window, &reaches, at, 7);
            let spent = take_combines();
            assert!(
                spent <= ranges as u64,
                "{spent} combines for {ranges} ranges"
            );
        }
    }
}

/// Non-Inv: fewer than two comparisons per slide, amortised, for all ranges together,
/// for any input, and n at worst: descending input fills the deque, and the next value
/// removes all of it.
#[test]
fn slick_deque_costs_less_than_two_per_slide() {
    for log in sizes() {
        let n = 1_i64 << log;
        for (order, period, sign) in [
            ("descending", i64::MAX, -1),
            ("ascending", i64::MAX, 1),
            ("a saw", n, 1),
            ("descending teeth", n, -1),
            ("short descending teeth", n / 3 + 1, -1),
        ] {
            let mut window = SharedWindow::new(SlickDeque::new(Largest), 3);
            let reaches = [n, n / 64 + 1, 1].map(|count| Reach::Entries(count as usize));
            let (mut total, mut worst) = (0, 0);
            let slides = 2 * n + 100;
            for at in 0..slides {
                take_combines();
                window.insert(at, Entry::Raw(sign * (at % period)));
                window.slide(&reaches);
                // It compares nothing, but searches the candidates.
                if at % (n / 8 + 1) == 0 {
                    window.query_each(|_, _| ());
                }
                let spent = take_combines();
                (total, worst) = (total + spent, worst.max(spent));
            }
            assert!(
                total < 2 * slides as u64,
                "{order}: {total} in {slides} slides"
            );
            assert!(worst <= n as u64, "{order}: {worst} at n = {n}");
            if order == "descending teeth" {
                assert_eq!(worst, n as u64, "the worst case is met");
            }
        }
    }
}

/// A query looks at O(log n) candidates per range, and at two per range of a monotonic run,
/// all of whose values are candidates.
#[test]
fn slick_deque_finds_a_range_in_log_n() {
    for log in sizes() {
        let n = 1_i64 << log;
        for ranges in [1, 2, 8, 64] {
            let lengths = (1..=ranges).map(|at| (n as usize * at).div_ceil(ranges));
            let reaches: Vec<Reach> = lengths.map(Reach::Entries).collect();
            for (order, period, bound) in [
                ("falling", i64::MAX, 2),
                ("runs of two", 2, 2 * log as u64 + 3),
                ("runs of seven", 7, 2 * log as u64 + 3),
            ] {
                let mut window = SharedWindow::new(SlickDeque::new(Largest), ranges);
                // Every other run stays above the next, so parts of all runs are candidates.
                let value = |at: i64| -(at / period * period) - at % period * (at / period % 2);
                (0..n).for_each(|at| window.insert(at, Entry::Raw(value(at))));
                window.slide(&reaches);
                take(Step::Visit);
                window.query_each(|_, _| ());
                let visits = take(Step::Visit);
                assert!(
                    visits <= bound * ranges as u64,
                    "{order}: {visits} candidates for {ranges} ranges of {n}"
                );
            }
        }
    }
}
