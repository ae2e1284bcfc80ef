//! The entries of all keys of a shard, in blocks of a few sizes.
//!
//! A block holds a run of entries in order of time: times, values, and a bit for each
//! entry that has no raw value (its partial lies in a slab, see [`Entry`]). Blocks of one
//! size lie in pages, which never move, so a store grows without copies. An empty page can
//! serve another size: when all keys grow, the memory of their earlier blocks is used again.

use super::run::{Run, RunItem};
use crate::monoid::{Entry, HandleSlot, Monoid, Slab};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Entries of a page.
const PAGE: usize = 1024;
/// The number of empty pages that keep their memory.
const SPARE: usize = 8;
/// The sizes of blocks. The steps at the upper end are small, so a leaf that late entries split
/// is as full as one that was filled in order.
const SIZES: [u8; 15] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128];
/// The most entries of a block.
pub(super) const MAX_BLOCK: usize = SIZES[SIZES.len() - 1] as usize;

/// A block: its position, the index of its size, and its number of entries.
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
        self.has_room_for(1)
    }

    pub fn has_room_for(self, entries: usize) -> bool {
        self.len() + entries <= self.capacity()
    }
}

#[derive(Debug)]
struct Page<In> {
    times: Vec<i64>,
    values: Vec<In>,
    /// Empty in a store without numbers.
    numbers: Vec<i64>,
    /// A bit per entry; empty while none is promoted.
    promoted: Vec<u64>,
    /// The positions of free blocks.
    free: Vec<u16>,
    /// The position in the list of pages with room for a block.
    listed: usize,
}

#[derive(Debug)]
pub(super) struct Blocks<M: Monoid> {
    pages: Vec<Page<M::In>>,
    /// Per size, the pages with room for a block.
    open: [Vec<u32>; SIZES.len()],
    /// The pages without blocks.
    empty: Vec<u32>,
    slab: Slab<M::Partial>,
    /// Whether entries have the numbers of their rows.
    pub numbered: bool,
}

/// The page of a position, and the position in it.
fn split(at: u32) -> (usize, usize) {
    (at as usize / PAGE, at as usize % PAGE)
}

impl<M: Monoid> Blocks<M> {
    pub fn new(numbered: bool) -> Self {
        Self {
            pages: Vec::new(),
            open: Default::default(),
            empty: Vec::new(),
            slab: Slab::default(),
            numbered,
        }
    }

    /// An empty block for at least `entries` entries.
    pub fn new_block(&mut self, entries: usize) -> Block {
        let size = SIZES.partition_point(|size| (*size as usize) < entries);
        let number = match self.open[size].last() {
            Some(page) => *page as usize,
            None => self.new_page(size),
        };
        let page = &mut self.pages[number];
        let place = page.free.pop().expect("a page with room");
        if page.free.is_empty() {
            self.unlist(number, size);
        }
        Block {
            at: (number * PAGE) as u32 + u32::from(place),
            size: size as u8,
            len: 0,
        }
    }

    /// A page for blocks of a size.
    fn new_page(&mut self, size: usize) -> usize {
        let number = match self.empty.pop() {
            Some(number) => number as usize,
            None => {
                self.pages.push(Page {
                    times: Vec::new(),
                    values: Vec::new(),
                    numbers: Vec::new(),
                    promoted: Vec::new(),
                    free: Vec::new(),
                    listed: 0,
                });
                self.pages.len() - 1
            }
        };
        u32::try_from((number + 1) * PAGE).expect("fewer than 2^32 entries in a shard");
        let page = &mut self.pages[number];
        page.times.resize(PAGE, 0);
        page.values.resize(PAGE, M::In::default());
        page.numbers.resize(if self.numbered { PAGE } else { 0 }, 0);
        let entries = SIZES[size] as usize;
        let places = (0..PAGE / entries).rev();
        page.free = places.map(|place| (place * entries) as u16).collect();
        self.list(number, size);
        number
    }

