//! The rounds of each mode, and their measurement.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use slidewise_core::monoid::Entry;
use slidewise_core::window::Window;
use slidewise_core::window::fifo::shared::Shared;

use crate::counted::take_combines;
use crate::operators::Operator;
use crate::order::{Metric, Mode, Order, Stream, Timed, numbers};
use crate::resident::{faults, most_resident};
use crate::samples::Samples;
use crate::subjects::{Answer, Subject, Timed as TimedWindow};

/// Times far above those of the stream: the `d` entries that stay youngest.
const FAR: i64 = 1 << 60;

/// The least number of items between two readings of the clock.
const CHUNK: usize = 1024;

/// The most samples of a latency that are kept.
const SAMPLES: usize = 4 << 20;

/// Points of a series over the rounds.
const POINTS: usize = 500;

/// One window in rounds of one mode.
struct Rounds<'a, M: Operator, S> {
    monoid: &'a M,
    window: S,
    stream: Stream,
    order: &'a Order,
    /// The time of the oldest entry, and of the next.
    oldest: i64,
    next: i64,
}

impl<'a, M: Operator, S: Subject<M>> Rounds<'a, M, S> {
    fn filled(order: &'a Order, monoid: &'a M, window: S) -> Result<Self, String> {
        if order.d > order.n {
            return Err("more younger entries than a window has".into());
        }
        let mut rounds = Self {
            monoid,
            window,
            stream: order.stream()?,
            order,
            oldest: 0,
            next: 0,
        };
        // Answers while it grows: what they keep of the way to them counts as memory.
        let answers = order.metric == Metric::Memory && !costs_the_window(order);
        for _ in 0..order.n - order.d {
            rounds.insert();
            if answers {
                rounds.query();
            }
        }
        for time in 0..order.d {
            let value = monoid.input(rounds.stream.take());
            rounds.window.insert(FAR + time as i64, value);
        }
        Ok(rounds)
    }

    #[inline]
    fn insert(&mut self) {
        self.fence();
        let value = self.monoid.input(self.stream.take());
        self.window.insert(self.next, value);
        self.next += 1;
    }

    #[inline]
    fn fence(&self) {
        if self.order.fence {
            fence(Ordering::SeqCst);
        }
    }

    #[inline]
    fn evict(&mut self) {
        self.window.evict();
        self.oldest += 1;
    }

    #[inline]
    fn query(&mut self) {
        self.monoid.lower(self.window.query());
    }

    #[inline]
    fn slide(&mut self) {
        self.evict();
        self.insert();
        self.query();
    }

    fn evict_bulk(&mut self) {
        let m = self.order.m;
        self.oldest += m as i64;
        self.window.evict_bulk(m, self.oldest - 1);
    }

    /// Building the bulk counts.
    fn insert_bulk(&mut self) {
        let m = self.order.m;
        if self.order.mode == Mode::Bulk {
            self.fence();
            let values = (0..m).map(|_| self.monoid.input(self.stream.take()));
            let values = values.collect();
            self.window.insert_bulk(self.next, values);
            self.next += m as i64;
        } else {
            for _ in 0..m {
                self.insert();
            }
        }
    }

    fn bulk(&mut self) {
        self.evict_bulk();
        self.insert_bulk();
        self.query();
    }

    /// The length falls from n entries to n/2 and rises again; a query follows each insert.
    fn oscillate(&mut self) {
        let half = self.order.n.div_ceil(2);
        for _ in 0..half {
            self.evict();
        }
        for _ in 0..half {
            self.insert();
            self.query();
        }
    }

    fn round(&mut self) {
        match self.order.mode {
            Mode::Slide => self.slide(),
            Mode::Oscillate => self.oscillate(),
            _ => self.bulk(),
        }
    }

    /// Items of a round.
    fn items(&self) -> usize {
        match self.order.mode {
            Mode::Slide => 1,
            Mode::Oscillate => self.order.n.div_ceil(2),
            _ => self.order.m,
        }
    }

