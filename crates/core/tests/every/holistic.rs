//! Windows and tables over what no monoid answers, against its definition: every value of
//! every window sorted anew.

use crate::common::Random;
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::holistic::{Quantile, answer_over, word_of};
use slidewise_core::aggregate::{AggSpec, Answer, Cell, DType, Kind};
use slidewise_core::rolling::{Closed, Length, Output, Request, Span, Ties as TableTies, rolling};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::Ties;
use slidewise_core::window::any::{Algorithm, AnyWindow, window};

type Any = Box<dyn AnyWindow<i64>>;

fn kinds() -> Vec<Kind> {
    let texts = [
        "0.5 linear",
        "0.9 linear",
        "0 lower",
        "1 higher",
        "0.37 nearest",
    ];
    let quantiles = texts.map(|text| Kind::Quantile(Quantile::parse(text).expect("one")));
    let mut kinds = vec![Kind::CountDistinct, Kind::Mode, Kind::Sum];
    kinds.extend(quantiles);
    kinds
}

fn specs(kinds: &[Kind]) -> Vec<AggSpec> {
    let spec = |kind: &Kind| AggSpec {
        kind: *kind,
        of: Some(0),
        by: None,
        ddof: 0,
    };
    kinds.iter().map(spec).collect()
}

fn cell(random: &mut Random, dtype: DType, spread: u64) -> Cell<i64> {
    let value = random.below(spread) as i64 - spread as i64 / 3;
    match (random.below(12), dtype) {
        (0, _) => Cell::Null,
        (1, DType::F64) => Cell::F64(random.pick(&[f64::NAN, f64::INFINITY, -0.0, -1e300])),
        (_, DType::F64) => Cell::F64(value as f64 / 4.0),
        _ => Cell::I64(value),
    }
}

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

/// The same call on both; what they tell must agree.
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
    for seed in 0..60 {
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

/// A table, and the windows of its rows by definition.
struct Table {
    times: Vec<i64>,
    groups: Vec<u32>,
    arrival: Option<Vec<i64>>,
    cells: Vec<Cell<i64>>,
    dtype: DType,
}

impl Table {
    fn new(random: &mut Random) -> Self {
        let rows = random.pick(&[0, 1, 9, 200, 900]) as usize;
        let keys = random.pick(&[1, 3]).min(rows.max(1)) as u64;
        let dtype = random.pick(&[DType::I64, DType::F64]);
        let spread = random.pick(&[5, 1 << 30]);
        let span = random.pick(&[40, 3_000]);
        let arrives = random.below(2) == 0;
        let groups: Vec<u32> = (0..rows).map(|row| row as u32 % keys as u32).collect();
        Self {
            times: (0..rows).map(|_| random.below(span) as i64).collect(),
            groups,
            arrival: arrives.then(|| (0..rows).map(|_| random.below(99) as i64).collect()),
            cells: (0..rows).map(|_| cell(random, dtype, spread)).collect(),
            dtype,
        }
    }

    fn arrived(&self, row: usize) -> (i64, usize) {
        (self.arrival.as_ref().map_or(0, |arrival| arrival[row]), row)
    }

    fn sees(&self, row: usize, other: usize, span: Span, ties: TableTies) -> bool {
        if self.groups[row] != self.groups[other] {
            return false;
        }
        if self.arrival.is_some() && self.arrived(other).0 > self.arrived(row).0 {
            return false;
        }
        let Length::Time(length) = span.length else {
            return self.arrival.is_some() || (self.times[other], other) <= (self.times[row], row);
        };
        let age = self.times[row] - self.times[other];
        let old = match span.closed {
            Closed::Left | Closed::Both => age <= length,
            _ => age < length,
        };
        let young = match span.closed {
            Closed::Right | Closed::Both => age >= 0,
            _ => age > 0,
        };
        let later = self.arrival.is_none() && ties == TableTies::Rows && age == 0 && other > row;
        old && young && !later
    }

    fn words(&self, row: usize, span: Span, ties: TableTies) -> Vec<i64> {
        let rows = 0..self.times.len();
        let mut seen: Vec<usize> = rows
            .filter(|other| self.sees(row, *other, span, ties))
            .collect();
        seen.sort_by_key(|other| (self.times[*other], self.arrived(*other)));
        if let Length::Rows(count) = span.length {
            seen.drain(..seen.len().saturating_sub(count));
        }
        let bits = seen
            .into_iter()
            .filter_map(|other| self.cells[other].bits());
        bits.map(|bits| word_of(bits, self.dtype)).collect()
    }

    /// The values, and a bitmap of which are there.
    fn column(&self) -> (Vec<i64>, Vec<f64>, Vec<u8>) {
        let mut bitmap = vec![0; self.cells.len().div_ceil(8)];
        let (mut ints, mut floats) = (Vec::new(), Vec::new());
        for (row, cell) in self.cells.iter().enumerate() {
            let bits = cell.bits();
            bitmap[row / 8] |= u8::from(bits.is_some()) << (row % 8);
            ints.push(bits.unwrap_or(7) as i64);
            floats.push(f64::from_bits(bits.unwrap_or(7)));
        }
        (ints, floats, bitmap)
    }
}

fn shown(output: &Output, row: usize) -> String {
    let there = |bytes: &[u8]| bytes[row / 8] >> (row % 8) & 1 == 1;
    match output {
        Output::I64 { values, valid, .. } if there(&valid.bytes) => {
            format!("{:?}", Answer::<i64>::I64(values[row]))
        }
        Output::F64 { values, valid } if there(&valid.bytes) => {
            format!("{:?}", Answer::<i64>::F64(values[row]))
        }
        _ => format!("{:?}", Answer::<i64>::Null),
    }
}

#[test]
fn tables_answer_as_the_values_of_each_window_sorted_anew() {
    let mut kinds = kinds();
    kinds.retain(|kind| kind.is_holistic());
    let aggs = specs(&kinds);
    for seed in 0..400 {
        let mut random = Random(seed);
        let table = Table::new(&mut random);
        let closed = random.pick(&[Closed::Right, Closed::Left, Closed::Both, Closed::Neither]);
        let ties = random.pick(&[TableTies::Peers, TableTies::Rows]);
        let (short, long) = (random.pick(&[1, 7, 50]), random.pick(&[400, i64::MAX]));
        let rows = Length::Rows(random.pick(&[1, 6, 100_000]) as usize);
        let spans = [Length::Time(short), Length::Time(long), rows].map(|length| Span {
            length,
            closed: match length {
                Length::Time(_) => closed,
                Length::Rows(_) => Closed::Right,
            },
            offset: 0,
        });
        let (ints, floats, bits) = table.column();
        let values = match table.dtype {
            DType::F64 => Values::F64(&floats),
            _ => Values::I64(&ints),
        };
        let validity = Some(Validity {
            bits: &bits,
            offset: 0,
        });
        let columns = [Column { values, validity }];
        let request = Request {
            groups: Some(&table.groups),
            ties,
            arrival: table.arrival.as_deref(),
            ..Request::new(&table.times, &columns, &aggs, &spans)
        };
        let outputs = rolling(request, &mut || true).expect("nothing overflows");
        for (at, span) in spans.iter().enumerate() {
            for row in 0..table.times.len() {
                let words = table.words(row, *span, ties);
                for (kind, output) in kinds.iter().zip(&outputs[at]) {
                    let expected = answer_over::<i64>(*kind, table.dtype, &mut words.clone());
                    let case = (seed, kind, span, row);
                    assert_eq!(shown(output, row), format!("{expected:?}"), "{case:?}");
                }
            }
        }
    }
}
