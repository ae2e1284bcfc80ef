//! Evicts the oldest entry, and returns its time.

use pyo3::prelude::*;

use crate::errors::EmptyWindowError;
use crate::locking::Access;

impl Access {
    /// Evicts the oldest entry after its time was converted, as a zone may refuse that.
    pub(super) fn evict_oldest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loop {
            let mut state = self.lock(py)?;
            let Some(oldest) = state.window.oldest() else {
                return Err(EmptyWindowError::new_err("evict() on an empty window"));
            };
            if self.clock().is_none_or(|clock| clock.int) {
                state.evict(self.spec().ties);
                drop(state);
                self.sweep(py);
                return self.restore(py, oldest);
            }
            drop(state);
            let written = self.restore(py, oldest)?;
            let mut state = self.lock(py)?;
            // Another thread may have evicted it: then the next entry is the oldest.
            if state.window.oldest() == Some(oldest) {
                state.evict(self.spec().ties);
                drop(state);
                self.sweep(py);
                return Ok(written);
            }
        }
    }
}
