//! Collected objects as bytes: a small set of plain types, nested to a limit.
//!
//! Bytes are read in two passes. [`skim`] checks all of them, and its allocations do not
//! depend on the lengths in them; then [`ObjectTable::build`] makes the objects. The bytes contain
//! no pickle and name no code.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use slidewise_core::snapshot::{Codec, Damaged, Reader, Result, Writer, damaged};

use crate::errors::snapshot_error;
use crate::object_store::{KEY, ObjectStore, StoredObject, canonical};
use crate::udaf::{Udaf, UdafCalls};

/// The most levels of nested lists, tuples and dicts.
const DEPTH: usize = 64;

mod tag {
    /// A slot without an object.
    pub(super) const GAP: u8 = 0;
    pub(super) const NONE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const INT: u8 = 4;
    /// Little endian, two's complement, for integers beyond 64 bits.
    pub(super) const BIG: u8 = 5;
    pub(super) const FLOAT: u8 = 6;
    pub(super) const STR: u8 = 7;
    pub(super) const BYTES: u8 = 8;
    pub(super) const TUPLE: u8 = 9;
    pub(super) const LIST: u8 = 10;
    pub(super) const DICT: u8 = 11;
    /// A value of the standard library, as text: see `slidewise.window.scalar_codec`.
    pub(super) const FORM: u8 = 12;
    /// A partial: the number of its aggregation, then the value. Only as a whole slot.
    pub(super) const PARTIAL: u8 = 13;
    /// A partial as bytes of its aggregation's codec. Only as a whole slot.
    pub(super) const CODED: u8 = 14;
    /// A key, which equal values share. Only as a whole slot.
    pub(super) const KEY: u8 = 15;
}

/// Writes a table of objects: its length in bytes, then every slot.
pub(crate) fn write(
    py: Python<'_>,
    objects: &[StoredObject],
    udaf_calls: Option<&UdafCalls<'_, '_>>,
    out: &mut Writer,
) -> PyResult<()> {
    let mut table = Writer::default();
    (objects.len() as u64).write(&mut table);
    for stored in objects {
        match (&stored.object, stored.owner, udaf_calls) {
            (None, ..) => tag::GAP.write(&mut table),
            (Some(key), Some(KEY), _) => {
                tag::KEY.write(&mut table);
                write_value(key.bind(py), &mut table, DEPTH)?;
            }
            (Some(partial), Some(owner), Some(udaf_calls)) => {
                write_partial(partial.bind(py), owner, udaf_calls, &mut table)?;
            }
            (Some(object), ..) => write_value(object.bind(py), &mut table, DEPTH)?,
        }
    }
    let table = table.finish().map_err(snapshot_error)?;
    (table.len() as u64).write(out);
    out.put(&table);
    Ok(())
}

/// Writes a partial by the codec of its aggregation, or else as a plain value.
fn write_partial(
    partial: &Bound<'_, PyAny>,
    owner: u16,
    udaf_calls: &UdafCalls<'_, '_>,
    out: &mut Writer,
) -> PyResult<()> {
    let number = usize::from(owner);
    if let Some(bytes) = udaf_calls.encode(number, partial)? {
        tag::CODED.write(out);
        owner.write(out);
        (bytes.as_bytes().len() as u64).write(out);
        out.put(bytes.as_bytes());
        return Ok(());
    }
    let mut plain = Writer::default();
    write_value(partial, &mut plain, DEPTH)?;
    let plain = plain.finish().map_err(|why| {
        let why = why.0.replace("a collected", "a partial with a");
        let way_out = match udaf_calls.is_built_in(number) {
            true => "convert the values before they are inserted".to_owned(),
            false => format!(
                "give {} a codec, or codec=\"pickle\"",
                udaf_calls.name(number)
            ),
        };
        snapshot_error(Damaged(format!("{why}: {way_out}")))
    })?;
    tag::PARTIAL.write(out);
    owner.write(out);
    out.put(&plain);
    Ok(())
}

/// Writes a value of exactly one of the known types; a subclass could not be restored.
fn write_value(value: &Bound<'_, PyAny>, out: &mut Writer, depth: usize) -> PyResult<()> {
    if value.is_none() {
        tag::NONE.write(out);
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        (if flag.is_true() {
            tag::TRUE
        } else {
            tag::FALSE
        })
        .write(out);
    } else if let Ok(int) = value.cast_exact::<PyInt>() {
        write_int(int, out)?;
    } else if let Ok(float) = value.cast_exact::<PyFloat>() {
        tag::FLOAT.write(out);
        float.value().write(out);
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        match text.to_cow() {
            Ok(text) => sized(tag::STR, text.as_bytes(), out),
            Err(_) => out.refuse("a collected str with a lone surrogate cannot be written"),
        }
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        sized(tag::BYTES, bytes.as_bytes(), out);
    } else if let Some(text) = form_of(value)? {
        sized(tag::FORM, text.as_bytes(), out);
    } else {
        write_container(value, out, depth)?;
    }
    Ok(())
}

