//! fiba against recalculate: random scripts, compared after every operation, invariants
//! checked, several arities, both ties; partials that are words, records, bytes and
//! objects, all but the first revealing any wrong order. The default structure has more
//! scripts than all others together: 3,400 a day.

use std::fmt::Debug;

use crate::common::monoids::{Affine, Tally};
use crate::common::owned::{as_objects, in_bytes};
use crate::common::script::{DEFAULT, compare, form, seeds_of};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fiba::Fiba;

fn run<M: Monoid<In = i64> + Debug, const L: usize, const F: usize>(monoid: M) {
    for seed in seeds_of(DEFAULT, 200) {
        let (ties, length) = form::<M::Partial>(seed);
        let make = |ties| Fiba::<M, L, F>::new(monoid.clone(), ties);
        compare(make, &monoid, ties, seed, 2 * length);
    }
}

macro_rules! shapes {
    ($($name:ident: $l:literal, $f:literal, $monoid:expr;)*) => {$(
        #[test]
        fn $name() {
            run::<_, $l, $f>($monoid);
        }
    )*};
}

// Leaf capacity, arity. 64 and 32 are what bindings use: small arrays that grow into trees
// and shrink again.
shapes! {
    records_2_4: 2, 4, Affine::<0>;
    records_4_4: 4, 4, Affine::<0>;
    records_3_5: 3, 5, Affine::<0>;
    records_8_8: 8, 8, Affine::<0>;
    records_16_8: 16, 8, Affine::<0>;
    records_5_16: 5, 16, Affine::<0>;
    records_64_32: 64, 32, Affine::<16>;
    words_2_4: 2, 4, Tally::<0>;
    words_3_5: 3, 5, Tally::<0>;
    words_8_8: 8, 8, Tally::<0>;
    words_64_32: 64, 32, Tally::<16>;
    bytes_2_4: 2, 4, in_bytes(Affine::<0>);
    bytes_5_16: 5, 16, in_bytes(Affine::<0>);
    bytes_64_32: 64, 32, in_bytes(Affine::<16>);
    objects_3_5: 3, 5, as_objects(Affine::<0>);
    objects_16_8: 16, 8, as_objects(Affine::<0>);
    objects_64_32: 64, 32, as_objects(Affine::<16>);
}
