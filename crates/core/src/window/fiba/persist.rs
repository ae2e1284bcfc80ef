//! Writes a tree as bytes, with structure and aggregates: the answers of a restored window are
//! identical bit for bit, also those of floats.
//!
//! Nodes are in preorder; the height is read first and bounds the depth of reading.

use super::Form;
use super::leaf::{Leaf, SortedRun};
use super::path::{Id, Path};
use super::small::Small;
use super::tree::{Child, Spine, Tree};
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use crate::window::Ties;

const SMALL: u8 = 0;
const TREE: u8 = 1;
/// A tree of arity 2 with more levels could not be held in memory.
const MAX_HEIGHT: u8 = 40;

pub(super) fn write_small<M: Monoid>(small: &Small<M>, out: &mut Writer) {
    SMALL.write(out);
    (small.len() as u8).write(out);
    for at in 0..small.len() {
        small.time(at).write(out);
        small.entry(at).write(out);
    }
}

pub(super) fn read_form<M: Monoid, const L: usize, const F: usize>(
    monoid: &M,
    ties: Ties,
    most: usize,
    input: &mut Reader<'_>,
) -> Result<Form<M, L, F>> {
    match u8::read(input)? {
        SMALL => {
            let count = usize::from(u8::read(input)?);
            if count > most {
                return damaged(format!("a small window of {count} entries"));
            }
            let mut small = Small::default();
            for _ in 0..count {
                let time = i64::read(input)?;
                small.insert(monoid, Ties::Keep, time, Entry::read(monoid, input)?);
            }
            Ok(Form::Small(small))
        }
        TREE => {
            let mut tree = Box::new(Tree::new(monoid.clone(), ties));
            tree.read(input)?;
            Ok(Form::Tree(tree))
        }
        form => damaged(format!("unknown window form {form}")),
    }
}

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    pub(super) fn write(&self, out: &mut Writer) {
        TREE.write(out);
        (self.height() as u8).write(out);
        (self.inserted - self.evicted).write(out);
        (self.flip as u16).write(out);
        self.write_node(self.height(), self.left[self.height()], out);
        (self.known as u16).write(out);
        let start = self.left_leaf().start();
        for partial in &self.suffix[start.min(self.known)..self.known] {
            partial.write(out);
        }
        for level in 1..self.height() {
            self.left_agg[level].write(out);
            self.right_agg[level].write(out);
        }
        self.inner_agg.write(out);
        self.mid.write(out);
        self.tail.write(out);
        self.write_staged(out);
    }

    fn write_staged(&self, out: &mut Writer) {
        let staged = &self.staged;
        u8::from(staged.stages_all).write(out);
        staged.late.write(out);
        staged.arrivals(self.inserted).write(out);
        (staged.entries.len() as u16).write(out);
        for (time, value) in &staged.entries {
            time.write(out);
            value.write(out);
        }
    }

    fn write_node(&self, level: usize, id: Id, out: &mut Writer) {
        if level == 0 {
            let leaf = self.leaf(id);
            leaf.start.write(out);
            leaf.end.write(out);
            for at in leaf.start()..leaf.end() {
                leaf.times[at].write(out);
            }
            for at in leaf.start()..leaf.end() {
                self.entry_of(leaf, at).write(out);
            }
            return;
        }
        (self.children(id).len() as u16).write(out);
        for child in self.children(id) {
            child.key.write(out);
            child.count.write(out);
            child.agg.write(out);
            self.write_node(level - 1, child.id, out);
        }
    }

    /// Reads what `write` wrote behind its tag. The caller checks the invariants.
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let height = u8::read(input)?;
        if height > MAX_HEIGHT {
            return damaged(format!("a tree of height {height}"));
        }
        self.inserted = u64::read(input)?;
        self.evicted = 0;
        self.flip = usize::from(u16::read(input)?);
        self.leaves.clear();
        let root = self.read_node(usize::from(height), Spine::ROOT, input)?;
        self.left = Path::of(root, usize::from(height));
        self.right = self.left.clone();
        self.stale.left = usize::from(height);
        self.find_spines();
        self.stale.left = 0;
        self.read_aggregates(input)?;
        self.read_staged(input)
    }

    fn read_aggregates(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let (start, end) = (self.left_leaf().start(), self.left_leaf().end());
        if self.flip > end || (self.height() > 0 && self.flip < end) {
            return damaged(format!("flip {} in a leaf of {start}..{end}", self.flip));
        }
        self.known = usize::from(u16::read(input)?);
        if self.known > self.flip || (start < self.flip && self.known <= start) {
            return damaged(format!("{} folds of {start}..{}", self.known, self.flip));
        }
        for at in start.min(self.known)..self.known {
            self.suffix[at] = self.monoid.read_partial(input)?;
        }
        for _ in 1..self.height() {
            self.left_agg.push(self.monoid.read_partial(input)?);
            self.right_agg.push(self.monoid.read_partial(input)?);
        }
        self.inner_agg = self.monoid.read_partial(input)?;
        self.mid = self.monoid.read_partial(input)?;
        self.tail = self.monoid.read_partial(input)?;
        Ok(())
    }

    fn read_staged(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let stages_all = match u8::read(input)? {
            0 => false,
            1 => true,
            tag => return damaged(format!("unknown way of staging {tag}")),
        };
        let late = u64::read(input)?;
        self.staged.since = self.inserted.wrapping_sub(u64::read(input)?);
        for _ in 0..u16::read(input)? {
            let time = i64::read(input)?;
            let value = self.monoid.read_in(input)?;
            self.staged.push(&self.monoid, time, value);
        }
        self.staged.late = late;
        self.set_stages_all(stages_all);
        if !self.staged.entries.is_empty() && self.tree_len() == 0 {
            return damaged("staged entries beside an empty tree");
        }
        Ok(())
    }

    /// Refuses thin nodes when it reads them, so that the allocated memory stays in proportion
    /// to the bytes read.
    fn read_node(&mut self, level: usize, spine: Spine, input: &mut Reader<'_>) -> Result<Id> {
        if level == 0 {
            return self.read_leaf(spine, input);
        }
        let arity = usize::from(u16::read(input)?);
        if !(2..=F).contains(&arity) {
            return damaged(format!("a node of arity {arity}"));
        }
        let mut children = Vec::new();
        for at in 0..arity {
            let key = i64::read(input)?;
            let count = u32::read(input)?;
            let agg = self.monoid.read_partial(input)?;
            let child_spine = spine.of_child(at, arity);
            let id = self.read_node(level - 1, child_spine, input)?;
            children.push(Child {
                key,
                id,
                count,
                agg,
            });
        }
        Ok(self.new_inner(children))
    }

    fn read_leaf(&mut self, spine: Spine, input: &mut Reader<'_>) -> Result<Id> {
        let (start, end) = (u16::read(input)?, u16::read(input)?);
        let least = match spine {
            Spine::ROOT => usize::from(start > 0),
            _ if spine.any() => 1,
            _ => Self::MIN_LEAF,
        };
        if start > end || usize::from(end) > L || usize::from(end - start) < least {
            return damaged(format!("a leaf of slots {start}..{end}"));
        }
        let times: Vec<i64> = input.many(usize::from(end - start))?;
        let mut run = SortedRun::default();
        for time in times {
            let entry = Entry::read(&self.monoid, input)?;
            run.push_entry::<M>(time, entry, &mut self.slab);
        }
        let id = self.new_leaf();
        let leaf: &mut Leaf<M::In, L> = self.leaf_mut(id);
        leaf.start = start;
        leaf.end = start;
        leaf.extend(run.slice(0, run.len()));
        Ok(id)
    }
}
