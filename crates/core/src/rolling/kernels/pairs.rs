//! Covariances, correlations and slopes of two columns: two stacks over the distances of both
//! from a pivot. Weighted means: two stacks over products and weights.
//!
//! Distances and products are pairs of floats, and so are their sums: as many digits as the
//! monoid has, so what is zero in one is zero in the other. Integers whose distances alone
//! count are taken from one of their group, so that floats hold them.

use super::ops::MIN_REMAINDER;
use super::parts::{FoldKind, IndexedAgg, Kernel, Part};
use super::sink::ColumnSink;
use super::two_stacks::{Scan, TwoStacks};
use super::{PresentCounts, RowBlock};
use crate::aggregate::column::{Column, Values};
use crate::aggregate::double::Double;
use crate::aggregate::moment_answers::{is_rounding, without_noise};
use crate::aggregate::rounding::{two_product, two_sum};
use crate::aggregate::twofold::Twofold;
use crate::aggregate::{AggSpec, Kind};
use crate::rolling::Error;
use crate::rolling::sorted_view::{Dense, Numbers, Presence, Sorted};

/// Magnitudes whose products of distances keep all their digits.
const LARGEST: f64 = 1e75;
const LEAST: f64 = 1e-100;
/// The greatest distance of integers that floats hold.
const WIDEST: i128 = 1 << 53;

/// Two columns, where both are present.
#[derive(Debug)]
pub(super) struct PairRows {
    of: Source,
    rows: Vec<[f64; 2]>,
    presence: Option<Presence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    columns: [Option<usize>; 2],
    /// Integers are distances from one of their group.
    distances: bool,
}

impl Source {
    fn new(agg: &AggSpec) -> Self {
        Self {
            columns: [agg.of, agg.by],
            distances: agg.kind != Kind::WeightedMean,
        }
    }
}

