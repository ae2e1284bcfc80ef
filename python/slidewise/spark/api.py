"""The public functions: they check their arguments and call `batch` or `stream`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.hints import with_hints
from slidewise.keyed.validation import check_deletes, check_unique
from slidewise.spark.options import BatchOptions, StreamOptions, check_order
from slidewise.spec.durations import WindowLike
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import given_specs, only_spec, refuse_mixed
from slidewise.spec.query import Query
from slidewise.spec.spec import (
    EveryLike,
    HoppingLike,
    RollingLike,
    Spec,
    are_of_hopping,
    given_keywords,
)
from slidewise.table.asof import PointColumns, columns_of_points

if TYPE_CHECKING:
    from slidewise.spark.names import Named
    from slidewise.spark.only import Only

__all__ = ["check_frame", "explain", "hopping", "rolling"]

DataFrame = Any

# The arguments that are no keywords of a `Spec`, besides `df` and `spec`.
_OF_BATCHES = ("partitions", "split", "then_by", "only")
_OF_STREAMS = (
    *("late", "emit", "late_rows", "then_by"),
    *("initial", "buckets", "marker", "deletes", "changed", "publish", "ahead"),
    *("idle", "valid_until"),
)


@with_hints
def rolling(
    df: DataFrame = None,
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
    at: DataFrame = None,
    at_on: str | None = None,
    at_by: str | Sequence[str] | Mapping[str, str] | None = None,
    only: Any = None,
    then_by: str | Sequence[str] | None = None,
    late: str | timedelta | None = None,
    emit: str | None = None,
    late_rows: str = "drop",
    ahead: str | timedelta | None = None,
    idle: str | timedelta | None = None,
    initial: DataFrame = None,
    buckets: int | None = None,
    marker: str | None = None,
    deletes: str | None = None,
    changed: bool = False,
    valid_until: bool = False,
    publish: str | os.PathLike[str] | None = None,
    partitions: int | None = None,
    split: str | bool | int = "auto",
) -> Any:
    """Appends rolling aggregates to a PySpark DataFrame, batch or streaming.

    The results are those of `slidewise.rolling`: a column `<name>_<window>` per window
    and aggregation. The order of rows is undefined.

    Args:
        df: DataFrame, batch or streaming, of Spark Connect as well. Without it, the
            call returns a function for `df.transform(rolling(...))`.
        spec: `slidewise.Spec`, in place of the arguments that make one, from `on` to
            `fill`; `rolling(spec=spec)` without a DataFrame. Or `slidewise.Features`,
            for batch: the results of each Spec, one shuffle and sort after another.
        on: str, the column of event times: timestamps, dates, durations or integers; a
            stream needs timestamps with a time zone.
        windows: One window or several: `"90s"`, `"1h"`, `"7d"`, a timedelta, an int in
            the units of an integer time column, `slidewise.rows(n)`,
            `slidewise.calendar("1mo")`, `slidewise.to_date("1mo")`,
            `slidewise.unbounded()`, `slidewise.trailing("30d", resolution="1h")`,
            `slidewise.landmark("flag")`, `slidewise.delta("km", 5)`, or for batch
            `slidewise.length("column")`. A stream answers `landmark` and `delta` with
            `emit="final"`.
        aggs: dict of names to aggregations, such as `{"avg": sw.mean("price")}`.
        by: str or list of str, the key columns; each key has its own windows.
        closed: `"right"` (the default), `"left"`, `"both"` or `"neither"`: which ends
            of a window belong to it.
        ties: `"peers"`: rows of equal time see one another; `"rows"`: they see those
            before them by `then_by`.
        nan: `"propagate"`, `"skip"` (NaN is missing) or `"raise"`.
        arrival: str or list of str, the columns of arrival order, the first one first:
            each row sees only rows that arrived no later. Rows that arrived together
            see one another: Spark keeps no order between them.
        min_rows: int; a window with fewer values that are not null gives null.
        unique_by: str or list of str, the columns of ids. Of rows with equal keys and
            ids, the first to arrive counts, whatever their times; the others are
            dropped, without results. A row without an id always counts. Of rows that
            arrive together (in a batch DataFrame without `arrival`, or in one
            micro-batch) that is the first by time, then by `then_by`. A stream
            remembers an id until the watermark has passed its row by the longest window
            and `late`.
        offset: A window length: how much earlier windows end, such as `"5m"`; for
            windows of rows `slidewise.rows(k)`, for those that end k rows before.
        exclude: `"self"` leaves the row itself out of its window; rows of its time
            stay. Streams take it with `emit="final"` and `"arrival"`.
        overflow: `"raise"` (an integer overflow fails the job) or `"null"`. A stream
            that has failed may continue from its checkpoint with `"null"`.
        names: str, the names of the result columns, `"{agg}_{window}"` by default.
        prefix: str before the name of each result column.
        fill: A value in place of null results, such as 0, or a mapping from names in
            `aggs` to values.
        at: For batch: a DataFrame of labels, with times and keys of its own. Its rows
            come back, with the results of their keys as of their times, and with
            `arrival=` of the rows that had arrived by theirs.
        at_on: For `at`: str, its column of times, if that has another name.
        at_by: For `at`: str, list of str or a mapping from columns of `by` to those of
            `at`, its key columns, if these have other names.
        only: For batch: the rows that get results, and come back; the results are
            those that they have in the whole call. A range of time, `(start, end)` for
            start ≤ t < end with values of the kind of the column of times, one of which
            may be None; or a condition: a Column or SQL, such as
            `"day = '2026-01-05'"`. Rows are read back to the longest window before the
            earliest time among them. With `at=` a range, which selects labels. Windows
            that may hold any earlier row are refused.
        then_by: str or list of str, the columns that order rows of equal time, each as
            values, NaN, nulls. Required where results depend on that order: for
            `rows(n)`, `ties="rows"`, aggregations of the order of rows (such as
            `first`, `lag`, `collect`, `arg_max`, `top_k(by=)`, `increase`, `integral`),
            and custom ones that are not commutative.
        late: For streams, required: str or timedelta, how far the watermark is behind
            the latest event time, such as `"10 minutes"`.
        emit: For streams: `"final"`, each row once the watermark has passed it (the
            default); `"arrival"`, each row in its own micro-batch (the default with
            `arrival=`); `"update"`, per micro-batch the latest window of each key with
            new rows; or `"change"`, these and, as the watermark passes the times at
            which rows leave windows, the windows of their keys at the watermark.
        late_rows: For streams, what happens to rows behind the watermark: `"drop"`;
            `"flag"` returns them without results and with `_late` true; `"correct"`
            ingests those up to the longest window behind it, and emits the results
            that they change again, with `_correction` true. All are counted.
        ahead: For streams: str or timedelta, how far the time of a row may be after
            that of its micro-batch, such as `"1 hour"`. A row that is further ahead
            does not move the watermark; it is counted, and dropped or, where late rows
            are returned, returned with `_ahead` true. Default: any distance.
        idle: For streams: str or timedelta. If no row came for that long, the watermark
            goes on from where it was, at the pace of the times of micro-batches, until
            rows come again. Heartbeats, one a second at most, start micro-batches while
            no rows come. A checkpoint has it from its first micro-batch on, or never;
            its length may change. Default: the watermark waits for rows.
        initial: For streams: a batch DataFrame of the rows before the stream.
        buckets: For streams: int, the most groups into which keys are hashed. There is
            one per partition of the state, `spark.sql.shuffle.partitions`, which a
            checkpoint keeps; only `migrate` changes it.
        marker: For streams: str, a boolean column. Rows where it is true only move the
            watermark, which emits the last rows of a stream that ends.
        deletes: str, a boolean column. A row where it is true deletes one row of its
            key and time (the first by `then_by`, else by arrival, which in a batch
            DataFrame is the order in which Spark reads) and gets no results.
        changed: For streams, with `emit="change"`: bool; leaves out results that equal
            the last one of their key. A key whose rows had all left its windows has no
            last one.
        valid_until: For streams, with `emit="change"` or "update": bool; adds
            `valid_until_<window>` per window, the first time at which one of its
            results changes because a row leaves, or null. `changed` compares it, too.
        publish: For streams: the folder to which each micro-batch writes what it
            changed in the state, for `slidewise.follow`. It belongs to the checkpoint
            from its first micro-batch on.
        partitions: For batch: int, the number of tasks; by default
            `spark.sql.shuffle.partitions`.
        split: For batch: `"sample"` splits skewed keys by time, which it finds by
            jobs while the query is planned; an int splits each key of 10,000 rows and
            more into that number of parts, 64 at most. `"auto"` and False run no job
            and split none.

    Returns:
        A DataFrame, computed when Spark runs it; without `df` a function of a
        DataFrame. With `at=` it has the columns of `at` and the results. A call on a
        batch DataFrame accepts the arguments for streams, which change no results,
        except for `initial`, `emit="update"` and "change", and `emit="arrival"` without
        `arrival`, which it refuses.

    Cost:
        Batch: one shuffle, one sort, and O(1) amortized time per row, window and
        invertible or monotonic aggregation, however long windows are. Labels are sorted
        among the rows. With `only=`, the rows that are read, not all; a condition is
        evaluated in a scan more. `split=` runs a count and a sample in this call, if it
        asks for splits. Streams: per micro-batch, time and state access in proportion
        to its rows, and logarithmic in the length of windows; quantiles, distinct
        counts and similar ones read all rows of the windows.

    Raises:
        SpecError: If an argument or a column is wrong, before any job starts. Errors
            in the values (a missing time, a refused NaN) fail the job instead.

    Example:
        >>> import slidewise as sw
        >>> from slidewise.spark import rolling, session
        >>> spark = session()  # doctest: +SKIP
        >>> trips = spark.read.parquet("trips.parquet")  # doctest: +SKIP
        >>> features = trips.transform(rolling(
        ...     on="starttime", by="station", windows=["1h", "24h"],
        ...     aggs={"n": sw.count(), "avg": sw.mean("tripduration")},
        ...     late="10 minutes"))  # doctest: +SKIP
    """
    return _transform("rolling", locals())


@with_hints
def hopping(
    df: DataFrame = None,
    spec: Spec | None = None,
    *,
    on: str | None = None,
    aggs: Mapping[str, Aggregation] | None = None,
    window: HoppingLike | None = None,
    windows: Iterable[HoppingLike | Query] | None = None,
    every: EveryLike | None = None,
    by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    empty: bool = False,
    closed: str | None = None,
    nan: str = "propagate",
    min_rows: int = 0,
    unique_by: str | Sequence[str] | None = None,
    overflow: str = "raise",
    names: str | None = None,
    prefix: str = "",
    fill: Any = None,
    only: Any = None,
    then_by: str | Sequence[str] | None = None,
    late: str | timedelta | None = None,
    emit: str | None = None,
    late_rows: str = "drop",
    ahead: str | timedelta | None = None,
    idle: str | timedelta | None = None,
    initial: DataFrame = None,
    buckets: int | None = None,
    marker: str | None = None,
    deletes: str | None = None,
    publish: str | os.PathLike[str] | None = None,
    partitions: int | None = None,
    split: str | bool | int = "auto",
) -> Any:
    """Aggregates a PySpark DataFrame over hopping, tumbling or session windows.

    The results are those of `slidewise.hopping`: a row per key and window, with the key
    columns, `window_start`, `window_end` and a column per aggregation, in no particular
    order.

    Args:
        df: DataFrame, batch or streaming; without it, the call returns a function.
        spec: `slidewise.Spec`, in place of the arguments that make one, from `on` to
            `fill`; `hopping(spec=spec)` without a DataFrame.
        on: str, the column of event times.
        window: The length of windows: `"1h"`, a timedelta, an int for integer times; or
            `slidewise.session("30m")`, whose windows end at a gap; `slidewise.rows(n)`;
            or `slidewise.until("flag")`, whose windows a row with the flag closes; or
            `slidewise.cumulate("1d", every="1h")`, the day so far, each hour.
        windows: Several of these instead, each with a slide of its own by
            `slidewise.Query`, such as `["1h", sw.Query("1d", every="1h")]`. Streams
            refuse sessions and windows that rows close together with others.
        aggs: dict of names to aggregations, such as `{"avg": sw.mean("price")}`.
        every: The distance between the starts of windows, by default their length. With
            `slidewise.rows(k)` a window ends with every k-th row of a key.
        by: str or list of str, the key columns; each key has its own windows.
        offset: A window length: by how much the starts of windows are moved.
        empty: bool; also returns windows without rows between a key's first and last.
        closed: `"left"` or `"right"`: which end of a window belongs to it.
        nan: `"propagate"`, `"skip"` (NaN is missing) or `"raise"`.
        min_rows: int; a window with fewer values that are not null gives null.
        unique_by: str or list of str, the columns of ids, as for `rolling`.
        overflow: `"raise"` or `"null"`, as for `rolling`.
        names: str, the names of the columns of aggregations, `"{agg}"` by default.
        prefix: str before the name of each of these columns.
        fill: As for `rolling`.
        only: For batch: a range of time, as for `rolling`: only windows that end after
            its start and not after its end come back, or with `closed="right"` from its
            start on and before its end.
        then_by: str or list of str, the columns that order rows of equal time.
        late: For streams, required: str or timedelta, as for `rolling`.
        emit: For streams: only `"slide"`: a row per key and window, once the watermark
            has passed its end.
        late_rows: For streams: `"drop"` or `"correct"`, as for `rolling`.
        ahead: For streams: str or timedelta, as for `rolling`.
        idle: For streams: str or timedelta, as for `rolling`.
        initial: For streams: a batch DataFrame of the rows before the stream. Windows
            that a watermark at the latest of their times would close get no results.
        buckets: For streams: int, the most groups into which keys are hashed, as for
            `rolling`.
        marker: For streams: str, the boolean column of rows that only move the
            watermark.
        deletes: str, the boolean column of rows that delete others, as for `rolling`.
        publish: For streams: the folder for `slidewise.follow`, as for `rolling`.
        partitions: For batch: int, the number of tasks.
        split: For batch: `"auto"`, `"sample"`, int or False, as for `rolling`. Keys of
            sessions and with `empty=True` cannot be split.

    Returns:
        A DataFrame, computed when Spark runs it; without `df` a function of a
        DataFrame.

    Cost:
        As for `rolling`. No row is copied into the windows that hold it.

    Raises:
        SpecError: If an argument or a column is wrong, before any job starts.

    Example:
        >>> import slidewise as sw
        >>> from slidewise.spark import hopping
        >>> per_hour = hopping(on="t", window="1h", every="5m", aggs={"n": sw.count()})
        >>> df.transform(per_hour)  # doctest: +SKIP
    """
    return _transform("hopping", locals())


def explain(
    df: DataFrame, spec: Spec | Features | None = None, **arguments: Any
) -> str:
    """Describes the plan of `rolling` or `hopping`: steps, skewed keys, state, memory.

    The last line compares it with a window frame of Spark's own.

    Args:
        df: DataFrame, batch or streaming.
        spec: `slidewise.Spec`, in place of the arguments that make one, or
            `slidewise.Features`, whose Specs are described one after another.
        arguments: The other arguments of `rolling`; or of `hopping` if `window`,
            `every` or `empty` is among them, or one of `windows` is not per row.

    Returns:
        str, several lines.

    Cost:
        Runs no job, unless `split=` asks for splits of skewed keys.

    Raises:
        SpecError: If an argument or a column is wrong.

    Example:
        >>> import slidewise as sw
        >>> from slidewise.spark import explain
        >>> print(explain(df, on="t", windows="1h",
        ...               aggs={"n": sw.count()}))  # doctest: +SKIP
    """
    is_hopping = are_of_hopping(given_keywords(arguments))
    if isinstance(spec, Spec | Features):
        is_hopping = spec.is_hopping
    call: Callable[..., Any] = hopping if is_hopping else rolling
    transform = call(spec=spec, **arguments)
    assert isinstance(transform, _Transform), "no DataFrame is among the arguments"
    return transform.explain(df)


@dataclass(frozen=True, slots=True)
class _Transform:
    """A checked call, as a function of its DataFrame."""

    spec: Spec | Features
    streams: tuple[StreamOptions, ...]
    batch: BatchOptions
    at: DataFrame = field(default=None, compare=False)
    columns: Sequence[PointColumns] = ()

    def __call__(self, df: DataFrame) -> DataFrame:
        """Returns the DataFrame of results."""
        self._check(df)
        specs, stream = parts_of(self.spec), self.streams[0]
        table = self._named(df)
        if df.isStreaming:
            from slidewise.spark.stream import transform_stream

            if hasattr(stream.initial, "sparkSession"):
                initial = self._named(stream.initial).df
                stream = replace(stream, initial=initial)
            return table.restored(transform_stream(table.df, specs[0], stream))
        from slidewise.spark import batch

        only = self._only(table.df)
        rows = table.df if only is None else only.restricted(table.df)
        rows = batch.drop_markers(rows, stream.marker)
        rows = batch.drop_deleted(rows, specs[0], stream)
        labels = self._named_labels()
        at = None if labels is None else labels.df
        results = batch.transform_specs(rows, specs, self.batch, at, self.columns, only)
        return batch.add_flags((labels or table).restored(results), stream)

    def explain(self, df: DataFrame) -> str:
        """Returns the plan as text."""
        self._check(df)
        from slidewise.spark import explanation

        specs, rows = parts_of(self.spec), self._named(df).df
        if df.isStreaming:
            return explanation.explain_stream(rows, specs[0], self.streams[0])
        labels = self._named_labels()
        at = None if labels is None else labels.df
        only = self._only(rows)
        rows = rows if only is None else only.restricted(rows)
        plans = [
            explanation.explain_batch(rows, spec, self.batch, at, columns, only)
            for spec, columns in zip(specs, self.columns, strict=True)
        ]
        if isinstance(self.spec, Features):
            named = zip(self.spec.parts, plans, strict=True)
            plans = [f"{name}: {plan}" for name, plan in named]
        return "\n\n".join(plans)

    def _only(self, df: DataFrame) -> "Only | None":
        """The rows to answer and to read; None without `only=`."""
        from slidewise.spark.only import Only

        given = self.batch.only
        if given is None:
            return None
        return Only.of(df, parts_of(self.spec), given, labels=self.at is not None)

    def _named(self, df: DataFrame) -> "Named":
        """The DataFrame with the names of the call."""
        from slidewise.spark.names import named

        names = [name for spec in parts_of(self.spec) for name in spec.columns]
        options = self.streams[0]
        more = [*self.batch.then_by, options.marker, options.deletes]
        return named(df, [*names, *filter(None, more)])

    def _named_labels(self) -> "Named | None":
        """The labels, likewise; None without them."""
        from slidewise.spark.names import named

        if self.at is None:
            return None
        named_so = [[of.on, *of.by, *of.arrivals] for of in self.columns]
        return named(self.at, chain.from_iterable(named_so))

    def _check(self, df: DataFrame) -> None:
        """Checks the DataFrame, the version of PySpark, and the options for both."""
        from slidewise.spark.versions import check_batch, check_streams

        check_frame(df)
        self._check_labels(df)
        specs = parts_of(self.spec)
        if df.isStreaming:
            if isinstance(self.spec, Features):
                name = next(iter(self.spec.parts))
                raise SpecError(
                    "a streaming DataFrame does not take Features, as each Spec has a "
                    "state by its own keys: give each in a query of its own, such as "
                    f"rolling(df, features.parts[{name!r}])"
                )
            if self.batch.only is not None:
                raise SpecError(
                    Argument("only"),
                    " answers some rows of a batch DataFrame: leave it out for a "
                    "stream, which answers new rows alone",
                )
            check_streams()
            refuse_mixed(specs[0], "a streaming DataFrame")
            self.streams[0].check_stream()
            return
        check_batch()
        for spec, stream in zip(specs, self.streams, strict=True):
            stream.check_batch(spec)

    def _check_labels(self, df: DataFrame) -> None:
        if self.at is None:
            return
        check_frame(self.at, "at= takes one; ")
        if df.isStreaming or self.at.isStreaming:
            raise SpecError(
                Argument("at"),
                " is a batch DataFrame of labels, beside a batch DataFrame of their "
                "history: answer a stream of labels in foreachBatch, or from "
                "slidewise.KeyedWindows",
            )


def _transform(caller: str, arguments: Mapping[str, Any]) -> Any:
    """Returns the DataFrame of results; a function of a DataFrame if `df` is None."""
    spec, request = arguments["spec"], given_keywords(arguments)
    is_hopping = caller == "hopping"
    if is_hopping:
        spec = only_spec(spec, caller, "they have a result per row: use rolling")
    spec = given_specs(spec, request, caller, is_hopping)
    options = BatchOptions.make(**{name: arguments[name] for name in _OF_BATCHES})
    given = {name: arguments[name] for name in _OF_STREAMS if name in arguments}
    specs = parts_of(spec)
    streams = tuple(StreamOptions.make(each, **given) for each in specs)
    for each in specs:
        check_order(each, options.then_by)
    check_deletes(specs, streams[0].deletes, "call rolling")
    check_unique(specs, "call rolling")
    at, at_on, at_by = map(arguments.get, ("at", "at_on", "at_by"))
    columns = columns_of_points(spec, at, at_on, at_by)
    transform = _Transform(spec, streams, options, at, columns)
    df = arguments["df"]
    return transform if df is None else transform(df)


def check_frame(df: DataFrame, where: str = "") -> None:
    """Checks for a DataFrame by its methods: Spark Connect has a class of its own."""
    if not all(hasattr(df, name) for name in ("isStreaming", "mapInArrow", "schema")):
        kind = f"{type(df).__module__}.{type(df).__qualname__}"
        raise SpecError(
            f"{kind} is not a PySpark DataFrame; {where}for other tables there is "
            "slidewise.rolling"
        )
