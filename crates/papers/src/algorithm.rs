//! The table of algorithms by name, beside that of the core.

use slidewise_core::window::planned::algorithm::{Allowed, Parameter, Properties};

use crate::btree::Options;
use crate::reactive::MIN_CAPACITY;

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    Amta,
    FlatFat { capacity: usize },
    Reactive { capacity: usize },
    BInt,
    DabaChain,
    DabaLate { bound: i64 },
    BTree { arity: usize },
    FibaPublished { arity: usize, options: Options },
    Daba { caching: bool },
    Aba { caching: bool },
    TwoStacks { caching: bool },
}

/// Makes an algorithm, given a value per parameter.
pub type Make = fn(&[i64]) -> Algorithm;

/// The minimum arity of a published tree.
const ARITY: Parameter = Parameter {
    name: "arity",
    default: 4,
    allowed: Allowed::OneOf(&[2, 4, 8, 16]),
};

/// Entries for which there is always room.
const fn capacity(default: i64) -> Parameter {
    Parameter {
        name: "capacity",
        default,
        allowed: Allowed::From(1),
    }
}

const fn flag(name: &'static str) -> Parameter {
    Parameter {
        name,
        default: 1,
        allowed: Allowed::Flag,
    }
}

/// Keeps what was computed, for another query or for the steps that follow.
const CACHING: &[Parameter] = &[flag("caching")];

/// The algorithms, in the order in which they are shown.
pub static ALGORITHMS: [(Properties, Make); 11] = [
    (
        Properties {
            name: "amta",
            ranges: true,
            ..Properties::SHARED
        },
        |_| Algorithm::Amta,
    ),
    (
        Properties {
            name: "flat_fat",
            ranges: true,
            parameters: &[capacity(64)],
            ..Properties::SHARED
        },
        |given| Algorithm::FlatFat {
            capacity: given[0] as usize,
        },
    ),
    (
        Properties {
            name: "reactive",
            ranges: true,
            parameters: &[capacity(MIN_CAPACITY as i64)],
            ..Properties::IN_ORDER
        },
        |given| Algorithm::Reactive {
            capacity: given[0] as usize,
        },
    ),
    (
        Properties {
            name: "b_int",
            ranges: true,
            ..Properties::SHARED
        },
        |_| Algorithm::BInt,
    ),
    (
        Properties {
            name: "daba_chain",
            ..Properties::SHARED
        },
        |_| Algorithm::DabaChain,
    ),
    (
        Properties {
            name: "daba_late",
            parameters: &[Parameter {
                name: "latency",
                default: i64::MAX,
                allowed: Allowed::From(1),
            }],
            ..Properties::ANY_ORDER
        },
        |given| Algorithm::DabaLate { bound: given[0] },
    ),
    (
        Properties {
            name: "btree",
            parameters: &[ARITY],
            ..Properties::ANY_ORDER
        },
        |given| Algorithm::BTree {
            arity: given[0] as usize,
        },
    ),
    (
        Properties {
            name: "fiba_published",
            parameters: &[ARITY, flag("bulk"), flag("free_list")],
            ..Properties::ANY_ORDER
        },
        |given| Algorithm::FibaPublished {
            arity: given[0] as usize,
            options: Options {
                bulk: given[1] == 1,
                free_list: given[2] == 1,
            },
        },
    ),
    (
        Properties {
            name: "daba",
            parameters: CACHING,
            ..Properties::IN_ORDER
        },
        |given| Algorithm::Daba {
            caching: given[0] != 0,
        },
    ),
    (
        Properties {
            name: "aba",
            parameters: CACHING,
            ..Properties::IN_ORDER
        },
        |given| Algorithm::Aba {
            caching: given[0] != 0,
        },
    ),
    (
        Properties {
            name: "two_stacks",
            parameters: CACHING,
            ..Properties::IN_ORDER
        },
        |given| Algorithm::TwoStacks {
            caching: given[0] != 0,
        },
    ),
];
