//! The costs promised on the cards of flat_fat, reactive, b_int, flat_fit and amta,
//! asserted by counting combines, n = 2⁰ to 2²⁰.

use crate::common::Random;
use crate::common::monoids::{Affine, Map, take_combines};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::amta::Amta;
use slidewise_core::window::b_int::BInt;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::flat_fat::{FlatFat, FlatFatQueue};
use slidewise_core::window::flat_fit::FlatFit;
use slidewise_core::window::reactive::Reactive;
use slidewise_core::window::{Ties, Window};

const LOGS: [u32; 7] = [0, 1, 3, 6, 10, 15, 20];

fn value(item: u64) -> Map {
    Affine::<0>.lift(&(item as i64))
}

/// Combines that `work` takes.
fn combines<T>(work: impl FnOnce() -> T) -> u64 {
    take_combines();
    work();
    take_combines()
}

/// m (1 + ⌈log₂(n/m)⌉).
fn update_bound(n: usize, m: usize) -> u64 {
    let mut ratio = 0;
    while m << ratio < n {
        ratio += 1;
    }
    (m * (1 + ratio)) as u64
}

#[test]
fn flat_fat_keeps_theorem_4_2() {
    let mut random = Random(1);
    for log in LOGS {
        let n = 1_usize << log;
        let mut fat = None;
        let new = combines(|| {
            fat = Some(FlatFat::new(
                Affine::<0>,
                (0..n).map(|item| value(item as u64)),
            ))
        });
        assert_eq!(new, n as u64 - 1, "new of {n}");
        let mut fat = fat.expect("just made");
        assert_eq!(combines(|| fat.aggregate()), 0);
        for _ in 0..200 {
            let m = 1 + random.below(n as u64) as usize;
            let mut slots: Vec<u32> = (0..m).map(|_| random.below(n as u64) as u32).collect();
            slots.sort_unstable();
            slots.dedup();
            slots.truncate(64.max(n / 64));
            for slot in &slots {
                fat.set(*slot as usize, value(random.next()));
            }
            let m = slots.len();
            let spent = combines(|| fat.update(&slots));
            assert!(
                spent <= update_bound(n, m),
                "{spent} for {m} updates of {n}"
            );
            let slot = random.below(n as u64) as usize;
            for spent in [combines(|| fat.prefix(slot)), combines(|| fat.suffix(slot))] {
                assert!(spent <= u64::from(log), "{spent} for an end of {n}");
            }
            let to = slot + random.below((n - slot) as u64 + 1) as usize;
            let spent = combines(|| fat.range(slot, to));
            assert!(
                spent <= 2 * u64::from(log),
                "{spent} for {slot}..{to} of {n}"
            );
        }
        fat.check().expect("a sound tree");
    }
}

/// m evictions and m inserts, then a query: 2 m events, and the seam of the buffer.
#[test]
fn reactive_pays_for_events_once_per_trigger() {
    for log in LOGS {
        let n = 1_usize << log;
        for m in [1, 7, 64, 5000].into_iter().filter(|m| *m <= n) {
            let mut window = Reactive::new(Affine::<0>, Ties::Keep);
            let mut clock = 0;
            for _ in 0..n {
                window.insert(clock, Entry::Raw(clock));
                clock += 1;
            }
            window.query();
            let capacity = (2 * n).next_power_of_two().max(8);
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
                let bound = update_bound(capacity, 2 * m) + 2 * u64::from(log) + 4;
                assert!(
                    spent <= bound,
                    "{spent} for {m} events of {n}, bound {bound}"
                );
            }
        }
    }
}

