"""Aggregations over given rows in plain Python, by their definitions."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tables_oracle import _mode, _quantile, is_nan

import slidewise as sw
from slidewise.aggregations.custom import CustomAggregation

Rows = list[dict[str, Any]]
# Answered only by the table: sketches of bytes.
UNKNOWN = object()


def answer(agg: sw.Aggregation, rows: Rows, nan: str, min_rows: int) -> Any:
    """One aggregation over rows that are in order."""
    if agg.where is not None:
        rows = [row for row in rows if row[agg.where] is True]
    if agg.kind == "count" and agg.of is None:
        return len(rows)
    needed = [agg.of]
    if agg.kind in ("arg_min", "arg_max"):
        needed = [agg.by]
    elif agg.kind in ("covariance", "correlation"):
        needed = [agg.of, agg.by]
    rows = [
        row
        for row in rows
        if not any(
            row[name] is None or (nan == "skip" and is_nan(row[name]))
            for name in needed
        )
    ]
    if agg.kind == "count":
        return len(rows)
    if min_rows and agg.kind in _COUNTS:
        return UNKNOWN
    if len(rows) < min_rows:
        return None
    if agg.kind in ("arg_min", "arg_max"):
        return _arg(agg, rows)
    if agg.kind in ("covariance", "correlation"):
        return _of_two(agg, rows)
    return _of_one(agg, [row[agg.of] for row in rows])


_COUNTS = ("count_distinct", "approx_count_distinct")


def _arg(agg: sw.Aggregation, rows: Rows) -> Any:
    if not rows:
        return None
    found = [row for row in rows if is_nan(row[agg.by])]
    if not found:
        pick = min if agg.kind == "arg_min" else max
        extreme = pick(row[agg.by] for row in rows)
        found = [row for row in rows if row[agg.by] == extreme]
    return found[0][agg.of or "t"]


def _of_one(agg: sw.Aggregation, values: list[Any]) -> Any:
    kind = agg.kind
    if kind in _LISTS:
        return _LISTS[kind](values, agg)
    if not values:
        return 0 if kind in _COUNTS else None
    if isinstance(agg, CustomAggregation):
        return "|".join(map(str, values))
    return _OF_SOME.get(kind, lambda *_: UNKNOWN)(values, agg)


def _exact(values: list[Any]) -> list[Fraction] | None:
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return None
    return [Fraction(value) for value in values]


def _sum(values: list[Any], _: Any) -> Any:
    if not isinstance(values[0], float):
        return sum(values[1:], values[0] if not _is_bool(values[0]) else int(values[0]))
    exact = _exact(values)
    return sum(values) if exact is None else float(sum(exact))


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _mean(values: list[Any], _: Any) -> float:
    exact = _exact(values)
    return math.nan if exact is None else float(sum(exact) / len(exact))


def _product(values: list[Any], _: Any) -> Any:
    if isinstance(values[0], float):
        exact = _exact(values)
        return UNKNOWN if exact is None else float(math.prod(exact))
    return math.prod(values)


def _moment(power: int, values: list[Any]) -> Fraction | None:
    """The sum of powers of distances from the mean."""
    exact = _exact(values)
    if exact is None:
        return None
    mean = sum(exact) / len(exact)
    return sum(((value - mean) ** power for value in exact), Fraction(0))


def _variance(values: list[Any], agg: sw.Aggregation) -> float | None:
    if len(values) <= agg.ddof:
        return None
    squares = _moment(2, values)
    return math.nan if squares is None else float(squares / (len(values) - agg.ddof))


def _stddev(values: list[Any], agg: sw.Aggregation) -> float | None:
    variance = _variance(values, agg)
    return None if variance is None else math.sqrt(variance)


def _skewness(values: list[Any], agg: sw.Aggregation) -> float | None:
    n = len(values)
    if n < 3:
        return None
    two, three = _moment(2, values), _moment(3, values)
    if not two or three is None:
        return math.nan
    biased = float(three / n) / float(two / n) ** 1.5
    return biased * math.sqrt(n * (n - 1)) / (n - 2)


def _kurtosis(values: list[Any], agg: sw.Aggregation) -> float | None:
    n = len(values)
    if n < 4:
        return None
    two, four = _moment(2, values), _moment(4, values)
    if not two or four is None:
        return math.nan
    biased = float(n * four / two**2) - 3
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * biased + 6)


def _of_two(agg: sw.Aggregation, rows: Rows) -> float | None:
    if len(rows) <= 1:
        return None
    columns = [[row[name] for row in rows] for name in (agg.of, agg.by)]
    xs, ys = map(_exact, columns)
    if xs is None or ys is None:
        return math.nan
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    both = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    if agg.kind == "covariance":
        return float(both / (len(rows) - 1))
    sizes = sum((a - x) ** 2 for a in xs), sum((b - y) ** 2 for b in ys)
    if not all(sizes):
        return math.nan
    return float(both) / math.sqrt(sizes[0]) / math.sqrt(sizes[1])


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def of(values: list[Any], _: Any) -> Any:
        return math.nan if any(map(is_nan, values)) else pick(values)

    return of


def _range(values: list[Any], _: Any) -> Any:
    if any(map(is_nan, values)):
        return math.nan
    return max(values) - min(values)


def _often(pick: Callable[..., Any]) -> Callable[..., Any]:
    def of(values: list[Any], _: Any) -> int:
        nans = sum(map(is_nan, values))
        return nans or values.count(pick(values))

    return of


def _geometric(values: list[Any], _: Any) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _k_largest(values: list[Any], agg: sw.Aggregation) -> list[Any]:
    nans = [value for value in values if is_nan(value)]
    rest = [value for value in values if not is_nan(value)]
    return (nans + sorted(rest, reverse=agg.kind == "top_k"))[: agg.k]


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


def _fold(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def of(values: list[Any], _: Any) -> Any:
        result = values[0]
        for value in values[1:]:
            result = operation(result, value)
        return result

    return of


def _approx_distinct(values: list[Any], agg: Any) -> Any:
    """Exact up to a number of different values."""
    count = _distinct(values, agg)
    return count if count <= 0.13 / agg.parameters[0] ** 2 else UNKNOWN


def _distinct(values: list[Any], _: Any) -> int:
    return len({"NaN" if is_nan(value) else value for value in values})


_LISTS: dict[str, Callable[..., Any]] = {
    "collect": lambda values, _: values,
    "collect_distinct": lambda values, _: list(dict.fromkeys(values)),
    "top_k": _k_largest,
    "bottom_k": _k_largest,
    "heavy_hitters": _hitters,
    "bloom": lambda *_: UNKNOWN,
    "count_min": lambda *_: UNKNOWN,
}
_OF_SOME: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "product": _product,
    "geometric_mean": _geometric,
    "variance": _variance,
    "stddev": _stddev,
    "skewness": _skewness,
    "kurtosis": _kurtosis,
    "min": _extreme(min),
    "max": _extreme(max),
    "range": _range,
    "min_count": _often(min),
    "max_count": _often(max),
    "first": lambda values, _: values[0],
    "last": lambda values, _: values[-1],
    "concat": lambda values, _: values[0][:0].join(values),
    "any": lambda values, _: any(map(bool, values)),
    "all": lambda values, _: all(map(bool, values)),
    "bit_and": _fold(lambda a, b: a & b),
    "bit_or": _fold(lambda a, b: a | b),
    "bit_xor": _fold(lambda a, b: a ^ b),
    "sum_of_squares": lambda values, _: (
        _sum([v * v for v in values], _)
        if not isinstance(values[0], float)
        else UNKNOWN
        if _exact(values) is None
        else float(sum(v * v for v in _exact(values) or []))
    ),
    "approx_count_distinct": _approx_distinct,
    "approx_quantile": _approx_quantile,
    "count_distinct": _distinct,
    "quantile": lambda values, agg: _quantile(values, agg.q, agg.interpolation),
    "median": lambda values, _: _quantile(values, 0.5, "linear"),
    "mode": lambda values, _: _mode(values, 0),
}
