//! Entries out of a tree.

use super::{Below, Child, Forest, Root, fold_children};
use crate::monoid::Monoid;

impl<M: Monoid> Forest<M> {
    /// Evicts leaves of which all entries are at or before a time; the last leaf stays.
    /// Gives the number of entries evicted.
    pub fn evict(&mut self, monoid: &M, root: &mut Root, until: i64) -> usize {
        let Root::Tree { node, level } = *root else {
            return 0;
        };
        if level == 1 && self.nodes[node as usize][1].first > until {
            return 0;
        }
        let mut children = std::mem::take(&mut self.nodes[node as usize]);
        let count = self.evict_below(monoid, &mut children, until);
        if children.len() > 1 {
            self.nodes[node as usize] = children;
            return count;
        }
        self.free.push(node);
        *root = self.rooted(monoid, children, level);
        count
    }

    fn evict_below(
        &mut self,
        monoid: &M,
        children: &mut Vec<Child<M::Partial>>,
        until: i64,
    ) -> usize {
        let gone = children[1..].partition_point(|child| child.first <= until);
        let mut count = 0;
        for child in children.drain(..gone) {
            count += self.release(child.below);
        }
        // What lies further down at the left edge: only where it is worth a visit.
        if let Below::Node(node) = children[0].below
            && children[0].first <= until
        {
            let mut below = std::mem::take(&mut self.nodes[node as usize]);
            let evicted = self.evict_below(monoid, &mut below, until);
            children[0].first = below[0].first;
            if evicted > 0 && children[0].agg.is_some() {
                children[0].agg = fold_children(monoid, &below);
                children[0].count = below.iter().map(|child| child.count).sum();
            }
            self.nodes[node as usize] = below;
            count += evicted;
        }
        count
    }

    /// Gives back a subtree; gives the number of its entries.
    fn release(&mut self, below: Below) -> usize {
        match below {
            Below::Leaf(block) => {
                self.blocks.release(block);
                block.len()
            }
            Below::Node(node) => {
                let children = std::mem::take(&mut self.nodes[node as usize]);
                self.free.push(node);
                children
                    .into_iter()
                    .map(|child| self.release(child.below))
                    .sum()
            }
        }
    }

    /// Drops all entries of a key.
    pub fn clear(&mut self, root: &mut Root) {
        match std::mem::replace(root, Root::Empty) {
            Root::Empty => 0,
            Root::Leaf(block) => self.release(Below::Leaf(block)),
            Root::Tree { node, .. } => self.release(Below::Node(node)),
        };
    }
}
