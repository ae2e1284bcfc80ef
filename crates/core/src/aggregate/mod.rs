//! Aggregations as users name them, and the few monoids that compute them.
//!
//! A request is a list of [`AggSpec`]s over columns of a [`DType`]; [`plan`] finds the
//! monoid that answers all of them at once: a *word* for one frequent aggregation, a *record*
//! of shared components for the rest, a *sequence* for `collect`. Types are matched once,
//! here, and never per item.

pub mod any_word;
pub mod area;
pub mod bins;
pub mod collect;
pub mod column;
mod common;
pub mod component;
mod component_runs;
pub mod counted;
pub mod decay;
pub mod deferred;
pub(crate) mod double;
pub mod holistic;
pub mod kinds;
mod lower;
mod merges;
pub mod mixed;
pub(crate) mod moment_answers;
pub mod moments;
pub mod native;
mod op;
mod packing;
pub mod record;
pub mod rounding;
mod run_moments;
mod sequences;
pub mod short_words;
pub mod sketch;
pub mod twofold;
pub mod widening;
pub mod word;

use std::sync::Arc;

use crate::batch::Batch;
use crate::monoid::{Entry, Invertible, Law, Monoid, Selective};
use any_word::AnyWord;
use collect::{Collect, Element};
use column::{Column, stage_rows};
use counted::CountedSumF64;
use deferred::{Deferred, Ledger, Term};
use mixed::Mixed;
use native::{MAX_WORDS, Native, SMALL_WORDS};
use record::{Record, RecordPlan};
use short_words::ShortRecord;
use sketch::digest::Digest;
use widening::Erased;
use word::SumI64;

pub use kinds::{AggSpec, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    I64,
    F64,
    /// Any object: only `count` and `collect` read it.
    Object,
}

/// One value of one column.
#[derive(Clone, Debug)]
pub enum Cell<T> {
    Null,
    I64(i64),
    F64(f64),
    Object(T),
}

/// Whether two values are identical: NaN equals NaN, and the two zeros differ.
impl<T: PartialEq> PartialEq for Cell<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::I64(a), Self::I64(b)) => a == b,
            (Self::F64(a), Self::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::Object(a), Self::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl<T> Cell<T> {
    pub fn of_bits(bits: u64, dtype: DType) -> Self {
        match dtype {
            DType::F64 => Self::F64(f64::from_bits(bits)),
            _ => Self::I64(bits as i64),
        }
    }

    /// The bits of a number; `None` for null (and for objects, which have none).
    #[inline]
    pub fn bits(&self) -> Option<u64> {
        match self {
            Self::I64(value) => Some(*value as u64),
            Self::F64(value) => Some(value.to_bits()),
            _ => None,
        }
    }
}

/// One lowered result.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    Null,
    I64(i64),
    F64(f64),
    Bool(bool),
    List(Vec<Cell<T>>),
    /// A sketch, or a record for the caller to lower.
    Bytes(Vec<u8>),
    /// Values, each with the upper bound of its count and the error of the bound.
    Hitters(Vec<(Cell<T>, u64, u64)>),
    /// An answer that the caller computes and lowers.
    Term(Term<T>),
    /// An exact integer that int64 cannot hold.
    Overflow(i128),
}

impl<T> Answer<T> {
    pub fn integer(value: i128) -> Self {
        i64::try_from(value).map_or(Self::Overflow(value), Self::I64)
    }

    pub fn of_bits(bits: u64, dtype: DType) -> Self {
        match dtype {
            DType::F64 => Self::F64(f64::from_bits(bits)),
            _ => Self::I64(bits as i64),
        }
    }
}

/// Answers of one aggregation, all integers or all floats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberRun {
    /// Integers and booleans as they are, floats as their bits; arbitrary if missing.
    pub bits: Vec<u64>,
    /// The positions of missing answers.
    pub missing: Vec<usize>,
}

