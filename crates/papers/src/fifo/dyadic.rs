//! A ring of values with the folds of all dyadic intervals over it, for `b_int` and `amta`.
//!
//! An interval of level ℓ covers the positions i·2^ℓ to (i + 1)·2^ℓ − 1, where positions
//! count all values ever inserted. It is kept once it is complete and while all of it is in
//! the window: one combine per two intervals, so less than one per value, amortised. Level ℓ
//! takes capacity / 2^ℓ slots, after those of level ℓ + 1: the layout of a heap, no pointers.

use std::fmt::Debug;
use std::mem::{needs_drop, replace};

use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::fifo::checks::check_whole;

#[derive(Clone, Debug)]
pub(super) struct Dyadic<P> {
    /// The capacity is 2 to this.
    log: u32,
    nodes: Vec<P>,
    pub head: u64,
    pub tail: u64,
}

const MIN_LOG: u32 = 3;

impl<P: Clone + Debug> Dyadic<P> {
    pub fn new(blank: P) -> Self {
        Self {
            log: MIN_LOG,
            nodes: vec![blank; 2 << MIN_LOG],
            head: 0,
            tail: 0,
        }
    }

    pub fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    fn slot(&self, level: u32, start: u64) -> usize {
        let slots = 1 << (self.log - level);
        slots + ((start >> level) as usize & (slots - 1))
    }

    /// The fold over the interval of that level that starts there.
    pub fn at(&self, level: u32, start: u64) -> &P {
        &self.nodes[self.slot(level, start)]
    }

    /// Appends a value and completes what intervals it completes.
    pub fn push<M: Monoid<Partial = P>>(&mut self, monoid: &M, value: P) {
        if self.len() == 1 << self.log {
            self.resize(self.log + 1, monoid.identity());
        }
        let slot = self.slot(0, self.tail);
        self.nodes[slot] = value;
        self.tail += 1;
        for level in 1..=self.tail.trailing_zeros().min(self.log) {
            let Some(start) = self.tail.checked_sub(1 << level) else {
                return;
            };
            if start < self.head {
                return;
            }
            let middle = start + (1 << (level - 1));
            let whole = monoid.combine(self.at(level - 1, start), self.at(level - 1, middle));
            let slot = self.slot(level, start);
            self.nodes[slot] = whole;
        }
    }

    /// Drops the oldest values up to a position. Those that own memory are dropped, and the
    /// folds over them.
    pub fn drop_until(&mut self, position: u64, blank: &P) {
        const SHRUNK_ENTRIES: u64 = 64;
        if needs_drop::<P>() {
            for gone in self.head..position {
                // The intervals that begin with it; the others with it were dropped before.
                for level in 0..=gone.trailing_zeros().min(self.log) {
                    let slot = self.slot(level, gone);
                    self.nodes[slot] = blank.clone();
                }
            }
        }
        self.head = position;
        if self.tail - self.head <= SHRUNK_ENTRIES && self.log > 10 {
            self.resize(MIN_LOG + 4, blank.clone());
        }
    }

    /// Moves everything into a ring of another capacity.
    fn resize(&mut self, log: u32, blank: P) {
        let mut larger = Self {
            log,
            nodes: vec![blank.clone(); 2 << log],
            head: self.head,
            tail: self.tail,
        };
        for (level, start) in self.intervals() {
            let from = self.slot(level, start);
            let to = larger.slot(level, start);
            larger.nodes[to] = replace(&mut self.nodes[from], blank.clone());
        }
        *self = larger;
    }

    /// All intervals that are kept.
    fn intervals(&self) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        for level in 0..=self.log {
            let length = 1_u64 << level;
            let mut start = self.head.div_ceil(length) * length;
            if start + length > self.tail {
                return all;
            }
            while start + length <= self.tail {
                all.push((level, start));
                start += length;
            }
        }
        all
    }

    /// The longest interval that starts at `from` and ends by `to`.
    pub fn longest(&self, from: u64, to: u64) -> u32 {
        let fits = (to - from).ilog2();
        from.trailing_zeros().min(fits).min(self.log)
    }

    /// The fold over positions `from..to`, by the fewest intervals.
    pub fn fold<M: Monoid<Partial = P>>(&self, monoid: &M, from: u64, to: u64) -> P {
        let mut from = from;
        let mut acc: Option<P> = None;
        while from < to {
            let level = self.longest(from, to);
            let part = self.at(level, from);
            acc = Some(match &acc {
                Some(acc) => monoid.combine(acc, part),
                None => part.clone(),
            });
            from += 1 << level;
        }
        acc.unwrap_or_else(|| monoid.identity())
    }

    pub fn check<M: Monoid<Partial = P>>(
        &self,
        monoid: &M,
        values: &[P],
    ) -> std::result::Result<(), String> {
        if values.len() != self.len() || self.len() > 1 << self.log {
            return Err(format!("{} values in {}", values.len(), self.len()));
        }
        for (level, start) in self.intervals() {
            let from = (start - self.head) as usize;
            let values = &values[from..from + (1 << level)];
            let what = format_args!("interval {start} of level {level}");
            check_whole(monoid, values, self.at(level, start), what)?;
        }
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<P>()
    }

    pub fn write(&self, out: &mut Writer)
    where
        P: Codec,
    {
        self.head.write(out);
        (self.len() as u64).write(out);
        for (level, start) in self.intervals() {
            self.at(level, start).write(out);
        }
    }

    /// The capacity is what the values ask for: no answer depends on it.
    pub fn read<M: Monoid<Partial = P>>(&mut self, monoid: &M, input: &mut Reader<'_>) -> Result<()>
    where
        P: Codec,
    {
        let head = u64::read(input)?;
        let count = input.length::<P>()?;
        if head >= 1 << 62 {
            return damaged(format!("a window that starts at position {head}"));
        }
        let log = count.next_power_of_two().ilog2().max(MIN_LOG);
        *self = Self {
            log,
            nodes: vec![monoid.identity(); 2 << log],
            head,
            tail: head + count as u64,
        };
        for (level, start) in self.intervals() {
            let slot = self.slot(level, start);
            self.nodes[slot] = monoid.read_partial(input)?;
        }
        Ok(())
    }
}
