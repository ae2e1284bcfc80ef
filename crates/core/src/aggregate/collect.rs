//! `collect`: the values in time order. It is not commutative, so it reveals any wrong
//! order of combining, and its combine takes constant time, so every window can use it.
//!
//! A partial is a persistent sequence: a tree of concatenations that share their parts.
//! Chains of them grow as deep as the window, so nothing here recurses.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Aggregation, Answer, Cell};
use crate::monoid::{Entry, HandleSlot, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer};

/// A value that can be collected and stored.
pub trait Element: Clone + Debug + PartialEq + Send + Sync + Codec + Numbered + 'static {}
impl<T: Clone + Debug + PartialEq + Send + Sync + Codec + Numbered + 'static> Element for T {}

/// A value with a number that identifies its equality class among the objects of one
/// window.
pub trait Numbered {
    fn number(&self) -> u64;
}

impl Numbered for i64 {
    fn number(&self) -> u64 {
        *self as u64
    }
}

#[derive(Clone, Debug, Default)]
pub enum Seq<T> {
    #[default]
    Empty,
    One(T),
    Cat(Arc<Cat<T>>),
}

#[derive(Debug)]
pub struct Cat<T> {
    left: Seq<T>,
    right: Seq<T>,
}

impl<T> Seq<T> {
    /// The values in order.
    fn values(&self) -> impl Iterator<Item = &T> {
        let mut pending = vec![self];
        std::iter::from_fn(move || {
            loop {
                match pending.pop()? {
                    Self::Empty => {}
                    Self::One(value) => return Some(value),
                    Self::Cat(cat) => pending.extend([&cat.right, &cat.left]),
                }
            }
        })
    }
}

impl<T: Clone> Seq<T> {
    /// Constant time.
    #[must_use]
    pub fn then(&self, younger: &Self) -> Self {
        match (self, younger) {
            (Self::Empty, other) | (other, Self::Empty) => other.clone(),
            (left, right) => Self::Cat(Arc::new(Cat {
                left: left.clone(),
                right: right.clone(),
            })),
        }
    }

    pub fn to_vec(&self) -> Vec<T> {
        self.values().cloned().collect()
    }
}

impl<T> Drop for Cat<T> {
    /// Unlinks parts that only this one holds, so that dropping them does not recurse.
    fn drop(&mut self) {
        let mut pending = vec![
            std::mem::take(&mut self.left),
            std::mem::take(&mut self.right),
        ];
        while let Some(part) = pending.pop() {
            if let Seq::Cat(shared) = part
                && let Some(mut cat) = Arc::into_inner(shared)
            {
                pending.push(std::mem::take(&mut cat.left));
                pending.push(std::mem::take(&mut cat.right));
            }
        }
    }
}

impl<T: PartialEq> PartialEq for Seq<T> {
    fn eq(&self, other: &Self) -> bool {
        self.values().eq(other.values())
    }
}

impl<T: Element> Codec for Seq<T> {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        let values = self.to_vec();
        (values.len() as u64).write(out);
        out.all(&values);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        let count = input.length::<T>()?;
        let values = input.many::<T>(count)?;
        Ok(balanced(&values))
    }
}

/// A sequence of logarithmic depth.
fn balanced<T: Clone>(values: &[T]) -> Seq<T> {
    match values {
        [] => Seq::Empty,
        [one] => Seq::One(one.clone()),
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            balanced(left).then(&balanced(right))
        }
    }
}

impl<T: Element> HandleSlot for Seq<T>
where
    Self: Default,
{
    /// Every partial is an input, so a sequence is never promoted.
    fn from_handle(_: u32) -> Self {
        Self::Empty
    }
    fn handle(&self) -> u32 {
        unreachable!("a sequence is never promoted")
    }
}

/// The monoid of sequences; its inputs are sequences too.
#[derive(Debug)]
pub struct Collect<T>(PhantomData<fn() -> T>);

impl<T> Clone for Collect<T> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Collect<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Collect<T> {
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Element> Monoid for Collect<T> {
    type In = Seq<T>;
    type Partial = Seq<T>;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> Seq<T> {
        Seq::Empty
    }
    fn lift(&self, value: &Seq<T>) -> Seq<T> {
        value.clone()
    }
    fn combine(&self, a: &Seq<T>, b: &Seq<T>) -> Seq<T> {
        a.then(b)
    }
    fn unlift(&self, partial: Seq<T>) -> std::result::Result<Seq<T>, Seq<T>> {
        Ok(partial)
    }
    fn same(&self, a: &Seq<T>, b: &Seq<T>) -> bool {
        a == b
    }
}

impl<T: Element> Aggregation<T> for Collect<Cell<T>>
where
    Cell<T>: Element,
{
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        Entry::Raw(one(&row[0]))
    }
    fn answers(&self, partial: &Seq<Cell<T>>, out: &mut Vec<Answer<T>>) {
        out.push(Answer::List(partial.to_vec()));
    }
}

/// Missing values are skipped.
pub fn one<T: Clone>(cell: &Cell<T>) -> Seq<Cell<T>> {
    match cell {
        Cell::Null => Seq::Empty,
        value => Seq::One(value.clone()),
    }
}

impl<T: Numbered> Numbered for Seq<T> {
    fn number(&self) -> u64 {
        let numbers = self.values().map(Numbered::number);
        numbers.fold(0, |all, number| all.wrapping_mul(31).wrapping_add(number))
    }
}

impl<T: Numbered> Numbered for Cell<T> {
    fn number(&self) -> u64 {
        match self {
            Self::Object(object) => object.number(),
            other => other.bits().unwrap_or(0),
        }
    }
}

impl<T: Codec> Codec for Cell<T> {
    const MIN_BYTES: usize = 1;
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Null => 0_u8.write(out),
            Self::I64(value) => {
                1_u8.write(out);
                value.write(out);
            }
            Self::F64(value) => {
                2_u8.write(out);
                value.write(out);
            }
            Self::Object(value) => {
                3_u8.write(out);
                value.write(out);
            }
        }
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(match u8::read(input)? {
            0 => Self::Null,
            1 => Self::I64(i64::read(input)?),
            2 => Self::F64(f64::read(input)?),
            3 => Self::Object(T::read(input)?),
            tag => return crate::snapshot::damaged(format!("unknown value tag {tag}")),
        })
    }
}
