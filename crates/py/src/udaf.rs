//! User-defined aggregations: calls of their functions.
//!
//! Lift runs before a window is locked. Combine, inverse and lower run on pending terms after
//! a query has unlocked the window (see `slidewise_core::aggregate::deferred`). So none of
//! them runs under the lock, and if one raises, the window is unchanged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::PyTraverseError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::pyclass::PyVisit;
use pyo3::types::{PyBytes, PyFloat};
use slidewise_core::aggregate::Kind;
use slidewise_core::aggregate::deferred::{Ledger, Term, UdafCall, UdafFunction};
use slidewise_core::snapshot::Damaged;

use crate::errors::{SlidewiseError, snapshot_error, with_note_from};
use crate::inputs::Nan;
use crate::object_store::{Object, ObjectStore};
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals};
use crate::untyped::Untyped;

/// The largest number of pending terms that one call computes in advance.
pub(crate) const MAX_TERMS_AHEAD: usize = 1 << 10;

/// One user-defined aggregation, read from `slidewise.aggregations.custom.Functions`.
#[derive(Debug)]
pub(crate) struct Udaf {
    /// For messages.
    name: String,
    /// Whether it is a built-in aggregation over objects.
    built_in: bool,
    /// The partial of an empty window; `None` if its answer is None.
    nothing: Option<Py<PyAny>>,
    pub(crate) commutative: bool,
    invertible: bool,
    /// `None` once the garbage collector has cleared it.
    functions: Mutex<Option<Arc<Functions>>>,
}

/// `None` is the identity function.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) lift: Option<Py<PyAny>>,
    pub(crate) combine: Py<PyAny>,
    pub(crate) lower: Option<Py<PyAny>>,
    inverse: Option<Py<PyAny>>,
    codec: Option<(Py<PyAny>, Py<PyAny>)>,
}

impl Udaf {
    pub(crate) fn read(functions: &Bound<'_, PyAny>) -> PyResult<Self> {
        let given = |name| {
            let function = functions.getattr(name)?;
            PyResult::Ok((!function.is_none()).then(|| function.unbind()))
        };
        let (encode, decode) = (given("encode")?, given("decode")?);
        let name = functions.getattr("name")?.extract::<Option<String>>()?;
        let built_in = name.is_some_and(|name| name.starts_with("slidewise.aggregations.objects:"));
        Ok(Self {
            name: functions.getattr("label")?.extract()?,
            built_in,
            nothing: given("identity")?.filter(|_| built_in),
            commutative: functions.getattr("commutative")?.extract()?,
            invertible: given("inverse")?.is_some(),
            functions: Mutex::new(Some(Arc::new(Functions {
                lift: given("lift")?,
                combine: functions.getattr("combine")?.unbind(),
                lower: given("lower")?,
                inverse: given("inverse")?,
                codec: encode.zip(decode),
            }))),
        })
    }

    pub(crate) fn kind(&self, number: u16) -> Kind {
        Kind::Udaf {
            number,
            commutative: self.commutative,
            invertible: self.invertible,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Functions>>> {
        self.functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn functions(&self) -> PyResult<Arc<Functions>> {
        let functions = self.lock().clone();
        functions.ok_or_else(collected)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // No Python runs under this lock, so no other thread holds it now.
        let Ok(functions) = self.functions.try_lock() else {
            return Ok(());
        };
        let Some(functions) = &*functions else {
            return Ok(());
        };
        visit.call(&functions.combine)?;
        let others = [&functions.lift, &functions.lower, &functions.inverse];
        for function in others.into_iter().flatten() {
            visit.call(function)?;
        }
        if let Some((encode, decode)) = &functions.codec {
            visit.call(encode)?;
            visit.call(decode)?;
        }
        Ok(())
    }

    /// Breaks reference cycles, for the garbage collector.
    pub(crate) fn clear(&self) {
        let functions = self.lock().take();
        drop(functions);
    }
}

/// The context of calls of a window's or a table's user-defined aggregations.
pub(crate) struct UdafCalls<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) udafs: &'a [Udaf],
    pub(crate) store: &'a ObjectStore,
    /// The caller's name in notes: "slidewise.Window".
    pub(crate) caller: &'static str,
}

impl<'py> UdafCalls<'_, 'py> {
    pub(crate) fn noted(&self, error: PyErr, doing: &str, udaf: &Udaf) -> PyErr {
        let doing = format!("{doing} {}", udaf.name);
        with_note_from(self.py, error, self.caller, &doing)
    }

    /// Lifts a value to a partial. NaN stays as it is unless `nan="propagate"`.
    pub(crate) fn lift(
        &self,
        number: usize,
        value: &Bound<'py, PyAny>,
        nan: Nan,
    ) -> PyResult<Untyped> {
        if value.is_none() {
            return Ok(Untyped::Null);
        }
        if nan != Nan::Propagate
            && let Ok(float) = value.cast::<PyFloat>()
            && float.value().is_nan()
        {
            return Ok(Untyped::Float(float.value()));
        }
        let udaf = &self.udafs[number];
        let partial = match &udaf.functions()?.lift {
            Some(lift) => lift
                .bind(self.py)
                .call1((value,))
                .map_err(|error| self.noted(error, "lifting a value for", udaf))?,
            None => value.clone(),
        };
        let held = self.store.add_partial(partial.unbind(), number)?;
        Ok(Untyped::Object(held))
    }

