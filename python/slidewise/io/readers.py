"""Reads and writes tables in files, in the format that the name ends with.

| name                         | format                                        |
|------------------------------|-----------------------------------------------|
| `.csv` `.tsv` `.txt`         | delimited text with a header line             |
| `.parquet` `.pq`             | Parquet                                       |
| `.arrow` `.feather` `.ipc`   | Arrow IPC, file or stream; Feather            |
| `.json` `.jsonl` `.ndjson`   | an array of objects, or one object per line   |

Text may be compressed (`.csv.gz`, `.jsonl.zst`, `.bz2`).

Delimited text has no types, so the values of a column decide:

- A column of whole numbers is int64, or uint64 where one is beyond int64 and none is
  negative. With other numbers beyond int64 (negative ones among them, or beyond
  uint64) it is float64, and its numbers are rounded to 53 bits: Parquet and Arrow keep
  them, as decimals.
- An empty field, `NA`, `N/A`, `NULL`, `null`, `NaN` and `nan` are missing values (null)
  unless they are quoted: a NaN cannot be written in delimited text. In JSON it can
  (`NaN`), and is a NaN.
"""

import errno
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.io.parse_times import parse_times
from slidewise.io.writers import writing
from slidewise.spec.spec import Spec

__all__ = [
    "START_BYTES",
    "Progress",
    "arrow_reader",
    "csv_options",
    "kind_of",
    "read_table",
    "reading",
    "refuse_duplicates",
    "with_empty_times",
    "write_table",
    "written_kind",
]

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
_TEXTS = ("CSV", "JSON")
# One object or one quoted field must fit into a block.
_BLOCK = 1 << 23
# The part of a text in which the delimiter, or the bracket of an array, is found.
START_BYTES = 1 << 16


def read_table(
    path: str | Path,
    *,
    on: str | Sequence[str] | None = None,
    time_format: str | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    r"""Reads a file.

    Args:
        path: The file; its name ends with its format.
        on: The column of event times, or several, those of arrival after it: text in
            them is read as times.
        time_format: How to read that text, as for `datetime.strptime`. Not needed for
            ISO 8601 ("2018-07-03 17:48:39") and whole numbers. Columns of arrival may
            hold whole numbers beside it.
        progress: Called now and then with the part read so far, from 0 to 1.

    Returns:
        The table. The top of `slidewise.io.readers` lists the types of its columns, and
        the missing values of text.

    Raises:
        FileNotFoundError: If there is no such file (or another `OSError`).
        SpecError: If the name has no known ending, the content is of another format, a
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
    if not file.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    kind, compression = kind_of(file)
    report = progress or (lambda _: None)
    with reading(file, kind):
        if kind == "Parquet":
            table = _read_parquet(file, report)
        elif kind == "Arrow":
            table = _read_arrow(file)
        else:
            table = _read_text(file, kind, compression, times, report)
    report(1.0)
    refuse_duplicates(file, table.column_names)
    require(frame(table), times)
    return _with_times(table, times, time_format)


def refuse_duplicates(file: Path, names: Sequence[str]) -> None:
    """Refuses a file with two columns of one name."""
    for name in names:
        if names.count(name) > 1:
            raise SpecError(
                f"{file} has {names.count(name)} columns {name!r}: rename all but one"
            )


def write_table(table: pa.Table, path: str | Path) -> None:
    """Writes a file, all of it or nothing.

    Times are written in ISO 8601, durations as numbers in their own unit. JSON is one
    object per line for `.jsonl` and `.ndjson`, else an array; it has no NaN, so NaN is
    written as null.

    Args:
        table: The table.
        path: The file, replaced if it exists; its name ends with its format.

    Raises:
        SpecError: If the name has no known ending, or its format cannot hold a column.
        OSError: If the file cannot be written.

    Example:
        >>> import tempfile, pathlib, pyarrow as pa
        >>> file = pathlib.Path(tempfile.mkdtemp(), "out.jsonl")
        >>> write_table(pa.table({"x": [1, None]}), file)
        >>> file.read_text().splitlines()
        ['{"x": 1}', '{"x": null}']
    """
    file = Path(path)
    with writing(file, written_kind(file), table.schema) as sink:
        sink.write_table(table)


def written_kind(file: Path) -> str:
    """The format of a file to be written, by its name.

    Raises:
        SpecError: If the name has no known ending, or one that is only read.
    """
    kind, compression = kind_of(file)
    if compression:
        raise SpecError(
            f"{file.name}: compressed text is read, not written; try .parquet"
        )
    return kind


def kind_of(file: Path) -> tuple[str, str | None]:
    """The format of a file by its name, and its compression.

    Raises:
        SpecError: If the name has no known ending.
    """
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compression = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None or (compression and kind not in ("CSV", "JSON")):
        known = " ".join(_KINDS)
        raise SpecError(
            f"{file.name or str(file)!r} has no known ending; known: {known}"
        )
    return kind, compression


@contextmanager
def reading(file: Path, kind: str) -> Iterator[None]:
    """Turns the errors of a format's reader into one message.

    Raises:
        SpecError: If the content has another format than the file's ending.
    """
    try:
        yield
    except (
        pa.ArrowException,
        UnicodeDecodeError,
        UnicodeEncodeError,
        json.JSONDecodeError,
        OverflowError,
        RecursionError,
        OSError,
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file, not its content
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise SpecError(f"{file} cannot be read as {kind}: {reason}") from error


class _ProgressFile(io.RawIOBase):
    """A file that reports how much of it has been read, from front to end."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__()
        self._file: BinaryIO = path.open("rb")
        self._size = max(os.fstat(self._file.fileno()).st_size, 1)
        self._progress = progress

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = self._file.read(-1 if size is None else size)
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
    progress: Progress,
) -> pa.Table:
    with pa.input_stream(str(file), compression=compression) as stream:
        start = stream.read(START_BYTES)
    with _ProgressFile(file, progress) as source:
        stream = pa.PythonFile(source, mode="r")
        if compression is not None:
            stream = pa.CompressedInputStream(stream, compression)
        if kind == "CSV":
            options = csv_options(start, dict.fromkeys(times, pa.string()))
            table = pa_csv.read_csv(stream, **options)
            _ = table.column_names  # decodes them; fails if the file is not text
            return _with_large_ints(table, file, compression, start)
        if start.lstrip().startswith(b"["):
            parts = iter(lambda: stream.read(_BLOCK), b"")
            return _from_objects(json.loads(b"".join(parts)))
        options = pa_json.ReadOptions(block_size=_BLOCK)
        return pa_json.read_json(stream, read_options=options)


