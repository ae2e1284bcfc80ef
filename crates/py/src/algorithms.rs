//! The algorithms by name, those of the core and those of the papers, and their windows.

use slidewise_core::aggregate::{AggSpec, DType};
use slidewise_core::window::Ties;
use slidewise_core::window::planned::algorithm::{self as core, Properties};
use slidewise_core::window::planned::any::AnyWindow;
use slidewise_core::window::planned::{auto, plain, queries, shared};
use slidewise_papers::{algorithm as papers, planned};

use crate::object_store::Object;

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Algorithm {
    pub(crate) properties: &'static Properties,
    place: Place,
}

/// The crate that has the algorithm.
#[derive(Clone, Copy, Debug)]
enum Place {
    Core(core::Algorithm),
    Papers(papers::Algorithm),
}

type Window = Box<dyn AnyWindow<Object>>;

/// The properties of all algorithms, in the order in which they are shown.
pub(crate) fn all() -> impl Iterator<Item = &'static Properties> {
    let core = core::ALGORITHMS.iter().map(|(properties, _)| properties);
    core.chain(papers::ALGORITHMS.iter().map(|(properties, _)| properties))
}

impl Algorithm {
    /// The algorithm of that name with its parameters; `None` if there is no such algorithm, or
    /// a parameter is unknown or has a value it cannot have.
    pub(crate) fn find(name: &str, given: &[(String, i64)]) -> Option<Self> {
        let mut core = core::ALGORITHMS.iter();
        if let Some((properties, algorithm)) = core.find(|(known, _)| known.name == name) {
            properties.values(given)?;
            let place = Place::Core(*algorithm);
            return Some(Self { properties, place });
        }
        let mut papers = papers::ALGORITHMS.iter();
        let (properties, make) = papers.find(|(known, _)| known.name == name)?;
        let place = Place::Papers(make(&properties.values(given)?));
        Some(Self { properties, place })
    }

    /// Whether late entries are taken up to a latency bound.
    pub(crate) fn is_bounded(self) -> bool {
        matches!(
            self.place,
            Place::Papers(papers::Algorithm::DabaLate { .. })
        )
    }

    /// The same with a latency bound, if it has one.
    pub(crate) fn with_latency(self, bound: i64) -> Self {
        let bounded = Place::Papers(papers::Algorithm::DabaLate { bound });
        let place = if self.is_bounded() {
            bounded
        } else {
            self.place
        };
        Self { place, ..self }
    }

    /// An empty window.
    pub(crate) fn window(self, aggs: &[AggSpec], dtypes: &[DType], ties: Ties) -> Window {
        match self.place {
            Place::Core(algorithm) => plain::window(algorithm, aggs, dtypes, ties),
            Place::Papers(algorithm) => planned::window(algorithm, aggs, dtypes, ties),
        }
    }

    /// An empty window that begins with this algorithm and migrates to fiba.
    pub(crate) fn auto(self, aggs: &[AggSpec], dtypes: &[DType], ties: Ties) -> Window {
        let window = self.window(aggs, dtypes, ties);
        match self.place {
            Place::Core(core::Algorithm::Fiba) => window,
            _ => auto::window(window),
        }
    }

    /// An empty window for a number of ranges.
    pub(crate) fn shared(self, ranges: usize, aggs: &[AggSpec], dtypes: &[DType]) -> Window {
        match self.place {
            Place::Core(algorithm) => shared::window(algorithm, ranges, aggs, dtypes),
            Place::Papers(algorithm) => planned::shared(algorithm, ranges, aggs, dtypes),
        }
    }

    /// An empty window for a number of queries.
    pub(crate) fn queries(self, count: usize, aggs: &[AggSpec], dtypes: &[DType]) -> Window {
        match self.place {
            Place::Core(algorithm) => queries::window(algorithm, count, aggs, dtypes),
            Place::Papers(algorithm) => planned::queries(algorithm, count, aggs, dtypes),
        }
    }
}
