//! Tests of planned windows of the papers: every algorithm over every representation.

#[path = "../../../core/tests/common/mod.rs"]
mod common;

// What each algorithm must pass, over those of `algorithms`.
#[path = "../../../core/tests/every/auto.rs"]
mod auto;
#[path = "../../../core/tests/every/deferred/mod.rs"]
mod deferred;

mod algorithms;
