"""The definition of each aggregation in plain Python, which all tests read.

Definitions are written from the meaning, never from the code of the library. They hold
for all values that a test may give them: NaN, infinities, bools, text, times, decimals.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial, reduce
from itertools import groupby, pairwise
from operator import and_, mul, or_, xor
from typing import Any

import slidewise as sw

Row = Mapping[str, Any]
# An answer that is not defined: a sketch, or floats with infinities.
UNKNOWN = object()

# Aggregations of two columns, and those that compare one to select from another.
PAIRS = ("covariance", "correlation", "weighted_mean")
PAIRS += ("slope", "intercept", "r_squared")
# Those of the times of rows, without a column, and those of a column and the time.
GAPS = ("mean_gap", "max_gap", "min_gap", "stddev_gap")
OF_TIMES = (*GAPS, "since_last", "since_first", "decayed_count")
OVER_TIME = ("rate", "slope", "intercept", "r_squared")
# Those that read the times of rows as ages, up to the end of the window.
DECAYED = ("decayed_sum", "decayed_count", "decayed_mean", "decayed_variance")
AREAS = ("integral", "time_weighted_mean")
OF_AGES = ("since_last", "since_first", *DECAYED, *AREAS)
COMPARED = ("arg_min", "arg_max")
BITS = ("bit_and", "bit_or", "bit_xor")
# The parameters of those that need or should have some, besides columns.
PARAMETERS: dict[str, dict[str, Any]] = {
    "top_k": {"k": 3},
    "bottom_k": {"k": 3},
    "lag": {"k": 2},
    "first_k": {"k": 3},
    "last_k": {"k": 3},
    "last_distinct": {"k": 3},
    "value_counts": {"top": 4},
    "histogram": {"edges": (-1.0, 0.0, 2.5)},
    "quantile": {"q": 0.3},
    **{kind: {"half_life": 4} for kind in DECAYED},
    **{kind: {"edge": "first"} for kind in AREAS},
    "approx_quantile": {"q": 0.5},
    "heavy_hitters": {"k": 2},
}


@dataclass(frozen=True)
class Definition:
    """The meaning of an aggregation.

    Attributes:
        of: Its answer over values in order, at least one, none of them missing. Values
            of two columns are pairs; with a compared column, it comes first.
        empty: Its answer over none.
        objects: Whether it takes objects other than numbers of 64 bits.
        text: Whether it takes only text.
        law: "invertible" (numbers), "selective", "holistic", or "" if it is neither.
    """

    of: Callable[[list[Any], Any], Any]
    empty: Any = None
    objects: bool = False
    text: bool = False
    law: str = ""


def answer(
    agg: sw.Aggregation,
    rows: Sequence[Row],
    nan: str = "propagate",
    min_rows: int = 0,
    end: Any = None,
) -> Any:
    """A built-in aggregation over rows, which are in order.

    Their window ends at `end`; by default at the time of the last one.
    """
    values = values_of(agg, rows, nan, end)
    definition = DEFINITIONS[agg.kind]
    if len(values) < min_rows and agg.kind != "count":
        return None
    return definition.of(values, agg) if values else definition.empty


def carried(
    agg: sw.Aggregation,
    rows: Sequence[Row],
    earlier: Sequence[Row],
    start: int,
    end: int,
) -> Any:
    """The definition: the last entry before the window is one more, from its start on.

    Args:
        agg: The aggregation.
        rows: The rows of the window.
        earlier: Those at or before its start.
        start: The start.
        end: The end.
    """

    def counts(row: dict[str, Any]) -> bool:
        return row[agg.of or ""] is not None and (
            not agg.where or row[agg.where] is True
        )

    rows, earlier = [*filter(counts, rows)], [*filter(counts, earlier)]
    first = agg.edge == "carry" and earlier
    if first:
        before = earlier[-1]
        value = Fraction(before[agg.of or ""])
        if agg.hold == "linear" and rows:
            to, span = Fraction(rows[0][agg.of or ""]), rows[0]["t"] - before["t"]
            value += (to - value) * (start - before["t"]) / span
        rows = [{agg.of: value, "t": start, "w": True}, *rows]
    return answer(agg, rows, end=end) if rows else None


def values_of(
    agg: sw.Aggregation, rows: Sequence[Row], nan: str, end: Any = None
) -> list[Any]:
    """The values that an aggregation reads; the rows if it names no column."""
    if agg.kind in OF_AGES and rows:
        end = rows[-1]["t"] if end is None else end
        if agg.where is not None:
            rows = [row for row in rows if row[agg.where] is True]
        pairs = [(1 if agg.of is None else row[agg.of], end - row["t"]) for row in rows]
        return [(x, age) for x, age in pairs if is_there(x, nan)]
    if agg.where is not None:
        rows = [row for row in rows if row[agg.where] is True]
    if agg.kind in COMPARED:
        rows = [row for row in rows if is_there(row[agg.by], nan)]
        return [(row[agg.by], row[agg.of or "t"]) for row in rows]
    if agg.record.second == "compared":
        pairs = [(row[agg.by], row[agg.of]) for row in rows]
        return [(by, of) for by, of in pairs if is_there(by, nan) and is_there(of, nan)]
    if agg.kind in OVER_TIME and agg.by is None:
        rows = [row for row in rows if is_there(row[agg.of], nan)]
        return [(row[agg.of], row["t"]) for row in rows]
    if agg.kind in PAIRS:
        pairs = [(row[agg.of], row[agg.by]) for row in rows]
        return [(x, y) for x, y in pairs if is_there(x, nan) and is_there(y, nan)]
    if agg.of is None:
        return list(rows)
    return [row[agg.of] for row in rows if is_there(row[agg.of], nan)]


def is_there(value: Any, nan: str) -> bool:
    """Whether a value counts."""
    return value is not None and not (nan == "skip" and is_nan(value))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _equal(a: Any, b: Any) -> bool:
    return a == b or (is_nan(a) and is_nan(b))


def _exact(values: Sequence[Any]) -> list[Fraction] | None:
    """Numbers as fractions; None if not all are finite."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return None
    return [Fraction(value) for value in values]


