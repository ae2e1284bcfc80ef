//! The kinds of aggregations: for each its name, the components of a record that it reads,
//! its answer, computed from them, and the type of its answers.
//!
//! Kinds that no record answers (sketches, lists, user-defined and holistic ones) have only
//! a name and a type here.

use super::component::presence::VALUE;
use super::holistic::Quantile;
use super::moment_answers as moments;
use super::moments::Scaled;
use super::native::{self, NativeLower};
use super::op::Op;
use super::packing::get_i128;
use super::sketch::SketchRequest;
use super::twofold::Twofold;
use super::{Answer, Cell, DType, NumberRun, extreme_value};
use crate::monoid::Law;

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
    TopK {
        k: u32,
    },
    BottomK {
        k: u32,
    },
    CountDistinct,
    /// The most frequent value; of several, the smallest.
    Mode,
    Quantile(Quantile),
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
    pub const ALL: [(&'static str, Self); 31] = [
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
        matches!(self, Self::CountDistinct | Self::Mode | Self::Quantile(_))
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
        hitters || self.is_of_pairs() || matches!(self, Self::ArgMin | Self::ArgMax)
    }

    /// Whether it is over pairs of values: two columns that are missing in the same rows.
    pub fn is_of_pairs(self) -> bool {
        use Kind::{Correlation, Covariance, Intercept, RSquared, Slope, WeightedMean};
        matches!(
            self,
            Covariance | Correlation | WeightedMean | Slope | Intercept | RSquared
        )
    }

    /// Parses a name, with the number that some kinds take; names of sketches hold their
    /// parameters.
    pub fn parse(name: &str, number: u32) -> Option<Self> {
        match name {
            "top_k" => return Some(Self::TopK { k: number }),
            "bottom_k" => return Some(Self::BottomK { k: number }),
            "count_distinct" => return Some(Self::CountDistinct),
            "mode" => return Some(Self::Mode),
            _ => {}
        }
        if let Some(which) = name.strip_prefix("quantile ") {
            return Quantile::parse(which).map(Self::Quantile);
        }
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        let plain = found.map(|(_, kind)| *kind);
        plain.or_else(|| SketchRequest::parse(name).map(Self::Sketch))
    }
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
            Kind::Count | Kind::MinCount | Kind::MaxCount | Kind::CountDistinct => AnswerType::I64,
            Kind::Any | Kind::All => AnswerType::Bool,
            Kind::Quantile(quantile) if !quantile.picks() => AnswerType::F64,
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
            | Kind::RSquared => AnswerType::F64,
            Kind::Collect | Kind::TopK { .. } | Kind::BottomK { .. } => AnswerType::List(of),
            _ if of == DType::F64 => AnswerType::F64,
            _ => AnswerType::I64,
        }
    }

    /// The components that it reads, and how it answers from them. `component` gives the word
    /// offset of an operation over a column.
    ///
    /// # Panics
    /// If no record answers it, or a second column is missing.
    pub(super) fn lower(
        &self,
        dtypes: &[DType],
        law: Option<Law>,
        component: &mut dyn FnMut(Op, usize, DType) -> usize,
    ) -> Lower {
        let mut lower = Lower {
            kind: self.kind,
            n: None,
            at: [0; PLACES],
            by_float: false,
            dtype: self.of.map_or(DType::I64, |of| dtypes[of]),
            ddof: self.ddof,
        };
        let Some(col) = self.of else {
            lower.at[0] = component(Op::Rows, 0, DType::I64);
            return lower;
        };
        let float = lower.dtype == DType::F64;
        let dtype = lower.dtype;
        let mut part = |op| component(op, col, dtype);
        match self.kind {
            Kind::Count => lower.at[0] = part(Op::Count),
            // A sum that is only added to tells itself whether it is empty.
            Kind::Sum if float && law != Some(Law::Inverse) => lower.at[0] = part(Op::SumF),
            Kind::Sum | Kind::Mean => {
                lower.n = Some(part(Op::Count));
                lower.at[0] = part(sum_of(float));
            }
            Kind::Min | Kind::Max => {
                lower.n = Some(presence_of(law, &mut part));
                lower.at[0] = part(extreme(self.kind == Kind::Min));
            }
            Kind::MinCount | Kind::MaxCount => {
                let min = self.kind == Kind::MinCount;
                lower.at[0] = part(Op::ExtremeCount { min }) + 1;
            }
            Kind::Range => {
                lower.n = Some(presence_of(law, &mut part));
                lower.at[..2].copy_from_slice(&[part(extreme(false)), part(extreme(true))]);
            }
            Kind::Variance | Kind::Stddev => {
                let [n, _, squares] = squares_of(&mut part, float);
                (lower.n, lower.at[0]) = (Some(n), squares);
            }
            Kind::Skewness => {
                let [n, sum, squares] = squares_of(&mut part, float);
                let third = part(Op::Third { n, sum, squares });
                lower.read(n, &[squares, third]);
            }
            Kind::Kurtosis => {
                let [n, sum, squares] = squares_of(&mut part, float);
                let third = part(Op::Third { n, sum, squares });
                let fourth = part(Op::Fourth {
                    n,
                    sum,
                    squares,
                    third,
                });
                lower.read(n, &[squares, fourth]);
            }
            Kind::WeightedMean => {
                let by = self.by.expect("pairs have two columns");
                let by_float = dtypes[by] == DType::F64;
                let (n, products) = (part(Op::Count), part(Op::Weighted { by, by_float }));
                let weights = component(sum_of(by_float), by, dtypes[by]);
                lower.by_float = by_float;
                lower.read(n, &[products, weights]);
            }
            Kind::Covariance
            | Kind::Correlation
            | Kind::Slope
            | Kind::Intercept
            | Kind::RSquared => {
                let by = self.by.expect("pairs have two columns");
                let by_float = dtypes[by] == DType::F64;
                let [n, sum, squares] = squares_of(&mut part, float);
                let mut part = |op| component(op, by, dtypes[by]);
                let [_, by_sum, by_squares] = squares_of(&mut part, by_float);
                let ends =
                    |part: &mut dyn FnMut(Op) -> usize| [part(extreme(false)), part(extreme(true))];
                let by_ends = match self.kind {
                    Kind::Covariance | Kind::Correlation => [0; 2],
                    _ => ends(&mut part),
                };
                let mut part = |op| component(op, col, dtype);
                let others = match self.kind {
                    Kind::Intercept => [sum, by_sum],
                    Kind::RSquared => ends(&mut part),
                    _ => [0; 2],
                };
                let products = part(Op::Products {
                    n,
                    sum,
                    by,
                    by_sum,
                    by_float,
                });
                lower.by_float = by_float;
                lower.read(
                    n,
                    &[
                        products, squares, by_squares, by_ends[0], by_ends[1], others[0], others[1],
                    ],
                );
            }
            Kind::TopK { k } => lower.at[0] = part(Op::Best { k, min: false }),
            Kind::BottomK { k } => lower.at[0] = part(Op::Best { k, min: true }),
            Kind::First => lower.at[0] = part(Op::First),
            Kind::Last => lower.at[0] = part(Op::Last),
            Kind::ArgMin | Kind::ArgMax => {
                let by = self.by.expect("arg_min and arg_max compare a column");
                let min = self.kind == Kind::ArgMin;
                lower.at[0] = component(Op::Arg { min, by }, col, dtypes[by]) + 1;
            }
            Kind::GeometricMean
            | Kind::Product
            | Kind::SumOfSquares
            | Kind::Any
            | Kind::All
            | Kind::BitAnd
            | Kind::BitOr
            | Kind::BitXor => {
                lower.n = Some(part(Op::Count));
                lower.at[0] = part(match self.kind {
                    Kind::GeometricMean => Op::Logs,
                    Kind::Product if float => Op::ProductF,
                    Kind::Product => Op::ProductI,
                    Kind::SumOfSquares if float => Op::SumSquaresF,
                    Kind::SumOfSquares => Op::SumSquaresI,
                    Kind::Any => Op::Any,
                    Kind::All => Op::All,
                    Kind::BitAnd => Op::BitAnd,
                    Kind::BitOr => Op::BitOr,
                    _ => Op::BitXor,
                });
            }
            Kind::CountDistinct | Kind::Mode | Kind::Quantile(_) => unreachable!("no monoid"),
            Kind::Collect | Kind::Sketch(_) | Kind::Native(_) | Kind::Udaf { .. } => {
                unreachable!("no record is planned for it")
            }
        }
        lower
    }
}

