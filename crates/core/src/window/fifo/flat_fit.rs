//! flat_fit: the flat and fast index traverser, which reuses the folds of earlier queries.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Shein, Chrysanthis, Labrinidis: FlatFIT (2017, SSDBM), as described   |
//! |        | in SlickDeque (2018), §2.2 and §4.1                                   |
//! | order  | in order                                                              |
//! | laws   | associative                                                           |
//! | costs  | insert, evict: 0 combines; query: amortised 3 per slide, worst n − 1  |
//! |        | (the window reset); many ranges: amortised O(log n) each; queried     |
//! |        | every slide, 1 each if there are all lengths or each twice the next,  |
//! |        | and 2 to 4 each between (`costs_flat.rs` counts)                      |
//! | space  | 48 to 96 bytes per entry of a sum of int64: a time, a value, a        |
//! |        | partial and a pointer, up to twice that                               |
//! | choose | for many ranges over one stream, queried often                        |
//!
//! # Idea
//! `partials[i]` is the fold from entry i up to, not including, `pointers[i]`. A query
//! follows the pointers from its oldest entry to the young end, keeping the way on a stack
//! of *positions*, and on the way back makes every entry on it point to the young end: what
//! it folded is there for the next. Values are overwritten on the way, so ranges must end
//! at the young end.
//!
//! # Invariants (checked by `check`)
//! 1. `i < pointers[i] ≤ tail`.
//! 2. `partials[i]` is the fold of the values from `i` to `pointers[i] − 1`.
//!
//! # Deviations
//! Windows of changing size: positions count all entries ever inserted, and the two circular
//! arrays double when the window outgrows them.

use std::mem::needs_drop;

use super::Fifo;
use super::checks::check_whole;
use super::shared::Shared;
use crate::monoid::Monoid;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

const MIN_CAPACITY: usize = 8;

#[derive(Clone, Debug)]
pub struct FlatFit<M: Monoid> {
    monoid: M,
    partials: Vec<M::Partial>,
    pointers: Vec<u64>,
    /// The way of the query at hand.
    positions: Vec<u64>,
    head: u64,
    tail: u64,
}

impl<M: Monoid> FlatFit<M> {
    pub fn new(monoid: M) -> Self {
        Self {
            partials: vec![monoid.identity(); MIN_CAPACITY],
            pointers: vec![0; MIN_CAPACITY],
            positions: Vec::new(),
            head: 0,
            tail: 0,
            monoid,
        }
    }

    fn slot(&self, position: u64) -> usize {
        position as usize & (self.partials.len() - 1)
    }

    fn resize(&mut self, capacity: usize) {
        let mut partials = vec![self.monoid.identity(); capacity];
        let mut pointers = vec![0; capacity];
        for position in self.head..self.tail {
            let (from, to) = (self.slot(position), position as usize & (capacity - 1));
            std::mem::swap(&mut partials[to], &mut self.partials[from]);
            pointers[to] = self.pointers[from];
        }
        (self.partials, self.pointers) = (partials, pointers);
    }
}

impl<M: Monoid> Fifo<M> for FlatFit<M> {
    fn monoid(&self) -> &M {
        &self.monoid
    }

    fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    fn insert(&mut self, value: M::Partial) {
        if self.len() == self.partials.len() {
            self.resize(2 * self.partials.len());
        }
        let slot = self.slot(self.tail);
        self.tail += 1;
        self.partials[slot] = value;
        self.pointers[slot] = self.tail;
    }

    fn evict(&mut self) {
        self.evict_many(1);
    }

    fn evict_many(&mut self, count: usize) {
        const SHRUNK_ENTRIES: usize = 64;
        let head = self.head + count as u64;
        if needs_drop::<M::Partial>() {
            for position in self.head..head {
                let slot = self.slot(position);
                self.partials[slot] = self.monoid.identity();
            }
        }
        self.head = head;
        if self.len() <= SHRUNK_ENTRIES && self.partials.len() > 16 * SHRUNK_ENTRIES {
            self.resize(2 * SHRUNK_ENTRIES);
            self.positions = Vec::new();
        }
    }

    fn query(&mut self) -> M::Partial {
        self.query_last(self.len())
    }

    fn query_last(&mut self, count: usize) -> M::Partial {
        if count == 0 {
            return self.monoid.identity();
        }
        let mut at = self.tail - count as u64;
        let first = self.slot(at);
        loop {
            let next = self.pointers[self.slot(at)];
            if next == self.tail {
                break;
            }
            self.positions.push(at);
            at = next;
        }
        let mut behind = self.slot(at);
        while let Some(position) = self.positions.pop() {
            let slot = self.slot(position);
            let whole = self
                .monoid
                .combine(&self.partials[slot], &self.partials[behind]);
            self.partials[slot] = whole;
            self.pointers[slot] = self.tail;
            behind = slot;
        }
        self.partials[first].clone()
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid.clone())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        let capacity = self.partials.len();
        if values.len() != self.len() || self.len() > capacity || !capacity.is_power_of_two() {
            return Err(format!(
                "{} values in {} of {capacity}",
                values.len(),
                self.len()
            ));
        }
        for position in self.head..self.tail {
            let slot = self.slot(position);
            let pointer = self.pointers[slot];
            if pointer <= position || pointer > self.tail {
                return Err(format!("pointer {pointer} at {position} of {}", self.tail));
            }
            let run = (position - self.head) as usize..(pointer - self.head) as usize;
            let what = format_args!("run at {position}");
            check_whole(&self.monoid, &values[run], &self.partials[slot], what)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.partials.capacity() * size_of::<M::Partial>()
            + (self.pointers.capacity() + self.positions.capacity()) * size_of::<u64>()
    }

    fn write(&self, out: &mut Writer) {
        (self.len() as u64).write(out);
        for position in self.head..self.tail {
            let slot = self.slot(position);
            (self.pointers[slot] - self.head).write(out);
            self.partials[slot].write(out);
        }
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let count = input.length::<u64>()?;
        self.resize(count.next_power_of_two().max(MIN_CAPACITY));
        (self.head, self.tail) = (0, count as u64);
        for position in 0..count {
            let pointer = u64::read(input)?;
            if pointer <= position as u64 || pointer > self.tail {
                return damaged(format!("pointer {pointer} at {position} of {count}"));
            }
            self.pointers[position] = pointer;
            self.partials[position] = self.monoid.read_partial(input)?;
        }
        Ok(())
    }
}

impl<M: Monoid> Shared<M> for FlatFit<M> {}
