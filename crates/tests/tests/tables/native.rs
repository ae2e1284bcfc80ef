//! Functions by pointer over tables: maps that do not commute, in records of every size,
//! against their definition row by row; and their number of calls.
#![allow(unsafe_code)] // functions called by pointer read through pointers

use std::cell::Cell as Counter;

use super::rolling::{Stored, Table, answer, lengths, request};
use crate::common::Random;
use crate::common::script::seeds_of;
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::native::{Functions, Lift, NativeLower};
use slidewise_core::aggregate::{AggSpec, Answer, Cell, DType, Kind};
use slidewise_core::rolling::{Closed, FrameUnit, Length, Output, Request, Span, rolling};

const PRIME: u64 = (1 << 31) - 1;

thread_local! {
    static COMBINES: Counter<usize> = const { Counter::new(0) };
}

/// Maps x → ax + b, one in the halves of each word.
extern "C" fn combine<const WORDS: usize>(older: *const u64, younger: *const u64, out: *mut u64) {
    COMBINES.set(COMBINES.get() + 1);
    for at in 0..WORDS {
        // SAFETY: records have this number of words.
        unsafe { *out.add(at) = one_after_the_other(*older.add(at), *younger.add(at)) };
    }
}

fn one_after_the_other(older: u64, younger: u64) -> u64 {
    let parts = |map: u64| ((map >> 32) % PRIME, (map & 0xffff_ffff) % PRIME);
    let ((a, b), (c, d)) = (parts(older), parts(younger));
    ((a * c % PRIME) << 32) | ((b * c + d) % PRIME)
}

