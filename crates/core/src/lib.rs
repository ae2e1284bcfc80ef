//! Sliding-window aggregation: the algebra, the windows, the kernels.
//!
//! No Python and no Arrow in here; one call of the system's ([`memory`]) is unsafe code.
#![deny(unsafe_code)]

pub mod aggregate;
mod memory;
pub mod monoid;
pub mod rolling;
pub mod snapshot;
pub mod window;
