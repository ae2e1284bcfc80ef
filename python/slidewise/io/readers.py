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
  negative. With an integer that neither holds it is text if it is a key (`by`), and
  refused otherwise; `TextForm(text=)` reads any column as text, and so keeps leading
  zeros. Beside fractions, integers from 2^53 on are rounded as these are, except in
  keys: those are text then.
- An empty field, `NA`, `N/A`, `NULL`, `null`, `NaN` and `nan` are missing values (null)
  unless they are quoted; `TextForm(missing=)` names others. In JSON, `NaN` is a NaN.

In JSON, numbers are as above, and text in keys and in columns of times stays text;
elsewhere text that is a date and time in all rows is a timestamp.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.io.csv_text import CsvText
from slidewise.io.json_text import JsonText, is_array, lines_of_array
from slidewise.io.parse_times import parse_times
from slidewise.io.text_form import (
    Progress,
    TextFile,
    TextForm,
    refuse_duplicates,
)
from slidewise.io.writers import writing
from slidewise.spec.features import Features
from slidewise.spec.spec import Spec

__all__ = [
    "arrow_reader",
    "kind_of",
    "kind_of_existing",
    "read_table",
    "reading",
    "with_empty_times",
    "write_table",
    "written_kind",
]

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
_BLOCK = 1 << 23
_TEXTS = ("CSV", "JSON")
# What readers raise; `UnicodeDecodeError` and the errors of json are `ValueError`s.
_BAD_CONTENT = (
    pa.ArrowException,
    ValueError,
    OverflowError,
    RecursionError,
    OSError,
)


def read_table(
    path: str | Path,
    *,
    on: str | Sequence[str] | None = None,
    by: Sequence[str] = (),
    time_format: str | None = None,
    time_unit: str | None = None,
    form: TextForm = TextForm(),  # noqa: B008 - immutable
    progress: Progress | None = None,
) -> pa.Table:
    r"""Reads a file.

    Args:
        path: The file; its name ends with its format.
        on: The column of event times, or several, those of arrival after it: text in
            them is read as times.
        by: The keys: their integers beyond 64 bits are read as text.
        time_format: How to read the text of times, as for `datetime.strptime`. Not
            needed for ISO 8601 ("2018-07-03 17:48:39") and whole numbers. Columns of
            arrival may hold whole numbers beside it.
        time_unit: The unit of event times that are whole numbers since 1970: "s",
            "ms", "us" or "ns". Without one they stay numbers.
        form: How a file of text is written.
        progress: Called now and then with the part read so far, from 0 to 1.

    Returns:
        The table. The top of `slidewise.io.readers` lists the types of its columns, and
        the missing values of text.

    Raises:
        FileNotFoundError: If there is no such file (or another `OSError`).
        SpecError: If the name has no known ending, the content is of another format or
            encoding, a column is not there, an integer fits no type, or a time cannot
            be read without `time_format`.

    Cost: one pass over the file, and another for columns with integers beyond int64;
    the table is held in memory.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "trips.csv")
        >>> _ = file.write_text("at,n\n07/03/18 17:48:39,1\n")
        >>> read_table(file, on="at", time_format="%m/%d/%y %H:%M:%S")["at"][0].as_py()
        datetime.datetime(2018, 7, 3, 17, 48, 39)
    """
    file = Path(path)
    times = [on] if isinstance(on, str) else list(on or ())
    kind, compression = kind_of_existing(file)
    form.refuse_for(kind, file, times)
    report = progress or (lambda _: None)
    text = TextFile(file, compression, form)
    with reading(file, kind, form):
        if kind == "Parquet":
            table = _read_parquet(file, report)
        elif kind == "Arrow":
            table = _read_arrow(file)
        elif kind == "CSV":
            table = CsvText(text, by=by, times=times).table(report)
        else:
            table = _read_json(text, times, by, report)
    report(1.0)
    refuse_duplicates(file, table.column_names)
    require(frame(table), [*times, *form.text])
    for name in times:
        column = frame(table).column(name)
        parsed = parse_times(
            column, name, time_format, time_unit, arrival=name != times[0]
        )
        if parsed is not column:
            table = table.set_column(table.column_names.index(name), name, parsed)
    return table


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


def kind_of_existing(file: Path) -> tuple[str, str | None]:
    """The format and compression of a file to be read.

    Raises:
        FileNotFoundError: If there is no such file.
        SpecError: If it is a folder, or its name has no known ending.
    """
    if not file.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(file))
    if file.is_dir():
        raise SpecError(
            f"{file} is a folder: give one of its files (slidewise rolling "
            "--engine spark reads folders)"
        )
    return kind_of(file)


@contextmanager
def reading(file: Path, kind: str, form: TextForm) -> Iterator[None]:
    """Turns the errors of a format's reader into one message.

    Raises:
        SpecError: If the content has another format than the file's ending, or another
            encoding.
    """
    try:
        yield
    except SpecError:
        raise
    except _BAD_CONTENT as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file, not its content
        if kind in _TEXTS and not isinstance(error, OSError):
            TextFile(file, kind_of(file)[1], form).refuse_other_encodings(kind)
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        if "columns, got" in reason:
            reason += " (a field with the delimiter in it has to be in quotes)"
        raise SpecError(f"{file} cannot be read as {kind}: {reason}") from error


def _read_json(
    file: TextFile, times: Sequence[str], by: Sequence[str], progress: Progress
) -> pa.Table:
    reports = iter([progress])  # of the first pass alone

    def opened() -> Any:
        return file.open(next(reports, None))

    if is_array(file.start()):
        with opened() as stream:
            parts = iter(lambda: stream.read(_BLOCK), b"")
            lines = lines_of_array(b"".join(parts))

        def opened() -> Any:
            return pa.BufferReader(lines)

    text = JsonText(opened, by=by, times=times, text=file.form.text, keep=True)
    tables = list(text.tables())
    return pa.concat_tables(tables) if tables else text.schema.empty_table()


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


def with_empty_times(table: pa.Table, file: Path, spec: Spec | Features) -> pa.Table:
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
