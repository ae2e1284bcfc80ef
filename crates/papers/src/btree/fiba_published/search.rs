//! Finger search: climb from the nearer finger, as far as it must.

use super::super::{Id, Site, Tree, is_leaf};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::Ties;
use slidewise_core::window::steps::Step;

impl<M: Monoid, const E: usize, const K: usize> Tree<M, E, K> {
    /// The lowest spine node below which an insert at `time` belongs, and its level.
    #[inline(always)]
    pub(crate) fn climb_for_insert(&self, time: i64) -> (Id, usize) {
        let finger = self.right.finger();
        let first = self.nodes.leaf(finger).times().first();
        if first.is_some_and(|first| *first <= time) {
            return (finger, 0);
        }
        let (Some(first), Some(last)) = self.separators() else {
            return self.top_start();
        };
        if time < first {
            return self.left.climb(|separator| time < separator);
        }
        match self.ties {
            Ties::Combine if time > last => self.right.climb(|separator| time > separator),
            Ties::Keep if time >= last => self.right.climb(|separator| time >= separator),
            _ => self.top_start(),
        }
    }

    /// The lowest spine node that holds the first entry of `time` if any does, and its level;
    /// or, beside it, the separator that then is that entry.
    pub(crate) fn climb_to_find(&self, time: i64) -> ((Id, usize), Option<Site>) {
        let (Some(first), Some(last)) = self.separators() else {
            return (self.top_start(), None);
        };
        if time > last {
            return (self.right.climb(|separator| time > separator), None);
        }
        let start = match self.ties {
            Ties::Combine if time < first => self.left.climb(|separator| time < separator),
            Ties::Keep if time <= first => self.left.climb(|separator| time <= separator),
            _ => return (self.top_start(), None),
        };
        let parent = self.nodes.parent(start.0);
        let tied = self.nodes.times(parent)[0] == time;
        let beside = tied.then_some(Site {
            node: parent,
            at: 0,
            present: true,
        });
        (start, beside)
    }

    /// The lowest spine node that covers lo ≤ time ≤ hi.
    pub(crate) fn climb_for_range(&self, lo: i64, hi: i64) -> Id {
        match self.separators() {
            (Some(first), _) if hi < first => self.left.climb(|separator| hi < separator).0,
            (_, Some(last)) if lo > last => self.right.climb(|separator| lo > separator).0,
            _ => self.root,
        }
    }

    /// The root's first and last separator, unless it is a leaf.
    #[inline(always)]
    fn separators(&self) -> (Option<i64>, Option<i64>) {
        Step::Visit.note();
        if is_leaf(self.root) {
            return (None, None);
        }
        let height = self.left.height();
        (Some(self.left.edge(height)), Some(self.right.edge(height)))
    }
}
