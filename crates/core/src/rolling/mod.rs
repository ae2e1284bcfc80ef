//! Rolling aggregates over whole columns: every row's window in one pass.
//!
//! A call ([`rolling`]) sorts the rows by group and time and cuts them into parts, which
//! threads share ([`partitioned`]). Each part is answered group by group:
//!
//! - **numbers, whole table** ([`kernels`]): frequent aggregations over columns as they are.
//! - **whole table** ([`two_stacks`]): two pointers that only move forward give each row
//!   its window as a range of rows ([`frame_bounds`]), and a two-stacks fold answers it. No
//!   value is subtracted, so every monoid works. ≤ 3 combines per row and window,
//!   amortised.
//! - **as of arrival** ([`as_of`]): rows enter a FiBA window in order of arrival and query
//!   a range of times. O(log n) combines per row and window.
//!
//! Quantiles and other holistic aggregations have structures of their own ([`holistic`]).
//!
//! Answers are written to [`Output`] columns in the order of the table.
//!
//! The functions between [`rolling`] or [`partials`] and the folds are inlined in optimised
//! builds: the calling crate compiles them, and shares FiBA over numbers with its windows.

pub mod as_of;
pub mod calendar;
pub mod delta_windows;
mod filling;
pub mod flag_windows;
pub mod frame_bounds;
mod holistic;
pub mod hop_windows;
mod kernels;
pub mod order;
pub mod output;
mod parallel;
mod partitioned;
pub mod query_points;
mod scatter;
mod sort_layout;
mod sorted_view;
pub mod two_stacks;

use std::sync::Arc;

use crate::aggregate::collect::Element;
use crate::aggregate::column::Column;
use crate::aggregate::deferred::{Deferred, Ledger};
use crate::aggregate::sketch::SketchRequest;
use crate::aggregate::{AggSpec, Aggregation, Answer, Cell, DType, Kind, Visitor, plan};
use crate::monoid::{Entry, Monoid};
pub use filling::{Filling, fill_columns};
pub use frame_bounds::{Closed, FrameUnit, Length, Span};
pub use output::Output;
use output::OutputChunk;
use parallel::ThreadScope;
use partitioned::PartitionedTable;
use query_points::{ArrivalStep, Ranges, Steps};
pub use query_points::{OwnRows, QueryPoints};
use scatter::{AnswerPositions, ResultColumns, into_marks};
pub use sort_layout::{SortLayout, rows_are_sorted};
use sorted_view::Sorted;

/// A call's arguments. Columns of numbers have no objects, so any `T` will do. Columns,
/// `groups` and `arrival` are as long as `times`. [`Request::new`] makes a plain one.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a, T = i64> {
    pub times: &'a [i64],
    /// Dense codes from 0; `None`: one group.
    pub groups: Option<&'a [u32]>,
    pub columns: &'a [Column<'a, T>],
    pub aggs: &'a [AggSpec],
    pub spans: &'a [Span],
    pub ties: FrameUnit,
    /// Order of arrival: each row sees only rows that arrived no later.
    pub arrival: Option<&'a [i64]>,
    /// Query points; `None` for an answer at each row.
    pub at: Option<QueryPoints<'a>>,
    /// The number of first rows that lie in windows of later rows and are not answered
    /// themselves. Their values in the results have no meaning.
    pub history: usize,
    /// The number of threads, including the caller's. Answers are equal to the last bit for
    /// any number.
    pub threads: usize,
    /// How integers that int64 cannot hold are answered.
    pub overflow: Overflow,
}

/// How an exact integer that int64 cannot hold is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// [`Error::Overflow`]: the call fails.
    Fail,
    /// It is missing, and [`Output::I64`] lists it.
    Null,
}

