"""The functions for PySpark: what is asked is checked, and handed on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.spark.options import BatchOptions, StreamOptions, check_order
from slidewise.spec.durations import Session, WindowLike
from slidewise.spec.spec import Spec

__all__ = ["explain", "hopping", "rolling"]

DataFrame = Any


def rolling(
    df: DataFrame = None,
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
    then_by: str | Sequence[str] | None = None,
    late: str | timedelta | None = None,
    emit: str | None = None,
    late_rows: str = "drop",
    initial: DataFrame = None,
    buckets: int | None = None,
    marker: str | None = None,
    deletes: str | None = None,
    partitions: int | None = None,
    split: str | bool | int = "auto",
) -> Any:
    """Rolling aggregates of a PySpark DataFrame, batch or streaming.

    Means what `slidewise.rolling` means, and gives the same numbers. The rows come back
    with a column `<name>_<window>` per window and aggregation, in no particular order.

    Args:
        df: A PySpark DataFrame, of Spark Connect as well. Left out, a function comes
            back, for `df.transform(rolling(...))`.
        on: As for `slidewise.rolling`, and so are `windows`, `aggs`, `by`, `closed`,
            `ties`, `nan`, `min_rows`, `offset` and `overflow`.
        windows: See there.
        aggs: See there.
        by: See there.
        closed: See there.
        ties: See there.
        nan: See there.
        arrival: See there. Rows of equal arrival have arrived together and see one
            another: Spark keeps no order between them.
        min_rows: See there.
        offset: See there.
        overflow: See there. A stream that fails with `ResultOverflowError` goes on from
            its checkpoint with "null".
        then_by: The column, or several, by which rows of equal time are ordered:
            values, NaN, nulls. Needed where the answer depends on it: for `rows(n)`,
            `ties="rows"`, `first`, `last`, `collect`, `concat`, `arg_min` and
            `arg_max`, and aggregations of your own that are not commutative.
        late: For streams: how long to wait for late rows, such as `"10 minutes"`.
        emit: For streams: `"final"` gives each row once all rows of its window that are
            not late are there (by default), `"arrival"` at once, as of its arrival (by
            default with `arrival=`), `"update"` per micro-batch and changed key the
            window at its latest time.
        late_rows: For streams: rows later than `late` are counted and dropped
            (`"drop"`), come back without results and with `_late` true (`"flag"`), or
            are taken in as far as the longest window behind the watermark, and what
            they change is sent again with `_correction` true (`"correct"`).
        initial: For streams: a batch DataFrame of what came before the stream.
        buckets: For streams: into how many groups keys are hashed, for as long as the
            checkpoint lives.
        marker: For streams: a column of booleans. Rows where it is true are no rows of
            the stream: their times only move the watermark, which is how the last rows
            of a stream that has ended get their answers.
        deletes: A column of booleans. A row where it is true takes back one with its
            key and time (the first by `then_by`, else the first that arrived, which in
            a batch DataFrame is the first that Spark reads) and gets no answer. On a
            stream it is late as any row is.
        partitions: For batch: over how many tasks the keys are spread. By default
            `spark.sql.shuffle.partitions`.
        split: For batch: keys of very many rows are cut into pieces of time, so that
            the whole cluster works on them. `"auto"` finds them in tables that Spark
            expects to be large, by a count and a sample, which are small jobs of their
            own; a number cuts keys of about 10,000 rows and more into up to so many
            pieces; `False` cuts none.

    Returns:
        A DataFrame. Nothing is computed before Spark is asked to, but for those jobs.

    Raises:
        SpecError: If an argument or a column is wrong, before any job starts. What only
            the values tell (a missing time, a NaN that was refused) fails the job, with
            the same message.

    The arguments for streams may stay in a call on a batch DataFrame: they say when an
    answer is given, not what it is.

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
    batch = BatchOptions.make(partitions=partitions, split=split, then_by=then_by)
    return _applied(
        df,
        spec,
        batch,
        late=late,
        emit=emit,
        late_rows=late_rows,
        then_by=then_by,
        initial=initial,
        buckets=buckets,
        marker=marker,
        deletes=deletes,
    )


