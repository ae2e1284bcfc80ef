//! Stores that know the numbers of rows, against a list of the entries of each key.

mod oracle;
mod queries;

use std::collections::BTreeSet;

use oracle::{Oracle, Row};

use super::common::Random;
use super::common::script::seeds;
use super::{Keys, Rows, batch, expected, near, requests, span};
use slidewise_core::aggregate::{AggSpec, DType};
use slidewise_core::keyed::{EntryList, Grid, KeyColumn, KeyList, Store, store};
use slidewise_core::rolling::{Closed, Output, Span};

/// Keys as the numbers they were made of.
fn numbers_of(keys: KeyColumn<'_>) -> Vec<u32> {
    let number = |at| {
        let text = std::str::from_utf8(keys.key(at)).expect("text");
        text[4..].parse::<u32>().expect("a number") / 37
    };
    (0..keys.len()).map(number).collect()
}

/// The operations of a script besides inserts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Remove,
    RemoveAndEvict,
    KeepRows(usize),
}

/// Keys, times and numbers.
type Entries = (Vec<u32>, Vec<i64>, Vec<i64>);

struct Script {
    random: Random,
    mode: Mode,
    aggs: Vec<AggSpec>,
    dtypes: Vec<DType>,
    held: Box<dyn Store>,
    oracle: Oracle,
    keys: u64,
    now: i64,
    /// Earlier entries may be held or not.
    until: i64,
    /// Of sessions, mostly.
    gap: i64,
    next: i64,
    what: String,
}

