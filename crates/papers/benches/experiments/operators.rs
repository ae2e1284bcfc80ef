//! The operators of the papers: partials without "no value", rounding errors or overflow, as
//! in published measurements.

use std::hint::black_box;

use slidewise_core::aggregate::collect::{Collect, Seq};
use slidewise_core::monoid::{Invertible, Monoid, Selective};

use crate::counted::Counted;

/// A monoid over the integers of a stream.
pub trait Operator: Monoid {
    /// The input for a value of the stream: the part of lift that is done once per value.
    fn input(&self, value: i64) -> Self::In;

    /// The answer, which is not read.
    #[inline]
    fn lower(&self, partial: Self::Partial) {
        black_box(partial);
    }
}

#[derive(Clone, Debug)]
pub struct Sum;

#[derive(Clone, Debug)]
pub struct Max;

macro_rules! word {
    ($name:ident, $identity:expr, $combine:expr) => {
        impl Monoid for $name {
            type In = i64;
            type Partial = i64;
            const SMALL: usize = 0;

            fn commutative(&self) -> bool {
                true
            }
            #[inline]
            fn identity(&self) -> i64 {
                $identity
            }
            #[inline]
            fn lift(&self, value: &i64) -> i64 {
                *value
            }
            #[inline]
            fn combine(&self, a: &i64, b: &i64) -> i64 {
                $combine(*a, *b)
            }
            fn unlift(&self, partial: i64) -> Result<i64, i64> {
                Ok(partial)
            }
            fn same(&self, a: &i64, b: &i64) -> bool {
                a == b
            }
        }
    };
}

word!(Sum, 0, i64::wrapping_add);
word!(Max, i64::MIN, i64::max);

impl Invertible for Sum {
    const EXACT: bool = true;

    #[inline]
    fn inverse(&self, whole: &i64, oldest: &i64) -> i64 {
        whole.wrapping_sub(*oldest)
    }
}

impl Selective for Max {
    type Part = i64;

    #[inline]
    fn part(&self, _part: usize, partial: &i64) -> i64 {
        *partial
    }
    #[inline]
    fn replace(&self, _part: usize, partial: &mut i64, by: &i64) {
        *partial = *by;
    }
    #[inline]
    fn dominates(&self, _part: usize, younger: &i64, older: &i64) -> bool {
        younger >= older
    }
}

impl Operator for Sum {
    #[inline]
    fn input(&self, value: i64) -> i64 {
        value
    }
}

impl Operator for Max {
    #[inline]
    fn input(&self, value: i64) -> i64 {
        value
    }
}

impl Operator for Counted<Sum> {
    fn input(&self, value: i64) -> i64 {
        value
    }
}

impl Operator for Counted<Max> {
    fn input(&self, value: i64) -> i64 {
        value
    }
}

/// The sum of logarithms, and their number.
#[derive(Clone, Debug)]
pub struct GeometricMean;

impl Monoid for GeometricMean {
    /// A logarithm: taken once, as the value enters.
    type In = f64;
    type Partial = [u64; 2];
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    #[inline]
    fn identity(&self) -> [u64; 2] {
        [0, 0]
    }
    #[inline]
    fn lift(&self, log: &f64) -> [u64; 2] {
        [log.to_bits(), 1]
    }
    #[inline]
    fn combine(&self, a: &[u64; 2], b: &[u64; 2]) -> [u64; 2] {
        let logs = f64::from_bits(a[0]) + f64::from_bits(b[0]);
        [logs.to_bits(), a[1] + b[1]]
    }
    fn unlift(&self, partial: [u64; 2]) -> Result<f64, [u64; 2]> {
        Err(partial)
    }
    fn same(&self, a: &[u64; 2], b: &[u64; 2]) -> bool {
        a[1] == b[1]
    }
}

impl Operator for GeometricMean {
    #[inline]
    fn input(&self, value: i64) -> f64 {
        (value.unsigned_abs() as f64 + 1.0).ln()
    }
    #[inline]
    fn lower(&self, partial: [u64; 2]) {
        black_box((f64::from_bits(partial[0]) / partial[1] as f64).exp());
    }
}

/// Operators whose partials are a few numbers: three words for all of them.
#[derive(Clone, Debug)]
pub enum Few {
    Count,
    SumFloat,
    MaxFloat,
    Mean,
    Stddev,
    PopulationStddev,
    MinCount,
    ArgMax,
    ArgMaxFloat,
}

impl Few {
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum_float" => Self::SumFloat,
            "max_float" => Self::MaxFloat,
            "mean" => Self::Mean,
            "stddev" => Self::Stddev,
            "pop_stddev" => Self::PopulationStddev,
            "min_count" => Self::MinCount,
            "arg_max" => Self::ArgMax,
            "arg_max_float" => Self::ArgMaxFloat,
            _ => return None,
        })
    }
}

fn float(word: u64) -> f64 {
    f64::from_bits(word)
}

