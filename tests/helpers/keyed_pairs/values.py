"""Aggregations over given rows in plain Python, sketches among them."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import definitions
from definitions import DEFINITIONS, UNKNOWN, Row, is_nan

import slidewise as sw
from slidewise.aggregations.custom import CustomAggregation


def answer(agg: sw.Aggregation, rows: list[Row], nan: str, min_rows: int) -> Any:
    """One aggregation over rows that are in order."""
    if min_rows and agg.kind in ("count_distinct", "approx_count_distinct"):
        return UNKNOWN
    if agg.scale or agg.is_ended:
        return (
            UNKNOWN  # `rolling` scales by the unit of the times, which these have not
        )
    if agg.kind in DEFINITIONS:
        return definitions.answer(agg, rows, nan, min_rows)
    values = definitions.values_of(agg, rows, nan)
    if len(values) < min_rows:
        return None
    if isinstance(agg, CustomAggregation):
        return "|".join(map(str, values)) if values else None
    return _SKETCHES[agg.kind](values, agg)


def _hitters(values: list[Any], agg: Any) -> Any:
    counts = Counter(values)
    if len(counts) > 100:
        return UNKNOWN
    most = sorted(counts.values(), reverse=True)[: agg.parameters[0]]
    return Hitters(counts, most)


class Hitters:
    """Some of the most frequent values, any of those with equal counts."""

    def __init__(self, counts: Counter[Any], most: list[int]) -> None:
        self.counts, self.most = counts, most

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list):
            return False
        found = [tuple(one.values()) for one in other]
        right = all(self.counts[value] == n and e == 0 for value, n, e in found)
        return right and [n for _, n, _ in found] == self.most

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.most} of {dict(self.counts)}"


class ApproximateQuantiles:
    """A value at about a rank, or several; three times the error is hardly reached."""

    def __init__(self, values: list[Any], shares: Any, error: float) -> None:
        self.values = sorted(values)
        self.shares = shares if isinstance(shares, tuple) else (shares,)
        self.off = 3 * error * len(values)

    def __eq__(self, other: object) -> bool:
        found = other if isinstance(other, list) else [other]
        return len(found) == len(self.shares) and all(
            isinstance(value, float)
            and bisect_left(self.values, value) <= share * len(self.values) + self.off
            and bisect_right(self.values, value) >= share * len(self.values) - self.off
            for value, share in zip(found, self.shares, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.shares} of {len(self.values)} values"


def _approx_quantile(values: list[Any], agg: Any) -> Any:
    shares, error = agg.parameters
    if not values:
        return None
    if len(values) > 2.4 / error and not any(map(is_nan, values)):
        return ApproximateQuantiles(values, shares, error)
    several = isinstance(shares, tuple)
    ordered = sorted(map(float, values))
    found = []
    for share in shares if several else (shares,):
        place = max(math.ceil(Fraction(str(share)) * len(values)) - 1, 0)
        nan = any(map(is_nan, values))
        found.append(math.nan if nan else ordered[place])
    return found if several else found[0]


def _approx_distinct(values: list[Any], agg: Any) -> Any:
    """Exact up to a number of different values."""
    count = DEFINITIONS["count_distinct"].of(values, agg)
    return count if count <= 0.13 / agg.parameters[0] ** 2 else UNKNOWN


_SKETCHES: dict[str, Callable[..., Any]] = {
    "heavy_hitters": _hitters,
    "bloom": lambda *_: UNKNOWN,
    "count_min": lambda *_: UNKNOWN,
    "approx_count_distinct": _approx_distinct,
    "approx_quantile": _approx_quantile,
}
