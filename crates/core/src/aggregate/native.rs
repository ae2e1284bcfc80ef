//! An aggregation whose functions the caller compiled, over records of a fixed size.
//!
//! The functions are given by pointer. They get pointers to records of 64-bit words, and
//! write the result to the last pointer. The caller of the unsafe constructor of
//! [`Functions`] guarantees that they read and write no more than the record and that they
//! neither unwind nor call back. Every call is an unsafe block that states why its pointers
//! are valid. A partial also counts its values: a count of 0 is an empty window or a
//! missing value, so no identity is needed.

use std::hash::{Hash, Hasher};

use super::{Aggregation, Answer, Cell, DType};
use crate::monoid::{Entry, Invertible, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// Records of up to this many words are stored in place in all algorithms.
pub const SMALL_WORDS: usize = 4;
/// The largest record, in words.
pub const MAX_WORDS: usize = 16;

/// So far below the largest integer that sums of many do not overflow.
const MAX_COUNT: u64 = 1 << 48;

/// Combine or inverse: pointers to the earlier record (or the whole), the later (or the
/// earliest), and the result.
pub type Binary = unsafe extern "C" fn(*const u64, *const u64, *mut u64);
/// Lift: a value, and a pointer to the result.
pub type LiftI64 = unsafe extern "C" fn(i64, *mut u64);
pub type LiftF64 = unsafe extern "C" fn(f64, *mut u64);
/// Lower: a pointer to a record.
pub type LowerI64 = unsafe extern "C" fn(*const u64) -> i64;
pub type LowerF64 = unsafe extern "C" fn(*const u64) -> f64;

/// From a value to a record.
#[derive(Clone, Copy, Debug)]
pub enum Lift {
    /// The value is the record.
    Store,
    I64(LiftI64),
    F64(LiftF64),
}

/// From a record to the answer.
#[derive(Clone, Copy, Debug)]
pub enum NativeLower {
    /// The record, for the caller to lower.
    Record,
    /// The record is a number.
    Word(DType),
    I64(LowerI64),
    F64(LowerF64),
}

/// Functions over records of a number of words.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// The size of a record in words, from 1 to [`MAX_WORDS`].
    pub(crate) words: usize,
    commutative: bool,
    pub(crate) lift: Lift,
    pub(crate) combine: Binary,
    pub(crate) lower: NativeLower,
    pub(crate) inverse: Option<Binary>,
}

impl Functions {
    /// # Panics
    /// If there are no words, or more than [`MAX_WORDS`].
    ///
    /// # Safety
    /// Every function must be sound to call in any thread while a copy of this lives, with
    /// aligned pointers to `words` words each, the last of which is written and overlaps no
    /// other: it accesses these words only, does not unwind, and does not call back.
    #[allow(unsafe_code)]
    pub unsafe fn new(
        words: usize,
        commutative: bool,
        lift: Lift,
        combine: Binary,
        lower: NativeLower,
        inverse: Option<Binary>,
    ) -> Self {
        assert!((1..=MAX_WORDS).contains(&words), "{words} words");
        Self {
            words,
            commutative,
            lift,
            combine,
            lower,
            inverse,
        }
    }

    pub fn words(&self) -> usize {
        self.words
    }

    pub fn lift(&self) -> Lift {
        self.lift
    }

    pub fn lower(&self) -> NativeLower {
        self.lower
    }

    /// Writes the record of a value.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn lift_into(&self, bits: u64, out: &mut [u64]) {
        let out = &mut out[..self.words];
        match self.lift {
            Lift::Store => out[0] = bits,
            // SAFETY: there is room for a record.
            Lift::I64(lift) => unsafe { lift(bits as i64, out.as_mut_ptr()) },
            // SAFETY: the same.
            Lift::F64(lift) => unsafe { lift(f64::from_bits(bits), out.as_mut_ptr()) },
        }
    }

    /// Writes the result of a binary function of two records.
    #[inline]
    #[allow(unsafe_code)]
    fn apply(&self, function: Binary, a: &[u64], b: &[u64], out: &mut [u64]) {
        let words = self.words;
        let (a, b, out) = (&a[..words], &b[..words], &mut out[..words]);
        // SAFETY: three records; the written one is borrowed exclusively.
        unsafe { function(a.as_ptr(), b.as_ptr(), out.as_mut_ptr()) }
    }

    pub fn is_small(&self) -> bool {
        self.words <= SMALL_WORDS
    }

    /// Functions with equal addresses are the same.
    fn identity(&self) -> [usize; 6] {
        let lift = match self.lift {
            Lift::Store => 0,
            Lift::I64(lift) => lift as usize,
            Lift::F64(lift) => lift as usize,
        };
        let lower = match self.lower {
            NativeLower::Record => 0,
            NativeLower::Word(dtype) => 1 + usize::from(dtype == DType::F64),
            NativeLower::I64(lower) => lower as usize,
            NativeLower::F64(lower) => lower as usize,
        };
        let inverse = self.inverse.map_or(0, |inverse| inverse as usize);
        let commutative = usize::from(self.commutative);
        [
            self.words,
            commutative,
            lift,
            self.combine as usize,
            lower,
            inverse,
        ]
    }
}

impl PartialEq for Functions {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Functions {}

impl Hash for Functions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// A record and the number of its values; empty if it has none.
#[derive(Clone, Copy, Debug)]
pub struct CountedRecord<const N: usize> {
    count: u64,
    words: [u64; N],
}

impl<const N: usize> CountedRecord<N> {
    pub const NOTHING: Self = Self {
        count: 0,
        words: [0; N],
    };

