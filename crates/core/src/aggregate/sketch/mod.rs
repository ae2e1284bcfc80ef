//! Sketches: answers about many values from few bytes, with a known error.
//!
//! A value is a word: its 64-bit hash, or, for quantiles, a number that orders like it.
//! A [`Sketch`] keeps few words unchanged, which is exact and small, and becomes *dense*
//! when they would take more memory than the dense form. Both forms depend on the words
//! alone, so Bloom filters, distinct counts and Count-Min have the same bits in every
//! grouping and order. For quantiles this holds only for few values.
//!
//! Bloom filters and Count-Min are those of Apache DataSketches (its Rust crate: same
//! bytes as its other languages, no unsafe code, no dependencies); [`distinct`],
//! [`quantiles`] and [`hitters`] explain on their cards why they are not from that crate.

pub mod digest;
pub mod distinct;
pub mod hitters;
pub mod quantiles;
pub mod request;

use std::sync::Arc;

use datasketches::bloom::{BloomFilter, BloomFilterBuilder};
use datasketches::countmin::CountMinSketch;

use super::{Answer, Cell, DType, extreme_value, extreme_word, widening};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use distinct::Registers;
use quantiles::{Quantiles, rank_of};
pub use request::{Shares, SketchRequest};

/// The limit on unchanged words for sketches with a larger dense form.
const MAX_EXACT: usize = 1 << 12;
const MIN_EXACT: usize = 16;
const SIGN: u64 = 1 << 63;

pub type Counts = CountMinSketch<i64>;

#[derive(Clone, Debug, Default)]
pub enum Sketch {
    #[default]
    Nothing,
    One(u64),
    /// Two or more words, sorted; without duplicates if these do not matter.
    Few(Arc<Vec<u64>>),
    Bloom(Arc<BloomFilter>),
    Distinct(Arc<Registers>),
    Counts(Arc<Counts>),
    Quantiles(Arc<Quantiles>),
}

/// Quantile sketches are compared by the parts that do not depend on grouping.
impl PartialEq for Sketch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bloom(a), Self::Bloom(b)) => a == b,
            (Self::Distinct(a), Self::Distinct(b)) => a == b,
            (Self::Counts(a), Self::Counts(b)) => a == b,
            (Self::Quantiles(a), Self::Quantiles(b)) => a.exact() == b.exact(),
            _ => match (self.few(), other.few()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }
}

impl Sketch {
    /// The words, while they are kept unchanged.
    fn few(&self) -> Option<&[u64]> {
        match self {
            Self::Nothing => Some(&[]),
            Self::One(word) => Some(std::slice::from_ref(word)),
            Self::Few(words) => Some(words),
            _ => None,
        }
    }
}

/// The operations on sketches of one request.
#[derive(Clone, Copy, Debug)]
pub struct Sketcher {
    request: SketchRequest,
    /// The dtype of the numbers, for quantiles.
    dtype: DType,
}

impl Sketcher {
    pub fn new(request: SketchRequest, dtype: DType) -> Self {
        Self { request, dtype }
    }

    /// The word of a row's cell; `None` where it is missing.
    #[inline]
    pub fn word<T>(&self, cell: &Cell<T>) -> Option<u64> {
        let bits = cell.bits()?;
        if self.request.takes_hashes() {
            return Some(bits);
        }
        Some(extreme_word(bits, self.dtype, false) as u64 ^ SIGN)
    }

    /// Whether duplicates of a word count.
    fn doubles(&self) -> bool {
        matches!(
            self.request,
            SketchRequest::Counts { .. } | SketchRequest::Quantiles { .. }
        )
    }

    /// The number of different words that [`SketchRequest::Distinct`] counts exactly.
    pub fn exact_up_to(&self) -> usize {
        self.limit()
    }

    /// The number of words that are kept unchanged: at most the size of the dense form.
    fn limit(&self) -> usize {
        let words = match self.request {
            SketchRequest::Bloom { bits, .. } => bits as usize / 64,
            SketchRequest::Distinct { p } => (1 << p) / 8,
            SketchRequest::Counts { hashes, buckets } => usize::from(hashes) * buckets as usize,
            SketchRequest::Quantiles { k, .. } => return usize::from(k),
            SketchRequest::Hitters { .. } => 0,
        };
        words.clamp(MIN_EXACT, MAX_EXACT)
    }

    fn dense(&self, words: &[u64]) -> Sketch {
        let mut sketch = match self.request {
            SketchRequest::Bloom { bits, hashes } => Sketch::Bloom(Arc::new(bloom(bits, hashes))),
            SketchRequest::Distinct { p } => Sketch::Distinct(Arc::new(Registers::new(p))),
            SketchRequest::Counts { hashes, buckets } => {
                Sketch::Counts(Arc::new(counts(hashes, buckets)))
            }
            SketchRequest::Quantiles { k, .. } => Sketch::Quantiles(Arc::new(Quantiles::new(k))),
            SketchRequest::Hitters { .. } => unreachable!("hitters are no words"),
        };
        Self::absorb_dense(&mut sketch, words);
        sketch
    }

