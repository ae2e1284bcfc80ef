//! The rows in the window of each row, by time or by number.
//!
//! No overflow is possible: distances between int64 times are unsigned 64-bit numbers.

use std::ops::Range;

use super::calendar::{Calendar, Piece};
use crate::simd::{SimdTask, dispatch_simd};

/// The ends that belong to the window of length w at time t: `(t−w, t]`, `[t−w, t)`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    Right,
    Left,
    Both,
    Neither,
}

/// Which rows of equal time a window includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    /// All of them (SQL RANGE).
    Peers,
    /// Only those up to the row in table order.
    Rows,
}

/// The length of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Positive.
    Time(i64),
    /// Positive.
    Rows(usize),
    /// From the first row on.
    Unbounded,
    /// From a time of the calendar on. Calendars live as long as the process, which has few.
    Calendar(&'static Calendar),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub length: Length,
    pub closed: Closed,
    /// The distance from the end of the window to its query point.
    pub offset: i64,
}

impl Span {
    /// The window at `now` as an interval closed at both ends, empty if they cross; it
    /// begins at `since`, if that is given. A window of rows has no lower bound of time.
    pub fn interval(self, now: i64, since: Option<i64>) -> (i128, i128) {
        let end = i128::from(now) - i128::from(self.offset);
        let start = match (since, self.length) {
            (Some(since), _) => i128::from(since) - i128::from(self.offset),
            (None, Length::Time(length)) => end - i128::from(length),
            (None, Length::Rows(_) | Length::Unbounded) => i128::MIN / 2,
            (None, Length::Calendar(calendar)) => match i64::try_from(end) {
                Ok(end) => calendar.start(end).into(),
                Err(_) => end,
            },
        };
        let lo = start + i128::from(!self.closed.left());
        (lo, end - i128::from(!self.closed.right()))
    }

    /// The first and the last time of a window at `now`; the first is later if it can hold
    /// no entry.
    pub fn bounds(self, now: i64) -> (i64, i64) {
        let (lo, hi) = self.interval(now, None);
        let bound = |end: i128| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        match lo > i64::MAX.into() || hi < i64::MIN.into() {
            true => (i64::MAX, i64::MIN),
            false => (bound(lo), bound(hi)),
        }
    }
}

impl Closed {
    fn left(self) -> bool {
        matches!(self, Self::Left | Self::Both)
    }

    fn right(self) -> bool {
        matches!(self, Self::Right | Self::Both)
    }
}

/// A SIMD block: the starts of 8 windows are compared with 16 times. About 1 % of the blocks
/// need the scalar path.
const ROWS: usize = 8;
const KEYS: usize = 16;
/// Rows that are checked for peers at once.
const ROWS_PER_CHECK: usize = 32;

/// The windows of the rows of a group in turn, as ranges of positions that only move
/// forward.
#[derive(Debug)]
pub struct FramePointers<'a> {
    times: &'a [i64],
    span: Span,
    ties: FrameUnit,
    lo: usize,
    hi: usize,
}

impl<'a> FramePointers<'a> {
    /// `times` is sorted.
    pub fn new(times: &'a [i64], span: Span, ties: FrameUnit) -> Self {
        Self {
            times,
            span,
            ties,
            lo: 0,
            hi: 0,
        }
    }

    /// The ranges of the rows from `position` on, which follow the rows of the previous
    /// call; `base` is added to both ends.
    pub fn fill(&mut self, position: usize, base: usize, lo: &mut [usize], hi: &mut [usize]) {
        if lo.len() < ROWS || matches!(self.span.length, Length::Rows(_)) {
            return self.fill_one_by_one(position, base, lo, hi);
        }
        dispatch_simd(Fill {
            pointers: self,
            position,
            base,
            lo,
            hi,
        });
    }

    #[inline(always)]
    fn fill_together(
        &mut self,
        (position, base): (usize, usize),
        (lo, hi): (&mut [usize], &mut [usize]),
    ) {
        match self.span.length {
            Length::Time(length) => self.fill_reach(position, base, lo, length),
            Length::Calendar(calendar) => self.fill_pieces(position, base, lo, calendar),
            Length::Unbounded => lo.fill(base),
            Length::Rows(_) => unreachable!("filled one by one"),
        }
        // Last, because it goes backwards: memory is read faster if times are first read
        // forwards.
        self.fill_hi(position, base, hi);
    }

