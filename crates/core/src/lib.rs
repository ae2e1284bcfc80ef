//! Sliding-window aggregation: the algebra, the windows, the kernels.
//!
//! No Python and no Arrow in here, and unsafe code only where an `allow` says so: [`memory`]
//! asks for large pages and lends a column to threads, kernels run in wide registers, and
//! functions compiled elsewhere are called by pointer ([`aggregate::native`] and its kernel).
//!
//! A module imports only from lower floors (`tests/project/test_rust_imports.py`):
//!
//! ```text
//! keyed
//! rolling
//! window
//! aggregate
//! batch
//! monoid
//! memory simd snapshot
//! ```
#![deny(unsafe_code)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("slidewise needs a target with 64-bit pointers: rows are counted beyond 2^32");

pub mod aggregate;
pub mod batch;
pub mod keyed;
mod memory;
pub mod monoid;
pub mod rolling;
mod simd;
pub mod snapshot;
pub mod window;
