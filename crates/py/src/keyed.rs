//! `_core.KeyedStore`: the entries of many keys, Arrow columns in and out.

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, UInt32Array, make_array};
use arrow_schema::DataType;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use slidewise_core::aggregate::{Answer, DType};
use slidewise_core::keyed::{Cells, KeyColumn, MAX_WINDOWS, Points, Results, Store, store};

use crate::arrow::{ArrowArray, NumberArray, import};
use crate::forks::detach_shared;
use crate::key_bytes::{KeyBytes, decode};
use crate::keyed_inputs::{
    Entries, EntryColumns, GridTicks, Incoming, QueryPoints, check_length, export_times,
    folded_bytes, import_bytes, read_columns,
};
use crate::native;
use crate::prepared_query::{PreparedQuery, read_time_spans};
use crate::requests::{Call, SpanTicks};
use crate::tables::{Exported, export_all};

/// Entries by key, shared by all windows and aggregations of a request.
///
/// Any number of threads may query while one inserts; a query of one key sees all
/// rows of a batch or none.
#[pyclass(frozen, module = "slidewise._core")]
pub(crate) struct KeyedStore {
    store: Box<dyn Store>,
    dtypes: Vec<DType>,
    /// The number of answers of a fold.
    aggs: usize,
    key_types: Vec<DataType>,
    /// Whether rows have numbers.
    numbered: bool,
}