    /// The windows of one length.
    #[inline(always)]
    fn fill_reach(&mut self, position: usize, base: usize, lo: &mut [usize], length: i64) {
        let reach = length - i64::from(!self.span.closed.left());
        // Times ascend: if the first stays within int64, all others do.
        match self.times[position].checked_sub(reach) {
            Some(_) => self.fill_lo(position, base, lo, |now| now - reach),
            None => self.fill_lo(position, base, lo, |now| now.saturating_sub(reach)),
        }
    }

    /// The windows of a calendar, piece by piece. Forward only, as `move_lo`.
    #[inline(always)]
    fn fill_pieces(&mut self, position: usize, base: usize, lo: &mut [usize], calendar: &Calendar) {
        let times = &self.times[position..position + lo.len()];
        let mut done = 0;
        while done < times.len() {
            let piece = calendar.piece(times[done]);
            let count = piece.count(&times[done..]);
            let (from, slots) = (position + done, &mut lo[done..done + count]);
            done += count;
            if let Some(length) = piece.length() {
                self.fill_reach(from, base, slots, length);
                continue;
            }
            let left = self.span.closed.left();
            self.fill_lo(from, base, slots, |now| least(&piece, now, left));
        }
    }

    fn fill_one_by_one(
        &mut self,
        position: usize,
        base: usize,
        lo: &mut [usize],
        hi: &mut [usize],
    ) {
        for ((lo, hi), position) in lo.iter_mut().zip(hi).zip(position..) {
            let window = self.at(position);
            (*lo, *hi) = (base + window.0, base + window.1);
        }
    }

    /// Row by row, each search would wait for the previous one. So a few rows are compared
    /// with the same keys in vector registers, and only the last result is waited for.
    #[inline(always)]
    fn fill_lo(
        &mut self,
        position: usize,
        base: usize,
        lo: &mut [usize],
        least: impl Fn(i64) -> i64,
    ) {
        let now = &self.times[position..position + lo.len()];
        let (blocks, rest) = now.as_chunks::<ROWS>();
        let (slots, rest_slots) = lo.as_chunks_mut::<ROWS>();
        for (now, slots) in blocks.iter().zip(slots) {
            let least = now.map(&least);
            let keys = self.times[self.lo..].first_chunk::<KEYS>();
            if let Some(keys) = keys
                && keys[KEYS - 1] >= least[ROWS - 1]
            {
                let mut found = [base + self.lo; ROWS];
                for key in keys {
                    for (found, least) in found.iter_mut().zip(&least) {
                        *found += usize::from(key < least);
                    }
                }
                self.lo += outside(keys, least[ROWS - 1]);
                *slots = found;
            } else {
                self.step(&least, base, slots);
            }
        }
        for (now, slot) in rest.iter().zip(rest_slots) {
            self.lo = self.forward(self.lo, least(*now));
            *slot = base + self.lo;
        }
    }

    /// For rows whose windows begin far apart, or at the end of the table.
    #[inline(never)]
    fn step(&mut self, least: &[i64; ROWS], base: usize, slots: &mut [usize; ROWS]) {
        for (slot, least) in slots.iter_mut().zip(least) {
            self.lo = self.forward(self.lo, *least);
            *slot = base + self.lo;
        }
    }

    #[inline(always)]
    fn fill_hi(&mut self, position: usize, base: usize, hi: &mut [usize]) {
        let count = hi.len();
        let now = &self.times[position..position + count];
        let right = self.span.closed.right();
        for (hi, at) in hi.iter_mut().zip(base + position + usize::from(right)..) {
            *hi = at;
        }
        if right && self.ties == FrameUnit::Peers {
            let last = now[count - 1];
            let mut end = base + self.end_of_peers(position + count, last);
            hi[count - 1] = end;
            // Most blocks have no peers.
            for from in (0..count).step_by(ROWS_PER_CHECK).rev() {
                let now = &now[from..count.min(from + ROWS_PER_CHECK + 1)];
                let hi = &mut hi[from..from + now.len()];
                if !any_equal(now) {
                    end = hi[0];
                    continue;
                }
                for (hi, pair) in hi.iter_mut().zip(now.windows(2)).rev() {
                    end = if pair[0] == pair[1] { end } else { *hi };
                    *hi = end;
                }
            }
        } else if !right {
            // The window of every peer ends before the first of them.
            if let Some(before) = position.checked_sub(1)
                && self.times[before] == now[0]
            {
                hi[0] = base + self.hi;
            }
            let mut end = hi[0];
            for (hi, pair) in hi[1..].iter_mut().zip(now.windows(2)) {
                end = if pair[0] == pair[1] { end } else { *hi };
                *hi = end;
            }
        }
        self.hi = hi[count - 1] - base;
    }

