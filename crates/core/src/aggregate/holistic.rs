//! Holistic aggregations: distinct counts, modes and quantiles, which no partial of
//! bounded size can answer (Gray et al.: neither distributive nor algebraic).
//!
//! They are not monoids. Structures over all values of a window answer them:
//! [`window::holistic`](crate::window::planned::holistic) and [`rolling`](crate::rolling). This
//! module defines the answers for both.
//!
//! Values are compared as words of [`extreme_word`]: NaN is the largest and all NaNs are
//! one value, as are the two zeros. A NaN absorbs in a quantile, as in an extreme.

use std::cmp::Reverse;

use super::twofold::Twofold;
use super::{Answer, Cell, DType, Kind, extreme_value, extreme_word};

/// How a quantile between two neighbours is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    Linear,
    Lower,
    Higher,
    /// The nearest rank; of two equally near ranks, the even one.
    Nearest,
    Midpoint,
}

const NAMES: [(&str, Interpolation); 5] = [
    ("linear", Interpolation::Linear),
    ("lower", Interpolation::Lower),
    ("higher", Interpolation::Higher),
    ("nearest", Interpolation::Nearest),
    ("midpoint", Interpolation::Midpoint),
];

/// The value below which a share `q` of the values lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quantile {
    /// The bits of `q`, from 0 to 1.
    q: u64,
    interpolation: Interpolation,
}

/// The position of a quantile among sorted values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileRank {
    pub rank: usize,
    /// The fraction of the way to the next value, from 0 to 1 exclusive.
    pub fraction: f64,
}

impl Quantile {
    /// `None` unless `q` is from 0 to 1.
    pub fn new(q: f64, interpolation: Interpolation) -> Option<Self> {
        (0.0..=1.0).contains(&q).then(|| Self {
            q: (q + 0.0).to_bits(),
            interpolation,
        })
    }

    /// From `"0.9 linear"`.
    pub fn parse(text: &str) -> Option<Self> {
        let (q, name) = text.split_once(' ')?;
        let (_, interpolation) = NAMES.iter().find(|(known, _)| *known == name)?;
        Self::new(q.parse().ok()?, *interpolation)
    }

    /// Whether the answer is one of the values, and so of their type.
    pub fn picks(self) -> bool {
        !matches!(
            self.interpolation,
            Interpolation::Linear | Interpolation::Midpoint
        )
    }

    /// Its position among `count` ≥ 1 values.
    #[inline]
    pub fn place(self, count: usize) -> QuantileRank {
        let at = (count - 1) as f64 * f64::from_bits(self.q);
        let below = at.floor();
        let (rank, fraction) = match self.interpolation {
            Interpolation::Linear => (below, at - below),
            Interpolation::Lower => (below, 0.0),
            Interpolation::Higher => (at.ceil(), 0.0),
            Interpolation::Nearest => (at.round_ties_even(), 0.0),
            Interpolation::Midpoint => (below, if at > below { 0.5 } else { 0.0 }),
        };
        // Beyond 2^53 values a product may round up past the last position.
        let rank = (rank as usize).min(count - 1);
        let fraction = if rank + 1 < count { fraction } else { 0.0 };
        QuantileRank { rank, fraction }
    }

    /// The answer over `count` values, of which `nans` are NaN; `word` gives the word of a
    /// rank.
    pub fn answer<T>(
        self,
        dtype: DType,
        (count, nans): (usize, usize),
        word: impl Fn(usize) -> i64,
    ) -> Answer<T> {
        if count == 0 {
            return Answer::Null;
        }
        if nans > 0 {
            return Answer::F64(f64::NAN);
        }
        let QuantileRank { rank, fraction } = self.place(count);
        let low = word(rank);
        if self.picks() {
            return value_of(low, dtype);
        }
        let high = if fraction > 0.0 { word(rank + 1) } else { low };
        Answer::F64(between(low, high, fraction, dtype))
    }
}

/// How a value is ranked among others; equal ones are peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankMethod {
    /// The mean of the ranks of its peers.
    Average,
    /// The least of them: SQL's RANK.
    Min,
    Max,
    /// The number of different values up to it: SQL's DENSE_RANK.
    Dense,
    /// SQL's PERCENT_RANK.
    Percent,
}

/// The values of a window as seen from one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The numbers of values, and of different ones, that are less.
    pub less: usize,
    pub different: usize,
    /// The number of its peers and itself.
    pub equal: usize,
    /// The number of all values.
    pub count: usize,
}

impl RankMethod {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "average" => Self::Average,
            "min" => Self::Min,
            "max" => Self::Max,
            "dense" => Self::Dense,
            "percent" => Self::Percent,
            _ => return None,
        })
    }

    /// Whether a rank may lie between two integers.
    pub fn is_fraction(self) -> bool {
        matches!(self, Self::Average | Self::Percent)
    }

    #[inline]
    pub fn answer<T>(self, standing: Standing) -> Answer<T> {
        let Standing {
            less,
            different,
            equal,
            count,
        } = standing;
        match self {
            Self::Average => Answer::F64(less as f64 + (equal + 1) as f64 / 2.0),
            Self::Min => Answer::I64(less as i64 + 1),
            Self::Max => Answer::I64((less + equal) as i64),
            Self::Dense => Answer::I64(different as i64 + 1),
            Self::Percent if count == 1 => Answer::F64(0.0),
            Self::Percent => Answer::F64(less as f64 / (count - 1) as f64),
        }
    }
}

