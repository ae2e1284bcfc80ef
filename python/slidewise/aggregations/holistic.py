"""Holistic aggregations: quantiles, modes and distinct counts.

No partial of bounded size answers these exactly, so they run on structures over all
values of a window: a `Window` of them takes entries in any order, and no `algorithm=`
but "auto", "fiba" and "recalculate".
"""

from collections.abc import Iterable
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, ORDERED, register
from slidewise.errors import SpecError
from slidewise.hints import with_hints

__all__ = ["count_distinct", "median", "mode", "quantile"]

register(
    "count_distinct",
    "holistic",
    reads="equality",
    inputs=("distinct",),
    roles=("key",),
    result="count",
)


@with_hints
def count_distinct(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The exact number of distinct values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: hashable values (over tables: a key column); the result
        is int64. Nulls are skipped; 0 over an empty window. All NaNs are one value, as
        are the two zeros.

    Cost: O(1) expected per row and window; a range of a `Window` costs sorting it.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", "b", "b"]})
        >>> aggs = {"d": sw.count_distinct("x")}
        >>> sw.rolling(table, on="t", windows=2, aggs=aggs)["d_2"].to_pylist()
        [1, 2, 1]
    """
    return Aggregation("count_distinct", column, where=where, windows=windows)


# The families of values between two of which there are others.
_BETWEEN = (*NUMBERS, "duration", "decimal")

register(
    "quantile",
    "holistic",
    core="quantile {agg.q!r} {agg.interpolation}",
    parameters=("q", "interpolation"),
    takes=ORDERED,
    between=_BETWEEN,
    reads="order",
    inputs=("order",),
    result="value",
)


@with_hints
def quantile(
    column: str | float | Iterable[float] | None = None,
    q: float | Iterable[float] | None = None,
    *,
    interpolation: str = "linear",
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The exact quantile: the value below which a share q of the values lies.

    Args:
        column: The column; in a `Window` of plain values q may come first.
        q: From 0 (the smallest) to 1 (the largest); 0.5 if left out. Several, such as
            `[0.5, 0.99]`, give a result for each, with "_p50" and "_p99" after the name
            of the aggregation.
        interpolation: The answer if q lies between two values: on the line between them
            ("linear"), on the "lower", the "higher" or the "nearest" of both (of two
            that are equally near, the one of even rank), or in the middle ("midpoint");
            as in numpy and pandas.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, floats, decimals and durations; with
        interpolation "lower", "higher" or "nearest" over tables also times and text.
        The result is float64, over durations a duration, or has the type of the column
        where it is one of the values. Nulls are skipped; null over an empty window. A
        NaN in the window makes the answer NaN.

    Raises:
        SpecError: If q is not from 0 to 1, or there twice.

    Cost: O(log n) per row and window, and a step for each q; a range of a `Window`
    costs sorting it.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window({"p10": sw.quantile("ms", 0.1), "n": sw.count()})
        >>> w.insert_many([1, 2, 3], {"ms": [30, 10, 20]})
        >>> w.query()
        {'p10': 12.0, 'n': 3}
        >>> w = sw.Window(sw.quantile(0.9, interpolation="higher"))
        >>> w.insert_many([1, 2, 3], [30, 10, 20])
        >>> w.query()
        30
        >>> w = sw.Window({"ms": sw.quantile([0.5, 1])})
        >>> w.insert_many([1, 2, 3], [30, 10, 20])
        >>> w.query()
        {'ms_p50': 20.0, 'ms_p100': 30.0}
    """
    if column is not None and not isinstance(column, str):
        if q is not None:
            raise SpecError(f"quantile() takes a column and q=, got {column!r}, {q!r}")
        column, q = None, column
    share: Any = 0.5 if q is None else q
    return Aggregation(
        "quantile",
        column,
        where=where,
        windows=windows,
        q=share,
        interpolation=interpolation,
    )


register(
    "median",
    "holistic",
    core="quantile 0.5 linear",
    takes=_BETWEEN,
    accepted="integers, floats, decimals of up to 38 digits, bool and durations",
    between=_BETWEEN,
    reads="order",
    inputs=("order",),
    result="value",
)


@with_hints
def median(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The exact median; of an even number of values, the mean of the middle two.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, floats and decimals give float64, durations a
        duration. Nulls are skipped; null over an empty window. A NaN in the window
        makes the answer NaN.

    Cost: O(log n) per row and window; a range of a `Window` costs sorting it.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.median())
        >>> w.insert_many([1, 2, 3, 4], [7, 1, 3, 9])
        >>> w.query(), w.query(2, 4)
        (5.0, 3.0)
    """
    return Aggregation("median", column, where=where, windows=windows)


def _smallest(values: list[Any]) -> Any:
    """The smallest of equally frequent values; NaN is the largest."""
    if len(values) <= 1:
        return values[0] if values else None
    numbers = [value for value in values if value == value]
    try:
        return min(numbers)
    except TypeError as error:
        raise SpecError(
            "mode() gives the smallest of the most frequent values, which do not "
            f"compare: {error}"
        ) from error


register(
    "mode",
    "holistic",
    takes=ORDERED,
    reads="order",
    inputs=("order",),
    roles=("key",),
    result="value",
    finish=_smallest,
)


@with_hints
def mode(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The most frequent value; of equally frequent values the smallest.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types that can be a dict's key; the result keeps
        the type. Nulls are skipped; null over an empty window. NaN is a value, larger
        than all others; all NaNs are one, as are the two zeros.

    Raises:
        SpecError: If equally frequent objects do not compare.

    Cost: O(log n) per row and window; a range of a `Window` costs sorting it, and
    objects one comparison per equally frequent value.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.mode())
        >>> w.insert_many([1, 2, 3, 4], [7, 1, 7, 1])
        >>> w.query(), w.query(2)
        (1, 1)
    """
    return Aggregation("mode", column, where=where, windows=windows)
