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
//! |          | length                                                                 |
//! | choose   | for integer sums and counts, where it is exact and the fastest         |
//!
//! Errors of floats: every subtraction adds its rounding error to the sum, where it stays
//! until the window is empty. Sums that are large against those that follow (1e16, then 1)
//! lose digits.
//!
//! Invariants:
//! 1. `values` holds the entries as they came.
//! 2. `whole` of [`Running`] is the fold of those values that an inverse takes out again,
//!    up to rounding; the identity if there are none.
//! 3. Its `stuck` holds the others, infinities and NaN, in a structure that needs no inverse:
//!    so these leave no trace either. Such values commute with all others.
//!
//! Deviation: 3, and that a sum of floats which overflowed is folded anew by the next
//! evict, because subtracting from an infinity leaves an infinity.

use super::checks::{check_values, check_whole};
use super::fifo::{Fifo, fold};
use super::queue::Queue;
use super::two_stacks_lite::TwoStacksLite;
use crate::monoid::Invertible;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The fold of a queue that the caller keeps.
#[derive(Clone, Debug)]
pub struct Running<M: Invertible> {
    whole: M::Partial,
    /// The number of values in `whole`.
    undone: usize,
    stuck: TwoStacksLite<M>,
}

impl<M: Invertible> Running<M> {
    pub fn new(monoid: &M) -> Self {
        Self {
            whole: monoid.identity(),
            undone: 0,
            stuck: TwoStacksLite::new(monoid.clone()),
        }
    }

    #[inline]
    pub fn add(&mut self, monoid: &M, value: &M::Partial) {
        if monoid.undoes(value) {
            self.undone += 1;
            self.whole = monoid.combine(&self.whole, value);
        } else {
            self.stuck.insert(value.clone());
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
        if !monoid.undoes(oldest) {
            self.stuck.evict();
            return;
        }
        self.undone -= 1;
        if self.undone == 0 {
            self.whole = monoid.identity();
            return;
        }
        self.whole = monoid.inverse(&self.whole, oldest);
        if !monoid.undoes(&self.whole) {
            self.whole = fold(monoid, rest.filter(|value| monoid.undoes(value)));
        }
    }

    #[inline]
    pub fn answer(&mut self, monoid: &M) -> M::Partial {
        if self.stuck.is_empty() {
            return self.whole.clone();
        }
        monoid.combine(&self.stuck.query(), &self.whole)
    }
}

/// Only for aggregations with an inverse:
///
/// ```
/// use slidewise_core::aggregate::word::SumI64;
/// use slidewise_core::window::subtract_on_evict::SubtractOnEvict;
/// SubtractOnEvict::new(SumI64);
/// ```
///
/// The maximum of what is left cannot be had from the maximum of all:
///
/// ```compile_fail,E0277
/// use slidewise_core::aggregate::{DType, word::Extreme};
/// use slidewise_core::window::subtract_on_evict::SubtractOnEvict;
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
}

impl<M: Invertible> Fifo<M> for SubtractOnEvict<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    fn insert(&mut self, value: M::Partial) {
        self.running.add(&self.monoid, &value);
        self.values.push(value);
    }

    fn insert_many(&mut self, values: impl ExactSizeIterator<Item = M::Partial>) {
        let (monoid, running) = (&self.monoid, &mut self.running);
        self.values
            .extend(values.inspect(|value| running.add(monoid, value)));
    }

    #[inline]
    fn evict(&mut self) {
        let rest = self.values.iter().skip(1);
        let oldest = self.values.get(self.values.head());
        self.running.take(&self.monoid, oldest, rest);
        self.values.evict(|| self.monoid.identity());
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        self.running.answer(&self.monoid)
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        check_values(&self.monoid, values, self.values.iter())?;
        let (undone, stuck): (Vec<_>, Vec<_>) = values
            .iter()
            .cloned()
            .partition(|value| self.monoid.undoes(value));
        if undone.len() != self.running.undone {
            return Err(format!(
                "{} values in the whole, {} counted",
                undone.len(),
                self.running.undone
            ));
        }
        let whole = &self.running.whole;
        check_whole(&self.monoid, &undone, whole, format_args!("whole"))?;
        self.running.stuck.check(&stuck)
    }

    fn bytes(&self) -> usize {
        self.values.bytes() + self.running.stuck.bytes()
    }

    fn write(&self, out: &mut Writer) {
        (self.running.undone as u64).write(out);
        self.running.whole.write(out);
        self.values.write(out);
        self.running.stuck.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let undone = u64::read(input)?;
        self.running.whole = self.monoid.read_partial(input)?;
        self.values = Queue::read(input, |input| self.monoid.read_partial(input))?;
        self.running.stuck.read(input)?;
        let undoes = |value: &&M::Partial| self.monoid.undoes(value);
        self.running.undone = self.values.iter().filter(undoes).count();
        if self.running.undone as u64 != undone
            || self.running.undone + self.running.stuck.len() != self.values.len()
        {
            return damaged(format!(
                "{undone} values of {} to subtract",
                self.values.len()
            ));
        }
        Ok(())
    }
}
