//! The order of a table's rows by group and time.
//!
//! A counting sort by group, which keeps only positions; then a sort by time of the groups
//! that do not ascend. Threads share blocks of rows or groups. The result does not depend
//! on their number.

use std::borrow::Cow;
use std::ops::Range;

use super::parallel::{MIN_ROWS_PER_THREAD, ThreadScope};
use super::{Error, check_rows};
use crate::aggregate::column::{Column, Validity, Values};
use crate::memory::{SharedColumn, Word, zeroed};
use crate::simd::is_sorted;

/// The number of shares of groups per thread: with several, threads wait little for the
/// last share.
const SHARES: usize = 4;

/// Whether rows are sorted by group, and by time within each.
pub fn rows_are_sorted(groups: Option<&[u32]>, times: &[i64]) -> bool {
    let Some(groups) = groups else {
        return is_sorted(times);
    };
    let rows = groups.iter().zip(times);
    groups.len() == times.len() && rows.is_sorted()
}

/// The order of a table's rows, computed once for several calls.
#[derive(Debug)]
pub struct SortLayout {
    pub(super) permutation: Permutation,
    /// By position; `None`: the table is sorted already.
    times: Option<Vec<i64>>,
}

impl SortLayout {
    /// Sorts by group and time. Groups have codes in `0..count`.
    ///
    /// # Panics
    /// As [`Permutation::new`] does.
    pub fn new(
        groups: Option<&[u32]>,
        times: &[i64],
        count: usize,
        threads: usize,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let mut scope = ThreadScope { threads, proceed };
        let (permutation, times) = Permutation::new(groups, times, count, true, &mut scope)?;
        let times = match times {
            Cow::Borrowed(_) => None,
            Cow::Owned(times) => Some(times),
        };
        Ok(Self { permutation, times })
    }

    /// The given times by position.
    pub(super) fn times<'a>(&'a self, given: &'a [i64]) -> &'a [i64] {
        self.times.as_deref().unwrap_or(given)
    }

    /// The position of each row.
    pub fn positions(&self) -> Vec<i64> {
        match &self.permutation.ranks {
            Some(ranks) => ranks.iter().map(|rank| i64::from(*rank)).collect(),
            None => (0..*self.permutation.starts.last().unwrap_or(&0) as i64).collect(),
        }
    }

    /// The rows, by number, whose time other rows of their group have, too.
    pub fn peers(&self, given: &[i64]) -> Vec<i64> {
        let mut rows = Vec::new();
        let mut first = 0;
        for times in self.groups(given) {
            for together in times.chunk_by(|a, b| a == b) {
                if together.len() > 1 {
                    let places = first..first + together.len();
                    rows.extend(places.map(|place| self.permutation.row(place) as i64));
                }
                first += together.len();
            }
        }
        rows.sort_unstable();
        rows
    }

    /// The layout of the same rows whose times are their positions.
    pub fn by_position(&self) -> Self {
        let rows = *self.permutation.starts.last().unwrap_or(&0);
        Self {
            permutation: self.permutation.clone(),
            times: Some((0..rows as i64).collect()),
        }
    }

    /// The times of each group in turn.
    pub(super) fn groups<'a>(&'a self, given: &'a [i64]) -> impl Iterator<Item = &'a [i64]> {
        let times = self.times(given);
        let ends = self.permutation.starts.windows(2);
        ends.map(move |ends| &times[ends[0]..ends[1]])
    }
}

/// Rows by group, then by time if `by_time`, then as in the table.
#[derive(Clone, Debug)]
pub struct Permutation {
    /// The position of each row; `None`: rows are in this order already.
    pub ranks: Option<Vec<u32>>,
    /// Where each group starts, and the end of the last.
    pub starts: Vec<usize>,
}

