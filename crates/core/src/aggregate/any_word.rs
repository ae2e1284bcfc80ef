//! One monoid for all words: the sums, the minimum, the maximum.
//!
//! The aggregation is chosen at run time, by a branch that always goes the same way. So
//! every structure that [`plan_fewest`](super::plan_fewest) plans is compiled once for this
//! monoid, and not three times for the monoids of [`word`](super::word).

use super::column::Column;
use super::twofold::Twofold;
use super::widening::{self, Erased};
use super::word::{Extreme, SumF64, SumI64, Top};
use super::{AggSpec, Aggregation, Answer, BatchVisitor, Cell, DType, Kind, Visitor};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};

/// The sum of int64 or float64, or an extreme of either.
#[derive(Clone, Copy, Debug)]
pub enum AnyWord {
    SumI64,
    SumF64,
    Extreme(Extreme),
}

/// A partial of any of them, as bits.
type WordPartial = [u64; 2];

impl AnyWord {
    /// The word for a request, if there is one.
    pub fn of(aggs: &[AggSpec], dtypes: &[DType]) -> Option<Self> {
        let ([only], [dtype]) = (aggs, dtypes) else {
            return None;
        };
        match (only.kind, *dtype) {
            (Kind::Sum, DType::I64) => Some(Self::SumI64),
            (Kind::Sum, DType::F64) => Some(Self::SumF64),
            (Kind::Min | Kind::Max, dtype) => Some(Self::Extreme(Extreme {
                dtype,
                min: only.kind == Kind::Min,
            })),
            _ => None,
        }
    }

    /// Gives a visitor the specialised monoid.
    pub fn visit<T, V: Visitor<T>>(self, visitor: V) -> V::Out {
        match self {
            Self::SumI64 => visitor.visit(SumI64),
            Self::SumF64 => visitor.visit(SumF64),
            Self::Extreme(extreme) => visitor.visit(extreme),
        }
    }

    #[inline]
    fn integer(bits: WordPartial) -> i128 {
        i128::from(bits[1] as i64) << 64 | i128::from(bits[0])
    }

    #[inline]
    fn of_integer(partial: i128) -> WordPartial {
        [partial as u64, (partial >> 64) as u64]
    }

    #[inline]
    fn top(bits: WordPartial) -> Top {
        Top {
            word: bits[0] as i64,
            any: bits[1] != 0,
        }
    }

    #[inline]
    fn of_top(partial: Top) -> WordPartial {
        [partial.word as u64, u64::from(partial.any)]
    }

    /// An entry of one of them.
    fn of_entry<M: Monoid>(
        entry: Entry<M>,
        value: impl FnOnce(M::In) -> i64,
        partial: impl FnOnce(M::Partial) -> WordPartial,
    ) -> Entry<Self> {
        match entry {
            Entry::Raw(raw) => Entry::Raw(value(raw)),
            Entry::Lifted(lifted) => Entry::Lifted(partial(lifted)),
        }
    }
}

/// A batch of another monoid over values of the same size.
fn recast<M: Monoid, N: Monoid>(
    batch: Batch<M>,
    value: impl Fn(M::In) -> N::In,
    partial: impl Fn(M::Partial) -> N::Partial,
) -> Batch<N> {
    let lifted = batch.lifted.into_iter();
    Batch {
        times: batch.times,
        values: batch.values.into_iter().map(value).collect(),
        lifted: lifted.map(|(at, lifted)| (at, partial(lifted))).collect(),
    }
}

fn float(value: i64) -> f64 {
    f64::from_bits(value as u64)
}

fn of_float(value: f64) -> i64 {
    value.to_bits() as i64
}

fn twofold(bits: WordPartial) -> Twofold {
    Twofold::from_words(&bits)
}

impl Monoid for AnyWord {
    /// The bits of a float, where it is one.
    type In = i64;
    type Partial = WordPartial;
    const SMALL: usize = 16;

    #[inline]
    fn commutative(&self) -> bool {
        true
    }
    #[inline]
    fn identity(&self) -> WordPartial {
        match self {
            Self::SumI64 => [0; 2],
            Self::SumF64 => Twofold::EMPTY.to_words(),
            Self::Extreme(extreme) => Self::of_top(extreme.identity()),
        }
    }
    #[inline]
    fn lift(&self, value: &i64) -> WordPartial {
        match self {
            Self::SumI64 => Self::of_integer(SumI64.lift(value)),
            Self::SumF64 => Twofold::new(float(*value)).to_words(),
            Self::Extreme(extreme) => Self::of_top(extreme.lift(value)),
        }
    }
    #[inline]
    fn combine(&self, a: &WordPartial, b: &WordPartial) -> WordPartial {
        match self {
            Self::SumI64 => Self::of_integer(Self::integer(*a).wrapping_add(Self::integer(*b))),
            Self::SumF64 => twofold(*a).combine(twofold(*b)).to_words(),
            Self::Extreme(extreme) => Self::of_top(extreme.combine(&Self::top(*a), &Self::top(*b))),
        }
    }
    fn unlift(&self, partial: WordPartial) -> Result<i64, WordPartial> {
        let value = match self {
            Self::SumI64 => SumI64.unlift(Self::integer(partial)).ok(),
            Self::SumF64 => SumF64.unlift(twofold(partial)).ok().map(of_float),
            Self::Extreme(extreme) => extreme.unlift(Self::top(partial)).ok(),
        };
        value.ok_or(partial)
    }
    fn same(&self, a: &WordPartial, b: &WordPartial) -> bool {
        match self {
            Self::SumI64 => SumI64.same(&Self::integer(*a), &Self::integer(*b)),
            Self::SumF64 => SumF64.same(&twofold(*a), &twofold(*b)),
            Self::Extreme(extreme) => extreme.same(&Self::top(*a), &Self::top(*b)),
        }
    }
    fn fold(&self, run: &[i64]) -> WordPartial {
        match self {
            Self::SumI64 => Self::of_integer(SumI64.fold(run)),
            Self::SumF64 => Twofold::fold(run.iter().map(|value| float(*value))).to_words(),
            Self::Extreme(extreme) => Self::of_top(extreme.fold(run)),
        }
    }
}

