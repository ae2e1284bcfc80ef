//! Parts: one fold of one column over the windows of a span, and the answers made of it.

use std::mem::take;
use std::ops::Range;

use super::ops::{Extreme, Moments, NullableColumn, Number, Sum, Terms};
use super::prefix_sums::PrefixSums;
use super::sink::ColumnSink;
use super::two_stacks::{Scan, TwoStacks};
use super::{PresentCounts, RowBlock};
use crate::aggregate::decay::{Decayed, HalfLife};
use crate::aggregate::native::Functions;
use crate::aggregate::{AggSpec, Kind, extreme_value};
use crate::rolling::Error;
use crate::rolling::sorted_view::{Dense, Numbers};
use crate::simd::{SimdTask, dispatch_simd};

/// The fold of a part. Aggregations that need the same fold of one column share a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldKind {
    Count,
    Sum,
    Extreme { min: bool },
    Moments,
    Pairs,
    Weighted,
    End { last: bool },
    Decayed { what: Decayed, half_life: HalfLife },
    Area { linear: bool },
    Native(Functions),
}

impl FoldKind {
    /// `None` if there is no kernel for it.
    pub(super) fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Count => Self::Count,
            Kind::Sum | Kind::Mean => Self::Sum,
            Kind::Min => Self::Extreme { min: true },
            Kind::Max => Self::Extreme { min: false },
            Kind::Variance | Kind::Stddev => Self::Moments,
            Kind::Covariance | Kind::Correlation | Kind::Slope | Kind::RSquared => Self::Pairs,
            Kind::WeightedMean => Self::Weighted,
            Kind::First => Self::End { last: false },
            Kind::Last => Self::End { last: true },
            Kind::Decayed {
                what: what @ (Decayed::Count | Decayed::Sum | Decayed::Mean),
                half_life,
                dated: false,
            } => Self::Decayed { what, half_life },
            Kind::Area {
                linear,
                dated: false,
            } => Self::Area { linear },
            Kind::Native(functions) => Self::Native(functions),
            _ => return None,
        })
    }
}

/// Answers some aggregations block by block, in order.
pub(super) trait Part {
    fn answer(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error>;
}

/// The inner loop of a part, compiled with and without AVX2.
pub(super) trait Kernel {
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error>;
}

impl<K: Kernel> Part for K {
    fn answer(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        dispatch_simd(KernelTask(self, block, sink))
    }
}

struct KernelTask<'a, 'b, 'p, K>(&'a mut K, &'a RowBlock<'a>, &'a mut ColumnSink<'b, 'p>);

impl<K: Kernel> SimdTask for KernelTask<'_, '_, '_, K> {
    type Out = Result<(), Error>;

    #[inline(always)]
    fn run(self) -> Self::Out {
        self.0.run(self.1, self.2)
    }
}

/// An aggregation and its index among those of the request.
pub(super) type IndexedAgg = (usize, AggSpec);

/// `dense` is the column; none for a count of rows.
pub(super) fn part<'a>(
    fold: FoldKind,
    dense: Option<&'a Dense<'a>>,
    aggs: Vec<IndexedAgg>,
) -> Box<dyn Part + 'a> {
    let counts = PresentCounts(dense.and_then(|dense| dense.presence.as_ref()));
    match dense.map(|dense| &dense.numbers) {
        Some(Numbers::I64(values)) => {
            let values = NullableColumn::new(values, counts);
            match fold {
                FoldKind::Sum => ExactSum::boxed(values, counts, aggs),
                fold => of_number(fold, values, counts, aggs),
            }
        }
        Some(Numbers::F64(values)) => {
            let values = NullableColumn::new(values, counts);
            match fold {
                FoldKind::Sum => Summed::boxed(Sum(values), counts, aggs),
                fold => of_number(fold, values, counts, aggs),
            }
        }
        None => Box::new(Count { counts, aggs }),
    }
}

