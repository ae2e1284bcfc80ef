//! Sums of values whose weight halves per half-life, and their squares.
//!
//! A weight is 2^(time ÷ half-life): a fraction of a power of two, which the value of an entry
//! is multiplied by, and that power, a whole number. A partial keeps the power of its latest
//! entry, and sums relative to it. So a combine scales by powers of two, which is exact, no
//! weight overflows over any span of time, and those that underflow are zero.
//!
//! With a half-life in rows the weight of a value is 2^(−rank ÷ k), where the latest value has
//! rank 0; a partial keeps the number of its values.

use super::double::Double;
use super::packing::put;
use super::rounding::times_power;
use super::twofold::Twofold;

/// What halves the weight of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HalfLife {
    /// `length` ÷ `tick` ticks of the times; both are positive.
    Time { length: u64, tick: u64 },
    /// Later values, at least one.
    Rows(u64),
}

/// What is computed of decayed weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decayed {
    /// Of the weights of rows.
    Count,
    Sum,
    Mean,
    Variance,
}

/// The place of a partial without values; with a half-life in rows, that number is zero.
const NOWHERE: i64 = i64::MIN;

impl HalfLife {
    /// The power and the fraction, from one half to one, of the weight of a time.
    #[inline]
    fn weight(length: u64, tick: u64, time: i64) -> (i64, f64) {
        let (halved, rest) = divided((time.into(), tick), length);
        weight((halved, rest as f64 / length as f64))
    }

    /// The place and the weight of an entry.
    #[inline]
    fn weight_of(self, time: impl FnOnce() -> i64) -> (i64, f64) {
        match self {
            Self::Time { length, tick } => Self::weight(length, tick, time()),
            Self::Rows(_) => (1, 1.0),
        }
    }

    fn nowhere(self) -> i64 {
        match self {
            Self::Time { .. } => NOWHERE,
            Self::Rows(_) => 0,
        }
    }

    /// A value at the end of a window, from that at the time of its latest entry, `last`.
    pub fn at_end(self, value: f64, last: i64, end: i64) -> f64 {
        let Self::Time { length, tick } = self else {
            return value;
        };
        if end == last {
            return value + 0.0;
        }
        let age = i128::from(end) - i128::from(last);
        let (halved, rest) = divided((age, tick), length);
        let halved = halved.clamp(-4096, 4096);
        let rest = rest as f64 / length as f64;
        shifted(value * (-rest).exp2(), -halved) + 0.0
    }

    /// The place of two partials together, and the scales of both.
    #[inline(always)]
    fn joined(self, a: i64, b: i64) -> (i64, [Scale; 2]) {
        match self {
            Self::Time { .. } => {
                let place = a.max(b);
                let scale = |from: i64| Scale {
                    power: from.saturating_sub(place),
                    fraction: 1.0,
                };
                (place, [scale(a), scale(b)])
            }
            Self::Rows(rows) => {
                let later = b as u64;
                let older = Scale {
                    power: -((later / rows) as i64),
                    fraction: (-((later % rows) as f64) / rows as f64).exp2(),
                };
                (a + b, [older, Scale::ONE])
            }
        }
    }
}

/// The weight of a time of so many half-lives and a fraction.
#[inline(always)]
fn weight((halved, rest): (i64, f64)) -> (i64, f64) {
    let power = halved.saturating_add(1).max(NOWHERE + 1);
    (power, (rest - 1.0).exp2())
}

/// Weights of times one after the other: a division only where a half-life ends.
#[derive(Debug)]
pub struct Weights {
    length: u64,
    tick: u64,
    last: i64,
    halved: i64,
    rest: u64,
}

impl Weights {
    /// With a half-life of `length` ÷ `tick` ticks.
    pub fn new(length: u64, tick: u64) -> Self {
        Self {
            length,
            tick,
            last: 0,
            halved: 0,
            rest: 0,
        }
    }

    /// The power and the fraction, from one half to one, of the weight of a time.
    #[inline(always)]
    pub fn of(&mut self, time: i64) -> (i64, f64) {
        let passed = time.checked_sub(self.last).map(u64::try_from);
        let ticks = passed.and_then(|passed| passed.ok()?.checked_mul(self.tick));
        self.last = time;
        match ticks {
            Some(ticks) if ticks < self.length - self.rest => self.rest += ticks,
            _ => (self.halved, self.rest) = divided((time.into(), self.tick), self.length),
        }
        weight((self.halved, self.rest as f64 / self.length as f64))
    }
}

