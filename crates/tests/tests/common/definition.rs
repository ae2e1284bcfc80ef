//! The answers of every aggregation by definition, computed from the raw rows.

use slidewise_core::aggregate::holistic::{answer_over, word_of};
use slidewise_core::aggregate::{AggSpec, Answer, Cell, DType, Kind, extreme_word};

/// The column aggregated and the column compared, of one type.
pub type Row = [Cell<i64>; 2];

pub fn number(cell: &Cell<i64>) -> Option<f64> {
    match cell {
        Cell::I64(value) => Some(*value as f64),
        Cell::F64(value) => Some(*value),
        _ => None,
    }
}

/// The exact sum, rounded once (Shewchuk): partials that do not overlap.
fn exact_sum(values: &[f64]) -> f64 {
    if values.iter().any(|value| !value.is_finite()) {
        return values.iter().sum();
    }
    let mut partials: Vec<f64> = Vec::new();
    for &value in values {
        let mut x = value;
        let mut kept = Vec::new();
        for &y in &partials {
            let (a, b) = if x.abs() < y.abs() { (y, x) } else { (x, y) };
            let high = a + b;
            let low = b - (high - a);
            if low != 0.0 {
                kept.push(low);
            }
            x = high;
        }
        kept.push(x);
        partials = kept;
    }
    partials.iter().sum()
}

fn variance(values: &[Cell<i64>], ddof: u32) -> Option<f64> {
    let count = values.len();
    if count <= ddof as usize {
        return None;
    }
    let n = count as f64;
    let integers: Vec<i128> = values.iter().filter_map(integer).collect();
    let squares = if integers.len() == count {
        // n·x − Σx is exact; all terms are positive.
        let sum: i128 = integers.iter().sum();
        let scaled = integers
            .iter()
            .map(|x| (x * count as i128 - sum) as f64 / n);
        scaled.map(|gap| gap * gap).sum()
    } else {
        let floats: Vec<f64> = values.iter().filter_map(number).collect();
        let mean = exact_sum(&floats) / n;
        let gaps: Vec<f64> = floats.iter().map(|x| x - mean).collect();
        let squares: Vec<f64> = gaps.iter().map(|gap| gap * gap).collect();
        exact_sum(&squares) - exact_sum(&gaps).powi(2) / n
    };
    Some(squares / (n - f64::from(ddof)))
}

/// Distances from the mean, which sum to nearly zero.
fn gaps(values: &[Cell<i64>]) -> Vec<f64> {
    let n = values.len() as f64;
    let integers: Vec<i128> = values.iter().filter_map(integer).collect();
    if integers.len() == values.len() {
        let sum: i128 = integers.iter().sum();
        let scaled = integers.iter().map(|x| x * values.len() as i128 - sum);
        return scaled.map(|gap| gap as f64 / n).collect();
    }
    let floats: Vec<f64> = values.iter().filter_map(number).collect();
    let mean = exact_sum(&floats) / n;
    let about: Vec<f64> = floats.iter().map(|x| x - mean).collect();
    let drift = exact_sum(&about) / n;
    about.iter().map(|gap| gap - drift).collect()
}

fn power_sum(gaps: &[f64], power: i32) -> f64 {
    let powers: Vec<f64> = gaps.iter().map(|gap| gap.powi(power)).collect();
    exact_sum(&powers)
}

fn skewness(values: &[Cell<i64>], ddof: u32) -> Option<f64> {
    let (gaps, n) = (gaps(values), values.len() as f64);
    let squares = power_sum(&gaps, 2);
    let skew = n.sqrt() * power_sum(&gaps, 3) / squares / squares.sqrt();
    match ddof {
        0 => Some(skew),
        _ if n < 3.0 => None,
        _ => Some(skew * (n * (n - 1.0)).sqrt() / (n - 2.0)),
    }
}

