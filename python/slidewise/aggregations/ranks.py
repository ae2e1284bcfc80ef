"""Ranks of the value of a row among the values of its window."""

from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import ORDERED, register, register_like
from slidewise.hints import with_hints

__all__ = ["percent_rank", "rank"]

_RANK = register(
    "rank",
    "holistic",
    core="rank {agg.method}",
    parameters=("method",),
    takes=ORDERED,
    reads="order",
    inputs=("order",),
    needs_row=True,
)


@with_hints
def rank(
    column: str | None = None,
    method: str = "average",
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The rank of the row's own value among the values of its window, from 1 on.

    Args:
        column: The column to rank.
        method: The rank of equal values: the "average" of their positions in ascending
            order, the least ("min", SQL's RANK) or the greatest of these ("max"), or
            the number of different values up to it ("dense", SQL's DENSE_RANK).
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is float64 for "average", else
        int64. Nulls are skipped; null if the row's own value is null or does not count,
        and over an empty window. A row that its window does not hold, as with
        `closed="left"`, is ranked as if it were there. NaN is a value, larger than all
        others; all NaNs are one, as are the two zeros.

    Raises:
        SpecError: If the method is unknown. Where there is no row, it is refused: in
            `hopping`, a `Window`, with `at=`, and in queries without `plus=`.

    Cost: O(log n) per row and window.

    Source: `rank` of pandas and polars; SQL:2003, RANK and DENSE_RANK.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3, 4], "x": [5, 7, 5, 9]})
        >>> aggs = {"r": sw.rank("x"), "top": sw.rank("x", "max")}
        >>> out = sw.rolling(table, on="t", windows=3, aggs=aggs)
        >>> out["r_3"].to_pylist(), out["top_3"].to_pylist()
        ([1.0, 2.0, 1.5, 3.0], [1, 2, 2, 3])
    """
    return Aggregation("rank", column, method=method, where=where, windows=windows)


register_like(_RANK, kind="percent_rank", core="rank percent", parameters=())


@with_hints
def percent_rank(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The share of the other values of the window that the row's own value exceeds.

    It is (r - 1) / (n - 1) for the rank r by the method "min" among n values: from 0
    for the smallest to 1 for a largest one that is alone; 0 if there is no other value.

    Args:
        column: The column to rank.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types; the result is float64. Nulls are skipped;
        null if the row's own value is null or does not count, and over an empty window.
        A row that its window does not hold, as with `closed="left"`, is ranked as if it
        were there. NaN is a value, larger than all others; all NaNs are one, as are the
        two zeros.

    Raises:
        SpecError: Where there is no row: in `hopping`, a `Window`, with `at=`, and in
            queries without `plus=`.

    Cost: O(log n) per row and window.

    Source: SQL:2003, PERCENT_RANK.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3, 4], "x": [5, 7, 6, 9]})
        >>> aggs = {"share": sw.percent_rank("x")}
        >>> sw.rolling(table, on="t", windows=3, aggs=aggs)["share_3"].to_pylist()
        [0.0, 1.0, 0.5, 1.0]
    """
    return Aggregation("percent_rank", column, where=where, windows=windows)
