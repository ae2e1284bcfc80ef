//! From the answers of parts of a table to columns in the order of the table.

use std::vec::IntoIter;

use super::output::{Bitmap, Blank, Marks, Output, Piece, Runs};
use super::parallel::Crew;
use super::{Error, Request, dtypes};
use crate::memory::zeroed;

/// Result columns by span and aggregation, in the order in which they are answered.
#[derive(Debug)]
pub struct Columns(Vec<Vec<Blank>>);

impl Columns {
    pub fn new(request: &Request<'_>) -> Self {
        let (dtypes, count) = (dtypes(request), request.answer_count());
        let blank = |agg| Blank::new(agg, &dtypes, count);
        let blanks = || request.aggs.iter().map(blank).collect();
        Self(request.spans.iter().map(|_| blanks()).collect())
    }

    /// Pieces of so many rows each: of every piece, by span and aggregation.
    pub fn pieces<'a>(&'a mut self, sizes: &[usize]) -> Vec<Vec<Vec<Piece<'a>>>> {
        let of_span = |blanks: &'a mut Vec<Blank>| {
            let pieces = blanks.iter_mut().map(|blank| blank.pieces(sizes));
            pieces.map(Vec::into_iter).collect()
        };
        let mut columns: Vec<Vec<IntoIter<Piece<'a>>>> = self.0.iter_mut().map(of_span).collect();
        let next = |columns: &mut Vec<IntoIter<_>>| {
            let pieces = columns.iter_mut().filter_map(Iterator::next);
            pieces.collect()
        };
        let all = sizes.iter();
        all.map(|_| columns.iter_mut().map(next).collect())
            .collect()
    }

    /// The columns in the order of the table, with what each piece has left, likewise.
    pub fn finish(
        self,
        places: &Places<'_>,
        marks: Vec<Vec<Vec<Marks>>>,
        crew: &mut Crew<'_>,
    ) -> Result<Vec<Vec<Output>>, Error> {
        let of_piece = |spans: Vec<Vec<Marks>>| spans.into_iter().map(Vec::into_iter).collect();
        let mut marks: Vec<Vec<IntoIter<Marks>>> = marks.into_iter().map(of_piece).collect();
        let mut of_span = |(span, blanks): (usize, Vec<Blank>)| {
            let mut join = |blank| {
                let left = marks.iter_mut().filter_map(|piece| piece[span].next());
                places.join(blank, left.collect(), crew)
            };
            blanks.into_iter().map(&mut join).collect()
        };
        self.0.into_iter().enumerate().map(&mut of_span).collect()
    }
}

/// What is left of the pieces of a part, by span and aggregation.
pub fn into_marks(pieces: Vec<Vec<Piece<'_>>>) -> Vec<Vec<Marks>> {
    let of_span = |pieces: Vec<Piece<'_>>| pieces.into_iter().map(Piece::into_marks).collect();
    pieces.into_iter().map(of_span).collect()
}

/// Where the answers of a table lie.
#[derive(Debug)]
pub struct Places<'a> {
    /// The position of each answer; `None`: in order.
    ranks: Option<&'a [u32]>,
    /// Where the positions of each piece start, and the end of the last.
    bases: Vec<usize>,
}

impl<'a> Places<'a> {
    /// In pieces of so many rows each.
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

    /// The piece and the place in it of the answer at `row`.
    fn of(&self, row: usize) -> (usize, usize) {
        let position = self.ranks.map_or(row, |ranks| ranks[row] as usize);
        let piece = self.bases.partition_point(|base| *base <= position) - 1;
        (piece, position - self.bases[piece])
    }