    /// The end of the rows of the time `last` from `from` on.
    #[inline(always)]
    fn end_of_peers(&self, from: usize, last: i64) -> usize {
        if self.hi > from {
            // Earlier rows have the same time, and their scan reached this far.
            return self.hi;
        }
        let peers = self.times[from..].iter().take_while(|time| **time == last);
        from + peers.count()
    }

    /// The range of the row at `position`, which follows that of the previous call.
    #[inline(always)]
    pub fn at(&mut self, position: usize) -> (usize, usize) {
        match self.span.length {
            Length::Rows(count) => ((position + 1).saturating_sub(count), position + 1),
            Length::Unbounded => {
                self.move_hi(position, self.times[position]);
                (0, self.hi)
            }
            Length::Calendar(calendar) => {
                let now = self.times[position];
                self.move_lo(calendar, now);
                self.move_hi(position, now);
                (self.lo, self.hi)
            }
            Length::Time(length) => {
                let now = self.times[position];
                // The least time in the window; `now` is always in it, so `lo` stops there.
                let reach = length - i64::from(!self.span.closed.left());
                self.lo = self.forward(self.lo, now.saturating_sub(reach));
                self.move_hi(position, now);
                (self.lo, self.hi)
            }
        }
    }

    /// The number of rows to skip varies, so a loop over single rows is often mispredicted;
    /// a loop over four rows at a time rarely is.
    #[inline(always)]
    fn forward(&self, mut lo: usize, least: i64) -> usize {
        while let Some(four) = self.times[lo..].first_chunk::<4>() {
            let count = outside(four, least);
            lo += count;
            if count < 4 {
                return lo;
            }
        }
        while self.times[lo] < least {
            lo += 1;
        }
        lo
    }

    /// Forward only: the caller answers windows again that begin before an earlier one.
    #[inline(always)]
    fn move_lo(&mut self, calendar: &Calendar, now: i64) {
        let least = least(&calendar.piece(now), now, self.span.closed.left());
        self.lo = self.forward(self.lo, least);
    }

    #[inline(always)]
    fn move_hi(&mut self, position: usize, now: i64) {
        if self.span.closed.right() {
            self.hi = self.hi.max(position + 1);
            if self.ties == FrameUnit::Rows {
                return;
            }
            while self.hi < self.times.len() && self.times[self.hi] <= now {
                self.hi += 1;
            }
        } else {
            while self.times[self.hi] < now {
                self.hi += 1;
            }
        }
    }
}

/// Windows of many rows.
struct Fill<'a, 'b> {
    pointers: &'a mut FramePointers<'b>,
    position: usize,
    base: usize,
    lo: &'a mut [usize],
    hi: &'a mut [usize],
}

impl SimdTask for Fill<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let place = (self.position, self.base);
        self.pointers.fill_together(place, (self.lo, self.hi));
    }
}

/// The least time in the window of a calendar at `now`, or `now`, as a window need not hold it.
#[inline(always)]
fn least(piece: &Piece, now: i64, left: bool) -> i64 {
    let least = (piece.at(now) + i128::from(!left)).min(now.into());
    least.max(i64::MIN.into()) as i64
}

/// The number of these times before the least one in the window.
#[inline(always)]
fn outside<const N: usize>(times: &[i64; N], least: i64) -> usize {
    times.iter().map(|time| usize::from(*time < least)).sum()
}

/// Whether two neighbours are equal; without a branch per pair, so that it is vectorised.
#[inline(always)]
fn any_equal(times: &[i64]) -> bool {
    let pairs = times.iter().zip(&times[1..]);
    pairs.fold(false, |any, (a, b)| any | (a == b))
}

/// The positions of an interval among times in order.
pub fn positions_in(times: &[i64], interval: (i128, i128)) -> Range<usize> {
    let Some((lo, hi)) = clamp(interval) else {
        return 0..0;
    };
    let from = times.partition_point(|time| *time < lo);
    from..times.partition_point(|time| *time <= hi)
}

