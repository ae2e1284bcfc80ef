"""Times as text in a DataFrame, read by the rules for tables."""

from collections.abc import Iterable, Iterator
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

__all__ = ["read_text_times"]

_ZONE = "spark.sql.session.timeZone"
# So many texts say whether times can be read without a format.
_SAMPLE = 1_000
_SPARK = pa.timestamp("us", "UTC")


def read_text_times(df: Any, names: Iterable[str], time_format: str | None) -> Any:
    """The DataFrame with timestamps, or integers, in columns of times that hold text.

    Args:
        df: A batch DataFrame.
        names: The columns of times; those that are missing or not text are left alone.
        time_format: As for `slidewise.io.readers.read_table`. Without one, some of the
            texts are read in a small job, to tell before all others that they cannot
            be.

    Raises:
        SpecError: If the texts cannot be read without a format, or the format is none.
            A text that it does not read fails the job, with the same message.
    """
    texts = [
        field.name
        for field in df.schema
        if field.name in names and isinstance(field.dataType, StringType)
    ]
    if not texts:
        return df
    kinds: dict[str, DataType] = {}
    for name in texts:
        some = df.select(column(name)).where(column(name).isNotNull()).limit(_SAMPLE)
        sample = pa.array([row[0] for row in some.collect()], pa.string())
        parsed = parse_times(sample, name, time_format, first_row=None)
        whole = pa.types.is_integer(parsed.type)
        kinds[name] = LongType() if whole else TimestampType()
    zone = df.sparkSession.conf.get(_ZONE)
    come = tuple(df.columns)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = list(batch.columns)
            for name, kind in kinds.items():
                at = come.index(name)
                times = parse_times(columns[at], name, time_format, first_row=None)
                columns[at] = _as(kind, times, name, zone)
            yield pa.RecordBatch.from_arrays(columns, names=come)

    fields = [
        StructField(field.name, kinds.get(field.name, field.dataType), field.nullable)
        for field in df.schema
    ]
    return df.mapInArrow(run, StructType(fields))


def _as(kind: DataType, times: pa.Array, name: str, zone: str) -> pa.Array:
    """Times in Spark's type; those without a zone are in that of the session."""
    if times.null_count == len(times):
        return times.cast(pa.int64() if isinstance(kind, LongType) else _SPARK)
    if pa.types.is_integer(times.type) != isinstance(kind, LongType):
        raise SpecError(
            f"column {name!r} holds integers in some rows and timestamps in others: "
            "mend it, or give a ",
            Argument("time_format"),
            " that reads every row",
        )
    if isinstance(kind, LongType):
        return times
    if times.type.tz is None:
        times = pc.assume_timezone(
            times, zone, ambiguous="earliest", nonexistent="earliest"
        )
    # Spark has microseconds, and drops what is finer.
    return times.cast(_SPARK, safe=False)
