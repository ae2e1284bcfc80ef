//! Entries of cells, folded: windows that begin with a cell, after them or later, answer as before.

use slidewise_core::aggregate::{DType, Kind};
use slidewise_core::keyed::{Cells, store};
use slidewise_core::rolling::Closed;

use super::common::Random;
use super::common::script::seeds;
use super::{Keys, Rows, agg, batch, compare, expected, insert, requests, span};

const LENGTH: i64 = 60;

/// Rows of all keys after a time.
fn later(rows: &Rows, than: i64) -> Rows {
    let mut left = Rows::default();
    for row in 0..rows.times.len() {
        if rows.times[row] > than {
            let valid = rows.valid[row / 8] >> (row % 8) & 1 == 1;
            let int = valid.then_some(rows.ints[row]);
            left.push(rows.keys[row], rows.times[row], int, rows.floats[row]);
        }
    }
    left
}

#[test]
fn folded_cells_answer_as_their_rows() {
    for script in seeds(3) {
        let mut random = Random(script);
        let requests = requests();
        let (aggs, dtypes) = &requests[script as usize % requests.len()];
        let width = dtypes.len();
        let (held, rows_alone) = (store(aggs, dtypes, false), store(aggs, dtypes, false));
        let every = [1, 7, 20][random.below(3) as usize];
        let start = random.below(30) as i64 - 15;
        let cells = Cells { every, start };
        let last_of_cell = |time: i64| start + (time - start).div_euclid(every) * every - 1;
        let keys = 1 + random.below(20);
        let size = [3, 40, 400, 3000][random.below(4) as usize];
        let (mut all, mut now) = (Rows::default(), 1000);
        let (mut since, mut folded) = (None, Vec::new());
        for _ in 0..1 + random.below(6) {
            let count = random.below(size);
            let mut rows = batch(&mut random, &mut now, keys, count);
            rows = since.map_or_else(|| rows.clone(), |since| later(&rows, since));
            for one in [&held, &rows_alone] {
                insert(&**one, &rows, width);
            }
            all.extend(&rows);
            let until = last_of_cell(now - random.below(250) as i64);
            let length = (LENGTH + every - 1) / every * every;
            if random.below(2) == 0 {
                for one in [&held, &rows_alone] {
                    one.evict(until - 10 * length, 0);
                }
            }
            if since.is_none_or(|since| since < until) {
                folded.push(held.fold_cells(&cells, (since, until)));
                since = Some(until);
            }
            held.check().expect("invariants");
            assert_eq!(held.keys(), rows_alone.keys());
            let until = since.expect("cells were folded");
            // Another store, of the entries and the other rows.
            let copy = store(aggs, dtypes, false);
            for entries in &folded {
                let starts = [0].iter().chain(&entries.ends);
                let bytes = starts.zip(&entries.ends);
                let bytes: Vec<&[u8]> = bytes.map(|(a, b)| &entries.bytes[*a..*b]).collect();
                let times = entries.entries.lasts.clone();
                copy.insert_folded(entries.entries.view(), &times, &bytes)
                    .expect("entries");
            }
            insert(&*copy, &later(&all, until), width);
            copy.check().expect("invariants");
            // Windows that begin with a cell and hold the last one that was folded.
            let count = 1 + random.below(70) as i64;
            let at = |n: i64| start + (until + 1 - start).div_euclid(every) * every - 1 + n * every;
            let times: Vec<i64> = (0..count).map(|n| at(n % 9)).collect();
            let spans = [
                span(length, Closed::Right, 0),
                span(10 * length, Closed::Right, 0),
            ];
            let queried: Vec<u32> = (0..count).map(|_| random.below(keys + 2) as u32).collect();
            let of_points = Keys::of(&queried);
            let points = of_points.at(&times, None);
            let theirs = expected(&all, (&queried, &times), aggs, &spans, width);
            for (one, name) in [(&held, "folded"), (&copy, "copied")] {
                let ours = one.query(&points, &spans);
                compare(&ours, &theirs, &format!("{name}, {script}, {aggs:?}"));
            }
        }
    }
}

#[test]
fn a_cell_takes_the_memory_of_a_partial() {
    for (aggs, dtypes) in requests().into_iter().take(4) {
        let width = dtypes.len();
        let held = store(&aggs, &dtypes, false);
        let mut rows = Rows::default();
        for time in 0..20_000 {
            rows.push(0, time, Some(time), time as f64);
        }
        insert(&*held, &rows, width);
        let before = held.bytes();
        let cells = Cells {
            every: 1000,
            start: 0,
        };
        let folded = held.fold_cells(&cells, (None, 18_999));
        assert_eq!(folded.ends.len(), 19);
        let lasts: Vec<i64> = (1..20).map(|cell| cell * 1000 - 1).collect();
        assert_eq!(folded.entries.lasts, lasts);
        assert!(held.bytes() < before / 2, "{} of {before}", held.bytes());
        // Two integers take less memory than the partial of their variance.
        let one = store(&aggs, &dtypes, false);
        insert(&*one, &later(&rows, 19_997), width);
        let few = one.fold_cells(&cells, (None, 19_999)).ends.len();
        assert_eq!(few, if width == 1 { 1 } else { 2 }, "{aggs:?}");
    }
}

#[test]
fn damaged_entries_are_refused() {
    let held = store(&[agg(Kind::Sum, 0)], &[DType::I64], false);
    let keys = Keys::of(&[1]);
    for bytes in [&[][..], &[7], &[0, 1], &[0; 12]] {
        let refused = held.insert_folded(keys.view(), &[5], &[bytes]);
        assert!(refused.is_err(), "{bytes:?}");
    }
    assert!(held.is_empty());
    let mut rows = Rows::default();
    rows.push(1, 5, Some(2), 0.0);
    insert(&*held, &rows, 1);
    let entries = held.fold_cells(&Cells { every: 9, start: 0 }, (None, 8));
    assert_eq!(entries.bytes.len(), 9);
}
