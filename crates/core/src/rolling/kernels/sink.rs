//! The sink of a block's answers.

use super::ops::Number;
use super::{PresentCounts, RowBlock};
use crate::rolling::output::OutputChunk;
use crate::rolling::{Error, Overflow};

/// Result columns of one span; all values are present unless left out.
pub(super) struct ColumnSink<'a, 'p> {
    pub(super) chunks: &'a mut [OutputChunk<'p>],
    pub(super) span: usize,
    /// Rows of the table before this one are not answered, and may overflow.
    pub(super) history: usize,
    /// Rows of the table from the block's first on; in order from `start` if `None`.
    pub(super) rows: Option<&'a [usize]>,
    pub(super) start: usize,
    pub(super) overflow: Overflow,
}

impl ColumnSink<'_, '_> {
    fn row(&self, at: usize) -> usize {
        self.rows.map_or(self.start + at, |rows| rows[at])
    }

    #[inline(always)]
    pub(super) fn numbers<V: Number>(
        &mut self,
        index: usize,
        values: impl ExactSizeIterator<Item = V>,
    ) {
        let column = V::column(&mut self.chunks[index]);
        match self.rows {
            None => {
                let slots = &mut column[self.start..self.start + values.len()];
                for (slot, value) in slots.iter_mut().zip(values) {
                    *slot = value;
                }
            }
            Some(rows) => {
                for (&row, value) in rows.iter().zip(values) {
                    column[row] = value;
                }
            }
        }
    }

    /// Records of words, each with whether it is present.
    pub(super) fn records<'r>(
        &mut self,
        index: usize,
        records: impl Iterator<Item = (&'r [u64], bool)>,
    ) {
        for (at, (record, there)) in records.enumerate() {
            if there {
                let row = self.row(at);
                self.chunks[index].put_record(row, record);
            }
        }
    }

    /// Integers that may not fit int64; these are missing, unless overflow is an error.
    pub(super) fn wide_integers(
        &mut self,
        index: usize,
        values: impl ExactSizeIterator<Item = i128>,
    ) -> Result<(), Error> {
        for (at, value) in values.enumerate() {
            let row = self.row(at);
            let Ok(fits) = i64::try_from(value) else {
                if row < self.history {
                    continue;
                }
                if self.overflow == Overflow::Fail {
                    return Err(Error::Overflow {
                        span: self.span,
                        agg: index,
                        row,
                        value,
                    });
                }
                self.chunks[index].leave_out(row);
                self.chunks[index].note_overflow(row, value);
                continue;
            };
            i64::column(&mut self.chunks[index])[row] = fits;
        }
        Ok(())
    }

    /// Windows with fewer than `least` values have no answer.
    #[inline(always)]
    pub(super) fn leave_out(
        &mut self,
        index: usize,
        block: &RowBlock<'_>,
        counts: PresentCounts<'_>,
        least: usize,
    ) {
        if block.own && counts.0.is_none() && least == 1 {
            return;
        }
        let few = |(lo, hi)| counts.of(lo, hi) < least;
        self.leave_out_where(index, block.windows().map(few));
    }

    /// Windows that have no answer.
    #[inline(always)]
    pub(super) fn leave_out_where(
        &mut self,
        index: usize,
        windows: impl Iterator<Item = bool> + Clone,
    ) {
        // Such windows are rare, and this test is vectorised.
        if !windows.clone().fold(false, |any, is_out| any | is_out) {
            return;
        }
        for (at, _) in windows.enumerate().filter(|(_, is_out)| *is_out) {
            let row = self.row(at);
            self.chunks[index].leave_out(row);
        }
    }
}