def hopping(
    df: DataFrame = None,
    *,
    on: str,
    window: WindowLike | Session,
    aggs: Mapping[str, Aggregation],
    every: WindowLike | None = None,
    by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    empty: bool = False,
    nan: str = "propagate",
    min_rows: int = 0,
    overflow: str = "raise",
    then_by: str | Sequence[str] | None = None,
    late: str | timedelta | None = None,
    emit: str | None = None,
    late_rows: str = "drop",
    initial: DataFrame = None,
    buckets: int | None = None,
    marker: str | None = None,
    deletes: str | None = None,
    partitions: int | None = None,
    split: str | bool | int = "auto",
) -> Any:
    """Aggregates over windows at a distance from one another, batch or streaming.

    Means what `slidewise.hopping` means: a row per key and window, with the key
    columns, `window_start`, `window_end` and a column per aggregation, in no particular
    order.

    Args:
        df: As for `rolling`.
        on: As for `slidewise.hopping`, and so are `window`, `aggs`, `every`, `by`,
            `offset`, `empty`, `nan`, `min_rows` and `overflow`.
        window: See there.
        aggs: See there.
        every: See there.
        by: See there.
        offset: See there.
        empty: See there.
        nan: See there.
        min_rows: See there.
        overflow: See there.
        then_by: As for `rolling`, and so are the others.
        late: See `rolling`.
        emit: For streams: `"slide"`, a row per key and window once it is complete.
        late_rows: See `rolling`.
        initial: See `rolling`.
        buckets: See `rolling`.
        marker: See `rolling`.
        deletes: See `rolling`.
        partitions: See `rolling`.
        split: See `rolling`. Sessions are not cut, nor is anything with `empty=True`.

    Returns:
        A DataFrame, or a function of one.

    Raises:
        SpecError: As for `rolling`.

    Example:
        >>> import slidewise as sw
        >>> from slidewise.spark import hopping
        >>> per_hour = hopping(on="t", window="1h", every="5m", aggs={"n": sw.count()})
        >>> df.transform(per_hour)  # doctest: +SKIP
    """
    spec = Spec.make_hopping(
        on=on,
        window=window,
        aggs=aggs,
        every=every,
        by=by,
        offset=offset,
        empty=empty,
        nan=nan,
        min_rows=min_rows,
        overflow=overflow,
    )
    batch = BatchOptions.make(partitions=partitions, split=split, then_by=then_by)
    return _applied(
        df,
        spec,
        batch,
        late=late,
        emit=emit,
        late_rows=late_rows,
        then_by=then_by,
        initial=initial,
        buckets=buckets,
        marker=marker,
        deletes=deletes,
    )


def explain(df: DataFrame, **asked: Any) -> str:
    """How `rolling` or `hopping` would answer: steps, tasks, hot keys, memory.

    Also says where a window frame of Spark's own would do as well.

    Args:
        df: As for `rolling`.
        asked: The other arguments of `rolling`, or of `hopping` if there is `window`.

    Returns:
        Some lines of text. Looking for hot keys may take a small job.

    Raises:
        SpecError: As for `rolling`.

    Example:
        >>> import slidewise as sw
        >>> from slidewise.spark import explain
        >>> print(explain(df, on="t", windows="1h",
        ...               aggs={"n": sw.count()}))  # doctest: +SKIP
    """
    later = hopping(**asked) if "window" in asked else rolling(**asked)
    assert isinstance(later, _Asked), "there is no DataFrame among the arguments"
    return later.explained(df)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked, and as a function: that of a DataFrame."""

    spec: Spec
    stream: StreamOptions
    batch: BatchOptions

    def __call__(self, df: DataFrame) -> DataFrame:
        """The DataFrame of answers."""
        from slidewise.spark.versions import check_batch, check_streams

        _check_frame(df)
        if df.isStreaming:
            check_streams()
            self.stream.check_stream()
            from slidewise.spark import stream as streams

            return streams.answered(df, self.spec, self.stream)
        check_batch()
        from slidewise.spark import batch as tables

        self.stream.check_table(self.spec)
        rows = tables.without_markers(df, self.stream.marker)
        rows = tables.without_deleted(rows, self.spec, self.stream)
        answers = tables.answered(rows, self.spec, self.batch)
        return tables.with_flags(answers, self.stream)

    def explained(self, df: DataFrame) -> str:
        """How that would be done."""
        from slidewise.spark import explanation
        from slidewise.spark.versions import check_batch, check_streams

        _check_frame(df)
        if df.isStreaming:
            check_streams()
            return explanation.explained_stream(df, self.spec, self.stream)
        check_batch()
        self.stream.check_table(self.spec)
        return explanation.explained_batch(df, self.spec, self.batch)


def _applied(df: DataFrame, spec: Spec, batch: BatchOptions, **stream: Any) -> Any:
    """The DataFrame with the answers; a function of one where there is none yet."""
    options = StreamOptions.make(spec, **stream)
    check_order(spec, options.then_by)
    asked = _Asked(spec, options, batch)
    return asked if df is None else asked(df)


def _check_frame(df: DataFrame) -> None:
    """Duck-typed: the classes of Spark Connect are others than those of the driver."""
    if not all(hasattr(df, name) for name in ("isStreaming", "mapInArrow", "schema")):
        kind = f"{type(df).__module__}.{type(df).__qualname__}"
        raise SpecError(
            f"{kind} is no PySpark DataFrame; for other tables there is "
            "slidewise.rolling"
        )
