//! Operations on floats with their rounding errors, and scaling by powers of two.
//!
//! TwoSum: Møller 1965; Knuth, *The Art of Computer Programming* 2, §4.2.2. TwoProduct: Dekker
//! 1971, with a fused multiply-add for its splitting.

/// `a + b` and its exact rounding error.
#[inline]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    (sum, error)
}

/// `a · b` and its exact rounding error.
#[inline]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// `value · 2^power`, rounded once: two steps, the first of which is exact for values
/// around 1.
#[inline]
pub fn times_power(value: f64, power: i64) -> f64 {
    let power = power.clamp(-1200, 1200) as i32;
    let half = power / 2;
    value * power_of_two(half) * power_of_two(power - half)
}

/// `2^power` from 2⁻¹⁰²² to 2¹⁰²³, by its bits.
#[inline(always)]
pub fn power_of_two(power: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&power), "{power}");
    f64::from_bits(((1023 + power) as u64) << 52)
}