fn kurtosis(values: &[Cell<i64>], ddof: u32) -> Option<f64> {
    let (gaps, n) = (gaps(values), values.len() as f64);
    let excess = n * power_sum(&gaps, 4) / power_sum(&gaps, 2).powi(2) - 3.0;
    match ddof {
        0 => Some(excess),
        _ if n < 4.0 => None,
        _ => Some((n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * excess + 6.0)),
    }
}

fn products(rows: &[Row]) -> [f64; 3] {
    let column = |at: usize| -> Vec<Cell<i64>> {
        let cells = rows.iter().map(|row| row[at].clone());
        cells.filter(|cell| *cell != Cell::Null).collect()
    };
    let (x, y) = (gaps(&column(0)), gaps(&column(1)));
    let both: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
    [exact_sum(&both), power_sum(&x, 2), power_sum(&y, 2)]
}

/// Both parts of a product.
fn product_of(x: &Cell<i64>, y: &Cell<i64>) -> [f64; 2] {
    if let (Some(x), Some(y)) = (integer(x), integer(y)) {
        let product = x * y;
        return [product as f64, (product - product as f64 as i128) as f64];
    }
    let (x, y) = (number(x).unwrap(), number(y).unwrap());
    [x * y, x.mul_add(y, -(x * y))]
}

fn weighted_mean(rows: &[Row]) -> Option<f64> {
    let rows = rows.iter().filter(|row| row[1] != Cell::Null);
    let integers: Vec<i128> = rows.clone().filter_map(|row| integer(&row[1])).collect();
    let floats: Vec<f64> = rows.clone().filter_map(|row| number(&row[1])).collect();
    let weights = match integers.len() == floats.len() {
        true => integers.iter().sum::<i128>() as f64,
        false => exact_sum(&floats),
    };
    let products: Vec<[f64; 2]> = rows.map(|row| product_of(&row[0], &row[1])).collect();
    let whole = if products.iter().all(|[product, _]| product.is_finite()) {
        exact_sum(products.as_flattened())
    } else {
        products.iter().map(|[product, _]| product).sum()
    };
    (weights != 0.0).then(|| whole / weights)
}

fn line(spec: &AggSpec, rows: &[Row], dtype: DType) -> Option<f64> {
    let column = |at: usize| {
        rows.iter()
            .map(move |row| &row[at])
            .filter(|cell| **cell != Cell::Null)
    };
    let one_value = |at: usize| {
        let words: Vec<i64> = column(at)
            .filter_map(|cell| Some(extreme_word(cell.bits()?, dtype, false)))
            .collect();
        let is_nan = |word| dtype == DType::F64 && word == i64::MAX;
        words.iter().all(|word| *word == words[0] && !is_nan(*word))
    };
    let n = column(0).count() as f64;
    if n < 2.0 || one_value(1) {
        return None;
    }
    let [both, y, x] = products(rows);
    let mean = |at: usize| exact_sum(&column(at).filter_map(number).collect::<Vec<_>>()) / n;
    Some(match spec.kind {
        Kind::Slope => both / x,
        Kind::Intercept => mean(0) - both / x * mean(1),
        _ if one_value(0) => 1.0,
        _ => both / x * (both / y),
    })
}

fn pair(spec: &AggSpec, rows: &[Row], n: f64) -> Option<f64> {
    let [both, x, y] = products(rows);
    match spec.kind {
        Kind::Correlation if n < 2.0 => None,
        Kind::Correlation => Some(both / x.sqrt() / y.sqrt()),
        _ if n <= f64::from(spec.ddof) => None,
        _ => Some(both / (n - f64::from(spec.ddof))),
    }
}

/// A product that neither overflows nor underflows midway.
fn scaled_product(values: &[f64]) -> f64 {
    let (mut product, mut exponent) = (1.0, 0_i32);
    for value in values {
        let tiny = if *value != 0.0 && value.abs() < 1e-150 {
            300
        } else {
            0
        };
        product *= value * 2_f64.powi(tiny);
        exponent -= tiny;
        if product.abs() > 1e150 && product.is_finite() {
            product *= 2_f64.powi(-300);
            exponent += 300;
        }
        if product.abs() < 1e-150 && product != 0.0 {
            product *= 2_f64.powi(300);
            exponent -= 300;
        }
    }
    let exponent = exponent.clamp(-1500, 1500);
    product * 2_f64.powi(exponent / 2) * 2_f64.powi(exponent - exponent / 2)
}

