//! From what the core answers to Python objects.

use pyo3::prelude::*;
use pyo3::types::PyList;
use slidewise_core::aggregate::Answer;

use crate::locking::{Access, Entered};
use crate::object_store::Object;
use crate::value::Lowering;

impl Access {
    /// Releases objects that have left. With no lock held: their finalizers may call.
    #[inline]
    pub(crate) fn sweep(&self, py: Python<'_>) {
        if let Some(store) = self.store() {
            store.sweep(py);
        }
    }

    pub(crate) fn lower<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Answer<Object>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _entered = self.enter_lowering()?;
        self.lowering(py, &|ticks| self.restore(py, ticks), |lowering| {
            lowering.all(answers)
        })
    }

    /// What a shared window answers: a list with an item for each of its ranges.
    pub(crate) fn lower_each<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Answer<Object>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _entered = self.enter_lowering()?;
        let list = PyList::empty(py);
        let restore = |ticks| self.restore(py, ticks);
        let (spec, width) = (self.spec(), self.spec().aggs.len());
        let answers = match spec.places.len() == spec.ranges {
            true => answers,
            // Equal ranges have one answer, and each gets its own object.
            false => {
                let own = spec.places.iter().map(|at| &answers[at * width..][..width]);
                own.flatten().cloned().collect()
            }
        };
        let mut answers = answers.into_iter();
        for _ in &spec.places {
            let own = answers.by_ref().take(width).collect();
            list.append(self.lowering(py, &restore, |lowering| lowering.all(own))?)?;
        }
        Ok(list.into_any())
    }

    #[inline]
    pub(crate) fn lower_one<'py>(
        &self,
        py: Python<'py>,
        answer: Answer<Object>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _entered = self.enter_lowering()?;
        self.lowering(py, &|ticks| self.restore(py, ticks), |lowering| {
            lowering.one(0, answer)
        })
    }

    /// To be held while answers are lowered, which may run the user's functions.
    fn enter_lowering(&self) -> PyResult<Option<Entered<'_>>> {
        let plain = self.spec().finished.iter().all(|finished| !finished);
        if plain && self.spec().own.is_empty() && !self.spec().lowers_records() {
            return Ok(None);
        }
        self.enter().map(Some)
    }

    fn lowering<'py, R>(
        &self,
        py: Python<'py>,
        restore: &dyn Fn(i64) -> PyResult<Bound<'py, PyAny>>,
        lower: impl FnOnce(&Lowering<'_, 'py>) -> R,
    ) -> R {
        lower(&Lowering {
            py,
            spec: self.spec(),
            store: self.store(),
            restore,
            truths: self.truths(),
        })
    }
}
