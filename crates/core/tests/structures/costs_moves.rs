//! The copies, moves and combines of DABA and DABA Lite in a single operation: constants, for
//! n up to 2¹⁷, or 2²² if `SLIDEWISE_COSTS` is `all`.

use crate::common::costs::all_sizes;
use crate::drive::{Do, drive, queue, saw, window};
use crate::heavy::{Nothing, Own, Something, sum, take_copies, take_sums};
use slidewise_core::window::Ties;
use slidewise_core::window::fifo::daba::Daba;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::in_order::InOrder;

/// As in `rings.rs`: a ring far too large for less than twice as many entries is given
/// back, and they are moved.
const BLOCK: u64 = 64;

/// The most copies or moves of any single operation, and the most combines of an insert, an
/// evict and a query.
fn worst(mut step: impl FnMut(Do), path: impl FnOnce(&mut dyn FnMut(Do))) -> (u64, [u64; 3]) {
    let (mut copies, mut combines) = (0, [0; 3]);
    take_copies();
    take_sums();
    path(&mut |what| {
        step(what);
        copies = copies.max(take_copies());
        let most = &mut combines[what as usize];
        *most = take_sums().max(*most);
    });
    (copies, combines)
}

/// Sizes that leave any number of entries when the queue is looked after.
fn stays_constant<S: FnMut(Do)>(make: impl Fn() -> S, copies: u64, combines: [u64; 3]) {
    let all = all_sizes();
    let most = |sizes: &'static [usize]| &sizes[..sizes.len() - usize::from(!all)];
    for n in most(&[1000, 4095, (1 << 14) + 37, 1 << 16]) {
        let (moved, combined) = worst(make(), |step| drive(*n, step));
        assert!(moved <= copies, "{moved} copies at n = {n}");
        assert_eq!(combined, combines, "at n = {n}");
    }
    for n in most(&[(1 << 17) + 4095, (1 << 22) + 4095]) {
        let (moved, combined) = worst(make(), |step| saw(*n, step));
        assert!(moved <= copies, "{moved} copies at n = {n}");
        assert_eq!(combined, combines, "at n = {n}");
    }
}

/// Worst case O(1) in moves as in combines: the same for all n. Up to 127 entries are moved
/// once a window has shrunk to them, to give back what they no longer need; an entry is a
/// partial, of DABA two. Three more are what the operation itself copies.
fn lite<O: Own>() {
    let make = || queue(DabaLite::new(sum::<O>()));
    stays_constant(make, 2 * BLOCK + 2, [3, 2, 1]);
}

fn full<O: Own>() {
    let cached = || queue(Daba::new(sum::<O>(), true));
    stays_constant(cached, 4 * BLOCK + 2, [3, 2, 1]);
    let uncached = || queue(Daba::new(sum::<O>(), false));
    stays_constant(uncached, 4 * BLOCK + 2, [4, 3, 1]);
}

/// In a window the queue of raw values moves like that of the partials. The queue of
/// times moves in step with the values, and cannot be counted.
fn windowed<O: Own>() {
    for (ties, query) in [(Ties::Keep, 1), (Ties::Combine, 2)] {
        let make = || window(InOrder::new(DabaLite::new(sum::<O>()), ties));
        stays_constant(make, 4 * BLOCK + 2, [3, 2, query]);
    }
}

#[test]
fn daba_lite_copies_a_constant_number() {
    lite::<Nothing>();
    lite::<Something>();
}

#[test]
fn daba_copies_a_constant_number() {
    full::<Nothing>();
    full::<Something>();
}

#[test]
fn a_window_copies_a_constant_number() {
    windowed::<Nothing>();
    windowed::<Something>();
}
