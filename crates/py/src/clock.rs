//! Times of a window: int64 ticks in the core, and the kind of its first time in Python.

use std::ops::RangeInclusive;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use slidewise_core::window::fifo::shared::Reach;
use slidewise_core::window::queries::schedule::Schedule;

use crate::errors::{spec_error, with_note, with_prefix};
use crate::schedules::ScheduleTicks;

/// A clock of `slidewise.window.time_codec`, with the fields that single inserts need.
/// Windows share it, so it has no `__traverse__`: it holds a plain object without cycles.
#[derive(Debug)]
pub(crate) struct Clock {
    object: Py<PyAny>,
    /// Kind, unit and zone; equal for clocks that read times alike.
    key: String,
    /// Times are ints and are their own ticks.
    pub(crate) int: bool,
    /// The window's length, `last=`, in ticks.
    pub(crate) last: Option<i64>,
    /// The latency bound that the caller gave, in ticks.
    pub(crate) latency: Option<i64>,
    /// Nanoseconds per tick; 1 for ints.
    pub(crate) tick: u64,
    /// The lengths of the ranges of a shared window; none for other windows.
    pub(crate) reaches: Vec<Reach>,
    /// The queries of a window with queries.
    pub(crate) schedule: Option<Schedule>,
    /// Times are rounded down to multiples of this; 1 leaves them as they are.
    pub(crate) granularity: i64,
    /// Ticks that surely can be converted back to the kind of the times.
    certain: RangeInclusive<i64>,
}

impl Clock {
    pub(crate) fn read(object: Bound<'_, PyAny>) -> PyResult<Self> {
        let key: String = object.getattr("key")?.extract()?;
        let granularity: i64 = object.getattr("granularity")?.extract()?;
        let (first, last): (i64, i64) = object.getattr("certain")?.extract()?;
        let ranges: Vec<(String, i64)> = object.getattr("ranges")?.extract()?;
        let schedule: Option<ScheduleTicks> = object.getattr("schedule")?.extract()?;
        let reaches = ranges.iter().map(|(kind, length)| match kind.as_str() {
            "rows" => Reach::Entries(usize::try_from(*length).unwrap_or(usize::MAX)),
            _ => Reach::Time(*length),
        });
        Ok(Self {
            int: key == "int",
            key,
            last: object.getattr("last")?.extract()?,
            latency: object.getattr("latency")?.extract()?,
            tick: object.getattr("tick")?.extract()?,
            reaches: reaches.collect(),
            schedule: schedule.map(|queries| queries.read()).transpose()?,
            granularity: granularity.max(1),
            certain: first..=last,
            object: object.unbind(),
        })
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        self.key == other.key
    }

    /// The ticks of a time as they are, without rounding.
    pub(crate) fn ticks(&self, time: &Bound<'_, PyAny>) -> PyResult<i64> {
        if self.int && !time.is_instance_of::<PyBool>() {
            // Runs __index__. Other values get their message below.
            match time.extract::<i64>() {
                Ok(ticks) => return Ok(ticks),
                Err(error) if is_refusal(time.py(), &error) => {}
                Err(error) => return Err(with_note(time.py(), error, "reading a time")),
            }
        }
        let py = time.py();
        let ticks = self.object.bind(py).call_method1("ticks", (time,));
        ticks
            .map_err(|error| with_note(py, error, "reading a time"))?
            .extract()
    }

    /// The time at which an entry with this time is kept; it can be converted back.
    pub(crate) fn kept(&self, py: Python<'_>, ticks: i64) -> PyResult<i64> {
        let kept = self.rounded(ticks)?;
        if !self.certain.contains(&kept) {
            let restored = self.restore(py, kept);
            restored.map_err(|error| match kept == ticks {
                true => error,
                false => with_prefix(py, error, "rounded down by granularity=,"),
            })?;
        }
        Ok(kept)
    }

    /// A bound of a query, rounded in the same way.
    pub(crate) fn rounded(&self, ticks: i64) -> PyResult<i64> {
        if self.granularity == 1 {
            return Ok(ticks);
        }
        ticks
            .checked_sub(ticks.rem_euclid(self.granularity))
            .ok_or_else(|| {
                spec_error(format!(
                    "time {ticks} rounded down to a multiple of {} is beyond int64",
                    self.granularity
                ))
            })
    }

    /// A time of the window's kind.
    pub(crate) fn restore<'py>(&self, py: Python<'py>, ticks: i64) -> PyResult<Bound<'py, PyAny>> {
        if self.int {
            return Ok(ticks.into_pyobject(py)?.into_any());
        }
        self.object.bind(py).call_method1("restore", (ticks,))
    }
}

/// Whether an error of Python means that a value is not an int, or one too large.
fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyOverflowError>(py)
}
