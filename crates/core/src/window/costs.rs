//! The costs of the algorithms in one table, which cards and explanations show and tests count.
//!
//! Combines include inverses, and the comparisons of a selective combine. n is the most entries
//! that the window holds in the course of an operation, from sixteen on. Amortised costs are
//! those of a window that keeps its length, of entries in order.
//!
//! Moves are entries and partials that are copied to other memory or blanked there; the
//! copies of an allocator that enlarges a block are not counted.

use std::fmt;

use super::Ties;

/// The most entries that a queue moves at once, when few of many are left.
pub const MOVED_AT_ONCE: u64 = 127;

/// a n + b ⌈log₂ n⌉ + c ⌊log₂ n⌋ + d.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formula {
    pub entries: f64,
    pub log_up: f64,
    pub log_down: f64,
    pub one: f64,
}

impl Formula {
    pub fn at(self, n: u64) -> f64 {
        let (down, up) = (n.ilog2(), n.next_power_of_two().ilog2());
        self.entries * n as f64
            + self.log_up * f64::from(up)
            + self.log_down * f64::from(down)
            + self.one
    }

    /// The same of n − 1: ⌊log₂(n − 1)⌋ is ⌈log₂ n⌉ − 1. (⌈log₂ n⌉ stays, as a bound.)
    fn of_one_fewer(self) -> Self {
        Self {
            entries: self.entries,
            log_up: self.log_up + self.log_down,
            log_down: 0.0,
            one: self.one - self.entries - self.log_down,
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = [
            (self.entries, "n"),
            (self.log_up, "⌈log₂ n⌉"),
            (self.log_down, "⌊log₂ n⌋"),
            (self.one, ""),
        ];
        let mut first = true;
        for (factor, unit) in terms.into_iter().filter(|(factor, _)| *factor != 0.0) {
            let sign = match (first, factor < 0.0) {
                (true, false) => "",
                (true, true) => "−",
                (false, false) => " + ",
                (false, true) => " − ",
            };
            let size = factor.abs();
            match unit {
                "" => write!(f, "{sign}{size}")?,
                _ if size == 1.0 => write!(f, "{sign}{unit}")?,
                _ if size < 1.0 => write!(f, "{sign}{unit} / {}", 1.0 / size)?,
                _ => write!(f, "{sign}{size} {unit}")?,
            }
            first = false;
        }
        if first { write!(f, "0") } else { Ok(()) }
    }
}

/// A number of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Exactly(Formula),
    /// O(…) of the text.
    Order(&'static str),
}

impl Amount {
    /// The number, if there is one.
    pub fn at(self, n: u64) -> Option<f64> {
        match self {
            Self::Exactly(formula) => Some(formula.at(n)),
            Self::Order(_) => None,
        }
    }

    fn plus(self, more: f64) -> Self {
        match self {
            Self::Exactly(mut formula) => {
                formula.one += more;
                Self::Exactly(formula)
            }
            order => order,
        }
    }

    fn of_one_fewer(self) -> Self {
        match self {
            Self::Exactly(formula) => Self::Exactly(formula.of_one_fewer()),
            order => order,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(formula) => formula.fmt(f),
            Self::Order(of) => write!(f, "O({of})"),
        }
    }
}

/// The cost of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub amortised: Amount,
    pub worst: Amount,
}

impl Cost {
    fn of_one_fewer(self) -> Self {
        Self {
            amortised: self.amortised.of_one_fewer(),
            worst: self.worst.of_one_fewer(),
        }
    }

    fn plus(self, more: f64) -> Self {
        Self {
            amortised: self.amortised.plus(more),
            worst: self.worst.plus(more),
        }
    }
}

/// The cost of an operation on m entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bulk {
    /// The cost of m single operations.
    OneByOne,
    AtMost(Amount),
    /// The cost in the text, by m and d.
    Order(&'static str),
}

impl Bulk {
    fn of_one_fewer(self) -> Self {
        match self {
            Self::AtMost(amount) => Self::AtMost(amount.of_one_fewer()),
            other => other,
        }
    }
}

impl fmt::Display for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneByOne => write!(f, "one by one"),
            Self::AtMost(amount) => write!(f, "at most {amount} combines"),
            Self::Order(text) => write!(f, "{text}"),
        }
    }
}

/// The costs of an algorithm, in combines, and its `moves`.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub insert: Cost,
    pub evict: Cost,
    pub query: Cost,
    /// The cost of a query if nothing has changed since the last one.
    pub repeated: Amount,
    /// The cost of an insert, an evict and a query together.
    pub slide: Cost,
    pub evict_until: Bulk,
    pub insert_many: Bulk,
    /// The moves of a single operation.
    pub moves: Amount,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct CostCard {
    pub algorithm: &'static str,
    /// The variant, by parameters or by the aggregation; empty for the default.
    pub variant: &'static str,
    /// The costs under `Ties::Keep`.
    kept: Costs,
    /// Under `Ties::Combine` the structure holds all but the latest entry, with which
    /// others may still be combined: each query combines it after the answer.
    open: bool,
}

impl CostCard {
    /// The same for a variant.
    pub const fn variant(mut self, variant: &'static str) -> Self {
        self.variant = variant;
        self
    }

