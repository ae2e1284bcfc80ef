//! `slidewise._core`: the Python bindings of `slidewise-core` and `slidewise-papers`.
//!
//! They convert values, times and errors, import and export Arrow arrays, and lock
//! windows. They hold no algorithm.
//!
//! A module imports only from lower floors (`tests/project/test_rust_imports.py`):
//!
//! ```text
//! window keyed
//! inserting snapshot prepared_query
//! bulk objects queries
//! answers pending_terms refusals widening columns udaf_tables
//! locking masks rows udaf_slides
//! fast_path state tables
//! spec keys
//! dtype_inference udaf
//! keyed_inputs requests sketches untyped
//! calendars catalogue hashing key_bytes row_numbers waiting window_ends
//! algorithms arrow batch_message clock inputs native
//! errors forks object_store scalars schedules signals
//! ```

mod algorithms;
mod answers;
mod arrow;
mod batch_message;
mod bulk;
mod calendars;
mod catalogue;
mod clock;
mod columns;
mod dtype_inference;
mod errors;
mod fast_path;
mod forks;
mod hashing;
mod inputs;
mod inserting;
mod key_bytes;
mod keyed;
mod keyed_inputs;
mod keys;
mod locking;
mod masks;
mod native;
mod object_store;
mod objects;
mod pending_terms;
mod prepared_query;
mod queries;
mod refusals;
mod requests;
mod row_numbers;
mod rows;
mod scalars;
mod schedules;
mod signals;
mod sketches;
mod snapshot;
mod spec;
mod state;
mod tables;
mod udaf;
mod udaf_slides;
mod udaf_tables;
mod untyped;
mod waiting;
mod widening;
mod window;
mod window_ends;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    forks::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrow::ArrowArray>()?;
    module.add_class::<spec::Spec>()?;
    module.add_class::<window::Window>()?;
    module.add_class::<keys::SortLayout>()?;
    module.add_class::<keyed::KeyedStore>()?;
    module.add_class::<prepared_query::PreparedQuery>()?;
    module.add_class::<calendars::Calendar>()?;
    module.add_class::<sketches::Bloom>()?;
    module.add_class::<sketches::CountMin>()?;
    module.add_function(wrap_pyfunction!(waiting::copy_rows, module)?)?;
    module.add_function(wrap_pyfunction!(waiting::take_due, module)?)?;
    module.add_function(wrap_pyfunction!(key_bytes::distinct_keys, module)?)?;
    module.add_function(wrap_pyfunction!(key_bytes::key_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(row_numbers::split_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(row_numbers::are_among, module)?)?;
    module.add_function(wrap_pyfunction!(row_numbers::group_ends, module)?)?;
    module.add_function(wrap_pyfunction!(row_numbers::places_in_groups, module)?)?;
    module.add_function(wrap_pyfunction!(hashing::hashes, module)?)?;
    module.add_function(wrap_pyfunction!(window_ends::areas_at_ends, module)?)?;
    module.add_function(wrap_pyfunction!(window_ends::decayed_sum, module)?)?;
    module.add_function(wrap_pyfunction!(window_ends::decayed_sums, module)?)?;
    module.add_function(wrap_pyfunction!(udaf_tables::rolling_udaf_column, module)?)?;
    module.add_function(wrap_pyfunction!(keys::hop_window_columns, module)?)?;
    module.add_function(wrap_pyfunction!(keys::unit_window_columns, module)?)?;
    module.add_function(wrap_pyfunction!(keys::session_window_columns, module)?)?;
    module.add_function(wrap_pyfunction!(keys::delta_start_column, module)?)?;
    module.add_function(wrap_pyfunction!(keys::rows_are_sorted, module)?)?;
    module.add_function(wrap_pyfunction!(keys::sort_rows, module)?)?;
    module.add_function(wrap_pyfunction!(tables::kernel_kind, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::costs, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::commutes, module)?)?;
    module.add_function(wrap_pyfunction!(schedules::query_plan, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::obeys_law, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::subtracts_exactly, module)?)?;
    module.add_function(wrap_pyfunction!(tables::rolling_columns, module)?)
}
