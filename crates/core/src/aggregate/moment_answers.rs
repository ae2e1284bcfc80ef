//! Answers from sums of powers of the deviations from the mean, and of their products:
//! variances, shapes, covariances.
//!
//! `words` are those of a record, `at`, `squares`, … offsets of its components, and `count`
//! the number of values, at least 1. The answer is null (`None`) where too few values leave
//! no degree of freedom.

use super::double::Double;
use super::packing::get_i128;
use super::rounding::times_power;
use super::twofold::Twofold;

pub(super) fn variance(words: &[u64], at: usize, count: f64, ddof: u32) -> Option<f64> {
    if count <= f64::from(ddof) {
        return None;
    }
    Some(match per_freedom(words, at, count, ddof) {
        (variance, 0) => variance,
        (variance, power) => times_power(variance, power),
    })
}

pub(super) fn stddev(words: &[u64], at: usize, count: f64, ddof: u32) -> Option<f64> {
    if count <= f64::from(ddof) {
        return None;
    }
    Some(match per_freedom(words, at, count, ddof) {
        (variance, 0) => variance.sqrt(),
        (variance, power) => times_power(variance.sqrt(), power / 2),
    })
}

/// `at`: the offsets of squares and cubes.
pub(super) fn skewness(words: &[u64], at: [usize; 2], count: f64, ddof: u32) -> Option<f64> {
    if ddof == 1 && count < 3.0 {
        return None;
    }
    let [squares, third] = at.map(|at| moment(words, at));
    if out_of_range(squares / count, third, CUBES) {
        return Some(f64::NAN);
    }
    let share = without_noise(third / squares / squares.sqrt());
    let skew = count.sqrt() * share;
    let adjusted = (count * (count - 1.0)).sqrt() / (count - 2.0);
    Some(if ddof == 1 { skew * adjusted } else { skew })
}

/// `at`: the offsets of squares and fourth powers.
pub(super) fn kurtosis(words: &[u64], at: [usize; 2], count: f64, ddof: u32) -> Option<f64> {
    if ddof == 1 && count < 4.0 {
        return None;
    }
    let [squares, fourth] = at.map(|at| Twofold::from_words(&words[at..]));
    if out_of_range(squares.value() / count, fourth.value(), FOURTHS) {
        return Some(f64::NAN);
    }
    // The digits that cancel are not rounded before.
    let [squares, fourth] = [squares, fourth].map(Double::from);
    let whole = fourth.by(count).over(squares).over(squares);
    let excess = whole.plus(Double::sum(-3.0, 0.0));
    let scale = (count - 1.0) / ((count - 2.0) * (count - 3.0));
    let adjusted = excess.by(count + 1.0).plus(Double::sum(6.0, 0.0));
    Some(match ddof {
        1 => scale * without_noise(adjusted.rounded()),
        _ => without_noise(excess.rounded()),
    })
}

pub(super) fn covariance(
    words: &[u64],
    products: usize,
    squares: [usize; 2],
    count: f64,
    ddof: u32,
) -> Option<f64> {
    if count <= f64::from(ddof) {
        return None;
    }
    if is_noise(words, products, squares) {
        return Some(0.0);
    }
    Some(match per_freedom(words, products, count, ddof) {
        (covariance, 0) => covariance,
        (covariance, power) => times_power(covariance, power),
    })
}

pub(super) fn correlation(
    words: &[u64],
    products: usize,
    squares: [usize; 2],
    count: f64,
) -> Option<f64> {
    if count < 2.0 {
        return None;
    }
    if let Some(far) = far_correlation(words, products, squares) {
        return Some(far);
    }
    let [x, y] = squares.map(|at| moment(words, at));
    // One root saves a rounding, if the product does not leave the floats.
    let scale = match x * y {
        both if both.is_normal() => both.sqrt(),
        _ => x.sqrt() * y.sqrt(),
    };
    let share = moment(words, products) / scale;
    Some(without_noise(share).clamp(-1.0, 1.0))
}

