//! Imports and exports Arrow columns without copies, through the PyCapsule interface.

use std::ptr::NonNull;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, UInt32Array, make_array,
};
use arrow_buffer::BooleanBuffer;
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use slidewise_core::aggregate::column::{Column, Validity, Values};

use crate::errors::spec_error;
use crate::scalars::described;

const SCHEMA: &std::ffi::CStr = c"arrow_schema";
const ARRAY: &std::ffi::CStr = c"arrow_array";

/// Takes over the array behind any object with `__arrow_c_array__`.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayData> {
    let capsules = object.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema: NonNull<FFI_ArrowSchema> = schema.pointer_checked(Some(SCHEMA))?.cast();
    let array: NonNull<FFI_ArrowArray> = array.pointer_checked(Some(ARRAY))?.cast();
    // SAFETY: the capsule protocol guarantees live structs of these types under these
    // names, and both capsules live to the end of this function.
    let (released, schema) = unsafe { (array.as_ref().is_released(), schema.as_ref()) };
    if released || schema.release().is_none() {
        return Err(spec_error(format!(
            "the Arrow array of {} was taken before: its __arrow_c_array__ must make new \
             capsules at every call; pyarrow.array() makes an array that does",
            described(object)
        )));
    }
    // SAFETY: the array is not released. It is moved out and replaced by a released one.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    // SAFETY: the protocol pairs the array with this schema.
    let mut data = unsafe { arrow_array::ffi::from_ffi(array, schema) }
        .map_err(|error| PyTypeError::new_err(error.to_string()))?;
    data.align_buffers();
    Ok(data)
}

/// Codes of groups: uint32 without nulls.
pub(crate) fn import_codes(object: &Bound<'_, PyAny>) -> PyResult<UInt32Array> {
    let data = import(object)?;
    match data.data_type() {
        DataType::UInt32 if data.null_count() == 0 => Ok(data.into()),
        _ => Err(PyTypeError::new_err("groups must be uint32 without nulls")),
    }
}

/// The rows in which booleans are true.
pub(crate) fn import_flags(object: &Bound<'_, PyAny>) -> PyResult<BooleanBuffer> {
    let data = import(object)?;
    if *data.data_type() != DataType::Boolean {
        return Err(PyTypeError::new_err("flags must be booleans"));
    }
    let flags = BooleanArray::from(data);
    Ok(match flags.nulls() {
        Some(nulls) => flags.values() & nulls.inner(),
        None => flags.values().clone(),
    })
}

/// A column of int64 or float64, kept alive while the core reads it.
#[derive(Debug)]
pub(crate) enum NumberArray {
    I64(Int64Array),
    F64(Float64Array),
}

impl NumberArray {
    pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let data = import(object)?;
        match data.data_type() {
            DataType::Int64 => Ok(Self::I64(data.into())),
            DataType::Float64 => Ok(Self::F64(data.into())),
            other => Err(PyTypeError::new_err(format!(
                "a column must be int64 or float64, got {other}"
            ))),
        }
    }

    /// Times and similar columns: int64 without nulls.
    pub(crate) fn import_keys(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Int64Array> {
        match Self::import(object)? {
            Self::I64(keys) if keys.null_count() == 0 => Ok(keys),
            _ => Err(PyTypeError::new_err(format!(
                "{what} must be int64 without nulls"
            ))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::I64(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    pub(crate) fn column<T>(&self) -> Column<'_, T> {
        let (values, nulls) = match self {
            Self::I64(array) => (Values::I64(array.values()), array.nulls()),
            Self::F64(array) => (Values::F64(array.values()), array.nulls()),
        };
        let validity = nulls.filter(|nulls| nulls.null_count() > 0);
        Column {
            values,
            validity: validity.map(|nulls| Validity {
                bits: nulls.validity(),
                offset: nulls.offset(),
            }),
        }
    }
}

/// An Arrow array for Python: `pyarrow.array(column)` reads it without a copy.
#[pyclass(frozen, module = "slidewise._core")]
#[derive(Debug)]
pub(crate) struct ArrowArray(ArrayRef);

impl ArrowArray {
    pub(crate) fn new(data: ArrayData) -> Self {
        Self(make_array(data))
    }
}

#[pymethods]
impl ArrowArray {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol lets a producer ignore the requested type.
        let _ = requested_schema;
        let (array, schema) = arrow_array::ffi::to_ffi(&self.0.to_data())
            .map_err(|error| PyTypeError::new_err(error.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA)?,
            PyCapsule::new_with_value(py, array, ARRAY)?,
        ))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "ArrowArray({}, {} values)",
            self.0.data_type(),
            self.0.len()
        )
    }
}
