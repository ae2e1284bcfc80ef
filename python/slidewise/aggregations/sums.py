"""Sums and products."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.objects import (
    EXACT,
    checked_lift,
    exact_sum,
    over_objects,
)
from slidewise.aggregations.records import NUMBERS, register, register_like
from slidewise.hints import with_hints

__all__ = [
    "bit_and",
    "bit_or",
    "bit_xor",
    "geometric_mean",
    "mean",
    "product",
    "sum",
    "sum_of_squares",
]

register(
    "sum",
    takes=(*NUMBERS, "duration", "decimal"),
    accepted="integers, floats, decimals of up to 38 digits, bool and durations",
    result="sum",
    objects=over_objects(
        "sum",
        exact_sum,
        checked_lift("sum", lambda value: exact_sum(value, value)),
    ),
    mergeable=True,
)


@with_hints
def sum(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The sum, exact over integers and free of drift over floats.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers and bool give int64 (uint64 gives uint64),
        floats float64, durations durations, decimals decimals of the same scale.
        Intermediate sums of floats may exceed float64. Nulls are skipped; null over an
        empty window.

    Raises:
        ResultOverflowError: If a sum of integers or decimals does not fit.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [1e16, 1.0, 1.0]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"s": sw.sum("x")})
        >>> out["s_2"].to_pylist()
        [1e+16, 1e+16, 2.0]
    """
    return Aggregation("sum", column, where=where, windows=windows)


def _total(older: tuple[Any, int], younger: tuple[Any, int]) -> tuple[Any, int]:
    return exact_sum(older[0], younger[0]), older[1] + younger[1]


def _quotient(total: tuple[Any, int]) -> Any:
    amount, count = total
    if not isinstance(amount, Decimal) or not amount.is_finite():
        return amount / count
    # As over tables: 6 more digits after the point, half to even.
    digits = -int(amount.as_tuple().exponent)
    scale = min(digits + 6, 38)
    units = Fraction(amount) * Fraction(10) ** scale / count
    return Decimal(round(units)).scaleb(-scale, EXACT)


register(
    "mean",
    takes=(*NUMBERS, "duration", "decimal"),
    accepted="integers, floats, decimals of up to 38 digits, bool and durations",
    result="average",
    objects=over_objects(
        "mean",
        _total,
        checked_lift(
            "mean",
            lambda value: _quotient((exact_sum(value, value), 2)),
            lambda value: (value, 1),
        ),
        _quotient,
    ),
    mergeable=True,
    plotted=True,
)


@with_hints
def mean(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The arithmetic mean.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats give float64, durations
        durations; decimals give decimals with 6 more digits after the point, 38 at
        most, of an exact sum and one division that rounds half to even. Nulls are
        skipped; null over an empty window.
        It never overflows, except decimals of more than 38 digits: the inner sum is
        wider than int64.

    Raises:
        ResultOverflowError: If a result over decimals takes more than 38 digits.

    Cost: ≤ 3 combines per row and window, shared with `sum` and `count` of the same
    column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 5, 9]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"m": sw.mean("x")})
        >>> out["m_2"].to_pylist()
        [4.0, 4.5, 7.0]
    """
    return Aggregation("mean", column, where=where, windows=windows)


register("product", takes=NUMBERS, inputs=("whole",))


@with_hints
def product(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The product of the values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers and bool give int64, exactly; floats float64,
        with the rounding error carried along, and without overflow or underflow midway.
        Nulls are skipped; null over an empty window.

    Raises:
        ResultOverflowError: If an integer product does not fit.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.product())
        >>> w.insert_many([1, 2, 3], [2.0**1000, 2.0**1000, 2.0**-1000])
        >>> w.query() == 2.0**1000, w.query(1, 2)
        (True, inf)
    """
    return Aggregation("product", column, where=where, windows=windows)


register(
    "geometric_mean",
    kernel="mean",
    takes=NUMBERS,
    inputs=("logs",),
    result="exp",
    plotted=True,
)


@with_hints
def geometric_mean(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The geometric mean, computed through logarithms.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null over an empty window; NaN if a value is negative, 0 if one is
        zero.

    Cost: ≤ 3 combines, and one logarithm per row.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2], "x": [1, 4]})
        >>> aggs = {"g": sw.geometric_mean("x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> [round(g, 9) for g in out["g_2"].to_pylist()]
        [1.0, 2.0]
    """
    return Aggregation("geometric_mean", column, where=where, windows=windows)


register("sum_of_squares", takes=NUMBERS, inputs=("whole",))


@with_hints
def sum_of_squares(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The sum of the squares of the values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers and bool give int64, exactly; floats float64.
        Nulls are skipped; null over an empty window.

    Raises:
        ResultOverflowError: If an integer sum does not fit.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.sum_of_squares())
        >>> w.insert_many([1, 2, 3], [3, 4, 12])
        >>> w.query(), w.query(1, 2)
        (169, 25)
    """
    return Aggregation("sum_of_squares", column, where=where, windows=windows)


_BITS = register(
    "bit_and",
    takes=("integer", "null", "bool"),
    accepted="integers and bool",
    inputs=("bits",),
    roles=("int64",),
    result="bits",
)


@with_hints
def bit_and(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The bitwise AND of all values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers and bool; the result keeps the type. Nulls are
        skipped; null over an empty window.

    Raises:
        SpecError: If the column has another type.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.bit_and())
        >>> w.insert_many([1, 2], [0b1100, 0b1010])
        >>> w.query()
        8
    """
    return Aggregation("bit_and", column, where=where, windows=windows)


register_like(_BITS, kind="bit_or")


@with_hints
def bit_or(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The bitwise OR of all values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers and bool; the result keeps the type. Nulls are
        skipped; null over an empty window.

    Raises:
        SpecError: If the column has another type.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.bit_or())
        >>> w.insert_many([1, 2], [0b1100, 0b1010])
        >>> w.query()
        14
    """
    return Aggregation("bit_or", column, where=where, windows=windows)


register_like(_BITS, kind="bit_xor")


@with_hints
def bit_xor(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation:
    """The bitwise XOR of all values.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers and bool; the result keeps the type. Nulls are
        skipped; null over an empty window.

    Raises:
        SpecError: If the column has another type.

    Cost: ≤ 3 combines per row and window.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.bit_xor())
        >>> w.insert_many([1, 2], [0b1100, 0b1010])
        >>> w.query()
        6
    """
    return Aggregation("bit_xor", column, where=where, windows=windows)
