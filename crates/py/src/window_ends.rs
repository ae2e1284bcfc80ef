//! Answers at the ends of windows, from answers relative to their latest entries.

use arrow_array::Float64Array;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use slidewise_core::aggregate::decay::HalfLife;

use crate::arrow::{ArrowArray, NumberArray};

/// Decayed sums at the ends of their windows, from those at the times of the latest entries,
/// `last`; both are null without entries. A half-life is `length` ÷ `tick` ticks.
#[pyfunction]
pub(crate) fn decayed_sums(
    py: Python<'_>,
    sums: &Bound<'_, PyAny>,
    last: &Bound<'_, PyAny>,
    ends: &Bound<'_, PyAny>,
    length: u64,
    tick: u64,
) -> PyResult<ArrowArray> {
    let columns = (NumberArray::import(sums)?, NumberArray::import(last)?);
    let (NumberArray::F64(sums), NumberArray::I64(last)) = columns else {
        return Err(PyTypeError::new_err("sums are float64, times are int64"));
    };
    let ends = NumberArray::import_keys(ends, "ends")?;
    if length == 0 || tick == 0 || sums.len() != ends.len() || last.len() != ends.len() {
        return Err(PyValueError::new_err("sums without their times or ends"));
    }
    let half_life = HalfLife::Time { length, tick };
    let decayed: Float64Array = py.detach(|| {
        let rows = sums.iter().zip(last.iter()).zip(ends.values());
        rows.map(|((sum, last), end)| Some(half_life.at_end(sum?, last?, *end)))
            .collect()
    });
    Ok(ArrowArray::new(decayed.into()))
}

/// One such sum.
#[pyfunction]
pub(crate) fn decayed_sum(sum: f64, last: i64, end: i64, length: u64, tick: u64) -> PyResult<f64> {
    match length > 0 && tick > 0 {
        true => Ok(HalfLife::Time { length, tick }.at_end(sum, last, end)),
        false => Err(PyValueError::new_err("a half-life of no time")),
    }
}
