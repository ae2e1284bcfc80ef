//! Any window over any aggregation, behind one object: what bindings hold.

use std::marker::PhantomData;
use std::sync::Arc;

use super::fiba::Fiba;
use super::recalculate::Recalculate;
use super::shape::Shape;
use super::{Ties, Window};
use crate::aggregate::collect::Element;
use crate::aggregate::column::Column;
use crate::aggregate::deferred::Ledger;
use crate::aggregate::{AggSpec, Aggregation, Answer, Cell, DType, Visitor, plan};
use crate::snapshot::{Reader, Result, Writer};

/// A window with its aggregation, rows in and answers out. Methods as in [`Window`].
pub trait AnyWindow<T>: Send {
    fn insert(&mut self, time: i64, row: &[Cell<T>]);
    /// Inserts rows in any order; those of equal times in the order given.
    fn insert_many(&mut self, times: Vec<i64>, columns: &[Column<'_, T>]);
    fn evict(&mut self) -> Option<i64>;
    fn evict_at(&mut self, time: i64) -> bool;
    fn evict_until(&mut self, time: i64) -> usize;
    fn query(&mut self, out: &mut Vec<Answer<T>>);
    fn query_range(&mut self, lo: i64, hi: i64, out: &mut Vec<Answer<T>>);
    fn len(&mut self) -> usize;
    fn is_empty(&mut self) -> bool;
    fn oldest(&mut self) -> Option<i64>;
    fn youngest(&mut self) -> Option<i64>;
    fn clear(&mut self);
    /// Every entry's time and the answers over it alone.
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, Vec<Answer<T>>));
    fn check(&self) -> std::result::Result<(), String>;
    fn bytes(&self) -> usize;
    /// The terms that wait for a user's function, if there can be any.
    fn ledger(&self) -> Option<Arc<Ledger<T>>>;
    fn write(&self, out: &mut Writer);
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()>;
    fn boxed_clone(&self) -> Box<dyn AnyWindow<T>>;
    /// The tree as it stands, for pictures; `None` where there is none.
    fn shape(&mut self) -> Option<Shape<Vec<Answer<T>>>>;
}

/// The windows that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Fiba,
    Recalculate,
}

/// An empty window for a request. Panics like [`plan`] on invalid requests.
pub fn window<T: Element>(
    algorithm: Algorithm,
    aggs: &[AggSpec],
    dtypes: &[DType],
    ties: Ties,
) -> Box<dyn AnyWindow<T>> {
    plan(aggs, dtypes, Build { algorithm, ties })
}

struct Build {
    algorithm: Algorithm,
    ties: Ties,
}

impl<T: Element> Visitor<T> for Build {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit<A: Aggregation<T>>(self, aggregation: A) -> Self::Out {
        let ties = self.ties;
        match self.algorithm {
            Algorithm::Recalculate => Typed::boxed(Recalculate::new(aggregation, ties), ties),
            Algorithm::Fiba if A::SMALL > 0 => {
                Typed::boxed(Fiba::<A, 64, 32>::new(aggregation, ties), ties)
            }
            Algorithm::Fiba => Typed::boxed(Fiba::<A, 16, 8>::new(aggregation, ties), ties),
        }
    }
}

/// Forgets which aggregation and which window it is.
struct Typed<A, W> {
    window: W,
    ties: Ties,
    aggregation: PhantomData<fn() -> A>,
}

impl<A, W> Typed<A, W> {
    fn boxed<T: Element>(window: W, ties: Ties) -> Box<dyn AnyWindow<T>>
    where
        A: Aggregation<T>,
        W: Window<A> + 'static,
    {
        Box::new(Self {
            window,
            ties,
            aggregation: PhantomData,
        })
    }
}

impl<T, A, W> AnyWindow<T> for Typed<A, W>
where
    T: Element,
    A: Aggregation<T>,
    W: Window<A> + 'static,
{
    fn insert(&mut self, time: i64, row: &[Cell<T>]) {
        let entry = self.window.monoid().entry(row);
        self.window.insert(time, entry);
    }
    fn insert_many(&mut self, times: Vec<i64>, columns: &[Column<'_, T>]) {
        let mut batch = self.window.monoid().gather(times, columns);
        batch.sort();
        batch.settle_ties(self.window.monoid(), self.ties);
        self.window.insert_batch(batch);
    }
    fn evict(&mut self) -> Option<i64> {
        self.window.evict()
    }
    fn evict_at(&mut self, time: i64) -> bool {
        self.window.evict_at(time)
    }
    fn evict_until(&mut self, time: i64) -> usize {
        self.window.evict_until(time)
    }
    fn query(&mut self, out: &mut Vec<Answer<T>>) {
        let partial = self.window.query();
        self.window.monoid().answers(&partial, out);
    }
    fn query_range(&mut self, lo: i64, hi: i64, out: &mut Vec<Answer<T>>) {
        let partial = self.window.query_range(lo, hi);
        self.window.monoid().answers(&partial, out);
    }
    fn len(&mut self) -> usize {
        self.window.len()
    }
    fn is_empty(&mut self) -> bool {
        self.window.is_empty()
    }
    fn oldest(&mut self) -> Option<i64> {
        self.window.oldest()
    }
    fn youngest(&mut self) -> Option<i64> {
        self.window.youngest()
    }
    fn clear(&mut self) {
        self.window.clear();
    }
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, Vec<Answer<T>>)) {
        let aggregation = self.window.monoid().clone();
        self.window.for_each(&mut |time, partial| {
            let mut answers = Vec::new();
            aggregation.answers(&partial, &mut answers);
            visit(time, answers);
        });
    }
    fn check(&self) -> std::result::Result<(), String> {
        self.window.check()
    }
    fn bytes(&self) -> usize {
        self.window.bytes()
    }
    fn ledger(&self) -> Option<Arc<Ledger<T>>> {
        self.window.monoid().ledger().cloned()
    }
    fn write(&self, out: &mut Writer) {
        self.window.write(out);
    }
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.window.read(input)
    }
    fn boxed_clone(&self) -> Box<dyn AnyWindow<T>> {
        Self::boxed(self.window.clone(), self.ties)
    }
    fn shape(&mut self) -> Option<Shape<Vec<Answer<T>>>> {
        let aggregation = self.window.monoid().clone();
        let shape = self.window.shape()?;
        Some(shape.map(|partial| {
            let mut answers = Vec::new();
            aggregation.answers(&partial, &mut answers);
            answers
        }))
    }
}
