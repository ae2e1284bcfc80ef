"""Tables in files: CSV, Parquet, Arrow and JSON, told apart by their names.

| name                         | what it is                                    |
|------------------------------|-----------------------------------------------|
| `.csv` `.tsv` `.txt`         | delimited text with a header line             |
| `.parquet` `.pq`             | Parquet                                       |
| `.arrow` `.feather` `.ipc`   | Arrow IPC, file or stream; Feather            |
| `.json` `.jsonl` `.ndjson`   | an array of objects, or one object per line   |

Text may be compressed (`.csv.gz`, `.jsonl.zst`, `.bz2`).

Delimited text does not say of which type a column is, so its values decide:

- A column of whole numbers is int64, or uint64 where one is beyond int64 and none is
  negative. With other numbers beyond int64 (negative ones beside them, or beyond
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
    "delimiter_of",
    "kind_of",
    "read_table",
    "refuse_duplicates",
    "times_of_nothing",
    "told_as",
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
# Enough of a text to see its delimiter, or the bracket of an array.
_START = 1 << 16


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

    Returns:
        The table. Which types its columns have, and what is a missing value in text,
        is said at the top of `slidewise.io.readers`.

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
    kind, compression = kind_of(file)
    with told_as(file, kind):
        if kind == "Parquet":
            table = _read_parquet(file, progress)
        elif kind == "Arrow":
            table = _read_arrow(file, progress)
        else:
            table = _read_text(file, kind, compression, times, progress)
    refuse_duplicates(file, table.column_names)
    require(frame(table), wanted or times)
    if wanted is not None:
        table = table.select(wanted)
    return _with_times(table, times, time_format)


def refuse_duplicates(file: Path, names: Sequence[str]) -> None:
    """Refuses a file with two columns of a name, which no result could tell apart.

    Raises:
        SpecError: Naming the column.
    """
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
    with writing(file, written_kind(file), table.schema) as sink:
        sink.write_table(table)


def written_kind(file: Path) -> str:
    """What a file that is to be written will be, by its name.

    Raises:
        SpecError: If the name says nothing, or it is one that is only read.
    """
    kind, compression = kind_of(file)
    if compression:
        raise SpecError(
            f"{file.name}: compressed text is read, not written; try .parquet"
        )
    return kind


def kind_of(file: Path) -> tuple[str, str | None]:
    """What a file is by its name, and how it is compressed.

    Raises:
        SpecError: If the name says nothing.
    """
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compression = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    if compression is not None:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None or (compression and kind not in ("CSV", "JSON")):
        known = " ".join(_KINDS)
        raise SpecError(
            f"cannot tell from its name what {file.name or str(file)!r} is; "
            f"known: {known}"
        )
    return kind, compression


@contextmanager
def told_as(file: Path, kind: str) -> Iterator[None]:
    """Turns what the format's reader says into one message."""
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
            types = dict.fromkeys(times, pa.string())
            table = _read_csv(stream, start, types)
            return _with_large_ints(table, file, compression, start, types)
        if start.lstrip().startswith(b"["):
            parts = iter(lambda: stream.read(_BLOCK), b"")
            return _from_objects(json.loads(b"".join(parts)))
        options = pa_json.ReadOptions(block_size=_BLOCK)
        return pa_json.read_json(stream, read_options=options)


def delimiter_of(start: bytes) -> str:
    """What parts the fields of a text that begins like this."""
    header = start.partition(b"\n")[0].decode("utf-8", errors="replace")
    return max(",;\t|", key=header.count)


def _with_large_ints(
    table: pa.Table,
    file: Path,
    compression: str | None,
    start: bytes,
    types: Mapping[str, pa.DataType],
) -> pa.Table:
    """Whole numbers beyond int64 as uint64, instead of rounded to floats."""
    large = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type != pa.float64():
            continue
        ends = pc.min_max(column).as_py()
        if (
            ends["max"] is not None
            and ends["min"] >= 0
            and 2**63 <= ends["max"] < 2**65
        ):
            large[name] = pa.uint64()
    if not large:
        return table
    with pa.input_stream(str(file), compression=compression) as stream:
        try:
            return _read_csv(stream, start, {**types, **large})
        except pa.ArrowInvalid:
            return table  # they were floats


def _read_csv(stream: Any, start: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
    table = pa_csv.read_csv(
        stream,
        read_options=pa_csv.ReadOptions(block_size=_BLOCK),
        parse_options=pa_csv.ParseOptions(
            delimiter=delimiter_of(start), newlines_in_values=True
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=types,
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


def times_of_nothing(table: pa.Table, file: Path, spec: Spec) -> pa.Table:
    """The table of a text without rows, whose times are what the windows ask for.

    Example:
        >>> import slidewise as sw
        >>> empty = pa.table({"t": pa.nulls(0, pa.timestamp("us"))})
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> times_of_nothing(empty, Path("empty.csv"), spec).schema.field("t").type
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
        parsed = parse_times(column, name, time_format)
        if parsed is not column:
            table = table.set_column(table.column_names.index(name), name, parsed)
    return table
