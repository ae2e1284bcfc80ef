//! The Reactive Aggregator against recalculate: inserts in order, evictions anywhere.

use std::fmt::Debug;

use crate::common::monoids::{Affine, Tally};
use crate::common::owned::{as_objects, in_bytes};
use crate::common::script::{Claims, OTHER, compare_claims, form, seeds};
use slidewise_core::monoid::Monoid;
use slidewise_papers::reactive::Reactive;

fn run<M: Monoid<In = i64> + Debug>(monoid: M) {
    for seed in seeds(OTHER) {
        let (ties, length) = form::<M::Partial>(seed);
        let make = |ties| Reactive::new(monoid.clone(), ties);
        compare_claims(make, &monoid, ties, Claims::OrderedInserts, seed, length);
    }
}

#[test]
fn words() {
    run(Tally::<0>);
}

#[test]
fn records() {
    run(Affine::<0>);
}

#[test]
fn bytes() {
    run(in_bytes(Affine::<0>));
}

#[test]
fn objects() {
    run(as_objects(Affine::<0>));
}
