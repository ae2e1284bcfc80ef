//! The most frequent aggregations, each with its own instantiation: the sum of integers,
//! the sum of floats, and one maximum for min and max of both.

use super::column::{Column, Values, stage_raw, stage_rows};
use super::packing::get_i128;
use super::twofold::Twofold;
use super::widening::{self, Erased};
use super::{Aggregation, Answer, Cell, DType, extreme_value, extreme_word};
use crate::batch::Batch;
use crate::monoid::{Entry, Invertible, Monoid, Selective};
use crate::snapshot::{Codec, Reader, Result, Writer};

/// Sum of int64: exact, in one 128-bit word.
///
/// The upper 32 bits count the values and the lower 96 hold their sum, so that one
/// addition carries both: "no values" differs from "sum 0", and no sum of 2³¹ values can
/// overflow before the answer is requested.
#[derive(Clone, Copy, Debug)]
pub struct SumI64;

const COUNT_SHIFT: u32 = 96;

impl SumI64 {
    #[inline]
    fn one(value: i64) -> i128 {
        (1 << COUNT_SHIFT) + i128::from(value)
    }

    /// The sum, and whether there is any value.
    #[inline]
    pub fn split(partial: i128) -> (i128, bool) {
        let sum = (partial << (128 - COUNT_SHIFT)) >> (128 - COUNT_SHIFT);
        (sum, partial != sum)
    }
}

impl Monoid for SumI64 {
    type In = i64;
    type Partial = i128;
    const SMALL: usize = 16;

    #[inline]
    fn commutative(&self) -> bool {
        true
    }
    #[inline]
    fn identity(&self) -> i128 {
        0
    }
    #[inline]
    fn lift(&self, value: &i64) -> i128 {
        Self::one(*value)
    }
    #[inline]
    fn combine(&self, a: &i128, b: &i128) -> i128 {
        a.wrapping_add(*b)
    }
    fn unlift(&self, partial: i128) -> std::result::Result<i64, i128> {
        match Self::split(partial) {
            (sum, true) => i64::try_from(sum).map_err(|_| partial),
            _ => Err(partial),
        }
    }
    fn same(&self, a: &i128, b: &i128) -> bool {
        let (a, b) = (Self::split(*a), Self::split(*b));
        a == b
    }

    /// Halves of 32 bits are summed in 64, which vectorises; a run is far shorter than
    /// the 2³² values that could overflow a half.
    fn fold(&self, run: &[i64]) -> i128 {
        let (mut low, mut high) = (0_u64, 0_u64);
        for &value in run {
            let biased = (value as u64) ^ (1 << 63);
            low += biased & 0xffff_ffff;
            high += biased >> 32;
        }
        let count = run.len() as i128;
        let sum = (i128::from(high) << 32) + i128::from(low) - (count << 63);
        (count << COUNT_SHIFT) + sum
    }
}

impl Invertible for SumI64 {
    const EXACT: bool = true;

    #[inline]
    fn inverse(&self, whole: &i128, oldest: &i128) -> i128 {
        whole.wrapping_sub(*oldest)
    }
}

impl<T> Aggregation<T> for SumI64 {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match row[0] {
            Cell::I64(value) => Entry::Raw(value),
            _ => Entry::Lifted(0),
        }
    }
    fn answers(&self, partial: &i128, out: &mut Vec<Answer<T>>) {
        out.push(match Self::split(*partial) {
            (_, false) => Answer::Null,
            (sum, true) => Answer::integer(sum),
        });
    }
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        match columns[0] {
            Column {
                values: Values::I64(values),
                validity: None,
            } => stage_raw(times, values.to_vec()),
            _ => stage_rows(self, times, columns),
        }
    }
    fn erase(&self, batch: Batch<Self>) -> Erased {
        let words = |sum: i128| [sum as u64, (sum >> 64) as u64].into();
        Erased::of_words(
            batch,
            Vec::new(),
            1,
            |one, out| out.push(*one as u64),
            words,
        )
    }
}

/// Sum of float64 with its rounding error beside it. See [`Twofold`].
#[derive(Clone, Copy, Debug)]
pub struct SumF64;

impl Monoid for SumF64 {
    /// Never −0.0: see [`Twofold`].
    type In = f64;
    type Partial = Twofold;
    const SMALL: usize = 16;

    #[inline]
    fn commutative(&self) -> bool {
        true
    }
    #[inline]
    fn identity(&self) -> Twofold {
        Twofold::EMPTY
    }
    #[inline]
    fn lift(&self, value: &f64) -> Twofold {
        Twofold::new(*value)
    }
    #[inline]
    fn combine(&self, a: &Twofold, b: &Twofold) -> Twofold {
        a.combine(*b)
    }
    #[inline]
    fn absorb(&self, acc: &mut Twofold, value: &f64) {
        *acc = acc.plus(*value);
    }
    fn unlift(&self, partial: Twofold) -> std::result::Result<f64, Twofold> {
        let endless = !partial.is_finite();
        let exact = !partial.is_empty() && (partial.error == 0.0 || endless);
        if exact { Ok(partial.sum) } else { Err(partial) }
    }
    fn same(&self, a: &Twofold, b: &Twofold) -> bool {
        a.is_empty() == b.is_empty()
    }
    fn fold(&self, run: &[f64]) -> Twofold {
        Twofold::fold_slice(run)
    }
}

