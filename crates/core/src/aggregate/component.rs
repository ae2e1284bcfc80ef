//! The components of a record: small associative operations over a few words each.
//!
//! Algebraic aggregations come from distributive ones (SlickDeque §3.1): a mean is a sum
//! and a count. Several aggregations of one column share components.

use super::packing::presence::{self, NULL, VALUE};
use super::packing::{get_i128, put, put_i128};
use std::ops::Range;

use super::merges::{Distances, Place};
use super::moments::{
    Scaled, float, product, square, square_f, squares_left, squares_of_one, weighted,
};
use super::op::Op;
use super::run_moments::{self, Centred};
use super::sequences::{
    fall, gap, gap_between, join_changes, join_distinct, join_ends, join_rises, join_runs, key,
    last_distinct, rises_of_one, square_of_gap,
};
use super::twofold::Twofold;
use super::{DType, extreme_word};
use crate::simd::{SimdTask, dispatch_simd};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    pub op: Op,
    pub col: usize,
    /// Type of the column that the operation reads (`by` for [`Op::Arg`], [`Op::BestBy`]).
    pub dtype: DType,
    /// Offset of this component's first word.
    pub at: usize,
}

impl Component {
    /// Where its words are in a record.
    pub fn words(&self) -> Range<usize> {
        self.at..self.at + self.op.words()
    }

    pub fn identity(&self, out: &mut [u64]) {
        let at = self.at;
        match self.op {
            Op::SumF | Op::Logs | Op::Weighted { .. } => {
                put(out, at, Twofold::EMPTY.to_words());
            }
            Op::Extreme { .. } => out[at] = i64::MIN as u64,
            Op::ExtremeCount { .. } => put(out, at, [i64::MIN as u64, 0]),
            Op::Arg { .. } => put(out, at, [i64::MIN as u64, 0, presence::NONE]),
            Op::ProductI => put_i128(out, at, 1),
            Op::ProductF => put(out, at, Scaled::ONE.to_words()),
            Op::All => out[at] = 1,
            Op::Decay(decay) => decay.identity(out, at),
            Op::Area(_) => put(out, at, Twofold::EMPTY.to_words()),
            Op::BitAnd | Op::Gap { min: true, .. } => out[at] = u64::MAX,
            _ => out[self.words()].fill(0),
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
            Op::ProductI => put_i128(out, at, i128::from(bits as i64)),
            Op::ProductF => put(out, at, Scaled::new(f64::from_bits(bits)).to_words()),
            Op::SumSquaresI => put_i128(out, at, square(bits)),
            Op::SumSquaresF => put(out, at, square_f(bits).to_words()),
            Op::Any | Op::All => out[at] = u64::from(self.is_true(bits)),
            Op::BitAnd | Op::BitOr | Op::BitXor => out[at] = bits,
            Op::Third { .. } | Op::Fourth { .. } => {
                put(out, at, squares_of_one(self.float(bits)).to_words());
            }
            Op::Products { by, by_float, .. } => {
                let other = row(by).map_or(0.0, |bits| float(bits, by_float));
                let both = squares_of_one(self.float(bits)).plus(squares_of_one(other).sum);
                put(out, at, both.to_words());
            }
            Op::Weighted { by, by_float } => {
                let Some(weight) = row(by) else { return };
                let product = weighted((bits, self.dtype == DType::F64), (weight, by_float));
                put(out, at, product.to_words());
            }
            Op::Decay(decay) => decay.lift(self.float(bits), row(decay.by), out, at),
            Op::DecayedSquares(_) => {
                put(out, at, squares_of_one(self.float(bits)).to_words());
            }
            Op::Area(_) => put(out, at, Twofold::new(0.0).to_words()),
            Op::Best { min, .. } => {
                put(out, at, [1, extreme_word(bits, self.dtype, min) as u64]);
            }
            Op::Rises => put(out, at, rises_of_one(bits, self.dtype)),
            Op::Changes => {
                let key = key(bits, self.dtype);
                put(out, at, [0, key, key, VALUE]);
            }
            Op::Ends { .. } => put(out, at, [1, bits]),
            Op::LastDistinct { .. } => put(out, at, [1, key(bits, self.dtype)]),
            Op::Run => put(
                out,
                at,
                [[1, 0, 0, 0], [1; 4]][usize::from(self.is_true(bits))],
            ),
            Op::Bins(edges) => out[at + edges.bin(bits, self.dtype)] = 1,
            Op::BestBy { min, by, .. } => {
                let Some(key) = row(by) else { return };
                put(
                    out,
                    at,
                    [1, extreme_word(key, self.dtype, min) as u64, bits],
                );
            }
            Op::Fall { .. } => {
                let [greatest, least] =
                    [false, true].map(|min| extreme_word(bits, self.dtype, min));
                out[at] = fall(greatest as u64, least as u64, self.dtype);
            }
            Op::SquaresI { .. }
            | Op::Rows
            | Op::Arg { .. }
            | Op::Gap { .. }
            | Op::GapSquares { .. } => {}
        }
    }

