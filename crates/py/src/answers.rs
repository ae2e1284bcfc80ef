//! Lowers the core's answers to Python objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList};
use slidewise_core::aggregate::deferred::Term;
use slidewise_core::aggregate::{Answer, Cell, Kind};

use crate::clock::Clock;
use crate::errors::{ResultOverflowError, SlidewiseError, internal_error, with_note};
use crate::locking::{Access, Entered};
use crate::object_store::{Object, ObjectStore};
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals};
use crate::sketches;
use crate::spec::Spec;
use crate::udaf::UdafCalls;

impl Access {
    pub(crate) fn lower<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Answer<Object>>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _entered = self.enter_lowering()?;
        self.lowering(py, end, &|ticks| self.restore(py, ticks), |lowering| {
            lowering.all(answers)
        })
    }

    /// The answers of a shared window: a list with an item per range.
    pub(crate) fn lower_each<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Answer<Object>>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _entered = self.enter_lowering()?;
        let list = PyList::empty(py);
        let restore = |ticks| self.restore(py, ticks);
        let (spec, width) = (self.spec(), self.spec().aggs.len());
        if spec.queries.is_some() {
            let mut answers = answers.into_iter().peekable();
            while answers.peek().is_some() {
                let of_query = answers.by_ref().take(width).collect();
                list.append(self.lowering(py, end, &restore, |lowering| lowering.all(of_query))?)?;
            }
            return Ok(list.into_any());
        }
        let answers = match spec.places.len() == spec.ranges {
            true => answers,
            // Equal ranges have one answer, and each gets its own object.
            false => {
                let each = spec.places.iter().map(|at| &answers[at * width..][..width]);
                each.flatten().cloned().collect()
            }
        };
        let mut answers = answers.into_iter();
        for _ in &spec.places {
            let of_range = answers.by_ref().take(width).collect();
            list.append(self.lowering(py, end, &restore, |lowering| lowering.all(of_range))?)?;
        }
        Ok(list.into_any())
    }

    #[inline]
    pub(crate) fn lower_one<'py>(
        &self,
        py: Python<'py>,
        answer: Answer<Object>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.lower_at(py, 0, answer, end)
    }

    /// The answer of one of the aggregations.
    #[inline]
    pub(crate) fn lower_at<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        answer: Answer<Object>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _entered = self.enter_lowering()?;
        self.lowering(py, end, &|ticks| self.restore(py, ticks), |lowering| {
            lowering.one(at, answer)
        })
    }

    /// Must be held while answers are lowered, because this may run the user's functions.
    fn enter_lowering(&self) -> PyResult<Option<Entered<'_>>> {
        let plain = self.spec().finished.iter().all(|finished| !finished);
        if plain && self.spec().udafs.is_empty() && !self.spec().lowers_records() {
            return Ok(None);
        }
        self.enter().map(Some)
    }

    /// `end`: the end of the window, for the answers that depend on it.
    fn lowering<'py, R>(
        &self,
        py: Python<'py>,
        end: Option<i64>,
        restore: &dyn Fn(i64) -> PyResult<Bound<'py, PyAny>>,
        lower: impl FnOnce(&Lowering<'_, 'py>) -> R,
    ) -> R {
        lower(&Lowering {
            py,
            spec: self.spec(),
            store: self.store(),
            restore,
            clock: self.clock(),
            end,
            bool_answers: self.bool_answers(),
        })
    }
}

/// Converts answers to Python objects.
pub(crate) struct Lowering<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) spec: &'a Spec,
    pub(crate) store: Option<&'a ObjectStore>,
    /// Converts ticks to the kind of the window's times.
    pub(crate) restore: &'a dyn Fn(i64) -> PyResult<Bound<'py, PyAny>>,
    /// The answers that are values of columns of bools.
    /// None before the first entry.
    pub(crate) clock: Option<&'a Arc<Clock>>,
    pub(crate) end: Option<i64>,
    pub(crate) bool_answers: &'a [AtomicBool],
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
            answer if self.spec.ended[at] => self.at_end(at, answer)?,
            Answer::I64(ticks) if self.spec.clocked[at] => self.in_units(at, ticks)?,
            Answer::F64(ticks) if self.spec.clocked[at] => self.in_units(at, ticks)?,
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
                self.finished(at, list)?
            }
            Answer::Term(term) => self.udaf(at, &term)?,
            Answer::Overflow(value) => return Err(self.overflow(at, value)),
            Answer::List(cells) => {
                let list = PyList::empty(py);
                for (done, cell) in cells.into_iter().enumerate() {
                    if done % SIGNAL_CHECK_ROWS == SIGNAL_CHECK_ROWS - 1 {
                        check_signals(py)?;
                    }
                    list.append(self.cell(at, cell)?)?;
                }
                self.finished(at, list)?
            }
        })
    }

    /// The answer that the plan makes of a list, or the list itself.
    fn finished(&self, at: usize, list: Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
        if !self.spec.finished[at] {
            return Ok(list.into_any());
        }
        let made = self
            .spec
            .plan
            .bind(self.py)
            .call_method1("finish", (at, list));
        made.map_err(|error| with_note(self.py, error, "making an answer"))
    }

    /// An answer that depends on the end of the window.
    fn at_end(&self, at: usize, answer: Answer<Object>) -> PyResult<Bound<'py, PyAny>> {
        let cells = match answer {
            Answer::List(cells) => cells,
            Answer::I64(ticks) => vec![Cell::I64(ticks)],
            _ => return Err(internal_error("an answer without times")),
        };
        let parts = PyList::empty(self.py);
        for cell in cells {
            parts.append(self.cell(at, cell)?)?;
        }
        let clock = self.clock.map(|clock| clock.object(self.py));
        let plan = self.spec.plan.bind(self.py);
        let made = plan.call_method1("at_end", (at, clock, parts, self.end));
        made.map_err(|error| with_note(self.py, error, "making an answer"))
    }

    /// An answer that is in ticks, or per tick.
    fn in_units(&self, at: usize, ticks: impl IntoPyObject<'py>) -> PyResult<Bound<'py, PyAny>> {
        let clock = self.clock.map(|clock| clock.object(self.py));
        let plan = self.spec.plan.bind(self.py);
        let made = plan.call_method1("in_units", (at, clock, ticks));
        made.map_err(|error| with_note(self.py, error, "making an answer"))
    }

    /// The answer over a record of a native aggregation.
    fn record(&self, at: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let plan = self.spec.plan.bind(self.py);
        let lowered = plan.call_method1("lower_native", (at, PyBytes::new(self.py, bytes)));
        lowered.map_err(|error| with_note(self.py, error, "lowering a record"))
    }

    /// The answer of a user-defined aggregation.
    fn udaf(&self, at: usize, term: &Term<Object>) -> PyResult<Bound<'py, PyAny>> {
        let (Kind::Udaf { number, .. }, Some(store)) = (self.spec.aggs[at].kind, self.store) else {
            return Err(internal_error("a term without an aggregation"));
        };
        let udaf_calls = UdafCalls {
            py: self.py,
            udafs: &self.spec.udafs,
            store,
            caller: "slidewise.Window",
        };
        match udaf_calls.lower(number, term)? {
            Some(ticks) if self.spec.timed[at] => (self.restore)(ticks.extract()?),
            Some(answer) => Ok(answer),
            None => Ok(self.py.None().into_bound(self.py)),
        }
    }

    fn is_truth(&self, at: usize) -> bool {
        self.bool_answers[at].load(Ordering::Relaxed)
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
