//! Tests of the structures themselves: random scripts beside `recalculate`, costs by
//! counting combines, damaged bytes, memory that comes back. One program, because most of
//! its compiling is windows and scripts that several of these files use.

#[path = "../common/mod.rs"]
mod common;

mod costs;
mod costs_cards;
mod costs_flat;
mod costs_hybrids;
mod costs_in_order;
mod costs_moves;
mod costs_queries;
mod costs_reactive;
mod costs_shared;
mod costs_steps;
mod costs_trees;
mod damaged;
mod drive;
mod each;
mod heavy;
mod hybrids;
mod in_order;
mod oracle;
mod queue;
mod reactive;
mod release;
mod shared;
mod sketches;
mod space;
mod traces;
mod traces_trees;
mod trees;
