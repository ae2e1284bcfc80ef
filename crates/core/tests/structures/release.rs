//! A window lets go of what it evicts: nothing evicted is kept alive by a buffer, a
//! suffix or a node on the free list.

use std::sync::{Arc, Mutex};

use crate::common::Random;
use slidewise_core::aggregate::collect::{Collect, Numbered, Seq};
use slidewise_core::monoid::Entry;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::amta::Amta;
use slidewise_core::window::b_int::BInt;
use slidewise_core::window::btree::BTree;
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::fiba_published::Options;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::flat_fat::FlatFatQueue;
use slidewise_core::window::flat_fit::FlatFit;
use slidewise_core::window::in_order::InOrder;
use slidewise_core::window::reactive::Reactive;
use slidewise_core::window::{Batch, Ties, Window};

/// A value that tells whether copies of it live.
#[derive(Clone, Debug)]
struct Tracked(Arc<Mutex<i64>>);

impl PartialEq for Tracked {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Numbered for Tracked {
    fn number(&self) -> u64 {
        Arc::as_ptr(&self.0).addr() as u64
    }
}

impl Codec for Tracked {
    const MIN_BYTES: usize = 1;
    fn write(&self, out: &mut Writer) {
        out.refuse("tracked");
    }
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        damaged("tracked")
    }
}

#[test]
fn fiba_lets_go() {
    drops_at_once(|| Fiba::<_, 16, 8>::new(Collect::new(), Ties::Combine));
}

#[test]
fn published_trees_let_go() {
    drops_at_once(|| BTree::new(Collect::new(), Ties::Combine, 2));
    for bulk in [false, true] {
        let options = Options {
            bulk,
            free_list: true,
        };
        drops_at_once(|| BTree::with_fingers(Collect::new(), Ties::Combine, 2, options));
    }
}

#[test]
fn structures_in_order_let_go() {
    fn window<F: Fifo<Collect<Tracked>>>(fifo: F) -> InOrder<Collect<Tracked>, F> {
        InOrder::new(fifo, Ties::Combine)
    }
    drops_at_once(|| window(Amta::new(Collect::new())));
    drops_at_once(|| window(BInt::new(Collect::new())));
    drops_at_once(|| window(FlatFatQueue::new(Collect::new(), 16)));
    drops_at_once(|| window(FlatFit::new(Collect::new())));
    drops_at_once(|| Reactive::new(Collect::new(), Ties::Combine));
}

/// What a window refuses is left out.
fn drops_at_once<W: Window<Collect<Tracked>>>(make: impl Fn() -> W) {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut window = make();
        let mut alive: Vec<(i64, Arc<Mutex<i64>>)> = Vec::new();
        for step in 0..600 {
            match random.below(8) {
                0..5 => {
                    let lag = random.below(900) as i64 - random.below(90_000) as i64;
                    let time = match window.admits(i64::MIN) {
                        Err(_) => step * 1000,
                        Ok(()) => step * 1000 + lag,
                    };
                    let value = Arc::new(Mutex::new(time));
                    let slot = Seq::One(Tracked(value.clone()));
                    if seed % 2 == 0 {
                        window.insert(time, Entry::Raw(slot));
                    } else {
                        let mut batch = Batch::default();
                        batch.push(time, Entry::Raw(slot));
                        window.insert_batch(batch);
                    }
                    alive.push((time, value));
                }
                5 => drop(window.evict()),
                6 => {
                    window.evict_until(step * 1000 - 60_000);
                }
                _ => {
                    let picked = random.below(alive.len().max(1) as u64) as usize;
                    if let Some((time, _)) = alive.get(picked)
                        && window.admits_evict(*time).is_ok()
                    {
                        window.evict_at(*time);
                    }
                }
            }
            window.query();
            let mut present = Vec::new();
            window.for_each(&mut |time, _| present.push(time));
            alive.retain(|(time, value)| {
                let kept = present.binary_search(time).is_ok();
                let held = Arc::strong_count(value) > 1;
                assert!(
                    kept || !held,
                    "time {time} was evicted, its value lives: seed {seed}"
                );
                kept
            });
        }
    }
}
