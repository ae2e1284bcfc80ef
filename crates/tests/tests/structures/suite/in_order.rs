//! The first-in first-out structures against recalculate: random scripts, compared after
//! every operation, invariants checked, both ties; partials that are words, records, bytes
//! and objects, all but the first revealing any wrong order. Most entries are in order; the
//! others must be refused.

use std::fmt::Debug;

use crate::common::script::{Claims, OTHER, compare_claims, form, seeds};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::in_order::InOrder;

/// Compares windows of a structure with recalculate.
pub fn run<M, F>(monoid: M, make: impl Fn(M) -> F)
where
    M: Monoid<In = i64> + Debug,
    F: Fifo<M> + Debug,
{
    for seed in seeds(OTHER) {
        let (ties, length) = form::<M::Partial>(seed);
        let claims = if F::PARTS {
            Claims::InOrder
        } else {
            Claims::WholeOnly
        };
        let make = |ties| InOrder::new(make(monoid.clone()), ties);
        compare_claims(make, &monoid, ties, claims, seed, length);
    }
}

/// Tests of structures that need only associativity.
macro_rules! in_order {
    ($($name:ident: $make:expr;)*) => {$(
        mod $name {
            use super::*;
            use crate::suite::in_order::run;
            use crate::common::monoids::{Affine, Tally};
            use crate::common::owned::{as_objects, in_bytes};
            #[test]
            fn words() {
                run(Tally::<0>, $make);
            }
            #[test]
            fn records() {
                run(Affine::<0>, $make);
            }
            #[test]
            fn bytes() {
                run(in_bytes(Affine::<0>), $make);
            }
            #[test]
            fn objects() {
                run(as_objects(Affine::<0>), $make);
            }
        }
    )*};
}
pub(crate) use in_order;
