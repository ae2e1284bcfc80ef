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
_UINT32 = 0xFFFFFFFF


def check_batch() -> None:
    """Checks that the installed PySpark runs batch queries.

    Raises:
        SpecError: If it is too old, naming its version.
    """
    _check("slidewise.spark needs", _MIN_BATCH)


def check_streams() -> None:
    """Checks that the installed PySpark runs streaming queries.

    Raises:
        SpecError: If it is too old, naming its version.
    """
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
            yield pa.record_batch({"payload": pa.array([write_ipc(batch)])})

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

    rows = [(write_ipc(table),)] if len(table) else []
    return spark.createDataFrame(rows, _PAYLOAD).mapInArrow(unpack, schema)


def repartition_by_id(df: Any, tasks: int, partition: Any) -> Any:
    """Moves each row to the partition that a column numbers, which 4.0 cannot."""
    if VERSION >= (4, 1):
        return df.repartitionById(tasks, partition)
    # Spark partitions by a hash: each partition gets a number whose hash selects it.
    numbers = sf.array(*map(sf.lit, _preimages(tasks)))
    return df.repartition(tasks, sf.element_at(numbers, partition + 1))


def _preimages(tasks: int) -> list[int]:
    """Finds an integer per partition that Spark's hash partitioner sends there.

    Example:
        >>> _preimages(3)
        [0, 1, 11]
    """
    found: dict[int, int] = {}
    value = 0
    while len(found) < tasks:
        found.setdefault(_murmur3(value) % tasks, value)
        value += 1
    return [found[partition] for partition in range(tasks)]


def _murmur3(value: int) -> int:
    """Returns Spark's `hash` of a 32-bit integer: Murmur3 with seed 42.

    Example:
        >>> _murmur3(1)
        -559580957
    """
    mixed = _rotate_left(value * 0xCC9E2D51, 15) * 0x1B873593
    hashed = (_rotate_left(42 ^ (mixed & _UINT32), 13) * 5 + 0xE6546B64) & _UINT32
    hashed ^= 4
    hashed = ((hashed ^ (hashed >> 16)) * 0x85EBCA6B) & _UINT32
    hashed = ((hashed ^ (hashed >> 13)) * 0xC2B2AE35) & _UINT32
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


def _rotate_left(number: int, bits: int) -> int:
    number &= _UINT32
    return (number << bits | number >> (32 - bits)) & _UINT32
