//! Inserting values into a window: one by one, or as whole columns.

use std::sync::Arc;

use pyo3::prelude::*;
use slidewise_core::aggregate::Cell;
use slidewise_core::window::Refused;

use crate::bulk::Batch;
use crate::clock::Clock;
use crate::errors::spec_error;
use crate::fast_path::{FastPath, fast_cell};
use crate::forks::detach_shared;
use crate::inputs::{Paired, Role, Type};
use crate::locking::Access;
use crate::scalars::small_int;
use crate::spec::Spec;
use crate::state::Row;
use crate::untyped::{TypeMismatch, Untyped, not_whole, read_key, read_value, widened_cell};

impl Access {
    #[inline]
    pub(crate) fn insert(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let fast_path = self.fast_path();
        if fast_path == FastPath::No as u8 {
            return self.insert_any(py, time, value);
        }
        let (Some(ticks), Some(row)) = (small_int(time), fast_cell(fast_path, value)) else {
            return self.insert_any(py, time, value);
        };
        let row = if fast_path == FastPath::Rows as u8 {
            &[][..]
        } else {
            std::slice::from_ref(&row)
        };
        let mut state = self.lock(py)?;
        if let Err(refused) = state.insert(ticks, row) {
            drop(state);
            return Err(self.refusal(py, refused));
        }
        if let Some(clock) = self.clock() {
            state.evict_by_clock(clock, self.spec());
        }
        Ok(())
    }

    fn insert_any(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.flush_terms(py)?;
        let inserted = self.convert_and_insert(py, time, value);
        self.sweep(py);
        inserted
    }

    fn convert_and_insert(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let entered = self.enter()?;
        let new = match self.clock() {
            Some(_) => None,
            None => Some(self.new_clock(time)?),
        };
        let clock = new.as_ref().or(self.clock()).expect("one of them is there");
        let clock = Arc::clone(clock);
        let ticks = clock.kept(py, clock.ticks(time)?)?;
        let wider = self.wider(py, value)?;
        let spec = self.spec_after(&wider);
        let row = self.read_row(py, spec, value, ticks)?;
        drop(entered);
        let mut state = self.lock(py)?;
        let mut dtypes = self.types(&state, &wider)?;
        let mut cells = Row::with_capacity(row.len());
        for (at, (value, input)) in row.into_iter().zip(&spec.inputs).enumerate() {
            if input.role == Role::Time {
                let counts = input.masks.is_empty() || !matches!(value, Untyped::Null);
                cells.push(if counts { Cell::I64(ticks) } else { Cell::Null });
                continue;
            }
            let cell = value.resolve_dtype(input, &mut dtypes[at], spec.nan);
            cells.push(cell.map_err(|why| why.into_error(spec.column_name(py, input), None))?);
        }
        if let Err(at) = spec.share_types(&mut dtypes) {
            let input = &spec.inputs[at];
            let why = TypeMismatch(not_whole(input, "a float came"));
            return Err(why.into_error(spec.column_name(py, input), None));
        }
        for ((cell, input), dtype) in cells.iter_mut().zip(&spec.inputs).zip(&dtypes) {
            if input.role == Role::Number && dtype.is_some_and(Type::is_float) {
                *cell = widened_cell(std::mem::replace(cell, Cell::Null));
            }
        }
        let admitted = state.admits(&[ticks]);
        if let Err(refused) = admitted {
            drop(state);
            return Err(self.refusal(py, refused));
        }
        self.keep_clock(&mut state, new)?;
        self.widen(&mut state, wider.as_ref().map(|spec| spec.clone_ref(py)));
        if dtypes != state.dtypes {
            state
                .resolve_dtypes(self.spec(), dtypes)
                .map_err(|why| cannot_widen(&why))?;
        }
        let inserted = state.insert(ticks, &cells);
        debug_assert!(inserted.is_ok(), "admitted above");
        state.evict_by_clock(&clock, self.spec());
        self.choose_fast_path(&state);
        Ok(())
    }

