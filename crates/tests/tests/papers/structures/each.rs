//! The structures of the papers in lists, for tests that all of them must pass. They need
//! only associativity.

use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::window::Ties;
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

use crate::suite::each::Test;

pub fn trees<M: Monoid>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    let m = || monoid.clone();
    test.window("btree", BTree::new(m(), ties, 2));
    for bulk in [false, true] {
        let options = Options {
            bulk,
            free_list: true,
        };
        let window = BTree::with_fingers(m(), ties, 2, options);
        test.window("fiba_published", window);
    }
}

/// All others.
pub fn associative<M: Monoid>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    let m = || monoid.clone();
    for caching in [true, false] {
        test.queue("two_stacks", TwoStacks::new(m(), caching), ties);
        test.queue("aba", Aba::new(m(), caching), ties);
        test.queue("daba", Daba::new(m(), caching), ties);
    }
    test.queue("daba_chain", DabaChain::new(m(), 1), ties);
    test.queue("amta", Amta::new(m()), ties);
    test.queue("b_int", BInt::new(m()), ties);
    test.queue("flat_fat", FlatFatQueue::new(m(), 8), ties);
    test.window("reactive", Reactive::new(m(), ties));
    test.window("daba_late", DabaLate::new(m(), ties, 5));
    test.window("daba_late, no bound", DabaLate::new(m(), ties, i64::MAX));
}

pub fn invertible<M: Invertible>(_: &M, _: Ties, _: &mut impl Test<M>) {}

pub fn selective<M: Selective>(_: &M, _: Ties, _: &mut impl Test<M>) {}