impl NumberRun {
    #[inline]
    fn put(&mut self, bits: Option<u64>) {
        if bits.is_none() {
            self.missing.push(self.bits.len());
        }
        self.bits.push(bits.unwrap_or(0));
    }
}

/// A monoid that knows how to read rows and lower partials.
pub trait Aggregation<T>: Monoid {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self>;
    /// Appends one answer per requested aggregation, in order of request.
    fn answers(&self, partial: &Self::Partial, out: &mut Vec<Answer<T>>);

    /// The answers over many partials, a column per requested aggregation; false if one of
    /// them is not a number, or this monoid only answers one by one.
    fn answer_columns(&self, _partials: &[Self::Partial], _columns: &mut Vec<NumberRun>) -> bool {
        false
    }

    /// Entries of all rows of `columns`, in their order.
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        stage_rows(self, times, columns)
    }

    /// The pending terms of user-defined aggregations, if there can be any.
    fn ledger(&self) -> Option<&Arc<Ledger<T>>> {
        None
    }

    /// Passes a batch to a visitor, with the monoid that [`plan`] would choose for the
    /// request: a window that migrates to another structure continues with it.
    fn hand_over<V: BatchVisitor<T>>(self, batch: Batch<Self>, visitor: V) -> V::Out {
        visitor.visit_batch(self, batch)
    }

    /// Entries, for [`Aggregation::widen`] of the same request over other types.
    fn erase(&self, batch: Batch<Self>) -> Erased {
        Erased::Typed(Box::new(batch))
    }

    /// Entries over other types: `widened` columns held int64 and hold float64.
    ///
    /// # Errors
    /// If a partial cannot be converted: see [`widening`].
    fn widen(&self, entries: Erased, _widened: &[bool]) -> widening::Result<Batch<Self>> {
        entries.downcast()
    }
}

/// Receives the monoid and batch of [`Aggregation::hand_over`].
pub trait BatchVisitor<T> {
    type Out;
    fn visit_batch<A: Aggregation<T>>(self, aggregation: A, batch: Batch<A>) -> Self::Out;
}

/// A word that is ordered like the values: the larger word is the larger value, or the
/// smaller one if `min`. NaN absorbs: its word is above all others in both cases. The two
/// zeros are one value.
#[inline]
pub fn extreme_word(bits: u64, dtype: DType, min: bool) -> i64 {
    let word = match dtype {
        DType::F64 => {
            let value = f64::from_bits(bits) + 0.0;
            if value.is_nan() {
                return i64::MAX;
            }
            flip_negative(value.to_bits() as i64)
        }
        _ => bits as i64,
    };
    if min { !word } else { word }
}

/// The bits of the value behind a word of [`extreme_word`].
#[inline]
pub fn extreme_value(word: i64, dtype: DType, min: bool) -> u64 {
    if dtype == DType::F64 {
        if word == i64::MAX {
            return f64::NAN.to_bits();
        }
        return flip_negative(if min { !word } else { word }) as u64;
    }
    (if min { !word } else { word }) as u64
}

