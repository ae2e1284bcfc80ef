//! The windows over a table: hops on a grid, and sessions between gaps.
//!
//! They are answered as [`QueryPoints`](super::QueryPoints): `ends` are their times, and
//! `starts` is where the windows begin.

use super::calendar::Calendar;
use super::sort_layout::SortLayout;

/// Windows of one length that begin at every multiple of `every`, shifted by `offset`.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Positive, as is `every`.
    pub length: i64,
    pub every: i64,
    pub offset: i64,
    /// Whether to include windows without rows between the first and the last one of a
    /// group.
    pub empty: bool,
}

/// Windows by group, then by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowList {
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
    pub groups: Vec<u32>,
    /// The first row of the window's group.
    pub rows: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A window of this row exceeds int64.
    Beyond { row: usize },
    /// More windows than [`MAX_WINDOWS`], or than fit into memory.
    TooMany { count: i128 },
}

/// The largest number of windows of one call.
pub const MAX_WINDOWS: usize = i32::MAX as usize;
/// Up to this many windows are made without counting them first.
const MAX_UNCOUNTED: i128 = 1 << 20;
/// The least memory of a window: its start, end, group and row, the positions of its rows,
/// and an answer. A test allocation of this size is made but not written.
const MIN_WINDOW_BYTES: usize = 64;

impl WindowList {
    fn push(&mut self, (start, end): (i64, i64), group: usize, row: usize) {
        self.starts.push(start);
        self.ends.push(end);
        self.groups.push(group as u32);
        self.rows.push(row as i64);
    }
}

impl Hop {
    fn start(&self, index: i128) -> i128 {
        index * i128::from(self.every) + i128::from(self.offset)
    }

    /// The first window that ends after a time.
    fn first(&self, time: i64) -> i128 {
        let since = i128::from(time) - i128::from(self.length) - i128::from(self.offset);
        since.div_euclid(i128::from(self.every)) + 1
    }

    /// The last window that begins no later than a time.
    fn last(&self, time: i64) -> i128 {
        (i128::from(time) - i128::from(self.offset)).div_euclid(i128::from(self.every))
    }

    /// An upper bound of the number of windows, for rows in order.
    fn at_most(&self, times: &[i64]) -> i128 {
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return 0;
        };
        let apart = self.last(last) - self.first(first) + 1;
        let each = i128::from(self.length) / i128::from(self.every) + 1;
        match self.empty {
            true => apart.max(0),
            false => apart.clamp(0, each * times.len() as i128),
        }
    }

    /// The number of windows.
    fn count(&self, times: &[i64]) -> i128 {
        if self.empty {
            let mut held = times
                .iter()
                .map(|time| (self.first(*time), self.last(*time)));
            let mut held_too = held.clone();
            let first = held.find(|(first, last)| first <= last);
            let last = held_too.rfind(|(first, last)| first <= last);
            return first
                .zip(last)
                .map_or(0, |(first, last)| last.1 - first.0 + 1);
        }
        let (mut count, mut next) = (0, i128::MIN);
        for time in times {
            let (first, last) = (self.first(*time).max(next), self.last(*time));
            count += (last - first + 1).max(0);
            next = next.max(last + 1);
        }
        count
    }

    /// The window, if it fits int64.
    fn window(&self, index: i128) -> Option<(i64, i64)> {
        let start = self.start(index);
        let ends = [start, start + i128::from(self.length)].map(i64::try_from);
        match ends {
            [Ok(start), Ok(end)] => Some((start, end)),
            _ => None,
        }
    }
}

/// The windows `[start, end)` that hold a row or, with `empty`, lie between such windows.
pub fn hops(
    times: &[i64],
    groups: Option<&[u32]>,
    layout: &SortLayout,
    hop: &Hop,
) -> Result<WindowList, Refusal> {
    check_count(layout, times, hop)?;
    let rows = first_rows(groups, layout);
    let mut windows = WindowList::default();
    for (group, times) in layout.groups(times).enumerate() {
        let Some(&first) = times.first() else {
            continue;
        };
        let mut index = hop.first(first);
        let mut oldest = 0;
        // The first of the empty windows that are included if a later window follows.
        let mut next_empty = None;
        loop {
            let start = hop.start(index);
            let outside = |time: &i64| i128::from(*time) < start;
            while times.get(oldest).is_some_and(outside) {
                oldest += 1;
            }
            let Some(&time) = times.get(oldest) else {
                break;
            };
            if i128::from(time) >= start + i128::from(hop.length) {
                index = hop.first(time);
                continue;
            }
            let from = next_empty.filter(|_| hop.empty).unwrap_or(index);
            for index in from..=index {
                let Some(window) = hop.window(index) else {
                    let row = layout
                        .permutation
                        .row(layout.permutation.starts[group] + oldest);
                    return Err(Refusal::Beyond { row });
                };
                windows.push(window, group, rows[group]);
            }
            index += 1;
            next_empty = Some(index);
        }
    }
    Ok(windows)
}

