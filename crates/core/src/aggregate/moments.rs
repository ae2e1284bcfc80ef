//! Squares of one value and of two parts, and products of many values: the longer operations
//! of components.

use super::double::Double;
use super::merges::{Distance, Place};
use super::rounding::{times_power, two_product};
use super::twofold::{Twofold, Wide};

pub fn float(bits: u64, float: bool) -> f64 {
    if float {
        f64::from_bits(bits)
    } else {
        bits as i64 as f64
    }
}

/// A number, exactly.
pub fn double((bits, is_float): (u64, bool)) -> Double {
    match is_float {
        true => Double::sum(f64::from_bits(bits), 0.0),
        false => Double::of_integer(i128::from(bits as i64)),
    }
}

/// The product of a value and a weight: their bits, and whether they are floats.
pub fn weighted(value: (u64, bool), weight: (u64, bool)) -> Twofold {
    let product = double(value).times(double(weight));
    if product.is_finite() {
        return Twofold {
            sum: product.high + 0.0,
            error: product.low,
        };
    }
    let [value, weight] = [value, weight].map(|(bits, is_float)| float(bits, is_float));
    if value.is_finite() && weight.is_finite() {
        return Wide::of_halves(value / 2.0, weight / 2.0, 1.0);
    }
    Twofold::new(value * weight + 0.0)
}

pub fn square_f(bits: u64) -> Twofold {
    let value = f64::from_bits(bits);
    let (sum, error) = two_product(value, value);
    let error = if error.is_finite() { error } else { 0.0 };
    Twofold { sum, error }
}

pub fn square(bits: u64) -> i128 {
    let value = i128::from(bits as i64);
    value * value
}

/// A single value has distance 0 from its mean, unless the distance is undefined.
pub fn squares_of_one(value: f64) -> Twofold {
    Twofold::new(if value.is_finite() { 0.0 } else { f64::NAN })
}

/// The squares of the whole without `oldest` and without the
/// part between its mean and that of the rest. `rest` holds count and sum of the rest.
pub fn squares_left(
    whole: &[u64],
    oldest: &[u64],
    rest: &[u64],
    at: usize,
    (n, sum): (usize, usize),
    floats: bool,
) -> [u64; 2] {
    if oldest[n] == 0 {
        return [whole[at], whole[at + 1]];
    }
    let sides = [oldest, rest];
    let distance = Distance::new(sides, Place { n, sum, floats });
    let within = Twofold::from_words(&whole[at..]).without(Twofold::from_words(&oldest[at..]));
    let squares = distance.squares_within(sides, within);
    if squares.value() < 0.0 || rest[n] == 1 {
        return Twofold::new(0.0).to_words();
    }
    squares.to_words()
}

/// Larger products of integers are stored as this value: they can only grow, or become 0.
const BEYOND: i128 = 1 << 64;

/// The product of integers: exact within int64, else "too large" until a zero comes, so
/// that the result does not depend on grouping.
pub fn product(a: i128, b: i128) -> i128 {
    a.saturating_mul(b).clamp(-BEYOND, BEYOND)
}

/// `fraction · 2^exponent` with a fraction of two floats: products of any length neither
/// overflow nor underflow midway, and carry their rounding error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    fraction: Twofold,
    exponent: i64,
}

impl Scaled {
    pub const ONE: Self = Self {
        fraction: Twofold {
            sum: 1.0,
            error: 0.0,
        },
        exponent: 0,
    };

    pub fn new(value: f64) -> Self {
        Self {
            fraction: Twofold::new(value),
            exponent: 0,
        }
        .normal()
    }

    /// A finite value within the floats.
    pub fn of(fraction: Twofold) -> Self {
        let exponent = 0;
        Self { fraction, exponent }.normal()
    }

    /// Scales the fraction to between 1 and 2; zero, infinity and NaN are unchanged.
    fn normal(self) -> Self {
        let sum = self.fraction.sum;
        if sum == 0.0 || !sum.is_finite() {
            return Self {
                fraction: Twofold::new(sum),
                exponent: 0,
            };
        }
        if sum.is_subnormal() {
            let up = 2_f64.powi(60);
            return Self {
                fraction: Twofold {
                    sum: sum * up,
                    error: self.fraction.error * up,
                },
                exponent: self.exponent - 60,
            }
            .normal();
        }
        let shift = ((sum.to_bits() >> 52) & 0x7ff) as i64 - 1023;
        Self {
            fraction: Twofold {
                sum: times_power(sum, -shift),
                error: times_power(self.fraction.error, -shift),
            },
            exponent: self.exponent + shift,
        }
    }

    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let (a, b) = (self.fraction, other.fraction);
        let (sum, error) = two_product(a.sum, b.sum);
        let error = error + (a.sum * b.error + a.error * b.sum);
        Self {
            fraction: Twofold { sum, error },
            exponent: self.exponent + other.exponent,
        }
        .normal()
    }

    pub fn value(self) -> f64 {
        times_power(self.fraction.value(), self.exponent)
    }

    pub fn to_words(self) -> [u64; 3] {
        let [sum, error] = self.fraction.to_words();
        [sum, error, self.exponent as u64]
    }

    pub fn from_words(words: &[u64]) -> Self {
        Self {
            fraction: Twofold::from_words(words),
            exponent: words[2] as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_do_not_overflow_midway() {
        let product = |values: &[f64]| {
            let all = values.iter().map(|value| Scaled::new(*value));
            all.fold(Scaled::ONE, Scaled::times).value()
        };
        let (huge, tiny) = (2_f64.powi(1000), 2_f64.powi(-1000));
        assert_eq!(product(&[huge, huge, tiny, tiny]), 1.0);
        assert_eq!(product(&[tiny, tiny, huge, huge]), 1.0);
        assert_eq!(
            product(&[5e-324, 2_f64.powi(100), 4.0]),
            5e-324 * 2_f64.powi(102)
        );
        assert_eq!(product(&[1e200, 1e200]), f64::INFINITY);
        assert_eq!(product(&[-1e-200, 1e-200]), 0.0);
        assert_eq!(product(&[2_f64.powi(-1000), 2_f64.powi(-74)]), 5e-324);
        assert_eq!(product(&[-1e200, 1e200, 0.0]), 0.0);
        assert!(product(&[f64::INFINITY, 0.0]).is_nan());
        assert_eq!(product(&[1.1, 1.1, 1.1]), 1.331_000_000_000_000_4);
        assert_eq!(product(&[]), 1.0);
    }

    #[test]
    fn integer_products_are_exact_or_too_large_however_grouped() {
        let huge = i128::from(i64::MAX);
        assert_eq!(product(product(huge, 3), 0), 0);
        assert_eq!(product(huge, product(3, 0)), 0);
        assert_eq!(product(i128::from(i64::MIN), 1), i128::from(i64::MIN));
        let a = product(product(huge, huge), product(-huge, huge));
        let b = product(huge, product(huge, product(-huge, huge)));
        assert_eq!((a, b), (-BEYOND, -BEYOND));
    }
}
