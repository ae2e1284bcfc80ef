//! Tests of planned windows: every algorithm over every representation. One program,
//! because compiling those windows once takes a minute, and running most of these tests
//! takes less. `papers_every` runs some of these files over the papers' algorithms.

#[path = "../common/mod.rs"]
mod common;

mod aggregations;
mod algorithms;
mod auto;
mod deferred;
mod deferred_terms;
mod holistic;
mod hostile;
mod laws;
