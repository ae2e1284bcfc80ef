//! Messages for the operations that an algorithm refuses.

use pyo3::prelude::*;
use slidewise_core::window::Refused;

use crate::algorithms;
use crate::clock::Clock;
use crate::errors::{OutOfOrderError, spec_error};
use crate::locking::Access;

impl Access {
    /// The error for a refused operation. Call it with nothing locked.
    #[cold]
    pub(crate) fn refusal(&self, py: Python<'_>, refused: Refused) -> PyErr {
        self.refusal_before(py, refused, self.clock().map(|clock| &**clock))
    }

    /// The same for a window that may have no clock yet, with the clock of the refused entry.
    #[cold]
    pub(crate) fn refusal_before(
        &self,
        py: Python<'_>,
        refused: Refused,
        clock: Option<&Clock>,
    ) -> PyErr {
        let made = match refused {
            Refused::Late { time, youngest } => self.late(py, time, youngest),
            Refused::Inner { time, oldest } => self.inner(py, time, oldest),
            Refused::Range { lo, hi } => self.part(py, lo, hi),
            Refused::Many { time, ends } => self.many(py, (time, clock), ends),
        };
        made.unwrap_or_else(|error| error)
    }

    fn late(&self, py: Python<'_>, time: i64, youngest: i64) -> PyResult<PyErr> {
        let (time, youngest) = (self.restore(py, time)?, self.restore(py, youngest)?);
        let (at, end) = (time.str()?, youngest.str()?);
        let name = self.spec().algorithm_name(py);
        let text = if self.spec().queries.is_some() {
            format!(
                "an entry at {at} is too late: no more entries before {end} are awaited, as \
                 the answers up to there were returned; late= sets how late entries may be, \
                 and advance() ends the wait"
            )
        } else if self.spec().is_shared() {
            format!(
                "an entry at {at} is late: the latest in the window is at {end}, and a \
                 SharedWindow takes entries in order only; for late ones use a Window per \
                 range"
            )
        } else if self.spec().is_bounded() {
            format!(
                "an entry at {at} is too late: '{name}' takes none before {end}, by its \
                 latency=; algorithm='fiba' takes any order"
            )
        } else {
            format!(
                "an entry at {at} is late: the latest in the window is at {end}, and \
                 '{name}' takes entries in order only; algorithm='fiba' takes any order"
            )
        };
        let times = (text, time.unbind(), youngest.unbind());
        Ok(OutOfOrderError::new_err(times))
    }

    fn many(
        &self,
        py: Python<'_>,
        (time, clock): (i64, Option<&Clock>),
        ends: i64,
    ) -> PyResult<PyErr> {
        let at = match clock {
            Some(clock) => clock.restore(py, time)?,
            None => self.restore(py, time)?,
        };
        let queries = self.spec().plan.bind(py).getattr("shared_queries")?;
        let way_out = match queries.getattr("empty")?.is_truthy()? {
            true => ", nearly all of them empty: leave out empty=True, give a longer every=",
            false => ": give a longer every= or a shorter range",
        };
        Ok(spec_error(format!(
            "up to {}, {ends} windows fall due at once{way_out}, or drop an entry that is too \
             far ahead",
            at.str()?
        )))
    }

    fn inner(&self, py: Python<'_>, time: i64, oldest: i64) -> PyResult<PyErr> {
        let (time, oldest) = (self.restore(py, time)?, self.restore(py, oldest)?);
        let (at, begin) = (time.str()?, oldest.str()?);
        let name = self.spec().algorithm_name(py);
        let text = if self.spec().is_shared() {
            format!(
                "the entry at {at} is not the earliest, which is at {begin}, and a \
                 SharedWindow evicts in order only"
            )
        } else {
            format!(
                "the entry at {at} is not the earliest, which is at {begin}, and '{name}' \
                 evicts in order only; algorithm='fiba' evicts anywhere"
            )
        };
        let times = (text, time.unbind(), py.None(), oldest.unbind());
        Ok(OutOfOrderError::new_err(times))
    }

    fn part(&self, py: Python<'_>, lo: i64, hi: i64) -> PyResult<PyErr> {
        let name = self.spec().algorithm_name(py);
        let answered = if self.spec().is_bounded() {
            "the whole window, or for what its latency= keeps open"
        } else {
            "the whole window only"
        };
        let (lo, hi) = (self.restore(py, lo)?.str()?, self.restore(py, hi)?.str()?);
        Ok(spec_error(format!(
            "'{name}' answers for {answered}, not for {lo} to {hi}; algorithms that answer \
             for any part of it are {}",
            answering_ranges(&name),
        )))
    }

    /// The refusal that made an "auto" window migrate to fiba, and its times; else `None`.
    pub(crate) fn migrated<'py>(&self, py: Python<'py>) -> PyResult<Option<Migrated<'py>>> {
        let cause = self.lock(py)?.window.cause();
        let restored = |ticks| self.restore(py, ticks);
        let bound = |ticks| match ticks {
            i64::MIN | i64::MAX => Ok(py.None().into_bound(py)),
            ticks => restored(ticks),
        };
        Ok(match cause {
            None => None,
            Some(Refused::Late { time, youngest }) => {
                Some(("late", restored(time)?, restored(youngest)?))
            }
            Some(Refused::Inner { time, oldest }) => {
                Some(("inner", restored(time)?, restored(oldest)?))
            }
            Some(Refused::Range { lo, hi }) => Some(("range", bound(lo)?, bound(hi)?)),
            // Only windows of queries refuse so, and these do not migrate.
            Some(Refused::Many { .. }) => None,
        })
    }
}

pub(crate) type Migrated<'py> = (&'static str, Bound<'py, PyAny>, Bound<'py, PyAny>);

fn answering_ranges(but: &str) -> String {
    let names = algorithms::all().filter(|info| info.ranges);
    let names = names.map(|info| info.name).filter(|name| *name != but);
    names.collect::<Vec<_>>().join(", ")
}