fn of_number<'a, V: Number + 'a>(
    fold: FoldKind,
    values: NullableColumn<'a, V>,
    counts: PresentCounts<'a>,
    aggs: Vec<IndexedAgg>,
) -> Box<dyn Part + 'a> {
    match fold {
        FoldKind::Extreme { min } => Extremes::boxed(Extreme { values, min }, counts, aggs),
        FoldKind::Moments => Summed::<_, 2>::boxed(Moments::new(values, counts), counts, aggs),
        FoldKind::End { last } => End::boxed(values, counts, last, aggs),
        FoldKind::Count | FoldKind::Sum => Box::new(Count { counts, aggs }),
        FoldKind::Pairs
        | FoldKind::Weighted
        | FoldKind::Decayed { .. }
        | FoldKind::Area { .. }
        | FoldKind::Native(_) => {
            unreachable!("lifted columns answer these")
        }
    }
}

struct Count<'a> {
    counts: PresentCounts<'a>,
    aggs: Vec<IndexedAgg>,
}

impl Kernel for Count<'_> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        for (index, _) in &self.aggs {
            let windows = block.windows();
            match self.counts.0 {
                None => sink.numbers(*index, windows.map(|(lo, hi)| (hi - lo) as i64)),
                Some(presence) => {
                    let count = |(lo, hi)| presence.count(lo, hi) as i64;
                    sink.numbers(*index, windows.map(count));
                }
            }
        }
        Ok(())
    }
}

/// Sums of integers: the running sum at the end of a window less that at its start. Both
/// advance with the windows, so that nothing is kept per row of the column.
struct ExactSum<'a> {
    values: NullableColumn<'a, i64>,
    to_end: Prefix,
    to_start: Prefix,
    /// The greatest magnitude of the values so far.
    greatest: u64,
    /// The sum and the number of values of each window, as floats.
    sums: Vec<f64>,
    floats: Vec<f64>,
    counts: PresentCounts<'a>,
    aggs: Vec<IndexedAgg>,
}

/// The running sum of a column up to `at`, and those of a block from there on to `end`.
struct Prefix {
    at: usize,
    end: usize,
    sum: i128,
    is_wide: bool,
    /// The sum of `at..at + k` is `narrow[k]` to be added to `sum`, or else `wide[k]`.
    narrow: Vec<i64>,
    wide: Vec<i128>,
}

impl Prefix {
    fn new() -> Self {
        Self {
            at: 0,
            end: 0,
            sum: 0,
            is_wide: false,
            narrow: vec![0],
            wide: vec![0],
        }
    }

    /// The slots of the sums from `first` on, up to the sum of `..end`.
    fn begin(
        &mut self,
        values: NullableColumn<'_, i64>,
        Range { start, end }: Range<usize>,
        is_wide: bool,
    ) {
        let value = |at| values.map(at, 0, i128::from);
        let known = start.min(self.end);
        self.sum += match self.is_wide {
            true => self.wide[known - self.at],
            false => i128::from(self.narrow[known - self.at]),
        };
        self.sum += (known..start).map(value).sum::<i128>();
        (self.at, self.end, self.is_wide) = (start, end, is_wide);
        let count = end - start + 1;
        if !is_wide {
            self.narrow.resize(count.max(self.narrow.len()), 0);
            return;
        }
        self.wide.resize(count.max(self.wide.len()), 0);
        let mut sum = 0_i128;
        for (slot, at) in self.wide[1..].iter_mut().zip(start..end) {
            sum += value(at);
            *slot = sum;
        }
    }

    /// Narrow sums from the `done`th row on; `sum` is the sum of the rows before it.
    #[inline(always)]
    fn advance(&mut self, values: NullableColumn<'_, i64>, done: usize, sum: i64) {
        let (mut sum, rows) = (sum, self.at + done..self.end);
        values.fill(
            rows,
            0,
            |value| value,
            &mut self.narrow[done + 1..],
            |value| {
                sum += value;
                sum
            },
        );
    }
}

