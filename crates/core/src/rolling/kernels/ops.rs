//! The operations of kernels: sums with their errors, extremes, central moments.

use std::ops::Range;

use super::PresentCounts;
use super::two_stacks::Scan;
use crate::aggregate::rounding::two_sum;
use crate::aggregate::twofold::Twofold;
use crate::aggregate::{DType, extreme_word};
use crate::rolling::output::OutputChunk;

/// A number as a kernel sees it.
pub(super) trait Number: Copy + Sized {
    const DTYPE: DType;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    /// The values of a result column of this type.
    fn column<'p>(chunk: &'p mut OutputChunk<'_>) -> &'p mut [Self];
    fn to_f64(self) -> f64;
    /// Returns `self − pivot`, rounded once.
    fn distance(self, pivot: Self) -> f64;
    /// The value of this type nearest to a mean; arbitrary if there is no mean.
    fn pivot(mean: f64) -> Self;
    /// The value at about this distance; the value itself at distance 0.
    fn moved(self, distance: f64) -> Self;
}

impl Number for i64 {
    const DTYPE: DType = DType::I64;
    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        bits as i64
    }
    fn column<'p>(chunk: &'p mut OutputChunk<'_>) -> &'p mut [Self] {
        match chunk {
            OutputChunk::I64 { values, .. } => values,
            _ => unreachable!("integers for another column"),
        }
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn distance(self, pivot: Self) -> f64 {
        match self.checked_sub(pivot) {
            Some(distance) => distance as f64,
            None => (i128::from(self) - i128::from(pivot)) as f64,
        }
    }
    fn pivot(mean: f64) -> Self {
        mean as i64
    }
    fn moved(self, distance: f64) -> Self {
        self.saturating_add(distance as i64)
    }
}

impl Number for f64 {
    const DTYPE: DType = DType::F64;
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    fn column<'p>(chunk: &'p mut OutputChunk<'_>) -> &'p mut [Self] {
        match chunk {
            OutputChunk::F64 { values, .. } => values,
            _ => unreachable!("floats for another column"),
        }
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn distance(self, pivot: Self) -> f64 {
        self - pivot
    }
    fn pivot(mean: f64) -> Self {
        if mean.is_finite() { mean } else { 0.0 }
    }
    fn moved(self, distance: f64) -> Self {
        let there = self + distance;
        if there.is_finite() { there } else { 0.0 }
    }
}

/// A column, and its validity if some values are missing.
#[derive(Debug)]
pub(super) struct NullableColumn<'a, V> {
    pub(super) all: &'a [V],
    pub(super) present: Option<&'a [bool]>,
}

impl<V> Clone for NullableColumn<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for NullableColumn<'_, V> {}

impl<'a, V: Number> NullableColumn<'a, V> {
    pub(super) fn new(all: &'a [V], counts: PresentCounts<'a>) -> Self {
        let present = counts.0.map(|presence| &presence.present[..]);
        Self { all, present }
    }

    #[inline(always)]
    fn is_present(&self, at: usize) -> bool {
        self.present.is_none_or(|present| present[at])
    }

    /// `of(value)`, or `missing`: a select, not a branch.
    #[inline(always)]
    pub(super) fn map<R: Copy>(&self, at: usize, missing: R, of: impl Fn(V) -> R) -> R {
        let value = of(self.all[at]);
        if self.is_present(at) { value } else { missing }
    }
}

impl<V: Number> NullableColumn<'_, V> {
    /// `of(value)` for one value after the other, or `missing`.
    #[inline(always)]
    pub(super) fn each<R: Copy>(
        &self,
        rows: Range<usize>,
        missing: R,
        of: impl Fn(V) -> R,
        mut take: impl FnMut(R),
    ) {
        let values = &self.all[rows.clone()];
        match self.present {
            None => values.iter().for_each(|value| take(of(*value))),
            Some(present) => {
                for (value, there) in values.iter().zip(&present[rows]) {
                    let value = of(*value);
                    take(if *there { value } else { missing });
                }
            }
        }
    }
}