impl Monoid for Few {
    type In = i64;
    type Partial = [u64; 3];
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        !matches!(self, Self::ArgMax | Self::ArgMaxFloat)
    }
    #[inline]
    fn identity(&self) -> [u64; 3] {
        match self {
            Self::MaxFloat | Self::ArgMaxFloat => [f64::NEG_INFINITY.to_bits(), 0, 0],
            Self::MinCount => [i64::MAX as u64, 0, 0],
            Self::ArgMax => [i64::MIN as u64, 0, 0],
            _ => [0; 3],
        }
    }
    #[inline]
    fn lift(&self, value: &i64) -> [u64; 3] {
        let number = *value as f64;
        match self {
            Self::Count => [1, 0, 0],
            Self::SumFloat | Self::MaxFloat => [number.to_bits(), 0, 0],
            Self::Mean => [*value as u64, 1, 0],
            Self::Stddev | Self::PopulationStddev => {
                [1, number.to_bits(), (number * number).to_bits()]
            }
            Self::MinCount => [*value as u64, 1, 0],
            Self::ArgMax => [*value as u64, value.rotate_left(7) as u64, 0],
            Self::ArgMaxFloat => [number.to_bits(), value.rotate_left(7) as u64, 0],
        }
    }
    #[inline]
    fn combine(&self, a: &[u64; 3], b: &[u64; 3]) -> [u64; 3] {
        let add = |at: usize| (float(a[at]) + float(b[at])).to_bits();
        match self {
            Self::Count => [a[0] + b[0], 0, 0],
            Self::SumFloat => [add(0), 0, 0],
            Self::MaxFloat => [float(a[0]).max(float(b[0])).to_bits(), 0, 0],
            Self::Mean => [a[0].wrapping_add(b[0]), a[1] + b[1], 0],
            Self::Stddev | Self::PopulationStddev => [a[0] + b[0], add(1), add(2)],
            Self::MinCount => match (a[0] as i64).cmp(&(b[0] as i64)) {
                std::cmp::Ordering::Less => *a,
                std::cmp::Ordering::Equal => [a[0], a[1] + b[1], 0],
                std::cmp::Ordering::Greater => *b,
            },
            Self::ArgMax if (b[0] as i64) > a[0] as i64 => *b,
            Self::ArgMaxFloat if float(b[0]) > float(a[0]) => *b,
            Self::ArgMax | Self::ArgMaxFloat => *a,
        }
    }
    fn unlift(&self, partial: [u64; 3]) -> Result<i64, [u64; 3]> {
        Err(partial)
    }
    fn same(&self, a: &[u64; 3], b: &[u64; 3]) -> bool {
        let rounds = matches!(self, Self::SumFloat | Self::Stddev | Self::PopulationStddev);
        rounds || a == b
    }
}

impl Operator for Few {
    #[inline]
    fn input(&self, value: i64) -> i64 {
        value
    }
    #[inline]
    fn lower(&self, partial: [u64; 3]) {
        match self {
            Self::Mean => black_box(partial[0] as i64 as f64 / partial[1] as f64),
            Self::Stddev | Self::PopulationStddev => {
                let (n, sum) = (partial[0] as f64, float(partial[1]));
                let freedom = n - f64::from(u8::from(matches!(self, Self::Stddev)));
                black_box(((float(partial[2]) - sum * sum / n) / freedom).sqrt())
            }
            _ => black_box(float(partial[0])),
        };
    }
}

/// A Bloom filter of 2¹⁴ bits, three of them to a value.
#[derive(Clone, Debug)]
pub struct Bloom;

const BITS: usize = 1 << 14;
const WORDS: usize = BITS / 64;

impl Monoid for Bloom {
    type In = i64;
    type Partial = [u64; WORDS];
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> [u64; WORDS] {
        [0; WORDS]
    }
    fn lift(&self, value: &i64) -> [u64; WORDS] {
        let mixed = (*value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut filter = [0; WORDS];
        for hash in [mixed, mixed >> 16, mixed >> 32] {
            let bit = hash as usize % BITS;
            filter[bit / 64] |= 1 << (bit % 64);
        }
        filter
    }
    fn combine(&self, a: &[u64; WORDS], b: &[u64; WORDS]) -> [u64; WORDS] {
        std::array::from_fn(|word| a[word] | b[word])
    }
    fn unlift(&self, partial: [u64; WORDS]) -> Result<i64, [u64; WORDS]> {
        Err(partial)
    }
    fn same(&self, a: &[u64; WORDS], b: &[u64; WORDS]) -> bool {
        a == b
    }
}

impl Operator for Bloom {
    fn input(&self, value: i64) -> i64 {
        value
    }
}

impl Operator for Collect<i64> {
    fn input(&self, value: i64) -> Seq<i64> {
        Seq::One(value)
    }
    fn lower(&self, partial: Seq<i64>) {
        black_box(partial.to_vec());
    }
}
