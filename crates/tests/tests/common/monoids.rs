//! Monoids for tests: affine maps, which reveal any wrong order, sums that count their
//! inputs, and selections of one input.

use std::cell::Cell;

use super::owned::Words;
use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};

const PRIME: u64 = 4_294_967_291;

/// `x ↦ a·x + b (mod p)`; composition is associative and reveals any wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    a: u64,
    b: u64,
    /// The number of inputs: none may be lost or doubled.
    count: u64,
}

impl Codec for Map {
    const MIN_BYTES: usize = 24;
    fn write(&self, out: &mut Writer) {
        out.all(&[self.a, self.b, self.count]);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        let [a, b, count] = <[u64; 3]>::read(input)?;
        Ok(Self { a, b, count })
    }
}

impl Words for Map {
    fn to_words(self) -> [u64; 3] {
        [self.a, self.b, self.count]
    }
    fn of_words([a, b, count]: [u64; 3]) -> Self {
        Self { a, b, count }
    }
}

/// Composition of affine maps. `SMALL` as given, so that both the array of a few entries
/// and the tree down to nothing are tested.
#[derive(Clone, Debug)]
pub struct Affine<const SMALL: usize>;

impl<const SMALL: usize> Monoid for Affine<SMALL> {
    type In = i64;
    type Partial = Map;
    const SMALL: usize = SMALL;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> Map {
        Map {
            a: 1,
            b: 0,
            count: 0,
        }
    }
    fn lift(&self, value: &i64) -> Map {
        let word = *value as u64;
        Map {
            a: word % 1_000_003 + 2,
            b: word % 65_537,
            count: 1,
        }
    }
    fn combine(&self, x: &Map, y: &Map) -> Map {
        COMBINES.with(|count| count.set(count.get() + 1));
        Map {
            a: x.a * y.a % PRIME,
            b: (x.b * y.a + y.b) % PRIME,
            count: x.count + y.count,
        }
    }
    fn unlift(&self, partial: Map) -> std::result::Result<i64, Map> {
        Err(partial)
    }
    fn same(&self, a: &Map, b: &Map) -> bool {
        a == b
    }
}

/// The maps with a ≠ 0 are a group, and not a commutative one.
impl<const SMALL: usize> Invertible for Affine<SMALL> {
    const EXACT: bool = true;

    fn inverse(&self, whole: &Map, oldest: &Map) -> Map {
        INVERSES.with(|count| count.set(count.get() + 1));
        let a = whole.a * power(oldest.a, PRIME - 2) % PRIME;
        Map {
            a,
            b: (whole.b + PRIME - oldest.b * a % PRIME) % PRIME,
            count: whole.count - oldest.count,
        }
    }
}

fn power(base: u64, exponent: u64) -> u64 {
    let (mut result, mut square, mut rest) = (1, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result * square % PRIME;
        }
        square = square * square % PRIME;
        rest /= 2;
    }
    result
}

thread_local! {
    static INVERSES: Cell<u64> = const { Cell::new(0) };
    static COMBINES: Cell<u64> = const { Cell::new(0) };
}

/// Combines since the last call.
pub fn take_combines() -> u64 {
    COMBINES.with(|count| count.replace(0))
}

/// Inverses since the last call.
pub fn take_inverses() -> u64 {
    INVERSES.with(|count| count.replace(0))
}

/// A commutative monoid that counts its combines: sum and number of the inputs.
#[derive(Clone, Debug)]
pub struct Tally<const SMALL: usize>;

impl<const SMALL: usize> Monoid for Tally<SMALL> {
    type In = i64;
    type Partial = [u64; 2];
    const SMALL: usize = SMALL;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> [u64; 2] {
        [0, 0]
    }
    fn lift(&self, value: &i64) -> [u64; 2] {
        [*value as u64, 1]
    }
    fn combine(&self, x: &[u64; 2], y: &[u64; 2]) -> [u64; 2] {
        COMBINES.with(|count| count.set(count.get() + 1));
        [x[0].wrapping_add(y[0]), x[1] + y[1]]
    }
    /// A single input is kept raw, like words, so that conversions in both directions
    /// happen often.
    fn unlift(&self, partial: [u64; 2]) -> std::result::Result<i64, [u64; 2]> {
        match partial {
            [sum, 1] => Ok(sum as i64),
            other => Err(other),
        }
    }
    fn same(&self, a: &[u64; 2], b: &[u64; 2]) -> bool {
        a == b
    }
}

/// Inputs of which one in eight has no inverse.
impl<const SMALL: usize> Invertible for Tally<SMALL> {
    fn inverse(&self, whole: &[u64; 2], oldest: &[u64; 2]) -> [u64; 2] {
        INVERSES.with(|count| count.set(count.get() + 1));
        [whole[0].wrapping_sub(oldest[0]), whole[1] - oldest[1]]
    }
    fn undoes(&self, partial: &[u64; 2]) -> bool {
        partial[1] != 1 || !partial[0].is_multiple_of(8)
    }
}