/// The columns of all aggregations of pairs, each pair once.
pub(super) fn pairs(
    aggs: &[IndexedAgg],
    columns: &[Option<Dense<'_>>],
    starts: &[usize],
) -> Vec<PairRows> {
    let mut all: Vec<PairRows> = Vec::new();
    for (_, agg) in aggs.iter().filter(|(_, agg)| is_of_pairs(agg.kind)) {
        let of = Source::new(agg);
        let column = |at: Option<usize>| at.and_then(|at| columns[at].as_ref());
        let [Some(first), Some(second)] = of.columns.map(column) else {
            continue;
        };
        if all.iter().all(|one| one.of != of) {
            all.push(PairRows::new(of, [first, second], starts));
        }
    }
    all
}

fn is_of_pairs(kind: Kind) -> bool {
    matches!(
        FoldKind::of(kind),
        Some(FoldKind::Pairs | FoldKind::Weighted)
    )
}

impl PairRows {
    fn new(of: Source, columns: [&Dense<'_>; 2], starts: &[usize]) -> Self {
        let mut rows = vec![[0.0; 2]; columns[0].len()];
        for (side, column) in columns.iter().enumerate() {
            match &column.numbers {
                Numbers::F64(values) => {
                    for (row, value) in rows.iter_mut().zip(values.iter()) {
                        row[side] = *value;
                    }
                }
                Numbers::I64(values) => {
                    for group in starts.windows(2) {
                        let values = &values[group[0]..group[1]];
                        let present = (group[0]..group[1]).position(|at| column.is_present(at));
                        let first = match of.distances {
                            true => present.map_or(0, |at| values[at]),
                            false => 0,
                        };
                        for (row, value) in rows[group[0]..group[1]].iter_mut().zip(values) {
                            row[side] = value.wrapping_sub(first) as f64;
                        }
                    }
                }
            }
        }
        let is_whole = columns.iter().all(|column| column.presence.is_none());
        let both = |at| columns.iter().all(|column| column.is_present(at));
        let presence = (!is_whole).then(|| Presence::new((0..rows.len()).map(both).collect()));
        Self { of, rows, presence }
    }

    fn counts(&self) -> PresentCounts<'_> {
        PresentCounts(self.presence.as_ref())
    }
}

/// The groups of which a column has values that are too large or too small, or integers that
/// lie too far apart.
pub(super) fn too_far(
    agg: &AggSpec,
    columns: &[Column<'_, i64>],
    sorted: &Sorted<'_>,
) -> Option<Vec<bool>> {
    if !is_of_pairs(agg.kind) {
        return None;
    }
    let columns = [&columns[agg.of?], &columns[agg.by?]];
    let is_far = |values: &mut dyn Iterator<Item = i64>| match agg.kind {
        Kind::WeightedMean => is_wide(&mut values.chain([0])),
        _ => is_wide(values),
    };
    let may_be = columns.iter().any(|column| match column.values {
        Values::F64(values) => !values.iter().fold(true, |all, value| all & is_near(*value)),
        Values::I64(values) => is_far(&mut values.iter().copied()),
        Values::Cells(_) => unreachable!("kernels know numbers only"),
    });
    if !may_be {
        return None;
    }
    let groups = sorted.starts.windows(2).map(|group| {
        columns.iter().any(|column| {
            let rows = (group[0]..group[1]).map(|position| sorted.row(position));
            let mut rows = rows.filter(|row| column.validity.is_none_or(|of| of.is_valid(*row)));
            match column.values {
                Values::F64(values) => rows.any(|row| !is_near(values[row])),
                Values::I64(values) => is_far(&mut rows.map(|row| values[row])),
                Values::Cells(_) => unreachable!("kernels know numbers only"),
            }
        })
    });
    let groups: Vec<bool> = groups.collect();
    groups.contains(&true).then_some(groups)
}

/// False for NaN, too.
fn is_near(value: f64) -> bool {
    let size = value.abs();
    (size <= LARGEST) & ((size >= LEAST) | (size == 0.0))
}

fn is_wide(values: &mut dyn Iterator<Item = i64>) -> bool {
    let ends = values.fold((i64::MAX, i64::MIN), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    i128::from(ends.1) - i128::from(ends.0) > WIDEST
}

/// The part of an aggregation over pairs that [`pairs`] has made.
pub(super) fn part<'a>(all: &'a [PairRows], aggs: Vec<IndexedAgg>) -> Box<dyn Part + 'a> {
    let of = Source::new(&aggs[0].1);
    let found = all.iter().find(|one| one.of == of);
    let rows = found.expect("pairs of all aggregations");
    if aggs[0].1.kind == Kind::WeightedMean {
        return Box::new(Means {
            stacks: TwoStacks::new(Weighted(rows), rows.counts()),
            lowered: Vec::new(),
            aggs,
        });
    }
    let scan = Pairs {
        rows: &rows.rows,
        counts: rows.counts(),
        pivot: [0.0; 2],
    };
    Box::new(Answers {
        stacks: TwoStacks::new(scan, rows.counts()),
        lowered: Vec::new(),
        counts: Vec::new(),
        rows,
        aggs,
    })
}

// The places of sums: of both distances, of their squares and of their product.
const X: usize = 0;
const Y: usize = 1;
const XX: usize = 2;
const YY: usize = 3;
const XY: usize = 4;

/// Sums, and what these lack.
#[derive(Clone, Copy, Debug)]
struct Sums {
    sums: [f64; 5],
    errors: [f64; 5],
}

impl Sums {
    const NONE: Self = Self {
        sums: [0.0; 5],
        errors: [0.0; 5],
    };

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let mut all = self;
        for at in 0..5 {
            let (sum, error) = two_sum(self.sums[at], other.sums[at]);
            all.sums[at] = sum;
            all.errors[at] = self.errors[at] + (other.errors[at] + error);
        }
        all
    }

    #[inline(always)]
    fn of(&self, at: usize) -> Double {
        Double::sum(self.sums[at], self.errors[at])
    }
}

/// Distances from a pivot near the mean of the window at the last flip. Where the mean moves
/// far from it, digits cancel, and another flip is due (see [`super::ops::Moments`]).
#[derive(Clone, Copy, Debug)]
struct Pairs<'a> {
    rows: &'a [[f64; 2]],
    counts: PresentCounts<'a>,
    pivot: [f64; 2],
}

