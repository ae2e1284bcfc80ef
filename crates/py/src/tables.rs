//! `_core.rolling`: computes result columns from whole columns.

use std::sync::OnceLock;

use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type};
use arrow_buffer::Buffer;
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{DataType, Field, Fields};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use slidewise_core::aggregate::column::Column;
use slidewise_core::aggregate::{AggSpec, DType, Kind};
use slidewise_core::rolling::output::Bitmap;
use slidewise_core::rolling::{
    FrameUnit, KernelKind, Output, Overflow, Request, Span, rolling_with_layout,
};

use crate::arrow::{ArrowArray, NumberArray};
use crate::errors::kernel_error;
use crate::keys::{self, QueryPoints, RowKeys, SortKeys, SortLayout};
use crate::native;
use crate::requests::{Call, SpanTicks, read_spans};
use crate::signals::watch_signals;

/// Window, aggregation, row and value.
type OverflowTuple = (usize, usize, usize, i128);

/// Rolling aggregations over columns.
///
/// The answers by window and aggregation; and, if `fails` is false, the window, the
/// aggregation, the row and the value of each integer that int64 cannot hold, which is
/// missing among the answers. Otherwise such an integer raises `ResultOverflowError`.
///
/// `slidewise.table`, the caller, has checked every argument; this function checks again
/// only those on which the core would panic.
#[pyfunction(name = "rolling")]
#[allow(clippy::too_many_arguments)] // one call, one caller, all of them columns
pub(crate) fn rolling_columns<'py>(
    py: Python<'py>,
    rows: RowKeys<'py>,
    columns: Vec<Bound<'py, PyAny>>,
    aggs: Vec<Call>,
    windows: Vec<SpanTicks>,
    ties: &str,
    query_points: Option<QueryPoints<'py>>,
    natives: &Bound<'py, PyAny>,
    history: usize,
    threads: usize,
    layout: Option<&SortLayout>,
    fails: bool,
) -> PyResult<Exported> {
    let inputs = KernelInputs::read((rows, query_points), columns, aggs, natives)?;
    let spans = read_spans(&windows)?;
    let views = inputs.views();
    let request = Request {
        ties: read_ties(ties)?,
        history,
        threads,
        overflow: if fails {
            Overflow::Fail
        } else {
            Overflow::Null
        },
        ..inputs.request(&views, &spans)
    };
    if let Some(layout) = layout {
        layout.check(request.times.len())?;
    }
    export_all(compute(py, request, layout)?)
}

/// Answers by window and aggregation, and the integers that int64 cannot hold.
pub(crate) type Exported = (Vec<Vec<ArrowArray>>, Vec<OverflowTuple>);

pub(crate) fn export_all(outputs: Vec<Vec<Output>>) -> PyResult<Exported> {
    let mut beyond = Vec::new();
    for (window, columns) in outputs.iter().enumerate() {
        for (agg, column) in columns.iter().enumerate() {
            if let Output::I64 {
                beyond: of_column, ..
            } = column
            {
                let named = of_column
                    .iter()
                    .map(|(row, value)| (window, agg, *row, *value));
                beyond.extend(named);
            }
        }
    }
    let by_window = outputs.into_iter();
    let columns = by_window
        .map(|columns| columns.into_iter().map(export).collect())
        .collect::<PyResult<_>>()?;
    Ok((columns, beyond))
}

/// Answers as a record batch, with the fields of an earlier one with the same names.
pub(crate) fn export_batch<'a>(
    names: impl Iterator<Item = &'a str>,
    outputs: Vec<Output>,
    rows: usize,
    known: &OnceLock<Fields>,
) -> PyResult<ArrowArray> {
    let children: Vec<ArrayData> = outputs.into_iter().map(exported).collect::<PyResult<_>>()?;
    let fields = known.get_or_init(|| {
        let kinds = children.iter().map(|child| child.data_type().clone());
        let fields = names
            .zip(kinds)
            .map(|(name, kind)| Field::new(name, kind, true));
        fields.collect()
    });
    let batch = ArrayData::builder(DataType::Struct(fields.clone()));
    Ok(ArrowArray::new(built(batch.len(rows).child_data(children))))
}

/// The kernel that answers an aggregation over a whole table, for `slidewise.table.explain`.
#[pyfunction]
pub(crate) fn kernel_kind(kind: &str, number: u32) -> &'static str {
    match Kind::parse(kind, number).map_or(KernelKind::Combines, KernelKind::of) {
        KernelKind::Counts => "counts",
        KernelKind::Sums => "sums",
        KernelKind::Extremes => "extremes",
        KernelKind::Moments => "moments",
        KernelKind::Pairs => "pairs",
        KernelKind::Ends => "ends",
        KernelKind::Areas => "areas",
        KernelKind::Decays => "decays",
        KernelKind::Values => "values",
        KernelKind::Places => "places",
        KernelKind::Registers => "registers",
        KernelKind::Combines => "combines",
    }
}

/// The inputs of a request, in memory that Python lends.
struct KernelInputs {
    rows: SortKeys,
    query_points: Option<SortKeys>,
    columns: Vec<NumberArray>,
    aggs: Vec<AggSpec>,
}

