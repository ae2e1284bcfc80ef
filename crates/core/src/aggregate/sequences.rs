//! Components of the order of values: rises, changes, the fall from the greatest value so
//! far, and the first or the last few values.

use std::collections::HashSet;

use super::packing::presence::{NONE, VALUE};
use super::packing::{get_i128, put, put_i128};
use super::twofold::Twofold;
use super::{DType, extreme_value};

/// The words of a component of rises: their sum, in two words, the first and the last value,
/// and whether there is one.
const RISES: usize = 5;
/// The words of a component of changes: their number, the first and the last value, and
/// whether there is one.
const CHANGES: usize = 4;
/// As many values are searched one by one; more are hashed.
const FEW: usize = 16;

pub fn rises_of_one(bits: u64, dtype: DType) -> [u64; 5] {
    let sum = match dtype {
        DType::F64 if f64::from_bits(bits).is_nan() => Twofold::new(f64::NAN),
        DType::F64 => Twofold::new(0.0),
        _ => return [0, 0, bits, bits, VALUE],
    };
    let [sum, error] = sum.to_words();
    [sum, error, bits, bits, VALUE]
}

/// Words of a component of rises: `out := a ⊗ b`.
pub fn join_rises(a: &[u64], b: &[u64], dtype: DType, out: &mut [u64]) {
    if a[4] == NONE || b[4] == NONE {
        let from = if a[4] == NONE { b } else { a };
        out[..RISES].copy_from_slice(&from[..RISES]);
        return;
    }
    match dtype {
        DType::F64 => {
            let within = Twofold::from_words(a).combine(Twofold::from_words(b));
            let rise = float_rise(f64::from_bits(a[3]), f64::from_bits(b[2]));
            put(out, 0, within.combine(rise).to_words());
        }
        _ => {
            let (last, next) = (i128::from(a[3] as i64), i128::from(b[2] as i64));
            let rise = if next < last { next } else { next - last };
            let within = get_i128(a, 0).wrapping_add(get_i128(b, 0));
            put_i128(out, 0, within.wrapping_add(rise));
        }
    }
    put(out, 2, [a[2], b[3], VALUE]);
}

/// A fall is a reset to zero, after which the whole value is a rise.
fn float_rise(last: f64, next: f64) -> Twofold {
    if last.is_nan() || next.is_nan() {
        return Twofold::new(f64::NAN);
    }
    if next == last {
        return Twofold::new(0.0);
    }
    match next < last {
        true => Twofold::new(next + 0.0),
        false => Twofold::new(next).plus(-last),
    }
}

/// Bits that are equal for equal values: the two zeros are one value, and all NaNs are.
pub fn key(bits: u64, dtype: DType) -> u64 {
    match (dtype, f64::from_bits(bits)) {
        (DType::F64, value) if value.is_nan() => f64::NAN.to_bits(),
        (DType::F64, value) => (value + 0.0).to_bits(),
        _ => bits,
    }
}

/// Words of a component of changes: `out := a ⊗ b`.
pub fn join_changes(a: &[u64], b: &[u64], out: &mut [u64]) {
    if a[3] == NONE || b[3] == NONE {
        let from = if a[3] == NONE { b } else { a };
        out[..CHANGES].copy_from_slice(&from[..CHANGES]);
        return;
    }
    let between = u64::from(a[2] != b[1]);
    put(out, 0, [a[0] + b[0] + between, a[1], b[2], VALUE]);
}

/// The fall from the greatest of earlier values to the least of later ones, given as words
/// of their orders: a whole number or the bits of a float, at least 0, or NaN if one is.
/// Both are ordered as their bits, NaN being the greatest.
pub fn fall(greatest: u64, least: u64, dtype: DType) -> u64 {
    let from = extreme_value(greatest as i64, dtype, false);
    let to = extreme_value(least as i64, dtype, true);
    match dtype {
        DType::F64 => {
            let (from, to) = (f64::from_bits(from), f64::from_bits(to));
            match from.is_nan() || to.is_nan() {
                true => f64::NAN.to_bits(),
                // Between two infinities there is no fall.
                false => (from - to).max(0.0).to_bits(),
            }
        }
        _ if (from as i64) < to as i64 => 0,
        _ => from.wrapping_sub(to),
    }
}

/// The gap between the values at the ends of two partials, of values that ascend; `None` if
/// one has no values.
pub fn gap_between(a: &[u64], b: &[u64], first: usize, last: usize) -> Option<u64> {
    let both = a[last + 1] == VALUE && b[first + 1] == VALUE;
    both.then(|| gap(a[last], b[first]))
}

/// Of values that do not ascend it is 0.
pub fn gap(earlier: u64, later: u64) -> u64 {
    match (later as i64) < earlier as i64 {
        true => 0,
        false => later.wrapping_sub(earlier),
    }
}

pub fn square_of_gap(gap: u64) -> u128 {
    u128::from(gap) * u128::from(gap)
}

