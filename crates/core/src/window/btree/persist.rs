//! A tree as bytes, structure and aggregates included: a restored window goes on with
//! bit-identical answers, floats too.
//!
//! Preorder; the height is read first and bounds the depth of reading.

use super::{Agg, BTree, Id, Nodes};
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// A tree of arity 2 with more levels could not be held in memory.
const MAX_HEIGHT: u8 = 40;

impl<M: Monoid> BTree<M> {
    pub(super) fn write_tree(&self, out: &mut Writer) {
        (self.min_arity as u8).write(out);
        u8::from(self.fingers.is_some()).write(out);
        (self.nodes.level(self.root) as u8).write(out);
        self.write_node(self.root, out);
    }

    fn write_node(&self, id: Id, out: &mut Writer) {
        (self.nodes.len(id) as u8).write(out);
        out.all(self.nodes.times(id));
        out.all(self.nodes.values(id));
        self.nodes.agg(id).partial.write(out);
        for child in self.nodes.children(id) {
            self.write_node(*child, out);
        }
    }

    /// Reads what `write_tree` wrote. The caller checks the invariants.
    pub(super) fn read_tree(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let min_arity = usize::from(u8::read(input)?);
        if min_arity != self.min_arity {
            return damaged(format!(
                "a tree of minimum arity {min_arity} for one of {}",
                self.min_arity
            ));
        }
        match (u8::read(input)?, self.fingers.is_some()) {
            (0, false) | (1, true) => {}
            (kind, _) => return damaged(format!("a tree of another kind, {kind}")),
        }
        let height = u8::read(input)?;
        if height > MAX_HEIGHT {
            return damaged(format!("a tree of height {height}"));
        }
        self.nodes = Nodes::new(2 * self.min_arity, self.monoid.identity());
        self.len = 0;
        let root = self.read_node(usize::from(height), None, input)?;
        self.plant(root);
        self.thread_spines();
        self.count_spines();
        Ok(())
    }

    /// Refuses thin nodes as it meets them: what is allocated stays in proportion to what
    /// was read.
    fn read_node(
        &mut self,
        level: usize,
        parent: Option<Id>,
        input: &mut Reader<'_>,
    ) -> Result<Id> {
        let len = usize::from(u8::read(input)?);
        let least = match parent {
            Some(_) => self.min_arity - 1,
            None => usize::from(level > 0),
        };
        if len < least || len > self.most() {
            return damaged(format!("a node of {len} entries"));
        }
        let times: Vec<i64> = input.many(len)?;
        let mut values = Vec::new();
        for _ in 0..len {
            values.push(self.monoid.read_partial(input)?);
        }
        let partial = self.monoid.read_partial(input)?;
        let id = self.nodes.allocate(level);
        self.len += len;
        let mut children = Vec::new();
        if level > 0 {
            for _ in 0..=len {
                children.push(self.read_node(level - 1, Some(id), input)?);
            }
        }
        self.nodes.fill(id, &times, &mut values, &children);
        let below: u32 = children
            .iter()
            .map(|child| self.nodes.agg(*child).count)
            .sum();
        let count = below + len as u32;
        self.nodes.set_agg(id, Agg { partial, count });
        Ok(id)
    }

    /// Finds fingers and marks spines, from the root down.
    fn thread_spines(&mut self) {
        let mut id = self.root;
        while !self.nodes.is_leaf(id) {
            id = self.nodes.child(id, 0);
            self.nodes.set_left(id, true);
        }
        self.left_finger = id;
        id = self.root;
        while !self.nodes.is_leaf(id) {
            id = self.nodes.last_child(id);
            self.nodes.set_right(id, true);
        }
        self.right_finger = id;
    }

    /// Nodes were counted as whole subtrees, which is not what spines stand for.
    fn count_spines(&mut self) {
        if self.fingers.is_none() {
            return;
        }
        self.count_again(self.root);
        for last in [false, true] {
            let mut id = self.root;
            while !self.nodes.is_leaf(id) {
                let at = if last { self.nodes.len(id) } else { 0 };
                id = self.nodes.child(id, at);
                self.count_again(id);
            }
        }
    }

    fn count_again(&mut self, id: Id) {
        let partial = self.nodes.agg(id).partial.clone();
        let count = self.local(id).count;
        self.nodes.set_agg(id, Agg { partial, count });
    }
}
