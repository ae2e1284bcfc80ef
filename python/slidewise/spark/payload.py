"""Packs input rows into payloads of one bucket each; unpacks payloads of results."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from slidewise.keyed.buckets import split
from slidewise.keyed.columns import joined
from slidewise.keyed.query import KeyedQuery
from slidewise.spark.arrow_ipc import payloads, read_ipc
from slidewise.spark.buckets import bucket_count, bucket_keys
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.columns import EARLY, ROW
from slidewise.spark.heartbeats import Look
from slidewise.spark.worker_errors import one_line_errors
from slidewise.spark.worker_memory import prepare_worker
from slidewise.table.arrays import row_numbers
from slidewise.table.batched_rolling import refuse_missing_times

__all__ = [
    "PACKED",
    "LatestOfEach",
    "Packer",
    "number_history",
    "packed",
    "unpack",
]

# A payload of a bucket, or what the task saw of the clock.
PACKED = StructType(
    [
        StructField("bucket", IntegerType()),
        StructField("payload", BinaryType()),
        StructField("now", LongType()),
        StructField("came", BooleanType()),
    ]
)
_PACKED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("payload", pa.binary()),
        ("now", pa.int64()),
        ("came", pa.bool_()),
    ]
)
# The limits, in rows and bytes, of the rows that are packed together.
_STAGED_ROWS = 1 << 17
_STAGED_BYTES = 1 << 26
# The rows of a batch from `unpack`.
_BATCH_ROWS = 1 << 15
# The bits of the number of a row within its task.
_TASK_BITS = 33


class Packer:
    """A function for `mapInArrow`: packs rows into payloads of one bucket each.

    Args:
        query: The windows, aggregations and input columns.
        buckets: The most buckets; None for one per partition.
        marker: A boolean column; rows where it is true only move the watermark.
        early: Whether the rows have the column `EARLY`.
        beats: Whether heartbeats are among them.
    """

    def __init__(
        self,
        query: KeyedQuery,
        buckets: int | None,
        marker: str | None,
        *,
        early: bool = False,
        beats: bool = False,
    ) -> None:
        self._query, self._buckets, self._marker = query, buckets, marker
        self._beats = beats
        self._schema = query.schema
        if early:
            self._schema = self._schema.append(pa.field(EARLY, pa.bool_()))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Packs the rows of one task."""
        prepare_worker()
        # The guard's bucket is called in each micro-batch with rows.
        yield packed([(GUARD_BUCKET, b"")])
        keys, look = bucket_keys(bucket_count(self._buckets)), Look()
        with one_line_errors():
            tables = (self._rows(batch, look) for batch in batches)
            for rows in joined(tables, _STAGED_ROWS, _STAGED_BYTES):
                parts = split(self._query.spec.by, rows, len(keys))
                yield from _batches((keys[bucket], part) for bucket, part in parts)
        if look.now is not None:
            yield _looked(keys, look)

    def _rows(self, batch: pa.RecordBatch, look: Look) -> pa.Table:
        table = pa.Table.from_batches([batch])
        if self._beats:
            table = look.beat(table)
        if self._marker is not None:
            marked = pc.fill_null(table.column(self._marker), False)
            table = table.filter(pc.invert(marked))
        # Workers get timestamps in the time zone of the session.
        table = table.select(self._schema.names).cast(self._schema)
        refuse_missing_times(table, [self._query.spec.on], self._query.spec)
        if self._beats:
            look.see(table)
        return table


class LatestOfEach:
    """A function for `mapInArrow`: repeats the latest time of rows for each bucket.

    Args:
        buckets: The most buckets; None for one per partition.
    """

    def __init__(self, buckets: int | None) -> None:
        self._buckets = buckets

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        prepare_worker()
        keys = pa.array(bucket_keys(bucket_count(self._buckets)), pa.int32())
        for batch in batches:
            for latest in batch.column("latest"):
                columns = [keys, pa.nulls(len(keys), pa.binary())]
                columns.append(pa.repeat(latest, len(keys)))
                names = ["bucket", "payload", "latest"]
                yield pa.RecordBatch.from_arrays(columns, names)


def number_history(df: Any) -> Any:
    """As `number_rows`, for a batch DataFrame in the plan of a stream.

    Spark refuses `monotonically_increasing_id` in such a plan.
    """
    schema = StructType([*df.schema, StructField(ROW, LongType(), nullable=False)])
    return df.mapInArrow(_numbered, schema)


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    first = 0 if context is None else context.partitionId() << _TASK_BITS
    for batch in batches:
        numbers = pc.add(row_numbers(len(batch)).cast(pa.int64()), first)
        first += len(batch)
        yield batch.append_column(ROW, numbers)


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A function for `mapInArrow`: unpacks the rows of payloads."""
    prepare_worker()
    for batch in batches:
        for payload in batch.column("payload"):
            if payload.is_valid:
                yield from read_ipc(payload.as_buffer()).to_batches(_BATCH_ROWS)


def _batches(parts: Iterable[tuple[int, pa.Table]]) -> Iterator[pa.RecordBatch]:
    """Payloads of buckets, in batches of some megabytes each."""
    staged: list[tuple[int, memoryview]] = []
    size = 0
    for bucket, rows in parts:
        for payload in payloads(rows.combine_chunks()):
            staged.append((bucket, payload))
            size += len(payload)
            if size >= _STAGED_BYTES:
                yield packed(staged)
                staged, size = [], 0
    if staged:
        yield packed(staged)


def packed(pairs: Sequence[tuple[int, bytes | memoryview]]) -> pa.RecordBatch:
    """Payloads and their buckets as a batch of `PACKED`."""
    buckets, blobs = zip(*pairs, strict=True)
    columns = [
        pa.array(buckets, pa.int32()),
        pa.array(blobs, pa.binary()),
        pa.nulls(len(pairs), pa.int64()),
        pa.nulls(len(pairs), pa.bool_()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def _looked(keys: Sequence[int], look: Look) -> pa.RecordBatch:
    """A look at the clock for each bucket as a batch of `PACKED`."""
    columns = [
        pa.array(keys, pa.int32()),
        pa.nulls(len(keys), pa.binary()),
        pa.repeat(pa.scalar(look.now, pa.int64()), len(keys)),
        pa.repeat(pa.scalar(look.came), len(keys)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)
