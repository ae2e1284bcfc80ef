"""Tables as bytes: Arrow IPC streams."""

from collections.abc import Iterator

import pyarrow as pa

__all__ = ["payloads", "read_ipc", "write_ipc"]

# Spark sends a payload as one value, and has several values at a time in memory.
_PAYLOAD_BYTES = 1 << 23


def payloads(rows: pa.Table, most: int | None = None) -> Iterator[bytes]:
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
    if len(rows) > 1 and rows.nbytes > most:
        half = len(rows) // 2
        yield from payloads(rows.slice(0, half), most)
        yield from payloads(rows.slice(half), most)
    else:
        yield write_ipc(rows)


def write_ipc(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Serializes a table or a batch to an Arrow IPC stream.

    Example:
        >>> read_ipc(write_ipc(pa.table({"x": [1, 2]}))).num_rows
        2
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def read_ipc(payload: bytes | pa.Buffer) -> pa.Table:
    """Reads the table of an Arrow IPC stream, without copying its columns."""
    return pa.ipc.open_stream(payload).read_all()