impl<V: Number> NullableColumn<'_, V> {
    /// Likewise, with a slot for each.
    #[inline(always)]
    pub(super) fn fill<T: Copy, R>(
        &self,
        rows: Range<usize>,
        missing: T,
        of: impl Fn(V) -> T,
        slots: &mut [R],
        mut take: impl FnMut(T) -> R,
    ) {
        let values = &self.all[rows.clone()];
        match self.present {
            None => {
                for (slot, value) in slots.iter_mut().zip(values) {
                    *slot = take(of(*value));
                }
            }
            Some(present) => {
                let values = values.iter().zip(&present[rows]);
                for (slot, (value, there)) in slots.iter_mut().zip(values) {
                    let value = of(*value);
                    *slot = take(if *there { value } else { missing });
                }
            }
        }
    }

    /// Likewise for `count` rows from two positions on.
    #[inline(always)]
    pub(super) fn fill_both<'s, T: Copy, R: 's>(
        &self,
        (from, count): ([usize; 2], usize),
        missing: T,
        of: impl Fn(V) -> T,
        slots: impl Iterator<Item = (&'s mut R, &'s mut R)>,
        mut take: impl FnMut([T; 2]) -> [R; 2],
    ) {
        let rows = from.map(|from| from..from + count);
        let [first, second] = rows.clone().map(|rows| &self.all[rows]);
        let values = first.iter().zip(second);
        match self.present {
            None => {
                for ((a, b), (first, second)) in slots.zip(values) {
                    [*a, *b] = take([of(*first), of(*second)]);
                }
            }
            Some(present) => {
                let [there, also] = rows.map(|rows| &present[rows]);
                let there = there.iter().zip(also);
                for (((a, b), (first, second)), (there, also)) in slots.zip(values).zip(there) {
                    let [first, second] = [of(*first), of(*second)];
                    [*a, *b] = take([
                        if *there { first } else { missing },
                        if *also { second } else { missing },
                    ]);
                }
            }
        }
    }
}

/// The sum of floats with its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum<'a>(pub(super) NullableColumn<'a, f64>);

impl Scan for Sum<'_> {
    type Fold = Twofold;
    type Lowered = f64;
    #[inline(always)]
    fn identity(&self) -> Twofold {
        Twofold::EMPTY
    }
    #[inline(always)]
    fn absorb(&self, fold: Twofold, at: usize) -> Twofold {
        fold.plus_within(self.0.map(at, -0.0, |value| value + 0.0))
    }
    #[inline(always)]
    fn join(&self, older: Twofold, younger: Twofold) -> Twofold {
        older.combine_within(younger)
    }
    #[inline(always)]
    fn lower(&self, fold: Twofold, _count: f64) -> f64 {
        fold.value()
    }
}

/// The summed terms: `K` per row, which share a grid or its square.
pub(super) trait Terms<const K: usize>: Scan<Lowered = f64> + Copy {
    /// Whether lost digits are measured by the size of the sum, not of its terms.
    const CANCELS: bool;
    type Value: Number;

    /// The column that terms are computed from.
    fn column(&self) -> NullableColumn<'_, Self::Value>;
    /// The terms of a value; zeros if it is missing.
    fn terms(&self) -> impl Fn(Self::Value) -> [f64; K];

    /// The terms of one row after the other.
    #[inline(always)]
    fn each(&self, rows: Range<usize>, take: impl FnMut([f64; K])) {
        self.column().each(rows, [0.0; K], self.terms(), take);
    }
    /// Likewise, with a slot for each row.
    #[inline(always)]
    fn fill<R>(&self, rows: Range<usize>, slots: &mut [R], take: impl FnMut([f64; K]) -> R) {
        let terms = self.terms();
        self.column().fill(rows, [0.0; K], terms, slots, take);
    }
    /// Likewise for `count` rows from two positions on.
    #[inline(always)]
    fn fill_both<'s, R: 's>(
        &self,
        from: [usize; 2],
        count: usize,
        slots: impl Iterator<Item = (&'s mut R, &'s mut R)>,
        take: impl FnMut([[f64; K]; 2]) -> [R; 2],
    ) {
        let (from, terms) = ((from, count), self.terms());
        self.column().fill_both(from, [0.0; K], terms, slots, take);
    }
    /// Called before a window begins an epoch: terms may change.
    fn begin(&mut self, lo: usize, hi: usize);
    /// Lowers the sums of a window with `count` values.
    fn answer(&self, sums: [f64; K], count: f64) -> f64;
    /// Whether digits have cancelled; `least` is the least acceptable sum of squares.
    fn has_cancelled(&self, sums: [f64; K], answer: f64, count: f64, least: f64) -> bool;
    /// The answer for rows with `count` values, by a scan.
    fn fold_rows(&self, lo: usize, hi: usize, count: f64) -> f64;
}

