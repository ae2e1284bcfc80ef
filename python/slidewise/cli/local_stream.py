"""Runs `slidewise stream --engine local`: the windows of a stream without Spark."""

import json
import struct
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.cli.file_options import delimited_form, read_form
from slidewise.cli.progress import Batch, BatchReport
from slidewise.cli.stream import seconds_of
from slidewise.cli.stream_source import Files, Lines, Reader, Source, schema_of
from slidewise.cli.terminal import print_table
from slidewise.cli.windows import parse_length
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import one_array, require
from slidewise.io.bad_values import batches_of, naming_bad_value
from slidewise.io.readers import write_table, written_kind
from slidewise.io.writers import to_bytes
from slidewise.keyed import KeyedWindows
from slidewise.keyed.formats import Format
from slidewise.spec.durations import parse_offset
from slidewise.spec.spec import Spec
from slidewise.table.time_columns import read_times, window_ticks

__all__ = ["run_local"]

_SHOWN = 20
_ROWS = 1_000
_WAIT = 1.0
# The options of the stream, which a checkpoint is tied to.
_OPTIONS = (
    *("emit", "late", "late_rows", "then_by", "deletes", "changed"),
    *("ahead", "idle"),
)
_STATE = Format(b"SWLS", 1)
_LENGTH = struct.Struct("<Q")


def run_local(options: Namespace, spec: Spec) -> None:
    """Runs a stream until its source ends, it fails or is interrupted.

    Raises:
        SpecError: If the spec does not fit the rows.
        SlidewiseError: If the checkpoint is of another stream.
    """
    stream = _LocalStream(options, spec)
    elsewhere = options.output is not None
    with BatchReport(quiet=options.quiet, in_place=elsewhere) as report:
        for batch in stream.source.batches():
            stream.take(batch, report)


class _Sink(Protocol):
    """Takes the results of micro-batches."""

    def write(self, number: int, answers: pa.Table) -> None:
        """Writes the results of a micro-batch."""


class _Terminal:
    """Prints the first results of each micro-batch."""

    def write(self, number: int, answers: pa.Table) -> None:  # noqa: ARG002
        """Prints them."""
        if len(answers):
            print_table(answers.slice(0, _SHOWN))
        if len(answers) > _SHOWN:
            print(f"... and {len(answers) - _SHOWN:,} more rows", flush=True)


class _Standard:
    """Writes results to standard output as text."""

    def __init__(self, kind: str) -> None:
        self._name, self._header = Path(f"standard output.{kind}"), True

    def write(self, number: int, answers: pa.Table) -> None:  # noqa: ARG002
        """Writes the results of a micro-batch, with a header before the first."""
        kind = written_kind(self._name)
        text = to_bytes(answers, self._name, kind, header=self._header)
        self._header = False
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


