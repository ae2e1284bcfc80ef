"""Tables as bytes: Arrow IPC streams."""

from collections.abc import Iterator

import pyarrow as pa

__all__ = ["payloads", "read_ipc", "write_ipc"]

# Spark sends a payload as one value, and has several values at a time in memory.
_PAYLOAD_BYTES = 1 << 23


def payloads(rows: pa.Table, most: int | None = None) -> Iterator[memoryview]:
    """Serializes a table to Arrow IPC streams.

    Args:
        rows: The table.
        most: The bytes of a stream, about; a single row may have more. By default some
            megabytes.

    Example:
        >>> [read_ipc(part).num_rows for part in payloads(pa.table({"x": [1, 2]}))]
        [2]
    """
    most = _PAYLOAD_BYTES if most is None else most
    count = max(1, -(-len(rows) * most // max(most, rows.nbytes)))
    for start in range(0, max(1, len(rows)), count):
        part = rows.slice(start, count)
        payload = write_ipc(part)
        # The rows of this part are longer than others.
        if len(payload) > 2 * most and len(part) > 1 and part.nbytes > most:
            yield from payloads(part, most)
        else:
            yield payload


def write_ipc(rows: pa.Table | pa.RecordBatch) -> memoryview:
    """Serializes a table or a batch to an Arrow IPC stream.

    The bytes stay in Arrow's memory, which it uses again. The system gives Python new
    pages for so many bytes, which takes longer than to write them.

    Example:
        >>> read_ipc(write_ipc(pa.table({"x": [1, 2]}))).num_rows
        2
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    return memoryview(sink.getvalue())


def read_ipc(payload: bytes | memoryview | pa.Buffer) -> pa.Table:
    """Reads the table of an Arrow IPC stream, without copying its columns."""
    return pa.ipc.open_stream(payload).read_all()
