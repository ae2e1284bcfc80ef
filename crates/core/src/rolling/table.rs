//! A table put in order, cut into parts, and its answers brought back.
//!
//! Rows and moments are laid out by group and time ([`Layout`]). A part is some groups, or
//! all of them for one span: a request of its own over slices of the columns. What a part
//! answers depends on its groups alone, so that parts may be answered on several threads
//! and the answers are the same as in one piece.

use std::borrow::Cow;
use std::ops::Range;

use super::layout::{Gathered, Laid, Layout};
use super::place::Places;
use super::sorted::Sorted;
use super::{Error, Moments, Output, Request, parallel, rolling_sorted};

/// Parts per thread: the last ones to end leave little time for waiting.
const SHARES: usize = 4;
/// Rows that are worth a part.
const LEAST: usize = 1 << 14;

pub(super) struct Table<'a> {
    request: Request<'a>,
    rows: Cow<'a, Layout>,
    times: Cow<'a, [i64]>,
    arrival: Option<Cow<'a, [i64]>>,
    columns: Vec<Gathered<'a>>,
    asked: Option<Asked<'a>>,
}

/// The moments of a request.
struct Asked<'a> {
    layout: Layout,
    times: Cow<'a, [i64]>,
    since: Option<Cow<'a, [i64]>>,
    arrival: Option<Cow<'a, [i64]>>,
}