    /// Rounds between two readings of the clock: whole windows if costs come back
    /// with each.
    fn chunk(&self) -> usize {
        let rounds = CHUNK.div_ceil(self.items());
        if !S::PERIODIC {
            return rounds;
        }
        let window = self.order.n.div_ceil(self.items());
        rounds.next_multiple_of(window)
    }

    fn many(mut self, rounds: usize) -> Self {
        if self.order.mode == Mode::Slide {
            return self.slides(rounds);
        }
        for _ in 0..rounds {
            self.round();
        }
        self
    }

    /// A loop over locals, for structures that the compiler keeps in registers.
    fn slides(self, mut rounds: usize) -> Self {
        let Self {
            monoid,
            mut window,
            mut stream,
            order,
            oldest,
            mut next,
        } = self;
        let oldest = oldest + rounds as i64;
        while rounds > 0 {
            let values = stream.run(rounds);
            rounds -= values.len();
            for &value in values {
                window.evict();
                window.insert(next, monoid.input(value));
                next += 1;
                monoid.lower(window.query());
            }
        }
        Self {
            monoid,
            window,
            stream,
            order,
            oldest,
            next,
        }
    }
}

/// One window by itself.
pub fn alone<M: Operator, S: Subject<M>>(order: &Order, monoid: &M, window: S) -> Answer {
    let mut rounds = Rounds::filled(order, monoid, window)?;
    let chunk = rounds.chunk();
    if costs_the_window(order) {
        for _ in 0..order.n {
            rounds.evict();
            rounds.insert();
        }
    } else {
        let count = order.n.div_ceil(rounds.items());
        rounds = rounds.many(count);
    }
    match order.metric {
        Metric::Throughput => {
            let items = rounds.items();
            let mut held = Some(rounds);
            throughput(order, items, chunk, |count| {
                held = held.take().map(|rounds| rounds.many(count));
            })
        }
        Metric::Latency(timed) => Ok(latency(&mut rounds, timed, chunk)),
        Metric::Counts => {
            let items = rounds.items();
            Ok(counts(order, items, || rounds.round()))
        }
        Metric::Memory => {
            let (bytes, resident) = (rounds.window.bytes(), most_resident());
            Ok(memory(order, bytes, resident))
        }
    }
}

/// Bytes that a structure counts, and the most that the process held.
fn memory(order: &Order, bytes: usize, resident: i64) -> String {
    let n = order.n as f64;
    format!(
        r#""bytes": {bytes}, "per_entry": {:.3}, "resident": {resident}, "resident_per_entry": {:.3}"#,
        bytes as f64 / n,
        resident as f64 / n
    )
}

/// Whether each slide takes O(n): then a window of slides first would take O(n²).
fn costs_the_window(order: &Order) -> bool {
    order.structure == "recalculate"
}

fn throughput(order: &Order, items: usize, chunk: usize, mut many: impl FnMut(usize)) -> Answer {
    let limit = Duration::from_millis(order.millis);
    let chunk = if costs_the_window(order) { 64 } else { chunk };
    let (before, start) = (faults(), ThreadTime::now());
    let mut done = 0;
    loop {
        many(chunk);
        done += chunk;
        let spent = start.elapsed();
        if spent >= limit {
            let all = (done * items) as f64;
            let (rate, faults) = (all / spent.as_secs_f64(), faults() - before);
            return Ok(format!(
                r#""rate": {rate:.6e}, "items": {}, "faults": {:.3}"#,
                done * items,
                1e6 * faults as f64 / all
            ));
        }
    }
}

