"""What tests of `SharedWindow` share: structures, and aggregations by definition."""

from datetime import datetime

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS

# The final aggregators of queries, and those for any aggregation.
FINAL = [name for name, known in ALGORITHMS.items() if known.serves_queries]
GENERAL_FINAL = [name for name in FINAL if ALGORITHMS[name].law is None]
START = datetime(2024, 3, 1)


@sw.aggregation
class Joined:
    """Concatenation of text, which reveals the order."""

    identity = ""
    lift = staticmethod(str)

    @staticmethod
    def combine(older, younger):
        return older + younger


@sw.aggregation
class Total:
    """A custom sum with an inverse."""

    identity = 0

    @staticmethod
    def combine(older, younger):
        return older + younger

    @staticmethod
    def inverse(whole, earliest):
        return whole - earliest


def present(values):
    return [value for value in values if value is not None]


def reduced(function):
    return lambda values: function(present(values)) if present(values) else None


# The aggregation, its definition, and whether slick_deque takes it.
AGGS = {
    "sum": (sw.sum(), reduced(sum), True),
    "max": (sw.max(), reduced(max), True),
    "min": (sw.min(), reduced(min), True),
    "rows": (sw.count(), len, True),
    "mean": (sw.mean(), reduced(lambda v: sum(v) / len(v)), True),
    "first": (sw.first(), reduced(lambda v: v[0]), True),
    "last": (sw.last(), reduced(lambda v: v[-1]), True),
    "range": (sw.range(), reduced(lambda v: max(v) - min(v)), True),
    "extremes": (
        {"lo": sw.min(), "hi": sw.max(), "one": sw.first()},
        lambda v: (
            {"lo": reduced(min)(v), "hi": reduced(max)(v), "one": present(v)[0]}
            if present(v)
            else {"lo": None, "hi": None, "one": None}
        ),
        True,
    ),
    "ties": (sw.max_count(), reduced(lambda v: v.count(max(v))), False),
    "all": (sw.collect(), present, False),
    "joined": (Joined, reduced(lambda v: "".join(map(str, v))), False),
    "total": (Total, reduced(sum), True),
    "several": (
        {"n": sw.count(), "top": sw.max(), "all": sw.collect()},
        lambda v: {"n": len(v), "top": reduced(max)(v), "all": present(v)},
        False,
    ),
}
