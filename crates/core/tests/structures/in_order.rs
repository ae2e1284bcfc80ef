//! The first-in first-out structures against recalculate: random scripts, compared after
//! every operation, invariants checked, both ties; partials that are words, records, bytes
//! and objects, all but the first revealing any wrong order. Most entries are in order; the
//! others must be refused.

use std::fmt::Debug;

use crate::common::monoids::{Affine, FirstTop, Tally};
use crate::common::owned::{as_objects, in_bytes};
use crate::common::script::{Claims, OTHER, compare_claims, form, seeds};
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::Extreme;
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::aba::Aba;
use slidewise_core::window::fifo::amta::Amta;
use slidewise_core::window::fifo::b_int::BInt;
use slidewise_core::window::fifo::daba::Daba;
use slidewise_core::window::fifo::daba_chain::DabaChain;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fat::FlatFatQueue;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks::TwoStacks;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;

fn run<M, F>(monoid: M, make: impl Fn(M) -> F)
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

macro_rules! structures {
    ($($name:ident: $make:expr;)*) => {$(
        mod $name {
            use super::*;
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

structures! {
    amta: Amta::new;
    b_int: BInt::new;
    flat_fat: |monoid| FlatFatQueue::new(monoid, 1);
    flat_fit: FlatFit::new;
    subtract_on_evict: SubtractOnEvict::new;
    two_stacks: |monoid| TwoStacks::new(monoid, true);
    two_stacks_uncached: |monoid| TwoStacks::new(monoid, false);
    two_stacks_lite: TwoStacksLite::new;
    aba: |monoid| Aba::new(monoid, true);
    aba_uncached: |monoid| Aba::new(monoid, false);
    daba: |monoid| Daba::new(monoid, true);
    daba_uncached: |monoid| Daba::new(monoid, false);
    daba_lite: DabaLite::new;
    daba_chain: |monoid| DabaChain::new(monoid, 1);
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