/// A time of so many ticks over a half-life: the whole number, as near as int64 holds it, and
/// the rest. Of 128 bits only where it takes them, as these divide in ten times the time.
#[inline]
fn divided((time, tick): (i128, u64), length: u64) -> (i64, u64) {
    let narrow = i64::try_from(time).ok().zip(i64::try_from(tick).ok());
    let ticks = narrow.and_then(|(time, tick)| time.checked_mul(tick));
    if let (Some(ticks), Ok(length)) = (ticks, i64::try_from(length)) {
        return (ticks.div_euclid(length), ticks.rem_euclid(length) as u64);
    }
    let (ticks, length) = (time * i128::from(tick), i128::from(length));
    let whole = ticks.div_euclid(length);
    let whole = whole.clamp(i64::MIN.into(), i64::MAX.into());
    (whole as i64, ticks.rem_euclid(length) as u64)
}

/// `value · 2^power`: also of the largest values, whose result is a float or zero.
#[inline]
fn shifted(value: f64, power: i64) -> f64 {
    if power == 0 {
        return value;
    }
    let half = power / 2;
    times_power(times_power(value, half), power - half)
}

/// A power of two and a fraction.
#[derive(Clone, Copy, Debug)]
struct Scale {
    power: i64,
    fraction: f64,
}

impl Scale {
    const ONE: Self = Self {
        power: 0,
        fraction: 1.0,
    };

    #[inline(always)]
    fn of(self, sum: Twofold) -> Twofold {
        if self.power == 0 && self.fraction == 1.0 {
            return sum;
        }
        let (sum, power) = match sum.sum.is_finite() && sum.error.is_finite() {
            true => (sum, self.power),
            false => {
                let (value, beyond) = sum.scaled();
                (Twofold::new(value), self.power.saturating_add(beyond))
            }
        };
        if !sum.sum.is_finite() {
            return sum;
        }
        let Double { high, low } = match self.fraction == 1.0 {
            true => Double {
                high: sum.sum,
                low: sum.error,
            },
            false => Double::from(sum).by(self.fraction),
        };
        Twofold {
            sum: shifted(high, power) + 0.0,
            error: shifted(low, power),
        }
    }
}

/// A component of decayed values: its half-life, and whether all values are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decay {
    pub half_life: HalfLife,
    /// The column of times; any with a half-life in rows.
    pub by: usize,
    pub ones: bool,
}

/// A sum relative to its place.
#[derive(Clone, Copy, Debug)]
struct Part {
    place: i64,
    sum: Twofold,
}

impl Part {
    fn of(words: &[u64], at: usize) -> Self {
        Self {
            place: words[at] as i64,
            sum: Twofold::from_words(&words[at + 1..]),
        }
    }

    fn put(self, out: &mut [u64], at: usize) {
        let [sum, error] = self.sum.to_words();
        put(out, at, [self.place as u64, sum, error]);
    }

    /// The part of one value, given its place and weight.
    #[inline(always)]
    fn of_one(value: f64, (place, weight): (i64, f64)) -> Self {
        let product = Double::product(value, weight);
        let sum = match product.is_finite() {
            true => Twofold {
                sum: product.high + 0.0,
                error: product.low,
            },
            false => Twofold::new(value * weight),
        };
        Part { place, sum }
    }

    /// The part without values.
    fn nothing(half_life: HalfLife) -> Self {
        let (place, sum) = (half_life.nowhere(), Twofold::EMPTY);
        Self { place, sum }
    }

    #[inline(always)]
    #[must_use]
    fn joined(self, later: Self, half_life: HalfLife) -> Self {
        let nowhere = half_life.nowhere();
        if self.place == nowhere || later.place == nowhere {
            return if self.place == nowhere { later } else { self };
        }
        let (place, scales) = half_life.joined(self.place, later.place);
        let sum = scales[0].of(self.sum).combine(scales[1].of(later.sum));
        Self { place, sum }
    }
}

impl Decay {
    pub fn is_by_time(self) -> bool {
        matches!(self.half_life, HalfLife::Time { .. })
    }

    pub fn identity(self, out: &mut [u64], at: usize) {
        Part::nothing(self.half_life).put(out, at);
    }

    /// The part of one value.
    #[inline]
    fn one(self, value: f64, time: impl FnOnce() -> i64) -> Part {
        Part::of_one(value, self.half_life.weight_of(time))
    }

    pub fn lift(self, value: f64, time: Option<u64>, out: &mut [u64], at: usize) {
        let value = if self.ones { 1.0 } else { value };
        let Some(time) = time else { return };
        self.one(value, || time as i64).put(out, at);
    }

    pub fn combine(self, a: &[u64], b: &[u64], out: &mut [u64], at: usize) {
        let parts = Part::of(a, at).joined(Part::of(b, at), self.half_life);
        parts.put(out, at);
    }

