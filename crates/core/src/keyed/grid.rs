//! The ends of hopping windows.

use crate::rolling::calendar::Calendar;
use crate::rolling::hop_windows::end_within;

/// Windows `[end - length, end)` that end at `offset + length` and all multiples of `every`
/// from there; or the units of a calendar, of at most `length`; or windows that begin with
/// such a unit, and end at each multiple of `every` within it and at its end.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Positive, as is `every`.
    pub length: i64,
    pub every: i64,
    pub offset: i64,
    pub calendar: Option<&'static Calendar>,
    pub cumulates: bool,
}

impl Grid {
    /// The first end after a time.
    pub fn end_after(&self, time: i64) -> i128 {
        if let Some(calendar) = self.calendar {
            let end = calendar.unit_end(time);
            return match self.cumulates {
                true => end_within((calendar.start(time), end), self.every, time),
                false => end,
            };
        }
        let origin = i128::from(self.offset) + i128::from(self.length);
        let hops = (i128::from(time) - origin).div_euclid(i128::from(self.every)) + 1;
        origin + hops * i128::from(self.every)
    }

    /// The start of the window, or the least time of int64.
    pub fn start(&self, end: i128) -> i64 {
        if let Some(calendar) = self.calendar {
            let last = (end - 1).clamp(i64::MIN.into(), i64::MAX.into());
            return calendar.start(last as i64);
        }
        let start = end - i128::from(self.length);
        start.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}
