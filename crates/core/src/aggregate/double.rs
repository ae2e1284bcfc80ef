//! Numbers of two floats, for merges that must not round before the answer does.
//!
//! Double-double arithmetic (Dekker, *A Floating-Point Technique for Extending the Available
//! Precision*, Numerische Mathematik 18, 1971), with a fused multiply-add: each operation has
//! a relative error of at most 2⁻¹⁰⁰ of its greatest operand. Finite numbers only: an
//! operation that leaves the floats gives infinity or NaN in its high part or its low one.

use super::rounding::{two_product, two_sum};

/// `high + low`, where `low` is at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Double {
    pub high: f64,
    pub low: f64,
}

impl Double {
    /// The sum of any two floats.
    #[inline(always)]
    pub fn sum(a: f64, b: f64) -> Self {
        let (high, low) = two_sum(a, b);
        Self { high, low }
    }

    /// The sum of two floats, of which the second is the smaller one (`Fast2Sum`).
    #[inline(always)]
    fn near(high: f64, rest: f64) -> Self {
        let sum = high + rest;
        let low = rest - (sum - high);
        Self { high: sum, low }
    }

    /// Both parts of a product of counts: exact for windows of up to 2⁵³ pairs of values.
    #[inline(always)]
    pub fn product(a: f64, b: f64) -> Self {
        let (high, low) = two_product(a, b);
        Self { high, low }
    }

    /// An integer, exactly if it has at most 106 bits.
    #[inline]
    pub fn of_integer(value: i128) -> Self {
        if let Ok(value) = i64::try_from(value)
            && value.unsigned_abs() < 1 << 62
        {
            let high = value as f64;
            let low = (value - high as i64) as f64;
            return Self { high, low };
        }
        let high = value as f64;
        let low = value.wrapping_sub(high as i128) as f64;
        Self { high, low }
    }

    #[inline(always)]
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        Self::near(high, error + (self.low + other.low))
    }

    #[inline(always)]
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }

    #[inline(always)]
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    #[inline(always)]
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let (high, error) = two_product(self.high, other.high);
        let mixed = self.high * other.low + self.low * other.high;
        Self::near(high, error + mixed)
    }

    #[inline(always)]
    #[must_use]
    pub fn by(self, factor: f64) -> Self {
        let (high, error) = two_product(self.high, factor);
        Self::near(high, error + self.low * factor)
    }

    /// One division serves both parts of the quotient: the remainder of the first is exact.
    #[inline(always)]
    #[must_use]
    pub fn over(self, divisor: Self) -> Self {
        let reciprocal = 1.0 / divisor.high;
        let high = self.high * reciprocal;
        let (product, error) = two_product(high, divisor.high);
        let rest = ((self.high - product) - error) + (self.low - high * divisor.low);
        Self::near(high, rest * reciprocal)
    }

    /// The nearest float. Halfway between two floats is where it lies by up to 2⁻³⁶ of their
    /// distance: numbers that differ by less, as two ways to a sum do, round alike, and most
    /// of all those that would lie halfway if they were exact.
    #[inline(always)]
    pub fn rounded(self) -> f64 {
        const COARSE: f64 = 1.5 / (1_u64 << 37) as f64;
        let grid = self.high * COARSE;
        self.high + ((self.low + grid) - grid)
    }

    #[inline(always)]
    pub fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(exponent: i32) -> f64 {
        2.0_f64.powi(exponent)
    }

    #[test]
    fn integers_are_held_exactly() {
        let small = [0, 1, -7, (1 << 53) + 1, i128::from(i64::MAX)];
        let large = [i128::from(i64::MIN), (1 << 63) + 1, -(1 << 100) - 5];
        for value in small.into_iter().chain(large) {
            let Double { high, low } = Double::of_integer(value);
            assert_eq!(high as i128 + low as i128, value);
            assert_eq!(high, value as f64);
        }
    }

    #[test]
    fn quotients_times_their_divisors_come_back() {
        for step in 1..200 {
            let number = Double::sum(f64::from(step) / 7.0, f64::from(step) * power(-60));
            let divisor = Double::product(f64::from(step * 31), 1e9 + 7.0);
            let back = number.over(divisor).times(divisor).minus(number);
            assert!(back.high.abs() <= number.high * power(-100), "{step}");
            let three = number.by(3.0).minus(number.plus(number)).minus(number);
            assert!(three.high.abs() <= number.high * power(-100), "{step}");
        }
    }

    #[test]
    fn numbers_about_halfway_round_alike() {
        let (ulp, noise) = (power(-52), power(-95));
        for noise in [-noise, 0.0, noise] {
            let below = Double {
                high: 1.0,
                low: ulp / 2.0 + noise,
            };
            let above = Double {
                high: 1.0 + ulp,
                low: -ulp / 2.0 + noise,
            };
            assert_eq!([below.rounded(), above.rounded()], [1.0; 2]);
        }
        let beyond = Double {
            high: 1.0,
            low: ulp * 0.501,
        };
        assert_eq!(beyond.rounded(), 1.0 + ulp);
        assert_eq!(Double::sum(0.0, 0.0).rounded(), 0.0);
    }
}