/// Narrow sums of both ends, side by side.
#[inline(always)]
fn advance_both(values: NullableColumn<'_, i64>, to_end: &mut Prefix, to_start: &mut Prefix) {
    let both = (to_end.end - to_end.at).min(to_start.end - to_start.at);
    let mut sums = [0_i64; 2];
    let slots = to_end.narrow[1..].iter_mut().zip(&mut to_start.narrow[1..]);
    let from = ([to_end.at, to_start.at], both);
    values.fill_both(
        from,
        0,
        |value| value,
        slots,
        |[newer, older]| {
            sums = [sums[0] + newer, sums[1] + older];
            sums
        },
    );
    to_end.advance(values, both, sums[0]);
    to_start.advance(values, both, sums[1]);
}

impl<'a> ExactSum<'a> {
    fn boxed(
        values: NullableColumn<'a, i64>,
        counts: PresentCounts<'a>,
        aggs: Vec<IndexedAgg>,
    ) -> Box<dyn Part + 'a> {
        Box::new(Self {
            values,
            to_end: Prefix::new(),
            to_start: Prefix::new(),
            greatest: 0,
            sums: Vec::new(),
            floats: Vec::new(),
            counts,
            aggs,
        })
    }

    /// Advances both running sums to a block; returns whether 64 bits hold all its sums.
    #[inline(always)]
    fn bring(&mut self, block: &RowBlock<'_>) -> bool {
        let ends = |places: &[usize]| (places[0], places[places.len() - 1]);
        let ((first_start, to_start), (last_end, to_end)) = (ends(block.lo), ends(block.hi));
        let new = &self.values.all[self.to_end.at..to_end];
        let size = new
            .iter()
            .fold(0, |all, value| all | (value ^ (value >> 63)));
        // All bits up to the highest set one: an upper bound of all values so far.
        let below = u64::MAX.checked_shr(size.leading_zeros()).unwrap_or(0);
        self.greatest = self.greatest.max(below + 1);
        let longest = block.windows().map(|(lo, hi)| hi - lo).max().unwrap_or(0);
        let most = longest.max(to_end - last_end).max(to_start - first_start);
        let bound = self.greatest.checked_mul(most as u64);
        let narrow = bound.is_some_and(|bound| bound <= i64::MAX as u64);
        self.to_end.begin(self.values, last_end..to_end, !narrow);
        self.to_start
            .begin(self.values, first_start..to_start, !narrow);
        if narrow {
            advance_both(self.values, &mut self.to_end, &mut self.to_start);
        }
        narrow
    }

    /// The sum of each window, if 64 bits hold them.
    fn narrow<'b>(&'b self, block: &'b RowBlock<'_>) -> impl ExactSizeIterator<Item = i64> + 'b {
        let apart = (self.to_end.sum - self.to_start.sum) as i64;
        let (last_end, first_start) = (self.to_end.at, self.to_start.at);
        let (to_end, to_start) = (&self.to_end.narrow[..], &self.to_start.narrow[..]);
        block.windows().map(move |(lo, hi)| {
            let within = to_end[hi - last_end].wrapping_sub(to_start[lo - first_start]);
            apart.wrapping_add(within)
        })
    }

    fn wide<'b>(&'b self, block: &'b RowBlock<'_>) -> impl ExactSizeIterator<Item = i128> + 'b {
        let apart = self.to_end.sum - self.to_start.sum;
        block.windows().map(move |(lo, hi)| {
            apart + self.to_end.wide[hi - self.to_end.at]
                - self.to_start.wide[lo - self.to_start.at]
        })
    }
}

