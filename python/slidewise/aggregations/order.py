"""Extremes, and the values at positions."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from operator import itemgetter
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.custom import Functions
from slidewise.aggregations.objects import (
    Pick,
    checked_lift,
    distance,
    larger,
    over_objects,
    smaller,
)
from slidewise.aggregations.records import ORDERED, register, register_like
from slidewise.hints import with_hints

__all__ = [
    "arg_max",
    "arg_min",
    "bottom_k",
    "first",
    "last",
    "max",
    "min",
    "range",
    "top_k",
]

_EXTREME = register(
    "min",
    takes=ORDERED,
    reads="order",
    inputs=("order",),
    result="value",
    objects=over_objects("min", smaller),
    mergeable=True,
    plotted=True,
)


@with_hints
def min(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The smallest value.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result keeps the type. Nulls are
        skipped; null over an empty window. A NaN in the window makes the answer NaN.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 5, 9]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"low": sw.min("x")})
        >>> out["low_2"].to_pylist()
        [4, 4, 5]
    """
    return Aggregation("min", column, where=where, windows=windows)


register_like(_EXTREME, kind="max", objects=over_objects("max", larger))


@with_hints
def max(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The largest value.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result keeps the type. Nulls are
        skipped; null over an empty window. A NaN in the window makes the answer NaN.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [9, 5, 4]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"top": sw.max("x")})
        >>> out["top_2"].to_pylist()
        [9, 9, 5]
    """
    return Aggregation("max", column, where=where, windows=windows)


def _ends(older: tuple[Any, Any], younger: tuple[Any, Any]) -> tuple[Any, Any]:
    return smaller(older[0], younger[0]), larger(older[1], younger[1])


register(
    "range",
    takes=("integer", "float", "null", "duration", "instant"),
    inputs=("order",),
    result="difference",
    objects=over_objects(
        "range",
        _ends,
        checked_lift("range", lambda x: distance(x, x), lambda x: (x, x)),
        lambda ends: distance(ends[1], ends[0]),
    ),
)


@with_hints
def range(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The difference between the largest and the smallest value.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers give int64 (uint64 gives uint64), floats
        float64, timestamps, dates and durations give a duration. Nulls are skipped;
        null over an empty window.

    Raises:
        ResultOverflowError: If an integer result does not fit.

    Cost: ≤ 3 combines per row and window, shared with `min` and `max` of the same
    column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [9, 5, 4]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"r": sw.range("x")})
        >>> out["r_2"].to_pylist()
        [0, 4, 1]
    """
    return Aggregation("range", column, where=where, windows=windows)


def _register_row(kind: str, pick: Pick) -> None:
    """Registers the value in the row of an extreme."""

    def combine(older: tuple[Any, Any], younger: tuple[Any, Any]) -> tuple[Any, Any]:
        return older if pick(older[0], younger[0]) is older[0] else younger

    register(
        kind,
        second="compared",
        takes=ORDERED,
        reads="order",
        inputs=("rows", "order"),
        roles=("number", "number"),
        result="value",
        objects=over_objects(kind, combine, lower=itemgetter(1)),
    )


_register_row("arg_min", smaller)


