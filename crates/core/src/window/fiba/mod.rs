//! placeholder
use super::recalculate::Recalculate;
use super::{Batch, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer};

#[derive(Clone, Debug)]
pub struct Fiba<M: Monoid, const L: usize, const F: usize>(Recalculate<M>);

impl<M: Monoid, const L: usize, const F: usize> Fiba<M, L, F> {
    pub fn new(monoid: M, ties: Ties) -> Self {
        Self(Recalculate::new(monoid, ties))
    }
}
impl<M: Monoid, const L: usize, const F: usize> Window<M> for Fiba<M, L, F> {
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        self.0.insert(time, entry)
    }
    fn insert_batch(&mut self, batch: Batch<M>) {
        self.0.insert_batch(batch)
    }
    fn evict(&mut self) -> Option<i64> {
        self.0.evict()
    }
    fn evict_at(&mut self, time: i64) -> bool {
        self.0.evict_at(time)
    }
    fn evict_until(&mut self, time: i64) -> usize {
        self.0.evict_until(time)
    }
    fn query(&mut self) -> M::Partial {
        self.0.query()
    }
    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        self.0.query_range(lo, hi)
    }
    fn len(&mut self) -> usize {
        self.0.len()
    }
    fn oldest(&mut self) -> Option<i64> {
        self.0.oldest()
    }
    fn youngest(&mut self) -> Option<i64> {
        self.0.youngest()
    }
    fn clear(&mut self) {
        self.0.clear()
    }
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        self.0.for_each(visit)
    }
    fn check(&self) -> std::result::Result<(), String> {
        self.0.check()
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn write(&self, out: &mut Writer) {
        self.0.write(out)
    }
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.0.read(input)
    }
    fn monoid(&self) -> &M {
        self.0.monoid()
    }
}
