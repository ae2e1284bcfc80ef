//! Answers as of arrival: each query point sees only rows that arrived no later.
//!
//! Rows enter a window in their order of arrival, ties kept apart, and each queries its
//! range of times. FiBA takes late rows: no row costs more than O(log n) combines.

use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::HashMap;

use super::frame_bounds::{Closed, clamp, positions_in};
use super::{ArrivalStep, Error, Group, Length, OwnRows, QueryPoints, RowAnswers, Sink, Span};
use crate::aggregate::Aggregation;
use crate::aggregate::collect::Element;
use crate::monoid::Monoid;
use crate::window::fiba::Fiba;
use crate::window::{Ties, Window};

type ArrivalTree<A> = Fiba<A, 64, 32>;

/// Answers all spans for a group, whose `steps` are in order of arrival.
pub(super) fn answer<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    steps: &[ArrivalStep],
    query_points: &QueryPoints<'_>,
    spans: &[Span],
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    if spans
        .iter()
        .any(|span| !matches!(span.length, Length::Rows(_)))
    {
        match query_points.left_out() {
            Some(own) => by_time_without(group, steps, (query_points, own), spans, answers)?,
            None => by_time(group, steps, query_points, spans, answers)?,
        }
    }
    for (index, span) in spans.iter().enumerate() {
        if let Length::Rows(count) = span.length {
            if ends_before_latest(*span) {
                by_earlier_rows(group, steps, query_points, (index, *span), answers)?;
                continue;
            }
            match query_points.left_out() {
                Some(own) => by_rows_without(group, steps, own, (index, count), answers)?,
                None => by_rows(group, steps, (index, count), answers)?,
            }
        }
    }
    Ok(())
}

/// All spans of time share one tree, which keeps every row, because a row may be
/// arbitrarily late.
fn by_time<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    steps: &[ArrivalStep],
    query_points: &QueryPoints<'_>,
    spans: &[Span],
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let mut tree = ArrivalTree::new(group.aggregation.clone(), Ties::Keep);
    let mut arrivals = group.times.iter().zip(&group.entries);
    for step in steps {
        let ArrivalStep::Query { point } = *step else {
            let (time, entry) = arrivals.next().expect("a step per row");
            tree.insert(*time, entry.clone());
            continue;
        };
        for (index, span) in spans.iter().enumerate() {
            if let Length::Rows(_) = span.length {
                continue;
            }
            let partial = match clamp(query_points.interval(point, *span)) {
                Some((lo, hi)) => tree.query_range(lo, hi),
                None => group.aggregation.identity(),
            };
            answers.lower(group.aggregation, &partial);
            answers.put(index, point)?;
        }
    }
    Ok(())
}

/// The rows of a group by their positions in the order of time and arrival.
///
/// Windows that leave their own row out are in a tree by position, so that a row is a position
/// of its own.
struct Positions {
    times: Vec<i64>,
    of_rows: HashMap<usize, usize>,
}

impl Positions {
    fn new<A: Monoid>(group: &Group<'_, A>) -> Self {
        let mut order: Vec<usize> = (0..group.rows.len()).collect();
        order.sort_by_key(|place| group.times[*place]);
        let positions = order.iter().enumerate();
        let positions = positions.map(|(position, place)| (group.rows[*place], position));
        Self {
            of_rows: positions.collect(),
            times: order.iter().map(|place| group.times[*place]).collect(),
        }
    }
}

/// Whether a window of rows ends before the latest row.
pub(super) fn ends_before_latest(span: Span) -> bool {
    span.offset > 0 || span.closed != Closed::Right
}

/// The rows that have arrived, by position, for windows of rows that end before the latest.
#[derive(Debug, Default)]
pub(super) struct Arrived(BTreeSet<usize>);

impl Arrived {
    pub fn insert(&mut self, position: usize) {
        self.0.insert(position);
    }

    /// The positions of the window at `now`, in order, without those of rows of that time if its
    /// end does not belong to it, and without its `own` row. Cost: O(offset + length).
    pub fn window(
        &self,
        span: Span,
        now: i64,
        own: Option<usize>,
        time: impl Fn(usize) -> i64,
    ) -> Vec<usize> {
        let Length::Rows(count) = span.length else {
            unreachable!("only windows of rows end at rows");
        };
        let inside = |at: &usize| span.closed == Closed::Right || time(*at) != now;
        let latest = self.0.iter().rev().copied().filter(inside);
        let offset = usize::try_from(span.offset).unwrap_or(usize::MAX);
        let mut window: Vec<usize> = latest.skip(offset).take(count).collect();
        window.retain(|at| Some(*at) != own);
        window.reverse();
        window
    }
}

