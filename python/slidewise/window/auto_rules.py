"""The rules by which `algorithm="auto"` chooses the initial algorithm of a window.

Rules are tried in order; the first that matches applies. Its algorithm may be for
entries in order only: at the first call that it refuses, the window migrates to fiba.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.records import RECORDS
from slidewise.window.algorithms import read_table
from slidewise.window.inputs import UDAF

__all__ = [
    "KINDS",
    "QUERY_RULES",
    "RULES",
    "SHARED_RULES",
    "Rule",
    "choose",
    "choose_shared",
    "request_kinds",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        prefer: The value of `prefer=` that it applies to, or None for any.
        of: The aggregations that it applies to, a key of `KINDS`.
        take: The initial algorithm.
        why: The reason, as a clause that follows "because".
        record: The page of bench/record with the figures behind it.
    """

    prefer: str | None
    of: str
    take: str
    why: str
    record: str


# slick_deque keeps a deque or two per aggregation. More aggregations than this take
# more memory and time than flat_fit where values are monotonic, which fills the deques.
MOST_SELECTIVE = 4

# The values of `Rule.of`, and their descriptions.
KINDS = {
    "holistic": "holistic aggregations, which need all values",
    "exact": "counts and sums of integers, which can be subtracted exactly",
    "selective": f"up to {MOST_SELECTIVE} aggregations such as max",
    "custom": "custom aggregations",
    "sketch": "sketches",
    "any": "any aggregation",
}


def _rules(name: str) -> tuple[Rule, ...]:
    return tuple(Rule(**{"prefer": None, **rule}) for rule in read_table()[name])


RULES = _rules("rule")
SHARED_RULES = _rules("shared_rule")
QUERY_RULES = _rules("query_rule")


def request_kinds(
    aggs: Sequence[tuple[str | None, Aggregation]],
    requests: Sequence[Call],
) -> list[tuple[str, bool]]:
    """The kind of each request, and whether it is custom and has an inverse."""
    return [
        (call.kind, getattr(agg, "inverse", None) is not None)
        for (_, agg), call in zip(aggs, requests, strict=True)
    ]


def choose(kinds: Sequence[tuple[str, bool]], floats: bool, prefer: str | None) -> Rule:
    """The rule for a window.

    Example:
        >>> choose([("sum", False)], False, "latency").take
        'subtract_on_evict'
        >>> choose([("max", False)], False, None).take
        'fiba'
    """
    matching = {"any"} | {_group(kind) for kind, _ in kinds}
    if _core.subtracts_exactly(kinds, floats):
        matching.add("exact")
    hints = (prefer, None)
    return next(rule for rule in RULES if rule.of in matching and rule.prefer in hints)


def _group(kind: str) -> str:
    """The group of a kind as the core reads it, such as "quantile 0.5 linear"."""
    if kind == UDAF:
        return "custom"
    record = RECORDS.get(kind.replace(":", " ").split()[0])
    return "" if record is None else record.group


def choose_shared(
    kinds: Sequence[tuple[str, bool]], floats: bool, columns: int, queries: bool = False
) -> Rule:
    """The rule for a shared window.

    Example:
        >>> choose_shared([("sum", False)], True, 1).take
        'flat_fit'
    """
    matching = {"any"}
    if len(kinds) <= MOST_SELECTIVE and _core.obeys_law("selection", kinds, columns):
        matching.add("selective")
    if _core.subtracts_exactly(kinds, floats):
        matching.add("exact")
    rules = QUERY_RULES if queries else SHARED_RULES
    return next(rule for rule in rules if rule.of in matching)
