//! Decayed sums, counts and means: two stacks over weighted values.
//!
//! The rows of a column are weighted once for all spans that one thread answers. A fold is
//! relative to the power of its latest row, as a partial of the monoid is. Times ascend, so a
//! join scales its older side only, by two powers of two without a branch; and a half-life in
//! rows is one in time, where the numbers of the values before each are the times.
//!
//! Nothing is subtracted: infinity, NaN and great values leave no trace, and what has lost all
//! its weight is zero.

use std::ops::Range;

use super::parts::{IndexedAgg, Kernel, Part, nearest};
use super::sink::ColumnSink;
use super::two_stacks::{Scan, TwoStacks};
use super::{PresentCounts, RowBlock};
use crate::aggregate::column::Column;
use crate::aggregate::decay::{Decayed, HalfLife, Weights, ratio_within};
use crate::aggregate::rounding::{power_of_two, two_product, two_sum};
use crate::aggregate::twofold::Twofold;
use crate::aggregate::{AggSpec, Kind};
use crate::rolling::Error;
use crate::rolling::sorted_view::{Dense, Numbers, Sorted};
use crate::simd::{SimdTask, dispatch_simd};

/// The least power of two that is a normal float.
const LEAST_POWER: i64 = -1022;

/// The power of no row: below those of all rows, by less than int64 holds.
const NOWHERE: i64 = i64::MIN / 4;

/// The greatest magnitude of finite values: two steps of the least power lead their sums to
/// zero.
pub(super) const LARGEST: f64 = 1e280;

const ZERO: Twofold = Twofold {
    sum: 0.0,
    error: 0.0,
};

/// The weighted rows of a column.
#[derive(Debug)]
pub(super) struct WeightedRows<'a> {
    of: Source,
    rows: Vec<Row>,
    /// For each position that of the last value up to it, if some are missing.
    latest: Option<Vec<usize>>,
    counts: PresentCounts<'a>,
}

/// What rows are weighted, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    half_life: HalfLife,
    of: Option<usize>,
    by: Option<usize>,
    /// All values are one.
    ones: bool,
}

impl Source {
    fn new(agg: &AggSpec) -> Option<Self> {
        let Kind::Decayed {
            what, half_life, ..
        } = agg.kind
        else {
            return None;
        };
        Some(Self {
            half_life,
            of: agg.of,
            by: agg.by,
            ones: what == Decayed::Count,
        })
    }
}

/// A value times its weight, and its weight, relative to a power of two.
#[derive(Clone, Copy, Debug)]
struct Row {
    power: i64,
    weight: f64,
    value: Twofold,
}

impl Row {
    /// A value that is missing.
    const NONE: Self = Self {
        power: NOWHERE,
        weight: 0.0,
        value: ZERO,
    };

    #[inline(always)]
    fn fold(&self) -> Fold<1> {
        Fold {
            power: self.power,
            sums: [self.value],
        }
    }

    #[inline(always)]
    fn fold_with_weight(&self) -> Fold<2> {
        Fold {
            power: self.power,
            sums: [self.value, Twofold::new(self.weight)],
        }
    }
}

/// The weighted rows of all decayed aggregations, each once.
pub(super) fn weighted<'a>(
    aggs: &[IndexedAgg],
    columns: &'a [Option<Dense<'a>>],
    starts: &[usize],
) -> Vec<WeightedRows<'a>> {
    let mut all: Vec<WeightedRows<'a>> = Vec::new();
    for source in aggs.iter().filter_map(|(_, agg)| Source::new(agg)) {
        let column = |at: Option<usize>| at.and_then(|at| columns[at].as_ref());
        let Some(values) = column(source.of) else {
            continue;
        };
        if all.iter().all(|one| one.of != source) {
            let times = column(source.by).unwrap_or(values);
            let counts = PresentCounts(values.presence.as_ref());
            let present = counts.0.map(|presence| presence.present.iter().copied());
            all.push(WeightedRows {
                of: source,
                rows: dispatch_simd(Weigh(source, values, times, starts)),
                latest: present.map(|present| nearest(present.enumerate())),
                counts,
            });
        }
    }
    all
}

/// Compiled for processors with a fused multiply-add, too.
struct Weigh<'a>(Source, &'a Dense<'a>, &'a Dense<'a>, &'a [usize]);

