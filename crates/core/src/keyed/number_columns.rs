//! Columns of numeric answers, as words in the layout of Arrow.

use super::answering::Sink;
use crate::aggregate::{Answer, NumberRun};

/// Answers by span and aggregation, in the order of the query points.
#[derive(Debug)]
pub struct NumberColumns {
    rows: usize,
    /// The number of columns of a span.
    aggs: usize,
    /// Column by column: a validity bit for each value, then the values.
    words: Vec<u64>,
    /// Per answered row, its position in the order of the query points.
    order: Vec<u32>,
    /// Whether all answers so far are numbers that fit int64 or float64.
    fits: bool,
}

/// One of [`NumberColumns`].
#[derive(Clone, Copy, Debug)]
pub struct NumberColumn<'a> {
    /// Bit `i % 64` of word `i / 64`: whether value `i` is not null.
    pub valid: &'a [u64],
    /// Integers as they are, floats as their bits; 0 if missing.
    pub values: &'a [u64],
}

impl NumberColumns {
    /// Columns in which every value is valid; `put` clears the bits of nulls.
    pub(super) fn new(spans: usize, aggs: usize, order: Vec<u32>) -> Self {
        let rows = order.len();
        let bits = rows.div_ceil(64);
        let mut words = vec![0; spans * aggs * (bits + rows)];
        for column in words.chunks_exact_mut((bits + rows).max(1)) {
            column[..bits].fill(u64::MAX);
            if let (Some(last), 1..) = (column[..bits].last_mut(), rows % 64) {
                *last >>= 64 - rows % 64;
            }
        }
        Self {
            rows,
            aggs,
            words,
            order,
            fits: true,
        }
    }

    /// Itself, if all answers are numbers that fit.
    pub(super) fn finish(self) -> Option<Self> {
        self.fits.then_some(self)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The answers of an aggregation over a span.
    pub fn column(&self, span: usize, agg: usize) -> NumberColumn<'_> {
        let bits = self.rows.div_ceil(64);
        let from = (span * self.aggs + agg) * (bits + self.rows);
        let (valid, values) = self.words[from..from + bits + self.rows].split_at(bits);
        NumberColumn { valid, values }
    }

    fn column_mut(&mut self, span: usize, agg: usize) -> (&mut [u64], &mut [u64]) {
        let bits = self.rows.div_ceil(64);
        let from = (span * self.aggs + agg) * (bits + self.rows);
        self.words[from..from + bits + self.rows].split_at_mut(bits)
    }
}

fn leave_out(valid: &mut [u64], row: u32) {
    valid[row as usize / 64] &= !(1 << (row % 64));
}

impl Sink for NumberColumns {
    fn put(&mut self, span: usize, row: usize, answers: &[Answer<i64>]) {
        let row = self.order[row];
        for (agg, answer) in answers.iter().enumerate() {
            let bits = match answer {
                Answer::Null => None,
                Answer::I64(value) => Some(*value as u64),
                Answer::F64(value) => Some(value.to_bits()),
                Answer::Bool(value) => Some(u64::from(*value)),
                _ => {
                    self.fits = false;
                    None
                }
            };
            let (valid, values) = self.column_mut(span, agg);
            match bits {
                Some(bits) => values[row as usize] = bits,
                None => leave_out(valid, row),
            }
        }
    }

    fn put_columns(&mut self, span: usize, first: usize, columns: &[NumberRun]) {
        let order = std::mem::take(&mut self.order);
        for (agg, column) in columns.iter().enumerate() {
            let (valid, values) = self.column_mut(span, agg);
            let rows = &order[first..first + column.bits.len()];
            for (row, bits) in rows.iter().zip(&column.bits) {
                values[*row as usize] = *bits;
            }
            for at in &column.missing {
                values[rows[*at] as usize] = 0;
                leave_out(valid, rows[*at]);
            }
        }
        self.order = order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_any_order() {
        for rows in [0, 1, 63, 64, 65, 200_usize] {
            let order: Vec<u32> = (0..rows as u32).rev().collect();
            let (mut single, mut runs) = (
                NumberColumns::new(1, 2, order.clone()),
                NumberColumns::new(1, 2, order),
            );
            let mut columns = [NumberRun::default(), NumberRun::default()];
            for at in 0..rows {
                let missing = at % 5 == 0;
                let float = if missing {
                    Answer::Null
                } else {
                    Answer::F64(0.5)
                };
                single.put(0, at, &[Answer::I64(-(at as i64)), float]);
                columns[0].bits.push(-(at as i64) as u64);
                columns[1].bits.push(0.5_f64.to_bits());
                if missing {
                    columns[1].missing.push(at);
                }
            }
            runs.put_columns(0, 0, &columns);
            assert_eq!(single.words, runs.words);
            let (ints, floats) = (runs.column(0, 0), runs.column(0, 1));
            for row in 0..rows {
                let at = rows - 1 - row;
                assert_eq!(ints.values[row], -(at as i64) as u64);
                assert_eq!(floats.valid[row / 64] >> (row % 64) & 1 == 0, at % 5 == 0);
            }
            let there: u32 = ints.valid.iter().map(|word| word.count_ones()).sum();
            assert_eq!(there as usize, rows);
        }
    }

    #[test]
    fn only_numbers_fit() {
        let mut columns = NumberColumns::new(1, 1, vec![0]);
        columns.put(0, 0, &[Answer::Overflow(1 << 70)]);
        assert!(columns.finish().is_none());
    }
}