/// The value a share `fraction` of the way from one word's value to another's, rounded as
/// numpy rounds it.
#[inline]
pub fn between(low: i64, high: i64, fraction: f64, dtype: DType) -> f64 {
    let value = |word| match dtype {
        DType::F64 => f64::from_bits(extreme_value(word, dtype, false)),
        _ => word as f64,
    };
    let (a, b) = (value(low), value(high));
    if fraction == 0.0 || low == high {
        return a;
    }
    let mut distance = b - a;
    if dtype == DType::I64 {
        distance = (i128::from(high) - i128::from(low)) as f64;
    } else if distance.is_infinite() {
        // The difference exceeds the floats, or an end is infinite and decides the result.
        return a * (1.0 - fraction) + b * fraction;
    }
    // From the nearer end.
    if fraction < 0.5 {
        a + distance * fraction
    } else {
        b - distance * (1.0 - fraction)
    }
}

/// The value of a word, in the type of its column.
pub fn value_of<T>(word: i64, dtype: DType) -> Answer<T> {
    Answer::of_bits(extreme_value(word, dtype, false), dtype)
}

/// The word by which a number is compared; NaN is the largest, [`NAN`].
#[inline]
pub fn word_of(bits: u64, dtype: DType) -> i64 {
    extreme_word(bits, dtype, false)
}

/// The word of NaN among floats.
pub const NAN: i64 = i64::MAX;

/// The answer of one kind over the words of a column; sorts the words. Numbers only.
pub fn answer_over<T>(kind: Kind, dtype: DType, words: &mut [i64]) -> Answer<T> {
    words.sort_unstable();
    match kind {
        Kind::Quantile(quantile) => {
            let nans = match dtype {
                DType::F64 => words.len() - words.partition_point(|word| *word < NAN),
                _ => 0,
            };
            quantile.answer(dtype, (words.len(), nans), |rank| words[rank])
        }
        Kind::CountDistinct => Answer::I64(words.chunk_by(|a, b| a == b).count() as i64),
        Kind::Mode => {
            // The first of the longest runs is the smallest of the most frequent values.
            let runs = words.chunk_by(|a, b| a == b).rev();
            let most = runs.max_by_key(|run| run.len());
            most.map_or(Answer::Null, |run| value_of(run[0], dtype))
        }
        Kind::ValueCounts { top } => {
            let runs = words.chunk_by(|a, b| a == b);
            let mut counts: Vec<(u32, i64)> = runs.map(|run| (count_of(run), run[0])).collect();
            counts.sort_by_key(|(count, _)| Reverse(*count));
            value_counts(top, dtype, counts.into_iter())
        }
        Kind::Entropy => {
            let runs = words.chunk_by(|a, b| a == b);
            entropy_of(runs.map(count_of).collect())
        }
        // A window without a row.
        Kind::Rank(_) => Answer::Null,
        _ => unreachable!("{kind:?} is not holistic"),
    }
}

fn count_of(run: &[i64]) -> u32 {
    u32::try_from(run.len()).expect("fewer than 2^32 rows")
}

/// Values of a number column with their counts, in the order of the answer; the first `top`
/// of them, or all if it is 0.
pub fn value_counts<T>(
    top: u32,
    dtype: DType,
    counts: impl Iterator<Item = (u32, i64)>,
) -> Answer<T> {
    let most = if top == 0 { usize::MAX } else { top as usize };
    let item = |(count, word)| {
        let value = Cell::of_bits(extreme_value(word, dtype, false), dtype);
        (value, u64::from(count), 0)
    };
    Answer::Hitters(counts.take(most).map(item).collect())
}

/// The entropy of values with these counts, in any order.
pub fn entropy_of<T>(mut counts: Vec<u32>) -> Answer<T> {
    counts.sort_unstable();
    let runs = counts.chunk_by(|a, b| a == b);
    entropy(runs.map(|run| (run[0], count_of_counts(run))))
}

fn count_of_counts(run: &[u32]) -> u32 {
    u32::try_from(run.len()).expect("fewer than 2^32 values")
}

