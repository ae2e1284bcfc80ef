//! The components of a record: small associative operations over a few words each.
//!
//! Algebraic aggregations come from distributive ones (SlickDeque §3.1): a mean is a sum
//! and a count. Components are what several aggregations of one column share.

use super::twofold::{Twofold, two_product, two_sum};
use super::{DType, extreme_word};

/// One operation. Field `n` and `sum` are the word offsets of the components that
/// [`Op::SquaresF`] and [`Op::SquaresI`] build upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Rows, missing values or not.
    Rows,
    /// Values that are not missing.
    Count,
    /// Exact integer sum, 128 bits.
    SumI,
    /// Float sum with its error.
    SumF,
    /// Sum of natural logarithms with its error.
    Logs,
    /// Sum of squared distances from the mean, with its error (Chan et al.).
    SquaresF {
        n: usize,
        sum: usize,
    },
    SquaresI {
        n: usize,
        sum: usize,
    },
    /// Order-preserving word of the extreme value.
    Extreme {
        min: bool,
    },
    /// The same, and how often it occurs.
    ExtremeCount {
        min: bool,
    },
    /// Word of the extreme of `by`, the value of `col` beside it, and its [`Presence`].
    Arg {
        min: bool,
        by: usize,
    },
    First,
    Last,
}

/// Third word of [`Op::Arg`] and second of [`Op::First`] and [`Op::Last`].
pub mod presence {
    pub const NONE: u64 = 0;
    pub const VALUE: u64 = 1;
    /// There is an extreme row, and its value is missing.
    pub const NULL: u64 = 2;
}
use presence::{NULL, VALUE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    pub op: Op,
    pub col: usize,
    /// Type of the column whose values are computed with (`by` for [`Op::Arg`]).
    pub dtype: DType,
    /// Offset of this component's first word.
    pub at: usize,
}

impl Op {
    pub fn words(self) -> usize {
        match self {
            Self::Rows | Self::Count | Self::Extreme { .. } => 1,
            Self::Arg { .. } => 3,
            _ => 2,
        }
    }

    pub fn commutative(self) -> bool {
        !matches!(self, Self::Arg { .. } | Self::First | Self::Last)
    }

    /// Whether [`Component::inverse`] is there, exact or up to rounding.
    pub fn invertible(self) -> bool {
        matches!(
            self,
            Self::Rows
                | Self::Count
                | Self::SumI
                | Self::SumF
                | Self::Logs
                | Self::SquaresF { .. }
                | Self::SquaresI { .. }
        )
    }

    /// Whether a combine gives one of its operands.
    pub fn selective(self) -> bool {
        matches!(
            self,
            Self::Extreme { .. } | Self::Arg { .. } | Self::First | Self::Last
        )
    }
}

impl Component {
    pub fn identity(&self, out: &mut [u64]) {
        let at = self.at;
        match self.op {
            Op::SumF | Op::Logs => put(out, at, Twofold::EMPTY.to_words()),
            Op::Extreme { .. } => out[at] = i64::MIN as u64,
            Op::ExtremeCount { .. } => put(out, at, [i64::MIN as u64, 0]),
            Op::Arg { .. } => put(out, at, [i64::MIN as u64, 0, presence::NONE]),
            _ => out[at..at + self.op.words()].fill(0),
        }
    }

