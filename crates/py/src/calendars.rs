//! `_core.Calendar`: starts of windows by months and local days.

use arrow_array::{Array, Int64Array, UInt8Array};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slidewise_core::rolling::calendar::{self, Start, Unit};

use crate::arrow::{ArrowArray, NumberArray};

/// A calendar: starts of windows that the core computes.
#[pyclass(frozen, module = "slidewise._core")]
#[derive(Debug)]
pub(crate) struct Calendar(pub(crate) &'static calendar::Calendar);

#[pymethods]
impl Calendar {
    /// Of a unit in "days" or "months". Windows begin that long before their end, or, with a
    /// `shift`, with the unit that holds it: weeks so many days after Thursday. A day has
    /// `day` ticks; `changes` are the offsets of local time, with the ticks from which on they
    /// hold.
    ///
    /// The caller keeps calendars, because their memory is never freed.
    #[new]
    fn new(
        unit: &str,
        count: u32,
        shift: Option<u32>,
        day: i64,
        changes: Vec<(i64, i64)>,
    ) -> PyResult<Self> {
        let unit = match unit {
            "days" => Unit::Days(count),
            "months" => Unit::Months(count),
            _ => return Err(PyValueError::new_err(format!("no unit: {unit:?}"))),
        };
        if count == 0 || day <= 0 || changes.is_empty() {
            return Err(PyValueError::new_err("not a calendar"));
        }
        let start = shift.map_or(Start::Before, |shift| Start::With { shift });
        let made = calendar::Calendar::new(unit, start, day, changes);
        Ok(Self(Box::leak(Box::new(made))))
    }

    /// Of windows that begin at multiples of `every` from `offset` on: at the last that is at
    /// least `length` before their end.
    #[staticmethod]
    fn on_grid(every: i64, offset: i64, length: i64) -> PyResult<Self> {
        if every <= 0 || length < 0 {
            return Err(PyValueError::new_err("not a grid"));
        }
        let made = calendar::Calendar::on_grid(every, offset, length);
        Ok(Self(Box::leak(Box::new(made))))
    }

    /// The ends that a pass in order of time does not answer, by their numbers: windows that
    /// end with them begin before an earlier one.
    fn out_of_order(&self, ends: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
        let ends = NumberArray::import_keys(ends, "ends")?;
        let numbers = self.0.out_of_order(ends.values());
        Ok(ArrowArray::new(Int64Array::from(numbers).into_data()))
    }

    /// The starts of the windows that end at some times, and a number of each, for the passes
    /// in which both go forward; without it, there is one pass.
    fn starts(&self, ends: &Bound<'_, PyAny>) -> PyResult<(ArrowArray, Option<ArrowArray>)> {
        let ends = NumberArray::import_keys(ends, "ends")?;
        let (starts, passes) = self.0.starts(ends.values());
        let alike = passes.windows(2).all(|pair| pair[0] == pair[1]);
        Ok((
            ArrowArray::new(Int64Array::from(starts).into_data()),
            (!alike).then(|| ArrowArray::new(UInt8Array::from(passes).into_data())),
        ))
    }
}
