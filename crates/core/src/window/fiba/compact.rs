//! Frees memory by moving the nodes in use to new arenas.
//!
//! The nodes and aggregates of the tree stay the same: nothing is combined, and the bits of
//! later answers do not change.
//!
//! When a window holds less than a third of the entries that it once held, all of its nodes
//! are moved: `n` entries, after at least `2 n` evictions since the last time, each of which
//! had an insert of its own. So an entry is moved half a time, and the memory is at most what
//! the window needed for three times its entries.

use super::leaf::{Leaf, SortedRun};
use super::path::Id;
use super::tree::{Children, Spare, Tree};
use crate::monoid::{HandleSlot, Monoid, Slab};
use crate::window::steps::Step;

/// Nodes are moved when so small a share of the entries is left.
const MAX_SHRINKAGE: usize = 3;

/// The nodes of a tree that are in use.
struct Kept<M: Monoid, const L: usize> {
    leaves: Vec<Leaf<M::In, L>>,
    inners: Vec<Children<M::Partial>>,
    slab: Slab<M::Partial>,
}

impl<M: Monoid, const L: usize, const F: usize> Tree<M, L, F> {
    /// To be called before an eviction that may free a leaf.
    #[inline]
    pub(super) fn note_size(&mut self) {
        self.most = self.most.max(self.tree_len());
    }

    /// To be called after it, when nothing is stale.
    #[inline]
    pub(super) fn compact_if_few(&mut self) {
        if self.tree_len() < self.most / MAX_SHRINKAGE && self.leaves.len() > Self::SPARE_LEAVES {
            self.compact();
        }
    }

    /// O(n) moves, no combine.
    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        self.most = self.tree_len();
        let mut kept = Kept {
            leaves: Vec::with_capacity(self.most.div_ceil(L) + 1),
            inners: Vec::new(),
            slab: Slab::default(),
        };
        let height = self.height();
        let root = self.keep(height, self.left[height], &mut kept);
        kept.leaves.shrink_to_fit();
        kept.inners.shrink_to_fit();
        (self.leaves, self.inners, self.slab) = (kept.leaves, kept.inners, kept.slab);
        self.spare = Spare::default();
        (self.arrived, self.scratch) = (SortedRun::default(), SortedRun::default());
        (self.left[height], self.right[height]) = (root, root);
        for level in (0..height).rev() {
            let child = |children: &Children<_>, at: usize| children[at].id;
            let (left, right) = (self.left[level + 1], self.right[level + 1]);
            self.left[level] = child(self.children(left), 0);
            let last = self.children(right).len() - 1;
            self.right[level] = child(self.children(right), last);
        }
    }

    /// Moves a node with all that is below; its id from now on.
    fn keep(&mut self, level: usize, id: Id, kept: &mut Kept<M, L>) -> Id {
        if level == 0 {
            let mut leaf = std::mem::replace(self.leaf_mut(id), Leaf::new());
            let mut bits = leaf.promoted;
            while bits != 0 {
                let slot = &mut leaf.values[bits.trailing_zeros() as usize];
                let partial = self.slab.release(slot.handle());
                *slot = M::In::from_handle(kept.slab.store(partial));
                bits &= bits - 1;
            }
            (0..leaf.len()).for_each(|_| Step::Move.note());
            kept.leaves.push(leaf);
            return (kept.leaves.len() - 1) as Id;
        }
        let mut children = std::mem::take(self.children_mut(id));
        for child in &mut children {
            child.id = self.keep(level - 1, child.id, kept);
        }
        kept.inners.push(children);
        (kept.inners.len() - 1) as Id
    }
}

/// How much a window that has become small keeps, how often it moves what is left, and that
/// no answer shows it.
#[cfg(test)]
mod tests {
    use crate::aggregate::word::SumF64;
    use crate::monoid::{Entry, Monoid};
    use crate::snapshot::{Reader, Writer};
    use crate::window::fiba::Fiba;
    use crate::window::{Ties, Window};

    type Sums = Fiba<SumF64, 64, 32>;

    const FILLED: i64 = 1 << 17;
    const LEFT: i64 = 1000;

