//! Windows with one range over any aggregation, for bindings.

use super::algorithm::Algorithm;
use super::any::{AnyWindow, Typed, fiba};
use super::holistic;
use crate::aggregate::collect::Element;
use crate::aggregate::{
    AggSpec, Aggregation, DType, InvertibleVisitor, SelectiveVisitor, Visitor, plan, plan_few,
    plan_fewest, plan_invertible, plan_selective,
};
use crate::monoid::{Invertible, Selective};
use crate::window::fifo::Fifo;
use crate::window::fifo::daba_lite::DabaLite;
use crate::window::fifo::flat_fit::FlatFit;
use crate::window::fifo::in_order::InOrder;
use crate::window::fifo::slick_deque::SlickDeque;
use crate::window::fifo::subtract_on_evict::SubtractOnEvict;
use crate::window::fifo::two_stacks_lite::TwoStacksLite;
use crate::window::recalculate::Recalculate;
use crate::window::{Batch, Ties};

/// An empty window for a request.
///
/// # Panics
/// Like [`plan`] on invalid requests, on holistic ones unless the algorithm [keeps
/// values](super::algorithm::Properties::keeps_values), and if the aggregations lack the law
/// that the algorithm needs: see [`obeys`](crate::aggregate::obeys).
pub fn window<T: Element>(
    algorithm: Algorithm,
    aggs: &[AggSpec],
    dtypes: &[DType],
    ties: Ties,
) -> Box<dyn AnyWindow<T>> {
    if aggs.iter().any(|agg| agg.kind.is_holistic()) {
        let indexed = match algorithm {
            Algorithm::Fiba => true,
            Algorithm::Recalculate => false,
            other => panic!("{other:?} needs a monoid"),
        };
        let beside = |others: &[AggSpec]| window(algorithm, others, dtypes, ties);
        return holistic::window(indexed, aggs, dtypes, ties, beside);
    }
    let subtracting = || plan_invertible(aggs, dtypes, Subtracting(ties));
    match algorithm {
        Algorithm::Fiba => plan(aggs, dtypes, All(ties)),
        Algorithm::SubtractOnEvict => subtracting().expect("aggregations with an inverse"),
        // With an inverse and one range, SlickDeque is subtract-on-evict.
        Algorithm::SlickDeque => {
            let selecting = plan_selective(aggs, dtypes, Selecting(ties));
            selecting
                .or_else(subtracting)
                .expect("an inverse or a selection")
        }
        Algorithm::DabaLite => plan_few(aggs, dtypes, Few(ties)),
        _ => plan_fewest(aggs, dtypes, Fewest(algorithm, ties)),
    }
}

/// The window of a structure for entries in order.
fn in_order<T, A, F>(fifo: F, ties: Ties) -> Box<dyn AnyWindow<T>>
where
    T: Element,
    A: Aggregation<T>,
    F: Fifo<A>,
{
    Typed::boxed(InOrder::new(fifo, ties), ties)
}

/// For fiba, of all aggregations.
struct All(Ties);

impl<T: Element> Visitor<T> for All {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        fiba(aggregation, self.0, Batch::default())
    }
}

/// For the structure other than fiba that "auto" begins with and that needs no law.
struct Few(Ties);

impl<T: Element> Visitor<T> for Few {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        in_order(DabaLite::new(aggregation), self.0)
    }
}

/// For structures that "auto" never takes for one range.
struct Fewest(Algorithm, Ties);

impl<T: Element> Visitor<T> for Fewest {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        let Self(algorithm, ties) = self;
        match algorithm {
            Algorithm::FlatFit => in_order(FlatFit::new(aggregation), ties),
            Algorithm::TwoStacksLite => in_order(TwoStacksLite::new(aggregation), ties),
            Algorithm::Recalculate => Typed::boxed(Recalculate::new(aggregation, ties), ties),
            other => unreachable!("{other:?} is planned otherwise"),
        }
    }
}

struct Subtracting(Ties);

impl<T: Element> InvertibleVisitor<T> for Subtracting {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Invertible>(self, aggregation: A) -> Self::Out {
        in_order(SubtractOnEvict::new(aggregation), self.0)
    }
}

struct Selecting(Ties);

impl<T: Element> SelectiveVisitor<T> for Selecting {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Selective>(self, aggregation: A) -> Self::Out {
        let Self(ties) = self;
        Typed::boxed(InOrder::new(SlickDeque::new(aggregation), ties), ties)
    }
}
