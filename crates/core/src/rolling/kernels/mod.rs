//! Kernels: frequent aggregations over columns of numbers, a block of rows at a time.
//!
//! The windows of a block are found once per span and shared by all aggregations. A fold of
//! one column that several of them need is computed once (a [`Part`]).
//!
//! - counts and sums of integers: differences of running sums, which are exact
//! - sums of floats, moments: differences of running sums on a grid, exact too
//!   ([`prefix_sums`])
//! - extremes, and sums that no grid takes: two stacks, nothing subtracted ([`two_stacks`])
//! - first and last: the values at the ends
//! - areas over time: sums of those between adjacent values ([`areas`])
//! - decayed sums and means: two stacks over weighted values ([`decays`])
//! - covariances, slopes: two stacks over distances from a pivot ([`pairs`])
//! - native functions: two stacks over adjacent records ([`native`])

mod areas;
mod binned_sum;
mod decays;
mod native;
mod ops;
mod pairs;
mod parts;
mod prefix_sums;
#[cfg(test)]
mod prefix_sums_tests;
mod sink;
#[cfg(test)]
mod times_tests;
mod two_stacks;

use super::frame_bounds::{Closed, FramePointers};
use super::output::OutputChunk;
use super::sorted_view::{Dense, Presence, Sorted};
use super::{Error, KernelKind, Ranges, Request, Span};
use crate::aggregate::column::{Column, Values};
use crate::aggregate::{AggSpec, Kind};
use areas::Areas;
use decays::WeightedRows;
use native::{Native, Records};
use pairs::PairRows;
use parts::{FoldKind, IndexedAgg, Part, part};
use sink::ColumnSink;

/// Rows answered together: their folds stay in the cache.
const BLOCK: usize = 1024;

/// The windows of some consecutive rows, as ranges of positions.
struct RowBlock<'a> {
    lo: &'a [usize],
    hi: &'a [usize],
    /// Each row is in its own window.
    own: bool,
}

impl RowBlock<'_> {
    fn windows(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone {
        self.lo.iter().copied().zip(self.hi.iter().copied())
    }

    fn between(&self, from: usize, until: usize) -> RowBlock<'_> {
        RowBlock {
            lo: &self.lo[from..until],
            hi: &self.hi[from..until],
            own: self.own,
        }
    }
}

/// The number of present values in a window; all of them, without a presence.
#[derive(Clone, Copy, Debug)]
struct PresentCounts<'a>(Option<&'a Presence>);

impl PresentCounts<'_> {
    #[inline(always)]
    fn has(self, at: usize) -> bool {
        self.0.is_none_or(|presence| presence.present[at])
    }

    #[inline(always)]
    fn of(self, lo: usize, hi: usize) -> usize {
        self.0.map_or(hi - lo, |presence| presence.count(lo, hi))
    }

    #[inline(always)]
    fn float(self, lo: usize, hi: usize) -> f64 {
        small(self.of(lo, hi))
    }
}

/// A number below 2⁵² as a float, by its bits: vector registers have no conversion before
/// AVX-512.
#[inline(always)]
fn small(count: usize) -> f64 {
    const WHOLE: f64 = (1_u64 << 52) as f64;
    f64::from_bits(WHOLE.to_bits() | count as u64) - WHOLE
}

/// The kernel of an aggregation, if there is one.
pub(super) fn kernel_kind(kind: Kind) -> Option<KernelKind> {
    Some(match FoldKind::of(kind)? {
        FoldKind::Count => KernelKind::Counts,
        FoldKind::Sum => KernelKind::Sums,
        FoldKind::Extreme { .. } => KernelKind::Extremes,
        FoldKind::Moments => KernelKind::Moments,
        FoldKind::Pairs | FoldKind::Weighted => KernelKind::Pairs,
        FoldKind::End { .. } => KernelKind::Ends,
        FoldKind::Area { .. } => KernelKind::Areas,
        FoldKind::Decayed { .. } => KernelKind::Decays,
        FoldKind::Native(_) => KernelKind::Combines,
    })
}

