//! A monoid that counts its calls: combines, inverses and comparisons alike.

use std::cell::Cell;

use slidewise_core::monoid::{Invertible, Monoid, Selective};

thread_local! {
    static COMBINES: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    COMBINES.with(|count| count.set(count.get() + 1));
}

/// Operations since the last call.
pub fn take_combines() -> u64 {
    COMBINES.with(|count| count.replace(0))
}

#[derive(Clone, Debug)]
pub struct Counted<M>(pub M);

impl<M: Monoid> Monoid for Counted<M> {
    type In = M::In;
    type Partial = M::Partial;
    const SMALL: usize = M::SMALL;

    fn commutative(&self) -> bool {
        self.0.commutative()
    }
    fn identity(&self) -> M::Partial {
        self.0.identity()
    }
    fn lift(&self, value: &M::In) -> M::Partial {
        self.0.lift(value)
    }
    fn combine(&self, a: &M::Partial, b: &M::Partial) -> M::Partial {
        count();
        self.0.combine(a, b)
    }
    fn unlift(&self, partial: M::Partial) -> Result<M::In, M::Partial> {
        self.0.unlift(partial)
    }
    fn same(&self, a: &M::Partial, b: &M::Partial) -> bool {
        self.0.same(a, b)
    }
}

impl<M: Invertible> Invertible for Counted<M> {
    const EXACT: bool = M::EXACT;

    fn inverse(&self, whole: &M::Partial, oldest: &M::Partial) -> M::Partial {
        count();
        self.0.inverse(whole, oldest)
    }
    fn undoes(&self, partial: &M::Partial) -> bool {
        self.0.undoes(partial)
    }
}

impl<M: Selective> Selective for Counted<M> {
    type Part = M::Part;

    fn parts(&self) -> usize {
        self.0.parts()
    }
    fn part(&self, part: usize, partial: &M::Partial) -> M::Part {
        self.0.part(part, partial)
    }
    fn dominates(&self, part: usize, younger: &M::Part, older: &M::Part) -> bool {
        count();
        self.0.dominates(part, younger, older)
    }
    fn replace(&self, part: usize, partial: &mut M::Partial, by: &M::Part) {
        self.0.replace(part, partial, by);
    }
}
