//! Shared code of the tests: a random source, monoids that reveal order, operation scripts
//! and the step-by-step comparison with the oracle.
#![allow(dead_code)]

pub mod costs;
pub mod definition;
pub mod holistic;
pub mod monoids;
pub mod owned;
pub mod script;

/// SplitMix64: small, seeded, good enough to draw scripts.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