    fn absorb_dense(sketch: &mut Sketch, words: &[u64]) {
        match sketch {
            Sketch::Bloom(filter) => {
                let filter = Arc::make_mut(filter);
                words.iter().for_each(|word| filter.insert(word));
            }
            Sketch::Distinct(registers) => {
                let registers = Arc::make_mut(registers);
                words.iter().for_each(|word| registers.absorb(*word));
            }
            Sketch::Counts(counts) => {
                let counts = Arc::make_mut(counts);
                words.iter().for_each(|word| counts.update(word));
            }
            Sketch::Quantiles(quantiles) => {
                let quantiles = Arc::make_mut(quantiles);
                words.iter().for_each(|word| quantiles.absorb(*word));
            }
            Sketch::Nothing | Sketch::One(_) | Sketch::Few(_) => {
                unreachable!("only dense sketches absorb runs")
            }
        }
    }

    fn of_sorted(&self, words: Vec<u64>) -> Sketch {
        match words[..] {
            [] => Sketch::Nothing,
            [word] => Sketch::One(word),
            _ if words.len() <= self.limit() => Sketch::Few(Arc::new(words)),
            _ => self.dense(&words),
        }
    }

    /// The sketch of words in any order.
    pub fn fold(&self, mut words: Vec<u64>) -> Sketch {
        words.sort_unstable();
        if !self.doubles() {
            words.dedup();
        }
        self.of_sorted(words)
    }

    pub fn absorb(&self, sketch: &mut Sketch, word: u64) {
        match sketch {
            Sketch::Nothing => *sketch = Sketch::One(word),
            Sketch::One(first) => *sketch = self.fold(vec![*first, word]),
            Sketch::Few(words) => {
                let place = words.binary_search(&word);
                if place.is_ok() && !self.doubles() {
                    return;
                }
                let held = Arc::make_mut(words);
                held.insert(place.unwrap_or_else(|place| place), word);
                if held.len() > self.limit() {
                    *sketch = self.dense(&std::mem::take(held));
                }
            }
            dense => Self::absorb_dense(dense, &[word]),
        }
    }

    #[must_use]
    pub fn combine(&self, a: &Sketch, b: &Sketch) -> Sketch {
        match (a.few(), b.few()) {
            (Some([]), _) => b.clone(),
            (_, Some([])) => a.clone(),
            (Some(one), Some(other)) => self.of_sorted(self.union(one, other)),
            (Some(words), None) | (None, Some(words)) => {
                let mut sketch = if a.few().is_none() { a } else { b }.clone();
                Self::absorb_dense(&mut sketch, words);
                sketch
            }
            (None, None) => Self::merge(a, b),
        }
    }

    /// Two sorted runs as one.
    fn union(&self, one: &[u64], other: &[u64]) -> Vec<u64> {
        let mut words = Vec::with_capacity(one.len() + other.len());
        words.extend_from_slice(one);
        words.extend_from_slice(other);
        // A merge sort detects the two runs.
        words.sort();
        if !self.doubles() {
            words.dedup();
        }
        words
    }

    fn merge(a: &Sketch, b: &Sketch) -> Sketch {
        match (a, b) {
            (Sketch::Bloom(a), Sketch::Bloom(b)) => {
                let mut union = BloomFilter::clone(a);
                union.union(b).expect("filters of one size");
                Sketch::Bloom(Arc::new(union))
            }
            (Sketch::Distinct(a), Sketch::Distinct(b)) => {
                let mut union = Registers::clone(a);
                union.merge(b);
                Sketch::Distinct(Arc::new(union))
            }
            (Sketch::Counts(a), Sketch::Counts(b)) => {
                let mut sum = Counts::clone(a);
                sum.merge(b).expect("counters of one size");
                Sketch::Counts(Arc::new(sum))
            }
            (Sketch::Quantiles(a), Sketch::Quantiles(b)) => {
                let mut both = Quantiles::clone(a);
                both.merge(b);
                Sketch::Quantiles(Arc::new(both))
            }
            _ => unreachable!("sketches of one make"),
        }
    }

    /// A sketch of integers as one of floats, which keeps their order.
    #[must_use]
    pub fn widened(&self, sketch: &Sketch) -> Sketch {
        if self.request.takes_hashes() {
            return sketch.clone();
        }
        match (sketch, sketch.few()) {
            (_, Some(words)) => self.of_sorted(words.iter().copied().map(widened_word).collect()),
            (Sketch::Quantiles(quantiles), _) => {
                Sketch::Quantiles(Arc::new(quantiles.map(widened_word)))
            }
            _ => unreachable!("sketches of numbers are quantiles"),
        }
    }

