//! Random scripts of window operations, stepped beside the oracle.
//!
//! Swarm testing: each script draws weights for its operations too, and a scale for its
//! times, so that rare mixes (all evictions, only late inserts, ties everywhere) happen.

use std::fmt::Debug;
use std::mem::needs_drop;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::recalculate::Recalculate;
use slidewise_core::window::{Batch, Refused, Ties, Window};

use super::Random;

/// The percentages of scripts that a test of the default structure runs, and one of another
/// structure.
pub const DEFAULT: u64 = 100;
pub const OTHER: u64 = 10;

/// The seeds of a test: `percent` of 200, or of `SLIDEWISE_SCRIPTS`. They change
/// daily, unless `SLIDEWISE_SEED` is the first. A test that fails prints how to repeat it.
pub fn seeds(percent: u64) -> Seeds {
    seeds_of(percent, 200)
}

/// The seeds of a test that runs another number than 200 a day.
pub fn seeds_of(percent: u64, a_day: u64) -> Seeds {
    let scripts = setting("SLIDEWISE_SCRIPTS").unwrap_or(a_day);
    let first = setting("SLIDEWISE_SEED").unwrap_or_else(today);
    Seeds {
        left: first..first + (scripts * percent / 100).max(1),
        last: first,
    }
}

pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().expect("a number"))
}

/// A seed for each day.
fn today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a clock after 1970").as_secs() / 86_400 * 1_000_000
}

#[derive(Debug)]
pub struct Seeds {
    left: Range<u64>,
    last: u64,
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.last = self.left.next()?;
        Some(self.last)
    }
}

impl Drop for Seeds {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            eprintln!(
                "repeat with: SLIDEWISE_SEED={} SLIDEWISE_SCRIPTS=1 \
                 cargo test -p slidewise-core {}",
                self.last,
                thread.name().unwrap_or_default()
            );
        }
    }
}

/// The treatment of ties in a script, and its number of operations: most are short, shorter
/// still if each combine allocates.
pub fn form<P>(seed: u64) -> (Ties, usize) {
    let ties = match seed % 2 {
        0 => Ties::Keep,
        _ => Ties::Combine,
    };
    let (few, many) = match needs_drop::<P>() {
        true => (20, 100),
        false => (32, 200),
    };
    (ties, if seed % 32 < 2 { many } else { few })
}

#[derive(Clone, Debug)]
pub enum Op {
    Insert(i64, i64),
    InsertMany(Vec<(i64, i64)>),
    /// An entry that has no value: its partial is the identity.
    InsertMissing(i64),
    Evict,
    EvictAt(i64),
    /// The earliest entry, by its time.
    EvictOldest,
    EvictUntil(i64),
    Range(i64, i64),
    /// A range that holds all entries.
    WholeRange,
    Clear,
    /// Writes the window, reads it back, and continues with the copy.
    Restore,
    /// Only the comparison that follows every operation.
    Query,
}

const KINDS: usize = 14;

/// The operations that a window refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    AnyOrder,
    /// Late inserts are refused.
    OrderedInserts,
    /// Late inserts and inner evictions are refused.
    InOrder,
    /// Queries of sub-ranges are refused, too.
    WholeOnly,
}

