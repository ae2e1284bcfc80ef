//! Every aggregation against its definition, computed from the raw rows: alone and
//! together, on fiba and recalculate, with nulls, NaN, infinities and extremes.

use crate::common::Random;
use crate::common::definition::{Row, agrees, by_definition, number};
use crate::common::script::seeds;
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::record::{Record, RecordPlan};
use slidewise_core::aggregate::{AggSpec, Aggregation, Answer, Cell, DType, Kind};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::Ties;
use slidewise_core::window::planned::algorithm::Algorithm;
use slidewise_core::window::planned::plain;

fn pairs() -> Vec<AggSpec> {
    let of = |kind, ddof| AggSpec {
        kind,
        of: Some(0),
        by: Some(1),
        ddof,
    };
    vec![
        of(Kind::Covariance, 0),
        of(Kind::Covariance, 1),
        of(Kind::Correlation, 1),
        of(Kind::WeightedMean, 1),
        of(Kind::Slope, 1),
        of(Kind::Intercept, 1),
        of(Kind::RSquared, 1),
        of(Kind::Rate, 1),
    ]
}

fn specs() -> Vec<AggSpec> {
    let of = |(_, kind)| AggSpec {
        kind,
        of: Some(0),
        by: Some(1),
        ddof: 1,
    };
    let kinds = Kind::ALL
        .into_iter()
        .filter(|(_, kind)| !kind.is_of_pairs() && !kind.is_of_gaps());
    let mut specs: Vec<AggSpec> = kinds.map(of).collect();
    specs.push(AggSpec {
        of: None,
        ..specs[0]
    });
    for k in [1, 3, 20] {
        specs.push(of(("", Kind::TopK { k })));
        specs.push(of(("", Kind::BottomK { k })));
        specs.push(of(("", Kind::Lag { k })));
        specs.push(of(("", Kind::FirstK { k })));
        specs.push(of(("", Kind::LastK { k })));
        specs.push(of(("", Kind::LastDistinct { k })));
        specs.push(of(("", Kind::TopKBy { k })));
        specs.push(of(("", Kind::BottomKBy { k })));
    }
    let edges = Kind::parse("histogram -1e16 -1 0.25 1 1e15", 0);
    specs.push(of(("", edges.expect("edges that ascend"))));
    for kind in [Kind::Skewness, Kind::Kurtosis] {
        specs.push(AggSpec {
            ddof: 0,
            ..of(("", kind))
        });
    }
    for ddof in [0, 2] {
        specs.push(AggSpec {
            ddof,
            ..of(("", Kind::Variance))
        });
        specs.push(AggSpec {
            ddof,
            ..of(("", Kind::Stddev))
        });
    }
    specs
}

fn cell(random: &mut Random, dtype: DType, palette: u64) -> Cell<i64> {
    if random.below(6) == 0 {
        return Cell::Null;
    }
    let small = random.below(9) as i64 - 4;
    match (dtype, palette) {
        (DType::F64, 0) => Cell::F64(small as f64 / 4.0),
        (DType::F64, 1) => Cell::F64(random.pick(&[1e16, -1e16, 1.0, 1e-9, 0.1, 3e15])),
        (DType::F64, 2) => Cell::F64(1e9 + random.below(1000) as f64 / 1000.0),
        (DType::F64, 3) => Cell::F64(random.pick(&[0.0, -0.0])),
        (DType::F64, _) if random.below(4) > 0 => Cell::F64(small as f64),
        (DType::F64, _) => Cell::F64(random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY])),
        (_, 0 | 3) => Cell::I64(small),
        (_, 1) => Cell::I64(1_000_000_007 + small),
        _ => Cell::I64(random.pick(&[i64::MIN, i64::MAX, i64::MIN + 1, -1, 0, 1])),
    }
}

// -- windows -------------------------------------------------------------------------

fn bits(cells: &[&Cell<i64>]) -> Option<Vec<u8>> {
    let mut bits = vec![0; cells.len().div_ceil(8)];
    for (at, cell) in cells.iter().enumerate() {
        bits[at / 8] |= u8::from(**cell != Cell::Null) << (at % 8);
    }
    cells.contains(&&Cell::Null).then_some(bits)
}

