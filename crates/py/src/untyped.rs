//! Converts Python values to cells of the core while their column has no type yet.
//!
//! Conversion takes two steps. [`read_value`] may run a user's `__index__` or `__float__`
//! and happens before the window is locked; [`Untyped::resolve_dtype`] fixes the type of the
//! column and happens under the lock, where no Python code may run.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};
use slidewise_core::aggregate::Cell;

use crate::errors::{spec_error, with_note};
use crate::hashing;
use crate::inputs::{InputColumn, Nan, Role, Type, is_exact};
use crate::object_store::{Object, ObjectStore, canonical};
use crate::scalars::{described, is_numpy_bool, is_numpy_other, small_int};

/// A value before the type of its column is known.
#[derive(Clone, Debug)]
pub(crate) enum Untyped {
    Null,
    Int(i64),
    Bool(bool),
    Float(f64),
    /// An int beyond int64, as text and as the nearest float, if there is one.
    Big(String, Option<f64>),
    Object(Object),
}

/// Reads a value for an input column of this role. The store is `None` where the window
/// holds no objects.
pub(crate) fn read_value(
    value: &Bound<'_, PyAny>,
    role: Role,
    store: Option<&ObjectStore>,
) -> PyResult<Untyped> {
    if value.is_none() {
        return Ok(Untyped::Null);
    }
    if role == Role::Hash {
        let hash = hashing::of_scalar(value)?;
        return Ok(hash.map_or(Untyped::Float(f64::NAN), Untyped::Int));
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        // A subclass of float is collected unchanged, unless nan= applies.
        let float = float.value();
        if role != Role::Any || float.is_nan() || value.is_exact_instance_of::<PyFloat>() {
            return Ok(Untyped::Float(float));
        }
    }
    match (role, store) {
        (Role::Presence, _) => Ok(Untyped::Int(0)),
        (Role::Any, Some(store)) => match small_int(value) {
            Some(int) => Ok(Untyped::Int(int)),
            None => Ok(Untyped::Object(store.add(value.clone().unbind())?)),
        },
        _ => number(value),
    }
}

/// Reads a value for an input of [`Role::Key`].
pub(crate) fn read_key(
    value: &Bound<'_, PyAny>,
    nan: Nan,
    store: Option<&ObjectStore>,
) -> PyResult<Untyped> {
    let Some(store) = store.filter(|_| !value.is_none()) else {
        return Ok(Untyped::Null);
    };
    if value
        .cast::<PyFloat>()
        .is_ok_and(|float| float.value().is_nan())
    {
        match nan {
            Nan::Propagate => {}
            Nan::Skip => return Ok(Untyped::Null),
            Nan::Raise => return Err(spec_error(NAN_RAISED.to_owned())),
        }
    }
    store
        .intern(&canonical(value))
        .map(Untyped::Object)
        .map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(value.py()) {
                return with_note(value.py(), error, "comparing a value with others");
            }
            spec_error(format!(
                "{} cannot be a dict's key, so it cannot be compared with others: {}",
                described(value),
                error.value(value.py()),
            ))
        })
}

fn number(value: &Bound<'_, PyAny>) -> PyResult<Untyped> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Untyped::Bool(flag.is_true()));
    }
    if let Ok(int) = value.cast::<PyInt>() {
        return integer(int);
    }
    let kind = value.get_type();
    let doing = |error| with_note(value.py(), error, "converting a value");
    if is_numpy_bool(value)? {
        return Ok(Untyped::Bool(value.is_truthy().map_err(doing)?));
    }
    if kind.hasattr("__index__")? {
        let index = value.call_method0("__index__").map_err(doing)?;
        return integer(index.cast()?);
    }
    if !is_numpy_other(&kind)? && kind.hasattr("__float__")? {
        return Ok(Untyped::Float(value.extract::<f64>().map_err(doing)?));
    }
    let hint = if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        "convert it first, for example with float(); a window created with \
         dtype='object' takes it for min, max, first, last and similar ones"
    } else if value.is_instance_of::<PyDict>() {
        "to aggregate columns, name them in the aggregations: sw.sum('x'), and insert \
         mappings"
    } else {
        "sum, min, max and similar ones take ints and floats; with dtype='object' they \
         take all values that compare and add, and collect() takes any object"
    };
    Err(spec_error(format!(
        "{} is not a number: {hint}",
        described(value)
    )))
}

fn integer(int: &Bound<'_, PyInt>) -> PyResult<Untyped> {
    match int.extract::<i64>() {
        Ok(value) => Ok(Untyped::Int(value)),
        Err(error) if error.is_instance_of::<PyOverflowError>(int.py()) => {
            Ok(Untyped::Big(described(int), int.extract::<f64>().ok()))
        }
        Err(error) => Err(error),
    }
}

pub(crate) const NAN_RAISED: &str = "the value is NaN, and the window was created with nan='raise'";

