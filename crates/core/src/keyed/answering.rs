//! The answers of keys at times, over several windows.
//!
//! Windows that end together share their folds: from the shortest on, each adds the entries
//! that the window before it does not hold. Many times of one key, in order, share more
//! ([`Sliding`]). The folds of many rows are lowered together, column by column.

use std::cmp::Reverse;

use super::VisitAnswers;
use super::blocks::absorb;
use super::shard::{Placed, Shard};
use super::sliding::{MIN_SHARED_TIMES, Sliding};
use crate::aggregate::{Aggregation, Answer, NumberRun};
use crate::monoid::{Entry, Monoid};
use crate::rolling::{Filling, Span};

/// The number of times of a key that share their folds.
const TOGETHER: usize = 128;
/// The number of rows that are lowered together.
const ROWS: usize = 256;
/// Up to this number of times are compared one by one.
const SHORT: usize = 16;

/// A query point: a key and a time.
#[derive(Debug)]
pub(super) struct Point<'a, A: Aggregation<i64>> {
    pub number: Option<u32>,
    pub at: i64,
    /// An extra row, which counts as the last of its time.
    pub plus: Option<&'a Entry<A>>,
}

/// Windows with their positions in the request, sorted by end and then by length, so that each
/// shares the folds of those before it.
#[derive(Clone, Debug, Default)]
pub struct Spans(Vec<(usize, Span)>);

impl Spans {
    pub fn new(spans: &[Span]) -> Self {
        Self(by_end(spans))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// How results read the answers of a fold, and how many of their changes are requested.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Per result, the positions of its answers, and that of its count of values.
    pub reads: Vec<(Vec<usize>, Option<usize>)>,
    /// Results of fewer values than this are null.
    pub min_rows: i64,
    /// Per query point, the greatest number of changes.
    pub most: Vec<i64>,
}

impl Results {
    /// The answers that the results read.
    fn read(&self, answers: &[Answer<i64>]) -> Vec<Answer<i64>> {
        let mut read = Vec::with_capacity(answers.len());
        for (places, count) in &self.reads {
            let count = count.map(|count| &answers[count]);
            let too_few = matches!(count, Some(Answer::I64(count)) if *count < self.min_rows);
            read.extend(places.iter().map(|place| match too_few {
                true => Answer::Null,
                false => answers[*place].clone(),
            }));
        }
        read
    }
}

/// Receives the answers of consecutive rows.
pub(super) trait Sink {
    /// Receives the answers of one row over one span.
    fn put(&mut self, span: usize, row: usize, answers: &[Answer<i64>]);
    /// Receives the answers of some rows over one span, a column per aggregation.
    fn put_columns(&mut self, span: usize, first: usize, columns: &[NumberRun]);
}

impl Sink for Filling<'_, '_> {
    fn put(&mut self, span: usize, row: usize, answers: &[Answer<i64>]) {
        Filling::put(self, span, row, answers);
    }

    fn put_columns(&mut self, span: usize, first: usize, columns: &[NumberRun]) {
        Filling::put_columns(self, span, first, columns);
    }
}

/// Answers query points, with scratch memory for all of them.
pub(super) struct Answering<'a, A: Aggregation<i64>> {
    monoid: &'a A,
    spans: &'a Spans,
    /// Per span, the folds of rows that are not lowered yet.
    folds: Vec<Vec<A::Partial>>,
    /// The first of these rows.
    first: usize,
    sliding: Sliding<A::Partial>,
    answers: Vec<Answer<i64>>,
    columns: Vec<NumberRun>,
}

