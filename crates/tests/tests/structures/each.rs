//! The structures of the core in lists, for tests that all of them must pass.

use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::window::Ties;
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;

use crate::suite::each::Test;

pub fn trees<M: Monoid>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    test.window("fiba", Fiba::<_, 16, 8>::new(monoid.clone(), ties));
}

/// All others that need only associativity.
pub fn associative<M: Monoid>(monoid: &M, ties: Ties, test: &mut impl Test<M>) {
    let m = || monoid.clone();
    test.queue("two_stacks_lite", TwoStacksLite::new(m()), ties);
    test.queue("daba_lite", DabaLite::new(m()), ties);
    test.queue("flat_fit", FlatFit::new(m()), ties);
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
