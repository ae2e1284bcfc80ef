"""Rolling aggregates over tables.

`rolling` returns a table of any library with a column per window and aggregation: it
builds a `Spec`, reads columns through a `Frame`, runs one `KernelCall`, and converts
the answers to the types of the caller's library.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from slidewise.aggregations import Aggregation
from slidewise.frames.adapt import frame
from slidewise.frames.base import refuse_taken, require
from slidewise.frames.polars import is_lazy
from slidewise.hints import with_hints
from slidewise.spec.durations import WindowLike
from slidewise.spec.spec import Spec
from slidewise.table.asof import query_points_of
from slidewise.table.kernel_call import KernelCall, map_lazily, resolve_threads

__all__ = ["rolling", "rolling_spec"]

TableT = TypeVar("TableT")


@overload
def rolling(
    table: TableT,
    *,
    on: str,
    windows: WindowLike | Iterable[WindowLike],
    aggs: Mapping[str, Aggregation],
    by: str | Sequence[str] | None = None,
    closed: str = "right",
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | None = None,
    min_rows: int = 0,
    offset: WindowLike | None = None,
    overflow: str = "raise",
    at: None = None,
    threads: int | None = None,
) -> TableT: ...


@overload
def rolling(
    table: Any,
    *,
    on: str,
    windows: WindowLike | Iterable[WindowLike],
    aggs: Mapping[str, Aggregation],
    by: str | Sequence[str] | None = None,
    closed: str = "right",
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | None = None,
    min_rows: int = 0,
    offset: WindowLike | None = None,
    overflow: str = "raise",
    at: TableT,
    threads: int | None = None,
) -> TableT: ...


@with_hints
def rolling(
    table: Any,
    *,
    on: str,
    windows: WindowLike | Iterable[WindowLike],
    aggs: Mapping[str, Aggregation],
    by: str | Sequence[str] | None = None,
    closed: str = "right",
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | None = None,
    min_rows: int = 0,
    offset: WindowLike | None = None,
    overflow: str = "raise",
    at: Any = None,
    threads: int | None = None,
) -> Any:
    """Rolling aggregates: for every row, over the rows in the window that it ends.

    The table comes back as the same type, rows in their original order, with one column
    `<name>_<window>` per window and aggregation appended. It need not be sorted.

    The window of a row at time t and of length w, by `closed`:

    ```
        "right"    (t−w, t]      "left"     [t−w, t)
        "both"     [t−w, t]      "neither"  (t−w, t)
    ```

    Args:
        table: A pyarrow Table or RecordBatch, a pandas or polars DataFrame, a polars
            LazyFrame (which stays lazy), a dict of NumPy arrays (NaN is a value there,
            and what is whole and may be missing comes back masked), or anything with
            `__arrow_c_stream__`, such as a DuckDB relation (which comes back as a
            pyarrow Table). In pandas the names of index levels work like columns. A
            PySpark DataFrame is refused: `slidewise.spark.rolling` takes it.
        on: The column of event times: timestamps of any unit and zone, dates, durations
            or integers.
        windows: One window or several: `"90s"`, `"15m"`, `"1h"`, `"7d"`, a `timedelta`
            (also of pandas or numpy), an int in the units of an integer time column, or
            `rows(n)`. `"1d"` is 24 hours, also where clocks change.
        aggs: Names and aggregations, such as `{"avg": sw.mean("price")}`.
        by: The key column, or several: each key has its own windows. A null is a key of
            its own.
        closed: Which ends belong to the window.
        ties: Rows of equal time see all of one another ("peers", as SQL does), or only
            those before them in the table ("rows", as pandas does). Windows that end
            before the row (`closed="left"` and "neither") hold none of them, as in
            pandas: there "rows" is refused, for it would change nothing. With
            `offset=`, rows of equal time are always either all inside a window or all
            outside it.
        nan: NaN is a value and propagates ("propagate"), is missing ("skip"), or is
            refused ("raise"). In numpy-backed pandas columns NaN is how a missing value
            is written, and is a null.
        arrival: The column that says in which order rows arrived. Each row then sees
            only rows that arrived no later than itself: what a server would have
            answered at that moment. Rows of equal arrival have arrived together and
            see one another. `ties` has no say then; equal times go by arrival, then by
            table order.
        min_rows: Windows with fewer values that are not null give null (counts stay).
        offset: How much earlier windows end: with `"5m"` a row sees what is at least
            five minutes old.
        overflow: An integer result beyond its type raises `ResultOverflowError`
            ("raise"), or is null ("null", as Spark's `try_sum` gives). No result wraps.
        at: Another table, with the columns `on`, `by` and `arrival`: answers are given
            at its rows instead, and it comes back with the results. This is how
            features meet labels, point in time correct.
        threads: How many threads may work on it: keys are shared out among them, with
            few keys the windows. By default as many as this process may use cores.
            Results are the same to the last bit, however many.

    Returns:
        The table with the results. In pandas, integer results that can be null are
        nullable integers (`Int64`), and all results follow the flavour of their column
        (numpy, masked or Arrow).

    Raises:
        SpecError: If an argument, a column or a value is wrong; nothing is computed.
        ResultOverflowError: If an integer result does not fit its type, unless
            `overflow` or `min_rows` makes it null.

    Cost: O(n log n) to sort what is not sorted; then per window ≤ 3 combines per row,
    whatever its length. With `arrival=`, O(log n) combines per row and window; for
    quantiles, modes and distinct counts a step for each row that lies between a window
    and the one of the next row to arrive, which is up to n where order is random.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [10, 11, 14], "at": [*"AAB"], "km": [3, 5, 4]})
        >>> out = sw.rolling(trips, on="t", by="at", windows=[2, sw.rows(10)],
        ...                  aggs={"n": sw.count(), "km": sw.sum("km")})
        >>> out["n_2"].to_pylist(), out["km_10rows"].to_pylist()
        ([1, 2, 1], [3, 8, 4])
    """
    spec = Spec.make(
        on=on,
        windows=windows,
        aggs=aggs,
        by=by,
        closed=closed,
        ties=ties,
        nan=nan,
        arrival=arrival,
        min_rows=min_rows,
        offset=offset,
        overflow=overflow,
    )
    return rolling_spec(table, spec, at, threads=threads)


def rolling_spec(
    table: Any, spec: Spec, at: Any = None, *, threads: int | None = None
) -> Any:
    """The same as `rolling`, for a `Spec` that is made already.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.spec.spec import Spec
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> rolling_spec(pa.table({"t": [1, 2]}), spec)["n_5"].to_pylist()
        [1, 2]
    """
    if is_lazy(at):
        rows = table.collect() if is_lazy(table) else table
        return map_lazily(
            at, spec, lambda points: rolling_spec(rows, spec, points, threads=threads)
        )
    if is_lazy(table):
        if at is not None:
            return rolling_spec(table.collect(), spec, at, threads=threads)
        return map_lazily(
            table, spec, lambda rows: rolling_spec(rows, spec, threads=threads)
        )
    source = frame(table)
    require(source, spec.columns)
    target = source if at is None else frame(at)
    refuse_taken(target, spec.results)
    call = KernelCall(source, spec, threads=resolve_threads(threads))
    points = None if at is None else query_points_of(target, call, spec)
    columns = [result for window in call.compute(points) for result in window.values()]
    return target.append(dict(zip(spec.results, columns, strict=True)))
