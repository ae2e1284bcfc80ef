//! Fat leaves: the entries of a window, up to `L` of them side by side.

use super::search::count_before;
use crate::monoid::{Entry, HandleSlot, Monoid, Slab};
use crate::window::Batch;

/// Entries in order, with the positions (rising) of those whose slot is a handle.
#[derive(Clone, Debug)]
pub(super) struct SortedRun<In> {
    pub(super) times: Vec<i64>,
    pub(super) values: Vec<In>,
    pub(super) promoted: Vec<u32>,
}

impl<In> Default for SortedRun<In> {
    fn default() -> Self {
        Self {
            times: Vec::new(),
            values: Vec::new(),
            promoted: Vec::new(),
        }
    }
}

impl<In: HandleSlot> SortedRun<In> {
    pub(super) fn slice(&self, from: usize, to: usize) -> RunSlice<'_, In> {
        RunSlice {
            run: self,
            from,
            to,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.times.capacity() * 8
            + self.values.capacity() * size_of::<In>()
            + self.promoted.capacity() * 4
    }

    pub(super) fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
        self.promoted.clear();
    }

    pub(super) fn push(&mut self, time: i64, slot: In, promoted: bool) {
        if promoted {
            self.promoted.push(self.times.len() as u32);
        }
        self.times.push(time);
        self.values.push(slot);
    }

    pub(super) fn push_entry<M: Monoid<In = In>>(
        &mut self,
        time: i64,
        entry: Entry<M>,
        slab: &mut Slab<M::Partial>,
    ) {
        match entry {
            Entry::Raw(value) => self.push(time, value, false),
            Entry::Lifted(partial) => self.push(time, In::from_handle(slab.store(partial)), true),
        }
    }

    pub(super) fn from_batch<M: Monoid<In = In>>(
        batch: Batch<M>,
        slab: &mut Slab<M::Partial>,
    ) -> Self {
        let mut run = Self {
            times: batch.times,
            values: batch.values,
            promoted: Vec::with_capacity(batch.lifted.len()),
        };
        for (position, partial) in batch.lifted {
            run.values[position] = In::from_handle(slab.store(partial));
            run.promoted.push(position as u32);
        }
        run
    }

    pub(super) fn pop(&mut self) {
        self.times.pop();
        self.values.pop();
        self.promoted.pop_if(|at| *at as usize == self.times.len());
    }

    pub(super) fn extend(&mut self, slice: RunSlice<'_, In>) {
        let RunSlice { run, from, to } = slice;
        if !run.promoted.is_empty() {
            let (from, to, base) = (from as u32, to as u32, self.len() as u32);
            let within = run.promoted.iter().filter(|&&at| (from..to).contains(&at));
            self.promoted.extend(within.map(|at| at - from + base));
        }
        self.copy(&run.times[from..to], &run.values[from..to]);
    }

    /// Most stretches are of a few entries, for which a call to copy memory is slow.
    fn copy(&mut self, times: &[i64], values: &[In]) {
        if times.len() > 8 {
            self.times.extend_from_slice(times);
            self.values.extend_from_slice(values);
            return;
        }
        for (time, value) in times.iter().zip(values) {
            self.times.push(*time);
            self.values.push(value.clone());
        }
    }

    pub(super) fn is_promoted(&self, position: usize) -> bool {
        !self.promoted.is_empty() && self.promoted.binary_search(&(position as u32)).is_ok()
    }

    /// Bits of the promoted entries among the (up to 64) from `from` on, lowest first.
    fn promoted_bits(&self, from: usize, to: usize) -> u64 {
        if self.promoted.is_empty() {
            return 0;
        }
        let first = self.promoted.partition_point(|&at| (at as usize) < from);
        let within = self.promoted[first..].iter().map(|&at| at as usize);
        let within = within.take_while(|&at| at < to);
        within.fold(0, |bits, at| bits | 1 << (at - from))
    }
}

/// A stretch of a run.
#[derive(Debug)]
pub(super) struct RunSlice<'a, In> {
    pub(super) run: &'a SortedRun<In>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<In> Clone for RunSlice<'_, In> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<In> Copy for RunSlice<'_, In> {}

impl<'a, In> RunSlice<'a, In> {
    pub(super) fn len(self) -> usize {
        self.to - self.from
    }

    pub(super) fn is_empty(self) -> bool {
        self.from == self.to
    }

    pub(super) fn times(self) -> &'a [i64] {
        &self.run.times[self.from..self.to]
    }

    /// Divides it behind its first `count` entries.
    pub(super) fn split(self, count: usize) -> (Self, Self) {
        let at = self.from + count;
        (Self { to: at, ..self }, Self { from: at, ..self })
    }
}

/// Slots `start..end` are taken. Only the left finger has `start > 0`: eviction at the
/// front moves nothing.
#[derive(Clone, Debug)]
pub(super) struct Leaf<In, const L: usize> {
    pub(super) times: [i64; L],
    pub(super) values: [In; L],
    /// Bit `i`: slot `i` holds a handle into the slab.
    pub(super) promoted: u64,
    pub(super) start: u16,
    pub(super) end: u16,
}

