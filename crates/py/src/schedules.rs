//! Queries from Python, in ticks, and their shared plan.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slidewise_core::window::queries::data_driven::MAX_FLAGS;
use slidewise_core::window::queries::plan::{Query, Technique, Unit, count_edges};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};

/// The kind of its windows, range, slide, and the number of its flag.
pub(crate) type QueryTuple = (String, i64, i64, u32);

/// The schedule of a clock: offset, lateness, whether empty windows are answered, queries.
pub(crate) type ScheduleTuple = (i64, Option<i64>, bool, Vec<Option<QueryTuple>>);

pub(crate) fn query((kind, range, slide, flag): QueryTuple) -> PyResult<Query> {
    let unit = match kind.as_str() {
        "time" => Unit::Time,
        "rows" => Unit::Entries,
        "time_by_rows" => Unit::TimeByEntries,
        "session" => Unit::Session,
        "until" => Unit::Until(flag),
        "landmark_time" => Unit::LandmarkTime(flag),
        "landmark_rows" => Unit::LandmarkEntries(flag),
        _ => return Err(PyValueError::new_err("an unknown kind of query")),
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

/// The composite slide of queries of one unit, by range and slide, and the number of edges
/// within it by each technique. `None` beyond int64, and for edges too many to list.
#[pyfunction]
pub(crate) fn query_plan(
    queries: Vec<(i64, i64)>,
    offset: i64,
) -> (Option<i64>, Vec<(&'static str, Option<i64>)>) {
    let unit = Unit::Time;
    let read = |(range, slide)| Query { unit, range, slide };
    let queries: Vec<Query> = queries.into_iter().map(read).collect();
    let (composite, counts) = count_edges(&queries, offset);
    let names = Technique::ALL.map(Technique::name);
    (composite, names.into_iter().zip(counts).collect())
}