/// A larger product of integers is stored as this value, until a zero comes.
fn clamped_product(values: impl Iterator<Item = i128>) -> i128 {
    let limit = 1 << 64;
    values.fold(1, |all: i128, value| {
        all.saturating_mul(value).clamp(-limit, limit)
    })
}

fn best(values: &[Cell<i64>], k: u32, min: bool) -> Answer<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| {
        if beats(a, b, min) {
            std::cmp::Ordering::Less
        } else if beats(b, a, min) {
            std::cmp::Ordering::Greater
        } else {
            std::cmp::Ordering::Equal
        }
    });
    sorted.truncate(k as usize);
    Answer::List(sorted.into_iter().map(plain).collect())
}

/// All NaNs are one value, and the two zeros are one value.
fn plain(cell: Cell<i64>) -> Cell<i64> {
    match cell {
        Cell::F64(value) if value.is_nan() => Cell::F64(f64::NAN),
        Cell::F64(value) => Cell::F64(value + 0.0),
        cell => cell,
    }
}

fn bitwise(spec: &AggSpec, values: &[Cell<i64>]) -> Answer<i64> {
    let bits = values.iter().filter_map(Cell::bits);
    let all = match spec.kind {
        Kind::BitAnd => bits.fold(u64::MAX, |all, bits| all & bits),
        Kind::BitOr => bits.fold(0, |all, bits| all | bits),
        _ => bits.fold(0, |all, bits| all ^ bits),
    };
    Answer::I64(all as i64)
}

