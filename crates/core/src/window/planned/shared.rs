//! Many ranges over one stream and any aggregation, for bindings.

use super::algorithm::Algorithm;
use super::any::{AnyWindow, Typed};
use crate::aggregate::collect::Element;
use crate::aggregate::{
    AggSpec, Aggregation, DType, InvertibleVisitor, SelectiveVisitor, Visitor, plan_few,
    plan_fewest, plan_invertible, plan_selective,
};
use crate::monoid::{Invertible, Selective};
use crate::window::Ties;
use crate::window::fifo::flat_fit::FlatFit;
use crate::window::fifo::shared::{Shared, SharedWindow};
use crate::window::fifo::slick_deque::SlickDeque;
use crate::window::fifo::slick_deque_inv::SlickDequeInv;
use crate::window::recalculate::RecalculateQueue;

/// An empty window for a number of ranges, whose `query` appends the answers of each range in
/// turn. Call [`slide`](AnyWindow::slide) after inserts.
///
/// # Panics
/// Like [`plain::window`](super::plain::window), and if the algorithm is not
/// [`shared`](super::algorithm::Properties::shared).
pub fn window<T: Element>(
    algorithm: Algorithm,
    ranges: usize,
    aggs: &[AggSpec],
    dtypes: &[DType],
) -> Box<dyn AnyWindow<T>> {
    match algorithm {
        Algorithm::SlickDeque => {
            let selecting = plan_selective(aggs, dtypes, Selecting(ranges));
            let either = selecting.or_else(|| plan_invertible(aggs, dtypes, Subtracting(ranges)));
            either.expect("an inverse or a selection")
        }
        Algorithm::FlatFit => plan_few(aggs, dtypes, Few(ranges)),
        Algorithm::Recalculate => plan_fewest(aggs, dtypes, Fewest(ranges)),
        other => unreachable!("{other:?} serves one range"),
    }
}

fn on<T, A, F>(fifo: F, ranges: usize) -> Box<dyn AnyWindow<T>>
where
    T: Element,
    A: Aggregation<T>,
    F: Shared<A>,
{
    Typed::boxed(SharedWindow::new(fifo, ranges), Ties::Keep)
}

/// For the structure that "auto" takes if the aggregation has no inverse and no selection.
struct Few(usize);

impl<T: Element> Visitor<T> for Few {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        on(FlatFit::new(aggregation), self.0)
    }
}

/// For a structure that "auto" never takes.
struct Fewest(usize);

impl<T: Element> Visitor<T> for Fewest {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        on(RecalculateQueue::new(aggregation), self.0)
    }
}

struct Subtracting(usize);

impl<T: Element> InvertibleVisitor<T> for Subtracting {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Invertible>(self, aggregation: A) -> Self::Out {
        on(SlickDequeInv::new(aggregation, self.0), self.0)
    }
}

struct Selecting(usize);

impl<T: Element> SelectiveVisitor<T> for Selecting {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Selective>(self, aggregation: A) -> Self::Out {
        on(SlickDeque::new(aggregation), self.0)
    }
}
