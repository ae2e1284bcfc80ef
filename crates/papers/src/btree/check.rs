//! Walks the entries of a tree, checks its invariants and shows its shape.

use std::fmt;
use std::mem::needs_drop;

use super::aggregate::{middle, own};
use super::spine::LevelAggs;
use super::{Id, NONE, Tree, is_leaf};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::fifo::checks::{check_same, require};
use slidewise_core::window::shape::{Node, PartialKind, Shape};

type Verdict = Result<(), String>;

/// A node, for messages.
struct Place {
    level: usize,
    id: Id,
    spines: (bool, bool),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, id, spines } = self;
        write!(f, "node {id} of level {level} {spines:?}")
    }
}

/// The results of a walk over the tree.
struct Survey<P> {
    nodes: usize,
    last: Option<i64>,
    /// Folds and lengths of whole subtrees, by level, of the node visited last.
    whole: Vec<(P, u32)>,
}

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    pub(super) fn walk(&self, id: Id, visit: &mut dyn FnMut(i64, M::Partial)) {
        let children = self.nodes.children(id);
        let entries = self.nodes.times(id).iter().zip(self.nodes.values(id));
        for (at, (time, value)) in entries.enumerate() {
            if let Some(child) = children.get(at) {
                self.walk(child.id, visit);
            }
            visit(*time, value.clone());
        }
        if let Some(child) = children.last() {
            self.walk(child.id, visit);
        }
    }

    pub(super) fn check_all(&self) -> Verdict {
        let mut survey = Survey {
            nodes: 0,
            last: None,
            whole: vec![(self.monoid.identity(), 0); self.nodes.level(self.root) + 1],
        };
        let height = self.nodes.level(self.root);
        for spine in [&self.left, &self.right] {
            let (levels, stale) = (spine.height(), spine.stale);
            require(
                levels == height && stale == 0,
                format_args!("a spine up to level {levels} of {height}, stale {stale:b}"),
            )?;
        }
        let parent = self.nodes.parent(self.root);
        require(parent == NONE, format_args!("the root has parent {parent}"))?;
        self.check_node(self.root, (true, true), &mut survey)?;
        let entries = survey.whole[self.nodes.level(self.root)].1 as usize;
        require(
            entries == self.len,
            format_args!("{entries} entries, {} counted", self.len),
        )?;
        let counted = self.clone().counted();
        require(
            counted == self.len,
            format_args!("children cover {counted} of {entries} entries"),
        )?;
        let idle = self.nodes.idle();
        require(
            survey.nodes + idle == self.nodes.capacity(),
            format_args!(
                "{} nodes in the tree and {idle} idle of {}",
                survey.nodes,
                self.nodes.capacity()
            ),
        )
    }

    fn check_node(&self, id: Id, spines: (bool, bool), survey: &mut Survey<M::Partial>) -> Verdict {
        let nodes = &self.nodes;
        let level = nodes.level(id);
        let place = Place { level, id, spines };
        survey.nodes += 1;
        let threads = [(&self.left, spines.0), (&self.right, spines.1)];
        for (spine, on) in threads {
            require(
                (spine.at(level) == id) == on,
                format_args!("{place}: the spine has {}", spine.at(level)),
            )?;
        }
        let times = nodes.times(id);
        let ends = [(&self.left, times.first()), (&self.right, times.last())];
        for (spine, edge) in ends.into_iter().filter(|_| self.fingers.is_some()) {
            let kept = spine.edge(level);
            let inner = level > 0 && spine.at(level) == id;
            require(
                !inner || edge == Some(&kept),
                format_args!("{place}: the edge for climbs is {kept}, not {edge:?}"),
            )?;
        }
        self.check_arity(id)?;
        let mut whole: Option<M::Partial> = None;
        let mut count = nodes.len(id) as u32;
        let mut add = |partial: &M::Partial| {
            whole = Some(match &whole {
                Some(whole) => self.monoid.combine(whole, partial),
                None => partial.clone(),
            });
        };
        for at in 0..nodes.arity(id) {
            if let Some(child) = nodes.children(id).get(at).map(|child| &child.id) {
                require(
                    nodes.parent(*child) == id,
                    format_args!("{place}: child {child} has another parent"),
                )?;
                let below = nodes.level(*child);
                let what = format_args!("{place}: child {child} of level {below}");
                require(below + 1 == level, what)?;
                let child_spines = (spines.0 && at == 0, spines.1 && at == nodes.len(id));
                self.check_node(*child, child_spines, survey)?;
                let (fold, entries) = &survey.whole[level - 1];
                add(fold);
                count += entries;
            }
            if let (Some(time), Some(value)) = (nodes.times(id).get(at), nodes.values(id).get(at)) {
                self.check_order(survey.last, *time)?;
                survey.last = Some(*time);
                add(value);
            }
        }
        let whole = whole.unwrap_or_else(|| self.monoid.identity());
        survey.whole[level] = (whole, count);
        self.check_aggregate(id, &survey.whole[level])
    }

    /// Checks the spine's copy of a node below the root.
    fn spine_aggs(&self, id: Id) -> Option<&LevelAggs<M::Partial>> {
        let level = self.nodes.level(id);
        let spines = [&self.left, &self.right].into_iter();
        let mut spines = spines.filter(|spine| spine.at(level) == id);
        let fingers = self.fingers.is_some() && id != self.root;
        let spine = spines.next().filter(|_| fingers)?;
        Some(&spine.levels[level])
    }

    fn check_arity(&self, id: Id) -> Verdict {
        let arity = self.nodes.arity(id);
        let least = match id == self.root {
            true if is_leaf(id) => 1,
            true => 2,
            false => self.min_arity,
        };
        require(
            (least..=2 * self.min_arity).contains(&arity),
            format_args!("node {id} of arity {arity}"),
        )
    }

    fn check_order(&self, last: Option<i64>, time: i64) -> Verdict {
        let ordered = match (self.ties, last) {
            (_, None) => true,
            (Ties::Combine, Some(last)) => last < time,
            (Ties::Keep, Some(last)) => last <= time,
        };
        require(ordered, format_args!("{time} behind {last:?}"))
    }

    /// Compares Π↑ with the fold of the subtree, and other aggregates with their definition over
    /// the stored aggregates around them, which are compared themselves.
    fn check_aggregate(&self, id: Id, (whole, count): &(M::Partial, u32)) -> Verdict {
        let kept = self.kept(id);
        if let Some(aggs) = self.spine_aggs(id) {
            let own = own(&self.monoid, &self.nodes, id, self.kind(id));
            let what = format_args!("node {id} of its own");
            check_same(&self.monoid, &aggs.own, &own, what)?;
        }
        self.check_middle(id)?;
        let expected = match self.kind(id) {
            PartialKind::Up => whole.clone(),
            _ => self.local(id),
        };
        if id != self.root && self.kind(id) == PartialKind::Up {
            let siblings = self.nodes.children(self.nodes.parent(id));
            let kept = siblings[self.nodes.position(id)].count;
            require(
                kept == *count,
                format_args!("{kept} entries below node {id}, not {count}"),
            )?;
        }
        let what = format_args!("node {id}");
        check_same(&self.monoid, kept, &expected, what)
    }

    /// Compares the Π inner of a node with Π↑ with its fold; other nodes hold no memory with it.
    fn check_middle(&self, id: Id) -> Verdict {
        if is_leaf(id) {
            return Ok(());
        }
        let inner = self.nodes.inner(id);
        let expected = match self.kind(id) {
            PartialKind::Up => middle(&self.monoid, inner),
            _ if needs_drop::<M::Partial>() => self.monoid.identity(),
            _ => return Ok(()),
        };
        let what = format_args!("node {id} without its outermost children");
        check_same(&self.monoid, &inner.middle, &expected, what)
    }

    /// The shape of the tree, whose inner nodes have entries, too.
    pub(super) fn to_shape(&self) -> Shape<M::Partial> {
        let mut shape = Shape {
            nodes: Vec::new(),
            leaf_capacity: self.most(),
            arity: 2 * self.min_arity,
        };
        self.show(self.root, &mut shape);
        shape
    }

    fn show(&self, id: Id, shape: &mut Shape<M::Partial>) -> usize {
        let place = shape.nodes.len();
        shape.nodes.push(Node {
            level: self.nodes.level(id),
            kind: self.kind(id),
            times: self.nodes.times(id).to_vec(),
            children: Vec::new(),
            aggregate: self.kept(id).clone(),
        });
        for child in self.nodes.children(id) {
            let child = self.show(child.id, shape);
            shape.nodes[place].children.push(child);
        }
        place
    }
}
