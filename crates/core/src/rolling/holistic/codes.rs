//! Codes: small numbers for the distinct values of a column.
//!
//! If the range of values is small, a code is the distance from the least. Otherwise values
//! are hashed by chunks, a few times as long as their windows, so that the hash table stays
//! in the cache if windows are short.

use std::hash::{BuildHasher, RandomState};

use super::OrderedWords;
use super::rank_chunk::NONE;

pub(super) enum Codes<'a> {
    Near {
        words: &'a OrderedWords<'a>,
        least: i64,
        different: usize,
    },
    Hashed(HashedCodes<'a>),
}

pub(super) struct HashedCodes<'a> {
    words: &'a OrderedWords<'a>,
    table: WordTable,
    /// The first position that has a code, and the codes from there on.
    base: usize,
    codes: Vec<u32>,
}

impl<'a> Codes<'a> {
    pub(super) fn new(words: &'a OrderedWords<'a>) -> Self {
        let (least, spread) = words.spread().unwrap_or((0, 0));
        if spread < (2 * words.len() as u64 + 1_024).min(u64::from(NONE)) {
            let different = spread as usize + 1;
            return Self::Near {
                words,
                least,
                different,
            };
        }
        Self::Hashed(HashedCodes {
            words,
            table: WordTable::new(),
            base: 0,
            codes: Vec::new(),
        })
    }

    /// Positions from here on get codes by [`Codes::take_in`].
    pub(super) fn end(&self) -> usize {
        match self {
            Self::Near { words, .. } => words.len(),
            Self::Hashed(hashed) => hashed.base + hashed.codes.len(),
        }
    }

    /// Makes codes for the positions `from..to`; other positions lose theirs. Returns a
    /// number that is larger than all codes.
    pub(super) fn take_in(&mut self, from: usize, to: usize) -> usize {
        match self {
            Self::Near { different, .. } => *different,
            Self::Hashed(hashed) => {
                let HashedCodes {
                    words,
                    table,
                    base,
                    codes,
                } = hashed;
                table.clear();
                *base = from;
                codes.clear();
                codes.extend(
                    (from..to).map(|at| words.get(at).map_or(NONE, |word| table.code(word))),
                );
                table.words.len()
            }
        }
    }

    /// The code at a position, [`NONE`] where there is no value.
    #[inline]
    pub(super) fn at(&self, position: usize) -> u32 {
        match self {
            Self::Near { words, least, .. } => {
                let code = |word: i64| word.wrapping_sub(*least) as u32;
                words.get(position).map_or(NONE, code)
            }
            Self::Hashed(hashed) => hashed.codes[position - hashed.base],
        }
    }
}

/// Open addressing; a slot is free, or the code of a word in `words`.
struct WordTable {
    slots: Vec<u32>,
    words: Vec<i64>,
    /// Random per table, so that no input can force collisions.
    seed: u64,
}

impl WordTable {
    fn new() -> Self {
        Self {
            slots: vec![NONE; 64],
            words: Vec::new(),
            seed: RandomState::new().hash_one(0) | 1,
        }
    }

    fn clear(&mut self) {
        self.slots.fill(NONE);
        self.words.clear();
    }

    #[inline]
    fn home(&self, word: i64) -> usize {
        let product = u128::from(word as u64 ^ self.seed) * 0x9E37_79B9_7F4A_7C15;
        let mixed = ((product >> 64) as u64 ^ product as u64).wrapping_mul(self.seed);
        (mixed >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    #[inline]
    fn code(&mut self, word: i64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = self.home(word);
        while self.slots[at] != NONE {
            if self.words[self.slots[at] as usize] == word {
                return self.slots[at];
            }
            at = (at + 1) & mask;
        }
        let code = u32::try_from(self.words.len()).expect("fewer than 2^32 rows");
        self.slots[at] = code;
        self.words.push(word);
        if self.words.len() * 2 > self.slots.len() {
            self.grow();
        }
        code
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![NONE; 2 * self.slots.len()];
        let mask = self.slots.len() - 1;
        for (code, word) in (0..).zip(&self.words) {
            let mut at = self.home(*word);
            while self.slots[at] != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = code;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_share_a_code_and_no_others_do() {
        for scale in [1, 1 << 40] {
            let values: Vec<i64> = (0..3_000_i64).map(|at| at * at % 701 * scale - 9).collect();
            let words = OrderedWords::of(&values);
            let mut codes = Codes::new(&words);
            for (from, to) in [(0, 1_000), (700, 3_000)] {
                let different = codes.take_in(from, to);
                let code = |position: usize| (values[position], codes.at(position));
                let mut pairs: Vec<(i64, u32)> = (from..to).map(code).collect();
                pairs.sort_unstable();
                pairs.dedup();
                assert!(
                    pairs.windows(2).all(|two| two[0].0 < two[1].0),
                    "scale {scale}"
                );
                let mut used: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
                used.sort_unstable();
                used.dedup();
                assert_eq!(used.len(), pairs.len(), "scale {scale}");
                assert!(used.iter().all(|code| (*code as usize) < different));
                assert!(codes.end() >= to);
            }
        }
    }
}
