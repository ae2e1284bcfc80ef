//! The costs on the cards, row by row, in both directions: no operation takes more, and one
//! takes exactly as much. Windows have 2⁴ to 2¹² entries here, up to 2²⁰ in `make test-long`.

use crate::cards::{ALGORITHMS, TABLE, lawful, window_of};
use crate::common::costs::all_sizes;
use crate::common::monoids::{take_combines, take_inverses};
use crate::suite::drive::{Do, drive, in_pairs, tremble};
use crate::suite::heavy::{Nothing, sum, take_copies};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::costs::{Amount, Bulk, Cost, CostCard, Costs, MOVED_AT_ONCE};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::steps;
use slidewise_core::window::{Batch, Ties, Window};

/// An operation on a window, whose entries have rising times.
type Stepper = Box<dyn FnMut(Do)>;

/// A function of the window of a row, of any type.
pub trait Use {
    fn take<M: Monoid<In: From<i64>>, W: Window<M> + 'static>(&mut self, window: W);

    fn queue<M: Monoid<In: From<i64>>, F: Fifo<M>>(&mut self, fifo: F, ties: Ties) {
        self.take(InOrder::new(fifo, ties));
    }
}

/// Makes a stepper, whose values fall from each multiple of `period` to the next.
struct Stepping {
    period: i64,
    made: Option<Stepper>,
}

impl Use for Stepping {
    fn take<M: Monoid<In: From<i64>>, W: Window<M> + 'static>(&mut self, mut window: W) {
        let (mut time, period) = (0, self.period);
        self.made = Some(Box::new(move |what| match what {
            Do::Insert => {
                time += 1;
                window.insert(time, Entry::Raw((-(time % period)).into()));
            }
            Do::Evict => drop(window.evict()),
            Do::Query => drop(window.query()),
        }));
    }
}

fn stepper(row: &CostCard, ties: Ties, n: usize) -> Stepper {
    let mut step = Stepping {
        period: n as i64,
        made: None,
    };
    lawful(row, ties, n, &mut step);
    step.made.expect("a window")
}

fn spent() -> u64 {
    take_combines() + take_inverses()
}

/// The most combines of an insert, an evict, a query, and of three in a row that are one of
/// each, the query last.
#[derive(Clone, Copy, Debug, Default)]
struct Worst([u64; 4]);

impl Worst {
    /// Takes a path, of which only what happens to up to n entries counts.
    fn take(&mut self, mut step: Stepper, n: usize, path: impl FnOnce(&mut dyn FnMut(Do))) {
        let (mut len, mut recent) = (0, [(Do::Query, 0); 2]);
        spent();
        path(&mut |what| {
            let before = len;
            match what {
                Do::Insert => len += 1,
                Do::Evict => len -= 1,
                Do::Query => (),
            }
            step(what);
            let now = if len.max(before) <= n { spent() } else { 0 };
            spent();
            let at = what as usize;
            self.0[at] = self.0[at].max(now);
            let both =
                recent.iter().all(|(kind, _)| *kind != Do::Query) && recent[0].0 != recent[1].0;
            if what == Do::Query && both {
                self.0[3] = self.0[3].max(recent[0].1 + recent[1].1 + now);
            }
            recent = [recent[1], (what, now)];
        });
    }
}

/// Filled to less than n, then entries come before others go.
fn overlapping(n: usize, slides: usize, step: &mut dyn FnMut(Do)) {
    for _ in 1..n {
        step(Do::Insert);
        step(Do::Query);
    }
    for _ in 0..slides {
        step(Do::Insert);
        step(Do::Evict);
        step(Do::Query);
    }
}

/// Operations on about n entries.
type Path = fn(usize, &mut dyn FnMut(Do));

/// Whether every query of a row reads all entries.
fn reads_all(row: &CostCard) -> bool {
    let amortised = row.costs(Ties::Keep).query.amortised;
    matches!(amortised, Amount::Exactly(formula) if formula.entries > 0.0)
}

/// Passes on one query of `every`, and all other operations.
fn with_few_queries(every: usize, step: &mut dyn FnMut(Do)) -> impl FnMut(Do) {
    let mut queries = 0_usize;
    move |what| {
        queries += usize::from(what == Do::Query);
        if what != Do::Query || queries.is_multiple_of(every) {
            step(what);
        }
    }
}

