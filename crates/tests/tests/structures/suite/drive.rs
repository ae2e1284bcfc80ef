//! Drives a structure through sizes, and counts, for the tests of costs.

use crate::common::Random;
use crate::common::costs::sizes;
use crate::common::monoids::take_combines;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::Window;
use slidewise_core::window::fifo::Fifo;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Do {
    Insert,
    Evict,
    Query,
}

/// A number of operations, with a query after each.
fn run(step: &mut impl FnMut(Do), what: Do, count: usize) {
    for _ in 0..count {
        step(what);
        step(Do::Query);
    }
}

fn slide(step: &mut impl FnMut(Do), count: usize) {
    for _ in 0..count {
        run(step, Do::Insert, 1);
        run(step, Do::Evict, 1);
    }
}

/// Runs through sizes: filled to n, slid by n, swung to n/2 and back three times, drained
/// and filled twice, like a saw, drained. A query after every change.
pub fn drive(n: usize, mut step: impl FnMut(Do)) {
    run(&mut step, Do::Insert, n);
    slide(&mut step, n);
    for _ in 0..3 {
        run(&mut step, Do::Evict, n / 2);
        run(&mut step, Do::Insert, n / 2);
    }
    for _ in 0..2 {
        run(&mut step, Do::Evict, n);
        run(&mut step, Do::Insert, n);
    }
    run(&mut step, Do::Evict, n);
}

/// Filled, drained to a half, filled, drained, with a query now and then: for sizes too
/// large to [`drive`] through.
pub fn saw(n: usize, mut step: impl FnMut(Do)) {
    for (what, count) in [
        (Do::Insert, n),
        (Do::Evict, n / 2),
        (Do::Insert, n / 2),
        (Do::Evict, n),
    ] {
        for at in 0..count {
            step(what);
            if at % 16 == 0 {
                step(Do::Query);
            }
        }
    }
}

/// Filled to n, then slid: each slide is an evict, an insert and one query; drained.
pub fn in_pairs(n: usize, slides: usize, mut step: impl FnMut(Do)) {
    run(&mut step, Do::Insert, n);
    pairs(slides, &mut step);
    run(&mut step, Do::Evict, n);
}

/// Slides of a window that holds something.
pub fn pairs(slides: usize, mut step: impl FnMut(Do)) {
    for _ in 0..slides {
        step(Do::Evict);
        step(Do::Insert);
        step(Do::Query);
    }
}

/// Stays within two of n, after a slide by `by`: a costly step at this size must not repeat.
/// Then drains.
pub fn tremble(n: usize, by: usize, mut step: impl FnMut(Do)) {
    run(&mut step, Do::Insert, n);
    slide(&mut step, by);
    for wide in [1.min(n), 2.min(n)] {
        for (one, other) in [(Do::Insert, Do::Evict), (Do::Evict, Do::Insert)] {
            for _ in 0..n.min(20) {
                run(&mut step, one, wide);
                run(&mut step, other, wide);
            }
        }
    }
    run(&mut step, Do::Evict, n);
}

/// A random walk, one up or one down, from 0 and back at last.
pub fn walk(seed: u64, steps: usize, mut step: impl FnMut(Do)) {
    let (mut random, mut len) = (Random(seed), 0);
    let mut go = |up: bool| {
        step(if up { Do::Insert } else { Do::Evict });
        step(Do::Query);
    };
    for _ in 0..steps {
        let up = len == 0 || random.below(2) == 0;
        len = if up { len + 1 } else { len - 1 };
        go(up);
    }
    (0..len).for_each(|_| go(false));
}

/// Applies an operation to a queue.
pub fn queue<M: Monoid, F: Fifo<M>>(mut fifo: F) -> impl FnMut(Do)
where
    M::In: From<i64>,
{
    let mut value = 0;
    move |what| match what {
        Do::Insert => {
            value += 1;
            let partial = fifo.monoid().lift(&value.into());
            fifo.insert(partial);
        }
        Do::Evict => fifo.evict(),
        Do::Query => drop(fifo.query()),
    }
}

/// Applies an operation to a window; times rise.
pub fn window<M: Monoid, W: Window<M>>(mut window: W) -> impl FnMut(Do)
where
    M::In: From<i64>,
{
    let mut time = 0;
    move |what| match what {
        Do::Insert => {
            time += 1;
            window.insert(time, Entry::Raw(time.into()));
        }
        Do::Evict => drop(window.evict()),
        Do::Query => drop(window.query()),
    }
}

/// The amortised payments of an insert, an evict and a query; none leaves one out.
pub type Pays = [Option<u64>; 3];

/// Combines per insert, evict and query.
#[derive(Debug, Default)]
pub struct Counted {
    /// The worst of each.
    pub worst: [u64; 3],
    /// The most by which the combines so far have ever been more than was paid for them.
    pub debt: i64,
    /// The most entries there have been.
    pub most: u64,
}

impl Counted {
    /// log₂ of the most entries, rounded down.
    pub fn log(&self) -> u64 {
        u64::from(self.most.max(1).ilog2())
    }

    /// Whether the worst of each is at most that.
    #[track_caller]
    pub fn at_worst(&self, bounds: [u64; 3]) {
        let mut pairs = self.worst.iter().zip(bounds);
        let kept = pairs.all(|(worst, bound)| *worst <= bound);
        assert!(kept, "{self:?}, bounds {bounds:?}");
    }
}

/// Counts the combines of a structure on a path.
pub fn counted(
    pays: Pays,
    mut step: impl FnMut(Do),
    path: impl FnOnce(&mut dyn FnMut(Do)),
) -> Counted {
    let mut counts = Counted::default();
    let (mut balance, mut len) = (0, 0_i64);
    take_combines();
    path(&mut |what| {
        step(what);
        let (spent, at) = (take_combines(), what as usize);
        counts.worst[at] = counts.worst[at].max(spent);
        if let Some(paid) = pays[at] {
            balance += spent as i64 - paid as i64;
            counts.debt = counts.debt.max(balance);
        }
        len += i64::from(what == Do::Insert) - i64::from(what == Do::Evict);
        counts.most = counts.most.max(len.max(0) as u64);
    });
    assert_eq!(len, 0, "a path ends where it began");
    counts
}

/// Counts on all paths: up and down at sizes small, odd and large, around every small size
/// in every state, and at random. `make` gets the approximate number of entries.
pub fn on_all_paths<S: FnMut(Do)>(pays: Pays, make: impl Fn(usize) -> S, check: impl Fn(&Counted)) {
    for n in sizes().map(|log| 1 << log).chain([7, 63, 1000, 4095]) {
        check(&counted(pays, make(n), |step| drive(n, step)));
        let slides = (3 * n).clamp(100, 1 << 18);
        check(&counted(pays, make(n), |step| in_pairs(n, slides, step)));
    }
    for n in 1..=40 {
        for by in 0..=2 * n {
            check(&counted(pays, make(n), |step| tremble(n, by, step)));
        }
    }
    for seed in 0..20 {
        check(&counted(pays, make(8), |step| walk(seed, 20_000, step)));
    }
}

/// Combines that `work` takes.
pub fn combines<T>(work: impl FnOnce() -> T) -> u64 {
    take_combines();
    work();
    take_combines()
}

/// m (1 + ⌈log₂(n/m)⌉).
pub fn update_bound(n: usize, m: usize) -> u64 {
    let mut ratio = 0;
    while m << ratio < n {
        ratio += 1;
    }
    (m * (1 + ratio)) as u64
}
