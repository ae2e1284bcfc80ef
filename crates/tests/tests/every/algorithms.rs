//! The algorithms of the core, for tests that all of them must pass.

use slidewise_core::aggregate::{AggSpec, DType};
use slidewise_core::window::Ties;
use slidewise_core::window::planned::algorithm::{ALGORITHMS, Algorithm, Properties};
use slidewise_core::window::planned::any::AnyWindow;
use slidewise_core::window::planned::plain;

#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub properties: &'static Properties,
    algorithm: Algorithm,
}

pub fn all() -> impl Iterator<Item = Known> {
    ALGORITHMS.iter().map(|(properties, algorithm)| Known {
        properties,
        algorithm: *algorithm,
    })
}

impl Known {
    pub fn window(self, aggs: &[AggSpec], dtypes: &[DType], ties: Ties) -> Box<dyn AnyWindow<i64>> {
        plain::window(self.algorithm, aggs, dtypes, ties)
    }
}
