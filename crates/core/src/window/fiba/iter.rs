//! Iterates over the entries of a range.

use super::path::Id;
use super::tree::Tree;
use super::{Fiba, Form};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};

impl<M: Monoid, const L: usize, const F: usize> Fiba<M, L, F> {
    /// The entries with `lo <= time <= hi`, in order. O(log n + m) for m of them.
    pub fn for_each_between(&mut self, lo: i64, hi: i64, mut visit: impl FnMut(i64, M::Partial)) {
        let monoid = self.monoid.clone();
        self.visit(lo, hi, &mut |time, entry| {
            visit(time, entry.partial(&monoid))
        });
    }

    /// A copy of the same entries as they were inserted.
    pub fn batch_between(&mut self, lo: i64, hi: i64) -> Batch<M> {
        let mut batch = Batch::default();
        self.visit(lo, hi, &mut |time, entry| batch.push(time, entry));
        batch
    }

    fn visit(&mut self, lo: i64, hi: i64, visit: &mut impl FnMut(i64, Entry<M>)) {
        match &mut self.form {
            Form::Tree(tree) => {
                tree.flush_staged();
                if tree.tree_len() > 0 {
                    let root = tree.left[tree.height()];
                    tree.visit_between(tree.height(), root, (lo, hi), visit);
                }
            }
            Form::Small(small) => {
                for at in 0..small.len() {
                    let time = small.time(at);
                    if lo <= time && time <= hi {
                        visit(time, small.entry(at));
                    }
                }
            }
        }
    }
}

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    fn visit_between(
        &self,
        level: usize,
        id: Id,
        (lo, hi): (i64, i64),
        visit: &mut impl FnMut(i64, Entry<M>),
    ) {
        if level == 0 {
            let leaf = self.leaf(id);
            for at in leaf.lower(lo)..leaf.upper(hi) {
                visit(leaf.times[at], self.entry_of(leaf, at));
            }
            return;
        }
        let children = self.children(id);
        for child in &children[self.child_before(id, lo)..=self.child_behind(id, hi)] {
            self.visit_between(level - 1, child.id, (lo, hi), visit);
        }
    }
}
