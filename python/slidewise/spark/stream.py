"""Streams: rows packed by bucket, one stateful operator per bucket, answers unpacked.

    withWatermark → pack by bucket → transformWithState per bucket → unpack

Spark's operator costs a tenth of a millisecond per group and per call for state. So
rows travel as Arrow payloads, one per bucket of keys, and state is pages of many rows.
The watermark lies below the packing: Spark keeps one for the whole stream and fires the
timers of quiet buckets, and its own filter, which would drop payloads as a whole, sees
no event time.
"""

from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from slidewise.errors import Argument, SpecError
from slidewise.keyed.query import LATE
from slidewise.keyed.stream_query import StreamQuery
from slidewise.keyed.validation import refuse_flag
from slidewise.spark.checkpoint_guard import Guard
from slidewise.spark.listener import NAME
from slidewise.spark.local_session import PROVIDER, ROCKSDB
from slidewise.spark.operator import METRICS, OUTPUT, Operator
from slidewise.spark.options import StreamOptions
from slidewise.spark.payload import PACKED, Packer, unpack
from slidewise.spark.schemas import arrow_schema, check_booleans, with_results
from slidewise.spark.watermarks import MOVED, moved
from slidewise.spec.spec import Spec

__all__ = ["answered", "buckets_of", "job_of"]

_BUCKETS = 8
# What Spark notes at a column with a watermark.
_WATERMARK = "spark.watermarkDelayMs"


def answered(df: Any, spec: Spec, options: StreamOptions) -> Any:
    """The stream of answers.

    Args:
        df: A streaming DataFrame.
        spec: What is asked.
        options: How a stream is answered.

    Raises:
        SpecError: If the spec does not fit the columns, or the session the operator.
    """
    options.check_stream()
    _check_time(df, spec.on)
    _check_watermark(df)
    check_booleans(df, options.marker, "marker")
    _check_session(df.sparkSession)
    job = job_of(df, spec, options)
    flags = options.flags
    buckets = buckets_of(spec, options)
    guard = Guard.of(job, buckets)
    packer = Packer(job, buckets, guard.to_bytes(), options.marker)
    rows = df.withColumn(MOVED, moved(spec.on)).withWatermark(MOVED, options.delay)
    packed = rows.drop(MOVED).mapInArrow(packer, PACKED)
    history = None
    if options.initial is not None:
        _check_history(options.initial, df)
        history = options.initial.mapInArrow(packer, PACKED).groupBy("bucket")
    answers = packed.groupBy("bucket").transformWithState(
        statefulProcessor=Operator(job, guard.to_bytes(), flags=flags),
        outputStructType=OUTPUT,
        outputMode="Append",
        timeMode="EventTime",
        initialState=history,
    )
    observed = _observed(answers).select("payload")
    return observed.mapInArrow(unpack, _answers(df, job, flags))


def _observed(answers: Any) -> Any:
    """Answers of which a query's progress tells what the operator did."""
    sums = [sf.sum(name).alias(name) for name in METRICS]
    try:
        return answers.observe(NAME, *sums)
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise SpecError(
            "the stream is made of answers of slidewise already, and a query keeps the "
            "state of one call: write them to a sink, and read them from there"
        ) from None


def buckets_of(spec: Spec, options: StreamOptions) -> int:
    """How many groups keys are hashed into."""
    return (options.buckets or _BUCKETS) if spec.by else 1


def job_of(df: Any, spec: Spec, options: StreamOptions) -> StreamQuery:
    """What is asked of the rows. Columns that no answer needs are left behind."""
    with_results(df, spec, options.then_by)
    schema = arrow_schema(df)
    if options.flags:
        refuse_flag(schema.names, options.late_rows)
    if options.emit in ("update", "slide"):
        needed = {*spec.columns, *options.then_by, options.deletes}
        schema = pa.schema([field for field in schema if field.name in needed])
    return StreamQuery(
        spec,
        schema,
        options.emit,
        options.then_by,
        options.deletes,
        options.corrects,
    )


def _answers(df: Any, job: StreamQuery, flags: bool) -> StructType:
    """The columns of the answers: the stream's as they are there, then results."""
    own = {field.name: field for field in df.schema}
    fields = [
        own[field.name]
        if field.name in job.schema.names
        else StructField(field.name, from_arrow_type(field.type, True))
        for field in job.output
    ]
    if flags:
        fields.append(StructField(LATE, BooleanType(), nullable=False))
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
                "takes no second one: leave withWatermark() out, ",
                Argument("late"),
                " makes it",
            )


def _check_session(spark: Any) -> None:
    provider = spark.conf.get(PROVIDER, "")
    if "RocksDB" not in provider:
        raise SpecError(
            "the state of streams lies in RocksDB, which this session does not use: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r}) before the query starts, or "
            "make it by slidewise.spark.session()"
        )


def _check_history(initial: Any, df: Any) -> None:
    if not hasattr(initial, "isStreaming") or initial.isStreaming:
        raise SpecError("initial= takes a batch DataFrame with the stream's columns")
    theirs = {field.name: field.dataType for field in initial.schema}
    for field in df.schema:
        if theirs.get(field.name) != field.dataType:
            kind = theirs.get(field.name)
            held = (
                f"has no column {field.name!r}"
                if kind is None
                else (f"has {field.name!r} as {kind.simpleString()}")
            )
            raise SpecError(
                f"initial= {held}, and the stream has it as "
                f"{field.dataType.simpleString()}: give both the same columns"
            )