/// `at`: the offset of the sum of weighted values, and that of the weights, with whether
/// they are floats.
pub(super) fn weighted_mean(words: &[u64], at: usize, weights: (usize, bool)) -> Option<f64> {
    let (whole, weights) = (Twofold::from_words(&words[at..]), total(words, weights));
    (weights.value() != 0.0).then(|| nearest(quotient(whole, weights)))
}

/// The offsets of the components of a line: products, squares of both columns, the greatest
/// and the least value of the second one; and two more that one answer reads.
type Line = [usize; 7];

pub(super) fn slope(words: &[u64], at: Line, count: f64) -> Option<f64> {
    Some(nearest(exact_slope(words, at, count)?))
}

/// `floats`: whether each column holds floats. The last offsets are those of their sums.
pub(super) fn intercept(words: &[u64], at: Line, floats: [bool; 2], count: f64) -> Option<f64> {
    let slope = exact_slope(words, at, count)?;
    let [y, x] = [(at[5], floats[0]), (at[6], floats[1])].map(|sum| total(words, sum));
    let near = Double::from(y).minus(slope.times(Double::from(x)));
    let near = near.over(Double::sum(count, 0.0));
    Some(match near.is_finite() {
        true => near.rounded(),
        false => y.mean(count) - nearest(slope) * x.mean(count),
    })
}

/// The last offsets are those of the greatest and the least value of the first column.
pub(super) fn r_squared(words: &[u64], at: Line, count: f64) -> Option<f64> {
    let [
        products,
        squares,
        by_squares,
        most,
        least,
        own_most,
        own_least,
    ] = at;
    if count < 2.0 || is_one_value(words, most, least) {
        return None;
    }
    if is_one_value(words, own_most, own_least) {
        return Some(1.0);
    }
    if is_noise(words, products, [squares, by_squares]) {
        return Some(0.0);
    }
    let sum = |at: usize| Twofold::from_words(&words[at..]);
    let slopes = [squares, by_squares].map(|at| quotient(sum(products), sum(at)));
    let share = slopes[0].times(slopes[1]);
    if share.is_finite() {
        return Some(share.rounded().clamp(0.0, 1.0));
    }
    correlation(words, products, [squares, by_squares], count).map(|share| share * share)
}

/// The difference of the ends of one column, divided by that of the other; `floats`: whether
/// each holds floats. `None` if the ends of the other are equal.
pub(super) fn rate(words: &[u64], ends: [[usize; 2]; 2], floats: [bool; 2]) -> Option<f64> {
    let [rise, run] = [0, 1].map(|column| {
        let [first, last] = ends[column].map(|at| words[at]);
        match floats[column] {
            true => f64::from_bits(last) - f64::from_bits(first),
            false => (i128::from(last as i64) - i128::from(first as i64)) as f64,
        }
    });
    (run != 0.0).then(|| rise / run)
}

/// `ends`: the first and the last of `count` values that ascend.
pub(super) fn stddev_of_gaps(ends: [u64; 2], squares: u128, count: f64, ddof: u32) -> Option<f64> {
    let (gaps, left) = (count - 1.0, count - 1.0 - f64::from(ddof));
    if left <= 0.0 {
        return None;
    }
    let [first, last] = ends.map(|bits| i128::from(bits as i64));
    let whole = Double::of_integer(last - first);
    let squares = match i128::try_from(squares) {
        Ok(squares) => Double::of_integer(squares),
        Err(_) => Double::sum(squares as f64, 0.0),
    };
    let deviations = squares
        .by(gaps)
        .minus(whole.times(whole))
        .rounded()
        .max(0.0);
    Some((deviations / (gaps * left)).sqrt())
}

/// Products of deviations divided by squares of those of the second column; `None` if that
/// has one value.
fn exact_slope(words: &[u64], at: Line, count: f64) -> Option<Double> {
    let [products, squares, by_squares, most, least, ..] = at;
    if count < 2.0 || is_one_value(words, most, least) {
        return None;
    }
    if is_noise(words, products, [squares, by_squares]) {
        return Some(Double::sum(0.0, 0.0));
    }
    let [products, squares] = [products, by_squares].map(|at| Twofold::from_words(&words[at..]));
    Some(quotient(products, squares))
}