    pub fn words(&self) -> Option<&[u64; N]> {
        (self.count > 0).then_some(&self.words)
    }
}

/// Equal if they have equal numbers of values: the last bits of floats depend on grouping,
/// and this module does not know which words are floats.
impl<const N: usize> PartialEq for CountedRecord<N> {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
    }
}

impl<const N: usize> Codec for CountedRecord<N> {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        self.count.write(out);
        if self.count > 0 {
            out.all(&self.words);
        }
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        match u64::read(input)? {
            0 => Ok(Self::NOTHING),
            count if count <= MAX_COUNT => Ok(Self {
                count,
                words: <[u64; N]>::read(input)?,
            }),
            count => damaged(format!("a record of {count} values")),
        }
    }
}

/// The monoid of records of up to `N` words.
#[derive(Clone, Copy, Debug)]
pub struct Native<const N: usize>(Functions);

impl<const N: usize> Native<N> {
    /// # Panics
    /// If records are larger than `N` words.
    pub fn new(functions: Functions) -> Self {
        assert!((1..=N).contains(&functions.words), "records of {N} words");
        Self(functions)
    }

    /// The record of a row's cell.
    pub fn one<T>(&self, cell: &Cell<T>) -> CountedRecord<N> {
        cell.bits()
            .map_or(CountedRecord::NOTHING, |bits| self.lifted(bits))
    }

    #[inline]
    fn lifted(&self, bits: u64) -> CountedRecord<N> {
        let mut record = CountedRecord {
            count: 1,
            words: [0; N],
        };
        self.0.lift_into(bits, &mut record.words);
        record
    }

    #[inline]
    fn apply(
        &self,
        function: Binary,
        count: u64,
        a: &CountedRecord<N>,
        b: &CountedRecord<N>,
    ) -> CountedRecord<N> {
        let mut record = CountedRecord {
            count,
            words: [0; N],
        };
        self.0
            .apply(function, &a.words, &b.words, &mut record.words);
        record
    }

    #[allow(unsafe_code)]
    pub fn answer<T>(&self, record: &CountedRecord<N>) -> Answer<T> {
        let Some(words) = record.words() else {
            return Answer::Null;
        };
        match self.0.lower {
            NativeLower::Record => Answer::Bytes(
                words[..self.0.words]
                    .iter()
                    .flat_map(|word| word.to_ne_bytes())
                    .collect(),
            ),
            NativeLower::Word(dtype) => Answer::of_bits(words[0], dtype),
            // SAFETY: a record of `N` words; `new` checked that they are enough.
            NativeLower::I64(lower) => Answer::I64(unsafe { lower(words.as_ptr()) }),
            // SAFETY: the same.
            NativeLower::F64(lower) => Answer::F64(unsafe { lower(words.as_ptr()) }),
        }
    }
}

impl<const N: usize> Monoid for Native<N> {
    type In = [u64; 1];
    type Partial = CountedRecord<N>;
    const SMALL: usize = 16;

    fn commutative(&self) -> bool {
        self.0.commutative
    }
    fn identity(&self) -> CountedRecord<N> {
        CountedRecord::NOTHING
    }
    fn lift(&self, value: &[u64; 1]) -> CountedRecord<N> {
        self.lifted(value[0])
    }
    #[inline]
    fn combine(&self, a: &CountedRecord<N>, b: &CountedRecord<N>) -> CountedRecord<N> {
        match (a.count, b.count) {
            (0, _) => *b,
            (_, 0) => *a,
            (older, younger) => self.apply(self.0.combine, older + younger, a, b),
        }
    }
    fn unlift(&self, partial: CountedRecord<N>) -> std::result::Result<[u64; 1], CountedRecord<N>> {
        match (self.0.lift, partial.count) {
            (Lift::Store, 1) => Ok([partial.words[0]]),
            _ => Err(partial),
        }
    }
    fn same(&self, a: &CountedRecord<N>, b: &CountedRecord<N>) -> bool {
        a == b
    }

    /// Alternates between two records, so that no new one is allocated.
    fn fold(&self, run: &[[u64; 1]]) -> CountedRecord<N> {
        let Some(([first], rest)) = run.split_first() else {
            return CountedRecord::NOTHING;
        };
        let (mut acc, mut one, mut out) = (self.lifted(*first).words, [0; N], [0; N]);
        for [bits] in rest {
            self.0.lift_into(*bits, &mut one);
            self.0.apply(self.0.combine, &acc, &one, &mut out);
            std::mem::swap(&mut acc, &mut out);
        }
        CountedRecord {
            count: run.len() as u64,
            words: acc,
        }
    }
}

/// For functions with an inverse.
impl<const N: usize> Invertible for Native<N> {
    fn inverse(&self, whole: &CountedRecord<N>, oldest: &CountedRecord<N>) -> CountedRecord<N> {
        match (self.0.inverse, whole.count.saturating_sub(oldest.count)) {
            (_, 0) => CountedRecord::NOTHING,
            (Some(inverse), rest) if oldest.count > 0 => self.apply(inverse, rest, whole, oldest),
            _ => *whole,
        }
    }
}

impl<T, const N: usize> Aggregation<T> for Native<N> {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match row[0].bits() {
            Some(bits) => Entry::Raw([bits]),
            None => Entry::Lifted(CountedRecord::NOTHING),
        }
    }
    fn answers(&self, partial: &CountedRecord<N>, out: &mut Vec<Answer<T>>) {
        out.push(self.answer(partial));
    }
}
