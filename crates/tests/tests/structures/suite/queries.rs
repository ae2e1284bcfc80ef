//! Queries with range and slide: random sets of queries against their definition.

use std::fmt::Debug;

use crate::common::Random;
use crate::common::script::seeds;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::fifo::fold;
use slidewise_core::window::queries::final_aggregator::FinalAggregator;
use slidewise_core::window::queries::plan::{Query, Unit};
use slidewise_core::window::queries::schedule::{Schedule, ScheduleOptions};
use slidewise_core::window::queries::{Planning, QueryWindow};
use slidewise_core::window::{Batch, Window};

/// The number of each hundred scripts that a structure runs over a kind of partial.
const QUERIES: u64 = 1;

type Answers<P> = Vec<(i64, usize, P)>;

/// The entries that are held, and what has been answered.
struct Model<P> {
    terms: ScheduleOptions,
    queries: Vec<Option<Query>>,
    /// The time up to which the ends of each query were processed.
    done: Vec<Option<i64>>,
    entries: Vec<(i64, P)>,
    count: i64,
    youngest: Option<i64>,
    advanced: Option<i64>,
    /// The time of the earliest entry so far, evicted or not.
    earliest: Option<i64>,
    /// The same, once no earlier entry may arrive.
    first: Option<i64>,
}

impl<P: Clone + Debug> Model<P> {
    fn closed(&self) -> Option<i64> {
        let late = self.terms.late.unwrap_or(0);
        self.youngest.map(|time| time - late - 1).max(self.advanced)
    }

    fn answer<M: Monoid<Partial = P>>(&self, monoid: &M, query: Query, end: i64) -> Option<P> {
        let inside = |time: i64| end - query.range < time && time <= end;
        let held: Vec<&P> = match query.unit {
            Unit::Time => {
                let inside = self.entries.iter().filter(|(time, _)| inside(*time));
                inside.map(|(_, partial)| partial).collect()
            }
            Unit::Entries => {
                let last = self.entries.iter().rev().take(query.range as usize);
                let mut last: Vec<&P> = last.map(|(_, partial)| partial).collect();
                last.reverse();
                last
            }
            other => unreachable!("{other:?} is modelled in tests/window"),
        };
        (!held.is_empty() || self.terms.empty).then(|| fold(monoid, held))
    }

    /// The ends of time that are due now.
    fn due<M: Monoid<Partial = P>>(&mut self, monoid: &M) -> Answers<P> {
        let mut answers = Vec::new();
        let Some(closed) = self.closed() else {
            return answers;
        };
        let passed = |time: &i64| *time <= closed || self.terms.late.is_none();
        self.first = self.first.or(self.earliest.filter(passed));
        for (number, query) in self.queries.iter().enumerate() {
            let Some(query) = query.filter(|query| query.unit == Unit::Time) else {
                continue;
            };
            let from = self.done[number].map_or(i64::MIN, |done| done + 1);
            let ends = from.max(self.first.unwrap_or(i64::MAX))..=closed;
            for end in ends {
                if (end - self.terms.offset).rem_euclid(query.slide) == 0
                    && let Some(answer) = self.answer(monoid, query, end)
                {
                    answers.push((end, number, answer));
                }
            }
            self.done[number] = self.done[number].max(Some(closed));
        }
        answers
    }

    fn insert<M: Monoid<Partial = P>>(&mut self, monoid: &M, time: i64, partial: P) -> Answers<P> {
        self.youngest = self.youngest.max(Some(time));
        // Answers that fall due with an entry in order do not contain it.
        let mut answers = match self.terms.late {
            None => self.due(monoid),
            Some(_) => Vec::new(),
        };
        let at = self.entries.partition_point(|(other, _)| *other <= time);
        self.entries.insert(at, (time, partial));
        self.earliest = Some(self.earliest.map_or(time, |other| other.min(time)));
        self.count += 1;
        answers.extend(self.due(monoid));
        for (number, query) in self.queries.iter().enumerate() {
            let Some(query) = query.filter(|query| query.unit == Unit::Entries) else {
                continue;
            };
            if self.count % query.slide == 0
                && let Some(answer) = self.answer(monoid, query, time)
            {
                answers.push((time, number, answer));
            }
        }
        self.shed();
        answers
    }

