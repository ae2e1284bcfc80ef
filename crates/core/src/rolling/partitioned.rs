//! Sorts a table, cuts it into parts, and restores the order of the answers.
//!
//! Rows and query points are sorted by group and time ([`Permutation`]). A part is some
//! groups, or all of them for one span: a request of its own over slices of the columns.
//! The answers of a part depend on its groups alone, so that several threads may answer
//! parts with the same results.

use std::borrow::Cow;
use std::ops::Range;

use super::output::OutputChunk;
use super::parallel::ThreadScope;
use super::scatter::{AnswerPositions, ResultColumns, into_marks};
use super::sort_layout::{Permutation, PermutedColumn, SortLayout, cut};
use super::sorted_view::Sorted;
use super::{Error, Output, OwnRows, QueryPoints, Request, rolling_sorted};

pub(super) struct PartitionedTable<'a> {
    request: Request<'a>,
    rows: Cow<'a, Permutation>,
    times: Cow<'a, [i64]>,
    arrival: Option<Cow<'a, [i64]>>,
    columns: Vec<PermutedColumn<'a>>,
    points: Option<PermutedPoints<'a>>,
}

/// The query points of a request, sorted by group and time.
struct PermutedPoints<'a> {
    permutation: Cow<'a, Permutation>,
    times: Cow<'a, [i64]>,
    since: Option<Cow<'a, [i64]>>,
    arrival: Option<Cow<'a, [i64]>>,
    /// The positions of their own rows.
    own: Option<Vec<i64>>,
    leaves_out: bool,
}

/// Groups and spans of a request.
#[derive(Clone, Debug)]
struct Task {
    groups: Range<usize>,
    spans: Range<usize>,
}

impl<'a> PartitionedTable<'a> {
    pub(super) fn new(
        request: &Request<'a>,
        layout: Option<&'a SortLayout>,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let count = request.group_count();
        let scope = &mut ThreadScope {
            threads: request.threads,
            proceed,
        };
        // As of arrival, rows of equal arrival are in table order.
        let by_time = request.arrival.is_none();
        // Query points may have groups without rows, which the layout lacks.
        let layout = layout.filter(|layout| layout.permutation.starts.len() > count);
        let (rows, times) = match layout {
            Some(layout) => (
                Cow::Borrowed(&layout.permutation),
                layout.times(request.times).into(),
            ),
            None => {
                let made = Permutation::new(request.groups, request.times, count, by_time, scope)?;
                (Cow::Owned(made.0), made.1)
            }
        };
        let columns = request.columns.iter();
        let columns = columns.map(|column| rows.column(column, scope));
        let columns = columns.collect::<Result<_, _>>()?;
        let points = request.at.map(|query_points| {
            let order = if query_points.are_rows(request) {
                (rows.clone(), times.clone())
            } else {
                let (groups, times) = (query_points.groups, query_points.times);
                let made = Permutation::new(groups, times, count, by_time, scope)?;
                (Cow::Owned(made.0), made.1)
            };
            PermutedPoints::new(&query_points, order, &rows, scope)
        });
        let arrival = request.arrival.map(|arrival| rows.permute(arrival, scope));
        Ok(Self {
            request: *request,
            times,
            arrival: arrival.transpose()?,
            rows,
            columns,
            points: points.transpose()?,
        })
    }

