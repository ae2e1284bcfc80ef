//! A table's rows in sorted order, and its columns in that order.

use std::borrow::Cow;

use super::Request;
use super::order::Order;
use crate::aggregate::column::{Column, Values};
use crate::simd::is_sorted;

/// Rows by group, then by time, then as in the table.
#[derive(Debug)]
pub struct Sorted<'a> {
    /// `None`: the table is in order already.
    pub rows: Option<Vec<usize>>,
    /// Where each group starts, and the end of the last.
    pub starts: Vec<usize>,
    pub times: Cow<'a, [i64]>,
    /// The query points of the request, if any, by the same groups.
    pub points: Option<Box<Self>>,
}

/// Positions of rows; `None`: the rows are in order.
#[derive(Debug)]
pub struct Positions(Option<Vec<usize>>);

impl Positions {
    pub fn of(&self, row: usize) -> usize {
        self.0.as_ref().map_or(row, |positions| positions[row])
    }
}

impl<'a> Sorted<'a> {
    /// The rows of a request, and its query points. With an order of arrival, rows of a
    /// group stay as in the table.
    pub fn of<T>(request: &Request<'a, T>) -> Self {
        let count = request.group_count();
        let make = match request.arrival {
            None => Self::new,
            Some(_) => Self::by_group,
        };
        let points = request.at.map(|at| make(at.groups, at.times, count));
        Self {
            points: points.map(Box::new),
            ..make(request.groups, request.times, count)
        }
    }

    /// Rows that are already in order.
    pub fn in_order(starts: Vec<usize>, times: &'a [i64], points: Option<Self>) -> Self {
        Self {
            rows: None,
            starts,
            times: Cow::Borrowed(times),
            points: points.map(Box::new),
        }
    }

    fn by_group(groups: Option<&[u32]>, times: &'a [i64], count: usize) -> Self {
        let Some(groups) = groups else {
            return Self::in_order(vec![0, times.len()], times, None);
        };
        let (rows, starts) = Order::by_group(groups, count).into_parts();
        Self {
            rows: Some(rows),
            starts,
            times: Cow::Borrowed(times),
            points: None,
        }
    }

    /// Groups have codes in `0..count`.
    pub fn new(groups: Option<&[u32]>, times: &'a [i64], count: usize) -> Self {
        if groups.is_none() && is_sorted(times) {
            return Self::in_order(vec![0, times.len()], times, None);
        }
        let (rows, starts) = Order::new(groups, times, count).into_parts();
        let times = rows.iter().map(|row| times[*row]).collect();
        Self {
            rows: Some(rows),
            starts,
            times,
            points: None,
        }
    }

    /// All rows in this order.
    pub fn rows(&self) -> Cow<'_, [usize]> {
        match &self.rows {
            Some(rows) => Cow::Borrowed(rows),
            None => (0..self.times.len()).collect(),
        }
    }

    /// The position of each row of the table.
    pub fn positions(&self) -> Positions {
        Positions(self.rows.as_ref().map(|rows| {
            let mut positions = vec![0; rows.len()];
            for (position, row) in rows.iter().enumerate() {
                positions[*row] = position;
            }
            positions
        }))
    }

    /// The row of the table at a position of this order.
    pub fn row(&self, position: usize) -> usize {
        self.rows.as_ref().map_or(position, |rows| rows[position])
    }

    fn permute<V: Copy>(&self, values: &'a [V]) -> Cow<'a, [V]> {
        match &self.rows {
            None => Cow::Borrowed(values),
            Some(rows) => rows.iter().map(|row| values[*row]).collect(),
        }
    }

    /// A column of numbers in this order.
    ///
    /// # Panics
    /// On columns of objects.
    pub fn column<T>(&self, column: &Column<'a, T>) -> Dense<'a> {
        let validity = column.validity;
        let present = validity.map(|validity| {
            let present = |position| validity.is_valid(self.row(position));
            (0..self.times.len()).map(present).collect()
        });
        Dense {
            numbers: match column.values {
                Values::I64(values) => Numbers::I64(self.permute(values)),
                Values::F64(values) => Numbers::F64(self.permute(values)),
                Values::Cells(_) => unreachable!("kernels know numbers only"),
            },
            presence: present.map(Presence::new),
        }
    }
}

#[derive(Debug)]
pub enum Numbers<'a> {
    I64(Cow<'a, [i64]>),
    F64(Cow<'a, [f64]>),
}

/// A column whose position `i` is the `i`th row of the order.
#[derive(Debug)]
pub struct Dense<'a> {
    pub numbers: Numbers<'a>,
    /// `None`: no value is missing.
    pub presence: Option<Presence>,
}

impl Dense<'_> {
    pub fn len(&self) -> usize {
        match &self.numbers {
            Numbers::I64(values) => values.len(),
            Numbers::F64(values) => values.len(),
        }
    }

    #[inline(always)]
    pub fn is_present(&self, at: usize) -> bool {
        let presence = self.presence.as_ref();
        presence.is_none_or(|presence| presence.present[at])
    }

    /// Whether integers ascend within a group, where they are not missing.
    pub fn ascends(&self, group: &[usize]) -> bool {
        let (Numbers::I64(values), rows) = (&self.numbers, group[0]..group[1]) else {
            return false;
        };
        match &self.presence {
            None => is_sorted(&values[rows]),
            Some(presence) => {
                let all = values[rows.clone()].iter().zip(&presence.present[rows]);
                all.filter(|(_, there)| **there)
                    .is_sorted_by_key(|(value, _)| *value)
            }
        }
    }

    /// The bits of the present values, one after the other.
    pub fn each_present(&self, take: impl FnMut(u64)) {
        let kept = (0..self.len()).filter(|at| self.is_present(*at));
        match &self.numbers {
            Numbers::I64(values) => kept.map(|at| values[at] as u64).for_each(take),
            Numbers::F64(values) => kept.map(|at| values[at].to_bits()).for_each(take),
        }
    }
}

/// Which values are not missing.
#[derive(Debug)]
pub struct Presence {
    pub present: Vec<bool>,
    /// The number of present values before each position, and in total. 32 bits hold
    /// [`MAX_ROWS`](super::MAX_ROWS).
    counts: Vec<u32>,
}

impl Presence {
    pub fn new(present: Vec<bool>) -> Self {
        let mut count = 0;
        let mut counts = Vec::with_capacity(present.len() + 1);
        counts.push(0);
        for &there in &present {
            count += u32::from(there);
            counts.push(count);
        }
        Self { present, counts }
    }

    /// The number of present values before each of some positions.
    pub fn before(&self, positions: &[usize], counts: &mut Vec<usize>) {
        counts.clear();
        counts.extend(positions.iter().map(|at| self.counts[*at] as usize));
    }

    #[inline]
    pub fn count(&self, lo: usize, hi: usize) -> usize {
        (self.counts[hi] - self.counts[lo]) as usize
    }
}
