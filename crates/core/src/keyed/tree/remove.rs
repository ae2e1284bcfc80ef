//! Removes entries from a tree.

use super::super::blocks::Block;
use super::super::run::Run;
use super::{ARITY, Below, Child, FULL, Forest, Root, fold_children};
use crate::monoid::Monoid;

impl<M: Monoid> Forest<M> {
    /// Removes the entries that are equal to one of `removals`, which are sorted times and numbers.
    /// Returns the number of entries removed.
    pub fn remove(&mut self, monoid: &M, root: &mut Root, removals: &[(i64, i64)]) -> usize {
        match *root {
            Root::Empty => 0,
            _ if removals.is_empty() => 0,
            Root::Leaf(block) => {
                let (count, rest) = self.remove_from_leaf(block, removals);
                *root = rest.map_or(Root::Empty, Root::Leaf);
                count
            }
            Root::Tree { node, level } => {
                let mut children = std::mem::take(&mut self.nodes[node as usize]);
                let count = self.remove_below(monoid, &mut children, removals, true);
                if count == 0 {
                    self.nodes[node as usize] = children;
                    return 0;
                }
                self.free.push(node);
                *root = self.rooted(monoid, children, level);
                count
            }
        }
    }

    /// A block without some entries; none if no entry remains.
    fn remove_from_leaf(
        &mut self,
        block: Block,
        removals: &[(i64, i64)],
    ) -> (usize, Option<Block>) {
        let (Some(first), Some(last)) = (removals.first(), removals.last()) else {
            return (0, Some(block));
        };
        let (times, numbers) = (self.blocks.times(block), self.blocks.numbers(block));
        let from = times.partition_point(|time| *time < first.0);
        let to = from + times[from..].partition_point(|time| *time <= last.0);
        let is_removed = |at: &usize| removals.binary_search(&(times[*at], numbers[*at])).is_ok();
        let found: Vec<usize> = (from..to).filter(is_removed).collect();
        if found.is_empty() {
            return (0, Some(block));
        }
        let mut run = std::mem::take(&mut self.scratch);
        self.blocks.take(block, None, &mut run);
        run.remove(&found);
        let left = (run.len() > 0).then(|| self.blocks.store(&run, (0, run.len()), 0));
        run.clear();
        self.scratch = run;
        (found.len(), left)
    }

    /// Removes entries below some children. Removes children without entries, and merges
    /// neighbours with few. If it removes any entry, all children have their folds afterwards,
    /// except the last one at the right edge.
    fn remove_below(
        &mut self,
        monoid: &M,
        children: &mut Vec<Child<M::Partial>>,
        removals: &[(i64, i64)],
        on_edge: bool,
    ) -> usize {
        let mut count = 0;
        let (first, last) = (removals[0].0, removals[removals.len() - 1].0);
        let from = children[1..].partition_point(|child| child.first < first);
        let to = from + children[from..].partition_point(|child| child.first <= last);
        let mut emptied = false;
        for at in from..to {
            let start = removals.partition_point(|(time, _)| *time < children[at].first);
            let rest = &removals[start..];
            let part = match children.get(at + 1) {
                Some(next) => &rest[..rest.partition_point(|(time, _)| *time <= next.first)],
                None => rest,
            };
            if part.is_empty() {
                continue;
            }
            let edge = on_edge && at + 1 == children.len();
            let removed = self.remove_from_child(monoid, &mut children[at], part, edge);
            emptied |= removed > 0 && children[at].count == 0;
            count += removed;
        }
        if count == 0 {
            return 0;
        }
        if emptied {
            children.retain(|child| child.count > 0);
        }
        self.join_neighbours(children, from);
        let sealed = children.len() - usize::from(on_edge && !children.is_empty());
        for child in &mut children[..sealed] {
            if child.agg.is_none() {
                self.seal(monoid, child);
            }
        }
        if on_edge && let Some(last) = children.last_mut() {
            self.open(last);
        }
        count
    }

