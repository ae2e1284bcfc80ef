//! Moments, products of two columns, and products of many values: the longer operations of
//! components.
//!
//! Central moments are merged about the mean of both parts (Chan, Golub, LeVeque 1979;
//! Pébay 2008, §II), each kept with its rounding error; they are never made of sums of
//! powers. With δ the distance between the means of parts of n_a and n_b values:
//!
//! ```text
//!     M3 = M3a + M3b + δ³ n_a n_b (n_a − n_b)/n² + 3δ (n_a M2b − n_b M2a)/n
//!     M4 = M4a + M4b + δ⁴ n_a n_b (n_a² − n_a n_b + n_b²)/n³
//!          + 6δ² (n_a² M2b + n_b² M2a)/n² + 4δ (n_a M3b − n_b M3a)/n
//! ```

use super::beyond::Wide;
use super::component::get_i128;
use super::twofold::{Twofold, two_product, two_sum};

pub fn float(bits: u64, float: bool) -> f64 {
    if float {
        f64::from_bits(bits)
    } else {
        bits as i64 as f64
    }
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

/// Chan's update: squares of both sides plus the part between their means. `sum` is the
/// offset of the sums.
#[inline]
pub fn squares(
    a: &[u64],
    b: &[u64],
    at: usize,
    (n, sum): (usize, usize),
    mean_gap: impl FnOnce() -> f64,
) -> [u64; 2] {
    if a[n] == 0 {
        return [b[at], b[at + 1]];
    }
    if b[n] == 0 {
        return [a[at], a[at + 1]];
    }
    let (count_a, count_b) = (a[n] as f64, b[n] as f64);
    let gap = mean_gap();
    let between = gap * (gap * (count_a / (count_a + count_b) * count_b));
    let within = Twofold::from_words(&a[at..]).combine(Twofold::from_words(&b[at..]));
    if between.is_finite() {
        return within.plus(between).to_words();
    }
    let half = half_gap(gap, a, b, (n, sum));
    let weight = count_a / (count_a + count_b) * count_b;
    within
        .combine(Wide::of_halves(half, half, weight))
        .to_words()
}

/// Half the distance between two means of floats, because the distance itself may exceed
/// the floats; `gap` is the distance, if it does not.
#[cold]
#[inline(never)]
pub fn half_gap(gap: f64, a: &[u64], b: &[u64], (n, sum): (usize, usize)) -> f64 {
    if gap.is_finite() {
        return gap / 2.0;
    }
    let half = |side: &[u64]| Twofold::from_words(&side[sum..]).mean(side[n] as f64) / 2.0;
    half(b) - half(a)
}

/// The inverse of [`squares`]: the squares of the whole without `oldest` and without the
/// part between its mean and that of the rest. `rest` holds count and sum of the rest.
pub fn squares_left(
    whole: &[u64],
    oldest: &[u64],
    rest: &[u64],
    at: usize,
    (n, sum): (usize, usize),
    mean_gap: impl FnOnce() -> f64,
) -> [u64; 2] {
    if oldest[n] == 0 {
        return [whole[at], whole[at + 1]];
    }
    let (count, left) = (oldest[n] as f64, rest[n] as f64);
    let gap = mean_gap();
    let between = gap * (gap * (count / (count + left) * left));
    let within = Twofold::from_words(&whole[at..]).without(Twofold::from_words(&oldest[at..]));
    let squares = if between.is_finite() {
        within.plus(-between)
    } else {
        let half = half_gap(gap, oldest, rest, (n, sum));
        within.combine(Wide::of_halves(
            half,
            half,
            -(count / (count + left) * left),
        ))
    };
    if squares.value() < 0.0 || left == 1.0 {
        return Twofold::new(0.0).to_words();
    }
    squares.to_words()
}

/// Two passes over a run: distances from the approximate mean, corrected by their sum. For
/// the squares of large distances, `halves` gives half of each distance.
pub fn squares_about<H: Iterator<Item = f64>>(
    distances: impl Iterator<Item = f64> + Clone,
    count: u64,
    halves: impl FnOnce() -> H,
) -> Twofold {
    let (first, second) = sum_and_squares(distances);
    let drift = first.value();
    let drift = -(drift * drift) / count as f64;
    let corrected = match second.is_finite() && drift.is_finite() {
        true => second.plus(drift),
        false => wide_squares(halves(), count as f64),
    };
    if corrected.value() < 0.0 {
        return Twofold::new(0.0);
    }
    corrected
}

/// The sums of some distances and of their squares.
fn sum_and_squares(distances: impl Iterator<Item = f64> + Clone) -> (Twofold, Twofold) {
    // Two lanes of one register. An error that is not finite stays so, and is checked once.
    let (mut sums, mut errors) = ([0.0; 2], [0.0; 2]);
    for distance in distances.clone() {
        let terms = [distance, distance * distance];
        for lane in 0..2 {
            let (sum, error) = two_sum(sums[lane], terms[lane]);
            sums[lane] = sum;
            errors[lane] += error;
        }
    }
    let lane = |lane: usize| Twofold {
        sum: sums[lane],
        error: errors[lane],
    };
    match errors.iter().all(|error| error.is_finite()) {
        true => (lane(0), lane(1)),
        false => sum_and_squares_by_steps(distances),
    }
}

#[cold]
#[inline(never)]
fn sum_and_squares_by_steps(distances: impl Iterator<Item = f64>) -> (Twofold, Twofold) {
    let zeros = (Twofold::new(0.0), Twofold::new(0.0));
    distances.fold(zeros, |(first, second), distance| {
        (first.plus(distance), second.plus(distance * distance))
    })
}

#[cold]
#[inline(never)]
fn wide_squares(halves: impl Iterator<Item = f64>, count: f64) -> Twofold {
    let (mut first, mut second) = (Twofold::new(0.0), Twofold::new(0.0));
    for half in halves {
        first = first.plus(half);
        second = second.combine(Wide::of_halves(half, half, 1.0));
    }
    let drift = first.mean(count);
    second.combine(Wide::of_halves(drift, drift, -count))
}

/// Distances of a column of complete rows from its approximate mean; `out` holds count and
/// sum. `scale` is 1, or ½ for distances that exceed the floats.
pub fn distances<'a, R: AsRef<[u64]>>(
    rows: &'a [R],
    (col, floats): (usize, bool),
    out: &[u64],
    (n, sum): (usize, usize),
    scale: f64,
) -> impl Iterator<Item = f64> + Clone + 'a {
    let count = out[n];
    let (mean, pivot) = if floats {
        (Twofold::from_words(&out[sum..]).mean(count as f64), 0)
    } else {
        (0.0, get_i128(out, sum) / i128::from(count.max(1)))
    };
    rows.iter().map(move |row| {
        let bits = row.as_ref()[col];
        if floats {
            f64::from_bits(bits) * scale - mean * scale
        } else {
            (i128::from(bits as i64) - pivot) as f64 * scale
        }
    })
}

