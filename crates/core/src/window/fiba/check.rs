//! Reads a tree: walks its entries, checks its invariants, returns its shape.

use std::fmt;

use super::late_buffer::LateBuffer;
use super::leaf::Leaf;
use super::path::Id;
use super::tree::{Spine, Tree};
use crate::monoid::{Entry, HandleSlot, Monoid};
use crate::window::Ties;
use crate::window::fifo::checks::{check_same, check_times, require};
use crate::window::shape::{Node, PartialKind, Shape};

type Verdict = Result<(), String>;

/// A node, for messages.
struct Place {
    level: usize,
    id: Id,
    spine: Spine,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, id, spine } = self;
        write!(f, "node {id} of level {level} ({spine:?})")
    }
}

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    pub(super) fn oldest(&self) -> Option<i64> {
        let first = (self.tree_len() > 0).then(|| self.left_leaf().first_time());
        first.map(|time| time.min(self.staged.oldest))
    }

    pub(super) fn youngest(&self) -> Option<i64> {
        (self.tree_len() > 0).then(|| self.right_leaf().last_time().max(self.staged.youngest))
    }

    /// Leaves in order.
    fn leaf_ids(&self) -> Vec<Id> {
        let mut ids = vec![self.left[self.height()]];
        for _ in 0..self.height() {
            let children = ids
                .iter()
                .flat_map(|id| self.children(*id).iter().map(|c| c.id));
            ids = children.collect();
        }
        ids
    }

    pub(super) fn entry_of(&self, leaf: &Leaf<M::In, L>, at: usize) -> Entry<M> {
        let slot = &leaf.values[at];
        if leaf.is_promoted(at) {
            Entry::Lifted(self.slab.get(slot.handle()).clone())
        } else {
            Entry::Raw(slot.clone())
        }
    }

    /// The entries of the tree in order, without those that are staged.
    pub(super) fn for_each_entry(&self, mut visit: impl FnMut(i64, Entry<M>)) {
        for id in self.leaf_ids() {
            let leaf = self.leaf(id);
            for at in leaf.start()..leaf.end() {
                visit(leaf.times[at], self.entry_of(leaf, at));
            }
        }
    }

    pub(super) fn check(&self) -> Verdict {
        let height = self.height();
        require(
            self.right.height() == height,
            format_args!("spines of unequal height"),
        )?;
        require(
            self.left[height] == self.right[height],
            format_args!("two roots"),
        )?;
        let count = self.check_node(height, self.left[height], Spine::ROOT)?.1;
        require(
            count == self.tree_len(),
            format_args!("{count} entries, {} counted", self.tree_len()),
        )?;
        self.check_order()?;
        self.check_staged()?;
        self.check_ends()?;
        self.check_spines()?;
        self.check_middle()
    }

    /// Arity, spines and Π↑ below a node; gives its fold and number of entries.
    fn check_node(
        &self,
        level: usize,
        id: Id,
        spine: Spine,
    ) -> Result<(M::Partial, usize), String> {
        let place = Place { level, id, spine };
        require(
            !spine.left || self.left[level] == id,
            format_args!("{place}: left spine"),
        )?;
        require(
            !spine.right || self.right[level] == id,
            format_args!("{place}: right spine"),
        )?;
        if level == 0 {
            let leaf = self.leaf(id);
            let alone = self.height() == 0;
            let least = if spine.any() { 1 } else { Self::MIN_LEAF };
            require(
                alone || leaf.len() >= least,
                format_args!("{place}: {} entries", leaf.len()),
            )?;
            require(
                spine.left || leaf.start == 0,
                format_args!("{place}: start"),
            )?;
            let outside = leaf.promoted & !leaf.promoted_in(leaf.start(), leaf.end());
            require(outside == 0, format_args!("{place}: promoted outside"))?;
            return Ok((self.fold_leaf(id, leaf.start(), leaf.end()), leaf.len()));
        }
        let children = self.children(id);
        let least = if level == self.height() {
            2
        } else {
            Self::MIN_ARITY
        };
        let arity = children.len();
        require(
            (least..=F).contains(&arity),
            format_args!("{place}: arity {arity}"),
        )?;
        let mut whole: Option<M::Partial> = None;
        let mut count = 0;
        for (at, child) in children.iter().enumerate() {
            let child_spine = spine.of_child(at, arity);
            let (agg, entries) = self.check_node(level - 1, child.id, child_spine)?;
            if !child_spine.any() {
                require(
                    child.count as usize == entries,
                    format_args!("{place}: child {at} counts {}, has {entries}", child.count),
                )?;
                let what = format_args!("{place}: child {at}");
                check_same(&self.monoid, &child.agg, &agg, what)?;
            }
            count += entries;
            whole = Some(match whole {
                Some(whole) => self.monoid.combine(&whole, &agg),
                None => agg,
            });
        }
        Ok((whole.expect("arity checked"), count))
    }

    /// Times rise within and across leaves, and separators separate.
    fn check_order(&self) -> Verdict {
        let ids = self.leaf_ids();
        let times: Vec<&[i64]> = ids.iter().map(|id| self.leaf(*id).taken()).collect();
        check_times(times.into_iter().flatten(), self.ties)?;
        self.check_keys(self.height(), self.left[self.height()], None, None)
    }

    fn check_keys(&self, level: usize, id: Id, lo: Option<i64>, hi: Option<i64>) -> Verdict {
        if level == 0 {
            let leaf = self.leaf(id);
            let inside = |time: &i64| {
                let above = lo.is_none_or(|lo| lo <= *time);
                let below =
                    hi.is_none_or(|hi| *time < hi || (*time == hi && self.ties == Ties::Keep));
                above && below
            };
            return require(
                leaf.taken().iter().all(inside),
                format_args!("leaf {id}: {:?} outside {lo:?}..{hi:?}", leaf.taken()),
            );
        }
        let children = self.children(id);
        for (at, child) in children.iter().enumerate() {
            let lo = if at == 0 { lo } else { Some(child.key) };
            let hi = children.get(at + 1).map_or(hi, |next| Some(next.key));
            self.check_keys(level - 1, child.id, lo, hi)?;
        }
        Ok(())
    }

    fn check_staged(&self) -> Verdict {
        let LateBuffer {
            entries,
            oldest,
            youngest,
            stages_all,
            ..
        } = &self.staged;
        let times = entries.iter().map(|(time, _)| *time);
        let bounds = times.fold((i64::MAX, i64::MIN), |(least, most), time| {
            (least.min(time), most.max(time))
        });
        require(
            bounds == (*oldest, *youngest),
            format_args!("staged {bounds:?}, not {oldest}..={youngest}"),
        )?;
        let least = match self.youngest() {
            _ if *stages_all => i64::MAX,
            Some(youngest) => youngest,
            None => i64::MIN,
        };
        require(
            self.bound >= least,
            format_args!("bound {} below {least}", self.bound),
        )?;
        if entries.is_empty() && !stages_all {
            return Ok(());
        }
        require(
            self.height() > 0,
            format_args!("staged beside a single leaf"),
        )?;
        require(
            !stages_all || self.monoid.commutative(),
            format_args!("all arrivals staged, but combining does not commute"),
        )?;
        let last = self.right_leaf().last_time();
        require(
            *stages_all || *youngest < last,
            format_args!("staged younger than {last}"),
        )
    }

    /// `suffix` and `tail`.
    fn check_ends(&self) -> Verdict {
        let (left, right) = (self.left_leaf(), self.right_leaf());
        let single = self.height() == 0;
        require(
            single || self.flip == left.end(),
            format_args!("flip {}", self.flip),
        )?;
        require(
            self.known <= self.flip,
            format_args!("{} folds known, flip {}", self.known, self.flip),
        )?;
        require(
            left.start() >= self.flip || self.known > left.start(),
            format_args!("no fold known of {}..{}", left.start(), self.flip),
        )?;
        for at in left.start()..self.known {
            let own = self.fold_leaf(self.left[0], at, self.flip);
            let what = format_args!("suffix[{at}]");
            check_same(&self.monoid, &self.suffix[at], &own, what)?;
        }
        let from = if single {
            self.flip.max(right.start())
        } else {
            right.start()
        };
        let mut tail = self.fold_leaf(self.right[0], from, right.end());
        if self.monoid.commutative() {
            for (_, value) in &self.staged.entries {
                self.monoid.absorb(&mut tail, value);
            }
        }
        check_same(&self.monoid, &self.tail, &tail, format_args!("tail"))
    }

    /// Π↙, Π↘ and Π inner by their definitions.
    fn check_spines(&self) -> Verdict {
        let height = self.height();
        for level in (1..height).rev() {
            let mut left = self.fold_children(&self.children(self.left[level])[1..]);
            let right = self.children(self.right[level]);
            let mut right = self.fold_children(&right[..right.len() - 1]);
            if level + 1 < height {
                left = self.monoid.combine(&left, &self.left_agg[level + 1]);
                right = self.monoid.combine(&self.right_agg[level + 1], &right);
            }
            let what = format_args!("left aggregate of level {level}");
            check_same(&self.monoid, &self.left_agg[level], &left, what)?;
            let what = format_args!("right aggregate of level {level}");
            check_same(&self.monoid, &self.right_agg[level], &right, what)?;
        }
        if height == 0 {
            return Ok(());
        }
        let root = self.children(self.left[height]);
        let inner = self.fold_children(&root[1..root.len() - 1]);
        check_same(
            &self.monoid,
            &self.inner_agg,
            &inner,
            format_args!("inner aggregate"),
        )
    }

    /// `mid` against everything between the fingers.
    fn check_middle(&self) -> Verdict {
        let ids = self.leaf_ids();
        let mut middle: Option<M::Partial> = None;
        for id in ids.iter().skip(1).take(ids.len().saturating_sub(2)) {
            let leaf = self.leaf(*id);
            let part = self.fold_leaf(*id, leaf.start(), leaf.end());
            middle = Some(match middle {
                Some(middle) => self.monoid.combine(&middle, &part),
                None => part,
            });
        }
        let middle = middle.unwrap_or_else(|| self.monoid.identity());
        check_same(&self.monoid, &self.mid, &middle, format_args!("mid"))?;
        let slots = self
            .leaves
            .iter()
            .map(|leaf| leaf.promoted.count_ones() as usize);
        let slots: usize = slots.sum();
        require(
            slots == self.slab.live(),
            format_args!("{slots} promoted slots, {} partials", self.slab.live()),
        )
    }

    // -- pictures --------------------------------------------------------------------

    pub(super) fn shape(&self) -> Shape<M::Partial> {
        let mut nodes = Vec::new();
        self.shape_node(
            self.height(),
            self.left[self.height()],
            Spine::ROOT,
            &mut nodes,
        );
        Shape {
            nodes,
            leaf_capacity: L,
            arity: F,
        }
    }

    fn shape_node(
        &self,
        level: usize,
        id: Id,
        spine: Spine,
        nodes: &mut Vec<Node<M::Partial>>,
    ) -> usize {
        let position = nodes.len();
        let kind = match (level == self.height(), spine) {
            (true, _) => PartialKind::Inner,
            (_, Spine { left: true, .. }) => PartialKind::Left,
            (_, Spine { right: true, .. }) => PartialKind::Right,
            _ => PartialKind::Up,
        };
        let times = match level {
            0 => self.leaf(id).taken().to_vec(),
            _ => self.children(id)[1..]
                .iter()
                .map(|child| child.key)
                .collect(),
        };
        nodes.push(Node {
            level,
            kind,
            times,
            children: Vec::new(),
            aggregate: self.shown_aggregate(level, id, kind),
        });
        if level > 0 {
            let arity = self.children(id).len();
            for at in 0..arity {
                let child = self.children(id)[at].id;
                let child = self.shape_node(level - 1, child, spine.of_child(at, arity), nodes);
                nodes[position].children.push(child);
            }
        }
        position
    }

    fn shown_aggregate(&self, level: usize, id: Id, kind: PartialKind) -> M::Partial {
        match (level, kind) {
            (0, PartialKind::Inner) => self.answer(),
            (0, PartialKind::Left) => self.suffix[self.left_leaf().start()].clone(),
            (0, PartialKind::Right) => self.tail.clone(),
            (_, PartialKind::Up) => self.summary(id, level).0,
            (_, PartialKind::Inner) => self.inner_agg.clone(),
            (_, PartialKind::Left) => self.left_agg[level].clone(),
            (_, PartialKind::Right) => self.right_agg[level].clone(),
        }
    }
}
