//! `slidewise._core`: a thin skin over `slidewise-core`.
//!
//! Conversion, errors and Arrow live here; no algorithm does.

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
