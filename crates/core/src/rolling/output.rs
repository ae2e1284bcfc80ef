//! Result columns, filled in any order of rows.
//!
//! A column begins [`Blank`], with room for every number. Each part of a table fills an
//! [`OutputChunk`] of it and leaves [`Marks`]: validity, lists and overflows.

use crate::aggregate::kinds::AnswerType;
use crate::aggregate::{AggSpec, Answer, Cell, DType, NumberRun};
use crate::memory::zeroed;

/// One result column. `valid` marks the values that are not missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Integers that int64 cannot hold are missing: `beyond` lists their rows, in order, and
    /// the integers.
    I64 {
        values: Vec<i64>,
        valid: Bitmap,
        beyond: Vec<(usize, i128)>,
    },
    F64 {
        values: Vec<f64>,
        valid: Bitmap,
    },
    /// Lists are never missing. `ranges[i]` is the range of row i in `values`.
    List {
        ranges: Vec<(usize, usize)>,
        values: Vec<u64>,
        dtype: DType,
    },
    /// The bytes of sketches and records, likewise; no bytes for an empty window.
    Bytes {
        ranges: Vec<(usize, usize)>,
        values: Vec<u8>,
    },
}

/// A result column without values, with room for every number.
#[derive(Debug)]
pub(super) enum Blank {
    I64(Vec<i64>),
    F64(Vec<f64>),
    List(DType),
    Bytes,
}

impl Blank {
    /// A column of `count` rows, of the type of the answers of `agg`.
    pub fn new(agg: &AggSpec, dtypes: &[DType], rows: usize) -> Self {
        let of = agg.of.map_or(DType::I64, |of| dtypes[of]);
        match agg.answer_type(of) {
            AnswerType::I64 | AnswerType::Bool => Self::I64(zeroed(rows)),
            AnswerType::F64 => Self::F64(zeroed(rows)),
            AnswerType::List(dtype) => Self::List(dtype),
            AnswerType::Bytes => Self::Bytes,
        }
    }

    /// Chunks of so many rows each, one behind the other.
    pub fn chunks(&mut self, sizes: &[usize]) -> Vec<OutputChunk<'_>> {
        match self {
            Self::I64(values) => lend(values, sizes)
                .map(|(values, valid)| OutputChunk::I64 {
                    values,
                    valid,
                    beyond: Vec::new(),
                })
                .collect(),
            Self::F64(values) => lend(values, sizes)
                .map(|(values, valid)| OutputChunk::F64 { values, valid })
                .collect(),
            Self::List(_) => {
                let lists = sizes
                    .iter()
                    .map(|rows| OutputChunk::List(ListValues::new(*rows)));
                lists.collect()
            }
            Self::Bytes => {
                let bytes = sizes
                    .iter()
                    .map(|rows| OutputChunk::Bytes(ListValues::new(*rows)));
                bytes.collect()
            }
        }
    }
}

/// Slices for so many numbers each, all of them missing.
fn lend<'a, V>(
    mut rest: &'a mut [V],
    sizes: &[usize],
) -> impl Iterator<Item = (&'a mut [V], Bitmap)> {
    sizes.iter().map(move |&rows| {
        let values = rest.split_off_mut(..rows);
        (values.expect("pieces of one column"), Bitmap::new(rows))
    })
}

/// Several values per row: `ranges[i]` is the range of row i.
#[derive(Debug)]
pub(super) struct ListValues<V> {
    pub ranges: Vec<(usize, usize)>,
    pub values: Vec<V>,
}

impl<V> ListValues<V> {
    /// None in any row.
    fn new(rows: usize) -> Self {
        Self {
            ranges: vec![(0, 0); rows],
            values: Vec::new(),
        }
    }

    fn put(&mut self, row: usize, values: impl IntoIterator<Item = V>) {
        let start = self.values.len();
        self.values.extend(values);
        self.ranges[row] = (start, self.values.len());
    }
}

/// Some rows of a result column, all missing at first.
#[derive(Debug)]
pub(super) enum OutputChunk<'a> {
    I64 {
        values: &'a mut [i64],
        valid: Bitmap,
        /// Rows whose integer does not fit, in any order, with the integer.
        beyond: Vec<(usize, i128)>,
    },
    F64 {
        values: &'a mut [f64],
        valid: Bitmap,
    },
    List(ListValues<u64>),
    Bytes(ListValues<u8>),
}

/// The validity, lists and overflows of a chunk.
#[derive(Debug)]
pub(super) enum Marks {
    Valid(Bitmap),
    /// Likewise, and the rows whose integer does not fit.
    Fits(Bitmap, Vec<(usize, i128)>),
    List(ListValues<u64>),
    Bytes(ListValues<u8>),
}