/// The reason why a value does not fit the type of its column.
#[derive(Debug)]
pub(crate) struct TypeMismatch(pub(crate) String);

impl TypeMismatch {
    /// The error to raise, which names the column and the row.
    pub(crate) fn into_error(self, column: Option<String>, row: Option<usize>) -> PyErr {
        let column = column.map(|name| format!("column {name:?}"));
        let row = row.map(|row| format!("row {row}"));
        let place: Vec<String> = [column, row].into_iter().flatten().collect();
        if place.is_empty() {
            return spec_error(self.0);
        }
        spec_error(format!("{}: {}", place.join(", "), self.0))
    }
}

impl Untyped {
    /// Converts to the cell of a column of type `dtype`. The first number sets an open type;
    /// a float may widen it later, and cells of integers before it are to be
    /// [widened](widened_cell).
    pub(crate) fn resolve_dtype(
        self,
        input: &InputColumn,
        dtype: &mut Option<Type>,
        nan: Nan,
    ) -> Result<Cell<Object>, TypeMismatch> {
        if let Self::Float(float) = self
            && float.is_nan()
        {
            match nan {
                Nan::Propagate => {}
                Nan::Skip => return Ok(Cell::Null),
                Nan::Raise => return Err(TypeMismatch(NAN_RAISED.to_owned())),
            }
        }
        let role = input.role;
        if !role.is_number() {
            return Ok(match self {
                Self::Null => Cell::Null,
                _ if role == Role::Presence => Cell::I64(0),
                Self::Int(int) => Cell::I64(int),
                Self::Bool(flag) => Cell::I64(i64::from(flag)),
                Self::Float(nan) if role == Role::Hash => Cell::I64(hashing::of_float(nan)),
                Self::Float(float) => Cell::F64(float),
                Self::Object(object) => Cell::Object(object),
                Self::Big(text, _) => return Err(TypeMismatch(text)),
            });
        }
        self.into_number(input, dtype)
    }

    fn into_number(
        self,
        input: &InputColumn,
        dtype: &mut Option<Type>,
    ) -> Result<Cell<Object>, TypeMismatch> {
        match (self, *dtype) {
            (Self::Null, _) => Ok(Cell::Null),
            (Self::Bool(_), _) if input.refuses_bools => Err(TypeMismatch(NO_BOOL.to_owned())),
            (Self::Bool(flag), None) => {
                *dtype = Some(Type::Bool);
                Ok(Cell::I64(i64::from(flag)))
            }
            (Self::Bool(flag), Some(before)) if before.is_float() => Ok(Cell::F64(f64::from(flag))),
            (Self::Bool(flag), _) => Ok(Cell::I64(i64::from(flag))),
            (Self::Int(int), Some(before)) if before.is_float() => Ok(Cell::F64(int as f64)),
            (Self::Int(int), before) => {
                *dtype = Some(input.with_ints(before, is_exact(int)));
                Ok(Cell::I64(int))
            }
            (Self::Float(float), Some(Type::Bool | Type::Exact | Type::Int))
                if !input.widens(*dtype) =>
            {
                let found = format!("{float:?} is a float");
                Err(TypeMismatch(not_whole(input, &found)))
            }
            (Self::Float(float), _) => {
                *dtype = Some(input.with_floats(*dtype));
                Ok(Cell::F64(float))
            }
            (Self::Big(_, Some(float)), Some(before)) if before.is_float() => Ok(Cell::F64(float)),
            (Self::Big(text, None), Some(before)) if before.is_float() => Err(TypeMismatch(
                format!("{text} does not fit float64: create the window with dtype='object'"),
            )),
            (Self::Big(text, _), _) => Err(TypeMismatch(format!(
                "{text} does not fit int64: create the window with dtype='object' for \
                 exact sums and extremes, or with dtype='float64' if rounding is fine"
            ))),
            (Self::Object(_), _) => unreachable!("objects are refused by loosen"),
        }
    }
}

pub(crate) const NO_BOOL: &str = "range() does not fit bool: range takes integers and floats, \
     durations, timestamps and dates; convert the values first, for example with int()";

/// The message for a value that is not an integer in a column of int64.
pub(crate) fn not_whole(input: &InputColumn, found: &str) -> String {
    if input.role == Role::Typed {
        return format!(
            "{found}, and the aggregation of this column computes with int64: convert the \
             values first, for example with int()"
        );
    }
    if input.is_open() {
        return format!(
            "{found}, but this window holds int64, and one of the integers so far is not \
             exact in float64: create it with dtype='float64' if rounding is fine"
        );
    }
    format!("{found}, but this window holds int64: create it with dtype='float64' to take both")
}

/// The cell of a column that has widened to floats.
pub(crate) fn widened_cell(cell: Cell<Object>) -> Cell<Object> {
    match cell {
        Cell::I64(int) => Cell::F64(int as f64),
        other => other,
    }
}
