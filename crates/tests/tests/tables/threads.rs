//! The answers are the same to the last bit for any number of threads.

use crate::common::Random;
use crate::common::script::{DEFAULT, seeds};
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::sketch::SketchRequest;
use slidewise_core::aggregate::{AggSpec, Kind};
use slidewise_core::rolling::{Closed, Error, Length, Output, QueryPoints, Request, Span, rolling};

/// Enough rows for two threads, for any requested number.
const ROWS: usize = 33_000;

/// Aggregations of every code path: kernels, monoids, lists, counted values.
const KINDS: [Kind; 15] = [
    Kind::Sum,
    Kind::Slope,
    Kind::Covariance,
    Kind::Mean,
    Kind::Count,
    Kind::Max,
    Kind::Stddev,
    Kind::First,
    Kind::Last,
    Kind::Skewness,
    Kind::GeometricMean,
    Kind::TopK { k: 3 },
    Kind::CountDistinct,
    Kind::Mode,
    Kind::Sketch(SketchRequest::Bloom {
        bits: 64,
        hashes: 2,
    }),
];

struct Table {
    times: Vec<i64>,
    groups: Vec<u32>,
    arrival: Vec<i64>,
    floats: Vec<f64>,
    integers: Vec<i64>,
    bits: Vec<u8>,
}

impl Table {
    fn new(random: &mut Random, groups: u64, sorted: bool) -> Self {
        let mut times: Vec<i64> = (0..ROWS).map(|_| random.below(1 << 20) as i64).collect();
        if sorted {
            times.sort_unstable();
        }
        let mut below =
            |limit: u64| -> Vec<i64> { (0..ROWS).map(|_| random.below(limit) as i64).collect() };
        let late = below(1 << 12);
        Self {
            groups: below(groups).iter().map(|code| *code as u32).collect(),
            arrival: times
                .iter()
                .zip(late)
                .map(|(time, late)| time + late)
                .collect(),
            times,
            floats: below(1 << 50)
                .iter()
                .map(|value| *value as f64 * 1e-7)
                .collect(),
            integers: below(1 << 40),
            bits: below(256).iter().map(|byte| *byte as u8).collect(),
        }
    }

    fn columns(&self) -> [Column<'_, i64>; 2] {
        let validity = Some(Validity {
            bits: &self.bits,
            offset: 3,
        });
        [
            Column {
                values: Values::F64(&self.floats),
                validity: None,
            },
            Column {
                values: Values::I64(&self.integers),
                validity,
            },
        ]
    }
}

fn aggs() -> Vec<AggSpec> {
    let agg = |(at, kind)| AggSpec {
        kind,
        of: Some(at / 2 % 2),
        by: matches!(kind, Kind::Slope | Kind::Covariance).then_some((at / 2 + 1) % 2),
        ddof: 1,
    };
    KINDS.into_iter().enumerate().map(agg).collect()
}

fn span(length: Length, offset: i64) -> Span {
    Span {
        length,
        closed: Closed::Right,
        offset,
    }
}

/// With floats as their bits, so that NaN equals itself.
fn bits(outputs: &[Vec<Output>]) -> Vec<(Vec<u64>, Vec<u8>)> {
    let bits = |output: &Output| match output {
        Output::I64 { values, valid, .. } => {
            let words = values.iter().map(|value| *value as u64);
            (words.collect(), valid.bytes.clone())
        }
        Output::F64 { values, valid } => {
            let words = values.iter().map(|value| value.to_bits());
            (words.collect(), valid.bytes.clone())
        }
        Output::List { ranges, values, .. } => {
            let lists = ranges.iter().map(|(from, to)| &values[*from..*to]);
            let words = lists.flat_map(|list| [&[list.len() as u64], list].concat());
            (words.collect(), Vec::new())
        }
        Output::Bytes { ranges, values } => {
            let blobs = ranges.iter().map(|(from, to)| &values[*from..*to]);
            let bytes = blobs.flat_map(|blob| [&[blob.len() as u8], blob].concat());
            (Vec::new(), bytes.collect())
        }
    };
    outputs.iter().flatten().map(bits).collect()
}

