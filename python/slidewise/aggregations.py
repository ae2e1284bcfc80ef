"""What to compute over a window.

An aggregation says what happens to the values of a window; where the windows are is
said elsewhere, so that the same aggregation serves a `Window`, a table and a stream.

Over a table an aggregation names its column: `sum("price")`. In a `Window` that holds
single values it needs none: `sum()`.

Rules that hold for all of them:

- null is skipped by all but `count()` of rows; over nothing the answer is null (None),
  except that `count` gives 0 and `collect` an empty list;
- NaN is a value like any other (it propagates, and leaves no trace once it has left the
  window) unless `nan="skip"` or `nan="raise"` is asked for;
- integers are exact; a result that does not fit raises `ResultOverflowError`;
- float sums, means and moments carry their rounding error with them and are never made
  by subtracting what has left.

Costs are given as combines per row and window; a combine is a few machine operations.
"""

from dataclasses import dataclass

from slidewise.errors import SpecError

__all__ = [
    "Aggregation",
    "arg_max",
    "arg_min",
    "collect",
    "count",
    "first",
    "geometric_mean",
    "last",
    "max",
    "max_count",
    "mean",
    "min",
    "min_count",
    "range",
    "stddev",
    "sum",
    "variance",
]

KINDS = (
    "count",
    "sum",
    "mean",
    "min",
    "max",
    "range",
    "variance",
    "stddev",
    "min_count",
    "max_count",
    "arg_min",
    "arg_max",
    "first",
    "last",
    "geometric_mean",
    "collect",
)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregation: what to compute, and of which column.

    Made by the functions of this module rather than by hand.

    Attributes:
        kind: Its name, such as "sum".
        of: The column it is computed of, or None where there is only one value per
            entry (and for `count` of rows).
        by: The column compared, for `arg_min` and `arg_max`.
        ddof: Delta degrees of freedom, for `variance` and `stddev`.

    Raises:
        SpecError: If the kind is unknown or a part does not belong to it.

    Example:
        >>> import slidewise as sw
        >>> sw.sum("price")
        sum('price')
        >>> sw.sum("price") == sw.sum("price")
        True
    """

    kind: str
    of: str | None = None
    by: str | None = None
    ddof: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            known = ", ".join(KINDS)
            raise SpecError(f"unknown aggregation {self.kind!r}; there are {known}")
        for column in (self.of, self.by):
            if column is not None and not isinstance(column, str):
                raise SpecError(
                    f"{self.kind}() takes the name of a column, got {column!r}"
                )
        if self.by is not None and self.kind not in ("arg_min", "arg_max"):
            raise SpecError(f"{self.kind}() takes no by=")
        if isinstance(self.ddof, bool) or not isinstance(self.ddof, int):
            raise SpecError(f"ddof must be an integer, got {self.ddof!r}")
        if self.ddof < 0:
            raise SpecError(f"ddof must be 0 or more, got {self.ddof}")

    def __repr__(self) -> str:
        parts = [] if self.of is None else [repr(self.of)]
        if self.by is not None:
            parts.append(f"by={self.by!r}")
        if self.kind in ("variance", "stddev") and self.ddof != 1:
            parts.append(f"ddof={self.ddof}")
        return f"{self.kind}({', '.join(parts)})"


def count(column: str | None = None) -> Aggregation:
    """How many rows there are, or how many values of `column` are not null.

    Types: any column; the result is int64. Nulls: `count()` counts rows whatever is in
    them, `count("x")` skips nulls of x; 0 over nothing. Errors: none. Cost: ≤ 3
    combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, None, 6]})
        >>> aggs = {"rows": sw.count(), "values": sw.count("x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["rows_2"].to_pylist(), out["values_2"].to_pylist()
        ([1, 2, 2], [1, 1, 1])
    """
    return Aggregation("count", column)


def sum(column: str | None = None) -> Aggregation:
    """The sum, exact over integers and free of drift over floats.

    Types: integers and bool give int64 (uint64 gives uint64), floats float64, durations
    durations. Nulls are skipped; null over nothing. Errors: `ResultOverflowError` if an
    integer sum does not fit. Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [1e16, 1.0, 1.0]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"s": sw.sum("x")})
        >>> out["s_2"].to_pylist()
        [1e+16, 1e+16, 2.0]
    """
    return Aggregation("sum", column)


def mean(column: str | None = None) -> Aggregation:
    """The arithmetic mean.

    Types: integers, bool and floats; the result is float64. Nulls are skipped; null
    over nothing. Errors: none (the sum inside is wider than int64). Cost: ≤ 3 combines,
    shared with `sum` and `count` of the same column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 5, 9]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"m": sw.mean("x")})
        >>> out["m_2"].to_pylist()
        [4.0, 4.5, 7.0]
    """
    return Aggregation("mean", column)


def min(column: str | None = None) -> Aggregation:
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
    return Aggregation("min", column)


def max(column: str | None = None) -> Aggregation:
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
    return Aggregation("max", column)


def range(column: str | None = None) -> Aggregation:
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
    return Aggregation("range", column)


def variance(column: str | None = None, ddof: int = 1) -> Aggregation:
    """The variance: squared distances from the mean, divided by n − `ddof`.

    Types: integers, bool and floats; the result is float64. Nulls are skipped; null
    where n ≤ ddof. Errors: `SpecError` if `ddof` is negative. Cost: ≤ 3 combines,
    shared with `mean` and `stddev` of the same column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [1, 3, 7]})
        >>> aggs = {"var": sw.variance("x"), "pop": sw.variance("x", ddof=0)}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> out["var_2"].to_pylist(), out["pop_2"].to_pylist()
        ([None, 2.0, 8.0], [0.0, 1.0, 4.0])
    """
    return Aggregation("variance", column, ddof=ddof)


def stddev(column: str | None = None, ddof: int = 1) -> Aggregation:
    """The standard deviation, the square root of `variance`.

    Types: integers, bool and floats; the result is float64. Nulls are skipped; null
    where n ≤ ddof. Errors: `SpecError` if `ddof` is negative. Cost: ≤ 3 combines,
    shared with `mean` and `variance` of the same column.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [2, 2, 6]})
        >>> aggs = {"sd": sw.stddev("x", ddof=0)}
        >>> sw.rolling(table, on="t", windows=2, aggs=aggs)["sd_2"].to_pylist()
        [0.0, 0.0, 2.0]
    """
    return Aggregation("stddev", column, ddof=ddof)


def min_count(column: str | None = None) -> Aggregation:
    """How often the smallest value occurs.

    Types: anything with an order; the result is int64. Nulls are skipped; null over
    nothing. Errors: none. Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 4, 9]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"n": sw.min_count("x")})
        >>> out["n_2"].to_pylist()
        [1, 2, 1]
    """
    return Aggregation("min_count", column)


def max_count(column: str | None = None) -> Aggregation:
    """How often the largest value occurs.

    Types: anything with an order; the result is int64. Nulls are skipped; null over
    nothing. Errors: none. Cost: ≤ 3 combines.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2, 3], "x": [4, 4, 3]})
        >>> out = sw.rolling(table, on="t", windows=2, aggs={"n": sw.max_count("x")})
        >>> out["n_2"].to_pylist()
        [1, 2, 1]
    """
    return Aggregation("max_count", column)


def arg_min(of: str | None = None, by: str | None = None) -> Aggregation:
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
    return Aggregation("arg_min", of, by)


def arg_max(of: str | None = None, by: str | None = None) -> Aggregation:
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
    return Aggregation("arg_max", of, by)


def first(column: str | None = None) -> Aggregation:
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
    return Aggregation("first", column)


def last(column: str | None = None) -> Aggregation:
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
    return Aggregation("last", column)


def geometric_mean(column: str | None = None) -> Aggregation:
    """The geometric mean: the n-th root of the product, computed through logarithms.

    Types: integers, bool and floats; the result is float64. Nulls are skipped; null
    over nothing; NaN if a value is negative, 0 if one is zero. Errors: none. Cost: ≤ 3
    combines, and one logarithm per row.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 2], "x": [1, 4]})
        >>> aggs = {"g": sw.geometric_mean("x")}
        >>> out = sw.rolling(table, on="t", windows=2, aggs=aggs)
        >>> [round(g, 9) for g in out["g_2"].to_pylist()]
        [1.0, 2.0]
    """
    return Aggregation("geometric_mean", column)


def collect(column: str | None = None) -> Aggregation:
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
    return Aggregation("collect", column)