/// Orders the bits of floats like integers; its own inverse.
#[inline]
fn flip_negative(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Receives the monoid that [`plan`] chose.
pub trait Visitor<T> {
    type Out;
    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out;
}

/// Chooses the monoid for a request and hands it to the visitor.
///
/// # Panics
/// If a column index is out of range or `of` is missing where one is needed: callers
/// validate requests, with messages for users. And if a request is holistic: there is no
/// monoid for it.
pub fn plan<T, V>(aggs: &[AggSpec], dtypes: &[DType], visitor: V) -> V::Out
where
    T: Element,
    V: Visitor<T>,
{
    if let Some(word) = AnyWord::of(aggs, dtypes) {
        return word.visit(visitor);
    }
    if let [only] = aggs {
        match (only.kind, only.of.map(|of| dtypes[of])) {
            (Kind::Collect, Some(_)) if dtypes.len() == 1 => return visitor.visit(Collect::new()),
            (Kind::Native(functions), Some(_)) if dtypes.len() == 1 && functions.is_small() => {
                return visitor.visit(Native::<SMALL_WORDS>::new(functions));
            }
            (Kind::Native(functions), Some(_)) if dtypes.len() == 1 => {
                return visitor.visit(Native::<MAX_WORDS>::new(functions));
            }
            (Kind::Sketch(request), Some(dtype)) if dtypes.len() == 1 && only.by.is_none() => {
                return visitor.visit(Digest::new(request, dtype));
            }
            (
                Kind::Udaf {
                    number,
                    commutative,
                    ..
                },
                Some(_),
            ) if dtypes.len() == 1 => {
                let ledger = Arc::new(Ledger::default());
                return visitor.visit(Deferred::new(number, commutative, ledger));
            }
            _ => {}
        }
    }
    if aggs.iter().any(|agg| !agg.kind.is_plain()) {
        return visitor.visit(Mixed::new(aggs, dtypes));
    }
    let record = RecordPlan::new(aggs, dtypes);
    match (dtypes.len(), record.words()) {
        (..=1, ..=4) => visitor.visit(Record::<[u64; 1], [u64; 4]>::new(record)),
        (..=1, ..=8) => visitor.visit(Record::<[u64; 1], [u64; 8]>::new(record)),
        (2, ..=8) => visitor.visit(ShortRecord::new(record)),
        (..=4, ..=16) => visitor.visit(Record::<[u64; 4], [u64; 16]>::new(record)),
        _ => visitor.visit(ShortRecord::new(record)),
    }
}

/// Like [`plan`], with few instantiations, for structures that few windows use: one for
/// each word, two for records, and one for all requests with objects.
pub fn plan_few<T, V>(aggs: &[AggSpec], dtypes: &[DType], visitor: V) -> V::Out
where
    T: Element,
    V: Visitor<T>,
{
    if let Some(word) = AnyWord::of(aggs, dtypes) {
        return word.visit(visitor);
    }
    if let Some(functions) = small_native(aggs, dtypes) {
        return visitor.visit(Native::<SMALL_WORDS>::new(functions));
    }
    if aggs.iter().any(|agg| !agg.kind.is_plain()) {
        return visitor.visit(Mixed::new(aggs, dtypes));
    }
    let record = RecordPlan::new(aggs, dtypes);
    match (dtypes.len(), record.words()) {
        (..=1, ..=8) => visitor.visit(Record::<[u64; 1], [u64; 8]>::new(record)),
        _ => visitor.visit(ShortRecord::new(record)),
    }
}

/// Like [`plan_few`], with the fewest: also the words share one. For structures that "auto"
/// never takes, and for queries, which combine slices and few entries.
pub fn plan_fewest<T, V>(aggs: &[AggSpec], dtypes: &[DType], visitor: V) -> V::Out
where
    T: Element,
    V: Visitor<T>,
{
    if let Some(word) = AnyWord::of(aggs, dtypes) {
        return visitor.visit(word);
    }
    if aggs.iter().any(|agg| !agg.kind.is_plain()) {
        return visitor.visit(Mixed::new(aggs, dtypes));
    }
    visitor.visit(ShortRecord::new(RecordPlan::new(aggs, dtypes)))
}

/// The functions of a request for one native aggregation over a small record.
fn small_native(aggs: &[AggSpec], dtypes: &[DType]) -> Option<native::Functions> {
    match (aggs, dtypes) {
        ([only], [_]) => match only.kind {
            Kind::Native(functions) => functions.is_small().then_some(functions),
            _ => None,
        },
        _ => None,
    }
}

/// Receives the monoid with an inverse that [`plan_invertible`] chose.
pub trait InvertibleVisitor<T> {
    type Out;
    fn visit<A: Aggregation<T> + Invertible>(self, aggregation: A) -> Self::Out;
}

/// Chooses a monoid with an inverse for a request, if there is one. Panics like [`plan`].
pub fn plan_invertible<T, V>(aggs: &[AggSpec], dtypes: &[DType], visitor: V) -> Option<V::Out>
where
    T: Element,
    V: InvertibleVisitor<T>,
{
    if let Some(functions) = small_native(aggs, dtypes) {
        let native = Native::<SMALL_WORDS>::new(functions);
        return functions.inverse.map(|_| visitor.visit(native));
    }
    match AnyWord::of(aggs, dtypes) {
        Some(AnyWord::SumI64) => return Some(visitor.visit(SumI64)),
        Some(AnyWord::SumF64) => return Some(visitor.visit(CountedSumF64)),
        _ => {}
    }
    if aggs.iter().any(|agg| !agg.kind.is_plain()) {
        return Mixed::invertible(aggs, dtypes).map(|mixed| visitor.visit(mixed));
    }
    let record = RecordPlan::invertible(aggs, dtypes)?;
    Some(match (dtypes.len(), record.words()) {
        (..=1, ..=8) => visitor.visit(Record::<[u64; 1], [u64; 8]>::new(record)),
        _ => visitor.visit(ShortRecord::new(record)),
    })
}

/// Receives the monoid that selects, which [`plan_selective`] chose.
pub trait SelectiveVisitor<T> {
    type Out;
    fn visit<A: Aggregation<T> + Selective>(self, aggregation: A) -> Self::Out;
}

/// Chooses a monoid that selects for a request, if there is one. Panics like [`plan`].
pub fn plan_selective<T, V>(aggs: &[AggSpec], dtypes: &[DType], visitor: V) -> Option<V::Out>
where
    T: Element,
    V: SelectiveVisitor<T>,
{
    if let Some(AnyWord::Extreme(extreme)) = AnyWord::of(aggs, dtypes) {
        return Some(visitor.visit(extreme));
    }
    let record = selective_record(aggs, dtypes)?;
    Some(visitor.visit(ShortRecord::new(record)))
}

/// Whether a request obeys a law; its types do not matter for that.
pub fn obeys(law: Law, aggs: &[AggSpec], columns: usize) -> bool {
    let dtypes = vec![DType::I64; columns];
    match law {
        Law::Inverse => {
            let (plain, others): (Vec<AggSpec>, Vec<AggSpec>) =
                aggs.iter().partition(|agg| agg.kind.is_plain());
            others.iter().all(|agg| agg.kind.brings_inverse())
                && RecordPlan::invertible(&plain, &dtypes).is_some()
        }
        Law::Selection => selective_record(aggs, &dtypes).is_some(),
        Law::InverseOrSelection => {
            obeys(Law::Inverse, aggs, columns) || obeys(Law::Selection, aggs, columns)
        }
    }
}

/// Whether the order in which values are combined makes no difference.
pub fn commutes(agg: AggSpec, columns: usize) -> bool {
    struct Commutes;
    impl Visitor<i64> for Commutes {
        type Out = bool;
        fn visit<A: Aggregation<i64>>(self, aggregation: A) -> bool {
            aggregation.commutative()
        }
    }
    agg.kind.is_holistic() || plan(&[agg], &vec![DType::I64; columns], Commutes)
}

/// Whether evicted values can be subtracted exactly: counts and sums of integers. For a
/// user-defined inverse this is unknown.
pub fn subtracts_exactly(aggs: &[AggSpec], dtypes: &[DType]) -> bool {
    aggs.iter().all(|agg| agg.kind.is_plain())
        && RecordPlan::invertible(aggs, dtypes).is_some_and(|plan| plan.exact())
}

fn selective_record(aggs: &[AggSpec], dtypes: &[DType]) -> Option<RecordPlan> {
    let plain = aggs.iter().all(|agg| agg.kind.is_plain());
    plain.then(|| RecordPlan::selective(aggs, dtypes))?
}