fn answers_do_not_depend_on_the_number_of_threads(groups: u64, sorted: bool) {
    let mut random = Random(20);
    let table = Table::new(&mut random, groups, sorted);
    let (columns, all) = (table.columns(), aggs());
    // Every other aggregation, by the seed of the day.
    let mut day = Random(seeds(DEFAULT).next().expect("a seed"));
    let aggs: Vec<AggSpec> = all
        .into_iter()
        .skip(day.below(2) as usize)
        .step_by(2)
        .collect();
    let spans = [
        span(Length::Time(2_000), 0),
        span(Length::Rows(7), 0),
        span(Length::Time(300), 5),
    ];
    let queried = Table::new(&mut random, groups + 3, sorted);
    let at = QueryPoints {
        times: &queried.times,
        since: None,
        groups: Some(&queried.groups),
        arrival: None,
        own: None,
        leaves_out: false,
    };
    let arrived = QueryPoints {
        arrival: Some(&queried.arrival),
        ..at
    };
    let whole = Request {
        groups: Some(&table.groups),
        ..Request::new(&table.times, &columns, &aggs, &spans)
    };
    let arrival = Some(&table.arrival[..]);
    let among = Request {
        at: Some(at),
        spans: &spans[2..],
        ..whole
    };
    let by_arrival = Request {
        arrival,
        spans: &spans[1..2],
        ..whole
    };
    let among_arrived = Request {
        arrival,
        at: Some(arrived),
        aggs: &aggs[..4],
        spans: &spans[..1],
        ..whole
    };
    // As many threads as there are blocks large enough, and more.
    for (request, threads) in [(whole, 5), (among, 5), (by_arrival, 2), (among_arrived, 5)] {
        let one = rolling(request, &mut || true).unwrap();
        let many = rolling(Request { threads, ..request }, &mut || true).unwrap();
        assert!(
            bits(&one) == bits(&many),
            "{groups} groups, {threads} threads"
        );
    }
}

#[test]
fn threads_share_one_group() {
    answers_do_not_depend_on_the_number_of_threads(1, true);
}

#[test]
fn threads_share_few_groups() {
    answers_do_not_depend_on_the_number_of_threads(3, false);
}

#[test]
fn threads_share_many_groups() {
    answers_do_not_depend_on_the_number_of_threads(700, true);
}

#[test]
fn threads_share_groups_of_few_rows() {
    answers_do_not_depend_on_the_number_of_threads(8_000, false);
}

#[test]
fn an_overflow_names_its_row_and_span() {
    let mut random = Random(21);
    let mut table = Table::new(&mut random, 500, true);
    table.integers[ROWS - 1] = 1 << 62;
    table.integers[ROWS - 2] = 1 << 62;
    table.groups[ROWS - 1] = 77;
    table.groups[ROWS - 2] = 77;
    let columns = [Column {
        values: Values::I64(&table.integers),
        validity: None,
    }];
    let sum = AggSpec {
        kind: Kind::Sum,
        of: Some(0),
        by: None,
        ddof: 0,
    };
    let spans = [span(Length::Rows(1), 0), span(Length::Rows(2), 0)];
    for threads in [1, 2, 4] {
        let aggs = [sum];
        let request = Request {
            groups: Some(&table.groups),
            threads,
            ..Request::new(&table.times, &columns, &aggs, &spans)
        };
        let Err(Error::Overflow { span, row, .. }) = rolling(request, &mut || true) else {
            panic!("twice 2^62 does not fit int64");
        };
        assert_eq!((span, row), (1, ROWS - 1), "{threads} threads");
    }
}

#[test]
fn history_is_seen_and_not_answered() {
    let mut random = Random(23);
    let mut table = Table::new(&mut random, 1, true);
    for (row, group) in table.groups.iter_mut().enumerate() {
        *group = (row * 50 / ROWS) as u32;
    }
    const HISTORY: usize = 10_000;
    // The sums of the history would not fit, and are not answered.
    table.integers[100] = i64::MAX;
    table.integers[101] = i64::MAX;
    let columns = [Column {
        values: Values::I64(&table.integers),
        validity: None,
    }];
    let aggs = [Kind::Sum, Kind::CountDistinct].map(|kind| AggSpec {
        kind,
        of: Some(0),
        by: None,
        ddof: 0,
    });
    let spans = [span(Length::Rows(20), 0)];
    let answered = |history, threads| {
        let request = Request {
            groups: Some(&table.groups),
            history,
            threads,
            ..Request::new(&table.times, &columns, &aggs, &spans)
        };
        rolling(request, &mut || true).map(|answers| {
            let Output::I64 { values, .. } = &answers[0][0] else {
                panic!("sums of integers are integers");
            };
            values[HISTORY..].to_vec()
        })
    };
    let one = answered(HISTORY, 1).expect("the request fits");
    for threads in [2, 5] {
        assert_eq!(answered(HISTORY, threads).as_ref(), Ok(&one), "{threads}");
        assert!(answered(0, threads).is_err(), "{threads}");
    }
}

#[test]
fn a_no_stops_every_thread() {
    let mut random = Random(22);
    let table = Table::new(&mut random, 500, true);
    let (columns, aggs) = (table.columns(), aggs());
    let spans = [span(Length::Time(2_000), 0)];
    let request = Request {
        groups: Some(&table.groups),
        threads: 3,
        ..Request::new(&table.times, &columns, &aggs, &spans)
    };
    let mut queried = 0;
    let answer = rolling(request, &mut || {
        queried += 1;
        queried < 5
    });
    assert_eq!(answer, Err(Error::Interrupted));
}
