//! Finger search: climb from the nearer finger, as far as it must.

use crate::monoid::Monoid;
use crate::window::Ties;
use crate::window::btree::{BTree, Id, Site};

impl<M: Monoid> BTree<M> {
    /// The lowest spine node below which an insert at `time` belongs.
    pub(in crate::window) fn climb_for_insert(&self, time: i64) -> Id {
        let finger = self.right_finger;
        if self
            .nodes
            .times(finger)
            .first()
            .is_some_and(|first| *first <= time)
        {
            return finger;
        }
        let (Some(first), Some(last)) = self.separators(self.root) else {
            return self.root;
        };
        if time < first {
            return self.climb_left(|separator| time < separator);
        }
        match self.ties {
            Ties::Combine if time > last => self.climb_right(|separator| time > separator),
            Ties::Keep if time >= last => self.climb_right(|separator| time >= separator),
            _ => self.root,
        }
    }

    /// The lowest spine node that holds the first entry of `time` if any does; or, beside
    /// it, the separator that then is that entry.
    pub(in crate::window) fn climb_to_find(&self, time: i64) -> (Id, Option<Site>) {
        let (Some(first), Some(last)) = self.separators(self.root) else {
            return (self.root, None);
        };
        if time > last {
            return (self.climb_right(|separator| time > separator), None);
        }
        let start = match self.ties {
            Ties::Combine if time < first => self.climb_left(|separator| time < separator),
            Ties::Keep if time <= first => self.climb_left(|separator| time <= separator),
            _ => return (self.root, None),
        };
        let parent = self.nodes.parent(start);
        let tied = self.nodes.times(parent)[0] == time;
        let beside = tied.then_some(Site {
            node: parent,
            at: 0,
            present: true,
        });
        (start, beside)
    }

    /// The lowest spine node that covers lo ≤ time ≤ hi.
    pub(in crate::window) fn climb_for_range(&self, lo: i64, hi: i64) -> Id {
        match self.separators(self.root) {
            (Some(first), _) if hi < first => self.climb_left(|separator| hi < separator),
            (_, Some(last)) if lo > last => self.climb_right(|separator| lo > separator),
            _ => self.root,
        }
    }

    /// The first and the last separator of an inner node.
    fn separators(&self, id: Id) -> (Option<i64>, Option<i64>) {
        if self.nodes.is_leaf(id) {
            return (None, None);
        }
        let times = self.nodes.times(id);
        (times.first().copied(), times.last().copied())
    }

    /// Up the left spine until what is sought lies before the separator beside the node.
    /// The root's first separator must satisfy `before`.
    pub(super) fn climb_left(&self, before: impl Fn(i64) -> bool) -> Id {
        let mut id = self.left_finger;
        loop {
            let parent = self.nodes.parent(id);
            if before(self.nodes.times(parent)[0]) {
                return id;
            }
            id = parent;
        }
    }

    /// Up the right spine until what is sought lies behind the separator beside the node.
    /// The root's last separator must satisfy `behind`.
    pub(super) fn climb_right(&self, behind: impl Fn(i64) -> bool) -> Id {
        let mut id = self.right_finger;
        loop {
            let parent = self.nodes.parent(id);
            let times = self.nodes.times(parent);
            if behind(times[times.len() - 1]) {
                return id;
            }
            id = parent;
        }
    }
}
