//! Rows with partials of many rows: windows that do not cut them answer as over the rows.

use crate::common::Random;
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::sketch::SketchRequest;
use slidewise_core::aggregate::{AggSpec, Kind};
use slidewise_core::rolling::partials::{Lifted, partials};
use slidewise_core::rolling::{Closed, Error, Length, Output, QueryPoints, Request, Span, rolling};

const BOTH: Span = Span {
    length: Length::Time(1),
    closed: Closed::Both,
    offset: 0,
};

/// Small integers: every grouping gives the same bits. `Collect` reveals the order.
fn aggs(random: &mut Random) -> Vec<AggSpec> {
    let kinds = [
        Kind::Sum,
        Kind::Max,
        Kind::Mean,
        Kind::First,
        Kind::Last,
        Kind::Collect,
        Kind::Count,
        Kind::MaxCount,
        Kind::Sketch(SketchRequest::parse("approx_count_distinct:12").expect("a sketch")),
    ];
    let mut aggs: Vec<AggSpec> = kinds
        .into_iter()
        .map(|kind| AggSpec {
            kind,
            of: Some(0),
            by: None,
            ddof: 1,
        })
        .collect();
    let cut = random.below(aggs.len() as u64) as usize;
    aggs.rotate_left(cut);
    aggs.truncate(1 + random.below(5) as usize);
    aggs
}

/// Rows by time, some in runs that are folded.
struct Table {
    times: Vec<i64>,
    groups: Vec<u32>,
    values: Vec<i64>,
    /// First and last time of each folded run.
    folds: Vec<(i64, i64)>,
}

const GROUPS: u32 = 3;

impl Table {
    fn new(random: &mut Random) -> Self {
        let rows = random.pick(&[1, 5, 40, 200]) as usize;
        let mut times: Vec<i64> = (0..rows).map(|_| random.below(100) as i64).collect();
        times.sort_unstable();
        Self {
            groups: (0..rows).map(|_| random.below(3) as u32).collect(),
            values: (0..rows).map(|_| random.below(9) as i64).collect(),
            times,
            folds: vec![(10, 25), (26, 26), (30, 60), (61, 80)],
        }
    }

    fn folded(&self, time: i64) -> bool {
        let folds = self.folds.iter();
        folds
            .clone()
            .any(|(from, to)| (*from..=*to).contains(&time))
    }
}

/// Query points whose windows begin and end outside the folds, or at their ends.
fn queried(random: &mut Random) -> (Vec<i64>, Vec<i64>, Vec<u32>) {
    let mut windows: Vec<(i64, i64)> = (0..50)
        .map(|_| {
            let since = random.pick(&[0, 3, 9, 10, 26, 27, 29, 30, 61, 81, 90]);
            let to = random.pick(&[2, 9, 25, 26, 28, 29, 60, 80, 85, 99]);
            (since as i64, (to as i64).max(since as i64 - 1))
        })
        .collect();
    // Both ends go forward.
    let mut since: Vec<i64> = windows.iter().map(|window| window.0).collect();
    since.sort_unstable();
    windows.sort_unstable_by_key(|window| window.1);
    let times = windows.iter().map(|window| window.1).collect();
    let groups = windows.iter().map(|_| random.below(3) as u32).collect();
    (times, since, groups)
}

fn column(values: &[i64]) -> Column<'_, i64> {
    Column {
        values: Values::I64(values),
        validity: None,
    }
}

#[test]
fn folded_rows_answer_like_the_rows_they_stand_for() {
    for seed in 0..400 {
        let random = &mut Random(seed);
        let table = Table::new(random);
        let aggs = aggs(random);
        let (ends, since, groups) = queried(random);
        let query_times = QueryPoints {
            times: &ends,
            since: Some(&since),
            groups: Some(&groups),
            arrival: None,
        };
        let columns = [column(&table.values)];
        let whole = Request {
            groups: Some(&table.groups),
            at: Some(query_times),
            ..Request::new(&table.times, &columns, &aggs, &[BOTH])
        };
        let expected = rolling(whole, &mut || true).expect("answers");

        let folds = table
            .folds
            .iter()
            .flat_map(|fold| (0..GROUPS).map(move |group| (fold, group)));
        let (froms, tos, fold_groups) = folds.fold(
            (Vec::new(), Vec::new(), Vec::new()),
            |(mut froms, mut tos, mut groups), ((from, to), group)| {
                froms.push(*from);
                tos.push(*to);
                groups.push(group);
                (froms, tos, groups)
            },
        );
        let nodes = QueryPoints {
            times: &tos,
            since: Some(&froms),
            groups: Some(&fold_groups),
            arrival: None,
        };
        let folded = partials(Request {
            at: Some(nodes),
            ..whole
        });
        let folded = folded.expect("partials");

        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        let mut there = vec![0_u8; 64];
        let (mut times, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let rows = (0..table.times.len()).filter(|row| !table.folded(table.times[*row]));
        for row in rows {
            times.push(table.times[row]);
            keys.push(table.groups[row]);
            values.push(table.values[row]);
            offsets.push(0);
        }
        for (node, (start, end)) in folded.ranges.iter().enumerate() {
            there[times.len() / 8] |= 1 << (times.len() % 8);
            times.push(tos[node]);
            keys.push(fold_groups[node]);
            values.push(0);
            bytes.extend_from_slice(&folded.bytes[*start..*end]);
            offsets.push(bytes.len() as i64);
        }
        let short = Request {
            times: &times,
            groups: Some(&keys),
            columns: &[column(&values)],
            lifted: Some(Lifted {
                offsets: &offsets,
                bytes: &bytes,
                validity: Some(Validity {
                    bits: &there,
                    offset: 0,
                }),
            }),
            ..whole
        };
        let answers = rolling(short, &mut || true).expect("answers");
        assert_eq!(lists(answers), lists(expected), "seed {seed}");
    }
}

/// Lists by row, for any order of writing.
fn lists(answers: Vec<Vec<Output>>) -> Vec<Vec<Output>> {
    let sorted = |output| match output {
        Output::List {
            ranges,
            values,
            dtype,
        } => {
            let rows: Vec<&[u64]> = ranges.iter().map(|&(from, to)| &values[from..to]).collect();
            let mut end = 0;
            let ends = rows.iter().map(|row| {
                end += row.len();
                (end - row.len(), end)
            });
            Output::List {
                ranges: ends.collect(),
                values: rows.concat(),
                dtype,
            }
        }
        other => other,
    };
    let windows = answers.into_iter();
    windows
        .map(|columns| columns.into_iter().map(sorted).collect())
        .collect()
}

#[test]
fn bytes_that_are_no_partial_are_refused_by_row() {
    let sum = AggSpec {
        kind: Kind::Sum,
        of: Some(0),
        by: None,
        ddof: 0,
    };
    for (length, bytes) in [(3, vec![0; 3]), (40, vec![0; 40])] {
        let (columns, aggs) = ([column(&[1, 2])], [sum]);
        let request = Request {
            lifted: Some(Lifted {
                offsets: &[0, 0, length],
                bytes: &bytes,
                validity: Some(Validity {
                    bits: &[0b10],
                    offset: 0,
                }),
            }),
            ..Request::new(&[1, 2], &columns, &aggs, &[BOTH])
        };
        let refused = rolling(request, &mut || true);
        assert!(
            matches!(refused, Err(Error::Damaged { row: 1, .. })),
            "{refused:?}"
        );
    }
}