fn integer(cell: &Cell<i64>) -> Option<i128> {
    match cell {
        Cell::I64(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Whether `a` is more extreme than `b`; NaN is the most extreme value.
fn beats(a: &Cell<i64>, b: &Cell<i64>, min: bool) -> bool {
    match (a, b) {
        (Cell::I64(a), Cell::I64(b)) => {
            if min {
                a < b
            } else {
                a > b
            }
        }
        (Cell::F64(a), Cell::F64(b)) if a.is_nan() || b.is_nan() => a.is_nan() && !b.is_nan(),
        (Cell::F64(a), Cell::F64(b)) => {
            if min {
                a < b
            } else {
                a > b
            }
        }
        _ => unreachable!("two numbers of one type"),
    }
}

/// The first of the most extreme values.
fn extreme<'a>(cells: impl Iterator<Item = &'a Cell<i64>>, min: bool) -> Option<&'a Cell<i64>> {
    cells.reduce(|best, cell| if beats(cell, best, min) { cell } else { best })
}

fn answer(cell: Option<&Cell<i64>>) -> Answer<i64> {
    match cell {
        Some(Cell::I64(value)) => Answer::I64(*value),
        Some(Cell::F64(value)) => Answer::F64(*value),
        _ => Answer::Null,
    }
}

pub fn by_definition(spec: &AggSpec, rows: &[Row], dtype: DType) -> Answer<i64> {
    if spec.of.is_none() {
        return Answer::I64(rows.len() as i64);
    }
    let present = |cell: &&Cell<i64>| **cell != Cell::Null;
    let column = || rows.iter().map(|row| &row[0]).filter(present);
    let values: Vec<Cell<i64>> = column().cloned().collect();
    let floats: Vec<f64> = values.iter().filter_map(number).collect();
    let total: i128 = values.iter().filter_map(integer).sum();
    let (n, is_float) = (values.len() as f64, dtype == DType::F64);
    match spec.kind {
        Kind::Count => Answer::I64(values.len() as i64),
        Kind::Collect => Answer::List(values),
        Kind::Udaf { .. } => unreachable!("no definition but the user's"),
        Kind::Sketch(_) | Kind::Native(_) => unreachable!("defined elsewhere, or approximate"),
        kind if kind.is_holistic() => {
            let bits = values.iter().filter_map(Cell::bits);
            let mut words: Vec<i64> = bits.map(|bits| word_of(bits, dtype)).collect();
            answer_over(kind, dtype, &mut words)
        }
        Kind::TopK { k } => best(&values, k, false),
        Kind::BottomK { k } => best(&values, k, true),
        Kind::FirstK { k } => Answer::List(values.into_iter().take(k as usize).collect()),
        Kind::LastK { k } => {
            let from = values.len().saturating_sub(k as usize);
            Answer::List(values[from..].to_vec())
        }
        Kind::LastDistinct { k } => {
            let word = |cell: &Cell<i64>| extreme_word(cell.bits().unwrap(), dtype, false);
            let again = |at: usize| {
                values[at + 1..]
                    .iter()
                    .any(|v| word(v) == word(&values[at]))
            };
            let last = (0..values.len()).filter(|at| !again(*at));
            let last: Vec<Cell<i64>> = last.map(|at| plain(values[at].clone())).collect();
            Answer::List(last[last.len().saturating_sub(k as usize)..].to_vec())
        }
        Kind::TopKBy { k } | Kind::BottomKBy { k } => {
            let min = matches!(spec.kind, Kind::BottomKBy { .. });
            let mut pairs: Vec<&Row> = rows
                .iter()
                .filter(|row| !row.contains(&Cell::Null))
                .collect();
            let key = |row: &Row| extreme_word(row[1].bits().unwrap(), dtype, min);
            pairs.sort_by_key(|row| std::cmp::Reverse(key(row)));
            Answer::List(
                pairs
                    .iter()
                    .take(k as usize)
                    .map(|row| row[0].clone())
                    .collect(),
            )
        }
        Kind::LongestRun => {
            let runs = floats.split(|value| *value == 0.0).map(<[f64]>::len);
            Answer::I64(runs.max().unwrap_or(0) as i64)
        }
        Kind::Histogram(edges) => {
            let bins = values.iter().filter_map(Cell::bits);
            let bins: Vec<usize> = bins.map(|bits| edges.bin(bits, dtype)).collect();
            let count = |bin| bins.iter().filter(|other| **other == bin).count();
            let counts = (0..edges.bins()).map(|bin| Cell::I64(count(bin) as i64));
            Answer::List(counts.collect())
        }
        Kind::Lag { k } => {
            let place = values.len().checked_sub(1 + k as usize);
            answer(place.map(|place| &values[place]))
        }
        Kind::Changes => {
            let differ = |pair: &&[Cell<i64>]| {
                let [a, b] = [0, 1].map(|at| pair[at].bits().expect("a number"));
                extreme_word(a, dtype, false) != extreme_word(b, dtype, false)
            };
            Answer::I64(values.windows(2).filter(differ).count() as i64)
        }
        _ if values.is_empty() => Answer::Null,
        Kind::Sum if is_float => Answer::F64(exact_sum(&floats)),
        Kind::Sum => Answer::integer(total),
        Kind::Mean if is_float => Answer::F64(exact_sum(&floats) / n),
        Kind::Mean => Answer::F64(total as f64 / n),
        Kind::Min | Kind::Max => answer(extreme(column(), spec.kind == Kind::Min)),
        Kind::Range => match (extreme(column(), false), extreme(column(), true)) {
            (Some(Cell::I64(max)), Some(Cell::I64(min))) => {
                Answer::integer(i128::from(*max) - i128::from(*min))
            }
            (max, min) => {
                Answer::F64(max.and_then(number).unwrap() - min.and_then(number).unwrap())
            }
        },
        Kind::Variance => variance(&values, spec.ddof).map_or(Answer::Null, Answer::F64),
        Kind::Stddev => {
            variance(&values, spec.ddof).map_or(Answer::Null, |value| Answer::F64(value.sqrt()))
        }
        Kind::MinCount | Kind::MaxCount => {
            let min = spec.kind == Kind::MinCount;
            let best = extreme(column(), min).expect("not empty");
            Answer::I64(column().filter(|cell| !beats(best, cell, min)).count() as i64)
        }
        Kind::ArgMin | Kind::ArgMax => {
            let keys = rows.iter().map(|row| &row[1]).filter(present);
            let best = extreme(keys, spec.kind == Kind::ArgMin);
            answer(
                rows.iter()
                    .find(|row| best.is_some_and(|b| std::ptr::eq(b, &row[1])))
                    .map(|row| &row[0]),
            )
        }
        Kind::Product if is_float => Answer::F64(scaled_product(&floats)),
        Kind::Product => Answer::integer(clamped_product(values.iter().filter_map(integer))),
        Kind::SumOfSquares if is_float => {
            Answer::F64(exact_sum(&floats.iter().map(|x| x * x).collect::<Vec<_>>()))
        }
        Kind::SumOfSquares => {
            let squares = values.iter().filter_map(integer).map(|x| x * x);
            Answer::integer(squares.fold(0, i128::saturating_add))
        }
        Kind::Any => Answer::Bool(floats.iter().any(|x| *x != 0.0)),
        Kind::All => Answer::Bool(floats.iter().all(|x| *x != 0.0)),
        Kind::BitAnd | Kind::BitOr | Kind::BitXor => bitwise(spec, &values),
        Kind::Skewness => skewness(&values, spec.ddof).map_or(Answer::Null, Answer::F64),
        Kind::Kurtosis => kurtosis(&values, spec.ddof).map_or(Answer::Null, Answer::F64),
        Kind::WeightedMean => weighted_mean(rows).map_or(Answer::Null, Answer::F64),
        Kind::Slope | Kind::Intercept | Kind::RSquared => {
            line(spec, rows, dtype).map_or(Answer::Null, Answer::F64)
        }
        Kind::Covariance | Kind::Correlation => {
            pair(spec, rows, n).map_or(Answer::Null, Answer::F64)
        }
        Kind::Rate => {
            let bys: Vec<Cell<i64>> = rows.iter().map(|row| row[1].clone()).collect();
            let bys: Vec<&Cell<i64>> = bys.iter().filter(present).collect();
            let difference = |first: &Cell<i64>, last: &Cell<i64>| match (first, last) {
                (Cell::I64(first), Cell::I64(last)) => {
                    (i128::from(*last) - i128::from(*first)) as f64
                }
                _ => number(last).unwrap() - number(first).unwrap(),
            };
            let run = difference(bys[0], bys[bys.len() - 1]);
            let rise = difference(&values[0], &values[values.len() - 1]);
            if run == 0.0 {
                Answer::Null
            } else {
                Answer::F64(rise / run)
            }
        }
        Kind::MeanGap | Kind::MaxGap | Kind::MinGap | Kind::StddevGap => {
            let times: Vec<i128> = values.iter().filter_map(integer).collect();
            let gaps: Vec<i128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let (sum, count): (i128, i128) = (gaps.iter().sum(), gaps.len() as i128);
            match spec.kind {
                _ if gaps.is_empty() => Answer::Null,
                Kind::MeanGap => Answer::F64(sum as f64 / count as f64),
                Kind::MaxGap => Answer::integer(*gaps.iter().max().expect("not empty")),
                Kind::MinGap => Answer::integer(*gaps.iter().min().expect("not empty")),
                _ => {
                    let gaps: Vec<Cell<i64>> =
                        gaps.iter().map(|gap| Cell::I64(*gap as i64)).collect();
                    let variance = variance(&gaps, spec.ddof);
                    variance.map_or(Answer::Null, |value| Answer::F64(value.sqrt()))
                }
            }
        }
        Kind::Delta => match (values.first(), values.last()) {
            (Some(Cell::I64(first)), Some(Cell::I64(last))) => {
                Answer::integer(i128::from(*last) - i128::from(*first))
            }
            _ => Answer::F64(floats[floats.len() - 1] - floats[0]),
        },
        Kind::Increase if is_float => {
            let nan = floats.iter().any(|value| value.is_nan());
            let rises = floats.windows(2).flat_map(|pair| match pair[1] - pair[0] {
                rise if rise >= 0.0 => [pair[1], -pair[0]],
                _ if pair[0] == pair[1] => [0.0; 2],
                _ => [pair[1], 0.0],
            });
            let rises: Vec<f64> = rises.collect();
            Answer::F64(if nan { f64::NAN } else { exact_sum(&rises) })
        }
        Kind::Increase => {
            let integers: Vec<i128> = values.iter().filter_map(integer).collect();
            let rises = integers.windows(2).map(|pair| match pair[1] - pair[0] {
                rise if rise >= 0 => rise,
                _ => pair[1],
            });
            Answer::integer(rises.sum())
        }
        Kind::Drawdown => {
            let later = |at: usize| values[at..].iter().map(move |value| (at, value));
            let pairs = (0..values.len()).flat_map(later);
            if is_float {
                let falls = pairs.map(|(at, value)| floats[at] - number(value).unwrap());
                let nan = floats.iter().any(|value| value.is_nan());
                Answer::F64(if nan {
                    f64::NAN
                } else {
                    falls.fold(0.0, f64::max)
                })
            } else {
                let falls = pairs
                    .map(|(at, value)| integer(&values[at]).unwrap() - integer(value).unwrap());
                Answer::integer(falls.max().expect("not empty"))
            }
        }
        Kind::Ohlc => {
            let plain = |cell: &Cell<i64>| best(std::slice::from_ref(cell), 1, false);
            let of = |min| plain(extreme(column(), min).expect("not empty"));
            let (Answer::List(high), Answer::List(low)) = (of(false), of(true)) else {
                unreachable!("lists of one")
            };
            let (open, close) = (values[0].clone(), values[values.len() - 1].clone());
            Answer::List([vec![open], high, low, vec![close]].concat())
        }
        Kind::First => answer(values.first()),
        Kind::Last => answer(values.last()),
        Kind::GeometricMean => {
            let logs: Vec<f64> = floats.iter().map(|value| value.ln()).collect();
            Answer::F64((exact_sum(&logs) / n).exp())
        }
        Kind::CountDistinct
        | Kind::ValueCounts { .. }
        | Kind::Entropy
        | Kind::Rank(_)
        | Kind::Mode
        | Kind::Quantile(_) => unreachable!("answered above"),
        Kind::Decayed { .. } | Kind::Area { .. } => {
            unreachable!("tests/aggregations/test_window_ends.py defines them")
        }
    }
}

/// Floats may differ by rounding; `weight` is Σ|x|, to which the error of a sum is
/// proportional.
pub fn agrees(spec: &AggSpec, got: &Answer<i64>, want: &Answer<i64>, weight: f64) -> bool {
    let (Answer::F64(a), Answer::F64(b)) = (got, want) else {
        return format!("{got:?}") == format!("{want:?}");
    };
    let slack = match spec.kind {
        Kind::Sum | Kind::Mean => b.abs() * 2_f64.powi(-51) + weight * 2_f64.powi(-90),
        Kind::Variance | Kind::Stddev | Kind::GeometricMean | Kind::StddevGap => {
            b.abs() * 1e-13 + 1e-300
        }
        Kind::Product | Kind::SumOfSquares => b.abs() * 1e-12 + 1e-300,
        // Odd powers cancel, so the error is relative to the size of the distances.
        Kind::Skewness | Kind::Kurtosis | Kind::Correlation => 1e-9 * (1.0 + b.abs()),
        Kind::Increase => b.abs() * 2_f64.powi(-51) + weight * 2_f64.powi(-90),
        Kind::WeightedMean => b.abs() * 1e-13 + weight * weight * 1e-25,
        Kind::Slope | Kind::RSquared => 1e-9 * (1.0 + b.abs()),
        Kind::Intercept => 1e-9 * (1.0 + b.abs() + weight),
        Kind::Covariance => 1e-12 * (b.abs() + weight * weight),
        _ => 0.0,
    };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= slack
}
