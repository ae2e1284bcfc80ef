//! The contents of a window that move into a new one: for copies and snapshots.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::Window;
use crate::errors::internal_error;
use crate::spec::Spec;
use crate::state::WindowParts;

/// The contents of a window that move into a new window.
#[pyclass(frozen, module = "slidewise._core")]
pub(crate) struct Contents(Mutex<Option<WindowParts>>);

impl Contents {
    pub(crate) fn new(parts: WindowParts) -> Self {
        Self(Mutex::new(Some(parts)))
    }

    pub(super) fn take(&self) -> PyResult<WindowParts> {
        let mut parts = self.0.lock().map_err(|_| internal_error("lost contents"))?;
        parts
            .take()
            .ok_or_else(|| internal_error("contents were taken before"))
    }
}

/// A new window of that class. Python's subclasses have a constructor of their own, so
/// it is the native one that is called.
pub(super) fn new_window<'py>(
    class: &Bound<'py, PyType>,
    spec: &Bound<'py, Spec>,
    contents: WindowParts,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let contents = Bound::new(py, Contents::new(contents))?;
    py.get_type::<Window>()
        .call_method1("__new__", (class, spec, contents))
}