pub struct Generator {
    random: Random,
    weights: [u64; KINDS],
    scale: Scale,
    clock: i64,
    batch: u64,
    /// Most inserts come in order, for windows that require it.
    tidy: bool,
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
    pub fn new(seed: u64, claims: Claims) -> Self {
        let mut random = Random(seed);
        let mut weights = [0; KINDS];
        for weight in &mut weights {
            *weight = random.pick(&[0, 1, 1, 4, 16]);
        }
        weights[0] += 2;
        weights[9] = weights[9].min(1);
        let scale = random.pick(&[Scale::Few, Scale::Wide, Scale::Wide, Scale::Extreme]);
        let batch = match claims {
            Claims::AnyOrder => random.pick(&[1, 3, 9, 40, 130]),
            _ => random.pick(&[1, 2, 4, 9, 40]),
        };
        let clock = match scale {
            Scale::Extreme => random.pick(&[i64::MIN, i64::MAX - 300, -9]),
            _ => 0,
        };
        Self {
            random,
            weights,
            scale,
            clock,
            batch,
            tidy: claims != Claims::AnyOrder,
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

    /// A time to insert at.
    fn arrival(&mut self, reach: i64) -> i64 {
        if !self.tidy || self.random.below(12) == 0 {
            return self.late(reach);
        }
        let step = match self.scale {
            Scale::Few => self.random.below(2),
            _ => self.random.below(6),
        };
        self.clock = self.clock.saturating_add(step as i64);
        self.clock
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
            0 if self.tidy => Op::Insert(self.arrival(60), self.value()),
            0 => {
                self.clock = self.clock.saturating_add(1 + self.random.below(5) as i64);
                let time = if matches!(self.scale, Scale::Wide) {
                    self.clock
                } else {
                    self.time()
                };
                Op::Insert(time, self.value())
            }
            1 => Op::Insert(self.arrival(60), self.value()),
            2 => Op::Insert(self.arrival(2000), self.value()),
            3 => {
                let count = self.random.pick(&[0, 1, 2, self.batch, self.batch + 1]);
                let items = (0..count).map(|_| (self.arrival(400), self.value()));
                Op::InsertMany(items.collect())
            }
            4 => {
                let count = self.random.below(self.batch + 1);
                let items = (0..count).map(|_| {
                    self.clock = self.clock.saturating_add(self.random.below(4) as i64);
                    (self.clock, (self.random.next() >> 40) as i64)
                });
                Op::InsertMany(items.collect())
            }
            5 => Op::InsertMissing(self.arrival(100)),
            6 => Op::Evict,
            7 => Op::EvictAt(self.late(200)),
            8 => Op::EvictUntil(self.late(1500)),
            9 if self.random.below(3) == 0 => Op::Clear,
            9 => Op::Restore,
            10 => {
                let (a, b) = (self.late(1000), self.late(1000));
                Op::Range(a.min(b), a.max(b))
            }
            11 => Op::EvictOldest,
            12 => Op::WholeRange,
            _ => Op::Query,
        }
    }
}

/// The immediate result of an operation of a window.
#[derive(Debug)]
enum Outcome<P> {
    Nothing,
    Time(Option<i64>),
    Found(bool),
    Count(usize),
    Fold(P),
    Refused(Refused),
}

impl<P> Outcome<P> {
    fn agrees(&self, other: &Self, same: impl Fn(&P, &P) -> bool) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Found(a), Self::Found(b)) => a == b,
            (Self::Count(a), Self::Count(b)) => a == b,
            (Self::Fold(a), Self::Fold(b)) => same(a, b),
            (Self::Refused(a), Self::Refused(b)) => a == b,
            _ => false,
        }
    }
}

/// The refusal of an operation that a window declares.
fn refused<M: Monoid, W: Window<M>>(window: &mut W, op: &Op) -> Option<Refused> {
    let admitted = match op {
        Op::Insert(time, _) | Op::InsertMissing(time) => window.admits(*time),
        Op::InsertMany(items) => match items.iter().map(|(time, _)| *time).min() {
            Some(first) => window.admits(first),
            None => Ok(()),
        },
        Op::EvictAt(time) => window.admits_evict(*time),
        Op::EvictOldest => match window.oldest() {
            Some(oldest) => window.admits_evict(oldest),
            None => Ok(()),
        },
        Op::Range(lo, hi) => window.admits_range(*lo, *hi),
        Op::WholeRange => window.admits_range(i64::MIN, i64::MAX),
        _ => Ok(()),
    };
    admitted.err()
}

/// The refusal that must occur, by the declaration and the entries of the oracle.
fn refusal<M: Monoid>(oracle: &mut Recalculate<M>, claims: Claims, op: &Op) -> Option<Refused> {
    if claims == Claims::AnyOrder {
        return None;
    }
    let times: Vec<i64> = contents(oracle).into_iter().map(|(time, _)| time).collect();
    let (oldest, youngest) = (*times.first()?, *times.last()?);
    let late = |time: i64| (time < youngest).then_some(Refused::Late { time, youngest });
    match op {
        Op::Insert(time, _) | Op::InsertMissing(time) => late(*time),
        Op::InsertMany(items) => late(items.iter().map(|(time, _)| *time).min()?),
        Op::EvictAt(_) if claims == Claims::OrderedInserts => None,
        Op::EvictAt(time) if *time != oldest && times.contains(time) => Some(Refused::Inner {
            time: *time,
            oldest,
        }),
        Op::Range(lo, hi) if claims == Claims::WholeOnly => {
            let inside = times.iter().filter(|time| (lo..=hi).contains(time)).count();
            let (lo, hi) = (*lo, *hi);
            (inside != 0 && inside != times.len()).then_some(Refused::Range { lo, hi })
        }
        _ => None,
    }
}

