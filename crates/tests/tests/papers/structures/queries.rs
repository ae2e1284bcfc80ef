//! Windows with queries over final aggregators of the papers.

use crate::common::monoids::Affine;
use crate::suite::full_windows::in_full_windows;
use crate::suite::queries::final_aggregators;
use slidewise_papers::algorithm::Algorithm;
use slidewise_papers::planned::aggregator;

final_aggregators! {
    amta: Algorithm::Amta;
    b_int: Algorithm::BInt;
    daba_chain: Algorithm::DabaChain;
    flat_fat: Algorithm::FlatFat { capacity: 1 };
}

/// FlatFAT and B-Int: at most log₂ n per slice and range, and log₂ n for the slice itself.
#[test]
fn trees_take_a_logarithm_per_slice_and_range() {
    for algorithm in [Algorithm::FlatFat { capacity: 1 }, Algorithm::BInt] {
        let of = |monoid: &Affine<0>| aggregator(algorithm, monoid);
        in_full_windows(Affine::<0>, of, |slide, n, (spent, _)| {
            let log = u64::from(n.next_power_of_two().ilog2()) + 1;
            let most = slide as u64 - 1 + 2 * (n + 1) * log;
            assert!(
                spent <= most,
                "{spent} by {algorithm:?}, slide {slide}, {n} ranges"
            );
        });
    }
}
