//! A few words in place, or many words boxed: one type for records of all sizes, for
//! structures whose speed does not justify several.

use super::packing::Words;
use crate::monoid::HandleSlot;
use crate::snapshot::{Codec, Reader, Result, Writer};

/// Up to `N` words in place, or more in a box. Read as a slice it has at least `N` words;
/// unused ones are 0.
#[derive(Clone, Debug)]
pub enum ShortWords<const N: usize> {
    Here([u64; N]),
    Boxed(Box<[u64]>),
}

/// The row of a [`ShortRecord`].
pub type ShortRow = ShortWords<2>;
/// The partial of a [`ShortRecord`].
pub type ShortPartial = ShortWords<8>;
/// A record of any number of columns and words.
pub type ShortRecord = super::record::Record<ShortRow, ShortPartial>;

impl<const N: usize> Words for ShortWords<N> {
    #[inline]
    fn zeroed(words: usize) -> Self {
        if words <= N {
            return Self::Here([0; N]);
        }
        Self::Boxed(Words::zeroed(words))
    }
}

impl<const N: usize> AsRef<[u64]> for ShortWords<N> {
    #[inline]
    fn as_ref(&self) -> &[u64] {
        match self {
            Self::Here(words) => words,
            Self::Boxed(words) => words,
        }
    }
}

impl<const N: usize> AsMut<[u64]> for ShortWords<N> {
    #[inline]
    fn as_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Here(words) => words,
            Self::Boxed(words) => words,
        }
    }
}

impl<const N: usize> PartialEq for ShortWords<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl<const N: usize> Default for ShortWords<N> {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl<const N: usize> HandleSlot for ShortWords<N> {
    fn from_handle(handle: u32) -> Self {
        let mut slot = Self::zeroed(1);
        slot.as_mut()[0] = u64::from(handle);
        slot
    }
    fn handle(&self) -> u32 {
        self.as_ref()[0] as u32
    }
}

impl<const N: usize> Codec for ShortWords<N> {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        (self.as_ref().len() as u64).write(out);
        out.all(self.as_ref());
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        let count = input.length::<u64>()?;
        let mut words = Self::zeroed(count);
        for word in &mut words.as_mut()[..count] {
            *word = u64::read(input)?;
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_place_and_boxed() {
        for count in [0, 1, 3, 4, 5, 40] {
            let mut words = ShortWords::<4>::zeroed(count);
            for (at, word) in words.as_mut().iter_mut().enumerate() {
                *word = at as u64 + 1;
            }
            assert_eq!(matches!(words, ShortWords::Boxed(_)), count > 4);
            assert_eq!(words.as_ref().len(), count.max(4));
            let mut out = Writer::default();
            words.write(&mut out);
            let bytes = out.finish().expect("words have bytes");
            let mut input = Reader::new(&bytes);
            assert_eq!(ShortWords::<4>::read(&mut input), Ok(words.clone()));
            assert_eq!(input.end(), Ok(()));
            let cut = &bytes[..bytes.len() - 1];
            assert!(ShortWords::<4>::read(&mut Reader::new(cut)).is_err());
        }
    }
}
