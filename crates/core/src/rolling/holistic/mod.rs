//! Quantiles, distinct counts and modes of every row's window.
//!
//! A window's values are kept in a [`WindowMultiset`] that rows enter and leave; values are
//! not combined. Sorting or hashing a chunk of the column gives ranks or codes of the
//! values first, so that a row that enters or leaves touches only a few words:
//!
//! - quantiles: ranks as a set of bits, with a cursor at each quantile ([`RankSet`])
//! - modes: counts by rank below a tree of maxima ([`ModeTree`])
//! - distinct counts: counts by code ([`DistinctCounts`])
//! - values with their counts: a tree of counts and ranks ([`CountOrder`])
//! - entropies: counts by code, and how many values have each ([`CountsOfCounts`])
//! - ranks of the row's own value: counts by rank with their sums ([`OwnRanks`])
//! - positions of extremes: a deque of candidates ([`MonotonicDeque`]); whole tables only
//! - lists of different values: the first row of each code ([`FirstOccurrence`]); whole
//!   tables only
//! - estimated distinct counts: the registers of a sketch, each with the values that may
//!   become its maximum ([`SlidingHll`]); whole tables only
//!
//! Over a whole table, two pointers move forward, so every row enters and leaves once. As
//! of arrival, the window moves from the range of times of one row to that of the next to
//! arrive, and only rows that have arrived enter. The cost grows with the distance between
//! these ranges, and is at most both of them together.

mod bits;
mod codes;
mod first_occurrence;
mod monotonic_deque;
mod multiset;
mod own_ranks;
mod rank_chunk;
mod sliding_hll;

use super::as_of::{Arrived, ends_before_latest};
use super::frame_bounds::{FramePointers, positions_in};
use super::output::OutputChunk;
use super::query_points::{ArrivalStep, Ranges, Steps};
use super::sorted_view::{Dense, Numbers, Sorted};
use super::{Error, Length, ROWS_PER_CHECK, Request, Span};
use crate::aggregate::holistic::word_of;
use crate::aggregate::{AggSpec, DType, Kind};
use first_occurrence::FirstOccurrence;
use monotonic_deque::MonotonicDeque;
use multiset::{CountOrder, CountsOfCounts, DistinctCounts, ModeTree, RankSet, WindowMultiset};
use own_ranks::OwnRanks;
use sliding_hll::SlidingHll;

/// Whether a multiset answers an aggregation faster than its monoid.
pub(super) fn supports(request: &Request<'_>, agg: &AggSpec) -> bool {
    let known = [
        monotonic_deque::supports,
        sliding_hll::supports,
        first_occurrence::supports,
    ];
    // These take rows in order; a window that leaves a row out does not.
    let whole = request.at.is_none_or(|at| at.left_out().is_none());
    whole && known.iter().any(|supports| supports(request, agg))
}

/// An aggregation's kind and its index among those of the request.
type IndexedKind = (usize, Kind);

/// The values of a column as words that compare like them.
#[derive(Debug)]
struct OrderedWords<'a> {
    numbers: NumberSlice<'a>,
    present: Option<&'a [bool]>,
}

#[derive(Debug)]
enum NumberSlice<'a> {
    I64(&'a [i64]),
    F64(&'a [f64]),
}

impl<'a> OrderedWords<'a> {
    fn new(dense: &'a Dense<'_>) -> Self {
        Self {
            numbers: match &dense.numbers {
                Numbers::I64(values) => NumberSlice::I64(values),
                Numbers::F64(values) => NumberSlice::F64(values),
            },
            present: dense
                .presence
                .as_ref()
                .map(|presence| &presence.present[..]),
        }
    }

    #[cfg(test)]
    fn of(values: &'a [i64]) -> Self {
        Self {
            numbers: NumberSlice::I64(values),
            present: None,
        }
    }

    fn len(&self) -> usize {
        match self.numbers {
            NumberSlice::I64(values) => values.len(),
            NumberSlice::F64(values) => values.len(),
        }
    }

    #[inline]
    fn get(&self, position: usize) -> Option<i64> {
        if self.present.is_some_and(|present| !present[position]) {
            return None;
        }
        Some(match self.numbers {
            NumberSlice::I64(values) => values[position],
            NumberSlice::F64(values) => word_of(values[position].to_bits(), DType::F64),
        })
    }

    /// The least word, and the distance of the greatest from it; `None` without values.
    fn spread(&self) -> Option<(i64, u64)> {
        let mut words = (0..self.len()).filter_map(|position| self.get(position));
        let first = words.next()?;
        let (least, most) = words.fold((first, first), |(least, most), word| {
            (least.min(word), most.max(word))
        });
        Some((least, most.wrapping_sub(least) as u64))
    }
}

/// A column and the type of the answers.
#[derive(Debug)]
struct WordColumn<'a> {
    words: OrderedWords<'a>,
    dtype: DType,
}