impl<'a, A: Aggregation<i64>> Answering<'a, A> {
    /// For so many query points.
    pub fn new(monoid: &'a A, spans: &'a Spans, rows: usize) -> Self {
        let folds = || Vec::with_capacity(rows.min(ROWS));
        Self {
            monoid,
            spans,
            folds: spans.0.iter().map(|_| folds()).collect(),
            first: 0,
            sliding: Sliding::default(),
            answers: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Folds the windows of one query point, a row.
    pub fn fold(&mut self, shard: &Shard<A>, point: &Point<'_, A>) {
        let folds = &mut self.folds;
        each_fold(self.monoid, self.spans, shard, point, |span, fold| {
            folds[span].push(fold);
        });
    }

    /// Folds the windows of a key at some times, in order: a row per time.
    pub fn fold_all(&mut self, shard: &Shard<A>, number: Option<u32>, times: &[Placed]) {
        if times.len() < MIN_SHARED_TIMES {
            for time in times {
                let (at, plus) = (time.time(), None);
                self.fold(shard, &Point { number, at, plus });
            }
            return;
        }
        for together in times.chunks(TOGETHER) {
            self.sliding.reset();
            for (index, span) in &self.spans.0 {
                let folds = &mut self.folds[*index];
                self.sliding
                    .slide(self.monoid, (shard, number), together, span, folds);
            }
        }
    }

    /// Lowers the folded rows, if they are many or `all` is set.
    pub fn put(&mut self, all: bool, sink: &mut dyn Sink) {
        let rows = self.folds.first().map_or(0, Vec::len);
        if rows < ROWS && !all && !self.monoid.wide() {
            return;
        }
        let mut folds = std::mem::take(&mut self.folds);
        for (span, folds) in folds.iter_mut().enumerate() {
            if self.monoid.answer_columns(folds, &mut self.columns) {
                sink.put_columns(span, self.first, &self.columns);
            } else {
                for (row, fold) in (self.first..).zip(folds.iter()) {
                    self.lower(fold);
                    sink.put(span, row, &self.answers);
                }
            }
            folds.clear();
        }
        self.folds = folds;
        self.first += rows;
    }

    /// The first changes, at most `most`, of the window of a query point as its entries leave in
    /// order of time: for each the last time that left, and the fold of the remaining entries. A
    /// time is a change if a result differs from the one before.
    pub fn changes(
        &mut self,
        shard: &Shard<A>,
        (row, point): (usize, &Point<'_, A>),
        span: &Span,
        results: &Results,
        mut visit: impl FnMut(i64, A::Partial),
    ) {
        let (lo, hi) = span.bounds(point.at);
        let holds_plus = point.plus.is_some() && (lo..=hi).contains(&point.at);
        let mut before: Option<Vec<Answer<i64>>> = None;
        let mut found = 0;
        let mut from = lo;
        while found < results.most[row] {
            let mut fold = None;
            if from <= hi {
                shard.fold(self.monoid, point.number, (from, hi), &mut fold);
            }
            // The extra row leaves with the entries of its time.
            if let Some(plus) = point.plus.filter(|_| holds_plus && from <= point.at) {
                absorb(self.monoid, &mut fold, plus);
            }
            let fold = fold.unwrap_or_else(|| self.monoid.identity());
            self.lower(&fold);
            let read = results.read(&self.answers);
            if before.as_ref().is_none_or(|before| !same(before, &read))
                && before.replace(read).is_some()
            {
                visit(from - 1, fold);
                found += 1;
            }
            let first = (from <= hi)
                .then(|| shard.first(point.number, from))
                .flatten();
            let first = first.filter(|first| *first <= hi);
            let own = (holds_plus && from <= point.at).then_some(point.at);
            let Some(next) = first.into_iter().chain(own).min() else {
                return;
            };
            let Some(next) = next.checked_add(1) else {
                return;
            };
            from = next;
        }
    }

    /// Lowers the given folds of rows over one span.
    pub fn put_folds(monoid: &'a A, folds: Vec<A::Partial>, sink: &mut dyn Sink) {
        let none = Spans::default();
        let mut answering = Answering {
            folds: vec![folds],
            ..Answering::new(monoid, &none, 0)
        };
        answering.put(true, sink);
    }

    /// Lowers a fold into `answers`.
    fn lower(&mut self, fold: &A::Partial) {
        self.answers.clear();
        self.monoid.answers(fold, &mut self.answers);
    }
}

/// The answers of one key at a time, by window.
pub(super) fn answer_one<A: Aggregation<i64>>(
    monoid: &A,
    spans: &Spans,
    shard: &Shard<A>,
    point: &Point<'_, A>,
    visit: &mut VisitAnswers<'_>,
) {
    let mut answers = Vec::new();
    each_fold(monoid, spans, shard, point, |span, fold| {
        answers.clear();
        monoid.answers(&fold, &mut answers);
        visit(span, &answers);
    });
}

/// Folds the windows at a time of a key.
#[inline]
fn each_fold<A: Aggregation<i64>>(
    monoid: &A,
    spans: &Spans,
    shard: &Shard<A>,
    point: &Point<'_, A>,
    mut emit: impl FnMut(usize, A::Partial),
) {
    if let Some(raw) = shard.raw(point.number)
        && point.plus.is_none()
    {
        return each_raw_fold(monoid, spans, raw, point.at, emit);
    }
    let fold = |range| {
        let mut fold = None;
        shard.fold(monoid, point.number, range, &mut fold);
        fold
    };
    let join = |older: Option<A::Partial>, younger: Option<A::Partial>| match (older, younger) {
        (Some(older), Some(younger)) => Some(monoid.combine(&older, &younger)),
        (older, younger) => older.or(younger),
    };
    // The fold of the last window, and its bounds.
    let (mut acc, mut known) = (None, None::<(i64, i64)>);
    // The fold from the start of a leaf on. A longer window needs all entries of the leaf in which
    // a shorter one begins, and the fold of these is at hand.
    let mut edge: Option<(i64, Option<A::Partial>)> = None;
    let mut plus = None;
    for (index, span) in &spans.0 {
        let (lo, hi) = span.bounds(point.at);
        let shorter = known.filter(|(from, to)| *to == hi && lo <= (*from).min(hi));
        if shorter.is_none() {
            (acc, edge) = (None, None);
            plus = point.plus.filter(|_| (lo..=hi).contains(&point.at));
        }
        let with_plus = |mut fold| {
            if let Some(plus) = plus {
                absorb(monoid, &mut fold, plus);
            }
            fold
        };
        if lo <= hi && shorter.is_none_or(|(from, _)| lo < from) {
            let last = edge.as_ref().map_or(hi, |(at, _)| at - 1);
            let start = shard.leaf_start(point.number, lo);
            acc = match (start.filter(|start| *start <= last), shorter) {
                (Some(start), _) => {
                    let rest = match edge.take() {
                        Some((_, younger)) => join(fold((start, last)), younger),
                        None => with_plus(fold((start, last))),
                    };
                    edge = Some((start, rest.clone()));
                    match lo < start {
                        true => join(fold((lo, start - 1)), rest),
                        false => rest,
                    }
                }
                (None, Some((from, _))) => join(fold((lo, from - 1)), acc),
                (None, None) => with_plus(fold((lo, hi))),
            };
        }
        known = (lo <= hi).then_some((lo, hi));
        emit(*index, acc.clone().unwrap_or_else(|| monoid.identity()));
    }
}

/// As `each_fold`, for a key whose entries are one block of raw values.
fn each_raw_fold<M: Monoid>(
    monoid: &M,
    spans: &Spans,
    (times, values): (&[i64], &[M::In]),
    at: i64,
    mut emit: impl FnMut(usize, M::Partial),
) {
    let mut acc: Option<M::Partial> = None;
    // The first entry of the window before, and its bounds.
    let mut known: Option<(usize, (i64, i64))> = None;
    for (index, span) in &spans.0 {
        let (lo, hi) = span.bounds(at);
        let longer = known.filter(|(_, (from, to))| *to == hi && lo <= (*from).min(hi));
        let end = longer.map_or_else(|| places_until(times, hi), |(first, _)| first);
        let first = match lo {
            i64::MIN => 0,
            _ => places_until(&times[..end], lo - 1),
        };
        if longer.is_none() {
            acc = None;
        }
        if first < end {
            let older = monoid.fold(&values[first..end]);
            acc = Some(match acc.take() {
                Some(rest) => monoid.combine(&older, &rest),
                None => older,
            });
        }
        known = (lo <= hi).then_some((first, (lo, hi)));
        emit(*index, acc.clone().unwrap_or_else(|| monoid.identity()));
    }
}

/// The number of times, in order, that are at or before `until`.
#[inline]
fn places_until(times: &[i64], until: i64) -> usize {
    match times.len() {
        0..=SHORT => times.iter().filter(|time| **time <= until).count(),
        _ => times.partition_point(|time| *time <= until),
    }
}

/// See [`Spans`]. One function for all monoids, because the sort takes 14 kB.
fn by_end(spans: &[Span]) -> Vec<(usize, Span)> {
    let mut spans: Vec<(usize, Span)> = spans.iter().copied().enumerate().collect();
    spans.sort_by_key(|(_, span)| {
        let (lo, hi) = span.interval(0, None);
        (Reverse(hi), Reverse(lo))
    });
    spans
}

/// Whether answers are equal; NaN equals NaN.
fn same(a: &[Answer<i64>], b: &[Answer<i64>]) -> bool {
    let pairs = a.iter().zip(b);
    a.len() == b.len()
        && pairs.into_iter().all(|pair| match pair {
            (Answer::F64(a), Answer::F64(b)) => a == b || (a.is_nan() && b.is_nan()),
            (a, b) => a == b,
        })
}
