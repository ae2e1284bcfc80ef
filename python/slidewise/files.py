"""Tables in files: CSV, Parquet, Arrow and JSON, told apart by their names.

| name                         | what it is                                    |
|------------------------------|-----------------------------------------------|
| `.csv` `.tsv` `.txt`         | delimited text with a header line             |
| `.parquet` `.pq`             | Parquet                                       |
| `.arrow` `.feather` `.ipc`   | Arrow IPC, file or stream; Feather            |
| `.json` `.jsonl` `.ndjson`   | an array of objects, or one object per line   |

Text may be compressed (`.csv.gz`, `.jsonl.zst`, `.bz2`).
"""

import errno
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.frames import frame, require
from slidewise.parsing import parse_times

__all__ = ["read_table", "write_table"]

Progress = Callable[[float], None]

_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_KINDS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".txt": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".json": "JSON",
    ".jsonl": "JSON",
    ".ndjson": "JSON",
}
# One object or one quoted field must fit into a block.
_BLOCK = 1 << 23
# Enough of a text to see its delimiter, or the bracket of an array.
_START = 1 << 16
_WRITTEN_ROWS = 1 << 16


def read_table(
    path: str | Path,
    *,
    on: str | Sequence[str] | None = None,
    time_format: str | None = None,
    columns: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    r"""Reads a file.

    Args:
        path: The file; its name says what it is.
        on: The column of event times, or several: text in them is read as times.
        time_format: How to read that text, as for `datetime.strptime`. Not needed for
            ISO 8601 ("2018-07-03 17:48:39") and whole numbers.
        columns: Only these, and `on`.
        progress: Called now and then with the part read so far, from 0 to 1.

    Raises:
        FileNotFoundError: If there is no such file (or another `OSError`).
        SpecError: If the name says nothing, the content is not what the name says, a
            column is not there, or a time cannot be read without `time_format`.

    Cost: one pass over the file; the table is held in memory.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "trips.csv")
        >>> _ = file.write_text("at,n\n07/03/18 17:48:39,1\n")
        >>> read_table(file, on="at", time_format="%m/%d/%y %H:%M:%S")["at"][0].as_py()
        datetime.datetime(2018, 7, 3, 17, 48, 39)
    """
    file = Path(path)
    times = [on] if isinstance(on, str) else list(on or ())
    wanted = None if columns is None else list(dict.fromkeys([*columns, *times]))
    if not file.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    kind, compression = _kind(file)
    with _told_as(file, kind):
        if kind == "Parquet":
            table = _read_parquet(file, progress)
        elif kind == "Arrow":
            table = _read_arrow(file, progress)
        else:
            table = _read_text(file, kind, compression, times, progress)
    require(frame(table), wanted or times)
    if wanted is not None:
        table = table.select(wanted)
    return _with_times(table, times, time_format)


def write_table(table: pa.Table, path: str | Path) -> None:
    """Writes a file, all of it or nothing.

    Times are written in ISO 8601, durations as numbers in their own unit. JSON is one
    object per line for `.jsonl` and `.ndjson`, else an array; it has no NaN, so NaN is
    written as null.

    Args:
        table: The table.
        path: The file, replaced if it is there; its name says what it will be.

    Raises:
        SpecError: If the name says nothing, or a column cannot be written that way.
        OSError: If the file cannot be written.

    Example:
        >>> import tempfile, pathlib, pyarrow as pa
        >>> file = pathlib.Path(tempfile.mkdtemp(), "out.jsonl")
        >>> write_table(pa.table({"x": [1, None]}), file)
        >>> file.read_text().splitlines()
        ['{"x": 1}', '{"x": null}']
    """
    file = Path(path)
    kind, compression = _kind(file)
    if compression:
        raise SpecError(
            f"{file.name}: compressed text is read, not written; try .parquet"
        )
    with _replacing(file) as sink:
        if kind == "CSV":
            _write_csv(table, sink, "\t" if file.suffix == ".tsv" else ",")
        elif kind == "Parquet":
            pa_parquet.write_table(table, sink)
        elif kind == "Arrow":
            _write_arrow(table, sink)
        elif file.suffix == ".json":
            _write_json_array(table, sink)
        else:
            _write_json_lines(table, sink)


def _kind(file: Path) -> tuple[str, str | None]:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compression = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None or (compression and kind not in ("CSV", "JSON")):
        known = " ".join(_KINDS)
        raise SpecError(
            f"cannot tell from its name what {file.name!r} is; known: {known}"
        )
    return kind, compression


@contextmanager
def _told_as(file: Path, kind: str) -> Iterator[None]:
    """Turns what the format's reader says into one message."""
    try:
        yield
    except (
        pa.ArrowException,
        UnicodeDecodeError,
        json.JSONDecodeError,
        OSError,
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file, not its content
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise SpecError(f"{file} cannot be read as {kind}: {reason}") from error


class _Watched(io.RawIOBase):
    """A file that tells how much of it has been read.

    Readers of text go through their file once, from the front, and this keeps them in
    charge of types, which a reader that is fed in parts would have to guess early.
    """

    def __init__(self, path: Path, progress: Progress | None) -> None:
        super().__init__()
        self._file: BinaryIO = path.open("rb")
        self._size = max(os.fstat(self._file.fileno()).st_size, 1)
        self._progress = progress

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = self._file.read(-1 if size is None else size)
        if self._progress is not None:
            self._progress(min(self._file.tell() / self._size, 1.0))
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


def _read_text(
    file: Path,
    kind: str,
    compression: str | None,
    times: Sequence[str],
    progress: Progress | None,
) -> pa.Table:
    with pa.input_stream(str(file), compression=compression) as stream:
        start = stream.read(_START)
    with _Watched(file, progress) as source:
        stream = pa.PythonFile(source, mode="r")
        if compression is not None:
            stream = pa.CompressedInputStream(stream, compression)
        if kind == "CSV":
            return _read_csv(stream, start, times)
        if start.lstrip().startswith(b"["):
            parts = iter(lambda: stream.read(_BLOCK), b"")
            return _from_objects(json.loads(b"".join(parts)))
        options = pa_json.ReadOptions(block_size=_BLOCK)
        return pa_json.read_json(stream, read_options=options)


def _read_csv(stream: Any, start: bytes, times: Sequence[str]) -> pa.Table:
    header = start.partition(b"\n")[0].decode("utf-8", errors="replace")
    delimiter = max(",;\t|", key=header.count)
    table = pa_csv.read_csv(
        stream,
        read_options=pa_csv.ReadOptions(block_size=_BLOCK),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(times, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    _ = table.column_names  # decoded only now, which fails where there is no text
    return table


def _from_objects(objects: Any) -> pa.Table:
    if not isinstance(objects, list) or not all(isinstance(o, dict) for o in objects):
        raise pa.ArrowInvalid("the array holds something else than objects")
    names = dict.fromkeys(name for one in objects for name in one)
    return pa.table({name: [one.get(name) for one in objects] for name in names})


def _read_parquet(file: Path, progress: Progress | None) -> pa.Table:
    with pa_parquet.ParquetFile(file, memory_map=True) as source:
        return _gathered(
            source.schema_arrow, source.num_row_groups, source.read_row_group, progress
        )


def _read_arrow(file: Path, progress: Progress | None) -> pa.Table:
    with pa.memory_map(str(file)) as source:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()
        return _gathered(
            reader.schema, reader.num_record_batches, reader.get_batch, progress
        )


def _gathered(
    schema: pa.Schema,
    count: int,
    part: Callable[[int], pa.Table | pa.RecordBatch],
    progress: Progress | None,
) -> pa.Table:
    tables = []
    for index in range(count):
        one = part(index)
        tables.append(
            pa.Table.from_batches([one]) if isinstance(one, pa.RecordBatch) else one
        )
        if progress is not None:
            progress((index + 1) / count)
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _with_times(
    table: pa.Table, times: Sequence[str], time_format: str | None
) -> pa.Table:
    for name in times:
        column = frame(table).column(name)
        parsed = parse_times(column, name, time_format)
        if parsed is not column:
            table = table.set_column(table.column_names.index(name), name, parsed)
    return table


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


def _write_csv(table: pa.Table, sink: BinaryIO, delimiter: str) -> None:
    for field in table.schema:
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            raise SpecError(
                f"CSV cannot hold column {field.name!r} ({field.type}): "
                "write .parquet, .arrow or .jsonl, or drop the column"
            )
    pa_csv.write_csv(table, sink, pa_csv.WriteOptions(delimiter=delimiter))


def _write_arrow(table: pa.Table, sink: BinaryIO) -> None:
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _write_json_lines(table: pa.Table, sink: BinaryIO) -> None:
    for line in _json_objects(table):
        sink.write(line + b"\n")


def _write_json_array(table: pa.Table, sink: BinaryIO) -> None:
    opening = b"[\n"
    for line in _json_objects(table):
        sink.write(opening + line)
        opening = b",\n"
    sink.write(b"\n]\n" if opening == b",\n" else b"[]\n")


def _json_objects(table: pa.Table) -> Iterator[bytes]:
    columns = [_json_values(table, name) for name in range(table.num_columns)]
    names = table.column_names
    plain = pa.Table.from_arrays(columns, names=names)
    for batch in plain.to_batches(max_chunksize=_WRITTEN_ROWS):
        for row in batch.to_pylist():
            yield json.dumps(row, ensure_ascii=False).encode()


def _json_values(table: pa.Table, index: int) -> pa.ChunkedArray:
    """A column as values that JSON has."""
    column, field = table.column(index), table.schema.field(index)
    kind = field.type
    try:
        if pa.types.is_floating(kind):
            finite = pc.is_finite(column)
            return pc.if_else(finite, column, None)
        if pa.types.is_duration(kind):
            return column.cast(pa.int64())
        if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
            return column.cast(pa.string())
        if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
            return column.cast(pa.string())
    except pa.ArrowException as error:
        raise SpecError(
            f"JSON cannot hold column {field.name!r} ({kind}): "
            "write .parquet or .arrow, or drop the column"
        ) from error
    return column