fn map_of(value: u64, at: usize) -> u64 {
    let mixed = (value ^ (at as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((mixed >> 33) % PRIME + 1) << 32) | (mixed % PRIME)
}

extern "C" fn lift_integer<const WORDS: usize>(value: i64, out: *mut u64) {
    for at in 0..WORDS {
        // SAFETY: as above.
        unsafe { *out.add(at) = map_of(value as u64, at) };
    }
}

extern "C" fn lift_float<const WORDS: usize>(value: f64, out: *mut u64) {
    lift_integer::<WORDS>(value.to_bits() as i64, out);
}

extern "C" fn last_word<const WORDS: usize>(record: *const u64) -> i64 {
    // SAFETY: as above.
    unsafe { *record.add(WORDS - 1) as i64 }
}

extern "C" fn as_float<const WORDS: usize>(record: *const u64) -> f64 {
    last_word::<WORDS>(record) as f64
}

fn functions<const WORDS: usize>(dtype: DType, stored: bool) -> [Functions; 3] {
    let lift = match dtype {
        _ if stored => Lift::Store,
        DType::F64 => Lift::F64(lift_float::<WORDS>),
        _ => Lift::I64(lift_integer::<WORDS>),
    };
    let lowers = [
        if WORDS == 1 {
            NativeLower::Word(dtype)
        } else {
            NativeLower::Record
        },
        NativeLower::I64(last_word::<WORDS>),
        NativeLower::F64(as_float::<WORDS>),
    ];
    // SAFETY: all of these access only records of this number of words.
    lowers.map(|lower| unsafe { Functions::new(WORDS, false, lift, combine::<WORDS>, lower, None) })
}

/// The record of the cells of a window; `None` if all are missing.
fn by_definition(
    cells: impl Iterator<Item = Cell<i64>>,
    functions: &Functions,
) -> Option<Vec<u64>> {
    let one = |bits: u64| match functions.lift() {
        Lift::Store => vec![bits],
        _ => (0..functions.words()).map(|at| map_of(bits, at)).collect(),
    };
    let records = cells.filter_map(|cell| cell.bits().map(one));
    records.reduce(|older: Vec<u64>, younger| {
        let words = older.iter().zip(&younger);
        words.map(|(a, b)| one_after_the_other(*a, *b)).collect()
    })
}

/// To the bit: maps in a word may look like NaN.
fn agrees(output: &Output, row: usize, functions: &Functions, want: Option<&Vec<u64>>) -> bool {
    if let Output::Bytes { ranges, values } = output {
        let bytes = &values[ranges[row].0..ranges[row].1];
        let words = want.map_or(&[][..], |words| words);
        return bytes
            == words
                .iter()
                .flat_map(|w| w.to_ne_bytes())
                .collect::<Vec<u8>>();
    }
    let Some(want) = want else {
        return answer(output, row) == Answer::Null;
    };
    let last = want[want.len() - 1];
    match (answer(output, row), functions.lower()) {
        (Answer::I64(got), NativeLower::Word(_) | NativeLower::I64(_)) => got as u64 == last,
        (Answer::F64(got), NativeLower::Word(_)) => got.to_bits() == last,
        (Answer::F64(got), NativeLower::F64(_)) => got == last as i64 as f64,
        _ => false,
    }
}

fn agg(functions: Functions) -> AggSpec {
    AggSpec {
        kind: Kind::Native(functions),
        of: Some(0),
        by: None,
        ddof: 0,
    }
}

#[test]
fn every_row_of_every_window() {
    for seed in seeds_of(1_000, 13).take(400) {
        let mut random = Random(seed);
        let table = Table::new(&mut random);
        let spans = lengths(&mut random);
        let ties = random.pick(&[FrameUnit::Peers, FrameUnit::Rows]);
        let made = match seed % 5 {
            0 => functions::<1>(table.dtype, true),
            1 => functions::<1>(table.dtype, false),
            2 => functions::<2>(table.dtype, false),
            3 => functions::<4>(table.dtype, false),
            _ => functions::<16>(table.dtype, false),
        };
        let mut aggs: Vec<AggSpec> = made.into_iter().map(agg).collect();
        // One aggregation twice, and beside a built-in one.
        aggs.push(aggs[1]);
        aggs.push(AggSpec {
            kind: Kind::Count,
            ..aggs[0]
        });
        check(seed, &table, &aggs, &spans, ties);
    }
}

fn check(seed: u64, table: &Table, aggs: &[AggSpec], spans: &[Span], ties: FrameUnit) {
    let stored = Stored::new(table);
    let columns = [stored.column()];
    let whole = request(table, &columns, aggs, spans, ties);
    let got = rolling(whole, &mut || true).unwrap();
    let many = rolling(
        Request {
            threads: 3,
            ..whole
        },
        &mut || true,
    )
    .unwrap();
    for ((outputs, many), span) in got.iter().zip(&many).zip(spans) {
        for row in 0..table.query_times().len() {
            let window = table.window(row, *span, ties);
            for ((output, again), agg) in outputs.iter().zip(many).zip(aggs) {
                let Kind::Native(functions) = agg.kind else {
                    continue;
                };
                let cells = window.iter().map(|[cell, _]| cell.clone());
                let want = by_definition(cells, &functions);
                for output in [output, again] {
                    assert!(
                        agrees(output, row, &functions, want.as_ref()),
                        "seed {seed}, row {row}, {span:?}, {ties:?}, {agg:?}"
                    );
                }
            }
        }
    }
}

/// As many as rows for the young ends, as many for the old ones, and one per window.
#[test]
#[cfg_attr(miri, ignore = "counts what other tests run")]
fn three_combines_per_row_and_one_answer_for_peers() {
    let count = 10_000;
    let [of_words, ..] = functions::<2>(DType::I64, false);
    let values: Vec<i64> = (0..count).collect();
    let columns = [Column {
        values: Values::I64(&values),
        validity: None,
    }];
    let mut random = Random(7);
    let steady: Vec<i64> = (0..count).collect();
    let mut jumping: Vec<i64> = (0..count).map(|_| random.below(5_000) as i64).collect();
    jumping.sort_unstable();
    let alike = vec![3; count as usize];
    for (times, windows) in [(&steady, count), (&jumping, 5_000), (&alike, 1)] {
        for length in [1, 2, 10, 999, 4_000, 20_000] {
            let span = Span {
                length: Length::Time(length),
                closed: Closed::Right,
                offset: 0,
            };
            COMBINES.set(0);
            let (aggs, spans) = ([agg(of_words)], [span]);
            rolling(Request::new(times, &columns, &aggs, &spans), &mut || true).unwrap();
            let most = 2 * count + windows;
            let combines = COMBINES.get() as i64;
            assert!(combines <= most, "{combines} > {most}, length {length}");
        }
    }
}

/// Over more rows than are answered or folded ahead at once.
#[test]
fn long_windows() {
    let count = if cfg!(miri) { 5_000 } else { 12_000 };
    let mut random = Random(3);
    let (mut times, mut values, mut bits) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..count {
        times.push(row + random.below(3) as i64);
        values.push(random.next() as i64);
        bits.push(random.pick(&[0xff, 0xff, 0b1011_0111]));
    }
    times.sort_unstable();
    let (one, small, large) = (
        functions::<1>(DType::I64, true)[0],
        functions::<2>(DType::I64, false)[0],
        functions::<16>(DType::I64, false)[0],
    );
    for validity in [
        None,
        Some(Validity {
            bits: &bits,
            offset: 0,
        }),
    ] {
        let values = Values::I64(&values);
        let columns = [Column { values, validity }];
        let aggs = [one, small, large].map(agg);
        let span = |length| Span {
            length: Length::Time(length),
            closed: Closed::Right,
            offset: 0,
        };
        let (lengths, step) = match cfg!(miri) {
            true => (&[1_500][..], 4_001),
            false => (&[2, 100, 700, 1_500, 5_000][..], 331),
        };
        let spans: Vec<Span> = lengths.iter().map(|length| span(*length)).collect();
        let request = Request::new(&times, &columns, &aggs, &spans);
        let got = rolling(request, &mut || true).unwrap();
        for (outputs, length) in got.iter().zip(lengths) {
            for row in (0..count as usize).step_by(step) {
                let inside = |at: &usize| {
                    let age = times[row] - times[*at];
                    (0..*length).contains(&age)
                };
                let rows: Vec<usize> = (0..count as usize).filter(inside).collect();
                for (output, agg) in outputs.iter().zip(&aggs) {
                    let Kind::Native(functions) = agg.kind else {
                        unreachable!("all are");
                    };
                    let cells = rows.iter().map(|at| columns[0].cell(*at));
                    let want = by_definition(cells, &functions);
                    assert!(
                        agrees(output, row, &functions, want.as_ref()),
                        "row {row}, length {length}, {} words",
                        functions.words()
                    );
                }
            }
        }
    }
}