fn written<M: Monoid, W: Window<M>>(window: &W) -> Vec<u8> {
    let mut out = Writer::default();
    window.write(&mut out);
    out.finish().expect("these values have a binary form")
}

fn apply<M, W>(window: &mut W, fresh: &W, ties: Ties, op: &Op) -> Outcome<M::Partial>
where
    M: Monoid<In = i64>,
    W: Window<M>,
{
    if let Some(refused) = refused(window, op) {
        return Outcome::Refused(refused);
    }
    match op {
        Op::Insert(time, value) => window.insert(*time, Entry::Raw(*value)),
        Op::InsertMany(items) => {
            let mut batch = Batch::with_capacity(items.len());
            for (time, value) in items {
                batch.push(*time, Entry::Raw(*value));
            }
            batch.sort();
            batch.combine_ties(window.monoid(), ties);
            window.insert_batch(batch);
        }
        Op::InsertMissing(time) => {
            let identity = window.monoid().identity();
            window.insert(*time, Entry::Lifted(identity));
        }
        Op::Evict => return Outcome::Time(window.evict()),
        Op::EvictAt(time) => return Outcome::Found(window.evict_at(*time)),
        Op::EvictOldest => {
            let oldest = window.oldest().unwrap_or_default();
            return Outcome::Found(window.evict_at(oldest));
        }
        Op::EvictUntil(time) => return Outcome::Count(window.evict_until(*time)),
        Op::Range(lo, hi) => return Outcome::Fold(window.query_range(*lo, *hi)),
        Op::WholeRange => return Outcome::Fold(window.query_range(i64::MIN, i64::MAX)),
        Op::Clear => window.clear(),
        Op::Restore => {
            let bytes = written(window);
            let mut restored = fresh.clone();
            let mut input = Reader::new(&bytes);
            restored.read(&mut input).expect("just written");
            input.end().expect("read to the end");
            *window = restored;
        }
        Op::Query => {}
    }
    Outcome::Nothing
}

fn contents<M: Monoid, W: Window<M>>(window: &mut W) -> Vec<(i64, M::Partial)> {
    let mut out = Vec::new();
    window.for_each(&mut |time, partial| out.push((time, partial)));
    out
}

/// Steps a window that takes any order beside the oracle.
pub fn compare<M, W>(make: impl Fn(Ties) -> W, monoid: &M, ties: Ties, seed: u64, length: usize)
where
    M: Monoid<In = i64>,
    W: Window<M> + Debug,
{
    compare_claims(make, monoid, ties, Claims::AnyOrder, seed, length);
}

/// Steps a window beside the oracle, comparing after every operation. The window must
/// refuse the operations that it declares to refuse, and then be unchanged. A third of the
/// scripts also read the length each time: this makes a window finish deferred work, and
/// work that stays deferred must be tested, too. A query also does so if combining does not
/// commute: another third makes only the queries of the script.
pub fn compare_claims<M, W>(
    make: impl Fn(Ties) -> W,
    monoid: &M,
    ties: Ties,
    claims: Claims,
    seed: u64,
    length: usize,
) where
    M: Monoid<In = i64>,
    W: Window<M> + Debug,
{
    let fresh = make(ties);
    let mut window = fresh.clone();
    let mut oracle = Recalculate::new(monoid.clone(), ties);
    let fresh_oracle = oracle.clone();
    let mut generator = Generator::new(seed, claims);
    let eager = Random(seed ^ 0x5eed).below(3) == 0;
    let patient = Random(seed ^ 0x1a7e).below(3) == 0;
    let same = |a: &M::Partial, b: &M::Partial| monoid.same(a, b);
    for step in 0..length {
        let op = generator.op();
        let fail = |what: String, window: &W| -> ! {
            let mut again = Generator::new(seed, claims);
            let script: Vec<Op> = (0..=step).map(|_| again.op()).collect();
            panic!("seed {seed}, {ties:?}: {what}\n{script:#?}\n{window:#?}");
        };
        let outcome = apply(&mut window, &fresh, ties, &op);
        let expected = match refusal(&mut oracle, claims, &op) {
            Some(refused) => Outcome::Refused(refused),
            None => apply(&mut oracle, &fresh_oracle, ties, &op),
        };
        if !outcome.agrees(&expected, same) {
            fail(format!("{outcome:?} instead of {expected:?}"), &window);
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