    /// Folds the values and times of rows, of which there is at least one.
    pub fn fold(self, rows: impl Iterator<Item = (f64, u64)>, out: &mut [u64], at: usize) {
        let parts = rows.map(|(value, time)| {
            let value = if self.ones { 1.0 } else { value };
            self.one(value, || time as i64)
        });
        let whole = parts.reduce(|a, b| a.joined(b, self.half_life));
        whole.expect("a run has rows").put(out, at);
    }
}

/// Where the weights and the sum are that squares build upon, and their half-life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecayedSquares {
    pub of: Decay,
    pub weights: usize,
    pub sum: usize,
}

impl DecayedSquares {
    /// Weighted squares of the distances from the weighted mean, of two parts together.
    pub fn joined(self, a: &[u64], b: &[u64], at: usize) -> Twofold {
        let [older, later] = [a, b].map(|side| Part::of(side, self.weights));
        let [squares_a, squares_b] = [a, b].map(|side| Twofold::from_words(&side[at..]));
        let half_life = self.of.half_life;
        let nowhere = half_life.nowhere();
        if older.place == nowhere || later.place == nowhere {
            return if older.place == nowhere {
                squares_b
            } else {
                squares_a
            };
        }
        let (_, scales) = half_life.joined(older.place, later.place);
        let within = scales[0].of(squares_a).combine(scales[1].of(squares_b));
        let weights = [
            Double::from(scales[0].of(older.sum)),
            Double::from(scales[1].of(later.sum)),
        ];
        if weights.iter().any(|weight| weight.high == 0.0) {
            return within;
        }
        let mean = |side: &[u64], weights: Twofold| {
            let sum = Part::of(side, self.sum).sum;
            Double::from(sum).over(Double::from(weights))
        };
        let distance = mean(a, older.sum).minus(mean(b, later.sum));
        let share = weights[0]
            .times(weights[1])
            .over(weights[0].plus(weights[1]));
        let between = distance.times(distance).times(share);
        match between.is_finite() {
            true => within.plus_double(between),
            false => within.plus(f64::NAN),
        }
    }

    /// The same of rows, of which there is at least one; `out` holds their weights and sum.
    pub fn fold(self, rows: impl Iterator<Item = (f64, u64)>, out: &[u64]) -> Twofold {
        let weights = Part::of(out, self.weights);
        let sum = Double::from(Part::of(out, self.sum).sum);
        let mean = sum.over(Double::from(weights.sum));
        let mut squares = Twofold::new(0.0);
        for (row, (value, time)) in (1..).zip(rows) {
            let scale = match self.of.half_life {
                HalfLife::Time { length, tick } => {
                    let (power, fraction) = HalfLife::weight(length, tick, time as i64);
                    let power = power.saturating_sub(weights.place);
                    Scale { power, fraction }
                }
                half_life => half_life.joined(row, weights.place - row).1[0],
            };
            let distance = Double::sum(value, 0.0).minus(mean);
            let square = distance.times(distance);
            if !square.is_finite() {
                return Twofold::new(f64::NAN);
            }
            let square = Twofold {
                sum: square.high,
                error: square.low,
            };
            squares = squares.combine(scale.of(square));
        }
        squares
    }
}

/// The mean of weighted values.
pub fn mean(words: &[u64], sum: usize, weights: usize) -> f64 {
    let [sum, weights] = [sum, weights].map(|at| Part::of(words, at).sum);
    ratio(sum, weights)
}

/// A sum over a weight, rounded once.
fn ratio(sum: Twofold, weight: Twofold) -> f64 {
    let exact = Double::from(sum).over(Double::from(weight));
    match exact.is_finite() {
        true => exact.rounded(),
        false => sum.value() / weight.value(),
    }
}

/// Likewise of a sum far from the largest float, or of infinities and NaN.
#[inline(always)]
pub fn ratio_within(sum: Twofold, weight: Twofold) -> f64 {
    let exact = Double::from(sum).over(Double::from(weight));
    match exact.is_finite() {
        true => exact.rounded() + 0.0,
        false => sum.sum,
    }
}

pub fn is_empty(words: &[u64], at: usize, half_life: HalfLife) -> bool {
    Part::of(words, at).place == half_life.nowhere()
}

/// The weighted sum at the time of the latest entry, `last`, of some values.
pub fn sum(words: &[u64], at: usize, half_life: HalfLife, last: i64) -> f64 {
    let sum = Part::of(words, at).sum;
    let HalfLife::Time { length, tick } = half_life else {
        return sum.value();
    };
    // The place is the power of its weight.
    let (_, weight) = HalfLife::weight(length, tick, last);
    ratio(sum, Twofold::new(weight))
}

/// The weighted squares over the sum of the weights.
pub fn variance(words: &[u64], squares: usize, weights: usize) -> f64 {
    let squares = Twofold::from_words(&words[squares..]).value();
    let variance = squares / Part::of(words, weights).sum.value();
    if variance < 0.0 { 0.0 } else { variance }
}

