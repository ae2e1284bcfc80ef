//! The fast path of single inserts: an int time and an exact int or float.

use pyo3::prelude::*;
use pyo3::types::PyFloat;
use slidewise_core::aggregate::Cell;

use crate::inputs::is_small;
use crate::object_store::Object;
use crate::scalars::small_int;

/// The values that the fast path takes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FastPath {
    No,
    Ints,
    /// The same while all of them are exact in float64: ints that are not small are left to
    /// the other path, which looks.
    ExactInts,
    Floats,
    /// No column at all: only rows are counted.
    Rows,
}

/// The cell of an exact int or float, if the column takes it as it is.
#[inline]
pub(crate) fn fast_cell(fast_path: u8, value: Option<&Bound<'_, PyAny>>) -> Option<Cell<Object>> {
    if fast_path == FastPath::Rows as u8 {
        return Some(Cell::Null);
    }
    let value = value?;
    if fast_path == FastPath::ExactInts as u8 {
        return small_int(value).filter(|int| is_small(*int)).map(Cell::I64);
    }
    if fast_path == FastPath::Ints as u8 {
        return small_int(value).map(Cell::I64);
    }
    let float = value.cast_exact::<PyFloat>().map(|float| float.value());
    float.ok().map(Cell::F64)
}