def _sum(values: list[Any], _: Any) -> Any:
    first = values[0]
    if not isinstance(first, float):
        return sum(values[1:], int(first) if isinstance(first, bool) else first)
    exact = _exact(values)
    return sum(values) if exact is None else float(sum(exact))


def _mean(values: list[Any], _: Any) -> float:
    exact = _exact(values)
    if exact is None:
        return float(sum(values) / len(values))
    return float(sum(exact) / len(exact))


def _product(values: list[Any], _: Any) -> Any:
    if not isinstance(values[0], float):
        return math.prod(values)
    exact = _exact(values)
    return UNKNOWN if exact is None else float(math.prod(exact))


def _sum_of_squares(values: list[Any], agg: Any) -> Any:
    if not isinstance(values[0], float):
        return _sum([value * value for value in values], agg)
    exact = _exact(values)
    return UNKNOWN if exact is None else float(sum(x * x for x in exact))


def _geometric_mean(values: list[Any], _: Any) -> float:
    def log(value: float) -> float:
        if value == 0:
            return -math.inf
        return math.nan if value < 0 or is_nan(value) else math.log(value)

    return math.exp(sum(map(log, values)) / len(values))


def _moments(values: list[Any], *powers: int) -> list[Fraction]:
    """Sums of powers of distances from the mean; empty if one is not finite."""
    exact = _exact(values)
    if exact is None:
        return []
    mean = sum(exact) / len(exact)
    return [sum(((x - mean) ** power for x in exact), Fraction(0)) for power in powers]


def _variance(values: list[Any], agg: Any) -> float | None:
    if len(values) <= agg.ddof:
        return None
    squares = _moments(values, 2)
    return float(squares[0] / (len(values) - agg.ddof)) if squares else math.nan


def _stddev(values: list[Any], agg: Any) -> float | None:
    variance = _variance(values, agg)
    return None if variance is None else math.sqrt(variance)


def skewness(values: list[Any], ddof: int) -> float | None:
    """The skewness of some values."""
    n, moments = len(values), _moments(values, 2, 3)
    if ddof and n < 3:
        return None
    if not moments or not moments[0]:
        return math.nan
    skew = float(moments[1] / n) / float(moments[0] / n) ** 1.5
    return skew * math.sqrt(n * (n - 1)) / (n - 2) if ddof else skew


def kurtosis(values: list[Any], ddof: int) -> float | None:
    """The excess kurtosis of some values."""
    n, moments = len(values), _moments(values, 2, 4)
    if ddof and n < 4:
        return None
    if not moments or not moments[0]:
        return math.nan
    excess = float(n * moments[1] / moments[0] ** 2) - 3
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6) if ddof else excess


