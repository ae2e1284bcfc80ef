//! Answers as of arrival: each query point sees only rows that arrived no later.
//!
//! Rows enter a window in their order of arrival, ties kept apart, and each queries its
//! range of times. FiBA takes late rows: no row costs more than O(log n) combines.

use super::frame_bounds::clamp;
use super::{ArrivalStep, Error, Group, Length, QueryPoints, RowAnswers, Sink, Span};
use crate::aggregate::Aggregation;
use crate::aggregate::collect::Element;
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
        by_time(group, steps, query_points, spans, answers)?;
    }
    for (index, span) in spans.iter().enumerate() {
        if let Length::Rows(count) = span.length {
            by_rows(group, steps, (index, count), answers)?;
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
