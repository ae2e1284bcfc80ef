//! The table of algorithms by name: the law that each needs, its operations and parameters.

use crate::monoid::Law;
use crate::window::fiba_published::Options;

/// An algorithm with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    Amta,
    BInt,
    BTree { arity: usize },
    DabaChain,
    DabaLate { bound: i64 },
    Fiba,
    FibaPublished { arity: usize, options: Options },
    FlatFat { capacity: usize },
    FlatFit,
    Reactive,
    Recalculate,
    SlickDeque,
    SubtractOnEvict,
    TwoStacks { caching: bool },
    TwoStacksLite,
    Aba { caching: bool },
    Daba { caching: bool },
    DabaLite,
}

impl Algorithm {
    /// The law it cannot do without.
    pub fn law(self) -> Option<Law> {
        match self {
            Self::SubtractOnEvict => Some(Law::Inverse),
            Self::SlickDeque => Some(Law::InverseOrSelection),
            _ => None,
        }
    }

    /// Whether it keeps all values of a window, as holistic aggregations need.
    pub fn keeps_values(self) -> bool {
        matches!(self, Self::Fiba | Self::Recalculate)
    }

    /// Whether [`queries`](super::queries) makes windows of it.
    pub fn serves_queries(self) -> bool {
        self == Self::Fiba || self.is_shared()
    }

    /// Whether [`shared`](super::shared) makes windows of it.
    pub fn is_shared(self) -> bool {
        matches!(
            self,
            Self::Amta
                | Self::BInt
                | Self::DabaChain
                | Self::FlatFat { .. }
                | Self::FlatFit
                | Self::Recalculate
                | Self::SlickDeque
        )
    }
}

/// A parameter of an algorithm; flags are 0 and 1.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub default: i64,
    pub allowed: Allowed,
}

#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    Flag,
    OneOf(&'static [i64]),
    /// At least this.
    From(i64),
}

impl Allowed {
    pub fn admits(self, value: i64) -> bool {
        match self {
            Self::Flag => matches!(value, 0 | 1),
            Self::OneOf(values) => values.contains(&value),
            Self::From(least) => value >= least,
        }
    }
}

/// The properties of an algorithm.
#[derive(Debug)]
pub struct AlgorithmInfo {
    pub name: &'static str,
    /// Takes entries in order only.
    pub in_order: bool,
    /// Answers for parts of the window.
    pub ranges: bool,
    pub parameters: &'static [Parameter],
    /// The algorithm, given a value per parameter.
    make: fn(&[i64]) -> Algorithm,
}

impl AlgorithmInfo {
    /// The law it cannot do without.
    pub fn law(&self) -> Option<Law> {
        self.with(&[]).and_then(Algorithm::law)
    }

    /// Whether it serves many ranges over one stream, too.
    pub fn shared(&self) -> bool {
        self.with(&[]).is_some_and(Algorithm::is_shared)
    }

    pub fn find(name: &str) -> Option<&'static Self> {
        ALGORITHMS.iter().find(|info| info.name == name)
    }

    /// The algorithm with its parameters, of which those not given take their defaults;
    /// `None` if one is unknown or has a value it cannot have.
    pub fn with(&self, given: &[(String, i64)]) -> Option<Algorithm> {
        let known = |name: &str| self.parameters.iter().find(|p| p.name == name);
        let fits =
            |(name, value): &(String, i64)| known(name)?.allowed.admits(*value).then_some(());
        given.iter().try_for_each(fits)?;
        let values = self.parameters.iter().map(|parameter| {
            let given = given.iter().find(|(name, _)| name == parameter.name);
            given.map_or(parameter.default, |(_, value)| *value)
        });
        Some((self.make)(&values.collect::<Vec<_>>()))
    }
}

const ANY_ORDER: AlgorithmInfo = AlgorithmInfo {
    name: "",
    in_order: false,
    ranges: true,
    parameters: &[],
    make: |_| Algorithm::Recalculate,
};

const IN_ORDER: AlgorithmInfo = AlgorithmInfo {
    in_order: true,
    ranges: false,
    ..ANY_ORDER
};

/// The minimum arity of a published tree.
const ARITY: Parameter = Parameter {
    name: "arity",
    default: 4,
    allowed: Allowed::OneOf(&[2, 4, 8, 16]),
};

/// Keeps what was computed, for another query or for the steps that follow.
const CACHING: &[Parameter] = &[Parameter {
    name: "caching",
    default: 1,
    allowed: Allowed::Flag,
}];

/// The algorithms, in the order in which they are shown.
pub static ALGORITHMS: [AlgorithmInfo; 18] = [
    AlgorithmInfo {
        name: "fiba",
        make: |_| Algorithm::Fiba,
        ..ANY_ORDER
    },
    AlgorithmInfo {
        name: "daba_lite",
        make: |_| Algorithm::DabaLite,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "two_stacks_lite",
        make: |_| Algorithm::TwoStacksLite,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "subtract_on_evict",
        make: |_| Algorithm::SubtractOnEvict,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "slick_deque",
        make: |_| Algorithm::SlickDeque,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "amta",
        ranges: true,
        make: |_| Algorithm::Amta,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "flat_fat",
        ranges: true,
        parameters: &[Parameter {
            name: "capacity",
            default: 64,
            allowed: Allowed::From(1),
        }],
        make: |given| Algorithm::FlatFat {
            capacity: given[0] as usize,
        },
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "reactive",
        ranges: true,
        make: |_| Algorithm::Reactive,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "b_int",
        ranges: true,
        make: |_| Algorithm::BInt,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "flat_fit",
        make: |_| Algorithm::FlatFit,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "daba_chain",
        make: |_| Algorithm::DabaChain,
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "daba_late",
        parameters: &[Parameter {
            name: "latency",
            default: i64::MAX,
            allowed: Allowed::From(1),
        }],
        make: |given| Algorithm::DabaLate { bound: given[0] },
        ..ANY_ORDER
    },
    AlgorithmInfo {
        name: "btree",
        parameters: &[ARITY],
        make: |given| Algorithm::BTree {
            arity: given[0] as usize,
        },
        ..ANY_ORDER
    },
    AlgorithmInfo {
        name: "fiba_published",
        parameters: &[
            ARITY,
            Parameter {
                name: "bulk",
                default: 1,
                allowed: Allowed::Flag,
            },
            Parameter {
                name: "free_list",
                default: 1,
                allowed: Allowed::Flag,
            },
        ],
        make: |given| Algorithm::FibaPublished {
            arity: given[0] as usize,
            options: Options {
                bulk: given[1] == 1,
                free_list: given[2] == 1,
            },
        },
        ..ANY_ORDER
    },
    AlgorithmInfo {
        name: "daba",
        parameters: CACHING,
        make: |values| Algorithm::Daba {
            caching: values[0] != 0,
        },
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "aba",
        parameters: CACHING,
        make: |values| Algorithm::Aba {
            caching: values[0] != 0,
        },
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "two_stacks",
        parameters: CACHING,
        make: |values| Algorithm::TwoStacks {
            caching: values[0] != 0,
        },
        ..IN_ORDER
    },
    AlgorithmInfo {
        name: "recalculate",
        ..ANY_ORDER
    },
];