impl SimdTask for Weigh<'_> {
    type Out = Vec<Row>;

    #[inline(always)]
    fn run(self) -> Vec<Row> {
        let Self(source, values, times, mut starts) = self;
        match (&times.numbers, source.half_life) {
            (Numbers::I64(times), HalfLife::Time { length, tick }) => {
                let mut weights = Weights::new(length, tick);
                weigh(source, values, |at| weights.of(times[at]))
            }
            (_, half_life) => {
                let HalfLife::Rows(rows) = half_life else {
                    unreachable!("times are integers");
                };
                // Counted in each group anew: weights do not depend on other groups.
                let (mut weights, mut before) = (Weights::new(rows, 1), 0);
                weigh(source, values, |at| {
                    while starts.first().is_some_and(|start| *start <= at) {
                        (starts, before) = (&starts[1..], 0);
                    }
                    before += 1;
                    weights.of(before)
                })
            }
        }
    }
}

#[inline(always)]
fn weigh(source: Source, values: &Dense<'_>, weight: impl FnMut(usize) -> (i64, f64)) -> Vec<Row> {
    match &values.numbers {
        _ if source.ones => weigh_each(values, weight, |_| 1.0),
        Numbers::I64(all) => weigh_each(values, weight, |at| all[at] as f64),
        Numbers::F64(all) => weigh_each(values, weight, |at| all[at]),
    }
}

#[inline(always)]
fn weigh_each(
    values: &Dense<'_>,
    mut weight: impl FnMut(usize) -> (i64, f64),
    value: impl Fn(usize) -> f64,
) -> Vec<Row> {
    let mut row = |at| {
        let (power, weight) = weight(at);
        let (sum, error) = two_product(value(at), weight);
        let value = Twofold {
            sum: sum + 0.0,
            error,
        };
        Row {
            power,
            weight,
            value,
        }
    };
    match &values.presence {
        None => (0..values.len()).map(row).collect(),
        Some(presence) => {
            let all = presence.present.iter().enumerate();
            all.map(|(at, there)| if *there { row(at) } else { Row::NONE })
                .collect()
        }
    }
}

/// The groups whose times do not ascend, or whose weights have powers beyond 2⁶⁰.
pub(super) fn unordered(
    agg: &AggSpec,
    columns: &[Column<'_, i64>],
    sorted: &Sorted<'_>,
) -> Option<Vec<bool>> {
    let HalfLife::Time { length, tick } = Source::new(agg)?.half_life else {
        return None;
    };
    let times = sorted.column(&columns[agg.by.or(agg.of)?]);
    let is_near = |at: usize| {
        let Numbers::I64(times) = &times.numbers else {
            unreachable!("times are integers");
        };
        Weights::new(length, tick).of(times[at]).0.unsigned_abs() <= 1 << 60
    };
    let is_there = |at: &usize| times.is_present(*at);
    let is_beyond = |group: &[usize]| {
        let mut ends = [
            (group[0]..group[1]).find(is_there),
            (group[0]..group[1]).rfind(is_there),
        ]
        .into_iter()
        .flatten();
        !(times.ascends(group) && ends.all(is_near))
    };
    let groups: Vec<bool> = sorted.starts.windows(2).map(is_beyond).collect();
    groups.contains(&true).then_some(groups)
}

/// The part of an aggregation over rows that `weighted` has made.
pub(super) fn part<'a>(all: &'a [WeightedRows<'a>], aggs: Vec<IndexedAgg>) -> Box<dyn Part + 'a> {
    let agg = &aggs[0].1;
    let source = Source::new(agg).expect("it decays");
    let found = all.iter().find(|one| one.of == source);
    let rows = found.expect("rows of all that decay");
    let is_mean = matches!(
        agg.kind,
        Kind::Decayed {
            what: Decayed::Mean,
            ..
        }
    );
    match is_mean {
        true => Box::new(Decays::new(Means(&rows.rows), rows, aggs)),
        false => Box::new(Decays::new(Sums(&rows.rows), rows, aggs)),
    }
}

struct Decays<'a, S: Scan> {
    stacks: TwoStacks<'a, S>,
    lowered: Vec<S::Lowered>,
    rows: &'a WeightedRows<'a>,
    aggs: Vec<IndexedAgg>,
}

impl<'a, S: Scan> Decays<'a, S> {
    fn new(scan: S, rows: &'a WeightedRows<'a>, aggs: Vec<IndexedAgg>) -> Self {
        Self {
            stacks: TwoStacks::new(scan, rows.counts),
            lowered: Vec::new(),
            rows,
            aggs,
        }
    }
}

impl<S: Finish> Kernel for Decays<'_, S> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        self.lowered.resize(block.lo.len(), S::Lowered::default());
        self.stacks.answer(block, &mut self.lowered);
        let WeightedRows { latest, counts, .. } = self.rows;
        let weight = |at: usize| self.rows.rows[at].weight;
        // The answer of a window without values is left out, so its latest row is any.
        let last = |hi: &usize| hi.saturating_sub(1);
        for (index, _) in &self.aggs {
            let folds = self.lowered.iter().zip(block.hi);
            match latest {
                None => sink.numbers(
                    *index,
                    folds.map(|(fold, hi)| S::finish(*fold, weight(last(hi)))),
                ),
                Some(latest) => sink.numbers(
                    *index,
                    folds.map(|(fold, hi)| S::finish(*fold, weight(latest[last(hi)]))),
                ),
            }
            sink.leave_out(*index, block, *counts, 1);
        }
        Ok(())
    }
}

