//! The costs promised on the card of reactive, asserted by counting combines and copies,
//! n = 2⁰ to 2²⁰.

use crate::common::Random;
use crate::common::costs::sizes;
use crate::common::monoids::Affine;
use crate::suite::drive::{combines, update_bound};
use crate::suite::heavy::{Nothing, sum, take_copies};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::{Ties, Window};
use slidewise_papers::reactive::Reactive;

/// m evictions and m inserts, then a query: 2 m events, and the seam of the buffer.
#[test]
fn reactive_pays_for_events_once_per_trigger() {
    for log in sizes() {
        let n = 1_usize << log;
        for m in [1, 7, 64, 5000].into_iter().filter(|m| *m <= n) {
            let mut window = Reactive::new(Affine::<0>, Ties::Keep);
            let mut clock = 0;
            for _ in 0..n {
                window.insert(clock, Entry::Raw(clock));
                clock += 1;
            }
            window.query();
            let capacity = n.next_power_of_two().max(8);
            // In a full buffer an entry takes the place of the evicted one.
            let leaves = if n == capacity { m } else { 2 * m };
            let inverted = 2 * u64::from(capacity.ilog2()) + 1;
            for _ in 0..(3 * n / m).clamp(3, 2000) {
                let spent = combines(|| {
                    for _ in 0..m {
                        window.evict();
                        window.insert(clock, Entry::Raw(clock));
                        clock += 1;
                    }
                });
                assert_eq!(spent, 0, "events only note what changed");
                let spent = combines(|| window.query());
                let bound = update_bound(capacity, leaves) + inverted;
                assert!(
                    spent <= bound,
                    "{spent} for {m} events of {n}, bound {bound}"
                );
            }
        }
    }
}

/// Swings between two sizes; gives the combines of all queries and the number of events.
fn swing<M: Monoid<In: From<i64>>>(
    monoid: M,
    (low, high): (i64, i64),
    mut event: impl FnMut(),
) -> (u64, i64) {
    let mut window = Reactive::new(monoid, Ties::Keep);
    let (mut clock, mut events, mut total) = (0, 0, 0);
    while events < 3 * high + 4000 {
        while (window.len() as i64) < high {
            window.insert(clock, Entry::Raw(clock.into()));
            (clock, events) = (clock + 1, events + 1);
            event();
        }
        total += combines(|| window.query());
        take_copies();
        while window.len() as i64 > low {
            window.evict();
            events += 1;
            event();
        }
        total += combines(|| window.query());
        take_copies();
    }
    (total, events)
}

fn thresholds(n: i64) -> [(i64, i64); 3] {
    [(n / 4 - 1, n / 4 + 1), (n - 1, n + 1), (n / 8, n + 1)]
}

/// Sizes that go up and down around each threshold: resizes must not come in rows.
#[test]
fn reactive_oscillates_at_amortised_cost() {
    for log in sizes().filter(|log| *log >= 3) {
        let n = 1_i64 << log;
        for (low, high) in thresholds(n) {
            let (total, events) = swing(Affine::<0>, (low, high), || ());
            let each = total as f64 / events as f64;
            let bound = 6.0 + 3.0 * f64::from(log);
            assert!(each <= bound, "{each} per event between {low} and {high}");
        }
    }
}

/// The copies, blanks of a new tree included, are a constant per event at any point. (A
/// compaction swaps, which cannot be counted; it takes a quarter of the buffer in holes.)
#[test]
fn reactive_moves_a_constant_number_amortised() {
    for log in sizes().filter(|log| *log >= 3) {
        for (low, high) in thresholds(1 << log) {
            let (mut copies, mut events) = (0, 0);
            swing(sum::<Nothing>(), (low, high), || {
                copies += take_copies();
                events += 1;
                assert!(
                    copies <= 10 * events + 64,
                    "{copies} in {events} events to {high}"
                );
            });
        }
    }
}

/// Holes: every other entry leaves from the middle, which ends in compactions.
#[test]
fn reactive_compacts_at_amortised_cost() {
    for log in sizes().filter(|log| *log >= 6) {
        let n = 1_i64 << log;
        let mut window = Reactive::new(Affine::<0>, Ties::Keep);
        let (mut random, mut total) = (Random(9), 0);
        for clock in 0..n {
            window.insert(clock, Entry::Raw(clock));
        }
        let slides = (4 * n).min(1 << 20);
        for clock in n..n + slides {
            let any = clock - 1 - random.below(n as u64) as i64;
            if !window.evict_at(any) {
                window.evict();
            }
            window.insert(clock, Entry::Raw(clock));
            total += combines(|| window.query());
        }
        let each = total as f64 / slides as f64;
        let bound = 8.0 + 4.0 * f64::from(log);
        assert!(each <= bound, "{each} per slide of {n}, bound {bound}");
        window.check().expect("a sound window");
    }
}