/// The first end after a time of a window that begins with a unit and ends at each multiple of
/// `every` within it; the last one ends with the unit.
pub(crate) fn end_within((start, end): (i64, i128), every: i64, time: i64) -> i128 {
    let every = i128::from(every);
    let passed = (i128::from(time) - i128::from(start)).div_euclid(every);
    end.min(i128::from(start) + (passed + 1) * every)
}

/// The units of a calendar that hold a row or, with `empty`, lie between such units. With
/// `every`, the windows that begin with a unit and end at each multiple of it.
pub fn units(
    times: &[i64],
    groups: Option<&[u32]>,
    layout: &SortLayout,
    (calendar, every): (&Calendar, Option<i64>),
    empty: bool,
) -> Result<WindowList, Refusal> {
    let rows = first_rows(groups, layout);
    let mut windows = WindowList::default();
    for (group, times) in layout.groups(times).enumerate() {
        let mut known: Option<i64> = None;
        for (position, time) in times.iter().enumerate() {
            if known.is_some_and(|end| *time < end) {
                continue;
            }
            let mut at = known.filter(|_| empty).unwrap_or(*time);
            loop {
                let Ok(end) = i64::try_from(calendar.unit_end(at)) else {
                    let first = layout.permutation.starts[group];
                    let row = layout.permutation.row(first + position);
                    return Err(Refusal::Beyond { row });
                };
                let start = calendar.start(at);
                if let Some(every) = every {
                    let unit = (start, i128::from(end));
                    let more = (unit.1 - i128::from(at)) / i128::from(every);
                    check_room(more + windows.ends.len() as i128)?;
                    let mut next = end_within(unit, every, at) as i64;
                    while next < end {
                        windows.push((start, next), group, rows[group]);
                        next = end_within(unit, every, next) as i64;
                    }
                }
                windows.push((start, end), group, rows[group]);
                (known, at) = (Some(end), end);
                if *time < end {
                    break;
                }
            }
            check_room(windows.ends.len() as i128)?;
        }
    }
    Ok(windows)
}

fn check_room(count: i128) -> Result<(), Refusal> {
    match count <= MAX_WINDOWS as i128 {
        true => Ok(()),
        false => Err(Refusal::TooMany { count }),
    }
}

/// Refuses too many windows before any is made.
fn check_count(layout: &SortLayout, times: &[i64], hop: &Hop) -> Result<(), Refusal> {
    let groups = || layout.groups(times);
    if groups().map(|times| hop.at_most(times)).sum::<i128>() <= MAX_UNCOUNTED {
        return Ok(());
    }
    let count: i128 = groups().map(|times| hop.count(times)).sum();
    let room = |count: usize| {
        Vec::<[u8; MIN_WINDOW_BYTES]>::new()
            .try_reserve_exact(count)
            .is_ok()
    };
    match usize::try_from(count) {
        Ok(few) if few <= MAX_WINDOWS && room(few) => Ok(()),
        _ => Err(Refusal::TooMany { count }),
    }
}

/// Windows `[start, end]` from the first to the last of rows that follow one another at a
/// distance of at most `gap`.
pub fn sessions(
    times: &[i64],
    groups: Option<&[u32]>,
    layout: &SortLayout,
    gap: i64,
) -> WindowList {
    let rows = first_rows(groups, layout);
    let mut windows = WindowList::default();
    for (group, times) in layout.groups(times).enumerate() {
        let apart = |a: &i64, b: &i64| b.abs_diff(*a) <= gap.unsigned_abs();
        for session in times.chunk_by(apart) {
            let window = (session[0], session[session.len() - 1]);
            windows.push(window, group, rows[group]);
        }
    }
    windows
}