/// Makes the answer of a fold, given the weight of its latest row.
trait Finish: Scan {
    fn finish(fold: Self::Lowered, weight: f64) -> f64;
}

/// Sums relative to the power of the latest row.
#[derive(Clone, Copy, Debug)]
struct Fold<const K: usize> {
    power: i64,
    sums: [Twofold; K],
}

impl<const K: usize> Fold<K> {
    const NONE: Self = Self {
        power: NOWHERE,
        sums: [ZERO; K],
    };

    #[inline(always)]
    fn join(self, younger: Self) -> Self {
        let power = self.power.max(younger.power);
        let down = self.power.wrapping_sub(power).clamp(2 * LEAST_POWER, 0);
        let half = down >> 1;
        let [first, second] = [half, down - half].map(|power| power_of_two(power as i32));
        let sums = std::array::from_fn(|at| {
            let (older, younger) = (self.sums[at], younger.sums[at]);
            let (sum, error) = two_sum(older.sum * first * second, younger.sum);
            let error = (older.error * first * second + younger.error) + error;
            Twofold { sum, error }
        });
        Self { power, sums }
    }
}

/// Stores the fold of each row and all later ones.
#[inline(always)]
fn backward<const K: usize>(rows: &[Row], of: impl Fn(&Row) -> Fold<K>, slots: &mut [Fold<K>]) {
    let mut fold = Fold::NONE;
    for (slot, row) in slots.iter_mut().zip(rows).rev() {
        fold = of(row).join(fold);
        *slot = fold;
    }
}

/// Sums of values.
#[derive(Clone, Copy, Debug)]
struct Sums<'a>(&'a [Row]);

impl Scan for Sums<'_> {
    type Fold = Fold<1>;
    /// The sum and its error.
    type Lowered = (f64, f64);

    #[inline(always)]
    fn identity(&self) -> Fold<1> {
        Fold::NONE
    }
    #[inline(always)]
    fn absorb(&self, fold: Fold<1>, at: usize) -> Fold<1> {
        fold.join(self.0[at].fold())
    }
    #[inline(always)]
    fn backward(&self, rows: Range<usize>, slots: &mut [Fold<1>]) {
        backward(&self.0[rows], Row::fold, slots);
    }
    #[inline(always)]
    fn join(&self, older: Fold<1>, younger: Fold<1>) -> Fold<1> {
        older.join(younger)
    }
    #[inline(always)]
    fn lower(&self, fold: Fold<1>, _count: f64) -> (f64, f64) {
        let [Twofold { sum, error }] = fold.sums;
        (sum, error)
    }
}

impl Finish for Sums<'_> {
    #[inline(always)]
    fn finish((sum, error): (f64, f64), weight: f64) -> f64 {
        ratio_within(Twofold { sum, error }, Twofold::new(weight))
    }
}

/// Sums of values and of weights.
#[derive(Clone, Copy, Debug)]
struct Means<'a>(&'a [Row]);

impl Scan for Means<'_> {
    type Fold = Fold<2>;
    type Lowered = f64;

    #[inline(always)]
    fn identity(&self) -> Fold<2> {
        Fold::NONE
    }
    #[inline(always)]
    fn absorb(&self, fold: Fold<2>, at: usize) -> Fold<2> {
        fold.join(self.0[at].fold_with_weight())
    }
    #[inline(always)]
    fn backward(&self, rows: Range<usize>, slots: &mut [Fold<2>]) {
        backward(&self.0[rows], Row::fold_with_weight, slots);
    }
    #[inline(always)]
    fn join(&self, older: Fold<2>, younger: Fold<2>) -> Fold<2> {
        older.join(younger)
    }
    #[inline(always)]
    fn lower(&self, fold: Fold<2>, _count: f64) -> f64 {
        let [values, weights] = fold.sums;
        ratio_within(values, weights)
    }
}

impl Finish for Means<'_> {
    #[inline(always)]
    fn finish(mean: f64, _weight: f64) -> f64 {
        mean
    }
}