    /// Lifts a value and its paired value; null where the value is missing.
    pub(crate) fn lift_with(
        &self,
        number: usize,
        value: &Bound<'py, PyAny>,
        paired: &Bound<'py, PyAny>,
        nan: Nan,
    ) -> PyResult<Untyped> {
        let module = self.py.import("slidewise.aggregations.objects")?;
        let pair = module.call_method1("pair", (value, paired, nan.name()))?;
        self.lift(number, &pair, nan)
    }

    fn get(&self, partial: &Object) -> PyResult<Bound<'py, PyAny>> {
        self.store.get(self.py, partial).ok_or_else(collected)
    }

    fn call(&self, call: UdafCall, first: &Object, second: &Object) -> PyResult<Object> {
        let number = usize::from(call.udaf);
        let udaf = &self.udafs[number];
        let functions = udaf.functions()?;
        let (function, doing) = match call.function {
            UdafFunction::Combine => (Some(&functions.combine), "combining two partials of"),
            UdafFunction::Inverse => (
                functions.inverse.as_ref(),
                "subtracting the earliest entry of",
            ),
        };
        let function = function.ok_or_else(collected)?.bind(self.py);
        let operands = (self.get(first)?, self.get(second)?);
        let made = function.call1(operands);
        let made = made.map_err(|error| self.noted(error, doing, udaf))?;
        self.store.add_partial(made.unbind(), number)
    }

    /// The value of a term, after all necessary calls; `None` for the empty term.
    pub(crate) fn force(&self, term: &Term<Object>) -> PyResult<Option<Object>> {
        let mut calls = 0;
        term.force(&mut |call, first, second| {
            calls += 1;
            if calls % SIGNAL_CHECK_ROWS == 0 {
                check_signals(self.py)?;
            }
            self.call(call, first, second)
        })
    }

    /// The answer over a term.
    pub(crate) fn lower(
        &self,
        number: u16,
        term: &Term<Object>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let udaf = &self.udafs[usize::from(number)];
        let whole = match (self.force(term)?, &udaf.nothing) {
            (Some(whole), _) => self.get(&whole)?,
            (None, Some(nothing)) => nothing.bind(self.py).clone(),
            (None, None) => return Ok(None),
        };
        match &udaf.functions()?.lower {
            None => Ok(Some(whole)),
            Some(lower) => {
                let answer = lower.bind(self.py).call1((whole,));
                answer
                    .map(Some)
                    .map_err(|error| self.noted(error, "lowering a partial of", udaf))
            }
        }
    }

    /// Computes the earliest pending terms. A term that raises stays pending, and raises
    /// again in the query that needs it.
    pub(crate) fn compute_pending(&self, ledger: &Ledger<Object>) -> PyResult<()> {
        for term in ledger.take(MAX_TERMS_AHEAD) {
            let Some((call, first, second)) = term.next_step() else {
                continue;
            };
            match self.call(call, &first, &second) {
                Ok(value) => term.set_value(value),
                Err(error) if error.is_instance_of::<PyException>(self.py) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A partial as bytes, if its aggregation has a codec.
    pub(crate) fn encode(
        &self,
        number: usize,
        partial: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let udaf = &self.udafs[number];
        let functions = udaf.functions()?;
        let Some((encode, _)) = &functions.codec else {
            return Ok(None);
        };
        let bytes = encode.bind(self.py).call1((partial,));
        let bytes = bytes.map_err(|error| self.noted(error, "encoding a partial of", udaf))?;
        bytes.cast_into::<PyBytes>().map(Some).map_err(|other| {
            let kind = other.into_inner().get_type().to_string();
            snapshot_error(Damaged(format!(
                "the codec of {} encoded a partial as {kind}, not as bytes",
                udaf.name
            )))
        })
    }

    pub(crate) fn decode(&self, number: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let udaf = &self.udafs[number];
        let functions = udaf.functions()?;
        let Some((_, decode)) = &functions.codec else {
            return Err(snapshot_error(Damaged(format!(
                "the partials were written by a codec, and {} has none",
                udaf.name
            ))));
        };
        let partial = decode.bind(self.py).call1((PyBytes::new(self.py, bytes),));
        partial.map_err(|error| self.noted(error, "decoding a partial of", udaf))
    }

    pub(crate) fn is_built_in(&self, number: usize) -> bool {
        self.udafs[number].built_in
    }

    pub(crate) fn name(&self, number: usize) -> &str {
        &self.udafs[number].name
    }
}

fn collected() -> PyErr {
    SlidewiseError::new_err("the window has been garbage collected")
}
