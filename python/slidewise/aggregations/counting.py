"""Counts, and quantifiers over booleans."""

from operator import and_, or_
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.objects import Pick, is_nan, larger, over_objects, smaller
from slidewise.aggregations.records import NUMBERS, ORDERED, register, register_like
from slidewise.hints import with_hints

__all__ = ["all", "any", "count", "max_count", "min_count"]

register(
    "count",
    of_rows=True,
    reads="",
    inputs=("present",),
    roles=("presence",),
    result="count",
    mergeable=True,
)


@with_hints
def count(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The number of rows, or of values of `column` that are not null.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any column; the result is int64. `count()` counts all
        rows, `count("x")` skips nulls of x; 0 over an empty window.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, None, 6]})
        >>> aggs = {"rows": sw.count(), "values": sw.count("x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["rows_2"].to_pylist(), out["values_2"].to_pylist()
        ([1, 2, 2], [1, 1, 1])
    """
    return Aggregation("count", column, where=where, windows=windows)


def _register_count(kind: str, pick: Pick) -> None:
    """Registers a count of the smallest or largest value."""

    def combine(older: tuple[Any, int], younger: tuple[Any, int]) -> tuple[Any, int]:
        (a, n), (b, m) = older, younger
        if a == b or (is_nan(a) and is_nan(b)):
            return a, n + m
        return older if pick(a, b) is a else younger

    register(
        kind,
        takes=ORDERED,
        reads="order",
        inputs=("order",),
        result="int64",
        objects=over_objects(
            kind, combine, lambda value: (value, 1), lambda partial: partial[1]
        ),
    )


_register_count("min_count", smaller)


@with_hints
def min_count(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The number of occurrences of the smallest value.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is int64. Nulls are skipped;
        null over an empty window.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 4, 9]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"n": sw.min_count("x")})
        >>> out["n_2"].to_pylist()
        [1, 2, 1]
    """
    return Aggregation("min_count", column, where=where, windows=windows)


_register_count("max_count", larger)


@with_hints
def max_count(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The number of occurrences of the largest value.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is int64. Nulls are skipped;
        null over an empty window.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 4, 3]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"n": sw.max_count("x")})
        >>> out["n_2"].to_pylist()
        [1, 2, 1]
    """
    return Aggregation("max_count", column, where=where, windows=windows)


_QUANTIFIER = register(
    "any", takes=NUMBERS, result="bool", objects=over_objects("any", or_, bool)
)


@with_hints
def any(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """Whether at least one value is true.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: bool, and numbers, which are true unless 0 (NaN is true);
        the result is bool. Nulls are skipped; null over an empty window.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window({"any": sw.any(), "all": sw.all()})
        >>> w.insert_many([1, 2, 3], [False, True, True])
        >>> w.query(), w.query(2)
        ({'any': True, 'all': False}, {'any': True, 'all': True})
    """
    return Aggregation("any", column, where=where, windows=windows)


register_like(_QUANTIFIER, kind="all", objects=over_objects("all", and_, bool))


@with_hints
def all(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """Whether every value is true.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: bool, and numbers, which are true unless 0 (NaN is true);
        the result is bool. Nulls are skipped; null over an empty window.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.all())
        >>> w.insert_many([1, 2], [True, None])
        >>> w.query()
        True
    """
    return Aggregation("all", column, where=where, windows=windows)
