//! Windows that begin at a time of the calendar: a month or a local day before their end.
//!
//! Local time is the time plus the offset of a zone, which changes at some instants. The start
//! is found in local time, by days and months, and is converted back:
//!
//! - a local time that exists twice is the earlier one,
//! - one that does not exist is the first instant after the gap,
//! - a day that a month lacks is the last day of that month.
//!
//! So starts may go back while ends go forward: on 30 March the window of a month begins on
//! 28 February as it does on 29 March, at an earlier hour.
//!
//! Within a local day and between changes of the offset, a window has a constant length or a
//! constant start ([`Piece`]). The pieces of some days are found together and kept, so that a
//! start is a lookup.

use std::sync::OnceLock;

use chrono::{Datelike, Days, Months, NaiveDate};

/// The length of a window in units of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Days(u32),
    Months(u32),
}

/// Where a window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// On a grid of ticks, without a unit: at its last point that is at least a length before
    /// the end of the window.
    OnGrid {
        every: i64,
        offset: i64,
        length: i64,
    },
    /// At the same local time, a unit before its end.
    Before,
    /// With the unit that its end lies in. Of seven days, it is the week that begins
    /// `shift` days after Thursday.
    With { shift: u32 },
}

/// Starts of windows by the calendar of a zone.
#[derive(Debug, PartialEq, Eq)]
pub struct Calendar {
    unit: Unit,
    start: Start,
    /// The ticks of 24 hours.
    day: i64,
    /// Instants from which on local time differs by an offset, in order; the first offset is
    /// that of all earlier times, too.
    changes: Vec<(i64, i64)>,
    /// The pieces of [`CHUNK`] days each, from [`FIRST`] on.
    chunks: Vec<OnceLock<Chunk>>,
}

/// Days after the epoch, from 1800 to 2400.
const FIRST: i64 = -62_091;
const LAST: i64 = 157_054;
const CHUNK: i64 = 256;

/// The pieces of some days, one after another.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    pieces: Vec<Piece>,
    /// Per day, the piece that its first tick is in.
    days: Vec<u32>,
}

/// The starts of windows whose ends lie in a range of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    from: i64,
    /// Excluded.
    until: i128,
    /// The start of the window that ends at `from`.
    start: i128,
    /// Whether all windows begin there; otherwise their length is the same.
    fixed: bool,
    /// See [`Calendar::starts`].
    pass: u8,
}

impl Piece {
    /// Whether a time is in the range.
    pub fn holds(&self, end: i64) -> bool {
        self.from <= end && i128::from(end) < self.until
    }

    /// The number of times, in order and from the range on, that are in it.
    #[inline]
    pub fn count(&self, times: &[i64]) -> usize {
        match times.last() {
            Some(last) if i128::from(*last) >= self.until => {
                times.partition_point(|time| i128::from(*time) < self.until)
            }
            _ => times.len(),
        }
    }

    /// The length of all windows, if they have one that is positive; else they begin together.
    #[inline]
    pub fn length(&self) -> Option<i64> {
        let length = i64::try_from(i128::from(self.from) - self.start).ok();
        length.filter(|length| !self.fixed && *length > 0)
    }

    /// The start of the window that ends at a time of the range.
    pub fn at(&self, end: i64) -> i128 {
        match self.fixed {
            true => self.start,
            false => self.start + (i128::from(end) - i128::from(self.from)),
        }
    }
}

/// A local time as an instant.
struct Resolved {
    at: i128,
    /// In a gap, how long the gap lasts from this local time on.
    gap: Option<i128>,
    /// How long the offset stays the same.
    rest: i128,
}

