//! subtract_on_evict: combines the inserted value, subtracts the evicted one.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | a baseline: Tangwongsan, Hirzel, Schneider 2015 (DABA), Figure 19;     |
//! |          | Panes (Inv) and R-Int in SlickDeque (2018), §2.2                       |
//! | order    | in order                                                               |
//! | laws     | associative, with an inverse                                           |
//! | costs    | insert 1 combine, evict 1 inverse, query 0; worst case the same, but   |
//! |          | n − 2 combines more for each evict from a sum of floats that has       |
//! |          | overflowed, and 1 for a query while infinities or NaN are there, which |
//! |          | enter and leave as in two_stacks_lite                                  |
//! | space    | 32 to 64 bytes per entry of a sum of int64: a time, a value and a      |
//! |          | partial; up to 96 until a window that grew has slid by twice its       |
//! |          | length; up to 128 in one that has shrunk                               |
//! | choose   | for integer sums and counts, where it is exact and the fastest         |
//!
//! Errors of floats: every subtraction adds its rounding error to the sum, where it stays
//! until the window is empty. Sums that are large against those that follow (1e16, then 1)
//! lose digits.
//!
//! Invariants:
//! 1. `values` holds the entries as they came.
//! 2. `whole` of [`Running`] is the fold of those values that an inverse takes out again,
//!    up to rounding; the identity if there are none. Where the inverse is exact
//!    ([`Invertible::EXACT`]) these are all, and nothing else is kept.
//! 3. Its `stuck` holds the others, infinities and NaN, in a structure that needs no inverse:
//!    so these leave no trace either. They are kept apart only if the aggregation commutes
//!    ([`Invertible::stands_apart`]); beside one that does not, they are in `whole`, and
//!    every evict folds the rest anew until they have left.
//!
//! Deviation: 3, and that a sum of floats which overflowed is folded anew by the next
//! evict, because subtracting from an infinity leaves an infinity.

use std::mem::ManuallyDrop;

use super::checks::{check_values, check_whole};
use super::queue::Queue;
use super::two_stacks_lite::TwoStacksLite;
use super::{Fifo, fold};
use crate::monoid::{Invertible, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The fold of a queue that the caller keeps.
#[derive(Clone, Debug)]
pub struct Running<M: Invertible> {
    whole: M::Partial,
    /// The number of values that the inverse takes out of `whole`; not counted where it is
    /// exact: all are.
    invertible: usize,
    /// None until there is a value that no inverse takes out. Dropped by `drop` below.
    stuck: ManuallyDrop<Option<Box<TwoStacksLite<M>>>>,
}

/// Drops by value, as [`Queue`] does, and nothing where the inverse is exact: the compiler
/// keeps a structure in registers only if the cleanup after a panic is as short as a queue's.
impl<M: Invertible> Drop for Running<M> {
    #[inline(always)]
    fn drop(&mut self) {
        if !M::EXACT {
            give_back(self.stuck.take());
        }
        debug_assert!(!M::EXACT || self.stuck.is_none());
    }
}

#[inline(never)]
fn give_back<S>(stuck: S) {
    drop(stuck);
}

impl<M: Invertible> Running<M> {
    pub fn new(monoid: &M) -> Self {
        Self {
            whole: monoid.identity(),
            invertible: 0,
            stuck: ManuallyDrop::new(None),
        }
    }

    #[inline]
    pub fn add(&mut self, monoid: &M, value: &M::Partial) {
        if M::EXACT {
            self.whole = monoid.combine(&self.whole, value);
        } else if !monoid.stands_apart(value) {
            self.invertible += 1;
            self.whole = monoid.combine(&self.whole, value);
        } else {
            let stuck = self.stuck.get_or_insert_with(|| empty_stuck(monoid));
            stuck.insert(value.clone());
        }
    }

    /// Takes the oldest value out; `rest` are those that stay.
    #[inline]
    pub fn take<'a>(
        &mut self,
        monoid: &M,
        oldest: &M::Partial,
        rest: impl Iterator<Item = &'a M::Partial>,
    ) {
        if M::EXACT {
            self.whole = monoid.inverse(&self.whole, oldest);
            return;
        }
        if monoid.stands_apart(oldest) {
            self.stuck.as_mut().expect("the oldest is there").evict();
            return;
        }
        self.invertible -= 1;
        if self.invertible == 0 {
            self.whole = monoid.identity();
            return;
        }
        self.whole = monoid.inverse(&self.whole, oldest);
        if !monoid.undoes(&self.whole) {
            self.whole = fold(monoid, rest.filter(|value| !monoid.stands_apart(value)));
        }
    }

    #[inline]
    pub fn answer(&mut self, monoid: &M) -> M::Partial {
        if M::EXACT {
            return self.whole.clone();
        }
        match &mut *self.stuck {
            Some(stuck) if !stuck.is_empty() => monoid.combine(&stuck.query(), &self.whole),
            _ => self.whole.clone(),
        }
    }
}

