//! Decays and areas, beside the monoid.

use crate::aggregate::column::{Column, Validity, Values};
use crate::aggregate::decay::{Decayed, HalfLife};
use crate::aggregate::{AggSpec, Kind};
use crate::rolling::{Closed, Length, Output, Request, Span, rolling};

const ROWS: usize = 500;

fn floats(output: &Output) -> Vec<Option<f64>> {
    let Output::F64 { values, valid } = output else {
        panic!("{output:?}");
    };
    let there = |row: usize| valid.bytes[row / 8] >> (row % 8) & 1 == 1;
    let rows = values.iter().enumerate();
    rows.map(|(row, value)| there(row).then_some(*value))
        .collect()
}

fn random() -> impl FnMut(u64) -> u64 {
    let mut state = 7_u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    }
}

/// Times with peers, and gaps beyond any half-life.
fn times(next: &mut impl FnMut(u64) -> u64) -> Vec<i64> {
    let mut now = -5_000;
    let mut later = || {
        now += next(20) as i64 * if next(100) == 0 { 1 << 40 } else { 1 };
        now
    };
    (0..ROWS).map(|_| later()).collect()
}

fn aggs() -> Vec<AggSpec> {
    let halves = [(60, 1), (1, 1), (90_000, 1), (7, 1_000)];
    let halves = halves.map(|(length, tick)| HalfLife::Time { length, tick });
    let halves = halves.into_iter().chain([1, 12].map(HalfLife::Rows));
    let whats = [Decayed::Sum, Decayed::Count, Decayed::Mean];
    let dated = false;
    let decayed = |what, half_life| Kind::Decayed {
        what,
        half_life,
        dated,
    };
    let decays = halves.flat_map(|half_life| whats.map(|what| decayed(what, half_life)));
    let areas = [false, true].map(|linear| Kind::Area { linear, dated });
    let agg = |kind| AggSpec {
        kind,
        of: Some(0),
        by: Some(1),
        ddof: 0,
    };
    decays.chain(areas).map(agg).collect()
}

fn spans() -> [Span; 4] {
    let spans = [
        Length::Time(1),
        Length::Time(50),
        Length::Time(900),
        Length::Time(i64::MAX),
    ];
    spans.map(|length| Span {
        length,
        closed: Closed::Right,
        offset: 0,
    })
}

/// The answers of the kernel are those of the monoid, which answers rows with an order of
/// arrival, up to their rounding.
fn check(values: &[f64], [times, by]: [&[i64]; 2], there: impl Fn(usize) -> bool) {
    let mut bits = vec![0_u8; ROWS.div_ceil(8)];
    (0..ROWS)
        .filter(|row| there(*row))
        .for_each(|row| bits[row / 8] |= 1 << (row % 8));
    let (offset, bits) = (0, &bits[..]);
    let validity = Some(Validity { bits, offset });
    let (aggs, spans) = (aggs(), spans());
    let magnitudes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    let answers = |values: &[f64], arrival| {
        let columns = [Values::F64(values), Values::I64(by)];
        let columns = columns.map(|values| Column { values, validity });
        let request = Request {
            arrival,
            ..Request::new(times, &columns, &aggs, &spans)
        };
        rolling(request, &mut || true).expect("floats do not overflow")
    };
    let found = answers(values, None);
    let wanted = answers(values, Some(times));
    let scales = answers(&magnitudes, Some(times));
    for (span, of_span) in found.iter().enumerate() {
        for (agg, output) in of_span.iter().enumerate() {
            // With a half-life in rows the monoid rounds a weight per combine.
            let rows = matches!(
                aggs[agg].kind,
                Kind::Decayed {
                    half_life: HalfLife::Rows(_),
                    ..
                }
            );
            let rounding = 2_f64.powi(if rows { -44 } else { -50 });
            let [wanted, scales] = [&wanted, &scales].map(|all| floats(&all[span][agg]));
            let all = floats(output).into_iter().zip(wanted).zip(scales);
            for (row, ((found, wanted), scale)) in all.enumerate() {
                let near = |(a, b): (f64, f64)| {
                    let bound = scale.unwrap_or(0.0) * rounding;
                    a == b || (a - b).abs() <= bound || (a.is_nan() && b.is_nan())
                };
                assert!(
                    found == wanted || found.zip(wanted).is_some_and(near),
                    "{:?} {:?} {row}: {found:?} {wanted:?}",
                    spans[span],
                    aggs[agg].kind
                );
            }
        }
    }
}

#[test]
fn answers_are_those_of_the_monoid() {
    let mut next = random();
    let times = times(&mut next);
    let values: Vec<f64> = (0..ROWS)
        .map(|row| match (row / 70, next(30)) {
            (3, 0) => f64::INFINITY,
            (3, 1) => f64::NEG_INFINITY,
            (4, 0) => f64::NAN,
            (5, 0..9) => 1e270,
            _ => next(1 << 40) as f64 / 1e6 - 3e5,
        })
        .collect();
    let there = |row: usize| row % 7 != 3 && !(350..380).contains(&row);
    check(&values, [&times, &times], there);
    check(&values[..], [&times, &times], |_| true);
}

#[test]
fn great_values_without_weight_are_zero() {
    let mut next = random();
    let times = times(&mut next);
    let values: Vec<f64> = (0..ROWS)
        .map(|_| if next(9) == 0 { 1e300 } else { 0.0 })
        .collect();
    check(&values, [&times, &times], |row| row % 3 != 0);
}

#[test]
fn times_of_another_order_are_left_to_the_monoid() {
    let mut next = random();
    let times = times(&mut next);
    let values: Vec<f64> = (0..ROWS).map(|_| next(1_000) as f64).collect();
    let by: Vec<i64> = (0..ROWS).map(|_| next(1_000) as i64 - 500).collect();
    check(&values, [&times, &by], |row| row % 3 != 0);
    let far: Vec<i64> = times
        .iter()
        .map(|time| i64::MAX - 1 - time.abs() % 5)
        .collect();
    check(&values, [&far, &far], |_| true);
}
