//! Tests of planned windows of the papers: every algorithm over every representation.

#[path = "../../common/mod.rs"]
mod common;

// What each algorithm must pass, over those of `algorithms`.
#[path = "../../every/auto.rs"]
mod auto;
#[path = "../../every/deferred/mod.rs"]
mod deferred;

mod algorithms;