/// Windows of rows that end before the latest row, by an offset or at the time of the point.
fn by_earlier_rows<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    steps: &[ArrivalStep],
    query_points: &QueryPoints<'_>,
    (index, span): (usize, Span),
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let positions = Positions::new(group);
    let mut arrived = Arrived::default();
    // The entry of each position, by its place in order of arrival.
    let mut places = vec![0; group.rows.len()];
    let mut arrivals = 0..;
    for step in steps {
        let point = match *step {
            ArrivalStep::Arrive { row } => {
                let position = positions.of_rows[&row];
                places[position] = arrivals.next().expect("endless");
                arrived.insert(position);
                continue;
            }
            ArrivalStep::Query { point } => point,
        };
        let own = query_points
            .left_out()
            .map(|own| positions.of_rows[&own.of(point)]);
        let now = query_points.times[point];
        let window = arrived.window(span, now, own, |at| positions.times[at]);
        let monoid = group.aggregation;
        let entries = window.iter().map(|at| &group.entries[places[*at]]);
        let partial = entries.fold(monoid.identity(), |whole, entry| {
            monoid.combine(&whole, &entry.partial(monoid))
        });
        answers.lower(monoid, &partial);
        answers.put(index, point)?;
    }
    Ok(())
}

/// The fold of a range of positions without one of them.
fn fold_without<A: Monoid>(
    tree: &mut ArrivalTree<A>,
    monoid: &A,
    range: Range<usize>,
    without: usize,
) -> A::Partial {
    let mut fold = |from: usize, to: usize| match from < to {
        true => tree.query_range(from as i64, to as i64 - 1),
        false => monoid.identity(),
    };
    if !range.contains(&without) {
        return fold(range.start, range.end);
    }
    let before = fold(range.start, without);
    monoid.combine(&before, &fold(without + 1, range.end))
}

/// As `by_time`, for windows that leave their own row out.
fn by_time_without<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    steps: &[ArrivalStep],
    (query_points, own): (&QueryPoints<'_>, OwnRows<'_>),
    spans: &[Span],
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let positions = Positions::new(group);
    let monoid = group.aggregation;
    let mut tree = ArrivalTree::new(monoid.clone(), Ties::Keep);
    let mut arrivals = group.entries.iter();
    for step in steps {
        let point = match *step {
            ArrivalStep::Arrive { row } => {
                let entry = arrivals.next().expect("a step per row");
                tree.insert(positions.of_rows[&row] as i64, entry.clone());
                continue;
            }
            ArrivalStep::Query { point } => point,
        };
        let without = positions.of_rows[&own.of(point)];
        for (index, span) in spans.iter().enumerate() {
            if let Length::Rows(_) = span.length {
                continue;
            }
            let range = positions_in(&positions.times, query_points.interval(point, *span));
            let partial = fold_without(&mut tree, monoid, range, without);
            answers.lower(monoid, &partial);
            answers.put(index, point)?;
        }
    }
    Ok(())
}

/// As `by_rows`, for windows that leave their own row out: the `count` latest of the others.
fn by_rows_without<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    steps: &[ArrivalStep],
    own: OwnRows<'_>,
    (index, count): (usize, usize),
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let positions = Positions::new(group);
    let monoid = group.aggregation;
    let mut tree = ArrivalTree::new(monoid.clone(), Ties::Keep);
    let mut arrivals = group.entries.iter();
    // One more than a window holds, in case that it leaves one of them out.
    let mut latest = BTreeSet::new();
    for step in steps {
        let point = match *step {
            ArrivalStep::Arrive { row } => {
                let entry = arrivals.next().expect("a step per row");
                let position = positions.of_rows[&row];
                tree.insert(position as i64, entry.clone());
                latest.insert(position);
                if latest.len() > count.saturating_add(1) {
                    tree.evict();
                    latest.pop_first();
                }
                continue;
            }
            ArrivalStep::Query { point } => point,
        };
        let without = positions.of_rows[&own.of(point)];
        let first = *latest.first().expect("its row has arrived");
        let spare = without < first && latest.len() > count;
        let range = first + usize::from(spare)..positions.times.len();
        let partial = fold_without(&mut tree, monoid, range, without);
        answers.lower(monoid, &partial);
        answers.put(index, point)?;
    }
    Ok(())
}

/// Windows of the `count` latest rows by time among those that have arrived.
fn by_rows<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    steps: &[ArrivalStep],
    (index, count): (usize, usize),
    answers: &mut RowAnswers<'_, T, S>,
) -> Result<(), Error> {
    let mut tree = ArrivalTree::new(group.aggregation.clone(), Ties::Keep);
    let mut arrivals = group.times.iter().zip(&group.entries);
    for step in steps {
        let ArrivalStep::Query { point } = *step else {
            let (time, entry) = arrivals.next().expect("a step per row");
            tree.insert(*time, entry.clone());
            if tree.len() > count {
                tree.evict();
            }
            continue;
        };
        answers.lower(group.aggregation, &tree.query());
        answers.put(index, point)?;
    }
    Ok(())
}
