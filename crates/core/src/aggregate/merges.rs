//! Merges of central moments, which round to some 100 bits: equal windows have equal
//! answers, however a structure grouped their values.
//!
//! Central moments are merged about the mean of both parts (Chan, Golub, LeVeque 1979;
//! Pébay 2008, §II); they are never made of sums of powers. With c = n_a Σb − n_b Σa, which
//! is the distance between the means of parts of n_a and n_b values times n_a n_b:
//!
//! ```text
//!     n = n_a + n_b     e = c / (n_a n_b n)     s = e c
//!     M2 = M2a + M2b + s
//!     M3 = M3a + M3b + e (3 (n_a M2b − n_b M2a) + s (n_a − n_b))
//!     M4 = M4a + M4b + e (4 (n_a M3b − n_b M3a)
//!          + e (6 (n_a² M2b + n_b² M2a) + s (n_a² − n_a n_b + n_b²)))
//! ```
//!
//! All of it is computed with numbers of two floats ([`Double`]).

use super::double::Double;
use super::packing::get_i128;
use super::rounding::{two_product, two_sum};
use super::twofold::{Twofold, Wide};

/// Two partials; the first is the older one.
pub type Sides<'a> = [&'a [u64]; 2];

/// A column's places in a partial, and whether it holds floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub n: usize,
    pub sum: usize,
    pub floats: bool,
}

impl Place {
    #[inline(always)]
    fn counts(self, [a, b]: Sides<'_>) -> (f64, f64) {
        (a[self.n] as f64, b[self.n] as f64)
    }

    /// c of the formulas above. Products of integers fit for fewer than 2³² values.
    #[inline(always)]
    fn cross(self, [a, b]: Sides<'_>) -> Double {
        let Self { n, sum, floats } = self;
        if floats {
            let sums = (
                Twofold::from_words(&a[sum..]),
                Twofold::from_words(&b[sum..]),
            );
            return cross(self.counts([a, b]), sums);
        }
        let cross_b = get_i128(b, sum).wrapping_mul(i128::from(a[n]));
        let cross_a = get_i128(a, sum).wrapping_mul(i128::from(b[n]));
        Double::of_integer(cross_b.wrapping_sub(cross_a))
    }

    /// The rounded distance of the means, and half of it, which is finite for all finite
    /// means.
    fn rounded_distance(self, sides: Sides<'_>) -> (f64, f64) {
        let (count_a, count_b) = self.counts(sides);
        let cross = self.cross(sides);
        let distance = (cross.high + cross.low) / count_a / count_b;
        if distance.is_finite() || !self.floats {
            return (distance, distance / 2.0);
        }
        let mean = |side: usize| {
            let sum = Twofold::from_words(&sides[side][self.sum..]);
            sum.mean(sides[side][self.n] as f64)
        };
        (mean(1) - mean(0), mean(1) / 2.0 - mean(0) / 2.0)
    }
}

/// c of the formulas above. Equal large means cancel exactly.
#[inline(always)]
fn cross((count_a, count_b): (f64, f64), (sum_a, sum_b): (Twofold, Twofold)) -> Double {
    let (high_b, low_b) = two_product(sum_b.sum, count_a);
    let (high_a, low_a) = two_product(sum_a.sum, count_b);
    let (high, low) = two_sum(high_b, -high_a);
    let rest = low + (low_b - low_a) + (sum_b.error * count_a - sum_a.error * count_b);
    Double::sum(high, rest)
}

#[inline(always)]
fn slope(cross: Double, (count_a, count_b): (f64, f64)) -> Double {
    cross.over(Double::product(count_a * count_b, count_a + count_b))
}

/// s of the formulas above.
#[inline(always)]
pub fn squares_between(counts: (f64, f64), sums: (Twofold, Twofold)) -> Double {
    let cross = cross(counts, sums);
    slope(cross, counts).times(cross)
}

/// The squares of the whole of two parts that are not empty.
#[inline(always)]
pub fn squares(sides: Sides<'_>, at: usize, place: Place) -> Twofold {
    Distance::new(sides, place).squares(sides, at)
}

/// The distance between the means of two parts, once for all moments of a column.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    place: Place,
    /// c, e and s of the formulas above.
    cross: Double,
    slope: Double,
    square: Double,
}

/// The two twofold sums at a place.
#[inline(always)]
fn both([a, b]: Sides<'_>, at: usize) -> [Twofold; 2] {
    [Twofold::from_words(&a[at..]), Twofold::from_words(&b[at..])]
}