impl Decayed {
    /// Reads a name such as `"sum 3600000 1"`, `"mean rows 5"` or `"sum"`; `None` for others.
    pub fn parse(name: &str) -> Option<(Self, HalfLife, bool)> {
        let mut words = name.split(' ');
        let what = match words.next()? {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "mean" => Self::Mean,
            "variance" => Self::Variance,
            _ => return None,
        };
        let number = |word: &str| word.parse::<u64>().ok().filter(|number| *number > 0);
        let half_life = match (words.next(), words.next()) {
            // Any: laws do not depend on it.
            (None, _) => HalfLife::Time { length: 1, tick: 1 },
            (Some("rows"), Some(rows)) => HalfLife::Rows(number(rows)?),
            (Some(length), Some(tick)) => HalfLife::Time {
                length: number(length)?,
                tick: number(tick)?,
            },
            _ => return None,
        };
        let dated = match words.next() {
            None => false,
            Some("dated") => true,
            Some(_) => return None,
        };
        Some((what, half_life, dated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: HalfLife = HalfLife::Time {
        length: 3600,
        tick: 1,
    };

    fn folded(half_life: HalfLife, entries: &[(f64, i64)]) -> (f64, i64) {
        let decay = Decay {
            half_life,
            by: 0,
            ones: false,
        };
        let mut words = [0; 3];
        let rows = entries.iter().map(|(value, time)| (*value, *time as u64));
        decay.fold(rows, &mut words, 0);
        let last = entries.iter().map(|(_, time)| *time).max();
        let last = last.expect("there are entries");
        (sum(&words, 0, half_life, last), last)
    }

    fn at(entries: &[(f64, i64)], end: i64) -> f64 {
        let (sum, last) = folded(HOUR, entries);
        HOUR.at_end(sum, last, end)
    }

    #[test]
    fn weights_halve_per_half_life() {
        assert_eq!(at(&[(8.0, 0)], 3600), 4.0);
        assert_eq!(at(&[(8.0, 0), (1.0, 3600)], 3600), 5.0);
        assert_eq!(at(&[(8.0, -7200), (1.0, -3600)], 0), 2.5);
    }

    #[test]
    fn a_value_is_exact_at_its_own_time() {
        for time in [1, 17, -3599, 1 << 40] {
            assert_eq!(at(&[(0.1, time)], time), 0.1);
            assert_eq!(at(&[(0.1, time)], time + 7200), 0.025);
        }
    }

    #[test]
    fn any_span_of_time_is_zero_and_no_overflow() {
        let far = 1 << 62;
        assert_eq!(at(&[(f64::MAX, 0)], far), 0.0);
        assert_eq!(
            at(&[(f64::MAX, 0)], 1500 * 3600),
            times_power(f64::MAX, -750) / 2_f64.powi(750)
        );
        assert_eq!(at(&[(f64::MAX, 0), (0.0, 3600 * 5000)], 3600 * 5000), 0.0);
        assert_eq!(at(&[(f64::MAX, -far), (1.0, far)], far), 1.0);
        assert_eq!(at(&[(-1.0, 0)], far).to_bits(), 0);
        assert_eq!(at(&[(f64::MAX, far)], far), f64::MAX);
        let short = HalfLife::Time { length: 1, tick: 1 };
        let (sum, last) = folded(short, &[(3.0, i64::MIN), (5.0, i64::MAX)]);
        assert_eq!(short.at_end(sum, last, i64::MAX), 5.0);
    }

    #[test]
    fn sums_beyond_the_floats_come_back() {
        let most = f64::MAX;
        let entries = [(most, 0), (most, 0), (-most, 3600)];
        let (sum, last) = folded(HOUR, &entries);
        assert_eq!(HOUR.at_end(sum, last, 3600), 0.0);
    }

    #[test]
    fn a_variance_of_endless_values_is_not_a_number() {
        let words = [0, f64::NAN.to_bits(), 0, 0, 1.0_f64.to_bits(), 0];
        assert!(variance(&words, 1, 3).is_nan());
    }

    #[test]
    fn rows_decay_by_their_rank() {
        let (sum, _) = folded(HalfLife::Rows(1), &[(8.0, 5), (4.0, 5), (1.0, 9)]);
        assert_eq!(sum, 5.0);
    }

    #[test]
    fn names_hold_the_half_life() {
        let parsed = Decayed::parse("sum 60 1000 dated");
        let half_life = HalfLife::Time {
            length: 60,
            tick: 1000,
        };
        assert_eq!(parsed, Some((Decayed::Sum, half_life, true)));
        for wrong in ["sum 0 1", "sum 1", "sum rows -1", "max rows 1", "sum 1 1 x"] {
            assert_eq!(Decayed::parse(wrong), None, "{wrong}");
        }
    }
}
