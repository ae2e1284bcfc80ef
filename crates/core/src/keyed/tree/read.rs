//! What is in a tree: folds, times, entries.

use super::{Below, Block, Forest, Root};
use crate::monoid::{Entry, Monoid};

impl<M: Monoid> Forest<M> {
    /// Combines the entries with `lo <= time <= hi` behind `acc`.
    #[inline]
    pub fn fold(&self, monoid: &M, root: Root, (lo, hi): (i64, i64), acc: &mut Option<M::Partial>) {
        match root {
            Root::Empty => {}
            Root::Leaf(block) => self.fold_leaf(monoid, block, (lo, hi), acc),
            Root::Tree { node, .. } => self.fold_node(monoid, node, (lo, hi), i64::MAX, acc),
        }
    }

    #[inline]
    fn fold_leaf(
        &self,
        monoid: &M,
        block: Block,
        (lo, hi): (i64, i64),
        acc: &mut Option<M::Partial>,
    ) {
        let times = self.blocks.times(block);
        let from = times.partition_point(|time| *time < lo);
        let to = from + times[from..].partition_point(|time| *time <= hi);
        self.blocks.fold(monoid, block, (from, to), acc);
    }

    /// `end`: no time below is later.
    fn fold_node(
        &self,
        monoid: &M,
        node: u32,
        (lo, hi): (i64, i64),
        end: i64,
        acc: &mut Option<M::Partial>,
    ) {
        let children = &self.nodes[node as usize];
        // The first child that may hold `lo`, and the first that is behind `hi`.
        let from = children[1..].partition_point(|child| child.first < lo);
        let to = from + children[from..].partition_point(|child| child.first <= hi);
        for at in from..to {
            let child = &children[at];
            let last = children.get(at + 1).map_or(end, |next| next.first);
            match (&child.agg, child.below) {
                (Some(whole), _) if lo <= child.first && last <= hi => {
                    *acc = Some(match acc.take() {
                        Some(older) => monoid.combine(&older, whole),
                        None => whole.clone(),
                    });
                }
                (_, Below::Leaf(block)) => self.fold_leaf(monoid, block, (lo, hi), acc),
                (_, Below::Node(node)) => self.fold_node(monoid, node, (lo, hi), last, acc),
            }
        }
    }

    /// The first time at or after `lo`.
    pub fn first(&self, root: Root, lo: i64) -> Option<i64> {
        match root {
            Root::Empty => None,
            Root::Leaf(block) => {
                let times = self.blocks.times(block);
                times.get(times.partition_point(|time| *time < lo)).copied()
            }
            Root::Tree { node, .. } => {
                let children = &self.nodes[node as usize];
                let from = children[1..].partition_point(|child| child.first < lo);
                children[from..].iter().find_map(|child| match child.below {
                    Below::Leaf(block) => self.first(Root::Leaf(block), lo),
                    Below::Node(node) => self.first(Root::Tree { node, level: 1 }, lo),
                })
            }
        }
    }

    /// All entries, in order.
    pub fn entries(&self, root: Root, visit: &mut impl FnMut(i64, Entry<M>)) {
        match root {
            Root::Empty => {}
            Root::Leaf(block) => {
                for (at, time) in self.blocks.times(block).iter().enumerate() {
                    visit(*time, self.blocks.entry(block, at));
                }
            }
            Root::Tree { node, .. } => {
                for child in &self.nodes[node as usize] {
                    match child.below {
                        Below::Leaf(block) => self.entries(Root::Leaf(block), visit),
                        Below::Node(node) => self.entries(Root::Tree { node, level: 1 }, visit),
                    }
                }
            }
        }
    }
}
