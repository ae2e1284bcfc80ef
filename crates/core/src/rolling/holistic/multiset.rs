//! Multisets of a window's values, which rows enter and leave in any order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::bits::BitSet;
use super::codes::Codes;
use super::rank_chunk::{NONE, RankChunk};
use super::{IndexedKind, WordColumn};
use crate::aggregate::holistic::{NAN, Quantile, between, entropy, value_counts, value_of};
use crate::aggregate::{Answer, DType, Kind};

/// The values of the rows of one window.
pub(super) trait WindowMultiset {
    /// Whether answers depend on the row whose window it is.
    const ASKS_FOR_ROWS: bool = false;

    /// Rows from here on can enter only after [`WindowMultiset::renew`].
    fn end(&self) -> usize;
    /// Empties the multiset and prepares the positions `from..to`.
    fn renew(&mut self, from: usize, to: usize);
    fn enter(&mut self, position: usize);
    /// Removes a row that entered before.
    fn leave(&mut self, position: usize);
    /// Passes an answer per aggregation to `put`, as of the row at the position `own`.
    fn answers(&mut self, own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>));
}

/// Quantiles: the values' ranks as a set of bits, and a cursor at each quantile that moves
/// as rows enter and leave below it.
pub(super) struct RankSet<'a> {
    column: &'a WordColumn<'a>,
    aggs: Vec<(usize, Quantile)>,
    chunk: RankChunk,
    bits: BitSet,
    cursors: Vec<Cursor>,
    count: usize,
    nans: usize,
    /// Ranks from here on are those of NaNs.
    first_nan: u32,
}

/// A rank, and the number of values in the set below it.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    place: usize,
    below: usize,
}

impl<'a> RankSet<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, aggs: &[IndexedKind]) -> Self {
        let quantiles = aggs.iter().filter_map(|(index, kind)| match kind {
            Kind::Quantile(quantile) => Some((*index, *quantile)),
            _ => None,
        });
        let aggs: Vec<_> = quantiles.collect();
        Self {
            column,
            cursors: vec![Cursor::default(); aggs.len()],
            aggs,
            chunk: RankChunk::default(),
            bits: BitSet::new(0),
            count: 0,
            nans: 0,
            first_nan: NONE,
        }
    }
}

impl WindowMultiset for RankSet<'_> {
    fn end(&self) -> usize {
        self.chunk.end()
    }

    fn renew(&mut self, from: usize, to: usize) {
        self.chunk.sort(&self.column.words, from, to, true);
        self.bits = BitSet::new(self.chunk.sorted.len());
        self.count = 0;
        self.nans = 0;
        self.first_nan = match self.column.dtype {
            DType::F64 => self.chunk.sorted.partition_point(|word| *word < NAN) as u32,
            _ => NONE,
        };
    }

    #[inline]
    fn enter(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank == NONE {
            return;
        }
        let place = rank as usize;
        self.bits.insert(place);
        self.nans += usize::from(rank >= self.first_nan);
        for cursor in &mut self.cursors {
            if self.count == 0 {
                *cursor = Cursor { place, below: 0 };
            }
            cursor.below += usize::from(place < cursor.place);
        }
        self.count += 1;
    }

    #[inline]
    fn leave(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank == NONE {
            return;
        }
        let place = rank as usize;
        self.bits.remove(place);
        self.nans -= usize::from(rank >= self.first_nan);
        self.count -= 1;
        for cursor in &mut self.cursors {
            if place < cursor.place {
                cursor.below -= 1;
            } else if place == cursor.place {
                if let Some(next) = self.bits.next(place) {
                    cursor.place = next;
                } else if let Some(before) = self.bits.before(place) {
                    cursor.place = before;
                    cursor.below -= 1;
                }
            }
        }
    }

    #[inline]
    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let dtype = self.column.dtype;
        for ((index, quantile), cursor) in self.aggs.iter().zip(&mut self.cursors) {
            if self.count == 0 || self.nans > 0 {
                let answer = quantile.answer(dtype, (self.count, self.nans), |_| 0);
                put(*index, answer);
                continue;
            }
            let place = quantile.place(self.count);
            while cursor.below < place.rank {
                cursor.place = self.bits.next(cursor.place).expect("there are more");
                cursor.below += 1;
            }
            while cursor.below > place.rank {
                cursor.place = self.bits.before(cursor.place).expect("there are more");
                cursor.below -= 1;
            }
            let low = self.chunk.sorted[cursor.place];
            put(
                *index,
                match quantile.picks() {
                    true => value_of(low, dtype),
                    false => {
                        let next = (place.fraction > 0.0).then(|| self.bits.next(cursor.place));
                        let high = next.flatten().map_or(low, |next| self.chunk.sorted[next]);
                        Answer::F64(between(low, high, place.fraction, dtype))
                    }
                },
            );
        }
    }
}

