//! Inserts entries into a tree.

use super::super::run::Run;
use super::{Below, Block, Child, FULL, Forest, MAX_BLOCK, Root, TAIL};
use crate::monoid::Monoid;

impl<M: Monoid> Forest<M> {
    /// Inserts the entries `from..to` of a run, after those of equal time. If the only block of a
    /// key is rewritten, entries at or before `until` are dropped.
    pub fn insert(
        &mut self,
        monoid: &M,
        root: &mut Root,
        (run, from, to): (&Run<M>, usize, usize),
        until: Option<i64>,
    ) {
        *root = match *root {
            Root::Empty => {
                let children = self.leaves(run, from, to, to - from > MAX_BLOCK);
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
                // A single block if possible, because a node takes the memory of many entries.
                let several = appended && scratch.len() > MAX_BLOCK;
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

    /// Leaves of the entries `from..to`: at the right edge full ones and a rest, elsewhere leaves
    /// of equal size.
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
            false if count <= MAX_BLOCK => 1,
            false => count.div_ceil(MAX_BLOCK * 3 / 4),
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
            // New entries go after those of equal time.
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
        let held = self.blocks.times(block).last();
        let appended = last && held.is_none_or(|held| *held <= run.times[from]);
        if appended && let Some(leaves) = self.append_leaves(block, (run, from, to)) {
            return leaves;
        }
        self.blocks.take(block, None, scratch);
        scratch.merge(run, from, to);
        let leaves = self.leaves(scratch, 0, scratch.len(), appended);
        scratch.clear();
        leaves
    }

    /// As `insert`, for entries after all others: fills the last leaf, then new ones. `None` if the
    /// leaf must be rewritten.
    fn append_leaves(
        &mut self,
        mut block: Block,
        (run, from, to): (&Run<M>, usize, usize),
    ) -> Option<Vec<Child<M::Partial>>> {
        let filled = FULL.saturating_sub(block.len()).min(to - from);
        if !block.has_room_for(filled) {
            block = self.blocks.widened(block, None, filled)?;
        }
        for at in from..from + filled {
            self.blocks.append(&mut block, run.item(at));
        }
        let mut leaves = vec![Child {
            first: self.blocks.times(block)[0],
            below: Below::Leaf(block),
            count: block.len() as u32,
            agg: None,
        }];
        if from + filled < to {
            leaves.extend(self.leaves(run, from + filled, to, true));
        }
        Some(leaves)
    }
}
