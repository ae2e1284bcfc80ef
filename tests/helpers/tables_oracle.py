"""The definition of rolling aggregations, computed row by row."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import slidewise as sw

# The values of closed=, with the values of ties= that have an effect.
SIDES = [(closed, "peers") for closed in ("right", "left", "both", "neither")]
SIDES += [("right", "rows"), ("both", "rows")]


def windows(
    times: list[int],
    window: Any,
    *,
    keys: list[Any] | None = None,
    closed: str = "right",
    ties: str = "peers",
    arrival: list[int] | None = None,
) -> list[list[int]]:
    """The rows of the window of each row, earliest first."""
    rows = range(len(times))
    keys = [None] * len(times) if keys is None else keys

    def order(row: int) -> tuple[int, ...]:
        return (times[row], 0 if arrival is None else arrival[row], row)

    def visible(row: int, other: int) -> bool:
        if keys[row] != keys[other]:
            return False
        return arrival is None or arrival[other] <= arrival[row]

    answer = []
    for row in rows:
        seen = sorted((other for other in rows if visible(row, other)), key=order)
        if isinstance(window, int):
            kept = [
                other
                for other in seen
                if inside(times[row] - times[other], window, closed)
                and (
                    ties == "peers" or arrival is not None or order(other) <= order(row)
                )
            ]
        elif arrival is not None:
            kept = seen[-window.n :]
        else:
            kept = [other for other in seen if order(other) <= order(row)][-window.n :]
        answer.append(kept)
    return answer


def inside(age: int, length: int, closed: str) -> bool:
    young = age < length or (age == length and closed in ("left", "both"))
    old = age > 0 or (age == 0 and closed in ("right", "both"))
    return young and old


def answer(agg: sw.Aggregation, rows: list[int], table: dict[str, list[Any]]) -> Any:
    """One aggregation over rows that are in time order."""
    if agg.kind == "count" and agg.of is None:
        return len(rows)
    if agg.kind in ("arg_min", "arg_max"):
        return _arg(agg, rows, table)
    values = [table[agg.of][row] for row in rows if table[agg.of][row] is not None]
    if agg.kind == "count":
        return len(values)
    if agg.kind == "count_distinct":
        return len(_counts(values))
    if agg.kind in ("quantile", "median"):
        return _quantile(values, agg.q, agg.interpolation)
    if agg.kind == "collect":
        return values
    if agg.kind == "collect_distinct":
        return [math.nan if value == "nan" else value for value in _counts(values)]
    if len(values) <= (agg.ddof if agg.kind in ("variance", "stddev") else 0):
        return None
    return _OF_SOME[agg.kind](values, agg.ddof)


def _arg(agg: sw.Aggregation, rows: list[int], table: dict[str, list[Any]]) -> Any:
    rows = [row for row in rows if table[agg.by][row] is not None]
    if not rows:
        return None
    extreme = (_min if agg.kind == "arg_min" else _max)(
        [table[agg.by][row] for row in rows], 0
    )
    first = next(row for row in rows if _equal(table[agg.by][row], extreme))
    return table[agg.of or "t"][first]


def _equal(a: Any, b: Any) -> bool:
    return a == b or (is_nan(a) and is_nan(b))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _finite(values: list[Any]) -> bool:
    return all(math.isfinite(value) for value in values)


def _sum(values: list[Any], _: int) -> Any:
    if isinstance(values[0], int):
        return sum(values)
    if not _finite(values):
        return sum(values)
    return _float(sum(map(Fraction, values)))


def _float(exact: Fraction) -> float:
    return exact.numerator / exact.denominator


def _mean(values: list[Any], _: int) -> float:
    if not _finite(values):
        return sum(values) / len(values)
    return _float(sum(map(Fraction, values)) / len(values))


def _variance(values: list[Any], ddof: int) -> float:
    if not _finite(values):
        return math.nan
    mean = sum(map(Fraction, values)) / len(values)
    squares = sum((Fraction(value) - mean) ** 2 for value in values)
    return _float(squares / (len(values) - ddof))


def _min(values: list[Any], _: int) -> Any:
    return math.nan if any(map(is_nan, values)) else min(values)


def _max(values: list[Any], _: int) -> Any:
    return math.nan if any(map(is_nan, values)) else max(values)


def _times(values: list[Any], extreme: Any) -> int:
    return sum(_equal(value, extreme) for value in values)


def _geometric_mean(values: list[Any], _: int) -> float:
    def log(value: float) -> float:
        if value == 0:
            return -math.inf
        return math.nan if value < 0 or is_nan(value) else math.log(value)

    return math.exp(sum(map(log, values)) / len(values))


def _counts(values: list[Any]) -> dict[Any, int]:
    """The number of occurrences of each value; all NaNs are one."""
    return Counter("nan" if is_nan(value) else value for value in values)


def _mode(values: list[Any], _: int) -> Any:
    counts = _counts(values)
    most = max(counts.values())
    found = [value for value, count in counts.items() if count == most]
    numbers = [value for value in found if value != "nan"]
    return min(numbers) if numbers else math.nan


def _quantile(values: list[Any], q: float, interpolation: str) -> Any:
    if not values:
        return None
    if any(map(is_nan, values)):
        return math.nan
    values = sorted(values)
    at = (len(values) - 1) * q
    low, high = values[math.floor(at)], values[math.ceil(at)]
    if interpolation in ("lower", "higher", "nearest"):
        nearest = values[round(at)]
        return {"lower": low, "higher": high, "nearest": nearest}[interpolation]
    share = 0.5 if interpolation == "midpoint" and low != high else at % 1
    if low == high or share == 0:
        return float(low)
    if math.isinf(low) or math.isinf(high):
        return low * (1 - share) + high * share
    return _float(Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(share))


_OF_SOME = {
    "mode": _mode,
    "sum": _sum,
    "mean": _mean,
    "variance": _variance,
    "stddev": lambda values, ddof: math.sqrt(_variance(values, ddof)),
    "min": _min,
    "max": _max,
    "range": lambda values, _: _max(values, 0) - _min(values, 0),
    "min_count": lambda values, _: _times(values, _min(values, 0)),
    "max_count": lambda values, _: _times(values, _max(values, 0)),
    "first": lambda values, _: values[0],
    "last": lambda values, _: values[-1],
    "geometric_mean": _geometric_mean,
    "any": lambda values, _: any(map(bool, values)),
    "all": lambda values, _: all(map(bool, values)),
}


def same(got: Any, expected: Any) -> bool:
    """Whether values are equal; floats up to the last bits."""
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    if is_nan(expected):
        return is_nan(got)
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(got, expected, rel_tol=1e-12, abs_tol=1e-12)
    return type(got) is type(expected) and got == expected