def csv_options(
    start: bytes,
    types: Mapping[str, pa.DataType],
    columns: Sequence[str] | None = None,
    block_size: int = _BLOCK,
) -> dict[str, Any]:
    """The options of `pyarrow.csv` for a text that starts like this."""
    header = start.partition(b"\n")[0].decode("utf-8", errors="replace")
    return {
        "read_options": pa_csv.ReadOptions(block_size=block_size),
        "parse_options": pa_csv.ParseOptions(
            delimiter=max(",;\t|", key=header.count), newlines_in_values=True
        ),
        "convert_options": pa_csv.ConvertOptions(
            column_types=types,
            include_columns=columns,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }


def _with_large_ints(
    table: pa.Table, file: Path, compression: str | None, start: bytes
) -> pa.Table:
    """Reads columns of uint64 again that were read as floats."""
    for place, name in enumerate(table.column_names):
        if table.field(place).type != pa.float64():
            continue
        ends = pc.min_max(table[place]).as_py()
        if ends["max"] is None or ends["min"] < 0 or not 2**63 <= ends["max"] < 2**65:
            continue
        options = csv_options(start, {name: pa.uint64()}, [name])
        with pa.input_stream(str(file), compression=compression) as stream:
            try:
                column = pa_csv.read_csv(stream, **options)[0]
            except pa.ArrowInvalid:
                continue  # other numbers, too
        table = table.set_column(place, name, column)
    return table


def _from_objects(objects: Any) -> pa.Table:
    if not isinstance(objects, list) or not all(isinstance(o, dict) for o in objects):
        raise pa.ArrowInvalid("the array holds something else than objects")
    names = dict.fromkeys(name for one in objects for name in one)
    return pa.table({name: [one.get(name) for one in objects] for name in names})


def _read_parquet(file: Path, progress: Progress) -> pa.Table:
    with pa_parquet.ParquetFile(file, memory_map=True) as source:
        tables = [source.schema_arrow.empty_table()]
        for index in range(source.num_row_groups):
            tables.append(source.read_row_group(index))
            progress((index + 1) / source.num_row_groups)
    return pa.concat_tables(tables)


def _read_arrow(file: Path) -> pa.Table:
    with pa.memory_map(str(file)) as source:
        return arrow_reader(source).read_all()


def arrow_reader(source: pa.NativeFile) -> Any:
    """A reader of an Arrow file or stream."""
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def with_empty_times(table: pa.Table, file: Path, spec: Spec) -> pa.Table:
    """Gives a text without rows times of the type that the windows need.

    Example:
        >>> import slidewise as sw
        >>> empty = pa.table({"t": pa.nulls(0, pa.timestamp("us"))})
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> with_empty_times(empty, Path("empty.csv"), spec).schema.field("t").type
        DataType(int64)
    """
    if table.num_rows or not spec.counts_ticks or kind_of(file)[0] not in _TEXTS:
        return table
    place = table.column_names.index(spec.on)
    return table.set_column(place, spec.on, pa.nulls(0, pa.int64()))


def _with_times(
    table: pa.Table, times: Sequence[str], time_format: str | None
) -> pa.Table:
    for name in times:
        column = frame(table).column(name)
        parsed = parse_times(column, name, time_format, arrival=name != times[0])
        if parsed is not column:
            table = table.set_column(table.column_names.index(name), name, parsed)
    return table