impl<'a, T> Request<'a, T> {
    /// One group without an order of arrival; rows of equal time are peers, and one thread
    /// works.
    pub fn new(
        times: &'a [i64],
        columns: &'a [Column<'a, T>],
        aggs: &'a [AggSpec],
        spans: &'a [Span],
    ) -> Self {
        Self {
            times,
            groups: None,
            columns,
            aggs,
            spans,
            ties: FrameUnit::Peers,
            arrival: None,
            at: None,
            history: 0,
            threads: 1,
            overflow: Overflow::Fail,
        }
    }

    /// The query points: those given, else the rows.
    fn query_points(&self) -> QueryPoints<'a> {
        self.at.unwrap_or_else(|| QueryPoints::of_rows(self))
    }

    /// The number of answers per span and aggregation.
    pub fn answer_count(&self) -> usize {
        self.at
            .map_or(self.times, |query_points| query_points.times)
            .len()
    }

    /// Refuses more than [`MAX_ROWS`] rows or query points.
    fn check(&self) -> Result<(), Error> {
        check_rows(self.times.len().max(self.answer_count()))
    }

    /// Codes of groups are below this.
    fn group_count(&self) -> usize {
        let query_points = self.at.and_then(|query_points| query_points.groups);
        let codes = [self.groups, query_points].into_iter().flatten();
        let last = codes.filter_map(|codes| codes.iter().copied().reduce(u32::max));
        last.max().map_or(0, |code| code as usize + 1)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An exact integer result that int64 cannot hold.
    Overflow {
        span: usize,
        agg: usize,
        row: usize,
        value: i128,
    },
    /// The caller's `proceed` returned false.
    Interrupted,
    /// The caller's [`Sink`] or [`Slides`] has failed and holds the reason.
    Refused,
    /// More than [`MAX_ROWS`] rows or query points.
    TooManyRows { rows: usize },
}

/// The largest number of rows of a table: positions and counts have 32 bits.
pub const MAX_ROWS: usize = u32::MAX as usize;

/// Refuses more rows than a request takes.
pub fn check_rows(rows: usize) -> Result<(), Error> {
    match rows <= MAX_ROWS {
        true => Ok(()),
        false => Err(Error::TooManyRows { rows }),
    }
}

/// Answers per span and aggregation. `proceed` is called every few thousand rows; false
/// stops the call.
///
/// # Panics
/// On requests that [`plan`] does not take, and on columns of different lengths. Memory
/// grows with the largest code of a group.
#[cfg_attr(not(debug_assertions), inline)]
pub fn rolling(
    request: Request<'_>,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<Output>>, Error> {
    rolling_with_layout(request, None, proceed)
}

/// Like [`rolling`], for a table that was already sorted to `layout`, without an order of
/// arrival.
///
/// # Panics
/// Likewise, and if the layout is of another table.
#[cfg_attr(not(debug_assertions), inline)]
pub fn rolling_with_layout(
    request: Request<'_>,
    layout: Option<&SortLayout>,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<Output>>, Error> {
    request.check()?;
    // History is identified by its positions in the table.
    if request.history > 0 && !rows_are_sorted(request.groups, request.times) {
        let mut columns = ResultColumns::new(&request);
        let sizes = [request.answer_count()];
        let mut chunks = columns.chunks(&sizes).remove(0);
        rolling_sorted(&request, &Sorted::of(&request), &mut chunks, proceed)?;
        let marks = vec![into_marks(chunks)];
        let threads = 1;
        let scope = &mut ThreadScope { threads, proceed };
        return columns.finish(&AnswerPositions::new(None, &sizes), marks, scope);
    }
    PartitionedTable::new(&request, layout, proceed)?.answer(proceed)
}

/// How an aggregation is answered over a whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    Counts,
    Sums,
    Extremes,
    Moments,
    /// Two stacks over products of two columns.
    Pairs,
    Ends,
    /// Sums of the areas between adjacent values.
    Areas,
    /// Two stacks over weighted values.
    Decays,
    /// A multiset of the window's values.
    Values,
    /// A monotonic deque of the rows that may become the extreme one.
    Places,
    /// The same per register of a sketch (sliding HyperLogLog).
    Registers,
    /// The combines of the aggregation's monoid.
    Combines,
}

impl KernelKind {
    pub fn of(kind: Kind) -> Self {
        match kernels::kernel_kind(kind) {
            Some(kernel) => kernel,
            None if kind.is_holistic() => Self::Values,
            None if matches!(kind, Kind::ArgMin | Kind::ArgMax) => Self::Places,
            None if matches!(kind, Kind::Sketch(SketchRequest::Distinct { .. })) => Self::Registers,
            None => Self::Combines,
        }
    }
}

