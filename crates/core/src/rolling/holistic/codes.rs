//! Small numbers for the different values of a column, by hashing.

use std::hash::{BuildHasher, RandomState};

use super::Words;
use super::stretch::NONE;

/// A code per position, [`NONE`] where there is no value, and how many codes there are.
pub(super) fn codes(words: &Words<'_>) -> (Vec<u32>, usize) {
    match words.spread() {
        None => (vec![NONE; words.len()], 0),
        Some((least, spread)) if spread < 2 * words.len() as u64 + 1_024 => {
            let code = |word: i64| word.wrapping_sub(least) as u32;
            let codes = (0..words.len()).map(|at| words.get(at).map_or(NONE, code));
            (codes.collect(), spread as usize + 1)
        }
        Some(_) => hashed(words),
    }
}

fn hashed(words: &Words<'_>) -> (Vec<u32>, usize) {
    let mut table = Table::new();
    let codes = (0..words.len()).map(|at| words.get(at).map_or(NONE, |word| table.code(word)));
    (codes.collect(), table.words.len())
}

/// Open addressing; a slot is free, or the code of a word in `words`.
struct Table {
    slots: Vec<u32>,
    words: Vec<i64>,
    /// Drawn anew for every table, so that no column is slow on purpose.
    seed: u64,
}

impl Table {
    fn new() -> Self {
        Self {
            slots: vec![NONE; 64],
            words: Vec::new(),
            seed: RandomState::new().hash_one(0) | 1,
        }
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
            let words = Words::of(&values);
            let (codes, different) = codes(&words);
            let mut pairs: Vec<(i64, u32)> = values.iter().copied().zip(codes).collect();
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
        }
    }
}
