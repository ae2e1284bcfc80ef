//! Ranks of the values in a chunk of a column.
//!
//! Sorting gives each row a rank, a small number that compares like its value. A chunk is a
//! few times as long as its windows. So ranks stay in the cache if windows are short, and
//! use little memory if they are long.

use crate::rolling::holistic::OrderedWords;

/// No value at this position.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct RankChunk {
    /// Positions `base..base + ranks.len()`.
    base: usize,
    /// The rank of each position among the sorted values; [`NONE`] without a value.
    ranks: Vec<u32>,
    /// The values in order.
    pub(super) sorted: Vec<i64>,
    keys: Vec<u64>,
}

impl RankChunk {
    pub(super) fn end(&self) -> usize {
        self.base + self.ranks.len()
    }

    #[inline]
    pub(super) fn rank(&self, position: usize) -> u32 {
        self.ranks[position - self.base]
    }

    /// The place of a position within the chunk; `None` outside.
    #[inline]
    pub(super) fn place(&self, position: usize) -> Option<usize> {
        let place = position.checked_sub(self.base)?;
        (place < self.ranks.len()).then_some(place)
    }

    /// Ranks the positions `from..to`. Equal values get different ranks if `apart`, the
    /// earlier position first; otherwise they share one.
    pub(super) fn sort(&mut self, words: &OrderedWords<'_>, from: usize, to: usize, apart: bool) {
        self.base = from;
        self.ranks.clear();
        self.ranks.resize(to - from, NONE);
        self.sorted.clear();
        let bits = usize::BITS - (to - from).leading_zeros();
        self.sort_keys(words, bits);
        let mask = (1_u64 << bits) - 1;
        for key in &self.keys {
            let position = (key & mask) as usize;
            let word = words.get(from + position).expect("only values have keys");
            if apart || self.sorted.last() != Some(&word) {
                self.sorted.push(word);
            }
            self.ranks[position] = (self.sorted.len() - 1) as u32;
        }
    }

    /// Sorts positions by their values, then by themselves. A key is the part of a value
    /// that fits above `bits` bits for the position: one word, so that sorting is fast. If
    /// the part is not the whole value, equal keys are sorted again by value.
    fn sort_keys(&mut self, words: &OrderedWords<'_>, bits: u32) {
        let count = self.ranks.len();
        let base = self.base;
        let present = || {
            let value = |at| words.get(base + at).map(|word| (word, at as u64));
            (0..count).filter_map(value)
        };
        self.keys.clear();
        let Some((first, _)) = present().next() else {
            return;
        };
        let (least, most) = present().fold((first, first), |(least, most), (word, _)| {
            (least.min(word), most.max(word))
        });
        let spread = most.wrapping_sub(least) as u64;
        let shift = (u64::BITS - spread.leading_zeros() + bits).saturating_sub(u64::BITS);
        let key = |(word, at): (i64, u64)| {
            let distance = word.wrapping_sub(least) as u64;
            (distance >> shift) << bits | at
        };
        self.keys.extend(present().map(key));
        self.keys.sort_unstable();
        if shift > 0 {
            let mask = (1_u64 << bits) - 1;
            let word = |key: &u64| words.get(base + (key & mask) as usize);
            for alike in self.keys.chunk_by_mut(|a, b| a >> bits == b >> bits) {
                alike.sort_unstable_by_key(|key| (word(key), *key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_ranks_however_far_apart_they_are() {
        let few = [5, -7, 5, 5, 0, -7];
        let near: Vec<i64> = (0..3_000).map(|at| at * 7_919 % 3_001).collect();
        let far: Vec<i64> = near.iter().map(|value| value % 40).collect();
        let ends = [i64::MAX, i64::MIN, 0, i64::MAX - 1, i64::MAX, 1, -1, 0];
        let mixed: Vec<i64> = far.iter().copied().chain(ends).collect();
        for values in [&few[..], &near, &far, &ends, &mixed] {
            for apart in [false, true] {
                let mut chunk = RankChunk::default();
                chunk.sort(&OrderedWords::of(values), 1, values.len(), apart);
                let mut expected: Vec<(i64, usize)> =
                    values.iter().copied().zip(0..).skip(1).collect();
                expected.sort_unstable();
                let mut sorted: Vec<i64> = expected.iter().map(|pair| pair.0).collect();
                if !apart {
                    sorted.dedup();
                }
                assert_eq!(chunk.sorted, sorted);
                for (place, (word, position)) in expected.into_iter().enumerate() {
                    let rank = chunk.rank(position) as usize;
                    assert_eq!(sorted[rank], word);
                    assert!(!apart || rank == place);
                }
            }
        }
    }
}
