//! The kinds of aggregations: for each its name and the type of its answers.
//!
//! Kinds that no record answers (sketches, lists, user-defined and holistic ones) have only
//! a name and a type here.

use super::DType;
use super::bins::Edges;
use super::decay::{Decayed, HalfLife};
use super::holistic::{Quantile, RankMethod};
use super::native::{self, NativeLower};
use super::sketch::SketchRequest;

/// A kind of aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    Range,
    Variance,
    Stddev,
    MinCount,
    MaxCount,
    ArgMin,
    ArgMax,
    First,
    Last,
    GeometricMean,
    Collect,
    Product,
    SumOfSquares,
    Any,
    All,
    BitAnd,
    BitOr,
    BitXor,
    Skewness,
    Kurtosis,
    /// Over the columns `of` and `by`, which are missing in the same rows.
    Covariance,
    Correlation,
    /// Of `of`, weighted by `by`.
    WeightedMean,
    /// Least squares of `of` on `by`.
    Slope,
    Intercept,
    RSquared,
    /// The last value less the first one.
    Delta,
    /// That, divided by the difference of the second column.
    Rate,
    /// Of values that ascend, as times do: of the differences of neighbours.
    MeanGap,
    MaxGap,
    MinGap,
    StddevGap,
    /// The sum of the rises from one value to the next; a fall is a reset to zero.
    Increase,
    /// The number of values that differ from the one before.
    Changes,
    /// The greatest fall from a value to a later one.
    Drawdown,
    /// The first, greatest, least and last value.
    Ohlc,
    /// The value that is `k` before the last one.
    Lag {
        k: u32,
    },
    FirstK {
        k: u32,
    },
    LastK {
        k: u32,
    },
    /// The last `k` distinct values, by latest occurrence.
    LastDistinct {
        k: u32,
    },
    /// Of `of`, whose rows lose weight by the half-life: by the times `by`, or as they are
    /// followed by others. With `dated` the answer of a sum or a count has the time of the
    /// last row after it.
    Decayed {
        what: Decayed,
        half_life: HalfLife,
        dated: bool,
    },
    /// The area under the values of `of` over the times `by`. With `dated` the answer has the
    /// first and the last time, and the last value, after it.
    Area {
        linear: bool,
        dated: bool,
    },
    TopK {
        k: u32,
    },
    BottomK {
        k: u32,
    },
    /// The values of `of` with the `k` largest or smallest `by`; rows where one of them is
    /// missing do not count.
    TopKBy {
        k: u32,
    },
    BottomKBy {
        k: u32,
    },
    /// The most values in a row that are true.
    LongestRun,
    /// The number of values in each bin.
    Histogram(Edges),
    CountDistinct,
    /// Each value and its number, the most frequent first; up to `top` of them, or all if
    /// it is 0.
    ValueCounts {
        top: u32,
    },
    /// −Σ p ln p over the shares p of the distinct values.
    Entropy,
    /// The most frequent value; of several, the smallest.
    Mode,
    Quantile(Quantile),
    /// Of the value of the row that a query point is; missing where it is none.
    Rank(RankMethod),
    /// Over the hashes of values; for hitters over values and their hashes, for quantiles
    /// over numbers.
    Sketch(SketchRequest),
    /// Functions over records, compiled by the caller.
    Native(native::Functions),
    /// A user-defined aggregation, by number. The caller calls its functions.
    Udaf {
        number: u16,
        commutative: bool,
        /// Whether there is an inverse among its functions.
        invertible: bool,
    },
}

