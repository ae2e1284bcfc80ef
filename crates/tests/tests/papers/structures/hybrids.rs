//! The hybrids of DABA and a tree, beside recalculate.

use crate::common::Random;
use crate::common::monoids::{Affine, Tally};
use crate::common::owned::{as_objects, in_bytes};
use crate::common::script::{OTHER, form, seeds};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::recalculate::Recalculate;
use slidewise_core::window::{Batch, Refused, Ties, Window};
use slidewise_papers::daba_late::DabaLate;

fn contents<M: Monoid, W: Window<M>>(window: &mut W) -> Vec<(i64, M::Partial)> {
    let mut out = Vec::new();
    window.for_each(&mut |time, partial| out.push((time, partial)));
    out
}

/// The model of refusals of daba_late: the entries, and which of them are old.
struct Model<M: Monoid> {
    oracle: Recalculate<M>,
    bound: i64,
    /// The youngest of the old entries.
    closed: Option<i64>,
}

impl<M: Monoid> Model<M> {
    fn times(&mut self) -> Vec<i64> {
        let there = contents(&mut self.oracle);
        there.into_iter().map(|(time, _)| time).collect()
    }

    /// After an insert: entries beyond the bound from the youngest are old.
    fn age(&mut self) {
        let times = self.times();
        let youngest = *times.last().expect("an entry");
        let until = youngest.saturating_sub(self.bound);
        let aged = times
            .iter()
            .filter(|time| **time <= until && **time < youngest);
        self.closed = self.closed.max(aged.max().copied());
    }

    /// After an eviction: old entries may be gone.
    fn thin(&mut self) {
        let oldest = self.oracle.oldest();
        self.closed = self
            .closed
            .filter(|closed| oldest.is_some_and(|time| time <= *closed));
    }

    fn late(&self, time: i64) -> Result<(), Refused> {
        match self.closed {
            Some(youngest) if time < youngest => Err(Refused::Late { time, youngest }),
            _ => Ok(()),
        }
    }

    fn inner(&mut self, time: i64) -> Result<(), Refused> {
        let times = self.times();
        match (self.closed, times.first()) {
            (Some(closed), Some(&oldest))
                if time <= closed && time != oldest && times.contains(&time) =>
            {
                Err(Refused::Inner { time, oldest })
            }
            _ => Ok(()),
        }
    }

    fn range(&mut self, lo: i64, hi: i64) -> Result<(), Refused> {
        let Some(closed) = self.closed else {
            return Ok(());
        };
        let times = self.times();
        let old = times.iter().filter(|time| **time <= closed);
        let inside = old.clone().filter(|time| (lo..=hi).contains(time)).count();
        match inside == 0 || inside == old.count() {
            true => Ok(()),
            false => Err(Refused::Range { lo, hi }),
        }
    }
}

fn step<M: Monoid<In = i64>>(
    random: &mut Random,
    window: &mut DabaLate<M>,
    fresh: &DabaLate<M>,
    model: &mut Model<M>,
    ties: Ties,
) {
    let now = model.oracle.youngest().unwrap_or(0);
    let value = (random.next() >> 40) as i64;
    let near = now - random.below(30) as i64;
    match random.below(12) {
        0..6 => {
            let time = now + random.pick(&[-40, -9, -3, -1, 0, 1, 1, 2, 5, 12]);
            assert_eq!(window.admits(time), model.late(time));
            if model.late(time).is_ok() {
                window.insert(time, Entry::Raw(value));
                model.oracle.insert(time, Entry::Raw(value));
                model.age();
            }
        }
        6 => {
            let mut batch = Batch::with_capacity(8);
            for _ in 0..random.below(9) {
                let time = now + random.below(20) as i64 - 6;
                batch.push(time, Entry::Raw(value));
            }
            batch.sort();
            let Some(first) = batch.times.first().copied() else {
                return;
            };
            assert_eq!(window.admits(first), model.late(first));
            if model.late(first).is_ok() {
                batch.combine_ties(&model.oracle.monoid().clone(), ties);
                window.insert_batch(batch.clone());
                model.oracle.insert_batch(batch);
                model.age();
            }
        }
        7 => {
            assert_eq!(window.evict(), model.oracle.evict());
            model.thin();
        }
        8 => {
            assert_eq!(window.admits_evict(near), model.inner(near));
            if model.inner(near).is_ok() {
                assert_eq!(window.evict_at(near), model.oracle.evict_at(near));
                model.thin();
            }
        }
        9 => {
            assert_eq!(window.evict_until(near), model.oracle.evict_until(near));
            model.thin();
        }
        10 => {
            let (lo, hi) = (near.min(now - 5), near.max(now - 5));
            assert_eq!(window.admits_range(lo, hi), model.range(lo, hi));
            if model.range(lo, hi).is_ok() {
                let (got, want) = (window.query_range(lo, hi), model.oracle.query_range(lo, hi));
                assert!(
                    window.monoid().same(&got, &want),
                    "{got:?} instead of {want:?}"
                );
            }
        }
        _ if random.below(8) == 0 => {
            window.clear();
            model.oracle.clear();
            model.closed = None;
        }
        _ => {
            let mut out = Writer::default();
            window.write(&mut out);
            let bytes = out.finish().expect("these values have a binary form");
            *window = fresh.clone();
            window.read(&mut Reader::new(&bytes)).expect("just written");
        }
    }
}

fn compare<M: Monoid<In = i64>>(monoid: &M) {
    for seed in seeds(OTHER) {
        let mut random = Random(seed);
        let ties = random.pick(&[Ties::Combine, Ties::Keep]);
        let bound = random.pick(&[0, 1, 4, 10, 30, i64::MAX]);
        let fresh = DabaLate::new(monoid.clone(), ties, bound);
        let mut window = fresh.clone();
        let oracle = Recalculate::new(monoid.clone(), ties);
        let mut model = Model {
            oracle,
            bound,
            closed: None,
        };
        for at in 0..form::<M::Partial>(seed).1 {
            let what = format!("seed {seed}, step {at}, bound {bound}, {ties:?}");
            step(&mut random, &mut window, &fresh, &mut model, ties);
            let fault = window.check().err();
            assert!(fault.is_none(), "{what}: {fault:?}");
            let (got, want) = (window.query(), model.oracle.query());
            assert!(
                monoid.same(&got, &want),
                "{what}: {got:?} instead of {want:?}"
            );
            assert_eq!(window.len(), model.oracle.len(), "{what}");
            let ends = (window.oldest(), window.youngest());
            assert_eq!(
                ends,
                (model.oracle.oldest(), model.oracle.youngest()),
                "{what}"
            );
        }
        let (got, want) = (contents(&mut window), contents(&mut model.oracle));
        let pairs = got.iter().zip(&want);
        let same = |(a, b): (&(i64, _), &(i64, _))| a.0 == b.0 && monoid.same(&a.1, &b.1);
        assert!(
            got.len() == want.len() && pairs.into_iter().all(same),
            "seed {seed}"
        );
    }
}

#[test]
fn late_words() {
    compare(&Tally::<0>);
}

#[test]
fn late_records() {
    compare(&Affine::<0>);
}

#[test]
fn late_bytes() {
    compare(&in_bytes(Affine::<0>));
}

#[test]
fn late_objects() {
    compare(&as_objects(Affine::<0>));
}