impl Permutation {
    /// The layout, and the times by position. Groups have codes in `0..count`.
    ///
    /// # Panics
    /// If they have not.
    pub fn new<'a>(
        groups: Option<&[u32]>,
        times: &'a [i64],
        count: usize,
        by_time: bool,
        scope: &mut ThreadScope<'_>,
    ) -> Result<(Self, Cow<'a, [i64]>), Error> {
        check_rows(times.len())?;
        let mut permutation = match groups {
            None => Self {
                ranks: None,
                starts: vec![0, times.len()],
            },
            Some(groups) => Self::by_group(groups, count, scope)?,
        };
        let mut permuted = permutation.permute(times, scope)?;
        if by_time && !permutation.ascends(&permuted, scope)? {
            permutation.sort(permuted.to_mut(), scope)?;
        }
        Ok((permutation, permuted))
    }

    fn by_group(groups: &[u32], count: usize, scope: &mut ThreadScope<'_>) -> Result<Self, Error> {
        let chunk = scope.chunk_len(groups.len(), count);
        let count_each = |groups: &[u32], _: &mut dyn FnMut() -> bool| {
            let mut counts = vec![0; count];
            for &group in groups {
                counts[group as usize] += 1;
            }
            Ok(counts)
        };
        // The number of rows of each group in a block, then the position of the next of
        // them.
        let mut next = scope.each(groups.chunks(chunk).collect(), count_each)?;
        let mut starts = vec![0; count + 1];
        let mut rows = 0;
        for group in 0..count {
            for chunk in &mut next {
                let held = std::mem::replace(&mut chunk[group], rows);
                rows += held;
            }
            starts[group + 1] = rows;
        }
        let mut permutation = Self {
            ranks: None,
            starts,
        };
        if is_sorted(groups) {
            return Ok(permutation);
        }
        let mut ranks = zeroed(rows);
        let jobs = ranks.chunks_mut(chunk).zip(groups.chunks(chunk));
        let rank = |((ranks, groups), mut next): GroupChunk<'_>, _: &mut dyn FnMut() -> bool| {
            for (rank, &group) in ranks.iter_mut().zip(groups) {
                let next = &mut next[group as usize];
                *rank = *next as u32;
                *next += 1;
            }
            Ok(())
        };
        scope.each(jobs.zip(next).collect(), rank)?;
        permutation.ranks = Some(ranks);
        Ok(permutation)
    }

    /// Whether times ascend in every group.
    fn ascends(&self, times: &[i64], scope: &mut ThreadScope<'_>) -> Result<bool, Error> {
        let ascend = |groups: Range<usize>, _: &mut dyn FnMut() -> bool| {
            let mut ends = self.starts[groups.start..=groups.end].windows(2);
            Ok(ends.all(|ends| is_sorted(&times[ends[0]..ends[1]])))
        };
        let found = scope.each(self.shares(scope), ascend)?;
        Ok(found.into_iter().all(|ascends| ascends))
    }

    /// Sorts each group by time, stably.
    fn sort(&mut self, times: &mut [i64], scope: &mut ThreadScope<'_>) -> Result<(), Error> {
        let mut moved = zeroed(times.len());
        let (mut later, mut unmoved) = (times, &mut moved[..]);
        let mut jobs = Vec::new();
        for groups in self.shares(scope) {
            let starts = &self.starts[groups.start..=groups.end];
            let rows = starts[starts.len() - 1] - starts[0];
            let (times, rest) = later.split_at_mut(rows);
            let (moved, others) = unmoved.split_at_mut(rows);
            (later, unmoved) = (rest, others);
            jobs.push((starts, times, moved));
        }
        let sort = |(starts, times, moved): Share<'_>, _: &mut dyn FnMut() -> bool| {
            let mut pairs = Vec::new();
            for ends in starts.windows(2) {
                let own = ends[0] - starts[0]..ends[1] - starts[0];
                sort_group(
                    ends[0],
                    &mut times[own.clone()],
                    &mut moved[own],
                    &mut pairs,
                );
            }
            Ok(())
        };
        scope.each(jobs, sort)?;
        let Some(ranks) = &mut self.ranks else {
            self.ranks = Some(moved);
            return Ok(());
        };
        let chunk = scope.chunk_len(ranks.len(), 0);
        let follow = |ranks: &mut [u32], _: &mut dyn FnMut() -> bool| {
            for rank in ranks {
                *rank = moved[*rank as usize];
            }
            Ok(())
        };
        scope.each(ranks.chunks_mut(chunk).collect(), follow)?;
        Ok(())
    }

    /// Ranges of groups with about as many rows each.
    fn shares(&self, scope: &ThreadScope<'_>) -> Vec<Range<usize>> {
        cut(scope.threads, self.starts.len() - 1, |group| {
            self.starts[group]
        })
    }

    /// The row at a position, by a search; for messages.
    pub fn row(&self, position: usize) -> usize {
        let Some(ranks) = &self.ranks else {
            return position;
        };
        let found = ranks.iter().position(|rank| *rank as usize == position);
        found.expect("every position holds a row")
    }

    /// Values by position.
    pub fn permute<'a, V: Word>(
        &self,
        values: &'a [V],
        scope: &mut ThreadScope<'_>,
    ) -> Result<Cow<'a, [V]>, Error> {
        let Some(ranks) = &self.ranks else {
            return Ok(Cow::Borrowed(values));
        };
        let mut permuted = zeroed(values.len());
        let slots = SharedColumn::of(&mut permuted);
        let chunk = scope.chunk_len(values.len(), 0);
        let jobs = values.chunks(chunk).zip(ranks.chunks(chunk));
        let fill = |(values, ranks): (&[V], &[u32]), _: &mut dyn FnMut() -> bool| {
            for (value, rank) in values.iter().zip(ranks) {
                slots.put(*rank as usize, *value);
            }
            Ok(())
        };
        scope.each(jobs.collect(), fill)?;
        Ok(Cow::Owned(permuted))
    }

    /// A column by position.
    pub fn column<'a>(
        &self,
        column: &Column<'a, i64>,
        scope: &mut ThreadScope<'_>,
    ) -> Result<PermutedColumn<'a>, Error> {
        let bits = column.validity.map(|validity| match &self.ranks {
            None => Mask::Borrowed(validity),
            Some(ranks) => {
                let mut bits = vec![0_u8; ranks.len().div_ceil(8)];
                for (row, rank) in ranks.iter().enumerate() {
                    let bit = u8::from(validity.is_valid(row)) << (rank % 8);
                    bits[*rank as usize / 8] |= bit;
                }
                Mask::Owned(bits)
            }
        });
        let numbers = match column.values {
            Values::I64(values) => PermutedNumbers::I64(self.permute(values, scope)?),
            Values::F64(values) => PermutedNumbers::F64(self.permute(values, scope)?),
            Values::Cells(_) => unreachable!("tables hold numbers"),
        };
        Ok(PermutedColumn { numbers, bits })
    }
}

