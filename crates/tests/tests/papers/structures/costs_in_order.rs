//! The costs promised on the cards of the first-in first-out structures, asserted by
//! counting combines and inverses, on all paths of `drive.rs`: sizes from 2⁰ to 2¹³, and
//! 2²⁰ in `make test-long`.

use crate::common::monoids::{Affine, take_combines};
use crate::suite::drive::{on_all_paths, queue, window};
use crate::suite::fifo_costs::{amortised, drained, worst_case};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::two_stacks::TwoStacks;

#[test]
fn two_stacks_and_aba_take_three_amortised() {
    amortised(|| TwoStacks::new(Affine::<0>, true));
    amortised(|| TwoStacks::new(Affine::<0>, false));
    amortised(|| Aba::new(Affine::<0>, true));
    amortised(|| Aba::new(Affine::<0>, false));
}

/// To 2²² in `costs_moves.rs`. Without caching figure 14 takes one more per fixup.
#[test]
fn daba_takes_constant_combines_in_the_worst_case() {
    worst_case(|| Daba::new(Affine::<0>, true));
    on_all_paths(
        [None; 3],
        |_| queue(Daba::new(Affine::<0>, false)),
        |counts| {
            counts.at_worst([4, 3, 1]);
        },
    );
}

#[test]
fn a_kept_answer_costs_nothing() {
    fn query_again<F: Fifo<Affine<0>>>(mut fifo: F, again: u64) {
        for value in 0..100 {
            fifo.insert(Affine::<0>.lift(&value));
        }
        fifo.evict();
        fifo.query();
        take_combines();
        fifo.query();
        assert_eq!(take_combines(), again);
    }
    query_again(TwoStacks::new(Affine::<0>, true), 0);
    query_again(Aba::new(Affine::<0>, true), 0);
    query_again(Daba::new(Affine::<0>, true), 0);
    query_again(Daba::new(Affine::<0>, false), 1);
}

/// The window around a structure adds nothing under [`Ties::Keep`], and to a query one
/// combine with the open entry under [`Ties::Combine`].
#[test]
fn the_window_adds_one_combine_per_query_at_most() {
    for (ties, bound) in [(Ties::Keep, [3, 2, 1]), (Ties::Combine, [3, 2, 2])] {
        let make = |_| window(InOrder::new(Daba::new(Affine::<0>, true), ties));
        on_all_paths([None; 3], make, |counts| counts.at_worst(bound));
    }
}

#[test]
fn memory_follows_the_entries() {
    drained(TwoStacks::new(Affine::<0>, true));
    drained(Aba::new(Affine::<0>, true));
    drained(Daba::new(Affine::<0>, true));
}
