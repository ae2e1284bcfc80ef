//! Running sums of floats: every window is the difference of two sums on a [`UnitGrid`]. These
//! are exact, so subtractions lose no digits.
//!
//! ```text
//!     anchor . . lo . . . . . . . . . . anchor . . . . . hi
//!     (to_start)                      (to_end)
//!     sum of a window = between the anchors + to_end[hi] − to_start[lo]
//! ```
//!
//! An *epoch* has one grid and one pivot; terms are distances from the pivot. It ends
//!
//! - at a term that exceeds its grid or (for sums) would lose digits in it,
//! - at a window so far from the pivot that digits would cancel,
//! - if terms have lost digits: with the last term that is great enough to make the lost
//!   digits irrelevant.
//!
//! Each epoch begins with a scan of all rows of a window. If epochs begin too often, or
//! terms exceed any grid (NaN, infinities, the largest and the smallest floats), two stacks
//! ([`TwoStacks`]) answer. The rows and windows of a group alone determine when epochs
//! begin: a window that shares no row with the previous one begins a new epoch.
//!
//! Methods: differences of prefix sums, over binned sums ([`super::binned_sum`] cites them)
//! so that no difference rounds. Variances by the shifted-data formula of Chan, Golub,
//! LeVeque, *Algorithms for Computing the Sample Variance* (The American Statistician
//! 37(3), 1983): `(Σd² − (Σd)²/n) / (n − ddof)` with d the distance from the pivot.

use super::binned_sum::{BIN_CAPACITY, MAX_TERMS, UnitGrid, Units};
use super::ops::Terms;
use super::two_stacks::{Scan, TwoStacks};
use super::{PresentCounts, RowBlock};

/// Windows of up to this many rows are summed row by row if digits have cancelled, and
/// until a longer window shares rows with the previous one.
const SHORT_ROWS: usize = 8;
/// The budget of rows read to begin epochs, for each row of the windows so far.
const RESCANS_PER_ROW: usize = 32;

/// Biased sums up to a row: coarse ones, then fine ones.
type Sums<const K: usize> = [[f64; K]; 2];

/// One end of the windows. Anchors are a fixed number of rows apart, so that answers do not
/// depend on which windows are requested together.
struct EndSums<const K: usize> {
    anchor: usize,
    /// Sums from the anchor on, for `count` rows.
    sums: Vec<Sums<K>>,
    filled: usize,
}

impl<const K: usize> EndSums<K> {
    fn new() -> Self {
        Self {
            anchor: 0,
            sums: vec![[[0.0; K]; 2]; BIN_CAPACITY + 1],
            filled: 0,
        }
    }

    fn begin(&mut self, anchor: usize, start: Sums<K>) {
        (self.anchor, self.filled) = (anchor, 0);
        self.sums[0] = start;
    }

    /// Sums up to a row, which is at most [`BIN_CAPACITY`] rows from the anchor.
    #[inline(always)]
    fn advance(&mut self, row: usize, terms: impl Terms<K>) {
        let from = self.anchor + self.filled;
        if row <= from {
            return;
        }
        let mut sum = self.sums[self.filled];
        let slots = &mut self.sums[self.filled + 1..];
        terms.fill(from..row, slots, |terms| {
            sum = add(sum, terms);
            sum
        });
        self.filled = row - self.anchor;
    }
}

/// Likewise for two sides. Each sum waits for the previous one; the sums of both sides run
/// in parallel. `pairs` is a buffer for terms.
#[inline(always)]
fn advance_both<const K: usize>(
    (to_end, hi): (&mut EndSums<K>, usize),
    (to_start, lo): (&mut EndSums<K>, usize),
    terms: impl Terms<K>,
    pairs: &mut [[[f64; K]; 2]],
) {
    let from = [
        to_end.anchor + to_end.filled,
        to_start.anchor + to_start.filled,
    ];
    let both = hi.saturating_sub(from[0]).min(lo.saturating_sub(from[1]));
    let mut sums = [to_end.sums[to_end.filled], to_start.sums[to_start.filled]];
    let slots = to_end.sums[to_end.filled + 1..].iter_mut();
    let slots = slots.zip(&mut to_start.sums[to_start.filled + 1..]);
    if K == 1 {
        terms.fill_both(from, both, slots, |[newer, older]| {
            sums = [add(sums[0], newer), add(sums[1], older)];
            sums
        });
    } else {
        let pairs = &mut pairs[..both];
        let rooms = pairs.iter_mut().map(|[newer, older]| (newer, older));
        terms.fill_both(from, both, rooms, |terms| terms);
        add_up(sums, pairs, slots);
    }
    to_end.filled += both;
    to_start.filled += both;
    to_end.advance(hi, terms);
    to_start.advance(lo, terms);
}

