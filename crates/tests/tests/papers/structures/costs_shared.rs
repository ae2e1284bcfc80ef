//! The costs on the card of the structure for many ranges, asserted by counting.

use crate::common::monoids::{Affine, take_combines};
use slidewise_core::monoid::Entry;
use slidewise_core::window::Window;
use slidewise_core::window::fifo::shared::{Reach, SharedWindow};
use slidewise_papers::fifo::daba_chain::DabaChain;

/// daba_chain: at most 3 an insert, 5 and 2 per range, in any one slide.
#[test]
fn daba_chain_costs_seven_per_slide_and_range() {
    for ranges in [1, 2, 5, 16] {
        let reaches: Vec<Reach> = (0..ranges).map(|at| Reach::Entries(3 << at)).collect();
        let mut window = SharedWindow::new(DabaChain::new(Affine::<0>, ranges), ranges);
        let mut most = 0;
        for at in 0..1 << (ranges + 3).min(18) {
            take_combines();
            window.insert(at as i64, Entry::Raw(7));
            window.slide(&reaches);
            window.query_each(|_, _| ());
            most = most.max(take_combines());
        }
        let bound = 3 + 5 * (ranges as u64 - 1) + 2 + 2 * ranges as u64 - 1;
        assert!(
            most <= bound,
            "{most} combines for {ranges} ranges, bound {bound}"
        );
    }
}
