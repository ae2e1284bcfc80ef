//! The lock of a window, and the functions that its methods share.
//!
//! Two rules make callbacks and threads safe; forks need the first one, too (`forks.rs`):
//!
//! 1. No Python code runs while the lock is held: values are converted before and
//!    answers after, and evicted objects are released after. So a thread never waits for
//!    itself, and a thread that waits releases the GIL.
//! 2. A call that runs a user's code (an iterable, an `__index__`) marks the window as
//!    entered by its thread. A call of the same window from that code raises
//!    `WindowBusyError`; other threads may use the window, and the call changes it in one
//!    step at its end.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::clock::Clock;
use crate::errors::{busy_error, internal_error, spec_error, with_note};
use crate::fast_path::FastPath;
use crate::forks::Pass;
use crate::inputs::{Nan, Type};
use crate::object_store::ObjectStore;
use crate::scalars::small_int;
use crate::spec::Spec;
use crate::state::{State, WindowParts};

/// The contents of `slidewise._core.Window`.
pub(crate) struct Access {
    specs: SpecChain,
    /// The objects, if an input column may hold some.
    store: OnceLock<ObjectStore>,
    /// Set with the first entry, and never changed.
    clock: OnceLock<Arc<Clock>>,
    state: Mutex<State>,
    fast_path: AtomicU8,
    /// The answers that are values of columns of bools.
    bool_answers: Box<[AtomicBool]>,
    /// The number of calls that run a user's code, in all threads.
    entered: AtomicUsize,
}

/// The spec of a window, and the wider one that replaced it when the first value of a column
/// was an object.
struct SpecChain {
    spec: Py<Spec>,
    wider: OnceLock<Box<SpecChain>>,
}

thread_local! {
    /// The windows that this thread has entered.
    static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks a window as entered by this thread, until dropped.
pub(crate) struct Entered<'a>(&'a Access);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.entered.fetch_sub(1, Ordering::Relaxed);
        ENTERED.with_borrow_mut(|windows| {
            windows.pop();
        });
    }
}

/// The locked state. It is unlocked before the pass is given back.
pub(crate) struct StateGuard<'a> {
    state: MutexGuard<'a, State>,
    _pass: Option<Pass>,
}

impl Deref for StateGuard<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for StateGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Access {
    pub(crate) fn new(spec: Py<Spec>, parts: WindowParts) -> Self {
        let answers = spec.get().aggs.len();
        let access = Self {
            specs: SpecChain {
                spec,
                wider: OnceLock::new(),
            },
            store: parts.store.map_or_else(OnceLock::new, OnceLock::from),
            clock: parts.clock.map_or_else(OnceLock::new, OnceLock::from),
            fast_path: AtomicU8::new(FastPath::No as u8),
            bool_answers: (0..answers).map(|_| AtomicBool::new(false)).collect(),
            state: Mutex::new(parts.state),
            entered: AtomicUsize::new(0),
        };
        let state = access.state.lock().unwrap_or_else(PoisonError::into_inner);
        access.choose_fast_path(&state);
        drop(state);
        access
    }

    #[inline]
    fn current_spec(&self) -> &SpecChain {
        let mut link = &self.specs;
        while let Some(wider) = link.wider.get() {
            link = wider;
        }
        link
    }

    #[inline]
    pub(crate) fn spec(&self) -> &Spec {
        self.current_spec().spec.get()
    }