/// The text that stands for a value of the standard library, if its type has one.
fn form_of(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let module = value.get_type().module()?;
    if !matches!(
        &*module.to_string_lossy(),
        "datetime" | "decimal" | "fractions"
    ) {
        return Ok(None);
    }
    let forms = value.py().import("slidewise.window.scalar_codec")?;
    forms.call_method1("write_form", (value,))?.extract()
}

fn write_container(value: &Bound<'_, PyAny>, out: &mut Writer, depth: usize) -> PyResult<()> {
    // Copies of the container, because it could change meanwhile.
    let (tag, items, count) = if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        (tag::TUPLE, tuple.clone(), tuple.len())
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        (tag::LIST, list.to_tuple(), list.len())
    } else if let Ok(dict) = value.cast_exact::<PyDict>() {
        let items = dict.items().iter();
        let pairs: Vec<_> = items
            .map(|pair| pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>())
            .collect::<PyResult<_>>()?;
        let flat = pairs.into_iter().flat_map(|(key, value)| [key, value]);
        let flat = PyTuple::new(value.py(), flat.collect::<Vec<_>>())?;
        let count = flat.len() / 2;
        (tag::DICT, flat, count)
    } else {
        out.refuse(format!(
            "a collected {} has no form in bytes; None, bool, int, float, str, bytes, date, \
             datetime, timedelta, Decimal, Fraction, tuple, list and dict have",
            value.get_type().fully_qualified_name()?
        ));
        return Ok(());
    };
    if depth == 0 {
        out.refuse(format!(
            "a collected value is nested more than {DEPTH} deep"
        ));
        return Ok(());
    }
    tag.write(out);
    (count as u64).write(out);
    for item in items.iter() {
        write_value(&item, out, depth - 1)?;
    }
    Ok(())
}

fn write_int(int: &Bound<'_, PyInt>, out: &mut Writer) -> PyResult<()> {
    if let Ok(small) = int.extract::<i64>() {
        tag::INT.write(out);
        small.write(out);
        return Ok(());
    }
    let bits: usize = int.call_method0("bit_length")?.extract()?;
    let keywords = PyDict::new(int.py());
    keywords.set_item("signed", true)?;
    let bytes = int.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&keywords))?;
    sized(tag::BIG, bytes.extract::<&[u8]>()?, out);
    Ok(())
}

fn sized(tag: u8, bytes: &[u8], out: &mut Writer) {
    tag.write(out);
    (bytes.len() as u64).write(out);
    out.put(bytes);
}

/// A table of objects that has been checked, but not made.
pub(crate) struct ObjectTable<'a> {
    bytes: &'a [u8],
    present: Vec<bool>,
}

/// Checks a table; partials are of `udafs` aggregations.
pub(crate) fn skim<'a>(input: &mut Reader<'a>, udafs: usize) -> Result<ObjectTable<'a>> {
    let length = input.length::<u8>()?;
    let bytes = input.take(length)?;
    let mut table = Reader::new(bytes);
    let count = table.length::<u8>()?;
    let mut present = Vec::with_capacity(count);
    for _ in 0..count {
        let tag = u8::read(&mut table)?;
        present.push(tag != tag::GAP);
        match tag {
            tag::GAP => {}
            tag::PARTIAL | tag::CODED => skim_partial(tag, &mut table, udafs)?,
            tag::KEY => {
                let tag = u8::read(&mut table)?;
                skim_value(tag, &mut table, DEPTH)?;
            }
            tag => skim_value(tag, &mut table, DEPTH)?,
        }
    }
    table.end()?;
    Ok(ObjectTable { bytes, present })
}

fn skim_partial(tag: u8, input: &mut Reader<'_>, udafs: usize) -> Result<()> {
    let owner = u16::read(input)?;
    if usize::from(owner) >= udafs {
        return damaged(format!("a partial of aggregation {owner}, of {udafs}"));
    }
    if tag == tag::CODED {
        let length = input.length::<u8>()?;
        input.take(length)?;
        return Ok(());
    }
    let tag = u8::read(input)?;
    skim_value(tag, input, DEPTH)
}

fn skim_value(tag: u8, input: &mut Reader<'_>, depth: usize) -> Result<()> {
    match tag {
        tag::NONE | tag::FALSE | tag::TRUE => {}
        tag::INT | tag::FLOAT => {
            input.take(8)?;
        }
        tag::BIG | tag::BYTES => {
            let length = input.length::<u8>()?;
            input.take(length)?;
        }
        tag::STR | tag::FORM => {
            read_text(input)?;
        }
        tag::TUPLE | tag::LIST | tag::DICT if depth > 0 => {
            let count = input.length::<u8>()?;
            let values = if tag == tag::DICT { 2 * count } else { count };
            for _ in 0..values {
                let tag = u8::read(input)?;
                skim_value(tag, input, depth - 1)?;
            }
        }
        _ => return damaged(format!("unknown or too deep object tag {tag}")),
    }
    Ok(())
}

