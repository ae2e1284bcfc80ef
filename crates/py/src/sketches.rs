//! The answers of `bloom` and `count_min`: sketches in the format of Apache DataSketches.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use slidewise_core::aggregate::Kind;
use slidewise_core::aggregate::sketch::{Counts, SketchRequest, read_bloom, read_counts};

use datasketches::bloom::BloomFilter;

use crate::errors::{internal_error, snapshot_error, spec_error};
use crate::hashing::of_value;

/// The answer behind the bytes of a sketch.
pub(crate) fn answer<'py>(
    py: Python<'py>,
    kind: Kind,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    match kind {
        Kind::Sketch(SketchRequest::Bloom { .. }) => {
            let filter = read_bloom(bytes).map_err(snapshot_error)?;
            Ok(Bound::new(py, Bloom(filter))?.into_any())
        }
        Kind::Sketch(SketchRequest::Counts { .. }) => {
            let counts = read_counts(bytes).map_err(snapshot_error)?;
            Ok(Bound::new(py, CountMin(counts))?.into_any())
        }
        _ => Err(internal_error("bytes without a sketch")),
    }
}

/// A Bloom filter: a set of values without false negatives, with a few false positives.
///
/// The answer of `bloom`, also as bytes in a column of answers. Values are identified by
/// their 64-bit hash (XXH64, seed 42, of the eight little-endian bytes of an int or the
/// UTF-8 of a str): Apache DataSketches reads these bytes, and finds a value by this hash
/// as an unsigned 64-bit number.
///
/// Cost: O(hashes) for a value; O(bits) for all else, but O(1) for `bits`.
///
/// Example:
///     >>> import slidewise as sw
///     >>> w = sw.Window(sw.bloom(capacity=1000, error_rate=0.01))
///     >>> w.insert_many([1, 2], ["ada", "bob"])
///     >>> seen = w.query()
///     >>> "ada" in seen, "eve" in seen
///     (True, False)
///     >>> seen.might_contain("bob"), seen.bits, seen.error_rate < 0.01
///     (True, 9600, True)
///     >>> sw.Bloom.from_bytes(seen.to_bytes()) == seen
///     True
#[pyclass(frozen, eq, module = "slidewise")]
#[derive(PartialEq)]
pub(crate) struct Bloom(BloomFilter);

#[pymethods]
impl Bloom {
    /// Restores what `to_bytes` gave, or a column of answers holds.
    ///
    /// Raises:
    ///  SnapshotError: If the bytes are not a Bloom filter.
    #[classmethod]
    fn from_bytes(_class: &Bound<'_, PyType>, blob: &[u8]) -> PyResult<Self> {
        read_bloom(blob).map(Self).map_err(snapshot_error)
    }

    /// The filter in the serialised form of Apache DataSketches.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.serialize())
    }

    /// Whether a value may be in the set: False is certain. None never is.
    ///
    /// Raises:
    ///     SpecError: If it is not an int, float, bool, str or bytes.
    fn might_contain(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = of_value(value)?;
        Ok(hash.is_some_and(|hash| self.0.contains(&(hash as u64))))
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.might_contain(value)
    }

    /// The number of bits.
    #[getter]
    fn bits(&self) -> usize {
        self.0.capacity()
    }

    /// The rate of false positives with the present number of set bits.
    #[getter]
    fn error_rate(&self) -> f64 {
        (self.0.bits_used() as f64 / self.0.capacity() as f64).powi(self.0.num_hashes().into())
    }

    /// The filter of the values of both.
    ///
    /// Raises:
    ///     SpecError: If they are of different sizes.
    fn __or__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        let mut union = self.0.clone();
        match union.union(&other.get().0) {
            Ok(()) => Ok(Self(union)),
            Err(_) => Err(spec_error("these Bloom filters are of different sizes")),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        let arguments = PyTuple::new(py, [slf.get().to_bytes(py)])?;
        PyTuple::new(py, [from_bytes, arguments.into_any()])
    }

    fn __repr__(&self) -> String {
        format!(
            "<Bloom: {} of {} bits, {} hashes>",
            self.0.bits_used(),
            self.0.capacity(),
            self.0.num_hashes()
        )
    }
}

/// A Count-Min sketch: the counts of values, never too low.
///
/// The answer of `count_min`, also as bytes in a column of answers. Values are identified
/// by their 64-bit hash, as in `Bloom`.
///
/// Cost: O(hashes) for a value; O(counters) for all else, but O(1) for `total` and `error`.
///
/// Example:
///     >>> import slidewise as sw
///     >>> w = sw.Window(sw.count_min(error=0.01))
///     >>> w.insert_many([1, 2, 3], ["ada", "bob", "ada"])
///     >>> counts = w.query()
///     >>> counts.estimate("ada"), counts.estimate("eve"), counts.total
///     (2, 0, 3)
///     >>> round(counts.error, 2)  # 3 values, times the error
///     0.03
///     >>> sw.CountMin.from_bytes(counts.to_bytes()) == counts
///     True
#[pyclass(frozen, eq, module = "slidewise")]
#[derive(PartialEq)]
pub(crate) struct CountMin(Counts);

#[pymethods]
impl CountMin {
    /// Restores what `to_bytes` gave, or a column of answers holds.
    ///
    /// Raises:
    ///  SnapshotError: If the bytes are not a Count-Min sketch.
    #[classmethod]
    fn from_bytes(_class: &Bound<'_, PyType>, blob: &[u8]) -> PyResult<Self> {
        read_counts(blob).map(Self).map_err(snapshot_error)
    }

    /// The sketch in the serialised form of Apache DataSketches.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.serialize())
    }

    /// An upper bound of the count of a value; 0 for None.
    ///
    /// Raises:
    ///     SpecError: If it is not an int, float, bool, str or bytes.
    fn estimate(&self, value: &Bound<'_, PyAny>) -> PyResult<i64> {
        let hash = of_value(value)?;
        Ok(hash.map_or(0, |hash| self.0.estimate(hash as u64)))
    }

    /// The number of values.
    #[getter]
    fn total(&self) -> i64 {
        self.0.total_weight()
    }

    /// The largest excess of an estimate, with the requested confidence.
    #[getter]
    fn error(&self) -> f64 {
        self.0.relative_error() * self.0.total_weight() as f64
    }

    /// The sketch of the values of both.
    ///
    /// Raises:
    ///     SpecError: If they are of different sizes.
    fn __add__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        let mut sum = self.0.clone();
        match sum.merge(&other.get().0) {
            Ok(()) => Ok(Self(sum)),
            Err(_) => Err(spec_error(
                "these Count-Min sketches are of different sizes",
            )),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        let arguments = PyTuple::new(py, [slf.get().to_bytes(py)])?;
        PyTuple::new(py, [from_bytes, arguments.into_any()])
    }

    fn __repr__(&self) -> String {
        format!(
            "<CountMin: {} values, {} x {} counters>",
            self.0.total_weight(),
            self.0.num_hashes(),
            self.0.num_buckets()
        )
    }
}
