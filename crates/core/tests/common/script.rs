//! Random scripts of window operations, stepped beside the oracle.
//!
//! Swarm testing: each script draws weights for its operations too, and a scale for its
//! times, so that rare mixes (all evictions, only late inserts, ties everywhere) happen.

use std::fmt::Debug;

use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::recalculate::Recalculate;
use slidewise_core::window::{Batch, Ties, Window};

use super::Random;

#[derive(Clone, Debug)]
pub enum Op {
    Insert(i64, i64),
    InsertMany(Vec<(i64, i64)>),
    /// An entry that has no value: its partial is the identity.
    InsertMissing(i64),
    Evict,
    EvictAt(i64),
    EvictUntil(i64),
    Range(i64, i64),
    Clear,
    /// Write, read back, go on with what was read.
    Restore,
    /// Nothing but the comparison that follows every operation.
    Query,
}

const KINDS: usize = 12;

pub struct Generator {
    random: Random,
    weights: [u64; KINDS],
    scale: Scale,
    clock: i64,
    batch: u64,
}

#[derive(Clone, Copy)]
enum Scale {
    /// Ties everywhere.
    Few,
    /// Hardly a tie.
    Wide,
    /// Both ends of i64.
    Extreme,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut weights = [0; KINDS];
        for weight in &mut weights {
            *weight = random.pick(&[0, 1, 1, 4, 16]);
        }
        weights[0] += 2;
        weights[9] = weights[9].min(1);
        let scale = random.pick(&[Scale::Few, Scale::Wide, Scale::Wide, Scale::Extreme]);
        let batch = random.pick(&[1, 3, 9, 40, 130]);
        Self {
            random,
            weights,
            scale,
            clock: 0,
            batch,
        }
    }

    fn time(&mut self) -> i64 {
        let near = self.random.below(40) as i64 - 30;
        match self.scale {
            Scale::Few => self.random.below(12) as i64,
            Scale::Wide => self.clock.saturating_add(near * 7),
            Scale::Extreme => {
                let edge = self
                    .random
                    .pick(&[i64::MIN, i64::MAX, 0, i64::MIN + 8, i64::MAX - 8]);
                edge.saturating_add(near)
            }
        }
    }

    fn late(&mut self, reach: i64) -> i64 {
        match self.scale {
            Scale::Wide => self.clock - self.random.below(reach as u64) as i64,
            _ => self.time(),
        }
    }

    fn value(&mut self) -> i64 {
        (self.random.next() >> 40) as i64
    }

    pub fn op(&mut self) -> Op {
        let total: u64 = self.weights.iter().sum();
        let mut ticket = self.random.below(total);
        let mut kind = 0;
        while ticket >= self.weights[kind] {
            ticket -= self.weights[kind];
            kind += 1;
        }
        match kind {
            0 => {
                self.clock += 1 + self.random.below(5) as i64;
                let time = if matches!(self.scale, Scale::Wide) {
                    self.clock
                } else {
                    self.time()
                };
                Op::Insert(time, self.value())
            }
            1 => Op::Insert(self.late(60), self.value()),
            2 => Op::Insert(self.late(2000), self.value()),
            3 => {
                let count = self.random.pick(&[0, 1, 2, self.batch, self.batch + 1]);
                let items = (0..count).map(|_| (self.late(400), self.value()));
                Op::InsertMany(items.collect())
            }
            4 => {
                let count = self.random.below(self.batch + 1);
                let items = (0..count).map(|_| {
                    self.clock += self.random.below(4) as i64;
                    (self.clock, (self.random.next() >> 40) as i64)
                });
                Op::InsertMany(items.collect())
            }
            5 => Op::InsertMissing(self.late(100)),
            6 => Op::Evict,
            7 => Op::EvictAt(self.late(200)),
            8 => Op::EvictUntil(self.late(1500)),
            9 if self.random.below(3) == 0 => Op::Clear,
            9 => Op::Restore,
            10 => {
                let (a, b) = (self.late(1000), self.late(1000));
                Op::Range(a.min(b), a.max(b))
            }
            _ => Op::Query,
        }
    }
}

/// What a window says at once to an operation.
#[derive(Debug)]
enum Said<P> {
    Nothing,
    Time(Option<i64>),
    Found(bool),
    Count(usize),
    Fold(P),
}

