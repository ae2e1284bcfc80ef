//! The table of algorithms by name: the law that each needs, its operations and parameters.
//!
//! A crate with more structures has an enum and a table of its own, of the same form.

use crate::monoid::Law;

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    Fiba,
    DabaLite,
    TwoStacksLite,
    SubtractOnEvict,
    SlickDeque,
    FlatFit,
    Recalculate,
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

/// The properties of an algorithm, whatever its enum.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    pub name: &'static str,
    /// Takes entries in order only.
    pub in_order: bool,
    /// Answers for parts of the window.
    pub ranges: bool,
    /// The law it cannot do without.
    pub law: Option<Law>,
    /// Serves many ranges over one stream, too: see [`shared`](super::shared).
    pub shared: bool,
    /// Serves queries with range and slide, too: see [`queries`](super::queries).
    pub queries: bool,
    /// Keeps all values of a window, as holistic aggregations need.
    pub keeps_values: bool,
    pub parameters: &'static [Parameter],
}

impl Properties {
    /// Those of an algorithm that takes entries in any order.
    pub const ANY_ORDER: Self = Self {
        name: "",
        in_order: false,
        ranges: true,
        law: None,
        shared: false,
        queries: false,
        keeps_values: false,
        parameters: &[],
    };

    /// Those of an algorithm for entries in order.
    pub const IN_ORDER: Self = Self {
        in_order: true,
        ranges: false,
        ..Self::ANY_ORDER
    };

    /// Those of an algorithm for entries in order that serves many ranges and queries.
    pub const SHARED: Self = Self {
        shared: true,
        queries: true,
        ..Self::IN_ORDER
    };

    /// A value per parameter, of which those not given take their defaults; `None` if one is
    /// unknown or has a value it cannot have.
    pub fn values(&self, given: &[(String, i64)]) -> Option<Vec<i64>> {
        let known = |name: &str| self.parameters.iter().find(|p| p.name == name);
        let fits =
            |(name, value): &(String, i64)| known(name)?.allowed.admits(*value).then_some(());
        given.iter().try_for_each(fits)?;
        let values = self.parameters.iter().map(|parameter| {
            let given = given.iter().find(|(name, _)| name == parameter.name);
            given.map_or(parameter.default, |(_, value)| *value)
        });
        Some(values.collect())
    }
}

/// The algorithms, in the order in which they are shown.
pub static ALGORITHMS: [(Properties, Algorithm); 7] = [
    (
        Properties {
            name: "fiba",
            queries: true,
            keeps_values: true,
            ..Properties::ANY_ORDER
        },
        Algorithm::Fiba,
    ),
    (
        Properties {
            name: "daba_lite",
            ..Properties::IN_ORDER
        },
        Algorithm::DabaLite,
    ),
    (
        Properties {
            name: "two_stacks_lite",
            ..Properties::IN_ORDER
        },
        Algorithm::TwoStacksLite,
    ),
    (
        Properties {
            name: "subtract_on_evict",
            law: Some(Law::Inverse),
            ..Properties::IN_ORDER
        },
        Algorithm::SubtractOnEvict,
    ),
    (
        Properties {
            name: "slick_deque",
            law: Some(Law::InverseOrSelection),
            ..Properties::SHARED
        },
        Algorithm::SlickDeque,
    ),
    (
        Properties {
            name: "flat_fit",
            ..Properties::SHARED
        },
        Algorithm::FlatFit,
    ),
    (
        Properties {
            name: "recalculate",
            shared: true,
            queries: true,
            keeps_values: true,
            ..Properties::ANY_ORDER
        },
        Algorithm::Recalculate,
    ),
];
