//! aba: the Amortized Banker's Aggregator, two stacks in one queue.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §5, Figures 6 and 7        |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | amortised ≤ 3 combines per insert, evict and query together; a single  |
//! |          | evict up to n − 1; entries keep their places (but see daba)            |
//! | space    | 48 to 96 bytes per entry of a sum of int64: a time, a value and two    |
//! |          | partials; up to 144 until a window that grew has slid by twice its     |
//! |          | length; up to 192 in one that has shrunk                               |
//! | choose   | to compare with: two_stacks_lite does the same in half the memory      |
//!
//! Idea: lay the two stacks of [`two_stacks`](super::two_stacks) bottom to bottom into one
//! queue. Then *flip* copies nothing: it folds the back again, from its end to its start,
//! and moves the boundary.
//!
//! ```text
//! vals    v0         v1      v2   v3   v4
//! aggs    v0⊗v1⊗v2   v1⊗v2   v2   v3   v3⊗v4
//!         F                       B          E
//! ```
//!
//! Invariants (§5), with F and E the head and the tail of the queue of [`Items`]:
//! 1. F ≤ B ≤ E.
//! 2. For F ≤ i < B: `aggs[i] = vals[i] ⊗ … ⊗ vals[B−1]`.
//! 3. For B ≤ i < E: `aggs[i] = vals[B] ⊗ … ⊗ vals[i]`.
//!
//! Parameter: `caching` keeps an answer until the window changes (end of §5).

use super::items::{Item, Items};
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Reader, Result, Writer};
use slidewise_core::window::fifo::checks::{check_prefixes, check_suffixes};
use slidewise_core::window::fifo::{Fifo, join, read_place, write_place};

#[derive(Clone, Debug)]
pub struct Aba<M: Monoid> {
    items: Items<M>,
    b: usize,
}

impl<M: Monoid> Aba<M> {
    pub fn new(monoid: M, caching: bool) -> Self {
        Self {
            items: Items::new(monoid, caching),
            b: 0,
        }
    }

    #[inline]
    fn flip(&mut self) {
        let monoid = self.items.monoid.clone();
        let mut acc = None;
        let queue = &mut self.items.queue;
        queue.runs_back(|run| fold_suffixes(&monoid, run, &mut acc));
        self.b = queue.tail();
    }

    #[inline(always)]
    fn pop<const PLAIN: bool>(&mut self) {
        if !PLAIN && self.items.queue.head() == self.b {
            self.flip();
        }
        self.items.evict::<PLAIN>();
    }
}

/// Gives each item the fold of its value and all younger ones; `younger` is the fold of what
/// follows the run.
fn fold_suffixes<M: Monoid>(
    monoid: &M,
    run: &mut [Item<M::Partial>],
    younger: &mut Option<M::Partial>,
) {
    for item in run.iter_mut().rev() {
        item.agg = join(monoid, Some(&item.val), younger.as_ref());
        *younger = Some(item.agg.clone());
    }
}

impl<M: Monoid> Fifo<M> for Aba<M> {
    fn monoid(&self) -> &M {
        &self.items.monoid
    }

    #[inline]
    fn len(&self) -> usize {
        self.items.queue.len()
    }

    #[inline(always)]
    fn insert(&mut self, value: M::Partial) {
        if self.items.queue.has_room() {
            self.items.insert::<true>(value, self.b);
        } else {
            self.aside(|me| me.insert_aside(value));
        }
    }

    fn insert_aside(&mut self, value: M::Partial) {
        self.items.insert::<false>(value, self.b);
    }

    #[inline(always)]
    fn evict(&mut self) {
        if self.items.queue.head() != self.b && self.items.queue.stays_plain() {
            self.pop::<true>();
        } else {
            self.aside(Self::evict_aside);
        }
    }

    fn evict_aside(&mut self) {
        self.pop::<false>();
    }

    #[inline(always)]
    fn query(&mut self) -> M::Partial {
        self.items.query(self.b)
    }

    #[inline(always)]
    fn fresh(&self) -> Self {
        Self::new(self.items.monoid.clone(), self.items.is_caching())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let (f, e, b) = (self.items.queue.head(), self.items.queue.tail(), self.b);
        if f > b || b > e {
            return Err(format!("F {f}, B {b}, E {e}"));
        }
        self.items.check_values(values)?;
        self.items.check_back(b)?;
        let (front, back) = values.split_at(b - f);
        let monoid = &self.items.monoid;
        check_suffixes(monoid, front, self.items.aggs(f, b), "front")?;
        check_prefixes(monoid, back, self.items.aggs(b, e), "back")
    }

    fn bytes(&self) -> usize {
        self.items.queue.bytes()
    }

    fn write(&self, out: &mut Writer) {
        self.items.write(out);
        write_place(self.b - self.items.queue.head(), out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.items.read(input)?;
        self.b = read_place(input, 0, self.items.queue.len())?;
        self.items.copy_back(self.b);
        Ok(())
    }
}
