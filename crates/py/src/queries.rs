//! The queries of a window: adding and dropping them, and the answers that fell due.
//!
//! The state keeps answers that fell due until they are converted. If the conversion of an
//! answer fails (a user's function raises, an integer does not fit), the call raises and
//! drops that answer; the next call returns the others.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder};
use arrow_array::{Array, Int64Array};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use slidewise_core::aggregate::kinds::AnswerType;
use slidewise_core::aggregate::{AggSpec, Answer, DType, Kind};
use slidewise_core::window::queries::Due;
use slidewise_core::window::queries::plan::{Query, Unit};

use crate::arrow::ArrowArray;
use crate::errors::{internal_error, spec_error};
use crate::inputs::Type;
use crate::locking::Access;
use crate::object_store::Object;
use crate::schedules::QueryTicks;
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals};
use crate::spec::Spec;

type DueAnswers = Due<Vec<Answer<Object>>>;
/// Whether they are lists, and of which type they or their items are.
type AnswerTypeName = (bool, &'static str);

/// Queries, ends in ticks, and the answers of each aggregation: Arrow arrays; and the types of
/// these answers, `None` where the answers themselves decide.
pub(crate) type DueColumns<'py> = (
    Bound<'py, ArrowArray>,
    Bound<'py, ArrowArray>,
    Vec<Bound<'py, PyAny>>,
    Vec<Option<AnswerTypeName>>,
);

