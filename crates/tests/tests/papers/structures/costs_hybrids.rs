//! The costs promised on the cards of the hybrids of DABA and a tree, by counting.

use crate::common::Random;
use crate::common::monoids::{Affine, take_combines};
use crate::suite::drive::combines;
use slidewise_core::monoid::Entry;
use slidewise_core::window::{Ties, Window};
use slidewise_papers::daba_late::DabaLate;

/// The costs depend on the latency bound, as the tree does, and not on the window.
#[test]
fn late_costs_go_by_the_bound() {
    let mut random = Random(7);
    for bound in [1, 16, 256, 4096] {
        let mut totals = Vec::new();
        for log in [13, 16] {
            let mut window = DabaLate::new(Affine::<0>, Ties::Combine, bound);
            let n = 1_i64 << log;
            let (mut total, slides) = (0, 10_000);
            for at in 0..n + slides {
                take_combines();
                let late = random.below(bound as u64) as i64;
                window.insert(at, Entry::Raw(at));
                window.insert(at - late, Entry::Raw(at));
                window.evict_until(at - n);
                let spent = take_combines();
                window.query();
                let query = take_combines();
                assert!(query <= 5, "a query took {query} combines");
                total += if at < n { 0 } else { spent + query };
            }
            totals.push(total as f64 / slides as f64);
        }
        let levels = (2.0 + bound as f64).log2();
        let most = 20.0 + 12.0 * levels;
        assert!(
            totals.iter().all(|each| *each <= most),
            "{totals:?} combines at bound {bound}, at most {most}"
        );
        assert!(totals[1] <= totals[0] * 1.1 + 1.0, "{totals:?} at {bound}");
    }
}

/// Evicting an entry older than the bound takes two combines each time, as in DABA.
#[test]
fn late_evicts_old_entries_in_constant_time() {
    let mut random = Random(8);
    for (bound, ties) in [(1, Ties::Keep), (64, Ties::Combine), (1024, Ties::Keep)] {
        for n in [100, 4095, 1 << 17] {
            let mut window = DabaLate::new(Affine::<0>, ties, bound);
            for at in 0..n {
                window.insert(at, Entry::Raw(at));
                let late = random.below(bound as u64) as i64;
                window.insert(at - late, Entry::Raw(at));
            }
            while window.oldest().is_some_and(|oldest| oldest < n - 1 - bound) {
                let spent = combines(|| window.evict());
                assert!(spent <= 2, "{spent} at n = {n}, bound {bound}");
            }
        }
    }
}

/// After a pause all young entries move to DABA at once: amortised three combines for each,
/// and those to leave the tree, though a single insert may be long.
#[test]
fn late_moves_on_at_amortised_cost() {
    for burst in [10, 1000, 50_000] {
        let bound = 2 * burst;
        let mut window = DabaLate::new(Affine::<0>, Ties::Keep, bound);
        let (mut total, mut worst) = (0, 0);
        for round in 0..4 {
            for at in 0..burst {
                let time = 10 * round * bound + at;
                let spent = combines(|| window.insert(time, Entry::Raw(at)));
                (total, worst) = (total + spent, worst.max(spent));
            }
        }
        let each = total as f64 / (4 * burst) as f64;
        assert!(each <= 24.0, "{each} per insert in bursts of {burst}");
        assert!(
            worst >= burst as u64,
            "{worst}: one insert moves a burst of {burst} on"
        );
    }
}
