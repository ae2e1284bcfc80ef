//! Computes the answers of a record from its components.

use super::component::presence::VALUE;
use super::double::Double;
use super::moments::Scaled;
use super::packing::get_i128;
use super::rounding::times_power;
use super::twofold::Twofold;
use super::{Answer, Cell, DType, NumberRun, extreme_value};

/// How one answer is computed from the components. Fields are word offsets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lower {
    Count(usize),
    SumI {
        sum: usize,
        n: usize,
    },
    SumF(usize),
    CountedSumF {
        sum: usize,
        n: usize,
    },
    MeanI {
        sum: usize,
        n: usize,
    },
    MeanF {
        sum: usize,
        n: usize,
    },
    Extreme {
        at: usize,
        n: usize,
        min: bool,
        dtype: DType,
    },
    ExtremeCount(usize),
    Range {
        max: usize,
        min: usize,
        n: usize,
        dtype: DType,
    },
    Variance {
        squares: usize,
        n: usize,
        ddof: u32,
        root: bool,
    },
    GeometricMean {
        logs: usize,
        n: usize,
    },
    ProductF {
        at: usize,
        n: usize,
    },
    /// A sum of squares of floats.
    Twofold {
        at: usize,
        n: usize,
    },
    Bool {
        at: usize,
        n: usize,
    },
    Bits {
        at: usize,
        n: usize,
    },
    Skewness {
        third: usize,
        squares: usize,
        n: usize,
        ddof: u32,
    },
    Kurtosis {
        fourth: usize,
        squares: usize,
        n: usize,
        ddof: u32,
    },
    Covariance {
        products: usize,
        squares: [usize; 2],
        n: usize,
        ddof: u32,
    },
    Correlation {
        products: usize,
        squares: [usize; 2],
        n: usize,
    },
    Best {
        at: usize,
        min: bool,
        dtype: DType,
    },
    Value {
        at: usize,
        flag: usize,
        dtype: DType,
    },
}

impl Lower {
    pub(super) fn answer<T>(self, words: &[u64]) -> Answer<T> {
        match self {
            Self::Count(at) => Answer::I64(words[at] as i64),
            Self::SumF(sum) => {
                let sum = Twofold::from_words(&words[sum..]);
                if sum.is_empty() {
                    Answer::Null
                } else {
                    Answer::F64(sum.value())
                }
            }
            Self::ExtremeCount(at) if words[at] == 0 => Answer::Null,
            Self::ExtremeCount(at) => Answer::I64(words[at] as i64),
            Self::Value { at, flag, dtype } if words[flag] == VALUE => {
                Answer::of_bits(words[at], dtype)
            }
            Self::Value { .. } => Answer::Null,
            Self::Best { at, min, dtype } => {
                let words = &words[at + 1..=at + words[at] as usize];
                let value =
                    |word: &u64| Cell::of_bits(extreme_value(*word as i64, dtype, min), dtype);
                Answer::List(words.iter().map(value).collect())
            }
            Self::SumI { n, .. }
            | Self::CountedSumF { n, .. }
            | Self::MeanI { n, .. }
            | Self::MeanF { n, .. }
            | Self::Extreme { n, .. }
            | Self::Range { n, .. }
            | Self::Variance { n, .. }
            | Self::ProductF { n, .. }
            | Self::Twofold { n, .. }
            | Self::Bool { n, .. }
            | Self::Bits { n, .. }
            | Self::Skewness { n, .. }
            | Self::Kurtosis { n, .. }
            | Self::Covariance { n, .. }
            | Self::Correlation { n, .. }
            | Self::GeometricMean { n, .. } => match words[n] {
                0 => Answer::Null,
                count => self.of_some(words, count as f64),
            },
        }
    }

    /// The answers over many partials; false if one is not a number.
    pub(super) fn run<P: AsRef<[u64]>>(self, partials: &[P], run: &mut NumberRun) -> bool {
        run.bits.clear();
        run.missing.clear();
        run.bits.reserve(partials.len());
        let partials = partials.iter().map(AsRef::as_ref);
        match self {
            Self::Count(at) => run.bits.extend(partials.map(|words| words[at])),
            Self::SumF(at) => {
                for words in partials {
                    let sum = Twofold::from_words(&words[at..]);
                    run.put((!sum.is_empty()).then(|| sum.value().to_bits()));
                }
            }
            Self::Extreme { at, n, min, dtype } => {
                for words in partials {
                    let value = || extreme_value(words[at] as i64, dtype, min);
                    run.put((words[n] > 0).then(value));
                }
            }
            Self::Best { .. } => return false,
            _ => {
                for words in partials {
                    match self.answer::<i64>(words) {
                        Answer::I64(value) => run.put(Some(value as u64)),
                        Answer::F64(value) => run.put(Some(value.to_bits())),
                        Answer::Bool(value) => run.put(Some(u64::from(value))),
                        Answer::Null => run.put(None),
                        _ => return false,
                    }
                }
            }
        }
        true
    }