impl Calendar {
    /// # Panics
    /// Without changes, or if a day has no ticks.
    pub fn new(unit: Unit, start: Start, day: i64, changes: Vec<(i64, i64)>) -> Self {
        assert!(!changes.is_empty() && day > 0);
        let count = (LAST - FIRST) / CHUNK + 1;
        Self {
            unit,
            start,
            day,
            changes,
            chunks: (0..count).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Windows that begin on a grid: at `offset` and all multiples of `every` from there. They
    /// are at least as long as `length`, and a unit of the grid without a length.
    ///
    /// # Panics
    /// If `every` is not positive, or the length is negative.
    pub fn on_grid(every: i64, offset: i64, length: i64) -> Self {
        assert!(every > 0 && length >= 0);
        Self {
            unit: Unit::Days(1),
            start: Start::OnGrid {
                every,
                offset,
                length,
            },
            day: every,
            changes: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// The start of the window that ends at a time; clamped to int64.
    pub fn start(&self, end: i64) -> i64 {
        clamped(self.piece(end).at(end))
    }

    /// The end of the unit that a time lies in: the first instant of the next one.
    pub fn unit_end(&self, time: i64) -> i128 {
        let shift = match self.start {
            Start::OnGrid { .. } => return self.piece(time).until,
            Start::With { shift } => shift,
            Start::Before => unreachable!("only windows that begin with a unit are one"),
        };
        let regime = self.regime(time);
        let date = self.date(i128::from(time) + self.offset(regime));
        let next = date.and_then(|date| self.first(date, shift));
        let next = next.and_then(|first| match self.unit {
            Unit::Days(days) => first.checked_add_days(Days::new(days.into())),
            Unit::Months(months) => first.checked_add_months(Months::new(months)),
        });
        let end = next.map_or(i128::MAX / 4, |next| self.midnight(next));
        self.resolve(end).at
    }

    /// The starts of windows by their ends, which are faster to find in order; and the number
    /// of a pass for each. The starts of a pass go forward with the ends, if these are in order.
    pub fn starts(&self, ends: &[i64]) -> (Vec<i64>, Vec<u8>) {
        let mut starts = Vec::with_capacity(ends.len());
        let mut passes = Vec::with_capacity(ends.len());
        let mut last = None;
        for &end in ends {
            let piece = self.piece_after(&mut last, end);
            starts.push(clamped(piece.at(end)));
            passes.push(piece.pass);
        }
        (starts, passes)
    }

    /// The ends, by number, that are not of the first pass, 0.
    pub fn out_of_order(&self, ends: &[i64]) -> Vec<i64> {
        if self.start != Start::Before {
            return Vec::new();
        }
        let mut last = None;
        let numbers = (0..).zip(ends);
        let later = numbers.filter(|(_, end)| self.piece_after(&mut last, **end).pass > 0);
        later.map(|(number, _)| number).collect()
    }

    /// A number that ends with starts out of order do not share: by how many days the start is
    /// moved to the end of its month, and whether its local time is there for the second time.
    fn pass(&self, end: i64) -> u8 {
        if self.start != Start::Before {
            return 0;
        }
        let regime = self.regime(end);
        let local = i128::from(end) + self.offset(regime);
        let date = self.date(local);
        let moved = date.zip(date.and_then(|date| self.before(date)));
        let days = match (self.unit, moved) {
            (Unit::Months(_), Some((date, before))) => date.day().saturating_sub(before.day()),
            _ => 0,
        };
        let again =
            regime > 0 && local < i128::from(self.changes[regime].0) + self.offset(regime - 1);
        (days * 2 + u32::from(again)) as u8
    }

    /// As `piece`, given that of an earlier call, which times in order often share.
    #[inline]
    fn piece_after(&self, last: &mut Option<Piece>, end: i64) -> Piece {
        match *last {
            Some(piece) if piece.holds(end) => piece,
            _ => *last.insert(self.piece(end)),
        }
    }

    /// The starts of the window that ends at a time, and of those that end soon after it.
    #[inline]
    pub fn piece(&self, end: i64) -> Piece {
        if let Start::OnGrid {
            every,
            offset,
            length,
        } = self.start
        {
            return piece_on_grid(end, every.into(), offset.into(), length.into());
        }
        let day = end.div_euclid(self.day) - FIRST;
        let chunk = usize::try_from(day / CHUNK).ok();
        let found = chunk.and_then(|chunk| self.chunks.get(chunk));
        let Some(found) = found.filter(|_| day >= 0) else {
            return self.computed(end);
        };
        let chunk = found.get_or_init(|| self.chunk(FIRST + day / CHUNK * CHUNK));
        let first = chunk.days.get((day % CHUNK) as usize);
        let pieces = first.map_or(&[][..], |first| &chunk.pieces[*first as usize..]);
        let known = pieces.iter().find(|piece| piece.holds(end));
        known.copied().unwrap_or_else(|| self.computed(end))
    }

    /// The pieces of the days from one on, as far as int64 has them.
    #[cold]
    fn chunk(&self, first: i64) -> Chunk {
        let (mut pieces, mut days) = (Vec::new(), Vec::new());
        let mut piece: Option<Piece> = None;
        for day in first..first + CHUNK {
            let Some(from) = day.checked_mul(self.day) else {
                break;
            };
            let until = i128::from(from) + i128::from(self.day);
            let mut at = from;
            if !piece.is_some_and(|piece| piece.holds(from)) {
                pieces.push(*piece.insert(self.computed(from)));
            }
            days.push(pieces.len() as u32 - 1);
            while let Some(last) = piece
                && last.until < until
                && let Ok(next) = i64::try_from(last.until)
                && next > at
            {
                at = next;
                pieces.push(*piece.insert(self.computed(next)));
            }
        }
        Chunk { pieces, days }
    }

    fn computed(&self, end: i64) -> Piece {
        let regime = self.regime(end);
        let now = i128::from(end);
        let local = now + self.offset(regime);
        let day = i128::from(self.day);
        let (midnight, time) = (local - local.rem_euclid(day), local.rem_euclid(day));
        let rest = (day - time).min(self.end(regime) - now);
        let date = self.date(local);
        let (start, fixed, rest) = match self.start {
            Start::Before => {
                let before = date.and_then(|date| self.before(date));
                let target = before.map_or(i128::MIN / 4, |date| self.midnight(date) + time);
                let start = self.resolve(target);
                match start.gap {
                    Some(gap) => (start.at, true, rest.min(gap)),
                    None => (start.at, false, rest.min(start.rest)),
                }
            }
            Start::OnGrid { .. } => unreachable!("`piece` gives these"),
            Start::With { shift } => {
                let first = date.and_then(|date| self.first(date, shift));
                let first = first.map_or(midnight, |date| self.midnight(date));
                (self.resolve(first).at, true, rest)
            }
        };
        Piece {
            from: end,
            until: now + rest,
            start,
            fixed,
            pass: self.pass(end),
        }
    }

    /// The same day, a unit before.
    fn before(&self, date: NaiveDate) -> Option<NaiveDate> {
        match self.unit {
            Unit::Days(days) => date.checked_sub_days(Days::new(days.into())),
            Unit::Months(months) => date.checked_sub_months(Months::new(months)),
        }
    }

    /// The first day of the unit.
    fn first(&self, date: NaiveDate, shift: u32) -> Option<NaiveDate> {
        match self.unit {
            Unit::Days(days) => {
                let passed =
                    (i64::from(date.to_epoch_days()) - i64::from(shift)).rem_euclid(days.into());
                date.checked_sub_days(Days::new(passed as u64))
            }
            Unit::Months(months) => {
                let passed = date.month0() % months.clamp(1, 12);
                date.with_day(1)?.checked_sub_months(Months::new(passed))
            }
        }
    }

    /// The day of a local time; `None` beyond the years that chrono knows.
    fn date(&self, local: i128) -> Option<NaiveDate> {
        let days = local.div_euclid(self.day.into());
        NaiveDate::from_epoch_days(i32::try_from(days).ok()?)
    }

    fn midnight(&self, date: NaiveDate) -> i128 {
        i128::from(date.to_epoch_days()) * i128::from(self.day)
    }

    /// The number of the offset at an instant.
    fn regime(&self, at: i64) -> usize {
        let after = self.changes.partition_point(|(from, _)| *from <= at);
        after.saturating_sub(1)
    }

    fn offset(&self, regime: usize) -> i128 {
        self.changes[regime].1.into()
    }

    /// When an offset ends.
    fn end(&self, regime: usize) -> i128 {
        let next = self.changes.get(regime + 1);
        next.map_or(i128::MAX / 4, |(from, _)| i128::from(*from))
    }

    fn resolve(&self, local: i128) -> Resolved {
        // Offsets are less than two days.
        let earliest = clamped(local - 2 * i128::from(self.day));
        let mut regime = self.regime(earliest);
        while local >= self.end(regime) + self.offset(regime) {
            regime += 1;
        }
        let first = match regime {
            0 => i128::MIN / 2,
            _ => self.changes[regime].0.into(),
        };
        let at = local - self.offset(regime);
        Resolved {
            at: at.max(first),
            gap: (at < first).then(|| first - at),
            rest: self.end(regime) - at,
        }
    }
}

fn piece_on_grid(end: i64, every: i128, offset: i128, length: i128) -> Piece {
    let least = i128::from(end) - length - offset;
    let start = least.div_euclid(every) * every + offset;
    Piece {
        from: end,
        until: start + every + length,
        start,
        fixed: true,
        pass: 0,
    }
}

fn clamped(at: i128) -> i64 {
    at.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

    /// Central Europe in 2024, in seconds.
    fn berlin(unit: Unit, start: Start) -> Calendar {
        let changes = vec![
            (1_698_541_200, HOUR),
            (1_711_846_800, 2 * HOUR),
            (1_729_990_800, HOUR),
        ];
        Calendar::new(unit, start, DAY, changes)
    }

    fn local(year: i32, month: u32, day: u32, hour: u32, offset: i64) -> i64 {
        let date = NaiveDate::from_ymd_opt(year, month, day).unwrap();
        let time = date.and_hms_opt(hour, 30, 0).unwrap().and_utc();
        time.timestamp() - offset * HOUR
    }

    #[test]
    fn months_end_with_their_last_day() {
        let month = berlin(Unit::Months(1), Start::Before);
        for (day, start) in [(28, 28), (29, 29), (30, 29)] {
            let end = local(2024, 3, day, 10, 1);
            assert_eq!(month.start(end), local(2024, 2, start, 10, 1));
        }
        let year = berlin(Unit::Months(12), Start::Before);
        let end = local(2024, 2, 29, 0, 1);
        assert_eq!(year.start(end), local(2023, 2, 28, 0, 1));
    }

    #[test]
    fn local_times_that_do_not_exist_or_exist_twice() {
        let day = berlin(Unit::Days(1), Start::Before);
        // 31 March has no hour from 2 to 3; 27 October has it twice.
        let gap = 1_711_846_800;
        assert_eq!(day.start(local(2024, 4, 1, 2, 2)), gap);
        assert_eq!(day.start(local(2024, 4, 1, 1, 2)), local(2024, 3, 31, 1, 1));
        assert_eq!(day.start(local(2024, 4, 1, 3, 2)), local(2024, 3, 31, 3, 2));
        assert_eq!(
            day.start(local(2024, 10, 28, 2, 1)),
            local(2024, 10, 27, 2, 2)
        );
    }

    #[test]
    fn units_begin_at_local_midnight() {
        let end = local(2024, 3, 31, 12, 2);
        let midnight = |month, day, offset| local(2024, month, day, 0, offset) - HOUR / 2;
        let with = |unit, shift| berlin(unit, Start::With { shift }).start(end);
        assert_eq!(with(Unit::Days(1), 0), midnight(3, 31, 1));
        assert_eq!(with(Unit::Days(7), 4), midnight(3, 25, 1)); // a Monday
        assert_eq!(with(Unit::Months(1), 0), midnight(3, 1, 1));
        assert_eq!(with(Unit::Months(3), 0), midnight(1, 1, 1));
        assert_eq!(with(Unit::Months(12), 0), midnight(1, 1, 1));
        let next = |unit, shift| berlin(unit, Start::With { shift }).unit_end(end) as i64;
        assert_eq!(next(Unit::Days(1), 0), midnight(4, 1, 2));
        assert_eq!(next(Unit::Days(7), 4), midnight(4, 1, 2));
        assert_eq!(next(Unit::Months(3), 0), midnight(4, 1, 2));
    }

    #[test]
    fn starts_on_a_grid() {
        for (every, offset, length) in [(7, 0, 0), (7, 3, 20), (1, 0, 5), (60, -7, 1)] {
            let calendar = Calendar::on_grid(every, offset, length);
            for end in -200..200 {
                let points = (-300..300).map(|n| n * every + offset);
                let start = points.filter(|at| *at <= end - length).max();
                assert_eq!(Some(calendar.start(end)), start, "{calendar:?} {end}");
                let piece = calendar.piece(end);
                let until = piece.until as i64;
                assert_eq!(calendar.start(until - 1), calendar.start(end));
                assert_eq!(calendar.start(until), calendar.start(end) + every);
                let next = calendar.start(end) + every + length;
                assert_eq!(calendar.unit_end(end), i128::from(next));
            }
        }
        let ends = [i64::MIN, i64::MIN + 1, i64::MAX];
        let calendar = Calendar::on_grid(i64::MAX, i64::MIN, i64::MAX);
        assert_eq!(calendar.starts(&ends).0[..2], [i64::MIN; 2]);
    }

    #[test]
    fn starts_in_order_are_those_one_by_one_and_each_pass_goes_forward() {
        let units = [
            Unit::Days(1),
            Unit::Days(7),
            Unit::Months(1),
            Unit::Months(12),
        ];
        for unit in units {
            for start in [Start::Before, Start::With { shift: 0 }] {
                let calendar = berlin(unit, start);
                let ends: Vec<i64> = (0..40_000).map(|n| 1_690_000_000 + n * 1_371).collect();
                let (starts, passes) = calendar.starts(&ends);
                let mut latest = [i64::MIN; 8];
                for ((end, start), pass) in ends.iter().zip(&starts).zip(passes) {
                    assert_eq!(*start, calendar.start(*end), "{unit:?} {end}");
                    assert!(start <= end);
                    let before = std::mem::replace(&mut latest[usize::from(pass)], *start);
                    assert!(before <= *start, "{unit:?} {end}");
                }
            }
        }
    }
}