/// Running sums of stored terms: all at once, in vector registers, which takes two thirds
/// of the time of one sum after the other.
#[inline(always)]
fn add_up<'s, const K: usize>(
    [to_end, to_start]: [Sums<K>; 2],
    pairs: &[[[f64; K]; 2]],
    slots: impl Iterator<Item = (&'s mut Sums<K>, &'s mut Sums<K>)>,
) {
    let (mut coarse, mut fine) = ([to_end[0], to_start[0]], [to_end[1], to_start[1]]);
    for ((newer, older), terms) in slots.zip(pairs) {
        let mut sums = coarse;
        for side in 0..2 {
            for of in 0..K {
                sums[side][of] += terms[side][of];
            }
        }
        for side in 0..2 {
            for of in 0..K {
                fine[side][of] += terms[side][of] - (sums[side][of] - coarse[side][of]);
            }
        }
        coarse = sums;
        (*newer, *older) = ([coarse[0], fine[0]], [coarse[1], fine[1]]);
    }
}

pub(super) struct PrefixSums<'a, T: Scan, const K: usize> {
    pub(super) stacks: TwoStacks<'a, T>,
    counts: PresentCounts<'a>,
    grids: [UnitGrid; K],
    /// The end of the last window.
    end: usize,
    /// No epoch has begun yet.
    is_idle: bool,
    /// The epoch is valid for windows that begin up to here.
    mid: usize,
    /// Two stacks answer up to `mid`.
    in_fallback: bool,
    /// Some terms have lost digits.
    is_inexact: bool,
    /// All rows before it are known to fit.
    seen: usize,
    /// The sums from the anchor of `to_start` to that of `to_end`.
    between: [Units; K],
    to_end: EndSums<K>,
    to_start: EndSums<K>,
    /// Terms of both sides, and sums of windows, where there are several of each.
    pairs: Vec<[[f64; K]; 2]>,
    sums: Vec<[f64; K]>,
    /// The start of the last window that shared no row with its predecessor, and the number
    /// of rows scanned since to begin epochs.
    since: usize,
    looked: usize,
}

impl<'a, const K: usize, T: Terms<K>> PrefixSums<'a, T, K> {
    pub(super) fn new(terms: T, counts: PresentCounts<'a>) -> Self {
        Self {
            stacks: TwoStacks::new(terms, counts),
            counts,
            grids: [UnitGrid::ZERO; K],
            end: 0,
            is_idle: true,
            mid: 0,
            in_fallback: false,
            is_inexact: false,
            seen: 0,
            between: [[0; 2]; K],
            to_end: EndSums::new(),
            to_start: EndSums::new(),
            pairs: vec![[[0.0; K]; 2]; BIN_CAPACITY],
            sums: vec![[0.0; K]; BIN_CAPACITY],
            since: 0,
            looked: 0,
        }
    }

    /// The lowered value of each window of a block, which follows that of the last call.
    #[inline(always)]
    pub(super) fn answer(&mut self, block: &RowBlock<'_>, counts: &[f64], lowered: &mut [f64]) {
        let (last, mut at) = (block.lo.len() - 1, 0);
        let apart = block.lo[last] >= block.hi[0] && self.apart(block);
        let long = block.hi[last] - block.lo[0] > MAX_TERMS;
        while at <= last {
            let (lo, hi) = (block.lo[at], block.hi[at]);
            let fresh = lo >= self.end && hi > lo;
            if fresh {
                (self.is_idle, self.since, self.looked) = (true, lo, 0);
            }
            if fresh || (self.is_idle && hi - lo <= SHORT_ROWS) {
                lowered[at] = self.stacks.scan.fold_rows(lo, hi, counts[at]);
                (self.end, at) = (hi, at + 1);
                continue;
            }
            if self.is_idle || lo > self.mid || (hi - lo > MAX_TERMS && !self.in_fallback) {
                self.begin(lo, hi);
                self.is_idle = false;
            }
            let mut until = at + block.lo[at..].partition_point(|lo| *lo <= self.mid).max(1);
            if apart {
                until = at + 1 + self.shared(&block.lo[at + 1..until], &block.hi[at..until]);
            }
            if !self.in_fallback && long {
                let mut windows = block.windows().take(until).skip(at + 1);
                until = windows
                    .position(|(lo, hi)| hi - lo > MAX_TERMS)
                    .map_or(until, |k| at + 1 + k);
            }
            let part = block.between(at, until);
            at += if self.in_fallback {
                self.fallback(&part, &mut lowered[at..until]);
                part.lo.len()
            } else {
                self.run(&part, &counts[at..until], &mut lowered[at..until])
            };
            self.end = block.hi[at - 1];
        }
    }

