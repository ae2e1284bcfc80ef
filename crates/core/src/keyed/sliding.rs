//! Folds a window at many times of a key, in order.
//!
//! As in Two-Stacks, the entries that all windows hold are folded once. Those before them (head)
//! are folded from the last one back, and those after them (tail) from the first one on. Then
//! each answer takes one combine.
//!
//! ```text
//! window at the first time   |-----------------------|
//! window at the last time           |------------------------|
//! in all of them                    |----------------|
//! head, folded back          |------|
//! tail, folded on                                    |-------|
//! ```

use std::ops::ControlFlow;

use super::blocks::MAX_BLOCK;
use super::shard::{Placed, Shard};
use crate::monoid::Monoid;
use crate::rolling::Span;

/// The least number of times that share folds.
pub(super) const MIN_SHARED_TIMES: usize = 4;
/// The most entries per time that are folded one by one; with more, single windows are faster.
const DENSE: usize = 8;

/// The head or the tail: entries before or after those that all windows hold.
#[derive(Debug)]
struct Side<P> {
    times: Vec<i64>,
    /// The folds of its entries from the inner end on, by number of entries.
    folds: Vec<P>,
}

/// Scratch memory for all keys and windows.
#[derive(Debug)]
pub(super) struct Sliding<P> {
    /// The first and the last time of each window.
    windows: Vec<(i64, i64)>,
    head: Side<P>,
    tail: Side<P>,
    /// The range of the tail, which the next window of these times may share.
    known: Option<(i64, i64)>,
    /// Per window, the numbers of its entries in head and tail.
    pairs: Vec<(u32, u32)>,
}

impl<P> Default for Sliding<P> {
    fn default() -> Self {
        let side = || Side {
            times: Vec::new(),
            folds: Vec::new(),
        };
        Self {
            windows: Vec::new(),
            head: side(),
            tail: side(),
            known: None,
            pairs: Vec::new(),
        }
    }
}

impl<P: Clone> Sliding<P> {
    /// Drops the folds of a key.
    pub fn reset(&mut self) {
        self.known = None;
    }

    /// Appends the folds of a window that ends at some times.
    pub fn slide<M: Monoid<Partial = P>>(
        &mut self,
        monoid: &M,
        (shard, number): (&Shard<M>, Option<u32>),
        times: &[Placed],
        span: &Span,
        out: &mut Vec<P>,
    ) {
        let mut windows = std::mem::take(&mut self.windows);
        windows.clear();
        windows.extend(times.iter().map(|time| span.bounds(time.time())));
        let mut rest = &windows[..];
        while let Some((from, end)) = rest.first() {
            // The windows that hold the end of the first one, as long as their starts go
            // forward: none if it is empty, as one that ends before all times, whose bounds
            // are no times.
            let mut latest = *from;
            let held = rest.iter().take_while(|(lo, hi)| {
                let forward = latest <= *lo;
                latest = *lo;
                forward && lo <= end && lo <= hi && from <= end
            });
            let count = held.count();
            let (together, others) = rest.split_at(count.max(1));
            if together.len() < MIN_SHARED_TIMES
                || !self.share(monoid, (shard, number), together, out)
            {
                out.extend(together.iter().map(|window| {
                    let mut whole = None;
                    shard.fold(monoid, number, *window, &mut whole);
                    whole.unwrap_or_else(|| monoid.identity())
                }));
            }
            rest = others;
        }
        self.windows = windows;
    }

    /// As `slide`, for windows with common entries; false if single windows are faster.
    fn share<M: Monoid<Partial = P>>(
        &mut self,
        monoid: &M,
        (shard, number): (&Shard<M>, Option<u32>),
        windows: &[(i64, i64)],
        out: &mut Vec<P>,
    ) -> bool {
        let ((lo, end), (from, hi)) = (windows[0], windows[windows.len() - 1]);
        let most = windows.len() * DENSE + MAX_BLOCK;
        let tail = (end.saturating_add(1), hi);
        if self.known != Some(tail) {
            self.known = None;
            let none = monoid.identity();
            if end == hi {
                self.tail.clear(none);
            } else if !(self.tail).read(monoid, (shard, number), tail, none, most, false) {
                return false;
            }
            self.known = Some(tail);
        }
        let mut shared = None;
        shard.fold(monoid, number, (from, end), &mut shared);
        let shared = shared.unwrap_or_else(|| monoid.identity());
        let head = (lo, from.saturating_sub(1));
        if lo == from {
            self.head.clear(shared);
        } else if !self
            .head
            .read(monoid, (shard, number), head, shared, most, true)
        {
            return false;
        }
        self.pairs.clear();
        let mut held = 0;
        for (_, hi) in windows {
            let new = self.tail.times[held..].iter();
            held += new.take_while(|time| *time <= hi).count();
            self.pairs.push((0, held as u32));
        }
        held = 0;
        for ((lo, _), pair) in windows.iter().zip(&mut self.pairs).rev() {
            let new = self.head.times[held..].iter();
            held += new.take_while(|time| *time >= lo).count();
            pair.0 = held as u32;
        }
        monoid.combine_pairs((&self.head.folds, &self.tail.folds), &self.pairs, out);
        true
    }
}

impl<P: Clone> Side<P> {
    /// Resets to no entries beside `fold`.
    fn clear(&mut self, fold: P) {
        self.times.clear();
        self.folds.clear();
        self.folds.push(fold);
    }

    /// Folds the entries of a range to `fold`, from the last one back or from the first one on;
    /// false if there are more than `most`.
    fn read<M: Monoid<Partial = P>>(
        &mut self,
        monoid: &M,
        (shard, number): (&Shard<M>, Option<u32>),
        range: (i64, i64),
        fold: P,
        most: usize,
        back: bool,
    ) -> bool {
        self.clear(fold);
        let Some((forest, root)) = shard.forest_of(number) else {
            return true;
        };
        let read = forest.visit_blocks(root, range, back, &mut |block, (from, to)| {
            let times = &forest.blocks.times(block)[from..to];
            match back {
                true => self.times.extend(times.iter().rev()),
                false => self.times.extend_from_slice(times),
            }
            forest
                .blocks
                .folds(monoid, block, (from, to), back, &mut self.folds);
            match self.times.len() > most {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        read.is_continue()
    }
}
