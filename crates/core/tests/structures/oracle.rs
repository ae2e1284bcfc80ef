//! fiba against recalculate: random scripts, compared after every operation, invariants
//! checked, order-revealing and commutative monoids, several arities, both ties.
//!
//! `SLIDEWISE_SCRIPTS` sets the number of scripts, `SLIDEWISE_SEED` the first seed.

use std::fmt::Debug;

use crate::common::monoids::{Affine, Tally};
use crate::common::script::compare;
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::fiba::Fiba;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Scripts in all, spread over the shapes below.
fn scripts() -> u64 {
    setting("SLIDEWISE_SCRIPTS", 112_000)
}

const SHAPES: u64 = 7;

fn run<M: Monoid<In = i64> + Debug, const L: usize, const F: usize>(monoid: M) {
    let first = setting("SLIDEWISE_SEED", 1);
    for seed in first..first + scripts() / (2 * SHAPES) {
        let ties = if seed % 2 == 0 {
            Ties::Keep
        } else {
            Ties::Combine
        };
        let length = if seed % 16 == 0 { 400 } else { 64 };
        compare(
            |ties| Fiba::<M, L, F>::new(monoid.clone(), ties),
            &monoid,
            ties,
            seed,
            length,
        );
    }
}

macro_rules! shapes {
    ($($name:ident: $l:literal, $f:literal;)*) => {$(
        mod $name {
            use super::*;
            #[test]
            fn affine() {
                run::<_, $l, $f>(Affine::<0>);
            }
            #[test]
            fn tally() {
                run::<_, $l, $f>(Tally::<0>);
            }
        }
    )*};
}

shapes! {
    leaf2_arity4: 2, 4;
    leaf4_arity4: 4, 4;
    leaf3_arity5: 3, 5;
    leaf8_arity8: 8, 8;
    leaf16_arity8: 16, 8;
    leaf5_arity16: 5, 16;
}

/// As bindings use it: small arrays that grow into trees and shrink again.
mod leaf64_arity32 {
    use super::*;
    #[test]
    fn affine() {
        run::<_, 64, 32>(Affine::<16>);
    }
    #[test]
    fn tally() {
        run::<_, 64, 32>(Tally::<16>);
    }
}
