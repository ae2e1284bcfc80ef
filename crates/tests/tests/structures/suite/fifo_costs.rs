//! What structures for entries in order cost in a single operation, and in many.

use super::drive::{Do, drive, on_all_paths, queue, saw};
use super::heavy::{take_copies, take_sums};
use crate::common::costs::all_sizes;
use crate::common::monoids::{Affine, Map};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fifo::Fifo;

pub fn value(item: u64) -> Map {
    Affine::<0>.lift(&(item as i64))
}

/// Puts n values into a queue.
pub fn filled<F: Fifo<Affine<0>>>(mut fifo: F, n: u64) -> F {
    (0..n).for_each(|item| fifo.insert(value(item)));
    fifo
}

/// An insert pays two combines in advance, and that is all there ever are; the query is one
/// more.
pub fn amortised<F: Fifo<Affine<0>>>(make: impl Fn() -> F) {
    let pays = [Some(2), Some(0), None];
    on_all_paths(
        pays,
        |_| queue(make()),
        |counts| {
            counts.at_worst([1, counts.most - 1, 1]);
            assert!(counts.debt <= 0, "{counts:?}");
        },
    );
}

/// DABA, theorem 9: with caching at most 1 per query, 3 per insert and 2 per evict, and 2
/// and 1 on average. The average is over what lies between two flips: while l_L and l_R
/// shrink, which are half of the window each, it is one more per operation.
pub fn worst_case<F: Fifo<Affine<0>>>(make: impl Fn() -> F) {
    let pays = [Some(2), Some(1), None];
    on_all_paths(
        pays,
        |_| queue(make()),
        |counts| {
            counts.at_worst([3, 2, 1]);
            assert!(counts.debt <= counts.most as i64 / 2, "{counts:?}");
        },
    );
}

/// The memory follows the entries, of which it may keep room for a few.
pub fn drained<F: Fifo<Affine<0>>>(mut fifo: F) {
    for left in [1000, 50, 0] {
        while fifo.len() < 200_000 {
            fifo.insert(Affine::<0>.lift(&3));
        }
        assert!(fifo.bytes() > 4_000_000);
        while fifo.len() > left {
            fifo.evict();
        }
        for _ in 0..3 * left {
            fifo.insert(Affine::<0>.lift(&3));
            fifo.evict();
        }
        assert!(
            fifo.bytes() < 600_000,
            "{left} left: {} bytes",
            fifo.bytes()
        );
    }
}

/// As in `rings.rs`: a ring far too large for less than twice as many entries is given
/// back, and they are moved.
pub const BLOCK: u64 = 64;

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
pub fn stays_constant<S: FnMut(Do)>(make: impl Fn() -> S, copies: u64, combines: [u64; 3]) {
    let all = all_sizes();
    let most = |sizes: &'static [usize]| &sizes[..sizes.len() - usize::from(!all)];
    for n in most(&[1000, 4095, (1 << 14) + 37, 1 << 16]) {
        let (moved, combined) = worst(make(), |step| drive(*n, step));
        assert!(moved <= copies, "{moved} copies at n = {n}");
        assert_eq!(combined, combines, "at n = {n}");
    }
    for n in most(&[(1 << 15) + 4095, (1 << 22) + 4095]) {
        let (moved, combined) = worst(make(), |step| saw(*n, step));
        assert!(moved <= copies, "{moved} copies at n = {n}");
        assert_eq!(combined, combines, "at n = {n}");
    }
}
