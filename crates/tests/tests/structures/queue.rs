//! The queue of the first-in first-out structures: its contents equal those of a `VecDeque`,
//! entries keep their places, memory is freed, evicted values are dropped at once.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::common::Random;
use crate::common::costs::sizes;
use crate::common::script::seeds;
use crate::suite::heavy::{Heavy, Nothing, take_copies};
use slidewise_core::window::costs::MOVED_AT_ONCE;
use slidewise_core::window::fifo::queue::{BLOCK, Queue, SPARE};
use slidewise_core::window::steps::{self, Step};

/// Random runs of pushes and evictions; `swing` is how long one lasts at most.
fn compare<P: Clone + PartialEq + std::fmt::Debug>(
    seed: u64,
    swing: u64,
    make: impl Fn(u64) -> P,
    blank: impl Fn() -> P + Copy,
) {
    let mut random = Random(seed);
    let mut queue = Queue::default();
    let mut model = VecDeque::new();
    for _ in 0..40 {
        let count = random.below(swing);
        match random.below(6) {
            0 | 1 => {
                for _ in 0..count {
                    let value = random.next();
                    assert_eq!(queue.tail(), queue.head() + model.len());
                    queue.push(make(value));
                    model.push_back(value);
                }
            }
            2 => {
                for _ in 0..count.min(model.len() as u64) {
                    queue.evict(blank);
                    model.pop_front();
                }
            }
            3 => {
                let count = (count as usize).min(model.len());
                queue.evict_many(count, blank);
                model.drain(..count);
            }
            4 => {
                let values: Vec<u64> = (0..count).map(|_| random.next()).collect();
                queue.extend(values.iter().map(|value| make(*value)));
                model.extend(values);
            }
            _ if !model.is_empty() => {
                let at = random.below(model.len() as u64) as usize;
                let value = random.next();
                queue.set(queue.head() + at, make(value));
                model[at] = value;
            }
            _ => queue.clear(),
        }
        if random.below(8) == 0 {
            queue = queue.clone();
        }
        assert_eq!(queue.len(), model.len());
        assert!(
            queue.iter().eq(model
                .iter()
                .map(|value| make(*value))
                .collect::<Vec<_>>()
                .iter())
        );
    }
}

#[test]
fn holds_what_a_deque_holds() {
    for seed in seeds(2) {
        for swing in [3, 20, 200, 3000] {
            compare(seed, swing, |value| value, || 0);
        }
    }
    for seed in seeds(2) {
        for swing in [20, 1000] {
            compare(seed, swing, Arc::new, || Arc::new(0));
        }
    }
}

#[test]
fn evicted_values_are_dropped_at_once() {
    let mut random = Random(3);
    let mut queue = Queue::default();
    let mut alive = VecDeque::new();
    let blank = || None;
    for step in 0..20_000_u64 {
        let grows = (step / 3000).is_multiple_of(2);
        if random.below(3) < 1 + u64::from(grows) || alive.is_empty() {
            let value = Arc::new(step);
            queue.push(Some(value.clone()));
            alive.push_back(value);
        } else {
            let count = 1 + random.below(alive.len().min(90) as u64) as usize;
            if count == 1 {
                queue.evict(blank);
            } else {
                queue.evict_many(count, blank);
            }
            for gone in alive.drain(..count) {
                assert_eq!(Arc::strong_count(&gone), 1, "step {step}");
            }
        }
        assert_eq!(queue.len(), alive.len());
    }
}

#[test]
fn memory_comes_back() {
    for left in [0, 3, 64, 1000] {
        for one_by_one in [true, false] {
            let mut queue = Queue::default();
            for value in 0..1_000_000_u64 {
                queue.push(value);
            }
            assert!(queue.bytes() < 33_000_000);
            if one_by_one {
                for _ in left..1_000_000 {
                    queue.evict(|| 0);
                }
            } else {
                queue.evict_many(1_000_000 - left, || 0);
            }
            for value in 0..2 * left as u64 {
                queue.push(value);
                queue.evict(|| 0);
            }
            assert!(queue.bytes() < 100_000, "{left}: {} bytes", queue.bytes());
        }
    }
}

