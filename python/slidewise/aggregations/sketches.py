"""Sketches: approximate answers within a stated error, from few bytes.

A partial takes a few kilobytes for any number of values, and partials combine: so
sketches run on every algorithm, without an inverse. FiBA, which "auto" chooses, keeps
one partial per 64 entries; algorithms that keep one per entry take kilobytes for each.
Up to a few hundred values are kept exactly, and answers are exact.

`bloom`, `approx_count_distinct`, `count_min` and `heavy_hitters` use a 64-bit hash of
each value, the same in every process and over tables: XXH64 with seed 42 of the eight
little-endian bytes of an int or the UTF-8 of a str, seed 43 for floats that are not
integers, and seed 44 for bytes. `1`, `1.0` and `True` are one value, `"a"` and `b"a"`
are two.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, RECORDS, register, register_like
from slidewise.errors import SpecError
from slidewise.hints import with_hints

__all__ = [
    "Sketch",
    "approx_count_distinct",
    "approx_quantile",
    "bloom",
    "count_min",
    "heavy_hitters",
]

_MAX_BITS = 1 << 27
_MAX_COUNTERS = 1 << 21
_MAX_QUANTILES = 8
_MAX_HITTERS = 1 << 16


@dataclass(frozen=True, slots=True, repr=False)
class Sketch(Aggregation):
    """A sketch. Made by `bloom`, `approx_count_distinct`, ... of `slidewise`.

    Attributes:
        parameters: The values of its parameters, in the order of its record.
    """

    parameters: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        record = RECORDS.get(self.kind)
        names = () if record is None else record.parameters
        is_sketch = record is not None and record.group == "sketch"
        if not is_sketch or len(names) != len(self.parameters):
            raise SpecError(f"no sketch {self.kind!r} of {self.parameters!r}")
        if self.by is not None or self.ddof != 1 or self.k != 0:
            raise SpecError(f"{self.kind}() takes a column and {', '.join(names)}")
        self._check_names()
        _ = self.core_kind  # checks the parameters

    @property
    def given(self) -> dict[str, Any]:
        """The values of its parameters, by name."""
        return dict(zip(self.record.parameters, self.parameters, strict=True))

    @property
    def core_kind(self) -> str:
        """The kind and its parameters, as the core reads them."""
        assert self.record.numbers is not None, "a sketch has some"
        numbers = self.record.numbers(**self.given)
        return ":".join([self.kind, *map(str, numbers)])

    def __repr__(self) -> str:
        parts = [] if self.of is None else [repr(self.of)]
        parts += [
            f"{name}={value!r}"
            for name, value in self.given.items()
            if value is not None
        ]
        return f"{self.kind}({', '.join([*parts, *self._shown_options])})"


def _bloom(capacity: Any, error_rate: Any) -> tuple[int, int]:
    count = _check_int("capacity", capacity, 1, _MAX_BITS)
    rate = _check_share("error_rate", error_rate, 1e-9, 0.5)
    bits = -count * math.log(rate) / math.log(2) ** 2
    if bits > _MAX_BITS:
        raise SpecError(
            f"a Bloom filter for {count} values at {rate} takes {bits:.0f} bits, and "
            f"{_MAX_BITS} is the maximum: raise error_rate, or lower capacity"
        )
    whole = max(math.ceil(bits / 64), 1) * 64
    hashes = round(whole / count * math.log(2))
    return whole, min(max(hashes, 1), 64)


_HASHED = register(
    "bloom",
    "sketch",
    numbers=_bloom,
    parameters=("capacity", "error_rate"),
    takes=(*NUMBERS, "text", "fixed_binary"),
    reads="equality",
    inputs=("hashes",),
    roles=("hash",),
)


@with_hints
def bloom(
    column: str | None = None,
    *,
    capacity: int = 10_000,
    error_rate: float = 0.01,
    where: str | None = None,
    windows: Any = None,
) -> Sketch:
    """The set of values, as a `Bloom` filter.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        capacity: The number of distinct values up to which `error_rate` holds.
        error_rate: The share of false positives. There are no false negatives.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ints, floats, bool, text, binary. A `Window` answers with
        a `Bloom`, over an empty window with an empty one; over tables a column of its
        bytes. Equal values give the same bits, in any order and grouping.

    Raises:
        SpecError: If it needs more than 2²⁷ bits.

    Cost: a combine ORs capacity · log₂(1/error_rate) · 1.44 bits.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.bloom(capacity=1000))
        >>> w.insert_many([3, 1, 2], ["cy", "ada", "bob"])
        >>> "ada" in w.query(), "ada" in w.query(lo=2)
        (True, False)
    """
    return Sketch(
        "bloom", column, where=where, windows=windows, parameters=(capacity, error_rate)
    )


def _distinct(error: Any) -> tuple[int]:
    registers = (1.04 / _check_share("error", error, 1.04 / 512, 0.26)) ** 2
    return (max(math.ceil(math.log2(registers) - 1e-9), 4),)


register_like(
    _HASHED,
    kind="approx_count_distinct",
    numbers=_distinct,
    parameters=("error",),
    result="count",
)


@with_hints
def approx_count_distinct(
    column: str | None = None,
    *,
    error: float = 0.02,
    where: str | None = None,
    windows: Any = None,
) -> Sketch:
    """The approximate number of distinct values, by HyperLogLog++.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        error: The standard deviation of the answer, relative to the true count: two
            answers in three are closer than that, 997 in 1,000 closer than three times
            that. From 0.0021 to 0.26. Counts up to 0.13 / error² (at most 4,096) are
            exact.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ints, floats, bool, text, binary; the result is int64, 0
        over an empty window. Equal values give the same answer, in any order and
        grouping.

    Raises:
        SpecError: If the column has another type.

    Cost: a combine takes up to (1.04 / error)² byte maxima; over tables there are none,
    and a row takes constant time.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.approx_count_distinct())
        >>> w.insert_many(range(6), ["a", "b", "a", None, "b", "c"])
        >>> w.query()
        3
    """
    return Sketch(
        "approx_count_distinct",
        column,
        where=where,
        windows=windows,
        parameters=(error,),
    )


def _quantile(q: Any, error: Any) -> tuple[int, str]:
    several = isinstance(q, list | tuple)
    given = q if several else (q,)
    if not 1 <= len(given) <= _MAX_QUANTILES:
        raise SpecError(f"q= takes 1 to {_MAX_QUANTILES} shares, got {len(given)}")
    shares = [repr(_check_quantile_share(share)) for share in given]
    text = "".join(f"{share}," for share in shares) if several else shares[0]
    k = (2.296 / _check_share("error", error, 0.0002, 0.3)) ** (1 / 0.9723)
    return max(math.ceil(k), 8), text


register(
    "approx_quantile",
    "sketch",
    numbers=_quantile,
    parameters=("q", "error"),
    takes=NUMBERS,
    result="quantiles",
    grouped=True,
)


@with_hints
def approx_quantile(
    column: str | float | Sequence[float] | None = None,
    q: float | Sequence[float] | str | None = None,
    *,
    error: float = 0.01,
    where: str | None = None,
    windows: Any = None,
) -> Sketch:
    """Approximate quantiles, by a KLL sketch.

    Args:
        column: The column to aggregate; none in a `Window` of plain values. It may
            follow `q`: `approx_quantile(0.9, "x")`.
        q: The quantile from 0 (the minimum) to 1 (the maximum), or up to 8 of them:
            then the answer is a list. By default 0.5, the median.
        error: The largest error of the rank of the answer, as a share of the number of
            values, in 99 answers of 100. From 0.0002 to 0.3.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ints, floats, bool; the result is float64, and one of the
        values: the least for which at least a share q of the values is no larger. None
        over an empty window, NaN where one of the values is. Exact while there are no
        more than about 2.4 / error values; beyond that, other groupings (algorithms,
        orders of arrival) may give other answers within the error, while equal calls
        give equal answers. q = 0 and 1 are always exact.

    Raises:
        SpecError: If the column has another type.

    Cost: a combine takes about 3 / error moves, and an answer sorts as much.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.approx_quantile([0.5, 0.9]))
        >>> w.insert_many(range(1, 101), range(1, 101))
        >>> w.query()
        [50.0, 90.0]
    """
    if not isinstance(column, str | None):
        column, q = cast("str | None", q), column
    shares = 0.5 if q is None else q
    if isinstance(shares, Iterable) and not isinstance(shares, str):
        shares = tuple(map(_check_quantile_share, shares))
    else:
        shares = _check_quantile_share(shares)
    given = (shares, error)
    return Sketch(
        "approx_quantile", column, where=where, windows=windows, parameters=given
    )


def _count_min(error: Any, confidence: Any) -> tuple[int, int]:
    buckets = math.ceil(math.e / _check_share("error", error, 1e-9, 0.5))
    sure = _check_share("confidence", confidence, 0.5, 1 - 1e-15)
    hashes = max(math.ceil(math.log(1 / (1 - sure))), 1)
    if hashes * buckets > _MAX_COUNTERS:
        raise SpecError(
            f"a Count-Min sketch with error={error} and confidence={confidence} takes "
            f"{hashes * buckets} counters, and {_MAX_COUNTERS} is the maximum"
        )
    return hashes, buckets


register_like(
    _HASHED,
    kind="count_min",
    numbers=_count_min,
    parameters=("error", "confidence"),
)


@with_hints
def count_min(
    column: str | None = None,
    *,
    error: float = 0.01,
    confidence: float = 0.99,
    where: str | None = None,
    windows: Any = None,
) -> Sketch:
    """The approximate count of each value, as a `CountMin` sketch.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        error: An estimate is too high by at most this share of the number of values,
            and never too low.
        confidence: The probability of that bound, from 0.5 to below 1.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ints, floats, bool, text, binary. A `Window` answers with
        a `CountMin`, over an empty window with an empty one; over tables a column of
        its bytes. Equal values give the same counters, in any order and grouping.

    Raises:
        SpecError: If it needs more than 2²¹ counters.

    Cost: a combine adds e / error · ln(1 / (1 − confidence)) counters.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.count_min(error=0.001))
        >>> w.insert_many(range(4), [7, 8, 7, 7])
        >>> w.query().estimate(7), w.query(lo=1).estimate(7)
        (3, 2)
    """
    given = (error, confidence)
    return Sketch("count_min", column, where=where, windows=windows, parameters=given)


def _hitters(k: Any, counters: Any) -> tuple[int, int]:
    count = _check_int("k", k, 1, _MAX_HITTERS)
    if counters is None:
        return count, min(max(10 * count, 100), _MAX_HITTERS)
    return count, _check_int("counters", counters, count, _MAX_HITTERS)


register_like(
    _HASHED,
    kind="heavy_hitters",
    numbers=_hitters,
    parameters=("k", "counters"),
    inputs=("rows", "hashes"),
    roles=("any", "hash"),
    result="hitters",
    grouped=True,
)


@with_hints
def heavy_hitters(
    column: str | int | None = None,
    k: int | str | None = None,
    *,
    counters: int | None = None,
    where: str | None = None,
    windows: Any = None,
) -> Sketch:
    """The k most frequent values, approximately, by Space Saving.

    Args:
        column: The column to aggregate; none in a `Window` of plain values. It may
            follow `k`.
        k: The number of values to return. By default 10.
        counters: The number of counters: by default 10 k, and at least 100.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ints, floats, bool, text, binary; the result is a list of
        (value, count, error), most frequent first, over tables a list of structs of
        these. A value occurred at most `count` and at least `count − error` times;
        errors are at most n / (counters + 1) for n values, and every value that
        occurred more often is included. Exact while there are no more different values
        than counters; beyond that, other groupings may give other answers within the
        error. An empty list over an empty window.

    Raises:
        SpecError: If the column has another type.

    Cost: a combine takes up to 2 · counters steps.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.heavy_hitters(2))
        >>> w.insert_many(range(6), ["a", "b", "a", "c", "b", "a"])
        >>> w.query()
        [('a', 3, 0), ('b', 2, 0)]
    """
    if isinstance(column, int):
        column, k = cast("str | None", k), column
    given = (10 if k is None else k, counters)
    return Sketch(
        "heavy_hitters", column, where=where, windows=windows, parameters=given
    )


def _check_quantile_share(share: Any) -> float:
    """A share as a float; -0.0 as 0.0, as equal Specs are written alike."""
    return _check_share("q", share, 0.0, 1.0) + 0.0


def _check_int(name: str, value: Any, least: int, most: int) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise SpecError(f"{name}= takes an int from {least} to {most}, got {value!r}")
    return int(value)


def _check_share(name: str, value: Any, least: float, most: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        # Shares just below 1 would be printed as 1.
        below = f"{least:.4g} up, below 1" if 1 - 1e-9 < most < 1 else ""
        ends = below or f"{least:.4g} to {most:.4g}"
        raise SpecError(f"{name}= takes a number from {ends}, got {value!r}")
    return float(value)
