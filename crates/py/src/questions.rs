//! `_core.Question`: what is asked of a `KeyedStore` again and again.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use slidewise_core::keyed::answers;
use slidewise_core::rolling::{Length, Output, Span};

use crate::arrow::ArrowArray;
use crate::tables::{SpanTuple, export_batch, read_span};

/// Windows and the names of their answers: what `KeyedStore.ask` and
/// `ask_many` need again and again.
#[pyclass(frozen, module = "slidewise._core")]
pub(crate) struct Question {
    pub(crate) spans: Vec<Span>,
    /// By window and aggregation; `None`: not in the answer.
    pub(crate) names: Vec<Vec<Option<Py<PyString>>>>,
    /// Whether answers come in this order, the shortest window first.
    pub(crate) ascends: bool,
}

#[pymethods]
impl Question {
    #[new]
    fn new(spans: Vec<SpanTuple>, names: Vec<Vec<Option<Py<PyString>>>>) -> PyResult<Self> {
        let spans = read_spans(&spans)?;
        let lengths = spans.iter().map(|span| match span.length {
            Length::Time(length) => length,
            Length::Rows(_) => i64::MAX,
        });
        Ok(Self {
            ascends: lengths.is_sorted(),
            spans,
            names,
        })
    }
}

impl Question {
    /// The answers by window and aggregation as a record batch with their names; `None` if an
    /// integer does not fit.
    pub(crate) fn named(
        &self,
        py: Python<'_>,
        outputs: Vec<Vec<Output>>,
        rows: usize,
    ) -> PyResult<Option<ArrowArray>> {
        let mut columns = Vec::new();
        for (output, name) in (outputs.into_iter().zip(&self.names))
            .flat_map(|(outputs, names)| outputs.into_iter().zip(names))
        {
            let Some(name) = name else { continue };
            if matches!(&output, Output::I64 { beyond, .. } if !beyond.is_empty()) {
                return Ok(None);
            }
            columns.push((name.bind(py).to_cow()?.into_owned(), output));
        }
        export_batch(columns, rows).map(Some)
    }
}

pub(crate) fn read_spans(spans: &[SpanTuple]) -> PyResult<Vec<Span>> {
    let spans: Vec<Span> = spans.iter().map(read_span).collect::<PyResult<_>>()?;
    match spans.iter().all(answers) {
        true => Ok(spans),
        false => Err(PyValueError::new_err("windows of rows")),
    }
}
