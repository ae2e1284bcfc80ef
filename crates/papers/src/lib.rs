//! The structures of the papers beside those that slidewise chooses for its users.
//!
//! They exist for comparison: to reproduce the papers' figures, and to measure what a design
//! brings. `algorithm=` takes all of them by name; `algorithm="auto"` takes none. Their
//! traits and their queues are those of `slidewise-core`, which does not know them.
//!
//! A module imports only from lower floors (`tests/project/test_rust_imports.py`):
//!
//! ```text
//! planned
//! algorithm
//! daba_late reactive
//! btree fifo costs
//! ```

pub mod algorithm;
pub mod btree;
pub mod costs;
pub mod daba_late;
pub mod fifo;
pub mod planned;
pub mod reactive;
