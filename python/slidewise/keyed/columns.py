"""Columns that the state adds to the user's own; their names are reserved."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

__all__ = [
    "ARRIVAL",
    "EARLIEST",
    "FRESH",
    "LAST",
    "LATEST",
    "NUMBER",
    "RESERVED",
    "ROWS",
    "TIME",
    "Ends",
    "bytes_of",
    "int64_view",
    "joined",
    "one_batch",
]

# The bounds of ticks.
EARLIEST, LATEST = -(2**63), 2**63 - 1
# The time of a row in ticks, as int64.
TIME = "__time"
# The number of a row in the log, or in its batch.
NUMBER = "__number"
# The time of the latest row of a key up to its last emitted window.
LAST = "__last"
# In memory only: the mark of a late row, a number of rows, and the arrival of a row.
FRESH = "__fresh"
ROWS = "__rows"
ARRIVAL = "__arrival"
# The earliest and the latest time of a group of rows.
Ends = tuple[int, int]
RESERVED = (TIME, NUMBER, LAST, FRESH, ROWS, ARRIVAL)


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """The rows of a table as one record batch."""
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)


def bytes_of(table: pa.Table) -> int:
    """The bytes of a table; of list views before pyarrow 24, those of their buffers."""
    try:
        return int(table.nbytes)
    except pa.ArrowTypeError:
        return int(table.get_total_buffer_size())


def joined(
    tables: Iterable[pa.Table], rows: int, size: int | None = None
) -> Iterator[pa.Table]:
    """Concatenates tables, in order, up to a number of rows or bytes."""
    parts: list[pa.Table] = []
    count = held = 0
    for table in tables:
        parts.append(table)
        count += len(table)
        held += 0 if size is None else bytes_of(table)
        if count >= rows or (size is not None and held >= size):
            yield pa.concat_tables(parts).combine_chunks()
            parts, count, held = [], 0, 0
    if parts:
        yield pa.concat_tables(parts).combine_chunks()


def int64_view(column: pa.ChunkedArray | pa.Array) -> "memoryview[int]":
    """The memory of an int64 column of one chunk without nulls."""
    if not len(column):
        return memoryview(b"").cast("q")
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    start = array.offset
    return memoryview(array.buffers()[1]).cast("q")[start : start + len(array)]
