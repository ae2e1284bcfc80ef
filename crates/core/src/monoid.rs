//! The algebra every window runs on: lift, combine, lower.
//!
//! A window stores *entries* `(time, value)` and answers with the fold of their
//! *partials* in time order. [`Monoid`] asks for associativity and an identity and for
//! nothing else: no inverse, no commutativity. (Tangwongsan et al. 2015, PVLDB 8(7), §3.1.)
//!
//! A window stores the raw [`Monoid::In`] of an entry, not the partial: eight bytes for a
//! sum whose partial takes sixteen. An entry that no `In` can express (two values of one
//! time combined, or a missing value) is kept *promoted*: its partial lies in a [`Slab`]
//! and its slot holds the handle.

use std::fmt::Debug;

use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// Storage for one entry's value: a raw input, or a handle into a [`Slab`].
pub trait HandleSlot: Clone + Default + Debug + PartialEq + Send + Sync + Codec {
    fn from_handle(handle: u32) -> Self;
    fn handle(&self) -> u32;

    /// Moves `slots[from..to]` up by `by`; what it leaves behind may hold anything.
    fn slide_up(slots: &mut [Self], from: usize, to: usize, by: usize) {
        slots[from..to + by].rotate_right(by);
    }
}

/// An associative operation with an identity, over partials lifted from inputs.
pub trait Monoid: Clone + Send + Sync + 'static {
    /// The raw value of one entry.
    type In: HandleSlot;
    /// The aggregate of a run of entries.
    type Partial: Clone + Debug + Send + Sync + Codec;

    /// Up to this many entries a fold over raw values beats any tree.
    const SMALL: usize;

    /// Whether partials of some monoids of this type may take thousands of bytes.
    const WIDE: bool = false;

    /// Whether partials may take thousands of bytes: then there should be few of them.
    fn wide(&self) -> bool {
        Self::WIDE
    }

    /// Whether `combine(a, b) == combine(b, a)`: a late value may be folded in anywhere.
    fn commutative(&self) -> bool;
    fn identity(&self) -> Self::Partial;
    fn lift(&self, value: &Self::In) -> Self::Partial;
    /// `a` holds the older entries, `b` the younger ones.
    fn combine(&self, a: &Self::Partial, b: &Self::Partial) -> Self::Partial;
    /// The input whose lift is exactly `partial`, if there is one.
    fn unlift(&self, partial: Self::Partial) -> std::result::Result<Self::In, Self::Partial>;
    /// For invariant checkers: never false for two foldings of the same entries, so
    /// parts that depend on grouping (the last bits of floats) are left out.
    fn same(&self, a: &Self::Partial, b: &Self::Partial) -> bool;

    /// Reads an input of this monoid, checking what its type cannot.
    fn read_in(&self, input: &mut Reader<'_>) -> Result<Self::In> {
        Self::In::read(input)
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<Self::Partial> {
        Self::Partial::read(input)
    }

    /// Combines one younger input behind `acc`.
    fn absorb(&self, acc: &mut Self::Partial, value: &Self::In) {
        *acc = self.combine(acc, &self.lift(value));
    }

    /// The fold of a run in order; overridden where a run can be vectorised.
    fn fold(&self, run: &[Self::In]) -> Self::Partial {
        let mut values = run.iter();
        let Some(first) = values.next() else {
            return self.identity();
        };
        let mut acc = self.lift(first);
        for value in values {
            self.absorb(&mut acc, value);
        }
        acc
    }

    /// Appends the folds of `acc` and the first one, two and so on of a run behind it. This
    /// and the next three are overridden where many partials are made faster than one by one.
    fn folds(&self, run: &[Self::In], acc: Self::Partial, out: &mut Vec<Self::Partial>) {
        folds_one_by_one(self, run, acc, out);
    }

    /// Appends the folds of the last one, two and so on of a run, and `acc` behind them.
    fn folds_back(&self, run: &[Self::In], acc: Self::Partial, out: &mut Vec<Self::Partial>) {
        folds_back_one_by_one(self, run, acc, out);
    }

    /// The fold of `acc` and a run of partials behind it, which are combined one after the
    /// other; `None` if there are none.
    fn combine_run<'a>(
        &self,
        acc: Option<Self::Partial>,
        run: impl ExactSizeIterator<Item = &'a Self::Partial> + Clone,
    ) -> Option<Self::Partial>
    where
        Self::Partial: 'a,
    {
        combine_one_by_one(self, acc, run)
    }

    /// Appends `combine(older[a], younger[b])` for each pair of places.
    fn combine_pairs(
        &self,
        (older, younger): (&[Self::Partial], &[Self::Partial]),
        pairs: &[(u32, u32)],
        out: &mut Vec<Self::Partial>,
    ) {
        let both = |(a, b): &(u32, u32)| self.combine(&older[*a as usize], &younger[*b as usize]);
        out.extend(pairs.iter().map(both));
    }
}