impl Access {
    /// Adds a query and returns its number.
    pub(crate) fn add_query(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<usize> {
        loop {
            self.flush_terms(py)?;
            let known = self.clock().map(Arc::clone);
            let plan = self
                .current_plan(py)?
                .call_method1("with_query", (given,))?;
            let queries = plan.getattr("queries")?.cast_into::<PyTuple>()?;
            let ticks = match &known {
                Some(clock) => {
                    let ticks = plan.call_method1("query_ticks", (given, clock.object(py)))?;
                    ticks.extract::<QueryTicks>()?.read()?
                }
                None => Query {
                    unit: Unit::Entries,
                    range: 1,
                    slide: 1,
                },
            };
            let mut state = self.lock(py)?;
            let Some(planning) = state.window.planning() else {
                return Err(internal_error("a window without queries"));
            };
            // Another thread may have added one meanwhile.
            if planning.schedule().queries().len() + 1 != queries.len()
                || self.clock().is_some() != known.is_some()
            {
                continue;
            }
            if !planning.schedule().admits_query(ticks) {
                drop(state);
                return Err(spec_error(format!(
                    "{} begins or ends within slices, or is longer than the queries so far, and \
                     keep='slices' keeps no entries: give it when the window is made",
                    given.repr()?
                )));
            }
            let number = planning.add(ticks);
            state.queries = Some(queries.unbind());
            state.collect_due();
            drop(state);
            self.sweep(py);
            return Ok(number);
        }
    }

    /// Drops a query; false if no query has that number.
    pub(crate) fn drop_query(&self, py: Python<'_>, number: usize) -> PyResult<bool> {
        loop {
            let plan = self.current_plan(py)?;
            let queries = plan.getattr("queries")?.cast_into::<PyTuple>()?;
            let mut left: Vec<Bound<'_, PyAny>> = queries.iter().collect();
            let Some(found) = left.get_mut(number).filter(|found| !found.is_none()) else {
                return Ok(false);
            };
            *found = py.None().into_bound(py);
            let left = PyTuple::new(py, left)?;
            let mut state = self.lock(py)?;
            let Some(planning) = state.window.planning() else {
                return Err(internal_error("a window without queries"));
            };
            if planning.schedule().queries().len() != left.len() {
                continue;
            }
            let dropped = planning.drop_query(number);
            if dropped {
                state.queries = Some(left.unbind());
                // Answers that a call which raised has left.
                state.due.retain(|due| due.query != number);
                state.due_left &= !state.due.is_empty();
                state.truncate_log();
            }
            drop(state);
            self.sweep(py);
            return Ok(dropped);
        }
    }

    /// The error for `query` where a window would begin within a slice. Call it with nothing
    /// locked.
    #[cold]
    pub(crate) fn splitting(&self, py: Python<'_>, (number, begin): (usize, i64)) -> PyErr {
        let made = || {
            let query = self
                .current_plan(py)?
                .getattr("queries")?
                .get_item(number)?;
            Ok(spec_error(format!(
                "{} now begins at {}, within a slice, and keep='slices' keeps no entries: \
                 insert() and advance() give its answers; leave keep= out to ask at any time",
                query.repr()?,
                self.restore(py, begin)?.str()?
            )))
        };
        made().unwrap_or_else(|error| error)
    }

    /// The error for an eviction up to a time within a slice. Call it with nothing locked.
    #[cold]
    pub(crate) fn split(&self, py: Python<'_>, time: i64) -> PyResult<PyErr> {
        Ok(spec_error(format!(
            "{} is within a slice, and keep='slices' keeps no entries: evict up to an end of \
             windows, or leave keep= out",
            self.restore(py, time)?.str()?
        )))
    }

    /// Declares that no more entries up to a time will arrive.
    pub(crate) fn advance(&self, py: Python<'_>, time: &Bound<'_, PyAny>) -> PyResult<()> {
        self.flush_terms(py)?;
        let entered = self.enter()?;
        let new = match self.clock() {
            Some(_) => None,
            None => Some(self.new_clock(time)?),
        };
        let clock = new.as_ref().or(self.clock()).expect("one of them is there");
        let ticks = clock.ticks(time)?;
        drop(entered);
        let mut state = self.lock(py)?;
        self.keep_clock(&mut state, new)?;
        if let Some(planning) = state.window.planning() {
            if let Err(refused) = planning.admits_advance(ticks) {
                drop(state);
                return Err(self.refusal(py, refused));
            }
            planning.advance(ticks);
        }
        state.collect_due();
        state.truncate_log();
        drop(state);
        self.sweep(py);
        Ok(())
    }

    /// The answers that fell due, by end and then by query.
    fn take_due(&self, py: Python<'_>) -> PyResult<Vec<DueAnswers>> {
        let mut state = self.lock(py)?;
        state.due_left = false;
        let mut due = std::mem::take(&mut state.due);
        drop(state);
        due.sort_by_key(|due| (due.end, due.query));
        Ok(due)
    }

    /// Leaves all answers except the failed one for the next call.
    fn leave_due(
        &self,
        py: Python<'_>,
        mut due: Vec<DueAnswers>,
        but: Option<usize>,
    ) -> PyResult<()> {
        if let Some(but) = but {
            due.remove(but);
        }
        let mut state = self.lock(py)?;
        due.append(&mut state.due);
        state.due_left = !due.is_empty();
        state.due = due;
        Ok(())
    }

    /// A list of (query, end, value).
    pub(crate) fn due_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let due = self.take_due(py)?;
        let list = PyList::empty(py);
        for (row, answered) in due.iter().enumerate() {
            let appended = self.append_due(py, &list, answered);
            if let Err(error) = appended {
                self.leave_due(py, due, Some(row))?;
                return self.flush_after(py, Err(error));
            }
        }
        drop(due);
        self.flush_after(py, Ok(list.into_any()))
    }

    fn append_due(
        &self,
        py: Python<'_>,
        list: &Bound<'_, PyList>,
        due: &DueAnswers,
    ) -> PyResult<()> {
        let value = match &self.spec().names {
            None => self.lower_one(
                py,
                due.answer.first().cloned().unwrap_or(Answer::Null),
                Some(due.end),
            )?,
            Some(_) => self.lower(py, due.answer.clone(), Some(due.end))?,
        };
        list.append((due.query, self.restore(py, due.end)?, value))
    }

