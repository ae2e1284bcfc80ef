//! Answers at the ends of windows, from answers relative to their latest entries.

use arrow_array::types::Float64Type;
use arrow_array::{Array, Float64Array, Int64Array};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use slidewise_core::aggregate::decay::HalfLife;

use crate::arrow::{ArrowArray, NumberArray};

/// Decayed sums at the ends of their windows, from those at the times of the latest entries,
/// `last`; both are null without entries. A half-life is `length` ÷ `tick` ticks.
#[pyfunction]
pub(crate) fn decayed_sums(
    py: Python<'_>,
    sums: &Bound<'_, PyAny>,
    last: &Bound<'_, PyAny>,
    ends: &Bound<'_, PyAny>,
    length: u64,
    tick: u64,
) -> PyResult<ArrowArray> {
    let columns = (NumberArray::import(sums)?, NumberArray::import(last)?);
    let (NumberArray::F64(sums), NumberArray::I64(last)) = columns else {
        return Err(PyTypeError::new_err("sums are float64, times are int64"));
    };
    let ends = NumberArray::import_keys(ends, "ends")?;
    if length == 0 || tick == 0 || sums.len() != ends.len() || last.len() != ends.len() {
        return Err(PyValueError::new_err("sums without their times or ends"));
    }
    let half_life = HalfLife::Time { length, tick };
    let decayed: Float64Array = py.detach(|| {
        let rows = sums.iter().zip(last.iter()).zip(ends.values());
        rows.map(|((sum, last), end)| Some(half_life.at_end(sum?, last?, *end)))
            .collect()
    });
    Ok(ArrowArray::new(decayed.into()))
}

/// One such sum.
#[pyfunction]
pub(crate) fn decayed_sum(sum: f64, last: i64, end: i64, length: u64, tick: u64) -> PyResult<f64> {
    match length > 0 && tick > 0 {
        true => Ok(HalfLife::Time { length, tick }.at_end(sum, last, end)),
        false => Err(PyValueError::new_err("a half-life of no time")),
    }
}

/// The times and the values of the entries at one end of windows; both are null without one.
struct Entries {
    times: Int64Array,
    values: Float64Array,
}

impl Entries {
    fn import((times, values): &(Bound<'_, PyAny>, Bound<'_, PyAny>)) -> PyResult<Self> {
        let NumberArray::I64(times) = NumberArray::import(times)? else {
            return Err(PyTypeError::new_err("times are int64"));
        };
        let values = match NumberArray::import(values)? {
            NumberArray::I64(values) => values.unary::<_, Float64Type>(|value| value as f64),
            NumberArray::F64(values) => values,
        };
        Ok(Self { times, values })
    }

    fn len(&self) -> usize {
        self.times.len().min(self.values.len())
    }

    /// The entry of a window, if it has one.
    fn of(&self, window: usize) -> Option<(i64, f64)> {
        let is_there = self.times.is_valid(window) && self.values.is_valid(window);
        is_there.then(|| (self.times.value(window), self.values.value(window)))
    }
}

/// How the last entry before a window goes on into it, from a time.
struct Carried {
    starts: Int64Array,
    entries: Entries,
    linear: bool,
}

impl Carried {
    /// The start of a window and the area from it to the first entry, or to the end.
    fn of(&self, window: usize, first: Option<(i64, f64)>, end: i64) -> Option<(i64, f64)> {
        let (time, value) = self.entries.of(window)?;
        let start = self.starts.value(window);
        let (until, to) = first.unwrap_or((end, value));
        let height = match self.linear {
            true => {
                // Where no time passes, in a window of length zero, any share will do.
                let share = ticks(time, start) / ticks(time, until).max(1.0);
                (value + (to - value) * share + to) * 0.5
            }
            false => value,
        };
        Some((start, height * ticks(start, until)))
    }
}

fn ticks(since: i64, until: i64) -> f64 {
    until.wrapping_sub(since) as f64
}

type Columns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Areas up to the ends of windows, from those between their first and last entries; divided by
/// the `unit` of time, or else by the time that the areas span. With the last entries before the
/// windows, after the starts of these, areas begin at the starts.
#[pyfunction]
#[pyo3(signature = (areas, first, last, ends, before, *, linear, unit))]
#[allow(clippy::too_many_arguments)] // one per column
pub(crate) fn areas_at_ends(
    py: Python<'_>,
    areas: &Bound<'_, PyAny>,
    first: Columns<'_>,
    last: Columns<'_>,
    ends: &Bound<'_, PyAny>,
    before: Option<(Bound<'_, PyAny>, Columns<'_>)>,
    linear: bool,
    unit: Option<f64>,
) -> PyResult<ArrowArray> {
    let NumberArray::F64(areas) = NumberArray::import(areas)? else {
        return Err(PyTypeError::new_err("areas are float64"));
    };
    let (first, last) = (Entries::import(&first)?, Entries::import(&last)?);
    let ends = NumberArray::import_keys(ends, "ends")?;
    let carried = match &before {
        None => None,
        Some((starts, entries)) => Some(Carried {
            starts: NumberArray::import_keys(starts, "starts")?,
            entries: Entries::import(entries)?,
            linear,
        }),
    };
    let mut lengths = vec![areas.len(), first.len(), last.len()];
    lengths.extend(
        carried
            .iter()
            .flat_map(|carried| [carried.starts.len(), carried.entries.len()]),
    );
    if lengths.iter().any(|length| *length != ends.len()) {
        return Err(PyValueError::new_err("areas without their entries or ends"));
    }
    let area = |(window, end): (usize, &i64)| {
        let first = first.of(window);
        let held = last.of(window).map(|(time, value)| {
            // Infinity holds for no time at the end itself.
            let area = areas.value(window);
            if time == *end {
                area
            } else {
                area + value * ticks(time, *end)
            }
        });
        let start = carried
            .as_ref()
            .and_then(|carried| carried.of(window, first, *end));
        let (since, area) = match (start, first) {
            (Some((since, before)), _) => (since, held.unwrap_or(0.0) + before),
            (None, Some((since, _))) => (since, held?),
            (None, None) => return None,
        };
        let time = unit.unwrap_or_else(|| ticks(since, *end));
        (time != 0.0).then(|| area / time)
    };
    let found: Float64Array = py.detach(|| ends.values().iter().enumerate().map(area).collect());
    Ok(ArrowArray::new(found.into()))
}
