//! Arguments of calls of `_core.KeyedStore`: Arrow columns, kept alive while the core reads
//! them.

use arrow_array::{Int64Array, LargeBinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use slidewise_core::aggregate::column::Column;
use slidewise_core::keyed::{EntryList, FoldedEntries, Grid, Points, Rows};

use crate::arrow::{ArrowArray, NumberArray, import};
use crate::calendars::Calendar;
use crate::key_bytes::KeyBytes;

/// `slidewise.keyed.index.Entries`.
#[derive(FromPyObject)]
pub(crate) struct Entries<'py> {
    pub(crate) keys: Vec<Bound<'py, PyAny>>,
    pub(crate) times: Bound<'py, PyAny>,
    pub(crate) numbers: Bound<'py, PyAny>,
}

/// Entries of a call, kept alive while the core reads them.
pub(crate) struct EntryColumns {
    pub(crate) keys: KeyBytes,
    pub(crate) times: Int64Array,
    pub(crate) numbers: Int64Array,
}

impl EntryColumns {
    pub(crate) fn view(&self) -> EntryList<'_> {
        EntryList {
            keys: self.keys.view(),
            times: self.times.values(),
            numbers: self.numbers.values(),
        }
    }
}

/// Rows of a call, kept alive likewise.
pub(crate) struct Incoming {
    pub(crate) keys: KeyBytes,
    pub(crate) times: Int64Array,
    pub(crate) columns: Vec<NumberArray>,
    pub(crate) numbers: Option<Int64Array>,
}

impl Incoming {
    pub(crate) fn views(&self) -> Vec<Column<'_, i64>> {
        self.columns.iter().map(NumberArray::column).collect()
    }

    pub(crate) fn rows<'a>(&'a self, columns: &'a [Column<'a, i64>]) -> Rows<'a> {
        Rows {
            keys: self.keys.view(),
            times: self.times.values().to_vec(),
            columns,
            numbers: self
                .numbers
                .as_ref()
                .map_or(&[], |numbers| numbers.values()),
        }
    }
}

/// Query points of a call, kept alive likewise.
pub(crate) struct QueryPoints {
    pub(crate) keys: KeyBytes,
    pub(crate) times: Int64Array,
    pub(crate) plus: Option<Vec<NumberArray>>,
}

impl QueryPoints {
    pub(crate) fn views(&self) -> Option<Vec<Column<'_, i64>>> {
        let plus = self.plus.as_ref()?;
        Some(plus.iter().map(NumberArray::column).collect())
    }

    pub(crate) fn points<'a>(&'a self, plus: Option<&'a [Column<'a, i64>]>) -> Points<'a> {
        Points {
            keys: self.keys.view(),
            times: self.times.values(),
            plus,
        }
    }
}

pub(crate) fn read_columns(columns: &[Bound<'_, PyAny>]) -> PyResult<Vec<NumberArray>> {
    columns.iter().map(NumberArray::import).collect()
}

/// The bytes of entries that were folded, as a column.
pub(crate) fn folded_bytes(folded: FoldedEntries) -> ArrowArray {
    let lengths = std::iter::once(0).chain(folded.ends.iter().copied());
    let offsets: ScalarBuffer<i64> = lengths.map(|end| end as i64).collect();
    let bytes = Buffer::from_vec(folded.bytes);
    let column = LargeBinaryArray::new(OffsetBuffer::new(offsets), bytes, None);
    ArrowArray::new(column.into())
}

/// A column of the bytes of entries, without nulls.
pub(crate) fn import_bytes(object: &Bound<'_, PyAny>, rows: usize) -> PyResult<LargeBinaryArray> {
    let data = import(object)?;
    match *data.data_type() == DataType::LargeBinary && data.null_count() == 0 {
        true if data.len() == rows => Ok(data.into()),
        true => Err(PyValueError::new_err("columns differ in length")),
        false => Err(PyTypeError::new_err("entries must be binary without nulls")),
    }
}

pub(crate) fn export_times(times: Vec<Vec<Option<i64>>>) -> Vec<ArrowArray> {
    let columns = times.into_iter().map(Int64Array::from);
    columns.map(|times| ArrowArray::new(times.into())).collect()
}

pub(crate) fn check_length(column: &Int64Array, rows: &Int64Array) -> PyResult<()> {
    match column.len() == rows.len() {
        true => Ok(()),
        false => Err(PyValueError::new_err("columns differ in length")),
    }
}

/// `slidewise.keyed.grid.Grid`.
#[derive(Debug, FromPyObject)]
pub(crate) struct GridTicks {
    length: i64,
    every: i64,
    offset: i64,
    calendar: Option<Py<Calendar>>,
    cumulates: bool,
}

impl GridTicks {
    pub(crate) fn read(&self) -> PyResult<Grid> {
        match self.length > 0 && self.every > 0 {
            true => Ok(Grid {
                length: self.length,
                every: self.every,
                offset: self.offset,
                calendar: self.calendar.as_ref().map(|calendar| calendar.get().0),
                cumulates: self.cumulates,
            }),
            false => Err(PyValueError::new_err("windows of no length")),
        }
    }
}