/// A column whose position `i` holds the `i`th row of a layout.
#[derive(Debug)]
pub struct PermutedColumn<'a> {
    numbers: PermutedNumbers<'a>,
    bits: Option<Mask<'a>>,
}

#[derive(Debug)]
enum PermutedNumbers<'a> {
    I64(Cow<'a, [i64]>),
    F64(Cow<'a, [f64]>),
}

#[derive(Debug)]
enum Mask<'a> {
    Borrowed(Validity<'a>),
    Owned(Vec<u8>),
}

impl PermutedColumn<'_> {
    pub fn slice(&self, from: usize, to: usize) -> Column<'_, i64> {
        let validity = self.bits.as_ref().map(|bits| match bits {
            Mask::Borrowed(validity) => Validity {
                bits: validity.bits,
                offset: validity.offset + from,
            },
            Mask::Owned(bits) => Validity { bits, offset: from },
        });
        let values = match &self.numbers {
            PermutedNumbers::I64(values) => Values::I64(&values[from..to]),
            PermutedNumbers::F64(values) => Values::F64(&values[from..to]),
        };
        Column { values, validity }
    }
}

/// Ranges of groups with about as many rows each: [`SHARES`] per thread where there are
/// several threads. `before` gives the number of rows before a group.
pub fn cut(threads: usize, count: usize, before: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let rows = before(count);
    let shares = match threads {
        0 | 1 => 1,
        threads => (threads * SHARES).min(rows / MIN_ROWS_PER_THREAD),
    };
    if shares < 2 {
        return std::iter::once(0..count).collect();
    }
    let (mut cuts, mut filled) = (vec![0], 0);
    for group in 1..count {
        let before = before(group);
        if before < rows && before * shares / rows > filled {
            filled = before * shares / rows;
            cuts.push(group);
        }
    }
    cuts.push(count);
    cuts.windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// The ranks of a block, its groups, and the position of the next row of each group.
type GroupChunk<'a> = ((&'a mut [u32], &'a [u32]), Vec<usize>);

/// The starts of some groups, their times, and the new position of each of these rows.
type Share<'a> = (&'a [usize], &'a mut [i64], &'a mut [u32]);

