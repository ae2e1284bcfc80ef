"""What `algorithm="auto"` begins with: a table of rules, and nothing else decides.

Rules are tried in order and the first that fits is taken. What a rule takes need not
cope with any order: at the first call that it refuses, "auto" goes over to fiba.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import slidewise._core as _core
from slidewise.aggregations import HOLISTIC, Aggregation
from slidewise.aggregations.compiled import NativeAggregation
from slidewise.aggregations.custom import OwnAggregation
from slidewise.aggregations.sketches import SKETCHES
from slidewise.window.algorithms import card_of

__all__ = [
    "RULES",
    "SHARED_RULES",
    "Rule",
    "choose",
    "choose_shared",
    "kinds_of",
    "why_lines",
]


class Asked(Protocol):
    """What there is to know of a plan."""

    @property
    def aggs(self) -> tuple[tuple[str | None, Aggregation], ...]:
        """The aggregations."""

    @property
    def requests(self) -> Sequence[tuple[Any, ...]]:
        """Their kinds, and what the core wants to know beside."""

    @property
    def asked(self) -> str:
        """The algorithm, by the name the user gave."""

    @property
    def prefer(self) -> str | None:
        """The hint."""

    @property
    def feeds(self) -> Sequence[Any]:
        """The columns under the aggregations."""

    @property
    def range_count(self) -> int:
        """How many ranges a shared window has; 0 for a window."""

    def first(self, dtypes: Sequence[str | None]) -> str:
        """What a window with columns of these types begins with."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        prefer: The hint that it is for, or None for windows without a hint.
        of: The aggregations that it is for, a key of `KINDS`.
        take: The algorithm to begin with.
        why: The reason, continuing "because".
        measured: The figures behind it, with what was measured.
        record: Where they come from: a page of bench/record.
    """

    prefer: str | None
    of: str
    take: str
    why: str
    measured: str
    record: str


# What `Rule.of` means.
KINDS = {
    "holistic": "aggregations that need all values at once",
    "exact": "counts and sums of integers, which can be subtracted exactly",
    "selective": "what is one of the values, as max is",
    "own": "aggregations of your own",
    "sketch": "sketches",
    "any": "any aggregation",
}

RULES = (
    Rule(
        prefer=None,
        of="holistic",
        take="fiba",
        why="entries lie in its tree by time, and their values beside it by rank or "
        "with their counts, so that any of them can leave; partial results would not "
        "tell",
        measured="a slide of a window of 2¹⁴, median: 1.6 us, recalculate 738",
        record="2026-11-22-auto.md",
    ),
    Rule(
        prefer="throughput",
        of="own",
        take="two_stacks",
        why="as long as order holds, no other combines less often, which is what "
        "costs; an evict that flips the stacks combines n times",
        measured="combines per slide, max of one's own: 4.0, fiba 5.4; three calls: "
        "4487 ns, fiba 4147, two_stacks_lite 6390",
        record="2026-11-22-auto.md",
    ),
    Rule(
        prefer="throughput",
        of="any",
        take="fiba",
        why="from Python it is as fast per call as the structures that need order, "
        "and faster in bulk",
        measured="sum of ints, three calls: 524 ns, subtract_on_evict 356, "
        "two_stacks_lite 519, within the scatter; bulk of 1024: 106.5 M/s, "
        "subtract_on_evict 60.1, two_stacks_lite 45.1; count, mean, stddev: 1097 ns "
        "and 29.7 M/s, subtract_on_evict 1628 and 4.4, two_stacks_lite 1542 and 4.5",
        record="2026-11-22-auto.md",
    ),
    Rule(
        prefer="latency",
        of="sketch",
        take="fiba",
        why="partials take kilobytes, of which it keeps one in 64 entries; what never "
        "takes long keeps one per entry",
        measured="a window of 10^6 entries, approx_count_distinct: 70 bytes an entry; "
        "daba_lite 2,600",
        record="2026-11-21-native.md",
    ),
    Rule(
        prefer="latency",
        of="exact",
        take="subtract_on_evict",
        why="as long as order holds, every call takes a combine or an inverse at most, "
        "and integers leave no rounding behind",
        measured="an evict, an insert and a query together, sum of ints, n = 2¹⁴: "
        "p99.9 70 ns, p99.99 361, p99.999 3466; fiba 310, 811 and 2674; "
        "two_stacks_lite 70, 631 and 16184",
        record="2026-11-21-latency.md",
    ),
    Rule(
        prefer="latency",
        of="any",
        take="daba_lite",
        why="as long as order holds, no single call takes more than a constant number "
        "of combines: at most 3 an insert, 2 an evict, 1 a query",
        measured="an evict, an insert and a query together, sum of ints, n = 2¹⁴: "
        "p99.9 90 ns, p99.999 2434; fiba 310 and 2674, two_stacks_lite 70 and 16184, "
        "two_stacks 80 and 44606",
        record="2026-11-21-latency.md",
    ),
    Rule(
        prefer=None,
        of="any",
        take="fiba",
        why="it takes any order of arrival at the best known cost; answers take at "
        "most 2 combines",
        measured="sum of ints, three calls: 524 ns, daba_lite 515; bulk of 1024: "
        "106.5 M/s, daba_lite 42.7; late entries the others refuse",
        record="2026-11-22-auto.md",
    ),
)

# The same for `SharedWindow`; "prefer" has no say there.
SHARED_RULES = (
    Rule(
        prefer=None,
        of="selective",
        take="slick_deque",
        why="values that a younger one outdoes are dropped, and one walk over the rest "
        "answers for all ranges",
        measured="max of ints, all ranges from 1 to q, thousand slides/s: q = 16: "
        "22,659, flat_fit 14,695; 1024: 754, flat_fit 217, daba_chain 55, b_int 38, "
        "flat_fat 19",
        record="2026-11-21-ranges.md",
    ),
    Rule(
        prefer=None,
        of="exact",
        take="slick_deque",
        why="a running answer per range takes a combine and an inverse for an entry, "
        "and integers leave no rounding behind",
        measured="sum of ints, all ranges from 1 to q, thousand slides/s: q = 16: "
        "25,294, flat_fit 13,957; 1024: 503, flat_fit 215, daba_chain 55, b_int 42, "
        "flat_fat 19",
        record="2026-11-21-ranges.md",
    ),
    Rule(
        prefer=None,
        of="any",
        take="flat_fit",
        why="asked for often, each answer is a combine away from an earlier one",
        measured="sum of ints, all ranges from 1 to q, thousand slides/s: q = 16: "
        "13,957, b_int 7,844, daba_chain 4,400; 1024: 215, daba_chain 55, b_int 42",
        record="2026-11-21-ranges.md",
    ),
)


def kinds_of(
    aggs: Sequence[tuple[str | None, Aggregation]],
    requests: Sequence[tuple[Any, ...]],
) -> list[tuple[str, bool]]:
    """The kind of each request, and whether it brings an inverse of the user's own."""
    return [
        (
            kind,
            isinstance(agg, OwnAggregation | NativeAggregation)
            and agg.inverse is not None,
        )
        for (_, agg), (kind, *_) in zip(aggs, requests, strict=True)
    ]


