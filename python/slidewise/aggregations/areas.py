"""Aggregations of values that go on to the next entry, and to the end of the window.

The area under them up to the last entry is a partial; the rest is known at the end.
"""

from datetime import timedelta
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, register, register_like
from slidewise.hints import with_hints

__all__ = ["integral", "time_weighted_mean"]

_INTEGRAL = register(
    "integral",
    core="area {agg.hold}",
    second="time",
    parameters=("hold", "edge", "unit"),
    takes=NUMBERS,
    inputs=("number", "time"),
    roles=("number", "time"),
    result="area",
    ended=True,
)


@with_hints
def integral(
    column: str | None = None,
    hold: str = "previous",
    edge: str = "carry",
    unit: str | int | timedelta | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The area under the values over time, up to the end of the window.

    The end is the row's own time, that of a hopping window, or the time of a query; the
    last value holds until then.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        hold: How a value goes on until the next entry: "previous" (it holds) or
            "linear" (in a straight line to the next value).
        edge: "carry" begins at the start of the window with the last entry at or before
            it; "first" at the first entry of the window. Windows of rows, and those
            that begin at a row, always begin at their first entry.
        unit: The unit of time, such as "1h"; an int for integer times. By default one
            second, or 1.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null over none, and 0 where no time has passed.

    Raises:
        SpecError: If `unit` does not fit the times; and with `edge="carry"` in a
            `Window` or `SharedWindow`, which keep no such entry.

    Sums are compensated for rounding, as those of `sum`.

    Cost: ≤ 3 combines per row and window, shared with `time_weighted_mean`; "carry"
    takes a second pass, and from files and in batches on Spark all rows of a key in
    memory. A stream keeps, for each key and column, the last entry behind its horizon,
    and folds twice per result.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.integral(edge="first"))
        >>> w.insert_many([0, 10, 15], [2.0, 4.0, 1.0])
        >>> w.query(), w.query(None, 20)
        (40.0, 45.0)
        >>> import pyarrow as pa
        >>> table = pa.table({"t": [0, 10, 15], "x": [2.0, 4.0, 1.0]})
        >>> out = sw.rolling(table, on="t", windows=12, aggs={"a": sw.integral("x")})
        >>> out["a_12"].to_pylist()  # the last one has 2.0 from time 3
        [0.0, 20.0, 34.0]
    """
    return Aggregation(
        "integral",
        column,
        hold=hold,
        edge=edge,
        unit=unit,
        where=where,
        windows=windows,
    )


register_like(
    _INTEGRAL,
    kind="time_weighted_mean",
    parameters=("hold", "edge"),
    result="level",
    sparse=True,
)


@with_hints
def time_weighted_mean(
    column: str | None = None,
    hold: str = "previous",
    edge: str = "carry",
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The mean of values, each weighted by the time for which it holds.

    It is `integral` ÷ the time from the first entry to the end of the window.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        hold: As for `integral`.
        edge: As for `integral`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null over none, and where no time has passed.

    Raises:
        SpecError: As for `integral`.

    Sums are compensated for rounding, as those of `sum`.

    Cost: ≤ 3 combines per row and window, shared with `integral`.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.time_weighted_mean(edge="first"))
        >>> w.insert_many([0, 10], [2.0, 4.0])
        >>> w.query(), w.query(None, 20)
        (2.0, 3.0)
    """
    return Aggregation(
        "time_weighted_mean",
        column,
        hold=hold,
        edge=edge,
        where=where,
        windows=windows,
    )