/// −Σ p ln p = Σ p ln(1 + (n − c) / c) over the shares p = c / n of the values: no term is
/// negative, and each is within 2⁻⁵¹ of itself. Takes ascending counts, each with the number
/// of values that have it, so that the answer does not depend on the order of values.
pub fn entropy<T>(counts: impl Iterator<Item = (u32, u32)> + Clone) -> Answer<T> {
    let rows = |(count, values): (u32, u32)| u64::from(count) * u64::from(values);
    let total: u64 = counts.clone().map(rows).sum();
    if total == 0 {
        return Answer::Null;
    }
    let term = |one: (u32, u32)| {
        let count = u64::from(one.0);
        let surprise = ((total - count) as f64 / count as f64).ln_1p();
        rows(one) as f64 / total as f64 * surprise
    };
    let sum = counts.map(term).fold(Twofold::EMPTY, Twofold::plus);
    Answer::F64(sum.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(kind: Kind, values: &[f64]) -> Answer<i64> {
        let words = values.iter();
        let mut words: Vec<i64> = words
            .map(|value| word_of(value.to_bits(), DType::F64))
            .collect();
        answer_over(kind, DType::F64, &mut words)
    }

    fn quantile(text: &str) -> Kind {
        Kind::Quantile(Quantile::parse(text).expect("a quantile"))
    }

    #[test]
    fn quantiles_interpolate_by_their_option() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let answers = ["linear", "lower", "higher", "nearest", "midpoint"]
            .map(|name| over(quantile(&format!("0.4 {name}")), &values));
        let expected = [2.2, 2.0, 3.0, 2.0, 2.5].map(Answer::F64);
        assert_eq!(answers, expected);
        assert_eq!(over(quantile("0.5 nearest"), &values), Answer::F64(3.0));
        assert_eq!(
            over(quantile("0.5 nearest"), &values[..2]),
            Answer::F64(1.0)
        );
    }

    #[test]
    fn quantiles_of_huge_values_do_not_overflow_and_nan_absorbs() {
        let huge = [-1.5e308, 1.5e308];
        assert_eq!(over(quantile("0.5 linear"), &huge), Answer::F64(0.0));
        let up = [0.0, f64::INFINITY];
        assert_eq!(
            over(quantile("0.5 linear"), &up),
            Answer::F64(f64::INFINITY)
        );
        let down = [f64::NEG_INFINITY, 1.0];
        for q in ["0.1", "0.5", "0.9"] {
            let answer = over(quantile(&format!("{q} linear")), &down);
            assert_eq!(answer, Answer::F64(f64::NEG_INFINITY));
        }
        assert_eq!(over(quantile("1 linear"), &down), Answer::F64(1.0));
        let endless = [f64::INFINITY; 3];
        assert_eq!(
            over(quantile("0.3 linear"), &endless),
            Answer::F64(f64::INFINITY)
        );
        let Answer::F64(nan) = over(quantile("0.0 lower"), &[f64::NAN, 1.0]) else {
            panic!("a float");
        };
        assert!(nan.is_nan());
        assert_eq!(Quantile::parse("1.1 linear"), None);
        assert_eq!(Quantile::parse("nan linear"), None);
    }

    #[test]
    fn values_are_counted_with_the_most_frequent_first() {
        let values = [2.0, -0.0, 2.0, f64::NAN, 0.0, 1.0, -f64::NAN];
        let Answer::Hitters(counts) = over(Kind::ValueCounts { top: 0 }, &values) else {
            panic!("values with counts");
        };
        let shown: Vec<String> = counts.iter().map(|one| format!("{:?}", one.0)).collect();
        assert_eq!(shown, ["F64(0.0)", "F64(2.0)", "F64(NaN)", "F64(1.0)"]);
        let counts: Vec<u64> = counts.iter().map(|one| one.1).collect();
        assert_eq!(counts, [2, 2, 2, 1]);
        let first = vec![(Cell::F64(0.0), 2, 0)];
        let top = over(Kind::ValueCounts { top: 1 }, &values);
        assert_eq!(top, Answer::Hitters(first));
        let none = over(Kind::ValueCounts { top: 0 }, &[]);
        assert_eq!(none, Answer::Hitters(vec![]));
    }

    #[test]
    fn the_entropy_is_that_of_the_shares() {
        let of = |values: &[f64]| match over(Kind::Entropy, values) {
            Answer::F64(entropy) => entropy,
            other => panic!("{other:?}"),
        };
        assert_eq!(of(&[7.0; 5]), 0.0);
        assert_eq!(of(&[1.0, 2.0]), std::f64::consts::LN_2);
        assert_eq!(of(&[1.0, 2.0, 1.0, 2.0]), std::f64::consts::LN_2);
        assert_eq!(over(Kind::Entropy, &[]), Answer::Null);
        // 10⁶ of one value and one of another: a little more than 1/n (1 + ln n), which a
        // difference of logarithms would round.
        let counts = [(1, 1), (1_000_000, 1)];
        let Answer::<i64>::F64(rare) = entropy(counts.into_iter()) else {
            panic!("a number");
        };
        assert!((rare - 1.481_549_4e-5).abs() < 1e-11, "{rare}");
    }

    #[test]
    fn the_mode_is_the_smallest_of_the_most_frequent() {
        assert_eq!(
            over(Kind::Mode, &[3.0, 1.0, 3.0, 1.0, 2.0]),
            Answer::F64(1.0)
        );
        assert_eq!(over(Kind::Mode, &[]), Answer::Null);
        let zeros_and_nans = [0.0, -0.0, f64::NAN, -f64::NAN];
        assert_eq!(over(Kind::CountDistinct, &zeros_and_nans), Answer::I64(2));
        assert_eq!(over(Kind::Mode, &zeros_and_nans), Answer::F64(0.0));
    }
}