def choose(kinds: Sequence[tuple[str, bool]], floats: bool, prefer: str | None) -> Rule:
    """The rule for a window.

    Args:
        kinds: The kind of each aggregation, and whether it brings its own inverse.
        floats: Whether some of the numbers are floats.
        prefer: The user's hint, or None.

    Example:
        >>> choose([("sum", False)], False, "latency").take
        'subtract_on_evict'
        >>> choose([("max", False)], False, None).take
        'fiba'
    """
    fitting = {"any"}
    if any(kind.split()[0] in HOLISTIC for kind, _ in kinds):
        fitting.add("holistic")
    if any(kind == "own" for kind, _ in kinds):
        fitting.add("own")
    if any(kind.partition(":")[0] in SKETCHES for kind, _ in kinds):
        fitting.add("sketch")
    if _core.subtracts_exactly(kinds, floats):
        fitting.add("exact")
    hints = (prefer, None)
    return next(rule for rule in RULES if rule.of in fitting and rule.prefer in hints)


def choose_shared(kinds: Sequence[tuple[str, bool]], floats: bool, feeds: int) -> Rule:
    """The rule for a shared window.

    Args:
        kinds: The kind of each aggregation, and whether it brings its own inverse.
        floats: Whether some of the numbers are floats.
        feeds: How many columns are under all of them.

    Example:
        >>> choose_shared([("sum", False)], True, 1).take
        'flat_fit'
    """
    fitting = {"any"}
    if _core.obeys_law("selection", kinds, feeds):
        fitting.add("selective")
    if _core.subtracts_exactly(kinds, floats):
        fitting.add("exact")
    return next(rule for rule in SHARED_RULES if rule.of in fitting)


def why_lines(
    plan: Asked,
    dtypes: Sequence[str | None],
    migrated: tuple[str, Any, Any] | None,
) -> list[str]:
    """Why a window runs what it runs, in a line or several.

    Args:
        plan: What was asked for.
        dtypes: The types of its columns.
        migrated: What made it go over to fiba, if it has.
    """
    first = plan.first(dtypes)
    if plan.asked != "auto":
        card = card_of(first)
        return [f"{first}: asked for by name; order: {card.order}; query: {card.query}"]
    rule = _rule_of(first, plan, dtypes)
    chosen = f'{first}: chosen by "auto"'
    if rule is None:
        chosen += " of another version, whose reasons are not known here"
    else:
        hint = "" if rule.prefer is None else f"prefer={rule.prefer!r} and "
        chosen += f" for {hint}{KINDS[rule.of]}, because {rule.why}"
    if migrated is None:
        return _wrapped(chosen)
    return [
        *_wrapped(f"fiba: since {_event(*migrated)}; it takes any order of arrival"),
        *_wrapped(f"before that {chosen}"),
    ]


def _rule_of(first: str, plan: Asked, dtypes: Sequence[str | None]) -> Rule | None:
    kinds, floats = kinds_of(plan.aggs, plan.requests), "float64" in dtypes
    if plan.range_count:
        rule = choose_shared(kinds, floats, len(plan.feeds))
    else:
        rule = choose(kinds, floats, plan.prefer)
    return rule if rule.take == first else None


def _event(what: str, first: Any, second: Any) -> str:
    if what == "late":
        return f"an entry at {first} came late, when the youngest was at {second}"
    if what == "inner":
        return f"the entry at {first} was evicted, when the oldest was at {second}"
    lo = "the oldest" if first is None else first
    hi = "the youngest" if second is None else second
    return f"a query asked about {lo} to {hi}, a part of the window"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 80, subsequent_indent="  ")
