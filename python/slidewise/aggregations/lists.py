"""Lists and concatenations of values."""

from itertools import chain
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import register
from slidewise.errors import SpecError
from slidewise.hints import with_hints

__all__ = ["collect", "collect_distinct", "concat"]

register("collect", reads="", inputs=("rows",), roles=("any",), result="values")


@with_hints
def collect(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The list of values that are not null, in time order.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: any; the result is a list of that type. Nulls are
        skipped; an empty list over an empty window.

    Cost: O(length of the window) per row, the size of the answer.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": ["a", "b", "c"]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"x": sw.collect("x")})
        >>> out["x_2"].to_pylist()
        [['a'], ['a', 'b'], ['b', 'c']]
    """
    return Aggregation("collect", column, where=where, windows=windows)


def _joined(values: list[Any]) -> Any:
    """Joins values of one type; None over an empty window."""
    if not values:
        return None
    kind = type(values[0])
    for value in values:
        if type(value) is not kind:
            raise SpecError(
                f"concat() takes values of one type, got {kind.__name__} and "
                f"{type(value).__name__}"
            )
    if kind is str or kind is bytes:
        return kind().join(values)
    if kind is list or kind is tuple:
        return kind(chain.from_iterable(values))
    raise SpecError(
        f"concat() takes str, bytes, lists and tuples, got {kind.__name__}: "
        "collect() takes any type"
    )


register(
    "concat",
    core="collect",
    takes=("text", "null"),
    accepted="text and binary",
    reads="",
    inputs=("rows",),
    roles=("any",),
    result="joined",
    finish=_joined,
)


@with_hints
def concat(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The concatenation of values that are not null, in time order.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: text and binary; in a `Window` also lists and tuples. The
        result keeps the type. Nulls are skipped; null over an empty window.

    Raises:
        SpecError: If the column has another type.

    Cost: O(length of the window) per row, the size of the answer.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.concat())
        >>> w.insert_many([2, 1, 3], ["i", "F", "BA"])
        >>> w.query()
        'FiBA'
    """
    return Aggregation("concat", column, where=where, windows=windows)


def _distinct(values: list[Any]) -> list[Any]:
    """Distinct values in order of first occurrence; all NaNs are one."""
    seen: dict[Any, Any] = {}
    for value in values:
        try:
            seen.setdefault("nan" if value != value else (value,), value)
        except TypeError as error:
            raise SpecError(
                f"collect_distinct() takes hashable values: {error}"
            ) from error
    return list(seen.values())


register(
    "collect_distinct",
    core="collect",
    reads="equality",
    # The kernel collects only the first row of each code where it can.
    inputs=("rows", "codes"),
    roles=("any",),
    result="distinct",
    finish=_distinct,
)


@with_hints
def collect_distinct(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The list of distinct values, in order of first occurrence.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: hashable values; over tables anything that can be a key
        column. NaNs are one value. Nulls are skipped; an empty list over an empty
        window.

    Raises:
        SpecError: If the column has another type.

    Cost: O(length of the window) per row.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.collect_distinct())
        >>> w.insert_many([1, 2, 3], ["b", "a", "b"])
        >>> w.query(), w.query(2)
        (['b', 'a'], ['a', 'b'])
    """
    return Aggregation("collect_distinct", column, where=where, windows=windows)
