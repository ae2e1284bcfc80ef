//! Masks: the rows whose values count, by `where=` and by paired columns.

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat};

use crate::arrow::NumberArray;
use crate::errors::spec_error;
use crate::inputs::{InputColumn, Mask, Nan};
use crate::scalars::{described, is_numpy_bool, plain};
use crate::spec::Spec;

impl Spec {
    /// Whether a row counts for an input; `get` gives its columns.
    pub(crate) fn counts<'py>(
        &self,
        input: &InputColumn,
        get: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        for (source, mask) in &input.masks {
            if !holds(&get(*source)?, *mask, self.nan)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn holds(value: &Bound<'_, PyAny>, mask: Mask, nan: Nan) -> PyResult<bool> {
    let value = plain(value.clone())?;
    if value.is_none() {
        return Ok(false);
    }
    if mask == Mask::Valid {
        let float = value.cast::<PyFloat>();
        let is_nan = float.is_ok_and(|float| float.value().is_nan());
        return Ok(!(is_nan && nan == Nan::Skip));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true());
    }
    if is_numpy_bool(&value)? {
        return value.is_truthy();
    }
    Err(spec_error(format!(
        "{} is not a boolean: columns of where= and of flags hold true, false or null",
        described(&value)
    )))
}

/// The numbers, null where the mask is false.
pub(crate) fn masked(numbers: NumberArray, mask: Option<&Vec<bool>>) -> NumberArray {
    let Some(mask) = mask else { return numbers };
    let mask = NullBuffer::from(mask.clone());
    let nulls = |own: Option<&NullBuffer>| NullBuffer::union(own, Some(&mask));
    match numbers {
        NumberArray::I64(ints) => {
            let nulls = nulls(ints.nulls());
            NumberArray::I64(arrow_array::Int64Array::new(ints.values().clone(), nulls))
        }
        NumberArray::F64(floats) => {
            let nulls = nulls(floats.nulls());
            NumberArray::F64(arrow_array::Float64Array::new(
                floats.values().clone(),
                nulls,
            ))
        }
    }
}
