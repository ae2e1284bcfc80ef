//! The sequences of the keys of a shard: a block for a few entries, a B⁺-tree for many.
//!
//! Leaves are blocks; an inner node has for each child the least time, the number of its
//! entries and the fold of them. As in FiBA the right edge is open: the last child of a node
//! on it has no fold and, above the leaves, no count. So an append changes one leaf, and an
//! inner node once per leaf. A query folds the entries at the ends of its window and whole
//! children in between.

mod check;
mod insert;
mod read;
mod remove;

use super::blocks::{Block, Blocks, MAX_BLOCK};
use super::run::{Run, RunItem};
use crate::monoid::Monoid;

/// The most children of a node.
const ARITY: usize = 32;
/// The number of entries of a leaf that was filled in order.
const FULL: usize = 64;
/// The least capacity of the leaf at the right edge.
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

/// The steps of `Forest::prefetch_step`: the root, its children, and the ends of windows below.
#[derive(Clone, Copy)]
pub(super) enum PrefetchStep {
    Root,
    Children,
    Ends,
}

impl PrefetchStep {
    pub const STEPS: [Self; 3] = [Self::Root, Self::Children, Self::Ends];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    Leaf(Block),
    Node(u32),
}

#[derive(Debug)]
struct Child<P> {
    /// No entry below is earlier.
    first: i64,
    below: Below,
    /// The number of entries below.
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

impl<M: Monoid> Forest<M> {
    pub fn new(numbered: bool) -> Self {
        Self {
            blocks: Blocks::new(numbered),
            nodes: Vec::new(),
            free: Vec::new(),
            scratch: Run::default(),
        }
    }

    /// Appends an entry that is not earlier than the last one of the key, if the right edge has
    /// room or gets it in O(1) steps; returns whether it did. Entries of a block at or before
    /// `until` may be dropped.
    #[inline]
    pub fn append(&mut self, root: &mut Root, item: RunItem<M>, until: Option<i64>) -> bool {
        match root {
            Root::Leaf(block) if block.has_room() => {
                self.blocks.append(block, item);
                true
            }
            Root::Leaf(block) => match self.blocks.widened(*block, until, 1) {
                Some(wider) => {
                    *block = wider;
                    self.blocks.append(block, item);
                    true
                }
                None => false,
            },
            Root::Empty => {
                *root = Root::Leaf(self.blocks.single(item));
                true
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
                        self.blocks.append(block, item);
                        last.count += 1;
                        true
                    }
                    _ => false,
                }
            }
        }
    }

    /// Whether a number of appends needs no more memory: a tree makes room for each append.
    pub fn has_room(&self, root: Root, entries: usize) -> bool {
        match root {
            Root::Empty => false,
            Root::Leaf(block) => block.has_room_for(entries),
            Root::Tree { .. } => true,
        }
    }

    /// Makes room for a number of appends, which follow, if one block can hold them.
    pub fn make_room(&mut self, root: &mut Root, entries: usize, until: Option<i64>) {
        match root {
            Root::Empty if entries <= MAX_BLOCK => {
                *root = Root::Leaf(self.blocks.new_block(entries));
            }
            Root::Leaf(block) if !block.has_room_for(entries) => {
                if let Some(wider) = self.blocks.widened(*block, until, entries) {
                    *block = wider;
                }
            }
            _ => {}
        }
    }

    /// Prefetches the memory that a query of a key reads first: see
    /// [`super::shard::Shard::prefetch`].
    #[inline]
    pub fn prefetch(&self, root: Root) -> i64 {
        match root {
            Root::Empty => 0,
            Root::Leaf(block) => self.blocks.prefetch(block),
            Root::Tree { node, .. } => match self.last(node).below {
                Below::Leaf(block) => self.blocks.prefetch(block),
                Below::Node(node) => self.nodes[node as usize].len() as i64,
            },
        }
    }

    /// Reads what a query of a key reads first, a step at a time, each with the addresses that
    /// the one before has read: see [`super::shard::Shard::prefetch_for_query`].
    #[inline]
    pub fn prefetch_step(&self, root: Root, step: PrefetchStep) -> i64 {
        let Root::Tree { node, .. } = root else {
            return match step {
                PrefetchStep::Root => self.prefetch(root),
                _ => 0,
            };
        };
        let children = &self.nodes[node as usize];
        match step {
            PrefetchStep::Root => children.len() as i64,
            PrefetchStep::Children => children.iter().fold(0, |seen, child| {
                seen ^ child.first ^ i64::from(child.count) ^ i64::from(child.agg.is_some())
            }),
            // The ends of short windows are in the last leaves.
            PrefetchStep::Ends => children.iter().rev().take(2).fold(0, |seen, child| {
                seen ^ match child.below {
                    Below::Leaf(block) => self.blocks.prefetch(block),
                    Below::Node(node) => self.nodes[node as usize].len() as i64,
                }
            }),
        }
    }

    fn last(&self, node: u32) -> &Child<M::Partial> {
        let children = &self.nodes[node as usize];
        children.last().expect("nodes have children")
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
            // Full nodes at the right edge, where entries arrive in order.
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

    /// The root of children of one level, with the levels that they need.
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
                // A single child is the root; its right edge is that of the tree.
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

    pub fn bytes(&self) -> usize {
        let children: usize = self.nodes.iter().map(Vec::capacity).sum();
        self.blocks.bytes()
            + children * size_of::<Child<M::Partial>>()
            + self.nodes.capacity() * size_of::<Vec<Child<M::Partial>>>()
            + self.free.capacity() * size_of::<u32>()
            + self.scratch.bytes()
    }
}

fn fold_children<M: Monoid>(monoid: &M, children: &[Child<M::Partial>]) -> Option<M::Partial> {
    let mut wholes = children.iter().filter_map(|child| child.agg.as_ref());
    let first = wholes.next()?.clone();
    Some(wholes.fold(first, |acc, whole| monoid.combine(&acc, whole)))
}