/// The number of values, and up to `k` of them in order: the first or the last ones of both.
pub fn join_ends(a: &[u64], b: &[u64], k: usize, last: bool, out: &mut [u64]) {
    let (older, younger) = (&a[1..=a[0] as usize], &b[1..=b[0] as usize]);
    let count = (older.len() + younger.len()).min(k);
    let (older, younger) = if last {
        let kept = count - younger.len().min(count);
        (&older[older.len() - kept..], younger)
    } else {
        let kept = count - older.len().min(count);
        (older, &younger[..kept])
    };
    out[0] = count as u64;
    out[1..=older.len()].copy_from_slice(older);
    out[1 + older.len()..=count].copy_from_slice(younger);
    out[1 + count..=k].fill(0);
}

/// The number of values, and the last `k` distinct ones of both by latest occurrence.
pub fn join_distinct(a: &[u64], b: &[u64], k: usize, out: &mut [u64]) {
    let [older, younger] = [a, b].map(|side| &side[1..=side[0] as usize]);
    last_distinct(
        younger.iter().rev().chain(older.iter().rev()).copied(),
        k,
        out,
    );
}

/// The number of values, and the first `k` distinct ones of an order that begins with the
/// latest; they are written in the order of time.
pub fn last_distinct(latest_first: impl Iterator<Item = u64>, k: usize, out: &mut [u64]) {
    let mut found: Vec<u64> = Vec::new();
    let mut seen = HashSet::new();
    for value in latest_first {
        if found.len() == k {
            break;
        }
        let is_new = match found.len() {
            0..FEW => !found.contains(&value),
            _ => {
                if seen.is_empty() {
                    seen.extend(found.iter().copied());
                }
                seen.insert(value)
            }
        };
        if is_new {
            found.push(value);
        }
    }
    let words = found.iter().rev().chain(std::iter::repeat(&0));
    out[0] = found.len() as u64;
    for (word, value) in out[1..=k].iter_mut().zip(words) {
        *word = *value;
    }
}

/// Words of a component of runs: `out := a ⊗ b`.
pub fn join_runs(a: &[u64], b: &[u64], out: &mut [u64]) {
    let [all, ahead, behind, most] = [0, 1, 2, 3];
    let whole = |side: &[u64], run: usize| side[run] == side[all];
    // Words of a damaged snapshot may add up to more than 64 bits.
    let across = a[behind].wrapping_add(b[ahead]);
    let first = match whole(a, ahead) {
        true => a[ahead].wrapping_add(b[ahead]),
        false => a[ahead],
    };
    let last = match whole(b, behind) {
        true => a[behind].wrapping_add(b[behind]),
        false => b[behind],
    };
    let longest = a[most].max(b[most]).max(across);
    put(out, 0, [a[all].wrapping_add(b[all]), first, last, longest]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(all: &[u64], k: usize, last: bool) -> Vec<u64> {
        let one = |value: &u64| {
            let mut words = vec![0; k + 1];
            words[..2].copy_from_slice(&[1, *value]);
            words
        };
        let joined = |a: Vec<u64>, b: Vec<u64>| {
            let mut out = vec![9; k + 1];
            join_ends(&a, &b, k, last, &mut out);
            out
        };
        all.iter().map(one).fold(vec![0; k + 1], joined)
    }

    #[test]
    fn ends_keep_the_first_or_the_last_in_order() {
        assert_eq!(ends(&[5, 6, 7], 2, false), [2, 5, 6]);
        assert_eq!(ends(&[5, 6, 7], 2, true), [2, 6, 7]);
        assert_eq!(ends(&[5], 2, true), [1, 5, 0]);
        assert_eq!(ends(&[], 1, false), [0, 0]);
    }

    #[test]
    fn distinct_values_are_ordered_by_their_latest_occurrence() {
        let join = |a: &[u64], b: &[u64], k: usize| {
            let mut out = vec![9; k + 1];
            join_distinct(a, b, k, &mut out);
            out
        };
        assert_eq!(join(&[3, 1, 2, 3], &[2, 2, 4, 0], 3), [3, 3, 2, 4]);
        assert_eq!(join(&[1, 7, 0], &[0, 0, 0], 2), [1, 7, 0]);
        // More than are searched one by one.
        let many: Vec<u64> = (0..40).chain(10..20).rev().collect();
        let mut out = [9; 36];
        last_distinct(many.into_iter(), 35, &mut out);
        let expected = (5..10).chain(20..40).chain(10..20);
        assert_eq!(out[1..], expected.collect::<Vec<u64>>());
    }

    #[test]
    fn runs_join_where_both_sides_are_true() {
        let join = |a: [u64; 4], b: [u64; 4]| {
            let mut out = [9; 4];
            join_runs(&a, &b, &mut out);
            out
        };
        let (yes, no) = ([1, 1, 1, 1], [1, 0, 0, 0]);
        assert_eq!(join(yes, yes), [2, 2, 2, 2]);
        assert_eq!(join(join(yes, no), join(yes, yes)), [4, 1, 2, 2]);
        assert_eq!(join(join(no, yes), join(yes, no)), [4, 0, 0, 2]);
        assert_eq!(join([0; 4], yes), yes);
    }

    #[test]
    fn a_fall_spans_all_integers() {
        let word = |value: i64| value as u64;
        let most = fall(word(i64::MAX), !word(i64::MIN), DType::I64);
        assert_eq!(most, u64::MAX);
        assert_eq!(fall(word(-3), !word(4), DType::I64), 0);
    }
}