impl Kind {
    /// The kinds without parameters.
    pub const ALL: [(&'static str, Self); 42] = [
        ("count", Self::Count),
        ("sum", Self::Sum),
        ("mean", Self::Mean),
        ("min", Self::Min),
        ("max", Self::Max),
        ("range", Self::Range),
        ("variance", Self::Variance),
        ("stddev", Self::Stddev),
        ("min_count", Self::MinCount),
        ("max_count", Self::MaxCount),
        ("arg_min", Self::ArgMin),
        ("arg_max", Self::ArgMax),
        ("first", Self::First),
        ("last", Self::Last),
        ("geometric_mean", Self::GeometricMean),
        ("collect", Self::Collect),
        ("product", Self::Product),
        ("sum_of_squares", Self::SumOfSquares),
        ("any", Self::Any),
        ("all", Self::All),
        ("bit_and", Self::BitAnd),
        ("bit_or", Self::BitOr),
        ("bit_xor", Self::BitXor),
        ("skewness", Self::Skewness),
        ("kurtosis", Self::Kurtosis),
        ("covariance", Self::Covariance),
        ("correlation", Self::Correlation),
        ("weighted_mean", Self::WeightedMean),
        ("slope", Self::Slope),
        ("intercept", Self::Intercept),
        ("r_squared", Self::RSquared),
        ("delta", Self::Delta),
        ("rate", Self::Rate),
        ("mean_gap", Self::MeanGap),
        ("max_gap", Self::MaxGap),
        ("min_gap", Self::MinGap),
        ("stddev_gap", Self::StddevGap),
        ("increase", Self::Increase),
        ("changes", Self::Changes),
        ("drawdown", Self::Drawdown),
        ("ohlc", Self::Ohlc),
        ("longest_run", Self::LongestRun),
    ];

    /// Whether a record answers it: it is neither `collect`, nor a sketch, nor
    /// user-defined, nor holistic.
    pub fn is_plain(self) -> bool {
        let other = matches!(
            self,
            Self::Collect | Self::Sketch(_) | Self::Native(_) | Self::Udaf { .. }
        );
        !other && !self.is_holistic()
    }

    /// Whether no monoid answers it, see [`holistic`].
    pub fn is_holistic(self) -> bool {
        matches!(
            self,
            Self::CountDistinct
                | Self::ValueCounts { .. }
                | Self::Entropy
                | Self::Mode
                | Self::Quantile(_)
                | Self::Rank(_)
        )
    }

    /// Whether an answer from a record is a list.
    pub fn gives_list(self) -> bool {
        let of_values = matches!(
            self,
            Self::TopK { .. }
                | Self::BottomK { .. }
                | Self::TopKBy { .. }
                | Self::BottomKBy { .. }
                | Self::FirstK { .. }
                | Self::LastK { .. }
                | Self::LastDistinct { .. }
        );
        of_values || matches!(self, Self::Ohlc | Self::Histogram(_))
    }

    /// Whether it is user-defined with an inverse.
    pub fn brings_inverse(self) -> bool {
        match self {
            Self::Udaf { invertible, .. } => invertible,
            Self::Native(functions) => functions.inverse.is_some(),
            _ => false,
        }
    }

    /// Whether it needs a second column.
    pub fn takes_by(self) -> bool {
        let hitters = matches!(self, Self::Sketch(SketchRequest::Hitters { .. }));
        let selects = matches!(
            self,
            Self::ArgMin | Self::ArgMax | Self::TopKBy { .. } | Self::BottomKBy { .. }
        );
        hitters || selects || self.is_of_pairs()
    }

    /// Whether it is over pairs of values: two columns that are missing in the same rows.
    pub fn is_of_pairs(self) -> bool {
        if let Self::Decayed {
            what,
            half_life: HalfLife::Time { .. },
            ..
        } = self
        {
            return what != Decayed::Count;
        }
        use Kind::{Area, Correlation, Covariance, Intercept, RSquared, Rate, Slope, WeightedMean};
        matches!(
            self,
            Covariance
                | Correlation
                | WeightedMean
                | Slope
                | Intercept
                | RSquared
                | Rate
                | Area { .. }
        )
    }

    /// Whether it is over values that ascend, as times do.
    pub fn is_of_gaps(self) -> bool {
        matches!(
            self,
            Self::MeanGap | Self::MaxGap | Self::MinGap | Self::StddevGap
        )
    }

    /// Whether it is a difference of values, so that truth values are refused.
    pub fn is_difference(self) -> bool {
        matches!(
            self,
            Self::Range | Self::Delta | Self::Increase | Self::Drawdown
        )
    }

    /// Parses a name, with the number that some kinds take; names of sketches hold their
    /// parameters.
    pub fn parse(name: &str, number: u32) -> Option<Self> {
        match name {
            "top_k" => return Some(Self::TopK { k: number }),
            "lag" => return Some(Self::Lag { k: number }),
            "first_k" => return Some(Self::FirstK { k: number }),
            "last_k" => return Some(Self::LastK { k: number }),
            "last_distinct" => return Some(Self::LastDistinct { k: number }),
            "bottom_k" => return Some(Self::BottomK { k: number }),
            "top_k_by" => return Some(Self::TopKBy { k: number }),
            "bottom_k_by" => return Some(Self::BottomKBy { k: number }),
            "value_counts" => return Some(Self::ValueCounts { top: number }),
            "entropy" => return Some(Self::Entropy),
            "count_distinct" => return Some(Self::CountDistinct),
            "mode" => return Some(Self::Mode),
            _ => {}
        }
        if let Some(which) = name.strip_prefix("quantile ") {
            return Quantile::parse(which).map(Self::Quantile);
        }
        if let Some(method) = name.strip_prefix("rank ") {
            return RankMethod::parse(method).map(Self::Rank);
        }
        if let Some(edges) = name.strip_prefix("histogram ") {
            return Edges::parse(edges).map(Self::Histogram);
        }
        if let Some(which) = name.strip_prefix("decayed_") {
            return Decayed::parse(which).map(|(what, half_life, dated)| Self::Decayed {
                what,
                half_life,
                dated,
            });
        }
        if let Some(which) = name.strip_prefix("area ") {
            return area(which);
        }
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        let plain = found.map(|(_, kind)| *kind);
        plain.or_else(|| SketchRequest::parse(name).map(Self::Sketch))
    }
}

/// Reads how values go on, such as `"linear"` or `"previous dated"`.
fn area(name: &str) -> Option<Kind> {
    let dated = name.ends_with(" dated");
    let linear = match name.trim_end_matches(" dated") {
        "linear" => true,
        "previous" => false,
        _ => return None,
    };
    Some(Kind::Area { linear, dated })
}

/// One aggregation over columns, given by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggSpec {
    pub kind: Kind,
    /// The column aggregated; `None` only for `count` of rows.
    pub of: Option<usize>,
    /// The column compared, for `arg_min` and `arg_max`; the other column, for pairs; the
    /// hashes, for hitters.
    pub by: Option<usize>,
    /// Delta degrees of freedom, for `variance` and `stddev`.
    pub ddof: u32,
}