def _of_two(pairs: list[Any], agg: Any) -> float | None:
    n, one = len(pairs), agg.kind == "covariance"
    if n <= (agg.ddof if one else 1):
        return None
    xs, ys = (_exact(column) for column in zip(*pairs, strict=True))
    if xs is None or ys is None:
        return math.nan
    x, y = sum(xs) / n, sum(ys) / n
    both = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    if one:
        return float(both / (n - agg.ddof))
    sizes = sum((a - x) ** 2 for a in xs), sum((b - y) ** 2 for b in ys)
    if not all(sizes):
        return math.nan
    return float(both) / math.sqrt(sizes[0]) / math.sqrt(sizes[1])


def _weighted_mean(pairs: list[Any], _: Any) -> float | None:
    xs, ws = (_exact(column) for column in zip(*pairs, strict=True))
    if xs is None or ws is None:
        return UNKNOWN
    return float(sum(map(mul, xs, ws)) / sum(ws)) if sum(ws) else None


def _line(pairs: list[Any], agg: Any) -> float | None:
    n = len(pairs)
    ys, xs = (_exact(column) for column in zip(*pairs, strict=True))
    if ys is None or xs is None:
        return UNKNOWN
    if len(set(xs)) < 2:
        return None
    y, x = sum(ys) / n, sum(xs) / n
    both = sum((a - y) * (b - x) for a, b in zip(ys, xs, strict=True))
    slope = both / sum((b - x) ** 2 for b in xs)
    if agg.kind == "slope":
        return float(slope)
    if agg.kind == "intercept":
        return float(y - slope * x)
    if len(set(ys)) == 1:
        return 1.0
    return float(slope * both / sum((a - y) ** 2 for a in ys))


def extreme(values: list[Any], _: Any, pick: Callable[..., Any]) -> Any:
    """The smallest or largest value; NaN if one is NaN."""
    return math.nan if any(map(is_nan, values)) else pick(values)


_min, _max = partial(extreme, pick=min), partial(extreme, pick=max)