/// Modes: counts by rank as the leaves of a tree of maxima.
pub(super) struct ModeTree<'a> {
    column: &'a WordColumn<'a>,
    aggs: Vec<usize>,
    chunk: RankChunk,
    /// A complete binary tree; node 1 is the root, leaves start at `leaves`.
    most: Vec<u32>,
    leaves: usize,
}

impl<'a> ModeTree<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, aggs: &[IndexedKind]) -> Self {
        let modes = aggs.iter().filter(|(_, kind)| *kind == Kind::Mode);
        Self {
            column,
            aggs: modes.map(|(index, _)| *index).collect(),
            chunk: RankChunk::default(),
            most: Vec::new(),
            leaves: 0,
        }
    }

    fn set(&mut self, place: usize, by: impl Fn(u32) -> u32) {
        let mut at = self.leaves + place;
        self.most[at] = by(self.most[at]);
        while at > 1 {
            at /= 2;
            let most = self.most[2 * at].max(self.most[2 * at + 1]);
            if self.most[at] == most {
                return;
            }
            self.most[at] = most;
        }
    }
}

impl WindowMultiset for ModeTree<'_> {
    fn end(&self) -> usize {
        self.chunk.end()
    }

    fn renew(&mut self, from: usize, to: usize) {
        self.chunk.sort(&self.column.words, from, to, false);
        self.leaves = self.chunk.sorted.len().next_power_of_two();
        self.most.clear();
        self.most.resize(2 * self.leaves, 0);
    }

    fn enter(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank != NONE {
            self.set(rank as usize, |count| count + 1);
        }
    }

    fn leave(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank != NONE {
            self.set(rank as usize, |count| count - 1);
        }
    }

    /// The leftmost leaf of those with the most is the smallest value.
    #[inline]
    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let mut answer = Answer::Null;
        if self.most.get(1).is_some_and(|most| *most > 0) {
            let mut at = 1;
            while at < self.leaves {
                at = 2 * at + usize::from(self.most[2 * at] < self.most[at]);
            }
            answer = value_of(self.chunk.sorted[at - self.leaves], self.column.dtype);
        }
        self.aggs
            .iter()
            .for_each(|index| put(*index, answer.clone()));
    }
}

/// Distinct counts: the number of occurrences of each value, by its code.
pub(super) struct DistinctCounts<'a> {
    codes: Codes<'a>,
    aggs: Vec<usize>,
    counts: Vec<u32>,
    distinct: i64,
}

impl<'a> DistinctCounts<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, aggs: &[IndexedKind]) -> Self {
        let counted = aggs.iter().filter(|(_, kind)| *kind == Kind::CountDistinct);
        Self {
            codes: Codes::new(&column.words),
            aggs: counted.map(|(index, _)| *index).collect(),
            counts: Vec::new(),
            distinct: 0,
        }
    }
}

impl WindowMultiset for DistinctCounts<'_> {
    fn end(&self) -> usize {
        self.codes.end()
    }

    fn renew(&mut self, from: usize, to: usize) {
        let different = self.codes.take_in(from, to);
        self.counts.clear();
        self.counts.resize(different, 0);
        self.distinct = 0;
    }

    #[inline]
    fn enter(&mut self, position: usize) {
        let code = self.codes.at(position);
        if code != NONE {
            let count = &mut self.counts[code as usize];
            self.distinct += i64::from(*count == 0);
            *count += 1;
        }
    }

    #[inline]
    fn leave(&mut self, position: usize) {
        let code = self.codes.at(position);
        if code != NONE {
            let count = &mut self.counts[code as usize];
            *count -= 1;
            self.distinct -= i64::from(*count == 0);
        }
    }

    #[inline]
    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        self.aggs
            .iter()
            .for_each(|index| put(*index, Answer::I64(self.distinct)));
    }
}

