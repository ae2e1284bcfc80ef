//! Reads the arguments of `insert_many`.

use std::sync::Arc;

use arrow_array::{Array, Int64Array};
use pyo3::prelude::*;

use crate::arrow::NumberArray;
use crate::clock::Clock;
use crate::columns::{BulkReader, for_each, native};
use crate::dtype_inference::UntypedColumn;
use crate::errors::{with_note, with_prefix};
use crate::locking::Access;
use crate::spec::Spec;

type Found<'py> = (Option<Bound<'py, PyAny>>, Option<Py<Spec>>);

/// Entries to insert together: all conversions that need Python are done.
pub(crate) struct Batch {
    pub(crate) ticks: Int64Array,
    pub(crate) columns: Vec<UntypedColumn>,
    /// The clock that the window gets, if it has none yet.
    pub(crate) clock: Option<Arc<Clock>>,
    /// The wider spec that the window needs, if a column's first value is an object.
    pub(crate) wider: Option<Py<Spec>>,
}

impl Access {
    pub(crate) fn read_batch<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
        values: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Batch> {
        let _entered = self.enter()?;
        let (mut ticks, mut clock) = self.read_times(py, times)?;
        if ticks.is_empty() {
            clock = None; // no entry, no kind of time
        }
        if let Some(clock) = clock.as_ref().or(self.clock()) {
            let times = ticks.values().iter();
            if clock.granularity != 1 {
                let kept: PyResult<Vec<i64>> = times.map(|time| clock.kept(py, *time)).collect();
                ticks = kept?.into();
            } else if !clock.int {
                for end in times.clone().min().into_iter().chain(times.max()) {
                    clock.kept(py, *end)?;
                }
            }
        }
        let (values, wider) = self.find_objects(py, values)?;
        let spec = self.spec_after(&wider);
        let reader = BulkReader {
            py,
            spec,
            store: self.store(),
            udaf_calls: self.udaf_calls_of(spec, py),
            ticks: &ticks,
        };
        let columns = reader.read(values.as_ref())?;
        Ok(Batch {
            ticks,
            columns,
            clock,
            wider,
        })
    }

    /// The values, and the wider spec that they need. Of an iterator, the first values may
    /// have been read and put back.
    fn find_objects<'py>(
        &self,
        py: Python<'py>,
        values: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Found<'py>> {
        let open = self.open_sources(py)?;
        let Some(values) = values.filter(|values| !values.is_none() && !open.is_empty()) else {
            return Ok((values.cloned(), None));
        };
        let names = self.spec().columns.as_ref();
        let names: Option<Vec<_>> = names.map(|names| names.iter().map(|n| n.bind(py)).collect());
        let found = py
            .import("slidewise.window.bulk_input")?
            .call_method1("find_objects", (values, names, open))
            .map_err(|error| with_note(py, error, "reading the values of insert_many"))?;
        let (values, sources): (Bound<'py, PyAny>, Vec<usize>) = found.extract()?;
        Ok((Some(values), self.wider_by(py, sources, "a value")?))
    }

    /// Ticks, and the clock that reads them if the window has none yet.
    fn read_times<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
    ) -> PyResult<(Int64Array, Option<Arc<Clock>>)> {
        if self.clock().is_none_or(|clock| clock.int)
            && let Some(NumberArray::I64(ticks)) = native(times)?
            && ticks.null_count() == 0
        {
            return Ok((ticks, self.int_clock(py)?));
        }
        let known = self.clock().map(|clock| clock.object(py).clone());
        let read = py
            .import("slidewise.window.bulk_input")?
            .call_method1("read_times", (times, self.current_plan(py)?, known))
            .map_err(|error| with_note(py, error, "reading the times of insert_many"))?;
        if read.is_none() {
            return self.iterate_times(times);
        }
        let (clock, ticks): (Bound<'_, PyAny>, Bound<'_, PyAny>) = read.extract()?;
        let ticks = NumberArray::import_keys(&ticks, "times")?;
        let clock = match self.clock() {
            Some(_) => None,
            None => Some(Arc::new(Clock::read(clock)?)),
        };
        Ok((ticks, clock))
    }

    fn int_clock(&self, py: Python<'_>) -> PyResult<Option<Arc<Clock>>> {
        match self.clock() {
            Some(_) => Ok(None),
            None => self.new_clock(0_i64.into_pyobject(py)?.as_any()).map(Some),
        }
    }

    fn iterate_times(
        &self,
        times: &Bound<'_, PyAny>,
    ) -> PyResult<(Int64Array, Option<Arc<Clock>>)> {
        let py = times.py();
        let mut ticks = Vec::new();
        let mut new = None;
        for_each(times, "times", |row, time| {
            if new.is_none() && self.clock().is_none() {
                new = Some(
                    self.new_clock(&time)
                        .map_err(|error| placed(py, error, row))?,
                );
            }
            let clock = new.as_ref().or(self.clock()).expect("one of them is there");
            let read = clock.ticks(&time);
            ticks.push(read.map_err(|error| placed(py, error, row))?);
            Ok(())
        })?;
        Ok((ticks.into(), new))
    }
}

/// Adds the row to a SpecError.
fn placed(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    with_prefix(py, error, &format!("row {row}:"))
}