/// Calls `then` with the rows as typed columns.
fn with_columns(rows: &[Row], dtype: DType, count: usize, then: impl FnOnce(&[Column<'_, i64>])) {
    let cells = |col: usize| rows.iter().map(|row| &row[col]).collect::<Vec<_>>();
    let columns = [cells(0), cells(1)];
    let words = columns
        .each_ref()
        .map(|c| c.iter().map(|c| c.bits().unwrap_or(0)).collect::<Vec<_>>());
    let ints = words
        .each_ref()
        .map(|c| c.iter().map(|w| *w as i64).collect::<Vec<_>>());
    let floats = words
        .each_ref()
        .map(|c| c.iter().map(|w| f64::from_bits(*w)).collect::<Vec<_>>());
    let masks = columns.each_ref().map(|c| bits(c));
    let column = |col: usize| Column {
        values: if dtype == DType::F64 {
            Values::F64(&floats[col])
        } else {
            Values::I64(&ints[col])
        },
        validity: masks[col].as_ref().map(|bits| Validity { bits, offset: 0 }),
    };
    then(&[column(0), column(1)][..count]);
}

fn follows_definition(aggs: &[AggSpec], dtype: DType, seed: u64) {
    let mut random = Random(seed);
    let ties = random.pick(&[Ties::Keep, Ties::Combine]);
    let algorithm = random.pick(&[Algorithm::Fiba, Algorithm::Fiba, Algorithm::Recalculate]);
    let (palette, spread) = (random.below(5), random.pick(&[20, 1000]));
    let needs_by = aggs.iter().any(|agg| agg.kind.takes_by());
    let paired = aggs.iter().any(|agg| agg.kind.is_of_pairs());
    let gaps = aggs.iter().any(|agg| agg.kind.is_of_gaps());
    let dtypes = vec![dtype; 1 + usize::from(needs_by)];
    let mut window = plain::window::<i64>(algorithm, aggs, &dtypes, ties);
    let mut model: Vec<(i64, Row)> = Vec::new();
    for step in 0..30 {
        let row = |random: &mut Random| -> (i64, Row) {
            let time = step * 40 + random.below(spread) as i64;
            let mut row = [0; 2].map(|_| cell(random, dtype, palette));
            if gaps && row[0] != Cell::Null {
                row[0] = Cell::I64(time);
            }
            if paired && row.contains(&Cell::Null) {
                row = [Cell::Null, Cell::Null];
            }
            (time, row)
        };
        let (time, one) = row(&mut random);
        match random.below(8) {
            0..3 => {
                window
                    .insert(time, &one[..dtypes.len()])
                    .expect("any order");
                model.push((time, one));
            }
            3..5 => {
                let count = random.pick(&[0, 1, 17, 90]);
                let rows: Vec<(i64, Row)> = (0..count).map(|_| row(&mut random)).collect();
                let values: Vec<Row> = rows.iter().map(|row| row.1.clone()).collect();
                with_columns(&values, dtype, dtypes.len(), |columns| {
                    let times = rows.iter().map(|row| row.0).collect();
                    window.insert_many(times, columns).expect("any order");
                });
                model.extend(rows);
            }
            5 => {
                let gone = window.evict();
                assert_eq!(gone, model.first().map(|row| row.0));
                let kept = usize::from(ties == Ties::Keep && gone.is_some());
                model.drain(..kept);
                model.retain(|row| kept == 1 || Some(row.0) != gone);
            }
            6 => {
                window.evict_until(time - spread as i64);
                model.retain(|row| row.0 > time - spread as i64);
            }
            _ => {
                let mut out = Writer::default();
                window.write(&mut out);
                let bytes = out.finish().expect("numbers have a binary form");
                window = plain::window(algorithm, aggs, &dtypes, ties);
                window.read(&mut Reader::new(&bytes)).expect("just written");
            }
        }
        model.sort_by_key(|row| row.0);
        for (lo, hi) in [(i64::MIN, i64::MAX), (time - 30, time + 30)] {
            let mut got = Vec::new();
            if lo == i64::MIN {
                window.query(&mut got);
            } else {
                let part = window.query_range(lo, hi, &mut got);
                part.expect("answers parts");
            }
            let inside = model.iter().filter(|row| lo <= row.0 && row.0 <= hi);
            let rows: Vec<Row> = inside.map(|row| row.1.clone()).collect();
            let weight = rows.iter().flatten().filter_map(number).map(f64::abs).sum();
            for (spec, got) in aggs.iter().zip(&got) {
                let want = by_definition(spec, &rows, dtype);
                let case =
                    || format!("{spec:?} {dtype:?} {algorithm:?} {ties:?} seed {seed} step {step}");
                assert!(
                    agrees(spec, got, &want, weight),
                    "{}: {got:?}, not {want:?}",
                    case()
                );
            }
        }
    }
    window.check().expect("invariants hold");
}

#[test]
fn each_alone() {
    for (index, spec) in specs().into_iter().enumerate() {
        for seed in seeds(1) {
            follows_definition(&[spec], DType::I64, seed << 8 | index as u64);
            follows_definition(&[spec], DType::F64, seed << 8 | index as u64);
        }
    }
}

#[test]
fn pairs_of_columns() {
    for seed in seeds(3) {
        for dtype in [DType::I64, DType::F64] {
            follows_definition(&pairs(), dtype, seed);
        }
    }
}

#[test]
fn gaps_between_times() {
    let kinds = Kind::ALL.into_iter().map(|(_, kind)| kind);
    let mut aggs: Vec<AggSpec> = kinds
        .filter(|kind| kind.is_of_gaps())
        .map(|kind| AggSpec {
            kind,
            of: Some(0),
            by: None,
            ddof: 1,
        })
        .collect();
    aggs.push(AggSpec {
        kind: Kind::StddevGap,
        ddof: 0,
        ..aggs[0]
    });
    for seed in seeds(20) {
        follows_definition(&aggs, DType::I64, seed);
    }
}

#[test]
fn several_at_once() {
    let all = specs();
    let numbers: Vec<AggSpec> = all
        .iter()
        .filter(|spec| spec.kind != Kind::Collect)
        .copied()
        .collect();
    for seed in seeds(2) {
        for aggs in [&all, &numbers, &numbers[4..8], &numbers[10..14]] {
            follows_definition(aggs, DType::I64, seed);
            follows_definition(aggs, DType::F64, seed);
        }
    }
}

// -- laws ----------------------------------------------------------------------------

type Wide = Record<Box<[u64]>, Box<[u64]>>;

#[test]
fn records_are_monoids_and_fold_as_they_combine() {
    let aggs: Vec<AggSpec> = specs()
        .into_iter()
        .filter(|spec| spec.kind != Kind::Collect)
        .collect();
    for seed in 0..600 {
        let mut random = Random(seed);
        let dtype = random.pick(&[DType::I64, DType::F64]);
        let (record, palette) = (
            Wide::new(RecordPlan::new(&aggs, &[dtype; 2])),
            random.below(5),
        );
        let lowered = |partial: &_| {
            let mut out: Vec<Answer<i64>> = Vec::new();
            record.answers(partial, &mut out);
            out
        };
        let entries: Vec<Entry<Wide>> = (0..30)
            .map(|_| {
                record.entry(&[
                    cell(&mut random, dtype, palette),
                    cell(&mut random, dtype, palette),
                ])
            })
            .collect();
        let parts: Vec<Box<[u64]>> = entries.iter().map(|entry| entry.partial(&record)).collect();
        let fold = |parts: &[Box<[u64]>]| {
            parts
                .iter()
                .fold(record.identity(), |acc, part| record.combine(&acc, part))
        };
        let (a, b, c) = (fold(&parts[..7]), fold(&parts[7..9]), fold(&parts[9..]));
        let left = record.combine(&record.combine(&a, &b), &c);
        let right = record.combine(&a, &record.combine(&b, &c));
        assert!(record.same(&left, &right), "seed {seed}");
        for one in [
            record.combine(&a, &record.identity()),
            record.combine(&record.identity(), &a),
        ] {
            assert_eq!(
                format!("{:?}", lowered(&one)),
                format!("{:?}", lowered(&a)),
                "seed {seed}"
            );
        }
        let raw = |entry: &Entry<Wide>| match entry {
            Entry::Raw(value) => Some(value.clone()),
            Entry::Lifted(_) => None,
        };
        let run: Vec<Box<[u64]>> = entries.iter().filter_map(raw).collect();
        let lifted: Vec<Box<[u64]>> = run.iter().map(|value| record.lift(value)).collect();
        let (folded, combined) = (lowered(&record.fold(&run)), lowered(&fold(&lifted)));
        for ((spec, got), want) in aggs.iter().zip(&folded).zip(&combined) {
            assert!(
                agrees(spec, got, want, 0.0),
                "{spec:?} seed {seed}: {got:?}, not {want:?}"
            );
        }
    }
}

#[test]
fn objects_count_beside_a_missing_number() {
    let kinds = [(Kind::Count, 0), (Kind::Sum, 1)];
    let aggs = kinds.map(|(kind, col)| AggSpec {
        kind,
        of: Some(col),
        by: None,
        ddof: 0,
    });
    let dtypes = [DType::Object, DType::I64];
    let mut window = plain::window::<i64>(Algorithm::Fiba, &aggs, &dtypes, Ties::Combine);
    window
        .insert(1, &[Cell::Object(7), Cell::Null])
        .expect("any order");
    window
        .insert(2, &[Cell::Object(7), Cell::I64(3)])
        .expect("any order");
    let mut answers = Vec::new();
    window.query(&mut answers);
    assert_eq!(answers, [Answer::I64(2), Answer::I64(3)]);
}
