//! Reads a tree: folds, times, entries.

use std::ops::ControlFlow;

use super::{Below, Block, Forest, Root};
use crate::monoid::{Entry, Monoid};

/// Receives times and numbers; returns whether to continue.
pub(in crate::keyed) type Visit<'a> = dyn FnMut(&[i64], &[i64]) -> ControlFlow<()> + 'a;

/// Receives a block and a range of its entries; returns whether to continue.
pub(in crate::keyed) type VisitBlocks<'a> =
    dyn FnMut(Block, (usize, usize)) -> ControlFlow<()> + 'a;

impl<M: Monoid> Forest<M> {
    /// Combines the entries with `lo <= time <= hi` to the end of `acc`.
    #[inline]
    pub fn fold(&self, monoid: &M, root: Root, (lo, hi): (i64, i64), acc: &mut Option<M::Partial>) {
        match root {
            Root::Empty => {}
            Root::Leaf(block) => self.fold_leaf(monoid, (block, None), (lo, hi), acc),
            Root::Tree { node, .. } => self.fold_node(monoid, node, (lo, hi), i64::MAX, acc),
        }
    }

    /// Also gets the fold of the leaf, if there is one.
    #[inline]
    fn fold_leaf(
        &self,
        monoid: &M,
        (block, whole): (Block, Option<&M::Partial>),
        (lo, hi): (i64, i64),
        acc: &mut Option<M::Partial>,
    ) {
        let times = self.blocks.times(block);
        let from = times.partition_point(|time| *time < lo);
        let to = from + times[from..].partition_point(|time| *time <= hi);
        if let Some(whole) = whole.filter(|_| to - from == block.len()) {
            *acc = monoid.combine_run(acc.take(), std::iter::once(whole));
            return;
        }
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
        // The first child that may hold `lo`, and the first that is after `hi`.
        let from = children[1..].partition_point(|child| child.first < lo);
        let to = from + children[from..].partition_point(|child| child.first <= hi);
        let end_of = |at: usize| children.get(at + 1).map_or(end, |next| next.first);
        let is_whole = |at: usize| {
            let child = &children[at];
            child.agg.is_some() && lo <= child.first && end_of(at) <= hi
        };
        let mut at = from;
        while at < to {
            let stop = (at..to).find(|at| !is_whole(*at)).unwrap_or(to);
            if at < stop {
                let wholes = children[at..stop].iter();
                let wholes = wholes.map(|child| child.agg.as_ref().expect("it has a fold"));
                *acc = monoid.combine_run(acc.take(), wholes);
                at = stop;
                continue;
            }
            match children[at].below {
                Below::Leaf(block) => {
                    let whole = children[at].agg.as_ref();
                    self.fold_leaf(monoid, (block, whole), (lo, hi), acc);
                }
                Below::Node(node) => self.fold_node(monoid, node, (lo, hi), end_of(at), acc),
            }
            at += 1;
        }
    }

    /// The times and values of a key with one block of raw values.
    #[inline]
    pub fn raw(&self, root: Root) -> Option<(&[i64], &[M::In])> {
        match root {
            Root::Empty => Some((&[], &[])),
            Root::Leaf(block) => self.blocks.raw(block),
            Root::Tree { .. } => None,
        }
    }

