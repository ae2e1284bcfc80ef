//! Tests of tables: the aggregations of rows over sliding windows, against their
//! definitions. The tested code is compiled in the core, once, with its profile: `make
//! test-core` runs it optimised, unlike the programs that compile their own windows.

#[path = "../common/mod.rs"]
mod common;

mod holistic;
mod native;
mod rolling;
mod threads;
