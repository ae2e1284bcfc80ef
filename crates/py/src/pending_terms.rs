//! Computes the pending terms of a window's user-defined aggregations at the right times.

use pyo3::prelude::*;

use crate::locking::Access;
use crate::spec::Spec;
use crate::udaf::{MAX_TERMS_AHEAD, UdafCalls};

impl Access {
    /// The context of calls, if the window has user-defined aggregations.
    pub(crate) fn udaf_calls<'a, 'py>(&'a self, py: Python<'py>) -> Option<UdafCalls<'a, 'py>> {
        self.udaf_calls_of(self.spec(), py)
    }

    /// The same under another spec of the window.
    pub(crate) fn udaf_calls_of<'a, 'py>(
        &'a self,
        spec: &'a Spec,
        py: Python<'py>,
    ) -> Option<UdafCalls<'a, 'py>> {
        let udafs = &spec.udafs[..];
        let store = self.store().filter(|_| !udafs.is_empty())?;
        Some(UdafCalls {
            py,
            udafs,
            store,
            caller: "slidewise.Window",
        })
    }

    /// Computes some pending terms before an operation that adds to them, if there are many.
    /// So neither their number nor the time of one query grows without bound.
    #[inline]
    pub(crate) fn flush_terms(&self, py: Python<'_>) -> PyResult<()> {
        match self.udaf_calls(py) {
            Some(udaf_calls) => self.flush_terms_from(&udaf_calls, MAX_TERMS_AHEAD),
            None => Ok(()),
        }
    }

    /// Computes the terms made since the last query, so that no query has to compute many.
    pub(crate) fn flush_all_terms(&self, py: Python<'_>) -> PyResult<()> {
        match self.udaf_calls(py) {
            Some(udaf_calls) => self.flush_terms_from(&udaf_calls, 1),
            None => Ok(()),
        }
    }

    /// Computes pending terms after an answer, which it returns: see [`Self::flush_all_terms`].
    #[inline]
    pub(crate) fn flush_after<'py>(
        &self,
        py: Python<'py>,
        answer: PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.spec().udafs.is_empty() {
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

    fn flush_terms_from(&self, udaf_calls: &UdafCalls<'_, '_>, least: usize) -> PyResult<()> {
        let ledger = self.lock(udaf_calls.py)?.window.ledger();
        let Some(ledger) = ledger.filter(|ledger| ledger.len() >= least) else {
            return Ok(());
        };
        let entered = self.enter()?;
        let worked = udaf_calls.compute_pending(&ledger);
        drop(entered);
        self.sweep(udaf_calls.py);
        worked
    }
}
