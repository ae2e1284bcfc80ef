//! Holistic aggregations over tables, against their definition: every value of every window
//! sorted anew.

use crate::common::Random;
use crate::common::holistic::{cell, kinds, specs};
use crate::common::script::seeds;
use slidewise_core::aggregate::column::{Column, Validity, Values};
use slidewise_core::aggregate::holistic::{answer_over, word_of};
use slidewise_core::aggregate::{Answer, Cell, DType};
use slidewise_core::rolling::{Closed, FrameUnit, Length, Output, Request, Span, rolling};

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

    fn sees(&self, row: usize, other: usize, span: Span, ties: FrameUnit) -> bool {
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
        let later = self.arrival.is_none() && ties == FrameUnit::Rows && age == 0 && other > row;
        old && young && !later
    }

    fn words(&self, row: usize, span: Span, ties: FrameUnit) -> Vec<i64> {
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

    /// The values and their validity bitmap.
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
        Output::List { ranges, values, .. } => {
            let (from, to) = ranges[row];
            format!("{:?}", &values[from..to])
        }
        _ => format!("{:?}", Answer::<i64>::Null),
    }
}

#[test]
fn tables_answer_as_the_values_of_each_window_sorted_anew() {
    let mut kinds = kinds();
    kinds.retain(|kind| kind.is_holistic());
    let aggs = specs(&kinds);
    for seed in seeds(10) {
        let mut random = Random(seed);
        let table = Table::new(&mut random);
        let closed = random.pick(&[Closed::Right, Closed::Left, Closed::Both, Closed::Neither]);
        let ties = random.pick(&[FrameUnit::Peers, FrameUnit::Rows]);
        let (short, long) = (random.pick(&[1, 7, 50]), random.pick(&[400, i64::MAX]));
        let rows = Length::Rows(random.pick(&[1, 6, 100_000]) as usize);
        let spans = [Length::Time(short), Length::Time(long), rows].map(|length| Span {
            length,
            closed: match length {
                Length::Rows(_) => Closed::Right,
                _ => closed,
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
                    let expected = match expected {
                        Answer::Hitters(counts) => {
                            let bits = |one: &Cell<i64>| one.bits().expect("a number");
                            let flat = counts.iter().map(|one| [bits(&one.0), one.1, one.2]);
                            format!("{:?}", flat.collect::<Vec<_>>().concat())
                        }
                        other => format!("{other:?}"),
                    };
                    let case = (seed, kind, span, row);
                    assert_eq!(shown(output, row), expected, "{case:?}");
                }
            }
        }
    }
}
