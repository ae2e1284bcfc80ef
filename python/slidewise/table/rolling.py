"""Rolling aggregates over tables.

`rolling` returns a table of any library with a column per window and aggregation: it
builds a `Spec`, reads columns through a `Frame`, runs one `KernelCall`, and converts
the answers to the types of the caller's library.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument
from slidewise.frames.adapt import frame, refuse_without_on
from slidewise.frames.base import Frame, Result, refuse_taken, require
from slidewise.frames.lazy import collected, is_lazy
from slidewise.hints import with_hints
from slidewise.spec.durations import WindowLike
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import given_specs
from slidewise.spec.spec import RollingLike, Spec, derive, given_keywords
from slidewise.table.asof import PointColumns, columns_of_points, query_points_of
from slidewise.table.kernel_call import KernelCall, map_lazily
from slidewise.table.source import Source
from slidewise.table.threads import resolve_threads
from slidewise.table.unique import UniqueRows

if TYPE_CHECKING:
    from slidewise.table.points import QueryPoints

__all__ = ["compute_rolling", "rolling", "rolling_spec"]

TableT = TypeVar("TableT")


@overload
def rolling(
    table: TableT,
    spec: Spec | Features | None = None,
    *,
    on: str | None = None,
    windows: RollingLike | Iterable[RollingLike] | None = None,
    aggs: Mapping[str, Aggregation] | None = None,
    by: str | Sequence[str] | None = None,
    closed: str | None = None,
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | Sequence[str] | None = None,
    min_rows: int = 0,
    unique_by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    exclude: str | None = None,
    overflow: str = "raise",
    names: str | None = None,
    prefix: str = "",
    fill: Any = None,
    at: None = None,
    at_on: str | None = None,
    at_by: str | Sequence[str] | Mapping[str, str] | None = None,
    threads: int | None = None,
) -> TableT: ...


@overload
def rolling(
    table: Any,
    spec: Spec | Features | None = None,
    *,
    on: str | None = None,
    windows: RollingLike | Iterable[RollingLike] | None = None,
    aggs: Mapping[str, Aggregation] | None = None,
    by: str | Sequence[str] | None = None,
    closed: str | None = None,
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | Sequence[str] | None = None,
    min_rows: int = 0,
    unique_by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    exclude: str | None = None,
    overflow: str = "raise",
    names: str | None = None,
    prefix: str = "",
    fill: Any = None,
    at: TableT,
    at_on: str | None = None,
    at_by: str | Sequence[str] | Mapping[str, str] | None = None,
    threads: int | None = None,
) -> TableT: ...


@with_hints
def rolling(
    table: Any,
    spec: Spec | Features | None = None,
    *,
    on: str | None = None,
    windows: RollingLike | Iterable[RollingLike] | None = None,
    aggs: Mapping[str, Aggregation] | None = None,
    by: str | Sequence[str] | None = None,
    closed: str | None = None,
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | Sequence[str] | None = None,
    min_rows: int = 0,
    unique_by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    exclude: str | None = None,
    overflow: str = "raise",
    names: str | None = None,
    prefix: str = "",
    fill: Any = None,
    at: Any = None,
    at_on: str | None = None,
    at_by: str | Sequence[str] | Mapping[str, str] | None = None,
    threads: int | None = None,
) -> Any:
    """Aggregates, for every row, over the window that ends at the row.

    Returns a table of the same type with one column `<name>_<window>` per window and
    aggregation appended, rows in their original order. The table need not be sorted.

    The window of a row at time t and of length w, by `closed`:

    ```
        "right"    (t−w, t]      "left"     [t−w, t)
        "both"     [t−w, t]      "neither"  (t−w, t)
    ```

    Args:
        table: A pyarrow Table or RecordBatch, a pandas or polars DataFrame, a polars
            LazyFrame (which stays lazy), a narwhals frame, a dict of NumPy arrays (NaN
            is a value there, and integer results that may be missing are masked
            arrays), or anything with `__arrow_c_stream__`, such as a DuckDB relation
            (the result is a pyarrow Table, which DuckDB's SQL reads by the name of its
            variable). In pandas the names of index levels work like columns. For
            PySpark DataFrames use `slidewise.spark.rolling`.
        spec: A `Spec`, in place of the arguments that make one: all but `at`, `at_on`,
            `at_by` and `threads`. Or `Features`, for the results of several Specs:
            columns are converted once for all, and rows are sorted once for Specs of
            the same keys and arrival.
        on: The column of event times: timestamps of any unit and zone, dates, durations
            or integers.
        windows: One window or several: `"90s"`, `"15m"`, `"1h"`, `"7d"`, a `timedelta`
            (also of pandas or numpy), an int in the units of an integer time column,
            `rows(n)`, `calendar("1mo", tz="Europe/Berlin")` (months, local days),
            `to_date("1mo")` (from the first of the month), `unbounded()`,
            `trailing("30d", resolution="1h")` (from a full hour on), `length("column")`
            (a length per row),
            `landmark("flag")` (everything since the last row with a flag) or
            `delta("column", 5.0)` (rows whose column is near). `"1d"` is 24 hours, also
            where clocks change.
        aggs: Names and aggregations, such as `{"avg": sw.mean("price")}`. One with
            `windows=` has these windows alone; if all have, leave the others out.
        by: The key column, or several: each key has its own windows. Keys are numbers,
            text, times, and structs and lists of these. Null is a key, as is NaN.
        closed: The ends that belong to the window: "right" (the default), "left",
            "both" or "neither". With "left" `rows(n)` holds the last n rows of earlier
            times; the other two do not apply to it.
        ties: Whether the window of a row includes all rows of its time ("peers", as in
            SQL), or only those up to it in the table ("rows", as in pandas). Windows
            that end before the row (`closed="left"` and "neither") include none of
            them, and refuse "rows". With `offset=` a window includes all rows of equal
            time or none.
        nan: NaN is a value and propagates ("propagate"), is null ("skip"), or is
            refused ("raise"). In numpy-backed pandas columns NaN always is null.
        arrival: The column of arrival order, or several: rows arrived in order of the
            first, those equal in it in order of the second, and so on. They hold what
            `on` may hold. The window of a row then includes only rows that arrived no
            later than it, as a server would have answered at the time; rows of equal
            arrival arrived together. `ties` is ignored; rows of equal time are in order
            of arrival, then in table order.
        min_rows: A window with fewer values that are not null gives null. Counts are
            always given.
        unique_by: The column of ids, or several. Of rows with equal keys and ids, the
            first to arrive counts (by `arrival`, else in the table), whatever their
            times; the others, its duplicates, count in no window. Their own results are
            those that `at` gives for their times and keys, and null for windows that
            need a row. A row without an id always counts.
        exclude: "self" leaves the row itself out of its window; rows of its time stay
            (EXCLUDE CURRENT ROW in SQL). `rows(n)` then holds the n rows before it.
        offset: How much earlier windows end: with `"5m"` a window holds rows that are
            at least five minutes old. Windows of rows take `rows(k)`: they end k rows
            before this one.
        overflow: An integer result beyond its type raises `ResultOverflowError`
            ("raise") or is null ("null", as in Spark's `try_sum`). No result wraps.
        names: The names of the result columns: a text with `{agg}`, the name in `aggs`,
            and `{window}`, the label of the window. Default `"{agg}_{window}"`.
        prefix: A text before the name of each result column, such as `"card_"`.
        fill: A value in place of null results, such as 0; or a mapping from names in
            `aggs`, or from kinds of aggregations (`"sum"`), to values. It must fit the
            results' type; lists and structs are not filled.
        at: Another table with the columns `on`, `by` and `arrival`: windows end at its
            rows instead, and it is returned with the results. For point-in-time
            correct features of labels. `landmark` then counts from the last landmark up
            to the label's time. `delta` needs a row of its own and is refused.
        at_on: The column of times of `at`, if it is not named as `on`.
        at_by: The key columns of `at` in the order of `by`, or a mapping from key
            columns to those of `at` with other names. With `Features`, a mapping.
        threads: The number of threads, which share the keys, or with few keys the
            windows; by default the cores of this process, but one per 65,536 rows.
            Results are the same to the last bit.

    Returns:
        The table with the results. In pandas, integer results that can be null are
        nullable integers (`Int64`), and results have the kind of dtype of their column
        (numpy, masked or Arrow).

    Raises:
        SpecError: If an argument, a column or a value is wrong; nothing is computed.
        ResultOverflowError: If an integer result does not fit its type, unless
            `overflow` or `min_rows` makes it null.

    Cost: O(n log n) to sort, if not sorted; then ≤ 3 combines per row and window of any
    length. With `arrival=`, O(log n) combines per row and window; for quantiles, modes
    and distinct counts O(d) per row, where d rows lie between its window and that of
    the next row to arrive: up to n if the order is random. With `arrival=`, `rows(n)`
    with `closed="left"` or `offset=rows(k)` costs O(n + k) per row.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [10, 11, 14], "at": [*"AAB"], "km": [3, 5, 4]})
        >>> out = sw.rolling(trips, on="t", by="at", windows=[2, sw.rows(10)],
        ...                  aggs={"n": sw.count(), "km": sw.sum("km")})
        >>> out["n_2"].to_pylist(), out["km_10rows"].to_pylist()
        ([1, 2, 1], [3, 8, 4])
        >>> trips = pa.table({"t": [2, 1, 3], "file": [7, 7, 6], "line": [1, 2, 1]})
        >>> out = sw.rolling(trips, on="t", windows=9, aggs={"n": sw.count()},
        ...                  arrival=("file", "line"))
        >>> out["n_9"].to_pylist()  # the third trip arrived first
        [1, 1, 1]
    """
    request = given_keywords(locals())
    if spec is None and on is None:
        refuse_without_on(table)
    spec = given_specs(spec, request, "rolling", is_hopping=False)
    columns = columns_of_points(spec, at, at_on, at_by)
    return rolling_spec(table, spec, at, columns, threads=threads)


def rolling_spec(
    table: Any,
    spec: Spec | Features,
    at: Any = None,
    columns: Sequence[PointColumns] | None = None,
    *,
    threads: int | None = None,
) -> Any:
    """`rolling` for a `Spec` or `Features`; `columns` are those of `at`, for each Spec.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.spec.spec import Spec
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> rolling_spec(pa.table({"t": [1, 2]}), spec)["n_5"].to_pylist()
        [1, 2]
    """
    if is_lazy(at):

        def answered(points: Any, rows: Any) -> Any:
            return rolling_spec(rows, spec, points, columns, threads=threads)

        return map_lazily(at, spec, answered, table)
    if is_lazy(table):
        if at is not None:
            return rolling_spec(collected(table), spec, at, columns, threads=threads)
        return map_lazily(
            table, spec, lambda rows: rolling_spec(rows, spec, threads=threads)
        )
    source = frame(table)
    target = source if at is None else frame(at)
    refuse_taken(target, spec.results)
    points = None if at is None else target
    specs = parts_of(spec)
    return target.append(compute_rolling(source, specs, points, columns, threads))


def compute_rolling(
    source: Frame,
    specs: Sequence[Spec],
    points: Frame | None,
    names: Sequence[PointColumns] | None = None,
    threads: int | None = None,
) -> dict[str, Result]:
    """The results of a table at its own rows, or at those of `points`, Spec by Spec.

    `names` are the columns of `points` for each Spec, where they differ from those of
    the table.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()})
        >>> results = compute_rolling(frame(pa.table({"t": [1, 2]})), [spec], None)
        >>> results["n_5"].array.to_pylist()
        [1, 2]
    """
    for spec in specs:
        require(source, spec.columns)
        for window in spec.windows if points is not None else ():
            window.check_at(Argument("at"))
    rows = max(source.length, 0 if points is None else points.length)
    source, number = Source.of(source), resolve_threads(threads, rows)
    orders = [(spec.by, spec.arrivals, spec.unique_by) for spec in specs]
    pairs = zip(orders, specs, strict=True)
    unique = {order: UniqueRows.of(source, spec) for order, spec in pairs}
    calls = [
        _call_of(unique[order], spec, number, at_rows=points is None)
        for order, spec in zip(orders, specs, strict=True)
    ]
    # The first call of those with equal keys and arrival, and its query points.
    firsts: dict[Any, tuple[KernelCall, QueryPoints | None]] = {}
    results: dict[str, Result] = {}
    for at, (call, order) in enumerate(zip(calls, orders, strict=True)):
        if order in firsts:
            call.take_order(firsts[order][0])
        else:
            columns = None if names is None else names[at]
            places = None
            if points is not None:
                places = query_points_of(points, call, call.spec, columns)
            call.sorts_once = orders.count(order) > 1
            firsts[order] = call, places
        found = call.compute(firsts[order][1])
        of_windows = [result for window in found for result in window.values()]
        named = dict(zip(call.spec.results, of_windows, strict=True))
        if points is None and len(unique[order].duplicates):
            others = _of_duplicates(unique[order], call.spec, number)
            named = unique[order].joined(named, others)
        results |= named
    return results


def _call_of(
    rows: UniqueRows, spec: Spec, threads: int, *, at_rows: bool
) -> KernelCall:
    """The call of the rows that count."""
    name_row = rows.name_row(rows.counting) if at_rows else None
    return KernelCall(rows.counted, spec, name_row=name_row, threads=threads)


def _of_duplicates(rows: UniqueRows, spec: Spec, threads: int) -> dict[str, Result]:
    """The results of duplicates, which count in no window, at their times and keys.

    Windows that need a row of their own have none.
    """
    windows = tuple(window for window in spec.windows if not window.needs_row)
    if not windows:
        return {}
    spec = derive(spec, windows=windows)
    name_row = rows.name_row(rows.duplicates)
    call = KernelCall(rows.counted, spec, name_row=name_row, threads=threads)
    points = query_points_of(rows.source.of_rows(rows.duplicates), call, spec)
    found = [result for window in call.compute(points) for result in window.values()]
    return dict(zip(spec.results, found, strict=True))
