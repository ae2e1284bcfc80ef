//! The type in which an aggregation answers, given that of its column.

use super::native::NativeLower;
use super::sketch::SketchRequest;
use super::{AggSpec, DType, Kind};

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
            | Kind::Correlation => AnswerType::F64,
            Kind::Collect | Kind::TopK { .. } | Kind::BottomK { .. } => AnswerType::List(of),
            _ if of == DType::F64 => AnswerType::F64,
            _ => AnswerType::I64,
        }
    }
}