    fn list(&mut self, number: usize, size: usize) {
        self.pages[number].listed = self.open[size].len();
        self.open[size].push(number as u32);
    }

    fn unlist(&mut self, number: usize, size: usize) {
        let at = self.pages[number].listed;
        self.open[size].swap_remove(at);
        if let Some(moved) = self.open[size].get(at) {
            self.pages[*moved as usize].listed = at;
        }
    }

    fn free(&mut self, block: Block) {
        let (number, place) = split(block.at);
        let size = block.size as usize;
        self.pages[number].free.push(place as u16);
        let free = self.pages[number].free.len();
        if free == 1 {
            self.list(number, size);
        }
        if free == PAGE / SIZES[size] as usize {
            self.unlist(number, size);
            self.empty.push(number as u32);
            let page = &mut self.pages[number];
            page.free = Vec::new();
            if self.empty.len() > SPARE {
                page.times = Vec::new();
                page.values = Vec::new();
                page.numbers = Vec::new();
                page.promoted = Vec::new();
            }
        }
    }

    /// Frees a block and its promoted partials.
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
        self.free(block);
    }

    #[inline]
    pub fn times(&self, block: Block) -> &[i64] {
        let (page, from) = split(block.at);
        &self.pages[page].times[from..from + block.len()]
    }

    /// The numbers of the rows of a block; empty in a store without numbers.
    pub fn numbers(&self, block: Block) -> &[i64] {
        let (page, from) = split(block.at);
        let numbers = self.pages[page].numbers.get(from..from + block.len());
        numbers.unwrap_or(&[])
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

    /// Writes an entry after the last one of a block with room.
    #[inline]
    fn put(&mut self, block: &mut Block, item: RunItem<M>) {
        let (page, from) = split(block.at);
        let at = from + block.len();
        let slot = match item.entry {
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
        page.times[at] = item.time;
        page.values[at] = slot;
        if let Some(place) = page.numbers.get_mut(at) {
            *place = item.number;
        }
        block.len += 1;
    }

    /// Appends an entry that is not earlier than the last, to a block with room.
    #[inline]
    pub fn append(&mut self, block: &mut Block, item: RunItem<M>) {
        debug_assert!(block.has_room());
        self.put(block, item);
    }

    fn item(&self, block: Block, at: usize) -> RunItem<M> {
        let (page, from) = split(block.at);
        let page = &self.pages[page];
        RunItem {
            time: page.times[from + at],
            number: page.numbers.get(from + at).copied().unwrap_or(0),
            entry: self.entry(block, at),
        }
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
            self.put(&mut block, run.item(at));
        }
        block
    }

    /// Moves the entries of a block after `until` to a block with room for `more`, and frees the
    /// block. `None` if no block is that large, or an entry is promoted.
    pub fn widened(&mut self, block: Block, until: Option<i64>, more: usize) -> Option<Block> {
        let removed = until.map_or(0, |until| {
            self.times(block).partition_point(|time| *time <= until)
        });
        let kept = block.len() - removed;
        let (page, from) = split(block.at);
        if kept + more > MAX_BLOCK || self.any_promoted(page, from, from + block.len()) {
            return None;
        }
        let mut wider = self.new_block(kept + more);
        let (other, to) = split(wider.at);
        for at in 0..kept {
            let held = &self.pages[page];
            let (time, value) = (
                held.times[from + removed + at],
                &held.values[from + removed + at],
            );
            let (value, number) = (
                value.clone(),
                held.numbers.get(from + removed + at).copied(),
            );
            let page = &mut self.pages[other];
            page.times[to + at] = time;
            page.values[to + at] = value;
            if let Some(number) = number {
                page.numbers[to + at] = number;
            }
        }
        wider.len = kept as u8;
        self.release(block);
        Some(wider)
    }

    /// A block of one entry.
    pub fn single(&mut self, item: RunItem<M>) -> Block {
        let mut block = self.new_block(1);
        self.put(&mut block, item);
        block
    }

    /// Reads a value of each cache line of a block: see [`super::shard::Shard::prefetch`].
    #[inline]
    pub fn prefetch(&self, block: Block) -> i64 {
        let (page, from) = split(block.at);
        let (page, to) = (&self.pages[page], from + block.len());
        if !std::mem::needs_drop::<M::In>() {
            let step = (LINE / size_of::<M::In>().max(1)).max(1);
            for value in page.values[from..to].iter().step_by(step) {
                std::hint::black_box(value.clone());
            }
        }
        let times = page.times[from..to].iter().step_by(LINE / size_of::<i64>());
        times.fold(0, |seen, time| seen ^ time)
    }

    /// The times and values of a block; `None` if an entry has no raw value.
    #[inline]
    pub fn raw(&self, block: Block) -> Option<(&[i64], &[M::In])> {
        let (page, from) = split(block.at);
        let to = from + block.len();
        let held = &self.pages[page];
        (!self.any_promoted(page, from, to))
            .then(|| (&held.times[from..to], &held.values[from..to]))
    }

    /// Moves the entries of a block (only those after `until`, if it is given) to a run, and
    /// frees the block.
    pub fn take(&mut self, block: Block, until: Option<i64>, into: &mut Run<M>) {
        let from = until.map_or(0, |until| {
            self.times(block).partition_point(|time| *time <= until)
        });
        for at in from..block.len() {
            into.push(self.item(block, at));
        }
        self.release(block);
    }

    /// Combines the entries `from..to` of a block to the end of `acc`.
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

    /// Appends to `folds`, per entry in `from..to` of a block, the last fold combined with the
    /// entry; `back`: from the last entry on, each combined in front.
    pub fn folds(
        &self,
        monoid: &M,
        block: Block,
        (from, to): (usize, usize),
        back: bool,
        folds: &mut Vec<M::Partial>,
    ) {
        let last = |folds: &[M::Partial]| {
            let fold = folds.last().expect("the caller gives the first fold");
            fold.clone()
        };
        let (page, start) = split(block.at);
        if self.any_promoted(page, start + from, start + to) {
            for step in 0..to - from {
                let at = if back { to - 1 - step } else { from + step };
                let one = self.entry(block, at).partial(monoid);
                let known = last(folds);
                folds.push(match back {
                    true => monoid.combine(&one, &known),
                    false => monoid.combine(&known, &one),
                });
            }
            return;
        }
        let (run, known) = (
            &self.pages[page].values[start + from..start + to],
            last(folds),
        );
        match back {
            true => monoid.folds_back(run, known, folds),
            false => monoid.folds(run, known, folds),
        }
    }

    pub fn bytes(&self) -> usize {
        let entry = size_of::<i64>() + size_of::<M::In>();
        let pages = self.pages.iter().map(|page| {
            size_of::<Page<M::In>>()
                + page.times.capacity() * entry
                + page.numbers.capacity() * size_of::<i64>()
                + page.promoted.capacity() * size_of::<u64>()
                + page.free.capacity() * size_of::<u16>()
        });
        let lists = self.open.iter().chain([&self.empty]).map(Vec::capacity);
        pages.sum::<usize>() + lists.sum::<usize>() * size_of::<u32>() + self.slab.bytes()
    }
}

/// Combines an entry to the end of `acc`.
pub(super) fn absorb<M: Monoid>(monoid: &M, acc: &mut Option<M::Partial>, entry: &Entry<M>) {
    match (acc.as_mut(), entry) {
        (Some(acc), Entry::Raw(value)) => monoid.absorb(acc, value),
        (Some(older), Entry::Lifted(partial)) => *older = monoid.combine(older, partial),
        (None, entry) => *acc = Some(entry.partial(monoid)),
    }
}