impl Terms<1> for Sum<'_> {
    const CANCELS: bool = true;
    type Value = f64;

    #[inline(always)]
    fn column(&self) -> NullableColumn<'_, f64> {
        self.0
    }
    #[inline(always)]
    fn terms(&self) -> impl Fn(f64) -> [f64; 1] {
        |value| [value]
    }
    fn begin(&mut self, _lo: usize, _hi: usize) {}
    #[inline(always)]
    fn answer(&self, [sum]: [f64; 1], _count: f64) -> f64 {
        sum
    }
    #[inline(always)]
    fn has_cancelled(&self, _sums: [f64; 1], _answer: f64, _count: f64, _least: f64) -> bool {
        false
    }
    #[inline(always)]
    fn fold_rows(&self, lo: usize, hi: usize, _count: f64) -> f64 {
        let mut sum = Twofold::EMPTY;
        self.each(lo..hi, |[term]| sum = sum.plus_within(term));
        sum.value()
    }
}

/// The greatest of order-preserving words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extreme<'a, V> {
    pub(super) values: NullableColumn<'a, V>,
    pub(super) min: bool,
}

impl<V: Number> Extreme<'_, V> {
    /// Values are stored before they are compared, so that the comparison is vectorised.
    #[inline(always)]
    fn words(&self, rows: Range<usize>, slots: &mut [i64]) {
        let word = |value: V| extreme_word(value.bits(), V::DTYPE, self.min);
        self.values.fill(rows, i64::MIN, word, slots, |word| word);
    }
}

impl<V: Number> Scan for Extreme<'_, V> {
    type Fold = i64;
    type Lowered = i64;
    #[inline(always)]
    fn identity(&self) -> i64 {
        i64::MIN
    }
    #[inline(always)]
    fn absorb(&self, fold: i64, at: usize) -> i64 {
        let word = |value: V| extreme_word(value.bits(), V::DTYPE, self.min);
        fold.max(self.values.map(at, i64::MIN, word))
    }
    #[inline(always)]
    fn join(&self, older: i64, younger: i64) -> i64 {
        older.max(younger)
    }
    #[inline(always)]
    fn forward(&self, rows: Range<usize>, fold: i64, slots: &mut [i64]) -> i64 {
        let mut fold = fold;
        let slots = &mut slots[..rows.len()];
        self.words(rows, slots);
        for slot in slots {
            fold = fold.max(*slot);
            *slot = fold;
        }
        fold
    }
    #[inline(always)]
    fn backward(&self, rows: Range<usize>, slots: &mut [i64]) {
        self.words(rows, slots);
        let mut fold = i64::MIN;
        for slot in slots.iter_mut().rev() {
            fold = fold.max(*slot);
            *slot = fold;
        }
    }
    #[inline(always)]
    fn lower(&self, fold: i64, _count: f64) -> i64 {
        fold
    }
}

/// Sums of distances from a pivot, and of their squares, each with its error.
///
/// The pivot is the mean of the window at the last flip, or when the epoch began. If the
/// mean of a window moves far from it, `second − first²/n` loses digits, and another flip
/// or epoch is due. After that the mean must move by five times the deviation again, so
/// both are rare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments<'a, V> {
    values: NullableColumn<'a, V>,
    counts: PresentCounts<'a>,
    pivot: V,
}

/// The first sum and the second, then the error of each.
pub(super) type Distances = [f64; 4];

/// If `second − first²/n` is less than this share of `second`, the window needs a rebase.
pub(super) const MIN_REMAINDER: f64 = 1.0 / 32.0;

impl<'a, V: Number> Moments<'a, V> {
    pub(super) fn new(values: NullableColumn<'a, V>, counts: PresentCounts<'a>) -> Self {
        Self {
            values,
            counts,
            pivot: V::pivot(0.0),
        }
    }

    #[inline(always)]
    fn distance(&self, at: usize) -> f64 {
        let distance = |value: V| value.distance(self.pivot);
        self.values.map(at, 0.0, distance)
    }
}

