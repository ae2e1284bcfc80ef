//! One value: from Python to a cell of the core, and from an answer to Python.
//!
//! Conversion goes in two steps. [`loosen`] may run a user's `__index__` or `__float__`
//! and happens before the window is locked; [`Loose::settle`] fixes the type of the
//! column and happens under the lock, where no Python code may run.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyType};
use slidewise_core::aggregate::deferred::Term;
use slidewise_core::aggregate::{Answer, Cell, Kind};

use crate::errors::{ResultOverflowError, SlidewiseError, broken, noted, spec};
use crate::hashing;
use crate::object_store::{Object, Store, canonical};
use crate::sketches;
use crate::spec::{Nan, Role, Spec, Type};
use crate::udaf::Working;

/// A value before the type of its column is known.
#[derive(Clone, Debug)]
pub(crate) enum Loose {
    Null,
    Int(i64),
    Bool(bool),
    Float(f64),
    /// An int beyond int64, as text and as the nearest float, if there is one.
    Big(String, Option<f64>),
    Object(Object),
}

/// Reads a value for a feed of this role. `None` in the store's place: it needs none.
pub(crate) fn loosen(
    value: &Bound<'_, PyAny>,
    role: Role,
    store: Option<&Store>,
) -> PyResult<Loose> {
    if value.is_none() {
        return Ok(Loose::Null);
    }
    if role == Role::Hash {
        return hashing::loosen(value);
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        // A subclass of float is collected as it is, unless nan= has a say.
        let float = float.value();
        if role != Role::Any || float.is_nan() || value.is_exact_instance_of::<PyFloat>() {
            return Ok(Loose::Float(float));
        }
    }
    match (role, store) {
        (Role::Presence, _) => Ok(Loose::Int(0)),
        (Role::Any, Some(store)) => match small_int(value) {
            Some(int) => Ok(Loose::Int(int)),
            None => Ok(Loose::Object(store.add(value.clone().unbind())?)),
        },
        _ => number(value),
    }
}

/// Whether a type is of a library, which its module begins with: a user's class may be
/// named like any of the library's.
pub(crate) fn is_of(kind: &Bound<'_, PyType>, library: &str) -> bool {
    let module = kind.module();
    module.is_ok_and(|module| module.to_string_lossy().split('.').next() == Some(library))
}

/// Whether a value is one of numpy's bools, which are ints to us and have no `__index__`.
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

/// Text and times of numpy, which have a `__float__` that raises.
fn is_numpy_other(kind: &Bound<'_, PyType>) -> PyResult<bool> {
    let name = kind.name()?;
    let other = matches!(
        &*name.to_string_lossy(),
        "str_" | "bytes_" | "datetime64" | "timedelta64"
    );
    Ok(other && is_of(kind, "numpy"))
}

/// Whether a value decides, if it is a column's first, that the column holds objects:
/// neither a number that int64 or float64 holds, nor what can be converted to one without
/// loss.
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

/// What an Arrow scalar stands for; a NaT and pandas' NA as None; numpy's uint64, whose sums
/// would wrap, as an int. Anything else as it is.
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

/// Reads a value for a feed of [`Role::Key`].
pub(crate) fn key(value: &Bound<'_, PyAny>, nan: Nan, store: Option<&Store>) -> PyResult<Loose> {
    let Some(store) = store.filter(|_| !value.is_none()) else {
        return Ok(Loose::Null);
    };
    if value
        .cast::<PyFloat>()
        .is_ok_and(|float| float.value().is_nan())
    {
        match nan {
            Nan::Propagate => {}
            Nan::Skip => return Ok(Loose::Null),
            Nan::Raise => return Err(spec(NAN_RAISED.to_owned())),
        }
    }
    store
        .intern(&canonical(value))
        .map(Loose::Object)
        .map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(value.py()) {
                return noted(value.py(), error, "comparing a value with others");
            }
            spec(format!(
                "{} cannot be a dict's key, and so not be told from others: {}",
                described(value),
                error.value(value.py()),
            ))
        })
}

/// An exact `int` that fits; runs no user code.
pub(crate) fn small_int(value: &Bound<'_, PyAny>) -> Option<i64> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

fn number(value: &Bound<'_, PyAny>) -> PyResult<Loose> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Loose::Bool(flag.is_true()));
    }
    if let Ok(int) = value.cast::<PyInt>() {
        return integer(int);
    }
    let kind = value.get_type();
    let doing = |error| noted(value.py(), error, "converting a value");
    if is_numpy_bool(value)? {
        return Ok(Loose::Bool(value.is_truthy().map_err(doing)?));
    }
    if kind.hasattr("__index__")? {
        let index = value.call_method0("__index__").map_err(doing)?;
        return integer(index.cast()?);
    }
    if !is_numpy_other(&kind)? && kind.hasattr("__float__")? {
        return Ok(Loose::Float(value.extract::<f64>().map_err(doing)?));
    }
    let hint = if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        "convert it first, for example with float(); a window created with \
         dtype='object' takes it for min, max, first, last and the like"
    } else if value.is_instance_of::<PyDict>() {
        "to aggregate columns, name them in the aggregations: sw.sum('x'), and insert \
         mappings"
    } else {
        "sum, min, max and the like take ints and floats; with dtype='object' they take \
         whatever compares and adds, and collect() takes any object"
    };
    Err(spec(format!(
        "{} is not a number: {hint}",
        described(value)
    )))
}

