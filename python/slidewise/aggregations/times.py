"""Aggregations of the times of entries: rates, gaps between them, and their ages."""

from datetime import timedelta
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, register, register_like
from slidewise.hints import with_hints

__all__ = [
    "max_gap",
    "mean_gap",
    "min_gap",
    "rate",
    "since_first",
    "since_last",
    "stddev_gap",
]

register(
    "rate",
    second="time",
    parameters=("unit",),
    takes=NUMBERS,
    inputs=("order", "order"),
    scale="rate",
    sparse=True,
)


@with_hints
def rate(
    column: str | None = None,
    unit: str | int | timedelta | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The change per time: (last − first value) ÷ (last − first time).

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        unit: The unit of time, such as "1h"; an int for integer times. By default one
            second, or 1.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null for fewer than 2 distinct times.

    Raises:
        SpecError: If `unit` does not fit the times.

    Cost: ≤ 3 combines per row and window, shared with `delta` of the same column.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.rate())
        >>> w.insert_many([10, 20, 30], [5, 6, 9])
        >>> w.query(), w.query(20)
        (0.2, 0.3)
    """
    return Aggregation("rate", column, unit=unit, where=where, windows=windows)


_MEAN_GAP = register(
    "mean_gap",
    of_rows=True,
    takes=("integer", "instant", "duration"),
    reads="",
    inputs=("time",),
    roles=("time",),
    scale="seconds",
    sparse=True,
)


@with_hints
def mean_gap(*, where: str | None = None, windows: Any = None) -> Aggregation:
    """The mean time between an entry and the next, within the window.

    Args:
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: float64, in seconds; for integer times in their unit. Null for
        fewer than 2 entries.

    Cost: ≤ 3 combines per row and window, shared with the other gaps.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.mean_gap())
        >>> w.insert_many([1, 2, 6])
        >>> w.query()
        2.5
    """
    return Aggregation("mean_gap", where=where, windows=windows)


_MAX_GAP = register_like(_MEAN_GAP, kind="max_gap", result="change", scale="gap")


@with_hints
def max_gap(*, where: str | None = None, windows: Any = None) -> Aggregation:
    """The longest time between an entry and the next, within the window.

    Args:
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: a duration; for integer times int64. Null for fewer than 2
        entries.

    Raises:
        ResultOverflowError: If it does not fit int64.

    Cost: ≤ 3 combines per row and window, shared with the other gaps.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> pings = pa.table({"t": pa.array([0, 60, 90], pa.timestamp("s"))})
        >>> aggs = {"gap": sw.max_gap()}
        >>> sw.rolling(pings, on="t", windows="1h", aggs=aggs)["gap_1h"][2].as_py()
        datetime.timedelta(seconds=60)
    """
    return Aggregation("max_gap", where=where, windows=windows)


register_like(_MAX_GAP, kind="min_gap")


@with_hints
def min_gap(*, where: str | None = None, windows: Any = None) -> Aggregation:
    """The shortest time between an entry and the next, within the window.

    Args:
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: a duration; for integer times int64. 0 between entries of equal
        time; null for fewer than 2 entries.

    Raises:
        ResultOverflowError: If it does not fit int64.

    Cost: ≤ 3 combines per row and window, shared with the other gaps.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.min_gap())
        >>> w.insert_many([1, 2, 6])
        >>> w.query()
        1
    """
    return Aggregation("min_gap", where=where, windows=windows)


register_like(_MEAN_GAP, kind="stddev_gap", parameters=("ddof",))


@with_hints
def stddev_gap(
    ddof: int = 1, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The standard deviation of the times between an entry and the next.

    Args:
        ddof: Delta degrees of freedom: the divisor is the number of gaps − `ddof`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: float64, in seconds; for integer times in their unit. Null for
        `ddof` gaps or fewer.

    Raises:
        SpecError: If `ddof` is negative.

    Cost: ≤ 3 combines per row and window, shared with the other gaps.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.stddev_gap(ddof=0))
        >>> w.insert_many([1, 2, 5])
        >>> w.query()
        1.0
    """
    return Aggregation("stddev_gap", ddof=ddof, where=where, windows=windows)


_SINCE_LAST = register_like(
    _MEAN_GAP,
    kind="since_last",
    core="max",
    result="since",
    scale="gap",
    ended=True,
    sparse=False,
)


@with_hints
def since_last(*, where: str | None = None, windows: Any = None) -> Aggregation:
    """The time from the last entry to the end of the window.

    The end is the row's own time, the end of a hopping window, or the time of a query;
    in a `Window` the upper bound of the query, or the time of the latest entry.

    Args:
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: a duration; for integer times int64. Null over no entries.

    Cost: ≤ 3 combines per row and window, shared with other ages.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.since_last())
        >>> w.insert_many([1, 2, 6])
        >>> w.query(), w.query(None, 10)
        (0, 4)
    """
    return Aggregation("since_last", where=where, windows=windows)


register_like(_SINCE_LAST, kind="since_first", core="min")


@with_hints
def since_first(*, where: str | None = None, windows: Any = None) -> Aggregation:
    """The time from the first entry of the window to its end.

    The end is that of `since_last`.

    Args:
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation: a duration; for integer times int64. Null over no entries.

    Cost: ≤ 3 combines per row and window, shared with other ages.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.since_first())
        >>> w.insert_many([1, 2, 6])
        >>> w.query(), w.query(2, 10)
        (5, 8)
    """
    return Aggregation("since_first", where=where, windows=windows)
