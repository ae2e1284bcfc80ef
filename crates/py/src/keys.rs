//! Keys of rows and query points: time, group and arrival.

use arrow_array::{Array, Int64Array, UInt32Array};
use arrow_buffer::BooleanBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slidewise_core::rolling::delta_windows::delta_starts;
use slidewise_core::rolling::flag_windows::Since;
use slidewise_core::rolling::hop_windows::{self, Hop, Refusal, WindowList};
use slidewise_core::rolling::{self, OwnRows, SortLayout as CoreLayout};

use crate::arrow::{ArrowArray, NumberArray, import_codes};
use crate::calendars::Calendar;
use crate::errors::kernel_error;
use crate::signals::watch_signals;

/// `slidewise.table.time_columns.RowKeys`.
#[derive(FromPyObject)]
pub(crate) struct RowKeys<'py> {
    times: Bound<'py, PyAny>,
    groups: Option<Bound<'py, PyAny>>,
    arrival: Option<Bound<'py, PyAny>>,
}

impl RowKeys<'_> {
    pub(crate) fn import(self) -> PyResult<SortKeys> {
        SortKeys::import(&self.times, None, self.groups, self.arrival)
    }
}

/// `slidewise.table.points.QueryPoints`.
#[derive(FromPyObject)]
pub(crate) struct QueryPoints<'py> {
    ends: Bound<'py, PyAny>,
    starts: Option<Bound<'py, PyAny>>,
    groups: Option<Bound<'py, PyAny>>,
    arrival: Option<Bound<'py, PyAny>>,
    own: Option<Bound<'py, PyAny>>,
    leaves_out: bool,
}

impl QueryPoints<'_> {
    pub(crate) fn import(self) -> PyResult<SortKeys> {
        let keys = SortKeys::import(&self.ends, self.starts, self.groups, self.arrival)?;
        let own = self
            .own
            .map(|own| NumberArray::import_keys(&own, "own rows"));
        let own = own.transpose()?;
        match own.as_ref().is_none_or(|own| own.len() == keys.len()) {
            true => Ok(SortKeys {
                own,
                leaves_out: self.leaves_out,
                ..keys
            }),
            false => Err(PyValueError::new_err("own rows differ in length")),
        }
    }
}

/// The keys of a table's rows, or of its query points.
#[derive(Debug)]
pub(crate) struct SortKeys {
    times: Int64Array,
    since: Option<Int64Array>,
    groups: Option<UInt32Array>,
    arrival: Option<Int64Array>,
    own: Option<Int64Array>,
    leaves_out: bool,
}

fn slice(keys: &Option<Int64Array>) -> Option<&[i64]> {
    keys.as_ref().map(|keys| &keys.values()[..])
}

impl SortKeys {
    fn import(
        times: &Bound<'_, PyAny>,
        since: Option<Bound<'_, PyAny>>,
        groups: Option<Bound<'_, PyAny>>,
        arrival: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let column = |keys: Option<Bound<'_, PyAny>>, what| {
            keys.map(|keys| NumberArray::import_keys(&keys, what))
                .transpose()
        };
        let keys = Self {
            times: NumberArray::import_keys(times, "times")?,
            since: column(since, "since")?,
            groups: groups.as_ref().map(import_codes).transpose()?,
            arrival: column(arrival, "arrival")?,
            own: None,
            leaves_out: false,
        };
        if keys.lengths().all(|length| length == keys.len()) {
            return Ok(keys);
        }
        Err(PyValueError::new_err("keys differ in length"))
    }

    fn lengths(&self) -> impl Iterator<Item = usize> {
        let others = [&self.since, &self.arrival].into_iter().flatten();
        let groups = self.groups.iter().map(Array::len);
        others.map(Array::len).chain(groups)
    }

    pub(crate) fn len(&self) -> usize {
        self.times.values().len()
    }

    pub(crate) fn times(&self) -> &[i64] {
        self.times.values()
    }

    pub(crate) fn groups(&self) -> Option<&[u32]> {
        self.groups.as_ref().map(|codes| &codes.values()[..])
    }

    pub(crate) fn arrival(&self) -> Option<&[i64]> {
        slice(&self.arrival)
    }

    pub(crate) fn query_points(&self) -> rolling::QueryPoints<'_> {
        rolling::QueryPoints {
            times: self.times(),
            since: slice(&self.since),
            groups: self.groups(),
            arrival: self.arrival(),
            own: self.own().map(|rows| OwnRows { rows, first: 0 }),
            leaves_out: self.leaves_out,
        }
    }

    /// The row of the table that each query point is.
    pub(crate) fn own(&self) -> Option<&[i64]> {
        slice(&self.own)
    }

    /// The number of groups. Codes are dense over rows and query points together.
    fn group_count(&self, others: usize) -> PyResult<usize> {
        let codes = self.groups().unwrap_or_default().iter().copied();
        match codes.reduce(u32::max).map_or(0, |code| code as usize + 1) {
            count if count <= self.len() + others => Ok(count),
            beyond => Err(PyValueError::new_err(format!(
                "group {} is not dense",
                beyond - 1
            ))),
        }
    }
}