fn sum_of(float: bool) -> Op {
    if float { Op::SumF } else { Op::SumI }
}

fn extreme(min: bool) -> Op {
    Op::Extreme { min }
}

/// Offsets of count, sum and squares of a column.
fn squares_of(part: &mut dyn FnMut(Op) -> usize, float: bool) -> [usize; 3] {
    let (n, sum) = (part(Op::Count), part(sum_of(float)));
    let squares = part(match float {
        true => Op::SquaresF { n, sum },
        false => Op::SquaresI { n, sum },
    });
    [n, sum, squares]
}

/// The word of a record that is zero where all values were missing: their number, or for a
/// record that selects, whether there is a last one.
fn presence_of(law: Option<Law>, part: &mut dyn FnMut(Op) -> usize) -> usize {
    match law {
        Some(Law::Selection) => part(Op::Last) + 1,
        _ => part(Op::Count),
    }
}

/// The most components that one answer reads.
const PLACES: usize = 7;

/// How one answer is computed from the components of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lower {
    kind: Kind,
    /// The word that is zero where the answer is null; `None` where a component tells.
    n: Option<usize>,
    /// The word offsets of its components.
    at: [usize; PLACES],
    dtype: DType,
    /// Whether the second column holds floats.
    by_float: bool,
    ddof: u32,
}