/// The first of the largest keys, with the input it came from: selective, and reveals a
/// wrong order by whose input is there. Counts comparisons as combines.
#[derive(Clone, Debug)]
pub struct FirstTop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    key: i64,
    input: i64,
}

impl Codec for Place {
    const MIN_BYTES: usize = 16;
    fn write(&self, out: &mut Writer) {
        self.key.write(out);
        self.input.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            key: i64::read(input)?,
            input: i64::read(input)?,
        })
    }
}

impl Words for Place {
    fn to_words(self) -> [u64; 3] {
        [self.key as u64, self.input as u64, 0]
    }
    fn of_words([key, input, _]: [u64; 3]) -> Self {
        let [key, input] = [key, input].map(|word| word as i64);
        Self { key, input }
    }
}

impl Monoid for FirstTop {
    type In = i64;
    type Partial = Place;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> Place {
        Place { key: -1, input: 0 }
    }
    /// Few keys, so that many are equal.
    fn lift(&self, value: &i64) -> Place {
        Place {
            key: value.rem_euclid(5),
            input: *value,
        }
    }
    fn combine(&self, x: &Place, y: &Place) -> Place {
        COMBINES.with(|count| count.set(count.get() + 1));
        if y.key > x.key { *y } else { *x }
    }
    fn unlift(&self, partial: Place) -> std::result::Result<i64, Place> {
        Err(partial)
    }
    fn same(&self, a: &Place, b: &Place) -> bool {
        a == b
    }
}

impl Selective for FirstTop {
    type Part = Place;

    fn part(&self, _part: usize, partial: &Place) -> Place {
        *partial
    }
    fn replace(&self, _part: usize, partial: &mut Place, by: &Place) {
        *partial = *by;
    }
    fn dominates(&self, _part: usize, younger: &Place, older: &Place) -> bool {
        self.combine(older, younger) == *younger
    }
}

/// The plain sum, for the examples of the papers.
#[derive(Clone, Debug)]
pub struct Total;

/// The plain maximum, for the examples of the papers.
#[derive(Clone, Debug)]
pub struct Largest;

macro_rules! plain {
    ($name:ident, $identity:expr, $combine:expr) => {
        impl Monoid for $name {
            type In = i64;
            type Partial = i64;
            const SMALL: usize = 0;

            fn commutative(&self) -> bool {
                true
            }
            fn identity(&self) -> i64 {
                $identity
            }
            fn lift(&self, value: &i64) -> i64 {
                *value
            }
            fn combine(&self, x: &i64, y: &i64) -> i64 {
                COMBINES.with(|count| count.set(count.get() + 1));
                $combine(*x, *y)
            }
            fn unlift(&self, partial: i64) -> std::result::Result<i64, i64> {
                Ok(partial)
            }
            fn same(&self, a: &i64, b: &i64) -> bool {
                a == b
            }
        }
    };
}

plain!(Total, 0, i64::wrapping_add);
plain!(Largest, i64::MIN, i64::max);

impl Invertible for Total {
    const EXACT: bool = true;

    fn inverse(&self, whole: &i64, oldest: &i64) -> i64 {
        INVERSES.with(|count| count.set(count.get() + 1));
        whole - oldest
    }
}

impl Selective for Largest {
    type Part = i64;

    fn part(&self, _part: usize, partial: &i64) -> i64 {
        *partial
    }
    fn replace(&self, _part: usize, partial: &mut i64, by: &i64) {
        *partial = *by;
    }
    fn dominates(&self, _part: usize, younger: &i64, older: &i64) -> bool {
        self.combine(older, younger) == *younger
    }
}

/// The free monoid: a partial spells its inputs in order, as the papers' figures print it.
#[derive(Clone, Debug)]
pub struct Spelled;

/// A partial as text.
pub fn spelling(partial: &[u64]) -> String {
    let letter = |code: &u64| char::from_u32(*code as u32).expect("a letter");
    partial.iter().map(letter).collect()
}

impl Monoid for Spelled {
    type In = i64;
    type Partial = Box<[u64]>;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> Box<[u64]> {
        Box::default()
    }
    fn lift(&self, value: &i64) -> Box<[u64]> {
        [*value as u64].into()
    }
    fn combine(&self, x: &Box<[u64]>, y: &Box<[u64]>) -> Box<[u64]> {
        COMBINES.with(|count| count.set(count.get() + 1));
        [&**x, &**y].concat().into()
    }
    fn unlift(&self, partial: Box<[u64]>) -> std::result::Result<i64, Box<[u64]>> {
        Err(partial)
    }
    fn same(&self, a: &Box<[u64]>, b: &Box<[u64]>) -> bool {
        a == b
    }
}