    /// Removes entries below a child; its count is 0 if and only if none remain.
    fn remove_from_child(
        &mut self,
        monoid: &M,
        child: &mut Child<M::Partial>,
        removals: &[(i64, i64)],
        edge: bool,
    ) -> usize {
        match child.below {
            Below::Leaf(block) => {
                let (count, left) = self.remove_from_leaf(block, removals);
                if count > 0 {
                    child.agg = None;
                    child.count = left.map_or(0, |block| block.len() as u32);
                    child.below = Below::Leaf(left.unwrap_or(block));
                }
                count
            }
            Below::Node(node) => {
                let mut below = std::mem::take(&mut self.nodes[node as usize]);
                let count = self.remove_below(monoid, &mut below, removals, edge);
                if count > 0 {
                    child.agg = None;
                    // Exact where it matters: `seal` counts again.
                    child.count = u32::from(!below.is_empty());
                }
                if below.is_empty() {
                    self.free.push(node);
                } else {
                    self.nodes[node as usize] = below;
                }
                count
            }
        }
    }

    /// Merges neighbours, from the child before `from` on, while the result is at most half full.
    fn join_neighbours(&mut self, children: &mut Vec<Child<M::Partial>>, from: usize) {
        let mut at = from.saturating_sub(1);
        while at + 1 < children.len() {
            let joined = match (children[at].below, children[at + 1].below) {
                (Below::Leaf(older), Below::Leaf(younger)) => {
                    let few = older.len() + younger.len() <= FULL / 2;
                    few.then(|| self.join_leaves(older, younger))
                }
                (Below::Node(older), Below::Node(younger)) => {
                    let [few, more] = [older, younger].map(|node| self.nodes[node as usize].len());
                    (few + more <= ARITY / 2).then(|| {
                        let behind = std::mem::take(&mut self.nodes[younger as usize]);
                        self.free.push(younger);
                        self.nodes[older as usize].extend(behind);
                        Below::Node(older)
                    })
                }
                _ => None,
            };
            match joined {
                Some(below) => {
                    let younger = children.remove(at + 1);
                    let child = &mut children[at];
                    child.below = below;
                    child.count += younger.count;
                    child.agg = None;
                }
                None => at += 1,
            }
        }
    }

    fn join_leaves(&mut self, older: Block, younger: Block) -> Below {
        let mut run: Run<M> = std::mem::take(&mut self.scratch);
        self.blocks.take(older, None, &mut run);
        self.blocks.take(younger, None, &mut run);
        let joined = self.blocks.store(&run, (0, run.len()), 0);
        run.clear();
        self.scratch = run;
        Below::Leaf(joined)
    }

    /// Makes a child the last one at the right edge, which has no fold.
    fn open(&mut self, child: &mut Child<M::Partial>) {
        child.agg = None;
        if let Below::Node(node) = child.below {
            let mut children = std::mem::take(&mut self.nodes[node as usize]);
            if let Some(last) = children.last_mut() {
                self.open(last);
            }
            self.nodes[node as usize] = children;
        }
    }

    /// Evicts leaves of which all entries are at or before a time; the last leaf stays.
    /// Returns the number of entries evicted.
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
        let removed = children[1..].partition_point(|child| child.first <= until);
        let mut count = 0;
        for child in children.drain(..removed) {
            count += self.release(child.below);
        }
        // The levels below at the left edge, only if a visit pays.
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

    /// Frees a subtree; returns the number of its entries.
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

    /// Moves all entries of a key to a run.
    pub fn take(&mut self, root: &mut Root, into: &mut Run<M>) {
        match std::mem::replace(root, Root::Empty) {
            Root::Empty => {}
            Root::Leaf(block) => self.take_below(Below::Leaf(block), into),
            Root::Tree { node, .. } => self.take_below(Below::Node(node), into),
        }
    }

    fn take_below(&mut self, below: Below, into: &mut Run<M>) {
        match below {
            Below::Leaf(block) => self.blocks.take(block, None, into),
            Below::Node(node) => {
                let children = std::mem::take(&mut self.nodes[node as usize]);
                self.free.push(node);
                for child in children {
                    self.take_below(child.below, into);
                }
            }
        }
    }
}
