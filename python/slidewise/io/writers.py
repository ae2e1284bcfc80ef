"""Writes tables to files in parts, atomically."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.table.arrays import decode_dictionary, storage_of

__all__ = ["Writer", "to_bytes", "writing"]

_WRITTEN_ROWS = 1 << 16


class Writer(Protocol):
    """Takes a table in parts."""

    def write_table(self, table: pa.Table) -> None:
        """The next rows."""


@contextmanager
def writing(file: Path, kind: str, schema: pa.Schema) -> Iterator[Writer]:
    """Writes a file that appears once all of it has been written.

    Raises:
        SpecError: If a column cannot be written that way.
        OSError: If the file cannot be written.
    """
    if kind == "CSV":
        _check_csv(schema)
    with _replacing(file) as sink, _writer(sink, file, kind, schema) as writer:
        yield writer


def to_bytes(table: pa.Table, file: Path, kind: str, *, header: bool = True) -> bytes:
    """A table as the bytes of a file of that name.

    Args:
        table: The table.
        file: The name.
        kind: The format.
        header: Whether delimited text has a line of names.

    Raises:
        SpecError: If a column cannot be written that way.
    """
    if kind == "CSV":
        _check_csv(table.schema)
    sink = pa.BufferOutputStream()
    with _writer(sink, file, kind, table.schema, header=header) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


@contextmanager
def _writer(
    sink: Any, file: Path, kind: str, schema: pa.Schema, *, header: bool = True
) -> Iterator[Writer]:
    """Writes the rows of a file into a sink."""
    if kind == "Parquet":
        with pa_parquet.ParquetWriter(sink, schema) as writer:
            yield writer
    elif kind == "Arrow":
        with pa.ipc.new_file(sink, schema) as writer:
            yield writer
    elif kind == "CSV":
        delimiter = "\t" if file.suffix == ".tsv" else ","
        options = pa_csv.WriteOptions(include_header=header, delimiter=delimiter)
        with pa_csv.CSVWriter(sink, schema, write_options=options) as writer:
            yield _NonEmptyBatches(writer)
    elif file.suffix == ".json":
        array = _JsonArray(sink)
        yield array
        array.close()
    else:
        yield _JsonLines(sink)


@contextmanager
def _replacing(file: Path) -> Iterator[BinaryIO]:
    """A sink that becomes the file when all of it has been written."""
    if file.exists() and not file.is_file():
        with file.open("wb") as sink:  # a pipe or device is written as it is
            yield sink
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as sink:
            yield sink
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _check_csv(schema: pa.Schema) -> None:
    for field in schema:
        if pa.types.is_nested(field.type) or _is_bytes(field.type):
            raise SpecError(
                f"CSV cannot hold column {field.name!r} ({field.type}): "
                "write .parquet, .arrow or .jsonl, or drop the column"
            )


class _NonEmptyBatches:
    """Writes tables without their empty batches.

    At such a batch, pyarrow before 24 writes the previous lines again.
    """

    def __init__(self, writer: pa_csv.CSVWriter) -> None:
        self._writer = writer

    def write_table(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            if len(batch):
                self._writer.write_batch(batch)


class _JsonLines:
    """An object per line."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write_table(self, table: pa.Table) -> None:
        for line in _json_objects(table):
            self._sink.write(line + b"\n")


class _JsonArray:
    """One array of objects."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._opening = b"[\n"

    def write_table(self, table: pa.Table) -> None:
        for line in _json_objects(table):
            self._sink.write(self._opening + line)
            self._opening = b",\n"

    def close(self) -> None:
        self._sink.write(b"\n]\n" if self._opening == b",\n" else b"[]\n")


def _json_objects(table: pa.Table) -> Iterator[bytes]:
    columns = [_json_column(table, at) for at in range(table.num_columns)]
    names = table.column_names
    plain = pa.Table.from_arrays(columns, names=names)
    for batch in plain.to_batches(max_chunksize=_WRITTEN_ROWS):
        for row in batch.to_pylist():
            yield _json_object(row)


def _json_object(row: dict[str, object]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise SpecError(
            f"JSON cannot hold this row ({error}): {row}; write .parquet or .arrow"
        ) from error


def _json_column(table: pa.Table, index: int) -> pa.ChunkedArray:
    """A column as values that JSON supports."""
    column, field = table.column(index), table.schema.field(index)
    try:
        chunks = [_json_values(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks or [_json_values(pa.array([], field.type))])
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SpecError(
            f"JSON cannot hold column {field.name!r} ({field.type}): "
            "write .parquet or .arrow, or drop the column"
        ) from error


def _json_values(values: pa.Array) -> pa.Array:
    """Values that JSON supports, also within lists and structs.

    Raises:
        pyarrow.ArrowException: If there are none.
    """
    values = storage_of(decode_dictionary(values))
    kind = values.type
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
        return pc.if_else(pc.is_finite(values), values, None)
    if pa.types.is_duration(kind):
        return values.cast(pa.int64())
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) or _is_bytes(kind):
        return values.cast(pa.string())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _json_values(values.flatten())
        lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
        starts = pa.concat_arrays([pa.array([0]), pc.cumulative_sum(lengths)])
        return pa.LargeListArray.from_arrays(starts, inner, mask=values.is_null())
    if pa.types.is_fixed_size_list(kind):
        return _json_values(values.cast(pa.large_list(kind.value_type)))
    if pa.types.is_struct(kind):
        fields = [_json_values(part) for part in values.flatten()]
        return pa.StructArray.from_arrays(
            fields, [field.name for field in kind], mask=values.is_null()
        )
    return values


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
