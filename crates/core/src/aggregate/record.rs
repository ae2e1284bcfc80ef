//! A record: several components side by side, answering several aggregations at once.
//!
//! `mean`, `sum`, `count` and `stddev` of one column keep one count and one sum.

mod selective;

use std::sync::Arc;

use hashbrown::HashMap;

use super::column::{Column, Values, stage_raw, stage_rows};
use super::common::Common;
use super::component::{Combine, Component};
use super::component_runs;
use super::lower::Lower;
use super::op::Op;
pub use super::packing::Words;
use super::widening::{self, Erased};
use super::{AggSpec, Aggregation, Answer, Cell, DType, NumberRun};
use crate::batch::Batch;
use crate::monoid::{
    Entry, HandleSlot, Invertible, Law, Monoid, combine_one_by_one, folds_back_one_by_one,
    folds_one_by_one,
};
use crate::simd::dispatch_simd;
use crate::snapshot::{Reader, Result, damaged};

/// The least number of partials that are combined component by component, and the most words
/// of each: more are boxed, and a run would take a box for each.
const MIN_RUN: usize = 3;
const MAX_RUN_WORDS: usize = 8;

/// Components and answers of a request; shared by all windows of it.
#[derive(Debug)]
pub struct RecordPlan {
    columns: usize,
    components: Vec<Component>,
    lowers: Vec<Lower>,
    words: usize,
    /// The common record that it is, if any.
    common: Option<Common>,
    commutative: bool,
    /// Whether every component can absorb a row without the others.
    absorbs: bool,
}

impl RecordPlan {
    /// # Panics
    /// On requests that [`super::plan`] does not take.
    pub fn new(aggs: &[AggSpec], dtypes: &[DType]) -> Self {
        Self::for_law(aggs, dtypes, None)
    }

    /// A plan whose record is [`Invertible`], if all aggregations are.
    pub fn invertible(aggs: &[AggSpec], dtypes: &[DType]) -> Option<Self> {
        let plan = Self::for_law(aggs, dtypes, Some(Law::Inverse));
        plan.obeys(Law::Inverse).then_some(plan)
    }

    /// A plan whose record is [`Selective`], if all aggregations select.
    pub fn selective(aggs: &[AggSpec], dtypes: &[DType]) -> Option<Self> {
        let plan = Self::for_law(aggs, dtypes, Some(Law::Selection));
        plan.obeys(Law::Selection).then_some(plan)
    }

    /// Whether folds of the same rows give equal words in any grouping.
    pub fn exact(&self) -> bool {
        self.components.iter().all(Component::exact)
    }

    fn obeys(&self, law: Law) -> bool {
        let mut ops = self.components.iter().map(|component| component.op);
        match law {
            Law::Inverse => ops.all(Op::invertible),
            Law::Selection => ops.all(Op::selective),
            Law::InverseOrSelection => self.obeys(Law::Inverse) || self.obeys(Law::Selection),
        }
    }

    /// `law`: what it obeys beside associativity. With an inverse, a count distinguishes sums
    /// of floats from no values, because a sum after subtractions does not.
    fn for_law(aggs: &[AggSpec], dtypes: &[DType], law: Option<Law>) -> Self {
        let mut plan = Self {
            columns: dtypes.len(),
            components: Vec::new(),
            lowers: Vec::new(),
            words: 0,
            common: None,
            commutative: true,
            absorbs: true,
        };
        // Aggregations share components.
        let mut offsets = HashMap::new();
        for agg in aggs {
            let lower = agg.lower(dtypes, law, &mut |op, col, dtype| {
                let add = || plan.add(op, col, dtype);
                *offsets.entry((op, col)).or_insert_with(add)
            });
            plan.lowers.push(lower);
        }
        plan.common = Common::of(&plan.components);
        plan
    }

    pub fn words(&self) -> usize {
        self.words
    }

    /// Adds a component; returns its offset.
    fn add(&mut self, op: Op, col: usize, dtype: DType) -> usize {
        let at = self.words;
        self.components.push(Component { op, col, dtype, at });
        self.words += op.words();
        self.commutative &= op.commutative();
        self.absorbs &= op.absorbs();
        at
    }
}

/// The monoid over a [`RecordPlan`], with rows `R` and partials `P`.
#[derive(Clone, Debug)]
pub struct Record<R, P> {
    plan: Arc<RecordPlan>,
    storage: std::marker::PhantomData<fn() -> (R, P)>,
}

