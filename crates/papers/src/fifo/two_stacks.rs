//! two_stacks: a queue of two stacks that keep their aggregates.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | folklore (adamax, stackoverflow.com, 2011); as described by            |
//! |          | Tangwongsan, Hirzel, Schneider 2015 (DABA), §4, Figures 4 and 5        |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | amortised ≤ 3 combines per insert, evict and query together; a single  |
//! |          | evict up to n − 1 combines and n moves                                 |
//! | space    | 80 to 160 bytes per entry of a sum of int64: a time and a value, and   |
//! |          | two partials in either stack, which keep their room                    |
//! | choose   | to compare with: two_stacks_lite does the same in half the memory      |
//!
//! Idea: values are pushed onto the back stack with the fold of the stack so far, and
//! popped off the front stack, where each has the fold from itself to the bottom. An empty
//! front is filled by *flip*, which pops all of the back and pushes it there, reversed.
//!
//! ```text
//! front (top first)                back (bottom first)
//! v0: v0⊗v1⊗v2 | v1: v1⊗v2 | v2    v3 | v4: v3⊗v4
//! ```
//!
//! Invariants (§4), i counted from the bottom of a stack:
//! 1. `front[i].agg = front[i].val ⊗ … ⊗ front[0].val`.
//! 2. `back[i].agg = back[0].val ⊗ … ⊗ back[i].val`.
//!
//! Parameter: `caching` keeps an answer until the window changes (end of §4).

use super::QueryCache;
use super::items::Item;
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};
use slidewise_core::window::fifo::checks::{check_prefixes, check_suffixes, check_values};
use slidewise_core::window::fifo::queue::SPARE;
use slidewise_core::window::fifo::{Fifo, join, read_place, write_place};
use slidewise_core::window::steps::Step;

#[derive(Clone, Debug)]
pub struct TwoStacks<M: Monoid> {
    monoid: M,
    front: Vec<Item<M::Partial>>,
    back: Vec<Item<M::Partial>>,
    cache: QueryCache<M::Partial>,
}

impl<M: Monoid> TwoStacks<M> {
    pub fn new(monoid: M, caching: bool) -> Self {
        Self {
            monoid,
            front: Vec::new(),
            back: Vec::new(),
            cache: QueryCache::new(caching),
        }
    }

    fn flip(&mut self) {
        for Item { val, .. } in self.back.drain(..).rev() {
            Step::Move.note();
            let top = self.front.last().map(|item| &item.agg);
            let agg = join(&self.monoid, Some(&val), top);
            self.front.push(Item { val, agg });
        }
    }
}

impl<M: Monoid> Fifo<M> for TwoStacks<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn len(&self) -> usize {
        self.front.len() + self.back.len()
    }

    #[inline]
    fn insert(&mut self, val: M::Partial) {
        self.cache.invalidate();
        let top = self.back.last().map(|item| &item.agg);
        let agg = join(&self.monoid, top, Some(&val));
        self.back.push(Item { val, agg });
    }

    #[inline]
    fn evict(&mut self) {
        self.cache.invalidate();
        if self.front.is_empty() {
            self.flip();
        }
        self.front.pop();
        let len = self.len();
        trim(&mut self.front, len);
        trim(&mut self.back, len);
    }

    #[inline]
    fn query(&mut self) -> M::Partial {
        if let Some(answer) = self.cache.kept() {
            return answer;
        }
        let front = self.front.last().map(|item| &item.agg);
        let back = self.back.last().map(|item| &item.agg);
        let answer = join(&self.monoid, front, back);
        self.cache.keep(&answer);
        answer
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone(), self.cache.is_on())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        if values.len() != self.len() {
            return Err(format!("{} entries, not {}", self.len(), values.len()));
        }
        let items: Vec<&Item<_>> = self.front.iter().rev().chain(&self.back).collect();
        check_values(&self.monoid, values, items.iter().map(|item| &item.val))?;
        let (front, back) = values.split_at(self.front.len());
        let kept = self.front.iter().rev().map(|item| &item.agg);
        check_suffixes(&self.monoid, front, kept, "front")?;
        let kept = self.back.iter().map(|item| &item.agg);
        check_prefixes(&self.monoid, back, kept, "back")
    }

    fn bytes(&self) -> usize {
        (self.front.capacity() + self.back.capacity()) * size_of::<Item<M::Partial>>()
    }

    fn write(&self, out: &mut Writer) {
        (self.len() as u64).write(out);
        write_place(self.front.len(), out);
        for item in self.front.iter().chain(&self.back) {
            item.write(out);
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let count = input.length::<Item<M::Partial>>()?;
        let front = read_place(input, 0, count)?;
        for at in 0..count {
            let item = Item::read(&self.monoid, input)?;
            let stack = if at < front {
                &mut self.front
            } else {
                &mut self.back
            };
            stack.push(item);
        }
        Ok(())
    }
}

/// Gives memory back that is far more than `len` entries need.
fn trim<T>(stack: &mut Vec<T>, len: usize) {
    if stack.capacity() > SPARE * len.max(8) {
        stack.shrink_to(2 * len);
    }
}
