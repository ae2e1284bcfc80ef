//! The costs of these algorithms, as [`slidewise_core::window::costs`] has those of the core.

use slidewise_core::window::costs::{
    BANKERS, Bulk, CostCard, Costs, LOG_N, NONE, STACKS, always, closed, cost, down, fingers, logs,
    n, one, row, up,
};

/// Figure 14 of the report on DABA.
const UNCACHED: Costs = Costs {
    insert: cost(one(2.5), one(4.0)),
    evict: cost(one(1.5), one(3.0)),
    slide: cost(one(5.0), one(8.0)),
    ..BANKERS
};

const fn cached(costs: Costs) -> Costs {
    Costs {
        repeated: one(0.0),
        ..costs
    }
}

const FLAT_FAT: Costs = Costs {
    insert: NONE,
    evict: NONE,
    query: cost(up(2.0, 1.0), n(1.0, -1.0)),
    repeated: LOG_N,
    slide: cost(up(2.0, 1.0), n(1.0, -2.0)),
    moves: n(5.0, 0.0),
    ..STACKS
};

const BTREE: Costs = Costs {
    insert: always(LOG_N),
    evict: always(LOG_N),
    query: NONE,
    repeated: one(0.0),
    slide: always(LOG_N),
    moves: LOG_N,
    ..STACKS
};

/// The table, in the order in which algorithms are shown; the default of each comes first.
pub static TABLE: [CostCard; 17] = [
    row(
        "amta",
        Costs {
            insert: cost(one(2.0), down(1.0, 1.0)),
            evict: cost(one(1.0), up(2.0, -3.0)),
            slide: cost(one(4.0), up(3.0, -3.0)),
            evict_until: Bulk::AtMost(up(2.0, -3.0)),
            moves: n(6.0, 0.0),
            ..STACKS
        },
    ),
    row("flat_fat", FLAT_FAT),
    closed("reactive", "", FLAT_FAT),
    row(
        "b_int",
        Costs {
            insert: cost(one(1.0), down(1.0, 0.0)),
            evict: NONE,
            query: cost(up(1.0, -1.0), up(2.0, -3.0)),
            repeated: LOG_N,
            slide: cost(up(1.0, 0.0), logs(1.0, 1.0, -1.0)),
            moves: n(6.0, 0.0),
            ..STACKS
        },
    ),
    row("daba_chain", BANKERS),
    row(
        "daba_late",
        Costs {
            query: always(one(4.0)),
            repeated: one(4.0),
            ..fingers(21.8)
        },
    ),
    closed("btree", "", BTREE),
    closed("fiba_published", "", fingers(16.8)),
    closed("fiba_published", "arity=2", fingers(11.0)),
    closed("fiba_published", "arity=8", fingers(24.3)),
    closed("fiba_published", "arity=16", fingers(37.0)),
    row("daba", cached(BANKERS)),
    row("daba", UNCACHED).variant("caching=False"),
    row("aba", cached(STACKS)),
    row("aba", STACKS).variant("caching=False"),
    row("two_stacks", cached(STACKS)),
    row("two_stacks", STACKS).variant("caching=False"),
];
