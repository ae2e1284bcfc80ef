//! amta: the amortised monoid tree aggregator, which evicts in bulk in O(log n).
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Villalba, Berral, Carrera: AMTA (2019, TPDS 30(3)), as compared with  |
//! |        | in bulk FiBA (2023), §2 and §7                                        |
//! | order  | in order                                                              |
//! | laws   | associative                                                           |
//! | costs  | insert: amortised 2 combines, worst 1 + ⌊log₂ n⌋; evict: amortised 1, |
//! |        | worst 2 ⌈log₂ n⌉ − 3, and evict_until no more; query: 1; part:        |
//! |        | 2 log₂ n                                                              |
//! | space  | 48 to 96 bytes per entry of a sum of int64: a time, a value and 2 to  |
//! |        | 4 partials                                                            |
//! | choose | in-order streams whose windows shrink by many entries at once         |
//!
//! # Idea
//! Values are leaves of complete binary trees that grow as their right halves fill. The
//! window is cut at `middle`. Before it, a *front stack* has, for the path along the old
//! end, the fold of each subtree left of the cut with all that follows it up to the cut:
//! its top is the answer for the front. After the cut, one running fold is kept. The stack's
//! top is divided as its leaves are evicted; when it is empty, the cut moves to the young end
//! and a new stack is made from O(log n) subtrees, where Two-Stacks would fold all values.
//!
//! ```text
//!   head                middle                 tail       query = top of front ⊗ back
//!    | 5 | 6 . . 7 | 8 . . . . 15 | back: running fold |
//!    top ←—— front stack: folds up to middle
//! ```
//!
//! # Invariants (checked by `check`)
//! 1. Every complete, aligned subtree wholly in the window keeps the fold of its values.
//! 2. The front stack's subtrees follow one another from `head` to `middle`, the oldest on
//!    top; each keeps the fold from its first value up to `middle`.
//! 3. `back` is the fold of the values from `middle` on.
//!
//! # Deviations
//! Subtrees lie in a ring with one slot per node instead of linked nodes, which doubles
//! when the window outgrows it. Bulk inserts are loops, as published.

use super::dyadic::Dyadic;
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::checks::check_whole;
use slidewise_core::window::fifo::shared::Shared;

/// A subtree of the front and the fold from its first value to the cut.
#[derive(Clone, Debug)]
struct Front<P> {
    start: u64,
    level: u32,
    suffix: P,
}

#[derive(Clone, Debug)]
pub struct Amta<M: Monoid> {
    monoid: M,
    tree: Dyadic<M::Partial>,
    front: Vec<Front<M::Partial>>,
    middle: u64,
    back: M::Partial,
}

impl<M: Monoid> Amta<M> {
    pub fn new(monoid: M) -> Self {
        Self {
            tree: Dyadic::new(monoid.identity()),
            front: Vec::new(),
            middle: 0,
            back: monoid.identity(),
            monoid,
        }
    }

    /// Moves the cut to the young end.
    fn rebuild_front(&mut self) {
        self.front.clear();
        self.middle = self.tree.tail;
        self.back = self.monoid.identity();
        let mut start = self.tree.head;
        let mut parts = Vec::new();
        while start < self.middle {
            let level = self.tree.longest(start, self.middle);
            parts.push((start, level));
            start += 1 << level;
        }
        for (start, level) in parts.into_iter().rev() {
            self.push_front(start, level);
        }
    }

    /// Puts a subtree before those of the stack.
    fn push_front(&mut self, start: u64, level: u32) {
        let own = self.tree.at(level, start);
        let suffix = match self.front.last() {
            Some(behind) => self.monoid.combine(own, &behind.suffix),
            None => own.clone(),
        };
        self.front.push(Front {
            start,
            level,
            suffix,
        });
    }

    /// Takes the front apart until a subtree starts at `head`; its values before go.
    fn cut_front(&mut self, head: u64) {
        while let Some(top) = self.front.pop() {
            let end = top.start + (1 << top.level);
            if end <= head {
                continue;
            }
            if top.start == head {
                self.front.push(top);
                return;
            }
            let (mut start, mut level) = (top.start, top.level);
            while start < head {
                level -= 1;
                let right = start + (1 << level);
                if right <= head {
                    start = right;
                } else {
                    self.push_front(right, level);
                }
            }
            self.push_front(start, level);
            return;
        }
    }
}

impl<M: Monoid> Fifo<M> for Amta<M> {
    const PARTS: bool = true;

    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn len(&self) -> usize {
        self.tree.len()
    }

    fn insert(&mut self, value: M::Partial) {
        self.back = if self.middle == self.tree.tail {
            value.clone()
        } else {
            self.monoid.combine(&self.back, &value)
        };
        self.tree.push(&self.monoid, value);
    }

    fn evict(&mut self) {
        self.evict_many(1);
    }

    fn evict_many(&mut self, count: usize) {
        let head = self.tree.head + count as u64;
        if head < self.middle {
            self.cut_front(head);
        }
        self.tree.drop_until(head, &self.monoid.identity());
        if head >= self.middle && count > 0 {
            self.rebuild_front();
        }
    }

    fn query(&mut self) -> M::Partial {
        match self.front.last() {
            Some(top) if self.middle < self.tree.tail => {
                self.monoid.combine(&top.suffix, &self.back)
            }
            Some(top) => top.suffix.clone(),
            None => self.back.clone(),
        }
    }

    fn query_part(&mut self, from: usize, to: usize) -> M::Partial {
        let head = self.tree.head;
        let (from, to) = (head + from as u64, head + to as u64);
        self.tree.fold(&self.monoid, from, to)
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        self.tree.check(&self.monoid, values)?;
        if !(self.tree.head..=self.tree.tail).contains(&self.middle) {
            return Err(format!("cut at {} of {}", self.middle, self.tree.tail));
        }
        let middle = (self.middle - self.tree.head) as usize;
        let mut start = self.tree.head;
        for front in self.front.iter().rev() {
            let at = (start - self.tree.head) as usize;
            if front.start != start {
                return Err(format!("front at {} instead of {start}", front.start));
            }
            let values = &values[at.min(middle)..middle];
            let what = format_args!("front at {start}");
            check_whole(&self.monoid, values, &front.suffix, what)?;
            start += 1 << front.level;
        }
        if start != self.middle {
            return Err(format!("front up to {start}, cut at {}", self.middle));
        }
        let values = &values[middle..];
        check_whole(&self.monoid, values, &self.back, format_args!("back"))
    }

    fn bytes(&self) -> usize {
        self.tree.bytes() + self.front.capacity() * size_of::<Front<M::Partial>>()
    }

    fn write(&self, out: &mut Writer) {
        self.tree.write(out);
        self.middle.write(out);
        (self.front.len() as u8).write(out);
        for front in &self.front {
            front.start.write(out);
            (front.level as u8).write(out);
            front.suffix.write(out);
        }
        self.back.write(out);
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.tree.read(&self.monoid, input)?;
        self.middle = u64::read(input)?;
        for _ in 0..u8::read(input)? {
            let (start, level) = (u64::read(input)?, u32::from(u8::read(input)?));
            let suffix = self.monoid.read_partial(input)?;
            // Only a subtree that exists can be divided.
            let inside = start >= self.tree.head && level < 62 && start.trailing_zeros() >= level;
            if !inside || start + (1 << level) > self.tree.tail {
                return damaged(format!("a front of level {level} at {start}"));
            }
            self.front.push(Front {
                start,
                level,
                suffix,
            });
        }
        self.back = self.monoid.read_partial(input)?;
        Ok(())
    }
}

impl<M: Monoid> Shared<M> for Amta<M> {}