    /// Lifts a row whose values may be missing. `out` holds this component's identity.
    pub fn lift(&self, row: impl Fn(usize) -> Option<u64>, out: &mut [u64]) {
        let at = self.at;
        if self.op == Op::Rows {
            out[at] = 1;
            return;
        }
        if let Op::Arg { min, by } = self.op {
            if let Some(key) = row(by) {
                let word = extreme_word(key, self.dtype, min) as u64;
                let of = row(self.col);
                let flag = if of.is_some() { VALUE } else { NULL };
                put(out, at, [word, of.unwrap_or(0), flag]);
            }
            return;
        }
        let Some(bits) = row(self.col) else { return };
        match self.op {
            Op::Count => out[at] = 1,
            Op::SumI => put_i128(out, at, i128::from(bits as i64)),
            Op::SumF => put(out, at, Twofold::new(f64::from_bits(bits) + 0.0).to_words()),
            Op::Logs => put(out, at, Twofold::new(self.log(bits)).to_words()),
            Op::Extreme { min } => out[at] = extreme_word(bits, self.dtype, min) as u64,
            Op::ExtremeCount { min } => {
                put(out, at, [extreme_word(bits, self.dtype, min) as u64, 1]);
            }
            Op::First | Op::Last => put(out, at, [bits, VALUE]),
            Op::SquaresF { .. } => put(out, at, squares_of_one(f64::from_bits(bits)).to_words()),
            Op::SquaresI { .. } | Op::Rows | Op::Arg { .. } => {}
        }
    }

    /// `out := a ⊗ b`, `a` older.
    pub fn combine(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        let at = self.at;
        match self.op {
            Op::Rows | Op::Count => out[at] = a[at].wrapping_add(b[at]),
            Op::SumI => put_i128(out, at, get_i128(a, at).wrapping_add(get_i128(b, at))),
            Op::SumF | Op::Logs => {
                let sum = Twofold::from_words(&a[at..]).combine(Twofold::from_words(&b[at..]));
                put(out, at, sum.to_words());
            }
            Op::Extreme { .. } => out[at] = (a[at] as i64).max(b[at] as i64) as u64,
            Op::ExtremeCount { .. } => put(out, at, more_extreme(a, b, at)),
            Op::Arg { .. } => {
                let younger = b[at + 2] != presence::NONE
                    && (a[at + 2] == presence::NONE || (b[at] as i64) > (a[at] as i64));
                let from = if younger { b } else { a };
                out[at..at + 3].copy_from_slice(&from[at..at + 3]);
            }
            Op::First => {
                let from = if a[at + 1] == VALUE { a } else { b };
                out[at..at + 2].copy_from_slice(&from[at..at + 2]);
            }
            Op::Last => {
                let from = if b[at + 1] == VALUE { b } else { a };
                out[at..at + 2].copy_from_slice(&from[at..at + 2]);
            }
            Op::SquaresF { n, sum } => {
                put(out, at, squares(a, b, at, n, || mean_gap_f(a, b, n, sum)));
            }
            Op::SquaresI { n, sum } => {
                put(out, at, squares(a, b, at, n, || mean_gap_i(a, b, n, sum)));
            }
        }
    }

    /// `out := rest`, where `whole` is `oldest ⊗ rest`; `left` says whether any value of
    /// its column is left. `out` holds the rest of the components before this one.
    pub fn inverse(&self, whole: &[u64], oldest: &[u64], left: bool, out: &mut [u64]) {
        let at = self.at;
        match self.op {
            Op::Rows | Op::Count => out[at] = whole[at].wrapping_sub(oldest[at]),
            Op::SumI => {
                put_i128(
                    out,
                    at,
                    get_i128(whole, at).wrapping_sub(get_i128(oldest, at)),
                );
            }
            _ if !left => self.identity(out),
            Op::SumF | Op::Logs => {
                let (whole, oldest) = (Twofold::from_words(&whole[at..]), &oldest[at..]);
                put(
                    out,
                    at,
                    whole.without(Twofold::from_words(oldest)).to_words(),
                );
            }
            Op::SquaresF { n, sum } => {
                let rest = squares_left(whole, oldest, out, at, n, || {
                    mean_gap_f(oldest, out, n, sum)
                });
                put(out, at, rest);
            }
            Op::SquaresI { n, sum } => {
                let rest = squares_left(whole, oldest, out, at, n, || {
                    mean_gap_i(oldest, out, n, sum)
                });
                put(out, at, rest);
            }
            _ => unreachable!("extremes and places have no inverse"),
        }
    }

