"""Statistical moments of one column and of two."""

from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import NUMBERS, register, register_like
from slidewise.hints import with_hints

__all__ = ["correlation", "covariance", "kurtosis", "skewness", "stddev", "variance"]

# A shift keeps distances from the mean, and shifted uint64 is int64.
_MOMENT = register(
    "variance",
    parameters=("ddof",),
    takes=(*NUMBERS, "decimal"),
    accepted="integers, floats, decimals of up to 38 digits and bool",
    inputs=("order",),
    result="square",
    sparse=True,
    mergeable=True,
)


@with_hints
def variance(
    column: str | None = None,
    ddof: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The variance: the sum of squared deviations, divided by n − `ddof`.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        ddof: Delta degrees of freedom: the divisor is n − `ddof`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool, floats, and decimals, those of more than
        18 digits as the nearest floats; the result is float64. Nulls are skipped; null
        where n ≤ ddof. Deviations of more than 1e154 give infinity.

    Raises:
        SpecError: If `ddof` is negative.

    Cost: ≤ 3 combines per row and window, shared with `mean` and `stddev` of the same
    column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [1, 3, 7]})
        >>> aggs = {"var": sw.variance("x"), "pop": sw.variance("x", ddof=0)}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["var_2"].to_pylist(), out["pop_2"].to_pylist()
        ([None, 2.0, 8.0], [0.0, 1.0, 4.0])
    """
    return Aggregation("variance", column, ddof=ddof, where=where, windows=windows)


register_like(
    _MOMENT,
    kind="stddev",
    takes=(*NUMBERS, "duration", "decimal"),
    accepted="integers, floats, decimals of up to 38 digits, bool and durations",
    result="deviation",
)


@with_hints
def stddev(
    column: str | None = None,
    ddof: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The standard deviation, the square root of `variance`.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        ddof: Delta degrees of freedom: the divisor is n − `ddof`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool, floats and decimals give float64 (as
        `variance` does), durations a duration. Nulls are skipped; null where n ≤ ddof.
        It is finite even where the variance overflows.

    Raises:
        SpecError: If `ddof` is negative.

    Cost: ≤ 3 combines per row and window, shared with `mean` and `variance` of the same
    column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [2, 2, 6]})
        >>> aggs = {"sd": sw.stddev("x", ddof=0)}
        >>> sw.rolling(table, on="t", windows=2, aggs=aggs)["sd_2"].to_pylist()
        [0.0, 0.0, 2.0]
    """
    return Aggregation("stddev", column, ddof=ddof, where=where, windows=windows)


_SHAPE = register_like(
    _MOMENT,
    kind="skewness",
    takes=NUMBERS,
    accepted="",
    result="number",
    max_ddof=1,
    mergeable=False,
)


@with_hints
def skewness(
    column: str | None = None,
    ddof: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The skewness: the asymmetry of the values around their mean.

    With `ddof=1` it is the skewness of a sample, adjusted for its size as in pandas and
    spreadsheets; with `ddof=0` that of the population, M₃/n ÷ (M₂/n)^1.5.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        ddof: 1 for the skewness of a sample, 0 for that of a population.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null for fewer than 3 values (1 with `ddof=0`); NaN where all
        values are equal, or the standard deviation is outside of 1e-97 to 1e102.

    Raises:
        SpecError: If `ddof` is neither 0 nor 1.

    Cost: ≤ 3 combines per row and window, shared with `variance` and `kurtosis` of the
    same column.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window({"sample": sw.skewness(), "all": sw.skewness(ddof=0)})
        >>> w.insert_many([1, 2, 3, 4], [1, 1, 1, 5])
        >>> {name: round(skew, 9) for name, skew in w.query().items()}
        {'sample': 2.0, 'all': 1.154700538}
    """
    return Aggregation("skewness", column, ddof=ddof, where=where, windows=windows)


register_like(_SHAPE, kind="kurtosis")


@with_hints
def kurtosis(
    column: str | None = None,
    ddof: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The excess kurtosis: the weight of the tails; 0 for a normal distribution.

    With `ddof=1` it is the kurtosis of a sample, adjusted for its size as in pandas and
    spreadsheets; with `ddof=0` that of the population, n·M₄/M₂² − 3.

    Args:
        column: The column to aggregate; none in a `Window` of plain values.
        ddof: 1 for the kurtosis of a sample, 0 for that of a population.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Nulls
        are skipped; null for fewer than 4 values (1 with `ddof=0`); NaN where all
        values are equal, or the standard deviation is outside of 1e-72 to 1e76.

    Raises:
        SpecError: If `ddof` is neither 0 nor 1.

    Cost: ≤ 3 combines per row and window, shared with `variance` and `skewness` of the
    same column.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window({"sample": sw.kurtosis(), "all": sw.kurtosis(ddof=0)})
        >>> w.insert_many([1, 2, 3, 4], [1, 1, 1, 5])
        >>> {name: round(tails, 9) for name, tails in w.query().items()}
        {'sample': 4.0, 'all': -0.666666667}
    """
    return Aggregation("kurtosis", column, ddof=ddof, where=where, windows=windows)


_PAIR = register_like(
    _SHAPE,
    kind="covariance",
    max_ddof=None,
    second="paired",
    inputs=("order", "order"),
    roles=("number", "number"),
)


@with_hints
def covariance(
    x: str | None = None,
    y: str | None = None,
    ddof: int = 1,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The covariance of two columns.

    Args:
        x: The first column.
        y: The second column.
        ddof: Delta degrees of freedom: the divisor is n − `ddof`.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Rows
        where either is null are skipped; null where n ≤ ddof. Results beyond float64
        are infinite.

    Raises:
        SpecError: If a column is missing, or `ddof` is negative.

    Cost: ≤ 3 combines per row and window, shared with `correlation`.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.covariance("x", "y"))
        >>> w.insert_many([1, 2, 3], {"x": [1, 2, 3], "y": [2, 4, 9]})
        >>> w.query(), w.query(1, 2)
        (3.5, 1.0)
    """
    return Aggregation("covariance", x, y, ddof, where=where, windows=windows)


register_like(_PAIR, kind="correlation", parameters=())


@with_hints
def correlation(
    x: str | None = None,
    y: str | None = None,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Aggregation:
    """The Pearson correlation of two columns, from −1 to 1.

    Args:
        x: The first column.
        y: The second column.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, one or several, in place of those of the Spec.

    Returns:
        An aggregation. Types: integers, bool and floats; the result is float64. Rows
        where either is null are skipped; null for fewer than 2 rows; NaN where all
        values of a column are equal.

    Raises:
        SpecError: If a column is missing.

    Cost: ≤ 3 combines per row and window, shared with `covariance`.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.correlation("x", "y"))
        >>> w.insert_many([1, 2, 3], {"x": [1, 2, 3], "y": [4, 2, 0]})
        >>> w.query()
        -1.0
    """
    return Aggregation("correlation", x, y, where=where, windows=windows)
