//! Queries from Python, in ticks, and their shared plan.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slidewise_core::window::queries::data_driven::MAX_FLAGS;
use slidewise_core::window::queries::plan::{Query, Technique, Unit, count_edges};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};

/// `slidewise.spec.windows.base.QueryTicks`.
#[derive(FromPyObject)]
pub(crate) struct QueryTicks {
    kind: String,
    range: i64,
    slide: i64,
    flag: u32,
}

/// `slidewise.window.queries.Schedule`.
#[derive(FromPyObject)]
pub(crate) struct ScheduleTicks {
    offset: i64,
    late: Option<i64>,
    empty: bool,
    slices: bool,
    queries: Vec<Option<QueryTicks>>,
}

impl QueryTicks {
    pub(crate) fn read(&self) -> PyResult<Query> {
        let unit = match self.kind.as_str() {
            "time" => Unit::Time,
            "rows" => Unit::Entries,
            "time_by_rows" => Unit::TimeByEntries,
            "session" => Unit::Session,
            "until" => Unit::Until(self.flag),
            "landmark_time" => Unit::LandmarkTime(self.flag),
            "landmark_rows" => Unit::LandmarkEntries(self.flag),
            _ => return Err(PyValueError::new_err("an unknown kind of query")),
        };
        if self.flag >= MAX_FLAGS {
            return Err(PyValueError::new_err("too many flags"));
        }
        Ok(Query {
            unit,
            range: self.range,
            slide: self.slide,
        })
    }
}

impl ScheduleTicks {
    pub(crate) fn read(&self) -> PyResult<Schedule> {
        let terms = ScheduleOptions {
            offset: self.offset,
            late: self.late,
            empty: self.empty,
            slices: self.slices,
        };
        let queries = self.queries.iter();
        let queries = queries.map(|query| query.as_ref().map(QueryTicks::read).transpose());
        Ok(Schedule::new(terms, queries.collect::<PyResult<_>>()?))
    }
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
