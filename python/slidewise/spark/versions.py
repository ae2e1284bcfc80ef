"""Supported versions of PySpark, and functions that older versions lack."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from slidewise.errors import SpecError
from slidewise.spark.arrow_ipc import read_ipc, write_ipc
from slidewise.spark.buckets import bucket_keys

__all__ = [
    "VERSION",
    "check_batch",
    "check_streams",
    "create_dataframe",
    "repartition_by_id",
    "to_arrow",
    "utc_schema",
]

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
_MIN_BATCH = (3, 5)
# The first version whose stateful operator takes rows, not pandas DataFrames.
_MIN_STREAMS = (4, 1)
_PAYLOAD = "payload binary"


def check_batch() -> None:
    """Checks that the installed PySpark runs batch queries."""
    _check("slidewise.spark needs", _MIN_BATCH)


def check_streams() -> None:
    """Checks that the installed PySpark runs streaming queries."""
    _check("streams need", _MIN_STREAMS)


def _check(subject: str, minimum: tuple[int, int]) -> None:
    if minimum > VERSION:
        raise SpecError(
            f"{subject} PySpark {minimum[0]}.{minimum[1]} or later; this is "
            f"{pyspark.__version__}"
        )


def to_arrow(df: Any) -> pa.Table:
    """Collects a DataFrame into the driver: `DataFrame.toArrow`, which 3.5 lacks."""
    if VERSION >= (4, 0):
        return df.toArrow()

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            payload = pa.array([write_ipc(batch)], pa.binary())
            yield pa.record_batch({"payload": payload})

    payloads = [bytes(row[0]) for row in df.mapInArrow(pack, _PAYLOAD).collect()]
    if not payloads:
        return utc_schema(df.schema).empty_table()
    return pa.concat_tables(map(read_ipc, payloads))


def utc_schema(schema: StructType) -> pa.Schema:
    """Converts a schema to Arrow, with timestamps in UTC as before PySpark 4.2."""
    if VERSION < (4, 2):
        return to_arrow_schema(schema)
    return to_arrow_schema(schema, timezone="UTC")


def create_dataframe(spark: Any, table: pa.Table, schema: StructType) -> Any:
    """Creates a DataFrame from a small Arrow table, which 3.5 cannot."""
    if VERSION >= (4, 0):
        return spark.createDataFrame(table, schema)

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0):
                yield from read_ipc(payload.as_buffer()).to_batches()

    rows = [(bytes(write_ipc(table)),)] if len(table) else []
    return spark.createDataFrame(rows, _PAYLOAD).mapInArrow(unpack, schema)


def repartition_by_id(df: Any, tasks: int, partition: Any) -> Any:
    """Moves each row to the partition that a column numbers, which 4.0 cannot."""
    if VERSION >= (4, 1):
        return df.repartitionById(tasks, partition)
    # Spark partitions by a hash: each partition gets a number whose hash selects it.
    numbers = sf.array(*map(sf.lit, bucket_keys(tasks)))
    return df.repartition(tasks, sf.element_at(numbers, partition + 1))
