//! Query points: windows that end at other times than the rows, such as earlier by an
//! offset, at the rows of another table, or at the ends of hops and sessions.
//!
//! In order of group and time, both ends of these windows only move forward, too. So they
//! become [`Ranges`] of positions, which the folds of ordinary windows answer.

use super::Request;
use super::frame_bounds::{FrameUnit, Length, Span};
use super::order::Order;
use super::sorted_view::Sorted;

/// The query points of a request. All slices are as long as `times`.
#[derive(Clone, Copy, Debug)]
pub struct QueryPoints<'a> {
    /// The ends of the windows.
    pub times: &'a [i64],
    /// Their starts; `None` for the end less the length of a span.
    pub since: Option<&'a [i64]>,
    /// Codes of groups, as in the rows; present if the rows have groups.
    pub groups: Option<&'a [u32]>,
    /// Only rows that arrived no later count; present if the rows have an order of arrival.
    pub arrival: Option<&'a [i64]>,
    /// The row of the table that each point is.
    pub own: Option<OwnRows<'a>>,
    /// Whether the window of a point leaves out its own row; `ties` apply.
    pub leaves_out: bool,
}

/// Rows of a table, by number.
#[derive(Clone, Copy, Debug)]
pub struct OwnRows<'a> {
    pub rows: &'a [i64],
    /// The number of the first row of the table.
    pub first: i64,
}

impl OwnRows<'_> {
    pub(super) fn of(&self, point: usize) -> usize {
        (self.rows[point] - self.first) as usize
    }
}

impl<'a> QueryPoints<'a> {
    /// Every row of a table as a query point.
    pub(super) fn of_rows<T>(request: &Request<'a, T>) -> Self {
        Self {
            times: request.times,
            since: None,
            groups: request.groups,
            arrival: request.arrival,
            own: None,
            leaves_out: false,
        }
    }

    /// The rows that windows leave out, if they do.
    pub fn left_out(&self) -> Option<OwnRows<'a>> {
        self.own.filter(|_| self.leaves_out)
    }

    /// Whether these are the rows of a request themselves.
    pub(super) fn are_rows<T>(&self, request: &Request<'_, T>) -> bool {
        let groups = match (self.groups, request.groups) {
            (Some(own), Some(theirs)) => std::ptr::eq(own, theirs),
            (own, theirs) => own.is_none() && theirs.is_none(),
        };
        groups && std::ptr::eq(self.times, request.times)
    }

    /// The window of a query point as an interval closed at both ends; empty if they cross.
    pub(super) fn interval(&self, row: usize, span: Span) -> (i128, i128) {
        let since = self.since.map(|since| since[row]);
        span.interval(self.times[row], since)
    }
}

/// Windows as ranges of positions in a sorted table.
#[derive(Debug)]
pub(super) struct Ranges<'a> {
    pub lo: Vec<usize>,
    pub hi: Vec<usize>,
    /// The rows of windows that leave a row out: those of its time, behind the range. Empty if
    /// no window has such rows.
    pub others: Vec<Others>,
    /// The query point of each window; `None`: in order.
    pub rows: Option<&'a [usize]>,
    /// Where the windows of each group start, and the end of the last.
    pub starts: &'a [usize],
}

/// The rows of one time that are in a window, but for one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    pub from: usize,
    pub to: usize,
    pub without: usize,
}

impl<'a> Ranges<'a> {
    /// The windows of a span; `None` for the ordinary windows of the rows.
    pub fn new<T>(request: &Request<'_, T>, sorted: &'a Sorted<'_>, span: Span) -> Option<Self> {
        if request.at.is_none() && span.offset == 0 {
            return None;
        }
        let query_points = request.query_points();
        // Shifted ends of ordinary windows are in the order of the rows.
        let points = sorted.points.as_deref().unwrap_or(sorted);
        let mut ranges = Self {
            lo: Vec::with_capacity(query_points.times.len()),
            hi: Vec::with_capacity(query_points.times.len()),
            others: Vec::new(),
            rows: points.rows.as_deref(),
            starts: &points.starts,
        };
        let own = query_points.left_out().map(|own| (own, sorted.positions()));
        let ends = sorted.starts.windows(2).zip(points.starts.windows(2));
        for (rows, range) in ends {
            let (mut lo, mut hi) = (rows[0], rows[0]);
            // The first row with the time of the point's own row.
            let mut peer = rows[0];
            let before = |at: usize, end: i128| at < rows[1] && i128::from(sorted.times[at]) < end;
            for point in range[0]..range[1] {
                let (from, to) = query_points.interval(points.row(point), span);
                while before(hi, to + 1) {
                    hi += 1;
                }
                let mut hi = hi;
                if let Some((own, positions)) = &own {
                    let without = positions.of(own.of(points.row(point)));
                    while sorted.times[peer] < sorted.times[without] {
                        peer += 1;
                    }
                    let by_rows = matches!(span.length, Length::Rows(_));
                    let in_order = by_rows || request.ties == FrameUnit::Rows;
                    let others = Others {
                        from: peer,
                        to: hi,
                        without,
                    };
                    hi = ranges.leave_out(others, in_order);
                }
                match span.length {
                    Length::Rows(count) => lo = lo.max(hi.saturating_sub(count)),
                    _ => {
                        while lo < hi && before(lo, from) {
                            lo += 1;
                        }
                    }
                }
                ranges.lo.push(lo);
                ranges.hi.push(hi);
            }
        }
        if !ranges.others.is_empty() {
            ranges.others.resize(ranges.lo.len(), Others::default());
        }
        Some(ranges)
    }

