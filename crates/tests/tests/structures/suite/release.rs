//! A window releases what it evicts: nothing evicted is kept alive by a buffer, a
//! suffix or a node on the free list.

use std::sync::{Arc, Mutex};

use crate::common::Random;
use crate::each;
use crate::suite::each::Test;
use slidewise_core::aggregate::collect::{Collect, Numbered, Seq};
use slidewise_core::monoid::{Entry, Invertible, Monoid, Selective};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::{Batch, Ties, Window};

/// A value that counts its live copies.
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

struct LetsGo;

impl<M: Monoid<In = Seq<Tracked>>> Test<M> for LetsGo {
    fn window<W: Window<M>>(&mut self, name: &str, fresh: W) {
        println!("{name}");
        drops_at_once(|| fresh.clone());
    }
}

#[test]
fn trees_let_go() {
    each::trees(&Collect::new(), Ties::Combine, &mut LetsGo);
}

#[test]
fn structures_in_order_let_go() {
    each::associative(&Collect::new(), Ties::Combine, &mut LetsGo);
}

/// All present values, the oldest of which can be subtracted.
#[derive(Clone, Debug)]
struct All(Vec<Tracked>);

impl Codec for All {
    const MIN_BYTES: usize = 1;
    fn write(&self, out: &mut Writer) {
        out.refuse("tracked");
    }
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        damaged("tracked")
    }
}

#[derive(Clone, Debug)]
struct Taking;

impl Monoid for Taking {
    type In = Seq<Tracked>;
    type Partial = All;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> All {
        All(Vec::new())
    }
    fn lift(&self, value: &Seq<Tracked>) -> All {
        All(value.to_vec())
    }
    fn combine(&self, a: &All, b: &All) -> All {
        All([&a.0[..], &b.0].concat())
    }
    fn unlift(&self, partial: All) -> std::result::Result<Seq<Tracked>, All> {
        Err(partial)
    }
    fn same(&self, a: &All, b: &All) -> bool {
        a.0 == b.0
    }
}

impl Invertible for Taking {
    fn inverse(&self, whole: &All, oldest: &All) -> All {
        All(whole.0[oldest.0.len()..].to_vec())
    }
}

#[test]
fn structures_that_subtract_let_go() {
    each::invertible(&Taking, Ties::Combine, &mut LetsGo);
}

/// One of two values, chosen by its address: it may be the first or the last one made.
#[derive(Clone, Debug)]
struct Choosing;

impl Monoid for Choosing {
    type In = Seq<Tracked>;
    type Partial = Seq<Tracked>;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> Seq<Tracked> {
        Seq::Empty
    }
    fn lift(&self, value: &Seq<Tracked>) -> Seq<Tracked> {
        value.clone()
    }
    fn combine(&self, a: &Seq<Tracked>, b: &Seq<Tracked>) -> Seq<Tracked> {
        if self.dominates(0, b, a) {
            b.clone()
        } else {
            a.clone()
        }
    }
    fn unlift(&self, partial: Seq<Tracked>) -> std::result::Result<Seq<Tracked>, Seq<Tracked>> {
        Ok(partial)
    }
    fn same(&self, a: &Seq<Tracked>, b: &Seq<Tracked>) -> bool {
        a == b
    }
}

impl Selective for Choosing {
    type Part = Seq<Tracked>;

    fn part(&self, _part: usize, partial: &Seq<Tracked>) -> Seq<Tracked> {
        partial.clone()
    }
    fn replace(&self, _part: usize, partial: &mut Seq<Tracked>, by: &Seq<Tracked>) {
        partial.clone_from(by);
    }
    fn dominates(&self, _part: usize, younger: &Seq<Tracked>, older: &Seq<Tracked>) -> bool {
        let place = |seq: &Seq<Tracked>| seq.to_vec().first().map(Numbered::number);
        place(younger) >= place(older)
    }
}

#[test]
fn structures_that_select_let_go() {
    each::selective(&Choosing, Ties::Combine, &mut LetsGo);
}

/// Refused operations are skipped.
fn drops_at_once<M, W>(make: impl Fn() -> W)
where
    M: Monoid<In = Seq<Tracked>>,
    W: Window<M>,
{
    for seed in 0..30 {
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
