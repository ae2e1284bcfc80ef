//! Where a value counts: `where=` and pairs of columns.

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyString};

use crate::arrow::Numbers;
use crate::columns::BulkReader;
use crate::errors::spec as refused;
use crate::spec::{Feed, Mask, Nan, Spec};
use crate::value::{described, is_numpy_bool, plain};

/// Per feed, which rows count; `None` where all do.
pub(crate) type Masks = Vec<Option<Vec<bool>>>;

impl Spec {
    /// Whether a row counts for a feed; `get` gives its columns.
    pub(crate) fn counts<'py>(
        &self,
        feed: &Feed,
        get: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        for (source, mask) in &feed.masks {
            if !holds(&get(*source)?, *mask, self.nan)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn holds(value: &Bound<'_, PyAny>, mask: Mask, nan: Nan) -> PyResult<bool> {
    let value = plain(value.clone())?;
    if value.is_none() {
        return Ok(false);
    }
    if mask == Mask::There {
        let float = value.cast::<PyFloat>();
        let is_nan = float.is_ok_and(|float| float.value().is_nan());
        return Ok(!(is_nan && nan == Nan::Skip));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true());
    }
    if is_numpy_bool(&value)? {
        return value.is_truthy();
    }
    Err(refused(format!(
        "where= takes a column of booleans, and {} is none",
        described(&value)
    )))
}

impl<'py> BulkReader<'_, 'py> {
    /// Reads the masks of all feeds. A column that can be read once only becomes a list.
    pub(crate) fn masks(
        &self,
        sources: &mut [Bound<'py, PyAny>],
        names: &[Py<PyString>],
    ) -> PyResult<Masks> {
        let mut read: Vec<((usize, Mask), Vec<bool>)> = Vec::new();
        for key in self.spec.feeds.iter().flat_map(|feed| &feed.masks) {
            if read.iter().any(|(known, _)| known == key) {
                continue;
            }
            let (source, mask) = *key;
            let skip = self.spec.nan == Nan::Skip;
            let name = names[source].bind(self.py);
            let given = (&sources[source], mask == Mask::True, skip, name);
            let (again, bits): (Bound<'py, PyAny>, Bound<'py, PyBytes>) =
                self.helper("read_mask", given)?.extract()?;
            sources[source] = again;
            let bits: Vec<bool> = bits.as_bytes().iter().map(|byte| *byte != 0).collect();
            self.refuse_length(bits.len(), Some(&name.to_string_lossy()))?;
            read.push((*key, bits));
        }
        let of = |key: &(usize, Mask)| {
            let found = read.iter().find(|(known, _)| known == key);
            found.map(|(_, bits)| bits.clone()).unwrap_or_default()
        };
        let feeds = self.spec.feeds.iter();
        Ok(feeds
            .map(|feed| feed.masks.iter().map(of).reduce(both))
            .collect())
    }
}

fn both(one: Vec<bool>, other: Vec<bool>) -> Vec<bool> {
    one.into_iter().zip(other).map(|(a, b)| a && b).collect()
}

/// The numbers with nulls where they do not count.
pub(crate) fn masked(numbers: Numbers, mask: Option<&Vec<bool>>) -> Numbers {
    let Some(mask) = mask else { return numbers };
    let mask = NullBuffer::from(mask.clone());
    let nulls = |own: Option<&NullBuffer>| NullBuffer::union(own, Some(&mask));
    match numbers {
        Numbers::I64(ints) => {
            let nulls = nulls(ints.nulls());
            Numbers::I64(arrow_array::Int64Array::new(ints.values().clone(), nulls))
        }
        Numbers::F64(floats) => {
            let nulls = nulls(floats.nulls());
            Numbers::F64(arrow_array::Float64Array::new(
                floats.values().clone(),
                nulls,
            ))
        }
    }
}