    pub fn costs(&self, ties: Ties) -> Costs {
        if ties == Ties::Keep || !self.open {
            return self.kept;
        }
        let kept = self.kept;
        Costs {
            insert: kept.insert.of_one_fewer(),
            evict: kept.evict.of_one_fewer(),
            query: kept.query.of_one_fewer().plus(1.0),
            repeated: kept.repeated.of_one_fewer().plus(1.0),
            slide: kept.slide.of_one_fewer().plus(1.0),
            evict_until: kept.evict_until.of_one_fewer(),
            insert_many: kept.insert_many,
            moves: kept.moves,
        }
    }
}

/// a n + d.
pub const fn n(entries: f64, one: f64) -> Amount {
    Amount::Exactly(Formula {
        entries,
        log_up: 0.0,
        log_down: 0.0,
        one,
    })
}

/// b ⌈log₂ n⌉ + c ⌊log₂ n⌋ + d.
pub const fn logs(log_up: f64, log_down: f64, one: f64) -> Amount {
    Amount::Exactly(Formula {
        entries: 0.0,
        log_up,
        log_down,
        one,
    })
}

/// b ⌈log₂ n⌉ + d.
pub const fn up(log_up: f64, one: f64) -> Amount {
    logs(log_up, 0.0, one)
}

/// c ⌊log₂ n⌋ + d.
pub const fn down(log_down: f64, one: f64) -> Amount {
    logs(0.0, log_down, one)
}

/// d.
pub const fn one(one: f64) -> Amount {
    n(0.0, one)
}

pub const fn cost(amortised: Amount, worst: Amount) -> Cost {
    Cost { amortised, worst }
}

/// A cost that is the same in the worst case.
pub const fn always(amount: Amount) -> Cost {
    cost(amount, amount)
}

/// A row of a structure with an open entry.
pub const fn row(algorithm: &'static str, kept: Costs) -> CostCard {
    CostCard {
        algorithm,
        variant: "",
        kept,
        open: true,
    }
}

/// A row of a structure without an open entry.
pub const fn closed(algorithm: &'static str, variant: &'static str, kept: Costs) -> CostCard {
    CostCard {
        algorithm,
        variant,
        kept,
        open: false,
    }
}

pub const NONE: Cost = always(one(0.0));
const ONE: Cost = always(one(1.0));
pub const LOG_N: Amount = Amount::Order("log n");
const MOVED: Amount = one(MOVED_AT_ONCE as f64);

/// Two stacks, without a cache.
pub const STACKS: Costs = Costs {
    insert: ONE,
    evict: cost(one(1.0), n(1.0, -1.0)),
    query: ONE,
    repeated: one(1.0),
    slide: cost(one(3.0), n(1.0, 0.0)),
    evict_until: Bulk::OneByOne,
    insert_many: Bulk::OneByOne,
    moves: n(1.0, 0.0),
};

/// DABA without a cache of the answer.
pub const BANKERS: Costs = Costs {
    insert: cost(one(2.0), one(3.0)),
    evict: cost(one(1.0), one(2.0)),
    slide: cost(one(4.0), one(6.0)),
    moves: MOVED,
    ..STACKS
};

const SUBTRACTING: Costs = Costs {
    insert: ONE,
    evict: ONE,
    query: NONE,
    repeated: one(0.0),
    slide: always(one(2.0)),
    moves: MOVED,
    ..STACKS
};

/// FiBA; the combines of a slide depend on what a node holds.
pub const fn fingers(slide: f64) -> Costs {
    Costs {
        insert: cost(Amount::Order("1"), LOG_N),
        evict: cost(Amount::Order("1"), LOG_N),
        query: always(one(2.0)),
        repeated: one(2.0),
        slide: cost(one(slide), LOG_N),
        evict_until: Bulk::Order("amortised O(log m), worst O(log n)"),
        insert_many: Bulk::Order("O(log d + m (1 + log(d/m)))"),
        moves: LOG_N,
    }
}

/// FiBA that moves a third of the entries when the others have left.
const fn fingers_that_shrink(slide: f64) -> Costs {
    Costs {
        moves: n(1.0 / 3.0, 0.0),
        ..fingers(slide)
    }
}

/// The table, in the order in which algorithms are shown; the default of each comes first.
pub static TABLE: [CostCard; 9] = [
    closed("fiba", "", fingers_that_shrink(5.2)),
    closed("fiba", "custom aggregations", fingers_that_shrink(5.5)),
    row("daba_lite", BANKERS),
    row(
        "two_stacks_lite",
        Costs {
            evict_until: Bulk::AtMost(n(1.0, -2.0)),
            ..STACKS
        },
    ),
    row("subtract_on_evict", SUBTRACTING),
    row("slick_deque", SUBTRACTING).variant("Inv"),
    row(
        "slick_deque",
        Costs {
            insert: cost(one(2.0), n(1.0, -1.0)),
            evict: NONE,
            slide: cost(one(2.0), n(1.0, -1.0)),
            ..SUBTRACTING
        },
    )
    .variant("Non-Inv"),
    row(
        "flat_fit",
        Costs {
            insert: NONE,
            evict: NONE,
            query: cost(one(3.0), n(1.0, -1.0)),
            repeated: one(0.0),
            slide: cost(one(3.0), n(1.0, -1.0)),
            moves: n(2.0, 0.0),
            ..STACKS
        },
    ),
    closed(
        "recalculate",
        "",
        Costs {
            insert: NONE,
            evict: NONE,
            query: always(n(1.0, -1.0)),
            repeated: n(1.0, -1.0),
            slide: always(n(1.0, -1.0)),
            moves: Amount::Order("n"),
            ..STACKS
        },
    ),
];