/// Bits `from..to`.
fn mask(from: usize, to: usize) -> u64 {
    if from >= to {
        return 0;
    }
    (u64::MAX >> (64 - (to - from))) << from
}

impl<In: HandleSlot, const L: usize> Leaf<In, L> {
    pub(super) fn new() -> Self {
        const { assert!(L >= 2 && L <= 64, "one bit per slot") };
        Self {
            times: [0; L],
            values: std::array::from_fn(|_| In::default()),
            promoted: 0,
            start: 0,
            end: 0,
        }
    }

    pub(super) fn start(&self) -> usize {
        usize::from(self.start)
    }

    pub(super) fn end(&self) -> usize {
        usize::from(self.end)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.end - self.start)
    }

    pub(super) fn is_full(&self) -> bool {
        self.end() == L
    }

    pub(super) fn first_time(&self) -> i64 {
        self.times[self.start()]
    }

    pub(super) fn last_time(&self) -> i64 {
        self.times[self.end() - 1]
    }

    pub(super) fn taken(&self) -> &[i64] {
        &self.times[self.start()..self.end()]
    }

    /// The first slot with a time ≥ `time`, or `end`.
    pub(super) fn lower(&self, time: i64) -> usize {
        self.start() + count_before(self.taken(), |&present| present < time)
    }

    /// The first slot with a time > `time`, or `end`.
    pub(super) fn upper(&self, time: i64) -> usize {
        self.start() + count_before(self.taken(), |&present| present <= time)
    }

    pub(super) fn is_promoted(&self, at: usize) -> bool {
        self.promoted >> at & 1 == 1
    }

    pub(super) fn promoted_in(&self, from: usize, to: usize) -> u64 {
        self.promoted & mask(from, to)
    }

    /// Writes behind the last entry. There must be room.
    #[inline]
    pub(super) fn push(&mut self, time: i64, slot: In, promoted: bool) {
        let at = self.end();
        self.times[at] = time;
        self.values[at] = slot;
        self.promoted |= u64::from(promoted) << at;
        self.end += 1;
    }

    /// Writes a piece behind the last entry. There must be room.
    pub(super) fn extend(&mut self, slice: RunSlice<'_, In>) {
        let RunSlice { run, from, to } = slice;
        let (at, count) = (self.end(), to - from);
        self.times[at..at + count].copy_from_slice(&run.times[from..to]);
        self.values[at..at + count].clone_from_slice(&run.values[from..to]);
        if count > 0 {
            self.promoted |= run.promoted_bits(from, to) << at;
        }
        self.end += count as u16;
    }

    pub(super) fn copy_out(&self, from: usize, to: usize, run: &mut SortedRun<In>) {
        let base = run.len();
        run.copy(&self.times[from..to], &self.values[from..to]);
        let mut bits = self.promoted_in(from, to);
        while bits != 0 {
            run.promoted
                .push((base + bits.trailing_zeros() as usize - from) as u32);
            bits &= bits - 1;
        }
    }

    /// Empties the leaf without looking at its slots: their owner has moved them.
    pub(super) fn reset(&mut self) {
        if std::mem::needs_drop::<In>() {
            self.values.fill_with(In::default);
        }
        self.promoted = 0;
        self.start = 0;
        self.end = 0;
    }

    /// Moves the entries to slot 0.
    pub(super) fn compact(&mut self) {
        let (start, end) = (self.start(), self.end());
        if start == 0 {
            return;
        }
        self.times.copy_within(start..end, 0);
        self.values.rotate_left(start);
        self.promoted >>= start;
        self.start = 0;
        self.end = (end - start) as u16;
    }

    /// Moves the entries from `from` on up by `by` slots; there must be room.
    pub(super) fn slide_up(&mut self, from: usize, to: usize, by: usize) {
        self.times.copy_within(from..to, from + by);
        In::slide_up(&mut self.values, from, to, by);
        let moved = self.promoted_in(from, to);
        self.promoted = (self.promoted & !mask(from, to)) | (moved << by);
    }

    /// Takes the slot out, closing the gap.
    pub(super) fn remove(&mut self, at: usize) {
        let (start, end) = (self.start(), self.end());
        self.times.copy_within(at + 1..end, at);
        self.values[at..end].rotate_left(1);
        self.values[end - 1] = In::default();
        let above = self.promoted_in(at + 1, end);
        self.promoted = self.promoted_in(start, at) | (above >> 1);
        self.end -= 1;
    }

    /// The slot's partial, if it was promoted, is the caller's to release.
    pub(super) fn pop_front(&mut self) {
        let at = self.start();
        if std::mem::needs_drop::<In>() {
            self.values[at] = In::default();
        }
        self.start += 1;
    }
}