    fn longest(&self, unit: Unit) -> Option<i64> {
        let live = self.queries.iter().flatten();
        live.filter(|query| query.unit == unit)
            .map(|query| query.range)
            .max()
    }

    /// An entry leaves when no range reaches it, from now or from where the stream is.
    fn shed(&mut self) {
        let Some(youngest) = self.youngest else {
            return;
        };
        let now = self.advanced.map_or(youngest, |to| to.max(youngest));
        let from = now.min(self.closed().expect("an entry") + 1);
        let (timed, counted) = (self.longest(Unit::Time), self.longest(Unit::Entries));
        let kept = counted
            .map_or(0, |most| most as usize)
            .min(self.entries.len());
        let most = self.entries.len() - kept;
        let by_time = |(time, _): &&(i64, P)| timed.is_none_or(|range| *time <= from - range);
        let gone = self.entries[..most].iter().take_while(by_time).count();
        self.entries.drain(..gone);
    }

    fn now(&self) -> i64 {
        self.youngest.max(self.advanced).unwrap_or(0)
    }
}

/// Equal ranges and slides, multiples, coprime ones, and slides longer than their ranges;
/// some with too long a composite slide to list.
fn draw_query(random: &mut Random, unit: Unit) -> Query {
    let slide = random.pick(&[1, 1, 2, 3, 4, 5, 6, 7, 10, 12, 30, 97, 101]);
    let range = match random.below(4) {
        0 => slide * random.pick(&[1, 2, 3, 5]),
        1 => slide,
        _ => random.pick(&[1, 2, 3, 5, 8, 13, 24, 40, 90]),
    };
    Query { unit, range, slide }
}

fn draw_queries(random: &mut Random, late: bool) -> Vec<Option<Query>> {
    let count = match random.below(4) {
        0 => 2 + random.below(63),
        _ => 1 + random.below(6),
    };
    let counted = if late { 0 } else { random.below(4) };
    let draw = |_| {
        let unit = match random.below(3) < counted {
            true => Unit::Entries,
            false => Unit::Time,
        };
        Some(draw_query(random, unit))
    };
    (0..count).map(draw).collect()
}

fn restored<M: Monoid>(window: &QueryWindow<M>, fresh: &QueryWindow<M>) -> QueryWindow<M> {
    let mut out = Writer::default();
    window.write(&mut out);
    let bytes = out.finish().expect("these values have a binary form");
    let (mut again, mut input) = (fresh.clone(), Reader::new(&bytes));
    again.read(&mut input).expect("just written");
    input.end().expect("read to the end");
    again
}

/// A window and its model, driven by one script.
struct Pair<M: Monoid> {
    random: Random,
    window: QueryWindow<M>,
    fresh: QueryWindow<M>,
    model: Model<M::Partial>,
    expected: Answers<M::Partial>,
}

impl<M: Monoid<In = i64>> Pair<M> {
    /// A time that is admitted.
    fn draw_time(&mut self) -> i64 {
        let youngest = self.model.youngest.unwrap_or(100);
        let late = self.model.terms.late.unwrap_or(0);
        let ahead = self.random.pick(&[0, 0, 1, 1, 1, 2, 9, 35]);
        let behind = self.random.below(late.unsigned_abs() + 1) as i64;
        let time = match self.random.below(2) {
            0 => youngest + ahead,
            _ => youngest - behind,
        };
        match self.model.closed() {
            Some(closed) => time.max(closed + 1),
            None => time,
        }
    }

    fn draw_value(&mut self) -> i64 {
        (self.random.next() >> 40) as i64
    }

