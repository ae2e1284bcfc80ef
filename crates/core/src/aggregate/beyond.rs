//! Sums of finite floats that lie beyond the largest float.
//!
//! Values of 1e308 add up to what no float holds; what leaves the window, or the other
//! half of a tree, may bring the sum back. Until then it is held 2⁶⁴ times smaller, in the
//! two words of a [`Twofold`], where nothing else can be meant:
//!
//! - the error is the sum, which is finite and not zero,
//! - the sum is a NaN, and its last 32 bits are what that sum's rounding left, as a float
//!   of 32 bits: 77 bits together, so that a billion values beyond the floats still add up
//!   as well as those within.
//!
//! A NaN among values has the error 0, or one that is no number.

use super::twofold::{Twofold, two_sum};

/// The high and the low part of a sum, both [`DOWN`] times smaller.
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
/// From here on a sum is beyond, once it is made smaller.
const LEAST: f64 = power(1023 - 64);
/// What brings a low part into the range of 32 bits: it is at most 2⁻⁵³ of a high one.
const NARROW: f64 = power(-900);
const WIDEN: f64 = power(900);

impl Beyond {
    pub(super) fn is(sum: Twofold) -> bool {
        sum.sum.is_nan() && sum.error.is_finite() && sum.error != 0.0
    }

    #[cold]
    #[inline(never)]
    pub(super) fn of(sum: Twofold) -> Option<Self> {
        Self::is(sum).then(|| Self {
            high: sum.error,
            low: f64::from(f32::from_bits(sum.sum.to_bits() as u32)) * WIDEN,
        })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn sum(a: Twofold, b: Twofold) -> Twofold {
        match (Self::reach(a), Self::reach(b)) {
            (Some(older), Some(younger)) => older.plus(younger).twofold(),
            _ => Twofold::new(endless(a) + endless(b)),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn difference(whole: Twofold, older: Twofold) -> Twofold {
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

    /// Any finite sum, made smaller.
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
        if self.high.abs() < LEAST {
            return Twofold {
                sum: self.high * UP + 0.0,
                error: self.low * UP,
            };
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

/// What a sum counts for beside an infinity or a NaN.
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
