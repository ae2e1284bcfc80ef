//! The entries of all keys of a shard, in blocks of a few sizes.
//!
//! A block holds a run of entries in order of time: times, values, and a bit for each
//! entry that no raw value expresses (its partial lies in a slab, see [`Entry`]). Blocks
//! lie in pages, which never move, so that a store grows without copying; a block that is
//! given back goes to the free list of its size.

use super::run::Run;
use crate::monoid::{Entry, HandleSlot, Monoid, Slab};

/// Entries of a page. Each size of a block is below it.
const PAGE: usize = 2048;
/// The sizes of blocks. Small steps at the upper end: a leaf that late entries split is as
/// full as one that was filled in order.
const SIZES: [u8; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128];
/// The most entries of a block.
pub(super) const MOST: usize = SIZES[SIZES.len() - 1] as usize;

/// A block: where it begins, the index of its size, and its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub at: u32,
    size: u8,
    pub len: u8,
}

impl Block {
    pub fn len(self) -> usize {
        self.len as usize
    }

    fn capacity(self) -> usize {
        SIZES[self.size as usize] as usize
    }

    pub fn has_room(self) -> bool {
        self.len() < self.capacity()
    }
}

#[derive(Clone, Debug)]
struct Page<In> {
    times: Vec<i64>,
    values: Vec<In>,
    /// A bit per entry; empty while none is promoted.
    promoted: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Blocks<M: Monoid> {
    pages: Vec<Page<M::In>>,
    /// Where the last page is unused.
    end: usize,
    free: [Vec<u32>; SIZES.len()],
    slab: Slab<M::Partial>,
}

impl<M: Monoid> Default for Blocks<M> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            end: PAGE,
            free: Default::default(),
            slab: Slab::default(),
        }
    }
}

/// The page of a place, and the place in it.
fn split(at: u32) -> (usize, usize) {
    (at as usize / PAGE, at as usize % PAGE)
}

impl<M: Monoid> Blocks<M> {
    /// An empty block for at least so many entries.
    fn new_block(&mut self, entries: usize) -> Block {
        let size = SIZES.partition_point(|size| (*size as usize) < entries);
        let at = match self.free[size].pop() {
            Some(at) => at,
            None => self.grow(SIZES[size] as usize),
        };
        Block {
            at,
            size: size as u8,
            len: 0,
        }
    }

    fn grow(&mut self, entries: usize) -> u32 {
        if self.end + entries > PAGE {
            self.free_rest();
            self.pages.push(Page {
                times: vec![0; PAGE],
                values: vec![M::In::default(); PAGE],
                promoted: Vec::new(),
            });
            self.end = 0;
        }
        let at = (self.pages.len() - 1) * PAGE + self.end;
        self.end += entries;
        u32::try_from(at).expect("fewer than 2^32 entries in a shard")
    }

    /// Gives the rest of the last page to the free lists.
    fn free_rest(&mut self) {
        while let Some(size) = SIZES
            .iter()
            .rposition(|size| self.end + *size as usize <= PAGE)
        {
            let at = (self.pages.len() - 1) * PAGE + self.end;
            self.free[size].push(at as u32);
            self.end += SIZES[size] as usize;
        }
    }

    /// Gives a block and its promoted partials back.
    pub fn release(&mut self, block: Block) {
        for at in 0..block.len() {
            self.release_promoted(block, at);
        }
        if std::mem::needs_drop::<M::In>() {
            let (page, from) = split(block.at);
            for value in &mut self.pages[page].values[from..from + block.len()] {
                *value = M::In::default();
            }
        }
        self.free[block.size as usize].push(block.at);
    }

    #[inline]
    pub fn times(&self, block: Block) -> &[i64] {
        let (page, from) = split(block.at);
        &self.pages[page].times[from..from + block.len()]
    }

    fn is_promoted(&self, block: Block, at: usize) -> bool {
        let (page, from) = split(block.at);
        let bits = &self.pages[page].promoted;
        !bits.is_empty() && bits[(from + at) / 64] >> ((from + at) % 64) & 1 == 1
    }

