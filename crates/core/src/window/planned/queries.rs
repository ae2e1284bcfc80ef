//! Queries with range and slide over any aggregation, for bindings.

use super::algorithm::Algorithm;
use super::any::{AnyWindow, Typed};
use crate::aggregate::collect::Element;
use crate::aggregate::{
    AggSpec, Aggregation, DType, InvertibleVisitor, SelectiveVisitor, Visitor, plan_fewest,
    plan_invertible, plan_selective,
};
use crate::monoid::{Invertible, Monoid, Selective};
use crate::window::Ties;
use crate::window::fifo::flat_fit::FlatFit;
use crate::window::fifo::slick_deque::SlickDeque;
use crate::window::fifo::slick_deque_inv::SlickDequeInv;
use crate::window::queries::QueryWindow;
use crate::window::queries::final_aggregator::{FinalAggregator, fiba, of_structure};
use crate::window::recalculate::RecalculateQueue;

/// An empty window for a number of queries, which [`planning`](AnyWindow::planning) starts. Its
/// `query` appends the present answers of each query in turn.
///
/// # Panics
/// Like [`plain::window`](super::plain::window), and if the algorithm does not serve
/// [`queries`](super::algorithm::Properties::queries).
pub fn window<T: Element>(
    algorithm: Algorithm,
    queries: usize,
    aggs: &[AggSpec],
    dtypes: &[DType],
) -> Box<dyn AnyWindow<T>> {
    let build = Build { algorithm, queries };
    match algorithm {
        Algorithm::SlickDeque => match plan_selective(aggs, dtypes, Selecting(queries)) {
            Some(window) => window,
            None => plan_invertible(aggs, dtypes, build).expect("an inverse or a selection"),
        },
        _ => plan_fewest(aggs, dtypes, build),
    }
}

struct Build {
    algorithm: Algorithm,
    queries: usize,
}

fn on<T: Element, A: Aggregation<T>>(
    aggregation: A,
    aggregator: Box<dyn FinalAggregator<A>>,
    queries: usize,
) -> Box<dyn AnyWindow<T>> {
    Typed::boxed(
        QueryWindow::new(aggregation, aggregator, queries),
        Ties::Keep,
    )
}

/// The final aggregator of an algorithm without a law of its own.
pub fn aggregator<M: Monoid>(algorithm: Algorithm, monoid: &M) -> Box<dyn FinalAggregator<M>> {
    let monoid = monoid.clone();
    match algorithm {
        Algorithm::Fiba => fiba(&monoid),
        Algorithm::FlatFit => of_structure(FlatFit::new(monoid), 1),
        Algorithm::Recalculate => of_structure(RecalculateQueue::new(monoid), 1),
        other => unreachable!("{other:?} serves one range"),
    }
}

impl<T: Element> Visitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        let aggregator = aggregator(self.algorithm, &aggregation);
        on(aggregation, aggregator, self.queries)
    }
}

impl<T: Element> InvertibleVisitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Invertible>(self, aggregation: A) -> Self::Out {
        let aggregator = of_structure(SlickDequeInv::new(aggregation.clone(), 1), 1);
        on(aggregation, aggregator, self.queries)
    }
}

struct Selecting(usize);

impl<T: Element> SelectiveVisitor<T> for Selecting {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Selective>(self, aggregation: A) -> Self::Out {
        let aggregator = of_structure(SlickDeque::new(aggregation.clone()), 1);
        on(aggregation, aggregator, self.0)
    }
}
