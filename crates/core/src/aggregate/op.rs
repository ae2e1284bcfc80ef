//! The operations of a record's components, and the words that each takes.

use super::area::Area;
use super::bins::Edges;
use super::decay::{Decay, DecayedSquares};

/// One operation. Field `n` and `sum` are the word offsets of the components that
/// [`Op::SquaresF`] and [`Op::SquaresI`] build upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The number of rows, with missing values.
    Rows,
    /// The number of values that are not missing.
    Count,
    /// Exact integer sum, 128 bits.
    SumI,
    /// Float sum with its error.
    SumF,
    /// Sum of natural logarithms with its error.
    Logs,
    /// Sum of squared distances from the mean, with its error (Chan et al.).
    SquaresF {
        n: usize,
        sum: usize,
    },
    SquaresI {
        n: usize,
        sum: usize,
    },
    /// Order-preserving word of the extreme value.
    Extreme {
        min: bool,
    },
    /// The same, and its number of occurrences.
    ExtremeCount {
        min: bool,
    },
    /// Word of the extreme of `by`, the value of `col` in its row, and whether there is
    /// one.
    Arg {
        min: bool,
        by: usize,
    },
    First,
    Last,
    /// Exact integer product, which remembers that it overflowed.
    ProductI,
    ProductF,
    /// Exact sum of squares of integers, which saturates at the largest i128.
    SumSquaresI,
    SumSquaresF,
    /// Whether any value is true: 0 or 1.
    Any,
    /// Whether none is false: 0 or 1.
    All,
    BitAnd,
    BitOr,
    BitXor,
    /// Third central moment; fields are offsets of the components that it builds upon.
    Third {
        n: usize,
        sum: usize,
        squares: usize,
    },
    Fourth {
        n: usize,
        sum: usize,
        squares: usize,
        third: usize,
    },
    /// Sum of products of the distances of `col` and `by` from their means. Both are
    /// missing in the same rows.
    Products {
        n: usize,
        sum: usize,
        by: usize,
        by_sum: usize,
        by_float: bool,
    },
    /// Sum of the products of `col` and `by`, with its error. Both are missing in the same
    /// rows.
    Weighted {
        by: usize,
        by_float: bool,
    },
    /// Sum of the rises from one value to the next; see [`super::sequences`].
    Rises,
    /// The number of values that differ from the one before.
    Changes,
    /// The greatest fall from a value to a later one; fields are offsets of the components
    /// that it builds upon.
    Fall {
        n: usize,
        max: usize,
        min: usize,
    },
    /// The greatest or the least gap between a value and the next, of values that ascend;
    /// fields are offsets of the components of the first and the last value.
    Gap {
        min: bool,
        first: usize,
        last: usize,
    },
    /// The sum of the squares of gaps, which saturates at the largest u128.
    GapSquares {
        first: usize,
        last: usize,
    },
    /// Weighted sum of values that lose weight by the age of their rows.
    Decay(Decay),
    /// Weighted squares of the distances of these values from their weighted mean.
    DecayedSquares(DecayedSquares),
    /// The area under the values from the first row to the last one.
    Area(Area),
    /// The number of values, up to k, and the first or the last k values, in order.
    Ends {
        k: u32,
        last: bool,
    },
    /// The number of values, up to k, and the last k distinct ones, the latest last.
    LastDistinct {
        k: u32,
    },
    /// The number of values, the lengths of the runs of true ones at both ends, and that of
    /// the longest.
    Run,
    /// The number of values in each bin.
    Bins(Edges),
    /// The number of pairs, up to k, and of the k most extreme `by` the words and the values
    /// of `col`, the most extreme first.
    BestBy {
        k: u32,
        min: bool,
        by: usize,
    },
    /// The number of values, up to k, and the words of the k most extreme values, the most
    /// extreme first.
    Best {
        k: u32,
        min: bool,
    },
}

impl Op {
    pub fn words(self) -> usize {
        match self {
            Self::Rows
            | Self::Count
            | Self::Extreme { .. }
            | Self::Any
            | Self::All
            | Self::BitAnd
            | Self::BitOr
            | Self::BitXor
            | Self::Fall { .. }
            | Self::Gap { .. } => 1,
            Self::Arg { .. } | Self::ProductF | Self::Decay(_) => 3,
            Self::Changes | Self::Run => 4,
            Self::Rises => 5,
            Self::Best { k, .. } | Self::Ends { k, .. } | Self::LastDistinct { k } => {
                1 + k as usize
            }
            Self::BestBy { k, .. } => 1 + 2 * k as usize,
            Self::Bins(edges) => edges.bins(),
            _ => 2,
        }
    }

    pub fn commutative(self) -> bool {
        if let Self::Decay(decay) | Self::DecayedSquares(DecayedSquares { of: decay, .. }) = self {
            return decay.is_by_time();
        }
        !matches!(
            self,
            Self::Arg { .. }
                | Self::Area(_)
                | Self::First
                | Self::Last
                | Self::Rises
                | Self::Changes
                | Self::Fall { .. }
                | Self::Gap { .. }
                | Self::GapSquares { .. }
                | Self::Ends { .. }
                | Self::LastDistinct { .. }
                | Self::Run
                | Self::BestBy { .. }
        )
    }

    /// Whether its component has an inverse, exact or up to rounding.
    pub fn invertible(self) -> bool {
        matches!(
            self,
            Self::Rows
                | Self::Count
                | Self::SumI
                | Self::SumF
                | Self::Logs
                | Self::SquaresF { .. }
                | Self::SquaresI { .. }
                | Self::SumSquaresI
                | Self::SumSquaresF
                | Self::BitXor
                | Self::Bins(_)
        )
    }

    /// Whether its component absorbs values one by one: it reads only its own words.
    pub fn absorbs(self) -> bool {
        matches!(
            self,
            Self::Rows
                | Self::Count
                | Self::SumI
                | Self::SumF
                | Self::Extreme { .. }
                | Self::First
                | Self::Last
                | Self::Any
                | Self::All
                | Self::BitAnd
                | Self::BitOr
                | Self::BitXor
        )
    }

    /// Whether a combine returns one of its operands.
    pub fn selective(self) -> bool {
        matches!(
            self,
            Self::Extreme { .. } | Self::Arg { .. } | Self::First | Self::Last
        )
    }
}