/// Whether the greatest and the least value, as words of both orders, are equal. NaN is the
/// greatest word in both.
fn is_one_value(words: &[u64], most: usize, least: usize) -> bool {
    words[most] == !words[least]
}

/// A sum of floats, or of integers.
fn total(words: &[u64], (at, floats): (usize, bool)) -> Twofold {
    match floats {
        true => Twofold::from_words(&words[at..]),
        false => {
            let Double { high, low } = Double::of_integer(get_i128(words, at));
            Twofold {
                sum: high,
                error: low,
            }
        }
    }
}

/// A quotient of sums that may lie beyond the floats.
fn quotient(whole: Twofold, divisor: Twofold) -> Double {
    let near = Double::from(whole).over(Double::from(divisor));
    if near.is_finite() {
        return near;
    }
    let ((whole, up), (divisor, down)) = (whole.scaled(), divisor.scaled());
    Double {
        high: times_power(whole / divisor, up - down),
        low: 0.0,
    }
}

fn nearest(number: Double) -> f64 {
    match number.is_finite() {
        true => number.rounded(),
        false => number.high,
    }
}

/// The greatest share of its scale that rounding may make of a moment whose digits cancel.
/// Less is 0, in every grouping.
const NOISE: f64 = 1.0 / (1_u128 << 85) as f64;

fn is_noise(words: &[u64], products: usize, squares: [usize; 2]) -> bool {
    is_rounding(
        twofold(words, products),
        squares.map(|at| twofold(words, at)),
    )
}

/// Whether a sum of products is only rounding.
pub fn is_rounding(products: f64, squares: [f64; 2]) -> bool {
    let [x, y] = squares.map(f64::sqrt);
    let noise = NOISE * x * y;
    noise.is_finite() && products.abs() < noise
}

pub fn without_noise(share: f64) -> f64 {
    if share.abs() < NOISE { 0.0 } else { share }
}

/// A sum of squares or products for each degree of freedom: a value and the power of two to
/// scale it by. The kernel of tables divides the same numbers.
fn per_freedom(words: &[u64], at: usize, count: f64, ddof: u32) -> (f64, i64) {
    let (sum, left) = (Twofold::from_words(&words[at..]), count - f64::from(ddof));
    let whole = Double::from(sum).by(count).rounded();
    if whole.is_finite() {
        return (whole / (count * left), 0);
    }
    let (sum, power) = sum.scaled();
    (sum / left, power)
}

/// The least variance for which third and fourth powers of deviations keep their digits.
const CUBES: f64 = 1e-194;
const FOURTHS: f64 = 1e-145;

/// Whether a power of the deviations is out of range: not finite, or too small to be exact.
fn out_of_range(variance: f64, moment: f64, least: f64) -> bool {
    !moment.is_finite() || (variance > 0.0 && variance < least)
}

/// The correlation, if its squares or products exceed the floats; the result never does.
fn far_correlation(words: &[u64], products: usize, squares: [usize; 2]) -> Option<f64> {
    let scaled = |at: usize| Twofold::from_words(&words[at..]).scaled();
    let ((product, up), squares) = (scaled(products), squares.map(scaled));
    if up == 0 && squares.iter().all(|(_, power)| *power == 0) {
        return None;
    }
    let down: i64 = squares.iter().map(|(_, power)| power / 2).sum();
    let [x, y] = squares.map(|(square, _)| square.sqrt());
    let (first, second) = ((up - down) / 2, (up - down) - (up - down) / 2);
    let share = times_power(times_power(product, first) / x, second) / y;
    Some(share.clamp(-1.0, 1.0))
}

/// A sum of powers of deviations, or of products, rounded as in every grouping.
fn moment(words: &[u64], at: usize) -> f64 {
    let sum = Twofold::from_words(&words[at..]);
    match Double::from(sum).rounded() {
        near if near.is_finite() => near,
        _ => sum.value(),
    }
}

fn twofold(words: &[u64], at: usize) -> f64 {
    Twofold::from_words(&words[at..]).value()
}
