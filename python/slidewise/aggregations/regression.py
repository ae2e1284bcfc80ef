"""Least squares of one column on another, and weighted means."""

from datetime import timedelta
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, register, register_like
from slidewise.hints import with_hints

__all__ = ["intercept", "r_squared", "slope", "weighted_mean"]

_MEAN = register(
    "weighted_mean",
    second="paired",
    takes=NUMBERS,
    inputs=("number", "number"),
    roles=("number", "number"),
    sparse=True,
)


@with_hints
def weighted_mean(
    column: str | None = None,
    by: str | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The weighted mean, Σ x·w ÷ Σ w.

    Args:
        column: The column of the values x.
        by: The column of the weights w.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Rows
        where either is null are skipped; null where there are none, or the weights sum
        to 0. The error is that of two sums; products may exceed float64.

    Raises:
        SpecError: If a column is missing.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trades = pa.table({"t": [1, 2], "price": [10, 40], "size": [2, 1]})
        >>> aggs = {"vwap": sw.weighted_mean("price", by="size")}
        >>> sw.rolling(trades, on="t", windows=9, aggs=aggs)["vwap_9"].to_pylist()
        [10.0, 20.0]
    """
    return Aggregation("weighted_mean", column, by, where=where, windows=windows)


# A shift moves neither a slope nor distances from a line, and shifted uint64 is int64.
_SLOPE = register_like(
    _MEAN,
    kind="slope",
    second="either",
    parameters=("unit",),
    inputs=("order", "order"),
    scale="rate",
)


@with_hints
def slope(
    y: str | None = None,
    x: str | None = None,
    unit: str | int | timedelta | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The slope of the least-squares line of y on x: their covariance ÷ variance of x.

    Args:
        y: The column that depends on x; none in a `Window` of plain values.
        x: The other column; by default the time.
        unit: Over time, the unit of the slope, such as "1h"; an int for integer times.
            By default one second, or 1.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Rows
        where either is null are skipped; null for fewer than 2 distinct x. NaN or
        infinite where all deviations of x are below 1e-162.

    Raises:
        SpecError: If a column is missing, or `unit` does not fit the times.

    Cost: ≤ 3 combines per row and window, shared with `intercept`, `r_squared` and
    `covariance` of the same columns.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.slope("y", "x"))
        >>> w.insert_many([1, 2, 3], {"y": [1, 3, 5], "x": [0, 1, 2]})
        >>> w.query()
        2.0
        >>> w = sw.Window(sw.slope(unit=60))
        >>> w.insert_many([0, 60, 120], [1, 2, 3])
        >>> w.query()
        1.0
    """
    return Aggregation("slope", y, x, unit=unit, where=where, windows=windows)


register_like(
    _SLOPE, kind="intercept", parameters=(), inputs=("number", "number"), scale=""
)


@with_hints
def intercept(
    y: str | None = None,
    x: str | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The intercept of the least-squares line: mean of y − `slope` · mean of x.

    Args:
        y: The column that depends on x; none in a `Window` of plain values.
        x: The other column; by default the time: y at the epoch.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Rows
        where either is null are skipped; null for fewer than 2 distinct x. The error is
        relative to the two terms, not to their difference.

    Raises:
        SpecError: If a column is missing.

    Cost: ≤ 3 combines per row and window, shared with `slope` and `r_squared` of the
    same columns.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.intercept("y", "x"))
        >>> w.insert_many([1, 2, 3], {"y": [3, 5, 7], "x": [0, 1, 2]})
        >>> w.query()
        3.0
    """
    return Aggregation("intercept", y, x, where=where, windows=windows)


register_like(_SLOPE, kind="r_squared", parameters=(), scale="")


@with_hints
def r_squared(
    y: str | None = None,
    x: str | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The coefficient of determination of the line of y on x: `correlation` squared.

    Args:
        y: The column that depends on x; none in a `Window` of plain values.
        x: The other column; by default the time.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64, from 0
        to 1. Rows where either is null are skipped; null for fewer than 2 distinct x; 1
        where all y are equal, as REGR_R2 of SQL.

    Raises:
        SpecError: If a column is missing.

    Cost: ≤ 3 combines per row and window, shared with `slope` and `intercept` of the
    same columns.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.r_squared("y", "x"))
        >>> w.insert_many([1, 2, 3, 4], {"y": [0, 1, 0, 1], "x": [1, 2, 3, 4]})
        >>> w.query()
        0.2
    """
    return Aggregation("r_squared", y, x, where=where, windows=windows)
