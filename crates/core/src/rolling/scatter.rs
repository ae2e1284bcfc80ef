//! Moves the answers of parts of a table to columns in the order of the table.

use std::vec::IntoIter;

use super::output::{Bitmap, Blank, ListValues, Marks, Output, OutputChunk};
use super::parallel::ThreadScope;
use super::{Error, Request, dtypes};
use crate::aggregate::{AggSpec, DType};
use crate::memory::zeroed;

/// Result columns by span and aggregation, in the order of processing.
#[derive(Debug)]
pub struct ResultColumns(Vec<Vec<Blank>>);

impl ResultColumns {
    pub fn new(request: &Request<'_>) -> Self {
        let shape = (request.spans.len(), request.answer_count());
        Self::blank(request.aggs, &dtypes(request), shape)
    }

    /// Columns of so many rows for each of so many spans.
    pub fn blank(aggs: &[AggSpec], dtypes: &[DType], (spans, rows): (usize, usize)) -> Self {
        let blank = |agg| Blank::new(agg, dtypes, rows);
        let blanks = |_| aggs.iter().map(blank).collect();
        Self((0..spans).map(blanks).collect())
    }

    /// Chunks of so many rows each: for every chunk, by span and aggregation.
    pub fn chunks<'a>(&'a mut self, sizes: &[usize]) -> Vec<Vec<Vec<OutputChunk<'a>>>> {
        let of_span = |blanks: &'a mut Vec<Blank>| {
            let chunks = blanks.iter_mut().map(|blank| blank.chunks(sizes));
            chunks.map(Vec::into_iter).collect()
        };
        let mut columns: Vec<Vec<IntoIter<OutputChunk<'a>>>> =
            self.0.iter_mut().map(of_span).collect();
        let next = |columns: &mut Vec<IntoIter<_>>| {
            let chunks = columns.iter_mut().filter_map(Iterator::next);
            chunks.collect()
        };
        let all = sizes.iter();
        all.map(|_| columns.iter_mut().map(next).collect())
            .collect()
    }

    /// The columns in the order of the table, from the marks of all chunks.
    pub fn finish(
        self,
        positions: &AnswerPositions<'_>,
        marks: Vec<Vec<Vec<Marks>>>,
        scope: &mut ThreadScope<'_>,
    ) -> Result<Vec<Vec<Output>>, Error> {
        let of_piece = |spans: Vec<Vec<Marks>>| spans.into_iter().map(Vec::into_iter).collect();
        let mut marks: Vec<Vec<IntoIter<Marks>>> = marks.into_iter().map(of_piece).collect();
        let mut of_span = |(span, blanks): (usize, Vec<Blank>)| {
            let mut join = |blank| {
                let left = marks.iter_mut().filter_map(|chunk| chunk[span].next());
                positions.join(blank, left.collect(), scope)
            };
            blanks.into_iter().map(&mut join).collect()
        };
        self.0.into_iter().enumerate().map(&mut of_span).collect()
    }
}

/// The marks of a part's chunks, by span and aggregation.
pub fn into_marks(chunks: Vec<Vec<OutputChunk<'_>>>) -> Vec<Vec<Marks>> {
    let of_span =
        |chunks: Vec<OutputChunk<'_>>| chunks.into_iter().map(OutputChunk::into_marks).collect();
    chunks.into_iter().map(of_span).collect()
}

/// The positions of a table's answers in the chunks.
#[derive(Debug)]
pub struct AnswerPositions<'a> {
    /// The position of each answer; `None`: in order.
    ranks: Option<&'a [u32]>,
    /// The first position of each chunk, and the end of the last.
    bases: Vec<usize>,
}