/// Checks that rows and query points have the same keys, and that columns are as long as the
/// rows.
pub(crate) fn check(
    rows: &SortKeys,
    query_points: &Option<SortKeys>,
    mut columns: impl Iterator<Item = usize>,
) -> PyResult<()> {
    if columns.any(|length| length != rows.len()) {
        return Err(PyValueError::new_err("columns differ in length"));
    }
    let others = query_points.as_ref().map_or(0, SortKeys::len);
    rows.group_count(others)?;
    let Some(query_points) = query_points else {
        return Ok(());
    };
    query_points.group_count(rows.len())?;
    let alike = rows.groups.is_some() == query_points.groups.is_some()
        && rows.arrival.is_some() == query_points.arrival.is_some();
    let known = |row: &i64| usize::try_from(*row).is_ok_and(|row| row < rows.len());
    if !query_points.own().unwrap_or_default().iter().all(known) {
        return Err(PyValueError::new_err("own rows are not rows"));
    }
    if alike {
        return Ok(());
    }
    Err(PyValueError::new_err(
        "rows and query points differ in their keys",
    ))
}

/// Whether rows are sorted by key, and by time within each key.
#[pyfunction]
pub(crate) fn rows_are_sorted(py: Python<'_>, rows: RowKeys<'_>) -> PyResult<bool> {
    let keys = rows.import()?;
    Ok(py.detach(|| rolling::rows_are_sorted(keys.groups(), keys.times())))
}

type Columns = (ArrowArray, ArrowArray, ArrowArray, ArrowArray);

/// The order of a table's rows, computed once for its windows and their answers.
#[pyclass(frozen, module = "slidewise._core")]
#[derive(Debug)]
pub(crate) struct SortLayout(pub(crate) CoreLayout, usize);

impl SortLayout {
    pub(crate) fn check(&self, rows: usize) -> PyResult<()> {
        if self.1 == rows {
            return Ok(());
        }
        Err(PyValueError::new_err("this is the layout of another table"))
    }

    /// The flags of its rows; null is false.
    fn import_flags(&self, flags: &Bound<'_, PyAny>) -> PyResult<BooleanBuffer> {
        let flags = crate::arrow::import_flags(flags)?;
        self.check(flags.len())?;
        Ok(flags)
    }
}

#[pymethods]
impl SortLayout {
    /// The rows of a time that other rows of their key have, too.
    fn peers(&self, times: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
        let times = NumberArray::import_keys(times, "times")?;
        self.check(times.len())?;
        let rows = self.0.peers(times.values());
        Ok(ArrowArray::new(Int64Array::from(rows).into()))
    }

    /// The position of each row, and the row at each position.
    fn positions(&self) -> (ArrowArray, ArrowArray) {
        let positions = self.0.positions();
        let mut rows = vec![0; positions.len()];
        for (row, position) in positions.iter().enumerate() {
            rows[*position as usize] = row as i64;
        }
        (
            ArrowArray::new(Int64Array::from(positions).into()),
            ArrowArray::new(Int64Array::from(rows).into()),
        )
    }

    /// The first position of the group of each position.
    fn begins(&self) -> ArrowArray {
        ArrowArray::new(Int64Array::from(self.0.begins()).into())
    }

    /// The begin of the window of each position: the last row with a flag ("landmark"), the
    /// row after the last earlier one ("until"), or after the last one ("open").
    fn flag_starts(&self, flags: &Bound<'_, PyAny>, kind: &str) -> PyResult<ArrowArray> {
        let flags = self.import_flags(flags)?;
        let since = match kind {
            "landmark" => Since::Flag,
            "until" => Since::BehindEarlier,
            "open" => Since::Behind,
            _ => return Err(PyValueError::new_err(format!("no flags begin {kind:?}"))),
        };
        let starts = self.0.flag_starts(flags.set_indices(), since);
        Ok(ArrowArray::new(Int64Array::from(starts).into()))
    }

    /// The positions of the rows with a flag.
    fn flagged(&self, flags: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
        let flags = self.import_flags(flags)?;
        let positions = self.0.flagged(flags.set_indices());
        Ok(ArrowArray::new(Int64Array::from(positions).into()))
    }

    /// The layout of the same rows whose times are their positions.
    fn by_position(&self) -> Self {
        Self(self.0.by_position(), self.1)
    }
}

