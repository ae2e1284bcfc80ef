//! The sequences of the keys of a shard: a block for a few entries, a B⁺-tree for many.
//!
//! Leaves are blocks; an inner node has for each child the least time, the number of its
//! entries and the fold of them. As in FiBA the right edge is open: the last child of a node
//! on it has no fold and, above the leaves, no count, so an append changes one leaf, and an
//! inner node once in a leaf's entries. A query folds the entries at the ends of its window
//! and whole children between.

use super::blocks::{Block, Blocks, MOST};
use super::run::Run;
use crate::monoid::{Entry, Monoid};

/// Most children of a node.
pub(super) const ARITY: usize = 32;
/// The entries of a leaf that was filled in order.
const FULL: usize = 64;
/// Room of the leaf at the right edge at least.
const TAIL: usize = 16;

/// A key's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Empty,
    Leaf(Block),
    /// A node and its level, from 1.
    Tree {
        node: u32,
        level: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    Leaf(Block),
    Node(u32),
}

#[derive(Debug)]
struct Child<P> {
    /// No time below is less.
    first: i64,
    below: Below,
    /// Entries below.
    count: u32,
    agg: Option<P>,
}

#[derive(Debug)]
pub(super) struct Forest<M: Monoid> {
    pub blocks: Blocks<M>,
    nodes: Vec<Vec<Child<M::Partial>>>,
    free: Vec<u32>,
    /// Empty between calls.
    scratch: Run<M>,
}

impl<M: Monoid> Default for Forest<M> {
    fn default() -> Self {
        Self {
            blocks: Blocks::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            scratch: Run::default(),
        }
    }
}

impl<M: Monoid> Forest<M> {
    /// Appends an entry that is not earlier than the key's last, if there is room at the
    /// right edge.
    #[inline]
    pub fn append(&mut self, root: &mut Root, time: i64, entry: Entry<M>) -> Result<(), Entry<M>> {
        match root {
            Root::Leaf(block) if block.has_room() => {
                self.blocks.append(block, time, entry);
                Ok(())
            }
            Root::Tree { node, level } => {
                let mut at = *node;
                for _ in 1..*level {
                    at = match self.last(at).below {
                        Below::Node(node) => node,
                        Below::Leaf(_) => unreachable!("leaves are at level 0"),
                    };
                }
                let last = self.nodes[at as usize]
                    .last_mut()
                    .expect("nodes have children");
                match &mut last.below {
                    Below::Leaf(block) if block.has_room() && block.len() < FULL => {
                        self.blocks.append(block, time, entry);
                        last.count += 1;
                        Ok(())
                    }
                    _ => Err(entry),
                }
            }
            _ => Err(entry),
        }
    }

    fn last(&self, node: u32) -> &Child<M::Partial> {
        let children = &self.nodes[node as usize];
        children.last().expect("nodes have children")
    }

