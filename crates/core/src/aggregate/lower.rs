//! The components of a record that each aggregation reads, and its answer, computed from
//! them.

use super::area::Area;
use super::decay::{self, Decay, Decayed, DecayedSquares, HalfLife};
use super::kinds::{AggSpec, Kind};
use super::moment_answers as moments;
use super::moments::Scaled;
use super::op::Op;
use super::packing::get_i128;
use super::packing::presence::VALUE;
use super::twofold::Twofold;
use super::{Answer, Cell, DType, NumberRun, extreme_value};
use crate::monoid::Law;

impl AggSpec {
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
            Kind::FirstK { k } => lower.at[0] = part(Op::Ends { k, last: false }),
            Kind::LastK { k } => lower.at[0] = part(Op::Ends { k, last: true }),
            Kind::LastDistinct { k } => lower.at[0] = part(Op::LastDistinct { k }),
            Kind::LongestRun => lower.at[0] = part(Op::Run) + 3,
            Kind::Histogram(edges) => lower.at[0] = part(Op::Bins(edges)),
            Kind::TopKBy { k } | Kind::BottomKBy { k } => {
                let by = self.by.expect("pairs have two columns");
                let min = matches!(self.kind, Kind::BottomKBy { .. });
                lower.at[0] = component(Op::BestBy { k, min, by }, col, dtypes[by]);
            }
            Kind::Lag { k } => {
                lower.at[0] = part(Op::Ends {
                    k: k + 1,
                    last: true,
                });
            }
            Kind::Increase => {
                let rises = part(Op::Rises);
                lower.read(rises + 4, &[rises]);
            }
            Kind::Changes => lower.at[0] = part(Op::Changes),
            Kind::Drawdown => {
                let n = part(Op::Count);
                let [max, min] = [false, true].map(|min| part(extreme(min)));
                let fall = part(Op::Fall { n, max, min });
                lower.read(n, &[fall]);
            }
            Kind::Rate => {
                let by = self.by.expect("pairs have two columns");
                let ends = [Op::First, Op::Last];
                let [first, last] = ends.map(&mut part);
                let [by_first, by_last] = ends.map(|op| component(op, by, dtypes[by]));
                lower.by_float = dtypes[by] == DType::F64;
                lower.read(first + 1, &[first, last, by_first, by_last]);
            }
            Kind::Decayed {
                what, half_life, ..
            } => {
                let by = self.by.unwrap_or(col);
                let decay = |ones| Decay {
                    half_life,
                    by,
                    ones,
                };
                let of = decay(what == Decayed::Count);
                lower.at[0] = part(Op::Decay(of));
                if matches!(what, Decayed::Mean | Decayed::Variance) {
                    lower.at[1] = part(Op::Decay(decay(true)));
                }
                if what == Decayed::Variance {
                    let [sum, weights, ..] = lower.at;
                    lower.at[2] = part(Op::DecayedSquares(DecayedSquares { of, weights, sum }));
                }
                let read_at = matches!(what, Decayed::Sum | Decayed::Count);
                if read_at && matches!(half_life, HalfLife::Time { .. }) {
                    lower.at[3] = component(extreme(false), by, dtypes[by]);
                }
            }
            Kind::Area { linear, .. } => {
                let by = self.by.expect("pairs have two columns");
                let ends = [Op::First, Op::Last];
                let values = ends.map(&mut part);
                let times = ends.map(|op| component(op, by, dtypes[by]));
                let area = Area {
                    linear,
                    by,
                    values,
                    times,
                };
                let area = component(Op::Area(area), col, dtype);
                lower.read(values[0] + 1, &[area, times[0], times[1], values[1]]);
            }
            Kind::MeanGap | Kind::MaxGap | Kind::MinGap | Kind::StddevGap => {
                let n = part(Op::Count);
                let [first, last] = [Op::First, Op::Last].map(&mut part);
                let min = self.kind == Kind::MinGap;
                let third = match self.kind {
                    Kind::MeanGap => 0,
                    Kind::StddevGap => part(Op::GapSquares { first, last }),
                    _ => part(Op::Gap { min, first, last }),
                };
                lower.read(n, &[first, last, third]);
            }
            Kind::Delta => {
                let [first, last] = [Op::First, Op::Last].map(&mut part);
                lower.read(first + 1, &[first, last]);
            }
            Kind::Ohlc => {
                let ops = [Op::First, extreme(false), extreme(true), Op::Last];
                let places = ops.map(&mut part);
                lower.read(places[0] + 1, &places);
            }
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
            Kind::Collect | Kind::Sketch(_) | Kind::Native(_) | Kind::Udaf { .. } => {
                unreachable!("no record is planned for it")
            }
            Kind::CountDistinct
            | Kind::ValueCounts { .. }
            | Kind::Entropy
            | Kind::Mode
            | Kind::Quantile(_)
            | Kind::Rank(_) => unreachable!("no monoid"),
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
            (None, Kind::Count | Kind::Changes | Kind::LongestRun) => Answer::I64(words[at] as i64),
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
            (None, Kind::Histogram(edges)) => {
                let counts = words[at..at + edges.bins()].iter();
                Answer::List(counts.map(|count| Cell::I64(*count as i64)).collect())
            }
            (None, Kind::TopKBy { .. } | Kind::BottomKBy { .. }) => {
                let items = words[at + 1..].chunks_exact(2).take(words[at] as usize);
                Answer::List(
                    items
                        .map(|item| Cell::of_bits(item[1], self.dtype))
                        .collect(),
                )
            }
            (None, Kind::FirstK { .. } | Kind::LastK { .. } | Kind::LastDistinct { .. }) => {
                let words = words[at + 1..=at + words[at] as usize].iter();
                Answer::List(words.map(|word| Cell::of_bits(*word, self.dtype)).collect())
            }
            (None, Kind::Lag { k }) if words[at] == u64::from(k) + 1 => {
                Answer::of_bits(words[at + 1], self.dtype)
            }
            (None, Kind::Lag { .. }) => Answer::Null,
            (
                None,
                Kind::Decayed {
                    what,
                    half_life,
                    dated,
                },
            ) => self.decayed(words, what, half_life, dated),
            // The value, and whether there is one.
            (None, _) if words[at + 1] == VALUE => Answer::of_bits(words[at], self.dtype),
            (None, _) => Answer::Null,
        }
    }

    /// The answer over `count` > 0 values.
    fn of_some<T>(&self, words: &[u64], count: f64) -> Answer<T> {
        let [at, second, third, last, ..] = self.at;
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
            Kind::Delta if float => {
                Answer::F64(f64::from_bits(words[second]) - f64::from_bits(words[at]))
            }
            Kind::Delta => {
                let [first, last] = [at, second].map(|at| i128::from(words[at] as i64));
                Answer::integer(last - first)
            }
            Kind::Rate => {
                let ends = [[at, second], [third, last]];
                let floats = [float, self.by_float];
                number(moments::rate(words, ends, floats))
            }
            Kind::Area { dated, .. } => {
                let area = twofold().value();
                if !dated {
                    return Answer::F64(area);
                }
                let [since, until] = [second, third].map(|at| Cell::I64(words[at] as i64));
                let value = Cell::of_bits(words[last], self.dtype);
                Answer::List(vec![Cell::F64(area), since, until, value])
            }
            _ if self.kind.is_of_gaps() && count < 2.0 => Answer::Null,
            Kind::MeanGap => {
                let [first, last] = [at, second].map(|at| i128::from(words[at] as i64));
                Answer::F64((last - first) as f64 / (count - 1.0))
            }
            Kind::MaxGap | Kind::MinGap => Answer::integer(i128::from(words[third])),
            Kind::StddevGap => {
                let squares = get_i128(words, third) as u128;
                number(moments::stddev_of_gaps(
                    [words[at], words[second]],
                    squares,
                    count,
                    ddof,
                ))
            }
            Kind::Increase if float => Answer::F64(twofold().value()),
            Kind::Increase => Answer::integer(get_i128(words, at)),
            Kind::Drawdown if float => Answer::F64(f64::from_bits(words[at])),
            Kind::Drawdown => Answer::integer(i128::from(words[at])),
            Kind::Ohlc => {
                let bits = [
                    words[at],
                    extreme(second, false),
                    extreme(third, true),
                    words[last],
                ];
                Answer::List(bits.map(|bits| Cell::of_bits(bits, self.dtype)).into())
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

    fn decayed<T>(
        &self,
        words: &[u64],
        what: Decayed,
        half_life: HalfLife,
        dated: bool,
    ) -> Answer<T> {
        let [at, weights, squares, last, ..] = self.at;
        if decay::is_empty(words, at, half_life) {
            return Answer::Null;
        }
        let last = extreme_value(words[last] as i64, DType::I64, false) as i64;
        let sum = || decay::sum(words, at, half_life, last);
        match what {
            Decayed::Mean => Answer::F64(decay::mean(words, at, weights)),
            Decayed::Variance => Answer::F64(decay::variance(words, squares, weights)),
            Decayed::Sum | Decayed::Count if dated => {
                Answer::List(vec![Cell::F64(sum()), Cell::I64(last)])
            }
            Decayed::Sum | Decayed::Count => Answer::F64(sum()),
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
            (kind, _) if kind.gives_list() => return false,
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
