//! Arguments of calls of `_core.KeyedStore`: Arrow columns, kept alive while the core reads
//! them.

use arrow_array::Int64Array;
use pyo3::prelude::*;
use slidewise_core::aggregate::column::Column;
use slidewise_core::keyed::{EntryList, Points, Rows};

use crate::arrow::NumberArray;
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