fn empty_stuck<M: Monoid>(monoid: &M) -> Box<TwoStacksLite<M>> {
    Box::new(TwoStacksLite::new(monoid.clone()))
}

/// Only for aggregations with an inverse:
///
/// ```
/// use slidewise_core::aggregate::word::SumI64;
/// use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
/// SubtractOnEvict::new(SumI64);
/// ```
///
/// The maximum of what is left cannot be had from the maximum of all:
///
/// ```compile_fail,E0277
/// use slidewise_core::aggregate::{DType, word::Extreme};
/// use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
/// SubtractOnEvict::new(Extreme { dtype: DType::I64, min: false });
/// ```
#[derive(Clone, Debug)]
pub struct SubtractOnEvict<M: Invertible> {
    monoid: M,
    values: Queue<M::Partial>,
    running: Running<M>,
}

impl<M: Invertible> SubtractOnEvict<M> {
    pub fn new(monoid: M) -> Self {
        Self {
            values: Queue::default(),
            running: Running::new(&monoid),
            monoid,
        }
    }

    /// The number of values that the inverse takes out.
    fn invertible(&self) -> usize {
        if M::EXACT {
            self.values.len()
        } else {
            self.running.invertible
        }
    }

    #[inline(always)]
    fn push<const PLAIN: bool>(&mut self, value: M::Partial) {
        self.running.add(&self.monoid, &value);
        self.values.push_as::<PLAIN>(value);
    }

    #[inline(always)]
    fn pop<const PLAIN: bool>(&mut self) {
        let rest = self.values.iter().skip(1);
        let oldest = self.values.get(self.values.head());
        self.running.take(&self.monoid, oldest, rest);
        self.values.evict_as::<PLAIN>(|| self.monoid.identity());
    }
}

impl<M: Invertible> Fifo<M> for SubtractOnEvict<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    fn insert(&mut self, value: M::Partial) {
        if self.values.has_room() {
            self.push::<true>(value);
        } else {
            self.aside(|me| me.push::<false>(value));
        }
    }

    fn insert_many(&mut self, values: impl ExactSizeIterator<Item = M::Partial>) {
        let (monoid, running) = (&self.monoid, &mut self.running);
        self.values
            .extend(values.inspect(|value| running.add(monoid, value)));
    }

    #[inline(always)]
    fn evict(&mut self) {
        if self.values.stays_plain() {
            self.pop::<true>();
        } else {
            self.aside(Self::pop::<false>);
        }
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        self.running.answer(&self.monoid)
    }

    #[inline(always)]
    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        check_values(&self.monoid, values, self.values.iter())?;
        let (invertible, stuck): (Vec<_>, Vec<_>) = values
            .iter()
            .cloned()
            .partition(|value| !self.monoid.stands_apart(value));
        if invertible.len() != self.invertible() {
            return Err(format!(
                "{} invertible values, {} counted",
                invertible.len(),
                self.invertible()
            ));
        }
        let whole = &self.running.whole;
        check_whole(&self.monoid, &invertible, whole, format_args!("whole"))?;
        match &*self.running.stuck {
            Some(kept) => kept.check(&stuck),
            None => empty_stuck(&self.monoid).check(&stuck),
        }
    }

    fn bytes(&self) -> usize {
        let stuck = self.running.stuck.as_ref();
        let stuck = stuck.map_or(0, |stuck| size_of_val(&**stuck) + stuck.bytes());
        self.values.bytes() + stuck
    }

    fn write(&self, out: &mut Writer) {
        (self.invertible() as u64).write(out);
        self.running.whole.write(out);
        self.values.write(out);
        match &*self.running.stuck {
            Some(stuck) => stuck.write(out),
            None => empty_stuck(&self.monoid).write(out),
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let invertible = u64::read(input)?;
        self.running.whole = self.monoid.read_partial(input)?;
        self.values = Queue::read(input, |input| self.monoid.read_partial(input))?;
        let mut stuck = empty_stuck(&self.monoid);
        stuck.read(input)?;
        let folded = |value: &&M::Partial| !self.monoid.stands_apart(value);
        self.running.invertible = self.values.iter().filter(folded).count();
        if self.running.invertible as u64 != invertible
            || self.running.invertible + stuck.len() != self.values.len()
        {
            return damaged(format!(
                "{invertible} values of {} to subtract",
                self.values.len()
            ));
        }
        *self.running.stuck = (!stuck.is_empty()).then_some(stuck);
        Ok(())
    }
}