fn integer(int: &Bound<'_, PyInt>) -> PyResult<Loose> {
    match int.extract::<i64>() {
        Ok(value) => Ok(Loose::Int(value)),
        Err(error) if error.is_instance_of::<PyOverflowError>(int.py()) => {
            Ok(Loose::Big(described(int), int.extract::<f64>().ok()))
        }
        Err(error) => Err(error),
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

pub(crate) const NAN_RAISED: &str = "the value is NaN, and the window was created with nan='raise'";

/// Why a value does not fit its column; the caller adds which column and row.
#[derive(Debug)]
pub(crate) struct Misfit(pub(crate) String);

impl Loose {
    /// The cell for a column of type `dtype`, which the first number decides.
    pub(crate) fn settle(
        self,
        role: Role,
        dtype: &mut Option<Type>,
        nan: Nan,
    ) -> Result<Cell<Object>, Misfit> {
        if let Self::Float(float) = self
            && float.is_nan()
        {
            match nan {
                Nan::Propagate => {}
                Nan::Skip => return Ok(Cell::Null),
                Nan::Raise => return Err(Misfit(NAN_RAISED.to_owned())),
            }
        }
        if !role.is_number() {
            return Ok(match self {
                Self::Null => Cell::Null,
                _ if role == Role::Presence => Cell::I64(0),
                Self::Int(int) => Cell::I64(int),
                Self::Bool(flag) => Cell::I64(i64::from(flag)),
                Self::Float(nan) if role == Role::Hash => Cell::I64(hashing::of_float(nan)),
                Self::Float(float) => Cell::F64(float),
                Self::Object(object) => Cell::Object(object),
                Self::Big(text, _) => return Err(Misfit(text)),
            });
        }
        self.into_number(role, dtype)
    }

    fn into_number(self, role: Role, dtype: &mut Option<Type>) -> Result<Cell<Object>, Misfit> {
        match (self, *dtype) {
            (Self::Null, _) => Ok(Cell::Null),
            (Self::Bool(flag), None) => {
                *dtype = Some(Type::Bool);
                Ok(Cell::I64(i64::from(flag)))
            }
            (Self::Bool(flag), Some(Type::Float)) => Ok(Cell::F64(f64::from(flag))),
            (Self::Bool(flag), _) => Ok(Cell::I64(i64::from(flag))),
            (Self::Int(int), Some(Type::Float)) => Ok(Cell::F64(int as f64)),
            (Self::Int(int), _) => {
                *dtype = Some(Type::Int);
                Ok(Cell::I64(int))
            }
            (Self::Float(float), Some(Type::Bool | Type::Int)) => {
                Err(Misfit(not_whole(role, format!("{float:?} is a float"))))
            }
            (Self::Float(float), _) => {
                *dtype = Some(Type::Float);
                Ok(Cell::F64(float))
            }
            (Self::Big(_, Some(float)), Some(Type::Float)) => Ok(Cell::F64(float)),
            (Self::Big(text, None), Some(Type::Float)) => Err(Misfit(format!(
                "{text} does not fit float64: create the window with dtype='object'"
            ))),
            (Self::Big(text, _), _) => Err(Misfit(format!(
                "{text} does not fit int64: create the window with dtype='object' for \
                 exact sums and extremes, or with dtype='float64' if rounding is fine"
            ))),
            (Self::Object(_), _) => unreachable!("objects are refused by loosen"),
        }
    }
}

/// What to say where a column of int64 meets something else.
pub(crate) fn not_whole(role: Role, found: String) -> String {
    if role == Role::Typed {
        return format!(
            "{found}, and the aggregation of this column computes with int64: convert the \
             values first, for example with int()"
        );
    }
    format!("{found}, but this window holds int64: create it with dtype='float64' to take both")
}

/// Says in which column and row the misfit was.
pub(crate) fn misfit(misfit: Misfit, column: Option<String>, row: Option<usize>) -> PyErr {
    let column = column.map(|name| format!("column {name:?}"));
    let row = row.map(|row| format!("row {row}"));
    let place: Vec<String> = [column, row].into_iter().flatten().collect();
    if place.is_empty() {
        return spec(misfit.0);
    }
    spec(format!("{}: {}", place.join(", "), misfit.0))
}

/// Turns answers into what the user gets.
pub(crate) struct Lowering<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) spec: &'a Spec,
    pub(crate) store: Option<&'a Store>,
    /// Gives a time back in the kind it came in.
    pub(crate) restore: &'a dyn Fn(i64) -> PyResult<Bound<'py, PyAny>>,
    /// Which answers are values of columns of bools.
    pub(crate) truths: &'a [AtomicBool],
}