/// The positions at which delta windows begin, for values by position. `begins` has the
/// first position of each row's group. The message of `ValueError` is the position of a
/// value that falls.
#[pyfunction(name = "delta_starts")]
pub(crate) fn delta_start_column(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    begins: &Bound<'_, PyAny>,
    delta: &Bound<'_, PyAny>,
) -> PyResult<ArrowArray> {
    let values = NumberArray::import(values)?;
    let begins = NumberArray::import_keys(begins, "positions")?;
    if values.len() != begins.len() {
        return Err(PyValueError::new_err(
            "values and positions differ in length",
        ));
    }
    let begins = &begins.values()[..];
    let starts = match &values {
        NumberArray::I64(values) => {
            let delta: u64 = delta.extract()?;
            let within = |now: i64, then: i64| now.abs_diff(then) <= delta;
            py.detach(|| delta_starts(values.values(), begins, within))
        }
        NumberArray::F64(values) => {
            let delta: f64 = delta.extract()?;
            // The distance of an infinity from itself is 0.
            let within = |now: f64, then: f64| now == then || now - then <= delta;
            py.detach(|| delta_starts(values.values(), begins, within))
        }
    };
    let starts = starts.map_err(PyValueError::new_err)?;
    Ok(ArrowArray::new(Int64Array::from(starts).into()))
}

/// Sorts rows by key and time.
#[pyfunction]
pub(crate) fn sort_rows(py: Python<'_>, rows: RowKeys<'_>, threads: usize) -> PyResult<SortLayout> {
    let keys = rows.import()?;
    let count = keys.group_count(0)?;
    let mut interrupt = None;
    let mut proceed = watch_signals(&mut interrupt);
    let (groups, times) = (keys.groups(), keys.times());
    let layout = py.detach(|| CoreLayout::new(groups, times, count, threads, &mut proceed));
    drop(proceed);
    let layout = layout.map_err(|error| kernel_error(py, error, interrupt))?;
    Ok(SortLayout(layout, keys.len()))
}

/// The windows on a grid that hold a row: starts, ends, groups, and a row of each group.
#[pyfunction(name = "hop_windows")]
pub(crate) fn hop_window_columns(
    py: Python<'_>,
    rows: RowKeys<'_>,
    layout: &SortLayout,
    length: i64,
    every: i64,
    offset: i64,
    empty: bool,
) -> PyResult<Columns> {
    if length <= 0 || every <= 0 {
        return Err(PyValueError::new_err(format!(
            "hops of {length} every {every}"
        )));
    }
    let hop = Hop {
        length,
        every,
        offset,
        empty,
    };
    found(py, rows, layout, |keys, layout| {
        hop_windows::hops(keys.times(), keys.groups(), layout, &hop)
    })
}

/// The units of a calendar, likewise; with `every`, the windows that begin with a unit and end
/// at each multiple of it.
#[pyfunction(name = "unit_windows")]
pub(crate) fn unit_window_columns(
    py: Python<'_>,
    rows: RowKeys<'_>,
    layout: &SortLayout,
    calendar: &Bound<'_, Calendar>,
    every: Option<i64>,
    empty: bool,
) -> PyResult<Columns> {
    if every.is_some_and(|every| every <= 0) {
        return Err(PyValueError::new_err("windows of no length"));
    }
    let units = (calendar.get().0, every);
    found(py, rows, layout, |keys, layout| {
        hop_windows::units(keys.times(), keys.groups(), layout, units, empty)
    })
}

/// Windows from the first to the last of rows at most `gap` apart, likewise.
#[pyfunction(name = "session_windows")]
pub(crate) fn session_window_columns(
    py: Python<'_>,
    rows: RowKeys<'_>,
    layout: &SortLayout,
    gap: i64,
) -> PyResult<Columns> {
    found(py, rows, layout, |keys, layout| {
        Ok(hop_windows::sessions(
            keys.times(),
            keys.groups(),
            layout,
            gap,
        ))
    })
}

fn found(
    py: Python<'_>,
    rows: RowKeys<'_>,
    layout: &SortLayout,
    find: impl Fn(&SortKeys, &CoreLayout) -> Result<WindowList, Refusal> + Sync,
) -> PyResult<Columns> {
    let keys = rows.import()?;
    keys.group_count(0)?;
    layout.check(keys.len())?;
    let windows = py.detach(|| find(&keys, &layout.0)).map_err(refused)?;
    Ok((
        ArrowArray::new(Int64Array::from(windows.starts).into()),
        ArrowArray::new(Int64Array::from(windows.ends).into()),
        ArrowArray::new(UInt32Array::from(windows.groups).into()),
        ArrowArray::new(Int64Array::from(windows.rows).into()),
    ))
}

/// The message is the row or the number; the caller makes its own message of it.
fn refused(refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Beyond { row } => pyo3::exceptions::PyOverflowError::new_err(row),
        Refusal::TooMany { count } => pyo3::exceptions::PyMemoryError::new_err(count),
    }
}