impl<'a> AnswerPositions<'a> {
    /// The positions for chunks with these numbers of rows.
    pub fn new(ranks: Option<&'a [u32]>, sizes: &[usize]) -> Self {
        let ends = sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        Self {
            ranks,
            bases: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn len(&self) -> usize {
        self.bases[self.bases.len() - 1]
    }

    /// The chunk and the position in it of the answer at `row`.
    fn of(&self, row: usize) -> (usize, usize) {
        let position = self.ranks.map_or(row, |ranks| ranks[row] as usize);
        let chunk = self.bases.partition_point(|base| *base <= position) - 1;
        (chunk, position - self.bases[chunk])
    }

    fn join(
        &self,
        blank: Blank,
        marks: Vec<Marks>,
        scope: &mut ThreadScope<'_>,
    ) -> Result<Output, Error> {
        Ok(match blank {
            Blank::I64(values) => {
                let parts = marks.into_iter().map(|marks| match marks {
                    Marks::Fits(bits, beyond) => (bits, beyond),
                    _ => unreachable!("integers for another column"),
                });
                let (bits, beyond) = parts.unzip();
                Output::I64 {
                    values: self.numbers(values, scope)?,
                    valid: self.bits(bits, scope)?,
                    beyond: self.beyond(beyond),
                }
            }
            Blank::F64(values) => {
                let bits = marks.into_iter().map(|marks| match marks {
                    Marks::Valid(bits) => bits,
                    _ => unreachable!("floats for another column"),
                });
                Output::F64 {
                    values: self.numbers(values, scope)?,
                    valid: self.bits(bits.collect(), scope)?,
                }
            }
            Blank::List(dtype) => {
                let lists = marks.into_iter().map(|marks| match marks {
                    Marks::List(lists) => lists,
                    _ => unreachable!("lists for another column"),
                });
                let ListValues { ranges, values } = self.concatenated(lists);
                Output::List {
                    ranges,
                    values,
                    dtype,
                }
            }
            Blank::Bytes => {
                let bytes = marks.into_iter().map(|marks| match marks {
                    Marks::Bytes(bytes) => bytes,
                    _ => unreachable!("bytes for another column"),
                });
                let ListValues { ranges, values } = self.concatenated(bytes);
                Output::Bytes { ranges, values }
            }
        })
    }

    fn numbers<V: Copy + Default + Send + Sync>(
        &self,
        answers: Vec<V>,
        scope: &mut ThreadScope<'_>,
    ) -> Result<Vec<V>, Error> {
        let Some(ranks) = self.ranks else {
            return Ok(answers);
        };
        let mut column = zeroed(answers.len());
        let chunk = scope.chunk_len(answers.len(), 0);
        let jobs = column.chunks_mut(chunk).zip(ranks.chunks(chunk));
        let bring = |(slots, ranks): (&mut [V], &[u32]), _: &mut dyn FnMut() -> bool| {
            for (slot, rank) in slots.iter_mut().zip(ranks) {
                *slot = answers[*rank as usize];
            }
            Ok(())
        };
        scope.each(jobs.collect(), bring)?;
        Ok(column)
    }

    /// Maps rows of each chunk, in any order, to rows of the table, in order.
    fn beyond(&self, chunks: Vec<Vec<(usize, i128)>>) -> Vec<(usize, i128)> {
        let all = chunks.into_iter().zip(&self.bases);
        let positions = all.flat_map(|(chunk, base)| {
            let at = move |(row, value)| (base + row, value);
            chunk.into_iter().map(at)
        });
        let mut found: Vec<(usize, i128)> = positions.collect();
        found.sort_unstable();
        let Some(ranks) = self.ranks.filter(|_| !found.is_empty()) else {
            return found;
        };
        let of_row = |(row, rank): (usize, &u32)| {
            let at = found.binary_search_by_key(&(*rank as usize), |(position, _)| *position);
            at.ok().map(|at| (row, found[at].1))
        };
        ranks.iter().enumerate().filter_map(of_row).collect()
    }

    fn bits(&self, mut chunks: Vec<Bitmap>, scope: &mut ThreadScope<'_>) -> Result<Bitmap, Error> {
        let set = chunks.iter().map(|bits| bits.set).sum();
        if set == self.len() {
            return Ok(Bitmap::full(set));
        }
        let answers = match chunks.len() {
            1 => chunks.remove(0),
            _ => Bitmap::joined(&chunks, &self.bases, self.len()),
        };
        let Some(ranks) = self.ranks else {
            return Ok(answers);
        };
        let mut bytes = vec![0; self.len().div_ceil(8)];
        let chunk = scope.chunk_len(self.len(), 0).div_ceil(8);
        let jobs = bytes.chunks_mut(chunk).zip(ranks.chunks(8 * chunk));
        let bring = |(bytes, ranks): (&mut [u8], &[u32]), _: &mut dyn FnMut() -> bool| {
            for (byte, ranks) in bytes.iter_mut().zip(ranks.chunks(8)) {
                for (at, rank) in ranks.iter().enumerate() {
                    *byte |= answers.bit(*rank as usize) << at;
                }
            }
            Ok(())
        };
        scope.each(jobs.collect(), bring)?;
        Ok(Bitmap { bytes, set })
    }

    /// The values of the chunks one behind the other, with ranges moved.
    fn concatenated<V>(&self, chunks: impl Iterator<Item = ListValues<V>>) -> ListValues<V> {
        let mut chunks: Vec<_> = chunks.collect();
        if chunks.len() == 1 && self.ranks.is_none() {
            return chunks.remove(0);
        }
        let (mut all, mut bases, mut of_pieces) = (Vec::new(), Vec::new(), Vec::new());
        for ListValues { ranges, values } in chunks {
            bases.push(all.len());
            of_pieces.push(ranges);
            all.extend(values);
        }
        let range = |row| {
            let (chunk, at) = self.of(row);
            let (from, to) = of_pieces[chunk][at];
            (bases[chunk] + from, bases[chunk] + to)
        };
        ListValues {
            ranges: (0..self.len()).map(range).collect(),
            values: all,
        }
    }
}