/// The type of all answers of an aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerType {
    I64,
    F64,
    Bool,
    /// Lists of values.
    List(DType),
    /// Sketches, and records for the caller to lower.
    Bytes,
}

impl AggSpec {
    /// The same over times whose ticks are so long: lengths of time are in the unit of that.
    #[must_use]
    pub fn with_tick(self, tick: u64) -> Self {
        let Kind::Decayed {
            what,
            half_life: HalfLife::Time { length, .. },
            dated,
        } = self.kind
        else {
            return self;
        };
        let half_life = HalfLife::Time { length, tick };
        let kind = Kind::Decayed {
            what,
            half_life,
            dated,
        };
        Self { kind, ..self }
    }

    /// The type of the answers over a column of type `of`.
    pub fn answer_type(&self, of: DType) -> AnswerType {
        match self.kind {
            Kind::Native(functions) => match functions.lower {
                NativeLower::Record => AnswerType::Bytes,
                NativeLower::I64(_) | NativeLower::Word(DType::I64) => AnswerType::I64,
                NativeLower::F64(_) | NativeLower::Word(_) => AnswerType::F64,
            },
            Kind::Sketch(request) => match request {
                SketchRequest::Bloom { .. } | SketchRequest::Counts { .. } => AnswerType::Bytes,
                SketchRequest::Distinct { .. } => AnswerType::I64,
                SketchRequest::Hitters { .. } => AnswerType::List(of),
                SketchRequest::Quantiles { shares, .. } if shares.is_single() => AnswerType::F64,
                SketchRequest::Quantiles { .. } => AnswerType::List(DType::F64),
            },
            Kind::Count
            | Kind::MinCount
            | Kind::MaxCount
            | Kind::CountDistinct
            | Kind::Changes
            | Kind::LongestRun
            | Kind::MaxGap
            | Kind::MinGap => AnswerType::I64,
            Kind::Decayed { dated: true, .. } | Kind::Area { dated: true, .. } => {
                AnswerType::List(DType::F64)
            }
            Kind::Any | Kind::All => AnswerType::Bool,
            Kind::Quantile(quantile) if !quantile.picks() => AnswerType::F64,
            Kind::Rank(method) if method.is_fraction() => AnswerType::F64,
            Kind::Rank(_) => AnswerType::I64,
            Kind::Mean
            | Kind::Variance
            | Kind::Stddev
            | Kind::GeometricMean
            | Kind::Skewness
            | Kind::Kurtosis
            | Kind::Covariance
            | Kind::Correlation
            | Kind::WeightedMean
            | Kind::Slope
            | Kind::Intercept
            | Kind::RSquared
            | Kind::Rate
            | Kind::Entropy
            | Kind::MeanGap
            | Kind::StddevGap
            | Kind::Decayed { .. }
            | Kind::Area { .. } => AnswerType::F64,
            Kind::Histogram(_) => AnswerType::List(DType::I64),
            Kind::Collect | Kind::ValueCounts { .. } => AnswerType::List(of),
            kind if kind.gives_list() => AnswerType::List(of),
            _ if of == DType::F64 => AnswerType::F64,
            _ => AnswerType::I64,
        }
    }
}