impl<T> Aggregation<T> for AnyWord {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match self {
            Self::SumI64 => Self::of_entry(SumI64.entry(row), |value| value, Self::of_integer),
            Self::SumF64 => Self::of_entry(SumF64.entry(row), of_float, Twofold::to_words),
            Self::Extreme(extreme) => {
                Self::of_entry(extreme.entry(row), |value| value, Self::of_top)
            }
        }
    }
    fn answers(&self, partial: &WordPartial, out: &mut Vec<Answer<T>>) {
        match self {
            Self::SumI64 => SumI64.answers(&Self::integer(*partial), out),
            Self::SumF64 => SumF64.answers(&twofold(*partial), out),
            Self::Extreme(extreme) => extreme.answers(&Self::top(*partial), out),
        }
    }
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        match self {
            Self::SumI64 => recast(
                SumI64.stage_columns(times, columns),
                |value| value,
                Self::of_integer,
            ),
            Self::SumF64 => recast(
                SumF64.stage_columns(times, columns),
                of_float,
                Twofold::to_words,
            ),
            Self::Extreme(extreme) => recast(
                extreme.stage_columns(times, columns),
                |value| value,
                Self::of_top,
            ),
        }
    }
    fn erase(&self, batch: Batch<Self>) -> Erased {
        let value = |one: &i64, out: &mut Vec<u64>| out.push(*one as u64);
        Erased::of_words(batch, Vec::new(), 1, value, |bits| bits.into())
    }
    fn widen(&self, entries: Erased, widened: &[bool]) -> widening::Result<Batch<Self>> {
        let same = |value: i64| value;
        match self {
            Self::SumI64 => entries.downcast(),
            Self::SumF64 => {
                let batch = Aggregation::<T>::widen(&SumF64, entries, widened)?;
                Ok(recast(batch, of_float, Twofold::to_words))
            }
            Self::Extreme(extreme) => {
                let batch = Aggregation::<T>::widen(extreme, entries, widened)?;
                Ok(recast(batch, same, Self::of_top))
            }
        }
    }
    fn hand_over<V: BatchVisitor<T>>(self, batch: Batch<Self>, visitor: V) -> V::Out {
        match self {
            Self::SumI64 => {
                visitor.visit_batch(SumI64, recast(batch, |value| value, Self::integer))
            }
            Self::SumF64 => visitor.visit_batch(SumF64, recast(batch, float, twofold)),
            Self::Extreme(extreme) => {
                visitor.visit_batch(extreme, recast(batch, |value| value, Self::top))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer over a row of partials, folded one by one and, if they have values, as a
    /// run.
    fn answers<A: Aggregation<i64>>(monoid: A, rows: &[Cell<i64>]) -> Vec<Answer<i64>> {
        let entries: Vec<Entry<A>> = rows
            .iter()
            .map(|row| monoid.entry(std::slice::from_ref(row)))
            .collect();
        let mut out = Vec::new();
        let mut acc = monoid.identity();
        let mut run = Vec::new();
        for entry in entries {
            acc = monoid.combine(&acc, &entry.partial(&monoid));
            monoid.answers(&acc, &mut out);
            match Entry::from_partial(&monoid, acc) {
                Entry::Raw(raw) => {
                    acc = monoid.lift(&raw);
                    run.push(raw);
                }
                Entry::Lifted(lifted) => acc = lifted,
            }
            monoid.answers(&monoid.fold(&run), &mut out);
        }
        out
    }

    #[test]
    fn a_word_answers_as_the_monoid_that_it_stands_for() {
        let integers = [7, -3, i64::MAX, i64::MAX, 0, i64::MIN].map(Cell::I64);
        let floats = [0.1, -0.0, 1e308, 1e308, f64::INFINITY, -2.5, f64::NAN].map(Cell::F64);
        for (dtype, mut rows) in [
            (DType::I64, integers.to_vec()),
            (DType::F64, floats.to_vec()),
        ] {
            rows.insert(0, Cell::Null);
            rows.insert(3, Cell::Null);
            for kind in [Kind::Sum, Kind::Min, Kind::Max] {
                let agg = AggSpec {
                    kind,
                    of: Some(0),
                    by: None,
                    ddof: 1,
                };
                let word = AnyWord::of(&[agg], &[dtype]).expect("a word");
                let expected = match word {
                    AnyWord::SumI64 => answers(SumI64, &rows),
                    AnyWord::SumF64 => answers(SumF64, &rows),
                    AnyWord::Extreme(extreme) => answers(extreme, &rows),
                };
                let shown = format!("{:?}", answers(word, &rows));
                assert_eq!(shown, format!("{expected:?}"), "{kind:?} of {dtype:?}");
            }
        }
    }
}
