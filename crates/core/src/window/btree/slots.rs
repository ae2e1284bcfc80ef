//! Short runs of slots: searching them, moving what lies in them.

use std::mem::{needs_drop, swap};
use std::sync::atomic::{Ordering, compiler_fence};

/// Keeps a loop as it stands: over the handful that a node holds, one made for long runs
/// spends most of its time on being set up.
#[inline(always)]
pub(super) fn few() {
    compiler_fence(Ordering::SeqCst);
}

/// The length of the leading run of up to `E` times for which it holds; searched from the
/// end, where most streams go on.
#[inline(always)]
pub(super) fn prefix<const E: usize>(times: &[i64], holds: impl Fn(i64) -> bool) -> usize {
    const SHORT_SCAN: usize = 16;
    if E > SHORT_SCAN && times.len() > SHORT_SCAN {
        return times.partition_point(|time| holds(*time));
    }
    let mut at = times.len();
    while at > 0 && !holds(times[at - 1]) {
        at -= 1;
    }
    at
}

/// Moves all up by one and puts something in front, in the place of the last. What owns
/// memory is swapped; all else is copied, which does not wait for the store before.
#[inline]
pub(super) fn shift_in<T: Clone>(run: &mut [T], front: T) {
    for at in (1..run.len()).rev() {
        few();
        transfer_within(run, at - 1, at);
    }
    run[0] = front;
}

#[inline]
pub(super) fn shift_down_by<T: Clone>(run: &mut [T], count: usize) {
    for at in count..run.len() {
        few();
        transfer_within(run, at, at - count);
    }
}

/// [`transfer`] between slots of one slice.
#[inline(always)]
pub(super) fn transfer_within<T: Clone>(run: &mut [T], from: usize, to: usize) {
    match needs_drop::<T>() {
        true => run.swap(from, to),
        false => run[to] = run[from].clone(),
    }
}

/// Moves one slot's contents to another. What owns memory is swapped, so that the blank
/// that was there is where it came from.
#[inline(always)]
pub(super) fn transfer<T: Clone>(source: &mut T, target: &mut T) {
    match needs_drop::<T>() {
        true => swap(source, target),
        false => *target = source.clone(),
    }
}