/// The same for rows and query points that are sorted by group and time.
#[cfg_attr(not(debug_assertions), inline)]
fn rolling_sorted(
    request: &Request<'_>,
    sorted: &Sorted<'_>,
    chunks: &mut [Vec<OutputChunk<'_>>],
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    // Kernels read the ends of windows, and a table without rows has none.
    // Windows that leave a row out are no ranges.
    let out = request.at.and_then(|at| at.left_out());
    let whole = request.arrival.is_none() && !request.times.is_empty() && out.is_none();
    let (holistic, monoids): (Vec<_>, Vec<_>) = (0..)
        .zip(request.aggs.iter().copied())
        .partition(|(_, agg)| agg.kind.is_holistic() || holistic::supports(request, agg));
    let (fast, others): (Vec<_>, Vec<_>) = monoids
        .into_iter()
        .partition(|(_, agg)| whole && kernels::supports(agg, request.columns));
    if !fast.is_empty() {
        kernels::answer(request, sorted, &fast, chunks, proceed)?;
    }
    if !holistic.is_empty() {
        holistic::answer(request, sorted, &holistic, chunks, proceed)?;
    }
    if !others.is_empty() {
        combine(request, sorted, others, None, chunks, proceed)?;
    }
    for one in fast {
        // Alone: the components that it shares must not depend on other groups either.
        if let Some(groups) = kernels::beyond(&one.1, request.columns, sorted) {
            combine(request, sorted, vec![one], Some(&groups), chunks, proceed)?;
        }
    }
    Ok(())
}

/// Answers some aggregations by the combines of their monoids; with `only`, some groups are
/// answered again.
#[cfg_attr(not(debug_assertions), inline)]
fn combine(
    request: &Request<'_>,
    sorted: &Sorted<'_>,
    indexed: Vec<(usize, AggSpec)>,
    only: Option<&[bool]>,
    chunks: &mut [Vec<OutputChunk<'_>>],
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let (places, aggs): (Vec<usize>, Vec<AggSpec>) = indexed.into_iter().unzip();
    let mut sink = Picked {
        chunks,
        places,
        history: request.history,
        overflow: request.overflow,
        again: only.is_some(),
    };
    let run = RunVisitor {
        request: *request,
        sorted,
        only,
        sink: &mut sink,
        proceed,
    };
    plan(&aggs, &dtypes(request), run)
}

struct RunVisitor<'a, 'b, 'p> {
    request: Request<'a>,
    sorted: &'a Sorted<'a>,
    only: Option<&'a [bool]>,
    sink: &'a mut Picked<'b, 'p>,
    proceed: &'a mut dyn FnMut() -> bool,
}

impl Visitor<i64> for RunVisitor<'_, '_, '_> {
    type Out = Result<(), Error>;

    fn visit<A: Aggregation<i64>>(self, aggregation: A) -> Self::Out {
        run(
            &self.request,
            (self.sorted, self.only),
            &aggregation,
            self.sink,
            self.proceed,
        )
    }
}

/// A fold of the caller, see [`slides`].
pub trait Slides {
    /// The following windows are over other rows than the earlier ones.
    fn begin(&mut self);
    /// The window of one answer: `rows[lo..hi]`. The ends do not move backwards, and the
    /// rows are the same, since [`Slides::begin`].
    fn slide(
        &mut self,
        span: usize,
        row: usize,
        rows: &[usize],
        ends: (usize, usize),
    ) -> Result<(), Error>;
}

/// The windows of a request without an order of arrival, as ranges of rows. It reads no
/// columns.
pub fn slides<T>(request: &Request<'_, T>, to: &mut impl Slides) -> Result<(), Error> {
    request.check()?;
    let sorted = Sorted::of(request);
    let rows = &*sorted.rows();
    for (index, span) in request.spans.iter().enumerate() {
        if let Some(ranges) = Ranges::new(request, &sorted, *span) {
            for (_, group) in ranges.groups(None) {
                to.begin();
                for (row, ends, others) in group {
                    debug_assert!(others.is_none(), "the caller leaves no row out");
                    to.slide(index, row, rows, ends)?;
                }
            }
            continue;
        }
        for ends in sorted.starts.windows(2) {
            let times = &sorted.times[ends[0]..ends[1]];
            let mut pointers = frame_bounds::FramePointers::new(times, *span, request.ties);
            to.begin();
            for position in 0..times.len() {
                let (lo, hi) = pointers.at(position);
                let row = rows[ends[0] + position];
                to.slide(index, row, rows, (ends[0] + lo, ends[0] + hi))?;
            }
        }
    }
    Ok(())
}

/// Rolling terms of one user-defined aggregation over the first column. `sink` gets each
/// answer and computes it before the next one.
pub fn rolling_udaf<T: Element>(
    request: &Request<'_, T>,
    commutative: bool,
    sink: &mut impl Sink<T>,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    request.check()?;
    let udaf = Deferred::new(0, commutative, Arc::<Ledger<T>>::default());
    run(request, (&Sorted::of(request), None), &udaf, sink, proceed)
}

