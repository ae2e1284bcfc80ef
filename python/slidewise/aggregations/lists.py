"""All values, one way or another."""

from slidewise.aggregations.base import Aggregation

__all__ = [
    "collect",
    "collect_distinct",
    "concat",
]


def collect(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """All values that are not null, in time order, as a list.

    Types: anything; the result is a list of that type. Nulls are skipped; an empty list
    over nothing. Errors: none. Cost: as large as its answer, the length of the window
    for every row.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", "b", "c"]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"x": sw.collect("x")})
        >>> out["x_2"].to_pylist()
        [['a'], ['a', 'b'], ['b', 'c']]
    """
    return Aggregation("collect", column, where=where)


def concat(column: str | None = None, *, where: str | None = None) -> Aggregation:
    """All values that are not null, in time order, as one text.

    Types: text and binary; in a `Window` also lists and tuples. The result keeps the
    type. Nulls are skipped; null over nothing. Errors: `SpecError` over other types.
    Cost: as large as its answer, the length of the window for every row.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.concat())
        >>> w.insert_many([2, 1, 3], ["i", "F", "BA"])
        >>> w.query()
        'FiBA'
    """
    return Aggregation("concat", column, where=where)


def collect_distinct(
    column: str | None = None, *, where: str | None = None
) -> Aggregation:
    """The different values, as a list in the order in which they first come.

    Types: anything that can be a dict's key; over tables anything that can be a key
    column. NaNs are one value. Nulls are skipped; an empty list over nothing. Errors:
    `SpecError` over other values. Cost: the length of the window for every row.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.collect_distinct())
        >>> w.insert_many([1, 2, 3], ["b", "a", "b"])
        >>> w.query(), w.query(2)
        (['b', 'a'], ['a', 'b'])
    """
    return Aggregation("collect_distinct", column, where=where)
