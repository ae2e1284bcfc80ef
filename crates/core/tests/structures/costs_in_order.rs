//! The costs promised on the cards of the first-in first-out structures, asserted by
//! counting: combines, inverses, and what is copied or moved.
//!
//! Sizes run from 2⁰ to 2²⁰, and to 2²² where the worst case is the promise; sizes that
//! stay, that swing between n/2 and n, and that rise and fall like a saw.

use std::cell::Cell;

use crate::common::monoids::{Affine, take_combines, take_inverses};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer};
use slidewise_core::window::aba::Aba;
use slidewise_core::window::daba::Daba;
use slidewise_core::window::daba_lite::DabaLite;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::in_order::InOrder;
use slidewise_core::window::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::two_stacks::TwoStacks;
use slidewise_core::window::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::{Ties, Window};

const SIZES: [u32; 7] = [0, 1, 3, 6, 10, 15, 20];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Do {
    Insert,
    Evict,
    Query,
}

/// Runs through sizes: filled to n, slid by n, swung to n/2 and back three times, drained
/// and filled twice, drained. A query after every change.
fn drive(n: usize, mut step: impl FnMut(Do)) {
    let mut run = |what: Do, count: usize| {
        for _ in 0..count {
            step(what);
            step(Do::Query);
        }
    };
    run(Do::Insert, n);
    for _ in 0..n {
        run(Do::Insert, 1);
        run(Do::Evict, 1);
    }
    for _ in 0..3 {
        run(Do::Evict, n / 2);
        run(Do::Insert, n / 2);
    }
    for _ in 0..2 {
        run(Do::Evict, n);
        run(Do::Insert, n);
    }
    run(Do::Evict, n);
}

/// Combines per insert, evict and query: the worst of each, and the mean.
struct Counted {
    worst: [u64; 3],
    total: [u64; 3],
    times: [u64; 3],
}

fn counted<F: Fifo<Affine<0>>>(mut fifo: F, n: usize) -> Counted {
    let monoid = Affine::<0>;
    let mut counts = Counted {
        worst: [0; 3],
        total: [0; 3],
        times: [0; 3],
    };
    let mut value = 0;
    take_combines();
    drive(n, |what| {
        match what {
            Do::Insert => {
                value += 1;
                fifo.insert(monoid.lift(&value));
            }
            Do::Evict => fifo.evict(),
            Do::Query => {
                fifo.query();
            }
        }
        let spent = take_combines();
        let at = what as usize;
        counts.worst[at] = counts.worst[at].max(spent);
        counts.total[at] += spent;
        counts.times[at] += 1;
    });
    assert!(fifo.is_empty());
    counts
}

fn amortised<F: Fifo<Affine<0>>>(make: impl Fn() -> F) {
    for log in SIZES {
        let n = 1 << log;
        let counts = counted(make(), n);
        let all: u64 = counts.total.iter().sum();
        let rounds = counts.times[Do::Insert as usize];
        // Every insert has its evict and two queries here, of which one is free to charge.
        let queries = counts.total[Do::Query as usize];
        assert!(
            all - queries <= 2 * rounds,
            "{all} in {rounds} rounds at n = {n}"
        );
        assert!(counts.worst[Do::Insert as usize] <= 1);
        assert!(counts.worst[Do::Query as usize] <= 1);
        assert!(counts.worst[Do::Evict as usize] < n.max(1) as u64 + 1);
    }
}

#[test]
fn two_stacks_and_aba_take_three_amortised() {
    amortised(|| TwoStacks::new(Affine, true));
    amortised(|| TwoStacks::new(Affine, false));
    amortised(|| TwoStacksLite::new(Affine));
    amortised(|| Aba::new(Affine, true));
    amortised(|| Aba::new(Affine, false));
}

fn worst_case<F: Fifo<Affine<0>>>(make: impl Fn() -> F, insert: u64, evict: u64) {
    for log in SIZES {
        let n = 1 << log;
        let counts = counted(make(), n);
        let worst = counts.worst;
        let bounds = [insert, evict, 1];
        assert!(
            worst
                .iter()
                .zip(bounds)
                .all(|(worst, bound)| *worst <= bound),
            "{worst:?} for insert, evict, query at n = {n}, bounds {bounds:?}"
        );
        if (insert, evict) == (3, 2) {
            // 2 per insert and 1 per evict on average, a window's start and end aside.
            let both = counts.total[0] + counts.total[1];
            let bound = 3 * counts.times[0] + 2 * n as u64;
            assert!(
                both <= bound,
                "{both} for {} pairs at n = {n}",
                counts.times[0]
            );
        }
    }
}

/// DABA, theorem 9: with caching at most 1 per query, 3 per insert and 2 per evict, and 2
/// and 1 on average. Without caching figure 14 takes one more per fixup.
#[test]
fn daba_takes_constant_combines_in_the_worst_case() {
    worst_case(|| Daba::new(Affine, true), 3, 2);
    worst_case(|| DabaLite::new(Affine), 3, 2);
    worst_case(|| Daba::new(Affine, false), 4, 3);
}

#[test]
fn a_kept_answer_costs_nothing() {
    fn asked_again<F: Fifo<Affine<0>>>(mut fifo: F, again: u64) {
        for value in 0..100 {
            fifo.insert(Affine::<0>.lift(&value));
        }
        fifo.evict();
        fifo.query();
        take_combines();
        fifo.query();
        assert_eq!(take_combines(), again);
    }
    asked_again(TwoStacks::new(Affine, true), 0);
    asked_again(Aba::new(Affine, true), 0);
    asked_again(Daba::new(Affine, true), 0);
    asked_again(Daba::new(Affine, false), 1);
}