    /// The values of one entry, by input column.
    fn read_row(
        &self,
        py: Python<'_>,
        spec: &Spec,
        value: Option<&Bound<'_, PyAny>>,
        ticks: i64,
    ) -> PyResult<Vec<Untyped>> {
        let inputs = spec.inputs.iter();
        let value = value.filter(|value| !value.is_none());
        let Some(value) = value else {
            return Ok(inputs.map(|_| Untyped::Null).collect());
        };
        let get = |source| spec.value_of(value, source);
        inputs
            .map(|input| {
                if !spec.counts(input, get)? {
                    return Ok(Untyped::Null);
                }
                if input.role == Role::Time {
                    return Ok(Untyped::Int(ticks));
                }
                let value = get(input.source)?;
                match (input.role, self.udaf_calls_of(spec, py)) {
                    (Role::Udaf(number), Some(udaf_calls)) => match input.paired {
                        None => udaf_calls.lift(number, &value, spec.nan),
                        Some(Paired::Column(column)) => {
                            udaf_calls.lift_with(number, &value, &get(column)?, spec.nan)
                        }
                        Some(Paired::Time) => {
                            let time = ticks.into_pyobject(py)?;
                            udaf_calls.lift_with(number, &value, time.as_any(), spec.nan)
                        }
                    },
                    (Role::Key, _) => read_key(&value, spec.nan, self.store()),
                    (role, _) => read_value(&value, role, self.store()),
                }
            })
            .collect()
    }

    /// Resolves the dtypes of whole columns and inserts them, without the GIL. The columns are
    /// dropped after the window is unlocked.
    pub(crate) fn insert_columns(&self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        let mut columns = batch.columns;
        let wider = batch.wider.as_ref().map(|spec| spec.clone_ref(py));
        let spec = self.spec_after(&batch.wider);
        let done = detach_shared(py, || {
            let mut typed = Vec::with_capacity(columns.len());
            let mut state = self.lock_detached()?;
            let mut dtypes = self.types(&state, &batch.wider)?;
            for (at, column) in columns.iter_mut().enumerate() {
                match column.resolve_dtype(&spec.inputs[at], &mut dtypes[at], spec.nan) {
                    Ok(column) => typed.push(column),
                    Err((why, row)) => return Ok(InsertOutcome::TypeMismatch(why, at, row)),
                }
            }
            if let Err(at) = spec.share_types(&mut dtypes) {
                let why = TypeMismatch(not_whole(&spec.inputs[at], "floats came"));
                return Ok(InsertOutcome::TypeMismatch(why, at, None));
            }
            let widened = typed.into_iter().zip(spec.inputs.iter().zip(&dtypes));
            let typed: Vec<_> = widened
                .map(|(column, (input, dtype))| {
                    let floats = input.role == Role::Number && dtype.is_some_and(Type::is_float);
                    if floats { column.widened() } else { column }
                })
                .collect();
            let times = batch.ticks.values();
            let clock = batch
                .clock
                .as_deref()
                .or(self.clock().map(|clock| &**clock));
            let admitted = state.admits(times);
            if let Err(refused) = admitted.and_then(|()| state.admits_batch(times, clock)) {
                return Ok(InsertOutcome::Refused(refused, batch.clock));
            }
            self.keep_clock(&mut state, batch.clock)?;
            self.widen(&mut state, wider);
            if let Err(why) = state.resolve_dtypes(self.spec(), dtypes) {
                return Err(cannot_widen(&why));
            }
            let columns: Vec<_> = typed.iter().map(|column| column.column()).collect();
            state.insert_many(batch.ticks.values(), &columns);
            if let Some(clock) = self.clock() {
                state.evict_by_clock(clock, self.spec());
            }
            self.choose_fast_path(&state);
            PyResult::Ok(InsertOutcome::Inserted)
        })?;
        drop(columns);
        match done {
            InsertOutcome::Inserted => Ok(()),
            InsertOutcome::Refused(refused, clock) => {
                let clock = clock.as_deref().or(self.clock().map(|clock| &**clock));
                Err(self.refusal_before(py, refused, clock))
            }
            InsertOutcome::TypeMismatch(why, at, row) => {
                let column = spec.column_name(py, &spec.inputs[at]);
                Err(why.into_error(column, row))
            }
        }
    }
}

fn cannot_widen(why: &str) -> PyErr {
    spec_error(format!(
        "the integers of this window cannot become floats: {why}; create it with \
         dtype='float64'"
    ))
}

/// The outcome of a bulk insert.
enum InsertOutcome {
    Inserted,
    /// With the clock that the batch would have brought.
    Refused(Refused, Option<Arc<Clock>>),
    TypeMismatch(TypeMismatch, usize, Option<usize>),
}
