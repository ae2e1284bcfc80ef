//! Tests of tables: the aggregations of rows over sliding windows, against their
//! definitions. The tested code is compiled in the core, which is optimised.

#[path = "../common/mod.rs"]
mod common;

mod holistic;
mod native;
mod rolling;
mod threads;