impl<P> Said<P> {
    fn agrees(&self, other: &Self, same: impl Fn(&P, &P) -> bool) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Found(a), Self::Found(b)) => a == b,
            (Self::Count(a), Self::Count(b)) => a == b,
            (Self::Fold(a), Self::Fold(b)) => same(a, b),
            _ => false,
        }
    }
}

fn apply<M, W>(window: &mut W, fresh: &W, ties: Ties, op: &Op) -> Said<M::Partial>
where
    M: Monoid<In = i64>,
    W: Window<M>,
{
    match op {
        Op::Insert(time, value) => window.insert(*time, Entry::Raw(*value)),
        Op::InsertMany(items) => {
            let mut batch = Batch::with_capacity(items.len());
            for (time, value) in items {
                batch.push(*time, Entry::Raw(*value));
            }
            batch.sort();
            batch.settle_ties(window.monoid(), ties);
            window.insert_batch(batch);
        }
        Op::InsertMissing(time) => {
            let identity = window.monoid().identity();
            window.insert(*time, Entry::Lifted(identity));
        }
        Op::Evict => return Said::Time(window.evict()),
        Op::EvictAt(time) => return Said::Found(window.evict_at(*time)),
        Op::EvictUntil(time) => return Said::Count(window.evict_until(*time)),
        Op::Range(lo, hi) => return Said::Fold(window.query_range(*lo, *hi)),
        Op::Clear => window.clear(),
        Op::Restore => {
            let mut out = Writer::default();
            window.write(&mut out);
            let bytes = out.finish().expect("these values have a binary form");
            let mut restored = fresh.clone();
            let mut input = Reader::new(&bytes);
            restored.read(&mut input).expect("just written");
            input.end().expect("read to the end");
            *window = restored;
        }
        Op::Query => {}
    }
    Said::Nothing
}

fn contents<M: Monoid, W: Window<M>>(window: &mut W) -> Vec<(i64, M::Partial)> {
    let mut out = Vec::new();
    window.for_each(&mut |time, partial| out.push((time, partial)));
    out
}

/// Steps a window beside the oracle, comparing after every operation. A third of the
/// scripts also ask for the length each time: that makes a window finish deferred work,
/// and leaving work deferred must be tested too. So does a query if combining does not
/// commute: another third asks for none but where the script does.
pub fn compare<M, W>(make: impl Fn(Ties) -> W, monoid: &M, ties: Ties, seed: u64, length: usize)
where
    M: Monoid<In = i64>,
    W: Window<M> + Debug,
{
    let fresh = make(ties);
    let mut window = fresh.clone();
    let mut oracle = Recalculate::new(monoid.clone(), ties);
    let fresh_oracle = oracle.clone();
    let mut generator = Generator::new(seed);
    let eager = Random(seed ^ 0x5eed).below(3) == 0;
    let patient = Random(seed ^ 0x1a7e).below(3) == 0;
    let same = |a: &M::Partial, b: &M::Partial| monoid.same(a, b);
    for step in 0..length {
        let op = generator.op();
        let fail = |what: String, window: &W| -> ! {
            let mut again = Generator::new(seed);
            let script: Vec<Op> = (0..=step).map(|_| again.op()).collect();
            panic!("seed {seed}, {ties:?}: {what}\n{script:#?}\n{window:#?}");
        };
        let said = apply(&mut window, &fresh, ties, &op);
        let expected = apply(&mut oracle, &fresh_oracle, ties, &op);
        if !said.agrees(&expected, same) {
            fail(format!("{said:?} instead of {expected:?}"), &window);
        }
        if let Err(fault) = window.check() {
            fail(fault, &window);
        }
        if !patient || matches!(op, Op::Query) {
            let (got, want) = (window.query(), oracle.query());
            if !same(&got, &want) {
                fail(format!("query {got:?} instead of {want:?}"), &window);
            }
        }
        let got = (window.oldest(), window.youngest());
        let want = (oracle.oldest(), oracle.youngest());
        if got != want {
            fail(format!("ends {got:?} instead of {want:?}"), &window);
        }
        if eager && window.len() != oracle.len() {
            fail(format!("{} entries", window.len()), &window);
        }
    }
    assert_eq!(window.len(), oracle.len(), "seed {seed}");
    let (got, want) = (contents(&mut window), contents(&mut oracle));
    let pairs = got.iter().zip(&want);
    let equal = got.len() == want.len()
        && pairs
            .into_iter()
            .all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1));
    assert!(equal, "seed {seed}: {got:?} instead of {want:?}");
    window
        .check()
        .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
}
