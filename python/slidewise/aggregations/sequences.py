"""Aggregations of the order of values: changes from one to the next, runs, the ends."""

from collections.abc import Callable
from functools import cache
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.custom import Functions
from slidewise.aggregations.objects import (
    checked_lift,
    distance,
    exact_sum,
    is_nan,
    larger,
    over_objects,
    smaller,
)
from slidewise.aggregations.records import NUMBERS, ORDERED, register, register_like
from slidewise.errors import SpecError
from slidewise.hints import with_hints

__all__ = [
    "changes",
    "delta",
    "drawdown",
    "first_k",
    "increase",
    "lag",
    "last_distinct",
    "last_k",
    "longest_run",
    "ohlc",
]


def _zero(value: Any) -> Any:
    return distance(value, value)


_DELTA = register(
    "delta",
    takes=("integer", "float", "null", "duration", "instant"),
    inputs=("order",),
    result="change",
    objects=over_objects(
        "delta",
        lambda older, younger: (older[0], younger[1]),
        checked_lift("delta", _zero, lambda x: (x, x)),
        lambda ends: distance(ends[1], ends[0]),
    ),
)


@with_hints
def delta(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The last value less the first one.

    `sw.delta("x")` is this aggregation; with a width, `sw.delta("x", 5.0)` is the
    window of rows whose column is near.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers give int64, floats float64, timestamps, dates
        and durations give a duration. Nulls are skipped; 0 for one value, null over an
        empty window.

    Raises:
        ResultOverflowError: If an integer result does not fit.

    Cost: ≤ 3 combines per row and window, shared with `first` and `last` of the same
    column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "km": [40, 45, 43]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"d": sw.delta("km")})
        >>> out["d_2"].to_pylist()
        [0, 5, -2]
    """
    return Aggregation("delta", column, where=where, windows=windows)


def _rise(older: tuple[Any, Any, Any], younger: tuple[Any, Any, Any]) -> Any:
    last, following = older[2], younger[1]
    return following if following < last else distance(following, last)


register(
    "increase",
    takes=("integer", "float", "null"),
    inputs=("whole",),
    objects=over_objects(
        "increase",
        lambda older, younger: (
            exact_sum(exact_sum(older[0], younger[0]), _rise(older, younger)),
            older[1],
            younger[2],
        ),
        checked_lift(
            "increase", lambda x: (_zero(x), x < x), lambda x: (_zero(x), x, x)
        ),
        lambda partial: partial[0],
    ),
)


@with_hints
def increase(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The sum of the rises of a counter: a fall is a reset to zero.

    After a fall the new value itself is added, as by `increase` of Prometheus; nothing
    is extrapolated to the ends of the window.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers give int64, floats float64, with the error of a
        sum. Nulls are skipped; 0 for one value, null over an empty window. A NaN in the
        window makes the answer NaN.

    Raises:
        ResultOverflowError: If an integer result does not fit.
        SpecError: If a value of uint64 is beyond int64.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.increase())
        >>> w.insert_many([1, 2, 3, 4], [10, 15, 2, 7])
        >>> w.query()
        12
    """
    return Aggregation("increase", column, where=where, windows=windows)


def _differ(a: Any, b: Any) -> bool:
    return not (a == b or (is_nan(a) and is_nan(b)))


def _join_changes(older: tuple[Any, ...], younger: tuple[Any, ...]) -> tuple[Any, ...]:
    if not older or not younger:
        return older or younger
    between = _differ(older[2], younger[1])
    return older[0] + younger[0] + between, older[1], younger[2]


register(
    "changes",
    reads="equality",
    inputs=("distinct",),
    result="int64",
    objects=over_objects(
        "changes",
        _join_changes,
        lambda value: (0, value, value),
        lambda partial: partial[0] if partial else 0,
        (),
    ),
)