    /// The time at which the first leaf at or after `lo` begins; `None` without a tree.
    pub fn leaf_start(&self, root: Root, lo: i64) -> Option<i64> {
        let Root::Tree { node, .. } = root else {
            return None;
        };
        let children = &self.nodes[node as usize];
        let at = children.partition_point(|child| child.first < lo);
        let inner = match at.checked_sub(1).map(|before| children[before].below) {
            Some(Below::Node(node)) => self.leaf_start(Root::Tree { node, level: 1 }, lo),
            _ => None,
        };
        inner.or_else(|| children.get(at).map(|child| child.first))
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

    /// The last time, if there is one.
    pub fn last_time(&self, root: Root) -> Option<i64> {
        self.last_until(root, i64::MAX)
    }

    /// The last time at or before `hi`.
    pub fn last_until(&self, root: Root, hi: i64) -> Option<i64> {
        let mut last = None;
        self.visit_back(root, (i64::MIN, hi), &mut |times, _| {
            last = times.last().copied();
            ControlFlow::Break(())
        });
        last
    }

    /// The time of the entry after which there are `behind` others up to `hi`; `None` if there are
    /// fewer.
    pub fn time_from_end(&self, root: Root, hi: i64, mut behind: usize) -> Option<i64> {
        let mut found = None;
        self.visit_back(root, (i64::MIN, hi), &mut |times, _| {
            found = times.iter().rev().nth(behind).copied();
            behind = behind.saturating_sub(times.len());
            match found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        found
    }

    /// Appends the numbers of the entries with `lo <= time <= hi`, in order.
    pub fn rows(&self, root: Root, range: (i64, i64), out: &mut Vec<i64>) {
        self.visit(root, range, &mut |_, numbers| {
            out.extend_from_slice(numbers);
            ControlFlow::Continue(())
        });
    }

    /// Whether there is an entry of this time and number.
    pub fn holds(&self, root: Root, time: i64, number: i64) -> bool {
        let mut found = false;
        self.visit(root, (time, time), &mut |_, numbers| {
            found = numbers.contains(&number);
            match found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        found
    }

    /// Visits the times and numbers of the entries with `lo <= time <= hi` in order, those of
    /// a leaf at a time. There are no numbers in a store without them.
    pub fn visit(&self, root: Root, range: (i64, i64), visit: &mut Visit<'_>) {
        let _: ControlFlow<()> = self.visit_blocks(root, range, false, &mut |block, part| {
            self.visit_part(block, part, visit)
        });
    }

    /// As `visit`, with the last leaf first.
    pub fn visit_back(&self, root: Root, range: (i64, i64), visit: &mut Visit<'_>) {
        let _: ControlFlow<()> = self.visit_blocks(root, range, true, &mut |block, part| {
            self.visit_part(block, part, visit)
        });
    }

    fn visit_part(
        &self,
        block: Block,
        (from, to): (usize, usize),
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let numbers = self.blocks.numbers(block).get(from..to);
        visit(&self.blocks.times(block)[from..to], numbers.unwrap_or(&[]))
    }

    /// Visits the blocks with such entries, with the range of these; `back`: the last block first.
    pub fn visit_blocks(
        &self,
        root: Root,
        range: (i64, i64),
        back: bool,
        visit: &mut VisitBlocks<'_>,
    ) -> ControlFlow<()> {
        match root {
            Root::Empty => ControlFlow::Continue(()),
            Root::Leaf(block) => self.visit_leaf(block, range, visit),
            Root::Tree { node, .. } => self.visit_node(node, range, back, visit),
        }
    }

    fn visit_leaf(
        &self,
        block: Block,
        (lo, hi): (i64, i64),
        visit: &mut VisitBlocks<'_>,
    ) -> ControlFlow<()> {
        let times = self.blocks.times(block);
        let from = times.partition_point(|time| *time < lo);
        let to = from + times[from..].partition_point(|time| *time <= hi);
        match from < to {
            true => visit(block, (from, to)),
            false => ControlFlow::Continue(()),
        }
    }

    fn visit_node(
        &self,
        node: u32,
        (lo, hi): (i64, i64),
        back: bool,
        visit: &mut VisitBlocks<'_>,
    ) -> ControlFlow<()> {
        let children = &self.nodes[node as usize];
        let from = children[1..].partition_point(|child| child.first < lo);
        let to = from + children[from..].partition_point(|child| child.first <= hi);
        for step in from..to {
            let at = if back { to - 1 - (step - from) } else { step };
            match children[at].below {
                Below::Leaf(block) => self.visit_leaf(block, (lo, hi), visit)?,
                Below::Node(node) => self.visit_node(node, (lo, hi), back, visit)?,
            }
        }
        ControlFlow::Continue(())
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
