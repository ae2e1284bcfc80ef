//! Specialised code for the most common records: means, geometric means, variances and
//! standard deviations of floats.
//!
//! Their words equal those that [`Component`]s would compute, bit for bit; but there is no
//! dispatch on components, and offsets are constants. So a combine is arithmetic only,
//! which pays because it takes just a dozen operations.

use super::DType;
use super::component::Component;
use super::merges::{self, Place};
use super::moments::squares_of_one;
use super::op::Op;
use super::packing::put;
use super::twofold::Twofold;
use crate::simd::{SimdTask, dispatch_simd};

/// The squares of the whole of two partials.
struct Squares<'a>([&'a [u64]; 2]);

impl SimdTask for Squares<'_> {
    type Out = Twofold;

    #[inline(always)]
    fn run(self) -> Twofold {
        let Self(sides) = self;
        let [a, b] = sides;
        let place = Place {
            n: N,
            sum: SUM,
            floats: true,
        };
        match (a[N], b[N]) {
            (0, _) => Twofold::from_words(&b[SQUARES..]),
            (_, 0) => Twofold::from_words(&a[SQUARES..]),
            _ => merges::squares(sides, SQUARES, place),
        }
    }
}

#[inline(always)]
fn joined_sum(a: &[u64], b: &[u64]) -> Twofold {
    let older = Twofold::from_words(&a[SUM..]);
    older.combine(Twofold::from_words(&b[SUM..]))
}

const N: usize = 0;
const SUM: usize = 1;
const SQUARES: usize = 3;

/// A count of values and their sum, optionally followed by their squared distances from the
/// mean.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    col: usize,
    /// Sums of logarithms.
    logs: bool,
    squares: bool,
}

impl Common {
    /// The common record that these components make, if there is one.
    pub fn of(components: &[Component]) -> Option<Self> {
        let [count, sum, rest @ ..] = components else {
            return None;
        };
        let beside = count.op == Op::Count && (count.at, sum.at) == (N, SUM);
        let together = components.iter().all(|other| other.col == sum.col);
        let logs = sum.op == Op::Logs;
        let sums = (logs || sum.op == Op::SumF) && sum.dtype == DType::F64;
        let squares = match rest {
            [] => false,
            [squares] if squares.op == (Op::SquaresF { n: N, sum: SUM }) && !logs => true,
            _ => return None,
        };
        (beside && together && sums).then_some(Self {
            col: sum.col,
            logs,
            squares,
        })
    }

    /// Lifts a complete row. `out` is all zeros.
    #[inline(always)]
    pub fn lift(self, row: &[u64], out: &mut [u64]) {
        let value = f64::from_bits(row[self.col]);
        let term = if self.logs { value.ln() } else { value };
        out[N] = 1;
        put(out, SUM, Twofold::new(term + 0.0).to_words());
        if self.squares {
            put(out, SQUARES, squares_of_one(value).to_words());
        }
    }

    /// `out := a ⊗ b`; `a` is earlier.
    #[inline(always)]
    pub fn combine(self, a: &[u64], b: &[u64], out: &mut [u64]) {
        out[N] = a[N].wrapping_add(b[N]);
        put(out, SUM, joined_sum(a, b).to_words());
        if self.squares {
            // By value: words that a function writes stay in memory, and are copied from there.
            put(out, SQUARES, dispatch_simd(Squares([a, b])).to_words());
        }
    }
}
