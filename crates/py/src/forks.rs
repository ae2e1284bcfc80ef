//! Forks: a child of `os.fork` finds every lock free and no work half done.
//!
//! Only the thread that forks goes on in the child. A lock that another thread holds would be
//! held there for ever, and what it protects might be half changed. Hence two rules:
//!
//! 1. A lock is held either by an attached thread, which does not detach and runs no Python
//!    code until it has released it, or within a [`Pass`]. To fork, a thread is attached, so
//!    with the GIL no other one is. Free-threaded Python stops all attached threads before it
//!    forks, and these stop in Python code only.
//! 2. No Python code runs within a pass, so its thread never waits for the one that forks.
//!
//! Before a fork, the hook closes the gate to passes and waits, detached, until all of them
//! are given back. That cannot deadlock: a thread with a pass waits at most for a lock, of
//! whose holders the first rule tells that they go on. Threads that find the gate closed hold
//! no lock yet. They wait until the fork is over.
//!
//! Threads sleep while they wait, for forks are rare: a lock of the system would have a queue
//! of threads that the child does not have. Work on memory that no other call can reach, such
//! as that of tables, needs no pass: the child never looks at it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The number of passes and, times [`FORK`], of threads that are about to fork.
static GATE: AtomicUsize = AtomicUsize::new(0);
const FORK: usize = 1 << (usize::BITS / 2);
/// How long a thread sleeps before it looks again.
const STEP: Duration = Duration::from_micros(50);

/// Delays forks until it is dropped.
pub(crate) struct Pass(());

impl Pass {
    /// Waits while a thread forks. Call it detached, with no lock held.
    pub(crate) fn take() -> Self {
        while GATE.fetch_add(1, Ordering::Acquire) >= FORK {
            GATE.fetch_sub(1, Ordering::Relaxed);
            thread::sleep(STEP);
        }
        Self(())
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        GATE.fetch_sub(1, Ordering::Release);
    }
}

/// Runs work on memory that threads share, without the GIL and within a pass.
pub(crate) fn detach_shared<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _pass = Pass::take();
        work()
    })
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    GATE.fetch_add(FORK, Ordering::Relaxed);
    while !GATE.load(Ordering::Acquire).is_multiple_of(FORK) {
        py.detach(|| thread::sleep(STEP));
    }
}

#[pyfunction]
fn after_fork_in_parent() {
    GATE.fetch_sub(FORK, Ordering::Release);
}

/// Other threads, some of which may have been at the gate, do not exist in the child.
#[pyfunction]
fn after_fork_in_child() {
    GATE.store(0, Ordering::Relaxed);
}

/// Registers the hooks of forks, where the system has any.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else {
        return Ok(());
    };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item(
        "after_in_parent",
        wrap_pyfunction!(after_fork_in_parent, module)?,
    )?;
    hooks.set_item(
        "after_in_child",
        wrap_pyfunction!(after_fork_in_child, module)?,
    )?;
    register.call((), Some(&hooks)).map(drop)
}
