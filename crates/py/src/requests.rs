//! Requests from Python: aggregations of input columns, and windows.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use slidewise_core::aggregate::native::Functions;
use slidewise_core::aggregate::{AggSpec, Kind};
use slidewise_core::rolling::{Closed, Length, Span};

use crate::calendars::Calendar;
use crate::native;

/// `slidewise.aggregations.call.Call`.
#[derive(Debug, FromPyObject)]
pub(crate) struct Call {
    pub(crate) kind: String,
    pub(crate) of: Option<usize>,
    by: Option<usize>,
    number: u32,
}

impl Call {
    /// Its aggregation of columns of that number; of another kind than its own if `kind` is one.
    pub(crate) fn read(
        &self,
        columns: usize,
        natives: &[Functions],
        kind: Option<Kind>,
    ) -> PyResult<AggSpec> {
        let name = &self.kind;
        let kind = kind
            .or_else(|| native::kind(name, natives))
            .or_else(|| Kind::parse(name, self.number))
            .ok_or_else(|| PyValueError::new_err(format!("unknown aggregation {name:?}")))?;
        let known = [self.of, self.by].iter().flatten().all(|at| *at < columns);
        let whole = known
            && (self.of.is_some() || kind == Kind::Count)
            && (self.by.is_some() || !kind.takes_by());
        match whole {
            true => Ok(AggSpec {
                kind,
                of: self.of,
                by: self.by,
                ddof: self.number,
            }),
            false => Err(PyValueError::new_err(format!("{name} lacks a column"))),
        }
    }
}

/// `slidewise.spec.windows.base.Span`.
#[derive(Debug, FromPyObject)]
pub(crate) struct SpanTicks {
    kind: String,
    length: i64,
    closed: String,
    offset: i64,
    calendar: Option<Py<Calendar>>,
}

impl SpanTicks {
    pub(crate) fn read(&self) -> PyResult<Span> {
        let wrong = || PyValueError::new_err(format!("no window: {self:?}"));
        if self.length <= 0 {
            return Err(wrong());
        }
        let length = match (self.kind.as_str(), &self.calendar) {
            ("time", None) => Length::Time(self.length),
            ("rows", None) => Length::Rows(usize::try_from(self.length).unwrap_or(usize::MAX)),
            ("unbounded", None) => Length::Unbounded,
            ("calendar", Some(calendar)) => Length::Calendar(calendar.get().0),
            _ => return Err(wrong()),
        };
        let closed = match self.closed.as_str() {
            "right" => Closed::Right,
            "left" => Closed::Left,
            "both" => Closed::Both,
            "neither" => Closed::Neither,
            _ => return Err(wrong()),
        };
        let offset = self.offset;
        Ok(Span {
            length,
            closed,
            offset,
        })
    }
}

pub(crate) fn read_spans(spans: &[SpanTicks]) -> PyResult<Vec<Span>> {
    spans.iter().map(SpanTicks::read).collect()
}
