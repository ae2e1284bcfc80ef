//! Rolling aggregates over whole columns: every row's window in one pass.
//!
//! The way of a call ([`rolling`]): rows are put in order ([`order`]), per group; then
//!
//! - **whole table** ([`sliding`]): two pointers that only move forward give each row its
//!   window as a range of rows ([`bounds`]), and a two-stacks fold answers it. Nothing is
//!   ever subtracted, so any monoid will do. ≤ 3 combines per row and window, amortised.
//! - **as of arrival** ([`as_of`]): rows enter a FiBA window in order of arrival and ask
//!   for a range of times. O(log n) combines per row and window.
//!
//! Answers land in [`Output`] columns in the order of the table.

pub mod as_of;
pub mod bounds;
pub mod order;
pub mod output;
pub mod sliding;

use crate::aggregate::column::Column;
use crate::aggregate::{AggSpec, Aggregation, Answer, Cell, DType, Visitor, plan};
use crate::monoid::Entry;
pub use bounds::{Closed, Length, Span, Ties};
use order::Order;
pub use output::Output;

/// Columns of numbers have no objects; any element type will do.
type Row = Cell<i64>;

/// What to compute. Columns, `groups` and `arrival` are as long as `times`.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub times: &'a [i64],
    /// Dense group codes from 0; `None`: one group.
    pub groups: Option<&'a [i64]>,
    pub columns: &'a [Column<'a, i64>],
    pub aggs: &'a [AggSpec],
    pub spans: &'a [Span],
    pub ties: Ties,
    /// Order of arrival: each row sees only rows that arrived no later.
    pub arrival: Option<&'a [i64]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An exact integer result that int64 cannot hold.
    Overflow {
        span: usize,
        agg: usize,
        row: usize,
        value: i128,
    },
    /// The caller's `proceed` said no.
    Interrupted,
}

/// Answers per span and aggregation. `proceed` is asked every few thousand rows whether
/// to go on.
///
/// # Panics
/// On requests that [`plan`] must not be asked for, columns of different lengths, and
/// group codes that are negative or not below the number of rows.
pub fn rolling(
    request: Request<'_>,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<Output>>, Error> {
    let dtypes: Vec<DType> = request.columns.iter().map(Column::dtype).collect();
    plan(
        request.aggs,
        &dtypes,
        Run {
            request,
            dtypes: &dtypes,
            proceed,
        },
    )
}

struct Run<'a> {
    request: Request<'a>,
    dtypes: &'a [DType],
    proceed: &'a mut dyn FnMut() -> bool,
}

impl Visitor<i64> for Run<'_> {
    type Out = Result<Vec<Vec<Output>>, Error>;

    fn visit<A: Aggregation<i64>>(self, aggregation: A) -> Self::Out {
        let request = self.request;
        let order = Order::new(request.groups, request.arrival.unwrap_or(request.times));
        let mut answers = Answers::new(&request, self.dtypes, self.proceed);
        for rows in order.groups() {
            let group = Group::new(&request, &aggregation, rows);
            if request.arrival.is_some() {
                as_of::answer(&group, request.spans, &mut answers)?;
            } else {
                for (index, span) in request.spans.iter().enumerate() {
                    sliding::answer(&group, (index, *span), request.ties, &mut answers)?;
                }
            }
        }
        Ok(answers.outputs)
    }
}

/// The rows of one group, in the order in which they are taken.
struct Group<'a, A: Aggregation<i64>> {
    aggregation: &'a A,
    /// Row numbers in the table.
    rows: &'a [usize],
    times: Vec<i64>,
    entries: Vec<Entry<A>>,
}

impl<'a, A: Aggregation<i64>> Group<'a, A> {
    fn new(request: &Request<'_>, aggregation: &'a A, rows: &'a [usize]) -> Self {
        let mut cells: Vec<Row> = vec![Cell::Null; request.columns.len()];
        let entry = |row: &usize| {
            for (cell, column) in cells.iter_mut().zip(request.columns) {
                *cell = column.cell(*row);
            }
            aggregation.entry(&cells)
        };
        Self {
            aggregation,
            rows,
            times: rows.iter().map(|row| request.times[*row]).collect(),
            entries: rows.iter().map(entry).collect(),
        }
    }
}

/// Where answers go, and the question whether to go on.
struct Answers<'a> {
    outputs: Vec<Vec<Output>>,
    row: Vec<Answer<i64>>,
    countdown: u32,
    proceed: &'a mut dyn FnMut() -> bool,
}

/// Rows between two questions whether to go on.
const PATIENCE: u32 = 4096;

impl<'a> Answers<'a> {
    fn new(request: &Request<'_>, dtypes: &[DType], proceed: &'a mut dyn FnMut() -> bool) -> Self {
        let count = request.times.len();
        let columns = || {
            let aggs = request.aggs.iter();
            aggs.map(|agg| Output::new(agg, dtypes, count)).collect()
        };
        Self {
            outputs: request.spans.iter().map(|_| columns()).collect(),
            row: Vec::new(),
            countdown: PATIENCE,
            proceed,
        }
    }

    /// Lowers a partial for the rows that [`Self::put`] is called with next.
    fn lower<A: Aggregation<i64>>(&mut self, aggregation: &A, partial: &A::Partial) {
        self.row.clear();
        aggregation.answers(partial, &mut self.row);
    }

    fn put(&mut self, span: usize, row: usize) -> Result<(), Error> {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = PATIENCE;
            if !(self.proceed)() {
                return Err(Error::Interrupted);
            }
        }
        for (agg, answer) in self.row.iter().enumerate() {
            if let Answer::Overflow(value) = *answer {
                return Err(Error::Overflow {
                    span,
                    agg,
                    row,
                    value,
                });
            }
            self.outputs[span][agg].set(row, answer);
        }
        Ok(())
    }
}
