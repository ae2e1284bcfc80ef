//! The stable hash by which sketches identify a value: equal in every process, over tables,
//! and on every machine.
//!
//! XXH64, seed 42, of the eight bytes (little endian) of an integer and of the UTF-8 of a
//! text; other kinds have other seeds. Values that are equal in Python have equal hashes: a
//! bool hashes like an int, a float without a fraction like the int it equals, both zeros
//! alike. All NaNs are one value.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, Int64Array, make_array};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString};
use twox_hash::XxHash64;

use crate::arrow::{ArrowArray, NumberArray, import};
use crate::errors::{spec_error, with_note};
use crate::scalars::{described, is_exact_fraction, is_numpy_bool, plain};

/// The seed of integers and text, as in Spark SQL's `xxhash64`.
const PLAIN: u64 = 42;
const FLOAT: u64 = 43;
const BINARY: u64 = 44;
const BIG: u64 = 45;

fn hash(seed: u64, bytes: &[u8]) -> i64 {
    XxHash64::oneshot(seed, bytes) as i64
}

pub(crate) fn of_int(int: i64) -> i64 {
    hash(PLAIN, &int.to_le_bytes())
}

pub(crate) fn of_float(float: f64) -> i64 {
    let int = float as i64;
    // The ends of int64 are not floats, so a saturated value does not convert back.
    if int as f64 == float && int != i64::MAX {
        return of_int(int);
    }
    let float = if float.is_nan() { f64::NAN } else { float };
    hash(FLOAT, &float.to_bits().to_le_bytes())
}

/// The hash of an integer beyond int64, from its shortest signed bytes.
fn of_big(bytes: &[u8]) -> i64 {
    hash(BIG, bytes)
}

fn of_unsigned(int: u64) -> i64 {
    if let Ok(small) = i64::try_from(int) {
        return of_int(small);
    }
    let mut bytes = int.to_le_bytes().to_vec();
    bytes.push(0);
    of_big(&bytes)
}

/// The hash of one value; `None` for NaN, which is handled by `nan=`.
pub(crate) fn of_scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if let Ok(float) = value.cast::<PyFloat>() {
        let float = float.value();
        return Ok((!float.is_nan()).then(|| of_float(float)));
    }
    if let Ok(int) = value.cast::<PyInt>() {
        return int_of(int).map(Some);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(hash(PLAIN, text.to_str()?.as_bytes())));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(hash(BINARY, bytes.as_bytes())));
    }
    other(value)
}

fn int_of(int: &Bound<'_, PyInt>) -> PyResult<i64> {
    if let Ok(small) = int.extract::<i64>() {
        return Ok(of_int(small));
    }
    let bits: usize = int.call_method0("bit_length")?.extract()?;
    let keywords = PyDict::new(int.py());
    keywords.set_item("signed", true)?;
    let bytes = int.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&keywords))?;
    Ok(of_big(bytes.extract::<&[u8]>()?))
}

/// Numbers of other libraries.
fn other(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let kind = value.get_type();
    let doing = |error| with_note(value.py(), error, "converting a value");
    if is_numpy_bool(value)? {
        let flag = value.is_truthy().map_err(doing)?;
        return Ok(Some(of_int(i64::from(flag))));
    }
    if !is_exact_fraction(&kind)? {
        if kind.hasattr("__index__")? {
            let index = value.call_method0("__index__").map_err(doing)?;
            return int_of(index.cast()?).map(Some);
        }
        if kind.hasattr("__float__")? {
            let float = value.extract::<f64>().map_err(doing)?;
            return of_scalar(PyFloat::new(value.py(), float).as_any());
        }
    }
    Err(spec_error(format!(
        "{} has no stable hash: bloom, approx_count_distinct, count_min and heavy_hitters \
         take ints, floats, bool, str and bytes; make it one of these first",
        described(value)
    )))
}

/// The hash of a value to look up; `None` if it is missing.
pub(crate) fn of_value(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let value = plain(value.clone())?;
    if value.is_none() {
        return Ok(None);
    }
    let hash = of_scalar(&value)?;
    Ok(Some(hash.unwrap_or_else(|| of_float(f64::NAN))))
}

pub(crate) fn of_numbers(numbers: &NumberArray) -> Int64Array {
    match numbers {
        NumberArray::I64(ints) => ints.unary::<_, Int64Type>(of_int),
        NumberArray::F64(floats) => floats.unary::<_, Int64Type>(of_float),
    }
}

/// The hashes of an Arrow array of int64, uint64, float64, large text or large binary.
#[pyfunction]
pub(crate) fn hashes(array: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
    let array = make_array(import(array)?);
    let hashed: Int64Array = match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().unary(of_int),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().unary(of_unsigned),
        DataType::Float64 => array.as_primitive::<Float64Type>().unary(of_float),
        DataType::LargeUtf8 => (array.as_string::<i64>().iter())
            .map(|text| text.map(|text| hash(PLAIN, text.as_bytes())))
            .collect(),
        DataType::LargeBinary => (array.as_binary::<i64>().iter())
            .map(|bytes| bytes.map(|bytes| hash(BINARY, bytes)))
            .collect(),
        other => return Err(PyTypeError::new_err(format!("no hashes of {other}"))),
    };
    Ok(ArrowArray::new(hashed.to_data()))
}
