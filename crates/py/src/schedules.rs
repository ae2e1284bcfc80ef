//! Queries from Python, in ticks, and their shared plan.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slidewise_core::window::queries::data_driven::MAX_FLAGS;
use slidewise_core::window::queries::plan::{Axis, Query, Technique, Unit};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};

/// The kind of its windows, range, slide, and the number of its flag.
pub(crate) type QueryTuple = (String, i64, i64, u32);

/// The schedule of a clock: offset, lateness, whether empty windows are answered, queries.
pub(crate) type ScheduleTuple = (i64, Option<i64>, bool, Vec<Option<QueryTuple>>);

/// The composite slide, the technique, and the edges of each technique.
type AxisTuple = (Option<i64>, &'static str, Vec<(&'static str, Option<i64>)>);

pub(crate) fn query((kind, range, slide, flag): QueryTuple) -> PyResult<Query> {
    let unit = match kind.as_str() {
        "time" => Unit::Time,
        "rows" => Unit::Entries,
        "time_by_rows" => Unit::TimeByEntries,
        "session" => Unit::Session,
        "until" => Unit::Until(flag),
        "landmark_time" => Unit::LandmarkTime(flag),
        "landmark_rows" => Unit::LandmarkEntries(flag),
        _ => return Err(PyValueError::new_err("a query of no kind")),
    };
    if flag >= MAX_FLAGS {
        return Err(PyValueError::new_err("too many flags"));
    }
    Ok(Query { unit, range, slide })
}

pub(crate) fn read_schedule((offset, late, empty, queries): ScheduleTuple) -> PyResult<Schedule> {
    let terms = ScheduleOptions {
        offset,
        late,
        empty,
    };
    let queries = queries
        .into_iter()
        .map(|known| known.map(query).transpose());
    Ok(Schedule::new(terms, queries.collect::<PyResult<_>>()?))
}

/// The shared plan of queries: for those of time and those of entries the composite slide, the
/// technique, and the edges per composite slide by each technique. `None` for numbers beyond
/// int64, and for edges too many to list.
#[pyfunction]
pub(crate) fn query_plan(queries: Vec<(bool, i64, i64)>, offset: i64) -> Vec<Option<AxisTuple>> {
    let read = |(counted, range, slide)| {
        let unit = if counted { Unit::Entries } else { Unit::Time };
        Query { unit, range, slide }
    };
    let queries: Vec<Query> = queries.into_iter().map(read).collect();
    let units = [(Unit::Time, offset), (Unit::Entries, 0)].into_iter();
    let axes = units.map(|(unit, offset)| {
        let of = queries.iter().filter(|query| query.unit == unit);
        let of: Vec<Query> = of.copied().collect();
        let axis = (!of.is_empty()).then(|| Axis::new(&of, offset))?;
        let counts = Technique::ALL.iter().zip(axis.counts);
        let counts = counts.map(|(technique, count)| (technique.name(), count));
        Some((axis.composite, axis.technique.name(), counts.collect()))
    });
    axes.collect()
}