    fn step(&mut self) {
        let monoid = self.window.monoid().clone();
        match self.random.below(24) {
            0..14 => {
                let (time, value) = (self.draw_time(), self.draw_value());
                self.window.insert(time, Entry::Raw(value));
                let due = self.model.insert(&monoid, time, monoid.lift(&value));
                self.expected.extend(due);
            }
            14..16 => self.insert_batch(&monoid),
            16 => {
                let time = self.model.now() + self.random.below(20) as i64;
                self.model.advanced = self.model.advanced.max(Some(time));
                self.window.advance(time);
                let due = self.model.due(&monoid);
                self.expected.extend(due);
                self.model.shed();
            }
            17 => {
                let unit = match self.model.terms.late.is_none() && self.random.below(2) == 0 {
                    true => Unit::Entries,
                    false => Unit::Time,
                };
                let query = draw_query(&mut self.random, unit);
                if !self.window.schedule().admits_query(query) {
                    return;
                }
                assert_eq!(self.window.add(query), self.model.queries.len());
                self.model.queries.push(Some(query));
                self.model.done.push(self.model.closed());
            }
            18 => {
                let number = self.random.below(self.model.queries.len() as u64 + 1) as usize;
                let there = self.model.queries.get_mut(number).and_then(Option::take);
                assert_eq!(self.window.drop_query(number), there.is_some());
                if there.is_some() {
                    self.model.shed();
                }
            }
            19 => {
                if self.model.terms.slices {
                    self.window.evict();
                    let oldest = self.window.oldest();
                    let gone = |(time, _): &(i64, _)| oldest.is_none_or(|oldest| *time < oldest);
                    let count = self.model.entries.partition_point(gone);
                    self.model.entries.drain(..count);
                    return;
                }
                let there = !self.model.entries.is_empty();
                assert_eq!(self.window.evict().is_some(), there);
                self.model.entries.drain(..usize::from(there));
            }
            20 => {
                let time = self.model.now() - self.random.below(40) as i64;
                if self.window.splits(time) {
                    return;
                }
                let count = self.model.entries.partition_point(|(at, _)| *at <= time);
                let evicted = self.window.evict_until(time);
                assert!(evicted == count || self.model.terms.slices);
                self.model.entries.drain(..count);
            }
            21 => self.window = restored(&self.window, &self.fresh),
            22 if self.random.below(8) == 0 => {
                self.window.clear();
                self.model.entries.clear();
                (self.model.count, self.model.first, self.model.earliest) = (0, None, None);
                (self.model.youngest, self.model.advanced) = (None, None);
                self.model.done.fill(None);
            }
            _ => {
                if let Some(closed) = self.model.closed() {
                    assert!(self.window.admits(closed).is_err());
                    assert!(self.window.admits(closed + 1).is_ok());
                }
            }
        }
    }

    fn insert_batch(&mut self, monoid: &M) {
        let mut entries: Vec<(i64, i64)> = Vec::new();
        let mut time = self.draw_time();
        for _ in 0..self.random.below(40) {
            entries.push((time, self.draw_value()));
            time += self.random.pick(&[0, 0, 1, 1, 2, 7]);
        }
        let mut batch = Batch::with_capacity(entries.len());
        for (time, value) in &entries {
            batch.push(*time, Entry::Raw(*value));
        }
        self.window.insert_batch(batch);
        // The entries of a call arrive together: none of them is late for the others.
        let late = self.model.terms.late;
        if let (Some(_), Some((last, _))) = (late, entries.last()) {
            let before = self.model.youngest;
            let span = last.max(&before.unwrap_or(*last)) - entries[0].0;
            self.model.terms.late = Some(span.max(late.unwrap()));
        }
        let many = entries.len();
        for (at, (time, value)) in entries.into_iter().enumerate() {
            if at + 1 == many {
                self.model.terms.late = late;
            }
            let due = self.model.insert(monoid, time, monoid.lift(&value));
            self.expected.extend(due);
        }
    }

