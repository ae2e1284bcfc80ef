//! `_core.rolling_udaf`: a user-defined aggregation over a table.

use pyo3::prelude::*;
use pyo3::types::PyList;
use slidewise_core::aggregate::column::Column;
use slidewise_core::aggregate::deferred::Term;
use slidewise_core::aggregate::{Answer, Cell};
use slidewise_core::rolling::{Error, Request, Sink, rolling_udaf};

use crate::errors::{internal_error, kernel_error};
use crate::inputs::Nan;
use crate::keys::{self, QueryPoints, RowKeys, SortKeys};
use crate::object_store::{Object, ObjectStore};
use crate::requests::{SpanTicks, read_spans};
use crate::signals::{SIGNAL_CHECK_ROWS, check_signals, watch_signals};
use crate::tables::read_ties;
use crate::udaf::{Udaf, UdafCalls};
use crate::udaf_slides::Eager;
use crate::untyped::Untyped;

/// Rolling answers of one user-defined aggregation: a list per window.
///
/// The arguments are those of `rolling`, with the values of one column as Python objects
/// (None where missing) and the functions of the aggregation.
#[pyfunction(name = "rolling_udaf")]
#[allow(clippy::too_many_arguments)] // one call, one caller, all of them columns
pub(crate) fn rolling_udaf_column<'py>(
    py: Python<'py>,
    rows: RowKeys<'py>,
    values: &Bound<'py, PyList>,
    functions: &Bound<'py, PyAny>,
    windows: Vec<SpanTicks>,
    ties: &str,
    query_points: Option<QueryPoints<'py>>,
    history: usize,
) -> PyResult<Vec<Bound<'py, PyList>>> {
    let rows = rows.import()?;
    let query_points = query_points.map(QueryPoints::import).transpose()?;
    keys::check(&rows, &query_points, [values.len()].into_iter())?;
    let udafs = [Udaf::read(functions)?];
    let store = ObjectStore::default();
    let udaf_calls = UdafCalls {
        py,
        udafs: &udafs,
        store: &store,
        caller: "slidewise.rolling",
    };
    let spans = read_spans(&windows)?;
    let request = Request {
        groups: rows.groups(),
        ties: read_ties(ties)?,
        arrival: rows.arrival(),
        at: query_points.as_ref().map(SortKeys::query_points),
        history,
        ..Request::new(rows.times(), &[], &[], &spans)
    };
    let rows = request.answer_count();
    // Tables with history, an order of arrival or windows without their row use pending terms.
    let whole = request.at.is_none_or(|at| at.left_out().is_none());
    if whole && history == 0 && request.arrival.is_none() {
        let functions = udafs[0].functions()?;
        return Eager::new(&udaf_calls, &functions, (spans.len(), rows)).run(&request, values);
    }
    let lifted = lift(&udaf_calls, values)?;
    let columns = [Column::of_cells(&lifted)];
    let request = Request {
        columns: &columns,
        ..request
    };
    let mut answers = Lowered {
        udaf_calls: &udaf_calls,
        lists: spans.iter().map(|_| vec![None; rows]).collect(),
        history,
        last: None,
        raised: None,
    };
    let mut interrupt = None;
    let mut watch_signals = watch_signals(&mut interrupt);
    let run = rolling_udaf(
        &request,
        udafs[0].commutative,
        &mut answers,
        &mut watch_signals,
    );
    drop(watch_signals);
    match run {
        Ok(()) => {}
        Err(Error::Refused) => return Err(answers.raised.take().expect("it says why")),
        Err(error) => return Err(kernel_error(py, error, interrupt)),
    }
    let lists = answers.lists.into_iter();
    lists.map(|answers| PyList::new(py, answers)).collect()
}

fn lift<'py>(
    udaf_calls: &UdafCalls<'_, 'py>,
    values: &Bound<'py, PyList>,
) -> PyResult<Vec<Cell<Object>>> {
    let mut lifted = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        if row % SIGNAL_CHECK_ROWS == SIGNAL_CHECK_ROWS - 1 {
            check_signals(udaf_calls.py)?;
        }
        // The column has applied nan= already.
        lifted.push(match udaf_calls.lift(0, &value, Nan::Propagate)? {
            Untyped::Object(partial) => Cell::Object(partial),
            _ => Cell::Null,
        });
    }
    Ok(lifted)
}

/// Answers, computed and lowered one by one.
struct Lowered<'a, 'py> {
    udaf_calls: &'a UdafCalls<'a, 'py>,
    /// Per span and row.
    lists: Vec<Vec<Option<Bound<'py, PyAny>>>>,
    /// Rows before this one are not answered.
    history: usize,
    /// Rows that share a window share its answer.
    last: Option<(Term<Object>, Option<Bound<'py, PyAny>>)>,
    raised: Option<PyErr>,
}

impl Sink<Object> for Lowered<'_, '_> {
    fn put(&mut self, span: usize, row: usize, answers: &[Answer<Object>]) -> Result<(), Error> {
        if row < self.history {
            return Ok(());
        }
        let [Answer::Term(term)] = answers else {
            self.raised = Some(internal_error(&format!("{answers:?} is not a term")));
            return Err(Error::Refused);
        };
        if self.last.as_ref().is_none_or(|(last, _)| last != term) {
            match self.udaf_calls.lower(0, term) {
                Ok(answer) => self.last = Some((term.clone(), answer)),
                Err(error) => {
                    self.raised = Some(error);
                    return Err(Error::Refused);
                }
            }
            self.udaf_calls.store.sweep(self.udaf_calls.py);
        }
        self.lists[span][row] = self.last.as_ref().and_then(|(_, answer)| answer.clone());
        Ok(())
    }
}
