//! Sliding-window aggregation: the algebra, the windows, the kernels.
//!
//! No Python and no Arrow in here, and no unsafe code.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod monoid;
pub mod rolling;
pub mod snapshot;
pub mod window;
