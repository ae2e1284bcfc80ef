//! Queries as Python gives them, in ticks, and what they share.

use pyo3::prelude::*;
use slidewise_core::window::queries::plan::{Axis, Query, Technique, Unit};
use slidewise_core::window::queries::schedule::{Schedule, Terms};

/// Whether it counts entries, range and slide.
pub(crate) type QueryTuple = (bool, i64, i64);

/// The schedule of a clock: offset, lateness, whether empty windows are answered, queries.
pub(crate) type ScheduleTuple = (i64, Option<i64>, bool, Vec<Option<QueryTuple>>);

/// The composite slide, the technique, and the edges of each technique.
type AxisTuple = (Option<i64>, &'static str, Vec<(&'static str, Option<i64>)>);

pub(crate) fn query((counted, range, slide): QueryTuple) -> Query {
    let unit = if counted { Unit::Entries } else { Unit::Time };
    Query { unit, range, slide }
}

pub(crate) fn read_schedule((offset, late, empty, queries): ScheduleTuple) -> Schedule {
    let terms = Terms {
        offset,
        late,
        empty,
    };
    let queries = queries.into_iter().map(|known| known.map(query));
    Schedule::new(terms, queries.collect())
}

/// What queries share: for those of time and those of entries the composite slide, the
/// technique, and the edges per composite slide by each technique. None of what is
/// beyond int64, or too much to list.
#[pyfunction]
pub(crate) fn query_plan(queries: Vec<QueryTuple>, offset: i64) -> Vec<Option<AxisTuple>> {
    let queries: Vec<Query> = queries.into_iter().map(query).collect();
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
