//! `_core.KeyedStore`: the entries of many keys, Arrow columns in and out.

use arrow_array::Int64Array;
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use slidewise_core::aggregate::column::Column;
use slidewise_core::aggregate::{Answer, DType};
use slidewise_core::keyed::{Points, Store, answers, store};
use slidewise_core::rolling::{Length, Overflow, Span};

use crate::arrow::{ArrowArray, Numbers, import};
use crate::errors::kernel_error;
use crate::key_bytes::KeyBytes;
use crate::native;
use crate::tables::{AggTuple, Exported, SpanTuple, export_all, read_agg, read_span};

/// Entries by key, shared by all windows and aggregations of a request.
///
/// Any number of threads may ask while one inserts; each question about one key sees all
/// rows of a batch or none.
#[pyclass(frozen, module = "slidewise._core")]
pub(crate) struct KeyedStore {
    store: Box<dyn Store>,
    dtypes: Vec<DType>,
    key_types: Vec<DataType>,
}

/// Windows and the names of their answers: what `KeyedStore.ask` needs again and again.
#[pyclass(frozen, module = "slidewise._core")]
pub(crate) struct Question {
    spans: Vec<Span>,
    /// By window and aggregation; `None`: not in the answer.
    names: Vec<Vec<Option<Py<PyString>>>>,
    /// Whether answers come in this order, the shortest window first.
    ascends: bool,
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

fn read_spans(spans: &[SpanTuple]) -> PyResult<Vec<Span>> {
    let spans: Vec<Span> = spans.iter().map(read_span).collect::<PyResult<_>>()?;
    match spans.iter().all(answers) {
        true => Ok(spans),
        false => Err(PyValueError::new_err("windows of rows")),
    }
}

fn read_columns(columns: &[Bound<'_, PyAny>]) -> PyResult<Vec<Numbers>> {
    columns.iter().map(Numbers::import).collect()
}

#[pymethods]
impl KeyedStore {
    /// `keys` are arrays of the types of the key columns, and `columns` of those of the
    /// inputs; both without rows.
    #[new]
    fn new(
        aggs: Vec<AggTuple>,
        keys: Vec<Bound<'_, PyAny>>,
        columns: Vec<Bound<'_, PyAny>>,
        natives: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let natives = native::read_all(natives)?;
        let columns = read_columns(&columns)?;
        let dtypes: Vec<DType> = columns
            .iter()
            .map(|column| column.column::<i64>().dtype())
            .collect();
        let aggs = aggs
            .iter()
            .map(|agg| read_agg(agg, dtypes.len(), &natives))
            .collect::<PyResult<Vec<_>>>()?;
        if aggs.iter().any(|agg| agg.kind.is_holistic()) {
            return Err(PyValueError::new_err(
                "holistic aggregations have no partials",
            ));
        }
        let key_types = keys
            .iter()
            .map(|key| Ok(import(key)?.data_type().clone()))
            .collect::<PyResult<_>>()?;
        Ok(Self {
            store: store(&aggs, &dtypes),
            dtypes,
            key_types,
        })
    }

    /// Inserts rows in any order; those of equal key and time stay in their order. The keys
    /// in `gone`, so many of them, go first, with all their entries.
    #[pyo3(signature = (keys, times, columns, gone = (vec![], 0)))]
    fn insert(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        columns: Vec<Bound<'_, PyAny>>,
        gone: (Vec<Bound<'_, PyAny>>, usize),
    ) -> PyResult<()> {
        let times = Numbers::import_keys(times, "times")?;
        let rows = times.values().len();
        let keys = KeyBytes::read(&keys, rows)?;
        let gone = KeyBytes::read(&gone.0, gone.1)?;
        let columns = self.check(read_columns(&columns)?, rows)?;
        py.detach(|| {
            let views: Vec<Column<'_, i64>> = columns.iter().map(Numbers::column).collect();
            let all = times.values().to_vec();
            self.store.replace(gone.view(), keys.view(), all, &views);
        });
        Ok(())
    }

    /// The answers by window and aggregation at keys and times, as `rolling` gives them.
    /// `plus` are the inputs of a row more for each of them.
    fn query(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        windows: Vec<SpanTuple>,
        plus: Option<Vec<Bound<'_, PyAny>>>,
        fails: bool,
    ) -> PyResult<Exported> {
        let times = Numbers::import_keys(times, "times")?;
        let rows = times.values().len();
        let keys = KeyBytes::read(&keys, rows)?;
        let spans = read_spans(&windows)?;
        let plus = plus.map(|plus| self.check(read_columns(&plus)?, rows));
        let plus = plus.transpose()?;
        let outputs = py.detach(|| {
            let views: Option<Vec<Column<'_, i64>>> = plus
                .as_ref()
                .map(|columns| columns.iter().map(Numbers::column).collect());
            let points = Points {
                keys: keys.view(),
                times: times.values(),
                plus: views.as_deref(),
            };
            self.store.query(&points, &spans, overflow(fails))
        });
        export_all(outputs.map_err(|error| kernel_error(py, error, None))?)
    }

    /// For each window, the time of the first entry in it at keys and times; null where it
    /// is empty.
    fn first_times(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        windows: Vec<SpanTuple>,
        plus: bool,
    ) -> PyResult<Vec<ArrowArray>> {
        let times = Numbers::import_keys(times, "times")?;
        let keys = KeyBytes::read(&keys, times.values().len())?;
        let spans = read_spans(&windows)?;
        let firsts = py.detach(|| {
            let points = Points {
                keys: keys.view(),
                times: times.values(),
                plus: plus.then_some(&[]),
            };
            self.store.first_times(&points, &spans)
        });
        let columns = firsts.into_iter();
        Ok(columns
            .map(|first| ArrowArray::new(Int64Array::from(first).into()))
            .collect())
    }

    /// The answers for one key, by name; `None` if Arrow must convert its values first, or an
    /// integer does not fit.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        question: &Question,
        key: &Bound<'py, PyAny>,
        at: i64,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(keys) = KeyBytes::of_values(&self.key_types, key)? else {
            return Ok(None);
        };
        let answer = PyDict::new(py);
        if !question.ascends {
            // Names in the order of the windows.
            for name in question.names.iter().flatten().flatten() {
                answer.set_item(name.bind(py), py.None())?;
            }
        }
        let mut done = Ok(true);
        let put = |span: usize, answers: &[Answer<i64>]| -> PyResult<bool> {
            for (value, name) in answers.iter().zip(&question.names[span]) {
                let Some(name) = name else { continue };
                let name = name.bind(py);
                match value {
                    Answer::Null => answer.set_item(name, py.None())?,
                    Answer::I64(value) => answer.set_item(name, value)?,
                    Answer::F64(value) => answer.set_item(name, value)?,
                    _ => return Ok(false),
                }
            }
            Ok(true)
        };
        let key = keys.view();
        self.store
            .ask(key.key(0), at, &question.spans, &mut |span, answers| {
                if matches!(done, Ok(true)) {
                    done = put(span, answers);
                }
            });
        Ok(done?.then_some(answer))
    }

    /// Lets the entries up to a time go, and the keys that have no others; gives the number
    /// of these keys.
    fn evict(&self, py: Python<'_>, until: i64) -> usize {
        py.detach(|| self.store.evict(until))
    }

    fn __len__(&self) -> usize {
        self.store.len()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.store.bytes()
    }

    /// Checks the invariants; raises AssertionError.
    fn check_invariants(&self) -> PyResult<()> {
        self.store
            .check()
            .map_err(pyo3::exceptions::PyAssertionError::new_err)
    }
}

impl KeyedStore {
    /// Refuses columns of other types or lengths than the store's.
    fn check(&self, columns: Vec<Numbers>, rows: usize) -> PyResult<Vec<Numbers>> {
        let dtypes = columns.iter().map(|column| column.column::<i64>().dtype());
        if !dtypes.eq(self.dtypes.iter().copied()) {
            return Err(PyTypeError::new_err("columns differ from the store's"));
        }
        if columns.iter().any(|column| column.len() != rows) {
            return Err(PyValueError::new_err("columns differ in length"));
        }
        Ok(columns)
    }
}

fn overflow(fails: bool) -> Overflow {
    match fails {
        true => Overflow::Fail,
        false => Overflow::Null,
    }
}