#[pymethods]
impl KeyedStore {
    /// `keys` are arrays of the types of the key columns, and `columns` of those of the
    /// inputs; both without rows. There may be no aggregations. The entries of a numbered
    /// store have the numbers of their rows.
    #[new]
    #[pyo3(signature = (aggs, keys, columns, natives, numbered = false))]
    fn new(
        aggs: Vec<Call>,
        keys: Vec<Bound<'_, PyAny>>,
        columns: Vec<Bound<'_, PyAny>>,
        natives: &Bound<'_, PyAny>,
        numbered: bool,
    ) -> PyResult<Self> {
        let natives = native::read_all(natives)?;
        let columns = read_columns(&columns)?;
        let dtypes: Vec<DType> = columns
            .iter()
            .map(|column| column.column::<i64>().dtype())
            .collect();
        let aggs = aggs
            .iter()
            .map(|call| call.read(dtypes.len(), &natives, None))
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
            store: store(&aggs, &dtypes, numbered),
            aggs: aggs.len(),
            dtypes,
            key_types,
            numbered,
        })
    }

    /// Removes the entries that equal one of `removals` in key, time and number, then inserts
    /// rows in any order: after entries of equal key and time, in the order given. A reader sees
    /// all changes of a key or none. Missing entries are ignored; keys without entries are
    /// removed. Returns the number of keys that have changed.
    #[pyo3(signature = (keys, times, columns, numbers = None, removals = None))]
    fn insert(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        columns: Vec<Bound<'_, PyAny>>,
        numbers: Option<Bound<'_, PyAny>>,
        removals: Option<Entries<'_>>,
    ) -> PyResult<usize> {
        let incoming = self.incoming(&keys, times, &columns, numbers.as_ref())?;
        let removals = self.removals(removals)?;
        Ok(detach_shared(py, || {
            let removals = removals
                .as_ref()
                .map(EntryColumns::view)
                .unwrap_or_default();
            self.store
                .insert(removals, incoming.rows(&incoming.views()))
        }))
    }

    /// As `insert`; also answers each row over the windows that end at its time: over the entries
    /// before the call, and the rows that arrived no later. `arrivals` are ranks. Returns the
    /// answers as `query` does, and the number of keys.
    #[allow(clippy::too_many_arguments)] // one call, one caller, all of them columns
    #[pyo3(signature = (keys, times, columns, arrivals, windows, numbers = None, removals = None))]
    fn insert_answering(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        columns: Vec<Bound<'_, PyAny>>,
        arrivals: &Bound<'_, PyAny>,
        windows: Vec<SpanTicks>,
        numbers: Option<Bound<'_, PyAny>>,
        removals: Option<Entries<'_>>,
    ) -> PyResult<(Exported, usize)> {
        let incoming = self.incoming(&keys, times, &columns, numbers.as_ref())?;
        let removals = self.removals(removals)?;
        let arrivals = NumberArray::import_keys(arrivals, "arrivals")?;
        check_length(&arrivals, &incoming.times)?;
        let spans = read_time_spans(&windows)?;
        let (outputs, changed) = detach_shared(py, || {
            let (views, arrivals) = (incoming.views(), arrivals.values());
            let rows = incoming.rows(&views);
            let removals = removals
                .as_ref()
                .map(EntryColumns::view)
                .unwrap_or_default();
            self.store
                .insert_answering(removals, rows, arrivals, &spans)
        });
        Ok((export_all(outputs)?, changed))
    }

    /// The answers by window and aggregation at keys and times, as `rolling` gives them.
    /// `plus` are the inputs of an extra row for each of these points.
    fn query(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        windows: Vec<SpanTicks>,
        plus: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<Exported> {
        let given = self.query_points(&keys, times, plus)?;
        let spans = read_time_spans(&windows)?;
        let outputs = detach_shared(py, || {
            let views = given.views();
            let points = given.points(views.as_deref());
            self.store.query(&points, &spans)
        });
        export_all(outputs)
    }

    /// For each window, the time of its first entry at keys and times; null if it is empty.
    fn first_times(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        windows: Vec<SpanTicks>,
    ) -> PyResult<Vec<ArrowArray>> {
        let given = self.query_points(&keys, times, None)?;
        let spans = read_time_spans(&windows)?;
        let firsts = detach_shared(py, || self.store.first_times(&given.points(None), &spans));
        Ok(export_times(firsts))
    }

    /// The answers of `query`, and the changes of the same windows as rows leave them in order of
    /// time: of each point the first ones, at most `most`. A change is a time after which a result
    /// differs. Returns the answers; the number of changes by window and point; and of all changes,
    /// in that order, the last times that left, and the answers of the remaining rows. `results`
    /// are, per result, the positions of its answers and that of its number of values: results of
    /// fewer than `min_rows` values are null.
    #[allow(clippy::too_many_arguments)] // as above
    fn query_with_changes(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        windows: Vec<SpanTicks>,
        plus: Option<Vec<Bound<'_, PyAny>>>,
        results: Vec<(Vec<usize>, Option<usize>)>,
        min_rows: i64,
        most: &Bound<'_, PyAny>,
    ) -> PyResult<(Exported, Vec<ArrowArray>, ArrowArray, Exported)> {
        let given = self.query_points(&keys, times, plus)?;
        let spans = read_time_spans(&windows)?;
        let places = results
            .iter()
            .flat_map(|(answers, count)| answers.iter().chain(count));
        if places.into_iter().any(|place| *place >= self.aggs) {
            return Err(PyValueError::new_err("results without an answer"));
        }
        let most = NumberArray::import_keys(most, "most")?;
        check_length(&most, &given.times)?;
        let results = Results {
            reads: results,
            min_rows,
            most: most.values().to_vec(),
        };
        let (outputs, changes) = detach_shared(py, || {
            let views = given.views();
            let points = given.points(views.as_deref());
            self.store.query_with_changes(&points, &spans, &results)
        });
        let times = |times: Vec<i64>| ArrowArray::new(Int64Array::from(times).into());
        Ok((
            export_all(outputs)?,
            changes.counts.into_iter().map(times).collect(),
            times(changes.times),
            export_all(changes.answers)?,
        ))
    }

    /// The answers of one key, by name; `None` if Arrow has to convert its values first, or if an
    /// integer does not fit.
    fn query_key<'py>(
        &self,
        py: Python<'py>,
        prepared: &PreparedQuery,
        key: &Bound<'py, PyAny>,
        at: i64,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(keys) = KeyBytes::of_values(&self.key_types, key)? else {
            return Ok(None);
        };
        let answer = prepared.blank(py)?;
        let mut done = Ok(true);
        let put = |span: usize, answers: &[Answer<i64>]| -> PyResult<bool> {
            for (value, name) in answers.iter().zip(&prepared.names[span]) {
                let name = name.bind(py);
                match value {
                    Answer::Null => {}
                    Answer::I64(value) => answer.set_item(name, value)?,
                    Answer::F64(value) => answer.set_item(name, value)?,
                    _ => return Ok(false),
                }
            }
            Ok(true)
        };
        let key = keys.view();
        self.store
            .query_key(key.key(0), at, &prepared.sorted, &mut |span, answers| {
                if matches!(done, Ok(true)) {
                    done = put(span, answers);
                }
            });
        Ok(done?.then_some(answer))
    }

    /// The answers of a few keys at one time: a record batch as a message of Arrow IPC, without
    /// its schema; `None` if an integer does not fit. The columns at `places` are the keys. If
    /// `leads`, the answers come after all columns, which are of numbers, times, text or binary.
    fn query_batch<'py>(
        &self,
        py: Python<'py>,
        prepared: &PreparedQuery,
        columns: Vec<Bound<'_, PyAny>>,
        places: Vec<usize>,
        at: i64,
        leads: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let array = |column| Ok(make_array(import(column)?));
        let mut columns: Vec<ArrayRef> = columns.iter().map(array).collect::<PyResult<_>>()?;
        if !places.iter().all(|at| *at < columns.len()) {
            return Err(PyValueError::new_err("keys without a column"));
        }
        let rows = columns.first().map_or(0, Array::len);
        if columns.iter().any(|column| column.len() != rows) {
            return Err(PyValueError::new_err("columns differ in length"));
        }
        let keys = KeyBytes::of_arrays(places.iter().map(|at| ArrayRef::clone(&columns[*at])))?;
        if !leads {
            columns.clear();
        }
        let times = vec![at; keys.view().len()];
        let numbers = detach_shared(py, || {
            let (keys, times, plus) = (keys.view(), &times[..], None);
            let points = Points { keys, times, plus };
            self.store.query_numbers(&points, &prepared.sorted)
        });
        let numbers = numbers.map(|numbers| prepared.message(py, &columns, &numbers));
        numbers.transpose()
    }

    /// The answers of a few keys at one time, as lists by name. The keys are lists of Python
    /// values, one per column; `None` as for `query_key`.
    fn query_lists<'py>(
        &self,
        py: Python<'py>,
        prepared: &PreparedQuery,
        columns: Vec<Bound<'py, PyList>>,
        at: i64,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(keys) = KeyBytes::of_lists(&self.key_types, &columns)? else {
            return Ok(None);
        };
        let times = vec![at; keys.view().len()];
        let numbers = detach_shared(py, || {
            let (keys, times, plus) = (keys.view(), &times[..], None);
            let points = Points { keys, times, plus };
            self.store.query_numbers(&points, &prepared.sorted)
        });
        let numbers = numbers.map(|numbers| prepared.lists(py, &numbers));
        numbers.transpose()
    }

    /// The answers at keys and times as a record batch with their names; `None` if an integer
    /// does not fit.
    fn query_table(
        &self,
        py: Python<'_>,
        prepared: &PreparedQuery,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
    ) -> PyResult<Option<ArrowArray>> {
        let given = self.query_points(&keys, times, None)?;
        let outputs = detach_shared(py, || {
            self.store.query(&given.points(None), &prepared.spans)
        });
        prepared.named(py, outputs, given.times.len())
    }

    /// The time of the last entry of each key; null for a key without entries. Without key
    /// columns there is one key.
    fn last_times(&self, py: Python<'_>, keys: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
        let keys = KeyBytes::read_all(&keys)?;
        let lasts = detach_shared(py, || self.store.last_times(keys.view()));
        Ok(ArrowArray::new(Int64Array::from(lasts).into()))
    }

    /// The numbers of the entries of each key between two times, both included, in order. Returns,
    /// first, the index of the key of each number, as uint32.
    fn rows(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        since: &Bound<'_, PyAny>,
        until: &Bound<'_, PyAny>,
    ) -> PyResult<(ArrowArray, ArrowArray)> {
        self.must_be_numbered()?;
        let since = NumberArray::import_keys(since, "since")?;
        let until = NumberArray::import_keys(until, "until")?;
        check_length(&until, &since)?;
        let keys = KeyBytes::read(&keys, since.len())?;
        let (points, numbers) = detach_shared(py, || {
            let ranges: (&[i64], &[i64]) = (since.values(), until.values());
            self.store.rows(keys.view(), ranges)
        });
        let points = ArrowArray::new(UInt32Array::from(points).into());
        Ok((points, ArrowArray::new(Int64Array::from(numbers).into())))
    }

    /// Whether the store has each of these entries.
    fn holds(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        numbers: &Bound<'_, PyAny>,
    ) -> PyResult<ArrowArray> {
        let entries = self.entries(&keys, times, numbers)?;
        let held = detach_shared(py, || self.store.holds(entries.view()));
        Ok(ArrowArray::new(BooleanArray::from(held).into()))
    }

    /// All keys, as columns of their types, and the times of their last entries: sorted by
    /// these times, then by the bytes of the key.
    fn keys(&self, py: Python<'_>) -> PyResult<(Vec<ArrowArray>, ArrowArray)> {
        let list = detach_shared(py, || self.store.keys());
        let columns = self.decoded(list.view(), 0..list.lasts.len())?;
        Ok((
            columns,
            ArrowArray::new(Int64Array::from(list.lasts).into()),
        ))
    }

    /// The windows `[end - length, end)` that hold an entry, where `end` is `offset + length`
    /// and some multiples of `every`, or the units of the grid's calendar, and
    /// `since < end <= until`: their keys, and their ends.
    /// Sorted by end, then as `keys` does. Without `since` from the first entry of each key
    /// on. Cost: O(log n) per window.
    fn windows(
        &self,
        py: Python<'_>,
        grid: GridTicks,
        since: Option<i64>,
        until: i64,
    ) -> PyResult<(Vec<ArrowArray>, ArrowArray)> {
        let grid = grid.read()?;
        let found = detach_shared(py, || self.store.windows(&grid, since, until));
        let (list, ends) = found.ok_or_else(|| PyMemoryError::new_err(MAX_WINDOWS))?;
        let keys = ends.iter().map(|(_, key)| *key as usize);
        let columns = self.decoded(list.view(), keys)?;
        let ends = Int64Array::from_iter_values(ends.iter().map(|(end, _)| *end));
        Ok((columns, ArrowArray::new(ends.into())))
    }

    /// The least end after `since` of such a window; None if there is none.
    fn next_window(
        &self,
        py: Python<'_>,
        grid: GridTicks,
        since: Option<i64>,
    ) -> PyResult<Option<i64>> {
        let grid = grid.read()?;
        Ok(detach_shared(py, || self.store.next_window(&grid, since)))
    }

    /// Removes the sessions whose last entry is at or before `until`, which no row after
    /// `until + gap` can join. Returns the numbers of their rows, key by key, in order.
    /// Neighbours in a session are at most `gap` apart.
    fn sessions(&self, py: Python<'_>, gap: i64, until: i64) -> PyResult<ArrowArray> {
        self.must_be_numbered()?;
        if gap < 0 {
            return Err(PyValueError::new_err("gap must not be negative"));
        }
        let numbers = detach_shared(py, || self.store.sessions(gap, until));
        Ok(ArrowArray::new(Int64Array::from(numbers).into()))
    }

    /// No session has its last entry before this time; None without entries.
    fn next_session(&self, py: Python<'_>, gap: i64) -> Option<i64> {
        detach_shared(py, || self.store.next_session(gap))
    }

    /// Folds the entries of each cell of a grid per key, those after `since` and up to `until`, where
    /// that takes less memory. A cell begins at `start`; `until` is the last tick of one. Returns
    /// all entries in that range: their keys, times, and bytes for `insert_folded`.
    #[pyo3(signature = (every, start, since, until))]
    fn fold_cells(
        &self,
        py: Python<'_>,
        every: i64,
        start: i64,
        since: Option<i64>,
        until: i64,
    ) -> PyResult<(Vec<ArrowArray>, ArrowArray, ArrowArray)> {
        if self.numbered || every <= 0 {
            return Err(PyValueError::new_err("rows are found again, or not a grid"));
        }
        let cells = Cells { every, start };
        let folded = detach_shared(py, || self.store.fold_cells(&cells, (since, until)));
        let times = Int64Array::from(folded.entries.lasts.clone());
        let keys = self.decoded(folded.entries.view(), 0..times.len())?;
        Ok((keys, ArrowArray::new(times.into()), folded_bytes(folded)))
    }

    /// Inserts entries of `fold_cells`, which may come from another store of the same request.
    fn insert_folded(
        &self,
        py: Python<'_>,
        keys: Vec<Bound<'_, PyAny>>,
        times: &Bound<'_, PyAny>,
        entries: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let times = NumberArray::import_keys(times, "times")?;
        let entries = import_bytes(entries, times.len())?;
        let keys = KeyBytes::read(&keys, times.len())?;
        if self.numbered {
            return Err(PyValueError::new_err("rows are found again"));
        }
        let done = detach_shared(py, || {
            let entries: Vec<&[u8]> = (0..entries.len()).map(|at| entries.value(at)).collect();
            self.store
                .insert_folded(keys.view(), times.values(), &entries)
        });
        done.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Allows to evict, per key, the entries at or before a time, except the last `keep_rows` of
    /// them; removes keys without other entries. Returns the number of these keys.
    #[pyo3(signature = (until, keep_rows = 0))]
    fn evict(&self, py: Python<'_>, until: i64, keep_rows: usize) -> usize {
        detach_shared(py, || self.store.evict(until, keep_rows))
    }

    /// Drops the keys whose last entry is at or before a time; returns their number.
    fn drop_idle(&self, py: Python<'_>, until: i64) -> usize {
        detach_shared(py, || self.store.drop_idle(until))
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
    fn incoming(
        &self,
        keys: &[Bound<'_, PyAny>],
        times: &Bound<'_, PyAny>,
        columns: &[Bound<'_, PyAny>],
        numbers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Incoming> {
        let times = NumberArray::import_keys(times, "times")?;
        let numbers = numbers.map(|numbers| NumberArray::import_keys(numbers, "numbers"));
        let numbers = numbers.transpose()?;
        match &numbers {
            Some(numbers) => {
                self.must_be_numbered()?;
                check_length(numbers, &times)?;
            }
            None if self.numbered => return Err(PyValueError::new_err("rows without numbers")),
            None => {}
        }
        Ok(Incoming {
            keys: KeyBytes::read(keys, times.len())?,
            columns: self.check(read_columns(columns)?, times.len())?,
            times,
            numbers,
        })
    }

    fn query_points(
        &self,
        keys: &[Bound<'_, PyAny>],
        times: &Bound<'_, PyAny>,
        plus: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<QueryPoints> {
        let times = NumberArray::import_keys(times, "times")?;
        let plus = plus.map(|plus| self.check(read_columns(&plus)?, times.len()));
        Ok(QueryPoints {
            keys: KeyBytes::read(keys, times.len())?,
            plus: plus.transpose()?,
            times,
        })
    }

    fn removals(&self, removals: Option<Entries<'_>>) -> PyResult<Option<EntryColumns>> {
        removals
            .map(|found| self.entries(&found.keys, &found.times, &found.numbers))
            .transpose()
    }

    fn entries(
        &self,
        keys: &[Bound<'_, PyAny>],
        times: &Bound<'_, PyAny>,
        numbers: &Bound<'_, PyAny>,
    ) -> PyResult<EntryColumns> {
        self.must_be_numbered()?;
        let times = NumberArray::import_keys(times, "times")?;
        let numbers = NumberArray::import_keys(numbers, "numbers")?;
        check_length(&numbers, &times)?;
        Ok(EntryColumns {
            keys: KeyBytes::read(keys, times.len())?,
            times,
            numbers,
        })
    }

    fn must_be_numbered(&self) -> PyResult<()> {
        match self.numbered {
            true => Ok(()),
            false => Err(PyValueError::new_err("a store without numbers of rows")),
        }
    }

    /// The keys at some places, as columns.
    fn decoded(
        &self,
        keys: KeyColumn<'_>,
        places: impl ExactSizeIterator<Item = usize>,
    ) -> PyResult<Vec<ArrowArray>> {
        let rows = places.len();
        let columns = decode(&self.key_types, rows, places.map(|at| keys.key(at)))?;
        Ok(columns.into_iter().map(ArrowArray::new).collect())
    }

    /// Refuses columns of other types or lengths than the store's.
    fn check(&self, columns: Vec<NumberArray>, rows: usize) -> PyResult<Vec<NumberArray>> {
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
