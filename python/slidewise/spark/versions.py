"""The versions of PySpark that serve, and what the older ones of them lack."""

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
    "collected",
    "from_table",
    "in_arrow",
    "repartitioned",
]

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
_BATCH = (3, 5)
# The first one with an operator with state that takes rows, and not frames of pandas.
_STREAMS = (4, 1)
_PAYLOAD = "payload binary"
_BITS = 0xFFFFFFFF


def check_batch() -> None:
    """Refuses versions of PySpark that are too old.

    Raises:
        SpecError: Naming the version.
    """
    _check("slidewise.spark needs", _BATCH)


def check_streams() -> None:
    """Refuses versions of PySpark that are too old for streams.

    Raises:
        SpecError: Naming the version.
    """
    _check("streams need", _STREAMS)


def _check(who: str, least: tuple[int, int]) -> None:
    if least > VERSION:
        raise SpecError(
            f"{who} PySpark {least[0]}.{least[1]} or later; this is "
            f"{pyspark.__version__}"
        )


def collected(df: Any) -> pa.Table:
    """The rows of a DataFrame, in the driver."""
    if VERSION >= (4, 0):
        return df.toArrow()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"payload": pa.array([write_ipc(batch)])})

    payloads = [bytes(row[0]) for row in df.mapInArrow(write, _PAYLOAD).collect()]
    if not payloads:
        return in_arrow(df.schema).empty_table()
    return pa.concat_tables(map(read_ipc, payloads))


def in_arrow(schema: StructType) -> pa.Schema:
    """A schema in Arrow, with times in UTC: before 4.2 they are so without asking."""
    if VERSION < (4, 2):
        return to_arrow_schema(schema)
    return to_arrow_schema(schema, timezone="UTC")


def from_table(spark: Any, table: pa.Table, schema: StructType) -> Any:
    """A DataFrame of few rows."""
    if VERSION >= (4, 0):
        return spark.createDataFrame(table, schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0):
                yield from read_ipc(payload.as_buffer()).to_batches()

    rows = [(write_ipc(table),)] if len(table) else []
    return spark.createDataFrame(rows, _PAYLOAD).mapInArrow(read, schema)


def repartitioned(df: Any, tasks: int, place: Any) -> Any:
    """The rows in as many partitions, each row in the one of that number."""
    if VERSION >= (4, 1):
        return df.repartitionById(tasks, place)
    # Spark partitions by a hash: of each number, one is taken that has it as its hash.
    numbers = sf.array(*map(sf.lit, _preimages(tasks)))
    return df.repartition(tasks, sf.element_at(numbers, place + 1))


def _preimages(tasks: int) -> list[int]:
    """For each partition an integer that Spark's hash puts there.

    Example:
        >>> _preimages(3)
        [0, 1, 11]
    """
    found: dict[int, int] = {}
    value = 0
    while len(found) < tasks:
        found.setdefault(_hash(value) % tasks, value)
        value += 1
    return [found[place] for place in range(tasks)]


def _hash(value: int) -> int:
    """What Spark's `hash` is of an integer of 32 bits: Murmur3, with seed 42.

    Example:
        >>> _hash(1)
        -559580957
    """
    mixed = _rotated(value * 0xCC9E2D51, 15) * 0x1B873593
    whole = (_rotated(42 ^ (mixed & _BITS), 13) * 5 + 0xE6546B64) & _BITS
    whole ^= 4
    whole = ((whole ^ (whole >> 16)) * 0x85EBCA6B) & _BITS
    whole = ((whole ^ (whole >> 13)) * 0xC2B2AE35) & _BITS
    whole ^= whole >> 16
    return whole - (1 << 32) if whole >> 31 else whole


def _rotated(number: int, by: int) -> int:
    number &= _BITS
    return (number << by | number >> (32 - by)) & _BITS
