//! Entries that keep a value and an aggregate, for [`two_stacks`](super::two_stacks) and, in
//! one queue, for [`aba`](super::aba) and [`daba`](super::daba).
//!
//! The papers draw two queues, *vals* and *aggs*, of the same length. An item of one queue
//! holds both, so that one pair of ends serves them.

use std::mem::needs_drop;

use super::QueryCache;
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};
use slidewise_core::window::fifo::checks::check_values;
use slidewise_core::window::fifo::join;
use slidewise_core::window::fifo::queue::Queue;

#[derive(Clone, Debug)]
pub struct Item<P> {
    pub val: P,
    pub agg: P,
}

impl<P> Item<P> {
    pub fn read<M: Monoid<Partial = P>>(monoid: &M, input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            val: monoid.read_partial(input)?,
            agg: monoid.read_partial(input)?,
        })
    }
}

impl<P: Codec> Codec for Item<P> {
    const MIN_BYTES: usize = 2 * P::MIN_BYTES;

    fn write(&self, out: &mut Writer) {
        self.val.write(out);
        self.agg.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            val: P::read(input)?,
            agg: P::read(input)?,
        })
    }
}

/// A queue of items in two parts, F..B and B..E: the aggregate of the first item is the fold
/// of the front, that of the last item the fold of the back. `back` is a copy of the latter
/// while there is a back, so that an insert and a query of small partials need not read the
/// queue for it.
#[derive(Clone, Debug)]
pub struct Items<M: Monoid> {
    pub monoid: M,
    pub queue: Queue<Item<M::Partial>>,
    back: M::Partial,
    cache: QueryCache<M::Partial>,
}

impl<M: Monoid> Items<M> {
    /// Whether `back` is kept: large partials, and those that own memory, cost more to copy.
    const COPIES: bool = !needs_drop::<M::Partial>() && size_of::<M::Partial>() <= 64;

    pub fn new(monoid: M, caching: bool) -> Self {
        Self {
            back: monoid.identity(),
            monoid,
            queue: Queue::default(),
            cache: QueryCache::new(caching),
        }
    }

    pub fn is_caching(&self) -> bool {
        self.cache.is_on()
    }

    #[inline]
    pub fn val(&self, at: usize) -> &M::Partial {
        &self.queue.get(at).val
    }

    #[inline]
    pub fn agg(&self, at: usize) -> &M::Partial {
        &self.queue.get(at).agg
    }

    #[inline]
    pub fn set_agg(&mut self, at: usize, agg: M::Partial) {
        self.queue.get_mut(at).agg = agg;
    }

    /// Σ of the front, if there is one.
    #[inline]
    pub fn sum_f(&self, b: usize) -> Option<&M::Partial> {
        let f = self.queue.head();
        (f != b).then(|| self.agg(f))
    }

    /// Σ of the back, if there is one.
    #[inline]
    pub fn sum_b(&self, b: usize) -> Option<&M::Partial> {
        let e = self.queue.tail();
        let last = || {
            if Self::COPIES {
                &self.back
            } else {
                self.agg(e - 1)
            }
        };
        (b != e).then(last)
    }

    #[inline(always)]
    pub fn insert<const PLAIN: bool>(&mut self, val: M::Partial, b: usize) {
        self.cache.invalidate();
        let agg = join(&self.monoid, self.sum_b(b), Some(&val));
        if Self::COPIES {
            self.back = agg.clone();
        }
        self.queue.push_as::<PLAIN>(Item { val, agg });
    }

    #[inline(always)]
    pub fn evict<const PLAIN: bool>(&mut self) {
        self.cache.invalidate();
        self.queue.evict_as::<PLAIN>(|| Item {
            val: self.monoid.identity(),
            agg: self.monoid.identity(),
        });
    }

    #[inline(always)]
    pub fn query(&mut self, b: usize) -> M::Partial {
        if let Some(answer) = self.cache.kept() {
            return answer;
        }
        let answer = join(&self.monoid, self.sum_f(b), self.sum_b(b));
        self.cache.keep(&answer);
        answer
    }

    /// The aggregates of positions from..to.
    pub fn aggs(
        &self,
        from: usize,
        to: usize,
    ) -> impl DoubleEndedIterator<Item = &M::Partial> + ExactSizeIterator {
        (from..to).map(|at| self.agg(at))
    }

    pub fn check_values(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let kept = self.queue.iter().map(|item| &item.val);
        check_values(&self.monoid, values, kept)
    }

    /// Checks the copy of the aggregate of the back.
    pub fn check_back(&self, b: usize) -> std::result::Result<(), String> {
        let e = self.queue.tail();
        if !Self::COPIES || b == e || self.monoid.same(self.agg(e - 1), &self.back) {
            return Ok(());
        }
        Err(format!("{:?} instead of {:?}", self.back, self.agg(e - 1)))
    }

    pub fn write(&self, out: &mut Writer) {
        self.queue.write(out);
    }

    pub fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.queue = Queue::read(input, |input| Item::read(&self.monoid, input))?;
        Ok(())
    }

    /// Copies the fold of the back, which begins at `b`, after `read`.
    pub fn copy_back(&mut self, b: usize) {
        let e = self.queue.tail();
        if Self::COPIES && b != e {
            self.back = self.agg(e - 1).clone();
        }
    }
}