    /// Inserts the entries `from..to` of a run, behind those of equal time. Where a key's only
    /// block is rewritten, entries up to `until` are left out.
    pub fn insert(
        &mut self,
        monoid: &M,
        root: &mut Root,
        (run, from, to): (&Run<M>, usize, usize),
        until: Option<i64>,
    ) {
        *root = match *root {
            Root::Empty => {
                let children = self.leaves(run, from, to, to - from > MOST);
                self.rooted(monoid, children, 0)
            }
            Root::Leaf(block) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                self.blocks.take(block, until, &mut scratch);
                let appended = scratch
                    .times
                    .last()
                    .is_none_or(|last| *last <= run.times[from]);
                scratch.merge(run, from, to);
                // One block as long as it can be: a node takes as much as many entries.
                let several = appended && scratch.len() > MOST;
                let children = self.leaves(&scratch, 0, scratch.len(), several);
                scratch.clear();
                self.scratch = scratch;
                self.rooted(monoid, children, 0)
            }
            Root::Tree { node, level } => {
                let mut scratch = std::mem::take(&mut self.scratch);
                let mut children = std::mem::take(&mut self.nodes[node as usize]);
                self.free.push(node);
                self.insert_below(monoid, &mut children, (run, from, to), &mut scratch, true);
                self.scratch = scratch;
                self.rooted(monoid, children, level)
            }
        };
    }

    /// Leaves of the entries `from..to`: full ones and a rest at the right edge, even ones
    /// elsewhere.
    fn leaves(
        &mut self,
        run: &Run<M>,
        from: usize,
        to: usize,
        appended: bool,
    ) -> Vec<Child<M::Partial>> {
        let count = to - from;
        let pieces = match appended {
            true => count.div_ceil(FULL),
            false if count <= MOST => 1,
            false => count.div_ceil(MOST * 3 / 4),
        };
        let mut leaves = Vec::with_capacity(pieces);
        let mut start = from;
        for piece in 1..=pieces {
            let end = match appended {
                true => to.min(start + FULL),
                false => from + count * piece / pieces,
            };
            let least = if piece == pieces && pieces > 1 {
                TAIL
            } else {
                0
            };
            let block = self.blocks.store(run, (start, end), least);
            leaves.push(Child {
                first: run.times[start],
                below: Below::Leaf(block),
                count: (end - start) as u32,
                agg: None,
            });
            start = end;
        }
        leaves
    }

    /// Inserts entries into the children of a node, whose number may grow.
    fn insert_below(
        &mut self,
        monoid: &M,
        children: &mut Vec<Child<M::Partial>>,
        (run, from, to): (&Run<M>, usize, usize),
        scratch: &mut Run<M>,
        on_edge: bool,
    ) {
        let mut start = from;
        let mut at = 0;
        while start < to {
            // New entries go behind their equals.
            at += children[at + 1..].partition_point(|child| child.first <= run.times[start]);
            let end = match children.get(at + 1) {
                Some(next) => {
                    let rest = &run.times[start..to];
                    start + rest.partition_point(|time| *time < next.first)
                }
                None => to,
            };
            let last = on_edge && at + 1 == children.len();
            let part = (run, start, end);
            let mut changed = match children[at].below {
                Below::Leaf(block) => self.insert_leaf(block, part, scratch, last),
                Below::Node(node) => {
                    let mut below = std::mem::take(&mut self.nodes[node as usize]);
                    self.free.push(node);
                    self.insert_below(monoid, &mut below, part, scratch, last);
                    self.nodes_of(below, last)
                }
            };
            let unsealed = usize::from(last);
            let sealed = changed.len() - unsealed;
            for child in &mut changed[..sealed] {
                self.seal(monoid, child);
            }
            let added = changed.len();
            children.splice(at..=at, changed);
            at += added - 1;
            start = end;
        }
    }

    fn insert_leaf(
        &mut self,
        block: Block,
        (run, from, to): (&Run<M>, usize, usize),
        scratch: &mut Run<M>,
        last: bool,
    ) -> Vec<Child<M::Partial>> {
        self.blocks.take(block, None, scratch);
        let appended = last
            && scratch
                .times
                .last()
                .is_none_or(|last| *last <= run.times[from]);
        scratch.merge(run, from, to);
        let leaves = self.leaves(scratch, 0, scratch.len(), appended);
        scratch.clear();
        leaves
    }

    /// Nodes of at most `ARITY` of these children each.
    fn nodes_of(
        &mut self,
        mut children: Vec<Child<M::Partial>>,
        last: bool,
    ) -> Vec<Child<M::Partial>> {
        let pieces = children.len().div_ceil(ARITY);
        let mut nodes = Vec::with_capacity(pieces);
        let total = children.len();
        let mut rest = children.drain(..);
        for piece in 0..pieces {
            // Full nodes at the right edge, where they are filled in order.
            let size = match last {
                true => ARITY.min(total - piece * ARITY),
                false => total * (piece + 1) / pieces - total * piece / pieces,
            };
            let own: Vec<_> = rest.by_ref().take(size).collect();
            let first = own[0].first;
            let count = own.iter().map(|child| child.count).sum();
            let node = self.new_node(own);
            nodes.push(Child {
                first,
                below: Below::Node(node),
                count,
                agg: None,
            });
        }
        nodes
    }

    /// Computes the fold and the count of a child that is not at the right edge.
    fn seal(&mut self, monoid: &M, child: &mut Child<M::Partial>) {
        match child.below {
            Below::Leaf(block) => {
                let mut acc = None;
                self.blocks.fold(monoid, block, (0, block.len()), &mut acc);
                child.count = block.len() as u32;
                child.agg = acc;
            }
            Below::Node(node) => {
                let mut children = std::mem::take(&mut self.nodes[node as usize]);
                let last = children.last_mut().expect("nodes have children");
                if last.agg.is_none() {
                    self.seal(monoid, last);
                }
                child.count = children.iter().map(|child| child.count).sum();
                child.agg = fold_children(monoid, &children);
                self.nodes[node as usize] = children;
            }
        }
    }

    fn new_node(&mut self, children: Vec<Child<M::Partial>>) -> u32 {
        match self.free.pop() {
            Some(node) => {
                self.nodes[node as usize] = children;
                node
            }
            None => {
                self.nodes.push(children);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 nodes")
            }
        }
    }

    /// The root of children of one level, with as many levels as they need.
    fn rooted(&mut self, monoid: &M, mut children: Vec<Child<M::Partial>>, mut level: u8) -> Root {
        loop {
            if children.is_empty() {
                return Root::Empty;
            }
            if children.len() == 1
                && let Below::Leaf(block) = children[0].below
            {
                return Root::Leaf(block);
            }
            if children.len() == 1
                && let Below::Node(node) = children[0].below
            {
                // One child needs no node above it; its right edge is that of the tree.
                children = std::mem::take(&mut self.nodes[node as usize]);
                self.free.push(node);
                level -= 1;
                continue;
            }
            let first_level = level.max(1);
            let sealed = children.len() - 1;
            for child in &mut children[..sealed] {
                if child.agg.is_none() {
                    self.seal(monoid, child);
                }
            }
            if children.len() <= ARITY {
                let node = self.new_node(children);
                return Root::Tree {
                    node,
                    level: first_level,
                };
            }
            children = self.nodes_of(children, true);
            level = first_level + 1;
        }
    }

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

    pub fn bytes(&self) -> usize {
        let children: usize = self.nodes.iter().map(Vec::capacity).sum();
        self.blocks.bytes()
            + children * size_of::<Child<M::Partial>>()
            + self.nodes.capacity() * size_of::<Vec<Child<M::Partial>>>()
            + self.free.capacity() * size_of::<u32>()
            + self.scratch.bytes()
    }

    /// Checks the invariants of a key's sequence.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, monoid: &M, root: Root) -> Result<(), String> {
        let mut last = i64::MIN;
        let mut ordered = true;
        self.entries(root, &mut |time, _| {
            ordered &= last <= time;
            last = time;
        });
        if !ordered {
            return Err("entries are out of order".into());
        }
        match root {
            Root::Tree { node, level } => self.check_node(monoid, node, level, true).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn check_node(&self, monoid: &M, node: u32, level: u8, edge: bool) -> Result<u32, String> {
        let children = &self.nodes[node as usize];
        if children.is_empty() || children.len() > ARITY {
            return Err(format!("a node of {} children", children.len()));
        }
        let mut total = 0;
        for (at, child) in children.iter().enumerate() {
            let open = edge && at + 1 == children.len();
            let (count, whole) = match child.below {
                Below::Leaf(block) if level == 1 => {
                    let first = self.blocks.times(block).first();
                    if first.is_none_or(|first| *first < child.first) {
                        return Err("a leaf before its first time".into());
                    }
                    let mut acc = None;
                    self.blocks.fold(monoid, block, (0, block.len()), &mut acc);
                    (block.len() as u32, acc)
                }
                Below::Node(node) if level > 1 => {
                    let count = self.check_node(monoid, node, level - 1, open)?;
                    let whole = match open {
                        true => None,
                        false => fold_children(monoid, &self.nodes[node as usize]),
                    };
                    (count, whole)
                }
                _ => return Err("a leaf at another level".into()),
            };
            total += count;
            if open {
                continue;
            }
            let same = match (&child.agg, &whole) {
                (Some(kept), Some(whole)) => monoid.same(kept, whole),
                _ => false,
            };
            if !same || child.count != count {
                return Err(format!("child {at} of a node of level {level} is stale"));
            }
        }
        Ok(total)
    }
}

fn fold_children<M: Monoid>(monoid: &M, children: &[Child<M::Partial>]) -> Option<M::Partial> {
    let mut wholes = children.iter().filter_map(|child| child.agg.as_ref());
    let first = wholes.next()?.clone();
    Some(wholes.fold(first, |acc, whole| monoid.combine(&acc, whole)))
}
