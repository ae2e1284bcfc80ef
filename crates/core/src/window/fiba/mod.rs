//! fiba: the finger B-tree aggregator, for entries in any order, one at a time or in bulk.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Tangwongsan, Hirzel, Schneider: FiBA (2019, PVLDB 12(10)), §3; bulk   |
//! |        | evict and insert (2023, PVLDB 16(11)), §3-6                           |
//! | order  | any                                                                   |
//! | laws   | associative                                                           |
//! | costs  | d: entries between the site and the nearer end; m: entries of a bulk. |
//! |        | insert, evict(t): amortised O(log d); append, evict: amortised O(1);  |
//! |        | query: 2 combines, n − 1 of up to `SMALL` entries, and if combining   |
//! |        | does not commute what is staged goes in first;                        |
//! |        | range: O(log d_lo + log d_hi + log n_sub);                            |
//! |        | evict_until: amortised O(log m), worst O(log n); of few entries as    |
//! |        | cheap as evict;                                                       |
//! |        | insert_many: O(log d + m (1 + log(d/m))). Beside the combines: an     |
//! |        | eviction that leaves less than a third of the entries moves those n   |
//! |        | that remain, half a move for each entry ever inserted                 |
//! | space  | 17 to 26 bytes per entry of a sum of int64: 17 in order, more after   |
//! |        | disorder, and at most what three times the entries needed: the rest   |
//! |        | goes back to the system. Values that own memory are dropped at once,   |
//! |        | which makes `evict_until` of m such O(m)                              |
//! | choose | always, unless order is certain                                       |
//!
//! # Idea
//! A balanced tree with *fingers* at both ends. Search climbs from the nearer finger as
//! far as it must. Aggregates are kept by place: Π↑ of a whole subtree off the spines;
//! Π↙ and Π↘ down the spines, so that a change near an end need not reach the root; the
//! root's own Π without its outermost children.
//!
//! ```text
//!                root: mid aggregate            query = suffix[start] ⊗ mid ⊗ tail
//!              /    |      \
//!         left      Π↑      right               left, right: the spines
//!        /  |  \           /  |  \
//!   finger  Π↑  Π↑        Π↑  Π↑  finger        leaves: 64 entries each
//!   suffix[]                      tail
//! ```
//!
//! # Deviations from the papers, and why the bounds hold
//! 1. *Entries only in leaves* (a B+-tree), `L` to a leaf, `F` children to an inner node,
//!    chosen by the cost of combining. `L` and `F` are constants.
//! 2. *The left finger keeps a suffix fold per slot, the right finger a running tail*, so
//!    that `evict` and `append` inside a finger cost at most one combine.
//! 3. *No parent pointers*: every path starts on a spine, and the spines are arrays.
//! 4. *Arity* of inner nodes is at least `max(2, F/8)`, also on the spines, so a climb of
//!    k levels skips a number of entries exponential in k, from either end. Splits leave
//!    a quarter or more (the append split leaves `MIN_ARITY`), merges at most three
//!    quarters: between two restructurings of a node lie Ω(F) changes below it.
//!    Leaves off the spines hold at least `L/8`; the fingers at least one entry.
//! 5. *Late entries are staged*, a leaf full of them or one in 256 of a large window, at
//!    most 16,384, and inserted together; the amortised cost is that of a bulk insert, and
//!    the worst that of a bulk insert of all of them. If combining commutes, the tail takes
//!    their values at once, else a query first inserts them. The oldest staged time bounds
//!    the evictions that are possible without inserting them. If late entries are frequent
//!    (a quarter of the arrivals), all arrivals are staged, as the branch on "late" would be
//!    mispredicted. Small batches scattered over the leaves are staged, too.
//! 6. *Bulk evict repairs arity top down*, each node keeping a child to spare, so that
//!    merges always find their neighbour under the same parent; published is bottom up
//!    with non-sibling neighbours. The same nodes are touched.
//! 7. *Bulk insert recurses* from the lowest common spine node instead of queueing
//!    treelets level by level; paths are shared from where they meet, both ways. Times
//!    already present combine in their leaf on the way down.
//! 8. *Windows of a few entries* are a sorted array.
//!
//! # Invariants (checked by `check`)
//! 1. Height: all leaves are at level 0; `left` and `right` list the spines.
//! 2. Order: times rise through the leaves; a child's key separates it from the one
//!    before. Strictly under `Ties::Combine`.
//! 3. Arity: as in deviation 4; the root has 2 children at least.
//! 4. Aggregates: Π↑ and count of every child off the spines; Π↙, Π↘, Π inner, `mid`,
//!    `suffix` and `tail` as their fields say.
//! 5. Promoted slots and live partials in the slab match, freed leaves included.
//! 6. Staged entries are older than the youngest entry, unless all that arrives is
//!    staged; and the tree is not a single leaf.