impl<'a> WordColumn<'a> {
    fn new(dense: &'a Dense<'_>, dtype: DType) -> Self {
        Self {
            words: OrderedWords::new(dense),
            dtype,
        }
    }
}

/// The rows of a chunk in addition to those of several windows.
const MIN_CHUNK_ROWS: usize = 1 << 14;

/// Answers these aggregations; `chunks` by span and aggregation.
pub(super) fn answer(
    request: &Request<'_>,
    sorted: &Sorted<'_>,
    aggs: &[(usize, AggSpec)],
    chunks: &mut [Vec<OutputChunk<'_>>],
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let steps = request.arrival.map(|_| Steps::new(request, sorted));
    let by_arrival = steps
        .as_ref()
        .map(|steps| by_time_and_arrival(request, steps));
    let sorted = by_arrival.as_ref().unwrap_or(sorted);
    let mut run = HolisticRun {
        request,
        sorted,
        steps: steps.as_ref(),
        chunks,
        proceed,
        countdown: ROWS_PER_CHECK,
    };
    let (places, aggs): (Vec<_>, Vec<_>) = aggs
        .iter()
        .copied()
        .partition(|(_, agg)| !agg.kind.is_holistic());
    for one in &places {
        if sliding_hll::supports(request, &one.1) {
            let of = one.1.of.expect("there is a column of hashes");
            let dense = sorted.column(&request.columns[of]);
            let column = WordColumn::new(&dense, request.columns[of].dtype());
            run.spans(&mut SlidingHll::new(&column, one))?;
            continue;
        }
        let by = one.1.by.expect("there is a column to compare");
        let dense = sorted.column(&request.columns[by]);
        let by = WordColumn::new(&dense, request.columns[by].dtype());
        if first_occurrence::supports(request, &one.1) {
            run.spans(&mut FirstOccurrence::new(request, sorted, &by, one))?;
            continue;
        }
        run.spans(&mut MonotonicDeque::new(request, sorted, &by, one))?;
    }
    let mut columns: Vec<usize> = aggs.iter().filter_map(|(_, agg)| agg.of).collect();
    columns.sort_unstable();
    columns.dedup();
    for of in columns {
        let here = aggs.iter().filter(|(_, agg)| agg.of == Some(of));
        let here: Vec<IndexedKind> = here.map(|(index, agg)| (*index, agg.kind)).collect();
        let dense = sorted.column(&request.columns[of]);
        let column = WordColumn::new(&dense, request.columns[of].dtype());
        run.column(&column, &here)?;
    }
    Ok(())
}

/// Rows by group, time, arrival, table.
fn by_time_and_arrival<'a>(request: &Request<'a>, steps: &Steps<'a>) -> Sorted<'a> {
    let (mut rows, starts) = steps.rows().clone().into_parts();
    for ends in starts.windows(2) {
        rows[ends[0]..ends[1]].sort_by_key(|row| request.times[*row]);
    }
    let times = rows.iter().map(|row| request.times[*row]).collect();
    Sorted {
        rows: Some(rows),
        starts,
        times,
        points: None,
    }
}

struct HolisticRun<'a, 'b, 'c> {
    request: &'a Request<'a>,
    sorted: &'b Sorted<'a>,
    /// The steps in order of arrival, if the request has one.
    steps: Option<&'b Steps<'a>>,
    chunks: &'b mut [Vec<OutputChunk<'c>>],
    proceed: &'b mut dyn FnMut() -> bool,
    countdown: u32,
}

