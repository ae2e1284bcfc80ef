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
pub fn times_power(value: f64, power: i64) -> f64 {
    let power = power.clamp(-1200, 1200) as i32;
    let half = power / 2;
    value * 2_f64.powi(half) * 2_f64.powi(power - half)
}
