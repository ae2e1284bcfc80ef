//! A tree as bytes, with its structure and aggregates: the answers of a restored window are
//! equal bit for bit, also those of floats.
//!
//! Preorder; the height is read first and bounds the depth of reading.

use super::aggregate::{middle, own};
use super::spine::{LevelAggs, edge};
use super::{Child, Id, LEVELS, Nodes, Spine, Tree};
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::shape::PartialKind;

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
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
        self.kept(id).write(out);
        for child in self.nodes.children(id) {
            self.write_node(child.id, out);
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
        if usize::from(height) >= LEVELS {
            return damaged(format!("a tree of height {height}"));
        }
        self.nodes = Nodes::new(self.monoid.identity());
        self.len = 0;
        let root = self.read_node(usize::from(height), None, input)?;
        self.set_root(root.id);
        self.top = root.partial;
        self.thread_spines();
        Ok(())
    }

    /// Refuses underfull nodes as it reads them, so memory stays in proportion to the bytes read.
    fn read_node(
        &mut self,
        level: usize,
        parent: Option<Id>,
        input: &mut Reader<'_>,
    ) -> Result<Child<M::Partial>> {
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
        if level > 0 {
            let inner = self.nodes.inner_mut(id);
            inner.middle = middle(&self.monoid, inner);
        }
        let below: u32 = children.iter().map(|child| child.count).sum();
        let count = below + len as u32;
        Ok(Child { id, count, partial })
    }

    /// Finds the spines. Their aggregates were read as if they were Π↑.
    fn thread_spines(&mut self) {
        self.left = self.spine_below(PartialKind::Left);
        self.right = self.spine_below(PartialKind::Right);
        if self.fingers.is_some() {
            let height = self.left.height();
            for level in 0..height {
                self.nodes.drop_agg(self.left.at(level));
                self.nodes.drop_agg(self.right.at(level));
            }
            self.nodes.vacate_middle(self.root);
        }
    }

    fn spine_below(&self, side: PartialKind) -> Spine<M::Partial> {
        let mut spine = self.left.clone();
        let height = spine.height();
        for level in (0..height).rev() {
            let parent = spine.at(level + 1);
            let at = match side {
                PartialKind::Left => 0,
                _ => self.nodes.len(parent),
            };
            let Child { id, partial, .. } = self.nodes.children(parent)[at].clone();
            let own = own(&self.monoid, &self.nodes, id, side);
            spine.levels[level] = LevelAggs { own, agg: partial };
            spine.set(level, id);
        }
        for level in 0..=height {
            spine.edges[level] = edge(self.nodes.times(spine.at(level)), side);
        }
        spine.stale = 0;
        spine
    }
}