impl Script {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut requests = requests();
        requests.push((Vec::new(), Vec::new()));
        let request = requests.swap_remove(seed as usize % requests.len());
        let rows = random.pick(&[1, 7, 40, 500, 4000]);
        let mode = random.pick(&[Mode::Remove, Mode::RemoveAndEvict, Mode::KeepRows(rows)]);
        let keys = 1 + random.below(12);
        Self::of(seed, random, mode, request, keys)
    }

    fn of(
        seed: u64,
        mut random: Random,
        mode: Mode,
        (aggs, dtypes): (Vec<AggSpec>, Vec<DType>),
        keys: u64,
    ) -> Self {
        Self {
            mode,
            held: store(&aggs, &dtypes, true),
            what: format!("script {seed}, {mode:?}, {aggs:?}"),
            oracle: Oracle::default(),
            keys,
            now: 1000,
            until: i64::MIN,
            gap: random.below(12) as i64,
            next: 0,
            random,
            aggs,
            dtypes,
        }
    }

    /// Some entries that are held, runs of neighbours among them, and some that are not.
    fn entries(&mut self, share: u64) -> Entries {
        let (mut keys, mut times, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        let mut chosen = 0;
        for (key, rows) in &self.oracle.0 {
            for row in rows {
                chosen = match chosen {
                    0 if self.random.below(100) < share => 1 + self.random.below(share),
                    left => left.saturating_sub(1),
                };
                if chosen > 0 {
                    keys.push(*key);
                    times.push(row.time);
                    numbers.push(row.number);
                }
            }
        }
        for _ in 0..3 {
            keys.push(self.random.below(self.keys + 2) as u32);
            times.push(self.now - self.random.below(300) as i64);
            numbers.push(self.next + 1_000_000);
        }
        (keys, times, numbers)
    }

    /// The last entries of a key, and one that is not held.
    fn last_entries(&mut self) -> Entries {
        let key = self.random.below(self.keys) as u32;
        let rows = self.oracle.rows(key);
        // Rows in order fill leaves of 64: some of what is left ends with a leaf.
        let left = self.random.below(rows.len() as u64 + 1);
        let count = rows.len() as u64 - self.random.pick(&[left, left / 64 * 64]);
        let last = rows.iter().rev().take(count as usize);
        let (mut times, mut numbers): (Vec<i64>, Vec<i64>) =
            last.map(|row| (row.time, row.number)).unzip();
        times.push(self.now);
        numbers.push(self.next + 1_000_000);
        (vec![key; times.len()], times, numbers)
    }

    fn insert(&mut self, size: u64) {
        let size = self.random.pick(&[1, size, size, size]);
        let count = self.random.below(size);
        let rows = batch(&mut self.random, &mut self.now, self.keys, count);
        let share = self.random.pick(&[0, 1, 5, 60, 100]);
        let (keys, times, numbers) = match self.mode {
            Mode::KeepRows(_) => (Vec::new(), Vec::new(), Vec::new()),
            _ if self.random.below(4) == 0 => self.last_entries(),
            _ => self.entries(share),
        };
        self.change((keys, times, numbers), &rows);
    }

    /// Removes entries, then inserts rows.
    fn change(&mut self, (keys, times, numbers): Entries, rows: &Rows) {
        for ((key, time), number) in keys.iter().zip(&times).zip(&numbers) {
            self.oracle.remove(*key, *time, *number);
        }
        let gone_keys = Keys::of(&keys);
        let gone = EntryList {
            keys: gone_keys.view(),
            times: &times,
            numbers: &numbers,
        };
        let row_numbers: Vec<i64> = (self.next..).take(rows.times.len()).collect();
        let coming: BTreeSet<_> = rows.keys.iter().copied().collect();
        let mut either = coming.clone();
        either.extend(keys.iter().copied());
        let (keys, columns) = (Keys::of(&rows.keys), rows.columns());
        let columns = &columns[..self.dtypes.len()];
        let changed = if self.random.below(4) == 0 {
            self.insert_answering(gone, rows, &row_numbers)
        } else {
            let rows_in = rows.to_insert(&keys, columns, &row_numbers);
            let changed = self.held.insert(gone, rows_in);
            for row in 0..rows.times.len() {
                self.note(rows, row);
            }
            changed
        };
        assert!((coming.len()..=either.len()).contains(&changed));
        self.next += rows.times.len() as i64;
    }

    /// Adds a row of a batch to the oracle.
    fn note(&mut self, rows: &Rows, row: usize) {
        let valid = rows.valid[row / 8] >> (row % 8) & 1 == 1;
        let number = self.next + row as i64;
        let (time, int, float) = (rows.times[row], rows.ints[row], rows.floats[row]);
        let int = valid.then_some(int);
        self.oracle.insert(
            rows.keys[row],
            Row {
                time,
                number,
                int,
                float,
            },
        );
    }

    fn insert_answering(&mut self, gone: EntryList<'_>, rows: &Rows, numbers: &[i64]) -> usize {
        let ranks = 1 + self.random.below(5);
        let mut rank = || self.random.below(ranks) as i64;
        let arrivals: Vec<i64> = rows.times.iter().map(|_| rank()).collect();
        let (keys, columns) = (Keys::of(&rows.keys), rows.columns());
        let columns = &columns[..self.dtypes.len()];
        // Late rows reach back to what may have been evicted.
        let spans = [40, 7].map(|length| span(length, Closed::Right, 0));
        let rows_in = rows.to_insert(&keys, columns, numbers);
        let (answers, changed) = self.held.insert_answering(gone, rows_in, &arrivals, &spans);
        for arrival in 0..ranks as i64 {
            let together = (0..rows.times.len()).filter(|row| arrivals[*row] == arrival);
            let together: Vec<usize> = together.collect();
            for row in &together {
                self.note(rows, *row);
            }
            let exact = |row: &usize| rows.times[*row] - 40 > self.until;
            let queried: Vec<usize> = together.into_iter().filter(exact).collect();
            let points: Vec<u32> = queried.iter().map(|row| rows.keys[*row]).collect();
            let times: Vec<i64> = queried.iter().map(|row| rows.times[*row]).collect();
            let known = self.known(&points, &times, &spans);
            for (ours, known) in answers.iter().flatten().zip(known.iter().flatten()) {
                for (at, row) in queried.iter().enumerate() {
                    let (ours, known) = (cell(ours, *row), cell(known, at));
                    assert!(near(&ours, &known), "{}: {ours:?} {known:?}", self.what);
                }
            }
        }
        changed
    }

    fn known(&self, keys: &[u32], times: &[i64], spans: &[Span]) -> Vec<Vec<Output>> {
        let table = self.oracle.table();
        expected(&table, (keys, times), &self.aggs, spans, self.dtypes.len())
    }

    fn evict(&mut self) {
        let until = self
            .until
            .max(self.now - 200 - self.random.below(400) as i64);
        match self.mode {
            Mode::Remove => return,
            Mode::RemoveAndEvict => {
                self.held.evict(until, 0);
            }
            Mode::KeepRows(rows) => assert_eq!(self.held.evict(until, rows), 0),
        }
        self.until = until;
    }

    fn drop_idle(&mut self) {
        let until = self.now - 50 - self.random.below(300) as i64;
        let is_idle = |rows: &[Row]| rows[rows.len() - 1].time <= until;
        let idle = self.oracle.0.values().filter(|rows| is_idle(rows)).count();
        let dropped = self.held.drop_idle(until);
        if self.until == i64::MIN {
            assert_eq!(dropped, idle, "{}", self.what);
        }
        self.oracle.0.retain(|_, rows| !is_idle(rows));
    }

    fn close_sessions(&mut self) {
        if self.mode != Mode::Remove {
            return;
        }
        // Mostly the same one: then it is known how far it was looked at.
        let gap = match self.random.below(8) {
            0 => self.random.below(12) as i64,
            _ => self.gap,
        };
        let until = self.now - 20 - self.random.below(100) as i64;
        let bound = self.held.next_session(gap);
        assert!(bound <= self.oracle.first_session(gap), "{}", self.what);
        let ours = self.held.sessions(gap, until);
        let mut closed = self.oracle.close(gap, until);
        // The order of keys is the store's own.
        let mut rest = &ours[..];
        while let Some(first) = rest.first() {
            let key = closed.iter().find(|(_, rows)| rows[0] == *first);
            let key = *key.unwrap_or_else(|| panic!("{}: {first}", self.what)).0;
            let rows = closed.remove(&key).expect("a key");
            assert_eq!(rest[..rows.len()], rows, "{}", self.what);
            rest = &rest[rows.len()..];
        }
        assert!(closed.is_empty(), "{}: {closed:?}", self.what);
        let bound = self.held.next_session(gap);
        let is_open = bound.is_none_or(|bound| bound > until);
        assert!(is_open, "{}: {bound:?} {until}", self.what);
    }

    fn check(&mut self) {
        let what = self.what.clone();
        self.held
            .check()
            .unwrap_or_else(|why| panic!("{what}: {why}"));
        let since = self.until.saturating_add(1);
        let queried: Vec<u32> = (0..30)
            .map(|_| self.random.below(self.keys + 2) as u32)
            .collect();
        let of_points = Keys::of(&queried);

        let at = |random: &mut Random| self.now + 50 - random.below(400) as i64;
        let times: Vec<i64> = queried.iter().map(|_| at(&mut self.random)).collect();
        let spans = [1, 30, 150].map(|length| span(length, Closed::Right, 0));
        let exact = |time: &i64| *time - 150 > self.until;
        let (keys, times): (Vec<u32>, Vec<i64>) = queried
            .iter()
            .zip(&times)
            .filter(|(_, time)| exact(time))
            .unzip();
        let of_exact = Keys::of(&keys);
        let ours = self.held.query(&of_exact.at(&times, None), &spans);
        let known = self.known(&keys, &times, &spans);
        super::compare(&ours, &known, &what);

        let from: Vec<i64> = queried
            .iter()
            .map(|_| at(&mut self.random).max(since))
            .collect();
        let to: Vec<i64> = queried.iter().map(|_| at(&mut self.random)).collect();
        let (points, numbers) = self.held.rows(of_points.view(), (&from, &to));
        let mut known = (Vec::new(), Vec::new());
        for (point, key) in queried.iter().enumerate() {
            let rows = self.oracle.numbers(*key, (from[point], to[point]));
            known.1.extend(&rows);
            known.0.resize(known.1.len(), point as u32);
        }
        assert_eq!((points, numbers), known, "{what}: rows");
        self.check_keys(&what, &queried);
        self.check_entries(&what);
        self.check_windows(&what);
    }

    fn check_keys(&mut self, what: &str, queried: &[u32]) {
        let of_points = Keys::of(queried);
        if let Mode::KeepRows(most) = self.mode {
            // Those up to the time of eviction count by themselves.
            let until = self.random.pick(&[i64::MAX, self.until]);
            let (from, to) = (vec![i64::MIN; queried.len()], vec![until; queried.len()]);
            let (points, numbers) = self.held.rows(of_points.view(), (&from, &to));
            for (point, key) in (0..).zip(queried) {
                let rows = self.oracle.numbers(*key, (i64::MIN, until));
                let known = &rows[rows.len().saturating_sub(most)..];
                let of_point = points.iter().zip(&numbers).filter(|(at, _)| **at == point);
                let held: Vec<i64> = of_point.map(|(_, number)| *number).collect();
                assert!(held.ends_with(known), "{what}: the last {most}");
            }
        }
        let last = |key: &u32| self.oracle.rows(*key).last().map(|row| row.time);
        let seen = |last: &i64| *last > self.until || self.mode != Mode::RemoveAndEvict;
        let ours = self.held.last_times(of_points.view());
        for (key, ours) in queried.iter().zip(ours) {
            assert_eq!(ours.filter(seen), last(key).filter(seen), "{what}: {key}");
        }
        let list: KeyList = self.held.keys();
        let ours: Vec<(i64, u32)> = (list.lasts.iter().copied())
            .zip(numbers_of(list.view()))
            .filter(|(last, _)| seen(last))
            .collect();
        let keys = self.oracle.0.keys();
        let known: BTreeSet<(i64, u32)> = keys
            .filter_map(|key| Some((last(key).filter(seen)?, *key)))
            .collect();
        assert!(ours.is_sorted_by_key(|(last, _)| last), "{what}: {ours:?}");
        assert_eq!(BTreeSet::from_iter(ours), known, "{what}: keys");
    }

    fn check_entries(&mut self, what: &str) {
        let (keys, times, numbers) = self.entries(20);
        let of_entries = Keys::of(&keys);
        let held = self.held.holds(EntryList {
            keys: of_entries.view(),
            times: &times,
            numbers: &numbers,
        });
        for (at, held) in held.into_iter().enumerate() {
            if times[at] <= self.until {
                continue;
            }
            let mut rows = self.oracle.rows(keys[at]).iter();
            let known = rows.any(|row| (row.time, row.number) == (times[at], numbers[at]));
            assert_eq!(held, known, "{what}: holds");
        }
    }

    fn check_windows(&mut self, what: &str) {
        let grid = Grid {
            length: 1 + self.random.below(60) as i64,
            every: 1 + self.random.below(60) as i64,
            offset: self.random.below(100) as i64 - 50,
            calendar: None,
            cumulates: false,
        };
        let mut since = Some(self.now - self.random.below(500) as i64);
        if self.until > i64::MIN {
            since = since.max(Some(self.until + grid.length));
        } else if self.random.below(2) == 0 {
            since = None;
        }
        let until = self.now + 100 - self.random.below(300) as i64;
        let (list, ends) = self.held.windows(&grid, since, until).unwrap();
        let keys = numbers_of(list.view());
        assert!(ends.is_sorted(), "{what}: {ends:?}");
        let order: Vec<_> = (0..keys.len())
            .map(|at| (list.lasts[at], list.view().key(at)))
            .collect();
        assert!(order.is_sorted(), "{what}: {order:?}");
        let count = ends.len();
        let ours: BTreeSet<(i64, u32)> = ends
            .into_iter()
            .map(|(end, key)| (end, keys[key as usize]))
            .collect();
        assert_eq!(ours.len(), count, "{what}: a window twice");
        let known = self.oracle.windows(&grid, since, until);
        assert_eq!(ours, known, "{what}: {grid:?} {since:?} {until}");
        let next = self.held.next_window(&grid, since);
        let all = self.oracle.windows(&grid, since, i64::MAX);
        assert_eq!(next, all.first().map(|(end, _)| *end), "{what}: {grid:?}");
    }
}