impl HolisticRun<'_, '_, '_> {
    /// Answers the aggregations of one column.
    fn column(&mut self, column: &WordColumn<'_>, aggs: &[IndexedKind]) -> Result<(), Error> {
        let any = |of: fn(Kind) -> bool| aggs.iter().any(|(_, kind)| of(*kind));
        if any(|kind| matches!(kind, Kind::Quantile(_))) {
            self.spans(&mut RankSet::new(column, aggs))?;
        }
        if any(|kind| kind == Kind::Mode) {
            self.spans(&mut ModeTree::new(column, aggs))?;
        }
        if any(|kind| kind == Kind::CountDistinct) {
            self.spans(&mut DistinctCounts::new(column, aggs))?;
        }
        if any(|kind| matches!(kind, Kind::ValueCounts { .. })) {
            self.spans(&mut CountOrder::new(column, aggs))?;
        }
        if any(|kind| kind == Kind::Entropy) {
            self.spans(&mut CountsOfCounts::new(column, aggs))?;
        }
        if any(|kind| matches!(kind, Kind::Rank(_))) {
            self.spans(&mut OwnRanks::new(column, aggs))?;
        }
        Ok(())
    }

    fn spans<B: WindowMultiset>(&mut self, multiset: &mut B) -> Result<(), Error> {
        let positions = match self.steps.is_some() || B::ASKS_FOR_ROWS {
            true => self.positions(),
            false => Vec::new(),
        };
        for (index, span) in self.request.spans.iter().enumerate() {
            match (self.steps, span.length) {
                (None, _) => match Ranges::new(self.request, self.sorted, *span) {
                    Some(ranges) => self.ranges(multiset, index, &ranges, &positions)?,
                    None => self.whole(multiset, index, *span)?,
                },
                (Some(steps), Length::Rows(_)) if ends_before_latest(*span) => {
                    self.earlier_rows(multiset, (index, *span), steps, &positions)?;
                }
                (Some(steps), Length::Rows(count)) => {
                    self.latest_rows(multiset, (index, count), steps, &positions)?;
                }
                (Some(steps), _) => {
                    self.as_of(multiset, (index, *span), steps, &positions)?;
                }
            }
        }
        Ok(())
    }

    /// The position of each row of the table in the order of times.
    fn positions(&self) -> Vec<usize> {
        let count = self.sorted.times.len();
        let mut positions = vec![0; count];
        for position in 0..count {
            positions[self.sorted.row(position)] = position;
        }
        positions
    }

    /// The position of the row that a query point is, if a multiset asks for it.
    #[inline]
    fn own<B: WindowMultiset>(&self, point: usize, positions: &[usize]) -> Option<usize> {
        if !B::ASKS_FOR_ROWS {
            return None;
        }
        match self.request.at {
            None => Some(positions[point]),
            Some(at) => at.own.map(|own| positions[own.of(point)]),
        }
    }

    /// Puts the answers for a row or point; `own` is its position, if it is a row.
    fn put<B: WindowMultiset>(
        &mut self,
        multiset: &mut B,
        span: usize,
        row: usize,
        own: Option<usize>,
    ) -> Result<(), Error> {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = ROWS_PER_CHECK;
            if !(self.proceed)() {
                return Err(Error::Interrupted);
            }
        }
        let chunks = &mut self.chunks[span];
        multiset.answers(own, &mut |agg, answer| chunks[agg].set(row, &answer));
        Ok(())
    }

    fn whole<B: WindowMultiset>(
        &mut self,
        multiset: &mut B,
        index: usize,
        span: Span,
    ) -> Result<(), Error> {
        let mut window = SlidingRange::new(multiset, self.sorted.times.len());
        for group in self.sorted.starts.windows(2) {
            let times = &self.sorted.times[group[0]..group[1]];
            let mut pointers = FramePointers::new(times, span, self.request.ties);
            for position in 0..times.len() {
                let (from, to) = pointers.at(position);
                window.go(multiset, (group[0] + from, group[0] + to));
                let own = group[0] + position;
                self.put(multiset, index, self.sorted.row(own), Some(own))?;
            }
        }
        Ok(())
    }

    fn ranges<B: WindowMultiset>(
        &mut self,
        multiset: &mut B,
        index: usize,
        ranges: &Ranges<'_>,
        positions: &[usize],
    ) -> Result<(), Error> {
        let mut window = SlidingRange::new(multiset, self.sorted.times.len());
        for (point, (lo, hi), others) in ranges.iter() {
            let own = self.own::<B>(point, positions);
            let Some(others) = others else {
                window.go(multiset, (lo, hi));
                self.put(multiset, index, point, own)?;
                continue;
            };
            window.go(multiset, (lo, others.to));
            multiset.leave(others.without);
            self.put(multiset, index, point, own)?;
            multiset.enter(others.without);
        }
        Ok(())
    }

    /// Windows of time over the rows that have arrived.
    fn as_of<B: WindowMultiset>(
        &mut self,
        multiset: &mut B,
        (index, span): (usize, Span),
        steps: &Steps<'_>,
        positions: &[usize],
    ) -> Result<(), Error> {
        let query_points = self.request.query_points();
        let mut arrived = vec![false; self.sorted.times.len()];
        for (group, (_, steps)) in self.sorted.starts.windows(2).zip(steps.groups()) {
            let times = &self.sorted.times[group[0]..group[1]];
            let mut window = Moving::new(multiset, group[0], group[1]);
            for step in steps {
                let point = match step {
                    ArrivalStep::Arrive { row } => {
                        arrived[positions[row]] = true;
                        window.arrive(multiset, positions[row]);
                        continue;
                    }
                    ArrivalStep::Query { point } => point,
                };
                let range = positions_in(times, query_points.interval(point, span));
                let (from, to) = (group[0] + range.start, group[0] + range.end);
                window.go(multiset, (from, to), &arrived);
                let own = self.own::<B>(point, positions);
                let out = query_points.left_out().map(|own| positions[own.of(point)]);
                match out.filter(|out| (from..to).contains(out)) {
                    None => self.put(multiset, index, point, own)?,
                    Some(out) => {
                        multiset.leave(out);
                        self.put(multiset, index, point, own)?;
                        multiset.enter(out);
                    }
                }
            }
        }
        Ok(())
    }

    /// Windows of rows that end before the latest row. Each is made anew, as these have no order.
    fn earlier_rows<B: WindowMultiset>(
        &mut self,
        multiset: &mut B,
        (index, span): (usize, Span),
        steps: &Steps<'_>,
        positions: &[usize],
    ) -> Result<(), Error> {
        let query_points = self.request.query_points();
        for (group, (_, steps)) in self.sorted.starts.windows(2).zip(steps.groups()) {
            multiset.renew(group[0], group[1]);
            let mut arrived = Arrived::default();
            for step in steps {
                let point = match step {
                    ArrivalStep::Arrive { row } => {
                        arrived.insert(positions[row]);
                        continue;
                    }
                    ArrivalStep::Query { point } => point,
                };
                let out = query_points.left_out().map(|own| positions[own.of(point)]);
                let now = query_points.times[point];
                let window = arrived.window(span, now, out, |at| self.sorted.times[at]);
                window.iter().for_each(|at| multiset.enter(*at));
                let own = self.own::<B>(point, positions);
                self.put(multiset, index, point, own)?;
                window.iter().for_each(|at| multiset.leave(*at));
            }
        }
        Ok(())
    }

    /// Windows of the `count` latest rows among those that have arrived.
    fn latest_rows<B: WindowMultiset>(
        &mut self,
        multiset: &mut B,
        (index, count): (usize, usize),
        steps: &Steps<'_>,
        positions: &[usize],
    ) -> Result<(), Error> {
        let mut arrived = vec![false; self.sorted.times.len()];
        let left_out = self.request.at.and_then(|at| at.left_out());
        // One more than a window holds, in case that it leaves one of them out.
        let count = count.saturating_add(usize::from(left_out.is_some()));
        for (group, (_, steps)) in self.sorted.starts.windows(2).zip(steps.groups()) {
            multiset.renew(group[0], group[1]);
            let (mut oldest, mut held) = (group[1], 0);
            for step in steps {
                let position = match step {
                    ArrivalStep::Arrive { row } => positions[row],
                    ArrivalStep::Query { point } => {
                        let out = left_out.map(|own| positions[own.of(point)]);
                        let out = match out {
                            Some(out) if out < oldest => (held == count).then_some(oldest),
                            out => out,
                        };
                        if let Some(out) = out {
                            multiset.leave(out);
                        }
                        let own = self.own::<B>(point, positions);
                        self.put(multiset, index, point, own)?;
                        if let Some(out) = out {
                            multiset.enter(out);
                        }
                        continue;
                    }
                };
                arrived[position] = true;
                if held < count {
                    multiset.enter(position);
                    held += 1;
                    oldest = oldest.min(position);
                } else if position > oldest {
                    multiset.enter(position);
                    multiset.leave(oldest);
                    let next = |at: &usize| arrived[*at];
                    oldest = (oldest + 1..).find(next).expect("one has just arrived");
                }
            }
        }
        Ok(())
    }
}

