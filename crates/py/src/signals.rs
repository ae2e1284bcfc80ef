//! Checks for Ctrl-C and runs other threads, in long loops without a line of Python.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The number of items converted between two calls of [`check_signals`].
pub(crate) const SIGNAL_CHECK_ROWS: usize = 1 << 14;

/// Checks for Ctrl-C and lets other threads run, in a long loop without a line of Python.
///
/// The interpreter does both when it enters a function, so one is called. Releasing the GIL
/// for a moment is not a substitute: it wakes a waiting thread, which finds the GIL taken
/// again and starts its wait anew, for seconds on end.
pub(crate) fn check_signals(py: Python<'_>) -> PyResult<()> {
    static NOTHING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let nothing = NOTHING.get_or_try_init(py, || {
        py.eval(c"lambda: None", None, None).map(Bound::unbind)
    })?;
    nothing.call0(py).map(drop)
}

/// The interval at which a running kernel checks for Ctrl-C.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A function that returns false after Ctrl-C, and then leaves the exception in `interrupt`.
pub(crate) fn watch_signals(interrupt: &mut Option<PyErr>) -> impl FnMut() -> bool {
    let mut looked = Instant::now();
    move || {
        // After the first false, further calls return false.
        if interrupt.is_none() && looked.elapsed() >= SIGNAL_CHECK_INTERVAL {
            *interrupt = Python::attach(|py| py.check_signals()).err();
            looked = Instant::now();
        }
        interrupt.is_none()
    }
}