@with_hints
def changes(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The number of values that differ from the value before.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any with equality; the result is int64. Nulls are
        skipped; 0 over an empty window. NaNs are one value.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3, 4], "state": ["on", "on", "off", "on"]})
        >>> out = sw.rolling(table, on="t", windows=9, aggs={"n": sw.changes("state")})
        >>> out["n_9"].to_pylist()
        [0, 0, 1, 2]
    """
    return Aggregation("changes", column, where=where, windows=windows)


def _join_falls(older: tuple[Any, ...], younger: tuple[Any, ...]) -> tuple[Any, ...]:
    top, bottom = older[0], younger[1]
    zero = _zero(top)
    between = zero if top < bottom else distance(top, bottom)
    return (
        larger(top, younger[0]),
        smaller(older[1], bottom),
        larger(larger(older[2], younger[2]), between),
    )


register_like(
    _DELTA,
    kind="drawdown",
    objects=over_objects(
        "drawdown",
        _join_falls,
        checked_lift(
            "drawdown", lambda x: (_zero(x), x < x), lambda x: (x, x, _zero(x))
        ),
        lambda partial: partial[2],
    ),
)


@with_hints
def drawdown(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The greatest fall from a value to a later one: the maximum of xᵢ − xⱼ over i ≤ j.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers give int64, floats float64, timestamps, dates
        and durations give a duration. Nulls are skipped; 0 if no value is below an
        earlier one, null over an empty window. A NaN in the window makes the answer
        NaN.

    Raises:
        ResultOverflowError: If an integer result does not fit.

    Cost: ≤ 3 combines per row and window, shared with `min` and `max` of the same
    column.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.drawdown())
        >>> w.insert_many([1, 2, 3, 4], [5, 9, 3, 7])
        >>> w.query(), w.query(3)
        (6, 0)
    """
    return Aggregation("drawdown", column, where=where, windows=windows)


_BAR = ("open", "high", "low", "close")


def _bar(values: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(_BAR, values, strict=True))


def _join_bars(older: tuple[Any, ...], younger: tuple[Any, ...]) -> tuple[Any, ...]:
    high, low = larger(older[1], younger[1]), smaller(older[2], younger[2])
    return older[0], high, low, younger[3]


register(
    "ohlc",
    takes=ORDERED,
    reads="order",
    inputs=("raw",),
    result="bar",
    objects=over_objects(
        "ohlc",
        _join_bars,
        checked_lift("ohlc", lambda x: x < x, lambda x: (x, x, x, x)),
        _bar,
    ),
    finish=_bar,
)


@with_hints
def ohlc(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The first, greatest, least and last value: open, high, low, close.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is a struct of four fields of
        that type. Nulls are skipped; null over an empty window. A NaN in the window
        makes high and low NaN.

    Cost: ≤ 3 combines per row and window, shared with `first`, `max`, `min` and `last`
    of the same column.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.ohlc())
        >>> w.insert_many([1, 2, 3], [7, 9, 8])
        >>> w.query()
        {'open': 7, 'high': 9, 'low': 7, 'close': 8}
    """
    return Aggregation("ohlc", column, where=where, windows=windows)


def _register_ends(
    kind: str,
    result: str,
    kept: Callable[[tuple[Any, ...], int], tuple[Any, ...]],
    lower: Callable[[tuple[Any, ...], int], Any],
    **facts: Any,
) -> None:
    """Registers an aggregation of the first or the last values."""

    @cache
    def objects(k: int) -> Functions:
        return over_objects(
            kind,
            lambda older, younger: kept((*older, *younger), k),
            lambda value: (value,),
            lambda partial: lower(partial, k),
            (),
        )(k)

    register(
        kind,
        parameters=("k",),
        result=result,
        sparse=kind == "lag",
        objects=objects,
        **({"reads": "", "inputs": ("raw",)} | facts),
    )


_register_ends(
    "lag",
    "value",
    lambda values, k: values[-k - 1 :],
    lambda values, k: values[0] if len(values) > k else None,
)


@with_hints
def lag(
    column: str | None = None,
    k: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The value that is `k` before the last one.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        k: How many values before the last one, from 1 to 1,000.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any; the result keeps the type. Nulls are skipped; null
        for k values or fewer. Rows of equal time are in table order (with `arrival=`,
        in order of arrival).

    Raises:
        SpecError: If `k` is not from 1 to 1,000.

    Cost: ≤ 3 combines per row and window of O(k).

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", "b", "c"]})
        >>> out = sw.rolling(table, on="t", windows=9, aggs={"x": sw.lag("x")})
        >>> out["x_9"].to_pylist()
        [None, 'a', 'b']
    """
    return Aggregation("lag", column, k=k, where=where, windows=windows)


_register_ends(
    "first_k", "values", lambda values, k: values[:k], lambda values, _: [*values]
)