impl Pairs<'_> {
    #[inline(always)]
    fn terms(&self, at: usize) -> Sums {
        let [x, y] = self.rows[at];
        let (dx, ex) = two_sum(x, -self.pivot[0]);
        let (dy, ey) = two_sum(y, -self.pivot[1]);
        let [(xx, exx), (yy, eyy), (xy, exy)] =
            [(dx, dx), (dy, dy), (dx, dy)].map(|(a, b)| two_product(a, b));
        let terms = Sums {
            sums: [dx, dy, xx, yy, xy],
            errors: [
                ex,
                ey,
                exx + 2.0 * dx * ex,
                eyy + 2.0 * dy * ey,
                exy + (dx * ey + dy * ex),
            ],
        };
        match self.counts.has(at) {
            true => terms,
            false => Sums::NONE,
        }
    }

    /// A pivot for rows, given an earlier one: their only value, or about their mean.
    fn near(&self, side: usize, lo: usize, hi: usize) -> Option<f64> {
        let mut values = (lo..hi)
            .filter(|at| self.counts.has(*at))
            .map(|at| self.rows[at][side]);
        let (first, pivot) = (values.next()?, self.pivot[side]);
        let (mut distances, mut is_one) = (first - pivot, true);
        for value in values {
            distances += value - pivot;
            is_one &= value == first;
        }
        let mean = pivot + distances / self.counts.float(lo, hi);
        Some(if is_one { first } else { mean })
    }
}

/// Sums of products of the distances from the means, times the number of pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Products {
    xx: Double,
    yy: Double,
    xy: Double,
}

impl Scan for Pairs<'_> {
    type Fold = Sums;
    type Lowered = Products;
    const REBASES: bool = true;

    #[inline(always)]
    fn identity(&self) -> Sums {
        Sums::NONE
    }
    #[inline(always)]
    fn absorb(&self, fold: Sums, at: usize) -> Sums {
        fold.plus(self.terms(at))
    }
    #[inline(always)]
    fn join(&self, older: Sums, younger: Sums) -> Sums {
        older.plus(younger)
    }
    #[inline(always)]
    fn lower(&self, fold: Sums, count: f64) -> Products {
        let [x, y] = [fold.of(X), fold.of(Y)];
        let central = |at, a: Double, b: Double| fold.of(at).by(count).minus(a.times(b));
        Products {
            xx: central(XX, x, x),
            yy: central(YY, y, y),
            xy: central(XY, x, y),
        }
    }
    fn renew(&mut self, lo: usize, hi: usize, fresh: bool) {
        if fresh {
            self.pivot = [0.0; 2];
        }
        let pivot = [0, 1].map(|side| self.near(side, lo, hi).unwrap_or(0.0));
        self.pivot = pivot;
    }
    /// Also true for a column of one value in a window, unless the pivot is this value.
    #[inline(always)]
    fn needs_rebase(&self, fold: Sums, central: Products, count: f64) -> bool {
        let least = MIN_REMAINDER * count;
        (central.xx.high < least * fold.sums[XX]) | (central.yy.high < least * fold.sums[YY])
    }
}

struct Answers<'a> {
    stacks: TwoStacks<'a, Pairs<'a>>,
    lowered: Vec<Products>,
    counts: Vec<f64>,
    rows: &'a PairRows,
    aggs: Vec<IndexedAgg>,
}

impl Kernel for Answers<'_> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        self.lowered.resize(block.lo.len(), Products::default());
        self.stacks.answer(block, &mut self.lowered);
        let counts = self.rows.counts();
        counts.write_down(block, &mut self.counts);
        for (index, agg) in &self.aggs {
            let windows = self.lowered.iter().zip(&self.counts);
            let ddof = f64::from(agg.ddof);
            match agg.kind {
                Kind::Covariance => {
                    let answer = |(of, n): (&Products, &f64)| of.covariance(*n, ddof);
                    sink.numbers(*index, windows.map(answer));
                    sink.leave_out(*index, block, counts, agg.ddof as usize + 1);
                }
                Kind::Correlation => {
                    sink.numbers(*index, windows.map(|(of, n)| of.correlation(*n)));
                    sink.leave_out(*index, block, counts, 2);
                }
                kind => {
                    match kind {
                        Kind::Slope => sink.numbers(*index, windows.map(|(of, _)| of.slope())),
                        _ => sink.numbers(*index, windows.map(|(of, _)| of.r_squared())),
                    }
                    // The second column has one value, or none.
                    let windows = self.lowered.iter().zip(&self.counts);
                    let is_one_value = |(of, n): (&Products, &f64)| of.yy.high <= 0.0 || *n < 2.0;
                    sink.leave_out_where(*index, windows.map(is_one_value));
                }
            }
        }
        Ok(())
    }
}

