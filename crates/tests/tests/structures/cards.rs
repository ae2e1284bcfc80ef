//! The windows of the rows of the table of costs.

use crate::common::monoids::{Affine, Largest, Total};
use crate::suite::costs_cards::Use;
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::costs::{self, CostCard};
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::recalculate::Recalculate;

pub use slidewise_core::window::costs::TABLE;
pub use slidewise_core::window::planned::algorithm::ALGORITHMS;

/// Passes on the window of a row, for about n entries.
pub fn window_of<M: Monoid<In: From<i64>>>(
    row: &CostCard,
    maps: M,
    ties: Ties,
    _n: usize,
    user: &mut impl Use,
) {
    match (row.algorithm, row.variant) {
        ("fiba", "") => user.take(Fiba::<_, 64, 32>::new(maps, ties)),
        ("fiba", _) => user.take(Fiba::<_, 16, 8>::new(maps, ties)),
        ("daba_lite", _) => user.queue(DabaLite::new(maps), ties),
        ("two_stacks_lite", _) => user.queue(TwoStacksLite::new(maps), ties),
        ("flat_fit", _) => user.queue(FlatFit::new(maps), ties),
        ("recalculate", _) => user.take(Recalculate::new(maps, ties)),
        other => panic!("no window of {other:?}"),
    }
}

/// The same, over a monoid that the structure of the row can use.
pub fn lawful(row: &CostCard, ties: Ties, n: usize, user: &mut impl Use) {
    match (row.algorithm, row.variant) {
        ("subtract_on_evict", _) => user.queue(SubtractOnEvict::new(Total), ties),
        ("slick_deque", "Inv") => user.queue(SlickDequeInv::new(Total, 1), ties),
        ("slick_deque", _) => user.queue(SlickDeque::new(Largest), ties),
        _ => window_of(row, Affine::<0>, ties, n, user),
    }
}

#[test]
fn formulas_are_shown_as_they_are_computed() {
    let shown = [
        (costs::n(1.0, 0.0), "n", Some(9.0)),
        (costs::n(1.0, -2.0), "n − 2", Some(7.0)),
        (costs::up(3.0, -2.0), "3 ⌈log₂ n⌉ − 2", Some(10.0)),
        (costs::one(7.0), "7", Some(7.0)),
        (costs::LOG_N, "O(log n)", None),
        (costs::n(1.0 / 3.0, 0.0), "n / 3", Some(3.0)),
    ];
    for (amount, text, of_nine) in shown {
        assert_eq!((amount.to_string().as_str(), amount.at(9)), (text, of_nine));
    }
}
