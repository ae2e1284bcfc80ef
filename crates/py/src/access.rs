//! How a window is locked, and what its methods share.
//!
//! Two rules keep callbacks and threads harmless:
//!
//! 1. No Python code runs while the lock is held: values are converted before and
//!    answers after, and objects that left are released after. So a thread never waits
//!    for itself, and whoever waits lets the GIL go meanwhile.
//! 2. A call that runs a user's code on the way (an iterable, an `__index__`) marks the
//!    window as entered by its thread. Coming back into the same window from there
//!    raises `WindowBusyError`; other threads may use it, and what the call then does
//!    happens at once at its end.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use slidewise_core::aggregate::Cell;
use slidewise_core::window::Refused;

use crate::clock::Clock;
use crate::element::Store;
use crate::errors::{broken, busy, noted, prefixed, spec};
use crate::quick::{Quick, quick_cell};
use crate::spec::{Beside, Feed, Nan, Role, Spec, Type};
use crate::state::{Row, State, Types};
use crate::value::{Loose, Misfit, described, is_object, key, loosen, misfit, small_int};
use crate::window::Parts;

/// The inside of `slidewise._core.Window`.
pub(crate) struct Access {
    make: Make,
    /// The objects, where a feed may hold some.
    store: OnceLock<Store>,
    /// Set with the first entry, and never changed.
    clock: OnceLock<Arc<Clock>>,
    state: Mutex<State>,
    quick: AtomicU8,
    /// Which answers are values of columns of bools.
    truths: Box<[AtomicBool]>,
    /// How many calls are running a user's code, in whatever thread.
    entered: AtomicUsize,
}

/// What a window was asked for, and behind it what that became when the first value of a
/// column was an object.
struct Make {
    spec: Py<Spec>,
    wider: OnceLock<Box<Make>>,
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

impl Access {
    pub(crate) fn new(spec: Py<Spec>, parts: Parts) -> Self {
        let answers = spec.get().aggs.len();
        let access = Self {
            make: Make {
                spec,
                wider: OnceLock::new(),
            },
            store: parts.store.map_or_else(OnceLock::new, OnceLock::from),
            clock: parts.clock.map_or_else(OnceLock::new, OnceLock::from),
            quick: AtomicU8::new(Quick::No as u8),
            truths: (0..answers).map(|_| AtomicBool::new(false)).collect(),
            state: Mutex::new(parts.state),
            entered: AtomicUsize::new(0),
        };
        let state = access.state.lock().unwrap_or_else(PoisonError::into_inner);
        access.choose_quick(&state);
        drop(state);
        access
    }

    #[inline]
    fn make(&self) -> &Make {
        let mut make = &self.make;
        while let Some(wider) = make.wider.get() {
            make = wider;
        }
        make
    }

    #[inline]
    pub(crate) fn spec(&self) -> &Spec {
        self.make().spec.get()
    }

    pub(crate) fn spec_object(&self) -> &Py<Spec> {
        &self.make().spec
    }

    /// All specs that the window has had.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &Py<Spec>> {
        let first = Some(&self.make);
        let makes = std::iter::successors(first, |make| make.wider.get().map(|wider| &**wider));
        makes.map(|make| &make.spec)
    }

    pub(crate) fn truths(&self) -> &[AtomicBool] {
        &self.truths
    }