fn worst(row: &CostCard, ties: Ties, n: usize) -> Worst {
    let mut found = Worst::default();
    // 20 n queries that read 2²⁰ entries each would take days. An odd number, because every
    // second query of a slide counts n + 1 entries.
    let every = if reads_all(row) && n > 1 << 13 {
        (n / 64) | 1
    } else {
        1
    };
    let paths: [Path; 3] = [
        |n, step| drive(n, step),
        |n, step| in_pairs(n, 2 * n, step),
        |n, step| overlapping(n, 2 * n, step),
    ];
    for path in paths {
        found.take(stepper(row, ties, n), n, |step| {
            path(n, &mut with_few_queries(every, step));
        });
    }
    found
}

const OPERATIONS: [&str; 4] = ["insert", "evict", "query", "slide"];

fn all(costs: &Costs) -> [Cost; 4] {
    [costs.insert, costs.evict, costs.query, costs.slide]
}

fn name(row: &CostCard, ties: Ties) -> String {
    format!("{} {} {ties:?}", row.algorithm, row.variant)
}

fn each_row(mut check: impl FnMut(&CostCard, Ties)) {
    for row in &TABLE {
        for ties in [Ties::Keep, Ties::Combine] {
            check(row, ties);
        }
    }
}

/// Exponents of lengths.
fn lengths(small: &'static [u32], large: &'static [u32]) -> impl Iterator<Item = u32> {
    let more = if all_sizes() { large } else { &[] };
    small.iter().chain(more).copied()
}

#[test]
fn every_algorithm_has_its_rows() {
    let mut rows: Vec<&str> = TABLE.iter().map(|row| row.algorithm).collect();
    rows.dedup();
    let names: Vec<&str> = ALGORITHMS.iter().map(|known| known.0.name).collect();
    assert_eq!(rows, names);
}

/// Whether a number is that of a table: nothing found is above it, and one is there. Found
/// are pairs of a length and what was counted.
fn is_reached(found: &[(u64, u64)], number: impl Fn(u64) -> f64) -> bool {
    let mut pairs = found.iter().map(|(n, count)| (*count as f64, number(*n)));
    pairs.clone().all(|(count, number)| count <= number)
        && pairs.any(|(count, number)| count == number)
}

/// Around each power of two no operation takes more, and one of each kind takes as much; so
/// it would not be true of one more or one less.
#[test]
fn the_worst_of_each_operation_is_that_of_the_table() {
    each_row(|row, ties| {
        let costs = all(&row.costs(ties));
        let mut first = [0; 4];
        // Leaves of 64 make few levels: those grow later.
        let tree = matches!(costs[3].worst, Amount::Order(_));
        let large = tree && ties == Ties::Combine;
        for log in lengths(&[6, 9, 12], &[15, 20]).filter(|log| large || *log != 12) {
            let n = 1_usize << log;
            let near = n - 2..=n + 2;
            let counts: Vec<(u64, Worst)> = near.map(|n| (n as u64, worst(row, ties, n))).collect();
            for (at, cost) in costs.iter().enumerate() {
                let found: Vec<(u64, u64)> =
                    counts.iter().map(|(n, worst)| (*n, worst.0[at])).collect();
                let what = format!("{} of {}: {found:?}", OPERATIONS[at], name(row, ties));
                match cost.worst {
                    Amount::Exactly(formula) => {
                        for (off, right) in [(0.0, true), (1.0, false), (-1.0, false)] {
                            let is = is_reached(&found, |n| formula.at(n) + off);
                            assert_eq!(is, right, "{what}, {formula} + {off}");
                        }
                    }
                    // Trees: bounds by arity are in costs.rs and costs_trees.rs.
                    Amount::Order(_) => {
                        let most = found.iter().map(|(_, count)| *count).max().unwrap_or(0);
                        if log == 6 {
                            first[at] = most;
                        }
                        assert!(first[at] < most || log < 12, "{what} does not grow");
                        assert!(most <= 32 * u64::from(log), "{what} grows faster");
                    }
                }
            }
        }
    });
}

