//! Bulk insert (2023, §5): insertion sites search, interleave & split level by level, pass
//! down.

use crate::monoid::Monoid;
use crate::window::Batch;
use crate::window::btree::{BTree, Id, NONE, Site};

/// An event for a node: an entry to insert, with the child behind it; or, without one, a
/// recomputation.
#[derive(Clone, Debug)]
struct Treelet<P> {
    target: Id,
    entry: Option<(i64, P)>,
    /// The child that the entry follows, which `child` was split off from.
    after: Id,
    child: Id,
}

impl<P> Treelet<P> {
    fn recompute(target: Id) -> Self {
        Self {
            target,
            entry: None,
            after: NONE,
            child: NONE,
        }
    }
}

/// Treelets of one level or of the next, in order of time.
type Treelets<P> = Vec<Treelet<P>>;

/// Where the contents of an overfull node lie for a moment.
struct Interleaved<P> {
    times: Vec<i64>,
    values: Vec<P>,
    children: Vec<Id>,
}

impl<M: Monoid> BTree<M> {
    pub(in crate::window) fn bulk_insert(&mut self, batch: Batch<M>) {
        let mut level = 0;
        let mut treelets = self.insertion_sites(batch);
        // Two buffers take turns.
        let mut next = Treelets::new();
        let mut room = Interleaved {
            times: Vec::new(),
            values: Vec::new(),
            children: Vec::new(),
        };
        while !treelets.is_empty() {
            self.process_level(level, &mut treelets, &mut next, &mut room);
            std::mem::swap(&mut treelets, &mut next);
            level += 1;
        }
        self.settle();
    }

    /// Step 1: finds the node for every entry, never climbing higher than needed. Entries
    /// of present times are combined there and then, and leave a recomputation.
    fn insertion_sites(&mut self, batch: Batch<M>) -> Treelets<M::Partial> {
        let mut treelets = Treelets::with_capacity(batch.len());
        // The way down to the last site; each node with the separator right of it.
        let mut path: Vec<(Id, Option<i64>)> = Vec::new();
        for (time, entry) in batch.into_entries() {
            let value = entry.partial(&self.monoid);
            if path.is_empty() {
                let start = self.climb_for_insert(time);
                path.push((start, self.right_of(start)));
            }
            self.climb_path(&mut path, time);
            let site = self.descend_path(&mut path, time);
            if site.present {
                self.combine_at(site.node, site.at, &value);
                treelets.push(Treelet::recompute(site.node));
            } else {
                self.len += 1;
                treelets.push(Treelet {
                    target: site.node,
                    entry: Some((time, value)),
                    after: NONE,
                    child: NONE,
                });
            }
        }
        treelets
    }

    /// The separator right of a spine node's subtree.
    fn right_of(&self, id: Id) -> Option<i64> {
        let right = self.nodes.spines(id).1;
        let parent = self.nodes.parent(id);
        (!right).then(|| self.nodes.times(parent)[0])
    }

    /// Up the path until `time` belongs below its end.
    fn climb_path(&self, path: &mut Vec<(Id, Option<i64>)>, time: i64) {
        while let Some(&(node, Some(separator))) = path.last() {
            if time < separator {
                return;
            }
            path.pop();
            if path.is_empty() {
                let parent = self.nodes.parent(node);
                path.push((parent, self.right_of(parent)));
            }
        }
    }

    fn descend_path(&self, path: &mut Vec<(Id, Option<i64>)>, time: i64) -> Site {
        let (mut node, mut right) = path[path.len() - 1];
        loop {
            let at = self.nodes.up_to(node, time);
            if let Some(site) = self.tied(node, at, time) {
                return site;
            }
            if self.nodes.is_leaf(node) {
                return Site {
                    node,
                    at,
                    present: false,
                };
            }
            right = self.nodes.times(node).get(at).copied().or(right);
            node = self.nodes.child(node, at);
            path.push((node, right));
        }
    }

    /// Step 2 for one level: what is destined for the same node stands together. Events
    /// of higher levels ride along.
    fn process_level(
        &mut self,
        level: usize,
        treelets: &mut Treelets<M::Partial>,
        next: &mut Treelets<M::Partial>,
        room: &mut Interleaved<M::Partial>,
    ) {
        let mut events = treelets.drain(..).peekable();
        while let Some(first) = events.next() {
            let target = first.target;
            if self.nodes.level(target) > level {
                push(next, first);
                continue;
            }
            let mut group: Treelets<M::Partial> = Vec::new();
            let mut event = Some(first);
            while let Some(treelet) = event {
                if treelet.entry.is_some() {
                    group.push(treelet);
                }
                event = events.next_if(|treelet| treelet.target == target);
            }
            self.process_node(target, group, next, room);
        }
    }