impl Kernel for ExactSum<'_> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        let narrow = self.bring(block);
        let is_mean = |(_, agg): &IndexedAgg| agg.kind == Kind::Mean;
        if self.aggs.iter().any(is_mean) {
            // Sums are stored before they are divided, so that the division is vectorised.
            let (mut sums, mut floats) = (take(&mut self.sums), take(&mut self.floats));
            match narrow {
                true => write_down(self.narrow(block).map(|sum| sum as f64), &mut sums),
                false => write_down(self.wide(block).map(|sum| sum as f64), &mut sums),
            }
            self.counts.write_down(block, &mut floats);
            (self.sums, self.floats) = (sums, floats);
        }
        for (index, agg) in &self.aggs {
            match (narrow, agg.kind) {
                (true, Kind::Sum) => sink.numbers(*index, self.narrow(block)),
                (false, Kind::Sum) => sink.wide_integers(*index, self.wide(block))?,
                _ => {
                    let sums = self.sums.iter().zip(&self.floats);
                    sink.numbers(*index, sums.map(|(sum, count)| sum / count));
                }
            }
            sink.leave_out(*index, block, self.counts, 1);
        }
        Ok(())
    }
}

/// Without `extend`, which would be compiled without AVX2.
#[inline(always)]
fn write_down(numbers: impl ExactSizeIterator<Item = f64>, to: &mut Vec<f64>) {
    to.resize(numbers.len(), 0.0);
    for (slot, number) in to.iter_mut().zip(numbers) {
        *slot = number;
    }
}

impl PresentCounts<'_> {
    /// The number of values in each window of a block.
    #[inline(always)]
    pub(super) fn write_down(self, block: &RowBlock<'_>, to: &mut Vec<f64>) {
        write_down(block.windows().map(|(lo, hi)| self.float(lo, hi)), to);
    }
}

/// The first or the last value of each window.
struct End<'a, V> {
    values: NullableColumn<'a, V>,
    counts: PresentCounts<'a>,
    last: bool,
    /// For each position the position of the nearest present value, if some are missing.
    places: Option<Vec<usize>>,
    aggs: Vec<IndexedAgg>,
}

impl<'a, V: Number + 'a> End<'a, V> {
    fn boxed(
        values: NullableColumn<'a, V>,
        counts: PresentCounts<'a>,
        last: bool,
        aggs: Vec<IndexedAgg>,
    ) -> Box<dyn Part + 'a> {
        let places = values.present.map(|present| match last {
            false => nearest(present.iter().copied().enumerate().rev()),
            true => nearest(present.iter().copied().enumerate()),
        });
        Box::new(Self {
            values,
            counts,
            last,
            places,
            aggs,
        })
    }

    fn place(&self, (lo, hi): (usize, usize)) -> usize {
        let end = if self.last { hi.saturating_sub(1) } else { lo };
        // The answer of a window without values is left out, so its position is arbitrary.
        let end = end.min(self.values.all.len() - 1);
        self.places.as_ref().map_or(end, |places| places[end])
    }
}

/// For each position, the last present one up to it.
pub(super) fn nearest(present: impl ExactSizeIterator<Item = (usize, bool)>) -> Vec<usize> {
    let mut places = vec![0; present.len()];
    let mut place = 0;
    for (at, there) in present {
        if there {
            place = at;
        }
        places[at] = place;
    }
    places
}

impl<V: Number> Kernel for End<'_, V> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        for (index, _) in &self.aggs {
            let all = self.values.all;
            let windows = block.windows();
            match (&self.places, self.last, block.own) {
                (None, false, true) => sink.numbers(*index, windows.map(|(lo, _)| all[lo])),
                (None, true, true) => sink.numbers(*index, windows.map(|(_, hi)| all[hi - 1])),
                _ => sink.numbers(*index, windows.map(|window| all[self.place(window)])),
            }
            sink.leave_out(*index, block, self.counts, 1);
        }
        Ok(())
    }
}

/// The greatest or the least value of each window, by two stacks.
struct Extremes<'a, V: Number> {
    stacks: TwoStacks<'a, Extreme<'a, V>>,
    words: Vec<i64>,
    counts: PresentCounts<'a>,
    aggs: Vec<IndexedAgg>,
}

