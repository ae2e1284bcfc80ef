//! The algorithms of the papers, for tests that all of them must pass.

use slidewise_core::aggregate::{AggSpec, DType};
use slidewise_core::window::Ties;
use slidewise_core::window::planned::algorithm::Properties;
use slidewise_core::window::planned::any::AnyWindow;
use slidewise_papers::algorithm::{ALGORITHMS, Algorithm};
use slidewise_papers::planned;

#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub properties: &'static Properties,
    algorithm: Algorithm,
}

pub fn all() -> impl Iterator<Item = Known> {
    ALGORITHMS.iter().map(|(properties, make)| {
        let values = properties.values(&[]).expect("it has defaults");
        let algorithm = make(&values);
        Known {
            properties,
            algorithm,
        }
    })
}

impl Known {
    pub fn window(self, aggs: &[AggSpec], dtypes: &[DType], ties: Ties) -> Box<dyn AnyWindow<i64>> {
        planned::window(self.algorithm, aggs, dtypes, ties)
    }
}
