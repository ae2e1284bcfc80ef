//! Tests of tables: the aggregations of rows over sliding windows, beside the definition of
//! each. What they run is compiled in the core, once, and so with its profile: `make
//! test-core` has them optimised, unlike the programs that compile their own windows.

#[path = "../common/mod.rs"]
mod common;

mod holistic;
mod lifted;
mod native;
mod rolling;
mod threads;
