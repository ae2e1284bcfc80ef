//! Converts the entries of a window when columns change from int64 to float64.
//!
//! A window without `dtype=` computes with int64 until the first float comes. Then a window
//! over float64 takes over its entries: they are [`Erased`] of the monoid that held them,
//! and read by the monoid that answers the same request over the new types
//! ([`Aggregation::erase`], [`Aggregation::widen`]). The structure folds the entries anew,
//! so this module needs no code for structures.
//!
//! Every value is an integer that float64 holds; the caller checks that. A partial of
//! several values (combined at one time, or of a row with missing values) may not be: sums
//! keep their remainder in a [`Twofold`], and a product that int64 cannot hold is refused.

use super::packing::{get_i128, presence, put};
use std::any::Any;

use super::component::Component;
use super::moments::Scaled;
use super::op::Op;
use super::twofold::Twofold;
use super::{Cell, DType, extreme_value, extreme_word};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};

/// Why entries cannot be converted.
pub type Result<V> = std::result::Result<V, String>;

/// Entries, in order, of an unknown monoid.
pub enum Erased {
    Words(WordEntries),
    /// Entries of a monoid that has the same type on both sides.
    Typed(Box<dyn Any>),
    /// Entries of the parts of a window of several parts.
    Parts(Vec<Erased>),
}

/// Entries whose values and partials are words.
#[derive(Default)]
pub struct WordEntries {
    times: Vec<i64>,
    /// Zeros for lifted entries.
    values: Vec<u64>,
    width: usize,
    lifted: Vec<(usize, Box<[u64]>)>,
    /// The components of the words; none if partials are not records.
    components: Vec<Component>,
}

impl Erased {
    /// Entries of words.
    pub fn of_words<M: Monoid>(
        batch: Batch<M>,
        components: Vec<Component>,
        width: usize,
        value: impl Fn(&M::In, &mut Vec<u64>),
        partial: impl Fn(M::Partial) -> Box<[u64]>,
    ) -> Self {
        let mut values = Vec::with_capacity(batch.len() * width);
        let mut lifted = batch.lifted.iter().map(|(at, _)| *at).peekable();
        for (at, one) in batch.values.iter().enumerate() {
            match lifted.next_if_eq(&at) {
                Some(_) => values.resize(values.len() + width, 0),
                None => value(one, &mut values),
            }
        }
        let lifted = batch.lifted.into_iter();
        Self::Words(WordEntries {
            times: batch.times,
            values,
            width,
            lifted: lifted.map(|(at, one)| (at, partial(one))).collect(),
            components,
        })
    }

    /// The entries, if they are of type `T`.
    pub fn downcast<E: Any>(self) -> Result<E> {
        match self {
            Self::Typed(entries) => entries.downcast().map(|own| *own).map_err(|_| unlike()),
            _ => Err(unlike()),
        }
    }

    pub fn into_parts(self) -> Result<Vec<Self>> {
        match self {
            Self::Parts(parts) => Ok(parts),
            _ => Err(unlike()),
        }
    }

    /// The batch of converted entries of the new monoid.
    pub fn into_entries<M: Monoid>(
        self,
        value: impl Fn(&[u64]) -> Entry<M>,
        partial: impl Fn(&[u64], &[Component]) -> Result<Entry<M>>,
    ) -> Result<Batch<M>> {
        let Self::Words(entries) = self else {
            return Err(unlike());
        };
        let mut batch = Batch::with_capacity(entries.times.len());
        let mut lifted = entries.lifted.iter().peekable();
        for (at, time) in entries.times.into_iter().enumerate() {
            let entry = match lifted.next_if(|(place, _)| *place == at) {
                Some((_, words)) => partial(words, &entries.components)?,
                None => value(&entries.values[at * entries.width..][..entries.width]),
            };
            batch.push(time, entry);
        }
        Ok(batch)
    }
}

fn unlike() -> String {
    "entries of another make".to_owned()
}

/// The cell of a column that was int64.
pub fn cell<T: Clone>(cell: &Cell<T>) -> Cell<T> {
    match cell {
        Cell::I64(value) => Cell::F64(*value as f64),
        other => other.clone(),
    }
}

/// The bits of a value.
pub fn bits(bits: u64) -> u64 {
    (bits as i64 as f64).to_bits()
}

/// A word of [`extreme_word`]; the word of no value is kept.
pub fn word(word: i64, min: bool) -> i64 {
    let value = extreme_value(word, DType::I64, min);
    extreme_word(bits(value), DType::F64, min)
}

/// An integer, exact up to 2¹⁰⁶.
pub fn twofold(value: i128) -> Twofold {
    let sum = value as f64;
    let rest = value.wrapping_sub(sum as i128);
    Twofold {
        sum,
        error: rest as f64,
    }
}

