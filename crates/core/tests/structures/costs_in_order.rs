//! The costs promised on the cards of the first-in first-out structures, asserted by
//! counting combines and inverses, on all paths of `drive.rs`: sizes from 2⁰ to 2¹³, and
//! 2²⁰ in `make test-long`.

use crate::common::monoids::{Affine, take_combines, take_inverses};
use crate::drive::{Do, drive, on_all_paths, queue, window};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::aba::Aba;
use slidewise_core::window::fifo::daba::Daba;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks::TwoStacks;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::{Ties, Window};

/// An insert pays two combines in advance, and that is all there ever are; the query is one
/// more.
fn amortised<F: Fifo<Affine<0>>>(make: impl Fn() -> F) {
    let pays = [Some(2), Some(0), None];
    on_all_paths(
        pays,
        |_| queue(make()),
        |counts| {
            counts.at_worst([1, counts.most - 1, 1]);
            assert!(counts.debt <= 0, "{counts:?}");
        },
    );
}

#[test]
fn two_stacks_and_aba_take_three_amortised() {
    amortised(|| TwoStacks::new(Affine::<0>, true));
    amortised(|| TwoStacks::new(Affine::<0>, false));
    amortised(|| TwoStacksLite::new(Affine::<0>));
    amortised(|| Aba::new(Affine::<0>, true));
    amortised(|| Aba::new(Affine::<0>, false));
}

/// DABA, theorem 9: with caching at most 1 per query, 3 per insert and 2 per evict, and 2
/// and 1 on average. The average is over what lies between two flips: while l_L and l_R
/// shrink, which are half of the window each, it is one more per operation.
fn worst_case<F: Fifo<Affine<0>>>(make: impl Fn() -> F) {
    let pays = [Some(2), Some(1), None];
    on_all_paths(
        pays,
        |_| queue(make()),
        |counts| {
            counts.at_worst([3, 2, 1]);
            assert!(counts.debt <= counts.most as i64 / 2, "{counts:?}");
        },
    );
}

/// To 2²² in `costs_moves.rs`. Without caching figure 14 takes one more per fixup.
#[test]
fn daba_takes_constant_combines_in_the_worst_case() {
    worst_case(|| Daba::new(Affine::<0>, true));
    worst_case(|| DabaLite::new(Affine::<0>));
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

/// The window around a structure adds nothing under [`Ties::Keep`], and to a query one
/// combine with the open entry under [`Ties::Combine`], where equal times cost one.
#[test]
fn the_window_adds_one_combine_per_query_at_most() {
    for (ties, bound) in [(Ties::Keep, [3, 2, 1]), (Ties::Combine, [3, 2, 2])] {
        let make = |_| window(InOrder::new(Daba::new(Affine::<0>, true), ties));
        on_all_paths([None; 3], make, |counts| counts.at_worst(bound));
    }
    let mut window = InOrder::new(DabaLite::new(Affine::<0>), Ties::Combine);
    for round in 0..1000 {
        window.insert(7, Entry::Raw(round));
        assert!(take_combines() <= 1);
    }
}

#[test]
fn memory_follows_the_entries() {
    fn drained<F: Fifo<Affine<0>>>(mut fifo: F) {
        for left in [1000, 50, 0] {
            while fifo.len() < 200_000 {
                fifo.insert(Affine::<0>.lift(&3));
            }
            assert!(fifo.bytes() > 4_000_000);
            while fifo.len() > left {
                fifo.evict();
            }
            for _ in 0..3 * left {
                fifo.insert(Affine::<0>.lift(&3));
                fifo.evict();
            }
            assert!(
                fifo.bytes() < 600_000,
                "{left} left: {} bytes",
                fifo.bytes()
            );
        }
    }
    drained(TwoStacks::new(Affine::<0>, true));
    drained(TwoStacksLite::new(Affine::<0>));
    drained(Aba::new(Affine::<0>, true));
    drained(Daba::new(Affine::<0>, true));
    drained(DabaLite::new(Affine::<0>));
    drained(SubtractOnEvict::new(Affine::<0>));
}
