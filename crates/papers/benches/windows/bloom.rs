//! A partial of 512 bytes, for which combining and copying are expensive.

use slidewise_core::monoid::Monoid;

/// A Bloom filter of 4096 bits, three of them to a value.
#[derive(Clone, Debug)]
pub struct Bloom;

impl Monoid for Bloom {
    type In = i64;
    type Partial = [u64; 64];
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> [u64; 64] {
        [0; 64]
    }
    fn lift(&self, value: &i64) -> [u64; 64] {
        let mixed = (*value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut filter = [0; 64];
        for hash in [mixed, mixed >> 12, mixed >> 24] {
            let bit = hash as usize % 4096;
            filter[bit / 64] |= 1 << (bit % 64);
        }
        filter
    }
    fn combine(&self, a: &[u64; 64], b: &[u64; 64]) -> [u64; 64] {
        std::array::from_fn(|word| a[word] | b[word])
    }
    fn unlift(&self, partial: [u64; 64]) -> Result<i64, [u64; 64]> {
        Err(partial)
    }
    fn same(&self, a: &[u64; 64], b: &[u64; 64]) -> bool {
        a == b
    }
}
