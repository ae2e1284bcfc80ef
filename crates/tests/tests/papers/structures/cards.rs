//! The windows of the rows of the table of costs.

use crate::common::monoids::Affine;
use crate::suite::costs_cards::Use;
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::costs::CostCard;
use slidewise_papers::btree::{BTree, Options};
use slidewise_papers::daba_late::DabaLate;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::daba_chain::DabaChain;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;
use slidewise_papers::fifo::two_stacks::TwoStacks;
use slidewise_papers::reactive::Reactive;

pub use slidewise_papers::algorithm::ALGORITHMS;
pub use slidewise_papers::costs::TABLE;

/// Passes on the window of a row, for about n entries.
pub fn window_of<M: Monoid<In: From<i64>>>(
    row: &CostCard,
    maps: M,
    ties: Ties,
    n: usize,
    user: &mut impl Use,
) {
    let caching = row.variant != "caching=False";
    let arity = match row.variant.strip_prefix("arity=") {
        Some(arity) => arity.parse().expect("a number"),
        None => 4,
    };
    match row.algorithm {
        "amta" => user.queue(Amta::new(maps), ties),
        "flat_fat" => user.queue(FlatFatQueue::new(maps, 1), ties),
        "reactive" => user.take(Reactive::new(maps, ties)),
        "b_int" => user.queue(BInt::new(maps), ties),
        "daba_chain" => user.queue(DabaChain::new(maps, 1), ties),
        "daba_late" => user.take(DabaLate::new(maps, ties, n as i64 / 4)),
        "btree" => user.take(BTree::new(maps, ties, arity)),
        "fiba_published" => {
            user.take(BTree::with_fingers(maps, ties, arity, Options::default()));
        }
        "daba" => user.queue(Daba::new(maps, caching), ties),
        "aba" => user.queue(Aba::new(maps, caching), ties),
        "two_stacks" => user.queue(TwoStacks::new(maps, caching), ties),
        other => panic!("no window of {other}"),
    }
}

/// The same; these structures need no law.
pub fn lawful(row: &CostCard, ties: Ties, n: usize, user: &mut impl Use) {
    window_of(row, Affine::<0>, ties, n, user);
}