    fn process_node(
        &mut self,
        target: Id,
        group: Treelets<M::Partial>,
        next: &mut Treelets<M::Partial>,
        room: &mut Interleaved<M::Partial>,
    ) {
        let arity = self.nodes.arity(target) + group.len();
        if arity > self.most() + 1 {
            self.interleave(target, group, room);
            self.bulk_split(target, next, room);
            return;
        }
        // A small insertion: no need for room.
        for treelet in group {
            let (time, value) = treelet.entry.expect("a group of entries");
            let at = match treelet.child {
                NONE => self.nodes.up_to(target, time),
                _ => self.nodes.position(treelet.after),
            };
            self.nodes.insert(target, at, time, value, treelet.child);
        }
        self.touch(target);
        let (left, right) = self.nodes.spines(target);
        if !left && !right {
            push(next, Treelet::recompute(self.nodes.parent(target)));
        }
    }

    /// Merges the contents of a node with its treelets.
    fn interleave(
        &mut self,
        target: Id,
        group: Treelets<M::Partial>,
        room: &mut Interleaved<M::Partial>,
    ) {
        room.children.clear();
        let (mut times, mut values) = (Vec::new(), Vec::new());
        let children = self.nodes.children(target).to_vec();
        self.nodes.drain(target, &mut times, &mut values);
        let mut own = times.into_iter().zip(values).peekable();
        let mut group = group.into_iter().peekable();
        if self.nodes.is_leaf(target) {
            for treelet in group {
                let (time, value) = treelet.entry.expect("a group of entries");
                while let Some((time, value)) = own.next_if(|(present, _)| *present <= time) {
                    room.push(time, value);
                }
                room.push(time, value);
            }
            for (time, value) in own {
                room.push(time, value);
            }
            return;
        }
        for mut child in children {
            room.children.push(child);
            while let Some(treelet) = group.next_if(|treelet| treelet.after == child) {
                let (time, value) = treelet.entry.expect("a group of entries");
                room.push(time, value);
                child = treelet.child;
                room.children.push(child);
            }
            if let Some((time, value)) = own.next() {
                room.push(time, value);
            }
        }
    }

    /// Claim 1: pieces of arity μ + 1, and a last one of μ to 2μ. The first stays in the
    /// node; the others are promoted, each with the entry before it.
    fn bulk_split(
        &mut self,
        target: Id,
        next: &mut Treelets<M::Partial>,
        room: &mut Interleaved<M::Partial>,
    ) {
        if target == self.root {
            self.height_increase();
        }
        let (parent, level) = (self.nodes.parent(target), self.nodes.level(target));
        let arity = room.times.len() + 1;
        let piece = self.min_arity + 1;
        let pieces = match (arity / piece, arity % piece) {
            (whole, rest) if rest == self.min_arity => whole,
            (whole, _) => whole - 1,
        };
        let mut node = target;
        for number in 0..=pieces {
            let from = number * piece;
            let to = if number < pieces { from + piece } else { arity };
            if number > 0 {
                let sibling = self.nodes.allocate(level);
                self.hand_right_end(node, sibling);
                let blank = self.monoid.identity();
                let value = std::mem::replace(&mut room.values[from - 1], blank);
                next.push(Treelet {
                    target: parent,
                    entry: Some((room.times[from - 1], value)),
                    after: node,
                    child: sibling,
                });
                self.touch(node);
                node = sibling;
            }
            let children = room.children.get(from..to).unwrap_or(&[]);
            self.nodes.fill(
                node,
                &room.times[from..to - 1],
                &mut room.values[from..to - 1],
                children,
            );
        }
        self.touch(node);
        room.times.clear();
        room.values.clear();
    }
}

impl<P> Interleaved<P> {
    fn push(&mut self, time: i64, value: P) {
        self.times.push(time);
        self.values.push(value);
    }
}

/// Recomputations of one node that follow one another are one.
fn push<P>(treelets: &mut Treelets<P>, treelet: Treelet<P>) {
    let repeated = treelet.entry.is_none()
        && treelets
            .last()
            .is_some_and(|last| last.target == treelet.target);
    if !repeated {
        treelets.push(treelet);
    }
}
