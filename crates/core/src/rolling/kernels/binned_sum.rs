//! Exact sums of floats on a grid, which may therefore be subtracted.
//!
//! A term x of at most 2ᴱ is split into a multiple of the coarse unit 2ᴱ⁻⁴⁰, and its
//! remainder into a multiple of the fine unit 2ᴱ⁻⁸⁰. Multiples of a unit add up without
//! rounding, like integers, in floats that are biased to a magnitude whose last bit is the
//! unit: four additions split a term and add up both parts.
//!
//! The part below the fine unit is lost: at most 2ᴱ⁻⁸¹ per term, once, for sums of any
//! length. [`UnitGrid::holds`] tests whether a term loses nothing.
//!
//! Method: binned (pre-rounded) summation with two bins of 40 bits. Adding a term to a large
//! multiple of the unit splits it without error: `ExtractScalar` of Rump, Ogita, Oishi,
//! *Accurate Floating-Point Summation, Part I* (SIAM J. Sci. Comput. 31(1), 2008). Biased
//! accumulators that split and add at once: Demmel, Nguyen, *Fast Reproducible
//! Floating-Point Summation* (ARITH 21, 2013); Ahrens, Demmel, Nguyen, *Algorithms for
//! Efficient Reproducible Floating Point Summation* (ACM TOMS 46(3), 2020).
//! Deviations: the greatest term determines the bins, not fixed exponents; a term beyond
//! them begins new sums, whereas the published accumulator moves its bins; sums of many
//! terms are stored as integers.

/// Bits between a term and the coarse unit, and between the two units.
const BITS: i32 = 40;
/// The number of terms that may be added to a bias; their sum stays below 2⁵¹ units.
pub(super) const BIN_CAPACITY: usize = 1 << 10;
/// The largest number of terms of a window: sums of coarse units must fit into int64.
pub(super) const MAX_TERMS: usize = 1 << 22;

/// The range of the terms and their units.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitGrid {
    /// The upper bound of terms.
    pub limit: f64,
    /// Smaller terms may lose digits, unless they are zero.
    least: f64,
    /// The start values of sums: coarse, fine.
    bias: [f64; 2],
    units: [f64; 2],
    per_unit: [f64; 2],
}

/// A sum in coarse and in fine units.
pub(super) type Units = [i64; 2];

/// A power of two, which must be a normal number.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The exponent of the greatest power of two up to a positive normal number.
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52) as i32 - 1023
}

impl UnitGrid {
    /// The grid for zeros only.
    pub(super) const ZERO: Self = Self {
        limit: 0.0,
        least: 0.0,
        bias: [0.0; 2],
        units: [1.0; 2],
        per_unit: [1.0; 2],
    };

    /// The grid for terms up to twice `greatest`. `None` if they are too close to the
    /// limits of floats.
    pub(super) fn new(greatest: f64) -> Option<Self> {
        if greatest == 0.0 {
            return Some(Self::ZERO);
        }
        let top = exponent(greatest) + 2;
        ((-400..=450).contains(&top) && greatest.is_finite()).then(|| Self::below(top))
    }

    /// The grid for the squares of the terms.
    pub(super) fn squared(&self) -> Self {
        if self.limit == 0.0 {
            return Self::ZERO;
        }
        Self::below(2 * exponent(self.limit))
    }

    /// The grid for terms of at most 2 to the `top`.
    fn below(top: i32) -> Self {
        let units = [top - BITS, top - 2 * BITS];
        Self {
            limit: power(top),
            least: power(top - 2 * BITS + 52),
            bias: units.map(|unit| 1.5 * power(unit + 52)),
            units: units.map(power),
            per_unit: units.map(|unit| power(-unit)),
        }
    }

    #[inline(always)]
    pub(super) fn takes(&self, term: f64) -> bool {
        term.abs() <= self.limit
    }

    /// Whether a term loses no digits.
    #[inline(always)]
    pub(super) fn holds(&self, term: f64) -> bool {
        (term.abs() >= self.least) | (term == 0.0)
    }

    /// Adds a term to biased sums.
    #[inline(always)]
    pub(super) fn add([coarse, fine]: [f64; 2], term: f64) -> [f64; 2] {
        let sum = coarse + term;
        let rest = term - (sum - coarse);
        [sum, fine + rest]
    }

    #[inline(always)]
    pub(super) fn bias(&self) -> [f64; 2] {
        self.bias
    }

    /// The sum that was added to a bias.
    pub(super) fn units(&self, sums: [f64; 2]) -> Units {
        let of = |level: usize| ((sums[level] - self.bias[level]) * self.per_unit[level]) as i64;
        [of(0), of(1)]
    }

    /// The sum as two floats: the second is the remainder of the first.
    #[inline(always)]
    pub(super) fn floats(&self, [coarse, fine]: Units) -> [f64; 2] {
        let whole = coarse as f64;
        let rest = coarse.wrapping_sub(whole as i64) as f64;
        [
            whole * self.units[0],
            rest * self.units[0] + fine as f64 * self.units[1],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_exponents_go_together() {
        for at in [-1022, -450, -1, 0, 1, 52, 900, 1023] {
            assert_eq!(power(at), 2.0_f64.powi(at));
            assert_eq!(exponent(power(at)), at);
            assert_eq!(exponent(1.75 * power(at)), at);
        }
    }

    #[test]
    fn what_is_held_is_added_up_exactly() {
        let grid = UnitGrid::new(1000.0).unwrap();
        assert!(grid.takes(2047.0) && !grid.takes(5000.0) && !grid.takes(f64::NAN));
        let terms = [1000.1, -999.9, 0.3, -0.0, 2000.0, 0.001, -1e-4];
        assert!(terms.iter().all(|term| grid.holds(*term)));
        assert!(!grid.holds(1e-9));
        let mut sums = grid.bias();
        for term in terms {
            sums = UnitGrid::add(sums, term);
        }
        for term in terms.iter().rev() {
            sums = UnitGrid::add(sums, -term);
        }
        assert_eq!(grid.units(sums), [0, 0]);
    }

    #[test]
    fn units_become_floats_without_loss() {
        let grid = UnitGrid::new(1.0).unwrap();
        let [whole, rest] = grid.floats([(1 << 60) + 1, 0]);
        assert_eq!(whole, power(60 + 2 - BITS));
        assert_eq!(rest, power(2 - BITS));
    }
}