    pub(crate) fn store(&self) -> Option<&Store> {
        self.store.get()
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
            return Err(busy(
                "the window was called from code that one of its own calls is running \
                 (an iterable, or a conversion of a value): finish that call first",
            ));
        }
        Ok(())
    }

    /// To be held while a user's code may run.
    pub(crate) fn enter(&self) -> PyResult<Entered<'_>> {
        self.refuse_reentry()?;
        self.entered.fetch_add(1, Ordering::Relaxed);
        ENTERED.with_borrow_mut(|windows| windows.push(self.address()));
        Ok(Entered(self))
    }

    /// Locks with the GIL held, letting it go while another thread has the lock.
    #[inline]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        self.refuse_reentry()?;
        self.lock_entered(py)
    }

    /// The same for a call that has entered the window itself.
    #[inline]
    fn lock_entered(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => {
                self.state.lock_py_attached(py).map_err(|_| poisoned())
            }
            Err(TryLockError::Poisoned(_)) => Err(poisoned()),
        }
    }

    /// Locks with the GIL let go.
    fn lock_detached(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.lock().map_err(|_| poisoned())
    }

    // -- times -------------------------------------------------------------------------

    pub(crate) fn clock(&self) -> Option<&Arc<Clock>> {
        self.clock.get()
    }

    /// Spec and clock, to be asked for under the lock: both change under it only.
    pub(crate) fn seen(&self, py: Python<'_>) -> (Py<Spec>, Option<Arc<Clock>>) {
        (self.spec_object().clone_ref(py), self.clock().cloned())
    }

    /// A clock for this time; of no effect until [`Access::keep_clock`].
    pub(crate) fn new_clock(&self, time: &Bound<'_, PyAny>) -> PyResult<Arc<Clock>> {
        let py = time.py();
        let int = small_int(time).is_some();
        if int && let Some(clock) = self.spec().int_clock.get() {
            return Ok(Arc::clone(clock));
        }
        let made = self.spec().plan.bind(py).call_method1("clock", (time,));
        let made = made.map_err(|error| noted(py, error, "reading a time"))?;
        let clock = Arc::new(Clock::read(made)?);
        if int {
            let _ = self.spec().int_clock.set(Arc::clone(&clock));
        }
        Ok(clock)
    }

    /// The ticks of a time that a question is about.
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

    /// The bounds of a question; `None` for the whole window.
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
            return Err(spec(format!(
                "query(lo, hi) needs lo <= hi, got lo={} and hi={}",
                lo.repr()?,
                hi.repr()?
            )));
        }
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        if let (Some(from), Some(clock)) = (&mut from, self.clock()) {
            // Whatever was rounded down to the same time is one entry.
            *from = clock.rounded(*from).unwrap_or(i64::MIN);
        }
        Ok(Some((from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX))))
    }

    /// A time in the kind it came in.
    pub(crate) fn restore<'py>(&self, py: Python<'py>, ticks: i64) -> PyResult<Bound<'py, PyAny>> {
        match self.clock() {
            Some(clock) => clock.restore(py, ticks),
            None => Ok(ticks.into_pyobject(py)?.into_any()),
        }
    }

    /// Keeps a clock that the first entry brought, unless another thread was faster.
    fn keep_clock(&self, clock: Option<Arc<Clock>>) -> PyResult<()> {
        let Some(clock) = clock else { return Ok(()) };
        match self.clock.get() {
            Some(kept) if kept.same(&clock) => Ok(()),
            Some(_) => Err(busy(
                "another thread inserted the first entry just now, with times of another \
                 kind: try again",
            )),
            None => {
                // Only set here, under the lock.
                let _ = self.clock.set(clock);
                Ok(())
            }
        }
    }

    // -- inserting ---------------------------------------------------------------------

    #[inline]
    pub(crate) fn insert(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let quick = self.quick.load(Ordering::Relaxed);
        if quick == Quick::No as u8 {
            return self.insert_any(py, time, value);
        }
        let (Some(ticks), Some(row)) = (small_int(time), quick_cell(quick, value)) else {
            return self.insert_any(py, time, value);
        };
        let row = if quick == Quick::Rows as u8 {
            &[][..]
        } else {
            std::slice::from_ref(&row)
        };
        let mut state = self.lock(py)?;
        if let Err(refused) = state.insert(ticks, row) {
            drop(state);
            return Err(self.refusal(py, refused));
        }
        if let Some(clock) = self.clock() {
            state.trim(clock, self.spec());
        }
        Ok(())
    }

    fn insert_any(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.settle(py)?;
        let inserted = self.convert_and_insert(py, time, value);
        self.sweep(py);
        inserted
    }

    fn convert_and_insert(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let entered = self.enter()?;
        let new = match self.clock() {
            Some(_) => None,
            None => Some(self.new_clock(time)?),
        };
        let clock = new.as_ref().or(self.clock()).expect("one of them is there");
        let clock = Arc::clone(clock);
        let ticks = clock.rounded(clock.ticks(time)?)?;
        let wider = self.wider(py, value)?;
        let spec = self.widest(&wider);
        let row = self.loose_row(py, spec, value, ticks)?;
        drop(entered);
        let mut state = self.lock(py)?;
        let mut dtypes = self.types(&state, &wider)?;
        let mut cells = Row::with_capacity(row.len());
        for (at, (loose, feed)) in row.into_iter().zip(&spec.feeds).enumerate() {
            if feed.role == Role::Time {
                cells.push(Cell::I64(ticks));
                continue;
            }
            let cell = loose.settle(feed.role, &mut dtypes[at], spec.nan);
            cells.push(cell.map_err(|why| misfit(why, spec.column_name(py, feed), None))?);
        }
        spec.share_types(&mut dtypes);
        let admitted = state.admits(&[ticks]);
        if let Err(refused) = admitted {
            drop(state);
            return Err(self.refusal(py, refused));
        }
        self.keep_clock(new)?;
        self.widen(&mut state, wider.as_ref().map(|spec| spec.clone_ref(py)));
        if dtypes != state.dtypes {
            state.decide(self.spec(), dtypes);
        }
        let inserted = state.insert(ticks, &cells);
        debug_assert!(inserted.is_ok(), "admitted above");
        state.trim(&clock, self.spec());
        self.choose_quick(&state);
        Ok(())
    }

    // -- columns of objects ------------------------------------------------------------

    /// The columns of numbers that have had none yet.
    pub(crate) fn open_sources(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        if !self.spec().feeds.iter().any(Feed::is_open) {
            return Ok(Vec::new());
        }
        let state = self.lock_entered(py)?;
        let feeds = self.spec().feeds.iter().zip(&state.dtypes);
        let open = feeds.filter(|(feed, dtype)| feed.is_open() && dtype.is_none());
        let mut sources: Vec<usize> = open.map(|(feed, _)| feed.source).collect();
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }

    /// What the window has to become for this value, if it brings the first object to a
    /// column without values. Of no effect until [`Access::widen`].
    fn wider(
        &self,
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<Spec>>> {
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(None);
        };
        let (mut found, mut first) = (Vec::new(), None);
        for source in self.open_sources(py)? {
            let get = |source| self.spec().value_of(value, source);
            let feeds = self.spec().feeds.iter();
            for feed in feeds.filter(|feed| feed.is_open() && feed.source == source) {
                if self.spec().counts(feed, get)? && is_object(&get(source)?)? {
                    found.push(source);
                    first = first.or(Some(described(&get(source)?)));
                    break;
                }
            }
        }
        self.wider_by(py, found, first.as_deref().unwrap_or_default())
    }

    /// The same where it is known which columns hold objects; `what` is said of an object
    /// that the window cannot keep.
    pub(crate) fn wider_by(
        &self,
        py: Python<'_>,
        sources: Vec<usize>,
        what: &str,
    ) -> PyResult<Option<Py<Spec>>> {
        if sources.is_empty() {
            return Ok(None);
        }
        let plan = self.spec().plan.bind(py);
        let made = py.import("slidewise.window")?.getattr("_wider_spec")?;
        let wider = made.call1((plan, sources));
        let wider = wider.map_err(|error| prefixed(py, error, what))?;
        let wider: Option<Py<Spec>> = wider.extract()?;
        if wider.is_some() {
            self.store.get_or_init(Store::default);
        }
        Ok(wider)
    }

    pub(crate) fn widest<'a>(&'a self, wider: &'a Option<Py<Spec>>) -> &'a Spec {
        wider
            .as_ref()
            .map_or_else(|| self.spec(), |spec| spec.get())
    }

    /// The types of the columns before a value is inserted.
    fn types(&self, state: &State, wider: &Option<Py<Spec>>) -> PyResult<Types> {
        let Some(wider) = wider else {
            return Ok(state.dtypes.clone());
        };
        let types = state.widened(self.spec(), wider.get());
        types.ok_or_else(|| {
            spec(
                "an object came to a column without values, when numbers that would have \
                 to be kept with it were there already: create the window with \
                 dtype='object'",
            )
        })
    }

    /// Goes over to another spec; `types` has looked whether that is possible.
    fn widen(&self, state: &mut State, wider: Option<Py<Spec>>) {
        let Some(spec) = wider else { return };
        state.widen(self.spec(), spec.get());
        let make = Make {
            spec,
            wider: OnceLock::new(),
        };
        // Only set here, under the lock.
        let _ = self.make().wider.set(Box::new(make));
    }

    /// The values of one entry, by feed.
    fn loose_row(
        &self,
        py: Python<'_>,
        spec: &Spec,
        value: Option<&Bound<'_, PyAny>>,
        ticks: i64,
    ) -> PyResult<Vec<Loose>> {
        let feeds = spec.feeds.iter();
        let value = value.filter(|value| !value.is_none());
        let Some(value) = value else {
            return Ok(feeds.map(|_| Loose::Null).collect());
        };
        let get = |source| spec.value_of(value, source);
        feeds
            .map(|feed| {
                if feed.role == Role::Time || !spec.counts(feed, get)? {
                    return Ok(Loose::Null);
                }
                let value = get(feed.source)?;
                match (feed.role, self.working_of(spec, py)) {
                    (Role::Own(number), Some(working)) => match feed.beside {
                        None => working.lift(number, &value, spec.nan),
                        Some(Beside::Column(column)) => {
                            working.lift_with(number, &value, &get(column)?, spec.nan)
                        }
                        Some(Beside::Time) => {
                            let time = ticks.into_pyobject(py)?;
                            working.lift_with(number, &value, time.as_any(), spec.nan)
                        }
                    },
                    (Role::Key, _) => key(&value, spec.nan, self.store()),
                    (role, _) => loosen(&value, role, self.store()),
                }
            })
            .collect()
    }

    /// Decides what [`Access::insert`] may take the quick way from now on, and which
    /// answers are bools.
    fn choose_quick(&self, state: &State) {
        for (agg, truth) in self.spec().aggs.iter().zip(&self.truths) {
            let of = agg.of.filter(|_| Spec::answers_value(agg));
            let bools = of.is_some_and(|of| state.dtypes[of] == Some(Type::Bool));
            truth.store(bools, Ordering::Relaxed);
        }
        let clock = self.clock();
        let plain = clock.is_some_and(|clock| clock.int && clock.granularity == 1)
            && self.spec().columns.is_none();
        let quick = match (&self.spec().feeds[..], &state.dtypes[..]) {
            _ if !plain => Quick::No,
            ([], _) => Quick::Rows,
            ([feed], [Some(dtype)]) if feed.role.is_number() => match dtype {
                Type::Int => Quick::Ints,
                Type::Float if self.spec().nan == Nan::Propagate => Quick::Floats,
                _ => Quick::No,
            },
            _ => Quick::No,
        };
        self.quick.store(quick as u8, Ordering::Relaxed);
    }

    /// Settles the types of whole columns and inserts them, without the GIL. What was
    /// read is released only when the window is unlocked again.
    pub(crate) fn insert_columns(&self, py: Python<'_>, batch: crate::bulk::Batch) -> PyResult<()> {
        let mut columns = batch.columns;
        let wider = batch.wider.as_ref().map(|spec| spec.clone_ref(py));
        let spec = self.widest(&batch.wider);
        let done = py.detach(|| {
            let mut settled = Vec::with_capacity(columns.len());
            let mut state = self.lock_detached()?;
            let mut dtypes = self.types(&state, &batch.wider)?;
            for (at, column) in columns.iter_mut().enumerate() {
                let role = spec.feeds[at].role;
                match column.settle(role, &mut dtypes[at], spec.nan) {
                    Ok(column) => settled.push(column),
                    Err((why, row)) => return Ok(Done::Misfit(why, at, row)),
                }
            }
            if let Err(refused) = state.admits(batch.ticks.values()) {
                return Ok(Done::Refused(refused));
            }
            self.keep_clock(batch.clock)?;
            self.widen(&mut state, wider);
            spec.share_types(&mut dtypes);
            state.decide(self.spec(), dtypes);
            let columns: Vec<_> = settled.iter().map(|column| column.column()).collect();
            state.insert_many(batch.ticks.values(), &columns);
            if let Some(clock) = self.clock() {
                state.trim(clock, self.spec());
            }
            self.choose_quick(&state);
            PyResult::Ok(Done::Inserted)
        })?;
        drop(columns);
        match done {
            Done::Inserted => Ok(()),
            Done::Refused(refused) => Err(self.refusal(py, refused)),
            Done::Misfit(why, at, row) => {
                let column = spec.column_name(py, &spec.feeds[at]);
                Err(misfit(why, column, row))
            }
        }
    }
}

/// What became of a bulk insert.
enum Done {
    Inserted,
    Refused(Refused),
    Misfit(Misfit, usize, Option<usize>),
}

fn poisoned() -> PyErr {
    broken("this window met an internal error in an earlier call and cannot be used any more")
}