/// A window whose ends only move forward.
struct SlidingRange {
    lo: usize,
    hi: usize,
    /// The number of positions.
    count: usize,
}

impl SlidingRange {
    fn new(multiset: &mut impl WindowMultiset, count: usize) -> Self {
        multiset.renew(0, count.min(MIN_CHUNK_ROWS));
        Self {
            lo: 0,
            hi: 0,
            count,
        }
    }

    #[inline]
    fn go(&mut self, multiset: &mut impl WindowMultiset, (from, to): (usize, usize)) {
        if to > multiset.end() {
            let end = from + 5 * (to - from) + MIN_CHUNK_ROWS;
            multiset.renew(from, end.min(self.count));
            (self.lo, self.hi) = (from, from);
        }
        (self.lo..from.min(self.hi)).for_each(|position| multiset.leave(position));
        (self.hi.max(from)..to).for_each(|position| multiset.enter(position));
        (self.lo, self.hi) = (from, to);
    }
}

/// A window that moves in both directions over positions, some of which have not arrived.
struct Moving {
    lo: usize,
    hi: usize,
}

impl Moving {
    fn new(multiset: &mut impl WindowMultiset, from: usize, to: usize) -> Self {
        multiset.renew(from, to);
        Self { lo: from, hi: from }
    }

    /// A row arrives; it enters if its position is in the window.
    fn arrive(&self, multiset: &mut impl WindowMultiset, position: usize) {
        if (self.lo..self.hi).contains(&position) {
            multiset.enter(position);
        }
    }

    fn go(
        &mut self,
        multiset: &mut impl WindowMultiset,
        (from, to): (usize, usize),
        arrived: &[bool],
    ) {
        let there = |position: &usize| arrived[*position];
        let (lo, hi) = (self.lo, self.hi);
        if from >= hi || to <= lo {
            (lo..hi)
                .filter(there)
                .for_each(|position| multiset.leave(position));
            (from..to)
                .filter(there)
                .for_each(|position| multiset.enter(position));
        } else {
            (from..lo)
                .filter(there)
                .for_each(|position| multiset.enter(position));
            (hi..to)
                .filter(there)
                .for_each(|position| multiset.enter(position));
            (lo..from)
                .filter(there)
                .for_each(|position| multiset.leave(position));
            (to..hi)
                .filter(there)
                .for_each(|position| multiset.leave(position));
        }
        (self.lo, self.hi) = (from, to);
    }
}