    fn float(&self, bits: u64) -> f64 {
        float(bits, self.dtype == DType::F64)
    }

    /// Whether a number is true: all but zero are, NaN included.
    fn is_true(&self, bits: u64) -> bool {
        self.float(bits) != 0.0
    }

    /// `out := a ⊗ b`; `a` is earlier.
    pub fn combine(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        dispatch_simd(Combine(std::slice::from_ref(self), [a, b], out));
    }

    /// The same, with what the components before it found of `a` and `b`.
    #[inline(always)]
    fn combine_with(&self, a: &[u64], b: &[u64], out: &mut [u64], distances: &mut Distances) {
        let at = self.at;
        match self.op {
            Op::Rows | Op::Count => out[at] = a[at].wrapping_add(b[at]),
            Op::SumI => put_i128(out, at, get_i128(a, at).wrapping_add(get_i128(b, at))),
            Op::SumF | Op::Logs | Op::Weighted { .. } => {
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
            Op::ProductI => put_i128(out, at, product(get_i128(a, at), get_i128(b, at))),
            Op::ProductF => {
                let (a, b) = (Scaled::from_words(&a[at..]), Scaled::from_words(&b[at..]));
                put(out, at, a.times(b).to_words());
            }
            Op::SumSquaresI => {
                put_i128(out, at, get_i128(a, at).saturating_add(get_i128(b, at)));
            }
            Op::SumSquaresF => {
                let (a, b) = (Twofold::from_words(&a[at..]), Twofold::from_words(&b[at..]));
                put(out, at, a.combine(b).to_words());
            }
            Op::Any | Op::BitOr => out[at] = a[at] | b[at],
            Op::All | Op::BitAnd => out[at] = a[at] & b[at],
            Op::BitXor => out[at] = a[at] ^ b[at],
            Op::SquaresF { n, .. }
            | Op::SquaresI { n, .. }
            | Op::Third { n, .. }
            | Op::Fourth { n, .. }
            | Op::Products { n, .. } => {
                let moment = match (a[n], b[n]) {
                    (0, _) => Twofold::from_words(&b[at..]),
                    (_, 0) => Twofold::from_words(&a[at..]),
                    _ => self.joined_moment([a, b], distances),
                };
                put(out, at, moment.to_words());
            }
            Op::Best { k, .. } => merge_best::<1>(&a[at..], &b[at..], k, &mut out[at..]),
            Op::BestBy { k, .. } => merge_best::<2>(&a[at..], &b[at..], k, &mut out[at..]),
            Op::LastDistinct { k } => {
                join_distinct(&a[at..], &b[at..], k as usize, &mut out[at..]);
            }
            Op::Run => join_runs(&a[at..], &b[at..], &mut out[at..]),
            Op::Bins(_) => {
                for word in self.words() {
                    out[word] = a[word].wrapping_add(b[word]);
                }
            }
            Op::Decay(decay) => decay.combine(a, b, out, at),
            Op::DecayedSquares(squares) => {
                put(out, at, squares.joined(a, b, at).to_words());
            }
            Op::Area(area) => {
                let float = self.dtype == DType::F64;
                put(out, at, area.joined(a, b, at, float).to_words());
            }
            Op::Rises => join_rises(&a[at..], &b[at..], self.dtype, &mut out[at..]),
            Op::Changes => join_changes(&a[at..], &b[at..], &mut out[at..]),
            Op::Fall { n, max, min } => {
                out[at] = match (a[n], b[n]) {
                    (0, _) => b[at],
                    (_, 0) => a[at],
                    _ => fall(a[max], b[min], self.dtype).max(a[at]).max(b[at]),
                }
            }
            Op::Gap { min, first, last } => {
                let within = if min {
                    a[at].min(b[at])
                } else {
                    a[at].max(b[at])
                };
                out[at] = match gap_between(a, b, first, last) {
                    Some(gap) if min => gap.min(within),
                    Some(gap) => gap.max(within),
                    None => within,
                };
            }
            Op::GapSquares { first, last } => {
                let between = gap_between(a, b, first, last).map_or(0, square_of_gap);
                let within = [a, b].map(|side| get_i128(side, at) as u128);
                let sum = within[0].saturating_add(within[1]).saturating_add(between);
                put_i128(out, at, sum as i128);
            }
            Op::Ends { k, last } => {
                join_ends(&a[at..], &b[at..], k as usize, last, &mut out[at..]);
            }
        }
    }

    /// `acc := acc ⊗ row`, for a complete row: equals [`Self::lift`] and [`Self::combine`]
    /// without the partial between them. For operations that [`Op::absorbs`].
    #[inline]
    pub fn absorb(&self, acc: &mut [u64], row: &[u64]) {
        let at = self.at;
        let bits = row[self.col];
        match self.op {
            Op::Rows | Op::Count => acc[at] = acc[at].wrapping_add(1),
            Op::SumI => {
                let sum = get_i128(acc, at).wrapping_add(i128::from(bits as i64));
                put_i128(acc, at, sum);
            }
            Op::SumF => {
                let value = f64::from_bits(bits) + 0.0;
                let sum = Twofold::from_words(&acc[at..]).plus(value);
                put(acc, at, sum.to_words());
            }
            Op::Extreme { min } => {
                let word = extreme_word(bits, self.dtype, min);
                acc[at] = (acc[at] as i64).max(word) as u64;
            }
            Op::First if acc[at + 1] == VALUE => {}
            Op::First | Op::Last => put(acc, at, [bits, VALUE]),
            Op::Any => acc[at] |= u64::from(self.is_true(bits)),
            Op::All => acc[at] &= u64::from(self.is_true(bits)),
            Op::BitAnd => acc[at] &= bits,
            Op::BitOr => acc[at] |= bits,
            Op::BitXor => acc[at] ^= bits,
            _ => unreachable!("{:?} reads other words", self.op),
        }
    }

    /// `out := rest`, where `whole` is `oldest ⊗ rest`; `left` is whether any value of the
    /// column remains. `out` already holds the rest of the components before this one.
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
            Op::BitXor => out[at] = whole[at] ^ oldest[at],
            Op::Bins(_) => {
                for word in self.words() {
                    out[word] = whole[word].wrapping_sub(oldest[word]);
                }
            }
            _ if !left => self.identity(out),
            // What has saturated stays so, and the rest is folded anew.
            Op::SumSquaresI => match get_i128(whole, at) {
                i128::MAX => put_i128(out, at, i128::MAX),
                whole => put_i128(out, at, whole - get_i128(oldest, at)),
            },
            Op::SumF | Op::SumSquaresF | Op::Logs => {
                let (whole, oldest) = (Twofold::from_words(&whole[at..]), &oldest[at..]);
                put(
                    out,
                    at,
                    whole.without(Twofold::from_words(oldest)).to_words(),
                );
            }
            Op::SquaresF { n, sum } | Op::SquaresI { n, sum } => {
                let floats = matches!(self.op, Op::SquaresF { .. });
                let rest = squares_left(whole, oldest, out, at, (n, sum), floats);
                put(out, at, rest);
            }
            _ => unreachable!("extremes and places have no inverse"),
        }
    }

    /// Whether [`Component::inverse`] can remove this partial.
    pub fn undoes(&self, partial: &[u64]) -> bool {
        match self.op {
            Op::SumF | Op::SumSquaresF | Op::Logs | Op::SquaresF { .. } | Op::SquaresI { .. } => {
                Twofold::from_words(&partial[self.at..]).is_finite()
            }
            Op::SumSquaresI => get_i128(partial, self.at) != i128::MAX,
            _ => true,
        }
    }

    /// Whether these words are a valid partial, so that no combine fails on them.
    pub fn can_hold(&self, partial: &[u64]) -> bool {
        match self.op {
            Op::Best { k, .. }
            | Op::BestBy { k, .. }
            | Op::Ends { k, .. }
            | Op::LastDistinct { k } => partial[self.at] <= u64::from(k),
            _ => true,
        }
    }

    /// A central moment of two parts that are not empty.
    #[inline(always)]
    fn joined_moment(&self, sides: [&[u64]; 2], distances: &mut Distances) -> Twofold {
        let floats = self.dtype == DType::F64;
        let (Op::SquaresF { n, sum }
        | Op::SquaresI { n, sum }
        | Op::Third { n, sum, .. }
        | Op::Fourth { n, sum, .. }
        | Op::Products { n, sum, .. }) = self.op
        else {
            unreachable!("no moment")
        };
        let distance = distances.of(sides, Place { n, sum, floats });
        match self.op {
            Op::Third { squares, .. } => distance.thirds(sides, self.at, squares),
            Op::Fourth { squares, third, .. } => distance.fourths(sides, self.at, squares, third),
            Op::Products {
                by_sum, by_float, ..
            } => {
                let place = Place {
                    n,
                    sum: by_sum,
                    floats: by_float,
                };
                let other = distances.of(sides, place);
                distance.products(&other, sides, self.at)
            }
            _ => distance.squares(sides, self.at),
        }
    }

    /// The column of a run; `out` holds its count and its sum.
    fn centred(&self, out: &[u64], (n, sum): (usize, usize)) -> Centred {
        Centred::new((self.col, self.dtype == DType::F64), out, (n, sum))
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
                let sum = Twofold::fold_rows(rows, |row| f64::from_bits(row.as_ref()[self.col]));
                put(out, at, sum.of_some().to_words());
            }
            Op::Logs => {
                let logs = Twofold::fold(column.map(|bits| self.log(bits)));
                put(out, at, logs.to_words());
            }
            Op::Extreme { min } => {
                let words = column.map(|bits| extreme_word(bits, self.dtype, min));
                out[at] = words.fold(i64::MIN, i64::max) as u64;
            }
            Op::SquaresF { n, sum } | Op::SquaresI { n, sum } => {
                let squares = run_moments::squares(rows, self.centred(out, (n, sum)));
                put(out, at, squares.to_words());
            }
            Op::Third { n, sum, .. } => {
                let moment = run_moments::third(rows, self.centred(out, (n, sum)));
                put(out, at, moment.to_words());
            }
            Op::Fourth { n, sum, .. } => {
                let moment = run_moments::fourth(rows, self.centred(out, (n, sum)));
                put(out, at, moment.to_words());
            }
            Op::Products {
                n,
                sum,
                by,
                by_sum,
                by_float,
            } => {
                let x = self.centred(out, (n, sum));
                let y = Centred::new((by, by_float), out, (n, by_sum));
                put(out, at, run_moments::products(rows, x, y).to_words());
            }
            Op::Weighted { by, by_float } => {
                let weighted = rows.iter().map(|row| {
                    let row = row.as_ref();
                    weighted(
                        (row[self.col], self.dtype == DType::F64),
                        (row[by], by_float),
                    )
                });
                let sum = weighted.fold(Twofold::EMPTY, Twofold::combine);
                put(out, at, sum.to_words());
            }
            Op::Decay(decay) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let rows = rows.map(|row| (self.float(row[self.col]), row[decay.by]));
                decay.fold(rows, out, at);
            }
            Op::DecayedSquares(squares) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let rows = rows.map(|row| (self.float(row[self.col]), row[squares.of.by]));
                put(out, at, squares.fold(rows, out).to_words());
            }
            Op::Area(area) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let rows = rows.map(|row| (row[self.col], row[area.by]));
                let float = self.dtype == DType::F64;
                put(out, at, area.fold(rows, float).to_words());
            }
            Op::BitAnd => out[at] = column.fold(u64::MAX, |all, bits| all & bits),
            Op::BitOr => out[at] = column.fold(0, |all, bits| all | bits),
            Op::BitXor => out[at] = column.fold(0, |all, bits| all ^ bits),
            Op::Any => out[at] = u64::from(column.into_iter().any(|bits| self.is_true(bits))),
            Op::All => out[at] = u64::from(column.into_iter().all(|bits| self.is_true(bits))),
            Op::ExtremeCount { .. }
            | Op::Arg { .. }
            | Op::ProductI
            | Op::ProductF
            | Op::SumSquaresI
            | Op::SumSquaresF
            | Op::Best { .. }
            | Op::BestBy { .. }
            | Op::Rises
            | Op::Run
            | Op::Changes => self.fold_one_by_one(rows, out),
            Op::Gap { min, .. } => {
                let gaps = column.clone().zip(column.skip(1)).map(|(a, b)| gap(a, b));
                let most = if min { gaps.min() } else { gaps.max() };
                out[at] = most.unwrap_or(out[at]);
            }
            Op::GapSquares { .. } => {
                let gaps = column.clone().zip(column.skip(1));
                let squares = gaps.map(|(a, b)| square_of_gap(gap(a, b)));
                put_i128(out, at, squares.fold(0, u128::saturating_add) as i128);
            }
            Op::Fall { .. } => out[at] = self.greatest_fall(column),
            Op::Ends { k, last } => {
                let count = rows.len().min(k as usize);
                let from = if last { rows.len() - count } else { 0 };
                out[at] = count as u64;
                for (word, bits) in out[at + 1..].iter_mut().zip(column.skip(from).take(count)) {
                    *word = bits;
                }
            }
            Op::LastDistinct { k } => {
                let latest = column.rev().map(|bits| key(bits, self.dtype));
                last_distinct(latest, k as usize, &mut out[at..]);
            }
            Op::Bins(edges) => {
                out[self.words()].fill(0);
                column.for_each(|bits| out[at + edges.bin(bits, self.dtype)] += 1);
            }
            Op::First => put(out, at, [rows[0].as_ref()[self.col], VALUE]),
            Op::Last => put(out, at, [rows[rows.len() - 1].as_ref()[self.col], VALUE]),
        }
    }

    fn fold_one_by_one<R: AsRef<[u64]>>(&self, rows: &[R], out: &mut [u64]) {
        let words = self.op.words();
        let (mut acc, mut one) = (vec![0; words], vec![0; words]);
        let local = Self { at: 0, ..*self };
        local.identity(&mut acc);
        for row in rows {
            local.lift(|col| Some(row.as_ref()[col]), &mut one);
            let older = acc.clone();
            local.combine(&older, &one, &mut acc);
        }
        out[self.at..self.at + words].copy_from_slice(&acc);
    }

    fn greatest_fall(&self, column: impl Iterator<Item = u64>) -> u64 {
        let (mut greatest, mut most) = (i64::MIN, 0);
        for bits in column {
            greatest = greatest.max(extreme_word(bits, self.dtype, false));
            let least = extreme_word(bits, self.dtype, true);
            most = fall(greatest as u64, least as u64, self.dtype).max(most);
        }
        most
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
        let rounds = self.op == Op::Rises && self.dtype == DType::F64;
        !rounds
            && !matches!(
                self.op,
                Op::SumF
                    | Op::Logs
                    | Op::SquaresF { .. }
                    | Op::SquaresI { .. }
                    | Op::ProductF
                    | Op::SumSquaresF
                    | Op::Third { .. }
                    | Op::Fourth { .. }
                    | Op::Products { .. }
                    | Op::Weighted { .. }
                    | Op::Decay(_)
                    | Op::DecayedSquares(_)
                    | Op::Area(_)
            )
    }
}