/// Small windows of any length, in any state; those of less than sixteen entries take no
/// more than one of sixteen.
#[test]
fn small_windows_cost_no_more_than_their_card() {
    each_row(|row, ties| {
        for n in (1..=17).chain([22, 27, 31, 32]) {
            let mut found = worst(row, ties, n);
            for by in (0..=2 * n).step_by(3) {
                found.take(stepper(row, ties, n), n, |step| {
                    tremble(n.saturating_sub(2), by, step)
                });
            }
            for (at, cost) in all(&row.costs(ties)).iter().enumerate() {
                let bound = cost.worst.at(n.max(16) as u64).unwrap_or(f64::MAX);
                let what = format!("{} of {} {n}", OPERATIONS[at], name(row, ties));
                assert!(found.0[at] as f64 <= bound, "{what}: {found:?}, {bound}");
            }
        }
    });
}

fn slides(step: &mut Stepper, count: usize, mut each: impl FnMut(Do)) {
    for _ in 0..count {
        for what in [Do::Evict, Do::Insert, Do::Query] {
            step(what);
            each(what);
        }
    }
}

/// In a long run of slides, each operation takes on average the cost in the table, within a
/// tenth; in trees, whose nodes fill up differently, within a factor of four.
#[test]
fn the_average_of_each_operation_is_that_of_the_table() {
    each_row(|row, ties| {
        let costs = all(&row.costs(ties));
        for log in lengths(&[12], &[15, 20]) {
            let n = 1_usize << log;
            let mut step = stepper(row, ties, n);
            (0..n).for_each(|_| step(Do::Insert));
            let count = if reads_all(row) { 64 } else { 2 * n };
            slides(&mut step, count, |_| ());
            let mut sums = [0; 4];
            spent();
            slides(&mut step, count, |what| {
                let now = spent();
                sums[what as usize] += now;
                sums[3] += now;
            });
            let each = sums.map(|sum| sum as f64 / count as f64);
            let near = match costs[0].amortised {
                Amount::Exactly(_) => 0.1,
                Amount::Order(_) => 0.4,
            };
            for (at, cost) in costs.iter().enumerate() {
                let what = format!("{} of {} {n}: {each:?}", OPERATIONS[at], name(row, ties));
                match cost.amortised {
                    Amount::Exactly(formula) => {
                        for (off, right) in [(0.0, true), (1.0, false), (-1.0, false)] {
                            let is = (each[at] - formula.at(n as u64) - off).abs() <= near;
                            assert_eq!(is, right, "{what}, {formula} + {off}");
                        }
                    }
                    Amount::Order("1") => assert!(each[at] <= 30.0, "{what}"),
                    Amount::Order(_) => assert!(each[at] <= 16.0 * f64::from(log), "{what}"),
                }
            }
        }
    });
}

#[test]
fn a_repeated_query_costs_as_its_card() {
    each_row(|row, ties| {
        let n = 1 << 10;
        let mut step = stepper(row, ties, n);
        (0..n).for_each(|_| step(Do::Insert));
        let mut most = 0;
        for _ in 0..n {
            slides(&mut step, 1, |_| ());
            spent();
            step(Do::Query);
            most = most.max(spent());
        }
        let repeated = row.costs(ties).repeated;
        match repeated.at(n as u64) {
            Some(bound) => assert_eq!(most as f64, bound, "{}", name(row, ties)),
            None => assert!((2..=20).contains(&most), "{} {most}", name(row, ties)),
        }
    });
}

/// Counts what operations on m entries take, and what m operations do.
struct InBulk<'a> {
    costs: &'a Costs,
    name: String,
    n: u64,
    /// The most that a bulk evict has taken.
    most: u64,
}

fn batch<M: Monoid<In: From<i64>>>(times: std::ops::Range<i64>) -> Batch<M> {
    let mut batch = Batch::with_capacity((times.end - times.start) as usize);
    for time in times {
        batch.push(time, Entry::Raw((-time).into()));
    }
    batch
}

impl Use for InBulk<'_> {
    fn take<M: Monoid<In: From<i64>>, W: Window<M> + 'static>(&mut self, window: W) {
        let n = self.n as i64;
        for filled in [n, 3 * n] {
            for m in [1, 2, 3, 10, 63, 64, 65, 100, n - 1] {
                let mut window = window.clone();
                for time in 0..filled {
                    window.insert(time, Entry::Raw((-time).into()));
                    window.query();
                }
                let until = filled - n;
                (0..until).for_each(|_| _ = window.evict());
                window.query();
                self.evict(&window, until + m - 1);
                self.insert(&window, filled..filled + m);
            }
        }
    }
}

