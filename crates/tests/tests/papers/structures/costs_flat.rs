//! The costs promised on the cards of flat_fat, b_int and amta, asserted by
//! counting combines, n = 2⁰ to 2²⁰.

use crate::common::Random;
use crate::common::costs::sizes;
use crate::common::monoids::{Affine, Tally};
use crate::suite::drive::{
    Do, combines, counted, drive, on_all_paths, pairs, queue, update_bound, window,
};
use crate::suite::fifo_costs::{filled, value};
use slidewise_core::window::Ties;
use slidewise_core::window::fifo::Fifo;
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::flat_fat::{FlatFat, FlatFatQueue};
use slidewise_papers::reactive::Reactive;

#[test]
fn flat_fat_keeps_theorem_4_2() {
    let mut random = Random(1);
    for log in sizes() {
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
            let few = n.min(64.max(n / 64)) as u64;
            let m = 1 + random.below(few) as usize;
            let mut slots: Vec<u32> = (0..m).map(|_| random.below(n as u64) as u32).collect();
            slots.sort_unstable();
            slots.dedup();
            let (m, spent) = (slots.len(), updated(&mut fat, &slots));
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

/// Combines of an update of these leaves, each of which gets another value.
fn updated(fat: &mut FlatFat<Affine<0>>, slots: &[u32]) -> u64 {
    for slot in slots {
        fat.set(*slot as usize, value(u64::from(*slot) + 7));
    }
    combines(|| fat.update(slots))
}

/// The worst case of the theorem are leaves that lie far apart: paths of their own up to
/// where m nodes make a level, and the m − 1 above. The best is side by side.
#[test]
fn flat_fat_updates_leaves_apart_and_side_by_side() {
    for log in sizes() {
        let n = 1_usize << log;
        let mut fat = FlatFat::new(
            Affine::<0>,
            (0..n as u64).map(value).collect::<Vec<_>>().into_iter(),
        );
        for few in 0..=log {
            let (m, own) = (1_usize << few, u64::from(log - few));
            let apart: Vec<u32> = (0..m).map(|at| (at * (n / m)) as u32).collect();
            let spent = updated(&mut fat, &apart);
            assert_eq!(spent, m as u64 * (own + 1) - 1, "{m} apart of {n}");
            assert!(spent <= update_bound(n, m));
            let beside: Vec<u32> = (0..m as u32).collect();
            let spent = updated(&mut fat, &beside);
            assert_eq!(spent, m as u64 - 1 + own, "{m} side by side of {n}");
        }
        fat.check().expect("a sound tree");
    }
}

#[test]
fn b_int_inserts_in_one_log_and_queries_in_two() {
    let pays = [Some(1), Some(0), None];
    on_all_paths(
        pays,
        |_| queue(BInt::new(Affine::<0>)),
        |counts| {
            counts.at_worst([counts.log(), 0, 2 * counts.log()]);
            assert!(counts.debt <= 0, "{counts:?}");
        },
    );
    for log in sizes() {
        let n = 1_u64 << log;
        // Not aligned, so that a part may be two runs of each level.
        let mut fifo = filled(BInt::new(Affine::<0>), n + n / 3);
        fifo.evict_many(n as usize / 3);
        for count in [1, 2, 3, n / 3 + 1, n] {
            let count = count.min(n);
            let spent = combines(|| fifo.query_last(count as usize));
            let bound = 2 * u64::from(count.ilog2());
            assert!(spent <= bound, "{spent} for the last {count} of {n}");
        }
    }
}

/// The cut moves at last to the young end, which makes a stack of up to 2 log₂ n subtrees:
/// so much the evictions may be behind, and no more.
#[test]
fn amta_slides_in_amortised_constant_time() {
    let pays = [Some(2), Some(1), None];
    on_all_paths(
        pays,
        |_| queue(Amta::new(Affine::<0>)),
        |counts| {
            let log = counts.log();
            counts.at_worst([1 + log, 2 * log, 1]);
            assert!(counts.debt <= 2 * log as i64, "{counts:?}");
        },
    );
}

#[test]
fn amta_evicts_in_bulk_in_o_log_n() {
    let mut random = Random(4);
    for log in sizes() {
        let n = 1_u64 << log;
        for _ in 0..10 {
            let mut fifo = filled(Amta::new(Affine::<0>), n + random.below(n));
            while !fifo.is_empty() {
                let len = fifo.len();
                let count = 1 + random.below(len as u64) as usize;
                let spent = combines(|| fifo.evict_many(count));
                let bound = 2 * u64::from(len.ilog2());
                assert!(spent <= bound, "{spent} for {count} of {len}");
                fifo.insert(value(random.next()));
                if random.below(3) == 0 {
                    fifo.evict();
                }
            }
        }
    }
}

/// As a window, FlatFAT takes log₂ n for the leaf of an insert or an evict, and 2 log₂ n + 1
/// if its buffer is inverted.
#[test]
fn flat_fat_slides_for_logs() {
    for log in sizes() {
        let n = 1_usize << log;
        // Evicts and inserts apart, in a buffer that has room; then together in one that is
        // full: two leaves, but side by side in the circle.
        let few = n.min(1 << 14);
        let make = || queue(FlatFatQueue::new(Affine::<0>, 2 * few));
        let counts = counted([None; 3], make(), |step| drive(few, step));
        let room = u64::from(few.ilog2()) + 1;
        counts.at_worst([0, 0, 3 * room + 1]);
        let mut full = queue(FlatFatQueue::new(Affine::<0>, n));
        (0..n).for_each(|_| full(Do::Insert));
        full(Do::Query);
        let slides = 2 * few + 100;
        let counts = counted([None; 3], full, |step| pairs(slides, step));
        counts.at_worst([0, 0, 3 * u64::from(log) + 1]);
        let mut fifo = filled(FlatFatQueue::new(Affine::<0>, n), n as u64);
        fifo.query();
        let spent = combines(|| fifo.query_last(n / 2 + 1));
        assert!(spent <= 2 * u64::from(log) + 1, "{spent} for a half of {n}");
    }
}

/// Where ⊗ commutes the root is the answer: a slide is the path of a leaf, or of the two
/// that a buffer with room has.
#[test]
fn the_root_answers_commutative_slides() {
    for log in sizes().filter(|log| *log > 0) {
        let capacity = 1_usize << log;
        for n in [capacity / 2 + 1, 3 * capacity / 4, capacity] {
            let path = u64::from(log);
            let most = if n == capacity { path } else { 2 * path - 1 };
            let fat = || queue(FlatFatQueue::new(Tally::<0>, capacity));
            let reactive = || window(Reactive::with_capacity(Tally::<0>, Ties::Keep, capacity));
            let spent = [slides(n, fat()), slides(n, reactive())];
            for (least, worst) in spent {
                assert!(worst <= most, "{worst} for a slide of {n} in {capacity}");
                if n == capacity {
                    assert_eq!((least, worst), (path, path), "a slide of {n}");
                }
            }
        }
    }
}

/// The fewest and the most combines of a slide, over as many as there are entries.
fn slides(n: usize, mut step: impl FnMut(Do)) -> (u64, u64) {
    (0..n).for_each(|_| step(Do::Insert));
    step(Do::Query);
    let spent = (0..n.min(5000)).map(|_| {
        combines(|| {
            [Do::Evict, Do::Insert, Do::Query]
                .into_iter()
                .for_each(&mut step)
        })
    });
    let spent: Vec<u64> = spent.collect();
    let ends = (spent.iter().min(), spent.iter().max());
    (*ends.0.expect("slides"), *ends.1.expect("slides"))
}

/// Doubling and halving are paid by the inserts and evicts that led there.
#[test]
fn flat_fat_resizes_at_amortised_constant_cost() {
    for n in sizes().map(|log| 1 << log).chain([7, 1000]) {
        let logs = u64::from(usize::ilog2(2 * n)) + 1;
        let pays = [Some(2), Some(1), Some(3 * logs + 1)];
        let small = || queue(FlatFatQueue::new(Affine::<0>, 1));
        let counts = counted(pays, small(), |step| drive(n, step));
        counts.at_worst([0, 0, 2 * counts.most]);
        assert!(counts.debt <= 0, "{counts:?}");
    }
}