    /// Whether [`Component::inverse`] takes this partial out again.
    pub fn undoes(&self, partial: &[u64]) -> bool {
        match self.op {
            Op::SumF | Op::Logs | Op::SquaresF { .. } | Op::SquaresI { .. } => {
                Twofold::from_words(&partial[self.at..]).is_finite()
            }
            _ => true,
        }
    }

    /// Folds a run of complete rows. `out` already holds the fold of the components
    /// before this one, which [`Op::SquaresF`] and [`Op::SquaresI`] read.
    pub fn fold<R: AsRef<[u64]>>(&self, rows: &[R], out: &mut [u64]) {
        let at = self.at;
        let column = rows.iter().map(|row| row.as_ref()[self.col]);
        match self.op {
            Op::Rows | Op::Count => out[at] = rows.len() as u64,
            Op::SumI => put_i128(out, at, column.map(|bits| i128::from(bits as i64)).sum()),
            Op::SumF => {
                let sum = Twofold::fold(column.map(f64::from_bits));
                put(
                    out,
                    at,
                    Twofold {
                        sum: sum.sum + 0.0,
                        ..sum
                    }
                    .to_words(),
                );
            }
            Op::Logs => {
                let logs = Twofold::fold(column.map(|bits| self.log(bits)));
                put(out, at, logs.to_words());
            }
            Op::Extreme { min } => {
                let words = column.map(|bits| extreme_word(bits, self.dtype, min));
                out[at] = words.fold(i64::MIN, i64::max) as u64;
            }
            Op::SquaresF { n, sum } => {
                let mean = Twofold::from_words(&out[sum..]).value() / out[n] as f64;
                let values = column.map(|bits| f64::from_bits(bits) - mean);
                put(out, at, squares_about(values, out[n]).to_words());
            }
            Op::SquaresI { n, sum } => {
                let pivot = get_i128(out, sum) / i128::from(out[n]);
                let values = column.map(|bits| (i128::from(bits as i64) - pivot) as f64);
                put(out, at, squares_about(values, out[n]).to_words());
            }
            Op::ExtremeCount { .. } | Op::Arg { .. } => self.fold_one_by_one(rows, out),
            Op::First => put(out, at, [rows[0].as_ref()[self.col], VALUE]),
            Op::Last => put(out, at, [rows[rows.len() - 1].as_ref()[self.col], VALUE]),
        }
    }

    fn fold_one_by_one<R: AsRef<[u64]>>(&self, rows: &[R], out: &mut [u64]) {
        let mut acc = [0; 3];
        let mut one = [0; 3];
        let local = Self { at: 0, ..*self };
        local.identity(&mut acc);
        for row in rows {
            local.lift(|col| Some(row.as_ref()[col]), &mut one);
            let older = acc;
            local.combine(&older, &one, &mut acc);
        }
        let words = self.op.words();
        out[self.at..self.at + words].copy_from_slice(&acc[..words]);
    }

    fn log(&self, bits: u64) -> f64 {
        let value = match self.dtype {
            DType::F64 => f64::from_bits(bits),
            _ => bits as i64 as f64,
        };
        value.ln() + 0.0
    }

    /// Whether two foldings of the same rows must agree in every word.
    pub fn exact(&self) -> bool {
        !matches!(
            self.op,
            Op::SumF | Op::Logs | Op::SquaresF { .. } | Op::SquaresI { .. }
        )
    }
}

fn more_extreme(a: &[u64], b: &[u64], at: usize) -> [u64; 2] {
    let (left, right) = (a[at] as i64, b[at] as i64);
    match left.cmp(&right) {
        std::cmp::Ordering::Greater => [a[at], a[at + 1]],
        std::cmp::Ordering::Less => [b[at], b[at + 1]],
        std::cmp::Ordering::Equal => [a[at], a[at + 1].wrapping_add(b[at + 1])],
    }
}

/// A single value is no distance from its own mean, unless that distance is undefined.
fn squares_of_one(value: f64) -> Twofold {
    Twofold::new(if value.is_finite() { 0.0 } else { f64::NAN })
}

