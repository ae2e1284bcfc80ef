//! Rows of batches that wait: copied when they arrive, and returned when they are due.
//!
//! For a small batch, one call replaces ten of Arrow's functions, none of which is in a cache.

use arrow_array::Int64Array;
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, Fields};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::arrow::{ArrowArray, import};

/// A record batch whose first column has times.
struct TimedBatch {
    fields: Fields,
    rows: usize,
    columns: Vec<ArrayData>,
    times: Int64Array,
}

impl TimedBatch {
    fn import(batch: &Bound<'_, PyAny>) -> PyResult<Self> {
        let no_times = || PyTypeError::new_err("a record batch begins with int64 times");
        let data = import(batch)?;
        let DataType::Struct(fields) = data.data_type() else {
            return Err(no_times());
        };
        let columns: Vec<ArrayData> = (data.child_data().iter())
            .map(|column| column.slice(data.offset(), data.len()))
            .collect();
        let times = columns.first().ok_or_else(no_times)?;
        if *times.data_type() != DataType::Int64 || times.null_count() > 0 {
            return Err(no_times());
        }
        Ok(Self {
            fields: fields.clone(),
            rows: data.len(),
            times: times.clone().into(),
            columns,
        })
    }

    fn export(fields: Fields, rows: usize, columns: Vec<ArrayData>) -> PyResult<ArrowArray> {
        let data = ArrayData::builder(DataType::Struct(fields))
            .len(rows)
            .child_data(columns);
        let built = data.build();
        built
            .map(ArrowArray::new)
            .map_err(|error| PyTypeError::new_err(error.to_string()))
    }
}

/// Copies a record batch, with buffers of its own. Also returns its earliest and latest time;
/// `None` without rows.
#[pyfunction]
pub(crate) fn copy_rows(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
) -> PyResult<(ArrowArray, Option<(i64, i64)>)> {
    let batch = TimedBatch::import(batch)?;
    let (columns, ends) = py.detach(|| {
        let columns = batch.columns.iter().map(|column| {
            let mut copy = growing(vec![column], column.len());
            copy.try_extend(0, 0, column.len())?;
            Ok(copy.freeze())
        });
        let times = batch.times.values();
        let ends = (times.iter().min().copied()).zip(times.iter().max().copied());
        (columns.collect::<Result<_, _>>(), ends)
    });
    let copy = TimedBatch::export(batch.fields, batch.rows, columns.map_err(too_long)?)?;
    Ok((copy, ends))
}

