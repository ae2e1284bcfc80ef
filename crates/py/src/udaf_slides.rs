//! A user-defined aggregation over a whole table, without pending terms.
//!
//! A table has no state that a failed call could leave half changed, and the user's
//! functions cannot call back into it. So terms are not deferred ([`crate::udaf`]), and
//! partials are plain Python objects. Two stacks as in
//! `slidewise_core::rolling::two_stacks`: ≤ 3 combines per row.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use slidewise_core::rolling::{Error, Request, Slides, slides};

use crate::errors::kernel_error;
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals};
use crate::udaf::{Functions, Udaf, UdafCalls};

type Partial<'py> = Option<Bound<'py, PyAny>>;

pub(crate) struct Eager<'a, 'py> {
    udaf_calls: &'a UdafCalls<'a, 'py>,
    udaf: &'a Udaf,
    functions: &'a Functions,
    /// Partials by row; `None` where the value is missing.
    lifted: Vec<Partial<'py>>,
    /// `suffixes[k]` is the fold of the `k + 1` rows before `mid`.
    suffixes: Vec<Partial<'py>>,
    mid: usize,
    /// The fold of `mid..hi`.
    back: Partial<'py>,
    hi: usize,
    /// The last answered window: rows that share a window share its answer.
    last: Option<(usize, usize)>,
    answer: Partial<'py>,
    /// Per span and row.
    lists: Vec<Vec<Partial<'py>>>,
    calls: usize,
    raised: Option<PyErr>,
}

impl<'a, 'py> Eager<'a, 'py> {
    pub(crate) fn new(
        udaf_calls: &'a UdafCalls<'a, 'py>,
        functions: &'a Functions,
        (spans, answers): (usize, usize),
    ) -> Self {
        Self {
            udaf_calls,
            udaf: &udaf_calls.udafs[0],
            functions,
            lifted: Vec::new(),
            suffixes: Vec::new(),
            mid: 0,
            back: None,
            hi: 0,
            last: None,
            answer: None,
            lists: (0..spans).map(|_| vec![None; answers]).collect(),
            calls: 0,
            raised: None,
        }
    }

    /// Answers a request, which has no order of arrival, over these values.
    pub(crate) fn run<T>(
        mut self,
        request: &Request<'_, T>,
        values: &Bound<'py, PyList>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        for value in values.iter() {
            let partial = match &self.functions.lift {
                _ if value.is_none() => None,
                None => Some(value),
                Some(lift) => Some(self.lift(lift.bind(self.udaf_calls.py), &value)?),
            };
            self.lifted.push(partial);
        }
        let py = self.udaf_calls.py;
        match slides(request, &mut self) {
            Ok(()) => {}
            Err(Error::Refused) => return Err(self.raised.take().expect("it says why")),
            Err(error) => return Err(kernel_error(py, error, None)),
        }
        self.lists
            .into_iter()
            .map(|answers| PyList::new(py, answers))
            .collect()
    }

    /// Checks for Ctrl-C now and then, because built-in functions do not.
    fn count(&mut self) -> PyResult<()> {
        self.calls += 1;
        if self.calls.is_multiple_of(SIGNAL_CHECK_ROWS) {
            check_signals(self.udaf_calls.py)?;
        }
        Ok(())
    }

    fn lift(
        &mut self,
        lift: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.count()?;
        let doing = "lifting a value for";
        call_one(lift, value).map_err(|error| self.udaf_calls.noted(error, doing, self.udaf))
    }

    fn combine(&mut self, older: Partial<'py>, younger: Partial<'py>) -> PyResult<Partial<'py>> {
        let (Some(a), Some(b)) = (&older, &younger) else {
            return Ok(older.or(younger));
        };
        self.count()?;
        let made = call_two(self.functions.combine.bind(self.udaf_calls.py), a, b);
        let doing = "combining two partials of";
        made.map(Some)
            .map_err(|error| self.udaf_calls.noted(error, doing, self.udaf))
    }

    fn lower(&mut self, whole: Partial<'py>) -> PyResult<Partial<'py>> {
        let (Some(whole), Some(lower)) = (&whole, &self.functions.lower) else {
            return Ok(whole);
        };
        self.count()?;
        let answer = call_one(lower.bind(self.udaf_calls.py), whole);
        let doing = "lowering a partial of";
        answer
            .map(Some)
            .map_err(|error| self.udaf_calls.noted(error, doing, self.udaf))
    }

    /// The fold of `rows[lo..hi]`.
    fn fold(&mut self, rows: &[usize], (lo, hi): (usize, usize)) -> PyResult<Partial<'py>> {
        if lo > self.mid {
            self.flip(rows, (lo, hi))?;
        } else {
            self.suffixes.truncate(self.mid - lo);
            for row in &rows[self.hi.min(hi)..hi] {
                let older = self.back.take();
                let younger = self.lifted[*row].clone();
                self.back = self.combine(older, younger)?;
            }
            self.hi = hi;
        }
        match self.suffixes.last().cloned() {
            Some(front) => self.combine(front, self.back.clone()),
            None => Ok(self.back.clone()),
        }
    }

    fn flip(&mut self, rows: &[usize], (lo, hi): (usize, usize)) -> PyResult<()> {
        self.suffixes.clear();
        let mut suffix = None;
        for row in rows[lo..hi].iter().rev() {
            suffix = self.combine(self.lifted[*row].clone(), suffix)?;
            self.suffixes.push(suffix.clone());
        }
        (self.mid, self.hi, self.back) = (hi, hi, None);
        Ok(())
    }

    fn answer(&mut self, rows: &[usize], ends: (usize, usize)) -> PyResult<()> {
        if self.last != Some(ends) {
            let whole = self.fold(rows, ends)?;
            self.answer = self.lower(whole)?;
            self.last = Some(ends);
        }
        Ok(())
    }
}

impl Slides for Eager<'_, '_> {
    fn begin(&mut self) {
        self.suffixes.clear();
        (self.mid, self.hi, self.back, self.last) = (0, 0, None, None);
    }

    fn slide(
        &mut self,
        span: usize,
        row: usize,
        rows: &[usize],
        ends: (usize, usize),
    ) -> Result<(), Error> {
        if let Err(error) = self.answer(rows, ends) {
            self.raised = Some(error);
            return Err(Error::Refused);
        }
        self.lists[span][row].clone_from(&self.answer);
        Ok(())
    }
}

fn call_one<'py>(
    function: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let none = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: both are alive, the list of arguments ends with a null, and the result is an
    // owned reference, or null with an error set.
    unsafe {
        let made = ffi::PyObject_CallFunctionObjArgs(function.as_ptr(), value.as_ptr(), none);
        Bound::from_owned_ptr_or_err(function.py(), made)
    }
}

/// Uses the only C call of the stable interface that makes no tuple of its arguments: 340
/// ns per row of a table, where `call1` takes 485.
fn call_two<'py>(
    function: &Bound<'py, PyAny>,
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let none = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: as in `call_one`.
    unsafe {
        let made = ffi::PyObject_CallFunctionObjArgs(
            function.as_ptr(),
            first.as_ptr(),
            second.as_ptr(),
            none,
        );
        Bound::from_owned_ptr_or_err(function.py(), made)
    }
}
