//! What every aggregation answers by definition, computed from the raw rows.

use slidewise_core::aggregate::{AggSpec, Answer, Cell, DType, Kind};

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

fn integer(cell: &Cell<i64>) -> Option<i128> {
    match cell {
        Cell::I64(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Whether `a` is more extreme than `b`; NaN is more extreme than anything else.
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

/// The first of the most extreme.
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
        Kind::Own { .. } => unreachable!("no definition but the user's"),
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
        Kind::First => answer(values.first()),
        Kind::Last => answer(values.last()),
        Kind::GeometricMean => {
            let logs: Vec<f64> = floats.iter().map(|value| value.ln()).collect();
            Answer::F64((exact_sum(&logs) / n).exp())
        }
    }
}

/// Floats may differ by rounding; `weight` is Σ|x|, what a sum's own error grows with.
pub fn agrees(spec: &AggSpec, got: &Answer<i64>, want: &Answer<i64>, weight: f64) -> bool {
    let (Answer::F64(a), Answer::F64(b)) = (got, want) else {
        return format!("{got:?}") == format!("{want:?}");
    };
    let slack = match spec.kind {
        Kind::Sum | Kind::Mean => b.abs() * 2_f64.powi(-51) + weight * 2_f64.powi(-90),
        Kind::Variance | Kind::Stddev | Kind::GeometricMean => b.abs() * 1e-13 + 1e-300,
        _ => 0.0,
    };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= slack
}
