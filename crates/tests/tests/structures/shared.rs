//! The structures of the core that answer for many ranges.

use crate::common::monoids::FirstTop;
use crate::common::owned::{as_objects, in_bytes};
use crate::suite::shared::{compare, ranges};
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, Top};
use slidewise_core::monoid::Entry;
use slidewise_core::window::Window;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::shared::{Reach, SharedWindow};
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::recalculate::RecalculateQueue;

ranges! {
    flat_fit: |monoid, _| FlatFit::new(monoid);
    recalculate: |monoid, _| RecalculateQueue::new(monoid);
    slick_deque_inv: SlickDequeInv::new;
}

mod slick_deque {
    use super::*;
    #[test]
    fn words() {
        let dtype = DType::I64;
        let max = Extreme { dtype, min: false };
        compare(max, |max, _| SlickDeque::new(max));
    }
    #[test]
    fn records() {
        compare(FirstTop, |top, _| SlickDeque::new(top));
    }
    #[test]
    fn bytes() {
        compare(in_bytes(FirstTop), |top, _| SlickDeque::new(top));
    }
    #[test]
    fn objects() {
        compare(as_objects(FirstTop), |top, _| SlickDeque::new(top));
    }
}

/// SlickDeque, example 3: max over the last 5 and the last 3 of a stream; given in the other
/// order.
#[test]
fn the_example_of_the_paper() {
    let max = Extreme {
        dtype: DType::I64,
        min: false,
    };
    let mut window = SharedWindow::new(SlickDeque::new(max), 2);
    let mut ours = Vec::new();
    for (time, value) in (0..).zip([6, 5, 0, 1, 3, 4, 2, 7]) {
        window.insert(time, Entry::Raw(value));
        window.slide(&[Reach::Entries(3), Reach::Entries(5)]);
        let mut answers = Vec::new();
        window.query_each(|_, Top { word, .. }| answers.push(word));
        ours.push([answers[0], answers[1]]);
    }
    let wanted = [
        [6, 6],
        [6, 6],
        [6, 6],
        [5, 6],
        [3, 6],
        [4, 5],
        [4, 4],
        [7, 7],
    ];
    assert_eq!(ours, wanted);
}