    /// The answer of a sketch to `request`, which may differ from the request of the sketch
    /// as [`SketchRequest::shares_with`] allows.
    pub fn answer<T>(&self, request: SketchRequest, sketch: &Sketch) -> Answer<T> {
        match request {
            SketchRequest::Distinct { .. } => Answer::I64(match (sketch, sketch.few()) {
                (Sketch::Distinct(registers), _) => registers.estimate().round() as i64,
                (_, few) => few.map_or(0, |words| words.len() as i64),
            }),
            SketchRequest::Bloom { .. } | SketchRequest::Counts { .. } => {
                let dense = match sketch.few() {
                    Some(words) => self.dense(words),
                    None => sketch.clone(),
                };
                Answer::Bytes(match dense {
                    Sketch::Bloom(filter) => filter.serialize(),
                    Sketch::Counts(counts) => counts.serialize(),
                    _ => unreachable!("a sketch of this make"),
                })
            }
            SketchRequest::Quantiles { shares, .. } => self.quantiles(shares, sketch),
            SketchRequest::Hitters { .. } => unreachable!("hitters are no words"),
        }
    }

    fn quantiles<T>(&self, shares: Shares, sketch: &Sketch) -> Answer<T> {
        let given = shares.values();
        let words = match (sketch, sketch.few()) {
            (Sketch::Quantiles(quantiles), _) => quantiles.at(&given),
            (_, Some(words)) if !words.is_empty() => {
                let count = words.len() as u64;
                let at = |share: &f64| words[rank_of(*share, count) as usize - 1];
                given.iter().map(at).collect()
            }
            _ => return Answer::Null,
        };
        let largest = match sketch {
            Sketch::Quantiles(quantiles) => quantiles.exact().2,
            _ => sketch
                .few()
                .and_then(|words| words.last().copied())
                .unwrap_or(0),
        };
        let number = |word: u64| self.number(word);
        let nan = number(largest).is_nan();
        let answer = |word: &u64| if nan { f64::NAN } else { number(*word) };
        if shares.is_single() {
            return Answer::F64(answer(&words[0]));
        }
        Answer::List(words.iter().map(|word| Cell::F64(answer(word))).collect())
    }

    fn number(&self, word: u64) -> f64 {
        let bits = extreme_value((word ^ SIGN) as i64, self.dtype, false);
        match self.dtype {
            DType::F64 => f64::from_bits(bits),
            _ => bits as i64 as f64,
        }
    }

    pub fn read(&self, input: &mut Reader<'_>) -> Result<Sketch> {
        let sketch = match u8::read(input)? {
            tag::NOTHING => Sketch::Nothing,
            tag::ONE => Sketch::One(u64::read(input)?),
            tag::FEW => Sketch::Few(Arc::new(self.read_few(input)?)),
            tag::DENSE => self.read_dense(input)?,
            tag => return damaged(format!("unknown sketch tag {tag}")),
        };
        Ok(sketch)
    }

    fn read_few(&self, input: &mut Reader<'_>) -> Result<Vec<u64>> {
        let length = input.length::<u64>()?;
        let words = input.many::<u64>(length)?;
        let sorted = match self.doubles() {
            true => words.is_sorted(),
            false => words.windows(2).all(|pair| pair[0] < pair[1]),
        };
        if !sorted || !(2..=self.limit()).contains(&length) {
            return damaged("the few words of a sketch are out of order");
        }
        Ok(words)
    }

    fn read_dense(&self, input: &mut Reader<'_>) -> Result<Sketch> {
        Ok(match self.request {
            SketchRequest::Bloom { bits, hashes } => {
                let filter = read_bloom(input.take(bloom_bytes(bits))?)?;
                if !filter.is_compatible(&bloom(bits, hashes)) {
                    return damaged("a Bloom filter of another make");
                }
                Sketch::Bloom(Arc::new(filter))
            }
            SketchRequest::Counts { hashes, buckets } => {
                let counts = read_counts(input.take(counts_bytes(hashes, buckets))?)?;
                if counts.num_hashes() != hashes || counts.num_buckets() != buckets {
                    return damaged("a Count-Min sketch of another make");
                }
                Sketch::Counts(Arc::new(counts))
            }
            SketchRequest::Distinct { p } => Sketch::Distinct(Arc::new(Registers::read(p, input)?)),
            SketchRequest::Quantiles { k, .. } => {
                Sketch::Quantiles(Arc::new(Quantiles::read(k, input)?))
            }
            SketchRequest::Hitters { .. } => return damaged("hitters are no words"),
        })
    }
}

mod tag {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const ONE: u8 = 1;
    pub(super) const FEW: u8 = 2;
    pub(super) const DENSE: u8 = 3;
}

