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
use crate::window::btree::{BTree, Tree};
use crate::window::daba_late::DabaLate;
use crate::window::fiba_published::Options;
use crate::window::fifo::Fifo;
use crate::window::fifo::aba::Aba;
use crate::window::fifo::amta::Amta;
use crate::window::fifo::b_int::BInt;
use crate::window::fifo::daba::Daba;
use crate::window::fifo::daba_chain::DabaChain;
use crate::window::fifo::daba_lite::DabaLite;
use crate::window::fifo::flat_fat::FlatFatQueue;
use crate::window::fifo::flat_fit::FlatFit;
use crate::window::fifo::in_order::InOrder;
use crate::window::fifo::slick_deque::SlickDeque;
use crate::window::fifo::subtract_on_evict::SubtractOnEvict;
use crate::window::fifo::two_stacks::TwoStacks;
use crate::window::fifo::two_stacks_lite::TwoStacksLite;
use crate::window::reactive::Reactive;
use crate::window::recalculate::Recalculate;
use crate::window::{Batch, Ties};

/// An empty window for a request.
///
/// # Panics
/// Like [`plan`] on invalid requests, on holistic ones unless the algorithm
/// [keeps values](Algorithm::keeps_values), and if the aggregations lack the law that the
/// algorithm needs: see [`obeys`](crate::aggregate::obeys).
pub fn window<T: Element>(
    algorithm: Algorithm,
    aggs: &[AggSpec],
    dtypes: &[DType],
    ties: Ties,
) -> Box<dyn AnyWindow<T>> {
    if aggs.iter().any(|agg| agg.kind.is_holistic()) {
        assert!(algorithm.keeps_values(), "{algorithm:?} needs a monoid");
        let beside = |others: &[AggSpec]| window(algorithm, others, dtypes, ties);
        let indexed = algorithm == Algorithm::Fiba;
        return holistic::window(indexed, aggs, dtypes, ties, beside);
    }
    let build = Build { algorithm, ties };
    match algorithm {
        Algorithm::SubtractOnEvict => {
            plan_invertible(aggs, dtypes, build).expect("aggregations with an inverse")
        }
        // With an inverse and one range, SlickDeque is subtract-on-evict.
        Algorithm::SlickDeque => match plan_selective(aggs, dtypes, Selecting(ties)) {
            Some(window) => window,
            None => plan_invertible(aggs, dtypes, build).expect("an inverse or a selection"),
        },
        Algorithm::Fiba => plan(aggs, dtypes, build),
        Algorithm::DabaLite => plan_few(aggs, dtypes, Few(build)),
        _ => plan_fewest(aggs, dtypes, Fewest(build)),
    }
}

struct Build {
    algorithm: Algorithm,
    ties: Ties,
}

impl Build {
    fn in_order<T, A, F>(&self, fifo: F) -> Box<dyn AnyWindow<T>>
    where
        T: Element,
        A: Aggregation<T>,
        F: Fifo<A>,
    {
        Typed::boxed(InOrder::new(fifo, self.ties), self.ties)
    }
}

impl<T: Element> Visitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        fiba(aggregation, self.ties, Batch::default())
    }
}

/// For the structures other than fiba that "auto" begins with.
struct Few(Build);

impl<T: Element> Visitor<T> for Few {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        self.0.in_order(DabaLite::new(aggregation))
    }
}

/// For structures that are kept for comparison.
struct Fewest(Build);

impl<T: Element> Visitor<T> for Fewest {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        let Self(build) = self;
        let ties = build.ties;
        match build.algorithm {
            Algorithm::Amta => build.in_order(Amta::new(aggregation)),
            Algorithm::BInt => build.in_order(BInt::new(aggregation)),
            Algorithm::BTree { arity } => published(aggregation, ties, arity, None),
            Algorithm::FibaPublished { arity, options } => {
                published(aggregation, ties, arity, Some(options))
            }
            Algorithm::FlatFat { capacity } => {
                build.in_order(FlatFatQueue::new(aggregation, capacity))
            }
            Algorithm::FlatFit => build.in_order(FlatFit::new(aggregation)),
            Algorithm::Reactive => Typed::boxed(Reactive::new(aggregation, ties), ties),
            Algorithm::Recalculate => Typed::boxed(Recalculate::new(aggregation, ties), ties),
            Algorithm::TwoStacks { caching } => {
                build.in_order(TwoStacks::new(aggregation, caching))
            }
            Algorithm::TwoStacksLite => build.in_order(TwoStacksLite::new(aggregation)),
            Algorithm::Aba { caching } => build.in_order(Aba::new(aggregation, caching)),
            Algorithm::Daba { caching } => build.in_order(Daba::new(aggregation, caching)),
            Algorithm::DabaChain => build.in_order(DabaChain::new(aggregation, 1)),
            Algorithm::DabaLate { bound } => {
                Typed::boxed(DabaLate::new(aggregation, ties, bound), ties)
            }
            Algorithm::DabaLite
            | Algorithm::Fiba
            | Algorithm::SlickDeque
            | Algorithm::SubtractOnEvict => unreachable!("planned otherwise"),
        }
    }
}

impl<T: Element> InvertibleVisitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T> + Invertible>(self, aggregation: A) -> Self::Out {
        self.in_order(SubtractOnEvict::new(aggregation))
    }
}

/// A published tree. Words get nodes of the size that their arity asks for; larger partials
/// one of two sizes, since the code of each is 75 kB.
fn published<T: Element, A: Aggregation<T>>(
    aggregation: A,
    ties: Ties,
    arity: usize,
    fingers: Option<Options>,
) -> Box<dyn AnyWindow<T>> {
    // A constant, so that only the chosen size is compiled.
    if const { size_of::<A::Partial>() <= 24 } {
        Typed::boxed(BTree::empty(aggregation, ties, arity, fingers), ties)
    } else if arity <= 4 {
        let tree = Tree::<A, 8, 9>::empty(aggregation, ties, arity, fingers);
        Typed::boxed(tree, ties)
    } else {
        let tree = Tree::<A, 32, 33>::empty(aggregation, ties, arity, fingers);
        Typed::boxed(tree, ties)
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
