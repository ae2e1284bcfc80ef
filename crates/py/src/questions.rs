//! `_core.Question`: what is asked of a `KeyedStore` again and again.

use std::sync::OnceLock;

use arrow_schema::Fields;
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
    /// Of the answers, once there were some.
    fields: OnceLock<Fields>,
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
            fields: OnceLock::new(),
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
        let names = self.names.iter().flatten();
        let asked = names.zip(outputs.into_iter().flatten());
        let (names, outputs): (Vec<_>, Vec<_>) = asked
            .filter_map(|(name, output)| Some((name.as_ref()?, output)))
            .unzip();
        let fits =
            |output: &Output| !matches!(output, Output::I64 { beyond, .. } if !beyond.is_empty());
        if !outputs.iter().all(fits) {
            return Ok(None);
        }
        let names = match self.fields.get() {
            Some(_) => Vec::new(),
            None => {
                let text = |name: &Py<PyString>| Ok(name.bind(py).to_cow()?.into_owned());
                names.into_iter().map(text).collect::<PyResult<Vec<_>>>()?
            }
        };
        let names = names.iter().map(String::as_str);
        export_batch(names, outputs, rows, &self.fields).map(Some)
    }
}

pub(crate) fn read_spans(spans: &[SpanTuple]) -> PyResult<Vec<Span>> {
    let spans: Vec<Span> = spans.iter().map(read_span).collect::<PyResult<_>>()?;
    match spans.iter().all(answers) {
        true => Ok(spans),
        false => Err(PyValueError::new_err("windows of rows")),
    }
}
