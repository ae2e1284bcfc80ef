//! Partials as bytes: rows that were folded before take part in a later request.
//!
//! A stream's state has pages that lie entirely in a window. They need not be read: one row
//! per key with their partial replaces them. [`partials`] folds rows into such bytes;
//! [`Lifted`] passes them to a request with the same aggregations over columns of the same
//! types.

use super::query_points::Ranges;
use super::sorted_view::Sorted;
use super::two_stacks::Fold;
use super::{Error, Group, Request};
use crate::aggregate::column::Validity;
use crate::aggregate::{Aggregation, DType, Visitor, plan};
use crate::monoid::Entry;
use crate::snapshot::{Codec, Reader, Writer};

/// A partial per row in place of its values, for the rows that have one.
#[derive(Clone, Copy, Debug)]
pub struct Lifted<'a> {
    /// The partial of row i is `bytes[offsets[i]..offsets[i + 1]]`.
    pub offsets: &'a [i64],
    pub bytes: &'a [u8],
    /// The rows that have a partial; all, if `None`.
    pub validity: Option<Validity<'a>>,
}

impl Lifted<'_> {
    fn of(&self, row: usize) -> Option<&[u8]> {
        if self.validity.is_some_and(|there| !there.is_valid(row)) {
            return None;
        }
        let at = |place: usize| usize::try_from(self.offsets[place]).unwrap_or(usize::MAX);
        Some(self.bytes.get(at(row)..at(row + 1)).unwrap_or_default())
    }

    /// The entry of a row; `None` if it has no partial.
    pub(super) fn entry<T, A: Aggregation<T>>(
        &self,
        aggregation: &A,
        row: usize,
    ) -> Result<Option<Entry<A>>, Error> {
        let Some(bytes) = self.of(row) else {
            return Ok(None);
        };
        let mut input = Reader::new(bytes);
        let partial = aggregation
            .read_partial(&mut input)
            .and_then(|partial| input.end().map(|()| partial))
            .map_err(|error| Error::Damaged { row, why: error.0 })?;
        // A raw value takes less memory than a partial, if it can express it.
        Ok(Some(match aggregation.unlift(partial) {
            Ok(value) => Entry::Raw(value),
            Err(partial) => Entry::Lifted(partial),
        }))
    }
}

/// Partials as bytes, one after the other.
#[derive(Debug, Default)]
pub struct Partials {
    /// The byte range of each query point's partial.
    pub ranges: Vec<(usize, usize)>,
    pub bytes: Vec<u8>,
}

/// The folds over the windows of a request's query points, by its first span.
///
/// # Panics
/// Like [`rolling`](super::rolling); and if there are no query points, or if an aggregation
/// is holistic and so has no partials.
#[cfg_attr(not(debug_assertions), inline)]
pub fn partials(request: Request<'_>) -> Result<Partials, Error> {
    request.check()?;
    let dtypes: Vec<DType> = request
        .columns
        .iter()
        .map(|column| column.dtype())
        .collect();
    plan(request.aggs, &dtypes, Folding(request))
}

struct Folding<'a>(Request<'a>);

impl Visitor<i64> for Folding<'_> {
    type Out = Result<Partials, Error>;

    fn visit<A: Aggregation<i64>>(self, aggregation: A) -> Self::Out {
        let Self(request) = self;
        let sorted = Sorted::of(&request);
        let rows = sorted.rows();
        let group = Group::new(&request, &aggregation, &rows)?;
        let ranges = Ranges::new(&request, &sorted, request.spans[0]);
        let ranges = ranges.expect("partials are folded for query points");
        let mut fold = Fold::new(&aggregation, &group.entries);
        let mut out = Partials {
            ranges: vec![(0, 0); request.answer_count()],
            bytes: Vec::new(),
        };
        for (point, (lo, hi)) in ranges.iter() {
            let mut writer = Writer::default();
            fold.slide(lo, hi).write(&mut writer);
            let written = writer.finish();
            let written = written.map_err(|error| Error::Damaged {
                row: point,
                why: error.0,
            })?;
            let start = out.bytes.len();
            out.bytes.extend_from_slice(&written);
            out.ranges[point] = (start, out.bytes.len());
        }
        Ok(out)
    }
}