/// Groups and spans of a request.
#[derive(Clone, Debug)]
struct Part {
    groups: Range<usize>,
    spans: Range<usize>,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        request: &Request<'a>,
        laid: Option<&'a Laid>,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let count = request.group_count();
        // As of arrival, rows count in the order of the table where that does not decide.
        let by_time = request.arrival.is_none();
        // Moments may be of groups that have no rows, which nobody has laid.
        let laid = laid.filter(|laid| laid.layout.starts.len() > count);
        let (rows, times) = match laid {
            Some(laid) => (
                Cow::Borrowed(&laid.layout),
                laid.times(request.times).into(),
            ),
            None => {
                let made = Layout::new(request.groups, request.times, count, by_time);
                (Cow::Owned(made.0), made.1)
            }
        };
        let columns = request.columns.iter().collect();
        let gather = |column, _: &mut dyn FnMut() -> bool| Ok(rows.column(column));
        let columns = parallel::each(request.threads, columns, gather, proceed)?;
        let asked = request.at.map(|moments| {
            let (layout, times) = Layout::new(moments.groups, moments.times, count, by_time);
            Asked {
                times,
                since: moments.since.map(|since| layout.gather(since)),
                arrival: moments.arrival.map(|arrival| layout.gather(arrival)),
                layout,
            }
        });
        Ok(Self {
            request: *request,
            times,
            arrival: request.arrival.map(|arrival| rows.gather(arrival)),
            rows,
            columns,
            asked,
        })
    }

    /// Where the answers lie.
    fn layout(&self) -> &Layout {
        self.asked
            .as_ref()
            .map_or(&self.rows, |asked| &asked.layout)
    }

    pub(super) fn answer(
        self,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<Output>>, Error> {
        let groups = self.groups();
        let spans = self.spans(groups.len());
        let parts = groups.iter().flat_map(|groups| {
            let part = |spans: &Range<usize>| Part {
                groups: groups.clone(),
                spans: spans.clone(),
            };
            spans.iter().map(part)
        });
        let work = |part, proceed: &mut dyn FnMut() -> bool| self.part(&part, proceed);
        let mut answers = parallel::each(self.request.threads, parts.collect(), work, proceed)?;
        let Self {
            request,
            rows,
            times,
            arrival,
            columns,
            asked,
        } = self;
        let layout = asked.map_or(rows, |asked| Cow::Owned(asked.layout));
        // What has been read makes room for what is brought back.
        drop((times, arrival, columns));
        let ranks = layout.ranks.as_deref();
        if answers.len() == 1 && ranks.is_none() {
            return Ok(answers.remove(0));
        }
        let starts = &layout.starts;
        let mut bases: Vec<usize> = groups.iter().map(|groups| starts[groups.start]).collect();
        bases.push(starts[starts.len() - 1]);
        let places = Places {
            ranks,
            bases: &bases,
        };
        // Each part's columns leave it one after the other, in the order of the spans.
        let mut answers: Vec<_> = answers.into_iter().map(Vec::into_iter).collect();
        let mut joined = Vec::with_capacity(request.spans.len());
        for span in 0..request.spans.len() {
            let slice = spans.iter().position(|spans| spans.contains(&span));
            let slice = slice.expect("spans cover all");
            let parts = answers.iter_mut().skip(slice).step_by(spans.len());
            let parts = parts.map(|part| part.next().expect("an answer per span"));
            let mut parts: Vec<_> = parts.map(Vec::into_iter).collect();
            let mut columns = Vec::with_capacity(request.aggs.len());
            for _ in request.aggs {
                let column = parts.iter_mut().filter_map(Iterator::next).collect();
                columns.push(places.join(column, request.threads, proceed)?);
            }
            joined.push(columns);
        }
        Ok(joined)
    }

    /// Ranges of groups with about as many rows each.
    fn groups(&self) -> Vec<Range<usize>> {
        let starts = &self.rows.starts;
        let count = starts.len() - 1;
        let rows = self.times.len() + self.asked.as_ref().map_or(0, |asked| asked.times.len());
        let shares = match self.request.threads {
            0 | 1 => 1,
            threads => (threads * SHARES).min(rows / LEAST).max(1),
        };
        let before = |group: usize| {
            starts[group]
                + self
                    .asked
                    .as_ref()
                    .map_or(0, |asked| asked.layout.starts[group])
        };
        let mut cuts = vec![0];
        for group in 1..count {
            if before(group) * shares >= rows * cuts.len() && before(group) < rows {
                cuts.push(group);
            }
        }
        cuts.push(count);
        cuts.windows(2).map(|ends| ends[0]..ends[1]).collect()
    }

    /// Where there are few groups, spans are parts of their own.
    fn spans(&self, parts: usize) -> Vec<Range<usize>> {
        let count = self.request.spans.len();
        if parts >= self.request.threads {
            return std::iter::once(0..count).collect();
        }
        (0..count).map(|span| span..span + 1).collect()
    }

    fn part(
        &self,
        part: &Part,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<Output>>, Error> {
        let starts = &self.rows.starts[part.groups.start..=part.groups.end];
        let (from, to) = (starts[0], starts[starts.len() - 1]);
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|column| column.slice(from, to))
            .collect();
        let asked = self.asked.as_ref().map(|asked| asked.part(&part.groups));
        let first = asked.as_ref().map_or(from, |(_, starts)| starts[0]);
        let request = Request {
            times: &self.times[from..to],
            groups: None,
            columns: &columns,
            spans: &self.request.spans[part.spans.clone()],
            arrival: self.arrival.as_ref().map(|arrival| &arrival[from..to]),
            at: asked.as_ref().map(|(moments, _)| *moments),
            history: self.request.history.saturating_sub(from),
            ..self.request
        };
        let moments = asked.map(|(moments, starts)| {
            let starts = starts.iter().map(|start| start - first).collect();
            Sorted::in_order(starts, moments.times, None)
        });
        let starts = starts.iter().map(|start| start - from).collect();
        let sorted = Sorted::in_order(starts, request.times, moments);
        rolling_sorted(&request, &sorted, proceed).map_err(|error| match error {
            Error::Overflow {
                span,
                agg,
                row,
                value,
            } => Error::Overflow {
                span: part.spans.start + span,
                agg,
                row: self.layout().row(first + row),
                value,
            },
            // Tables with lifted rows, which may be damaged, are not cut.
            other => other,
        })
    }
}

impl Asked<'_> {
    /// The moments of some groups, and where each group starts among all.
    fn part(&self, groups: &Range<usize>) -> (Moments<'_>, &[usize]) {
        let starts = &self.layout.starts[groups.start..=groups.end];
        let range = starts[0]..starts[starts.len() - 1];
        let moments = Moments {
            times: &self.times[range.clone()],
            since: self.since.as_ref().map(|since| &since[range.clone()]),
            groups: None,
            arrival: self.arrival.as_ref().map(|arrival| &arrival[range]),
        };
        (moments, starts)
    }
}
