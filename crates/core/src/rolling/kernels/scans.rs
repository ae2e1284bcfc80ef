//! What the flip kernel folds: sums with their errors, extremes, moments.

use super::Counts;
use super::flip::Scan;
use crate::aggregate::twofold::{Twofold, two_sum};
use crate::aggregate::{DType, extreme_word};
use crate::rolling::Output;

/// A number as a kernel sees it.
pub(super) trait Number: Copy + Sized {
    const DTYPE: DType;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    /// Where a result column keeps values of this type.
    fn column(output: &mut Output) -> &mut [Self];
    fn to_f64(self) -> f64;
    /// `self − pivot`, rounded once.
    fn distance(self, pivot: Self) -> f64;
    /// The value of this type nearest to a mean; any, if there is no mean.
    fn pivot(mean: f64) -> Self;
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
    fn column(output: &mut Output) -> &mut [Self] {
        match output {
            Output::I64 { values, .. } => values,
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
    fn column(output: &mut Output) -> &mut [Self] {
        match output {
            Output::F64 { values, .. } => values,
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
}

/// A column, and which of its values are there if some are not.
#[derive(Debug)]
pub(super) struct Values<'a, V> {
    pub(super) all: &'a [V],
    pub(super) present: Option<&'a [bool]>,
}

impl<V> Clone for Values<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Values<'_, V> {}

impl<'a, V: Number> Values<'a, V> {
    pub(super) fn new(all: &'a [V], counts: Counts<'a>) -> Self {
        let present = counts.0.map(|presence| &presence.present[..]);
        Self { all, present }
    }

    #[inline(always)]
    fn is_there(&self, at: usize) -> bool {
        self.present.is_none_or(|present| present[at])
    }

    /// What `of` makes of the value, or `missing`: a select, not a branch.
    #[inline(always)]
    pub(super) fn map<R: Copy>(&self, at: usize, missing: R, of: impl Fn(V) -> R) -> R {
        let value = of(self.all[at]);
        if self.is_there(at) { value } else { missing }
    }
}

/// The sum of floats with its error.
#[derive(Debug)]
pub(super) struct Sum<'a>(pub(super) Values<'a, f64>);

#[inline(always)]
fn twofold([sum, error]: [f64; 2]) -> Twofold {
    Twofold { sum, error }
}

impl Scan<2> for Sum<'_> {
    type Word = f64;
    #[inline(always)]
    fn identity(&self) -> [f64; 2] {
        [Twofold::EMPTY.sum, Twofold::EMPTY.error]
    }
    #[inline(always)]
    fn absorb(&self, fold: [f64; 2], at: usize) -> [f64; 2] {
        let Twofold { sum, error } = twofold(fold).plus(self.0.map(at, -0.0, |value| value + 0.0));
        [sum, error]
    }
    #[inline(always)]
    fn join(older: [f64; 2], younger: [f64; 2]) -> [f64; 2] {
        let Twofold { sum, error } = twofold(older).combine(twofold(younger));
        [sum, error]
    }
}

/// The greatest of order-preserving words.
#[derive(Debug)]
pub(super) struct Extreme<'a, V> {
    pub(super) values: Values<'a, V>,
    pub(super) min: bool,
}

impl<V: Number> Scan<1> for Extreme<'_, V> {
    type Word = i64;
    #[inline(always)]
    fn identity(&self) -> [i64; 1] {
        [i64::MIN]
    }
    #[inline(always)]
    fn absorb(&self, [fold]: [i64; 1], at: usize) -> [i64; 1] {
        let word = |value: V| extreme_word(value.bits(), V::DTYPE, self.min);
        [fold.max(self.values.map(at, i64::MIN, word))]
    }
    #[inline(always)]
    fn join([older]: [i64; 1], [younger]: [i64; 1]) -> [i64; 1] {
        [older.max(younger)]
    }
}

/// Sums of distances from a pivot, and of their squares, each with its error.
///
/// The pivot is the mean of the window at the last flip. A window whose mean has gone
/// far from it loses digits in `second − first²/n`; then a flip is due. After that flip
/// the mean must move away again by five times the deviation, so flips stay rare.
#[derive(Debug)]
pub(super) struct Moments<'a, V> {
    values: Values<'a, V>,
    counts: Counts<'a>,
    pivot: V,
}

/// The first sum, the second, and the errors of both: operations go through both at once.
pub(super) type Distances = [f64; 4];

/// How much of `second` may be left of `second − first²/n` before a flip is due.
const WEAR: f64 = 1.0 / 32.0;

/// The sum of squared distances from the mean of `count` values.
#[inline(always)]
pub(super) fn squares([first, second, first_error, second_error]: Distances, count: f64) -> f64 {
    let first = twofold([first, first_error]).value();
    let drift = first * (first / count);
    let squares = twofold([second, second_error]).plus(-drift).value();
    // NaN stays; what rounding made negative does not.
    if squares < 0.0 { 0.0 } else { squares }
}

#[inline(always)]
fn two_sums(a: [f64; 2], b: [f64; 2]) -> ([f64; 2], [f64; 2]) {
    let sums = [two_sum(a[0], b[0]), two_sum(a[1], b[1])];
    ([sums[0].0, sums[1].0], [sums[0].1, sums[1].1])
}

impl<'a, V: Number> Moments<'a, V> {
    pub(super) fn new(values: Values<'a, V>, counts: Counts<'a>) -> Self {
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

impl<V: Number> Scan<4> for Moments<'_, V> {
    type Word = f64;
    const WEARS: bool = true;

    #[inline(always)]
    fn identity(&self) -> Distances {
        [0.0; 4]
    }
    #[inline(always)]
    fn absorb(&self, fold: Distances, at: usize) -> Distances {
        let distance = self.distance(at);
        let (sums, errors) = two_sums([fold[0], fold[1]], [distance, distance * distance]);
        [sums[0], sums[1], fold[2] + errors[0], fold[3] + errors[1]]
    }
    #[inline(always)]
    fn join(older: Distances, younger: Distances) -> Distances {
        let (sums, errors) = two_sums([older[0], older[1]], [younger[0], younger[1]]);
        let both = [older[2] + younger[2], older[3] + younger[3]];
        [sums[0], sums[1], both[0] + errors[0], both[1] + errors[1]]
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
    /// A window without any deviation is worn too, unless the pivot is its one value.
    #[inline(always)]
    fn is_worn(&self, fold: Distances, lo: usize, hi: usize) -> bool {
        let drift = fold[0] * (fold[0] / self.counts.float(lo, hi));
        fold[1] - drift < WEAR * fold[1]
    }
}