    /// The same as columns.
    pub(crate) fn due_columns<'py>(&self, py: Python<'py>) -> PyResult<DueColumns<'py>> {
        let due = self.take_due(py)?;
        let numbers = due.iter().map(|due| due.query as i64);
        let ends = due.iter().map(|due| due.end);
        let array = |array: Int64Array| Bound::new(py, ArrowArray::new(array.into_data()));
        let numbers = array(numbers.collect())?;
        let ends = array(ends.collect())?;
        let mut columns = Vec::with_capacity(self.spec().aggs.len());
        for at in 0..self.spec().aggs.len() {
            if let Some(column) = self.plain_column(py, at, &due)? {
                columns.push(column.into_any());
                continue;
            }
            match self.lowered_column(py, at, &due) {
                Ok(column) => columns.push(column),
                Err((row, error)) => {
                    self.leave_due(py, due, row)?;
                    let none = self.flush_after(py, Err(error));
                    return none.and_then(|_| Err(internal_error("an error that is none")));
                }
            }
        }
        drop(due);
        let none = py.None().into_bound(py);
        self.flush_after(py, Ok(none))?;
        Ok((numbers, ends, columns, self.answer_types(py)?))
    }

    fn answer_types(&self, py: Python<'_>) -> PyResult<Vec<Option<AnswerTypeName>>> {
        let state = self.lock(py)?;
        let aggs = self.spec().aggs.iter();
        let names = aggs.map(|agg| answer_type(agg, agg.of.map(|of| state.dtypes[of])));
        Ok(names.collect())
    }

    /// The answers of an aggregation, if all of them are ints or all are floats.
    fn plain_column<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        due: &[DueAnswers],
    ) -> PyResult<Option<Bound<'py, ArrowArray>>> {
        let truth = self.bool_answers()[at].load(std::sync::atomic::Ordering::Relaxed);
        let spec = self.spec();
        if spec.timed[at] || spec.finished[at] || spec.clocked[at] || spec.ended[at] || truth {
            return Ok(None);
        }
        let answers = due.iter().map(|due| &due.answer[at]);
        let mut ints = Int64Builder::with_capacity(due.len());
        let mut floats = Float64Builder::with_capacity(due.len());
        for answer in answers {
            match answer {
                Answer::I64(int) => ints.append_value(*int),
                Answer::F64(float) => floats.append_value(*float),
                Answer::Null => {
                    ints.append_null();
                    floats.append_null();
                }
                _ => return Ok(None),
            }
        }
        let (ints, floats) = (ints.finish(), floats.finish());
        let known = |length: usize, nulls: usize| length == due.len() && nulls < length;
        let data = if known(ints.len(), ints.null_count()) {
            ints.into_data()
        } else if known(floats.len(), floats.null_count()) {
            floats.into_data()
        } else {
            return Ok(None);
        };
        Bound::new(py, ArrowArray::new(data)).map(Some)
    }

    /// The answers of an aggregation as an array of pyarrow; else the error, and the index of the
    /// answer that failed, if it was one.
    fn lowered_column<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        due: &[DueAnswers],
    ) -> Result<Bound<'py, PyAny>, (Option<usize>, PyErr)> {
        let list = PyList::empty(py);
        for (row, answered) in due.iter().enumerate() {
            if row % SIGNAL_CHECK_ROWS == SIGNAL_CHECK_ROWS - 1 {
                check_signals(py).map_err(|error| (None, error))?;
            }
            let value = self.lower_at(py, at, answered.answer[at].clone(), Some(answered.end));
            let appended = value.and_then(|value| list.append(value));
            appended.map_err(|error| (Some(row), error))?;
        }
        let made = self.current_plan(py).and_then(|plan| {
            let module = py.import("slidewise.window.due_answers")?;
            module.call_method1("value_array", (plan, at, list))
        });
        made.map_err(|error| (None, error))
    }
}

/// The type of the answers of an aggregation over a column whose type may still be open.
fn answer_type(agg: &AggSpec, dtype: Option<Option<Type>>) -> Option<AnswerTypeName> {
    let dtype = dtype.unwrap_or(Some(Type::Int));
    if matches!(agg.kind, Kind::Udaf { .. } | Kind::Native(_)) || dtype == Some(Type::Object) {
        return None;
    }
    let bools = dtype == Some(Type::Bool) && Spec::answers_value(agg);
    let open = dtype.is_none() && agg.answer_type(DType::I64) != agg.answer_type(DType::F64);
    let of_value = |name| match (open, bools) {
        (true, _) => "null",
        (_, true) => "bool",
        _ => name,
    };
    match agg.answer_type(dtype.map_or(DType::I64, Type::core)) {
        AnswerType::I64 => Some((false, of_value("int64"))),
        AnswerType::F64 => Some((false, of_value("float64"))),
        AnswerType::Bool => Some((false, "bool")),
        AnswerType::List(DType::I64) => Some((true, of_value("int64"))),
        AnswerType::List(DType::F64) => Some((true, of_value("float64"))),
        AnswerType::List(DType::Object) | AnswerType::Bytes => None,
    }
}