/// The partial of a record of the same request over other types. `widened` marks the
/// columns that changed from int64 to float64.
pub fn partial(
    old: &[u64],
    (from, to): (&[Component], &[Component]),
    widened: &[bool],
    out: &mut [u64],
) -> Result<()> {
    let component = |op: &dyn Fn(Op) -> bool, like: &Component| {
        let found = from.iter().find(|c| c.col == like.col && op(c.op));
        found.map(|found| found.at).ok_or_else(unlike)
    };
    for new in to {
        new.identity(out);
        let before = component(&|op| replaced_by(op, new.op), new)?;
        let by_widened =
            matches!(new.op, Op::Arg { by, .. } | Op::BestBy { by, .. } if widened[by]);
        let counts = matches!(new.op, Op::Rows | Op::Count);
        if counts || !widened[new.col] && !by_widened {
            out[new.words()].copy_from_slice(&old[before..before + new.op.words()]);
            continue;
        }
        // Without a value it stays the identity; other components show that themselves.
        let last = || component(&|op| op == Op::Last, new).map(|last| last + 1);
        let present = component(&|op| op == Op::Count, new).or_else(|_| last());
        if matches!(new.op, Op::Arg { .. }) || present.map(|at| old[at]) != Ok(0) {
            convert(new, &old[before..], widened, out)?;
        }
    }
    Ok(())
}

/// Whether an operation over int64 becomes a different one over float64. Those that name
/// other components name them by offsets, which differ between the two records.
fn replaced_by(old: Op, new: Op) -> bool {
    match (old, new) {
        (Op::SumI, Op::SumF)
        | (Op::SquaresI { .. }, Op::SquaresF { .. } | Op::SquaresI { .. })
        | (Op::ProductI, Op::ProductF)
        | (Op::SumSquaresI, Op::SumSquaresF)
        | (Op::Third { .. }, Op::Third { .. })
        | (Op::Fourth { .. }, Op::Fourth { .. })
        | (Op::SquaresF { .. }, Op::SquaresF { .. })
        | (Op::Fall { .. }, Op::Fall { .. })
        | (Op::GapSquares { .. }, Op::GapSquares { .. }) => true,
        (Op::Gap { min: one, .. }, Op::Gap { min: other, .. }) => one == other,
        (Op::Area(old), Op::Area(new)) => old.linear == new.linear && old.by == new.by,
        (Op::DecayedSquares(old), Op::DecayedSquares(new)) => old.of == new.of,
        (Op::Products { by: one, .. }, Op::Products { by: other, .. })
        | (Op::Weighted { by: one, .. }, Op::Weighted { by: other, .. }) => one == other,
        (old, new) => old == new,
    }
}

