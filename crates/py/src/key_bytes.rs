//! Keys as bytes: equal keys have equal bytes, whatever batch they come in.
//!
//! For each column one byte, 0 for null and 1 for a value, then the value: numbers, times and
//! decimals in their own width, text and binary after their length. Both zeros are one key, and
//! all NaNs are one. [`decode`] makes columns of keys.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, GenericListArray, Int64Array, LargeBinaryArray, OffsetSizeTrait, UInt32Array,
    make_array,
};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::DataType;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyString, PyTuple};
use slidewise_core::keyed::{KeyColumn, distinct};

use crate::arrow::{ArrowArray, NumberArray, import};

/// The keys of some rows.
#[derive(Debug, Default)]
pub(crate) struct KeyBytes {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl KeyBytes {
    /// Keys of Arrow columns of equal length.
    pub(crate) fn read(columns: &[Bound<'_, PyAny>], rows: usize) -> PyResult<Self> {
        Self::encode(&read_arrays(columns)?, rows)
    }

    /// As `read`, for all rows of the columns; without columns there is one key.
    pub(crate) fn read_all(columns: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let columns = read_arrays(columns)?;
        let rows = columns.first().map_or(1, |column| column.array.len());
        Self::encode(&columns, rows)
    }

    /// Keys of arrays of equal length, of which there is one at least.
    pub(crate) fn of_arrays(columns: impl Iterator<Item = ArrayRef>) -> PyResult<Self> {
        let columns: Vec<Encoder> = columns.map(Encoder::new).collect::<PyResult<_>>()?;
        let rows = columns.first().map_or(0, |column| column.array.len());
        Self::encode(&columns, rows)
    }

    fn encode(columns: &[Encoder], rows: usize) -> PyResult<Self> {
        let mut keys = Self::default();
        keys.offsets.reserve_exact(rows + 1);
        keys.offsets.push(0);
        if columns.iter().any(|column| column.array.len() != rows) {
            return Err(PyTypeError::new_err("key columns differ in length"));
        }
        if let [column] = columns
            && let KeyEncoding::Fixed(values, width) = &column.form
            && column.array.null_count() == 0
            && *width > 0
        {
            // The commonest keys.
            keys.bytes.reserve_exact(rows * (width + 1));
            for value in values[..rows * width].chunks_exact(*width) {
                keys.bytes.push(1);
                keys.bytes.extend_from_slice(value);
            }
            keys.offsets.extend((1..=rows).map(|row| row * (width + 1)));
            return Ok(keys);
        }
        for row in 0..rows {
            for column in columns {
                column.encode(row, &mut keys.bytes);
            }
            keys.offsets.push(keys.bytes.len());
        }
        Ok(keys)
    }

    /// One key of Python values; `None` if Arrow has to convert one to the type of its column.
    pub(crate) fn of_values(types: &[DataType], key: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let mut keys = Self::default();
        keys.offsets.push(0);
        let encoded = match (types, key.cast::<PyTuple>()) {
            ([only], Err(_)) => encode_value(only, key, &mut keys.bytes)?,
            (_, Ok(parts)) if parts.len() == types.len() => {
                let mut all = true;
                for (kind, part) in types.iter().zip(parts) {
                    all = all && encode_value(kind, &part, &mut keys.bytes)?;
                }
                all
            }
            _ => false,
        };
        keys.offsets.push(keys.bytes.len());
        Ok(encoded.then_some(keys))
    }

    /// As `of_values`, for lists of Python values, one per column; also `None` if the lists differ
    /// in length.
    pub(crate) fn of_lists(
        types: &[DataType],
        columns: &[Bound<'_, PyList>],
    ) -> PyResult<Option<Self>> {
        let mut keys = Self::default();
        keys.offsets.push(0);
        let rows = columns.first().map_or(0, PyListMethods::len);
        if columns.len() != types.len() || columns.iter().any(|column| column.len() != rows) {
            return Ok(None);
        }
        for row in 0..rows {
            for (kind, column) in types.iter().zip(columns) {
                if !encode_value(kind, &column.get_item(row)?, &mut keys.bytes)? {
                    return Ok(None);
                }
            }
            keys.offsets.push(keys.bytes.len());
        }
        Ok(Some(keys))
    }

    pub(crate) fn view(&self) -> KeyColumn<'_> {
        KeyColumn {
            bytes: &self.bytes,
            offsets: &self.offsets,
        }
    }
}

/// The first row of each distinct key, in order, and the latest of the times of its rows.
#[pyfunction]
pub(crate) fn distinct_keys(
    py: Python<'_>,
    keys: Vec<Bound<'_, PyAny>>,
    times: &Bound<'_, PyAny>,
) -> PyResult<(ArrowArray, ArrowArray)> {
    let times = NumberArray::import_keys(times, "times")?;
    let keys = KeyBytes::read(&keys, times.len())?;
    let (firsts, latest) = py.detach(|| distinct(keys.view(), times.values()));
    let firsts = ArrowArray::new(UInt32Array::from(firsts).into());
    Ok((firsts, ArrowArray::new(Int64Array::from(latest).into())))
}

/// A key column as binary: equal values are equal keys.
#[pyfunction]
pub(crate) fn key_bytes(column: Bound<'_, PyAny>) -> PyResult<ArrowArray> {
    let keys = KeyBytes::read_all(&[column])?;
    let offsets: Vec<i64> = keys.offsets.iter().map(|offset| *offset as i64).collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let bytes = LargeBinaryArray::new(offsets, Buffer::from_vec(keys.bytes), None);
    Ok(ArrowArray::new(bytes.into()))
}

fn read_arrays(columns: &[Bound<'_, PyAny>]) -> PyResult<Vec<Encoder>> {
    let read = |column| Encoder::new(make_array(import(column)?));
    columns.iter().map(read).collect()
}

/// A column and the form of its values.
struct Encoder {
    array: ArrayRef,
    form: KeyEncoding,
}

enum KeyEncoding {
    Null,
    Bool,
    /// Adjacent values of so many bytes each.
    Fixed(Buffer, usize),
    F16,
    F32,
    F64,
    Text,
    LargeText,
    Binary,
    LargeBinary,
    Struct(Vec<Encoder>),
    /// The first item of each list, and the items.
    List(Vec<usize>, Box<Encoder>),
}

impl Encoder {
    fn new(array: ArrayRef) -> PyResult<Self> {
        let fixed = |width: usize| {
            let data = array.to_data();
            let from = data.offset() * width;
            KeyEncoding::Fixed(data.buffers()[0].slice(from), width)
        };
        let form = match array.data_type() {
            DataType::Null => KeyEncoding::Null,
            DataType::Boolean => KeyEncoding::Bool,
            DataType::Float16 => KeyEncoding::F16,
            DataType::Float32 => KeyEncoding::F32,
            DataType::Float64 => KeyEncoding::F64,
            DataType::Utf8 => KeyEncoding::Text,
            DataType::LargeUtf8 => KeyEncoding::LargeText,
            DataType::Binary => KeyEncoding::Binary,
            DataType::LargeBinary => KeyEncoding::LargeBinary,
            DataType::FixedSizeBinary(width) => fixed(*width as usize),
            DataType::Struct(_) => {
                let fields = array.as_struct().columns().iter();
                let fields = fields.map(|field| Self::new(ArrayRef::clone(field)));
                KeyEncoding::Struct(fields.collect::<PyResult<_>>()?)
            }
            DataType::List(_) => lists_of(array.as_list::<i32>())?,
            DataType::LargeList(_) => lists_of(array.as_list::<i64>())?,
            DataType::FixedSizeList(_, size) => {
                let lists = array.as_fixed_size_list();
                let firsts = (0..=lists.len()).map(|row| row * *size as usize).collect();
                KeyEncoding::List(
                    firsts,
                    Box::new(Self::new(ArrayRef::clone(lists.values()))?),
                )
            }
            other => match other.primitive_width() {
                Some(width) => fixed(width),
                None => {
                    return Err(PyTypeError::new_err(format!(
                        "a key column must hold values, got {other}"
                    )));
                }
            },
        };
        Ok(Self { array, form })
    }

    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        let array = &self.array;
        if matches!(self.form, KeyEncoding::Null) || array.is_null(row) {
            out.push(0);
            return;
        }
        out.push(1);
        match &self.form {
            KeyEncoding::Null => {}
            KeyEncoding::Bool => out.push(u8::from(array.as_boolean().value(row))),
            KeyEncoding::Fixed(values, width) => {
                out.extend_from_slice(&values.as_slice()[row * width..(row + 1) * width]);
            }
            KeyEncoding::F16 => {
                put_float(array.as_primitive::<Float16Type>().value(row).to_f64(), out)
            }
            KeyEncoding::F32 => {
                put_float(array.as_primitive::<Float32Type>().value(row).into(), out)
            }
            KeyEncoding::F64 => put_float(array.as_primitive::<Float64Type>().value(row), out),
            KeyEncoding::Text => put_text(array.as_string::<i32>().value(row).as_bytes(), out),
            KeyEncoding::LargeText => put_text(array.as_string::<i64>().value(row).as_bytes(), out),
            KeyEncoding::Binary => put_text(array.as_binary::<i32>().value(row), out),
            KeyEncoding::LargeBinary => put_text(array.as_binary::<i64>().value(row), out),
            KeyEncoding::Struct(fields) => fields.iter().for_each(|field| field.encode(row, out)),
            KeyEncoding::List(firsts, items) => {
                let (from, to) = (firsts[row], firsts[row + 1]);
                out.extend_from_slice(&((to - from) as u64).to_le_bytes());
                (from..to).for_each(|item| items.encode(item, out));
            }
        }
    }
}

fn lists_of<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> PyResult<KeyEncoding> {
    let firsts = lists.offsets().iter().map(|at| at.as_usize()).collect();
    let items = Encoder::new(ArrayRef::clone(lists.values()))?;
    Ok(KeyEncoding::List(firsts, Box::new(items)))
}

fn put_float(float: f64, out: &mut Vec<u8>) {
    let float = if float.is_nan() {
        f64::NAN
    } else {
        float + 0.0
    };
    out.extend_from_slice(&float.to_bits().to_le_bytes());
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

/// Encodes a Python value like the same value in a column of this type; false if Arrow has to
/// convert it.
fn encode_value(kind: &DataType, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    if value.is_none() {
        out.push(0);
        return Ok(true);
    }
    out.push(1);
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => {
            // Text with a lone surrogate is no UTF-8.
            if let Ok(text) = value.cast_exact::<PyString>()
                && let Ok(text) = text.to_str()
            {
                put_text(text.as_bytes(), out);
                return Ok(true);
            }
        }
        DataType::Int64 => {
            if let Ok(int) = value.cast_exact::<PyInt>()
                && let Ok(int) = int.extract::<i64>()
            {
                out.extend_from_slice(&int.to_le_bytes());
                return Ok(true);
            }
        }
        DataType::Int32 => {
            if let Ok(int) = value.cast_exact::<PyInt>()
                && let Ok(int) = int.extract::<i32>()
            {
                out.extend_from_slice(&int.to_le_bytes());
                return Ok(true);
            }
        }
        DataType::Float64 => {
            if let Ok(float) = value.cast_exact::<PyFloat>() {
                put_float(float.value(), out);
                return Ok(true);
            }
        }
        _ => {}
    }
    Ok(false)
}

/// Columns of these types from keys as bytes, of which there are `rows`.
pub(crate) fn decode<'a>(
    types: &[DataType],
    rows: usize,
    keys: impl Iterator<Item = &'a [u8]>,
) -> PyResult<Vec<ArrayData>> {
    let decoder = |kind| Decoder::new(kind, rows);
    let mut decoders: Vec<Decoder<'_>> = types.iter().map(decoder).collect();
    for mut key in keys {
        for decoder in &mut decoders {
            decoder.take(&mut key)?;
        }
    }
    decoders.into_iter().map(Decoder::finish).collect()
}

/// A column that grows by the values of keys.
struct Decoder<'a> {
    kind: &'a DataType,
    valid: BooleanBufferBuilder,
    values: MutableBuffer,
    /// The ends of texts and lists.
    ends: MutableBuffer,
    /// The fields of structs, or the items of lists.
    parts: Vec<Self>,
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn take_word(bytes: &mut &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(take(bytes, 8));
    u64::from_le_bytes(word)
}

/// An end as int32.
fn short_end(end: usize) -> PyResult<i32> {
    i32::try_from(end).map_err(|_| {
        let what = "keys of more than 2 GiB: the key column must be large_string or large_list";
        PyOverflowError::new_err(what)
    })
}

impl<'a> Decoder<'a> {
    fn new(kind: &'a DataType, rows: usize) -> Self {
        let mut ends = MutableBuffer::new(0);
        match kind {
            DataType::Utf8 | DataType::Binary | DataType::List(_) => ends.push(0_i32),
            DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_) => {
                ends.push(0_i64);
            }
            _ => {}
        }
        let parts = match kind {
            DataType::Struct(fields) => fields
                .iter()
                .map(|field| Self::new(field.data_type(), rows))
                .collect(),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                vec![Self::new(item.data_type(), 0)]
            }
            _ => Vec::new(),
        };
        Self {
            parts,
            kind,
            valid: BooleanBufferBuilder::new(rows),
            values: MutableBuffer::new(0),
            ends,
        }
    }

    /// Takes its value off a key.
    fn take(&mut self, key: &mut &[u8]) -> PyResult<()> {
        let is_valid = take(key, 1)[0] == 1;
        self.append(is_valid, key)
    }

    /// Appends a null.
    fn skip(&mut self) -> PyResult<()> {
        self.append(false, &mut &[][..])
    }

    fn append(&mut self, is_valid: bool, key: &mut &[u8]) -> PyResult<()> {
        self.valid.append(is_valid);
        let mut float = || match is_valid {
            true => f64::from_bits(take_word(key)),
            false => 0.0,
        };
        match self.kind {
            DataType::Null => {}
            DataType::Boolean => {
                self.values.push(if is_valid { take(key, 1)[0] } else { 0 });
            }
            DataType::Float16 => {
                type F16 = <Float16Type as ArrowPrimitiveType>::Native;
                self.values.push(F16::from_f64(float()));
            }
            DataType::Float32 => self.values.push(float() as f32),
            DataType::Float64 => self.values.push(float()),
            DataType::Utf8 | DataType::Binary => {
                self.take_text(key, is_valid);
                self.ends.push(short_end(self.values.len())?);
            }
            DataType::Struct(_) => {
                for field in &mut self.parts {
                    match is_valid {
                        true => field.take(key)?,
                        false => field.skip()?,
                    }
                }
            }
            DataType::List(_) => {
                self.take_items(key, is_valid)?;
                self.ends.push(short_end(self.parts[0].valid.len())?);
            }
            DataType::LargeList(_) => {
                self.take_items(key, is_valid)?;
                self.ends.push(self.parts[0].valid.len() as i64);
            }
            DataType::FixedSizeList(_, size) => match is_valid {
                true => self.take_items(key, true)?,
                false => (0..*size).try_for_each(|_| self.parts[0].skip())?,
            },
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.take_text(key, is_valid);
                self.ends.push(self.values.len() as i64);
            }
            other => {
                let width = match other {
                    DataType::FixedSizeBinary(width) => *width as usize,
                    other => other.primitive_width().unwrap_or(0),
                };
                match is_valid {
                    true => self.values.extend_from_slice(take(key, width)),
                    false => self.values.extend_zeros(width),
                }
            }
        }
        Ok(())
    }

    fn take_text(&mut self, key: &mut &[u8], is_valid: bool) {
        if is_valid {
            let len = take_word(key) as usize;
            self.values.extend_from_slice(take(key, len));
        }
    }

    fn take_items(&mut self, key: &mut &[u8], is_valid: bool) -> PyResult<()> {
        let items = if is_valid { take_word(key) } else { 0 };
        (0..items).try_for_each(|_| self.parts[0].take(key))
    }

    fn finish(mut self) -> PyResult<ArrayData> {
        let rows = self.valid.len();
        let builder = ArrayDataBuilder::new(self.kind.clone()).len(rows);
        let nulls = NullBuffer::new(self.valid.finish());
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let values = Buffer::from(self.values);
        let builder = match self.kind {
            DataType::Null => builder,
            DataType::Boolean => {
                let mut bits = BooleanBufferBuilder::new(rows);
                values.iter().for_each(|byte| bits.append(*byte == 1));
                builder.add_buffer(bits.finish().into_inner()).nulls(nulls)
            }
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => {
                let ends = Buffer::from(self.ends);
                builder.add_buffer(ends).add_buffer(values).nulls(nulls)
            }
            DataType::Struct(_)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..) => {
                let parts = self.parts.into_iter().map(Self::finish);
                let builder = match self.ends.is_empty() {
                    true => builder,
                    false => builder.add_buffer(Buffer::from(self.ends)),
                };
                builder
                    .child_data(parts.collect::<PyResult<_>>()?)
                    .nulls(nulls)
            }
            _ => builder.add_buffer(values).nulls(nulls),
        };
        builder
            .build()
            .map_err(|error| PyTypeError::new_err(error.to_string()))
    }
}
