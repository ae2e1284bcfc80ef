//! The copies, moves and combines of DABA in a single operation: constants, for
//! n up to 2¹⁷, or 2²² if `SLIDEWISE_COSTS` is `all`.

use crate::suite::drive::queue;
use crate::suite::fifo_costs::{BLOCK, stays_constant};
use crate::suite::heavy::{Nothing, Own, Something, sum};
use slidewise_papers::fifo::daba::Daba;

/// As of `daba_lite`; an entry is two partials.
fn full<O: Own>() {
    let cached = || queue(Daba::new(sum::<O>(), true));
    stays_constant(cached, 4 * BLOCK + 2, [3, 2, 1]);
    let uncached = || queue(Daba::new(sum::<O>(), false));
    stays_constant(uncached, 4 * BLOCK + 2, [4, 3, 1]);
}

#[test]
fn daba_copies_a_constant_number() {
    full::<Nothing>();
    full::<Something>();
}