pub fn mean_gap(a: &[u64], b: &[u64], n: usize, sum: usize, floats: bool) -> f64 {
    if floats {
        mean_gap_f(a, b, n, sum)
    } else {
        mean_gap_i(a, b, n, sum)
    }
}

/// mean(b) − mean(a), through `n_a·sum_b − n_b·sum_a` in twofold arithmetic: equal large
/// means cancel exactly.
#[inline]
pub fn mean_gap_f(a: &[u64], b: &[u64], n: usize, sum: usize) -> f64 {
    let (count_a, count_b) = (a[n] as f64, b[n] as f64);
    let (sum_a, sum_b) = (
        Twofold::from_words(&a[sum..]),
        Twofold::from_words(&b[sum..]),
    );
    let exact = exact_mean_gap((count_a, count_b), sum_a, sum_b);
    if exact.is_finite() {
        return exact;
    }
    sum_b.mean(count_b) - sum_a.mean(count_a)
}

/// The distance of [`mean_gap_f`], if no step leaves the floats.
#[inline(always)]
pub fn exact_mean_gap((count_a, count_b): (f64, f64), sum_a: Twofold, sum_b: Twofold) -> f64 {
    let (high_b, low_b) = two_product(sum_b.sum, count_a);
    let (high_a, low_a) = two_product(sum_a.sum, count_b);
    let (high, low) = two_sum(high_b, -high_a);
    let rest = low + (low_b - low_a) + (sum_b.error * count_a - sum_a.error * count_b);
    (high + rest) / count_a / count_b
}

/// The same from exact integer sums; the products fit for fewer than 2³² values.
pub fn mean_gap_i(a: &[u64], b: &[u64], n: usize, sum: usize) -> f64 {
    let cross_b = get_i128(b, sum).wrapping_mul(i128::from(a[n]));
    let cross_a = get_i128(a, sum).wrapping_mul(i128::from(b[n]));
    cross_b.wrapping_sub(cross_a) as f64 / a[n] as f64 / b[n] as f64
}

