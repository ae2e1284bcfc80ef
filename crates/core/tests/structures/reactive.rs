//! The Reactive Aggregator against recalculate: entries come in order, leave anywhere.
//!
//! `SLIDEWISE_SCRIPTS` sets the number of scripts, `SLIDEWISE_SEED` the first seed.

use std::fmt::Debug;

use crate::common::monoids::{Affine, Tally};
use crate::common::script::{Claims, compare_claims};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::reactive::Reactive;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn run<M: Monoid<In = i64> + Debug>(monoid: M) {
    let first = setting("SLIDEWISE_SEED", 1);
    for seed in first..first + setting("SLIDEWISE_SCRIPTS", 20_000) {
        let ties = match seed % 2 {
            0 => Ties::Keep,
            _ => Ties::Combine,
        };
        let length = if seed % 32 < 2 { 300 } else { 48 };
        let make = |ties| Reactive::new(monoid.clone(), ties);
        compare_claims(make, &monoid, ties, Claims::OrderedInserts, seed, length);
    }
}

#[test]
fn affine() {
    run(Affine::<0>);
}

#[test]
fn tally() {
    run(Tally::<0>);
}