/// Answers a sorted table; if `only` is given, the groups for which it is true.
fn run<T: Element, A: Aggregation<T>>(
    request: &Request<'_, T>,
    (sorted, only): (&Sorted<'_>, Option<&[bool]>),
    aggregation: &A,
    sink: &mut impl Sink<T>,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let mut answers = RowAnswers {
        sink,
        row: Vec::new(),
        countdown: ROWS_PER_CHECK,
        proceed,
    };
    if request.arrival.is_some() {
        let query_points = request.query_points();
        for (rows, steps) in Steps::new(request, sorted).groups() {
            let group = Group::new(request, aggregation, rows);
            as_of::answer(&group, &steps, &query_points, request.spans, &mut answers)?;
        }
        return Ok(());
    }
    let all = sorted.rows();
    let mut udaf = Vec::new();
    let mut table = None;
    for (index, span) in request.spans.iter().enumerate() {
        let Some(ranges) = Ranges::new(request, sorted, *span) else {
            udaf.push((index, *span));
            continue;
        };
        let table = table.get_or_insert_with(|| Group::new(request, aggregation, &all));
        two_stacks::answer_ranges(table, index, (&ranges, only), &mut answers)?;
    }
    let groups = if udaf.is_empty() {
        &[]
    } else {
        &sorted.starts[..]
    };
    for (at, ends) in groups.windows(2).enumerate() {
        if only.is_some_and(|only| !only[at]) {
            continue;
        }
        let group = Group::new(request, aggregation, &all[ends[0]..ends[1]]);
        for span in &udaf {
            two_stacks::answer(&group, *span, request.ties, &mut answers)?;
        }
    }
    Ok(())
}

/// The rows of one group, in the order of processing.
struct Group<'a, A: Monoid> {
    aggregation: &'a A,
    /// Row numbers in the table.
    rows: &'a [usize],
    times: Vec<i64>,
    entries: Vec<Entry<A>>,
}

impl<'a, A: Monoid> Group<'a, A> {
    fn new<T: Element>(request: &Request<'_, T>, aggregation: &'a A, rows: &'a [usize]) -> Self
    where
        A: Aggregation<T>,
    {
        let mut cells: Vec<Cell<T>> = vec![Cell::Null; request.columns.len()];
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

/// The receiver of the answers.
pub trait Sink<T> {
    /// The answers of one row over one span, one per aggregation.
    fn put(&mut self, span: usize, row: usize, answers: &[Answer<T>]) -> Result<(), Error>;
}

fn dtypes(request: &Request<'_>) -> Vec<DType> {
    request.columns.iter().map(Column::dtype).collect()
}

/// The output chunks of some of the aggregations, by their indices.
struct Picked<'a, 'p> {
    chunks: &'a mut [Vec<OutputChunk<'p>>],
    places: Vec<usize>,
    history: usize,
    overflow: Overflow,
    /// The rows have answers, which are replaced.
    again: bool,
}

impl Sink<i64> for Picked<'_, '_> {
    fn put(&mut self, span: usize, row: usize, answers: &[Answer<i64>]) -> Result<(), Error> {
        if row < self.history {
            return Ok(());
        }
        for (&agg, answer) in self.places.iter().zip(answers) {
            if self.again {
                self.chunks[span][agg].clear(row);
            }
            match *answer {
                Answer::Overflow(value) if self.overflow == Overflow::Fail => {
                    return Err(Error::Overflow {
                        span,
                        agg,
                        row,
                        value,
                    });
                }
                Answer::Overflow(value) => self.chunks[span][agg].note_overflow(row, value),
                _ => self.chunks[span][agg].set(row, answer),
            }
        }
        Ok(())
    }
}

/// The answers of the current row, and the countdown to the next call of `proceed`.
struct RowAnswers<'a, T, S> {
    sink: &'a mut S,
    row: Vec<Answer<T>>,
    countdown: u32,
    proceed: &'a mut dyn FnMut() -> bool,
}

/// Rows between two calls of `proceed`.
const ROWS_PER_CHECK: u32 = 4096;

impl<T, S: Sink<T>> RowAnswers<'_, T, S> {
    /// Lowers a partial for the rows that [`Self::put`] is called with next.
    fn lower<A: Aggregation<T>>(&mut self, aggregation: &A, partial: &A::Partial) {
        self.row.clear();
        aggregation.answers(partial, &mut self.row);
    }

    fn put(&mut self, span: usize, row: usize) -> Result<(), Error> {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = ROWS_PER_CHECK;
            if !(self.proceed)() {
                return Err(Error::Interrupted);
            }
        }
        self.sink.put(span, row, &self.row)
    }
}