/// `out := a ⊗ b`, component by component.
pub struct Combine<'a>(pub &'a [Component], pub [&'a [u64]; 2], pub &'a mut [u64]);

impl SimdTask for Combine<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self(components, [a, b], out) = self;
        let mut distances = Distances::default();
        for component in components {
            component.combine_with(a, b, out, &mut distances);
        }
    }
}

/// Merges two lists of items of `N` words, the largest first word first, into the `k` largest
/// of both; of equal ones those of `a` come first.
fn merge_best<const N: usize>(a: &[u64], b: &[u64], k: u32, out: &mut [u64]) {
    let k = k as usize;
    let items = |words: &'_ [u64]| 1..1 + N * words[0] as usize;
    let (mut left, mut right) = (&a[items(a)], &b[items(b)]);
    let mut count = 0;
    while count < k {
        let older = match (left.first(), right.first()) {
            (Some(a), Some(b)) => *a as i64 >= *b as i64,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        let from = if older { &mut left } else { &mut right };
        let (item, rest) = from.split_at(N);
        out[1 + N * count..][..N].copy_from_slice(item);
        *from = rest;
        count += 1;
    }
    out[0] = count as u64;
    out[1 + N * count..1 + N * k].fill(0);
}

fn more_extreme(a: &[u64], b: &[u64], at: usize) -> [u64; 2] {
    let (left, right) = (a[at] as i64, b[at] as i64);
    match left.cmp(&right) {
        std::cmp::Ordering::Greater => [a[at], a[at + 1]],
        std::cmp::Ordering::Less => [b[at], b[at + 1]],
        std::cmp::Ordering::Equal => [a[at], a[at + 1].wrapping_add(b[at + 1])],
    }
}