    /// The end of the next window's range, without a row among those of one time, which end
    /// with the window. `in_order`: only rows before that row are in the window.
    fn leave_out(&mut self, others: Others, in_order: bool) -> usize {
        let Others { from, to, without } = others;
        if in_order || to <= without {
            return to.min(without);
        }
        if to - from > 1 {
            self.others.resize(self.lo.len(), Others::default());
            self.others.push(others);
        }
        from
    }

    /// The rows behind the range of a window, if it has some.
    pub fn others(&self, at: usize) -> Option<Others> {
        let others = self.others.get(at);
        others.copied().filter(|others| others.from < others.to)
    }

    /// Each query point with its window.
    pub fn iter(&self) -> impl Iterator<Item = PointWindow> {
        self.between(0, self.lo.len())
    }

    fn between(&self, from: usize, to: usize) -> impl Iterator<Item = PointWindow> {
        let row = |at| self.rows.map_or(at, |rows| rows[at]);
        (from..to).map(move |at| (row(at), (self.lo[at], self.hi[at]), self.others(at)))
    }

    /// The windows of each group with windows, and a position before all of them. `only`
    /// selects groups.
    pub fn groups(
        &self,
        only: Option<&[bool]>,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = PointWindow>)> {
        let points = move |group: usize| only.is_none_or(|only| only[group]);
        let groups = self.starts.windows(2).enumerate();
        let groups = groups.filter(move |(at, ends)| ends[0] < ends[1] && points(*at));
        groups
            .map(|(_, ends)| ends)
            .map(|ends| (self.lo[ends[0]], self.between(ends[0], ends[1])))
    }
}

/// A query point, the range of its window, and the rows behind it.
pub(super) type PointWindow = (usize, (usize, usize), Option<Others>);

/// A step of a group, in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalStep {
    Arrive { row: usize },
    Query { point: usize },
}

/// Rows and query points in order of arrival. A query point sees the rows that arrived no
/// later. If rows are the query points, rows of equal arrival see one another.
pub(super) struct Steps<'a> {
    rows: Order,
    query_points: Option<(Order, QueryPoints<'a>)>,
    arrival: &'a [i64],
}

impl<'a> Steps<'a> {
    /// # Panics
    /// If rows or query points have no order of arrival.
    pub fn new<T>(request: &Request<'a, T>, sorted: &Sorted<'_>) -> Self {
        let order = |sorted: &Sorted<'_>, arrival: &[i64]| {
            Order::within(sorted.rows().into_owned(), sorted.starts.clone(), arrival)
        };
        let arrival = request.arrival.expect("rows have an order of arrival");
        let query_points = request.at.zip(sorted.points.as_deref());
        let query_points = query_points.map(|(query_points, points)| {
            let arrival = query_points
                .arrival
                .expect("query points have an order of arrival");
            (order(points, arrival), query_points)
        });
        Self {
            rows: order(sorted, arrival),
            query_points,
            arrival,
        }
    }

    /// The rows by group, then in order of arrival.
    pub fn rows(&self) -> &Order {
        &self.rows
    }

    /// The steps of each group in turn, with the rows of the group.
    pub fn groups(&self) -> impl Iterator<Item = (&[usize], Vec<ArrivalStep>)> {
        (0..self.rows.group_count()).map(|group| {
            let rows = self.rows.group(group);
            (rows, self.steps(group, rows))
        })
    }

    fn steps(&self, group: usize, rows: &[usize]) -> Vec<ArrivalStep> {
        let arrive = |&row: &usize| ArrivalStep::Arrive { row };
        let Some((order, query_points)) = &self.query_points else {
            let query = |&row: &usize| ArrivalStep::Query { point: row };
            let together = rows.chunk_by(|a, b| self.arrival[*a] == self.arrival[*b]);
            let both =
                together.flat_map(|rows| rows.iter().map(arrive).chain(rows.iter().map(query)));
            return both.collect();
        };
        let by = query_points.arrival.expect("there: `new` required it");
        let mut steps = Vec::with_capacity(rows.len() + order.group(group).len());
        let mut next = 0;
        for &point in order.group(group) {
            let rest = &rows[next..];
            let arrived = rest.partition_point(|row| self.arrival[*row] <= by[point]);
            steps.extend(rest[..arrived].iter().map(arrive));
            steps.push(ArrivalStep::Query { point });
            next += arrived;
        }
        steps
    }
}