/// An interval clamped to int64; `None` if no time lies in it.
pub fn clamp((lo, hi): (i128, i128)) -> Option<(i64, i64)> {
    let lo = i64::try_from(lo.max(i128::from(i64::MIN))).ok()?;
    let hi = i64::try_from(hi.min(i128::from(i64::MAX))).ok()?;
    (lo <= hi).then_some((lo, hi))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rolling::calendar::{Start, Unit};

    const TIMES: [i64; 7] = [i64::MIN, i64::MIN + 1, -1, 0, 0, 2, i64::MAX];

    fn sees(now: i64, time: i64, length: i64, closed: Closed) -> bool {
        let age = i128::from(now) - i128::from(time);
        let length = i128::from(length);
        let young = age < length || (closed.left() && age == length);
        let old = age > 0 || (closed.right() && age == 0);
        young && old
    }

    #[test]
    fn pointers_and_interval_follow_the_definition_to_the_ends_of_int64() {
        for closed in [Closed::Right, Closed::Left, Closed::Both, Closed::Neither] {
            for length in [1, 2, 3, i64::MAX - 1, i64::MAX] {
                let span = Span {
                    length: Length::Time(length),
                    closed,
                    offset: 0,
                };
                let mut pointers = FramePointers::new(&TIMES, span, FrameUnit::Peers);
                for (position, &now) in TIMES.iter().enumerate() {
                    let (lo, hi) = pointers.at(position);
                    let range = clamp(span.interval(now, None));
                    for (other, &time) in TIMES.iter().enumerate() {
                        let expected = sees(now, time, length, closed);
                        let case = (closed, length, now, time);
                        assert_eq!((lo..hi).contains(&other), expected, "{case:?}");
                        let inside = range.is_some_and(|(lo, hi)| lo <= time && time <= hi);
                        assert_eq!(inside, expected, "{case:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_of_equal_time_see_only_those_before_them() {
        let span = Span {
            length: Length::Time(5),
            closed: Closed::Right,
            offset: 0,
        };
        let times = [1, 3, 3, 3, 9];
        let mut pointers = FramePointers::new(&times, span, FrameUnit::Rows);
        let ranges: Vec<_> = (0..5).map(|position| pointers.at(position)).collect();
        assert_eq!(ranges, [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5)]);
    }

    #[test]
    fn windows_found_together_are_those_found_one_by_one() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let changes = || vec![(0, 0), (5_000, 17), (9_000, -40)];
        let calendars = [
            Calendar::on_grid(7, 3, 20),
            Calendar::new(Unit::Days(1), Start::Before, 300, changes()),
            Calendar::new(Unit::Months(1), Start::With { shift: 0 }, 24, changes()),
        ];
        let calendars = calendars.map(|calendar| &*Box::leak(Box::new(calendar)));
        for round in 0..300 {
            // Regular times, peers, and gaps that evict many rows at once.
            let gap = [1, 2, 1000][round % 3];
            let mut now = [0, i64::MIN, i64::MAX - 40_000_000][round / 3 % 3];
            let times: Vec<i64> = (0..1 + next(400))
                .map(|_| {
                    let most = if next(50) == 0 { 40 * gap } else { gap };
                    now += next(most + 1) as i64;
                    now
                })
                .collect();
            for closed in [Closed::Right, Closed::Left, Closed::Both, Closed::Neither] {
                for ties in [FrameUnit::Peers, FrameUnit::Rows] {
                    let length = match next(3) {
                        0 => Length::Calendar(calendars[next(3) as usize]),
                        _ => Length::Time(1 + next(30 * gap) as i64),
                    };
                    let span = Span {
                        length,
                        closed,
                        offset: 0,
                    };
                    let mut one_by_one = FramePointers::new(&times, span, ties);
                    let mut together = FramePointers::new(&times, span, ties);
                    let mut position = 0;
                    while position < times.len() {
                        let count = (1 + next(150) as usize).min(times.len() - position);
                        let (mut lo, mut hi) = (vec![0; count], vec![0; count]);
                        together.fill(position, 5, &mut lo, &mut hi);
                        for (at, (lo, hi)) in lo.into_iter().zip(hi).enumerate() {
                            let (from, to) = one_by_one.at(position + at);
                            assert_eq!((lo, hi), (5 + from, 5 + to), "{span:?} {ties:?}");
                        }
                        position += count;
                    }
                }
            }
        }
    }
}
