//! The answers of a key at some times, over several windows.
//!
//! Windows that end together share their folds: from the shortest on, each adds the entries
//! before those of the one before. Many times of one key, in order, share more, as in the
//! Two-Stacks algorithm: what all their windows hold is folded once, the entries before it
//! from the last time back, and those behind it from the first time on.
//!
//! ```text
//! window at the first time   |-----------------------|
//! window at the last time           |------------------------|
//! in all of them                    |----------------|
//! folded back                |------|
//! folded on                                          |-------|
//! ```

use std::cmp::Reverse;

use super::Visit;
use super::blocks::absorb;
use super::shard::{Placed, Shard};
use crate::aggregate::{Aggregation, Answer};
use crate::monoid::Entry;
use crate::rolling::Span;

/// So many times share their folds.
const TOGETHER: usize = 64;
/// Fewer do not.
const FEW: usize = 4;

/// So many times are compared one by one.
const SHORT: usize = 16;

/// A time of a key to answer at.
#[derive(Debug)]
pub(super) struct Point<'a, A: Aggregation<i64>> {
    pub number: Option<u32>,
    pub at: i64,
    /// A row that takes part as if it had arrived, last of its time.
    pub plus: Option<&'a Entry<A>>,
}

/// A window at some times in order: the folds of its entries that they share.
#[derive(Debug)]
struct Slide<P> {
    /// By time, the fold of the entries before those in all windows.
    before: Vec<Option<P>>,
    /// Of those in all windows, and behind them up to the time that is answered.
    rest: Option<P>,
    /// Where the window at the time before ended.
    end: i64,
}

/// Receives the place of the time, and what [`Visit`] does.
pub(super) type VisitEach<'a> = dyn FnMut(usize, usize, &[Answer<i64>]) + 'a;

/// Answers at times of keys, with memory that serves all of them.
pub(super) struct Answering<'a, A: Aggregation<i64>> {
    monoid: &'a A,
    /// With their places: those with equal ends together, from the shortest on.
    spans: Vec<(usize, &'a Span)>,
    answers: Vec<Answer<i64>>,
    /// As the spans; none for a window that shares nothing.
    slides: Vec<Option<Slide<A::Partial>>>,
}

impl<'a, A: Aggregation<i64>> Answering<'a, A> {
    pub fn new(monoid: &'a A, spans: &'a [Span]) -> Self {
        Self {
            monoid,
            spans: by_end(spans),
            answers: Vec::new(),
            slides: Vec::new(),
        }
    }