/// Sizes that go up and down around each threshold: resizes must not come in rows.
#[test]
fn reactive_oscillates_at_amortised_cost() {
    for log in [3, 6, 10, 15, 18] {
        let n = 1_i64 << log;
        for (low, high) in [(n / 4 - 1, n / 4 + 1), (n - 1, n + 1), (n / 8, n + 1)] {
            let mut window = Reactive::new(Affine::<0>, Ties::Keep);
            let (mut clock, mut events, mut total) = (0, 0, 0);
            while events < 4 * n + 4000 {
                while (window.len() as i64) < high {
                    window.insert(clock, Entry::Raw(clock));
                    (clock, events) = (clock + 1, events + 1);
                }
                total += combines(|| window.query());
                while window.len() as i64 > low {
                    window.evict();
                    events += 1;
                }
                total += combines(|| window.query());
            }
            let each = total as f64 / events as f64;
            let bound = 6.0 + 3.0 * f64::from(log);
            assert!(each <= bound, "{each} per event between {low} and {high}");
        }
    }
}

/// Holes: every other entry leaves from the middle, which ends in compactions.
#[test]
fn reactive_compacts_at_amortised_cost() {
    for log in [6, 10, 15] {
        let n = 1_i64 << log;
        let mut window = Reactive::new(Affine::<0>, Ties::Keep);
        let (mut random, mut total) = (Random(9), 0);
        for clock in 0..n {
            window.insert(clock, Entry::Raw(clock));
        }
        for clock in n..5 * n {
            let any = clock - 1 - random.below(n as u64) as i64;
            if !window.evict_at(any) {
                window.evict();
            }
            window.insert(clock, Entry::Raw(clock));
            total += combines(|| window.query());
        }
        let each = total as f64 / (4 * n) as f64;
        let bound = 8.0 + 4.0 * f64::from(log);
        assert!(each <= bound, "{each} per slide of {n}, bound {bound}");
        window.check().expect("a sound window");
    }
}

/// Slides a full queue and gives the combines of inserts, evicts and queries, with the
/// dearest of each.
fn slide<F: Fifo<Affine<0>>>(fifo: &mut F, n: u64, slides: u64) -> [(u64, u64); 3] {
    for item in 0..n {
        fifo.insert(value(item));
    }
    fifo.query();
    let mut costs = [(0, 0); 3];
    let mut count = |at: usize, spent: u64| {
        let (total, worst): &mut (u64, u64) = &mut costs[at];
        *total += spent;
        *worst = (*worst).max(spent);
    };
    for item in 0..slides {
        count(1, combines(|| fifo.evict()));
        count(0, combines(|| fifo.insert(value(item))));
        count(2, combines(|| fifo.query()));
    }
    costs
}

#[test]
fn b_int_inserts_for_one_and_asks_for_two_logs() {
    for log in LOGS {
        let n = 1_u64 << log;
        let slides = 3 * n.min(1 << 16) + 100;
        let mut fifo = BInt::new(Affine::<0>);
        let [insert, evict, query] = slide(&mut fifo, n, slides);
        assert!(insert.0 <= slides, "{insert:?} for {slides} inserts");
        assert!(insert.1 <= u64::from(log) + 1, "{insert:?} at {n}");
        assert_eq!(evict.0, 0);
        assert!(query.1 <= 2 * u64::from(log), "{query:?} at {n}");
        for count in [1, 2, 3, n / 3 + 1, n]
            .into_iter()
            .filter(|count| *count <= n)
        {
            let spent = combines(|| fifo.query_last(count as usize));
            let bound = 2 * u64::from(count.ilog2());
            assert!(spent <= bound, "{spent} for the last {count} of {n}");
        }
    }
}

#[test]
fn flat_fit_slides_for_three() {
    for log in LOGS {
        let n = 1_u64 << log;
        let slides = (3 * n).max(1000);
        let [insert, evict, query] = slide(&mut FlatFit::new(Affine::<0>), n, slides);
        assert_eq!((insert.0, evict.0), (0, 0));
        assert!(
            query.0 <= 3 * slides,
            "{query:?} for {slides} slides of {n}"
        );
        assert!(query.1 < n.max(3), "{query:?} at {n}");
    }
}