@with_hints
def first_k(
    column: str | None = None,
    k: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of the k earliest values, in order of time.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        k: The number of values, from 1 to 1,000.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any; the result is a list of that type. Nulls are
        skipped; fewer than k if there are fewer, an empty list over an empty window.
        Rows of equal time are in table order (with `arrival=`, in order of arrival).

    Raises:
        SpecError: If `k` is not from 1 to 1,000.

    Cost: ≤ 3 combines per row and window of O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.first_k(k=2))
        >>> w.insert_many([3, 1, 2], ["c", "a", "b"])
        >>> w.query()
        ['a', 'b']
    """
    return Aggregation("first_k", column, k=k, where=where, windows=windows)


def _latest(values: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    """The last k distinct values by latest occurrence; all NaNs are one."""
    seen: dict[Any, Any] = {}
    for value in reversed(values):
        try:
            seen.setdefault("nan" if is_nan(value) else (value,), value)
        except TypeError as error:
            raise SpecError(
                f"last_distinct() takes hashable values: {error}"
            ) from error
    return tuple(seen.values())[:k][::-1]


_register_ends(
    "last_distinct",
    "values",
    _latest,
    lambda values, _: [*values],
    takes=ORDERED,
    reads="equality",
    inputs=("order",),
)


@with_hints
def last_distinct(
    column: str | None = None,
    k: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of the k latest distinct values, in order of their latest occurrence.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        k: The number of values, from 1 to 1,000.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is a list of that type. Nulls
        are skipped; fewer than k if there are fewer, an empty list over an empty
        window. All NaNs are one value, as are the two zeros. Rows of equal time are in
        table order (with `arrival=`, in order of arrival).

    Raises:
        SpecError: If `k` is not from 1 to 1,000.

    Cost: ≤ 3 combines per row and window of O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.last_distinct(k=2))
        >>> w.insert_many([1, 2, 3, 4], ["a", "b", "c", "b"])
        >>> w.query()
        ['c', 'b']
    """
    return Aggregation("last_distinct", column, k=k, where=where, windows=windows)


# Of consecutive values: their number, the lengths of the runs of true ones at both
# ends, and that of the longest.
_Runs = tuple[int, int, int, int]


def _joined_runs(older: _Runs, younger: _Runs) -> _Runs:
    n, ahead, behind, most = older
    m, next_ahead, next_behind, next_most = younger
    return (
        n + m,
        ahead + next_ahead * (ahead == n),
        next_behind + behind * (next_behind == m),
        max(most, next_most, behind + next_ahead),
    )


register(
    "longest_run",
    takes=NUMBERS,
    result="int64",
    objects=over_objects(
        "longest_run",
        _joined_runs,
        lambda value: (1, *(int(bool(value)),) * 3),
        lambda runs: runs[3],
        (0, 0, 0, 0),
    ),
)


@with_hints
def longest_run(where: str | None = None, *, windows: Any = None) -> Aggregation:
    """The length of the longest run: of consecutive rows where a column is true.

    Args:
        where: The column of booleans; none in a `Window` of plain values.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: bool, and numbers, which are true unless 0 (NaN is true);
        the result is int64. Nulls are skipped: they neither count nor end a run; 0 over
        an empty window. Rows of equal time are in table order (with `arrival=`, in
        order of arrival).

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.longest_run())
        >>> w.insert_many([1, 2, 3, 4], [True, True, False, True])
        >>> w.query(), w.query(3)
        (2, 1)
    """
    return Aggregation("longest_run", where, windows=windows)


_register_ends(
    "last_k", "values", lambda values, k: values[-k:], lambda values, _: [*values]
)


@with_hints
def last_k(
    column: str | None = None,
    k: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of the k latest values, in order of time.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        k: The number of values, from 1 to 1,000.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any; the result is a list of that type. Nulls are
        skipped; fewer than k if there are fewer, an empty list over an empty window.
        Rows of equal time are in table order (with `arrival=`, in order of arrival).

    Raises:
        SpecError: If `k` is not from 1 to 1,000.

    Cost: ≤ 3 combines per row and window of O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.last_k(k=2))
        >>> w.insert_many([3, 1, 2], ["c", "a", "b"])
        >>> w.query()
        ['b', 'c']
    """
    return Aggregation("last_k", column, k=k, where=where, windows=windows)
