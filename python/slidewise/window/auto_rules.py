"""The rules by which `algorithm="auto"` chooses what a window begins with.

Rules are tried in order and the first that fits is taken. What a rule takes need not
cope with any order: at the first call that it refuses, "auto" goes over to fiba.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import slidewise._core as _core
from slidewise.aggregations import HOLISTIC, Aggregation
from slidewise.aggregations.compiled import NativeAggregation
from slidewise.aggregations.custom import CustomAggregation
from slidewise.aggregations.sketches import SKETCHES
from slidewise.window.algorithms import read_table

__all__ = [
    "RULES",
    "SHARED_RULES",
    "Rule",
    "choose",
    "choose_shared",
    "kinds_of",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        prefer: The hint that it is for, or None for windows without a hint.
        of: The aggregations that it is for, a key of `KINDS`.
        take: The algorithm to begin with.
        why: The reason, continuing "because".
        record: The page of bench/record with the figures behind it.
    """

    prefer: str | None
    of: str
    take: str
    why: str
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


def _rules(name: str) -> tuple[Rule, ...]:
    return tuple(Rule(**{"prefer": None, **rule}) for rule in read_table()[name])


RULES = _rules("rule")
SHARED_RULES = _rules("shared_rule")


def kinds_of(
    aggs: Sequence[tuple[str | None, Aggregation]],
    requests: Sequence[tuple[Any, ...]],
) -> list[tuple[str, bool]]:
    """The kind of each request, and whether it brings an inverse of the user's own."""
    return [
        (
            kind,
            isinstance(agg, CustomAggregation | NativeAggregation)
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