#[test]
fn subtracting_takes_one_of_each() {
    for log in SIZES {
        let mut fifo = SubtractOnEvict::new(Affine::<0>);
        take_combines();
        take_inverses();
        drive(1 << log, |what| {
            match what {
                Do::Insert => fifo.insert(Affine::<0>.lift(&1)),
                Do::Evict => fifo.evict(),
                Do::Query => {
                    fifo.query();
                }
            }
            let spent = (take_combines(), take_inverses());
            let most = match what {
                Do::Insert => (1, 0),
                Do::Evict => (0, 1),
                Do::Query => (0, 0),
            };
            assert!(
                spent.0 <= most.0 && spent.1 <= most.1,
                "{what:?}: {spent:?}"
            );
        });
    }
}

/// The window around a structure adds nothing under [`Ties::Keep`], and to a query one
/// combine with the open entry under [`Ties::Combine`], where equal times cost one.
#[test]
fn the_window_adds_one_combine_per_query_at_most() {
    for (ties, bound) in [(Ties::Keep, [3, 2, 1]), (Ties::Combine, [3, 2, 2])] {
        let mut window = InOrder::new(Daba::new(Affine::<0>, true), ties);
        let mut time = 0;
        take_combines();
        drive(1 << 14, |what| {
            match what {
                Do::Insert => {
                    time += 1;
                    window.insert(time, Entry::Raw(time));
                }
                Do::Evict => {
                    window.evict();
                }
                Do::Query => {
                    window.query();
                }
            }
            let spent = take_combines();
            assert!(
                spent <= bound[what as usize],
                "{what:?}: {spent} under {ties:?}"
            );
        });
    }
    let mut window = InOrder::new(DabaLite::new(Affine::<0>), Ties::Combine);
    for round in 0..1000 {
        window.insert(7, Entry::Raw(round));
        assert!(take_combines() <= 1);
    }
}

thread_local! {
    static COPIES: Cell<u64> = const { Cell::new(0) };
}

/// A partial that tells when it is copied or written over.
#[derive(Debug)]
struct Heavy(u64);

impl Clone for Heavy {
    fn clone(&self) -> Self {
        COPIES.with(|count| count.set(count.get() + 1));
        Self(self.0)
    }
}

/// So that queues must blank what leaves.
impl Drop for Heavy {
    fn drop(&mut self) {}
}

impl Codec for Heavy {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        u64::read(input).map(Self)
    }
}

#[derive(Clone, Debug)]
struct Sum;

impl Monoid for Sum {
    type In = i64;
    type Partial = Heavy;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    /// Queues put one where an entry was moved from.
    fn identity(&self) -> Heavy {
        COPIES.with(|count| count.set(count.get() + 1));
        Heavy(0)
    }
    fn lift(&self, value: &i64) -> Heavy {
        Heavy(*value as u64)
    }
    fn combine(&self, a: &Heavy, b: &Heavy) -> Heavy {
        Heavy(a.0.wrapping_add(b.0))
    }
    fn unlift(&self, partial: Heavy) -> std::result::Result<i64, Heavy> {
        Err(partial)
    }
    fn same(&self, a: &Heavy, b: &Heavy) -> bool {
        a.0 == b.0
    }
}

/// The most that any one operation copies or moves.
fn most_copies<F: Fifo<Sum>>(mut fifo: F, n: usize) -> u64 {
    let mut most = 0;
    COPIES.with(|count| count.set(0));
    drive(n, |what| {
        match what {
            Do::Insert => fifo.insert(Heavy(1)),
            Do::Evict => fifo.evict(),
            Do::Query => drop(fifo.query()),
        }
        most = most.max(COPIES.with(|count| count.replace(0)));
    });
    most
}

/// Worst case O(1) in moves, too: the same for all n. (Up to 64 entries are moved once a
/// window has shrunk to them, to give back what they no longer need.)
#[test]
fn daba_moves_a_constant_number_of_entries() {
    for log in [10, 14, 18, 22] {
        let n = 1 << log;
        let lite = most_copies(DabaLite::new(Sum), n);
        let full = most_copies(Daba::new(Sum, true), n);
        assert!(lite <= 70 && full <= 140, "{lite} and {full} at n = {n}");
    }
}

#[test]
fn memory_follows_the_entries() {
    fn drained<F: Fifo<Affine<0>>>(mut fifo: F) {
        for left in [1000, 50, 0] {
            while fifo.len() < 200_000 {
                fifo.insert(Affine::<0>.lift(&3));
            }
            assert!(fifo.bytes() > 4_000_000);
            while fifo.len() > left {
                fifo.evict();
            }
            for _ in 0..3 * left {
                fifo.insert(Affine::<0>.lift(&3));
                fifo.evict();
            }
            assert!(
                fifo.bytes() < 600_000,
                "{left} left: {} bytes",
                fifo.bytes()
            );
        }
    }
    drained(TwoStacks::new(Affine, true));
    drained(TwoStacksLite::new(Affine));
    drained(Aba::new(Affine, true));
    drained(Daba::new(Affine, true));
    drained(DabaLite::new(Affine));
    drained(SubtractOnEvict::new(Affine));
}
