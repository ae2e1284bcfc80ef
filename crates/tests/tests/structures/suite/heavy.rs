//! Values that count their copies and moves.

use std::cell::Cell;
use std::fmt::Debug;
use std::marker::PhantomData;

use slidewise_core::monoid::{HandleSlot, Monoid};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};

thread_local! {
    static COPIES: Cell<u64> = const { Cell::new(0) };
    static COMBINES: Cell<u64> = const { Cell::new(0) };
}

/// Copies and moves since the last call.
pub fn take_copies() -> u64 {
    COPIES.replace(0)
}

/// Combines of [`Sum`] since the last call.
pub fn take_sums() -> u64 {
    COMBINES.replace(0)
}

fn count(counter: &'static std::thread::LocalKey<Cell<u64>>) {
    counter.with(|count| count.set(count.get() + 1));
}

/// The resource of an entry: none, or a counted one, so that queues must blank evicted
/// entries.
pub trait Own: Debug + Default + Send + Sync + 'static {}

#[derive(Debug, Default)]
pub struct Nothing;
#[derive(Debug, Default)]
pub struct Something;

impl Own for Nothing {}
impl Own for Something {}

impl Drop for Something {
    fn drop(&mut self) {}
}

/// A value that counts its copies, and the writes over places that it was moved from.
#[derive(Debug, Default)]
pub struct Heavy<O>(u64, O);

impl<O: Own> Clone for Heavy<O> {
    fn clone(&self) -> Self {
        count(&COPIES);
        Self(self.0, O::default())
    }
}

impl<O: Own> PartialEq for Heavy<O> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<O: Own> From<i64> for Heavy<O> {
    fn from(value: i64) -> Self {
        Self(value as u64, O::default())
    }
}

impl<O: Own> Codec for Heavy<O> {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self(u64::read(input)?, O::default()))
    }
}

impl<O: Own> HandleSlot for Heavy<O> {
    fn from_handle(handle: u32) -> Self {
        i64::from(handle).into()
    }
    fn handle(&self) -> u32 {
        self.0 as u32
    }
}

/// Sums, whose values and partials both are heavy.
#[derive(Debug)]
pub struct Sum<O>(PhantomData<fn() -> O>);

impl<O> Clone for Sum<O> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

pub fn sum<O>() -> Sum<O> {
    Sum(PhantomData)
}

impl<O: Own> Monoid for Sum<O> {
    type In = Heavy<O>;
    type Partial = Heavy<O>;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    /// Queues put one where an entry was moved from.
    fn identity(&self) -> Heavy<O> {
        count(&COPIES);
        0.into()
    }
    fn lift(&self, value: &Heavy<O>) -> Heavy<O> {
        Heavy(value.0, O::default())
    }
    fn combine(&self, a: &Heavy<O>, b: &Heavy<O>) -> Heavy<O> {
        count(&COMBINES);
        Heavy(a.0.wrapping_add(b.0), O::default())
    }
    fn unlift(&self, partial: Heavy<O>) -> std::result::Result<Heavy<O>, Heavy<O>> {
        Err(partial)
    }
    fn same(&self, a: &Heavy<O>, b: &Heavy<O>) -> bool {
        a == b
    }
}
