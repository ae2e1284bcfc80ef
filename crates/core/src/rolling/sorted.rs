//! A table's rows in the order in which they are taken, its columns side by side.

use std::borrow::Cow;

use super::order::Order;
use crate::aggregate::column::{Column, Values};

/// Rows by group, then by time, then as in the table.
#[derive(Debug)]
pub struct Sorted<'a> {
    /// `None`: the table is in order already.
    pub rows: Option<Vec<usize>>,
    /// Where each group starts, and the end of the last.
    pub starts: Vec<usize>,
    pub times: Cow<'a, [i64]>,
}

impl<'a> Sorted<'a> {
    /// Groups have codes in `0..count`.
    pub fn new(groups: Option<&[i64]>, times: &'a [i64], count: usize) -> Self {
        if groups.is_none() && times.is_sorted() {
            return Self {
                rows: None,
                starts: vec![0, times.len()],
                times: Cow::Borrowed(times),
            };
        }
        let (rows, starts) = Order::new(groups, times, count).into_parts();
        let times = rows.iter().map(|row| times[*row]).collect();
        Self {
            rows: Some(rows),
            starts,
            times,
        }
    }

    /// All rows in this order.
    pub fn rows(&self) -> Cow<'_, [usize]> {
        match &self.rows {
            Some(rows) => Cow::Borrowed(rows),
            None => (0..self.times.len()).collect(),
        }
    }

    /// The row of the table at a position of this order.
    pub fn row(&self, position: usize) -> usize {
        self.rows.as_ref().map_or(position, |rows| rows[position])
    }

    fn gather<V: Copy>(&self, values: &'a [V]) -> Cow<'a, [V]> {
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
                Values::I64(values) => Numbers::I64(self.gather(values)),
                Values::F64(values) => Numbers::F64(self.gather(values)),
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

/// A column whose position `i` is the `i`th row taken.
#[derive(Debug)]
pub struct Dense<'a> {
    pub numbers: Numbers<'a>,
    /// `None`: no value is missing.
    pub presence: Option<Presence>,
}

/// Which values are there.
#[derive(Debug)]
pub struct Presence {
    pub present: Vec<bool>,
    /// How many are there before each position, and in all.
    counts: Vec<u32>,
}

impl Presence {
    fn new(present: Vec<bool>) -> Self {
        let mut count = 0;
        let mut counts = Vec::with_capacity(present.len() + 1);
        counts.push(0);
        for &there in &present {
            count += u32::from(there);
            counts.push(count);
        }
        Self { present, counts }
    }

    #[inline]
    pub fn count(&self, lo: usize, hi: usize) -> usize {
        (self.counts[hi] - self.counts[lo]) as usize
    }
}