/// Implements [`Monoid::folds`] by [`Monoid::absorb`], value by value.
pub fn folds_one_by_one<M: Monoid>(
    monoid: &M,
    run: &[M::In],
    mut acc: M::Partial,
    out: &mut Vec<M::Partial>,
) {
    for value in run {
        monoid.absorb(&mut acc, value);
        out.push(acc.clone());
    }
}

/// Implements [`Monoid::combine_run`] by [`Monoid::combine`], partial by partial.
pub fn combine_one_by_one<'a, M: Monoid>(
    monoid: &M,
    acc: Option<M::Partial>,
    mut run: impl Iterator<Item = &'a M::Partial>,
) -> Option<M::Partial> {
    let first = acc.or_else(|| run.next().cloned())?;
    Some(run.fold(first, |acc, partial| monoid.combine(&acc, partial)))
}

/// Implements [`Monoid::folds_back`] by [`Monoid::combine`], value by value.
pub fn folds_back_one_by_one<M: Monoid>(
    monoid: &M,
    run: &[M::In],
    mut acc: M::Partial,
    out: &mut Vec<M::Partial>,
) {
    for value in run.iter().rev() {
        acc = monoid.combine(&monoid.lift(value), &acc);
        out.push(acc.clone());
    }
}

/// A law beyond associativity that an algorithm may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// [`Invertible`].
    Inverse,
    /// [`Selective`].
    Selection,
    /// One of the two.
    InverseOrSelection,
}

/// A monoid that can take away again what it combined.
pub trait Invertible: Monoid {
    /// Whether [`Invertible::inverse`] takes out every partial, exactly. Then
    /// [`Invertible::undoes`] is true of all values, and the inverse of the last value
    /// leaves the identity: structures neither check nor reset.
    const EXACT: bool = false;

    /// The `rest` for which `combine(oldest, rest)` is `whole`: exactly, or up to
    /// rounding for sums of floats.
    fn inverse(&self, whole: &Self::Partial, oldest: &Self::Partial) -> Self::Partial;

    /// Whether [`Invertible::inverse`] takes this partial out again. (Nothing subtracts an
    /// infinity or a NaN.)
    fn undoes(&self, _partial: &Self::Partial) -> bool {
        true
    }

    /// Whether structures keep a partial that no inverse takes out apart from the fold of
    /// the others. If the order matters it is folded with them, and when it leaves, the
    /// rest is folded anew.
    #[inline]
    fn stands_apart(&self, partial: &Self::Partial) -> bool {
        !self.undoes(partial) && self.commutative()
    }
}

/// A monoid whose `combine` gives one of its operands, as max does; of a partial of several
/// parts, such as the max and the min of a range, it gives one of the operands per part.
pub trait Selective: Monoid {
    /// One part of a partial: the partial itself, if it has no other.
    type Part: Clone + Debug + Send + Sync;

    /// The number of parts that are selected independently.
    #[inline]
    fn parts(&self) -> usize {
        1
    }

    /// This part of a partial.
    fn part(&self, part: usize, partial: &Self::Partial) -> Self::Part;

    /// Whether `younger` alone decides this part of `combine(older, younger)`: then the part
    /// of `older` can be dropped (SlickDeque).
    fn dominates(&self, part: usize, younger: &Self::Part, older: &Self::Part) -> bool;

