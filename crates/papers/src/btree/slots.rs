//! Searches and moves in short runs of slots.

use std::mem::{needs_drop, swap};
use std::sync::atomic::{Ordering, compiler_fence};

/// Keeps the compiler from replacing a loop by code for long runs: over the few slots of a node,
/// the setup of such code takes most of the time.
#[inline(always)]
pub(super) fn short_loop() {
    compiler_fence(Ordering::SeqCst);
}

/// The length of the leading run of up to `E` times for which `holds` is true. It searches from
/// the end, where most entries arrive.
#[inline(always)]
pub(super) fn prefix<const E: usize>(times: &[i64], holds: impl Fn(i64) -> bool) -> usize {
    const SHORT_SCAN: usize = 16;
    if E > SHORT_SCAN && times.len() > SHORT_SCAN {
        return times.partition_point(|time| holds(*time));
    }
    for at in (0..times.len()).rev() {
        if holds(times[at]) {
            return at + 1;
        }
    }
    0
}

/// Moves all slots but the last up by one, over the last, and puts a value in front. Values that
/// own memory are swapped. Others are copied, which does not wait for the store before.
#[inline]
pub(super) fn shift_in<T: Clone>(run: &mut [T], front: T) {
    for at in (1..run.len()).rev() {
        short_loop();
        transfer_within(run, at - 1, at);
    }
    run[0] = front;
}

#[inline]
pub(super) fn shift_down_by<T: Clone>(run: &mut [T], count: usize) {
    for at in count..run.len() {
        short_loop();
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

/// Moves the value of a slot to another, which is blank. Values that own memory are swapped, so
/// that the source is blank afterwards.
#[inline(always)]
pub(super) fn transfer<T: Clone>(source: &mut T, target: &mut T) {
    match needs_drop::<T>() {
        true => swap(source, target),
        false => *target = source.clone(),
    }
}
