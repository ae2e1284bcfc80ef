//! `slidewise._core.Window`: the native base class of `slidewise.Window`.

mod contents;
mod drawing;
mod eviction;

use pyo3::PyTraverseError;
use pyo3::prelude::*;
use pyo3::pyclass::PyVisit;
use pyo3::types::{PyBytes, PyList, PyType};
use slidewise_core::aggregate::Answer;

use crate::errors::internal_error;
use crate::inputs::{Role, Type};
use crate::locking::Access;
use crate::object_store::{Object, ObjectStore};
use crate::queries::DueColumns;
use crate::refusals::Migrated;
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals};
use crate::snapshot;
use crate::spec::Spec;
use crate::state::{State, WindowParts};
pub(crate) use contents::Contents;
use contents::new_window;
use drawing::Drawn;

/// The native part of `slidewise.Window`; use that class.
#[pyclass(subclass, frozen, weakref, module = "slidewise._core")]
pub(crate) struct Window(Access);

/// An argument that may be left out, which None is not.
enum Given<'a, 'py> {
    Nothing,
    Value(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'a, 'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Value(value))
    }
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (spec, contents = None))]
    fn new(spec: &Bound<'_, Spec>, contents: Option<&Bound<'_, Contents>>) -> PyResult<Self> {
        let parts = match contents {
            Some(contents) => contents.get().take()?,
            None => WindowParts {
                state: State::new(spec.get()),
                store: spec.get().holds_objects().then(ObjectStore::default),
                clock: None,
            },
        };
        Ok(Self(Access::new(spec.clone().unbind(), parts)))
    }

    /// Inserts an entry, in order or late.
    ///
    /// Args:
    ///     time: The event time: an int, or a datetime, date, numpy.datetime64 or
    ///         pandas.Timestamp. The first time decides which of these.
    ///     value: An int or a float; any object for `collect()`; a mapping with a value
    ///         per column if the aggregations name columns. None is a missing value: only
    ///         `count()` of rows counts its entry. May be left out for `count()` of rows.
    ///
    /// If the window has an entry at this time, ties="combine" combines the value with it,
    /// as the later operand; ties="keep" adds a second entry.
    ///
    /// Raises:
    ///     SpecError: If the time is of another kind than the first one, or the value
    ///         does not fit the type of its column. The window is unchanged.
    ///     OutOfOrderError: If the algorithm takes entries in order only and the youngest
    ///         is younger than this one. The window is unchanged.
    ///
    /// Cost: amortised O(log d) combines, where d is the number of younger entries; O(1)
    /// in order.
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.max())
    ///     >>> w.insert(17, 4.0)
    ///     >>> w.insert(19, 3.0)
    ///     >>> w.insert(18, 5.0)
    ///     >>> w.query()
    ///     5.0
    #[pyo3(signature = (time, value = Given::Nothing))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        time: &Bound<'py, PyAny>,
        value: Given<'_, '_>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match value {
            Given::Value(value) => self.0.insert(py, time, Some(&value))?,
            Given::Nothing => {
                self.0.spec().refuse_no_values("insert(time, value)")?;
                self.0.insert(py, time, None)?;
            }
        }
        self.due(py)
    }

    /// Inserts many entries at once, all of them or none.
    ///
    /// Args:
    ///     times: The times, in any order: a numpy array, an Arrow array, a pandas or
    ///         polars Series, or any iterable. Entries of equal time keep this order.
    ///     values: A value for each time, in the same types. If the aggregations name
    ///         columns: a mapping from their names to such arrays, a table, or an iterable
    ///         of mappings. May be left out for `count()` of rows.
    ///
    /// Arrays of int64 and float64 are read without a copy, and inserted with the GIL
    /// released; pyarrow converts other arrays; iterables are read item by item.
    ///
    /// Raises:
    ///     SpecError: If the lengths differ, a time is missing, or a value does not fit.
    ///         The message names the row, counting from 0.
    ///     OutOfOrderError: If the algorithm takes entries in order only and the oldest of
    ///         these is late.
    ///     WindowBusyError: If an iterable uses the window that it is inserted into.
    ///
    /// An exception of an iterable is raised unchanged. The window is then unchanged, too.
    ///
    /// Cost: O(m) if sorted, else O(m log m), plus O(m (1 + log(d/m))) combines for m
    /// entries, the oldest of which has d younger ones.
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert_many([3, 1, 2], [30, 10, 20])
    ///     >>> w.query(), w.query(2, 3)
    ///     (60, 50)
    #[pyo3(signature = (times, values = None))]
    fn insert_many<'py>(
        &self,
        py: Python<'py>,
        times: &Bound<'py, PyAny>,
        values: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        self.0.flush_terms(py)?;
        let read = self.0.read_batch(py, times, values);
        let inserted = read.and_then(|batch| self.0.insert_columns(py, batch));
        self.0.sweep(py);
        inserted
    }

    /// The answers that fell due as columns: queries, ends in ticks, and the answers of
    /// each aggregation, all as Arrow arrays.
    fn _due_columns<'py>(&self, py: Python<'py>) -> PyResult<DueColumns<'py>> {
        self.0.due_columns(py)
    }

    /// Declares that no more entries up to a time will arrive; returns the answers that
    /// fell due.
    fn _advance<'py>(
        &self,
        py: Python<'py>,
        time: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.advance(py, time)?;
        self.due(py)
    }

    /// Adds a query and returns its number.
    fn _add_query(&self, py: Python<'_>, query: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.0.add_query(py, query)
    }

    /// Drops a query; False if no query has that number.
    fn _drop_query(&self, py: Python<'_>, number: usize) -> PyResult<bool> {
        self.0.drop_query(py, number)
    }

    /// The number of slices; None for a window without queries.
    fn _slices(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let mut state = self.0.lock(py)?;
        Ok(state
            .window
            .planning()
            .map(|planning| planning.slice_count()))
    }

    /// The aggregate of the whole window, or of the entries with lo <= time <= hi.
    ///
    /// Args:
    ///     lo: The lower bound, included; None for no bound.
    ///     hi: The upper bound, included; None for no bound.
    ///
    /// Returns:
    ///     The answer, or a dict of answers by name if there are several aggregations.
    ///     Without entries it is None (0 for `count`, [] for `collect`).
    ///
    /// Raises:
    ///     SpecError: If lo > hi, a bound is not a time of this window's kind, or the
    ///         algorithm answers for the whole window only and some entries are outside.
    ///     ResultOverflowError: If an exact integer does not fit int64.
    ///
    /// Cost: fiba takes 2 combines for the whole window, n − 1 for up to 16 entries, and
    /// O(log n) for a part of it; if the aggregation is not commutative, late entries are
    /// inserted into the tree first. For other algorithms see `algorithms`.
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window({"n": sw.count(), "avg": sw.mean()})
    ///     >>> w.insert_many([1, 2, 3], [1.0, 2.0, 6.0])
    ///     >>> w.query()
    ///     {'n': 3, 'avg': 3.0}
    ///     >>> w.query(lo=2)
    ///     {'n': 2, 'avg': 4.0}
    #[pyo3(signature = (lo = None, hi = None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        lo: Option<&Bound<'py, PyAny>>,
        hi: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let range = match (lo, hi) {
            (None, None) => None,
            _ => self.0.range(lo, hi)?,
        };
        let mut state = self.0.lock(py)?;
        if self.0.spec().is_shared() {
            if let Some(split) = state.window.planning().and_then(|of| of.splitting()) {
                drop(state);
                return Err(self.0.splitting(py, split));
            }
            let answers = state.answers(range);
            let end = state.end(range);
            drop(state);
            let answers = answers.map_err(|refused| self.0.refusal(py, refused))?;
            let answers = self.0.lower_each(py, answers, end);
            return self.0.flush_after(py, answers);
        }
        if self.0.spec().names.is_none() {
            let answer = state.answer(range);
            let end = state.end(range);
            drop(state);
            let answer = answer.map_err(|refused| self.0.refusal(py, refused))?;
            let answer = self.0.lower_one(py, answer.unwrap_or(Answer::Null), end);
            return self.0.flush_after(py, answer);
        }
        let answers = state.answers(range);
        let end = state.end(range);
        drop(state);
        let answers = answers.map_err(|refused| self.0.refusal(py, refused))?;
        let answers = self.0.lower(py, answers, end);
        self.0.flush_after(py, answers)
    }

    /// Evicts the oldest entry, or the one at a given time.
    ///
    /// Args:
    ///     time: The time of the entry to evict; None for the oldest. If ties="keep" has
    ///         several entries of that time, the first that arrived is evicted.
    ///
    /// Returns:
    ///     Without a time: the time of the evicted entry. With a time: whether an entry
    ///     had it.
    ///
    /// Raises:
    ///     EmptyWindowError: For `evict()` on an empty window; also an IndexError.
    ///     SpecError: If the time is of another kind than those in the window.
    ///     OutOfOrderError: If the algorithm evicts in order only and the entry of that
    ///         time is not the oldest.
    ///
    /// Cost: amortised O(1) combines at the old end, O(log d) elsewhere.
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert_many([1, 2, 3], [10, 20, 30])
    ///     >>> w.evict(), w.evict(3), w.evict(99)
    ///     (1, True, False)
    ///     >>> w.query()
    ///     20
    #[pyo3(signature = (time = None))]
    fn evict<'py>(
        &self,
        py: Python<'py>,
        time: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(time) = time.filter(|time| !time.is_none()) else {
            self.0.flush_terms(py)?;
            return self.0.evict_oldest(py);
        };
        self.0.flush_terms(py)?;
        let mut ticks = self.0.ticks(time)?;
        if let Some(clock) = self.0.clock() {
            ticks = clock.rounded(ticks)?;
        }
        let found = self.0.lock(py)?.evict_at(ticks, self.0.spec().ties);
        let found = found.map_err(|refused| self.0.refusal(py, refused))?;
        self.0.sweep(py);
        Ok(found.into_pyobject(py)?.to_owned().into_any())
    }

    /// Evicts all entries with a time at or before this one.
    ///
    /// Returns:
    ///     The number of evicted entries.
    ///
    /// Raises:
    ///     SpecError: If the time is of another kind than those in the window.
    ///
    /// Cost: amortised O(log m) combines for m entries, worst case O(log n), as the tree is
    /// cut along the boundary. If less than a third of the entries remains, these are
    /// moved and memory is freed. Objects are released one by one.
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert_many([1, 2, 3], [10, 20, 30])
    ///     >>> w.evict_until(2)
    ///     2
    ///     >>> w.query()
    ///     30
    fn evict_until(&self, py: Python<'_>, time: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.0.flush_terms(py)?;
        let ticks = self.0.ticks(time)?;
        let mut state = self.0.lock(py)?;
        if state.window.planning().is_some_and(|of| of.splits(ticks)) {
            drop(state);
            return Err(self.0.split(py, ticks)?);
        }
        let evicted = state.evict_until(ticks);
        drop(state);
        self.0.sweep(py);
        Ok(evicted)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.lock(py)?.window.len())
    }

    /// The time of the oldest entry, of the type that was inserted; None if empty.
    ///
    /// Cost: O(1).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert_many([2, 1], [20, 10])
    ///     >>> w.oldest
    ///     1
    #[getter]
    fn oldest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ticks = self.0.lock(py)?.window.oldest();
        ticks.map(|ticks| self.0.restore(py, ticks)).transpose()
    }

    /// The time of the youngest entry, of the type that was inserted; None if empty.
    ///
    /// Cost: O(1).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert_many([2, 1], [20, 10])
    ///     >>> w.youngest
    ///     2
    #[getter]
    fn youngest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ticks = self.0.lock(py)?.window.youngest();
        ticks.map(|ticks| self.0.restore(py, ticks)).transpose()
    }

    /// All entries in order, as a list of (time, answer over this entry alone).
    ///
    /// Raises:
    ///     ResultOverflowError: If an exact integer does not fit int64.
    ///
    /// Cost: O(n).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert_many([2, 1, 2], [20, 10, 5])
    ///     >>> w.items()
    ///     [(1, 10), (2, 25)]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut entries: Vec<(i64, Vec<Answer<Object>>)> = Vec::new();
        self.0
            .lock(py)?
            .window
            .for_each(&mut |time, answers| entries.push((time, answers)));
        let list = PyList::empty(py);
        for (row, (ticks, answers)) in entries.into_iter().enumerate() {
            if row % SIGNAL_CHECK_ROWS == SIGNAL_CHECK_ROWS - 1 {
                check_signals(py)?;
            }
            list.append((
                self.0.restore(py, ticks)?,
                self.0.lower(py, answers, Some(ticks))?,
            ))?;
        }
        self.0.sweep(py);
        Ok(list)
    }

    /// Evicts all entries. The kind of times and the types of columns stay.
    ///
    /// Cost: O(n).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert(1, 10)
    ///     >>> w.clear()
    ///     >>> len(w), w.query()
    ///     (0, None)
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.0.lock(py)?.clear();
        self.0.sweep(py);
        Ok(())
    }

    /// Checks every invariant of the structure.
    ///
    /// Raises:
    ///     SlidewiseError: If one is broken, which is a bug in slidewise.
    ///
    /// Cost: O(n).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert(1, 10)
    ///     >>> w.check()
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let checked = self.0.lock(py)?.check();
        checked.map_err(|why| internal_error(&format!("broken invariant: {why}")))
    }

    /// The memory of the window in bytes.
    ///
    /// The entries and the structure count, the collected objects themselves do not.
    ///
    /// Cost: O(1) for windows of numbers.
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> sw.Window(sw.sum()).nbytes < 1000
    ///     True
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        let state = self.0.lock(py)?.bytes();
        let store = self.0.store().map_or(0, ObjectStore::bytes);
        Ok(size_of::<Self>() - size_of::<State>() + state + store)
    }

    /// An independent window with the same contents. Both share the collected objects.
    ///
    /// Cost: O(n).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert(1, 10)
    ///     >>> other = w.copy()
    ///     >>> other.insert(2, 20)
    ///     >>> w.query(), other.query()
    ///     (10, 30)
    fn copy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (spec, contents) = snapshot::copied(slf.py(), &slf.get().0, Ok)?;
        new_window(&slf.get_type(), spec.bind(slf.py()), contents)
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::copy(slf)
    }

    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let deepcopy = py.import("copy")?.getattr("deepcopy")?;
        let deep = |object: Py<PyAny>| Ok(deepcopy.call1((object, memo))?.unbind());
        let (spec, contents) = snapshot::copied(py, &slf.get().0, deep)?;
        new_window(&slf.get_type(), spec.bind(py), contents)
    }

    /// The window as bytes: versioned, checksummed, little endian, self-describing.
    ///
    /// The further answers of a window restored from them equal those of this window, bit
    /// for bit. Collected values can be None, bool, int, float, str, bytes, datetime,
    /// date, timedelta, Decimal, Fraction, and tuples, lists and dicts of these.
    ///
    /// Raises:
    ///     SnapshotError: If a collected value is of another type, or the zone of the
    ///         times has no name.
    ///     SpecError: If answers of a SharedWindow wait, after a call that raised.
    ///
    /// Cost: O(n).
    ///
    /// Example:
    ///     >>> import slidewise as sw
    ///     >>> w = sw.Window(sw.sum())
    ///     >>> w.insert(1, 10)
    ///     >>> sw.Window.from_bytes(w.to_bytes()).query()
    ///     10
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        snapshot::to_bytes(py, &self.0)
    }

    /// Restores the bytes of `to_bytes`; `read_header` makes spec, types and clock of the
    /// header. `shared` is whether the window has several ranges.
    #[classmethod]
    #[pyo3(signature = (blob, read_header, shared = false))]
    fn _restore<'py>(
        cls: &Bound<'py, PyType>,
        blob: &Bound<'py, PyBytes>,
        read_header: &Bound<'py, PyAny>,
        shared: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (spec, contents) = snapshot::from_bytes(blob, read_header, shared)?;
        new_window(cls, &spec, contents)
    }

    /// The structure as (leaf capacity, arity, nodes), or None if there is none. A node
    /// is (level, kind, times, children, aggregate).
    fn _shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Drawn<'py>>> {
        let shape = self.0.lock(py)?.window.shape();
        shape.map(|shape| self.draw(py, shape)).transpose()
    }

    /// The plan of the window, the types of its columns, and its clock (None before the
    /// first entry).
    fn _describe<'py>(&self, py: Python<'py>) -> PyResult<Described<'py>> {
        let dtypes = self.0.lock(py)?.dtypes.clone();
        let names = self
            .0
            .spec()
            .inputs
            .iter()
            .zip(dtypes)
            .map(|(input, dtype)| {
                let shown = input.role.is_number() || matches!(input.role, Role::Any | Role::Key);
                dtype.filter(|_| shown).map(Type::name)
            });
        let clock = self.0.clock().map(|clock| clock.object(py).clone());
        Ok((self.0.current_plan(py)?, names.collect(), clock))
    }

    /// The numbers of the columns that widened from integers to floats.
    fn _widened(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let state = self.0.lock(py)?;
        let inputs = self.0.spec().inputs.iter().zip(&state.dtypes);
        let widened = inputs.filter(|(_, dtype)| **dtype == Some(Type::Widened));
        let mut sources: Vec<usize> = widened.map(|(input, _)| input.source).collect();
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }

    /// The call that made algorithm="auto" migrate to fiba, or None: "late" and the times
    /// of the entry and of the youngest, "inner" and those of the entry and of the oldest,
    /// or "range" and its bounds (None for no bound).
    fn _migrated<'py>(&self, py: Python<'py>) -> PyResult<Option<Migrated<'py>>> {
        self.0.migrated(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for spec in self.0.specs() {
            visit.call(spec)?;
        }
        match self.0.store() {
            Some(store) => store.traverse(visit),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        if let Some(store) = self.0.store() {
            store.clear();
        }
    }
}

type Described<'py> = (
    Bound<'py, PyAny>,
    Vec<Option<&'static str>>,
    Option<Bound<'py, PyAny>>,
);

impl Window {
    /// The answers that fell due; none for a window without queries.
    #[inline]
    fn due<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.0.spec().queries {
            Some(_) => self.0.due_list(py).map(Some),
            None => Ok(None),
        }
    }
}
