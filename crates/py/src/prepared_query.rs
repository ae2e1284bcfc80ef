//! `_core.PreparedQuery`: windows and names that are used for many queries.

use std::sync::OnceLock;

use arrow_array::ArrayRef;
use arrow_schema::Fields;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use slidewise_core::keyed::{NumberColumn, NumberColumns, Spans, answers};
use slidewise_core::rolling::{Output, Span};

use crate::arrow::ArrowArray;
use crate::batch_message::message;
use crate::requests::{SpanTicks, read_spans};
use crate::tables::export_batch;

/// Windows and the names of their answers, read once for many queries of `KeyedStore`.
#[pyclass(frozen, module = "slidewise._core")]
pub(crate) struct PreparedQuery {
    pub(crate) spans: Vec<Span>,
    pub(crate) sorted: Spans,
    /// By window and aggregation.
    pub(crate) names: Vec<Vec<Py<PyString>>>,
    /// By aggregation, whether its answers are floats.
    floats: Vec<bool>,
    /// All names in order, with None: a copy of it has room for all answers.
    blank: Py<PyDict>,
    /// The fields of the answers, once there were some.
    fields: OnceLock<Fields>,
}

#[pymethods]
impl PreparedQuery {
    #[new]
    fn new(
        py: Python<'_>,
        spans: Vec<SpanTicks>,
        names: Vec<Vec<Py<PyString>>>,
        floats: Vec<bool>,
    ) -> PyResult<Self> {
        let spans = read_time_spans(&spans)?;
        let blank = PyDict::new(py);
        for name in names.iter().flatten() {
            blank.set_item(name, py.None())?;
        }
        Ok(Self {
            blank: blank.unbind(),
            sorted: Spans::new(&spans),
            spans,
            names,
            floats,
            fields: OnceLock::new(),
        })
    }
}

impl PreparedQuery {
    /// All names in order, with None.
    pub(crate) fn blank<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.blank.bind(py).copy()
    }

    /// The answers as lists of Python's numbers, by name.
    pub(crate) fn lists<'py>(
        &self,
        py: Python<'py>,
        numbers: &NumberColumns,
    ) -> PyResult<Bound<'py, PyDict>> {
        let answers = self.blank(py)?;
        for (window, names) in self.names.iter().enumerate() {
            for (agg, name) in names.iter().enumerate() {
                let column = numbers.column(window, agg);
                let is_float = self.floats.get(agg).copied().unwrap_or(false);
                let values = column.values.iter().enumerate().map(|(row, bits)| {
                    match (column.valid[row / 64] >> (row % 64) & 1, is_float) {
                        (0, _) => py.None().into_bound(py),
                        (_, true) => PyFloat::new(py, f64::from_bits(*bits)).into_any(),
                        (_, false) => PyInt::new(py, *bits as i64).into_any(),
                    }
                });
                answers.set_item(name.bind(py), PyList::new(py, values)?)?;
            }
        }
        Ok(answers)
    }

    /// Some columns, then the answers in the order of the names, as a record batch without its
    /// schema.
    pub(crate) fn message<'py>(
        &self,
        py: Python<'py>,
        leading: &[ArrayRef],
        numbers: &NumberColumns,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let by_window = self.names.iter().enumerate();
        let columns = by_window.flat_map(|(window, names)| {
            (0..names.len()).map(move |agg| numbers.column(window, agg))
        });
        let columns: Vec<NumberColumn<'_>> = columns.collect();
        message(py, leading, &columns, numbers.rows())
    }

    /// The answers by window and aggregation as a record batch with their names; `None` if an
    /// integer does not fit.
    pub(crate) fn named(
        &self,
        py: Python<'_>,
        outputs: Vec<Vec<Output>>,
        rows: usize,
    ) -> PyResult<Option<ArrowArray>> {
        let outputs: Vec<Output> = outputs.into_iter().flatten().collect();
        let fits =
            |output: &Output| !matches!(output, Output::I64 { beyond, .. } if !beyond.is_empty());
        if !outputs.iter().all(fits) {
            return Ok(None);
        }
        let names = match self.fields.get() {
            Some(_) => Vec::new(),
            None => {
                let text = |name: &Py<PyString>| Ok(name.bind(py).to_cow()?.into_owned());
                let names = self.names.iter().flatten();
                names.map(text).collect::<PyResult<Vec<_>>>()?
            }
        };
        let names = names.iter().map(String::as_str);
        export_batch(names, outputs, rows, &self.fields).map(Some)
    }
}

pub(crate) fn read_time_spans(spans: &[SpanTicks]) -> PyResult<Vec<Span>> {
    let spans = read_spans(spans)?;
    match spans.iter().all(answers) {
        true => Ok(spans),
        false => Err(PyValueError::new_err("windows of rows")),
    }
}