    /// The permutation of the answers.
    fn permutation(&self) -> &Permutation {
        let points = self.points.as_ref();
        points.map_or(&self.rows, |points| &points.permutation)
    }

    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn answer(
        self,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<Output>>, Error> {
        let scope = &mut ThreadScope {
            threads: self.request.threads,
            proceed,
        };
        let groups = self.groups();
        let spans = self.spans(groups.len());
        let starts = &self.permutation().starts;
        let size = |groups: &Range<usize>| starts[groups.end] - starts[groups.start];
        let sizes: Vec<usize> = groups.iter().map(size).collect();
        let mut columns = ResultColumns::new(&self.request);
        let mut parts = Vec::new();
        for (groups, chunks) in groups.into_iter().zip(columns.chunks(&sizes)) {
            let mut chunks = chunks.into_iter();
            for spans in &spans {
                let part = Task {
                    groups: groups.clone(),
                    spans: spans.clone(),
                };
                parts.push((part, chunks.by_ref().take(spans.len()).collect()));
            }
        }
        let work = |(part, mut chunks): (Task, Vec<Vec<OutputChunk<'_>>>),
                    proceed: &mut dyn FnMut() -> bool| {
            self.part(&part, &mut chunks, proceed)?;
            Ok(into_marks(chunks))
        };
        let mut marks = scope.each(parts, work)?.into_iter();
        let of_groups = |_| marks.by_ref().take(spans.len()).flatten().collect();
        let marks = sizes.iter().map(of_groups).collect();
        let Self {
            rows,
            times,
            arrival,
            columns: read,
            points,
            ..
        } = self;
        let permutation = points.map_or(rows, |points| points.permutation);
        // Frees the sorted copies before the results are copied.
        drop((times, arrival, read));
        let positions = AnswerPositions::new(permutation.ranks.as_deref(), &sizes);
        columns.finish(&positions, marks, scope)
    }

    /// Ranges of groups with about as many rows each.
    fn groups(&self) -> Vec<Range<usize>> {
        let rows = &self.rows.starts;
        let points = self
            .points
            .as_ref()
            .map(|points| &points.permutation.starts);
        let before = |group: usize| rows[group] + points.map_or(0, |starts| starts[group]);
        cut(self.request.threads, rows.len() - 1, before)
    }

    /// If there are few groups, each span is a part of its own.
    fn spans(&self, parts: usize) -> Vec<Range<usize>> {
        let count = self.request.spans.len();
        if parts >= self.request.threads {
            return std::iter::once(0..count).collect();
        }
        (0..count).map(|span| span..span + 1).collect()
    }

    #[cfg_attr(not(debug_assertions), inline)]
    fn part(
        &self,
        part: &Task,
        chunks: &mut [Vec<OutputChunk<'_>>],
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        let starts = &self.rows.starts[part.groups.start..=part.groups.end];
        let (from, to) = (starts[0], starts[starts.len() - 1]);
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|column| column.slice(from, to))
            .collect();
        let points = self.points.as_ref();
        let points = points.map(|points| points.part(&part.groups, from));
        let first = points.as_ref().map_or(from, |(_, starts)| starts[0]);
        let request = Request {
            times: &self.times[from..to],
            groups: None,
            columns: &columns,
            spans: &self.request.spans[part.spans.clone()],
            arrival: self.arrival.as_ref().map(|arrival| &arrival[from..to]),
            at: points.as_ref().map(|(query_points, _)| *query_points),
            history: self.request.history.saturating_sub(from),
            ..self.request
        };
        let query_points = points.map(|(query_points, starts)| {
            let starts = starts.iter().map(|start| start - first).collect();
            Sorted::in_order(starts, query_points.times, None)
        });
        let starts = starts.iter().map(|start| start - from).collect();
        let sorted = Sorted::in_order(starts, request.times, query_points);
        rolling_sorted(&request, &sorted, chunks, proceed).map_err(|error| match error {
            Error::Overflow {
                span,
                agg,
                row,
                value,
            } => Error::Overflow {
                span: part.spans.start + span,
                agg,
                row: self.permutation().row(first + row),
                value,
            },
            // Tables with lifted rows are not cut, because these may be damaged.
            other => other,
        })
    }
}

impl<'a> PermutedPoints<'a> {
    fn new(
        query_points: &QueryPoints<'a>,
        (permutation, times): (Cow<'a, Permutation>, Cow<'a, [i64]>),
        rows: &Permutation,
        scope: &mut ThreadScope<'_>,
    ) -> Result<Self, Error> {
        let mut permute = |keys: Option<&'a [i64]>| {
            let keys = keys.map(|keys| permutation.permute(keys, scope));
            keys.transpose()
        };
        let own = permute(query_points.own.map(|own| own.rows))?;
        let own = own.map(|own| {
            let position = |row: &i64| match &rows.ranks {
                Some(ranks) => ranks[*row as usize].into(),
                None => *row,
            };
            own.iter().map(position).collect()
        });
        Ok(Self {
            own,
            leaves_out: query_points.leaves_out,
            times,
            since: permute(query_points.since)?,
            arrival: permute(query_points.arrival)?,
            permutation,
        })
    }

    /// The query points of some groups, whose rows begin at a position, and where each group
    /// starts among all.
    fn part(&self, groups: &Range<usize>, first: usize) -> (QueryPoints<'_>, &[usize]) {
        let starts = &self.permutation.starts[groups.start..=groups.end];
        let range = starts[0]..starts[starts.len() - 1];
        let query_points = QueryPoints {
            times: &self.times[range.clone()],
            since: self.since.as_ref().map(|since| &since[range.clone()]),
            groups: None,
            arrival: self.arrival.as_ref().map(|arrival| &arrival[range.clone()]),
            own: self.own.as_ref().map(|own| OwnRows {
                rows: &own[range],
                first: first as i64,
            }),
            leaves_out: self.leaves_out,
        };
        (query_points, starts)
    }
}
