//! The structures in one list, for tests that all of them must pass.

use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::window::daba_late::DabaLate;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::aba::Aba;
use slidewise_core::window::fifo::amta::Amta;
use slidewise_core::window::fifo::b_int::BInt;
use slidewise_core::window::fifo::daba::Daba;
use slidewise_core::window::fifo::daba_chain::DabaChain;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fat::FlatFatQueue;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks::TwoStacks;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::reactive::Reactive;
use slidewise_core::window::{Ties, Window};

/// A test of a window, given an empty one.
pub trait Test<M: Monoid> {
    fn window<W: Window<M>>(&mut self, name: &str, fresh: W);

    fn queue<F: Fifo<M>>(&mut self, name: &str, fifo: F, ties: Ties) {
        self.window(name, InOrder::new(fifo, ties));
    }
}

/// All that need only associativity, except the trees of `fiba` and `btree`.
pub fn associative<M: Monoid>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    let m = || monoid.clone();
    for caching in [true, false] {
        test.queue("two_stacks", TwoStacks::new(m(), caching), ties);
        test.queue("aba", Aba::new(m(), caching), ties);
        test.queue("daba", Daba::new(m(), caching), ties);
    }
    test.queue("two_stacks_lite", TwoStacksLite::new(m()), ties);
    test.queue("daba_lite", DabaLite::new(m()), ties);
    test.queue("daba_chain", DabaChain::new(m(), 1), ties);
    test.queue("amta", Amta::new(m()), ties);
    test.queue("b_int", BInt::new(m()), ties);
    test.queue("flat_fat", FlatFatQueue::new(m(), 8), ties);
    test.queue("flat_fit", FlatFit::new(m()), ties);
    test.window("reactive", Reactive::new(m(), ties));
    test.window("daba_late", DabaLate::new(m(), ties, 5));
    test.window("daba_late, no bound", DabaLate::new(m(), ties, i64::MAX));
}

/// Structures that need an inverse.
pub fn invertible<M: Invertible>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    let m = || monoid.clone();
    test.queue("subtract_on_evict", SubtractOnEvict::new(m()), ties);
    test.queue("slick_deque_inv", SlickDequeInv::new(m(), 1), ties);
}

/// Structures that keep candidates only.
pub fn selective<M: Selective>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    test.queue("slick_deque", SlickDeque::new(monoid.clone()), ties);
}