/// Every range, every slide: each answer lies one combine from the one before.
#[test]
fn flat_fit_answers_all_ranges_for_one_each() {
    for n in [1_u64, 2, 16, 256] {
        let mut fifo = FlatFit::new(Affine::<0>);
        for item in 0..n {
            fifo.insert(value(item));
        }
        fifo.query();
        for item in 0..300 {
            fifo.evict();
            fifo.insert(value(item));
            let spent = combines(|| {
                for count in 1..=n {
                    fifo.query_last(count as usize);
                }
            });
            assert!(spent <= n, "{spent} for all ranges of {n}");
        }
    }
}

/// Few ranges, every slide: they share less than all do, and each still costs little.
#[test]
fn flat_fit_answers_few_ranges_for_a_few_each() {
    for (ranges, most) in [
        (&[64][..], 3.0),
        (&[64, 32], 4.0),
        (&[64, 32, 16, 8, 4, 2, 1], 7.0),
        (&[182, 132], 9.0),
        (&[145, 107, 65], 12.0),
    ] {
        let (mut fifo, slides) = (FlatFit::new(Affine::<0>), 20 * ranges[0] as u64);
        (0..ranges[0] as u64).for_each(|item| fifo.insert(value(item)));
        let mut spent = 0;
        for item in 0..slides {
            fifo.evict();
            fifo.insert(value(item));
            spent += combines(|| {
                for count in ranges {
                    fifo.query_last(*count);
                }
            });
        }
        let each = spent as f64 / slides as f64;
        assert!(each <= most, "{each} per slide for {ranges:?}");
    }
}

#[test]
fn amta_slides_in_amortised_constant_time() {
    for log in LOGS {
        let n = 1_u64 << log;
        let slides = (3 * n).max(1000);
        let [insert, evict, query] = slide(&mut Amta::new(Affine::<0>), n, slides);
        let logs = u64::from(log) + 1;
        assert!(insert.0 <= 2 * slides, "{insert:?} for {slides} of {n}");
        assert!(insert.1 <= 1 + logs, "{insert:?} at {n}");
        assert!(evict.0 <= 2 * slides, "{evict:?} for {slides} of {n}");
        assert!(evict.1 <= 2 * logs, "{evict:?} at {n}");
        assert!(query.1 <= 1, "{query:?} at {n}");
    }
}

#[test]
fn amta_evicts_in_bulk_in_o_log_n() {
    let mut random = Random(4);
    for log in LOGS {
        let n = 1_u64 << log;
        for _ in 0..10 {
            let mut fifo = Amta::new(Affine::<0>);
            for item in 0..n + random.below(n) {
                fifo.insert(value(item));
            }
            while !fifo.is_empty() {
                let count = 1 + random.below(fifo.len() as u64) as usize;
                let spent = combines(|| fifo.evict_many(count));
                let bound = 2 * (u64::from(log) + 2);
                assert!(spent <= bound, "{spent} for {count}, bound {bound}");
                fifo.insert(value(random.next()));
                if random.below(3) == 0 {
                    fifo.evict();
                }
            }
        }
    }
}

/// As a window, FlatFAT takes up to log₂ n for each of the two leaves of a slide.
#[test]
fn flat_fat_slides_for_logs() {
    for log in LOGS {
        let n = 1_u64 << log;
        let slides = 2 * n.min(1 << 14) + 100;
        let mut fifo = FlatFatQueue::new(Affine::<0>, n as usize);
        let [insert, evict, query] = slide(&mut fifo, n, slides);
        assert_eq!((insert.0, evict.0), (0, 0));
        let bound = 3 * u64::from(log) + 1;
        assert!(query.1 <= bound, "{query:?} at {n}, bound {bound}");
        let spent = combines(|| fifo.query_last(n as usize / 2 + 1));
        assert!(spent <= 2 * u64::from(log) + 1, "{spent} for a half of {n}");
    }
}