/// A value of a column, as numbers.
fn cell(output: &Output, row: usize) -> Vec<f64> {
    let is_valid = |bytes: &[u8]| bytes[row / 8] >> (row % 8) & 1 == 1;
    match output {
        Output::I64 { values, valid, .. } if is_valid(&valid.bytes) => vec![values[row] as f64],
        Output::F64 { values, valid } if is_valid(&valid.bytes) => vec![values[row]],
        Output::List {
            ranges,
            values,
            dtype,
        } => {
            let of_bits = |bits: &u64| match dtype {
                DType::F64 => f64::from_bits(*bits),
                _ => *bits as i64 as f64,
            };
            let (from, to) = ranges[row];
            values[from..to].iter().map(of_bits).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn numbered_stores_do_as_lists_of_entries_do() {
    for seed in seeds(10) {
        let mut script = Script::new(seed);
        // From keys of one entry to keys of three levels.
        let size = script.random.pick(&[3, 40, 400, 4000]);
        for _ in 0..1 + script.random.below(8) {
            match script.random.below(6) {
                0 => script.evict(),
                1 => script.close_sessions(),
                2 if script.random.below(3) == 0 => script.drop_idle(),
                _ => script.insert(size),
            }
            script.check();
        }
    }
}

/// Sessions that grow, are split by removals and joined by late rows, and close.
#[test]
fn sessions_close_once_whatever_came_between() {
    for seed in seeds(10) {
        let mut script = Script::new(seed);
        if script.mode != Mode::Remove {
            continue;
        }
        script.keys = 1 + script.random.below(3);
        for _ in 0..40 {
            match script.random.below(2) {
                0 => script.close_sessions(),
                _ => script.insert(16),
            }
            let checked = script.held.check();
            checked.unwrap_or_else(|why| panic!("{}: {why}", script.what));
        }
    }
}

/// Trees of three levels, whose inner nodes lose entries.
#[test]
fn entries_leave_high_trees() {
    for seed in seeds(1).take(3) {
        let mut script = Script::new(seed);
        script.keys = 1 + script.random.below(2);
        if let Mode::KeepRows(_) = script.mode {
            script.mode = Mode::Remove;
        }
        for round in 0..8 {
            script.insert(if round == 0 { 30_000 } else { 3_000 });
            script.evict();
            script.check();
            let gone = script.last_entries();
            script.change(gone, &Rows::default());
            script.check();
        }
    }
}

/// It was known that the first session ends at 6 or later, until 6 was removed.
#[test]
fn a_removal_may_end_a_session_earlier() {
    let held = store(&[], &[], true);
    let mut rows = Rows::default();
    for time in [0, 3, 6, 9] {
        rows.push(0, time, None, 0.0);
    }
    let (keys, numbers) = (Keys::of(&rows.keys), [0, 1, 2, 3]);
    held.insert(EntryList::default(), rows.to_insert(&keys, &[], &numbers));
    assert!(held.sessions(3, 5).is_empty());
    assert_eq!(held.next_session(3), Some(6));
    let (gone, no_keys) = (Keys::of(&[0]), Keys::of(&[]));
    let gone = EntryList {
        keys: gone.view(),
        times: &[6],
        numbers: &[2],
    };
    held.insert(gone, Rows::default().to_insert(&no_keys, &[], &[]));
    assert_eq!(held.next_session(3), Some(3));
    assert_eq!(held.sessions(3, 5), [0, 1]);
    assert_eq!(held.sessions(3, 9), [3]);
    assert!(held.is_empty());
}