impl Codec for Sketch {
    const MIN_BYTES: usize = 1;
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Nothing => tag::NOTHING.write(out),
            Self::One(word) => {
                tag::ONE.write(out);
                word.write(out);
            }
            Self::Few(words) => {
                tag::FEW.write(out);
                (words.len() as u64).write(out);
                out.all(words);
            }
            dense => {
                tag::DENSE.write(out);
                match dense {
                    Self::Bloom(filter) => out.put(&filter.serialize()),
                    Self::Counts(counts) => out.put(&counts.serialize()),
                    Self::Distinct(registers) => registers.write(out),
                    Self::Quantiles(quantiles) => quantiles.write(out),
                    _ => unreachable!("few words are written above"),
                }
            }
        }
    }
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        damaged("a sketch is read by its monoid, which knows its make")
    }
}

/// The word of an integer as that of a float.
pub fn widened_word(word: u64) -> u64 {
    widening::word((word ^ SIGN) as i64, false) as u64 ^ SIGN
}

/// An empty filter. Its parameters have been checked ([`SketchRequest::parse`]).
pub fn bloom(bits: u32, hashes: u16) -> BloomFilter {
    let builder = BloomFilterBuilder::with_size(u64::from(bits), hashes);
    builder.build().expect("a sound request")
}

/// An empty sketch, likewise.
pub fn counts(hashes: u8, buckets: u32) -> Counts {
    Counts::new(hashes, buckets).expect("a sound request")
}

const BLOOM_HEADER: usize = 24;
const COUNTS_HEADER: usize = 16;
/// So far below the largest integer that sums of many do not overflow.
const MAX_COUNT: i64 = 1 << 48;

/// For a filter that is not empty; an empty one is its header.
fn bloom_bytes(bits: u32) -> usize {
    BLOOM_HEADER + 8 + bits as usize / 8
}

fn counts_bytes(hashes: u8, buckets: u32) -> usize {
    COUNTS_HEADER + 8 + 8 * usize::from(hashes) * buckets as usize
}

/// A filter from untrusted bytes: allocates at most the memory of a valid request, or of
/// the bytes.
pub fn read_bloom(bytes: &[u8]) -> Result<BloomFilter> {
    let words = bytes.get(16..20).and_then(|word| word.try_into().ok());
    let hashes = bytes.get(4..6).and_then(|word| word.try_into().ok());
    let (Some(words), Some(hashes)) = (words, hashes) else {
        return damaged("a Bloom filter ends early");
    };
    let bits = u64::from(u32::from_le_bytes(words)) * 64;
    let name = format!("bloom:{bits}:{}", u16::from_le_bytes(hashes));
    let whole = SketchRequest::parse(&name).is_some()
        && [BLOOM_HEADER as u64, BLOOM_HEADER as u64 + 8 + bits / 8]
            .contains(&(bytes.len() as u64));
    if !whole {
        return damaged(format!(
            "no Bloom filter has {} bytes of this form",
            bytes.len()
        ));
    }
    BloomFilter::deserialize(bytes).or_else(|error| damaged(error.to_string()))
}

/// A Count-Min sketch, likewise.
pub fn read_counts(bytes: &[u8]) -> Result<Counts> {
    let buckets = bytes.get(8..12).and_then(|word| word.try_into().ok());
    let (Some(buckets), Some(&hashes)) = (buckets, bytes.get(12)) else {
        return damaged("a Count-Min sketch ends early");
    };
    let buckets = u32::from_le_bytes(buckets);
    let sound = SketchRequest::parse(&format!("count_min:{hashes}:{buckets}")).is_some();
    if !sound || ![COUNTS_HEADER, counts_bytes(hashes, buckets)].contains(&bytes.len()) {
        return damaged(format!(
            "no Count-Min sketch has {} bytes of this form",
            bytes.len()
        ));
    }
    if bytes.len() > COUNTS_HEADER && !adds_up(&bytes[COUNTS_HEADER..], buckets as usize) {
        return damaged("the rows of a Count-Min sketch do not add up to its total");
    }
    Counts::deserialize(bytes).or_else(|error| damaged(error.to_string()))
}

/// Whether each row of counters adds up to the total before them.
fn adds_up(bytes: &[u8], buckets: usize) -> bool {
    let words = bytes.chunks_exact(8).map(|word| {
        let word = word.try_into().expect("eight bytes");
        i64::from_le_bytes(word)
    });
    let words: Vec<i64> = words.collect();
    let (total, counters) = (words[0], &words[1..]);
    (1..=MAX_COUNT).contains(&total)
        && counters.iter().all(|count| (0..=total).contains(count))
        && counters.chunks(buckets).all(|row| {
            let sum: i128 = row.iter().copied().map(i128::from).sum();
            sum == i128::from(total)
        })
}
