//! Partials that own memory: those of another monoid as bytes on the heap, as sketches keep
//! theirs, and as objects that are shared. They reveal a slot that is moved from, blanked
//! or released in the wrong place.

use std::marker::PhantomData;
use std::sync::Arc;

use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};

/// A container that keeps a partial on the heap.
pub trait Keeper<P>: Clone + Send + Sync + std::fmt::Debug + Codec + 'static {
    fn keep(partial: P) -> Self;
    fn kept(&self) -> P;
}

/// The bytes of a partial, in words.
#[derive(Clone, Debug)]
pub struct Bytes(Box<[u64]>);

impl Codec for Bytes {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Box::read(input).map(Self)
    }
}

/// A partial that can be written as words.
pub trait Words: Copy {
    fn to_words(self) -> [u64; 3];
    fn of_words(words: [u64; 3]) -> Self;
}

impl<P: Words> Keeper<P> for Bytes {
    fn keep(partial: P) -> Self {
        Self(Box::new(partial.to_words()))
    }
    fn kept(&self) -> P {
        let words = self.0[..].try_into();
        P::of_words(words.expect("three words, unless they were taken away"))
    }
}

/// A partial that copies share.
#[derive(Clone, Debug)]
pub struct Object<P>(Arc<P>);

impl<P: Codec> Codec for Object<P> {
    const MIN_BYTES: usize = P::MIN_BYTES;
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        P::read(input).map(|partial| Self(Arc::new(partial)))
    }
}

impl<P> Keeper<P> for Object<P>
where
    P: Clone + Send + Sync + std::fmt::Debug + Codec + 'static,
{
    fn keep(partial: P) -> Self {
        Self(Arc::new(partial))
    }
    fn kept(&self) -> P {
        P::clone(&self.0)
    }
}

/// A monoid whose partials are kept on the heap.
#[derive(Clone, Debug)]
pub struct Owned<M, K>(M, PhantomData<fn() -> K>);

/// With partials in bytes.
pub fn in_bytes<M>(monoid: M) -> Owned<M, Bytes> {
    Owned(monoid, PhantomData)
}

/// With partials that are objects.
pub fn as_objects<M: Monoid>(monoid: M) -> Owned<M, Object<M::Partial>> {
    Owned(monoid, PhantomData)
}

impl<M: Monoid, K: Keeper<M::Partial>> Monoid for Owned<M, K> {
    type In = M::In;
    type Partial = K;
    const SMALL: usize = M::SMALL;

    fn commutative(&self) -> bool {
        self.0.commutative()
    }
    fn identity(&self) -> K {
        K::keep(self.0.identity())
    }
    fn lift(&self, value: &M::In) -> K {
        K::keep(self.0.lift(value))
    }
    fn combine(&self, a: &K, b: &K) -> K {
        K::keep(self.0.combine(&a.kept(), &b.kept()))
    }
    fn unlift(&self, partial: K) -> std::result::Result<M::In, K> {
        Err(partial)
    }
    fn same(&self, a: &K, b: &K) -> bool {
        self.0.same(&a.kept(), &b.kept())
    }
    fn fold(&self, run: &[M::In]) -> K {
        K::keep(self.0.fold(run))
    }
}

impl<M: Invertible, K: Keeper<M::Partial>> Invertible for Owned<M, K> {
    const EXACT: bool = M::EXACT;

    fn inverse(&self, whole: &K, oldest: &K) -> K {
        K::keep(self.0.inverse(&whole.kept(), &oldest.kept()))
    }
    fn undoes(&self, partial: &K) -> bool {
        self.0.undoes(&partial.kept())
    }
}

impl<M, K> Selective for Owned<M, K>
where
    M: Selective<Part = <M as Monoid>::Partial>,
    K: Keeper<M::Partial>,
{
    type Part = K;

    fn part(&self, _part: usize, partial: &K) -> K {
        partial.clone()
    }
    fn dominates(&self, part: usize, younger: &K, older: &K) -> bool {
        self.0.dominates(part, &younger.kept(), &older.kept())
    }
    fn replace(&self, _part: usize, partial: &mut K, by: &K) {
        partial.clone_from(by);
    }
}
