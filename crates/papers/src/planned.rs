//! Windows of these algorithms over any aggregation, for bindings: as
//! [`slidewise_core::window::planned`] makes those of the core.

use slidewise_core::aggregate::collect::Element;
use slidewise_core::aggregate::{AggSpec, Aggregation, DType, Visitor, plan_fewest};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::shared::{Shared, SharedWindow};
use slidewise_core::window::planned::any::{AnyWindow, Typed};
use slidewise_core::window::queries::QueryWindow;
use slidewise_core::window::queries::final_aggregator::{FinalAggregator, of_structure};
use slidewise_core::window::{Ties, Window};

use crate::algorithm::Algorithm;
use crate::btree::{BTree, Options, Tree};
use crate::daba_late::DabaLate;
use crate::fifo::aba::Aba;
use crate::fifo::amta::Amta;
use crate::fifo::b_int::BInt;
use crate::fifo::daba::Daba;
use crate::fifo::daba_chain::DabaChain;
use crate::fifo::flat_fat::FlatFatQueue;
use crate::fifo::two_stacks::TwoStacks;
use crate::reactive::Reactive;

/// An empty window for a request.
///
/// # Panics
/// Like [`plan`](slidewise_core::aggregate::plan) on invalid requests and on holistic ones.
pub fn window<T: Element>(
    algorithm: Algorithm,
    aggs: &[AggSpec],
    dtypes: &[DType],
    ties: Ties,
) -> Box<dyn AnyWindow<T>> {
    plan_fewest(aggs, dtypes, Alone { algorithm, ties })
}

/// An empty window for a number of ranges: see
/// [`shared`](slidewise_core::window::planned::shared).
///
/// # Panics
/// Like [`window`], and if the algorithm serves one range only.
pub fn shared<T: Element>(
    algorithm: Algorithm,
    ranges: usize,
    aggs: &[AggSpec],
    dtypes: &[DType],
) -> Box<dyn AnyWindow<T>> {
    plan_fewest(aggs, dtypes, ForRanges { algorithm, ranges })
}

/// An empty window for a number of queries: see
/// [`queries`](slidewise_core::window::planned::queries).
///
/// # Panics
/// Like [`window`], and if the algorithm serves one range only.
pub fn queries<T: Element>(
    algorithm: Algorithm,
    queries: usize,
    aggs: &[AggSpec],
    dtypes: &[DType],
) -> Box<dyn AnyWindow<T>> {
    plan_fewest(aggs, dtypes, ForQueries { algorithm, queries })
}

struct Alone {
    algorithm: Algorithm,
    ties: Ties,
}

impl Alone {
    fn on<T, A, W>(&self, window: W) -> Box<dyn AnyWindow<T>>
    where
        T: Element,
        A: Aggregation<T>,
        W: Window<A> + 'static,
    {
        Typed::boxed(window, self.ties)
    }

    fn in_order<T, A, F>(&self, fifo: F) -> Box<dyn AnyWindow<T>>
    where
        T: Element,
        A: Aggregation<T>,
        F: Fifo<A>,
    {
        self.on(InOrder::new(fifo, self.ties))
    }

    /// A published tree. Words get nodes of the size that their arity asks for; larger
    /// partials one of two sizes, since the code of each is 75 kB.
    fn tree<T: Element, A: Aggregation<T>>(
        &self,
        monoid: A,
        arity: usize,
        fingers: Option<Options>,
    ) -> Box<dyn AnyWindow<T>> {
        // A constant, so that only the chosen size is compiled.
        if const { size_of::<A::Partial>() <= 24 } {
            self.on(BTree::empty(monoid, self.ties, arity, fingers))
        } else if arity <= 4 {
            self.on(Tree::<A, 8, 9>::empty(monoid, self.ties, arity, fingers))
        } else {
            self.on(Tree::<A, 32, 33>::empty(monoid, self.ties, arity, fingers))
        }
    }
}

impl<T: Element> Visitor<T> for Alone {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, monoid: A) -> Self::Out {
        let ties = self.ties;
        match self.algorithm {
            Algorithm::Amta => self.in_order(Amta::new(monoid)),
            Algorithm::FlatFat { capacity } => self.in_order(FlatFatQueue::new(monoid, capacity)),
            Algorithm::Reactive { capacity } => {
                self.on(Reactive::with_capacity(monoid, ties, capacity))
            }
            Algorithm::BInt => self.in_order(BInt::new(monoid)),
            Algorithm::DabaChain => self.in_order(DabaChain::new(monoid, 1)),
            Algorithm::DabaLate { bound } => self.on(DabaLate::new(monoid, ties, bound)),
            Algorithm::BTree { arity } => self.tree(monoid, arity, None),
            Algorithm::FibaPublished { arity, options } => self.tree(monoid, arity, Some(options)),
            Algorithm::Daba { caching } => self.in_order(Daba::new(monoid, caching)),
            Algorithm::Aba { caching } => self.in_order(Aba::new(monoid, caching)),
            Algorithm::TwoStacks { caching } => self.in_order(TwoStacks::new(monoid, caching)),
        }
    }
}

struct ForRanges {
    algorithm: Algorithm,
    ranges: usize,
}

impl ForRanges {
    fn on<T, A, F>(&self, fifo: F) -> Box<dyn AnyWindow<T>>
    where
        T: Element,
        A: Aggregation<T>,
        F: Shared<A>,
    {
        Typed::boxed(SharedWindow::new(fifo, self.ranges), Ties::Keep)
    }
}

impl<T: Element> Visitor<T> for ForRanges {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, monoid: A) -> Self::Out {
        match self.algorithm {
            Algorithm::Amta => self.on(Amta::new(monoid)),
            Algorithm::BInt => self.on(BInt::new(monoid)),
            Algorithm::DabaChain => self.on(DabaChain::new(monoid, self.ranges)),
            Algorithm::FlatFat { capacity } => self.on(FlatFatQueue::new(monoid, capacity)),
            other => panic!("{other:?} serves one range"),
        }
    }
}

struct ForQueries {
    algorithm: Algorithm,
    queries: usize,
}

/// The final aggregator of an algorithm.
pub fn aggregator<M: Monoid>(algorithm: Algorithm, monoid: &M) -> Box<dyn FinalAggregator<M>> {
    let monoid = monoid.clone();
    match algorithm {
        Algorithm::Amta => of_structure(Amta::new(monoid), 1),
        Algorithm::BInt => of_structure(BInt::new(monoid), 1),
        Algorithm::DabaChain => of_structure(DabaChain::new(monoid, 1), 1),
        Algorithm::FlatFat { capacity } => of_structure(FlatFatQueue::new(monoid, capacity), 1),
        other => panic!("{other:?} serves one range"),
    }
}

impl<T: Element> Visitor<T> for ForQueries {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, monoid: A) -> Self::Out {
        let aggregator = aggregator(self.algorithm, &monoid);
        let window = QueryWindow::new(monoid, aggregator, self.queries);
        Typed::boxed(window, Ties::Keep)
    }
}
