//! Many ranges over one stream: random scripts against the definition.

use std::fmt::Debug;

use crate::common::Random;
use crate::common::script::{OTHER, form, seeds};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::fifo::fold;
use slidewise_core::window::fifo::shared::{Reach, Shared, SharedWindow};
use slidewise_core::window::{Batch, Window};

/// The entries that some range reaches, and what each range holds by definition.
struct Model<P> {
    entries: Vec<(i64, P)>,
    reaches: Vec<Reach>,
    /// The number of entries evicted before the oldest.
    gone: usize,
    begins: Vec<usize>,
}

impl<P: Clone> Model<P> {
    fn begin(&self, reach: Reach) -> usize {
        let count = self.entries.len();
        match reach {
            Reach::Entries(most) => count.saturating_sub(most),
            Reach::Time(length) => {
                let Some((youngest, _)) = self.entries.last() else {
                    return 0;
                };
                let until = i128::from(*youngest) - i128::from(length);
                self.entries
                    .partition_point(|(time, _)| i128::from(*time) <= until)
            }
        }
    }

    fn slide(&mut self) {
        let begins = self
            .reaches
            .iter()
            .map(|reach| self.gone + self.begin(*reach));
        // Values that left a range stay out, also if the youngest entries are evicted.
        let begins = begins
            .zip(&self.begins)
            .map(|(now, before)| now.max(*before));
        self.begins = begins.collect();
        let first = *self.begins.iter().min().expect("a range");
        self.entries.drain(..first - self.gone);
        self.gone = first;
    }

    fn evict(&mut self, count: usize) {
        self.entries.drain(..count);
        self.gone += count;
        self.begins
            .iter_mut()
            .for_each(|begin| *begin = self.gone.max(*begin));
        let first = *self.begins.iter().min().expect("a range");
        self.entries.drain(..first - self.gone);
        self.gone = first;
    }

    fn answer<M: Monoid<Partial = P>>(&self, monoid: &M, range: usize) -> P {
        let held = &self.entries[self.begins[range] - self.gone..];
        fold(monoid, held.iter().map(|(_, partial)| partial))
    }
}

fn draw_reach(random: &mut Random) -> Reach {
    match random.below(3) {
        0 => Reach::Time(random.pick(&[1, 4, 30, i64::MAX])),
        _ => Reach::Entries(random.pick(&[1, 2, 3, 5, 8, 13, 40])),
    }
}

fn restored<M: Monoid, W: Window<M>>(window: &W, fresh: &W) -> W {
    let mut out = Writer::default();
    window.write(&mut out);
    let bytes = out.finish().expect("these values have a binary form");
    let (mut again, mut input) = (fresh.clone(), Reader::new(&bytes));
    again.read(&mut input).expect("just written");
    input.end().expect("read to the end");
    again
}

fn step<M, W>(random: &mut Random, window: &mut W, fresh: &W, model: &mut Model<M::Partial>)
where
    M: Monoid<In = i64>,
    W: Window<M>,
{
    let monoid = window.monoid().clone();
    let youngest = model.entries.last().map_or(0, |(time, _)| *time);
    match random.below(20) {
        0..12 => {
            let time = youngest + random.pick(&[0, 1, 1, 2, 9]);
            let value = (random.next() >> 40) as i64;
            window.insert(time, Entry::Raw(value));
            model.entries.push((time, monoid.lift(&value)));
        }
        12 => {
            window.insert(youngest, Entry::Lifted(monoid.identity()));
            model.entries.push((youngest, monoid.identity()));
        }
        13..15 => {
            let mut batch = Batch::with_capacity(9);
            for at in 0..random.below(30) as i64 {
                let value = (random.next() >> 40) as i64;
                batch.push(youngest + at, Entry::Raw(value));
                model.entries.push((youngest + at, monoid.lift(&value)));
            }
            window.insert_batch(batch);
        }
        15 => {
            let there = !model.entries.is_empty();
            assert_eq!(window.evict().is_some(), there);
            model.evict(usize::from(there));
        }
        16 => {
            let time = youngest - random.below(20) as i64;
            let count = model.entries.partition_point(|(at, _)| *at <= time);
            assert_eq!(window.evict_until(time), count);
            model.evict(count);
        }
        17 if random.below(4) == 0 => {
            window.clear();
            let count = model.entries.len();
            model.evict(count);
        }
        17 | 18 => *window = restored(window, fresh),
        _ => assert!(model.entries.is_empty() || window.admits(youngest - 1).is_err()),
    }
    if random.below(8) > 0 {
        window.slide(&model.reaches);
        model.slide();
    }
}

/// Compares windows of a structure with folds over each range.
pub fn compare<M, F>(monoid: M, make: impl Fn(M, usize) -> F)
where
    M: Monoid<In = i64> + Debug,
    F: Shared<M> + Debug,
{
    for seed in seeds(OTHER) {
        let mut random = Random(seed);
        let ranges = 1 + random.below(5) as usize;
        let mut model = Model {
            entries: Vec::new(),
            reaches: (0..ranges).map(|_| draw_reach(&mut random)).collect(),
            gone: 0,
            begins: vec![0; ranges],
        };
        let fresh = SharedWindow::new(make(monoid.clone(), ranges), ranges);
        let mut window = fresh.clone();
        let (_, length) = form::<M::Partial>(seed);
        let patient = random.below(3) == 0;
        for at in 0..length {
            step(&mut random, &mut window, &fresh, &mut model);
            let fault = window.check().err();
            assert!(
                fault.is_none(),
                "seed {seed}, step {at}: {fault:?}\n{window:#?}"
            );
            assert_eq!(window.len(), model.entries.len(), "seed {seed}, step {at}");
            if patient && at % 7 > 0 {
                continue;
            }
            let mut range = 0;
            window.query_each(|monoid, got| {
                let want = model.answer(monoid, range);
                let what = format_args!("seed {seed}, step {at}, range {range}");
                assert!(
                    monoid.same(&got, &want),
                    "{what}: {got:?} instead of {want:?}"
                );
                range += 1;
            });
            assert_eq!(range, ranges);
            let whole = fold(&monoid, model.entries.iter().map(|(_, partial)| partial));
            assert!(
                monoid.same(&window.query(), &whole),
                "seed {seed}, step {at}"
            );
        }
    }
}

/// Tests of structures that need only associativity.
macro_rules! ranges {
    ($($name:ident: $make:expr;)*) => {$(
        mod $name {
            use super::*;
            use crate::common::monoids::{Affine, Tally};
            use crate::common::owned::{as_objects, in_bytes};
            use crate::suite::shared::compare;
            #[test]
            fn words() {
                compare(Tally::<0>, $make);
            }
            #[test]
            fn records() {
                compare(Affine::<0>, $make);
            }
            #[test]
            fn bytes() {
                compare(in_bytes(Affine::<0>), $make);
            }
            #[test]
            fn objects() {
                compare(as_objects(Affine::<0>), $make);
            }
        }
    )*};
}
pub(crate) use ranges;