/// The answers of `aggregate::moment_answers`, from the same numbers.
impl Products {
    #[inline(always)]
    fn squares(&self) -> [f64; 2] {
        [self.xx.high, self.yy.high]
    }

    #[inline(always)]
    fn is_rounding(&self) -> bool {
        is_rounding(self.xy.high, self.squares())
    }

    #[inline(always)]
    fn covariance(&self, count: f64, ddof: f64) -> f64 {
        match self.is_rounding() {
            true => 0.0,
            false => self.xy.rounded() / (count * (count - ddof)),
        }
    }

    #[inline(always)]
    fn correlation(&self, count: f64) -> f64 {
        let count = Double::sum(count, 0.0);
        let [x, y, share] = [self.xx, self.yy, self.xy].map(|sum| sum.over(count).rounded());
        let scale = match x * y {
            both if both.is_normal() => both.sqrt(),
            _ => x.sqrt() * y.sqrt(),
        };
        without_noise(share / scale).clamp(-1.0, 1.0)
    }

    #[inline(always)]
    fn slope(&self) -> f64 {
        match self.is_rounding() {
            true => 0.0,
            false => self.xy.over(self.yy).rounded(),
        }
    }

    #[inline(always)]
    fn r_squared(&self) -> f64 {
        if self.xx.high <= 0.0 {
            return 1.0;
        }
        if self.is_rounding() {
            return 0.0;
        }
        let share = self.xy.over(self.xx).times(self.xy.over(self.yy));
        share.rounded().clamp(0.0, 1.0)
    }
}

/// Products of values and weights, and weights.
#[derive(Clone, Copy, Debug)]
struct Weighted<'a>(&'a PairRows);

impl Scan for Weighted<'_> {
    type Fold = [Twofold; 2];
    /// The mean, and the sum of the weights.
    type Lowered = (f64, f64);

    #[inline(always)]
    fn identity(&self) -> Self::Fold {
        [Twofold::EMPTY; 2]
    }
    #[inline(always)]
    fn absorb(&self, [products, weights]: Self::Fold, at: usize) -> Self::Fold {
        if !self.0.counts().has(at) {
            return [products, weights];
        }
        let [value, weight] = self.0.rows[at];
        let (sum, error) = two_product(value, weight);
        let product = Twofold { sum, error };
        [
            products.combine_within(product),
            weights.plus_within(weight),
        ]
    }
    #[inline(always)]
    fn join(&self, older: Self::Fold, younger: Self::Fold) -> Self::Fold {
        [0, 1].map(|at| older[at].combine_within(younger[at]))
    }
    #[inline(always)]
    fn lower(&self, [products, weights]: Self::Fold, _count: f64) -> (f64, f64) {
        let mean = Double::from(products).over(Double::from(weights));
        (mean.rounded(), weights.value())
    }
}

struct Means<'a> {
    stacks: TwoStacks<'a, Weighted<'a>>,
    lowered: Vec<(f64, f64)>,
    aggs: Vec<IndexedAgg>,
}

impl Kernel for Means<'_> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        self.lowered.resize(block.lo.len(), (0.0, 0.0));
        self.stacks.answer(block, &mut self.lowered);
        for (index, _) in &self.aggs {
            sink.numbers(*index, self.lowered.iter().map(|(mean, _)| *mean));
            // Also of a window without pairs.
            let has_no_weight = self.lowered.iter().map(|(_, weights)| *weights == 0.0);
            sink.leave_out_where(*index, has_no_weight);
        }
        Ok(())
    }
}
