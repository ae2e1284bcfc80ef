//! A B-tree of a given arity, with one of a few compiled node sizes.

use super::{ARITIES, Options, Tree};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Result, Writer};
use slidewise_core::window::shape::Shape;
use slidewise_core::window::{Batch, Ties, Window};

/// A B-tree with aggregates: classic, or with fingers as FiBA was published.
#[derive(Clone, Debug)]
pub struct BTree<M: Monoid>(BySize<M>);

/// Up to 2μ entries while a node waits to be split.
#[derive(Clone, Debug)]
enum BySize<M: Monoid> {
    To2(Tree<M, 4, 5>),
    To4(Tree<M, 8, 9>),
    To8(Tree<M, 16, 17>),
    To16(Tree<M, 32, 33>),
}

/// Evaluates an expression on the tree, for any node size.
macro_rules! tree {
    ($sized:expr, $tree:ident => $does:expr) => {
        match $sized {
            BySize::To2($tree) => $does,
            BySize::To4($tree) => $does,
            BySize::To8($tree) => $does,
            BySize::To16($tree) => $does,
        }
    };
}

impl<M: Monoid> BTree<M> {
    /// The classic tree of minimum arity `arity`.
    ///
    /// # Panics
    /// If the arity is not one of [`ARITIES`].
    pub fn new(monoid: M, ties: Ties, arity: usize) -> Self {
        Self::empty(monoid, ties, arity, None)
    }

    /// FiBA of minimum arity `arity`, as published.
    ///
    /// # Panics
    /// If the arity is not one of [`ARITIES`].
    pub fn with_fingers(monoid: M, ties: Ties, arity: usize, options: Options) -> Self {
        Self::empty(monoid, ties, arity, Some(options))
    }

    pub(crate) fn empty(monoid: M, ties: Ties, arity: usize, fingers: Option<Options>) -> Self {
        assert!(ARITIES.contains(&arity), "a minimum arity of {arity}");
        Self(match arity {
            ..=2 => BySize::To2(Tree::empty(monoid, ties, arity, fingers)),
            3..=4 => BySize::To4(Tree::empty(monoid, ties, arity, fingers)),
            5..=8 => BySize::To8(Tree::empty(monoid, ties, arity, fingers)),
            _ => BySize::To16(Tree::empty(monoid, ties, arity, fingers)),
        })
    }
}

impl<M: Monoid> Window<M> for BTree<M> {
    #[inline]
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        tree!(&mut self.0, tree => tree.insert(time, entry));
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        tree!(&mut self.0, tree => tree.insert_batch(batch));
    }

    #[inline]
    fn evict(&mut self) -> Option<i64> {
        tree!(&mut self.0, tree => tree.evict())
    }

    fn evict_at(&mut self, time: i64) -> bool {
        tree!(&mut self.0, tree => tree.evict_at(time))
    }

    fn evict_until(&mut self, time: i64) -> usize {
        tree!(&mut self.0, tree => tree.evict_until(time))
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        tree!(&mut self.0, tree => tree.query())
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        tree!(&mut self.0, tree => tree.query_range(lo, hi))
    }

    fn len(&mut self) -> usize {
        tree!(&mut self.0, tree => tree.len())
    }

    fn oldest(&mut self) -> Option<i64> {
        tree!(&mut self.0, tree => tree.oldest())
    }

    fn youngest(&mut self) -> Option<i64> {
        tree!(&mut self.0, tree => tree.youngest())
    }

    fn clear(&mut self) {
        tree!(&mut self.0, tree => tree.clear());
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        tree!(&mut self.0, tree => tree.for_each(visit));
    }

    fn check(&self) -> std::result::Result<(), String> {
        tree!(&self.0, tree => tree.check())
    }

    fn bytes(&self) -> usize {
        tree!(&self.0, tree => size_of::<Self>() + tree.bytes() - size_of_val(tree))
    }

    fn write(&self, out: &mut Writer) {
        tree!(&self.0, tree => tree.write(out));
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        tree!(&mut self.0, tree => tree.read(input))
    }

    fn monoid(&self) -> &M {
        tree!(&self.0, tree => tree.monoid())
    }

    fn shape(&mut self) -> Option<Shape<M::Partial>> {
        tree!(&mut self.0, tree => tree.shape())
    }
}
