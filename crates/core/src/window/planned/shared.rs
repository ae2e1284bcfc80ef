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
use crate::window::fifo::amta::Amta;
use crate::window::fifo::b_int::BInt;
use crate::window::fifo::daba_chain::DabaChain;
use crate::window::fifo::flat_fat::FlatFatQueue;
use crate::window::fifo::flat_fit::FlatFit;
use crate::window::fifo::shared::{Shared, SharedWindow};
use crate::window::fifo::slick_deque::SlickDeque;
use crate::window::fifo::slick_deque_inv::SlickDequeInv;
use crate::window::recalculate::RecalculateQueue;

/// An empty window for a number of ranges, whose `query` appends the answers of each range in
/// turn. Call [`slide`](AnyWindow::slide) after inserts.
///
/// # Panics
/// Like [`plain::window`](super::plain::window), and if the algorithm is not one that
/// [`AlgorithmInfo`](super::algorithm::AlgorithmInfo) calls shared.
pub fn window<T: Element>(
    algorithm: Algorithm,
    ranges: usize,
    aggs: &[AggSpec],
    dtypes: &[DType],
) -> Box<dyn AnyWindow<T>> {
    let build = Build { algorithm, ranges };
    match algorithm {
        Algorithm::SlickDeque => match plan_selective(aggs, dtypes, Selecting(ranges)) {
            Some(window) => window,
            None => plan_invertible(aggs, dtypes, build).expect("an inverse or a selection"),
        },
        Algorithm::FlatFit => plan_few(aggs, dtypes, Few(ranges)),
        _ => plan_fewest(aggs, dtypes, build),
    }
}

struct Build {
    algorithm: Algorithm,
    ranges: usize,
}

impl Build {
    fn on<T, A, F>(&self, fifo: F) -> Box<dyn AnyWindow<T>>
    where
        T: Element,
        A: Aggregation<T>,
        F: Shared<A>,
    {
        Typed::boxed(SharedWindow::new(fifo, self.ranges), Ties::Keep)
    }
}

impl<T: Element> Visitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        match self.algorithm {
            Algorithm::Amta => self.on(Amta::new(aggregation)),
            Algorithm::BInt => self.on(BInt::new(aggregation)),
            Algorithm::DabaChain => self.on(DabaChain::new(aggregation, self.ranges)),
            Algorithm::FlatFat { capacity } => self.on(FlatFatQueue::new(aggregation, capacity)),
            Algorithm::Recalculate => self.on(RecalculateQueue::new(aggregation)),
            other => unreachable!("{other:?} is planned otherwise"),
        }
    }
}

/// For the structure that "auto" takes if the aggregation has no inverse and no selection.
struct Few(usize);

impl<T: Element> Visitor<T> for Few {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        let window = SharedWindow::new(FlatFit::new(aggregation), self.0);
        Typed::boxed(window, Ties::Keep)
    }
}

impl<T: Element> InvertibleVisitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Invertible>(self, aggregation: A) -> Self::Out {
        self.on(SlickDequeInv::new(aggregation, self.ranges))
    }
}

struct Selecting(usize);

impl<T: Element> SelectiveVisitor<T> for Selecting {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Selective>(self, aggregation: A) -> Self::Out {
        let window = SharedWindow::new(SlickDeque::new(aggregation), self.0);
        Typed::boxed(window, Ties::Keep)
    }
}