    /// The answer over `count` > 0 values.
    fn of_some<T>(self, words: &[u64], count: f64) -> Answer<T> {
        match self {
            Self::SumI { sum, .. } => Answer::integer(get_i128(words, sum)),
            Self::CountedSumF { sum, .. } => {
                Answer::F64(Twofold::from_words(&words[sum..]).value())
            }
            Self::MeanI { sum, .. } => Answer::F64(get_i128(words, sum) as f64 / count),
            Self::MeanF { sum, .. } => Answer::F64(Twofold::from_words(&words[sum..]).mean(count)),
            Self::Extreme { at, min, dtype, .. } => {
                Answer::of_bits(extreme_value(words[at] as i64, dtype, min), dtype)
            }
            Self::Range {
                max, min, dtype, ..
            } => {
                let max = extreme_value(words[max] as i64, dtype, false);
                let min = extreme_value(words[min] as i64, dtype, true);
                if dtype == DType::F64 {
                    Answer::F64(f64::from_bits(max) - f64::from_bits(min))
                } else {
                    Answer::integer(i128::from(max as i64) - i128::from(min as i64))
                }
            }
            Self::Variance {
                squares,
                ddof,
                root,
                ..
            } => {
                if count <= f64::from(ddof) {
                    return Answer::Null;
                }
                let (variance, power) = per_freedom(words, squares, count, ddof);
                Answer::F64(match (root, power) {
                    (true, 0) => variance.sqrt(),
                    (true, _) => times_power(variance.sqrt(), power / 2),
                    (false, 0) => variance,
                    (false, _) => times_power(variance, power),
                })
            }
            Self::GeometricMean { logs, .. } => {
                Answer::F64((Twofold::from_words(&words[logs..]).value() / count).exp())
            }
            Self::ProductF { at, .. } => Answer::F64(Scaled::from_words(&words[at..]).value()),
            Self::Twofold { at, .. } => Answer::F64(twofold(words, at)),
            Self::Bool { at, .. } => Answer::Bool(words[at] != 0),
            Self::Bits { at, .. } => Answer::I64(words[at] as i64),
            Self::Skewness {
                third,
                squares,
                ddof,
                ..
            } => match ddof {
                1 if count < 3.0 => Answer::Null,
                _ => {
                    let (squares, third) = (moment(words, squares), moment(words, third));
                    if out_of_range(squares / count, third, CUBES) {
                        return Answer::F64(f64::NAN);
                    }
                    let share = without_noise(third / squares / squares.sqrt());
                    let skew = count.sqrt() * share;
                    let adjusted = (count * (count - 1.0)).sqrt() / (count - 2.0);
                    Answer::F64(if ddof == 1 { skew * adjusted } else { skew })
                }
            },
            Self::Kurtosis {
                fourth,
                squares,
                ddof,
                ..
            } => match ddof {
                1 if count < 4.0 => Answer::Null,
                _ => {
                    let [squares, fourth] =
                        [squares, fourth].map(|at| Twofold::from_words(&words[at..]));
                    if out_of_range(squares.value() / count, fourth.value(), FOURTHS) {
                        return Answer::F64(f64::NAN);
                    }
                    // The digits that cancel are not rounded before.
                    let [squares, fourth] = [squares, fourth].map(Double::from);
                    let whole = fourth.by(count).over(squares).over(squares);
                    let excess = whole.plus(Double::sum(-3.0, 0.0));
                    let scale = (count - 1.0) / ((count - 2.0) * (count - 3.0));
                    let adjusted = excess.by(count + 1.0).plus(Double::sum(6.0, 0.0));
                    Answer::F64(match ddof {
                        1 => scale * without_noise(adjusted.rounded()),
                        _ => without_noise(excess.rounded()),
                    })
                }
            },
            Self::Covariance {
                products,
                squares,
                ddof,
                ..
            } => {
                if count <= f64::from(ddof) {
                    return Answer::Null;
                }
                let [x, y] = squares.map(|at| twofold(words, at).sqrt());
                let noise = NOISE * x * y;
                if noise.is_finite() && twofold(words, products).abs() < noise {
                    return Answer::F64(0.0);
                }
                let (covariance, power) = per_freedom(words, products, count, ddof);
                Answer::F64(match power {
                    0 => covariance,
                    _ => times_power(covariance, power),
                })
            }
            Self::Correlation {
                products, squares, ..
            } => {
                if count < 2.0 {
                    return Answer::Null;
                }
                if let Some(far) = far_correlation(words, products, squares) {
                    return Answer::F64(far);
                }
                let [x, y] = squares.map(|at| moment(words, at));
                // One root saves a rounding, if the product does not leave the floats.
                let scale = match x * y {
                    both if both.is_normal() => both.sqrt(),
                    _ => x.sqrt() * y.sqrt(),
                };
                let share = moment(words, products) / scale;
                Answer::F64(without_noise(share).clamp(-1.0, 1.0))
            }
            _ => unreachable!("answered without a count"),
        }
    }
}

/// The greatest share of its scale that rounding may make of a moment whose digits cancel.
/// Less is 0, in every grouping.
const NOISE: f64 = 1.0 / (1_u128 << 85) as f64;

fn without_noise(share: f64) -> f64 {
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
