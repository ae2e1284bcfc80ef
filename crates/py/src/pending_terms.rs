//! When the pending terms of a window's own aggregations are computed.

use pyo3::prelude::*;

use crate::locking::Access;
use crate::spec::Spec;
use crate::udaf::{AHEAD, Working};

impl Access {
    /// Where a window has aggregations of the user's own, and what is needed for them.
    pub(crate) fn working<'a, 'py>(&'a self, py: Python<'py>) -> Option<Working<'a, 'py>> {
        self.working_of(self.spec(), py)
    }

    /// The same under a spec that the window may go over to.
    pub(crate) fn working_of<'a, 'py>(
        &'a self,
        spec: &'a Spec,
        py: Python<'py>,
    ) -> Option<Working<'a, 'py>> {
        let own = &spec.own[..];
        let store = self.store().filter(|_| !own.is_empty())?;
        Some(Working {
            py,
            own,
            store,
            caller: "slidewise.Window",
        })
    }

    /// Works out some pending terms before an operation that adds to them, if there are
    /// many: so neither their number nor the time of one answer grows without bound.
    #[inline]
    pub(crate) fn flush_terms(&self, py: Python<'_>) -> PyResult<()> {
        match self.working(py) {
            Some(working) => self.flush_terms_from(&working, AHEAD),
            None => Ok(()),
        }
    }

    /// Works out what came since the last question, so that none pays for many others.
    pub(crate) fn flush_all_terms(&self, py: Python<'_>) -> PyResult<()> {
        match self.working(py) {
            Some(working) => self.flush_terms_from(&working, 1),
            None => Ok(()),
        }
    }

    /// What follows an answer: see [`Self::flush_all_terms`].
    #[inline]
    pub(crate) fn flush_after<'py>(
        &self,
        py: Python<'py>,
        answer: PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.spec().own.is_empty() {
            return answer;
        }
        let flushed = if answer.is_ok() {
            self.flush_all_terms(py)
        } else {
            Ok(())
        };
        self.sweep(py);
        flushed.and(answer)
    }

    fn flush_terms_from(&self, working: &Working<'_, '_>, least: usize) -> PyResult<()> {
        let ledger = self.lock(working.py)?.window.ledger();
        let Some(ledger) = ledger.filter(|ledger| ledger.len() >= least) else {
            return Ok(());
        };
        let entered = self.enter()?;
        let worked = working.work_ahead(&ledger);
        drop(entered);
        self.sweep(working.py);
        worked
    }
}
