//! The answers as of arrival: what a server would have said at each moment.
//!
//! Rows enter a window in their order of arrival, ties kept apart, and each asks for the
//! range of times it sees; rows that arrive later are not there yet. Late rows are what
//! FiBA is for: no row costs more than O(log n) combines.

use super::bounds::interval;
use super::{Answers, Error, Group, Length, Sink, Span};
use crate::aggregate::Aggregation;
use crate::aggregate::collect::Element;
use crate::window::fiba::Fiba;
use crate::window::{Ties, Window};

type Tree<A> = Fiba<A, 64, 32>;

/// Answers all spans for every row of a group whose rows are in order of arrival.
pub(super) fn answer<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    spans: &[Span],
    answers: &mut Answers<'_, T, S>,
) -> Result<(), Error> {
    if spans
        .iter()
        .any(|span| matches!(span.length, Length::Time(_)))
    {
        by_time(group, spans, answers)?;
    }
    for (index, span) in spans.iter().enumerate() {
        if let Length::Rows(count) = span.length {
            by_rows(group, index, count, answers)?;
        }
    }
    Ok(())
}

/// All spans of time share one tree, which keeps every row: a row may arrive however
/// late, and sees what had arrived of its own past.
fn by_time<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    spans: &[Span],
    answers: &mut Answers<'_, T, S>,
) -> Result<(), Error> {
    let mut tree = Tree::new(group.aggregation.clone(), Ties::Keep);
    for (position, &row) in group.rows.iter().enumerate() {
        let now = group.times[position];
        tree.insert(now, group.entries[position].clone());
        for (index, span) in spans.iter().enumerate() {
            let Length::Time(length) = span.length else {
                continue;
            };
            let partial = match interval(now, length, span.closed) {
                Some((lo, hi)) => tree.query_range(lo, hi),
                None => group.aggregation.identity(),
            };
            answers.lower(group.aggregation, &partial);
            answers.put(index, row)?;
        }
    }
    Ok(())
}

/// The `count` youngest by time among the arrived.
fn by_rows<T: Element, A: Aggregation<T>, S: Sink<T>>(
    group: &Group<'_, A>,
    index: usize,
    count: usize,
    answers: &mut Answers<'_, T, S>,
) -> Result<(), Error> {
    let mut tree = Tree::new(group.aggregation.clone(), Ties::Keep);
    for (position, &row) in group.rows.iter().enumerate() {
        tree.insert(group.times[position], group.entries[position].clone());
        if position >= count {
            tree.evict();
        }
        answers.lower(group.aggregation, &tree.query());
        answers.put(index, row)?;
    }
    Ok(())
}
