//! Windows with queries over final aggregators of the core.

use crate::common::monoids::{Affine, FirstTop, Tally};
use crate::common::owned::as_objects;
use crate::suite::queries::{compare, final_aggregators};
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::planned::algorithm::Algorithm;
use slidewise_core::window::planned::queries::aggregator;
use slidewise_core::window::queries::final_aggregator::of_structure;

final_aggregators! {
    fiba: Algorithm::Fiba;
    flat_fit: Algorithm::FlatFit;
    recalculate: Algorithm::Recalculate;
}

#[test]
fn fiba_of_small_windows() {
    compare(Affine::<16>, |monoid| aggregator(Algorithm::Fiba, monoid));
}

#[test]
fn slick_deque_inv() {
    compare(Affine::<0>, |monoid| {
        of_structure(SlickDequeInv::new(monoid.clone(), 1), 1)
    });
    compare(Tally::<0>, |monoid| {
        of_structure(SlickDequeInv::new(monoid.clone(), 1), 1)
    });
}

#[test]
fn slick_deque() {
    compare(FirstTop, |monoid| {
        of_structure(SlickDeque::new(monoid.clone()), 1)
    });
    compare(as_objects(FirstTop), |monoid| {
        of_structure(SlickDeque::new(monoid.clone()), 1)
    });
}
