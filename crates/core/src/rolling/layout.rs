//! Where the rows of a table lie by group and time.

use std::borrow::Cow;

use super::order::Order;
use super::vectors::is_sorted;
use crate::aggregate::column::{Column, Validity, Values};
use crate::memory::zeroed;

/// Whether rows lie by group, and by time in each.
pub fn in_order(groups: Option<&[i64]>, times: &[i64]) -> bool {
    let Some(groups) = groups else {
        return is_sorted(times);
    };
    let rows = groups.iter().zip(times);
    groups.len() == times.len() && rows.is_sorted()
}

/// A table put in order once, for all that is asked of it.
#[derive(Debug)]
pub struct Laid {
    pub(super) layout: Layout,
    /// By position; `None`: as they lie.
    times: Option<Vec<i64>>,
}

impl Laid {
    /// By group and time. Groups have codes in `0..count`.
    ///
    /// # Panics
    /// As [`Layout::new`] does.
    pub fn new(groups: Option<&[i64]>, times: &[i64], count: usize) -> Self {
        let (layout, times) = Layout::new(groups, times, count, true);
        let times = match times {
            Cow::Borrowed(_) => None,
            Cow::Owned(times) => Some(times),
        };
        Self { layout, times }
    }

    /// The times by position, of those it was made of.
    pub(super) fn times<'a>(&'a self, given: &'a [i64]) -> &'a [i64] {
        self.times.as_deref().unwrap_or(given)
    }

    /// The times of each group in turn.
    pub(super) fn groups<'a>(&'a self, given: &'a [i64]) -> impl Iterator<Item = &'a [i64]> {
        let times = self.times(given);
        let ends = self.layout.starts.windows(2);
        ends.map(move |ends| &times[ends[0]..ends[1]])
    }
}

/// Rows by group, then by time if that is asked for, then as in the table.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The position of each row; `None`: rows lie like that already.
    pub ranks: Option<Vec<u32>>,
    /// Where each group starts, and the end of the last.
    pub starts: Vec<usize>,
}

impl Layout {
    /// The layout, and the times by position. Groups have codes in `0..count`.
    ///
    /// # Panics
    /// If they have not, or if there are more than 2³² rows to put in order.
    pub fn new<'a>(
        groups: Option<&[i64]>,
        times: &'a [i64],
        count: usize,
        by_time: bool,
    ) -> (Self, Cow<'a, [i64]>) {
        let layout = match groups {
            None => Self {
                ranks: None,
                starts: vec![0, times.len()],
            },
            Some(groups) => Self::by_group(groups, count),
        };
        let gathered = layout.gather(times);
        let ascend = |ends: &[usize]| is_sorted(&gathered[ends[0]..ends[1]]);
        if !by_time || layout.starts.windows(2).all(ascend) {
            return (layout, gathered);
        }
        drop(gathered);
        let layout = Self::sorted(Order::new(groups, times, count));
        let gathered = layout.gather(times);
        (layout, gathered)
    }

    fn by_group(groups: &[i64], count: usize) -> Self {
        let starts = starts(groups, count);
        let ranks = (!is_sorted(groups)).then(|| ranks(groups, &starts));
        Self { ranks, starts }
    }

    fn sorted(order: Order) -> Self {
        let (rows, starts) = order.into_parts();
        let mut ranks = zeroed(rows.len());
        for (position, row) in (0..).zip(rows) {
            ranks[row] = position;
        }
        Self {
            ranks: Some(ranks),
            starts,
        }
    }

    /// The row at a position: a search, for messages.
    pub fn row(&self, position: usize) -> usize {
        let Some(ranks) = &self.ranks else {
            return position;
        };
        let found = ranks.iter().position(|rank| *rank as usize == position);
        found.expect("every position holds a row")
    }

    /// Values by position.
    pub fn gather<'a, V: Copy + Default>(&self, values: &'a [V]) -> Cow<'a, [V]> {
        let Some(ranks) = &self.ranks else {
            return Cow::Borrowed(values);
        };
        let mut gathered = zeroed(values.len());
        for (value, rank) in values.iter().zip(ranks) {
            gathered[*rank as usize] = *value;
        }
        Cow::Owned(gathered)
    }

    /// A column by position.
    pub fn column<'a>(&self, column: &Column<'a, i64>) -> Gathered<'a> {
        let bits = column.validity.map(|validity| match &self.ranks {
            None => Bits::Borrowed(validity),
            Some(ranks) => {
                let mut bits = vec![0_u8; ranks.len().div_ceil(8)];
                for (row, rank) in ranks.iter().enumerate() {
                    let bit = u8::from(validity.is_valid(row)) << (rank % 8);
                    bits[*rank as usize / 8] |= bit;
                }
                Bits::Owned(bits)
            }
        });
        let numbers = match column.values {
            Values::I64(values) => Numbers::I64(self.gather(values)),
            Values::F64(values) => Numbers::F64(self.gather(values)),
            Values::Cells(_) => unreachable!("tables hold numbers"),
        };
        Gathered { numbers, bits }
    }
}

/// A column whose position `i` holds the `i`th row of a layout.
#[derive(Debug)]
pub struct Gathered<'a> {
    numbers: Numbers<'a>,
    bits: Option<Bits<'a>>,
}

#[derive(Debug)]
enum Numbers<'a> {
    I64(Cow<'a, [i64]>),
    F64(Cow<'a, [f64]>),
}

#[derive(Debug)]
enum Bits<'a> {
    Borrowed(Validity<'a>),
    Owned(Vec<u8>),
}

impl Gathered<'_> {
    pub fn slice(&self, from: usize, to: usize) -> Column<'_, i64> {
        let validity = self.bits.as_ref().map(|bits| match bits {
            Bits::Borrowed(validity) => Validity {
                bits: validity.bits,
                offset: validity.offset + from,
            },
            Bits::Owned(bits) => Validity { bits, offset: from },
        });
        let values = match &self.numbers {
            Numbers::I64(values) => Values::I64(&values[from..to]),
            Numbers::F64(values) => Values::F64(&values[from..to]),
        };
        Column { values, validity }
    }
}

fn code(group: i64) -> usize {
    usize::try_from(group).expect("group codes start at 0")
}

fn starts(groups: &[i64], count: usize) -> Vec<usize> {
    let mut starts = vec![0; count + 1];
    for &group in groups {
        starts[code(group) + 1] += 1;
    }
    for group in 0..count {
        starts[group + 1] += starts[group];
    }
    starts
}

/// A counting sort, of which only the places are kept.
fn ranks(groups: &[i64], starts: &[usize]) -> Vec<u32> {
    let narrow = |start: &usize| u32::try_from(*start).expect("at most 2^32 rows");
    let mut next: Vec<u32> = starts.iter().map(narrow).collect();
    let mut ranks = zeroed(groups.len());
    for (rank, &group) in ranks.iter_mut().zip(groups) {
        let next = &mut next[code(group)];
        *rank = *next;
        *next = next.wrapping_add(1);
    }
    ranks
}
