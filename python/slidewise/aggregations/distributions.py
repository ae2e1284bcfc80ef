"""Aggregations of how often values occur: by value, by bin, and their entropy."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, ORDERED, register
from slidewise.errors import SpecError
from slidewise.hints import with_hints

__all__ = ["entropy", "histogram", "value_counts"]


def _structs(found: list[tuple[Any, int, int]]) -> list[dict[str, Any]]:
    """Values with their counts; of equal counts the smallest value first."""
    structs = []
    for count, group in groupby(found, key=itemgetter(1)):
        try:
            # NaN is the largest.
            values = sorted((value != value, value) for value, _, _ in group)
        except TypeError as error:
            raise SpecError(
                "value_counts() orders values of equal counts, which do not compare: "
                f"{error}"
            ) from error
        structs += [{"value": value, "count": count} for _, value in values]
    return structs


register(
    "value_counts",
    "holistic",
    parameters=("top",),
    takes=ORDERED,
    reads="order",
    inputs=("order",),
    roles=("key",),
    result="value_counts",
    finish=_structs,
)


@with_hints
def value_counts(
    column: str | None = None,
    top: int | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of distinct values with their counts, the most frequent first.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        top: The most values that are listed; all if left out.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: ordered types that can be a dict's key; the result is a
        list of structs with `value` and `count`, by descending count, then ascending
        value. Nulls are skipped; an empty list over an empty window. NaN is a value,
        larger than all others; all NaNs are one, as are the two zeros.

    Raises:
        SpecError: If `top` is not 1 or more; if equally frequent objects do not
            compare.

    Cost: O(log n) per row and window, and O(length of the list) per answer; a range of
    a `Window` costs sorting it.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.value_counts(top=2))
        >>> w.insert_many([1, 2, 3, 4], ["b", "a", "b", "c"])
        >>> w.query()
        [{'value': 'b', 'count': 2}, {'value': 'a', 'count': 1}]
    """
    return Aggregation("value_counts", column, top=top, where=where, windows=windows)


register(
    "entropy",
    "holistic",
    reads="equality",
    inputs=("distinct",),
    roles=("key",),
)


@with_hints
def entropy(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The entropy in nats: −Σ p ln p over the shares p of the distinct values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: hashable values (over tables: a key column); the result
        is float64, with a relative error of at most 2⁻⁵⁰, and the same for all orders
        of the values. Nulls are skipped; null over an empty window. All NaNs are one
        value, as are the two zeros.

    Cost: O(log n) per row and window and O(√n) per answer over tables; in a `Window`
    O(d) per answer for d distinct values.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.entropy())
        >>> w.insert_many([1, 2, 3, 4], ["a", "b", "c", "d"])
        >>> round(w.query(), 6), w.query(4)
        (1.386294, 0.0)
    """
    return Aggregation("entropy", column, where=where, windows=windows)


register(
    "histogram",
    core="histogram {agg.shown_edges}",
    parameters=("edges",),
    takes=NUMBERS,
    inputs=("whole",),
    result="counts",
)


@with_hints
def histogram(
    column: str | None = None,
    *,
    edges: Iterable[float] = (),
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The list of the numbers of values in bins, with those below and above.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        edges: From 1 to 1,000 numbers that ascend: the first bin holds the values below
            the first edge, each further one those from an edge (inclusive) to the next
            (exclusive), the last one those from the last edge on.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, floats, bool; the result is a list of int64,
        one more than there are edges. Nulls are skipped; zeros over an empty window. A
        NaN is in the last bin. Integers are compared without rounding.

    Raises:
        SpecError: If `edges` are not such numbers.

    Cost: ≤ 3 combines per row and window of O(edges).

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.histogram(edges=[0, 10, 20]))
        >>> w.insert_many([1, 2, 3, 4], [-5, 0, 9, 20])
        >>> w.query()
        [1, 2, 0, 1]
    """
    given: Any = edges
    return Aggregation("histogram", column, edges=given, where=where, windows=windows)