    /// The answers at a time, by window.
    pub fn answer(&mut self, shard: &Shard<A>, point: &Point<'_, A>, visit: &mut Visit<'_>) {
        if let Some(raw) = shard.raw(point.number)
            && point.plus.is_none()
        {
            return self.answer_raw(raw, point.at, visit);
        }
        let mut acc: Option<A::Partial> = None;
        let mut known: Option<(i64, i64)> = None;
        for place in 0..self.spans.len() {
            let (index, span) = self.spans[place];
            let (lo, hi) = bounds(span, point.at);
            let is_longer = known.is_some_and(|(_, to)| to == hi) && lo <= hi;
            let end = match known {
                Some((from, _)) if is_longer => from.saturating_sub(1),
                _ => hi,
            };
            let mut older = None;
            if lo <= end && known.is_none_or(|(from, _)| !is_longer || lo < from) {
                shard.fold(self.monoid, point.number, (lo, end), &mut older);
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
            self.visit(acc.as_ref(), |answers| visit(index, answers));
        }
    }

    /// The same where all entries are at hand.
    fn answer_raw(&mut self, (times, values): (&[i64], &[A::In]), at: i64, visit: &mut Visit<'_>) {
        let mut acc: Option<A::Partial> = None;
        // The first entry of the window before, and where the window ends.
        let mut known: Option<(usize, i64)> = None;
        for place in 0..self.spans.len() {
            let (index, span) = self.spans[place];
            let (lo, hi) = bounds(span, at);
            let longer = known.filter(|(_, to)| *to == hi && lo <= hi);
            let end = longer.map_or_else(|| places_until(times, hi), |(first, _)| first);
            let first = match lo {
                i64::MIN => 0,
                _ => places_until(&times[..end], lo - 1),
            };
            if longer.is_none() {
                acc = None;
            }
            if first < end {
                let older = self.monoid.fold(&values[first..end]);
                acc = Some(match acc.take() {
                    Some(rest) => self.monoid.combine(&older, &rest),
                    None => older,
                });
            }
            known = (lo <= hi).then_some((first, hi));
            self.visit(acc.as_ref(), |answers| visit(index, answers));
        }
    }

    /// The answers of a key at times in order, by time and window.
    pub fn answer_all(
        &mut self,
        shard: &Shard<A>,
        number: Option<u32>,
        times: &[Placed],
        visit: &mut VisitEach<'_>,
    ) {
        for (chunk, together) in times.chunks(TOGETHER).enumerate() {
            let first = chunk * TOGETHER;
            if together.len() >= FEW {
                self.slide(shard, number, together, &mut |at, span, answers| {
                    visit(first + at, span, answers);
                });
                continue;
            }
            for (at, time) in together.iter().enumerate() {
                let point = Point {
                    number,
                    at: time.time(),
                    plus: None,
                };
                self.answer(shard, &point, &mut |span, answers| {
                    visit(first + at, span, answers);
                });
            }
        }
    }

    /// The same for a few times, which share folds.
    fn slide(
        &mut self,
        shard: &Shard<A>,
        number: Option<u32>,
        times: &[Placed],
        visit: &mut VisitEach<'_>,
    ) {
        let mut slides = std::mem::take(&mut self.slides);
        slides.clear();
        let begun = self.spans.iter();
        slides.extend(begun.map(|(_, span)| self.begin(shard, number, times, span)));
        for (at, time) in times.iter().enumerate() {
            // The entries that windows with equal ends take in.
            let mut taken: Option<(i64, i64, Option<A::Partial>)> = None;
            for (place, slide) in slides.iter_mut().enumerate() {
                let (index, span) = self.spans[place];
                let (lo, hi) = bounds(span, time.time());
                let Some(slide) = slide else {
                    let mut whole = None;
                    shard.fold(self.monoid, number, (lo, hi), &mut whole);
                    self.visit(whole.as_ref(), |answers| visit(at, index, answers));
                    continue;
                };
                if slide.end < hi {
                    let range = (slide.end + 1, hi);
                    if taken
                        .as_ref()
                        .is_none_or(|(from, to, _)| (*from, *to) != range)
                    {
                        let mut new = None;
                        shard.fold(self.monoid, number, range, &mut new);
                        taken = Some((range.0, range.1, new));
                    }
                    if let Some((_, _, Some(new))) = &taken {
                        self.join(&mut slide.rest, new);
                    }
                    slide.end = hi;
                }
                match (slide.before[at].take(), &slide.rest) {
                    (Some(older), Some(rest)) => {
                        let whole = self.monoid.combine(&older, rest);
                        self.visit(Some(&whole), |answers| visit(at, index, answers));
                    }
                    (Some(whole), None) => {
                        self.visit(Some(&whole), |answers| visit(at, index, answers));
                    }
                    (None, rest) => {
                        self.visit(rest.as_ref(), |answers| visit(at, index, answers));
                    }
                }
            }
        }
        self.slides = slides;
    }

    /// The time of the first entry of a window without which, and without those before it, the
    /// first `compared` answers are others; none if they never are.
    pub fn first_change(
        &mut self,
        shard: &Shard<A>,
        point: &Point<'_, A>,
        span: &Span,
        compared: usize,
    ) -> Option<i64> {
        let (lo, hi) = bounds(span, point.at);
        let holds_plus = point.plus.is_some() && (lo..=hi).contains(&point.at);
        let mut before: Option<Vec<Answer<i64>>> = None;
        let mut from = lo;
        loop {
            let mut fold = None;
            if from <= hi {
                shard.fold(self.monoid, point.number, (from, hi), &mut fold);
            }
            // The row that takes part leaves as one of its time does.
            if let Some(plus) = point.plus.filter(|_| holds_plus && from <= point.at) {
                absorb(self.monoid, &mut fold, plus);
            }
            self.visit(fold.as_ref(), |_| ());
            self.answers.truncate(compared);
            match &before {
                None => before = Some(self.answers.clone()),
                Some(before) if !same(before, &self.answers) => return Some(from - 1),
                Some(_) => {}
            }
            let first = (from <= hi)
                .then(|| shard.first(point.number, from))
                .flatten();
            let first = first.filter(|first| *first <= hi);
            let own = (holds_plus && from <= point.at).then_some(point.at);
            from = first.into_iter().chain(own).min()?.checked_add(1)?;
        }
    }

    /// What the windows of a span at times in order share, if they all overlap.
    fn begin(
        &self,
        shard: &Shard<A>,
        number: Option<u32>,
        times: &[Placed],
        span: &Span,
    ) -> Option<Slide<A::Partial>> {
        let last = times.len() - 1;
        let (_, end) = bounds(span, times[0].time());
        let (mut from, _) = bounds(span, times[last].time());
        if from > end {
            return None;
        }
        let mut rest = None;
        shard.fold(self.monoid, number, (from, end), &mut rest);
        let mut before = vec![None; times.len()];
        for at in (0..last).rev() {
            let (lo, _) = bounds(span, times[at].time());
            let mut older = None;
            if lo < from {
                shard.fold(self.monoid, number, (lo, from - 1), &mut older);
            }
            from = lo;
            before[at] = match (older, &before[at + 1]) {
                (Some(older), Some(younger)) => Some(self.monoid.combine(&older, younger)),
                (older, younger) => older.or_else(|| younger.clone()),
            };
        }
        Some(Slide { before, rest, end })
    }

    /// Combines a partial behind another.
    fn join(&self, acc: &mut Option<A::Partial>, new: &A::Partial) {
        *acc = Some(match acc.take() {
            Some(older) => self.monoid.combine(&older, new),
            None => new.clone(),
        });
    }

    fn visit(&mut self, fold: Option<&A::Partial>, visit: impl FnOnce(&[Answer<i64>])) {
        self.answers.clear();
        match fold {
            Some(partial) => self.monoid.answers(partial, &mut self.answers),
            None => self
                .monoid
                .answers(&self.monoid.identity(), &mut self.answers),
        }
        visit(&self.answers);
    }
}

/// How many of some times, which are in order, are at or before one.
#[inline]
fn places_until(times: &[i64], until: i64) -> usize {
    match times.len() {
        0..=SHORT => times.iter().filter(|time| **time <= until).count(),
        _ => times.partition_point(|time| *time <= until),
    }
}

/// Spans with their places: those with equal ends together, from the shortest on. One
/// function for all monoids: the sort is 14 kB.
fn by_end(spans: &[Span]) -> Vec<(usize, &Span)> {
    let mut spans: Vec<(usize, &Span)> = spans.iter().enumerate().collect();
    spans.sort_by_key(|(_, span)| {
        let (lo, hi) = span.interval(0, None);
        (Reverse(hi), Reverse(lo))
    });
    spans
}

/// Whether answers are the same, NaN too.
fn same(a: &[Answer<i64>], b: &[Answer<i64>]) -> bool {
    let pairs = a.iter().zip(b);
    a.len() == b.len()
        && pairs.into_iter().all(|pair| match pair {
            (Answer::F64(a), Answer::F64(b)) => a == b || (a.is_nan() && b.is_nan()),
            (a, b) => a == b,
        })
}

/// The first and the last time of a window; they cross if there can be no entry in it.
pub(super) fn bounds(span: &Span, at: i64) -> (i64, i64) {
    let (lo, hi) = span.interval(at, None);
    let bound = |end: i128| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    match lo > i64::MAX.into() || hi < i64::MIN.into() {
        true => (i64::MAX, i64::MIN),
        false => (bound(lo), bound(hi)),
    }
}