/// The words of a component with a value. `old` begins with those of the old one.
fn convert(new: &Component, old: &[u64], widened: &[bool], out: &mut [u64]) -> Result<()> {
    let at = new.at;
    match new.op {
        Op::SumSquaresF if get_i128(old, 0) == i128::MAX => {
            return Err("a sum of squares of integers is beyond 128 bits".to_owned());
        }
        Op::SumF | Op::SumSquaresF => put(out, at, twofold(get_i128(old, 0)).to_words()),
        Op::ProductF => {
            let product = get_i128(old, 0);
            if product.unsigned_abs() >= 1 << 64 {
                return Err("a product of integers is beyond 64 bits".to_owned());
            }
            put(out, at, Scaled::of(twofold(product)).to_words());
        }
        Op::Extreme { min } => out[at] = word(old[0] as i64, min) as u64,
        Op::ExtremeCount { .. } if old[1] == 0 => {}
        Op::ExtremeCount { min } => put(out, at, [word(old[0] as i64, min) as u64, old[1]]),
        Op::First | Op::Last if old[1] == presence::VALUE => {
            put(out, at, [bits(old[0]), old[1]]);
        }
        Op::Arg { min, by } if old[2] != presence::NONE => {
            let key = match widened[by] {
                true => word(old[0] as i64, min) as u64,
                false => old[0],
            };
            let value = match widened[new.col] && old[2] == presence::VALUE {
                true => bits(old[1]),
                false => old[1],
            };
            put(out, at, [key, value, old[2]]);
        }
        Op::Best { min, .. } => {
            out[at] = old[0];
            for place in 1..=old[0] as usize {
                out[at + place] = word(old[place] as i64, min) as u64;
            }
        }
        Op::BestBy { min, by, .. } => {
            out[at] = old[0];
            let items = old[1..].chunks_exact(2).take(old[0] as usize);
            for (item, new_item) in items.zip(out[at + 1..].chunks_exact_mut(2)) {
                new_item[0] = match widened[by] {
                    true => word(item[0] as i64, min) as u64,
                    false => item[0],
                };
                new_item[1] = match widened[new.col] {
                    true => bits(item[1]),
                    false => item[1],
                };
            }
        }
        Op::Rises if old[4] == presence::VALUE => {
            let [sum, error] = twofold(get_i128(old, 0)).to_words();
            put(out, at, [sum, error, bits(old[2]), bits(old[3]), old[4]]);
        }
        Op::Changes if old[3] == presence::VALUE => {
            put(out, at, [old[0], bits(old[1]), bits(old[2]), old[3]]);
        }
        Op::Fall { .. } => out[at] = (old[0] as f64).to_bits(),
        Op::Ends { .. } | Op::LastDistinct { .. } => {
            out[at] = old[0];
            for place in 1..=old[0] as usize {
                out[at + place] = bits(old[place]);
            }
        }
        Op::First | Op::Last | Op::Arg { .. } | Op::Rises | Op::Changes => {}
        _ => {
            let words = new.op.words();
            out[at..at + words].copy_from_slice(&old[..words]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::{Record, RecordPlan};
    use super::super::{AggSpec, Aggregation, Answer, Kind};
    use super::*;

    #[test]
    fn words_of_integers_become_those_of_the_same_floats() {
        let values = [i64::MIN, -(1 << 53), -3, 0, 1, 7, 1 << 53, 3 << 60];
        for (value, min) in values.into_iter().flat_map(|v| [(v, true), (v, false)]) {
            let old = extreme_word(value as u64, DType::I64, min);
            let float = (value as f64).to_bits();
            assert_eq!(word(old, min), extreme_word(float, DType::F64, min));
        }
    }

    #[test]
    fn sums_that_float64_does_not_hold_keep_their_rest() {
        for value in [0, 1, -1, (1 << 53) + 1, -(1 << 60) - 1, (3 << 90) + 12_345] {
            let Twofold { sum, error } = twofold(value);
            assert_eq!(sum as i128 + error as i128, value);
        }
        assert!(!twofold(0).is_empty());
    }

    type Small = Record<[u64; 1], [u64; 8]>;
    type Large = Record<[u64; 1], Box<[u64]>>;

    /// The answers over converted entries, if they can be converted.
    fn answers(kind: Kind, rows: &[i64], combined: bool) -> Result<Vec<Answer<i64>>> {
        let agg = AggSpec {
            kind,
            of: Some(0),
            by: None,
            ddof: 1,
        };
        let old = Small::new(RecordPlan::new(&[agg], &[DType::I64]));
        let new = Large::new(RecordPlan::new(&[agg], &[DType::F64]));
        let mut batch = Batch::default();
        let cells = rows.iter().map(|value| [Cell::<i64>::I64(*value)]);
        let entries: Vec<Entry<Small>> = cells.map(|row| old.entry(&row)).collect();
        if combined {
            let partials = entries.iter().map(|entry| entry.partial(&old));
            let whole = partials.reduce(|a, b| old.combine(&a, &b));
            batch.push(1, Entry::Lifted(whole.expect("rows")));
        } else {
            let timed = (0..).zip(entries);
            timed.for_each(|(time, entry)| batch.push(time, entry));
        }
        let erased = Aggregation::<i64>::erase(&old, batch);
        let batch = Aggregation::<i64>::widen(&new, erased, &[true])?;
        let partials = batch.into_entries().map(|(_, entry)| entry.partial(&new));
        let whole = partials.fold(new.identity(), |a, b| new.combine(&a, &b));
        let mut out = Vec::new();
        new.answers(&whole, &mut out);
        Ok(out)
    }

    #[test]
    fn entries_become_those_of_another_record() {
        for combined in [false, true] {
            let found = |kind| answers(kind, &[3, -4, 5], combined);
            for (kind, value) in [
                (Kind::Mean, 4.0 / 3.0),
                (Kind::First, 3.0),
                (Kind::Last, 5.0),
                (Kind::Product, -60.0),
                (Kind::SumOfSquares, 50.0),
            ] {
                assert_eq!(found(kind), Ok(vec![Answer::F64(value)]), "{kind:?}");
            }
            assert_eq!(found(Kind::MinCount), Ok(vec![Answer::I64(1)]));
            let best = [5.0, 3.0].map(Cell::F64).to_vec();
            assert_eq!(found(Kind::TopK { k: 2 }), Ok(vec![Answer::List(best)]));
        }
    }

    #[test]
    fn products_too_large_to_know_are_refused() {
        let large = [1 << 40, 1 << 40];
        let apart = answers(Kind::Product, &large, false);
        assert_eq!(apart, Ok(vec![Answer::F64(2_f64.powi(80))]));
        assert!(answers(Kind::Product, &large, true).is_err());
        let squares = [i64::MIN; 4];
        assert!(answers(Kind::SumOfSquares, &squares, false).is_ok());
        assert!(answers(Kind::SumOfSquares, &squares, true).is_err());
    }

    #[test]
    fn entries_of_another_type_come_back() {
        let erased = Erased::Typed(Box::new(7_u8));
        assert!(erased.downcast::<Batch<Small>>().is_err());
        assert!(Erased::Parts(Vec::new()).downcast::<u8>().is_err());
        assert!(Erased::Words(WordEntries::default()).into_parts().is_err());
    }
}
