//! Sums of floats that carry their rounding error: a value and its error term.
//!
//! `TwoSum` (Knuth) gives the exact error of one addition; adding up those errors beside
//! the sum makes a fold of any length and grouping as good as one rounding: relative
//! error ≤ 2⁻⁵⁰ · Σ|x| / |Σx|.
//!
//! Method: errors added up beside the sum are the cascaded summation `Sum2` of Ogita, Rump,
//! Oishi, *Accurate Sum and Dot Product* (SIAM J. Sci. Comput. 26(6), 2005), here as a
//! monoid. Not double-double arithmetic: the pair is not renormalised.
//!
//! Negative zero is the identity, and only the identity: `-0.0 + x == x` for every `x`,
//! and no input is ever −0.0 (it is read as 0.0), so "nothing was added" needs no flag.
//!
//! A sum of finite values that leaves the floats on the way is kept [`Beyond`] them, and
//! comes back if later values bring it back. Overflow makes the error term NaN or infinite:
//! one check detects it, and the rest is off the fast path.

mod beyond;

use super::double::Double;
use super::rounding::two_sum;
use crate::snapshot::{Codec, Reader, Result, Writer};
use beyond::Beyond;

pub(super) use beyond::Wide;

/// An unevaluated sum `sum + error`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Twofold {
    pub sum: f64,
    pub error: f64,
}

const LANES: usize = 8;

impl Twofold {
    pub const EMPTY: Self = Self {
        sum: -0.0,
        error: 0.0,
    };