    fn release_promoted(&mut self, block: Block, at: usize) {
        if self.is_promoted(block, at) {
            let (page, from) = split(block.at);
            let page = &mut self.pages[page];
            page.promoted[(from + at) / 64] &= !(1 << ((from + at) % 64));
            self.slab.release(page.values[from + at].handle());
        }
    }

    /// Whether any of the entries `from..to` of a page is promoted.
    fn any_promoted(&self, page: usize, from: usize, to: usize) -> bool {
        let bits = &self.pages[page].promoted;
        !bits.is_empty()
            && (from / 64..to.div_ceil(64)).any(|word| {
                let above = !0 << from.saturating_sub(word * 64).min(63);
                let below = !0 >> (64 - (to - word * 64).min(64));
                bits[word] & above & below != 0
            })
    }

    /// Writes behind the last entry of a block that has room.
    #[inline]
    fn put(&mut self, block: &mut Block, time: i64, entry: Entry<M>) {
        let (page, from) = split(block.at);
        let at = from + block.len();
        let slot = match entry {
            Entry::Raw(value) => value,
            Entry::Lifted(partial) => {
                let handle = self.slab.store(partial);
                let bits = &mut self.pages[page].promoted;
                bits.resize(PAGE / 64, 0);
                bits[at / 64] |= 1 << (at % 64);
                M::In::from_handle(handle)
            }
        };
        let page = &mut self.pages[page];
        page.times[at] = time;
        page.values[at] = slot;
        block.len += 1;
    }

    /// Appends an entry that is not earlier than the last, where the block has room.
    #[inline]
    pub fn append(&mut self, block: &mut Block, time: i64, entry: Entry<M>) {
        debug_assert!(block.has_room());
        self.put(block, time, entry);
    }

    pub fn entry(&self, block: Block, at: usize) -> Entry<M> {
        let (page, from) = split(block.at);
        let slot = &self.pages[page].values[from + at];
        match self.is_promoted(block, at) {
            true => Entry::Lifted(self.slab.get(slot.handle()).clone()),
            false => Entry::Raw(slot.clone()),
        }
    }

    /// A block of the entries of a run, with room for `least` entries.
    pub fn store(&mut self, run: &Run<M>, (from, to): (usize, usize), least: usize) -> Block {
        let mut block = self.new_block(least.max(to - from));
        for at in from..to {
            self.put(&mut block, run.times[at], run.entries[at].clone());
        }
        block
    }

    /// Moves the entries that are later than `until`, if it is given, out of a block, which
    /// is given back.
    pub fn take(&mut self, block: Block, until: Option<i64>, into: &mut Run<M>) {
        let from = until.map_or(0, |until| {
            self.times(block).partition_point(|time| *time <= until)
        });
        for at in from..block.len() {
            into.push(self.times(block)[at], self.entry(block, at));
        }
        self.release(block);
    }

    /// Combines the entries `from..to` of a block behind `acc`.
    #[inline]
    pub fn fold(
        &self,
        monoid: &M,
        block: Block,
        (from, to): (usize, usize),
        acc: &mut Option<M::Partial>,
    ) {
        if from >= to {
            return;
        }
        let (page, start) = split(block.at);
        if self.any_promoted(page, start + from, start + to) {
            for at in from..to {
                absorb(monoid, acc, &self.entry(block, at));
            }
            return;
        }
        let whole = monoid.fold(&self.pages[page].values[start + from..start + to]);
        *acc = Some(match acc.take() {
            Some(older) => monoid.combine(&older, &whole),
            None => whole,
        });
    }

    pub fn bytes(&self) -> usize {
        let entry = size_of::<i64>() + size_of::<M::In>();
        let pages = self.pages.iter().map(|page| {
            page.times.capacity() * entry + page.promoted.capacity() * size_of::<u64>()
        });
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        pages.sum::<usize>() + free * size_of::<u32>() + self.slab.bytes()
    }
}

/// Combines an entry behind `acc`.
pub(super) fn absorb<M: Monoid>(monoid: &M, acc: &mut Option<M::Partial>, entry: &Entry<M>) {
    match (acc.as_mut(), entry) {
        (Some(acc), Entry::Raw(value)) => monoid.absorb(acc, value),
        (Some(older), Entry::Lifted(partial)) => *older = monoid.combine(older, partial),
        (None, entry) => *acc = Some(entry.partial(monoid)),
    }
}