/// However far it shrinks, a queue that has slid once keeps room for four times its entries.
#[test]
fn a_queue_is_a_quarter_full_at_least() {
    for left in (64..3000).step_by(97) {
        for from in [left + 1, 2 * left, 5 * left, 50_000] {
            let mut queue = Queue::default();
            queue.extend(0..from);
            while queue.len() > left {
                queue.evict(|| 0);
            }
            for value in 0..2 * from {
                queue.push(value);
                queue.evict(|| 0);
            }
            let most = SPARE * (left + BLOCK) * size_of::<usize>();
            assert!(queue.is_plain(), "{left} of {from}");
            assert!(
                queue.bytes() <= most,
                "{left} of {from}: {} bytes",
                queue.bytes()
            );
        }
    }
}

/// Evicted entries leave blanks, which later batches drop a few at a time.
#[test]
fn memory_of_batches_of_owners_comes_back() {
    for batch in [1_000, 100_000] {
        let mut queue = Queue::default();
        for cycle in 0..20 {
            queue.extend((0..batch).map(|value| Some(Arc::new(value))));
            queue.evict_many(batch, || None);
            let most = 8 * batch * size_of::<Option<Arc<usize>>>();
            assert!(queue.bytes() < most, "{cycle}: {} bytes", queue.bytes());
        }
        for value in 0..20_000 {
            queue.push(Some(Arc::new(value)));
            queue.evict(|| None);
        }
        assert!(queue.is_plain() && queue.bytes() < 100_000);
    }
}

#[test]
fn entries_stay_where_they_are() {
    let mut queue = Queue::default();
    for value in 0..100_000_u64 {
        queue.push(value);
        let first = std::ptr::from_ref(queue.get(0));
        queue.push(value);
        assert_eq!(first, std::ptr::from_ref(queue.get(0)));
    }
}

/// The most rings that an access to these entries looks at; all must be found.
fn most_rings(queue: &mut Queue<usize>, positions: impl Iterator<Item = usize>) -> u64 {
    let mut most = 0;
    steps::take(Step::Ring);
    for position in positions {
        assert_eq!(*queue.get(position), position);
        most = most.max(steps::take(Step::Ring));
        queue.set(position, position);
        most = most.max(steps::take(Step::Ring));
    }
    most
}

/// A growing queue lies in many rings, after any evictions and bulk inserts. An access looks
/// at two of them, not at log₂ n.
#[test]
fn an_access_looks_at_two_rings_while_the_queue_grows() {
    let mut found = Vec::new();
    for log in sizes() {
        let n = 1_usize << log;
        for (every, batch) in [(n + 1, 1), (3, 1), (2, 7), (5, 1000)] {
            let mut queue = Queue::default();
            let mut pushed = 0;
            while queue.len() < n {
                let before = pushed;
                pushed += batch;
                queue.extend(before..pushed);
                if pushed % every == 0 {
                    queue.evict(|| 0);
                }
            }
            let (head, tail) = (queue.head(), queue.tail());
            let step = (n / 4096).max(1);
            found.push(most_rings(&mut queue, (head..tail).step_by(step)));
            let most = most_rings(&mut queue, (0..log).map(|at| tail - (1 << at)));
            found.push(most);
        }
    }
    assert_eq!(found.iter().max(), Some(&2), "{found:?}");
}

/// The most moves at once of a window that has shrunk, for all lengths.
#[test]
fn at_most_127_entries_move_at_once() {
    let mut most = 0;
    for n in 1000..1200_usize {
        let mut queue = Queue::default();
        (0..n).for_each(|value| queue.push(Heavy::<Nothing>::from(value as i64)));
        while !queue.is_empty() {
            take_copies();
            queue.evict(Heavy::default);
            most = most.max(take_copies());
        }
    }
    assert_eq!(most, MOVED_AT_ONCE);
}
