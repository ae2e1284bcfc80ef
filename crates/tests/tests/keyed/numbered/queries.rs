//! Many short scripts: rows in any order, removals, eviction, and after each step queries of
//! any key, time and length, some of them with a row more.

use slidewise_core::aggregate::{AggSpec, DType, Kind};
use slidewise_core::rolling::{Closed, Span};

use super::super::common::Random;
use super::super::common::script::seeds_of;
use super::super::{Keys, Rows, agg, compare, expected, span};
use super::{Mode, Script};

/// One aggregation of the catalogue beside the last value, which shows the order of rows.
fn request(number: usize) -> (Vec<AggSpec>, Vec<DType>) {
    let (_, kind) = Kind::ALL[number % Kind::ALL.len()];
    use Kind::{All, Any, BitAnd, BitOr, BitXor};
    let of = match kind {
        // Of integers only, and of rows that have both values.
        All | Any | BitAnd | BitOr | BitXor => 0,
        kind if kind.is_of_pairs() => 1,
        _ => number / Kind::ALL.len() % 2,
    };
    let by = kind.takes_by().then_some(1);
    let aggs = vec![
        AggSpec {
            by,
            ..agg(kind, of)
        },
        agg(Kind::Last, of),
    ];
    (aggs, vec![DType::I64, DType::F64])
}

impl Script {
    fn any_span(&mut self) -> Span {
        let closed = [Closed::Right, Closed::Left, Closed::Both, Closed::Neither];
        let closed = self.random.pick(&closed);
        let length = self.random.pick(&[1, 7, 40, 150]);
        let length = 1 + self.random.below(length) as i64;
        span(length, closed, self.random.below(3) as i64)
    }

    /// Queries at past, present and later times; how many could be compared.
    fn query(&mut self) -> u64 {
        let mut compared = 0;
        let spans = [self.any_span(), self.any_span()];
        let reach = 160;
        for _ in 0..2 {
            let key = self.random.below(self.keys + 1) as u32;
            let at = self.now + 30 - self.random.below(90) as i64;
            if at - reach <= self.until {
                continue;
            }
            let mut table = self.oracle.table();
            let width = self.dtypes.len();
            let mut plus = Rows::default();
            let has_plus = self.random.below(3) == 0;
            if has_plus {
                let int = (self.random.below(4) > 0).then_some(-7);
                plus.push(key, at, int, 8.5);
                table.extend(&plus);
            }
            let (keys, columns) = (Keys::of(&[key]), plus.columns());
            let times = [at];
            let points = keys.at(&times, has_plus.then_some(&columns[..width]));
            let ours = self.held.query(&points, &spans);
            let known = expected(&table, (&[key], &times), &self.aggs, &spans, width);
            compare(&ours, &known, &format!("{} at {at}: {spans:?}", self.what));
            compared += 1;
        }
        compared
    }
}

#[test]
fn queries_of_short_scripts_are_those_of_a_table() {
    let (mut scripts, mut compared) = (0, 0);
    for seed in seeds_of(100, 4_000) {
        let mut random = Random(seed);
        let mode = random.pick(&[Mode::Remove, Mode::RemoveAndEvict, Mode::KeepRows(3)]);
        let keys = 1 + random.below(4);
        let mut script = Script::of(seed, random, mode, request(seed as usize), keys);
        let size = script.random.pick(&[2, 6, 20]);
        for _ in 0..2 + script.random.below(4) {
            match script.random.below(5) {
                0 => script.evict(),
                _ => script.insert(size),
            }
            compared += script.query();
        }
        script.held.check().expect("invariants");
        scripts += 1;
    }
    assert!(
        scripts < 100 || compared > scripts,
        "{compared} of {scripts}"
    );
}
