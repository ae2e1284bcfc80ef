//! Numbers of several words, in the words of a partial.

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
