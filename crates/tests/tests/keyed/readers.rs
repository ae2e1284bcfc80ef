//! Readers in parallel with a writer: each query sees whole batches. `make test-sanitizer`
//! runs it for minutes under ThreadSanitizer.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use slidewise_core::aggregate::{DType, Kind};
use slidewise_core::keyed::{Spans, Store};
use slidewise_core::rolling::{Closed, Output};

use crate::common::script::setting;
use crate::{Keys, Rows, agg, insert, span, store};

const KEYS: u32 = 200;
const BATCHES: i64 = 300;
/// The length of the windows, and how far behind a late row is.
const LENGTH: i64 = 50;
const LATE: i64 = 30;
/// The distance of evictions from the writer, and the batches between two evictions.
const KEPT: i64 = 200;
const EVICTS: i64 = 40;

/// The time of the rows of a batch: late ones and others in turn.
fn time_of(batch: i64) -> i64 {
    if batch % 2 == 0 {
        batch
    } else {
        (batch - LATE).max(0)
    }
}

/// The rows of a key in the window that ends at the batch that was published last.
fn count_at(published: i64) -> i64 {
    let batches = (published - LENGTH - LATE).max(0)..=published;
    let inside = |batch: &i64| time_of(*batch) > published - LENGTH;
    i64::try_from(batches.filter(inside).count()).expect("few batches")
}

/// The counts of all keys at a time.
fn counts(held: &dyn Store, keys: &Keys, at: i64) -> Vec<i64> {
    let times = vec![at; KEYS as usize];
    let spans = [span(LENGTH, Closed::Right, 0)];
    let mut answers = held.query(&keys.at(&times, None), &spans);
    match answers.swap_remove(0).swap_remove(0) {
        Output::I64 { values, .. } => values,
        _ => panic!("counts are integers"),
    }
}

/// The same as answers at a few query points.
fn few_counts(held: &dyn Store, keys: &Keys, at: i64) -> Vec<i64> {
    let times = vec![at; KEYS as usize];
    let spans = Spans::new(&[span(LENGTH, Closed::Right, 0)]);
    let answers = held.query_numbers(&keys.at(&times, None), &spans);
    let answers = answers.expect("counts are integers");
    let values = answers.column(0, 0).values.iter();
    values.map(|value| *value as i64).collect()
}

/// Each batch has one row of every key, so the counts of all keys are equal after it.
#[test]
fn readers_see_whole_batches() {
    let readers = setting("SLIDEWISE_READERS").unwrap_or(3);
    let lasts = Duration::from_secs(setting("SLIDEWISE_READ_SECONDS").unwrap_or(0));
    let held = store(&[agg(Kind::Count, 0)], &[DType::I64], false);
    let all: Vec<u32> = (0..KEYS).collect();
    let keys = Keys::of(&all);
    let (published, done) = (AtomicI64::new(-1), AtomicBool::new(false));
    let checked = AtomicU64::new(0);
    let read = || {
        while !done.load(Ordering::Acquire) {
            let at = published.load(Ordering::Acquire);
            let first = few_counts(&*held, &keys, at);
            let counts = counts(&*held, &keys, at);
            // A reader that the system let wait for long asks for evicted entries.
            if at < 0 || published.load(Ordering::Acquire) - at > KEPT - EVICTS - LENGTH {
                continue;
            }
            for counts in [&first, &counts] {
                assert!(
                    counts.iter().all(|count| *count == counts[0]),
                    "a torn batch"
                );
            }
            assert!(counts[0] >= first[0], "a batch was there and is lost");
            assert!(first[0] >= count_at(at), "a batch was lost");
            checked.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..readers {
            threads.spawn(read);
        }
        let started = Instant::now();
        let mut batch = 0;
        while batch < BATCHES || started.elapsed() < lasts {
            let mut rows = Rows::default();
            for key in &all {
                rows.push(*key, time_of(batch), Some(1), 0.0);
            }
            insert(&*held, &rows, 1);
            published.store(batch, Ordering::Release);
            if batch % EVICTS == 0 {
                held.evict(batch - KEPT, 0);
            }
            batch += 1;
        }
        done.store(true, Ordering::Release);
    });
    let last = published.into_inner();
    assert_eq!(
        counts(&*held, &keys, last),
        vec![count_at(last); KEYS as usize]
    );
    assert!(checked.into_inner() > 0, "no reader has seen a batch");
}
