//! A stretch of a column in order of its values.
//!
//! Sorting tells what windows over the stretch need: a small number for each row that
//! compares as its value does. A stretch is some times as long as the windows in it, so
//! its numbers stay in the cache where those are short, and memory where they are long.

use crate::rolling::holistic::Words;

/// No value at this position.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// Positions `base..base + ranks.len()`.
    base: usize,
    /// Per position its place among the sorted values, [`NONE`] where there is none.
    ranks: Vec<u32>,
    /// The values in order.
    pub(super) sorted: Vec<i64>,
    keys: Vec<u128>,
}

impl Stretch {
    pub(super) fn end(&self) -> usize {
        self.base + self.ranks.len()
    }

    #[inline]
    pub(super) fn rank(&self, position: usize) -> u32 {
        self.ranks[position - self.base]
    }

    /// Takes in the positions `from..to`. Equal values get places of their own if
    /// `apart`, the earlier position first, else they share one.
    pub(super) fn sort(&mut self, words: &Words<'_>, from: usize, to: usize, apart: bool) {
        self.base = from;
        self.keys.clear();
        for position in from..to {
            if let Some(word) = words.get(position) {
                let key = (word as u64) ^ (1 << 63);
                self.keys
                    .push(u128::from(key) << 32 | (position - from) as u128);
            }
        }
        self.keys.sort_unstable();
        self.ranks.clear();
        self.ranks.resize(to - from, NONE);
        self.sorted.clear();
        for key in &self.keys {
            let word = ((key >> 32) as u64 ^ (1 << 63)) as i64;
            if apart || self.sorted.last() != Some(&word) {
                self.sorted.push(word);
            }
            let rank = self.sorted.len() - 1;
            self.ranks[(*key as u32) as usize] = rank as u32;
        }
    }
}