impl<T> Aggregation<T> for SumF64 {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match row[0] {
            Cell::F64(value) => Entry::Raw(value + 0.0),
            _ => Entry::Lifted(Twofold::EMPTY),
        }
    }
    fn answers(&self, partial: &Twofold, out: &mut Vec<Answer<T>>) {
        out.push(if partial.is_empty() {
            Answer::Null
        } else {
            Answer::F64(partial.value())
        });
    }
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        match columns[0] {
            Column {
                values: Values::F64(values),
                validity: None,
            } => stage_raw(times, values.iter().map(|value| value + 0.0).collect()),
            _ => stage_rows(self, times, columns),
        }
    }
    fn widen(&self, entries: Erased, _widened: &[bool]) -> widening::Result<Batch<Self>> {
        let entry =
            |(sum, some)| Entry::from_partial(self, if some { sum } else { Twofold::EMPTY });
        entries.into_entries(
            |words| entry((widening::twofold(i128::from(words[0] as i64)), true)),
            |words, _| {
                let (sum, some) = SumI64::split(get_i128(words, 0));
                Ok(entry((widening::twofold(sum), some)))
            },
        )
    }
}

/// Min or max of int64 or float64: the maximum of order-preserving words.
#[derive(Clone, Copy, Debug)]
pub struct Extreme {
    pub dtype: DType,
    pub min: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    pub word: i64,
    pub any: bool,
}

impl Monoid for Extreme {
    type In = i64;
    type Partial = Top;
    const SMALL: usize = 16;

    #[inline]
    fn commutative(&self) -> bool {
        true
    }
    #[inline]
    fn identity(&self) -> Top {
        Top {
            word: i64::MIN,
            any: false,
        }
    }
    #[inline]
    fn lift(&self, value: &i64) -> Top {
        Top {
            word: *value,
            any: true,
        }
    }
    #[inline]
    fn combine(&self, a: &Top, b: &Top) -> Top {
        Top {
            word: a.word.max(b.word),
            any: a.any | b.any,
        }
    }
    fn unlift(&self, partial: Top) -> std::result::Result<i64, Top> {
        if partial.any {
            Ok(partial.word)
        } else {
            Err(partial)
        }
    }
    fn same(&self, a: &Top, b: &Top) -> bool {
        a == b
    }
    fn fold(&self, run: &[i64]) -> Top {
        Top {
            word: run.iter().copied().fold(i64::MIN, i64::max),
            any: !run.is_empty(),
        }
    }
}

impl Selective for Extreme {
    type Part = Top;

    #[inline]
    fn part(&self, _part: usize, partial: &Top) -> Top {
        *partial
    }
    #[inline]
    fn dominates(&self, _part: usize, younger: &Top, older: &Top) -> bool {
        younger.word >= older.word && younger.any >= older.any
    }
    #[inline]
    fn replace(&self, _part: usize, partial: &mut Top, by: &Top) {
        *partial = *by;
    }
}

impl<T> Aggregation<T> for Extreme {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match row[0].bits() {
            Some(bits) => Entry::Raw(extreme_word(bits, self.dtype, self.min)),
            None => Entry::Lifted(self.identity()),
        }
    }
    fn answers(&self, partial: &Top, out: &mut Vec<Answer<T>>) {
        out.push(if partial.any {
            Answer::of_bits(
                extreme_value(partial.word, self.dtype, self.min),
                self.dtype,
            )
        } else {
            Answer::Null
        });
    }
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        let word = |bits| extreme_word(bits, self.dtype, self.min);
        match columns[0] {
            Column {
                values: Values::I64(values),
                validity: None,
            } => stage_raw(
                times,
                values.iter().map(|value| word(*value as u64)).collect(),
            ),
            Column {
                values: Values::F64(values),
                validity: None,
            } => stage_raw(
                times,
                values.iter().map(|value| word(value.to_bits())).collect(),
            ),
            _ => stage_rows(self, times, columns),
        }
    }
    fn erase(&self, batch: Batch<Self>) -> Erased {
        let words = |top: Top| [top.word as u64, u64::from(top.any)].into();
        Erased::of_words(
            batch,
            Vec::new(),
            1,
            |one, out| out.push(*one as u64),
            words,
        )
    }
    fn widen(&self, entries: Erased, _widened: &[bool]) -> widening::Result<Batch<Self>> {
        let raw = |words: &[u64]| Entry::Raw(widening::word(words[0] as i64, self.min));
        entries.into_entries(raw, |words, _| {
            Ok(match words[1] {
                0 => Entry::Lifted(self.identity()),
                _ => raw(words),
            })
        })
    }
}

impl Codec for Top {
    const MIN_BYTES: usize = 9;
    fn write(&self, out: &mut Writer) {
        self.word.write(out);
        u8::from(self.any).write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            word: i64::read(input)?,
            any: u8::read(input)? != 0,
        })
    }
}
