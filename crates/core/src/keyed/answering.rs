//! The answers of a key at some times, over several windows.
//!
//! Windows that end together share their folds: from the shortest on, each adds the entries
//! before those of the one before. Many times of one key, in order, share more: each fold
//! keeps a *core*, which the windows of the next times hold too, and only the entries before
//! and behind it are folded for each of them.
//!
//! ```text
//! window now             |-----------------------|
//! window some times on          |------------------------|
//! core                          |----------------|
//! ```

use std::cmp::Reverse;

use super::Visit;
use super::blocks::absorb;
use super::shard::Shard;
use crate::aggregate::{Aggregation, Answer};
use crate::monoid::Entry;
use crate::rolling::Span;

/// A core serves so many times.
pub(super) const AHEAD: usize = 64;
/// Times of one key for which cores are kept.
const FEW: usize = 16;

/// A time of a key to answer at.
#[derive(Debug)]
pub(super) struct Point<'a, A: Aggregation<i64>> {
    pub number: Option<u32>,
    pub at: i64,
    /// A later time of the same key, up to which a core should serve.
    pub ahead: i64,
    /// A row that takes part as if it had arrived, last of its time.
    pub plus: Option<&'a Entry<A>>,
}

impl<A: Aggregation<i64>> Point<'_, A> {
    pub fn of(number: Option<u32>, at: i64) -> Self {
        Self {
            number,
            at,
            ahead: at,
            plus: None,
        }
    }
}

/// The fold of the entries with `from <= time <= to`; of none before the first.
#[derive(Debug)]
struct Core<P> {
    from: i64,
    to: i64,
    fold: Option<P>,
}

impl<P> Core<P> {
    fn none() -> Self {
        Self {
            from: i64::MAX,
            to: i64::MIN,
            fold: None,
        }
    }

    fn serves(&self, (lo, hi): (i64, i64)) -> bool {
        self.from <= self.to && lo <= self.from && self.to <= hi
    }
}

/// Answers at times of keys, with memory that serves all of them.
pub(super) struct Answering<'a, A: Aggregation<i64>> {
    monoid: &'a A,
    /// With their places: those with equal ends together, from the shortest on.
    spans: Vec<(usize, &'a Span)>,
    answers: Vec<Answer<i64>>,
    /// By the place of the window; empty without cores.
    cores: Vec<Core<A::Partial>>,
}

impl<'a, A: Aggregation<i64>> Answering<'a, A> {
    pub fn new(monoid: &'a A, spans: &'a [Span]) -> Self {
        let mut spans: Vec<(usize, &Span)> = spans.iter().enumerate().collect();
        spans.sort_by_key(|(_, span)| {
            let (lo, hi) = span.interval(0, None);
            (Reverse(hi), Reverse(lo))
        });
        Self {
            monoid,
            spans,
            answers: Vec::new(),
            cores: Vec::new(),
        }
    }

    /// Begins another key, with so many times, whose entries do not change meanwhile.
    pub fn begin(&mut self, times: usize, is_tree: bool) {
        self.cores.clear();
        if is_tree && times >= FEW {
            self.cores.extend(self.spans.iter().map(|_| Core::none()));
        }
    }

    /// The answers at a time, by window.
    pub fn answer(&mut self, shard: &Shard<A>, point: &Point<'_, A>, visit: &mut Visit<'_>) {
        let mut acc: Option<A::Partial> = None;
        let mut known: Option<(i64, i64)> = None;
        for place in 0..self.spans.len() {
            let (index, span) = self.spans[place];
            let (lo, hi) = bounds(span, point.at).unwrap_or((i64::MAX, i64::MIN));
            let is_longer = known.is_some_and(|(_, to)| to == hi) && lo <= hi;
            let end = match known {
                Some((from, _)) if is_longer => from.saturating_sub(1),
                _ => hi,
            };
            let mut older = None;
            if lo <= end && known.is_none_or(|(from, _)| !is_longer || lo < from) {
                self.fold(shard, point, (lo, end), index, &mut older);
            }
            acc = match (older, acc.take().filter(|_| is_longer)) {
                (Some(older), Some(rest)) => Some(self.monoid.combine(&older, &rest)),
                (older, rest) => older.or(rest),
            };
            if let Some(plus) = point.plus
                && !is_longer
                && (lo..=hi).contains(&point.at)
            {
                absorb(self.monoid, &mut acc, plus);
            }
            known = (lo <= hi).then_some((lo, hi));
            self.answers.clear();
            match &acc {
                Some(partial) => self.monoid.answers(partial, &mut self.answers),
                None => self
                    .monoid
                    .answers(&self.monoid.identity(), &mut self.answers),
            }
            visit(index, &self.answers);
        }
    }

    /// Folds the entries with `lo <= time <= hi`; the core is that of a window.
    #[inline]
    fn fold(
        &mut self,
        shard: &Shard<A>,
        point: &Point<'_, A>,
        (lo, hi): (i64, i64),
        window: usize,
        acc: &mut Option<A::Partial>,
    ) {
        let (monoid, number) = (self.monoid, point.number);
        let Some(core) = self.cores.get_mut(window) else {
            return shard.fold(monoid, number, (lo, hi), acc);
        };
        if !core.serves((lo, hi)) {
            // The window some times on begins there.
            let from = i128::from(lo) + i128::from(point.ahead) - i128::from(point.at);
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            if from == lo || from > hi {
                return shard.fold(monoid, number, (lo, hi), acc);
            }
            let mut fold = None;
            shard.fold(monoid, number, (from, hi), &mut fold);
            *core = Core { from, to: hi, fold };
        }
        if lo < core.from {
            shard.fold(monoid, number, (lo, core.from - 1), acc);
        }
        if let Some(fold) = &core.fold {
            *acc = Some(match acc.take() {
                Some(older) => monoid.combine(&older, fold),
                None => fold.clone(),
            });
        }
        if core.to < hi {
            shard.fold(monoid, number, (core.to + 1, hi), acc);
        }
    }
}

/// The first and the last time of a window, if there can be any entry in it.
pub(super) fn bounds(span: &Span, at: i64) -> Option<(i64, i64)> {
    let (lo, hi) = span.interval(at, None);
    let bound = |end: i128| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    match lo > i64::MAX.into() || hi < i64::MIN.into() {
        true => None,
        false => Some((bound(lo), bound(hi))),
    }
}