/// One side of a merge: its number of values and its central moments.
#[derive(Clone, Copy, Debug)]
pub struct MomentSide {
    pub n: f64,
    pub second: f64,
    pub third: Twofold,
}

/// The third central moment of two sides whose means differ by `gap`.
pub fn third(a: MomentSide, b: MomentSide, gap: f64) -> Twofold {
    let n = a.n + b.n;
    let shares = (a.n / n, b.n / n);
    let between = gap * gap * gap * (shares.0 * b.n) * (shares.0 - shares.1);
    let mixed = 3.0 * gap * (shares.0 * b.second - shares.1 * a.second);
    a.third.combine(b.third).plus(between).plus(mixed)
}

/// The fourth central moment; `a` and `b` are those of the sides.
pub fn fourth(sides: (MomentSide, MomentSide), a: Twofold, b: Twofold, gap: f64) -> Twofold {
    let (left, right) = sides;
    let n = left.n + right.n;
    let shares = (left.n / n, right.n / n);
    let square = gap * gap;
    let form = shares.0 * shares.0 - shares.0 * shares.1 + shares.1 * shares.1;
    let between = square * square * (shares.0 * right.n) * form;
    let seconds = shares.0 * shares.0 * right.second + shares.1 * shares.1 * left.second;
    let thirds = shares.0 * right.third.value() - shares.1 * left.third.value();
    a.combine(b)
        .plus(between)
        .plus(6.0 * square * seconds)
        .plus(4.0 * gap * thirds)
}

/// Sum of a power of the distances from the mean; `distances` are from the approximate
/// mean.
pub fn power_about(distances: impl Iterator<Item = f64> + Clone, power: i32) -> Twofold {
    let mut first = Twofold::new(0.0);
    let mut count = 0.0;
    for distance in distances.clone() {
        first = first.plus(distance);
        count += 1.0;
    }
    let drift = first.value() / count;
    let powers = distances.map(|distance| (distance - drift).powi(power));
    powers.fold(Twofold::new(0.0), Twofold::plus)
}

/// Sum of the products of distances from the means; `pairs` are distances from approximate
/// means. For large products, `halves` gives half of each distance.
pub fn product_about<H: Iterator<Item = (f64, f64)> + Clone>(
    pairs: impl Iterator<Item = (f64, f64)> + Clone,
    halves: impl FnOnce() -> H,
) -> Twofold {
    let whole = products_about(pairs, |x, y| Twofold::new(x * y));
    match whole.is_finite() {
        true => whole,
        false => products_about(halves(), |x, y| Wide::of_halves(x, y, 1.0)),
    }
}

#[inline(always)]
fn products_about(
    pairs: impl Iterator<Item = (f64, f64)> + Clone,
    product: impl Fn(f64, f64) -> Twofold,
) -> Twofold {
    let (mut x_sum, mut y_sum) = (Twofold::new(0.0), Twofold::new(0.0));
    let mut count = 0.0;
    for (x, y) in pairs.clone() {
        x_sum = x_sum.plus(x);
        y_sum = y_sum.plus(y);
        count += 1.0;
    }
    let (x_drift, y_drift) = (x_sum.value() / count, y_sum.value() / count);
    let products = pairs.map(|(x, y)| product(x - x_drift, y - y_drift));
    products.fold(Twofold::new(0.0), Twofold::combine)
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

/// `value · 2^power`, rounded once: two steps, the first of which is exact for values
/// around 1.
pub fn times_power(value: f64, power: i64) -> f64 {
    let power = power.clamp(-1200, 1200) as i32;
    let half = power / 2;
    value * 2_f64.powi(half) * 2_f64.powi(power - half)
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

    #[test]
    fn sums_and_squares_are_those_of_single_steps() {
        let bits = |(first, second): (Twofold, Twofold)| (first.to_words(), second.to_words());
        let distances: Vec<f64> = (0..200)
            .map(|at| f64::from(at * 7919 % 1000 - 500) / 3.7)
            .collect();
        for count in [0, 1, 2, 3, 64, 200] {
            for factor in [1.0, 1e-170, 1e160, 1e305] {
                let scaled = distances[..count].iter().map(|distance| distance * factor);
                assert_eq!(
                    bits(sum_and_squares(scaled.clone())),
                    bits(sum_and_squares_by_steps(scaled)),
                    "{count} distances by {factor}"
                );
            }
        }
    }
}