mod aggregate;
mod bulk_insert;
mod check;
mod compact;
mod evict;
mod insert;
mod iter;
mod late_buffer;
mod leaf;
mod leaf_merge;
mod path;
mod persist;
mod search;
mod small;
mod staging;
mod tree;

use super::shape::Shape;
use super::{Batch, Ties, Window};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer};
use small::Small;
use tree::Tree;

/// FiBA with leaves of `L` entries and inner nodes of up to `F` children.
#[derive(Clone, Debug)]
pub struct Fiba<M: Monoid, const L: usize, const F: usize> {
    monoid: M,
    ties: Ties,
    form: Form<M, L, F>,
}

#[derive(Clone, Debug)]
enum Form<M: Monoid, const L: usize, const F: usize> {
    Small(Small<M>),
    Tree(Box<Tree<M, L, F>>),
}

impl<M: Monoid, const L: usize, const F: usize> Fiba<M, L, F> {
    const SMALL: usize = if M::SMALL < 32 { M::SMALL } else { 32 };

    pub fn new(monoid: M, ties: Ties) -> Self {
        let form = if Self::SMALL > 0 {
            Form::Small(Small::default())
        } else {
            Form::Tree(Box::new(Tree::new(monoid.clone(), ties)))
        };
        Self { monoid, ties, form }
    }

    pub fn ties(&self) -> Ties {
        self.ties
    }

    /// Converts the window to a tree.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> &mut Tree<M, L, F> {
        if let Form::Small(small) = &self.form {
            let mut tree = Box::new(Tree::new(self.monoid.clone(), self.ties));
            tree.insert_batch(small.to_batch());
            self.form = Form::Tree(tree);
        }
        match &mut self.form {
            Form::Tree(tree) => tree,
            Form::Small(_) => unreachable!("just replaced"),
        }
    }

    #[inline(never)]
    fn insert_small(&mut self, time: i64, entry: Entry<M>) {
        match &mut self.form {
            Form::Small(small) if small.len() < Self::SMALL => {
                small.insert(&self.monoid, self.ties, time, entry);
            }
            _ => self.grow().insert(time, entry),
        }
    }

    /// Gives a tree's memory back once few entries are left; constant work.
    fn shrink(&mut self) {
        let Form::Tree(tree) = &mut self.form else {
            return;
        };
        tree.flush_staged();
        let entries = tree.tree_len();
        if entries <= Self::SMALL / 2 && Self::SMALL > 0 {
            let mut small = Small::default();
            tree.for_each_entry(|time, entry| {
                small.insert(&self.monoid, Ties::Keep, time, entry);
            });
            self.form = Form::Small(small);
        } else if tree.leaves.len() > Tree::<M, L, F>::SPARE_LEAVES {
            let mut batch = Batch::with_capacity(entries);
            tree.for_each_entry(|time, entry| batch.push(time, entry));
            tree.clear();
            tree.insert_batch(batch);
        }
    }
}

impl<M: Monoid, const L: usize, const F: usize> Window<M> for Fiba<M, L, F> {
    #[inline(always)]
    fn insert(&mut self, time: i64, entry: Entry<M>) {
        match &mut self.form {
            Form::Tree(tree) => tree.insert(time, entry),
            Form::Small(_) => self.insert_small(time, entry),
        }
    }

