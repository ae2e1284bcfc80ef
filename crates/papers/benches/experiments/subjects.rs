//! What is measured, behind one interface.

use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::{Batch, Window};

/// The measurements, as the members of a JSON object.
pub type Answer = Result<String, String>;

/// The operations of a round on a window.
pub trait Subject<M: Monoid> {
    /// Whether its costs repeat every n items, so that whole windows are measured.
    const PERIODIC: bool;

    fn insert(&mut self, time: i64, value: M::In);
    fn evict(&mut self);
    /// Evicts the m oldest entries, which are those up to a time.
    fn evict_bulk(&mut self, m: usize, until: i64);
    /// Inserts at this time and those that follow it.
    fn insert_bulk(&mut self, first: i64, values: Vec<M::In>);
    fn query(&mut self) -> M::Partial;
    fn bytes(&self) -> usize;
}

/// A structure without times.
pub struct Bare<F>(pub F);

impl<M: Monoid, F: Fifo<M>> Subject<M> for Bare<F> {
    const PERIODIC: bool = true;

    #[inline]
    fn insert(&mut self, _time: i64, value: M::In) {
        let partial = self.0.monoid().lift(&value);
        self.0.insert(partial);
    }
    #[inline]
    fn evict(&mut self) {
        self.0.evict();
    }
    fn evict_bulk(&mut self, m: usize, _until: i64) {
        self.0.evict_many(m);
    }
    fn insert_bulk(&mut self, _first: i64, values: Vec<M::In>) {
        let monoid = self.0.monoid().clone();
        let partials = values.iter().map(|value| monoid.lift(value));
        self.0.insert_many(partials);
    }
    #[inline]
    fn query(&mut self) -> M::Partial {
        self.0.query()
    }
    fn bytes(&self) -> usize {
        self.0.bytes() + size_of::<F>()
    }
}

/// A window with times.
pub struct Timed<W, const PERIODIC: bool>(pub W);

impl<M: Monoid, W: Window<M>, const PERIODIC: bool> Subject<M> for Timed<W, PERIODIC> {
    const PERIODIC: bool = PERIODIC;

    #[inline]
    fn insert(&mut self, time: i64, value: M::In) {
        self.0.insert(time, Entry::Raw(value));
    }
    #[inline]
    fn evict(&mut self) {
        self.0.evict();
    }
    fn evict_bulk(&mut self, _m: usize, until: i64) {
        self.0.evict_until(until);
    }
    fn insert_bulk(&mut self, first: i64, values: Vec<M::In>) {
        self.0.insert_batch(Batch {
            times: (first..first + values.len() as i64).collect(),
            values,
            lifted: Vec::new(),
        });
    }
    #[inline]
    fn query(&mut self) -> M::Partial {
        self.0.query()
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
