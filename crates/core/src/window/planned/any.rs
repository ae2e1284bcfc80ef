//! Any window over any aggregation as one object, for bindings.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::aggregate::collect::Element;
use crate::aggregate::column::Column;
use crate::aggregate::deferred::Ledger;
use crate::aggregate::widening::{self, Erased};
use crate::aggregate::{Aggregation, Answer, BatchVisitor, Cell};
use crate::snapshot::{Reader, Result, Writer};
use crate::window::fiba::Fiba;
use crate::window::fifo::shared::Reach;
use crate::window::queries::{Due, Planning};
use crate::window::shape::Shape;
use crate::window::{Batch, Refused, Ties, Window};

/// The value of an operation, or the refusal.
pub type Granted<V> = std::result::Result<V, Refused>;

/// A window with its aggregation, rows in and answers out. Methods as in [`Window`];
/// those that are refused change nothing.
pub trait AnyWindow<T>: Send {
    /// Whether an entry may be inserted at this time.
    fn admits(&mut self, time: i64) -> Granted<()>;
    fn insert(&mut self, time: i64, row: &[Cell<T>]) -> Granted<()>;
    /// Inserts rows in any order, all or none; those of equal times in the order given.
    fn insert_many(&mut self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Granted<()>;
    fn evict(&mut self) -> Option<i64>;
    fn evict_at(&mut self, time: i64) -> Granted<bool>;
    fn evict_until(&mut self, time: i64) -> usize;
    /// Appends the answers over all entries; one after the other those of each range, if
    /// there are [several](super::shared).
    fn query(&mut self, out: &mut Vec<Answer<T>>);
    /// As in [`Window::slide`].
    fn slide(&mut self, _reaches: &[Reach]) {}
    /// As in [`Window::planning`].
    fn planning(&mut self) -> Option<&mut dyn Planning> {
        None
    }
    /// As in [`Window::take_due`].
    fn take_due(&mut self) -> Vec<Due<Vec<Answer<T>>>> {
        Vec::new()
    }
    fn query_range(&mut self, lo: i64, hi: i64, out: &mut Vec<Answer<T>>) -> Granted<()>;
    fn len(&mut self) -> usize;
    fn is_empty(&mut self) -> bool;
    fn oldest(&mut self) -> Option<i64>;
    fn youngest(&mut self) -> Option<i64>;
    fn clear(&mut self);
    /// The time of each entry and the answers over it alone.
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, Vec<Answer<T>>));
    fn check(&self) -> std::result::Result<(), String>;
    fn bytes(&self) -> usize;
    /// The terms that wait for a user's function, if the aggregation can have some.
    fn ledger(&self) -> Option<Arc<Ledger<T>>>;
    fn write(&self, out: &mut Writer);
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()>;
    fn boxed_clone(&self) -> Box<dyn AnyWindow<T>>;
    /// The present tree, for pictures; `None` without one.
    fn shape(&mut self) -> Option<Shape<Vec<Answer<T>>>>;
    /// A fiba of all entries; this window is empty afterwards.
    fn hand_over(&mut self) -> Box<dyn AnyWindow<T>>;
    /// Takes all entries out, for [`AnyWindow::insert_widened`].
    fn take_erased(&mut self) -> Erased;
    /// Inserts entries of a window for the same request over other types, in order, into an
    /// empty window: `widened` columns held int64 there and hold float64 here.
    ///
    /// # Errors
    /// As of [`Aggregation::widen`]; nothing is inserted.
    fn insert_widened(&mut self, entries: Erased, widened: &[bool]) -> widening::Result<()>;
    /// The refusal that made an [`auto`](super::auto) window migrate to fiba, if it has.
    fn cause(&self) -> Option<Refused> {
        None
    }
    /// Migrates to fiba if this is an [`auto`](super::auto) window that has not.
    fn migrate(&mut self, _cause: Refused) {}
}

/// A fiba that holds a sorted batch, its nodes sized by what a combine costs.
pub(super) fn fiba<T: Element, A: Aggregation<T>>(
    aggregation: A,
    ties: Ties,
    entries: Batch<A>,
) -> Box<dyn AnyWindow<T>> {
    if const { A::SMALL > 0 } {
        let mut window = Fiba::<A, 64, 32>::new(aggregation, ties);
        window.insert_batch(entries);
        return Typed::boxed(window, ties);
    }
    let mut window = Fiba::<A, 16, 8>::new(aggregation, ties);
    window.insert_batch(entries);
    Typed::boxed(window, ties)
}

