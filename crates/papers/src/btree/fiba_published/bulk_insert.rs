//! Bulk insert (2023, §5): insertion sites search, interleave & split level by level, pass
//! down.

use std::mem::replace;

use super::super::{Child, Id, NONE, Site, Tree, is_leaf};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Batch;
use slidewise_core::window::shape::PartialKind;
use slidewise_core::window::steps::Step;

/// An event for a node: an entry to insert, with the child behind it; or, without one, a
/// recomputation.
#[derive(Clone, Debug)]
struct Treelet<P> {
    target: Id,
    entry: Option<(i64, P)>,
    /// The child that the entry follows, which `child` was split off from.
    after: Id,
    child: Option<Child<P>>,
}

impl<P> Treelet<P> {
    fn recompute(target: Id) -> Self {
        Self {
            target,
            entry: None,
            after: NONE,
            child: None,
        }
    }
}

/// Treelets of one level or of the next, in order of time.
type Treelets<P> = Vec<Treelet<P>>;

/// Entries and children, as many as there are.
struct Contents<P> {
    times: Vec<i64>,
    values: Vec<P>,
    children: Vec<Child<P>>,
}

/// Buffers for an overfull node, one after the other: what it holds, and that with its treelets.
struct Room<P> {
    own: Contents<P>,
    all: Contents<P>,
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    pub(crate) fn bulk_insert(&mut self, batch: Batch<M>) {
        let mut level = 0;
        let mut treelets = self.insertion_sites(batch);
        // Two buffers take turns.
        let mut next = Treelets::new();
        let mut room = Room {
            own: Contents::new(),
            all: Contents::new(),
        };
        while !treelets.is_empty() {
            self.process_level(level, &mut treelets, &mut next, &mut room);
            std::mem::swap(&mut treelets, &mut next);
            level += 1;
        }
        self.refresh_spines();
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
                let (start, _) = self.climb_for_insert(time);
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
                    child: None,
                });
            }
        }
        treelets
    }

    /// The separator right of a spine node's subtree.
    fn right_of(&self, id: Id) -> Option<i64> {
        let right = self.right.at(self.nodes.level(id)) == id;
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
                Step::Visit.note();
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
            if is_leaf(node) {
                return Site {
                    node,
                    at,
                    present: false,
                };
            }
            right = self.nodes.times(node).get(at).copied().or(right);
            node = self.nodes.child(node, at);
            Step::Visit.note();
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
        room: &mut Room<M::Partial>,
    ) {
        let mut from = 0;
        while let Some(first) = treelets.get_mut(from) {
            let target = first.target;
            if self.nodes.level(target) > level {
                push(next, replace(first, Treelet::recompute(NONE)));
                from += 1;
                continue;
            }
            let rest = treelets[from..].iter();
            let group = rest.take_while(|treelet| treelet.target == target);
            let to = from + group.count();
            self.process_node(target, &mut treelets[from..to], next, room);
            from = to;
        }
        treelets.clear();
    }

    fn process_node(
        &mut self,
        target: Id,
        group: &mut [Treelet<M::Partial>],
        next: &mut Treelets<M::Partial>,
        room: &mut Room<M::Partial>,
    ) {
        let entries = group.iter().filter(|treelet| treelet.entry.is_some());
        let arity = self.nodes.arity(target) + entries.count();
        if arity > self.most() + 1 {
            self.interleave(target, group, room);
            self.bulk_split(target, next, &mut room.all);
            return;
        }
        // A small insertion: no need for room.
        for treelet in group {
            let Some((time, value)) = treelet.entry.take() else {
                continue;
            };
            let at = match treelet.child {
                None => self.nodes.up_to(target, time),
                Some(_) => self.nodes.position(treelet.after),
            };
            self.nodes
                .insert(target, at, time, value, treelet.child.take());
        }
        if self.touch(target) {
            push(next, Treelet::recompute(self.nodes.parent(target)));
        }
    }

    /// Merges the contents of a node with its treelets.
    fn interleave(
        &mut self,
        target: Id,
        group: &mut [Treelet<M::Partial>],
        room: &mut Room<M::Partial>,
    ) {
        let Room { own, all: room } = room;
        self.nodes
            .drain(target, &mut own.times, &mut own.values, &mut own.children);
        let children = own.children.drain(..);
        let mut own = own.times.drain(..).zip(own.values.drain(..)).peekable();
        if is_leaf(target) {
            room.times.reserve(group.len() + own.len());
            room.values.reserve(group.len() + own.len());
            for (time, value) in group.iter_mut().filter_map(|treelet| treelet.entry.take()) {
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
        let group = group.iter_mut();
        let mut group = group.filter_map(|treelet| {
            let after = treelet.after;
            Some((after, treelet.entry.take()?, treelet.child.take()?))
        });
        let mut treelet = group.next();
        for child in children {
            let mut last = child.id;
            room.children.push(child);
            while let Some((_, (time, value), child)) =
                treelet.take_if(|(after, ..)| *after == last)
            {
                room.push(time, value);
                last = child.id;
                room.children.push(child);
                treelet = group.next();
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
        room: &mut Contents<M::Partial>,
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
            let last = number == pieces;
            let to = if last { arity } else { from + piece };
            let after = node;
            if number > 0 {
                Step::Split.note();
                node = self.nodes.allocate(level);
            }
            let children = room.children.get(from..to).unwrap_or(&[]);
            self.nodes.fill(
                node,
                &room.times[from..to - 1],
                &mut room.values[from..to - 1],
                children,
            );
            if number > 0 {
                self.hand_right_end(after, node, level);
                let blank = self.monoid.identity();
                let value = replace(&mut room.values[from - 1], blank);
                let on_spine = last && self.kind(node) != PartialKind::Up;
                let child = match on_spine {
                    true => self.nodes.child_of(node),
                    false => self.whole_child(node),
                };
                next.push(Treelet {
                    target: parent,
                    entry: Some((room.times[from - 1], value)),
                    after,
                    child: Some(child),
                });
            }
        }
        self.touch(target);
        room.times.clear();
        room.values.clear();
        room.children.clear();
    }
}

impl<P> Contents<P> {
    fn new() -> Self {
        Self {
            times: Vec::new(),
            values: Vec::new(),
            children: Vec::new(),
        }
    }

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
