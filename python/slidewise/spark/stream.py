"""Streaming queries: pack rows by bucket, one stateful operator per bucket, unpack.

    withWatermark → pack by bucket → transformWithState per bucket → unpack

`transformWithState` costs a tenth of a millisecond per group and per access to state.
So rows are sent as Arrow payloads, one per bucket of keys, and state is pages of many
rows. `withWatermark` comes before the packing. Spark keeps one watermark for the whole
stream and fires the timers of buckets without rows. Its filter of late rows sees no
event time in payloads, so it drops none. A micro-batch writes its state in
`operator.py`: `StateTransaction.commit`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from slidewise.errors import Argument, SpecError
from slidewise.keyed.horizon import retention_ticks
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked, refuse_flag
from slidewise.spark.batch import drop_deleted, drop_duplicates
from slidewise.spark.checkpoint_guard import Guard
from slidewise.spark.collations import collated_results
from slidewise.spark.columns import EARLY, column
from slidewise.spark.commits import mark_commits
from slidewise.spark.heartbeats import check_heartbeats, with_heartbeats
from slidewise.spark.listener import OBSERVATION
from slidewise.spark.local_session import PROVIDER, ROCKSDB
from slidewise.spark.marks import KEY, UNTIL
from slidewise.spark.operator import METRICS, OUTPUT, Operator
from slidewise.spark.options import StreamOptions
from slidewise.spark.payload import (
    PACKED,
    LatestOfEach,
    Packer,
    number_history,
    unpack,
)
from slidewise.spark.schemas import arrow_schema, check_boolean, result_struct
from slidewise.spark.watermarks import SHIFTED, WATERMARK, shift_times
from slidewise.spec.spec import Spec

__all__ = [
    "make_query",
    "most_buckets",
    "transform_stream",
    "with_needed_columns",
]

# The key of the watermark in the metadata of a Spark column.
_WATERMARK = "spark.watermarkDelayMs"


def transform_stream(df: Any, spec: Spec, options: StreamOptions) -> Any:
    """Returns the streaming DataFrame of results."""
    _check_time(df, spec.on)
    _check_watermark(df)
    check_boolean(df, options.marker, "marker")
    _check_session(df.sparkSession)
    query = make_query(df, spec, options)
    flags = options.flags
    buckets = most_buckets(spec, options)
    early, beats = options.ahead is not None, options.idle is not None
    packer = Packer(query, buckets, options.marker, early=early, beats=beats)
    rows, shifted = df, shift_times(spec.on)
    if beats:
        check_heartbeats(df.sparkSession)
        rows = with_heartbeats(rows)
    if options.ahead is not None:
        # The time of the micro-batch: one that is repeated has the same.
        now = sf.unix_micros(sf.current_timestamp())
        latest = now + sf.lit(options.ahead // 1_000)
        ahead = sf.coalesce(sf.unix_micros(column(spec.on)) > latest, sf.lit(False))
        rows = rows.withColumn(EARLY, ahead)
        # A watermark passes over missing times.
        shifted = sf.when(~column(EARLY), shifted)
    rows = rows.withColumn(SHIFTED, shifted).withWatermark(SHIFTED, options.delay)
    packed = rows.drop(SHIFTED).mapInArrow(packer, PACKED)
    history = None
    if options.initial is not None:
        _check_history(options.initial, df)
        # Deletions apply here, since the payloads of a bucket come in any order.
        before = drop_deleted(options.initial, spec, options, number_history)
        before = drop_duplicates(before, spec, options.then_by)
        own = Packer(query, buckets, options.marker)
        history = _history(before, spec, own, buckets).groupBy("bucket")
    if options.publish is not None:
        mark_commits(df.sparkSession, options.publish)
    retention = 0
    if spec.unique_by and options.late is not None:
        retention = retention_ticks(query, options.late // 1_000, None)
    guard = Guard.of(query, buckets)
    operator = Operator(
        query,
        guard,
        options.publish,
        flags=flags,
        retention=retention,
        idle=options.idle_ms,
    )
    results = packed.groupBy("bucket").transformWithState(
        statefulProcessor=operator,
        outputStructType=OUTPUT,
        outputMode="Append",
        timeMode="EventTime",
        initialState=history,
    )
    # `unpack` drops the columns of counts: a projection would copy the payloads.
    return _observe(results).mapInArrow(unpack, _output_struct(df, query, flags))


def _history(before: Any, spec: Spec, packer: Packer, buckets: int | None) -> Any:
    """Returns the packed rows before the stream, and a row per bucket with their end.

    The end is the latest of their times; only hopping windows need it.
    """
    packed = before.mapInArrow(packer, PACKED).select("bucket", "payload")
    packed = packed.withColumn("latest", sf.lit(None).cast("long"))
    if not spec.is_hopping:
        return packed
    latest = before.agg(sf.max(sf.unix_micros(column(spec.on))).alias("latest"))
    return packed.unionByName(latest.mapInArrow(LatestOfEach(buckets), packed.schema))


def _observe(results: Any) -> Any:
    """Adds the operator's counts to the query's progress, by `DataFrame.observe`."""
    sums = [sf.sum(name).alias(name) for name in METRICS]
    try:
        return results.observe(OBSERVATION, *sums, sf.max(WATERMARK).alias(WATERMARK))
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise SpecError(
            "the stream is a result of slidewise already, and a query can hold the "
            "state of one call only: write the first result to a sink, and read it "
            "from there"
        ) from None


def most_buckets(spec: Spec, options: StreamOptions) -> int | None:
    """Returns the most groups into which keys are hashed; None for any number."""
    return options.buckets if spec.by else 1


def make_query(df: Any, spec: Spec, options: StreamOptions) -> KeyedQuery:
    """Returns the keyed query over the columns that its results need."""
    result_struct(df, spec, options.then_by)
    schema = arrow_schema(df)
    for flag in options.flags:
        refuse_flag(schema.names, options.late_rows, flag)
    given = (options.emit, options.then_by, options.deletes, options.corrects)
    query = KeyedQuery(spec, schema, *given, changed=options.changed)
    return checked(with_needed_columns(replace(query, valid_until=options.valid_until)))


def with_needed_columns(query: KeyedQuery) -> KeyedQuery:
    """The query over those of its columns that its results have or need."""
    if query.emit in ("arrival", "final"):
        return query
    needed = {*query.spec.columns, *query.then_by, query.deletes}
    schema = pa.schema([field for field in query.schema if field.name in needed])
    return replace(query, schema=schema)


def _output_struct(df: Any, query: KeyedQuery, flags: Sequence[str]) -> StructType:
    """Returns the schema of the output: input columns as they are, then results."""
    inputs = {field.name: field for field in df.schema}
    collated = collated_results(df, query.spec)
    # A result of hopping windows may have the name of an input column.
    kept = {*(query.spec.by if query.spec.is_hopping else query.schema.names)}
    fields = [
        inputs[field.name]
        if field.name in kept
        else StructField(
            field.name, collated.get(field.name) or from_arrow_type(field.type, True)
        )
        for field in query.output
    ]
    fields += [StructField(flag, BooleanType(), nullable=False) for flag in flags]
    bounds = ("window_start", "window_end") if query.spec.is_hopping else ()
    keys, until = {*query.spec.by, *bounds}, query.computed[len(query.spec.results) :]
    marks: dict[str, dict[str, Any]] = {name: {KEY: len(keys)} for name in keys}
    marks |= {name: {UNTIL: True} for name in until}
    for at, one in enumerate(fields):
        marked = {**(one.metadata or {}), **marks.get(one.name, {})}
        fields[at] = StructField(one.name, one.dataType, one.nullable, marked)
    return StructType(fields)


def _check_time(df: Any, on: str) -> None:
    found = [field for field in df.schema if field.name == on]
    if found and not isinstance(found[0].dataType, TimestampType):
        kind = found[0].dataType.simpleString()
        raise SpecError(
            f"the time column {on!r} is {kind}, and Spark keeps watermarks for "
            f"timestamps with a time zone only: cast it, e.g. "
            f".withColumn({on!r}, col({on!r}).cast('timestamp')) or timestamp_seconds()"
        )


def _check_watermark(df: Any) -> None:
    for field in df.schema:
        if _WATERMARK in (field.metadata or {}):
            raise SpecError(
                f"the stream has a watermark on {field.name!r} already, and Spark "
                "allows one only: leave out withWatermark(), as ",
                Argument("late"),
                " sets it",
            )


def _check_session(spark: Any) -> None:
    provider = spark.conf.get(PROVIDER, "")
    if "RocksDB" not in provider:
        raise SpecError(
            "streams keep their state in RocksDB, which this session does not use: "
            f"call spark.conf.set({PROVIDER!r}, {ROCKSDB!r}) before the query starts, "
            "or get a session by slidewise.spark.session()"
        )


def _check_history(initial: Any, df: Any) -> None:
    if not hasattr(initial, "isStreaming") or initial.isStreaming:
        raise SpecError("initial= takes a batch DataFrame with the stream's columns")
    theirs = {field.name: field.dataType for field in initial.schema}
    for field in df.schema:
        if theirs.get(field.name) != field.dataType:
            kind = theirs.get(field.name)
            found = (
                f"has no column {field.name!r}"
                if kind is None
                else (f"has {field.name!r} as {kind.simpleString()}")
            )
            raise SpecError(
                f"initial= {found}, and the stream has it as "
                f"{field.dataType.simpleString()}: give both the same columns"
            )
