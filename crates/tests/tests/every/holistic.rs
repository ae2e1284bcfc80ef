//! Windows of holistic aggregations, against their definition: every value sorted anew.

use crate::common::Random;
use crate::common::holistic::{cell, kinds, specs};
use crate::common::script::seeds;
use slidewise_core::aggregate::column::{Column, Values};
use slidewise_core::aggregate::holistic::Quantile;
use slidewise_core::aggregate::{Cell, DType, Kind};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::Ties;
use slidewise_core::window::planned::algorithm::Algorithm;
use slidewise_core::window::planned::any::AnyWindow;
use slidewise_core::window::planned::plain::window;

type Any = Box<dyn AnyWindow<i64>>;

fn answers(window: &mut Any, range: Option<(i64, i64)>) -> Vec<String> {
    let mut out = Vec::new();
    match range {
        None => window.query(&mut out),
        Some((lo, hi)) => window.query_range(lo, hi, &mut out).expect("any range"),
    }
    out.iter().map(|answer| format!("{answer:?}")).collect()
}

fn items(window: &mut Any) -> Vec<String> {
    let mut items = Vec::new();
    window.for_each(&mut |time, answers| items.push(format!("{time} {answers:?}")));
    items
}

fn restored(window: &Any, empty: Any) -> Any {
    let mut out = Writer::default();
    window.write(&mut out);
    let bytes = out.finish().expect("numbers have bytes");
    let mut copy = empty;
    copy.read(&mut Reader::new(&bytes))
        .expect("what was written");
    copy
}

/// The same call on both; the results must agree.
fn step(random: &mut Random, pair: &mut [Any; 2], dtype: DType, spread: u64, span: u64) {
    let time = random.below(span) as i64;
    let reprs: Vec<String> = match random.below(16) {
        0..=6 => {
            let row = [cell(random, dtype, spread)];
            let insert = |window: &mut Any| format!("{:?}", window.insert(time, &row));
            pair.iter_mut().map(insert).collect()
        }
        7 => {
            let count = random.below(40) as usize;
            let times: Vec<i64> = (0..count).map(|_| random.below(span) as i64).collect();
            let cells: Vec<Cell<i64>> = (0..count).map(|_| cell(random, dtype, spread)).collect();
            let columns = [Column {
                values: Values::Cells(&cells),
                validity: None,
            }];
            let insert =
                |window: &mut Any| format!("{:?}", window.insert_many(times.clone(), &columns));
            pair.iter_mut().map(insert).collect()
        }
        8..=10 => pair
            .iter_mut()
            .map(|window| format!("{:?}", window.evict()))
            .collect(),
        11..=12 => {
            let evict = |window: &mut Any| format!("{:?}", window.evict_at(time));
            pair.iter_mut().map(evict).collect()
        }
        13 if random.below(4) == 0 => {
            let evict = |window: &mut Any| format!("{}", window.evict_until(time));
            pair.iter_mut().map(evict).collect()
        }
        13 => Vec::new(),
        _ => {
            let range = (time, time + random.below(span) as i64);
            let answer = |window: &mut Any| format!("{:?}", answers(window, Some(range)));
            pair.iter_mut().map(answer).collect()
        }
    };
    assert!(reprs.windows(2).all(|two| two[0] == two[1]), "{reprs:?}");
}

#[test]
fn windows_answer_as_their_values_sorted_anew() {
    for seed in seeds(1) {
        let mut random = Random(seed);
        let dtype = random.pick(&[DType::I64, DType::F64]);
        let ties = random.pick(&[Ties::Combine, Ties::Keep]);
        let (spread, span) = (random.pick(&[4, 1 << 40]), random.pick(&[12, 400, 1 << 50]));
        let mut kinds = kinds();
        if random.below(2) == 0 {
            kinds.retain(|kind| kind.is_holistic());
        }
        let make = |algorithm| -> Any { window(algorithm, &specs(&kinds), &[dtype], ties) };
        let mut pair = [make(Algorithm::Fiba), make(Algorithm::Recalculate)];
        for count in 0..400 {
            step(&mut random, &mut pair, dtype, spread, span);
            let [fiba, oracle] = &mut pair;
            assert_eq!(fiba.len(), oracle.len(), "seed {seed}");
            assert_eq!(fiba.oldest(), oracle.oldest());
            assert_eq!(fiba.youngest(), oracle.youngest());
            let expected = answers(oracle, None);
            assert_eq!(answers(fiba, None), expected, "seed {seed}, step {count}");
            fiba.check()
                .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            if count % 50 == 0 {
                assert_eq!(items(fiba), items(oracle));
                let mut copy = restored(fiba, make(Algorithm::Fiba));
                assert_eq!(answers(&mut copy, None), expected);
                assert_eq!(items(&mut copy), items(fiba));
                *fiba = copy;
            }
        }
        pair.iter_mut().for_each(|window| window.clear());
        assert_eq!(answers(&mut pair[0], None), answers(&mut pair[1], None));
    }
}

#[test]
fn a_value_that_no_float_has_is_damage() {
    let median = Kind::Quantile(Quantile::parse("0.5 linear").expect("one"));
    let mut ints: Any = window(
        Algorithm::Fiba,
        &specs(&[median]),
        &[DType::I64],
        Ties::Keep,
    );
    ints.insert(1, &[Cell::I64(i64::MAX - 1)])
        .expect("any order");
    let mut out = Writer::default();
    ints.write(&mut out);
    let bytes = out.finish().expect("bytes");
    let mut floats: Any = window(
        Algorithm::Fiba,
        &specs(&[median]),
        &[DType::F64],
        Ties::Keep,
    );
    let read = floats.read(&mut Reader::new(&bytes));
    assert!(read.is_err_and(|why| why.0.contains("of its type")));
}
