//! Tests that any structure must pass, and what they are made of. Each crate that has
//! structures runs them over the lists in its `each` and `cards`.
#![allow(dead_code, reason = "each crate uses a part")]

mod bulks;
pub mod costs_cards;
mod damaged;
pub mod drive;
pub mod each;
pub mod fifo_costs;
pub mod full_windows;
pub mod heavy;
pub mod in_order;
pub mod queries;
mod release;
pub mod shared;
