//! Tests of the structures themselves: random scripts beside `recalculate`, costs by
//! counting combines, damaged bytes, memory that comes back. One program, because most of
//! its compiling is windows and scripts that several of these files use. `papers_structures`
//! runs `suite` over the papers' structures.

#[path = "../common/mod.rs"]
mod common;

mod cards;
mod costs;
mod costs_flat_fit;
mod costs_in_order;
mod costs_queries;
mod costs_shared;
mod each;
mod in_order;
mod oracle;
mod queries;
mod queue;
mod shared;
mod sketches;
mod suite;
