"""Rows as payloads by bucket on their way in, answers as payloads on their way out."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from slidewise.errors import SpecError
from slidewise.keyed.stream_query import StreamQuery
from slidewise.spark.arrow_ipc import read_ipc, write_ipc
from slidewise.spark.checkpoint_guard import GUARDED

__all__ = ["PACKED", "Packer", "unpack"]

PACKED = StructType(
    [StructField("bucket", IntegerType()), StructField("payload", BinaryType())]
)
_PACKED = pa.schema([("bucket", pa.int32()), ("payload", pa.binary())])
# Rows that are gathered before they are packed, and in a batch that goes back.
_GATHERED = 1 << 17
_ROWS = 1 << 15
# Slots within a bucket go by the lowest bits of the same hash.
_BUCKET_BITS = 40


class Packer:
    """A function for `mapInArrow`: from rows to payloads of the rows of one bucket.

    Args:
        job: What is asked.
        buckets: How many there are.
        guard: What goes to the bucket of the guard, with every batch.
        marker: A column of booleans; rows where it is true only move the watermark.
    """

    def __init__(
        self, job: StreamQuery, buckets: int, guard: bytes, marker: str | None
    ) -> None:
        self._job, self._buckets = job, buckets
        self._guard, self._marker = guard, marker

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Packs the rows of a task."""
        yield _packed([GUARDED], [self._guard])
        gathered: list[pa.Table] = []
        for batch in batches:
            gathered.append(self._rows(batch))
            if sum(map(len, gathered)) >= _GATHERED:
                yield self._pack(gathered)
                gathered = []
        if gathered:
            yield self._pack(gathered)

    def _rows(self, batch: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([batch])
        if self._marker is not None:
            marked = pc.fill_null(table.column(self._marker), False)
            table = table.filter(pc.invert(marked))
        # Workers see times in the zone of the session.
        table = table.select(self._job.schema.names).cast(self._job.schema)
        times = table.column(self._job.spec.on)
        if times.null_count:
            row = table.filter(pc.is_null(times)).slice(0, 1).to_pylist()[0]
            raise SpecError(
                f"a row of the stream has no time in {self._job.spec.on!r}: {row}; "
                "filter such rows out before the windows"
            )
        return table

    def _pack(self, tables: list[pa.Table]) -> pa.RecordBatch:
        rows = pa.concat_tables(tables).combine_chunks()
        if self._buckets == 1:
            return _packed([0], [write_ipc(rows)])
        high = pc.shift_right(self._job.hashes(rows), _BUCKET_BITS)
        high = pc.bit_wise_and(high, (1 << (64 - _BUCKET_BITS)) - 1)
        times = pc.multiply(pc.divide(high, self._buckets), self._buckets)
        of_row = pc.subtract(high, times)
        order = pc.sort_indices(of_row)
        rows, buckets, payloads, start = rows.take(order), [], [], 0
        for run in pc.value_counts(of_row.take(order)).to_pylist():
            buckets.append(run["values"])
            part = rows.slice(start, run["counts"]).combine_chunks()
            payloads.append(write_ipc(part))
            start += run["counts"]
        return _packed(buckets, payloads)


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A function for `mapInArrow`: from payloads to their rows."""
    for batch in batches:
        for payload in batch.column("payload"):
            if payload.is_valid:
                yield from read_ipc(payload.as_buffer()).to_batches(_ROWS)


def _packed(buckets: list[int], payloads: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(buckets, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)