impl Lower {
    /// Reads components at `at`, if there are values: their number is at `n`.
    fn read(&mut self, n: usize, at: &[usize]) {
        self.n = Some(n);
        self.at[..at.len()].copy_from_slice(at);
    }

    pub(super) fn answer<T>(&self, words: &[u64]) -> Answer<T> {
        let at = self.at[0];
        match (self.n.map(|n| words[n]), self.kind) {
            (Some(0), _) => Answer::Null,
            (Some(count), _) => self.of_some(words, count as f64),
            (None, Kind::Count) => Answer::I64(words[at] as i64),
            (None, Kind::Sum) => {
                let sum = Twofold::from_words(&words[at..]);
                if sum.is_empty() {
                    Answer::Null
                } else {
                    Answer::F64(sum.value())
                }
            }
            (None, Kind::MinCount | Kind::MaxCount) if words[at] == 0 => Answer::Null,
            (None, Kind::MinCount | Kind::MaxCount) => Answer::I64(words[at] as i64),
            (None, Kind::TopK { .. } | Kind::BottomK { .. }) => {
                let words = &words[at + 1..=at + words[at] as usize];
                let min = matches!(self.kind, Kind::BottomK { .. });
                let value = |word: &u64| {
                    Cell::of_bits(extreme_value(*word as i64, self.dtype, min), self.dtype)
                };
                Answer::List(words.iter().map(value).collect())
            }
            // The value, and whether there is one.
            (None, _) if words[at + 1] == VALUE => Answer::of_bits(words[at], self.dtype),
            (None, _) => Answer::Null,
        }
    }