impl<V: Number> Scan for Moments<'_, V> {
    type Fold = Distances;
    type Lowered = f64;
    const REBASES: bool = true;

    #[inline(always)]
    fn identity(&self) -> Distances {
        [0.0; 4]
    }
    #[inline(always)]
    fn absorb(&self, fold: Distances, at: usize) -> Distances {
        let distance = self.distance(at);
        let (first, first_error) = two_sum(fold[0], distance);
        let (second, second_error) = two_sum(fold[1], distance * distance);
        [first, second, fold[2] + first_error, fold[3] + second_error]
    }
    #[inline(always)]
    fn join(&self, older: Distances, younger: Distances) -> Distances {
        let (first, first_error) = two_sum(older[0], younger[0]);
        let (second, second_error) = two_sum(older[1], younger[1]);
        let errors = [older[2] + younger[2], older[3] + younger[3]];
        [
            first,
            second,
            errors[0] + first_error,
            errors[1] + second_error,
        ]
    }
    /// The sum of squared distances from the mean, for each value.
    #[inline(always)]
    fn lower(&self, [first, second, first_error, second_error]: Distances, count: f64) -> f64 {
        let twofold = |sum, error| Twofold { sum, error };
        let first = twofold(first, first_error).value();
        let drift = first * (first / count);
        let squares = twofold(second, second_error).plus_within(-drift).value();
        // NaN is kept; a value that rounding made negative is not.
        if squares < 0.0 { 0.0 } else { squares * count }
    }
    fn renew(&mut self, lo: usize, hi: usize, fresh: bool) {
        if fresh {
            self.pivot = V::pivot(0.0);
        }
        let count = self.counts.float(lo, hi);
        let near = Twofold::fold((lo..hi).map(|at| self.distance(at))).value() / count;
        let mut mean = self.pivot.to_f64() + near;
        if !mean.is_finite() {
            let plain = |at| self.values.map(at, 0.0, V::to_f64);
            mean = Twofold::fold((lo..hi).map(plain)).value() / count;
        }
        self.pivot = V::pivot(mean);
    }
    /// Also true for a window without deviation, unless the pivot is its only value.
    #[inline(always)]
    fn needs_rebase(&self, fold: Distances, squares: f64, count: f64) -> bool {
        squares < MIN_REMAINDER * fold[1] * count
    }
}

impl<V: Number> Terms<2> for Moments<'_, V> {
    const CANCELS: bool = false;
    type Value = V;

    #[inline(always)]
    fn column(&self) -> NullableColumn<'_, V> {
        self.values
    }
    #[inline(always)]
    fn terms(&self) -> impl Fn(V) -> [f64; 2] {
        let pivot = self.pivot;
        move |value| {
            let distance = value.distance(pivot);
            [distance, distance * distance]
        }
    }
    fn begin(&mut self, lo: usize, hi: usize) {
        let Some(first) = (lo..hi).find(|at| self.values.is_present(*at)) else {
            return;
        };
        self.pivot = self.values.all[first];
        let mut near = 0.0;
        self.each(lo..hi, |terms| near += terms[0]);
        self.pivot = self.pivot.moved(near / self.counts.float(lo, hi));
    }
    #[inline(always)]
    fn answer(&self, [first, second]: [f64; 2], count: f64) -> f64 {
        let squares = second * count - first * first;
        // A single value has no deviation, unless it is NaN or infinite.
        let alone = (count < 2.0) & (second < f64::INFINITY);
        if (squares < 0.0) | alone {
            0.0
        } else {
            squares
        }
    }
    #[inline(always)]
    fn has_cancelled(&self, sums: [f64; 2], squares: f64, count: f64, least: f64) -> bool {
        let needs_rebase = squares < MIN_REMAINDER * (sums[1] * count);
        (needs_rebase | (sums[1] < least * count)) & (count >= 2.0)
    }
    #[inline(always)]
    fn fold_rows(&self, lo: usize, hi: usize, count: f64) -> f64 {
        let mut near = *self;
        near.begin(lo, hi);
        // Several sums of each, so that no addition waits for the previous row.
        let mut lanes = [[Twofold::EMPTY; 2]; 4];
        let mut row = 0;
        near.each(lo..hi, |terms| {
            let [first, second] = &mut lanes[row % 4];
            *first = first.plus_within(terms[0]);
            *second = second.plus_within(terms[1]);
            row += 1;
        });
        let sums = [0, 1].map(|moment| {
            let lanes = lanes.iter().map(|lane| lane[moment]);
            let whole = lanes.reduce(|sum, lane| sum.combine_within(lane));
            whole.map_or(0.0, |sum| sum.value())
        });
        near.answer(sums, count)
    }
}