impl<'a, V: Number + 'a> Extremes<'a, V> {
    fn boxed(
        extreme: Extreme<'a, V>,
        counts: PresentCounts<'a>,
        aggs: Vec<IndexedAgg>,
    ) -> Box<dyn Part + 'a> {
        Box::new(Self {
            stacks: TwoStacks::new(extreme, counts),
            words: Vec::new(),
            counts,
            aggs,
        })
    }
}

impl<V: Number> Kernel for Extremes<'_, V> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        self.words.resize(block.lo.len(), 0);
        self.stacks.answer(block, &mut self.words);
        let min = self.stacks.scan.min;
        for (index, _) in &self.aggs {
            let value = |word: &i64| V::of_bits(extreme_value(*word, V::DTYPE, min));
            sink.numbers(*index, self.words.iter().map(value));
            sink.leave_out(*index, block, self.counts, 1);
        }
        Ok(())
    }
}

/// Lowering of running sums.
struct Summed<'a, S: Scan, const K: usize> {
    running: PrefixSums<'a, S, K>,
    /// The number of values in each window, and its lowered value.
    floats: Vec<f64>,
    lowered: Vec<f64>,
    counts: PresentCounts<'a>,
    aggs: Vec<IndexedAgg>,
}

impl<'a, S: Finish + Terms<K> + 'a, const K: usize> Summed<'a, S, K> {
    fn boxed(terms: S, counts: PresentCounts<'a>, aggs: Vec<IndexedAgg>) -> Box<dyn Part + 'a> {
        Box::new(Self {
            running: PrefixSums::new(terms, counts),
            floats: Vec::new(),
            lowered: Vec::new(),
            counts,
            aggs,
        })
    }
}

impl<S: Finish + Terms<K>, const K: usize> Kernel for Summed<'_, S, K> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        self.counts.write_down(block, &mut self.floats);
        self.lowered.resize(block.lo.len(), 0.0);
        self.running.answer(block, &self.floats, &mut self.lowered);
        let fewest = self.floats.iter().copied().fold(f64::INFINITY, f64::min);
        for (index, agg) in &self.aggs {
            let counts = self.floats.iter().copied();
            let lowered = self.lowered.iter().copied().zip(counts);
            let least = self
                .running
                .stacks
                .scan
                .finish((*index, agg), lowered, sink);
            if fewest < least as f64 {
                sink.leave_out(*index, block, self.counts, least);
            }
        }
        Ok(())
    }
}

/// Converts lowered values, each with the number of its values, to answers.
trait Finish {
    /// Returns the number of values that an answer needs.
    fn finish(
        &self,
        aggs: (usize, &AggSpec),
        lowered: impl ExactSizeIterator<Item = (f64, f64)>,
        sink: &mut ColumnSink<'_, '_>,
    ) -> usize;
}

impl Finish for Sum<'_> {
    #[inline(always)]
    fn finish(
        &self,
        (index, agg): (usize, &AggSpec),
        sums: impl ExactSizeIterator<Item = (f64, f64)>,
        sink: &mut ColumnSink<'_, '_>,
    ) -> usize {
        match agg.kind {
            Kind::Mean => sink.numbers(index, sums.map(|(sum, count)| sum / count)),
            _ => sink.numbers(index, sums.map(|(sum, _)| sum)),
        }
        1
    }
}

impl<V: Number> Finish for Moments<'_, V> {
    #[inline(always)]
    fn finish(
        &self,
        (index, agg): (usize, &AggSpec),
        squares: impl ExactSizeIterator<Item = (f64, f64)>,
        sink: &mut ColumnSink<'_, '_>,
    ) -> usize {
        let ddof = f64::from(agg.ddof);
        let variances = squares.map(|(squares, count)| squares / (count * (count - ddof)));
        match agg.kind {
            Kind::Stddev => sink.numbers(index, variances.map(f64::sqrt)),
            _ => sink.numbers(index, variances),
        }
        agg.ddof as usize + 1
    }
}