/// The first row of each group; arbitrary for a group without rows.
fn first_rows(groups: Option<&[u32]>, layout: &SortLayout) -> Vec<usize> {
    let mut rows = vec![0; layout.permutation.starts.len() - 1];
    for (row, group) in groups.unwrap_or_default().iter().enumerate().rev() {
        rows[*group as usize] = row;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(groups: Option<&[u32]>, times: &[i64], count: usize) -> SortLayout {
        SortLayout::new(groups, times, count, 1, &mut || true).expect("proceed returns true")
    }

    fn hops(times: &[i64], hop: &Hop) -> Result<WindowList, Refusal> {
        super::hops(times, None, &layout(None, times, 0), hop)
    }

    #[test]
    fn hops_are_those_that_hold_a_row() {
        let times = [-7, -3, 0, 4, 4, 30, 31];
        for length in 1..12 {
            for every in 1..12 {
                for offset in [-5, 0, 3] {
                    let hop = Hop {
                        length,
                        every,
                        offset,
                        empty: false,
                    };
                    let found = hops(&times, &hop).unwrap();
                    let holds = |start: &i64| {
                        let inside = |time: &i64| (*start..start + length).contains(time);
                        (start - offset).rem_euclid(every) == 0 && times.iter().any(inside)
                    };
                    let starts: Vec<i64> = (-40..40).filter(holds).collect();
                    assert_eq!(found.starts, starts, "{hop:?}");
                    assert_eq!(hop.count(&times), starts.len() as i128, "{hop:?}");
                    assert!(hop.at_most(&times) >= starts.len() as i128, "{hop:?}");
                    let all = hops(&times, &Hop { empty: true, ..hop }).unwrap();
                    let hop = Hop { empty: true, ..hop };
                    assert_eq!(hop.count(&times), all.starts.len() as i128, "{hop:?}");
                    assert!(hop.at_most(&times) >= all.starts.len() as i128, "{hop:?}");
                    let (Some(first), Some(last)) = (starts.first(), starts.last()) else {
                        assert!(all.starts.is_empty());
                        continue;
                    };
                    let between = (*first..=*last).step_by(every as usize);
                    assert_eq!(all.starts, between.collect::<Vec<_>>(), "{hop:?}");
                }
            }
        }
    }

    #[test]
    fn windows_within_units_end_at_each_multiple() {
        let times = [-7, -3, 0, 4, 4, 30, 31];
        let layout = layout(None, &times, 0);
        for (length, every) in [(10, 3), (10, 5), (7, 7), (12, 1)] {
            for empty in [false, true] {
                let unit = Calendar::on_grid(length, 2, 0);
                let found = units(&times, None, &layout, (&unit, Some(every)), empty);
                let found = found.unwrap();
                let found: Vec<_> = found.starts.into_iter().zip(found.ends).collect();
                let (mut all, mut held) = (Vec::new(), Vec::new());
                for start in (2 - 10 * length..100).step_by(length as usize) {
                    let within = (start..start + length).step_by(every as usize).skip(1);
                    for end in within.chain([start + length]) {
                        all.push((start, end));
                        if times.iter().any(|time| (start..end).contains(time)) {
                            held.push((start, end));
                        }
                    }
                }
                if empty {
                    let ends = (held[0], held[held.len() - 1]);
                    held = all;
                    held.retain(|window| ends.0 <= *window && *window <= ends.1);
                }
                assert_eq!(found, held, "{length} {every} {empty}");
            }
        }
    }

    #[test]
    fn windows_beyond_int64_are_refused() {
        let hop = Hop {
            length: 10,
            every: 10,
            offset: 0,
            empty: false,
        };
        for (time, within) in [(i64::MAX, false), (i64::MAX - 20, true), (i64::MIN, false)] {
            assert_eq!(hops(&[time], &hop).is_ok(), within, "{time}");
        }
    }

    #[test]
    fn more_windows_than_there_can_be_are_refused_unmade() {
        let hop = Hop {
            length: 1 << 40,
            every: 1,
            offset: 0,
            empty: false,
        };
        let found = hops(&[0, 5, 1 << 41], &hop);
        let count = (1 << 41) + 5;
        assert_eq!(found, Err(Refusal::TooMany { count }));
        let all = hops(&[0, i64::MAX / 2], &Hop { empty: true, ..hop });
        assert!(matches!(all, Err(Refusal::TooMany { .. })));
    }

    #[test]
    fn sessions_end_where_the_gap_is_exceeded() {
        let (times, groups) = ([9, 0, 2, 4, 20, i64::MAX], [0, 0, 0, 1, 0, 0]);
        let layout = layout(Some(&groups), &times, 2);
        let found = sessions(&times, Some(&groups), &layout, 7);
        assert_eq!(found.starts, [0, 20, i64::MAX, 4]);
        assert_eq!(found.ends, [9, 20, i64::MAX, 4]);
        assert_eq!(found.groups, [0, 0, 0, 1]);
        assert_eq!(found.rows, [0, 0, 0, 3]);
    }
}
