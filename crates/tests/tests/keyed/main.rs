//! The store of many keys against the kernels of tables: whatever order rows came in, the
//! answers are those over all rows so far.

#[path = "../common/mod.rs"]
mod common;
mod folded;
mod numbered;
mod readers;

use std::collections::HashMap;

use common::Random;
use common::script::seeds;
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::{AggSpec, DType, Kind};
use slidewise_core::keyed::{
    EntryList, KeyColumn, NumberColumns, Points, Results, Spans, Store, store,
};
use slidewise_core::rolling::{
    Closed, Length, Output, Overflow, QueryPoints, Request, Span, rolling,
};

/// Rows of all keys, in order of arrival.
#[derive(Clone, Default)]
struct Rows {
    keys: Vec<u32>,
    times: Vec<i64>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    /// A bit for each int that is there.
    valid: Vec<u8>,
}

impl Rows {
    fn push(&mut self, key: u32, time: i64, int: Option<i64>, float: f64) {
        let row = self.times.len();
        if row.is_multiple_of(8) {
            self.valid.push(0);
        }
        self.valid[row / 8] |= u8::from(int.is_some()) << (row % 8);
        self.keys.push(key);
        self.times.push(time);
        self.ints.push(int.unwrap_or(0));
        self.floats.push(float);
    }

    fn columns(&self) -> [Column<'_, i64>; 2] {
        [
            Column {
                values: Values::I64(&self.ints),
                validity: Some(Validity {
                    bits: &self.valid,
                    offset: 0,
                }),
            },
            Column {
                values: Values::F64(&self.floats),
                validity: None,
            },
        ]
    }

    fn to_insert<'a>(
        &self,
        keys: &'a Keys,
        columns: &'a [Column<'a, i64>],
        numbers: &'a [i64],
    ) -> slidewise_core::keyed::Rows<'a> {
        slidewise_core::keyed::Rows {
            keys: keys.view(),
            times: self.times.clone(),
            columns,
            numbers,
        }
    }

    fn extend(&mut self, other: &Self) {
        for row in 0..other.times.len() {
            let valid = other.valid[row / 8] >> (row % 8) & 1 == 1;
            let int = valid.then_some(other.ints[row]);
            self.push(other.keys[row], other.times[row], int, other.floats[row]);
        }
    }
}

/// Keys of different lengths, as bytes.
struct Keys {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Keys {
    fn of(keys: &[u32]) -> Self {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for key in keys {
            let width = *key as usize % 3 * 20;
            bytes.extend(format!("key {:0>width$}", key * 37).into_bytes());
            offsets.push(bytes.len());
        }
        Self { bytes, offsets }
    }

    fn view(&self) -> KeyColumn<'_> {
        KeyColumn {
            bytes: &self.bytes,
            offsets: &self.offsets,
        }
    }

