//! The costs promised on the cards of the core's structures for entries in order, asserted
//! by counting combines and inverses, on all paths of `drive.rs`: sizes from 2⁰ to 2¹³, and
//! 2²⁰ in `make test-long`. Those of moves and copies as well.

use crate::common::monoids::{Affine, take_combines, take_inverses};
use crate::suite::drive::{Do, drive, on_all_paths, queue, window};
use crate::suite::fifo_costs::{BLOCK, amortised, drained, stays_constant, worst_case};
use crate::suite::heavy::{Nothing, Own, Something, sum};
use slidewise_core::monoid::Entry;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::{Ties, Window};

#[test]
fn two_stacks_lite_takes_three_amortised() {
    amortised(|| TwoStacksLite::new(Affine::<0>));
}

#[test]
fn daba_lite_takes_constant_combines_in_the_worst_case() {
    worst_case(|| DabaLite::new(Affine::<0>));
}

#[test]
fn subtracting_takes_one_of_each() {
    on_all_paths(
        [None; 3],
        |_| queue(SubtractOnEvict::new(Affine::<0>)),
        |counts| {
            counts.at_worst([1, 0, 0]);
        },
    );
    take_inverses();
    let mut step = queue(SubtractOnEvict::new(Affine::<0>));
    drive(1 << 15, |what| {
        step(what);
        let most = u64::from(what == Do::Evict);
        assert!(take_inverses() <= most, "{what:?}");
    });
}

/// Under [`Ties::Combine`] an insert of the latest time takes one combine.
#[test]
fn equal_times_cost_one_combine() {
    let mut window = InOrder::new(DabaLite::new(Affine::<0>), Ties::Combine);
    for round in 0..1000 {
        window.insert(7, Entry::Raw(round));
        assert!(take_combines() <= 1);
    }
}

#[test]
fn memory_follows_the_entries() {
    drained(TwoStacksLite::new(Affine::<0>));
    drained(DabaLite::new(Affine::<0>));
    drained(SubtractOnEvict::new(Affine::<0>));
}

/// Worst case O(1) in moves as in combines: the same for all n. Up to 127 entries are moved
/// once a window has shrunk to them, to give back what they no longer need; an entry is a
/// partial. Three more are what the operation itself copies.
fn lite<O: Own>() {
    let make = || queue(DabaLite::new(sum::<O>()));
    stays_constant(make, 2 * BLOCK + 2, [3, 2, 1]);
}

/// In a window the queue of raw values moves like that of the partials. The queue of
/// times moves in step with the values, and cannot be counted.
fn windowed<O: Own>() {
    for (ties, query) in [(Ties::Keep, 1), (Ties::Combine, 2)] {
        let make = || window(InOrder::new(DabaLite::new(sum::<O>()), ties));
        stays_constant(make, 4 * BLOCK + 2, [3, 2, query]);
    }
}

#[test]
fn daba_lite_copies_a_constant_number() {
    lite::<Nothing>();
    lite::<Something>();
}

#[test]
fn a_window_copies_a_constant_number() {
    windowed::<Nothing>();
    windowed::<Something>();
}
