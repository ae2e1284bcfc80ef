//! From the answers of parts of a table to columns in the order of the table.

use super::Error;
use super::output::{Bitmap, Output};
use super::parallel;
use crate::memory::zeroed;

/// Where the answers of a table lie.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The position of each answer; `None`: in order.
    pub ranks: Option<&'a [u32]>,
    /// Where the positions of each part start, and the end of the last.
    pub bases: &'a [usize],
}

impl Places<'_> {
    fn len(&self) -> usize {
        self.bases[self.bases.len() - 1]
    }

    /// The part and the place in it of the answer at `row`.
    #[inline(always)]
    fn of(&self, row: usize) -> (usize, usize) {
        let position = self.ranks.map_or(row, |ranks| ranks[row] as usize);
        let inner = &self.bases[1..self.bases.len() - 1];
        let part = inner
            .iter()
            .map(|base| usize::from(*base <= position))
            .sum();
        (part, position - self.bases[part])
    }

    /// One column from those of the parts, which are all of one kind.
    pub fn join(
        &self,
        parts: Vec<Output>,
        threads: usize,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Output, Error> {
        let mut numbers = Numbers::default();
        for part in &parts {
            match part {
                Output::I64 { values, valid } => {
                    numbers.integers.push(values);
                    numbers.valid.push(valid);
                }
                Output::F64 { values, valid } => {
                    numbers.floats.push(values);
                    numbers.valid.push(valid);
                }
                Output::List { .. } | Output::Bytes { .. } => {
                    return Ok(self.ranges(parts));
                }
            }
        }
        let valid = self.bits(&numbers.valid);
        Ok(if numbers.floats.is_empty() {
            let values = self.numbers(&numbers.integers, threads, proceed)?;
            Output::I64 { values, valid }
        } else {
            let values = self.numbers(&numbers.floats, threads, proceed)?;
            Output::F64 { values, valid }
        })
    }

    fn numbers<V: Copy + Default + Send + Sync>(
        &self,
        parts: &[&[V]],
        threads: usize,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<V>, Error> {
        let mut column = zeroed(self.len());
        let share = column.len().div_ceil(threads).max(1);
        let jobs = column.chunks_mut(share).enumerate().collect();
        let fill = |(job, slots): (usize, &mut [V]), _: &mut dyn FnMut() -> bool| {
            let first = job * share;
            match (self.ranks, parts) {
                (Some(ranks), [part]) => {
                    for (slot, rank) in slots.iter_mut().zip(&ranks[first..]) {
                        *slot = part[*rank as usize];
                    }
                }
                _ => {
                    for (slot, row) in slots.iter_mut().zip(first..) {
                        let (part, at) = self.of(row);
                        *slot = parts[part][at];
                    }
                }
            }
            Ok(())
        };
        parallel::each(threads, jobs, fill, proceed)?;
        Ok(column)
    }

    fn bits(&self, parts: &[&Bitmap]) -> Bitmap {
        let set = parts.iter().map(|part| part.set).sum();
        if set == self.len() {
            return Bitmap::full(set);
        }
        let mut bytes = vec![0; self.len().div_ceil(8)];
        for row in 0..self.len() {
            let (part, at) = self.of(row);
            bytes[row / 8] |= (parts[part].bytes[at / 8] >> (at % 8) & 1) << (row % 8);
        }
        Bitmap { bytes, set }
    }

    /// Lists or bytes: the values of the parts one behind the other, with ranges moved.
    fn ranges(&self, parts: Vec<Output>) -> Output {
        let mut bases = Vec::new();
        let mut total = 0;
        for part in &parts {
            bases.push(total);
            total += match part {
                Output::List { values, .. } => values.len(),
                Output::Bytes { values, .. } => values.len(),
                _ => unreachable!("parts of one kind"),
            };
        }
        let range = |row| {
            let (part, at) = self.of(row);
            let (Output::List { ranges, .. } | Output::Bytes { ranges, .. }) = &parts[part] else {
                unreachable!("parts of one kind")
            };
            (bases[part] + ranges[at].0, bases[part] + ranges[at].1)
        };
        let moved: Vec<(usize, usize)> = (0..self.len()).map(range).collect();
        let mut words = Vec::new();
        let mut bytes = Vec::new();
        let mut of = None;
        for part in parts {
            match part {
                Output::List { values, dtype, .. } => {
                    words.extend(values);
                    of = Some(dtype);
                }
                Output::Bytes { values, .. } => bytes.extend(values),
                _ => unreachable!("parts of one kind"),
            }
        }
        match of {
            Some(dtype) => Output::List {
                ranges: moved,
                values: words,
                dtype,
            },
            None => Output::Bytes {
                ranges: moved,
                values: bytes,
            },
        }
    }
}

#[derive(Default)]
struct Numbers<'a> {
    integers: Vec<&'a [i64]>,
    floats: Vec<&'a [f64]>,
    valid: Vec<&'a Bitmap>,
}