impl KernelInputs {
    fn read(
        (rows, query_points): (RowKeys<'_>, Option<QueryPoints<'_>>),
        columns: Vec<Bound<'_, PyAny>>,
        aggs: Vec<Call>,
        natives: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let natives = native::read_all(natives)?;
        let inputs = Self {
            rows: rows.import()?,
            query_points: query_points.map(QueryPoints::import).transpose()?,
            aggs: aggs
                .iter()
                .map(|call| call.read(columns.len(), &natives, None))
                .collect::<PyResult<_>>()?,
            columns: columns
                .iter()
                .map(NumberArray::import)
                .collect::<PyResult<_>>()?,
        };
        let lengths = inputs.columns.iter().map(NumberArray::len);
        keys::check(&inputs.rows, &inputs.query_points, lengths)?;
        Ok(inputs)
    }

    fn views(&self) -> Vec<Column<'_, i64>> {
        self.columns.iter().map(NumberArray::column).collect()
    }

    /// A request for one thread and all rows; equal times are peers.
    fn request<'a>(&'a self, columns: &'a [Column<'a, i64>], spans: &'a [Span]) -> Request<'a> {
        Request {
            groups: self.rows.groups(),
            arrival: self.rows.arrival(),
            at: self.query_points.as_ref().map(SortKeys::query_points),
            ..Request::new(self.rows.times(), columns, &self.aggs, spans)
        }
    }
}

/// Runs the kernel without the GIL, which it takes from time to time to check signals.
fn compute(
    py: Python<'_>,
    request: Request<'_>,
    layout: Option<&SortLayout>,
) -> PyResult<Vec<Vec<Output>>> {
    let mut interrupt = None;
    let mut proceed = watch_signals(&mut interrupt);
    let answer =
        py.detach(|| rolling_with_layout(request, layout.map(|layout| &layout.0), &mut proceed));
    drop(proceed);
    answer.map_err(|error| kernel_error(py, error, interrupt))
}

pub(crate) fn read_ties(ties: &str) -> PyResult<FrameUnit> {
    match ties {
        "peers" => Ok(FrameUnit::Peers),
        "rows" => Ok(FrameUnit::Rows),
        _ => Err(PyValueError::new_err(format!("ties {ties:?}"))),
    }
}

fn export(output: Output) -> PyResult<ArrowArray> {
    exported(output).map(ArrowArray::new)
}

fn exported(output: Output) -> PyResult<ArrayData> {
    Ok(match output {
        Output::I64 { values, valid, .. } => primitive::<Int64Type>(values, valid),
        Output::F64 { values, valid } => primitive::<Float64Type>(values, valid),
        Output::List {
            ranges,
            values,
            dtype,
        } => lists(&ranges, &values, dtype)?,
        Output::Bytes { ranges, values } => sketched(&ranges, &values),
    })
}

fn primitive<P: ArrowPrimitiveType>(values: Vec<P::Native>, valid: Bitmap) -> ArrayData {
    let rows = values.len();
    let nulls = rows - valid.set;
    let bitmap = (nulls > 0).then(|| Buffer::from_vec(valid.bytes));
    built(
        ArrayData::builder(P::DATA_TYPE)
            .len(rows)
            .add_buffer(Buffer::from_vec(values))
            .null_bit_buffer(bitmap),
    )
}

/// Copies the lists from the order of computation to that of the rows.
fn lists(ranges: &[(usize, usize)], values: &[u64], dtype: DType) -> PyResult<ArrayData> {
    let mut offsets: Vec<i32> = vec![0];
    let mut sorted: Vec<u64> = Vec::with_capacity(values.len());
    for &(start, end) in ranges {
        sorted.extend_from_slice(&values[start..end]);
        offsets.push(i32::try_from(sorted.len()).map_err(|_| {
            PyMemoryError::new_err("collect gives more than 2^31 values: ask for fewer rows")
        })?);
    }
    let of = match dtype {
        DType::F64 => DataType::Float64,
        _ => DataType::Int64,
    };
    let child = ArrayData::builder(of.clone())
        .len(sorted.len())
        .add_buffer(Buffer::from_vec(sorted));
    Ok(built(
        ArrayData::builder(DataType::List(Field::new("item", of, true).into()))
            .len(ranges.len())
            .add_buffer(Buffer::from_vec(offsets))
            .add_child_data(built(child)),
    ))
}

/// The bytes of sketches, likewise.
fn sketched(ranges: &[(usize, usize)], values: &[u8]) -> ArrayData {
    let mut offsets: Vec<i64> = vec![0];
    let mut sorted: Vec<u8> = Vec::with_capacity(values.len());
    for &(start, end) in ranges {
        sorted.extend_from_slice(&values[start..end]);
        offsets.push(sorted.len() as i64);
    }
    built(
        ArrayData::builder(DataType::LargeBinary)
            .len(ranges.len())
            .add_buffer(Buffer::from_vec(offsets))
            .add_buffer(Buffer::from_vec(sorted)),
    )
}

fn built(builder: ArrayDataBuilder) -> ArrayData {
    builder.build().expect("buffers as long as their rows")
}