    /// Whether any window may share no row with the previous one.
    fn apart(&self, block: &RowBlock<'_>) -> bool {
        const STEP: usize = 32;
        let stretches = block.lo.chunks(STEP).zip(block.hi.chunks(STEP));
        let mut end = block.hi[0];
        let mut any = false;
        for (lo, hi) in stretches {
            any |= lo[lo.len() - 1] >= end;
            end = hi[hi.len() - 1];
        }
        any
    }

    /// The number of windows that share a row with the previous one, or are empty.
    fn shared(&self, lo: &[usize], hi: &[usize]) -> usize {
        let mut pairs = lo.iter().zip(hi.windows(2));
        let apart = pairs.position(|(lo, ends)| *lo >= ends[0] && ends[1] > *lo);
        apart.unwrap_or(lo.len())
    }

    /// Answers windows of an epoch; returns their number, at least one.
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, counts: &[f64], lowered: &mut [f64]) -> usize {
        let (lo, hi) = (block.lo[0], block.hi[0]);
        let mut count = block.lo.len();
        if self.refused(hi).is_some() {
            self.begin(lo, hi);
            if self.in_fallback {
                self.fallback(&block.between(0, 1), &mut lowered[..1]);
                return 1;
            }
            count = block.lo.partition_point(|lo| *lo <= self.mid);
        }
        self.follow(lo, hi);
        let room = |ends: &[usize], side: &EndSums<K>| {
            let most = side.anchor + BIN_CAPACITY;
            match ends[ends.len() - 1] <= most {
                true => ends.len(),
                false => ends.partition_point(|end| *end <= most),
            }
        };
        count = room(&block.hi[..count], &self.to_end);
        count = room(&block.lo[..count], &self.to_start);
        if let Some(bad) = self.refused(block.hi[count - 1]) {
            count = block.hi[..count].partition_point(|hi| *hi <= bad);
        }
        let block = block.between(0, count);
        let terms = self.stacks.scan;
        advance_both(
            (&mut self.to_end, block.hi[count - 1]),
            (&mut self.to_start, block.lo[count - 1]),
            terms,
            &mut self.pairs,
        );
        self.seen = block.hi[count - 1];
        let cancelled = self.join(&block, &counts[..count], &mut lowered[..count]);
        let Some(at) =
            cancelled.and_then(|first| self.recompute_short(first, &block, &mut lowered[..count]))
        else {
            return count;
        };
        self.begin(block.lo[at], block.hi[at]);
        if self.in_fallback {
            self.stacks
                .answer(&block.between(at, at + 1), &mut lowered[at..=at]);
        } else {
            let terms = &self.stacks.scan;
            lowered[at] = terms.answer(self.sums(self.between), counts[at]);
        }
        at + 1
    }

    /// The first new row whose terms exceed this epoch.
    #[inline(always)]
    fn refused(&self, end: usize) -> Option<usize> {
        let grid = self.grids[0];
        let exact = T::CANCELS && !self.is_inexact;
        let fits = |term: f64| grid.takes(term) & (!exact | grid.holds(term));
        let rows = self.seen..end.max(self.seen);
        let terms = self.stacks.scan;
        let mut all = true;
        terms.each(rows.clone(), |terms| all &= fits(terms[0]));
        if all {
            return None;
        }
        let mut at = rows.start;
        let mut bad = None;
        terms.each(rows, |terms| {
            if bad.is_none() && !fits(terms[0]) {
                bad = Some(at);
            }
            at += 1;
        });
        bad
    }

    /// Moves the anchors to a window.
    #[inline(always)]
    fn follow(&mut self, lo: usize, hi: usize) {
        let terms = self.stacks.scan;
        let start = self.start();
        for (side, end, sign) in [(&mut self.to_end, hi, 1), (&mut self.to_start, lo, -1)] {
            while end > side.anchor + BIN_CAPACITY {
                side.advance(side.anchor + BIN_CAPACITY, terms);
                let sums = side.sums[BIN_CAPACITY];
                for (of, grid) in self.grids.iter().enumerate() {
                    let units = grid.units([sums[0][of], sums[1][of]]);
                    self.between[of][0] += sign * units[0];
                    self.between[of][1] += sign * units[1];
                }
                side.begin(side.anchor + BIN_CAPACITY, start);
            }
        }
    }

    fn start(&self) -> Sums<K> {
        let mut start = [[0.0; K]; 2];
        for (of, grid) in self.grids.iter().enumerate() {
            let bias = grid.bias();
            (start[0][of], start[1][of]) = (bias[0], bias[1]);
        }
        start
    }

    /// Answers windows; returns the first whose digits have cancelled.
    #[inline(always)]
    fn join(&mut self, block: &RowBlock<'_>, counts: &[f64], lowered: &mut [f64]) -> Option<usize> {
        let between = self.floats(self.between);
        let terms = self.stacks.scan;
        let least = self.grids[K - 1].limit * MIN_SQUARES;
        let (to_end, to_start) = (&self.to_end.sums[..], &self.to_start.sums[..]);
        let (end_anchor, start_anchor) = (self.to_end.anchor, self.to_start.anchor);
        let sums = |(lo, hi)| {
            window(
                between,
                &to_end[hi - end_anchor],
                &to_start[lo - start_anchor],
            )
        };
        let mut any = false;
        if K == 1 {
            // A single sum is the answer itself, so no digits cancel.
            for ((slot, &count), ends) in lowered.iter_mut().zip(counts).zip(block.windows()) {
                *slot = terms.answer(sums(ends), count);
            }
        } else {
            let all = &mut self.sums[..counts.len()];
            for (slot, ends) in all.iter_mut().zip(block.windows()) {
                *slot = sums(ends);
            }
            for ((slot, &count), sums) in lowered.iter_mut().zip(counts).zip(all) {
                *slot = terms.answer(*sums, count);
                any |= terms.has_cancelled(*sums, *slot, count, least);
            }
        }
        if !any {
            return None;
        }
        (0..lowered.len()).find(|at| self.has_cancelled(between, block, *at, lowered[*at]))
    }

    fn has_cancelled(
        &self,
        between: Sums<K>,
        block: &RowBlock<'_>,
        at: usize,
        answer: f64,
    ) -> bool {
        let (lo, hi) = (block.lo[at], block.hi[at]);
        let to_end = &self.to_end.sums[hi - self.to_end.anchor];
        let to_start = &self.to_start.sums[lo - self.to_start.anchor];
        let (sums, count) = (window(between, to_end, to_start), self.counts.float(lo, hi));
        let least = self.grids[K - 1].limit * MIN_SQUARES;
        self.stacks.scan.has_cancelled(sums, answer, count, least)
    }

    /// Scans all rows of short windows from `first` on whose digits have cancelled; returns
    /// the first long one.
    fn recompute_short(
        &self,
        first: usize,
        block: &RowBlock<'_>,
        lowered: &mut [f64],
    ) -> Option<usize> {
        let between = self.floats(self.between);
        for (at, answer) in lowered.iter_mut().enumerate().skip(first) {
            if !self.has_cancelled(between, block, at, *answer) {
                continue;
            }
            let (lo, hi) = (block.lo[at], block.hi[at]);
            if hi - lo > SHORT_ROWS {
                return Some(at);
            }
            *answer = self
                .stacks
                .scan
                .fold_rows(lo, hi, self.counts.float(lo, hi));
        }
        None
    }

    fn floats(&self, between: [Units; K]) -> Sums<K> {
        let mut floats = [[0.0; K]; 2];
        for (of, grid) in self.grids.iter().enumerate() {
            let both = grid.floats(between[of]);
            (floats[0][of], floats[1][of]) = (both[0], both[1]);
        }
        floats
    }

    fn sums(&self, between: [Units; K]) -> [f64; K] {
        let [coarse, fine] = self.floats(between);
        std::array::from_fn(|of| coarse[of] + fine[of])
    }

    #[inline(never)]
    fn begin(&mut self, lo: usize, hi: usize) {
        self.looked += hi - lo;
        let over_budget = self.looked > RESCANS_PER_ROW * (hi - self.since) + 4096;
        self.seen = hi;
        (self.mid, self.is_inexact, self.in_fallback) = (usize::MAX, false, false);
        if lo == hi {
            self.grids = [UnitGrid::ZERO; K];
            self.between = [[0; 2]; K];
            self.anchor(lo, hi);
            return;
        }
        if hi - lo > MAX_TERMS || over_budget {
            self.start_fallback(lo, if over_budget { usize::MAX } else { hi - 1 });
            return;
        }
        self.stacks.scan.begin(lo, hi);
        let terms = self.stacks.scan;
        let (mut most, mut strange) = (0.0, false);
        terms.each(lo..hi, |terms| {
            let size = terms[0].abs();
            most = if size > most { size } else { most };
            strange |= !size.is_finite();
        });
        let last = |found: &dyn Fn(f64) -> bool| {
            let (mut at, mut last) = (lo, lo);
            terms.each(lo..hi, |terms| {
                last = if found(terms[0].abs()) { at } else { last };
                at += 1;
            });
            last
        };
        if strange {
            self.start_fallback(lo, last(&|size| !size.is_finite()));
            return;
        }
        let Some(grid) = UnitGrid::new(most) else {
            self.start_fallback(lo, hi - 1);
            return;
        };
        let mut exact = true;
        if T::CANCELS {
            terms.each(lo..hi, |terms| exact &= grid.holds(terms[0]));
        }
        if !exact {
            // In windows with a term like this, lost digits are irrelevant for the sum.
            (self.is_inexact, self.mid) = (true, last(&|size| size > most / 4.0));
        }
        self.grids = std::array::from_fn(|of| if of == 0 { grid } else { grid.squared() });
        self.between = self.total(lo, hi);
        self.anchor(lo, hi);
    }

    fn anchor(&mut self, lo: usize, hi: usize) {
        let start = self.start();
        self.to_start.begin(lo, start);
        self.to_end.begin(hi, start);
    }

    /// Windows with terms beyond any grid.
    #[inline(never)]
    fn fallback(&mut self, block: &RowBlock<'_>, lowered: &mut [f64]) {
        self.stacks.answer(block, lowered);
    }

    fn start_fallback(&mut self, lo: usize, mid: usize) {
        (self.in_fallback, self.mid) = (true, mid);
        self.stacks.restart(lo);
    }

    /// The sums over rows.
    fn total(&self, lo: usize, hi: usize) -> [Units; K] {
        let mut total = [[0; 2]; K];
        let start = self.start();
        for from in (lo..hi).step_by(BIN_CAPACITY) {
            let mut sums = start;
            let rows = from..hi.min(from + BIN_CAPACITY);
            self.stacks.scan.each(rows, |terms| sums = add(sums, terms));
            for (of, grid) in self.grids.iter().enumerate() {
                let units = grid.units([sums[0][of], sums[1][of]]);
                for level in 0..2 {
                    total[of][level] += units[level];
                }
            }
        }
        total
    }
}

/// The least sum of squares per value, in parts of the greatest square, for which the
/// digits that its terms have lost are irrelevant.
const MIN_SQUARES: f64 = 1.0 / (1 << 28) as f64;

#[inline(always)]
fn window<const K: usize>(between: Sums<K>, to_end: &Sums<K>, to_start: &Sums<K>) -> [f64; K] {
    let mut parts = between;
    for level in 0..2 {
        for of in 0..K {
            parts[level][of] += to_end[level][of] - to_start[level][of];
        }
    }
    std::array::from_fn(|of| parts[0][of] + parts[1][of])
}

#[inline(always)]
fn add<const K: usize>([coarse, fine]: Sums<K>, terms: [f64; K]) -> Sums<K> {
    let mut sums = [coarse, fine];
    for of in 0..K {
        let [coarse, fine] = UnitGrid::add([coarse[of], fine[of]], terms[of]);
        (sums[0][of], sums[1][of]) = (coarse, fine);
    }
    sums
}
