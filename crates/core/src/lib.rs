//! Sliding-window aggregation: the algebra, the windows, the kernels.
//!
//! No Python and no Arrow in here, and unsafe code in three places only: [`memory`] asks for
//! large pages and lends a column to threads, kernels run in wide registers.
#![deny(unsafe_code)]

pub mod aggregate;
mod memory;
pub mod monoid;
pub mod rolling;
pub mod snapshot;
pub mod window;