impl<'py> Lowering<'_, 'py> {
    /// One bare answer, or a dict of them.
    pub(crate) fn all(&self, answers: Vec<Answer<Object>>) -> PyResult<Bound<'py, PyAny>> {
        let Some(names) = &self.spec.names else {
            let only = answers.into_iter().next();
            return self.one(0, only.unwrap_or(Answer::Null));
        };
        let dict = PyDict::new(self.py);
        for (at, (answer, name)) in answers.into_iter().zip(names).enumerate() {
            dict.set_item(name, self.one(at, answer)?)?;
        }
        Ok(dict.into_any())
    }

    pub(crate) fn one(&self, at: usize, answer: Answer<Object>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match answer {
            Answer::Null => py.None().into_bound(py),
            Answer::I64(ticks) if self.spec.timed[at] => (self.restore)(ticks)?,
            Answer::I64(int) if self.is_truth(at) => self.truth(int),
            Answer::I64(int) => int.into_pyobject(py)?.into_any(),
            Answer::Bool(flag) => PyBool::new(py, flag).to_owned().into_any(),
            Answer::F64(float) => PyFloat::new(py, float).into_any(),
            Answer::Bytes(bytes) => match self.spec.aggs[at].kind {
                Kind::Native(_) => self.record(at, &bytes)?,
                kind => sketches::answer(py, kind, &bytes)?,
            },
            Answer::Hitters(hitters) => {
                let list = PyList::empty(py);
                for (item, count, error) in hitters {
                    list.append((self.cell(at, item)?, count, error))?;
                }
                list.into_any()
            }
            Answer::Term(term) => self.own(at, &term)?,
            Answer::Overflow(value) => return Err(self.overflow(at, value)),
            Answer::List(cells) => {
                let list = PyList::empty(py);
                for (done, cell) in cells.into_iter().enumerate() {
                    if done % SIGNALS_EVERY == SIGNALS_EVERY - 1 {
                        breathe(py)?;
                    }
                    list.append(self.cell(at, cell)?)?;
                }
                if self.spec.finished[at] {
                    let plan = self.spec.plan.bind(py);
                    let made = plan.call_method1("finish", (at, list));
                    return made.map_err(|error| noted(py, error, "making an answer"));
                }
                list.into_any()
            }
        })
    }

    /// The answer over a record of a native aggregation.
    fn record(&self, at: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let plan = self.spec.plan.bind(self.py);
        let lowered = plan.call_method1("lower_native", (at, PyBytes::new(self.py, bytes)));
        lowered.map_err(|error| noted(self.py, error, "lowering a record"))
    }

    /// The answer of one of the user's own aggregations.
    fn own(&self, at: usize, term: &Term<Object>) -> PyResult<Bound<'py, PyAny>> {
        let (Kind::Own { number, .. }, Some(store)) = (self.spec.aggs[at].kind, self.store) else {
            return Err(broken("a term without an aggregation"));
        };
        let working = Working {
            py: self.py,
            own: &self.spec.own,
            store,
            caller: "slidewise.Window",
        };
        match working.lower(number, term)? {
            Some(ticks) if self.spec.timed[at] => (self.restore)(ticks.extract()?),
            Some(answer) => Ok(answer),
            None => Ok(self.py.None().into_bound(self.py)),
        }
    }

    fn is_truth(&self, at: usize) -> bool {
        self.truths[at].load(Ordering::Relaxed)
    }

    fn truth(&self, int: i64) -> Bound<'py, PyAny> {
        PyBool::new(self.py, int != 0).to_owned().into_any()
    }

    fn cell(&self, at: usize, cell: Cell<Object>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match cell {
            Cell::Null => py.None().into_bound(py),
            Cell::I64(int) if self.is_truth(at) => self.truth(int),
            Cell::I64(int) => int.into_pyobject(py)?.into_any(),
            Cell::F64(float) => PyFloat::new(py, float).into_any(),
            Cell::Object(object) => {
                let found = self.store.and_then(|store| store.get(py, &object));
                found.ok_or_else(|| {
                    SlidewiseError::new_err("the window has been garbage collected")
                })?
            }
        })
    }

    fn overflow(&self, at: usize, value: i128) -> PyErr {
        let plan = self.spec.plan.bind(self.py);
        let label = plan.call_method1("label", (at,));
        let label = label.map_or_else(|_| "the answer".to_owned(), |text| text.to_string());
        ResultOverflowError::new_err(format!(
            "{label} is {value}, which int64 cannot hold: create the window with \
             dtype='float64' if rounding is fine, or evict before asking"
        ))
    }
}

/// How many items are converted between two calls of [`breathe`].
pub(crate) const SIGNALS_EVERY: usize = 1 << 14;

/// Looks for Ctrl-C and lets other threads run, in a long loop without a line of Python.
///
/// The interpreter does both where it enters a function, so one is called. Releasing the
/// GIL for a moment is no substitute: it wakes a waiting thread, which finds the GIL
/// taken again and starts its wait anew, for seconds on end.
pub(crate) fn breathe(py: Python<'_>) -> PyResult<()> {
    static NOTHING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let nothing = NOTHING.get_or_try_init(py, || {
        py.eval(c"lambda: None", None, None).map(Bound::unbind)
    })?;
    nothing.call0(py).map(drop)
}