/// Values with their counts, in the order of these.
pub(super) struct CountOrder<'a> {
    column: &'a WordColumn<'a>,
    /// With the most values of an answer, or 0 for all.
    aggs: Vec<(usize, u32)>,
    chunk: RankChunk,
    counts: Vec<u32>,
    order: BTreeSet<(Reverse<u32>, u32)>,
}

impl<'a> CountOrder<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, aggs: &[IndexedKind]) -> Self {
        let counted = aggs.iter().filter_map(|(index, kind)| match kind {
            Kind::ValueCounts { top } => Some((*index, *top)),
            _ => None,
        });
        Self {
            column,
            aggs: counted.collect(),
            chunk: RankChunk::default(),
            counts: Vec::new(),
            order: BTreeSet::new(),
        }
    }

    fn set(&mut self, rank: u32, by: impl Fn(u32) -> u32) {
        let count = &mut self.counts[rank as usize];
        if *count > 0 {
            self.order.remove(&(Reverse(*count), rank));
        }
        *count = by(*count);
        if *count > 0 {
            self.order.insert((Reverse(*count), rank));
        }
    }
}

impl WindowMultiset for CountOrder<'_> {
    fn end(&self) -> usize {
        self.chunk.end()
    }

    fn renew(&mut self, from: usize, to: usize) {
        self.chunk.sort(&self.column.words, from, to, false);
        self.counts.clear();
        self.counts.resize(self.chunk.sorted.len(), 0);
        self.order.clear();
    }

    fn enter(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank != NONE {
            self.set(rank, |count| count + 1);
        }
    }

    fn leave(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank != NONE {
            self.set(rank, |count| count - 1);
        }
    }

    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let (sorted, dtype) = (&self.chunk.sorted, self.column.dtype);
        for (index, top) in &self.aggs {
            let order = self.order.iter();
            let counts = order.map(|(count, rank)| (count.0, sorted[*rank as usize]));
            put(*index, value_counts(*top, dtype, counts));
        }
    }
}

/// Entropies: counts by code, and how many values have each count. A window of n rows has
/// at most √(2n) different counts.
pub(super) struct CountsOfCounts<'a> {
    codes: Codes<'a>,
    aggs: Vec<usize>,
    counts: Vec<u32>,
    values: BTreeMap<u32, u32>,
}

impl<'a> CountsOfCounts<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, aggs: &[IndexedKind]) -> Self {
        let entropies = aggs.iter().filter(|(_, kind)| *kind == Kind::Entropy);
        Self {
            codes: Codes::new(&column.words),
            aggs: entropies.map(|(index, _)| *index).collect(),
            counts: Vec::new(),
            values: BTreeMap::new(),
        }
    }

    fn set(&mut self, position: usize, by: impl Fn(u32) -> u32) {
        let code = self.codes.at(position);
        if code == NONE {
            return;
        }
        let count = &mut self.counts[code as usize];
        if *count > 0 {
            let with = self
                .values
                .get_mut(count)
                .expect("the value has this count");
            *with -= 1;
            if *with == 0 {
                self.values.remove(count);
            }
        }
        *count = by(*count);
        if *count > 0 {
            *self.values.entry(*count).or_default() += 1;
        }
    }
}

impl WindowMultiset for CountsOfCounts<'_> {
    fn end(&self) -> usize {
        self.codes.end()
    }

    fn renew(&mut self, from: usize, to: usize) {
        let different = self.codes.take_in(from, to);
        self.counts.clear();
        self.counts.resize(different, 0);
        self.values.clear();
    }

    fn enter(&mut self, position: usize) {
        self.set(position, |count| count + 1);
    }

    fn leave(&mut self, position: usize) {
        self.set(position, |count| count - 1);
    }

    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let counts = self.values.iter().map(|(count, values)| (*count, *values));
        let answer: Answer<i64> = entropy(counts);
        self.aggs
            .iter()
            .for_each(|index| put(*index, answer.clone()));
    }
}