    /// Numbers that look drawn at random.
    fn draws(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
            (state >> 33) % below.max(1)
        }
    }

    fn entry(time: i64) -> Entry<SumF64> {
        match time % 7 {
            0 => Entry::Lifted(SumF64.identity()),
            _ => Entry::Raw(0.1 * time as f64),
        }
    }

    fn filled(times: impl IntoIterator<Item = i64>) -> Sums {
        let mut window = Sums::new(SumF64, Ties::Combine);
        for time in times {
            window.insert(time, entry(time));
        }
        window.query();
        window
    }

    fn written(window: &Sums) -> Vec<u8> {
        let mut out = Writer::default();
        window.write(&mut out);
        out.finish().expect("numbers have bytes")
    }

    fn restored(window: &Sums) -> Sums {
        let mut other = Sums::new(SumF64, Ties::Combine);
        other.read(&mut Reader::new(&written(window))).unwrap();
        other
    }

    /// Evicts until `LEFT` are left, in one of several ways.
    fn shrink(window: &mut Sums, pattern: &str) {
        let mut draw = draws(5);
        match pattern {
            "oldest" => (LEFT..FILLED).for_each(|_| assert!(window.evict().is_some())),
            "youngest" => (LEFT..FILLED).for_each(|time| assert!(window.evict_at(time))),
            "at once" => assert_eq!(
                window.evict_until(FILLED - LEFT - 1),
                (FILLED - LEFT) as usize
            ),
            "in bulks" => (0..FILLED - LEFT).step_by(777).for_each(|time| {
                window.evict_until(time);
            }),
            _ => {
                let mut left: Vec<i64> = (0..FILLED).collect();
                while left.len() > LEFT as usize {
                    let at = draw(left.len() as u64) as usize;
                    assert!(window.evict_at(left.swap_remove(at)));
                }
            }
        }
    }

    #[test]
    fn a_window_keeps_memory_for_what_is_left() {
        for pattern in ["oldest", "youngest", "at once", "in bulks", "anywhere"] {
            let mut window = filled(0..FILLED);
            let large = window.bytes();
            shrink(&mut window, pattern);
            window.check().unwrap();
            let mut times = Vec::new();
            window.for_each(&mut |time, _| times.push(time));
            let fresh = filled(times).bytes();
            let held = window.bytes();
            println!("{pattern}: {large} bytes before, {held} now, {fresh} of a new window");
            // Evictions all over leave leaves that are no longer full, by an eighth at least.
            let most = if pattern == "anywhere" { 8 } else { 4 };
            assert!(
                held < most * fresh,
                "{pattern}: {held} bytes, {fresh} would do"
            );
        }
    }

    #[test]
    fn nodes_that_move_stay_what_they_are() {
        for seed in 0..4 {
            let mut draw = draws(seed);
            let arrived = (0..10_000).map(|time| time - (draw(9) * draw(900)) as i64);
            let mut window = filled(arrived);
            // Never moves its nodes: it has not seen itself larger than a few entries more.
            let mut twin = restored(&window);
            let mut step = 0;
            while window.len() > 40 && twin.len() > 40 {
                let picked = draw(10_000) as i64;
                for window in [&mut window, &mut twin] {
                    match step % 3 {
                        0 => assert!(window.evict().is_some()),
                        1 => drop(window.evict_at(picked)),
                        _ if step % 50 == 2 => window.insert(picked, entry(picked)),
                        _ => drop(window.evict()),
                    }
                }
                step += 1;
                if step % 300 == 0 {
                    window.check().unwrap();
                    assert!(written(&window) == written(&twin), "after {step} calls");
                    twin = restored(&twin);
                }
                let bits = [window.query(), twin.query()].map(|sum| format!("{sum:?}"));
                assert_eq!(bits[0], bits[1]);
            }
        }
    }

    /// The rest moves once two thirds are evicted: half a move for each entry evicted.
    #[test]
    fn moving_what_is_left_is_paid_for_by_what_has_gone() {
        for seed in 0..6 {
            let mut draw = draws(seed);
            let mut window = Sums::new(SumF64, Ties::Combine);
            let (mut next, mut evicted, mut moved, mut times) = (0, 0, 0, 0);
            for _ in 0..120 {
                for _ in 0..draw(30_000) {
                    window.insert(next, entry(next));
                    next += 1;
                }
                let left = draw(window.len() as u64 + 1) as usize;
                let left = if seed % 2 == 0 {
                    left
                } else {
                    window.len() / 3 - 40
                };
                while window.len() > left {
                    let before = window.bytes();
                    let oldest = window.oldest().unwrap();
                    evicted += match draw(3) {
                        0 => window.evict_until(oldest + draw(300) as i64),
                        1 => usize::from(window.evict_at(oldest)),
                        _ => usize::from(window.evict().is_some()),
                    };
                    // Inner nodes are freed one by one, leaves only all together.
                    if before > window.bytes() + 8 * 1024 {
                        (moved, times) = (moved + window.len(), times + 1);
                    }
                }
            }
            println!("{times} times {moved} entries moved, {evicted} evicted");
            assert!(times > 10 && 2 * moved <= evicted, "{moved}, {evicted}");
        }
    }
}
