"""Columns that the state adds to the user's own; their names are reserved."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.table.arrays import row_numbers

__all__ = [
    "ARRIVAL",
    "EARLIEST",
    "ENTRY",
    "FRESH",
    "LAST",
    "LATEST",
    "NUMBER",
    "RESERVED",
    "ROWS",
    "TIME",
    "Ends",
    "bytes_of",
    "ends_of",
    "int64_view",
    "joined",
    "later_than",
    "one_batch",
    "order_of",
    "repeated",
]

# The bounds of ticks.
EARLIEST, LATEST = -(2**63), 2**63 - 1
# The time of a row in ticks, as int64.
TIME = "__time"
# The number of a row in the log, or in its batch.
NUMBER = "__number"
# The time of the latest row of a key up to its last emitted window.
LAST = "__last"
# The bytes of a folded entry.
ENTRY = "__entry"
# In memory only: the mark of a late row, a number of rows, and the arrival of a row.
FRESH = "__fresh"
ROWS = "__rows"
ARRIVAL = "__arrival"
# The earliest and the latest time of a group of rows.
Ends = tuple[int, int]
RESERVED = (TIME, NUMBER, LAST, ENTRY, FRESH, ROWS, ARRIVAL)


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


def ends_of(ticks: pa.Array) -> Ends | None:
    """The least and the largest of some ticks; None without one."""
    if len(ticks) == 1:
        tick = ticks[0].as_py()
        return tick, tick
    ends = pc.min_max(ticks)
    return (ends["min"].as_py(), ends["max"].as_py()) if len(ticks) else None


def later_than(ticks: pa.Array, bound: int) -> pa.Array:
    """A mask of the ticks that are later than a bound, which may be beyond int64.

    Example:
        >>> later_than(pa.array([-(2**63), 0]), -(2**64)).to_pylist()
        [True, True]
    """
    if bound < EARLIEST:
        return pc.is_valid(ticks)
    return pc.greater(ticks, bound)


def order_of(rows: pa.Table, names: Iterable[str]) -> pa.Array:
    """Indices that sort rows stably by the given columns that they have."""
    held = {*rows.column_names}
    keys = [(name, "ascending") for name in names if name in held]
    return pc.sort_indices(rows, sort_keys=keys) if keys else row_numbers(len(rows))


def repeated(number: int, times: int) -> pa.Array:
    """A number as a column."""
    return pa.repeat(pa.scalar(number, pa.int64()), times)