fn read_text<'a>(input: &mut Reader<'a>) -> Result<&'a str> {
    let length = input.length::<u8>()?;
    std::str::from_utf8(input.take(length)?).or_else(|_| damaged("text is not UTF-8"))
}

impl ObjectTable<'_> {
    /// The slots that hold an object.
    pub(crate) fn present(&self) -> &[bool] {
        &self.present
    }

    /// Makes the objects, by slot.
    pub(crate) fn build(
        &self,
        py: Python<'_>,
        udafs: &[Udaf],
        store: &ObjectStore,
    ) -> PyResult<Vec<StoredObject>> {
        let udaf_calls = UdafCalls {
            py,
            udafs,
            store,
            caller: "slidewise.Window",
        };
        let mut input = Reader::new(self.bytes);
        u64::read(&mut input).map_err(snapshot_error)?;
        let present = self.present.iter();
        present
            .map(|present| {
                if !present {
                    u8::read(&mut input).map_err(snapshot_error)?;
                    return Ok(StoredObject {
                        object: None,
                        owner: None,
                    });
                }
                let (owner, built) = build_slot(&udaf_calls, &mut input)?;
                Ok(StoredObject {
                    object: Some(built.unbind()),
                    owner,
                })
            })
            .collect()
    }
}

fn build_slot<'py>(
    udaf_calls: &UdafCalls<'_, 'py>,
    input: &mut Reader<'_>,
) -> PyResult<(Option<u16>, Bound<'py, PyAny>)> {
    let tag = u8::read(input).map_err(snapshot_error)?;
    if tag == tag::KEY {
        return Ok((Some(KEY), canonical(&build_value(udaf_calls.py, input)?)));
    }
    if tag != tag::PARTIAL && tag != tag::CODED {
        return Ok((None, build_tagged(udaf_calls.py, tag, input)?));
    }
    let owner = u16::read(input).map_err(snapshot_error)?;
    let partial = if tag == tag::PARTIAL {
        build_value(udaf_calls.py, input)?
    } else {
        udaf_calls.decode(usize::from(owner), sized_bytes(input)?)?
    };
    Ok((Some(owner), partial))
}

/// Makes one value; the bytes have been skimmed, so the depth is known to be limited.
fn build_value<'py>(py: Python<'py>, input: &mut Reader<'_>) -> PyResult<Bound<'py, PyAny>> {
    let tag = u8::read(input).map_err(snapshot_error)?;
    build_tagged(py, tag, input)
}

fn build_tagged<'py>(
    py: Python<'py>,
    tag: u8,
    input: &mut Reader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match tag {
        tag::NONE => py.None().into_bound(py),
        tag::FALSE | tag::TRUE => PyBool::new(py, tag == tag::TRUE).to_owned().into_any(),
        tag::INT => i64::read(input)
            .map_err(snapshot_error)?
            .into_pyobject(py)?
            .into_any(),
        tag::FLOAT => PyFloat::new(py, f64::read(input).map_err(snapshot_error)?).into_any(),
        tag::STR => PyString::new(py, read_text(input).map_err(snapshot_error)?).into_any(),
        tag::FORM => {
            let text = read_text(input).map_err(snapshot_error)?;
            py.import("slidewise.window.scalar_codec")?
                .call_method1("read_form", (text,))?
        }
        tag::BYTES => PyBytes::new(py, sized_bytes(input)?).into_any(),
        tag::BIG => {
            let keywords = PyDict::new(py);
            keywords.set_item("signed", true)?;
            let arguments = (PyBytes::new(py, sized_bytes(input)?), "little");
            py.get_type::<PyInt>()
                .call_method("from_bytes", arguments, Some(&keywords))?
        }
        _ => build_container(py, tag, input)?,
    })
}

fn build_container<'py>(
    py: Python<'py>,
    tag: u8,
    input: &mut Reader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let count = u64::read(input).map_err(snapshot_error)?;
    if tag == tag::DICT {
        let dict = PyDict::new(py);
        for _ in 0..count {
            let key = build_value(py, input)?;
            let value = build_value(py, input)?;
            dict.set_item(key, value)
                .map_err(|error| snapshot_error(Damaged(format!("a dict's key: {error}"))))?;
        }
        return Ok(dict.into_any());
    }
    let list = PyList::empty(py);
    for _ in 0..count {
        list.append(build_value(py, input)?)?;
    }
    if tag == tag::TUPLE {
        return Ok(list.to_tuple().into_any());
    }
    Ok(list.into_any())
}

fn sized_bytes<'a>(input: &mut Reader<'a>) -> PyResult<&'a [u8]> {
    let length = input.length::<u8>().map_err(snapshot_error)?;
    input.take(length).map_err(snapshot_error)
}