fn latency<M: Operator, S: Subject<M>>(
    rounds: &mut Rounds<'_, M, S>,
    timed: Timed,
    chunk: usize,
) -> String {
    let limit = Duration::from_millis(rounds.order.millis);
    let mut samples = Samples::with_capacity(1 << 16);
    let mut series: Vec<u32> = Vec::new();
    let slide = rounds.order.mode == Mode::Slide;
    let begin = Instant::now();
    while begin.elapsed() < limit && series.len() + chunk <= SAMPLES {
        for _ in 0..chunk {
            let spent = match timed {
                Timed::Round => {
                    let start = Instant::now();
                    if slide {
                        rounds.slide();
                    } else {
                        rounds.round();
                    }
                    start.elapsed()
                }
                Timed::Evict => {
                    let start = Instant::now();
                    rounds.evict_bulk();
                    let spent = start.elapsed();
                    rounds.insert_bulk();
                    rounds.query();
                    spent
                }
                Timed::Insert => {
                    rounds.evict_bulk();
                    let start = Instant::now();
                    rounds.insert_bulk();
                    let spent = start.elapsed();
                    rounds.query();
                    spent
                }
            };
            series.extend(samples.take(spent));
        }
    }
    let points = series.chunks(series.len().div_ceil(POINTS).max(1));
    let highest: Vec<u32> = points
        .filter_map(|part| part.iter().max().copied())
        .collect();
    format!(r#"{}, "series": {highest:?}"#, samples.summary().to_json())
}

/// Over whole windows; the first of them starts the count.
fn counts(order: &Order, items: usize, mut round: impl FnMut()) -> String {
    let window = order.n.div_ceil(items);
    let rounds = (4 * window).max(CHUNK.next_multiple_of(window));
    for _ in 0..window {
        round();
    }
    take_combines();
    let (mut all, mut most) = (0, 0);
    for _ in 0..rounds {
        round();
        let combines = take_combines();
        all += combines;
        most = most.max(combines);
    }
    format!(
        r#""combines": {:.6}, "most": {most}, "items": {}"#,
        all as f64 / (rounds * items) as f64,
        rounds * items
    )
}

/// Only what is done in whole rounds: throughput or counts.
fn whole(order: &Order, items: usize, chunk: usize, mut round: impl FnMut()) -> Answer {
    match order.metric {
        Metric::Throughput => throughput(order, items, chunk, |count| {
            (0..count).for_each(|_| round());
        }),
        Metric::Counts => Ok(counts(order, items, round)),
        _ => Err("this mode has throughput and counts only".into()),
    }
}

/// Several answers over one stream: the ranges are spread evenly over the window.
pub fn ranges<M: Operator, F: Shared<M>>(order: &Order, mut fifo: F) -> Answer {
    let (n, q) = (order.n, order.q);
    if q > n {
        return Err("more ranges than entries".into());
    }
    let lengths: Vec<usize> = (1..=q).rev().map(|at| n * at / q).collect();
    let monoid = fifo.monoid().clone();
    let mut stream = order.stream()?;
    let mut lifted = || monoid.lift(&monoid.input(stream.take()));
    for len in 1..=n {
        fifo.insert(lifted());
        if order.metric == Metric::Memory {
            let held: Vec<usize> = lengths.iter().map(|length| *length.min(&len)).collect();
            fifo.slide(&held);
            fifo.answers(&held, |_, answer| monoid.lower(answer));
        }
    }
    fifo.slide(&lengths);
    let mut slide = || {
        fifo.evict();
        fifo.insert(lifted());
        fifo.slide(&lengths);
        fifo.answers(&lengths, |_, answer| monoid.lower(answer));
    };
    if !costs_the_window(order) && n * q <= 1 << 20 {
        (0..n).for_each(|_| slide());
    }
    if order.metric == Metric::Memory {
        // Two windows of slides, so that all ranges have met all entries.
        (0..2 * n).for_each(|_| slide());
        return Ok(memory(order, fifo.bytes(), most_resident()));
    }
    let chunk = CHUNK.div_ceil(q);
    whole(order, 1, chunk, slide)
}

/// The sizes of the small windows: m of them, evenly spread up to q.
fn small_sizes(order: &Order) -> Vec<usize> {
    let sizes = (1..=order.m).map(|at| (order.q * at / order.m).max(1));
    sizes.collect()
}

/// Some windows, of which the small ones have the youngest entries of the large one.
pub fn twin<M: Operator, W: Window<M>>(order: &Order, monoid: &M, make: impl Fn() -> W) -> Answer {
    let mut orders = vec![order.clone()];
    orders.extend(
        small_sizes(order)
            .into_iter()
            .map(|n| Order { n, ..order.clone() }),
    );
    let empty = make().bytes();
    let mut windows = Vec::with_capacity(orders.len());
    for order in &orders {
        windows.push(Rounds::filled(
            order,
            monoid,
            TimedWindow::<W, false>(make()),
        )?);
    }
    if order.metric == Metric::Memory {
        let bytes: usize = windows.iter().map(|rounds| rounds.window.bytes()).sum();
        return Ok(format!(r#""bytes": {}"#, bytes - empty));
    }
    whole(order, 1, CHUNK, || {
        for rounds in &mut windows {
            rounds.slide();
        }
    })
}

/// One window, queried as a whole and for its youngest entries.
pub fn range<M: Operator, W: Window<M>>(order: &Order, monoid: &M, window: W) -> Answer {
    let before = window.bytes();
    let window = TimedWindow::<W, false>(window);
    let mut rounds = Rounds::filled(order, monoid, window)?;
    if order.metric == Metric::Memory {
        let bytes = rounds.window.bytes() - before;
        return Ok(format!(r#""bytes": {bytes}"#));
    }
    let sizes = small_sizes(order);
    whole(order, 1, CHUNK, || {
        rounds.slide();
        for &size in &sizes {
            let from = rounds.next - (size as i64 - order.d as i64);
            let part = rounds.window.0.query_range(from, i64::MAX);
            monoid.lower(part);
        }
    })
}

/// One insert and its answer in a window that is full: what a resize takes.
pub fn grow<M: Operator, W: Window<M>>(order: &Order, monoid: &M, window: &W) -> Answer {
    let limit = Duration::from_millis(order.millis);
    let mut samples = Samples::with_capacity(1 << 10);
    let begin = Instant::now();
    let mut known = false;
    loop {
        let full = TimedWindow::<W, true>(window.clone());
        let mut rounds = Rounds::filled(order, monoid, full)?;
        rounds.query();
        let start = Instant::now();
        rounds.insert();
        rounds.query();
        known |= samples.take(start.elapsed()).is_some();
        if known && begin.elapsed() >= limit {
            return Ok(samples.summary().to_json());
        }
    }
}

/// Entries at the times of a file, in its order: each evicts what its window has passed.
pub fn replay<M: Operator, W: Window<M>>(order: &Order, monoid: &M, window: W) -> Answer {
    let path = order.times.as_ref().ok_or("replay needs times=")?;
    let times = numbers(path)?;
    let mut stream = order.stream()?;
    let start = ThreadTime::now();
    let limit = Duration::from_millis(order.millis);
    let mut items = 0;
    take_combines();
    // All of the file, each time into an empty window.
    loop {
        let mut window = window.clone();
        let mut youngest = i64::MIN;
        for &time in &times {
            youngest = youngest.max(time);
            window.insert(time, Entry::Raw(monoid.input(stream.take())));
            window.evict_until(youngest - order.span);
            monoid.lower(window.query());
        }
        items += times.len();
        if order.metric == Metric::Counts {
            let combines = take_combines() as f64 / items as f64;
            return Ok(format!(r#""combines": {combines:.6}, "items": {items}"#));
        }
        let spent = start.elapsed();
        if spent >= limit {
            let rate = items as f64 / spent.as_secs_f64();
            return Ok(format!(r#""rate": {rate:.6e}, "items": {items}"#));
        }
    }
}