impl OutputChunk<'_> {
    pub fn into_marks(self) -> Marks {
        match self {
            Self::I64 { valid, beyond, .. } => Marks::Fits(valid, beyond),
            Self::F64 { valid, .. } => Marks::Valid(valid),
            Self::List(lists) => Marks::List(lists),
            Self::Bytes(bytes) => Marks::Bytes(bytes),
        }
    }

    /// Marks every value as present; [`Self::leave_out`] clears single ones.
    pub(super) fn assume_all(&mut self) {
        match self {
            Self::I64 { values, valid, .. } => *valid = Bitmap::full(values.len()),
            Self::F64 { values, valid } => *valid = Bitmap::full(values.len()),
            Self::List(_) | Self::Bytes(_) => {}
        }
    }

    /// Marks a present value as missing and blanks it.
    pub(super) fn leave_out(&mut self, row: usize) {
        match self {
            Self::I64 { values, valid, .. } => {
                values[row] = 0;
                valid.clear(row);
            }
            Self::F64 { values, valid } => {
                values[row] = 0.0;
                valid.clear(row);
            }
            Self::List(_) | Self::Bytes(_) => unreachable!("lists are never missing"),
        }
    }

    /// Marks a number as missing, if it is present.
    pub(super) fn clear(&mut self, row: usize) {
        let there = match self {
            Self::I64 { valid, .. } | Self::F64 { valid, .. } => valid.bit(row) == 1,
            Self::List(_) | Self::Bytes(_) => false,
        };
        if there {
            self.leave_out(row);
        }
    }

    /// Records the integer of a missing value, which does not fit.
    pub(super) fn note_overflow(&mut self, row: usize, value: i128) {
        let Self::I64 { beyond, .. } = self else {
            unreachable!("an integer for another column");
        };
        beyond.push((row, value));
    }

    /// Sets the bytes of a record that was missing.
    pub(super) fn put_record(&mut self, row: usize, record: &[u64]) {
        let Self::Bytes(bytes) = self else {
            unreachable!("records for another column");
        };
        bytes.put(row, record.iter().flat_map(|word| word.to_ne_bytes()));
    }

    /// Sets numbers from a row on.
    pub(super) fn set_run(&mut self, row: usize, run: &NumberRun) {
        let rows = row..row + run.bits.len();
        let valid = match self {
            Self::I64 { values, valid, .. } => {
                let slots = values[rows.clone()].iter_mut().zip(&run.bits);
                slots.for_each(|(slot, bits)| *slot = *bits as i64);
                valid
            }
            Self::F64 { values, valid } => {
                let slots = values[rows.clone()].iter_mut().zip(&run.bits);
                slots.for_each(|(slot, bits)| *slot = f64::from_bits(*bits));
                valid
            }
            Self::List(_) | Self::Bytes(_) => unreachable!("numbers for another column"),
        };
        rows.for_each(|row| valid.set(row));
        for at in &run.missing {
            self.leave_out(row + at);
        }
    }

    /// # Panics
    /// If the answer has another type: a broken plan.
    #[inline]
    pub(super) fn set(&mut self, row: usize, answer: &Answer<i64>) {
        match (self, answer) {
            (_, Answer::Null) => {}
            (Self::I64 { values, valid, .. }, Answer::I64(value)) => {
                values[row] = *value;
                valid.set(row);
            }
            (Self::I64 { values, valid, .. }, Answer::Bool(value)) => {
                values[row] = i64::from(*value);
                valid.set(row);
            }
            (Self::F64 { values, valid }, Answer::F64(value)) => {
                values[row] = *value;
                valid.set(row);
            }
            (Self::List(lists), Answer::List(cells)) => {
                lists.put(row, cells.iter().filter_map(Cell::bits));
            }
            (Self::List(lists), Answer::Hitters(hitters)) => {
                let hitters = hitters
                    .iter()
                    .flat_map(|(item, count, error)| [item.bits().unwrap_or(0), *count, *error]);
                lists.put(row, hitters);
            }
            (Self::Bytes(all), Answer::Bytes(bytes)) => all.put(row, bytes.iter().copied()),
            (column, answer) => unreachable!("{answer:?} for {column:?}"),
        }
    }
}

/// An Arrow validity bitmap: value i is bit i % 8 of byte i / 8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    pub bytes: Vec<u8>,
    pub set: usize,
}

impl Bitmap {
    fn new(rows: usize) -> Self {
        Self {
            bytes: vec![0; rows.div_ceil(8)],
            set: 0,
        }
    }

    pub(super) fn full(rows: usize) -> Self {
        let mut bytes = vec![u8::MAX; rows.div_ceil(8)];
        if let Some(last) = bytes.last_mut() {
            *last >>= (8 - rows % 8) % 8;
        }
        Self { bytes, set: rows }
    }

    /// Joins bitmaps to one of so many rows, each from its start on.
    pub(super) fn joined(chunks: &[Self], starts: &[usize], rows: usize) -> Self {
        let mut joined = Self::new(rows);
        for (chunk, start) in chunks.iter().zip(starts) {
            let bytes = &mut joined.bytes[start / 8..];
            for (at, byte) in chunk.bytes.iter().enumerate() {
                let [low, high] = (u16::from(*byte) << (start % 8)).to_le_bytes();
                bytes[at] |= low;
                if high != 0 {
                    bytes[at + 1] |= high;
                }
            }
            joined.set += chunk.set;
        }
        joined
    }

    #[inline]
    pub(super) fn bit(&self, row: usize) -> u8 {
        self.bytes[row / 8] >> (row % 8) & 1
    }

    /// Clears a bit that is set.
    fn clear(&mut self, row: usize) {
        self.bytes[row / 8] &= !(1 << (row % 8));
        self.set -= 1;
    }

    /// Sets a bit that is not set.
    fn set(&mut self, row: usize) {
        self.bytes[row / 8] |= 1 << (row % 8);
        self.set += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_bitmaps_begin_anywhere() {
        for sizes in [[0, 3, 13], [5, 8, 9], [8, 0, 24], [17, 1, 0], [1, 7, 8]] {
            let starts = [0, sizes[0], sizes[0] + sizes[1]];
            let rows = sizes.iter().sum();
            let mut chunks = sizes.map(Bitmap::new);
            let mut expected = Bitmap::new(rows);
            for at in 0..sizes.len() {
                for row in (0..sizes[at]).step_by(2) {
                    chunks[at].set(row);
                    expected.set(starts[at] + row);
                }
            }
            assert_eq!(Bitmap::joined(&chunks, &starts, rows), expected);
        }
    }
}