class _Folder:
    """Writes a Parquet file per micro-batch; one that is repeated replaces its file."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def write(self, number: int, answers: pa.Table) -> None:
        """Writes the results of a micro-batch, if there are any."""
        part = self._folder / f"part-{number:06}.parquet"
        if len(answers):
            write_table(answers, part)
        else:
            part.unlink(missing_ok=True)  # of the same batch, before a kill


class _Checkpoint:
    """The state of a stream in a folder: its windows, and the files that were read."""

    def __init__(self, folder: str | None, options: dict[str, Any]) -> None:
        self._file = None if folder is None else Path(folder) / "slidewise-local"
        self._options = options
        self.number, self.files = 0, list[str]()
        self.windows: bytes | None = None
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if any(self._file.parent.glob("offsets/[0-9]*")):
            raise SpecError(
                f"--checkpoint {folder} is one of Spark: continue it with --engine "
                "spark, or give another folder"
            )
        if self._file.exists():
            body, _ = _STATE.open(self._file.read_bytes(), str(self._file))
            (length,) = _LENGTH.unpack_from(body)
            end = _LENGTH.size + length
            head = json.loads(bytes(body[_LENGTH.size : end]))
            self._check(head["options"])
            self.number, self.files = head["batch"], head["files"]
            self.windows = bytes(body[end:])

    def _check(self, before: dict[str, Any]) -> None:
        """Checks that the stream has the options that it was begun with."""
        for name, value in self._options.items():
            if before[name] != value:
                was = Argument(name, before[name])
                without = before[name] in (None, False)
                raise SpecError(
                    "the checkpoint was made ",
                    *(("without ", Argument(name)) if without else ("with ", was)),
                    ": do the same, or give another folder for --checkpoint",
                )

    def save(self, windows: KeyedWindows, files: Sequence[str]) -> None:
        """Replaces the state by that after the next micro-batch."""
        self.number += 1
        self.files += files
        if self._file is None:
            return
        head = {"batch": self.number, "files": self.files, "options": self._options}
        text = json.dumps(head).encode()
        body = b"".join([_LENGTH.pack(len(text)), text, windows.to_bytes()])
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(_STATE.seal(body)[0])
        partial.replace(self._file)


class _LocalStream:
    """The windows of a stream, its source and its sink."""

    def __init__(self, options: Namespace, spec: Spec) -> None:
        schema = None if options.schema is None else schema_of(options.schema)
        given = {name: getattr(options, name) for name in _OPTIONS}
        self._checkpoint = _Checkpoint(options.checkpoint, given)
        for name in ("late", "ahead", "idle"):
            given[name] = None if given[name] is None else parse_length(given[name])
        self._options = options
        self._spec, self._marker, self._late = spec, options.marker, given["late"]
        self._windows = KeyedWindows(spec, **given, schema=schema)
        if self._checkpoint.windows is not None:
            self._windows = KeyedWindows.from_bytes(self._checkpoint.windows, spec)
        self.source = self._source(options, schema)
        self._sink: _Sink = _Terminal()
        if options.output == "-":
            self._sink = _Standard(options.format)
        elif options.output is not None:
            self._sink = _Folder(options.output)

    def _source(self, options: Namespace, schema: pa.Schema | None) -> Source:
        times = (options.time_format, options.time_unit)
        reader = Reader(self._spec, read_form(options), times, schema)
        pause = seconds_of(options.trigger)
        if options.folder == "-":
            most = options.rows_per_trigger or _ROWS
            return Lines(options.format, reader, most, pause or _WAIT)
        seen = self._checkpoint.files
        return Files(options.folder, reader, seen, options.files_per_trigger, pause)

    def take(
        self, batch: tuple[list[str], pa.Table] | None, report: BatchReport
    ) -> None:
        """Ingests a micro-batch and writes what it emits; None looks at the clock."""
        began = time.monotonic()
        windows, number = self._windows, self._checkpoint.number
        late, ahead = windows.late_count, windows.ahead_count
        duplicates = windows.duplicate_count
        files, rows = batch or ([], None)
        if rows is None:
            windows.tick()
        else:
            named = [Path(name) for name in files or [f"-.{self._options.format}"]]
            form = delimited_form(self._options, named)
            with naming_bad_value(self._spec, batches_of(rows), form):
                self._ingest(rows)
        answers = self._collected()
        if rows is None and not len(answers):
            return
        self._sink.write(number, answers)
        self._checkpoint.save(windows, files)
        done = Batch(
            number=number,
            rows=0 if rows is None else len(rows),
            late=windows.late_count - late,
            ahead=windows.ahead_count - ahead,
            duplicates=windows.duplicate_count - duplicates,
            answers=len(answers),
            seconds=time.monotonic() - began,
            watermark=None if windows.watermark is None else str(windows.watermark),
            state=windows.nbytes,
        )
        report.add(done)

    def _ingest(self, rows: pa.Table) -> None:
        """Ingests rows, and advances the watermark, also by markers."""
        if self._marker is None:
            self._windows.ingest(rows)
            self._windows.advance()
            return
        require(frame(rows), [self._marker])
        marks = pc.fill_null(rows[self._marker].cast(pa.bool_()), False)
        self._windows.ingest(rows.filter(pc.invert(marks)))
        self._windows.advance()
        times = one_array(rows[self._spec.on].filter(marks))
        if len(times):
            read = read_times(times, self._spec.on)
            late = parse_offset(self._late)
            delay = window_ticks(late, read) if late.amount else 0
            tick = pa.array([pc.max(read.ticks).as_py() - delay], pa.int64())
            self._windows.advance(read.restore(tick)[0])

    def _collected(self) -> pa.Table:
        try:
            return self._windows.collect()
        except SpecError:
            if self._windows.watermark is not None:
                raise
            return pa.table({})  # no rows came yet