def _gaps(rows: list[Any], agg: Any) -> Any:
    gaps = [b["t"] - a["t"] for a, b in pairwise(rows)]
    if not gaps or (agg.kind == "stddev_gap" and len(gaps) <= agg.ddof):
        return None
    if agg.kind in ("max_gap", "min_gap"):
        return max(gaps) if agg.kind == "max_gap" else min(gaps)
    if isinstance(gaps[0], timedelta):
        gaps = [Fraction(gap // timedelta(microseconds=1), 10**6) for gap in gaps]
    if agg.kind == "mean_gap":
        return float(Fraction(sum(gaps)) / len(gaps))
    return _stddev([*map(Fraction, gaps)], agg)


def _rate(pairs: list[Any], _: Any) -> float | None:
    (x, start), (y, end) = pairs[0], pairs[-1]
    time = end - start
    if isinstance(time, timedelta):
        time = Fraction(time // timedelta(microseconds=1), 10**6)
    return float((y - x) / time) if time else None


def _decayed(pairs: list[Any], agg: Any) -> Any:
    exact = _exact([x for x, _ in pairs])
    if exact is None:
        return UNKNOWN
    rows = agg.rows_of_half_life
    ages = reversed(range(len(pairs))) if rows else (age for _, age in pairs)
    with localcontext(prec=60):
        weights = [
            Fraction(Decimal(2) ** (-Decimal(age) / (rows or agg.half_life)))
            for age in ages
        ]
    total = sum(map(mul, weights, exact))
    if agg.kind in ("decayed_sum", "decayed_count"):
        return float(total)
    mean = total / sum(weights)
    if agg.kind == "decayed_mean":
        return float(mean)
    squares = sum(w * (x - mean) ** 2 for w, x in zip(weights, exact, strict=True))
    return float(squares / sum(weights))


def _area(pairs: list[Any], agg: Any) -> Any:
    exact = _exact([x for x, _ in pairs])
    if exact is None:
        return UNKNOWN
    ages = [age for _, age in pairs]
    nexts = [*exact[1:], exact[-1]] if agg.hold == "linear" else exact
    steps = zip(exact, nexts, ages, [*ages[1:], 0], strict=True)
    area = sum((x + y) / 2 * (age - later) for x, y, age, later in steps)
    if agg.kind == "integral":
        return float(area / (agg.unit or 1))
    return float(area / ages[0]) if ages[0] else None


def _increase(values: list[Any], _: Any) -> Any:
    if any(map(is_nan, values)):
        return math.nan
    pairs = list(pairwise(values))
    rises = [b if b < a else 0 if a == b else b - a for a, b in pairs]
    if not isinstance(values[0], float):
        return sum(rises, values[0] - values[0])
    if any(map(math.isinf, rises)):
        return float(sum(rises))
    exact = (Fraction(b) - (0 if b < a else Fraction(a)) for a, b in pairs if a != b)
    return float(sum(exact))


def _drawdown(values: list[Any], _: Any) -> Any:
    if any(map(is_nan, values)):
        return math.nan
    zero = 0.0 if isinstance(values[0], float) else values[0] - values[0]
    falls = (a - b for at, a in enumerate(values) for b in values[at:] if a > b)
    return max(falls, default=zero)


def _ohlc(values: list[Any], _: Any) -> dict[str, Any]:
    high, low = _max(values, _), _min(values, _)
    return {"open": values[0], "high": high, "low": low, "close": values[-1]}


def _last_distinct(values: list[Any], agg: Any) -> list[Any]:
    later = (values[at + 1 :] for at in range(len(values)))
    pairs = zip(values, later, strict=True)
    last = [value for value, rest in pairs if not any(_equal(value, v) for v in rest)]
    return last[-agg.k :]


def _value_counts(values: list[Any], agg: Any) -> list[Any]:
    found = [
        {"value": math.nan if value is None else value, "count": count}
        for value, count in _counts(values).items()
    ]
    found.sort(key=lambda one: (-one["count"], is_nan(one["value"]), one["value"]))
    return found[: agg.top]


def _entropy(values: list[Any], _: Any) -> float:
    shares = [count / len(values) for count in _counts(values).values()]
    return -math.fsum(share * math.log(share) for share in shares)


def _histogram(values: list[Any], agg: Any) -> list[int]:
    counts = [0] * (len(agg.edges) + 1)
    for value in values:
        counts[sum(is_nan(value) or value >= edge for edge in agg.edges)] += 1
    return counts


def _longest_run(values: list[Any], _: Any) -> int:
    runs = (len([*run]) for is_true, run in groupby(values, key=bool) if is_true)
    return max(runs, default=0)


def _occurrences(values: list[Any], agg: Any, pick: Callable[..., Any]) -> int:
    best = extreme(values, agg, pick)
    return sum(_equal(value, best) for value in values)


def _first_with(pairs: list[Any], agg: Any, pick: Callable[..., Any]) -> Any:
    """The second value of the first pair whose compared value is extreme."""
    best = extreme([compared for compared, _ in pairs], agg, pick)
    return next(value for compared, value in pairs if _equal(compared, best))


def _counts(values: list[Any]) -> dict[Any, int]:
    """The number of occurrences of each value; all NaNs are one, None."""
    return Counter(None if is_nan(value) else value for value in values)


def _distinct(values: list[Any], _: Any) -> list[Any]:
    return [math.nan if value is None else value for value in _counts(values)]


def _mode(values: list[Any], _: Any) -> Any:
    counts = _counts(values)
    most = max(counts.values())
    found = [value for value, count in counts.items() if count == most]
    numbers = [value for value in found if value is not None]
    return min(numbers) if numbers else math.nan


def quantile(values: list[Any], q: float, interpolation: str) -> Any:
    """The exact quantile of some values."""
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
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(share))


def _best(values: list[Any], agg: Any, largest: bool) -> list[Any]:
    if agg.by is not None:
        best = sorted((by for by, _ in values if not is_nan(by)), reverse=largest)
        rank = {by: at for at, by in reversed([*enumerate(best)])}
        pairs = sorted(values, key=lambda pair: rank.get(pair[0], -1))
        return [value for _, value in pairs[: agg.k]]
    nans = [value for value in values if is_nan(value)]
    rest = [value for value in values if not is_nan(value)]
    return (nans + sorted(rest, reverse=largest))[: agg.k]


DEFINITIONS = {
    "count": Definition(lambda v, _: len(v), empty=0, objects=True, law="invertible"),
    "sum": Definition(_sum, objects=True, law="invertible"),
    "mean": Definition(_mean, objects=True, law="invertible"),
    "min": Definition(_min, objects=True, law="selective"),
    "max": Definition(_max, objects=True, law="selective"),
    "range": Definition(
        lambda v, _: _max(v, _) - _min(v, _), objects=True, law="selective"
    ),
    "variance": Definition(_variance, law="invertible"),
    "stddev": Definition(_stddev, law="invertible"),
    "min_count": Definition(partial(_occurrences, pick=min), objects=True),
    "max_count": Definition(partial(_occurrences, pick=max), objects=True),
    "arg_min": Definition(
        partial(_first_with, pick=min), objects=True, law="selective"
    ),
    "arg_max": Definition(
        partial(_first_with, pick=max), objects=True, law="selective"
    ),
    "first": Definition(lambda v, _: v[0], objects=True, law="selective"),
    "last": Definition(lambda v, _: v[-1], objects=True, law="selective"),
    "geometric_mean": Definition(_geometric_mean, law="invertible"),
    "collect": Definition(lambda v, _: v, empty=[], objects=True),
    "product": Definition(_product),
    "sum_of_squares": Definition(_sum_of_squares, law="invertible"),
    "any": Definition(lambda v, _: any(map(bool, v)), objects=True),
    "all": Definition(lambda v, _: all(map(bool, v)), objects=True),
    "bit_and": Definition(lambda v, _: reduce(and_, v)),
    "bit_or": Definition(lambda v, _: reduce(or_, v)),
    "bit_xor": Definition(lambda v, _: reduce(xor, v), law="invertible"),
    "skewness": Definition(lambda v, agg: skewness(v, agg.ddof)),
    "kurtosis": Definition(lambda v, agg: kurtosis(v, agg.ddof)),
    "covariance": Definition(_of_two),
    "correlation": Definition(_of_two),
    "weighted_mean": Definition(_weighted_mean),
    "slope": Definition(_line),
    "intercept": Definition(_line),
    "r_squared": Definition(_line),
    "delta": Definition(lambda v, _: v[-1] - v[0], objects=True, law="selective"),
    "rate": Definition(_rate, law="selective"),
    **{kind: Definition(_gaps) for kind in GAPS},
    "since_last": Definition(lambda v, _: v[-1][1], law="selective"),
    "since_first": Definition(lambda v, _: v[0][1], law="selective"),
    **{kind: Definition(_decayed) for kind in DECAYED},
    **{kind: Definition(_area) for kind in AREAS},
    "increase": Definition(_increase, objects=True),
    "changes": Definition(
        lambda v, _: sum(not _equal(a, b) for a, b in pairwise(v)), 0, objects=True
    ),
    "drawdown": Definition(_drawdown, objects=True),
    "ohlc": Definition(_ohlc, objects=True, law="selective"),
    "lag": Definition(
        lambda v, agg: v[-agg.k - 1] if len(v) > agg.k else None, objects=True
    ),
    "first_k": Definition(lambda v, agg: v[: agg.k], empty=[], objects=True),
    "last_k": Definition(lambda v, agg: v[-agg.k :], empty=[], objects=True),
    "last_distinct": Definition(_last_distinct, empty=[], objects=True),
    "longest_run": Definition(_longest_run, empty=0, objects=True),
    "concat": Definition(lambda v, _: v[0][:0].join(v), objects=True, text=True),
    "collect_distinct": Definition(_distinct, empty=[], objects=True),
    "top_k": Definition(partial(_best, largest=True), empty=[], objects=True),
    "bottom_k": Definition(partial(_best, largest=False), empty=[], objects=True),
    "count_distinct": Definition(
        lambda v, _: len(_counts(v)), 0, objects=True, law="holistic"
    ),
    "quantile": Definition(
        lambda v, agg: quantile(v, agg.q, agg.interpolation), law="holistic"
    ),
    "median": Definition(lambda v, _: quantile(v, 0.5, "linear"), law="holistic"),
    "mode": Definition(_mode, objects=True, law="holistic"),
    "value_counts": Definition(_value_counts, [], objects=True, law="holistic"),
    "entropy": Definition(_entropy, objects=True, law="holistic"),
    "histogram": Definition(_histogram, [0] * 4, law="invertible"),
}
