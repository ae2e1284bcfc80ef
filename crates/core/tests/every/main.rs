//! Tests of planned windows: every algorithm over every representation. One program,
//! because compiling those windows once takes a minute, and running most of these tests
//! takes less.

#[path = "../common/mod.rs"]
mod common;

mod aggregations;
mod auto;
mod deferred;
mod holistic;
mod hostile;
mod laws;
