//! Ranks of a row's own value among the values of its window.

use super::multiset::WindowMultiset;
use super::rank_chunk::{NONE, RankChunk};
use super::{IndexedKind, WordColumn};
use crate::aggregate::holistic::{RankMethod, Standing};
use crate::aggregate::{Answer, Kind};

/// Counts by rank, with the sums of their prefixes. A row that the window lacks is ranked as
/// if it were there.
pub(super) struct OwnRanks<'a> {
    column: &'a WordColumn<'a>,
    aggs: Vec<(usize, RankMethod)>,
    /// Whether different values are counted, too.
    dense: bool,
    chunk: RankChunk,
    counts: Vec<u32>,
    below: PrefixCounts,
    different: PrefixCounts,
    /// Whether the row at each place of the chunk is in the window.
    held: Vec<bool>,
    count: usize,
}

impl<'a> OwnRanks<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, aggs: &[IndexedKind]) -> Self {
        let ranks = aggs.iter().filter_map(|(index, kind)| match kind {
            Kind::Rank(method) => Some((*index, *method)),
            _ => None,
        });
        let aggs: Vec<_> = ranks.collect();
        Self {
            column,
            dense: aggs.iter().any(|(_, method)| *method == RankMethod::Dense),
            aggs,
            chunk: RankChunk::default(),
            counts: Vec::new(),
            below: PrefixCounts::default(),
            different: PrefixCounts::default(),
            held: Vec::new(),
            count: 0,
        }
    }

    /// The window as seen from the value of a row; `None` if one of them has no values.
    fn standing(&self, own: usize) -> Option<Standing> {
        let word = self.column.words.get(own)?;
        if self.count == 0 {
            return None;
        }
        let place = self.chunk.place(own);
        let (rank, peers) = match place {
            Some(_) => (self.chunk.rank(own) as usize, true),
            None => match self.chunk.sorted.binary_search(&word) {
                Ok(rank) => (rank, true),
                Err(rank) => (rank, false),
            },
        };
        let held = place.is_some_and(|place| self.held[place]);
        let peers = if peers { self.counts[rank] } else { 0 };
        let different = if self.dense {
            self.different.below(rank)
        } else {
            0
        };
        Some(Standing {
            less: self.below.below(rank) as usize,
            different: different as usize,
            equal: peers as usize + usize::from(!held),
            count: self.count + usize::from(!held),
        })
    }
}

impl WindowMultiset for OwnRanks<'_> {
    const ASKS_FOR_ROWS: bool = true;

    fn end(&self) -> usize {
        self.chunk.end()
    }

    fn renew(&mut self, from: usize, to: usize) {
        self.chunk.sort(&self.column.words, from, to, false);
        let ranks = self.chunk.sorted.len();
        self.counts.clear();
        self.counts.resize(ranks, 0);
        self.below.clear(ranks);
        self.different.clear(if self.dense { ranks } else { 0 });
        self.held.clear();
        self.held.resize(to - from, false);
        self.count = 0;
    }

    #[inline]
    fn enter(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank == NONE {
            return;
        }
        let (rank, place) = (rank as usize, self.chunk.place(position));
        self.held[place.expect("it has a rank")] = true;
        self.count += 1;
        self.counts[rank] += 1;
        self.below.add(rank, 1);
        if self.dense && self.counts[rank] == 1 {
            self.different.add(rank, 1);
        }
    }

    #[inline]
    fn leave(&mut self, position: usize) {
        let rank = self.chunk.rank(position);
        if rank == NONE {
            return;
        }
        let (rank, place) = (rank as usize, self.chunk.place(position));
        self.held[place.expect("it has a rank")] = false;
        self.count -= 1;
        self.counts[rank] -= 1;
        self.below.add(rank, -1);
        if self.dense && self.counts[rank] == 0 {
            self.different.add(rank, -1);
        }
    }

    #[inline]
    fn answers(&mut self, own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let standing = own.and_then(|own| self.standing(own));
        for (index, method) in &self.aggs {
            put(
                *index,
                standing.map_or(Answer::Null, |standing| method.answer(standing)),
            );
        }
    }
}

/// Counts whose prefixes are summed in O(log n) (Fenwick, 1994).
#[derive(Debug, Default)]
struct PrefixCounts {
    /// Element `i` has the sum of the `i & -i` counts that end with it, from 1 on.
    sums: Vec<u32>,
}

impl PrefixCounts {
    fn clear(&mut self, size: usize) {
        self.sums.clear();
        self.sums.resize(size + 1, 0);
    }

    #[inline]
    fn add(&mut self, at: usize, change: i32) {
        let mut at = at + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add_signed(change);
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of the counts before `at`.
    #[inline]
    fn below(&self, at: usize) -> u32 {
        let (mut at, mut sum) = (at, 0_u32);
        while at > 0 {
            sum = sum.wrapping_add(self.sums[at]);
            at &= at - 1;
        }
        sum
    }
}
