//! Windows of algorithms by name over aggregations by name, as one type: for bindings.

pub mod algorithm;
pub mod any;
pub mod auto;
pub mod holistic;
pub mod plain;
pub mod queries;
pub mod shared;
