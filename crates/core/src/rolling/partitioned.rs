//! A table put in order, cut into parts, and its answers brought back.
//!
//! Rows and moments are laid out by group and time ([`Layout`]). A part is some groups, or
//! all of them for one span: a request of its own over slices of the columns. What a part
//! answers depends on its groups alone, so that parts may be answered on several threads
//! and the answers are the same as in one piece.

use std::borrow::Cow;
use std::ops::Range;

use super::output::Piece;
use super::parallel::Crew;
use super::scatter::{Columns, Places, into_marks};
use super::sort_layout::{Gathered, Laid, Layout, cut};
use super::sorted_view::Sorted;
use super::{Error, Moments, Output, Request, rolling_sorted};

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
        let crew = &mut Crew {
            threads: request.threads,
            proceed,
        };
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
                let made = Layout::new(request.groups, request.times, count, by_time, crew)?;
                (Cow::Owned(made.0), made.1)
            }
        };
        let columns = request.columns.iter();
        let columns = columns.map(|column| rows.column(column, crew));
        let columns = columns.collect::<Result<_, _>>()?;
        let asked = request
            .at
            .map(|moments| Asked::new(&moments, count, by_time, crew));
        let arrival = request.arrival.map(|arrival| rows.gather(arrival, crew));
        Ok(Self {
            request: *request,
            times,
            arrival: arrival.transpose()?,
            rows,
            columns,
            asked: asked.transpose()?,
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
        let crew = &mut Crew {
            threads: self.request.threads,
            proceed,
        };
        let groups = self.groups();
        let spans = self.spans(groups.len());
        let starts = &self.layout().starts;
        let size = |groups: &Range<usize>| starts[groups.end] - starts[groups.start];
        let sizes: Vec<usize> = groups.iter().map(size).collect();
        let mut columns = Columns::new(&self.request);
        let mut parts = Vec::new();
        for (groups, pieces) in groups.into_iter().zip(columns.pieces(&sizes)) {
            let mut pieces = pieces.into_iter();
            for spans in &spans {
                let part = Part {
                    groups: groups.clone(),
                    spans: spans.clone(),
                };
                parts.push((part, pieces.by_ref().take(spans.len()).collect()));
            }
        }
        let work = |(part, mut pieces): (Part, Vec<Vec<Piece<'_>>>),
                    proceed: &mut dyn FnMut() -> bool| {
            self.part(&part, &mut pieces, proceed)?;
            Ok(into_marks(pieces))
        };
        let mut marks = crew.each(parts, work)?.into_iter();
        let of_groups = |_| marks.by_ref().take(spans.len()).flatten().collect();
        let marks = sizes.iter().map(of_groups).collect();
        let Self {
            rows,
            times,
            arrival,
            columns: read,
            asked,
            ..
        } = self;
        let layout = asked.map_or(rows, |asked| Cow::Owned(asked.layout));
        // What has been read makes room for what is brought back.
        drop((times, arrival, read));
        let places = Places::new(layout.ranks.as_deref(), &sizes);
        columns.finish(&places, marks, crew)
    }

    /// Ranges of groups with about as many rows each.
    fn groups(&self) -> Vec<Range<usize>> {
        let rows = &self.rows.starts;
        let asked = self.asked.as_ref().map(|asked| &asked.layout.starts);
        let before = |group: usize| rows[group] + asked.map_or(0, |starts| starts[group]);
        cut(self.request.threads, rows.len() - 1, before)
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
        pieces: &mut [Vec<Piece<'_>>],
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
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
        rolling_sorted(&request, &sorted, pieces, proceed).map_err(|error| match error {
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

impl<'a> Asked<'a> {
    fn new(
        moments: &Moments<'a>,
        count: usize,
        by_time: bool,
        crew: &mut Crew<'_>,
    ) -> Result<Self, Error> {
        let (layout, times) = Layout::new(moments.groups, moments.times, count, by_time, crew)?;
        let mut gather = |keys: Option<&'a [i64]>| {
            let keys = keys.map(|keys| layout.gather(keys, crew));
            keys.transpose()
        };
        Ok(Self {
            times,
            since: gather(moments.since)?,
            arrival: gather(moments.arrival)?,
            layout,
        })
    }

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
