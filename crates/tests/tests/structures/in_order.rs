//! The structures of the core for entries in order, beside recalculate.

use crate::common::monoids::FirstTop;
use crate::common::owned::{as_objects, in_bytes};
use crate::suite::in_order::{in_order, run};
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::Extreme;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;

in_order! {
    daba_lite: DabaLite::new;
    flat_fit: FlatFit::new;
    subtract_on_evict: SubtractOnEvict::new;
    two_stacks_lite: TwoStacksLite::new;
}

mod slick_deque {
    use super::*;
    #[test]
    fn records() {
        run(FirstTop, SlickDeque::new);
    }
    #[test]
    fn bytes() {
        run(in_bytes(FirstTop), SlickDeque::new);
    }
    #[test]
    fn objects() {
        run(as_objects(FirstTop), SlickDeque::new);
    }
    #[test]
    fn words() {
        let min = Extreme {
            dtype: DType::I64,
            min: true,
        };
        run(min, SlickDeque::new);
    }
}