    fn compare(&mut self, what: &str) {
        let monoid = self.window.monoid().clone();
        let fault = self.window.check().err();
        assert!(fault.is_none(), "{what}: {fault:?}");
        let due = self.window.take_due().into_iter();
        let mut due: Answers<M::Partial> =
            due.map(|due| (due.end, due.query, due.answer)).collect();
        let mut expected = std::mem::take(&mut self.expected);
        due.sort_by_key(|(end, query, _)| (*end, *query));
        expected.sort_by_key(|(end, query, _)| (*end, *query));
        let same = |((end, query, got), (at, number, want)): (_, _)| {
            let (_, _): (&i64, &usize) = (end, query);
            (end, query) == (at, number) && monoid.same(got, want)
        };
        let pairs = due.iter().map(|(a, b, c)| (a, b, c));
        let pairs = pairs.zip(expected.iter().map(|(a, b, c)| (a, b, c)));
        let all = due.len() == expected.len() && pairs.into_iter().all(same);
        let terms = self.model.terms;
        assert!(
            all,
            "{what}: {due:?}\ninstead of {expected:?}\nof {:?}, {terms:?}",
            self.model.queries
        );
        if terms.slices {
            let held = (self.model.entries.last(), self.window.youngest());
            let (Some((last, _)), Some(youngest)) = held else {
                return;
            };
            assert!(
                self.window.oldest() <= Some(self.model.entries[0].0),
                "{what}"
            );
            assert!(*last <= youngest, "{what}");
            return;
        }
        assert_eq!(self.window.len(), self.model.entries.len(), "{what}");
        let first = self.model.entries.first().map(|(time, _)| *time);
        let last = self.model.entries.last().map(|(time, _)| *time);
        let ends = (self.window.oldest(), self.window.youngest());
        assert_eq!(ends, (first, last), "{what}");
    }

    fn query(&mut self, what: &str) {
        if self.window.splitting().is_some() {
            return;
        }
        let (model, mut number) = (&mut self.model, 0);
        let empty = std::mem::replace(&mut model.terms.empty, true);
        let live: Vec<Query> = model.queries.iter().flatten().copied().collect();
        self.window.query_each(|monoid, got| {
            let want = model.answer(monoid, live[number], model.now());
            let want = want.expect("an answer over nothing");
            assert!(
                monoid.same(&got, &want),
                "{what}, {number}: {got:?}, {want:?}"
            );
            number += 1;
        });
        assert_eq!(number, live.len());
        self.model.terms.empty = empty;
    }
}

pub fn compare<M, A>(monoid: M, make: A)
where
    M: Monoid<In = i64> + Debug,
    A: Fn(&M) -> Box<dyn FinalAggregator<M>>,
{
    for seed in seeds(QUERIES) {
        let mut random = Random(seed);
        let mut terms = ScheduleOptions {
            offset: random.pick(&[0, 0, 1, -7, 1000]),
            late: random.pick(&[None, None, Some(0), Some(3), Some(25)]),
            empty: random.below(4) == 0,
            slices: random.below(4) == 0,
        };
        if terms.slices {
            terms.late = terms.late.filter(|_| monoid.commutative()).or(Some(0));
        }
        let queries = draw_queries(&mut random, terms.late.is_some());
        let fresh = QueryWindow::new(monoid.clone(), make(&monoid), queries.len());
        let mut window = fresh.clone();
        window.start(Schedule::new(terms, queries.clone()));
        let (steps, patient) = (random.pick(&[10, 40, 120]), random.below(3) == 0);
        let model = Model {
            terms,
            done: vec![None; queries.len()],
            queries,
            entries: Vec::new(),
            count: 0,
            youngest: None,
            advanced: None,
            earliest: None,
            first: None,
        };
        let mut pair = Pair {
            random,
            window,
            fresh,
            model,
            expected: Vec::new(),
        };
        for at in 0..steps {
            pair.step();
            let what = format!("seed {seed}, step {at}");
            pair.compare(&what);
            if !patient || at % 7 == 0 {
                pair.query(&what);
            }
        }
    }
}

/// Tests of the final aggregators of algorithms.
macro_rules! final_aggregators {
    ($($name:ident: $algorithm:expr;)*) => {$(
        mod $name {
            use super::*;
            use crate::common::monoids::Affine;
            use crate::common::owned::as_objects;
            use crate::suite::queries::compare;
            #[test]
            fn records() {
                compare(Affine::<0>, |monoid| aggregator($algorithm, monoid));
            }
            #[test]
            fn objects() {
                compare(as_objects(Affine::<0>), |monoid| aggregator($algorithm, monoid));
            }
        }
    )*};
}
pub(crate) use final_aggregators;