/// Sorts the times of a group that starts at `first`, and stores the new position of each
/// row. Times are sorted together with their positions, as in
/// [`Order`](super::order::Order).
fn sort_group(first: usize, times: &mut [i64], moved: &mut [u32], pairs: &mut Vec<(i64, u32)>) {
    if is_sorted(times) {
        for (place, to) in moved.iter_mut().enumerate() {
            *to = (first + place) as u32;
        }
        return;
    }
    pairs.clear();
    pairs.extend(times.iter().copied().zip(0..));
    pairs.sort_unstable();
    for (to, (slot, (time, place))) in (first..).zip(times.iter_mut().zip(&*pairs)) {
        *slot = *time;
        moved[*place as usize] = to as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_than_places_are_refused() {
        use super::super::MAX_ROWS;
        assert_eq!(check_rows(0), Ok(()));
        assert_eq!(check_rows(MAX_ROWS), Ok(()));
        // The last position and the total count still fit.
        assert_eq!(u32::try_from(MAX_ROWS), Ok(u32::MAX));
        let rows = MAX_ROWS + 1;
        assert_eq!(check_rows(rows), Err(Error::TooManyRows { rows }));
    }

    #[test]
    fn a_cut_gives_every_group_to_one_share() {
        for sizes in [
            vec![],
            vec![0; 9],
            vec![MIN_ROWS_PER_THREAD; 40],
            vec![
                90 * MIN_ROWS_PER_THREAD,
                1,
                1,
                0,
                7 * MIN_ROWS_PER_THREAD,
                0,
            ],
        ] {
            let before = |group: usize| sizes[..group].iter().sum();
            for threads in [0, 1, 2, 5] {
                let shares = cut(threads, sizes.len(), before);
                let all = shares.iter().flat_map(Range::clone);
                assert!(all.eq(0..sizes.len()), "{shares:?}");
                let worth = before(sizes.len()) / MIN_ROWS_PER_THREAD;
                let most = threads.max(1) * if threads > 1 { SHARES } else { 1 };
                assert!(shares.len() <= most.min(worth.max(1)), "{shares:?}");
            }
        }
        let even = vec![MIN_ROWS_PER_THREAD; 40];
        let shares = cut(2, 40, |group| even[..group].iter().sum());
        assert_eq!(
            shares,
            (0..8).map(|at| at * 5..at * 5 + 5).collect::<Vec<_>>()
        );
        // The shares that a large group fills are empty.
        let uneven = [
            90 * MIN_ROWS_PER_THREAD,
            1,
            1,
            0,
            7 * MIN_ROWS_PER_THREAD,
            0,
        ];
        let shares = cut(2, 6, |group| uneven[..group].iter().sum());
        assert_eq!(shares, [0..1, 1..6]);
    }
}
