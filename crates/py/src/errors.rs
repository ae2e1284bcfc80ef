//! The exception classes of `slidewise.errors`, and functions that make them.

use pyo3::prelude::*;
use slidewise_core::rolling::{Error, MAX_ROWS};
use slidewise_core::snapshot::Damaged;

pyo3::import_exception!(slidewise.errors, SlidewiseError);
pyo3::import_exception!(slidewise.errors, SpecError);
pyo3::import_exception!(slidewise.errors, EmptyWindowError);
pyo3::import_exception!(slidewise.errors, OutOfOrderError);
pyo3::import_exception!(slidewise.errors, SnapshotError);
pyo3::import_exception!(slidewise.errors, ResultOverflowError);
pyo3::import_exception!(slidewise.errors, WindowBusyError);

/// A wrong argument or value.
pub(crate) fn spec_error(message: impl Into<String>) -> PyErr {
    SpecError::new_err(message.into())
}

pub(crate) fn busy_error(message: &'static str) -> PyErr {
    WindowBusyError::new_err(message)
}

pub(crate) fn snapshot_error(damage: Damaged) -> PyErr {
    SnapshotError::new_err(damage.0)
}

/// A failure that only a bug in slidewise can cause.
pub(crate) fn internal_error(why: &str) -> PyErr {
    SlidewiseError::new_err(format!(
        "{why}; this is an error in slidewise, please report it"
    ))
}

/// Adds a note with the current operation to an exception of the user's code. Errors of
/// slidewise name the operation in their message.
pub(crate) fn with_note(py: Python<'_>, error: PyErr, doing: &str) -> PyErr {
    with_note_from(py, error, "slidewise.Window", doing)
}

/// The same for a caller other than a window.
pub(crate) fn with_note_from(py: Python<'_>, error: PyErr, caller: &str, doing: &str) -> PyErr {
    if !error.is_instance_of::<SlidewiseError>(py) {
        let mut note = format!("raised while {caller} was {doing}");
        if caller == "slidewise.Window" {
            note.push_str("; the window is unchanged");
        }
        // An exception that accepts no note passes without one.
        let _ = error.value(py).call_method1("add_note", (note,));
    }
    error
}

/// Prefixes the message of a SpecError with `what`. Other errors are unchanged.
pub(crate) fn with_prefix(py: Python<'_>, error: PyErr, what: &str) -> PyErr {
    if error.is_instance_of::<SpecError>(py) {
        return spec_error(format!("{what} {}", error.value(py)));
    }
    error
}

/// The exception for an error of a kernel; `interrupt` is that of
/// [`crate::signals::watch_signals`].
pub(crate) fn kernel_error(py: Python<'_>, error: Error, interrupt: Option<PyErr>) -> PyErr {
    match error {
        Error::Interrupted => {
            interrupt.unwrap_or_else(|| internal_error("a kernel stopped by itself"))
        }
        Error::Refused => internal_error("no answer of a kernel is refused"),
        Error::TooManyRows { rows } => spec_error(format!(
            "a table has {rows} rows, and one call takes {MAX_ROWS} at most: cut it by key, \
             or write it to a file for slidewise rolling --memory"
        )),
        Error::Overflow {
            span,
            agg,
            row,
            value,
        } => overflow(py, [span, agg, row], value),
    }
}

/// The exception carries window, aggregation and row, from which the caller makes a message
/// with the user's names.
fn overflow(py: Python<'_>, [span, agg, row]: [usize; 3], value: i128) -> PyErr {
    let raised = ResultOverflowError::new_err(format!("{value} does not fit int64"));
    let exception = raised.value(py);
    let restored = exception
        .setattr("window", span)
        .and_then(|()| exception.setattr("aggregation", agg))
        .and_then(|()| exception.setattr("row", row));
    restored.err().unwrap_or(raised)
}
