//! Requests for holistic aggregations, and cells for them.

use super::Random;
use slidewise_core::aggregate::holistic::Quantile;
use slidewise_core::aggregate::{AggSpec, Cell, DType, Kind};

pub fn kinds() -> Vec<Kind> {
    let texts = [
        "0.5 linear",
        "0.9 linear",
        "0 lower",
        "1 higher",
        "0.37 nearest",
    ];
    let quantiles = texts.map(|text| Kind::Quantile(Quantile::parse(text).expect("one")));
    let mut kinds = vec![Kind::CountDistinct, Kind::Mode, Kind::Sum, Kind::Entropy];
    kinds.extend([0, 2].map(|top| Kind::ValueCounts { top }));
    kinds.extend(quantiles);
    kinds
}

pub fn specs(kinds: &[Kind]) -> Vec<AggSpec> {
    let spec = |kind: &Kind| AggSpec {
        kind: *kind,
        of: Some(0),
        by: None,
        ddof: 0,
    };
    kinds.iter().map(spec).collect()
}

pub fn cell(random: &mut Random, dtype: DType, spread: u64) -> Cell<i64> {
    let value = random.below(spread) as i64 - spread as i64 / 3;
    match (random.below(12), dtype) {
        (0, _) => Cell::Null,
        (1, DType::F64) => Cell::F64(random.pick(&[f64::NAN, f64::INFINITY, -0.0, -1e300])),
        (_, DType::F64) => Cell::F64(value as f64 / 4.0),
        _ => Cell::I64(value),
    }
}
