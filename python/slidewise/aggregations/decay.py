"""Aggregations whose rows lose weight with age: by time, or by the rows after them."""

from datetime import timedelta
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, register, register_like
from slidewise.hints import with_hints

__all__ = ["decayed_count", "decayed_mean", "decayed_sum", "decayed_variance"]

_SUM = register(
    "decayed_sum",
    second="time",
    parameters=("half_life",),
    takes=NUMBERS,
    inputs=("number", "time"),
    roles=("number", "time"),
    result="decayed",
    ended=True,
)


@with_hints
def decayed_sum(
    column: str | None = None,
    half_life: str | int | timedelta | Any = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The sum of values whose weights halve per half-life: Σ x · 2^(−age ÷ half-life).

    The age of a row is the time from it to the end of the window: to the row's own
    time, to the end of a hopping window, to the time of a query. With `sw.rows(k)` it
    is the number of values after it, and the last value has weight 1.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        half_life: A duration such as "1h", an int for integer times, or `sw.rows(k)`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null over none. A weight below the floats is zero.

    Raises:
        SpecError: If `half_life` is not longer than zero, or does not fit the times.

    The relative error is about 2⁻⁵⁰ of Σ|x| · weight: over any span of time the weights
    are scaled by powers of two, which is exact. With `sw.rows(k)` each combine rounds
    weights once more.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.decayed_sum(half_life=10))
        >>> w.insert_many([0, 10, 20], [8.0, 4.0, 1.0])
        >>> w.query(), w.query(None, 30)
        (5.0, 2.5)
    """
    return Aggregation(
        "decayed_sum", column, half_life=half_life, where=where, windows=windows
    )


register(
    "decayed_count",
    of_rows=True,
    parameters=("half_life",),
    takes=("integer", "instant", "duration"),
    reads="",
    inputs=("time",),
    roles=("time",),
    result="decayed",
    ended=True,
)


@with_hints
def decayed_count(
    half_life: str | int | timedelta | Any = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The number of rows whose weights halve per half-life: Σ 2^(−age ÷ half-life).

    Ages are those of `decayed_sum`.

    Args:
        half_life: A duration such as "1h", an int for integer times, or `sw.rows(k)`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: float64; null over no rows.

    Raises:
        SpecError: If `half_life` is not longer than zero, or does not fit the times.

    The error is that of `decayed_sum`.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.decayed_count(half_life=10))
        >>> w.insert_many([0, 10, 20])
        >>> w.query()
        1.75
    """
    return Aggregation(
        "decayed_count", half_life=half_life, where=where, windows=windows
    )


_MEAN = register_like(_SUM, kind="decayed_mean", result="number", ended=False)


@with_hints
def decayed_mean(
    column: str | None = None,
    half_life: str | int | timedelta | Any = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The mean of values whose weights halve per half-life, an exponential average.

    It is `decayed_sum` ÷ the sum of the weights, so it does not depend on the end of
    the window: until the next row it stays.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        half_life: A duration such as "1h", an int for integer times, or `sw.rows(k)`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null over none.

    Raises:
        SpecError: If `half_life` is not longer than zero, or does not fit the times.

    The error is that of `decayed_sum`.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.decayed_mean(half_life=10))
        >>> w.insert_many([0, 10], [2.0, 5.0])
        >>> w.query()
        4.0
    """
    return Aggregation(
        "decayed_mean", column, half_life=half_life, where=where, windows=windows
    )


register_like(_MEAN, kind="decayed_variance")


@with_hints
def decayed_variance(
    column: str | None = None,
    half_life: str | int | timedelta | Any = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The variance of values whose weights halve per half-life.

    Σ w · (x − mean)² ÷ Σ w, where the mean is `decayed_mean` and w the weights; it is
    of the population, as with `ddof=0`.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        half_life: A duration such as "1h", an int for integer times, or `sw.rows(k)`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64, NaN if
        a value is not finite. Nulls are skipped; null over none.

    Raises:
        SpecError: If `half_life` is not longer than zero, or does not fit the times.

    Means of parts are merged in double-double arithmetic.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.decayed_variance(half_life=10))
        >>> w.insert_many([0, 10], [2.0, 5.0])
        >>> w.query()
        2.0
    """
    return Aggregation(
        "decayed_variance", column, half_life=half_life, where=where, windows=windows
    )
