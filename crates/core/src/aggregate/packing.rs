//! Rows and partials as words, and numbers of several words in them.

use std::fmt::Debug;

use crate::snapshot::Codec;

/// Whether there is a value: a word of components that select one, or keep the first and
/// the last.
pub mod presence {
    pub const NONE: u64 = 0;
    pub const VALUE: u64 = 1;
    /// The value of the extreme row is missing.
    pub const NULL: u64 = 2;
}
/// A row or a partial as words: an array where the size is small, boxed otherwise.
pub trait Words:
    Clone + Debug + Send + Sync + Codec + AsRef<[u64]> + AsMut<[u64]> + 'static
{
    fn zeroed(words: usize) -> Self;
}

impl<const W: usize> Words for [u64; W] {
    fn zeroed(_: usize) -> Self {
        [0; W]
    }
}

impl Words for Box<[u64]> {
    fn zeroed(words: usize) -> Self {
        vec![0; words].into_boxed_slice()
    }
}

#[inline(always)]
pub fn put<const W: usize>(out: &mut [u64], at: usize, words: [u64; W]) {
    out[at..at + W].copy_from_slice(&words);
}

pub fn get_i128(words: &[u64], at: usize) -> i128 {
    ((u128::from(words[at + 1]) << 64) | u128::from(words[at])) as i128
}

pub fn put_i128(out: &mut [u64], at: usize, value: i128) {
    put(out, at, [value as u64, ((value as u128) >> 64) as u64]);
}