    fn join(&self, blank: Blank, marks: Vec<Marks>, crew: &mut Crew<'_>) -> Result<Output, Error> {
        Ok(match blank {
            Blank::I64(values) => {
                let parts = marks.into_iter().map(|marks| match marks {
                    Marks::Fits(bits, beyond) => (bits, beyond),
                    _ => unreachable!("integers for another column"),
                });
                let (bits, beyond) = parts.unzip();
                Output::I64 {
                    values: self.numbers(values, crew)?,
                    valid: self.bits(bits, crew)?,
                    beyond: self.beyond(beyond),
                }
            }
            Blank::F64(values) => {
                let bits = marks.into_iter().map(|marks| match marks {
                    Marks::Valid(bits) => bits,
                    _ => unreachable!("floats for another column"),
                });
                Output::F64 {
                    values: self.numbers(values, crew)?,
                    valid: self.bits(bits.collect(), crew)?,
                }
            }
            Blank::List(dtype) => {
                let lists = marks.into_iter().map(|marks| match marks {
                    Marks::List(lists) => lists,
                    _ => unreachable!("lists for another column"),
                });
                let Runs { ranges, values } = self.runs(lists);
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
                let Runs { ranges, values } = self.runs(bytes);
                Output::Bytes { ranges, values }
            }
        })
    }

    fn numbers<V: Copy + Default + Send + Sync>(
        &self,
        answers: Vec<V>,
        crew: &mut Crew<'_>,
    ) -> Result<Vec<V>, Error> {
        let Some(ranks) = self.ranks else {
            return Ok(answers);
        };
        let mut column = zeroed(answers.len());
        let stretch = crew.stretch(answers.len(), 0);
        let jobs = column.chunks_mut(stretch).zip(ranks.chunks(stretch));
        let bring = |(slots, ranks): (&mut [V], &[u32]), _: &mut dyn FnMut() -> bool| {
            for (slot, rank) in slots.iter_mut().zip(ranks) {
                *slot = answers[*rank as usize];
            }
            Ok(())
        };
        crew.each(jobs.collect(), bring)?;
        Ok(column)
    }

    /// From rows of each piece, in any order, to rows of the table, in order.
    fn beyond(&self, pieces: Vec<Vec<(usize, i128)>>) -> Vec<(usize, i128)> {
        let all = pieces.into_iter().zip(&self.bases);
        let positions = all.flat_map(|(piece, base)| {
            let at = move |(row, value)| (base + row, value);
            piece.into_iter().map(at)
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

    fn bits(&self, mut pieces: Vec<Bitmap>, crew: &mut Crew<'_>) -> Result<Bitmap, Error> {
        let set = pieces.iter().map(|bits| bits.set).sum();
        if set == self.len() {
            return Ok(Bitmap::full(set));
        }
        let answers = match pieces.len() {
            1 => pieces.remove(0),
            _ => Bitmap::joined(&pieces, &self.bases, self.len()),
        };
        let Some(ranks) = self.ranks else {
            return Ok(answers);
        };
        let mut bytes = vec![0; self.len().div_ceil(8)];
        let stretch = crew.stretch(self.len(), 0).div_ceil(8);
        let jobs = bytes.chunks_mut(stretch).zip(ranks.chunks(8 * stretch));
        let bring = |(bytes, ranks): (&mut [u8], &[u32]), _: &mut dyn FnMut() -> bool| {
            for (byte, ranks) in bytes.iter_mut().zip(ranks.chunks(8)) {
                for (at, rank) in ranks.iter().enumerate() {
                    *byte |= answers.bit(*rank as usize) << at;
                }
            }
            Ok(())
        };
        crew.each(jobs.collect(), bring)?;
        Ok(Bitmap { bytes, set })
    }

    /// The values of the pieces one behind the other, with ranges moved.
    fn runs<V>(&self, pieces: impl Iterator<Item = Runs<V>>) -> Runs<V> {
        let mut pieces: Vec<_> = pieces.collect();
        if pieces.len() == 1 && self.ranks.is_none() {
            return pieces.remove(0);
        }
        let (mut all, mut bases, mut of_pieces) = (Vec::new(), Vec::new(), Vec::new());
        for Runs { ranges, values } in pieces {
            bases.push(all.len());
            of_pieces.push(ranges);
            all.extend(values);
        }
        let range = |row| {
            let (piece, at) = self.of(row);
            let (from, to) = of_pieces[piece][at];
            (bases[piece] + from, bases[piece] + to)
        };
        Runs {
            ranges: (0..self.len()).map(range).collect(),
            values: all,
        }
    }
}