    /// The answer over `count` > 0 values.
    fn of_some<T>(&self, words: &[u64], count: f64) -> Answer<T> {
        let [at, second, third, ..] = self.at;
        let (float, ddof) = (self.dtype == DType::F64, self.ddof);
        let twofold = || Twofold::from_words(&words[at..]);
        let extreme = |at: usize, min| extreme_value(words[at] as i64, self.dtype, min);
        match self.kind {
            Kind::Sum | Kind::SumOfSquares if float => Answer::F64(twofold().value()),
            Kind::Product if float => Answer::F64(Scaled::from_words(&words[at..]).value()),
            Kind::Sum | Kind::SumOfSquares | Kind::Product => Answer::integer(get_i128(words, at)),
            Kind::Mean if float => Answer::F64(twofold().mean(count)),
            Kind::Mean => Answer::F64(get_i128(words, at) as f64 / count),
            Kind::Min | Kind::Max => {
                Answer::of_bits(extreme(at, self.kind == Kind::Min), self.dtype)
            }
            Kind::Range => {
                let (max, min) = (extreme(at, false), extreme(second, true));
                if float {
                    Answer::F64(f64::from_bits(max) - f64::from_bits(min))
                } else {
                    Answer::integer(i128::from(max as i64) - i128::from(min as i64))
                }
            }
            Kind::GeometricMean => Answer::F64((twofold().value() / count).exp()),
            Kind::Any | Kind::All => Answer::Bool(words[at] != 0),
            Kind::BitAnd | Kind::BitOr | Kind::BitXor => Answer::I64(words[at] as i64),
            Kind::Variance => number(moments::variance(words, at, count, ddof)),
            Kind::Stddev => number(moments::stddev(words, at, count, ddof)),
            Kind::Skewness => number(moments::skewness(words, [at, second], count, ddof)),
            Kind::Kurtosis => number(moments::kurtosis(words, [at, second], count, ddof)),
            Kind::Covariance => {
                number(moments::covariance(words, at, [second, third], count, ddof))
            }
            Kind::Correlation => number(moments::correlation(words, at, [second, third], count)),
            Kind::WeightedMean => {
                number(moments::weighted_mean(words, at, (second, self.by_float)))
            }
            Kind::Slope => number(moments::slope(words, self.at, count)),
            Kind::Intercept => {
                let floats = [float, self.by_float];
                number(moments::intercept(words, self.at, floats, count))
            }
            Kind::RSquared => number(moments::r_squared(words, self.at, count)),
            _ => unreachable!("answered without a count"),
        }
    }

    /// The answers over many partials; false if one is not a number.
    pub(super) fn run<P: AsRef<[u64]>>(&self, partials: &[P], run: &mut NumberRun) -> bool {
        run.bits.clear();
        run.missing.clear();
        run.bits.reserve(partials.len());
        let at = self.at[0];
        let partials = partials.iter().map(AsRef::as_ref);
        match (self.kind, self.n) {
            (Kind::Count, _) => run.bits.extend(partials.map(|words| words[at])),
            (Kind::Sum, None) => {
                for words in partials {
                    let sum = Twofold::from_words(&words[at..]);
                    run.put((!sum.is_empty()).then(|| sum.value().to_bits()));
                }
            }
            (Kind::Min | Kind::Max, Some(n)) => {
                let min = self.kind == Kind::Min;
                for words in partials {
                    let value = || extreme_value(words[at] as i64, self.dtype, min);
                    run.put((words[n] > 0).then(value));
                }
            }
            (Kind::TopK { .. } | Kind::BottomK { .. }, _) => return false,
            _ => {
                for words in partials {
                    match self.answer::<i64>(words) {
                        Answer::I64(value) => run.put(Some(value as u64)),
                        Answer::F64(value) => run.put(Some(value.to_bits())),
                        Answer::Bool(value) => run.put(Some(u64::from(value))),
                        Answer::Null => run.put(None),
                        _ => return false,
                    }
                }
            }
        }
        true
    }
}

fn number<T>(answer: Option<f64>) -> Answer<T> {
    answer.map_or(Answer::Null, Answer::F64)
}
