//! Tests of the structures themselves: random scripts beside `recalculate`, costs by
//! counting combines, the papers' traces, damaged bytes, memory that comes back.

#[path = "../../common/mod.rs"]
mod common;

#[path = "../../structures/suite/mod.rs"]
mod suite;

mod cards;
mod costs_flat;
mod costs_hybrids;
mod costs_in_order;
mod costs_moves;
mod costs_reactive;
mod costs_shared;
mod costs_steps;
mod costs_trees;
mod each;
mod hybrids;
mod in_order;
mod queries;
mod reactive;
mod shared;
mod space;
mod traces;
mod traces_trees;
mod trees;
