//! The table of algorithms and the laws of aggregations, for `slidewise.window.planner`.

use pyo3::prelude::*;
use slidewise_core::aggregate::{
    AggSpec, DType, Kind, commutes as order_is_free, obeys, subtracts_exactly as exactly,
};
use slidewise_core::monoid::Law;
use slidewise_core::window::Ties;
use slidewise_core::window::costs::{Costs, TABLE};
use slidewise_core::window::planned::algorithm::{Allowed, Properties};
use slidewise_papers::costs::TABLE as TABLE_OF_PAPERS;

use crate::algorithms::all as all_algorithms;
use crate::errors::internal_error;

/// Name, whether it is for entries in order only, law, whether it answers queries of parts and
/// of several ranges, and parameters: name, default, allowed values.
type AlgorithmCard = (
    &'static str,
    bool,
    Option<&'static str>,
    bool,
    bool,
    Vec<(&'static str, i64, Option<Vec<i64>>)>,
);

/// The algorithms, in the order in which they are shown.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<AlgorithmCard> {
    all_algorithms().map(row).collect()
}

fn row(properties: &Properties) -> AlgorithmCard {
    let parameters = properties.parameters.iter().map(|parameter| {
        let allowed = match parameter.allowed {
            Allowed::Flag => Some(vec![0, 1]),
            Allowed::OneOf(values) => Some(values.to_vec()),
            Allowed::From(_) => None,
        };
        (parameter.name, parameter.default, allowed)
    });
    let law = properties.law.map(name_of);
    (
        properties.name,
        properties.in_order,
        law,
        properties.ranges,
        properties.shared,
        parameters.collect(),
    )
}

/// An operation, and its cost: amortised and in the worst case.
type CostText = (&'static str, String, String);

/// The table of costs: algorithm, variant, and the costs under both kinds of ties.
#[pyfunction]
pub(crate) fn costs() -> Vec<(&'static str, &'static str, Vec<CostText>, Vec<CostText>)> {
    let rows = TABLE.iter().chain(&TABLE_OF_PAPERS);
    let rows = rows.map(|row| {
        let [combine, keep] = [Ties::Combine, Ties::Keep].map(|ties| texts(&row.costs(ties)));
        (row.algorithm, row.variant, combine, keep)
    });
    rows.collect()
}

fn texts(costs: &Costs) -> Vec<CostText> {
    let split = [
        ("insert", costs.insert),
        ("evict", costs.evict),
        ("query", costs.query),
        ("slide", costs.slide),
    ];
    let same = [
        ("repeated", costs.repeated.to_string()),
        ("evict_until", costs.evict_until.to_string()),
        ("insert_many", costs.insert_many.to_string()),
        ("moves", costs.moves.to_string()),
    ];
    let split =
        split.map(|(name, cost)| (name, cost.amortised.to_string(), cost.worst.to_string()));
    let same = same.map(|(name, text)| (name, text.clone(), text));
    split.into_iter().chain(same).collect()
}

const LAWS: [(&str, Law); 3] = [
    ("inverse", Law::Inverse),
    ("selection", Law::Selection),
    ("inverse or selection", Law::InverseOrSelection),
];

fn name_of(law: Law) -> &'static str {
    let known = LAWS.iter().find(|(_, known)| *known == law);
    known.map_or("", |(name, _)| *name)
}

/// Whether aggregations obey a law. Each is given by its kind, and whether it has an
/// inverse if it is user-defined; `inputs` is the number of columns that they read
/// together.
#[pyfunction]
pub(crate) fn obeys_law(law: &str, aggs: Vec<(String, bool)>, inputs: usize) -> PyResult<bool> {
    let found = LAWS.iter().find(|(name, _)| *name == law);
    let (_, law) = found.ok_or_else(|| internal_error(&format!("no law {law:?}")))?;
    Ok(obeys(*law, &all(&aggs)?, inputs.max(1)))
}

/// Whether evicted values can be subtracted exactly; `floats` is whether numbers are
/// floats. Aggregations are given as for `obeys_law`.
#[pyfunction]
pub(crate) fn subtracts_exactly(aggs: Vec<(String, bool)>, floats: bool) -> PyResult<bool> {
    let dtype = if floats { DType::F64 } else { DType::I64 };
    Ok(exactly(&all(&aggs)?, &[dtype]))
}

/// Whether the order in which values are combined makes no difference to an aggregation,
/// given by its kind, over `inputs` columns.
#[pyfunction]
pub(crate) fn commutes(kind: &str, inputs: usize) -> PyResult<bool> {
    let agg = any(kind, false).filter(|_| kind != "udaf");
    let mut agg = agg.ok_or_else(|| internal_error("an aggregation of no kind"))?;
    agg.by = agg.kind.takes_by().then_some(inputs - 1);
    Ok(order_is_free(agg, inputs))
}

fn all(aggs: &[(String, bool)]) -> PyResult<Vec<AggSpec>> {
    let all = aggs.iter().map(|(kind, inverts)| any(kind, *inverts));
    let all: Option<Vec<AggSpec>> = all.collect();
    all.ok_or_else(|| internal_error("an aggregation of no kind"))
}

/// An aggregation of a kind over an arbitrary column, because laws do not depend on it.
fn any(kind: &str, invertible: bool) -> Option<AggSpec> {
    let own = Kind::Udaf {
        number: 0,
        commutative: false,
        invertible,
    };
    Some(AggSpec {
        kind: if kind == "udaf" || kind.starts_with("native:") {
            own
        } else {
            Kind::parse(kind, 1)?
        },
        of: Some(0),
        by: Some(0),
        ddof: 0,
    })
}