impl<R: Words + HandleSlot, P: Words> Record<R, P> {
    pub fn new(plan: RecordPlan) -> Self {
        Self {
            plan: Arc::new(plan),
            storage: std::marker::PhantomData,
        }
    }

    fn lift_with(&self, row: impl Fn(usize) -> Option<u64>) -> P {
        let mut out = self.identity();
        for component in &self.plan.components {
            component.lift(&row, out.as_mut());
        }
        out
    }

    /// A partial of another plan for the same request.
    pub(super) fn widened_partial(
        &self,
        old: &[u64],
        components: &[Component],
        widened: &[bool],
    ) -> widening::Result<P> {
        let mut out = P::zeroed(self.plan.words);
        widening::partial(
            old,
            (components, &self.plan.components),
            widened,
            out.as_mut(),
        )?;
        Ok(out)
    }

    pub(super) fn components(&self) -> &[Component] {
        &self.plan.components
    }

    /// A combine of records that are not common.
    #[inline(never)]
    fn combine_each(&self, a: &P, b: &P) -> P {
        let mut out = P::zeroed(self.plan.words);
        let sides = [a.as_ref(), b.as_ref()];
        dispatch_simd(Combine(&self.plan.components, sides, out.as_mut()));
        out
    }
}

impl<R: Words + HandleSlot, P: Words> Monoid for Record<R, P> {
    type In = R;
    type Partial = P;
    const SMALL: usize = 16;

    fn commutative(&self) -> bool {
        self.plan.commutative
    }
    fn identity(&self) -> P {
        let mut out = P::zeroed(self.plan.words);
        for component in &self.plan.components {
            component.identity(out.as_mut());
        }
        out
    }
    #[inline]
    fn lift(&self, value: &R) -> P {
        let Some(common) = self.plan.common else {
            return self.lift_with(|col| Some(value.as_ref()[col]));
        };
        let mut out = P::zeroed(self.plan.words);
        common.lift(value.as_ref(), out.as_mut());
        out
    }
    #[inline]
    fn combine(&self, a: &P, b: &P) -> P {
        let Some(common) = self.plan.common else {
            return self.combine_each(a, b);
        };
        let mut out = P::zeroed(self.plan.words);
        common.combine(a.as_ref(), b.as_ref(), out.as_mut());
        out
    }
    fn unlift(&self, partial: P) -> std::result::Result<R, P> {
        Err(partial)
    }
    fn same(&self, a: &P, b: &P) -> bool {
        let exact = self.plan.components.iter().filter(|c| c.exact());
        exact.into_iter().all(|c| {
            let words = c.words();
            a.as_ref()[words.clone()] == b.as_ref()[words]
        })
    }
    fn absorb(&self, acc: &mut P, value: &R) {
        if !self.plan.absorbs {
            *acc = self.combine(acc, &self.lift(value));
            return;
        }
        for component in &self.plan.components {
            component.absorb(acc.as_mut(), value.as_ref());
        }
    }
    fn fold(&self, run: &[R]) -> P {
        let mut out = self.identity();
        if !run.is_empty() {
            for component in &self.plan.components {
                component.fold(run, out.as_mut());
            }
        }
        out
    }
    fn folds(&self, run: &[R], acc: P, out: &mut Vec<P>) {
        match self.plan.absorbs {
            true => component_runs::folds(&self.plan.components, run, &acc, out),
            false => folds_one_by_one(self, run, acc, out),
        }
    }
    fn folds_back(&self, run: &[R], acc: P, out: &mut Vec<P>) {
        match self.plan.absorbs {
            true => component_runs::folds_back(&self.plan.components, run, &acc, out),
            false => folds_back_one_by_one(self, run, acc, out),
        }
    }
    fn combine_run<'a>(
        &self,
        acc: Option<P>,
        mut run: impl ExactSizeIterator<Item = &'a P> + Clone,
    ) -> Option<P> {
        if self.plan.common.is_some() || run.len() < MIN_RUN || self.plan.words > MAX_RUN_WORDS {
            return combine_one_by_one(self, acc, run);
        }
        let first = acc.or_else(|| run.next().cloned())?;
        Some(component_runs::combine_run(
            &self.plan.components,
            first,
            run,
        ))
    }
    fn combine_pairs(&self, sides: (&[P], &[P]), pairs: &[(u32, u32)], out: &mut Vec<P>) {
        let from = out.len();
        out.resize(from + pairs.len(), P::zeroed(self.plan.words));
        for component in &self.plan.components {
            component.combine_pairs(sides, pairs, &mut out[from..]);
        }
    }
    fn read_in(&self, input: &mut Reader<'_>) -> Result<R> {
        sized(R::read(input)?, self.plan.columns)
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<P> {
        let partial = sized(P::read(input)?, self.plan.words)?;
        let mut components = self.plan.components.iter();
        match components.all(|component| component.can_hold(partial.as_ref())) {
            true => Ok(partial),
            false => damaged("more of the best values than were requested"),
        }
    }
}

