//! Python scalars: their kinds, their plain forms and their descriptions in messages.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString, PyType};

/// An exact `int` that fits; runs no user code.
pub(crate) fn small_int(value: &Bound<'_, PyAny>) -> Option<i64> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

/// Whether a type is defined by a library, by the begin of its module name: a user's class
/// may have the name of a class of the library.
pub(crate) fn is_of(kind: &Bound<'_, PyType>, library: &str) -> bool {
    let module = kind.module();
    module.is_ok_and(|module| module.to_string_lossy().split('.').next() == Some(library))
}

/// Whether a value is a numpy bool, which counts as an int but has no `__index__`.
pub(crate) fn is_numpy_bool(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = value.get_type();
    let name = kind.name()?;
    Ok((name == "bool_" || name == "bool") && is_of(&kind, "numpy"))
}

/// Numbers with a `__float__` that loses digits.
pub(crate) fn is_exact_fraction(kind: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(match &*kind.name()?.to_string_lossy() {
        "Decimal" => is_of(kind, "decimal"),
        "Fraction" => is_of(kind, "fractions"),
        _ => false,
    })
}

/// Text and times of numpy, whose `__float__` raises.
pub(crate) fn is_numpy_other(kind: &Bound<'_, PyType>) -> PyResult<bool> {
    let name = kind.name()?;
    let other = matches!(
        &*name.to_string_lossy(),
        "str_" | "bytes_" | "datetime64" | "timedelta64"
    );
    Ok(other && is_of(kind, "numpy"))
}

/// Whether a column holds objects if this is its first value: it is neither a number that
/// int64 or float64 holds, nor convertible to one without loss.
pub(crate) fn is_object(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(int) = value.cast::<PyInt>() {
        return Ok(int.extract::<i64>().is_err());
    }
    if value.is_none() || value.is_instance_of::<PyFloat>() {
        return Ok(false);
    }
    let kind = value.get_type();
    if value.is_exact_instance_of::<PyDict>() || is_numpy_bool(value)? {
        return Ok(false);
    }
    if is_exact_fraction(&kind)? || is_numpy_other(&kind)? {
        return Ok(true);
    }
    Ok(!kind.hasattr("__index__")? && !kind.hasattr("__float__")?)
}

/// The Python value of an Arrow scalar; a NaT and pandas' NA as None; numpy's uint64, whose
/// sums would wrap, as an int. Other values are unchanged.
pub(crate) fn plain<'py>(value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let usual = value.is_none()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyString>();
    if usual {
        return Ok(value);
    }
    let kind = value.get_type();
    let missing = || Ok(value.py().None().into_bound(value.py()));
    match &*kind.name()?.to_string_lossy() {
        "NaTType" | "NAType" if is_of(&kind, "pandas") => missing(),
        "datetime64" | "timedelta64" if is_of(&kind, "numpy") && value.ne(&value)? => missing(),
        "uint64" if is_of(&kind, "numpy") => value.call_method0("__index__"),
        scalar if scalar.ends_with("Scalar") && is_of(&kind, "pyarrow") => {
            value.call_method0("as_py")
        }
        _ => Ok(value),
    }
}

/// Type and value, shortened, for messages. A `__repr__` that fails is not shown.
pub(crate) fn described(value: &Bound<'_, PyAny>) -> String {
    let kind = value
        .get_type()
        .name()
        .map_or_else(|_| "value".to_owned(), |name| name.to_string());
    let shown = match value.repr() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => return format!("a {kind}"),
    };
    let mut short: String = shown.chars().take(60).collect();
    if short.len() < shown.len() {
        short.push_str("...");
    }
    format!("{kind} {short}")
}
