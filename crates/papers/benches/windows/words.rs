//! Partials of one machine word: a sum that wraps, a maximum without "no value". Published
//! code is measured with such partials; those of the package also represent overflow and
//! "no value", in sixteen bytes.

use slidewise_core::monoid::{Invertible, Monoid};

#[derive(Clone, Debug)]
pub struct WrappingSum;

#[derive(Clone, Debug)]
pub struct BareMax;

macro_rules! word {
    ($name:ident, $identity:expr, $combine:expr) => {
        impl Monoid for $name {
            type In = i64;
            type Partial = i64;
            const SMALL: usize = 16;

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

word!(WrappingSum, 0, i64::wrapping_add);
word!(BareMax, i64::MIN, i64::max);

impl Invertible for WrappingSum {
    const EXACT: bool = true;

    #[inline]
    fn inverse(&self, whole: &i64, oldest: &i64) -> i64 {
        whole.wrapping_sub(*oldest)
    }
}
