//! `arg_min` and `arg_max`: a monotonic deque of the rows that may become the extreme one.
//!
//! The earliest row is in front, and each is more extreme than the next (SlickDeque,
//! Algorithm 2). A row that enters removes those behind that are less extreme; the front is
//! the answer. Of equal rows the earlier stays. For windows whose ends only move forward.

use std::collections::VecDeque;

use super::multiset::WindowMultiset;
use super::{Request, Sorted, WordColumn};
use crate::aggregate::holistic::NAN;
use crate::aggregate::{AggSpec, Answer, Cell, DType, Kind};

pub(super) struct MonotonicDeque<'a> {
    request: &'a Request<'a>,
    sorted: &'a Sorted<'a>,
    by: &'a WordColumn<'a>,
    /// The index of the aggregation, and the column it picks from.
    agg: usize,
    of: usize,
    min: bool,
    /// Words to compare, the greater the more extreme, and their positions.
    candidates: VecDeque<(i64, usize)>,
}

/// Whether [`MonotonicDeque`] answers it.
pub(in crate::rolling) fn supports(request: &Request<'_>, agg: &AggSpec) -> bool {
    let forward = request.arrival.is_none();
    forward && matches!(agg.kind, Kind::ArgMin | Kind::ArgMax)
}

impl<'a> MonotonicDeque<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        sorted: &'a Sorted<'a>,
        by: &'a WordColumn<'a>,
        (index, agg): &(usize, AggSpec),
    ) -> Self {
        Self {
            request,
            sorted,
            by,
            agg: *index,
            of: agg.of.expect("there is a column to pick from"),
            min: agg.kind == Kind::ArgMin,
            candidates: VecDeque::new(),
        }
    }
}

impl WindowMultiset for MonotonicDeque<'_> {
    fn end(&self) -> usize {
        self.by.words.len()
    }

    fn renew(&mut self, _from: usize, _to: usize) {
        self.candidates.clear();
    }

    #[inline]
    fn enter(&mut self, position: usize) {
        let Some(word) = self.by.words.get(position) else {
            return;
        };
        let absorbs = self.by.dtype == DType::F64 && word == NAN;
        let extreme = if self.min && !absorbs { !word } else { word };
        while let Some((other, _)) = self.candidates.back()
            && *other < extreme
        {
            self.candidates.pop_back();
        }
        self.candidates.push_back((extreme, position));
    }

    #[inline]
    fn leave(&mut self, position: usize) {
        if self
            .candidates
            .front()
            .is_some_and(|(_, at)| *at == position)
        {
            self.candidates.pop_front();
        }
    }

    #[inline]
    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let Some((_, position)) = self.candidates.front() else {
            return put(self.agg, Answer::Null);
        };
        let row = self.sorted.row(*position);
        let answer = match self.request.columns[self.of].cell(row) {
            Cell::I64(int) => Answer::I64(int),
            Cell::F64(float) => Answer::F64(float),
            Cell::Null | Cell::Object(_) => Answer::Null,
        };
        put(self.agg, answer);
    }
}