    /// The plan with the present queries.
    pub(crate) fn current_plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let plan = self.spec().plan.bind(py).clone();
        if self.spec().queries.is_none() {
            return Ok(plan);
        }
        let queries = self
            .lock_entered(py)?
            .queries
            .as_ref()
            .map(|now| now.clone_ref(py));
        match queries {
            Some(queries) => plan.call_method1("with_queries", (queries,)),
            None => Ok(plan),
        }
    }

    pub(crate) fn spec_object(&self) -> &Py<Spec> {
        &self.current_spec().spec
    }

    /// All specs that the window has had.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &Py<Spec>> {
        let first = Some(&self.specs);
        let links = std::iter::successors(first, |link| link.wider.get().map(|wider| &**wider));
        links.map(|link| &link.spec)
    }

    pub(crate) fn bool_answers(&self) -> &[AtomicBool] {
        &self.bool_answers
    }

    pub(crate) fn store(&self) -> Option<&ObjectStore> {
        self.store.get()
    }

    #[inline]
    pub(crate) fn fast_path(&self) -> u8 {
        self.fast_path.load(Ordering::Relaxed)
    }

    /// Switches to another spec, under the lock.
    pub(crate) fn set_wider(&self, _locked: &mut State, spec: Py<Spec>) {
        let link = SpecChain {
            spec,
            wider: OnceLock::new(),
        };
        let _ = self.current_spec().wider.set(Box::new(link));
    }

    /// Makes a store where a wider spec holds objects.
    pub(crate) fn ensure_store(&self) {
        self.store.get_or_init(ObjectStore::default);
    }

    /// Releases the objects of evicted entries. Call it with no lock held: it runs their
    /// finalizers.
    #[inline]
    pub(crate) fn sweep(&self, py: Python<'_>) {
        if let Some(store) = self.store() {
            store.sweep(py);
        }
    }

    /// Decides which inserts may take the fast path from now on, and which answers are
    /// bools.
    pub(crate) fn choose_fast_path(&self, state: &State) {
        for (agg, truth) in self.spec().aggs.iter().zip(&self.bool_answers) {
            let of = agg.of.filter(|_| Spec::answers_value(agg));
            let bools = of.is_some_and(|of| state.dtypes[of] == Some(Type::Bool));
            truth.store(bools, Ordering::Relaxed);
        }
        let clock = self.clock();
        let plain = clock.is_some_and(|clock| clock.int && clock.granularity == 1)
            && self.spec().columns.is_none();
        let fast_path = match (&self.spec().inputs[..], &state.dtypes[..]) {
            _ if !plain => FastPath::No,
            ([], _) => FastPath::Rows,
            ([input], [Some(dtype)]) if input.role.is_number() => match dtype {
                Type::Int => FastPath::Ints,
                Type::Exact => FastPath::ExactInts,
                Type::Float | Type::Widened if self.spec().nan == Nan::Propagate => {
                    FastPath::Floats
                }
                _ => FastPath::No,
            },
            _ => FastPath::No,
        };
        self.fast_path.store(fast_path as u8, Ordering::Relaxed);
    }

    // -- the lock ----------------------------------------------------------------------

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[inline]
    fn refuse_reentry(&self) -> PyResult<()> {
        if self.entered.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let own = self.address();
        if ENTERED.with_borrow(|windows| windows.contains(&own)) {
            return Err(busy_error(
                "the window was called from code that one of its own calls is running \
                 (an iterable, or a conversion of a value): finish that call first",
            ));
        }
        Ok(())
    }

    /// A guard to be held while a user's code may run.
    pub(crate) fn enter(&self) -> PyResult<Entered<'_>> {
        self.refuse_reentry()?;
        self.entered.fetch_add(1, Ordering::Relaxed);
        ENTERED.with_borrow_mut(|windows| windows.push(self.address()));
        Ok(Entered(self))
    }

    /// Locks with the GIL held, releasing it while another thread has the lock.
    #[inline]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<StateGuard<'_>> {
        self.refuse_reentry()?;
        self.lock_entered(py)
    }

    /// The same for a call that has entered the window itself.
    #[inline]
    pub(crate) fn lock_entered(&self, py: Python<'_>) -> PyResult<StateGuard<'_>> {
        match self.state.try_lock() {
            Ok(state) => Ok(StateGuard { state, _pass: None }),
            Err(TryLockError::WouldBlock) => {
                // The lock is held while this thread waits for the GIL.
                let pass = py.detach(Pass::take);
                let state = self.state.lock_py_attached(py).map_err(|_| poisoned())?;
                let _pass = Some(pass);
                Ok(StateGuard { state, _pass })
            }
            Err(TryLockError::Poisoned(_)) => Err(poisoned()),
        }
    }

    /// Locks within [`detach_shared`](crate::forks::detach_shared).
    pub(crate) fn lock_detached(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.lock().map_err(|_| poisoned())
    }

    // -- times -------------------------------------------------------------------------

    pub(crate) fn clock(&self) -> Option<&Arc<Clock>> {
        self.clock.get()
    }

    /// Spec and clock. Call it under the lock: both change under it only.
    pub(crate) fn spec_and_clock(&self, py: Python<'_>) -> (Py<Spec>, Option<Arc<Clock>>) {
        (self.spec_object().clone_ref(py), self.clock().cloned())
    }

    /// A clock for this time; of no effect until [`Access::keep_clock`].
    pub(crate) fn new_clock(&self, time: &Bound<'_, PyAny>) -> PyResult<Arc<Clock>> {
        let py = time.py();
        let int = small_int(time).is_some();
        // Queries may have been added: their windows share no clock.
        let int = int && self.spec().queries.is_none();
        if int && let Some(clock) = self.spec().int_clock.get() {
            return Ok(Arc::clone(clock));
        }
        let made = self.current_plan(py)?.call_method1("clock", (time,));
        let made = made.map_err(|error| with_note(py, error, "reading a time"))?;
        let clock = Arc::new(Clock::read(made)?);
        if int {
            let _ = self.spec().int_clock.set(Arc::clone(&clock));
        }
        Ok(clock)
    }

    /// The ticks of a bound of a query or an eviction.
    pub(crate) fn ticks(&self, time: &Bound<'_, PyAny>) -> PyResult<i64> {
        if let Some(clock) = self.clock() {
            if clock.int
                && let Some(ticks) = small_int(time)
            {
                return Ok(ticks);
            }
            let _entered = self.enter()?;
            return clock.ticks(time);
        }
        let _entered = self.enter()?;
        self.new_clock(time)?.ticks(time)
    }

    /// The bounds of a query; `None` for the whole window.
    pub(crate) fn range(
        &self,
        lo: Option<&Bound<'_, PyAny>>,
        hi: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(i64, i64)>> {
        let given = |bound: Option<&Bound<'_, PyAny>>| match bound {
            Some(bound) if !bound.is_none() => self.ticks(bound).map(Some),
            _ => Ok(None),
        };
        let (mut from, to) = (given(lo)?, given(hi)?);
        if let (Some(from), Some(to), Some(lo), Some(hi)) = (from, to, lo, hi)
            && from > to
        {
            return Err(spec_error(format!(
                "query(lo, hi) needs lo <= hi, got lo={} and hi={}",
                lo.repr()?,
                hi.repr()?
            )));
        }
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        if let (Some(from), Some(clock)) = (&mut from, self.clock()) {
            // All values rounded down to the same time are one entry.
            *from = clock.rounded(*from).unwrap_or(i64::MIN);
        }
        Ok(Some((from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX))))
    }

    /// A time of the window's kind.
    pub(crate) fn restore<'py>(&self, py: Python<'py>, ticks: i64) -> PyResult<Bound<'py, PyAny>> {
        match self.clock() {
            Some(clock) => clock.restore(py, ticks),
            None => Ok(ticks.into_pyobject(py)?.into_any()),
        }
    }

    /// Keeps the clock of the first entry, unless another thread has set one.
    pub(crate) fn keep_clock(&self, state: &mut State, clock: Option<Arc<Clock>>) -> PyResult<()> {
        let Some(clock) = clock else { return Ok(()) };
        match self.clock.get() {
            Some(kept) if kept.same(&clock) => Ok(()),
            Some(_) => Err(busy_error(
                "another thread inserted the first entry just now, with times of another \
                 kind: try again",
            )),
            None => {
                state.start(self.spec(), &clock)?;
                // Only set here, under the lock.
                let _ = self.clock.set(clock);
                Ok(())
            }
        }
    }
}

fn poisoned() -> PyErr {
    internal_error(
        "this window met an internal error in an earlier call and cannot be used any more",
    )
}