/// Whether there is a kernel for an aggregation over these columns.
pub(super) fn supports(agg: &AggSpec, columns: &[Column<'_, i64>]) -> bool {
    let inputs = [agg.of, agg.by].into_iter().flatten();
    let mut columns = inputs.map(|at| &columns[at].values);
    FoldKind::of(agg.kind).is_some() && !columns.any(|values| matches!(values, Values::Cells(_)))
}

/// The groups whose values are too large for an aggregation's kernel, or whose times it does
/// not take; `None` without such groups. The monoid answers them instead. The choice depends
/// on the group's own values only, so that answers do not depend on other groups.
pub(super) fn beyond(
    agg: &AggSpec,
    columns: &[Column<'_, i64>],
    sorted: &Sorted<'_>,
) -> Option<Vec<bool>> {
    let reasons = [
        too_large(agg, columns, sorted),
        decays::unordered(agg, columns, sorted),
        pairs::too_far(agg, columns, sorted),
    ];
    let either = |a: Vec<bool>, b: Vec<bool>| a.iter().zip(b).map(|(a, b)| *a || b).collect();
    reasons.into_iter().flatten().reduce(either)
}

fn too_large(agg: &AggSpec, columns: &[Column<'_, i64>], sorted: &Sorted<'_>) -> Option<Vec<bool>> {
    let column = &columns[agg.of?];
    // Sums, and squares of distances from any pivot, must not overflow.
    let most = match FoldKind::of(agg.kind)? {
        FoldKind::Sum => 1e290,
        FoldKind::Moments => 1e150,
        FoldKind::Decayed { .. } => decays::LARGEST,
        FoldKind::Area { .. } => areas::LARGEST,
        _ => return None,
    };
    let Values::F64(values) = column.values else {
        return None;
    };
    if !any_beyond(values, most) {
        return None;
    }
    let is_beyond = |position: usize| {
        let row = sorted.row(position);
        let there = column
            .validity
            .is_none_or(|validity| validity.is_valid(row));
        there && any_beyond(&values[row..=row], most)
    };
    let groups = sorted.starts.windows(2);
    Some(
        groups
            .map(|ends| (ends[0]..ends[1]).any(is_beyond))
            .collect(),
    )
}

/// Whether the magnitude of any finite value is greater than `most`.
fn any_beyond(values: &[f64], most: f64) -> bool {
    let beyond = |value: &f64| (value.abs() > most) & (value.abs() < f64::INFINITY);
    // Without a branch per value, so that the loop is vectorised.
    let mut chunks = values.chunks(BLOCK);
    chunks.any(|chunk| chunk.iter().fold(false, |any, value| any | beyond(value)))
}

/// Answers the aggregations that have a kernel, over whole tables; `chunks` by span and
/// aggregation.
pub(super) fn answer(
    request: &Request<'_>,
    sorted: &Sorted<'_>,
    aggs: &[IndexedAgg],
    chunks: &mut [Vec<OutputChunk<'_>>],
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let columns: Vec<Option<Dense<'_>>> = (0..request.columns.len())
        .map(|column| {
            let used = aggs
                .iter()
                .any(|(_, agg)| [agg.of, agg.by].contains(&Some(column)));
            used.then(|| sorted.column(&request.columns[column]))
        })
        .collect();
    let folds: Vec<(FoldKind, IndexedAgg)> = aggs
        .iter()
        .map(|one| (fold_of(&one.1, &columns, &sorted.starts), *one))
        .collect();
    let lifted = Lifted {
        records: records(aggs, &columns),
        weighted: decays::weighted(aggs, &columns, &sorted.starts),
        areas: areas::areas(aggs, &columns),
        pairs: pairs::pairs(aggs, &columns, &sorted.starts),
    };
    for (index, span) in request.spans.iter().enumerate() {
        let chunks = &mut chunks[index];
        for (at, _) in aggs {
            chunks[*at].assume_all();
        }
        let mut parts = plan(&folds, &columns, &lifted);
        answer_span(request, sorted, (index, *span), &mut parts, chunks, proceed)?;
    }
    Ok(())
}

/// Columns that are lifted once for all spans.
struct Lifted<'a> {
    /// As records, by the index of the column.
    records: Vec<(Option<usize>, Records<'a>)>,
    weighted: Vec<WeightedRows<'a>>,
    areas: Vec<Areas<'a>>,
    pairs: Vec<PairRows>,
}

/// Columns as records, each once.
fn records<'a>(
    aggs: &[IndexedAgg],
    columns: &'a [Option<Dense<'a>>],
) -> Vec<(Option<usize>, Records<'a>)> {
    let mut all: Vec<(Option<usize>, Records<'a>)> = Vec::new();
    for (_, agg) in aggs {
        let Kind::Native(functions) = agg.kind else {
            continue;
        };
        let known =
            |one: &(Option<usize>, Records<'_>)| one.0 == agg.of && one.1.are_of(&functions);
        if let Some(column) = agg.of.and_then(|of| columns[of].as_ref())
            && !all.iter().any(known)
        {
            all.push((agg.of, Records::new(functions, column)));
        }
    }
    all
}

/// The fold of an aggregation: the extremes of integers that ascend are at the ends.
fn fold_of(agg: &AggSpec, columns: &[Option<Dense<'_>>], starts: &[usize]) -> FoldKind {
    let fold = FoldKind::of(agg.kind).expect("the aggregation has a kernel");
    match (fold, agg.of.and_then(|of| columns[of].as_ref())) {
        (FoldKind::Extreme { min }, Some(column))
            if starts.windows(2).all(|group| column.ascends(group)) =>
        {
            FoldKind::End { last: !min }
        }
        _ => fold,
    }
}

/// The parts that answer these aggregations, each fold once.
fn plan<'a>(
    folds: &[(FoldKind, IndexedAgg)],
    columns: &'a [Option<Dense<'a>>],
    lifted: &'a Lifted<'a>,
) -> Vec<Box<dyn Part + 'a>> {
    let mut plan: Vec<(FoldKind, [Option<usize>; 2], Vec<IndexedAgg>)> = Vec::new();
    for &(fold, (index, agg)) in folds {
        match plan
            .iter_mut()
            .find(|part| (part.0, part.1) == (fold, [agg.of, agg.by]))
        {
            Some((_, _, answers)) => answers.push((index, agg)),
            None => plan.push((fold, [agg.of, agg.by], vec![(index, agg)])),
        }
    }
    plan.into_iter()
        .map(|(fold, [of, _], aggs)| match fold {
            FoldKind::Native(functions) => {
                let mut all = lifted.records.iter();
                let found = all.find(|one| one.0 == of && one.1.are_of(&functions));
                Native::boxed(&found.expect("records of all functions").1, aggs)
            }
            FoldKind::Decayed { .. } => decays::part(&lifted.weighted, aggs),
            FoldKind::Area { .. } => areas::part(&lifted.areas, aggs),
            FoldKind::Pairs | FoldKind::Weighted => pairs::part(&lifted.pairs, aggs),
            _ => part(fold, of.and_then(|of| columns[of].as_ref()), aggs),
        })
        .collect()
}

fn answer_span(
    request: &Request<'_>,
    sorted: &Sorted<'_>,
    (index, span): (usize, Span),
    parts: &mut [Box<dyn Part + '_>],
    chunks: &mut [OutputChunk<'_>],
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let ranges = Ranges::new(request, sorted, span);
    let rows = match &ranges {
        Some(ranges) => ranges.rows,
        None => sorted.rows.as_deref(),
    };
    let own = ranges.is_none() && matches!(span.closed, Closed::Right | Closed::Both);
    let mut answer_block = |start: usize, lo: &[usize], hi: &[usize]| {
        if !proceed() {
            return Err(Error::Interrupted);
        }
        let end = start + lo.len();
        let mut sink = ColumnSink {
            chunks,
            span: index,
            history: request.history,
            rows: rows.map(|rows| &rows[start..end]),
            start,
            overflow: request.overflow,
        };
        let block = RowBlock { lo, hi, own };
        parts
            .iter_mut()
            .try_for_each(|part| part.answer(&block, &mut sink))
    };
    if let Some(Ranges { lo, hi, .. }) = &ranges {
        let blocks = lo.chunks(BLOCK).zip(hi.chunks(BLOCK));
        let mut starts = (0..).step_by(BLOCK);
        return blocks
            .zip(&mut starts)
            .try_for_each(|((lo, hi), start)| answer_block(start, lo, hi));
    }
    let (mut lo, mut hi) = ([0; BLOCK], [0; BLOCK]);
    let (mut start, mut filled) = (0, 0);
    for group in sorted.starts.windows(2) {
        let times = &sorted.times[group[0]..group[1]];
        let mut pointers = FramePointers::new(times, span, request.ties);
        let mut position = 0;
        while position < times.len() {
            let count = (times.len() - position).min(BLOCK - filled);
            let slots = filled..filled + count;
            pointers.fill(position, group[0], &mut lo[slots.clone()], &mut hi[slots]);
            position += count;
            filled += count;
            if filled == BLOCK {
                answer_block(start, &lo, &hi)?;
                start += filled;
                filled = 0;
            }
        }
    }
    if filled == 0 {
        // Kernels read the first and the last window of a block.
        return Ok(());
    }
    answer_block(start, &lo[..filled], &hi[..filled])
}