    /// Replaces this part of a partial.
    fn replace(&self, part: usize, partial: &mut Self::Partial, by: &Self::Part);
}

/// The value an entry is inserted with.
#[derive(Debug)]
pub enum Entry<M: Monoid> {
    Raw(M::In),
    /// A partial of its own: a missing value, or several values already combined.
    Lifted(M::Partial),
}

impl<M: Monoid> Clone for Entry<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Raw(value) => Self::Raw(value.clone()),
            Self::Lifted(partial) => Self::Lifted(partial.clone()),
        }
    }
}

impl<M: Monoid> Entry<M> {
    pub fn partial(&self, monoid: &M) -> M::Partial {
        match self {
            Self::Raw(value) => monoid.lift(value),
            Self::Lifted(partial) => partial.clone(),
        }
    }

    pub fn write(&self, out: &mut Writer) {
        match self {
            Self::Raw(value) => {
                0_u8.write(out);
                value.write(out);
            }
            Self::Lifted(partial) => {
                1_u8.write(out);
                partial.write(out);
            }
        }
    }

    /// Some inputs express every partial and are never promoted, whatever bytes say.
    pub fn read(monoid: &M, input: &mut Reader<'_>) -> Result<Self> {
        match u8::read(input)? {
            0 => Ok(Self::Raw(monoid.read_in(input)?)),
            1 => Ok(Self::from_partial(monoid, monoid.read_partial(input)?)),
            tag => damaged(format!("unknown entry tag {tag}")),
        }
    }

    /// The entry for a partial: raw where an input expresses it.
    pub fn from_partial(monoid: &M, partial: M::Partial) -> Self {
        match monoid.unlift(partial) {
            Ok(value) => Self::Raw(value),
            Err(partial) => Self::Lifted(partial),
        }
    }
}

/// Partials of promoted entries, addressed by handle.
#[derive(Clone, Debug)]
pub struct Slab<P> {
    slots: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P> Default for Slab<P> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<P> Slab<P> {
    pub fn store(&mut self, partial: P) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.slots[handle as usize] = Some(partial);
            return handle;
        }
        self.slots.push(Some(partial));
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 promoted entries")
    }

    /// # Panics
    /// If the handle was released: a broken window invariant.
    pub fn get(&self, handle: u32) -> &P {
        self.slots[handle as usize]
            .as_ref()
            .expect("promoted entry was released")
    }

    pub fn release(&mut self, handle: u32) -> P {
        let partial = self.slots[handle as usize]
            .take()
            .expect("promoted entry was released");
        self.free.push(handle);
        partial
    }

    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<P>>() + self.free.capacity() * size_of::<u32>()
    }
}

impl HandleSlot for i64 {
    fn slide_up(slots: &mut [Self], from: usize, to: usize, by: usize) {
        slots.copy_within(from..to, from + by);
    }
    fn from_handle(handle: u32) -> Self {
        i64::from(handle)
    }
    fn handle(&self) -> u32 {
        *self as u32
    }
}

impl HandleSlot for f64 {
    fn slide_up(slots: &mut [Self], from: usize, to: usize, by: usize) {
        slots.copy_within(from..to, from + by);
    }
    fn from_handle(handle: u32) -> Self {
        f64::from_bits(u64::from(handle))
    }
    fn handle(&self) -> u32 {
        self.to_bits() as u32
    }
}

impl<const K: usize> HandleSlot for [u64; K]
where
    [u64; K]: Default,
{
    fn slide_up(slots: &mut [Self], from: usize, to: usize, by: usize) {
        slots.copy_within(from..to, from + by);
    }
    fn from_handle(handle: u32) -> Self {
        let mut slot = Self::default();
        slot[0] = u64::from(handle);
        slot
    }
    fn handle(&self) -> u32 {
        self[0] as u32
    }
}

impl HandleSlot for Box<[u64]> {
    fn from_handle(handle: u32) -> Self {
        Box::new([u64::from(handle)])
    }
    fn handle(&self) -> u32 {
        self[0] as u32
    }
}
