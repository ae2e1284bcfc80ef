"""Where `slidewise stream --engine local` reads rows: files, or standard input."""

import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from slidewise.cli.inputs import files_of, joined
from slidewise.errors import Argument, SpecError
from slidewise.io.readers import kind_of, read_table, with_empty_times
from slidewise.io.text_form import TextForm
from slidewise.spec.spec import Spec

__all__ = ["Files", "Lines", "Reader", "Source", "schema_of"]

# Seconds between two looks for new files or lines.
_POLL = 0.2
_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def schema_of(text: str) -> pa.Schema:
    """The columns of `--schema`, as Spark writes them.

    Example:
        >>> schema_of("id long, `a b` string").names
        ['id', 'a b']
    """
    fields = []
    for column in text.split(","):
        name, _, kind = column.strip().rpartition(" ")
        if kind.lower() not in _TYPES or not name.strip():
            raise SpecError(
                Argument("schema", column.strip()),
                ' is not a column and its type: write "id long, t timestamp"; types '
                f"are {', '.join(_TYPES)}",
            )
        fields.append((name.strip().strip("`"), _TYPES[kind.lower()]))
    return pa.schema(fields)


class Reader:
    """Reads files into the columns of the stream.

    Args:
        spec: The Spec.
        form: How text is written.
        times: How times are written: `time_format` and `time_unit`.
        schema: The columns of the stream, if they are given.
    """

    def __init__(
        self,
        spec: Spec,
        form: TextForm,
        times: tuple[str | None, str | None],
        schema: pa.Schema | None,
    ) -> None:
        self._spec, self._form, self._times = spec, form, times
        self._schema = schema

    def table(self, file: Path) -> pa.Table:
        """The rows of a file."""
        time_format, time_unit = self._times
        table = read_table(
            file,
            on=self._spec.times,
            by=self._spec.by,
            time_format=time_format,
            time_unit=time_unit,
            form=self._form_of(file),
        )
        table = with_empty_times(table, file, self._spec)
        if self._schema is None:
            return table
        columns = []
        for field in self._schema:
            if field.name not in table.column_names:
                # JSON leaves out what is missing in all rows.
                columns.append(pa.nulls(len(table), field.type))
                continue
            column = table[field.name]
            if _lacks_zone(column.type, field.type):
                column = column.cast(pa.timestamp(column.type.unit, "UTC"))
            columns.append(column)
        return pa.table(columns, names=self._schema.names)

    def _form_of(self, file: Path) -> TextForm:
        """How a file is written: ids keep leading zeros, as the schema has text."""
        if self._schema is None or kind_of(file)[0] not in ("CSV", "JSON"):
            return self._form
        names = [one.name for one in self._schema if pa.types.is_string(one.type)]
        own = [name for name in names if name not in self._spec.times]
        return replace(self._form, text=[*dict.fromkeys([*self._form.text, *own])])


def _lacks_zone(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether times of a file have no zone, and the column has one: they are in UTC."""
    both = pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted)
    return bool(both and kind.tz is None and wanted.tz is not None)


class Source(Protocol):
    """Gives the rows of micro-batches."""

    def batches(self) -> Iterator[tuple[list[str], pa.Table] | None]:
        """The names of the files of each batch, and its rows; None while none come."""


class Files:
    """The files in a folder, those of a pattern, or one file.

    Args:
        where: What is given.
        reader: Reads a file.
        seen: The files that were read before.
        most: At most so many files in a batch.
        seconds: The time between two looks for new files; None to end without any.
    """

    def __init__(
        self,
        where: str,
        reader: Reader,
        seen: Sequence[str],
        most: int | None,
        seconds: float | None,
    ) -> None:
        self._where, self._reader, self._most = where, reader, most
        self._seen = set(seen)
        self._seconds = None if Path(where).is_file() else seconds

    def batches(self) -> Iterator[tuple[list[str], pa.Table] | None]:
        """The names of the files of each batch, and its rows; None while none come."""
        while True:
            new = [file for file in self._listed() if file.name not in self._seen]
            if not new and self._seconds is None:
                return
            files = new[: self._most]
            for file in files:
                self._seen.add(file.name)
            if files:
                tables = [self._reader.table(file) for file in files]
                yield [file.name for file in files], joined(tables)
            else:
                yield None
            if len(files) == len(new) and self._seconds is not None:
                time.sleep(self._seconds or _POLL)

    def _listed(self) -> list[Path]:
        """The files that are there, the oldest first."""
        files = files_of(self._where)
        return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))


class Lines:
    """The lines of standard input: delimited text with a header, or JSON objects.

    Args:
        kind: "csv", "tsv" or "jsonl".
        reader: Reads a file.
        most: The rows of a batch. A batch has fewer where no more came for a while.
        seconds: How long to wait for more.
    """

    def __init__(self, kind: str, reader: Reader, most: int, seconds: float) -> None:
        self._kind, self._reader = kind, reader
        self._most, self._seconds = most, seconds
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=4 * most)

    def batches(self) -> Iterator[tuple[list[str], pa.Table] | None]:
        """The rows of each batch, which has no files; None while none come."""
        threading.Thread(target=self._read, daemon=True).start()
        header = b"" if self._kind == "jsonl" else None
        ended = False
        with tempfile.TemporaryDirectory(prefix="slidewise-") as folder:
            file = Path(folder) / f"standard input.{self._kind}"
            while not ended:
                lines, ended = self._taken(self._most + (header is None))
                if header is None and lines:
                    header = lines.pop(0)
                if lines:
                    file.write_bytes((header or b"") + b"".join(lines))
                    yield [], self._reader.table(file)
                elif not ended:
                    yield None

    def _read(self) -> None:
        """Puts records into the queue; a record with a quoted line break is one."""
        record = b""
        for line in sys.stdin.buffer:
            record += line
            if self._kind == "jsonl" or not record.count(b'"') % 2:
                if record.strip():
                    self._lines.put(record)
                record = b""
        if record.strip():
            self._lines.put(record)
        self._lines.put(None)

    def _taken(self, most: int) -> tuple[list[bytes], bool]:
        """The next records, and whether they are the last ones."""
        lines: list[bytes] = []
        until = time.monotonic() + self._seconds
        while len(lines) < most:
            try:
                line = self._lines.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                break
            if line is None:
                return lines, True
            lines.append(line)
            until = time.monotonic() + self._seconds
        return lines, False