    #[inline]
    pub fn new(value: f64) -> Self {
        Self {
            sum: value,
            error: 0.0,
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.sum.to_bits() == (-0.0_f64).to_bits()
    }

    #[inline]
    #[must_use]
    pub fn plus(self, value: f64) -> Self {
        let sum = self.plus_within(value);
        if sum.error.is_finite() {
            return sum;
        }
        Beyond::sum(self, Self::new(value))
    }

    /// [`Self::plus`] of values so small that no sum of them leaves the floats, or of
    /// infinities and NaN.
    #[inline]
    #[must_use]
    pub fn plus_within(self, value: f64) -> Self {
        let (sum, error) = two_sum(self.sum, value);
        Self {
            sum,
            error: self.error + error,
        }
    }

    /// [`Self::plus`] of both parts of a finite number.
    #[inline]
    #[must_use]
    pub fn plus_double(self, value: Double) -> Self {
        let (sum, error) = two_sum(self.sum, value.high);
        let error = self.error + (error + value.low);
        if error.is_finite() {
            return Self { sum, error };
        }
        Beyond::sum(self, Self::new(value.high))
    }

    #[inline]
    #[must_use]
    pub fn combine(self, younger: Self) -> Self {
        let sum = self.combine_within(younger);
        if sum.error.is_finite() {
            return sum;
        }
        Beyond::sum(self, younger)
    }

    /// [`Self::combine`], as [`Self::plus_within`].
    #[inline]
    #[must_use]
    pub fn combine_within(self, younger: Self) -> Self {
        let (sum, error) = two_sum(self.sum, younger.sum);
        Self {
            sum,
            error: (self.error + younger.error) + error,
        }
    }

    /// The sum without `older`, which was combined into it; rounds once more.
    #[inline]
    #[must_use]
    pub fn without(self, older: Self) -> Self {
        if older.is_empty() {
            return self;
        }
        let (sum, error) = two_sum(self.sum, -older.sum);
        let error = (self.error - older.error) + error;
        if error.is_finite() {
            return Self {
                sum: sum + 0.0,
                error,
            };
        }
        Beyond::difference(self, older)
    }

    /// Whether it is a finite sum, possibly [`Beyond`] the floats.
    #[inline]
    pub fn is_finite(self) -> bool {
        (self.sum.is_finite() && self.error.is_finite()) || Beyond::is(self)
    }

    /// Never −0.0, which is the identity.
    #[inline]
    #[must_use]
    pub fn of_some(self) -> Self {
        match self.is_empty() {
            true => Self::new(0.0),
            false => self,
        }
    }

    /// The rounded sum; infinite if it exceeds the floats. If the sum is infinite or NaN,
    /// the error term has no meaning; near the largest float only the error term may be
    /// infinite or NaN.
    #[inline]
    pub fn value(self) -> f64 {
        let whole = self.sum + self.error;
        if whole.is_finite() {
            return whole;
        }
        match Wide::is(self) {
            true => f64::INFINITY.copysign(self.error),
            false => Beyond::of(self).map_or(self.sum, |beyond| beyond.value()),
        }
    }

    /// The value as `(value, power)`, of which `value · 2^power` may lie beyond the floats;
    /// the power is 0 where it does not.
    pub fn scaled(self) -> (f64, i64) {
        let whole = self.sum + self.error;
        if whole.is_finite() {
            return (whole, 0);
        }
        Wide::scaled(self)
    }

    /// The mean of `n` values, which may be a float although their sum exceeds the floats.
    #[inline]
    pub fn mean(self, count: f64) -> f64 {
        let whole = self.sum + self.error;
        if whole.is_finite() {
            return whole / count;
        }
        Beyond::of(self).map_or(self.sum / count, |beyond| beyond.mean(count))
    }

    /// Sum of a run, eight lanes at a time.
    pub fn fold(run: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let mut values = run.clone();
        let mut total = Self::EMPTY;
        if values.len() >= LANES {
            let mut lanes = [Self::EMPTY; LANES];
            while values.len() >= LANES {
                for lane in &mut lanes {
                    *lane = lane.plus_within(values.next().expect("length checked"));
                }
            }
            total = lanes[0];
            for lane in &lanes[1..] {
                total = total.combine_within(*lane);
            }
        }
        for value in values {
            total = total.plus_within(value);
        }
        if total.error.is_finite() {
            return total;
        }
        Self::step_by_step(run)
    }

    pub fn fold_slice(run: &[f64]) -> Self {
        Self::fold_rows(run, |value| *value)
    }

    /// [`Self::fold`] of a value of each row.
    #[inline]
    pub fn fold_rows<R>(rows: &[R], value: impl Fn(&R) -> f64) -> Self {
        let mut sums = [-0.0; LANES];
        let mut errors = [0.0; LANES];
        let mut chunks = rows.chunks_exact(LANES);
        for chunk in &mut chunks {
            for lane in 0..LANES {
                let (sum, error) = two_sum(sums[lane], value(&chunk[lane]));
                sums[lane] = sum;
                errors[lane] += error;
            }
        }
        let mut total = Self::EMPTY;
        if rows.len() >= LANES {
            for lane in 0..LANES {
                total = total.combine_within(Self {
                    sum: sums[lane],
                    error: errors[lane],
                });
            }
        }
        for row in chunks.remainder() {
            total = total.plus_within(value(row));
        }
        if total.error.is_finite() {
            return total;
        }
        Self::step_by_step(rows.iter().map(value))
    }

    #[cold]
    #[inline(never)]
    fn step_by_step(run: impl Iterator<Item = f64>) -> Self {
        run.fold(Self::EMPTY, Self::plus)
    }

    #[inline]
    pub fn to_words(self) -> [u64; 2] {
        [self.sum.to_bits(), self.error.to_bits()]
    }

    #[inline]
    pub fn from_words(words: &[u64]) -> Self {
        Self {
            sum: f64::from_bits(words[0]),
            error: f64::from_bits(words[1]),
        }
    }
}

impl Codec for Twofold {
    const MIN_BYTES: usize = 16;
    fn write(&self, out: &mut Writer) {
        self.sum.write(out);
        self.error.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            sum: f64::read(input)?,
            error: f64::read(input)?,
        })
    }
}

impl From<Twofold> for Double {
    #[inline(always)]
    fn from(sum: Twofold) -> Self {
        Self::sum(sum.sum, sum.error)
    }
}
