//! Borrowed columns, as tables and bulk inserts pass values to an aggregation.

use super::{Aggregation, Cell, DType};
use crate::batch::Batch;

/// The validity of a column: Arrow's bitmap, bit `offset + i` for value `i`.
#[derive(Clone, Copy, Debug)]
pub struct Validity<'a> {
    pub bits: &'a [u8],
    pub offset: usize,
}

impl Validity<'_> {
    #[inline]
    pub fn is_valid(self, row: usize) -> bool {
        let bit = self.offset + row;
        self.bits[bit / 8] >> (bit % 8) & 1 == 1
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Values<'a, T> {
    I64(&'a [i64]),
    F64(&'a [f64]),
    /// Anything, nulls included.
    Cells(&'a [Cell<T>]),
}

#[derive(Clone, Copy, Debug)]
pub struct Column<'a, T> {
    pub values: Values<'a, T>,
    /// `None`: no value is missing.
    pub validity: Option<Validity<'a>>,
}

impl<'a, T> Column<'a, T> {
    pub fn of_cells(cells: &'a [Cell<T>]) -> Self {
        Self {
            values: Values::Cells(cells),
            validity: None,
        }
    }

    /// The rows `from..from + count`.
    pub fn slice(&self, from: usize, count: usize) -> Self {
        let to = from + count;
        Self {
            values: match self.values {
                Values::I64(values) => Values::I64(&values[from..to]),
                Values::F64(values) => Values::F64(&values[from..to]),
                Values::Cells(cells) => Values::Cells(&cells[from..to]),
            },
            validity: self.validity.map(|validity| Validity {
                offset: validity.offset + from,
                ..validity
            }),
        }
    }
}

impl<T: Clone> Column<'_, T> {
    pub fn len(&self) -> usize {
        match self.values {
            Values::I64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Cells(cells) => cells.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn dtype(&self) -> DType {
        match self.values {
            Values::I64(_) => DType::I64,
            Values::F64(_) => DType::F64,
            Values::Cells(_) => DType::Object,
        }
    }

    #[inline]
    pub fn cell(&self, row: usize) -> Cell<T> {
        if self
            .validity
            .is_some_and(|validity| !validity.is_valid(row))
        {
            return Cell::Null;
        }
        match self.values {
            Values::I64(values) => Cell::I64(values[row]),
            Values::F64(values) => Cell::F64(values[row]),
            Values::Cells(cells) => cells[row].clone(),
        }
    }
}

/// Entries of all rows, at the given times, for any aggregation and column. Frequent
/// aggregations copy whole columns instead, see [`Aggregation::stage_columns`].
pub fn stage_rows<T: Clone, A: Aggregation<T>>(
    aggregation: &A,
    times: Vec<i64>,
    columns: &[Column<'_, T>],
) -> Batch<A> {
    let mut batch = Batch::with_capacity(times.len());
    let mut cells = vec![Cell::Null; columns.len()];
    for (row, time) in times.into_iter().enumerate() {
        for (cell, column) in cells.iter_mut().zip(columns) {
            *cell = column.cell(row);
        }
        batch.push(time, aggregation.entry(&cells));
    }
    batch
}

/// A batch of raw values only.
pub fn stage_raw<A: crate::monoid::Monoid>(times: Vec<i64>, values: Vec<A::In>) -> Batch<A> {
    Batch {
        times,
        values,
        lifted: Vec::new(),
    }
}
