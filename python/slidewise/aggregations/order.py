"""Extremes and places."""

from slidewise.aggregations.base import Aggregation

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


def min(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """The smallest value.

    Types: anything with an order; the result keeps the type. Nulls are skipped; null
    over nothing. A NaN in the window makes the answer NaN. Errors: none. Cost: ≤ 3
    combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 5, 9]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"low": sw.min("x")})
        >>> out["low_2"].to_pylist()
        [4, 4, 5]
    """
    return Aggregation("min", column, where=where)


def max(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """The largest value.

    Types: anything with an order; the result keeps the type. Nulls are skipped; null
    over nothing. A NaN in the window makes the answer NaN. Errors: none. Cost: ≤ 3
    combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [9, 5, 4]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"top": sw.max("x")})
        >>> out["top_2"].to_pylist()
        [9, 9, 5]
    """
    return Aggregation("max", column, where=where)


def range(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """The largest value minus the smallest.

    Types: integers give int64 (uint64 gives uint64), floats float64, timestamps, dates
    and durations give a duration. Nulls are skipped; null over nothing. Errors:
    `ResultOverflowError` if an integer result does not fit. Cost: ≤ 3 combines, shared
    with `min` and `max` of the same column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [9, 5, 4]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"r": sw.range("x")})
        >>> out["r_2"].to_pylist()
        [0, 4, 1]
    """
    return Aggregation("range", column, where=where)


def arg_min(
    of: str | None = None, by: str | None = None, *, where: str | None = None
) -> Aggregation:
    """The value of `of` in the row where `by` is smallest, the first such row.

    Types: `of` anything, `by` anything with an order; the result has the type of `of`.
    Without `of` it is the time of that row. Nulls of `by` are skipped; null over
    nothing, or where that row's `of` is null. A NaN in `by` counts as the extreme.
    Errors: over a table, `SpecError` without `by`. Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 7, 5], "who": ["a", "b", "c"]})
        >>> aggs = {"who": sw.arg_min("who", by="x"), "when": sw.arg_min(by="x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["who_2"].to_pylist(), out["when_2"].to_pylist()
        (['a', 'a', 'c'], [1, 1, 3])
    """
    return Aggregation("arg_min", of, by, where=where)


def arg_max(
    of: str | None = None, by: str | None = None, *, where: str | None = None
) -> Aggregation:
    """The value of `of` in the row where `by` is largest, the first such row.

    Types: `of` anything, `by` anything with an order; the result has the type of `of`.
    Without `of` it is the time of that row. Nulls of `by` are skipped; null over
    nothing, or where that row's `of` is null. A NaN in `by` counts as the extreme.
    Errors: over a table, `SpecError` without `by`. Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 7, 5], "who": ["a", "b", "c"]})
        >>> aggs = {"who": sw.arg_max("who", by="x"), "when": sw.arg_max(by="x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["who_2"].to_pylist(), out["when_2"].to_pylist()
        (['a', 'b', 'b'], [1, 2, 2])
    """
    return Aggregation("arg_max", of, by, where=where)


def first(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """The oldest value that is not null.

    Types: anything; the result keeps the type. Nulls are skipped; null over nothing.
    Equal times go by table order (with `arrival=`, by order of arrival). Errors: none.
    Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", None, "c"]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"x": sw.first("x")})
        >>> out["x_2"].to_pylist()
        ['a', 'a', 'c']
    """
    return Aggregation("first", column, where=where)


def last(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """The youngest value that is not null.

    Types: anything; the result keeps the type. Nulls are skipped; null over nothing.
    Equal times go by table order (with `arrival=`, by order of arrival). Errors: none.
    Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", None, "c"]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"x": sw.last("x")})
        >>> out["x_2"].to_pylist()
        ['a', 'a', 'c']
    """
    return Aggregation("last", column, where=where)


def top_k(
    column: str | None = None, k: int = 1, *, where: str | None = None
) -> Aggregation:
    """The k largest values, most extreme first, as a list.

    Types: anything with an order; the result is a list of that type. Nulls are skipped;
    fewer than k where there are no more, an empty list over nothing. A NaN comes before
    all others. Errors: `SpecError` if `k` is not from 1 to 1,000. Cost: ≤ 3 combines of
    O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.top_k(k=2))
        >>> w.insert_many([1, 2, 3], [7, 9, 1])
        >>> w.query()
        [9, 7]
    """
    return Aggregation("top_k", column, k=k, where=where)


def bottom_k(
    column: str | None = None, k: int = 1, *, where: str | None = None
) -> Aggregation:
    """The k smallest values, most extreme first, as a list.

    Types: anything with an order; the result is a list of that type. Nulls are skipped;
    fewer than k where there are no more, an empty list over nothing. A NaN comes before
    all others. Errors: `SpecError` if `k` is not from 1 to 1,000. Cost: ≤ 3 combines of
    O(k).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.bottom_k(k=2))
        >>> w.insert_many([1, 2, 3], [7, 9, 1])
        >>> w.query()
        [1, 7]
    """
    return Aggregation("bottom_k", column, k=k, where=where)