/// For records of a [`RecordPlan::invertible`] plan.
impl<R: Words + HandleSlot, P: Words> Invertible for Record<R, P> {
    fn inverse(&self, whole: &P, oldest: &P) -> P {
        let mut out = P::zeroed(self.plan.words);
        for component in &self.plan.components {
            let count = |c: &&Component| c.op == Op::Count && c.col == component.col;
            let count = self.plan.components.iter().find(count);
            let left = count.is_none_or(|count| out.as_ref()[count.at] != 0);
            component.inverse(whole.as_ref(), oldest.as_ref(), left, out.as_mut());
        }
        out
    }
    fn undoes(&self, partial: &P) -> bool {
        let mut components = self.plan.components.iter();
        components.all(|component| component.undoes(partial.as_ref()))
    }
}

fn sized<W: Words>(words: W, least: usize) -> Result<W> {
    if words.as_ref().len() < least {
        return damaged(format!(
            "a value of {} words, {least} needed",
            words.as_ref().len()
        ));
    }
    Ok(words)
}

impl<T, R: Words + HandleSlot, P: Words> Aggregation<T> for Record<R, P> {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        let missing = row.iter().any(|cell| matches!(cell, Cell::Null));
        if missing {
            return Entry::Lifted(self.lift_with(|col| match &row[col] {
                Cell::Null => None,
                // Objects have no bits, but are counted.
                cell => Some(cell.bits().unwrap_or(0)),
            }));
        }
        let mut raw = R::zeroed(self.plan.columns.max(1));
        for (word, cell) in raw.as_mut().iter_mut().zip(row) {
            *word = cell.bits().unwrap_or(0);
        }
        Entry::Raw(raw)
    }
    fn answers(&self, partial: &P, out: &mut Vec<Answer<T>>) {
        let lowers = self.plan.lowers.iter();
        out.extend(lowers.map(|lower| lower.answer(partial.as_ref())));
    }
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        let row = |word| {
            let mut row = R::zeroed(1);
            row.as_mut()[0] = word;
            row
        };
        match columns {
            [
                Column {
                    values: Values::F64(values),
                    validity: None,
                },
            ] => stage_raw(times, values.iter().map(|v| row(v.to_bits())).collect()),
            [
                Column {
                    values: Values::I64(values),
                    validity: None,
                },
            ] => stage_raw(times, values.iter().map(|v| row(*v as u64)).collect()),
            _ => stage_rows(self, times, columns),
        }
    }
    fn answer_columns(&self, partials: &[P], columns: &mut Vec<NumberRun>) -> bool {
        let lowers = &self.plan.lowers;
        columns.resize(lowers.len(), NumberRun::default());
        let mut pairs = lowers.iter().zip(columns);
        pairs.all(|(lower, column)| lower.run(partials, column))
    }
    fn erase(&self, batch: Batch<Self>) -> Erased {
        let components = self.plan.components.clone();
        let (columns, words) = (self.plan.columns, self.plan.words);
        let row = |row: &R, out: &mut Vec<u64>| out.extend_from_slice(&row.as_ref()[..columns]);
        Erased::of_words(batch, components, columns, row, |one| {
            one.as_ref()[..words].into()
        })
    }
    fn widen(&self, entries: Erased, widened: &[bool]) -> widening::Result<Batch<Self>> {
        let row = |old: &[u64]| {
            let mut row = R::zeroed(self.plan.columns.max(1));
            let words = row.as_mut().iter_mut().zip(old.iter().zip(widened));
            for (word, (old, widened)) in words {
                *word = if *widened { widening::bits(*old) } else { *old };
            }
            Entry::Raw(row)
        };
        entries.into_entries(row, |old, components| {
            self.widened_partial(old, components, widened)
                .map(Entry::Lifted)
        })
    }
}

#[cfg(test)]
mod tests;