    /// Points at times of these keys.
    fn at<'a>(&'a self, times: &'a [i64], plus: Option<&'a [Column<'a, i64>]>) -> Points<'a> {
        Points {
            keys: self.view(),
            times,
            plus,
        }
    }
}

/// Inserts rows with the first `width` of their columns.
fn insert(store: &dyn Store, rows: &Rows, width: usize) {
    let (keys, columns) = (Keys::of(&rows.keys), rows.columns());
    let rows = rows.to_insert(&keys, &columns[..width], &[]);
    store.insert(EntryList::default(), rows);
}

fn agg(kind: Kind, of: usize) -> AggSpec {
    AggSpec {
        kind,
        of: Some(of),
        by: None,
        ddof: 1,
    }
}

/// Requests that are planned differently, the last of them revealing the order.
fn requests() -> Vec<(Vec<AggSpec>, Vec<DType>)> {
    let both = vec![DType::I64, DType::F64];
    let rows = AggSpec {
        of: None,
        ..agg(Kind::Count, 0)
    };
    vec![
        (vec![agg(Kind::Sum, 0)], vec![DType::I64]),
        (vec![agg(Kind::Max, 0)], vec![DType::I64]),
        (
            vec![rows, agg(Kind::Sum, 0), agg(Kind::Max, 1)],
            both.clone(),
        ),
        (
            vec![agg(Kind::Stddev, 1), agg(Kind::Mean, 0), agg(Kind::Min, 1)],
            both.clone(),
        ),
        (
            vec![agg(Kind::First, 1), agg(Kind::Last, 0), agg(Kind::Last, 1)],
            both.clone(),
        ),
        (vec![agg(Kind::Collect, 0)], vec![DType::I64]),
        (vec![agg(Kind::Collect, 1), rows, agg(Kind::Sum, 0)], both),
    ]
}

fn span(length: i64, closed: Closed, offset: i64) -> Span {
    Span {
        length: Length::Time(length),
        closed,
        offset,
    }
}

/// Whether floats are equal up to rounding, or neither is a number.
fn near(ours: &[f64], known: &[f64]) -> bool {
    let near = |(a, b): (&f64, &f64)| {
        (a - b).abs() <= 1e-12 * b.abs().max(1.0) || a.to_bits() == b.to_bits()
    };
    ours.len() == known.len() && ours.iter().zip(known).all(near)
}

fn same(ours: &Output, theirs: &Output) -> bool {
    match (ours, theirs) {
        (
            Output::F64 { values, valid },
            Output::F64 {
                values: known,
                valid: there,
            },
        ) => valid == there && near(values, known),
        (
            Output::List { ranges, values, .. },
            Output::List {
                ranges: places,
                values: known,
                ..
            },
        ) => {
            ranges.len() == places.len()
                && ranges
                    .iter()
                    .zip(places)
                    .all(|(a, b)| values[a.0..a.1] == known[b.0..b.1])
        }
        _ => ours == theirs,
    }
}

/// The answers of the table of all rows; rows that do not count are left out by the caller.
fn expected(
    rows: &Rows,
    (keys, times): (&[u32], &[i64]),
    aggs: &[AggSpec],
    spans: &[Span],
    width: usize,
) -> Vec<Vec<Output>> {
    let mut codes = HashMap::new();
    let mut code = |key: &u32| {
        let next = codes.len() as u32;
        *codes.entry(*key).or_insert(next)
    };
    let groups: Vec<u32> = rows.keys.iter().map(&mut code).collect();
    let queried: Vec<u32> = keys.iter().map(&mut code).collect();
    let columns = rows.columns();
    let request = Request {
        groups: Some(&groups),
        at: Some(QueryPoints {
            times,
            since: None,
            groups: Some(&queried),
            arrival: None,
            own: None,
            leaves_out: false,
        }),
        overflow: Overflow::Null,
        ..Request::new(&rows.times, &columns[..width], aggs, spans)
    };
    rolling(request, &mut || true).expect("answers")
}

fn compare(ours: &[Vec<Output>], theirs: &[Vec<Output>], what: &str) {
    for (span, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        for (agg, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            assert!(
                same(ours, theirs),
                "{what}, span {span}, aggregation {agg}: {ours:?} instead of {theirs:?}"
            );
        }
    }
}

/// The bits of a column of numbers that fit, and which are there; none for others.
fn bits_of(output: &Output) -> Option<Vec<Option<u64>>> {
    let (bits, valid): (Vec<u64>, _) = match output {
        Output::I64 { beyond, .. } if !beyond.is_empty() => return None,
        Output::I64 { values, valid, .. } => (values.iter().map(|v| *v as u64).collect(), valid),
        Output::F64 { values, valid } => (values.iter().map(|v| v.to_bits()).collect(), valid),
        _ => return None,
    };
    let there = |row: usize| valid.bytes[row / 8] >> (row % 8) & 1 == 1;
    let rows = bits.into_iter().enumerate();
    Some(rows.map(|(row, bits)| there(row).then_some(bits)).collect())
}

/// Numbers are those of the whole columns, to the last bit.
fn compare_numbers(ours: Option<NumberColumns>, theirs: &[Vec<Output>], what: &str) {
    let columns = theirs.iter().map(|of_span| of_span.iter().map(bits_of));
    let columns: Option<Vec<Vec<_>>> = columns.map(Iterator::collect).collect();
    let (Some(ours), Some(columns)) = (&ours, &columns) else {
        assert_eq!(ours.is_some(), columns.is_some(), "{what}");
        return;
    };
    for (span, columns) in columns.iter().enumerate() {
        for (agg, expected) in columns.iter().enumerate() {
            let column = ours.column(span, agg);
            let there = |row: usize| column.valid[row / 64] >> (row % 64) & 1 == 1;
            let rows = column.values.iter().enumerate();
            let found: Vec<Option<u64>> = rows
                .map(|(row, bits)| there(row).then_some(*bits))
                .collect();
            assert_eq!(&found, expected, "{what}, span {span}, aggregation {agg}");
        }
    }
}

/// A batch: mostly in order, some rows late, many of equal time.
fn batch(random: &mut Random, now: &mut i64, keys: u64, rows: u64) -> Rows {
    let mut batch = Rows::default();
    for _ in 0..rows {
        *now += random.below(3) as i64;
        let late = match random.below(10) {
            0 => random.below(200) as i64,
            1 => random.below(20) as i64,
            _ => 0,
        };
        let int = (random.below(8) > 0).then(|| random.below(1000) as i64 - 500);
        let key = random.below(keys).min(random.below(keys)) as u32;
        batch.push(key, *now - late, int, random.below(1 << 20) as f64);
    }
    batch
}

#[test]
fn answers_are_those_of_a_table() {
    for script in seeds(3) {
        let mut random = Random(script);
        let requests = requests();
        let (aggs, dtypes) = &requests[script as usize % requests.len()];
        let width = dtypes.len();
        let held = store(aggs, dtypes, false);
        let keys = 1 + random.below(20);
        // From keys of one entry to keys of three levels.
        let size = [3, 40, 400, 5000][random.below(4) as usize];
        let (mut all, mut now, mut until) = (Rows::default(), 1000, i64::MIN);
        for _ in 0..1 + random.below(6) {
            let rows = random.below(size);
            let rows = batch(&mut random, &mut now, keys, rows);
            insert(&*held, &rows, width);
            all.extend(&rows);
            if random.below(3) == 0 {
                until = until.max(now - 900);
                held.evict(until, 0);
            }
            held.check().expect("invariants");
            let closed = [Closed::Right, Closed::Left, Closed::Both, Closed::Neither];
            let mut any_span = || {
                let closed = closed[random.below(4) as usize];
                span(1 + random.below(300) as i64, closed, random.below(2) as i64)
            };
            let spans: Vec<Span> = (0..4).map(|_| any_span()).collect();
            // Many times of a key share folds.
            let count = [1, 10, 30, 64, 65, 1500][random.below(6) as usize];
            let queried: Vec<u32> = (0..count).map(|_| random.below(keys + 2) as u32).collect();
            let at = |_| now + 50 - random.below(400) as i64;
            let times: Vec<i64> = (0..count).map(at).collect();
            let of_points = Keys::of(&queried);
            let points = of_points.at(&times, None);
            let ours = held.query(&points, &spans);
            let theirs = expected(&all, (&queried, &times), aggs, &spans, width);
            compare(&ours, &theirs, &format!("script {script}, {aggs:?}"));
            let numbers = held.query_numbers(&points, &Spans::new(&spans));
            compare_numbers(numbers, &ours, &format!("script {script}, {aggs:?}"));
        }
    }
}

#[test]
fn a_row_more_takes_part_last_of_its_time() {
    let mut random = Random(seeds(1).next().expect("a seed"));
    for (aggs, dtypes) in requests() {
        let width = dtypes.len();
        let held = store(&aggs, &dtypes, false);
        let mut now = 1000;
        let rows = batch(&mut random, &mut now, 4, 700);
        insert(&*held, &rows, width);
        for closed in [Closed::Right, Closed::Left] {
            for key in 0..5 {
                let at = now - random.below(100) as i64;
                let mut plus = Rows::default();
                plus.push(key, at, Some(7), 8.0);
                let mut all = rows.clone();
                all.extend(&plus);
                let spans = [span(100, closed, 0), span(10, closed, 0)];
                let (of_points, columns) = (Keys::of(&plus.keys), plus.columns());
                let points = of_points.at(&plus.times, Some(&columns[..width]));
                let ours = held.query(&points, &spans);
                let theirs = expected(&all, (&plus.keys, &plus.times), &aggs, &spans, width);
                compare(&ours, &theirs, &format!("{closed:?} {aggs:?}"));
            }
        }
    }
}

#[test]
fn the_first_entry_of_a_window_is_known() {
    let held = store(&[agg(Kind::Sum, 0)], &[DType::I64], false);
    let mut rows = Rows::default();
    for time in [10, 20, 30] {
        rows.push(0, time, Some(1), 0.0);
    }
    insert(&*held, &rows, 1);
    let of_points = Keys::of(&[0, 0, 1]);
    let points = of_points.at(&[30, 25, 30], None);
    let spans = [span(15, Closed::Right, 0), span(4, Closed::Right, 0)];
    let first = held.first_times(&points, &spans);
    assert_eq!(first[0], [Some(20), Some(20), None]);
    assert_eq!(first[1], [Some(30), None, None]);
}

#[test]
fn the_first_entry_that_changes_an_answer_is_known() {
    let held = store(&[agg(Kind::Max, 0)], &[DType::I64], false);
    let mut rows = Rows::default();
    for (time, value) in [(10, Some(5)), (20, Some(9)), (20, None), (30, Some(7))] {
        rows.push(0, time, value, 0.0);
    }
    rows.push(2, 30, None, 0.0);
    insert(&*held, &rows, 1);
    let of_points = Keys::of(&[0, 0, 1, 2]);
    let times = [30, 15, 30, 30];
    let spans = [span(100, Closed::Right, 0), span(10, Closed::Right, 0)];
    let of_max = |most: &[i64]| Results {
        reads: vec![(vec![0], None)],
        min_rows: 0,
        most: most.to_vec(),
    };
    let max = of_max(&[1; 4]);
    let points = of_points.at(&times, None);
    let (answers, changes) = held.query_with_changes(&points, &spans, &max);
    assert_eq!(
        format!("{answers:?}"),
        format!("{:?}", held.query(&points, &spans))
    );
    assert_eq!(changes.counts, [[1, 1, 0, 0], [1, 1, 0, 0]]);
    assert_eq!(changes.times, [20, 10, 30, 10]);
    let all = of_max(&[i64::MAX, 0, 1, 1]);
    let (_, changes) = held.query_with_changes(&points, &spans, &all);
    assert_eq!(changes.counts, [[2, 0, 0, 0], [1, 0, 0, 0]]);
    assert_eq!(changes.times, [20, 30, 30]);
    let left = format!("{:?}", changes.answers[0][0]);
    assert!(left.contains("[7, "), "{left}");
    let (values, validity) = ([9, 5, 1, 1], None);
    let values = Values::I64(&values);
    let plus = [Column { values, validity }];
    let points = of_points.at(&times, Some(&plus));
    let (_, changes) = held.query_with_changes(&points, &spans, &max);
    assert_eq!(changes.counts, [[1; 4]; 2]);
    assert_eq!(changes.times, [30, 15, 30, 30, 30, 15, 30, 30]);
}

#[test]
fn a_null_that_stays_is_no_change() {
    let (max, count) = (agg(Kind::Max, 0), agg(Kind::Count, 0));
    let held = store(&[max, count], &[DType::I64], false);
    let mut rows = Rows::default();
    for (time, value) in [(10, 5), (20, 6), (30, 9)] {
        rows.push(0, time, Some(value), 0.0);
    }
    insert(&*held, &rows, 1);
    let of_points = Keys::of(&[0]);
    for (min_rows, times) in [(0, vec![30]), (2, vec![20]), (3, vec![10]), (4, vec![])] {
        let results = Results {
            reads: vec![(vec![0], Some(1))],
            min_rows,
            most: vec![9],
        };
        let points = of_points.at(&[30], None);
        let spans = [span(100, Closed::Right, 0)];
        let (_, changes) = held.query_with_changes(&points, &spans, &results);
        assert_eq!(changes.times, times, "{min_rows}");
    }
}

#[test]
fn keys_without_rows_go() {
    let held = store(&[agg(Kind::Sum, 0)], &[DType::I64], false);
    for round in 0..50_i64 {
        let mut rows = Rows::default();
        for key in 0..500 {
            rows.push(round as u32 * 100 + key, round, Some(1), 0.0);
        }
        insert(&*held, &rows, 1);
        held.evict(round - 1, 0);
        assert_eq!(held.len(), 500);
    }
    let bytes = held.bytes();
    assert!(bytes < 1 << 20, "{bytes} bytes for 500 keys");
}

/// Keys that append one entry at a time: a block of as many as it can hold takes no node.
#[test]
fn keys_of_a_block_take_little_more_than_their_entries() {
    let held = store(&[agg(Kind::Sum, 0)], &[DType::I64], false);
    for time in 0..128 {
        let mut rows = Rows::default();
        (0..2000).for_each(|key| rows.push(key, time, Some(1), 0.0));
        insert(&*held, &rows, 1);
    }
    let each = held.bytes() as f64 / f64::from(128 * 2000);
    assert!((16.0..19.5).contains(&each), "{each} bytes per entry");
}

#[test]
fn removed_keys_come_back_empty() {
    let held = store(&[agg(Kind::Collect, 0)], &[DType::I64], false);
    let mut rows = Rows::default();
    for at in (0..10_000).filter(|at| at % 3 != 1 || *at < 5000) {
        rows.push(at % 3, i64::from(at), Some(i64::from(at)), 0.0);
    }
    insert(&*held, &rows, 1);
    assert_eq!(held.drop_idle(5000), 1);
    assert_eq!(held.len(), 2);
    let mut again = Rows::default();
    again.push(1, 5, Some(5), 0.0);
    insert(&*held, &again, 1);
    held.check().expect("invariants");
    let left = (0..10_000).filter(|at| at % 3 != 1);
    let mut all = Rows::default();
    left.for_each(|at| all.push(at % 3, i64::from(at), Some(i64::from(at)), 0.0));
    all.extend(&again);
    let spans = [span(20_000, Closed::Right, 0)];
    let (keys, times) = ([0, 1, 2], [9_999; 3]);
    let of_points = Keys::of(&keys);
    let points = of_points.at(&times, None);
    let aggs = [agg(Kind::Collect, 0)];
    let ours = held.query(&points, &spans);
    let theirs = expected(&all, (&keys, &times), &aggs, &spans, 1);
    compare(&ours, &theirs, "after a removal");
}