    fn insert_batch(&mut self, batch: Batch<M>) {
        match &mut self.form {
            Form::Small(small) if small.len() + batch.len() <= Self::SMALL => {
                for (time, entry) in batch.into_entries() {
                    small.insert(&self.monoid, self.ties, time, entry);
                }
            }
            _ if batch.len() == 1 => {
                for (time, entry) in batch.into_entries() {
                    self.insert(time, entry);
                }
            }
            _ => self.grow().insert_batch(batch),
        }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<i64> {
        match &mut self.form {
            Form::Tree(tree) => tree.evict(),
            Form::Small(small) => small.evict(),
        }
    }

    fn evict_at(&mut self, time: i64) -> bool {
        match &mut self.form {
            Form::Tree(tree) => {
                tree.flush_staged();
                tree.evict_at(time)
            }
            Form::Small(small) => small.evict_at(time),
        }
    }

    #[inline]
    fn evict_until(&mut self, time: i64) -> usize {
        let (count, left) = match &mut self.form {
            Form::Small(small) => return small.evict_until(time),
            Form::Tree(tree) => (tree.evict_until(time), tree.tree_len()),
        };
        if count > 0 && left <= 2 * L {
            self.shrink();
        }
        count
    }

    #[inline(always)]
    fn query(&mut self) -> M::Partial {
        match &mut self.form {
            Form::Tree(tree) => {
                if !self.monoid.commutative() {
                    tree.flush_staged();
                }
                tree.answer()
            }
            Form::Small(small) => small.fold_all(&self.monoid),
        }
    }

    fn query_range(&mut self, lo: i64, hi: i64) -> M::Partial {
        match &mut self.form {
            Form::Tree(tree) => {
                tree.flush_staged();
                tree.answer_range(lo, hi)
            }
            Form::Small(small) => small.fold(&self.monoid, lo, hi),
        }
    }

    fn len(&mut self) -> usize {
        match &mut self.form {
            Form::Tree(tree) => {
                tree.flush_staged();
                tree.tree_len()
            }
            Form::Small(small) => small.len(),
        }
    }

    fn oldest(&mut self) -> Option<i64> {
        match &self.form {
            Form::Tree(tree) => tree.oldest(),
            Form::Small(small) => small.oldest(),
        }
    }

    fn youngest(&mut self) -> Option<i64> {
        match &self.form {
            Form::Tree(tree) => tree.youngest(),
            Form::Small(small) => small.youngest(),
        }
    }

    fn clear(&mut self) {
        *self = Self::new(self.monoid.clone(), self.ties);
    }

    fn take(&mut self) -> Batch<M> {
        let batch = self.batch_between(i64::MIN, i64::MAX);
        self.clear();
        batch
    }

    fn for_each(&mut self, visit: &mut dyn FnMut(i64, M::Partial)) {
        let monoid = &self.monoid;
        match &mut self.form {
            Form::Tree(tree) => {
                tree.flush_staged();
                tree.for_each_entry(|time, entry| visit(time, entry.partial(monoid)));
            }
            Form::Small(small) => {
                for at in 0..small.len() {
                    visit(small.time(at), small.entry(at).partial(monoid));
                }
            }
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        match &self.form {
            Form::Tree(tree) => tree.check(),
            Form::Small(small) => small.check(self.ties),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.form {
                Form::Tree(tree) => tree.bytes(),
                Form::Small(small) => small.heap_bytes(),
            }
    }

    fn write(&self, out: &mut Writer) {
        match &self.form {
            Form::Tree(tree) => tree.write(out),
            Form::Small(small) => persist::write_small(small, out),
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.form = persist::read_form(&self.monoid, self.ties, Self::SMALL, input)?;
        self.check().or_else(crate::snapshot::damaged)
    }

    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn shape(&mut self) -> Option<Shape<M::Partial>> {
        match &mut self.form {
            Form::Tree(tree) => {
                tree.flush_staged();
                Some(tree.shape())
            }
            Form::Small(small) => {
                let mut tree = Tree::<M, L, F>::new(self.monoid.clone(), self.ties);
                tree.insert_batch(small.to_batch());
                Some(tree.shape())
            }
        }
    }
}
