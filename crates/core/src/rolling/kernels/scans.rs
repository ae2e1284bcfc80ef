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

impl Scan for Sum<'_> {
    type Fold = Twofold;
    type Lowered = f64;
    #[inline(always)]
    fn identity(&self) -> Twofold {
        Twofold::EMPTY
    }
    #[inline(always)]
    fn absorb(&self, fold: Twofold, at: usize) -> Twofold {
        fold.plus(self.0.map(at, -0.0, |value| value + 0.0))
    }
    #[inline(always)]
    fn join(&self, older: Twofold, younger: Twofold) -> Twofold {
        older.combine(younger)
    }
    #[inline(always)]
    fn lower(&self, fold: Twofold, _count: f64) -> f64 {
        fold.value()
    }
}

/// The greatest of order-preserving words.
#[derive(Debug)]
pub(super) struct Extreme<'a, V> {
    pub(super) values: Values<'a, V>,
    pub(super) min: bool,
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
    fn lower(&self, fold: i64, _count: f64) -> i64 {
        fold
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

/// The first sum and the second, then the error of each.
pub(super) type Distances = [f64; 4];

/// How much of `second` may be left of `second − first²/n` before a flip is due.
const WEAR: f64 = 1.0 / 32.0;

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

impl<V: Number> Scan for Moments<'_, V> {
    type Fold = Distances;
    type Lowered = f64;
    const WEARS: bool = true;

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
    /// The sum of squared distances from the mean.
    #[inline(always)]
    fn lower(&self, [first, second, first_error, second_error]: Distances, count: f64) -> f64 {
        let twofold = |sum, error| Twofold { sum, error };
        let first = twofold(first, first_error).value();
        let drift = first * (first / count);
        let squares = twofold(second, second_error).plus(-drift).value();
        // NaN stays; what rounding made negative does not.
        if squares < 0.0 { 0.0 } else { squares }
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
    fn is_worn(&self, fold: Distances, squares: f64) -> bool {
        squares < WEAR * fold[1]
    }
}