#[inline(always)]
fn doubles(sides: Sides<'_>, at: usize) -> [Double; 2] {
    let [a, b] = both(sides, at);
    [Double::from(a), Double::from(b)]
}

impl Distance {
    /// Between parts that are not empty.
    #[inline(always)]
    pub fn new(sides: Sides<'_>, place: Place) -> Self {
        let cross = place.cross(sides);
        let slope = slope(cross, place.counts(sides));
        Self {
            place,
            cross,
            slope,
            square: slope.times(cross),
        }
    }

    /// The squares of the whole.
    #[inline(always)]
    pub fn squares(&self, sides: Sides<'_>, at: usize) -> Twofold {
        let [a, b] = both(sides, at);
        let within = a.combine(b);
        match self.square.is_finite() {
            true => within.plus_double(self.square),
            false => within.combine(far_between(sides, [self.place; 2], 1.0)),
        }
    }

    /// The squares of the whole without those that the distance adds.
    pub fn squares_within(&self, sides: Sides<'_>, whole: Twofold) -> Twofold {
        match self.square.is_finite() {
            true => whole.plus_double(self.square.negated()),
            false => whole.combine(far_between(sides, [self.place; 2], -1.0)),
        }
    }

    /// The products of the whole; `other` is the distance in the other column.
    #[inline(always)]
    pub fn products(&self, other: &Self, sides: Sides<'_>, at: usize) -> Twofold {
        let [a, b] = both(sides, at);
        let within = a.combine(b);
        let between = self.slope.times(other.cross);
        match between.is_finite() {
            true => within.plus_double(between),
            false => within.combine(far_between(sides, [self.place, other.place], 1.0)),
        }
    }

    /// The third moment of the whole.
    #[inline(always)]
    pub fn thirds(&self, sides: Sides<'_>, at: usize, squares: usize) -> Twofold {
        let (count_a, count_b) = self.place.counts(sides);
        let [a, b] = doubles(sides, squares);
        let mixed = b.by(3.0 * count_a).minus(a.by(3.0 * count_b));
        let between = self.square.by(count_a - count_b);
        let [older, younger] = both(sides, at);
        let within = older.combine(younger);
        within.plus_double(self.slope.times(mixed.plus(between)))
    }

    /// The fourth moment of the whole.
    #[inline(always)]
    pub fn fourths(&self, sides: Sides<'_>, at: usize, squares: usize, thirds: usize) -> Twofold {
        let (count_a, count_b) = self.place.counts(sides);
        let [a, b] = doubles(sides, squares);
        let [third_a, third_b] = doubles(sides, thirds);
        let form = count_a * count_a - count_a * count_b + count_b * count_b;
        let within = b
            .by(6.0 * count_a * count_a)
            .plus(a.by(6.0 * count_b * count_b));
        let squares = within.plus(self.square.by(form));
        let mixed = third_b.by(4.0 * count_a).minus(third_a.by(4.0 * count_b));
        let between = self.slope.times(mixed.plus(self.slope.times(squares)));
        let [older, younger] = both(sides, at);
        older.combine(younger).plus_double(between)
    }
}

/// The part between means so far apart that a step leaves the floats.
#[cold]
#[inline(never)]
fn far_between(sides: Sides<'_>, [x, y]: [Place; 2], sign: f64) -> Twofold {
    let (count_a, count_b) = x.counts(sides);
    let ((x, half_x), (y, half_y)) = (x.rounded_distance(sides), y.rounded_distance(sides));
    let weight = sign * (count_a / (count_a + count_b) * count_b);
    let between = x * (y * weight);
    match between.is_finite() {
        true => Twofold::new(between),
        false => Wide::of_halves(half_x, half_y, weight),
    }
}

/// The distances that the components of one combine have in common: the last two.
#[derive(Debug, Default)]
pub struct Distances {
    last: Option<Distance>,
    before: Option<Distance>,
}

impl Distances {
    /// Between two parts that are not empty.
    #[inline(always)]
    pub fn of(&mut self, sides: Sides<'_>, place: Place) -> Distance {
        match (self.last, self.before) {
            (Some(known), _) | (_, Some(known)) if known.place == place => known,
            _ => {
                let distance = Distance::new(sides, place);
                (self.before, self.last) = (self.last, Some(distance));
                distance
            }
        }
    }
}