/// The rows of record batches, whose first column has times, that are at or before `until`; in
/// order, or stably sorted by time if `sorted`. Of a batch with a time beside it, only later rows
/// count. Also returns the first time after `until` of each batch.
#[pyfunction]
pub(crate) fn take_due(
    py: Python<'_>,
    waiting: Vec<(Bound<'_, PyAny>, Option<i64>)>,
    until: i64,
    sorted: bool,
) -> PyResult<(ArrowArray, Vec<Option<i64>>)> {
    let (batches, afters): (Vec<TimedBatch>, Vec<Option<i64>>) = waiting
        .iter()
        .map(|(batch, after)| Ok((TimedBatch::import(batch)?, *after)))
        .collect::<PyResult<Vec<_>>>()?
        .into_iter()
        .unzip();
    let Some(TimedBatch { fields, .. }) = batches.first() else {
        return Err(PyTypeError::new_err("no batches"));
    };
    if batches.iter().any(|batch| batch.fields != *fields) {
        return Err(PyTypeError::new_err("batches differ in their columns"));
    }
    let most = batches.iter().map(|batch| batch.rows).max().unwrap_or(0);
    if u32::try_from(most.max(batches.len())).is_err() {
        return Err(PyOverflowError::new_err("more than 2^32 rows wait"));
    }
    let (rows, columns, next) = py.detach(|| {
        let (places, next) = due(&batches, &afters, until, sorted);
        let column = |at: usize| {
            let parts: Vec<&ArrayData> = batches.iter().map(|batch| &batch.columns[at]).collect();
            taken(&parts, &places)
        };
        let columns = (0..fields.len()).map(column).collect::<Result<_, _>>();
        (places.len(), columns, next)
    });
    let columns = columns.map_err(too_long)?;
    Ok((TimedBatch::export(fields.clone(), rows, columns)?, next))
}

/// The error for a column of text that is too long for its offsets.
fn too_long(error: ArrowError) -> PyErr {
    PyOverflowError::new_err(error.to_string())
}

/// A batch and a row of it.
type BatchRow = (usize, usize);

fn due(
    batches: &[TimedBatch],
    afters: &[Option<i64>],
    until: i64,
    sorted: bool,
) -> (Vec<BatchRow>, Vec<Option<i64>>) {
    let (mut due, mut next) = (Vec::new(), Vec::new());
    for ((place, batch), after) in (0_u64..).zip(batches).zip(afters) {
        let mut left: Option<i64> = None;
        for (row, time) in (0_u64..).zip(batch.times.values()) {
            if *time > until {
                left = Some(left.map_or(*time, |left| left.min(*time)));
            } else if after.is_none_or(|after| *time > after) {
                due.push((*time, place << 32 | row));
            }
        }
        next.push(left);
    }
    if sorted {
        sort_due(&mut due);
    }
    let place = |(_, at): (i64, u64)| ((at >> 32) as usize, at as u32 as usize);
    (due.into_iter().map(place).collect(), next)
}

/// The bits of a time that one step of a radix sort reads.
const DIGIT_BITS: u32 = 11;
/// Up to this number of steps are faster than a sort by comparisons.
const MAX_STEPS: u32 = 4;
/// Fewer rows are sorted by comparisons.
const MIN_ROWS: usize = 1 << 13;

/// Sorts rows by time; rows of equal time stay in order.
fn sort_due(due: &mut Vec<(i64, u64)>) {
    let times = || due.iter().map(|(time, _)| *time);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return;
    };
    let bits = u64::BITS - (last.wrapping_sub(first) as u64).leading_zeros();
    let steps = bits.div_ceil(DIGIT_BITS);
    if due.len() < MIN_ROWS || steps > MAX_STEPS {
        due.sort_unstable();
        return;
    }
    let mut sorted = vec![(0, 0); due.len()];
    for step in 0..steps {
        let digit = |time: i64| {
            let bits = time.wrapping_sub(first) as u64 >> (step * DIGIT_BITS);
            bits as usize & ((1 << DIGIT_BITS) - 1)
        };
        let mut places = [0_usize; 1 << DIGIT_BITS];
        due.iter().for_each(|(time, _)| places[digit(*time)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for row in due.iter() {
            let place = &mut places[digit(row.0)];
            sorted[*place] = *row;
            *place += 1;
        }
        std::mem::swap(due, &mut sorted);
    }
}

/// A column that grows by values of some others.
fn growing(parts: Vec<&ArrayData>, rows: usize) -> MutableArrayData<'_> {
    // A field or an item may have a buffer of nulls without a null in it, for which
    // `MutableArrayData` needs one as well.
    let has_nulls = parts[0].data_type().is_nested();
    MutableArrayData::new(parts, has_nulls, rows)
}

/// The values at some places of a column of several parts.
fn taken(parts: &[&ArrayData], places: &[BatchRow]) -> Result<ArrayData, ArrowError> {
    let kind = parts[0].data_type();
    let values = match kind.primitive_width() {
        Some(1) => fixed::<i8>(parts, places),
        Some(2) => fixed::<i16>(parts, places),
        Some(4) => fixed::<i32>(parts, places),
        Some(8) => fixed::<i64>(parts, places),
        Some(16) => fixed::<i128>(parts, places),
        _ => {
            let mut grown = growing(parts.to_vec(), places.len());
            for (part, row) in places {
                grown.try_extend(*part, *row, *row + 1)?;
            }
            return Ok(grown.freeze());
        }
    };
    let column = ArrayDataBuilder::new(kind.clone())
        .len(places.len())
        .add_buffer(values)
        .nulls(nulls(parts, places));
    column.build()
}

fn fixed<T: ArrowNativeType>(parts: &[&ArrayData], places: &[BatchRow]) -> Buffer {
    let parts: Vec<&[T]> = parts.iter().map(|part| part.buffer(0)).collect();
    let values: Vec<T> = places
        .iter()
        .map(|(part, row)| parts[*part][*row])
        .collect();
    Buffer::from_vec(values)
}

fn nulls(parts: &[&ArrayData], places: &[BatchRow]) -> Option<NullBuffer> {
    if parts.iter().all(|part| part.null_count() == 0) {
        return None;
    }
    let parts: Vec<Option<&NullBuffer>> = parts.iter().map(|part| part.nulls()).collect();
    let mut valid = BooleanBufferBuilder::new(places.len());
    for (part, row) in places {
        valid.append(parts[*part].is_none_or(|nulls| nulls.is_valid(*row)));
    }
    Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0)
}
