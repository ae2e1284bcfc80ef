//! A fiba of the entries that wait, since earlier ones may still arrive, or of their slices.

use super::super::fiba::Fiba;
use super::super::{Batch, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer};

pub trait Waiting<M: Monoid>: Send {
    fn len(&mut self) -> usize;
    fn oldest(&mut self) -> Option<i64>;
    fn youngest(&mut self) -> Option<i64>;
    fn insert(&mut self, time: i64, entry: Entry<M>);
    fn insert_batch(&mut self, batch: Batch<M>);
    fn evict(&mut self) -> Option<i64>;
    fn evict_until(&mut self, time: i64) -> usize;
    /// Removes and returns the entries at or before a time.
    fn take_until(&mut self, time: i64) -> Batch<M>;
    /// The fold of the entries in a range of times.
    fn fold(&mut self, lo: i64, hi: i64) -> M::Partial;
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial));
    fn check(&self) -> std::result::Result<(), String>;
    fn bytes(&self) -> usize;
    fn write(&self, out: &mut Writer);
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()>;
    fn boxed_clone(&self) -> Box<dyn Waiting<M>>;
    fn fresh(&self) -> Box<dyn Waiting<M>>;
}

/// Nothing waits yet. [`Ties::Combine`] is for slices: entries join the one that has their time.
pub fn waiting<M: Monoid>(monoid: &M, ties: Ties) -> Box<dyn Waiting<M>> {
    // A constant, so that only the chosen size is compiled.
    if const { M::SMALL > 0 } {
        return Box::new(Fiba::<M, 64, 32>::new(monoid.clone(), ties));
    }
    Box::new(Fiba::<M, 16, 8>::new(monoid.clone(), ties))
}

impl<M: Monoid, const L: usize, const F: usize> Waiting<M> for Fiba<M, L, F> {
    fn len(&mut self) -> usize {
        Window::len(self)
    }
    fn oldest(&mut self) -> Option<i64> {
        Window::oldest(self)
    }
    fn youngest(&mut self) -> Option<i64> {
        Window::youngest(self)
    }
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        Window::insert(self, time, entry);
    }
    fn insert_batch(&mut self, batch: Batch<M>) {
        Window::insert_batch(self, batch);
    }
    fn evict(&mut self) -> Option<i64> {
        Window::evict(self)
    }
    fn evict_until(&mut self, time: i64) -> usize {
        Window::evict_until(self, time)
    }
    fn take_until(&mut self, time: i64) -> Batch<M> {
        let batch = self.batch_between(i64::MIN, time);
        Window::evict_until(self, time);
        batch
    }
    fn fold(&mut self, lo: i64, hi: i64) -> M::Partial {
        Window::query_range(self, lo, hi)
    }
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        Window::for_each(self, visit);
    }
    fn check(&self) -> std::result::Result<(), String> {
        Window::check(self)
    }
    fn bytes(&self) -> usize {
        Window::bytes(self)
    }
    fn write(&self, out: &mut Writer) {
        Window::write(self, out);
    }
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        Window::read(self, input)
    }
    fn boxed_clone(&self) -> Box<dyn Waiting<M>> {
        Box::new(self.clone())
    }
    fn fresh(&self) -> Box<dyn Waiting<M>> {
        Box::new(Self::new(Window::monoid(self).clone(), self.ties()))
    }
}