@with_hints
def arg_min(
    of: str | None = None,
    by: str | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The value of `of` in the first row where `by` is smallest.

    Args:
        of: The column to return; by default the time of the row.
        by: The column to compare.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: `of` anything, `by` ordered types; the result has the
        type of `of`. Without `of` it is the time of that row. Nulls of `by` are
        skipped; null over an empty window, or where that row's `of` is null. A NaN in
        `by` counts as the extreme.

    Raises:
        SpecError: If `by` is missing, over a table.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 7, 5], "who": ["a", "b", "c"]})
        >>> aggs = {"who": sw.arg_min("who", by="x"), "when": sw.arg_min(by="x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["who_2"].to_pylist(), out["when_2"].to_pylist()
        (['a', 'a', 'c'], [1, 1, 3])
    """
    return Aggregation("arg_min", of, by, where=where, windows=windows)


_register_row("arg_max", larger)


@with_hints
def arg_max(
    of: str | None = None,
    by: str | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The value of `of` in the first row where `by` is largest.

    Args:
        of: The column to return; by default the time of the row.
        by: The column to compare.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: `of` anything, `by` ordered types; the result has the
        type of `of`. Without `of` it is the time of that row. Nulls of `by` are
        skipped; null over an empty window, or where that row's `of` is null. A NaN in
        `by` counts as the extreme.

    Raises:
        SpecError: If `by` is missing, over a table.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 7, 5], "who": ["a", "b", "c"]})
        >>> aggs = {"who": sw.arg_max("who", by="x"), "when": sw.arg_max(by="x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["who_2"].to_pylist(), out["when_2"].to_pylist()
        (['a', 'b', 'b'], [1, 2, 2])
    """
    return Aggregation("arg_max", of, by, where=where, windows=windows)


_END = register(
    "first",
    reads="",
    inputs=("raw",),
    result="value",
    objects=over_objects("first", lambda older, _: older),
    plotted=True,
)


@with_hints
def first(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The earliest value that is not null.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any; the result keeps the type. Nulls are skipped; null
        over an empty window. Rows of equal time are in table order (with `arrival=`, in
        order of arrival).

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", None, "c"]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"x": sw.first("x")})
        >>> out["x_2"].to_pylist()
        ['a', 'a', 'c']
    """
    return Aggregation("first", column, where=where, windows=windows)


register_like(
    _END, kind="last", objects=over_objects("last", lambda _, younger: younger)
)


@with_hints
def last(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The latest value that is not null.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any; the result keeps the type. Nulls are skipped; null
        over an empty window. Rows of equal time are in table order (with `arrival=`, in
        order of arrival).

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", None, "c"]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"x": sw.last("x")})
        >>> out["x_2"].to_pylist()
        ['a', 'a', 'c']
    """
    return Aggregation("last", column, where=where, windows=windows)


def _register_best(kind: str, pick: Pick) -> None:
    """Registers the first k values in an order, or those in their rows."""

    def merged(k: int, first: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
        # A combine of sorted runs: the first k of both, earlier ones first.
        def combine(
            older: tuple[Any, ...], younger: tuple[Any, ...]
        ) -> tuple[Any, ...]:
            best: list[Any] = []
            at, other = 0, 0
            while len(best) < k and (at < len(older) or other < len(younger)):
                left = other == len(younger) or (
                    at < len(older) and first(older[at], younger[other])
                )
                best.append(older[at] if left else younger[other])
                at, other = at + left, other + (not left)
            return tuple(best)

        return combine

    @cache
    def objects(k: int) -> Functions:
        lift = checked_lift(kind, lambda value: value < value, lambda value: (value,))
        combine = merged(k, lambda older, younger: pick(older, younger) is older)
        return over_objects(kind, combine, lift, list, ())(k)

    @cache
    def objects_by(k: int) -> Functions:
        lift = checked_lift(
            kind,
            lambda pair: pair[0] < pair[0],
            lambda pair: () if pair[1] is None else (pair,),
        )
        combine = merged(k, lambda a, b: pick(a[0], b[0]) is a[0])
        return over_objects(
            kind, combine, lift, lambda pairs: [value for _, value in pairs], ()
        )(k)

    plain = register(
        kind,
        parameters=("k",),
        takes=ORDERED,
        reads="order",
        inputs=("order",),
        result="values",
        objects=objects,
    )
    register_like(
        plain,
        with_by=replace(
            plain,
            core=f"{kind}_by",
            second="compared",
            inputs=("rows", "order"),
            roles=("number", "number"),
            objects=objects_by,
        ),
    )


_register_best("top_k", larger)


@with_hints
def top_k(
    column: str | None = None,
    k: int = 1,
    *,
    by: str | None = None,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of the k largest values, largest first.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        k: The number of values, from 1 to 1,000.
        by: The column to compare, if not `column`: the values of `column` in the rows
            with the k largest of it; of equal ones, in the earlier row.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is a list of that type. With
        `by` this has an ordered type, and `column` any. Nulls are skipped, with `by`
        rows where one of both is null; fewer than k if there are fewer, an empty list
        over an empty window. A NaN comes before all others.

    Raises:
        SpecError: If `k` is not from 1 to 1,000.

    Cost: ≤ 3 combines per row and window of O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.top_k(k=2))
        >>> w.insert_many([1, 2, 3], [7, 9, 1])
        >>> w.query()
        [9, 7]
        >>> w = sw.Window(sw.top_k("who", 2, by="paid"))
        >>> w.insert_many([1, 2, 3], {"who": ["a", "b", "c"], "paid": [7, 9, 1]})
        >>> w.query()
        ['b', 'a']
    """
    return Aggregation("top_k", column, by, k=k, where=where, windows=windows)


_register_best("bottom_k", smaller)


@with_hints
def bottom_k(
    column: str | None = None,
    k: int = 1,
    *,
    by: str | None = None,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of the k smallest values, smallest first.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        k: The number of values, from 1 to 1,000.
        by: The column to compare, if not `column`: the values of `column` in the rows
            with the k smallest of it; of equal ones, in the earlier row.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is a list of that type. With
        `by` this has an ordered type, and `column` any. Nulls are skipped, with `by`
        rows where one of both is null; fewer than k if there are fewer, an empty list
        over an empty window. A NaN comes before all others.

    Raises:
        SpecError: If `k` is not from 1 to 1,000.

    Cost: ≤ 3 combines per row and window of O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.bottom_k(k=2))
        >>> w.insert_many([1, 2, 3], [7, 9, 1])
        >>> w.query()
        [1, 7]
    """
    return Aggregation("bottom_k", column, by, k=k, where=where, windows=windows)