/// A fiba for the entries of another window.
struct Successor(Ties);

impl<T: Element> BatchVisitor<T> for Successor {
    type Out = Box<dyn AnyWindow<T>>;

    fn visit_batch<A: Aggregation<T>>(self, aggregation: A, batch: Batch<A>) -> Self::Out {
        fiba(aggregation, self.0, batch)
    }
}

/// Not inline: the same for all windows with a monoid.
#[inline(never)]
fn successor<T: Element, A: Aggregation<T>>(
    aggregation: A,
    entries: Batch<A>,
    ties: Ties,
) -> Box<dyn AnyWindow<T>> {
    aggregation.hand_over(entries, Successor(ties))
}

/// The rows of columns, sorted. Not inline: the same for all windows with a monoid.
#[inline(never)]
fn staged<T: Element, A: Aggregation<T>>(
    aggregation: &A,
    times: Vec<i64>,
    columns: &[Column<'_, T>],
) -> Batch<A> {
    let mut batch = aggregation.stage_columns(times, columns);
    batch.sort();
    batch
}

/// Erases the types of aggregation and window.
pub struct Typed<A, W> {
    window: W,
    ties: Ties,
    aggregation: PhantomData<fn() -> A>,
}

impl<A, W> Typed<A, W> {
    pub fn boxed<T: Element>(window: W, ties: Ties) -> Box<dyn AnyWindow<T>>
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
    fn admits(&mut self, time: i64) -> Granted<()> {
        self.window.admits(time)
    }
    fn insert(&mut self, time: i64, row: &[Cell<T>]) -> Granted<()> {
        self.window.admits(time)?;
        let entry = self.window.monoid().entry(row);
        self.window.insert(time, entry);
        Ok(())
    }
    fn insert_many(&mut self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Granted<()> {
        let mut batch = staged(self.window.monoid(), times, columns);
        if let (Some(first), Some(last)) = (batch.times.first(), batch.times.last()) {
            self.window.admits(*first)?;
            self.window.admits(*last)?;
        }
        batch.combine_ties(self.window.monoid(), self.ties);
        self.window.insert_batch(batch);
        Ok(())
    }
    fn evict(&mut self) -> Option<i64> {
        self.window.evict()
    }
    fn evict_at(&mut self, time: i64) -> Granted<bool> {
        self.window.admits_evict(time)?;
        Ok(self.window.evict_at(time))
    }
    fn evict_until(&mut self, time: i64) -> usize {
        self.window.evict_until(time)
    }
    fn query(&mut self, out: &mut Vec<Answer<T>>) {
        let each = |monoid: &A, partial| monoid.answers(&partial, out);
        self.window.query_each(each);
    }
    fn slide(&mut self, reaches: &[Reach]) {
        self.window.slide(reaches);
    }
    fn planning(&mut self) -> Option<&mut dyn Planning> {
        self.window.planning()
    }
    fn take_due(&mut self) -> Vec<Due<Vec<Answer<T>>>> {
        let due = self.window.take_due();
        let monoid = self.window.monoid();
        let lowered = due.into_iter().map(|Due { query, end, answer }| {
            let mut answers = Vec::new();
            monoid.answers(&answer, &mut answers);
            let answer = answers;
            Due { query, end, answer }
        });
        lowered.collect()
    }
    fn query_range(&mut self, lo: i64, hi: i64, out: &mut Vec<Answer<T>>) -> Granted<()> {
        self.window.admits_range(lo, hi)?;
        let partial = self.window.query_range(lo, hi);
        self.window.monoid().answers(&partial, out);
        Ok(())
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
    fn hand_over(&mut self) -> Box<dyn AnyWindow<T>> {
        let aggregation = self.window.monoid().clone();
        successor(aggregation, self.window.take(), self.ties)
    }
    fn take_erased(&mut self) -> Erased {
        let batch = self.window.take();
        self.window.monoid().erase(batch)
    }
    fn insert_widened(&mut self, entries: Erased, widened: &[bool]) -> widening::Result<()> {
        let batch = self.window.monoid().widen(entries, widened)?;
        self.window.insert_batch(batch);
        Ok(())
    }
}
