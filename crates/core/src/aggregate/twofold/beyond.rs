//! Sums of finite floats that lie beyond the largest float.
//!
//! A sum of values such as 1e308 can exceed all floats, and come back when values leave the
//! window or another part of a tree is added. Until then it is scaled by 2⁻⁶⁴ and stored in
//! the two words of a [`Twofold`], in an encoding that no other sum uses:
//!
//! - the error is the sum, which is finite and not zero,
//! - the sum is a NaN whose last 32 bits are the rounding error, as a float of 32 bits. The
//!   77 bits together keep sums of a billion such values as accurate as other sums.
//!
//! A NaN among the values has the error 0 or NaN.
//!
//! Sums of squares and of products are larger still: those of deviations of 1e200 are
//! [`Wide`], scaled by 2⁻¹²⁰⁰, which another bit of the NaN marks.

use super::super::rounding::{times_power, two_sum};
use super::Twofold;

/// The high and the low part of a sum, both scaled by [`DOWN`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Beyond {
    high: f64,
    low: f64,
}

const fn power(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

const DOWN: f64 = power(-64);
const UP: f64 = power(64);
/// The least scaled sum that exceeds the floats.
const MIN_BEYOND: f64 = power(1023 - 64);
/// The least scaled sum that is wide: its double would overflow.
const MIN_WIDE: f64 = power(1022);
/// The factor that brings a low part into the range of 32 bits: it is at most 2⁻⁵³ of a
/// high one.
const NARROW: f64 = power(-900);
const WIDEN: f64 = power(900);

impl Beyond {
    pub(super) fn is(sum: Twofold) -> bool {
        sum.sum.is_nan() && sum.error.is_finite() && sum.error != 0.0
    }

    #[cold]
    #[inline(never)]
    pub(super) fn of(sum: Twofold) -> Option<Self> {
        (Self::is(sum) && !Wide::is(sum)).then(|| Self {
            high: sum.error,
            low: f64::from(f32::from_bits(sum.sum.to_bits() as u32)) * WIDEN,
        })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn sum(a: Twofold, b: Twofold) -> Twofold {
        if let Some(wide) = Wide::sum(a, b) {
            return wide;
        }
        match (Self::reach(a), Self::reach(b)) {
            (Some(older), Some(younger)) => older.plus(younger).twofold(),
            _ => Twofold::new(endless(a) + endless(b)),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn difference(whole: Twofold, older: Twofold) -> Twofold {
        let taken = Wide::reach(older).map(|older| older.negated().twofold());
        if let Some(wide) = taken.and_then(|taken| Wide::sum(whole, taken)) {
            return wide;
        }
        match (Self::reach(whole), Self::reach(older)) {
            (Some(whole), Some(older)) => {
                let taken = Self {
                    high: -older.high,
                    low: -older.low,
                };
                whole.plus(taken).twofold()
            }
            _ => Twofold::new(endless(whole) - endless(older)),
        }
    }

    /// Scales any finite sum.
    fn reach(sum: Twofold) -> Option<Self> {
        if !sum.sum.is_finite() {
            return Self::of(sum);
        }
        let error = if sum.error.is_finite() {
            sum.error
        } else {
            0.0
        };
        Some(Self {
            high: sum.sum * DOWN,
            low: error * DOWN,
        })
    }

    fn plus(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (high, low) = two_sum(high, (self.low + other.low) + error);
        Self { high, low }
    }

    fn twofold(self) -> Twofold {
        if self.high.abs() < MIN_BEYOND {
            return Twofold {
                sum: self.high * UP + 0.0,
                error: self.low * UP,
            };
        }
        if self.high.abs() >= MIN_WIDE {
            let [high, low] =
                [self.high, self.low].map(|part| times_power(part, 64 - FAR_EXPONENT));
            return Wide { high, low }.twofold();
        }
        let low = (self.low * NARROW) as f32;
        Twofold {
            sum: f64::from_bits(f64::NAN.to_bits() | u64::from(low.to_bits())),
            error: self.high,
        }
    }

    pub(super) fn value(self) -> f64 {
        (self.high + self.low) * UP
    }

    pub(super) fn mean(self, count: f64) -> f64 {
        (self.high + self.low) / count * UP
    }
}

/// A sum of products that exceeds even [`Beyond`]: its high and its low part, both scaled
/// by 2^-[`FAR_EXPONENT`].
#[derive(Clone, Copy, Debug)]
pub(in crate::aggregate) struct Wide {
    high: f64,
    low: f64,
}

const FAR_EXPONENT: i64 = 1200;
/// The bit of the NaN that marks a wide sum.
const MARK: u64 = 1 << 40;
/// The low part is at most 2⁻⁵³ of the high one, so 32 bits hold it relative to that.
const SHARE_SCALE: f64 = power(53);

impl Wide {
    pub(super) fn is(sum: Twofold) -> bool {
        Beyond::is(sum) && sum.sum.to_bits() & MARK != 0
    }

    /// `4 · x · y · weight` of finite numbers; NaN of others.
    #[cold]
    #[inline(never)]
    pub(in crate::aggregate) fn of_halves(x: f64, y: f64, weight: f64) -> Twofold {
        if !(x.is_finite() && y.is_finite()) {
            return Twofold::new(f64::NAN);
        }
        let plain = x * y * (4.0 * weight);
        if plain.is_finite() {
            return Twofold::new(plain + 0.0);
        }
        let [x, y] = [x, y].map(|half| times_power(half, -FAR_EXPONENT / 2));
        Self {
            high: x * y * (4.0 * weight),
            low: 0.0,
        }
        .twofold()
    }

    /// The value of a finite sum, scaled by a negative power of two.
    pub(super) fn scaled(sum: Twofold) -> (f64, i64) {
        match (Self::is(sum), Beyond::of(sum)) {
            (true, _) => {
                let wide = Self::decoded(sum);
                (wide.high + wide.low, FAR_EXPONENT)
            }
            (false, Some(beyond)) => (beyond.high + beyond.low, 64),
            (false, None) => (sum.value(), 0),
        }
    }

    /// The sum of two, if one of them is wide and both are finite.
    fn sum(a: Twofold, b: Twofold) -> Option<Twofold> {
        if !Self::is(a) && !Self::is(b) {
            return None;
        }
        let (a, b) = (Self::reach(a)?, Self::reach(b)?);
        let (high, error) = two_sum(a.high, b.high);
        let (high, low) = two_sum(high, (a.low + b.low) + error);
        Some(Self { high, low }.twofold())
    }

    fn negated(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }

    fn decoded(sum: Twofold) -> Self {
        let share = f64::from(f32::from_bits(sum.sum.to_bits() as u32));
        Self {
            high: sum.error,
            low: share * (sum.error / SHARE_SCALE),
        }
    }

    /// Scales any finite sum.
    fn reach(sum: Twofold) -> Option<Self> {
        if Self::is(sum) {
            return Some(Self::decoded(sum));
        }
        let Beyond { high, low } = Beyond::reach(sum)?;
        let [high, low] = [high, low].map(|part| times_power(part, 64 - FAR_EXPONENT));
        Some(Self { high, low })
    }

    fn twofold(self) -> Twofold {
        if self.high.abs() < power(1086 - FAR_EXPONENT) {
            let [high, low] =
                [self.high, self.low].map(|part| times_power(part, FAR_EXPONENT - 64));
            return Beyond { high, low }.twofold();
        }
        let share = (self.low / self.high * SHARE_SCALE) as f32;
        Twofold {
            sum: f64::from_bits(f64::NAN.to_bits() | MARK | u64::from(share.to_bits())),
            error: self.high,
        }
    }
}

/// The float that replaces a sum when an infinity or a NaN is added.
fn endless(sum: Twofold) -> f64 {
    if Beyond::is(sum) { 0.0 } else { sum.sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: f64 = 1e308;

    fn all(values: &[f64]) -> Twofold {
        let one_by_one = values.iter().copied().fold(Twofold::EMPTY, Twofold::plus);
        let halves = values.split_at(values.len() / 2);
        let grouped = Twofold::fold_slice(halves.0).combine(Twofold::fold_slice(halves.1));
        let size: f64 = values.iter().map(|value| value.abs() * DOWN).sum();
        let apart = (one_by_one.value() - grouped.value()).abs() * DOWN;
        assert!(apart.is_nan() || apart <= size * power(-60));
        one_by_one
    }

    #[test]
    fn what_overflows_on_the_way_comes_back() {
        assert_eq!(all(&[HUGE, HUGE, -HUGE]).value(), HUGE);
        assert_eq!(all(&[HUGE, HUGE, -HUGE, 1e292]).value(), HUGE + 1e292);
        assert_eq!(all(&[HUGE; 3]).value(), f64::INFINITY);
        assert_eq!(all(&[-HUGE; 3]).value(), f64::NEG_INFINITY);
        assert_eq!(all(&[HUGE; 40]).mean(40.0), HUGE);
        assert_eq!(all(&[-f64::MAX; 4]).mean(4.0), -f64::MAX);
        let nothing = all(&[HUGE, HUGE, -HUGE, -HUGE]);
        assert!(!nothing.is_empty() && nothing.value() == 0.0);
    }

    #[test]
    fn products_far_beyond_add_up_and_come_back() {
        let product = |x: f64, y: f64| Wide::of_halves(x / 2.0, y / 2.0, 1.0);
        let total = |terms: &[Twofold]| {
            let whole = terms.iter().copied().reduce(Twofold::combine);
            whole.expect("there are terms")
        };
        for (x, y) in [(1e308, 1e308), (1e200, 1e170), (1e160, 1e159)] {
            let far = product(x, y);
            assert!(Beyond::is(far) && far.is_finite());
            assert_eq!(far.value(), f64::INFINITY);
            assert_eq!(product(-x, y).value(), f64::NEG_INFINITY);
            let gone = product(-x, y);
            assert_eq!(total(&[far, far, gone, gone]).value(), 0.0);
            let near = Twofold::new(1e300);
            let back = total(&[far, near, gone]).value();
            // An error of 10⁻³⁰ of a sum lies within its digits.
            assert!((back / 1e300 - 1.0).abs() < 1e-6 || x * (y / 1e308) > 1e30);
            let rest = total(&[far, far, far]).without(far).without(far);
            let [(rest, power), (one, same)] = [rest.scaled(), far.scaled()];
            assert!(power == same && (rest / one - 1.0).abs() < 1e-15);
            assert!(total(&[far, Twofold::new(f64::NAN)]).value().is_nan());
        }
        assert_eq!(product(1e308, 1e-300), Twofold::new(1e308 * 1e-300));
        assert_eq!(product(1e308, 0.0).value(), 0.0);
        assert!(product(f64::INFINITY, 1.0).value().is_nan());
        // Doubling passes through all three forms; the square root verifies the value.
        let mut sum = Twofold::new(1e300);
        for doubled in 1..1_150 {
            sum = sum.combine(sum);
            let (value, power) = sum.scaled();
            let exponent = value.log2() + power as f64;
            let expected = 1e300_f64.log2() + f64::from(doubled);
            assert!((exponent - expected).abs() < 1e-6, "{doubled}: {exponent}");
        }
    }

    #[test]
    fn small_digits_live_through_many_values_beyond() {
        let mut values = vec![1.7e308; 20_000];
        values.extend(std::iter::repeat_n(-1.7e308, 20_000));
        values.insert(10_000, 1e295);
        let sum = values.iter().copied().fold(Twofold::EMPTY, Twofold::plus);
        assert!((sum.value() / 1e295 - 1.0).abs() < 1e-3, "{}", sum.value());
    }

    #[test]
    fn infinities_and_nan_absorb_what_is_beyond() {
        let beyond = all(&[HUGE, HUGE]);
        assert!(Beyond::is(beyond) && beyond.is_finite());
        let with = |value| beyond.plus(value).value();
        assert_eq!(with(f64::INFINITY), f64::INFINITY);
        assert_eq!(with(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!(with(f64::NAN).is_nan());
        assert!(!beyond.plus(f64::NAN).is_finite());
        let payload = f64::from_bits(f64::NAN.to_bits() | 0x1234_5678);
        assert!(Twofold::new(payload).plus(1.0).value().is_nan());
        assert!(Beyond::of(Twofold::new(payload)).is_none());
    }

    #[test]
    fn what_was_added_can_be_taken_again() {
        let whole = all(&[HUGE, HUGE, 3.0]);
        let rest = whole.without(Twofold::new(HUGE));
        assert_eq!(rest.value(), HUGE);
        let rest = rest.without(Twofold::new(HUGE));
        assert!(rest.value().abs() <= 3.0 && !rest.is_empty());
        let back = all(&[HUGE, HUGE]).without(all(&[HUGE, HUGE]));
        assert_eq!((back.value(), back.is_empty()), (0.0, false));
    }
}