impl InBulk<'_> {
    fn evict<M: Monoid<In: From<i64>>, W: Window<M>>(&mut self, window: &W, to: i64) {
        let (mut single, mut bulk) = (window.clone(), window.clone());
        spent();
        while single.oldest().is_some_and(|oldest| oldest <= to) {
            single.evict();
        }
        let singly = spent();
        bulk.evict_until(to);
        let at_once = spent();
        self.most = self.most.max(at_once);
        match self.costs.evict_until {
            Bulk::OneByOne => assert_eq!(at_once, singly, "{}", self.name),
            Bulk::AtMost(amount) => {
                let bound = amount.at(self.n).expect("a number");
                assert!(at_once as f64 <= bound, "{} {at_once}, {bound}", self.name);
            }
            // In costs.rs and costs_trees.rs.
            Bulk::Order(_) => (),
        }
    }

    fn insert<M: Monoid<In: From<i64>>, W: Window<M>>(
        &self,
        window: &W,
        times: std::ops::Range<i64>,
    ) {
        let (mut single, mut bulk) = (window.clone(), window.clone());
        spent();
        for time in times.clone() {
            single.insert(time, Entry::Raw((-time).into()));
        }
        let singly = spent();
        bulk.insert_batch(batch(times));
        let at_once = spent();
        match self.costs.insert_many {
            Bulk::OneByOne => assert_eq!(at_once, singly, "{}", self.name),
            Bulk::AtMost(_) | Bulk::Order(_) => (),
        }
    }
}

#[test]
fn bulk_operations_cost_as_their_card() {
    each_row(|row, ties| {
        let costs = row.costs(ties);
        let mut reached = false;
        for n in [127, 128] {
            let mut count = InBulk {
                costs: &costs,
                name: name(row, ties),
                n,
                most: 0,
            };
            lawful(row, ties, n as usize, &mut count);
            reached |= match costs.evict_until {
                Bulk::AtMost(amount) => amount.at(n) == Some(count.most as f64),
                Bulk::OneByOne | Bulk::Order(_) => true,
            };
        }
        assert!(reached, "{}: less than stated", name(row, ties));
    });
}

/// The most moves of an operation, in windows that are filled, slid and drained.
struct Moved(u64, usize);

impl Use for Moved {
    fn take<M: Monoid<In: From<i64>>, W: Window<M> + 'static>(&mut self, window: W) {
        let mut step = Stepping {
            period: 1,
            made: None,
        };
        step.take(window);
        let mut step = step.made.expect("a window");
        steps::take(steps::Step::Move);
        take_copies();
        drive(self.1, |what| {
            step(what);
            self.0 = self.0.max(take_copies() + steps::take(steps::Step::Move));
        });
    }
}

/// Multiples of n to a tenth of n; what is constant, to the three queues of a window (their
/// exact number is in queue.rs).
#[test]
fn an_operation_moves_entries_as_its_card() {
    each_row(|row, ties| {
        if ["subtract_on_evict", "slick_deque", "recalculate"].contains(&row.algorithm) {
            return; // Of the first two the queues are those of others.
        }
        for log in lengths(&[12], &[13, 18]) {
            // One more than a power of two, and that is the open one.
            let n = (1_usize << log) + 1;
            let mut moved = Moved(0, n);
            window_of(row, sum::<Nothing>(), ties, n, &mut moved);
            let what = format!("{} {n}: {} moves", name(row, ties), moved.0);
            match row.costs(ties).moves {
                Amount::Exactly(bound) if bound.entries > 0.0 => {
                    let each = moved.0 as f64 / n as f64;
                    assert!((each - bound.entries).abs() <= 0.1, "{what}, {bound}");
                }
                Amount::Exactly(_) => assert!(moved.0 <= 3 * MOVED_AT_ONCE + 8, "{what}"),
                Amount::Order(_) => assert!(moved.0 <= 400 + 32 * u64::from(log), "{what}"),
            }
        }
    });
}
