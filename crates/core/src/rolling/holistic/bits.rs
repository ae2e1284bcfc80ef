//! A set of small numbers as bits, with levels of bits above that mark words that are not
//! empty.
//!
//! A neighbour is found in a step or two if the set is dense, and else in `log₆₄ n` steps,
//! at any distance.

const WORD: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct BitSet {
    /// Bit `i` of a level is set if word `i` of the level below is not empty.
    levels: Vec<Vec<u64>>,
}

impl BitSet {
    /// An empty set of numbers below `size`.
    pub(super) fn new(size: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = size.div_ceil(WORD).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(WORD);
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / WORD];
            let first = *word == 0;
            *word |= 1 << (at % WORD);
            if !first {
                return;
            }
            at /= WORD;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / WORD];
            *word &= !(1 << (at % WORD));
            if *word != 0 {
                return;
            }
            at /= WORD;
        }
    }

    /// The next larger number in the set.
    #[inline]
    pub(super) fn next(&self, number: usize) -> Option<usize> {
        let mut at = number + 1;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / WORD)?;
            let above = word & (u64::MAX << (at % WORD));
            if above != 0 {
                let found = at / WORD * WORD + above.trailing_zeros() as usize;
                return Some(self.outermost(height, found, |word| word.trailing_zeros()));
            }
            at = at / WORD + 1;
        }
        None
    }

    /// The next smaller number in the set.
    #[inline]
    pub(super) fn before(&self, number: usize) -> Option<usize> {
        let mut at = number;
        for (height, level) in self.levels.iter().enumerate() {
            let below = match at % WORD {
                0 => 0,
                bit => level[at / WORD] & (u64::MAX >> (WORD - bit)),
            };
            if below != 0 {
                let found = at / WORD * WORD + last(below) as usize;
                return Some(self.outermost(height, found, last));
            }
            at /= WORD;
        }
        None
    }

    /// Descends from a word that is not empty to one of its numbers.
    #[inline]
    fn outermost(&self, height: usize, found: usize, pick: impl Fn(u64) -> u32) -> usize {
        let mut at = found;
        for level in self.levels[..height].iter().rev() {
            at = at * WORD + pick(level[at]) as usize;
        }
        at
    }
}

#[inline]
fn last(word: u64) -> u32 {
    u64::BITS - 1 - word.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_at_any_distance() {
        for size in [1, 64, 65, 4_096, 4_097, 300_000] {
            let numbers = [
                0, 1, 62, 63, 64, 4_095, 4_096, 4_099, 262_143, 262_144, 299_999,
            ];
            let inside: Vec<usize> = numbers
                .into_iter()
                .filter(|number| *number < size)
                .collect();
            let mut bits = BitSet::new(size);
            inside.iter().for_each(|number| bits.insert(*number));
            for (at, number) in inside.iter().enumerate() {
                assert_eq!(bits.next(*number), inside.get(at + 1).copied());
                let before = at.checked_sub(1).map(|at| inside[at]);
                assert_eq!(bits.before(*number), before);
            }
            inside
                .iter()
                .skip(1)
                .for_each(|number| bits.remove(*number));
            assert_eq!(bits.next(0), None);
            assert_eq!(bits.before(size - 1), (size > 1).then_some(0));
        }
    }
}