/// Chan's update: squares of both sides plus the part between their means.
fn squares(a: &[u64], b: &[u64], at: usize, n: usize, mean_gap: impl FnOnce() -> f64) -> [u64; 2] {
    if a[n] == 0 {
        return [b[at], b[at + 1]];
    }
    if b[n] == 0 {
        return [a[at], a[at + 1]];
    }
    let (count_a, count_b) = (a[n] as f64, b[n] as f64);
    let gap = mean_gap();
    let between = gap * (gap * (count_a / (count_a + count_b) * count_b));
    let within = Twofold::from_words(&a[at..]).combine(Twofold::from_words(&b[at..]));
    within.plus(between).to_words()
}

/// [`squares`] backwards: what is left of the whole without `oldest` and without the part
/// between its mean and that of the rest, of which `rest` holds count and sum.
fn squares_left(
    whole: &[u64],
    oldest: &[u64],
    rest: &[u64],
    at: usize,
    n: usize,
    mean_gap: impl FnOnce() -> f64,
) -> [u64; 2] {
    if oldest[n] == 0 {
        return [whole[at], whole[at + 1]];
    }
    let (count, left) = (oldest[n] as f64, rest[n] as f64);
    let gap = mean_gap();
    let between = gap * (gap * (count / (count + left) * left));
    let within = Twofold::from_words(&whole[at..]).without(Twofold::from_words(&oldest[at..]));
    let squares = within.plus(-between);
    if squares.value() < 0.0 || left == 1.0 {
        return Twofold::new(0.0).to_words();
    }
    squares.to_words()
}

/// mean(b) − mean(a), through `n_a·sum_b − n_b·sum_a` in twofold arithmetic: equal large
/// means cancel exactly.
fn mean_gap_f(a: &[u64], b: &[u64], n: usize, sum: usize) -> f64 {
    let (count_a, count_b) = (a[n] as f64, b[n] as f64);
    let (sum_a, sum_b) = (
        Twofold::from_words(&a[sum..]),
        Twofold::from_words(&b[sum..]),
    );
    let (high_b, low_b) = two_product(sum_b.sum, count_a);
    let (high_a, low_a) = two_product(sum_a.sum, count_b);
    let (high, low) = two_sum(high_b, -high_a);
    let rest = low + (low_b - low_a) + (sum_b.error * count_a - sum_a.error * count_b);
    let exact = (high + rest) / count_a / count_b;
    if exact.is_finite() {
        return exact;
    }
    sum_b.value() / count_b - sum_a.value() / count_a
}

/// The same from exact integer sums; the products fit for fewer than 2³² values.
fn mean_gap_i(a: &[u64], b: &[u64], n: usize, sum: usize) -> f64 {
    let cross_b = get_i128(b, sum).wrapping_mul(i128::from(a[n]));
    let cross_a = get_i128(a, sum).wrapping_mul(i128::from(b[n]));
    cross_b.wrapping_sub(cross_a) as f64 / a[n] as f64 / b[n] as f64
}

/// Two passes over a run: distances from (nearly) the mean, corrected by what they sum to.
fn squares_about(distances: impl Iterator<Item = f64>, count: u64) -> Twofold {
    let (mut first, mut second) = (Twofold::new(0.0), Twofold::new(0.0));
    for distance in distances {
        first = first.plus(distance);
        second = second.plus(distance * distance);
    }
    let drift = first.value();
    let corrected = second.plus(-(drift * drift) / count as f64);
    if corrected.value() < 0.0 {
        return Twofold::new(0.0);
    }
    corrected
}

fn put<const W: usize>(out: &mut [u64], at: usize, words: [u64; W]) {
    out[at..at + W].copy_from_slice(&words);
}

pub fn get_i128(words: &[u64], at: usize) -> i128 {
    ((u128::from(words[at + 1]) << 64) | u128::from(words[at])) as i128
}

fn put_i128(out: &mut [u64], at: usize, value: i128) {
    put(out, at, [value as u64, ((value as u128) >> 64) as u64]);
}
