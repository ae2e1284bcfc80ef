"""Parses times that a DataFrame holds as text, by the rules for tables."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from slidewise.errors import Argument, SpecError
from slidewise.io.parse_times import parse_times
from slidewise.spark.columns import column
from slidewise.spark.worker_errors import one_line_errors

__all__ = ["read_text_times"]

_ZONE = "spark.sql.session.timeZone"
# The number of values that the driver parses to infer the type of a column.
_SAMPLE_ROWS = 1_000
_TIMESTAMP = pa.timestamp("us", "UTC")


def read_text_times(df: Any, names: Sequence[str], time_format: str | None) -> Any:
    """Replaces text by timestamps, or integers, in the time columns of a DataFrame.

    Runs one small job per text column, to infer its type from a sample.

    Args:
        df: A batch DataFrame.
        names: The time columns, that of the events first; those that are missing or not
            text stay as they are.
        time_format: A strptime format, as for `slidewise.io.readers.read_table`; None
            to infer it.

    Returns:
        The DataFrame with timestamp or bigint columns.

    Raises:
        SpecError: If the sample cannot be parsed. A later value that cannot be parsed
            fails the job with the same message.
    """
    texts = [
        field.name
        for field in df.schema
        if field.name in names and isinstance(field.dataType, StringType)
    ]
    if not texts:
        return df
    kinds: dict[str, DataType] = {}
    read = partial(parse_times, time_format=time_format, first_row=None)
    for name in texts:
        values = df.select(column(name)).where(column(name).isNotNull())
        rows = values.limit(_SAMPLE_ROWS).collect()
        sample = pa.array([row[0] for row in rows], pa.string())
        parsed = read(sample, name, arrival=name != names[0])
        is_integer = pa.types.is_integer(parsed.type)
        kinds[name] = LongType() if is_integer else TimestampType()
    zone = df.sparkSession.conf.get(_ZONE)
    names_in = tuple(df.columns)

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = list(batch.columns)
            for name, kind in kinds.items():
                at = names_in.index(name)
                with one_line_errors():
                    times = read(columns[at], name, arrival=name != names[0])
                    columns[at] = _cast_times(kind, times, name, zone)
            yield pa.RecordBatch.from_arrays(columns, names=names_in)

    fields = [
        StructField(field.name, kinds.get(field.name, field.dataType), field.nullable)
        for field in df.schema
    ]
    return df.mapInArrow(parse, StructType(fields))


def _cast_times(kind: DataType, times: pa.Array, name: str, zone: str) -> pa.Array:
    """Casts times to Spark's type; times without a zone are in the session's zone."""
    if times.null_count == len(times):
        return times.cast(pa.int64() if isinstance(kind, LongType) else _TIMESTAMP)
    if pa.types.is_integer(times.type) != isinstance(kind, LongType):
        raise SpecError(
            f"column {name!r} holds integers in some rows and timestamps in others: "
            "convert them to one type, or give a ",
            Argument("time_format"),
            " that reads every row",
        )
    if isinstance(kind, LongType):
        return times
    if times.type.tz is None:
        times = pc.assume_timezone(
            times, zone, ambiguous="earliest", nonexistent="earliest"
        )
    # Spark's timestamps are microseconds; nanoseconds are truncated.
    return times.cast(_TIMESTAMP, safe=False)
