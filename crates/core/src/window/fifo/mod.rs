//! The common interface of the papers' in-order structures: first in, first out.
//!
//! They keep no times: a value is inserted after the youngest, and the oldest is evicted.
//! [`InOrder`](in_order::InOrder) makes a window of any of them.

pub mod checks;
pub mod daba_lite;
pub mod daba_pointers;
pub(super) mod entries;
pub mod flat_fit;
pub mod in_order;
pub mod queue;
mod rings;
pub mod shared;
pub mod slick_deque;
pub mod slick_deque_inv;
pub mod subtract_on_evict;
pub mod two_stacks_lite;

use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// A queue of lifted values that answers with the fold of all of them.
pub trait Fifo<M: Monoid>: Clone + Send + 'static {
    /// Whether [`Fifo::query_part`] answers.
    const PARTS: bool = false;

    fn monoid(&self) -> &M;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts behind the youngest.
    fn insert(&mut self, value: M::Partial);
    /// Evicts the oldest, which must be there.
    fn evict(&mut self);
    /// Evicts the `count` oldest, which must be there.
    fn evict_many(&mut self, count: usize) {
        for _ in 0..count {
            self.evict_aside();
        }
    }
    /// Inserts values in sequence.
    fn insert_many(&mut self, values: impl ExactSizeIterator<Item = M::Partial>) {
        for value in values {
            self.insert_aside(value);
        }
    }
    /// [`Fifo::insert`] in any state, by a structure that is not kept in registers.
    fn insert_aside(&mut self, value: M::Partial) {
        self.insert(value);
    }
    /// [`Fifo::evict`] in any state, by a structure that is not kept in registers.
    fn evict_aside(&mut self) {
        self.evict();
    }
    /// The fold of all values.
    fn query(&mut self) -> M::Partial;
    /// The fold of values `from..to`, counted from the oldest; if [`Fifo::PARTS`].
    fn query_part(&mut self, _from: usize, _to: usize) -> M::Partial {
        unreachable!("only structures with PARTS answer for parts")
    }
    /// The fold of the `count` youngest values, which must be there; if [`Fifo::PARTS`],
    /// or where [`Shared`](shared::Shared) says so.
    fn query_last(&mut self, count: usize) -> M::Partial {
        let len = self.len();
        self.query_part(len - count, len)
    }
    /// An empty one of the same make.
    fn fresh(&self) -> Self;
    fn clear(&mut self) {
        *self = self.fresh();
    }
    /// Does rare work by value: a call that borrowed the structure itself would make the
    /// compiler keep it in memory, in loops that need it in registers.
    #[inline(always)]
    fn aside<A>(&mut self, rare: impl FnOnce(&mut Self) -> A) -> A {
        let fresh = self.fresh();
        let mut me = std::mem::replace(self, fresh);
        let answer = rarely(&mut me, rare);
        *self = me;
        answer
    }

    /// Checks every invariant, given all values in order.
    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String>;
    /// Bytes held beside the struct itself.
    fn bytes(&self) -> usize;
    fn write(&self, out: &mut Writer);
    /// Reads the bytes of `write` into an empty structure of the same monoid. The result
    /// cannot cause a panic; `check` decides whether it is right.
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()>;
}

#[cold]
#[inline(never)]
fn rarely<F, A>(it: &mut F, rare: impl FnOnce(&mut F) -> A) -> A {
    rare(it)
}

/// Combines two optional partials; a missing one takes no combine.
#[inline]
pub fn join<M: Monoid>(
    monoid: &M,
    older: Option<&M::Partial>,
    younger: Option<&M::Partial>,
) -> M::Partial {
    match (older, younger) {
        (Some(older), Some(younger)) => monoid.combine(older, younger),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => monoid.identity(),
    }
}

/// A position relative to the oldest entry, as it goes into a snapshot.
pub fn write_place(place: usize, out: &mut Writer) {
    (place as u64).write(out);
}

/// Reads what [`write_place`] wrote: at most `most`, and not before `least`.
pub fn read_place(input: &mut Reader<'_>, least: usize, most: usize) -> Result<usize> {
    let place = u64::read(input)?;
    match usize::try_from(place) {
        Ok(found) if (least..=most).contains(&found) => Ok(found),
        _ => damaged(format!("place {place} is not in {least}..={most}")),
    }
}

/// The fold of values in order, for checkers.
pub fn fold<'a, M: Monoid>(
    monoid: &M,
    values: impl IntoIterator<Item = &'a M::Partial>,
) -> M::Partial {
    let mut values = values.into_iter();
    let Some(first) = values.next() else {
        return monoid.identity();
    };
    values.fold(first.clone(), |acc, value| monoid.combine(&acc, value))
}
