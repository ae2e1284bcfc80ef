"""Rolling aggregates over files that do not fit into memory.

The input columns are read in batches, numbered, and sorted by key and time on disk
(`spill`). One pass over them computes the results (`batched_rolling`), which are sorted
by number, again on disk. Then the file is read once more, and each batch is written
with its results. Memory holds one chunk of rows at a time, and the rows of one key's
longest window.

Keys are sorted by a hash; `batched_rolling` distinguishes those with equal hashes.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.arrow import append_columns
from slidewise.frames.base import refuse_taken, require
from slidewise.frames.column_types import type_without_view
from slidewise.io.bad_values import naming_bad_value
from slidewise.io.external_sort import SampleSort, SpillPartitions
from slidewise.io.parse_times import parse_times
from slidewise.io.readers import with_empty_times, written_kind
from slidewise.io.scanner import Scan, table_bytes
from slidewise.io.text_form import Progress, TextForm
from slidewise.io.writers import writing
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Order, result_schema, rolling_batches
from slidewise.table.group_codes import key_hashes
from slidewise.table.time_columns import read_times

__all__ = ["LEAST_MEMORY", "rolling_file"]

# Begins a stage, given its name, and yields a function of the part done, from 0 to 1.
Stage = Callable[[str], AbstractContextManager[Progress]]

_RUN = "__slidewise_run"
_TICK = "__slidewise_tick"
_ROW = "__slidewise_row"
# The least memory that can be kept to: of a process that does nothing, and of a kernel
# call with the rows of some ten columns.
LEAST_MEMORY = 200 << 20
_FIXED = 120 << 20
# A chunk has this part of the rest: sorting it takes its rows, their order and a
# sorted copy, and Python and Arrow take more.
_CHUNKS = 8
_MIN_CHUNK = 1 << 20
# pyarrow holds about forty blocks of a CSV that it reads: as text, as columns, ahead.
_BLOCKS = 160
_MIN_BLOCK, _MAX_BLOCK = 1 << 18, 1 << 22


def rolling_file(
    source: str | Path,
    target: str | Path,
    spec: Spec,
    *,
    memory: int = 1 << 30,
    time_format: str | None = None,
    time_unit: str | None = None,
    form: TextForm = TextForm(),  # noqa: B008 - immutable
    in_order: bool = True,
    folder: str | Path | None = None,
    stage: Stage | None = None,
) -> int:
    r"""Rolling aggregates from file to file, in bounded memory.

    The rows are written in the order of the file, with the results after their columns,
    as by `rolling` over the whole table.

    Args:
        source: The file to read.
        target: The file to write, replaced once all of it is written.
        spec: The spec.
        memory: About how many bytes to use, from `LEAST_MEMORY` on, besides twice the
            rows in the longest window of one key (with `arrival`, of one whole key).
        time_format: As for `read_table`, like the next two.
        time_unit: The unit of times that are whole numbers since 1970.
        form: How a file of text is written.
        in_order: Whether to write rows in the order of the file. Otherwise they are
            written by key and time, which saves reading the file once more.
        folder: Where to spill rows: about twice the input columns. By default the
            system's folder for temporary files.
        stage: Called with the name of each stage; returns a context manager that
            yields a function, which takes the part that is done.

    Returns:
        The number of rows.

    Raises:
        SpecError: If the spec does not fit the file, or the file cannot be read so.
        ResultOverflowError: If an integer result does not fit its type.
        OSError: If a file cannot be read or written.

    Cost: O(n log n). Reads the file twice, and delimited text once more for its types
    and for each type that a later value does not fit; writes the input columns twice,
    and the results once.

    Example:
        >>> import tempfile, pathlib, slidewise as sw
        >>> from slidewise.io.readers import read_table
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = folder.joinpath("in.csv").write_text("t,x\n5,1\n6,2\n1,3\n")
        >>> spec = Spec.make(on="t", windows=3, aggs={"s": sw.sum("x")})
        >>> rolling_file(folder / "in.csv", folder / "out.csv", spec)
        3
        >>> read_table(folder / "out.csv")["s_3"].to_pylist()
        [1, 3, 3]
    """
    if spec.unique_by:
        raise SpecError(
            f"{source} is sorted on disk, where ids of the whole file cannot be "
            "compared: give --memory unlimited, which reads the whole file, or leave ",
            Argument("unique_by", [*spec.unique_by]),
            " out",
        )
    with tempfile.TemporaryDirectory(prefix="slidewise-", dir=folder) as spilled:
        read_times = partial(parse_times, time_format=time_format, time_unit=time_unit)
        block = min(max((memory - _FIXED) // _BLOCKS, _MIN_BLOCK), _MAX_BLOCK)
        scan = Scan(source, spec.times, spec.by, form, block)
        job = _FileRolling(scan, Path(target), spec, read_times, Path(spilled))
        return job.run(memory, in_order, stage or _no_stage)


def _no_stage(_: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda _: None)


def _without_views(schema: pa.Schema) -> pa.Schema:
    kinds = [field.with_type(type_without_view(field.type)) for field in schema]
    return pa.schema(kinds, schema.metadata)


class _FileRolling:
    """Rolling aggregates from one file to another."""

    def __init__(
        self,
        scan: Scan,
        target: Path,
        spec: Spec,
        read_times: Callable[..., pa.Array],
        folder: Path,
    ) -> None:
        self._scan = scan
        self._spec = spec
        self._read_times = read_times
        self._folder = folder
        self._target = target
        self._kind = written_kind(target)
        self._times = spec.times
        # The columns to sort the rows of a key by.
        self._order = spec.arrivals or (spec.on,)
        ticks = [f"{_TICK}{at}" for at, _ in enumerate(self._order)]
        self._marks = [_RUN, *ticks, _ROW]
        # The types of times that are text in the file, from the first batch on.
        self._time_types: dict[str, pa.DataType] = {}
        nothing = frame(self._scan.schema.empty_table())
        require(nothing, [*spec.columns, *scan.form.text])
        refuse_taken(nothing, spec.results)

    def run(self, memory: int, in_order: bool, stage: Stage) -> int:
        """Computes and writes all rows, and returns how many there are."""
        chunk = max((memory - _FIXED) // _CHUNKS, _MIN_CHUNK)
        columns = self._scan.schema.names
        wanted = self._spec.columns if in_order else columns
        with stage("sorting") as done:
            rows, count = self._sort(wanted, chunk, done)
        form = self._scan.form if self._scan.is_delimited else None
        with naming_bad_value(self._spec, self._scan.batches, form):
            out = result_schema(self._spec, self._schema(columns))
        marks = [pa.field(name, pa.int64()) for name in self._marks]
        schema = _without_views(self._schema(wanted))
        batches = (batch for part in rows.sorted() for batch in part.to_batches())
        order = Order(runs=(_RUN,) if self._spec.by else None)
        computed = rolling_batches(
            batches, self._spec, pa.schema([*schema, *marks]), order
        )
        if not in_order:
            with stage("rolling") as done:
                self._write(computed, out, count, done)
            return count
        # A row takes about 16 bytes for each result, and for its number.
        each = max(chunk // (16 * (len(self._spec.results) + 1)), 1 << 12)
        bounds = pa.table({_ROW: pa.array(range(each - 1, count, each), pa.int64())})
        results = SpillPartitions(self._folder, bounds, chunk)
        with stage("rolling") as done:
            finished = 0
            for part in computed:
                results.add(part.select([_ROW, *self._spec.results]))
                finished += len(part)
                done(finished / count)
        with stage("writing") as done:
            self._write(self._with_results(results.sorted()), out, count, done)
        return count

    def _schema(self, columns: Sequence[str]) -> pa.Schema:
        """The schema of columns of the file, its times read."""
        schema = self._scan.schema
        for name, kind in self._time_types.items():
            place = schema.get_field_index(name)
            schema = schema.set(place, schema.field(place).with_type(kind))
        return pa.schema([schema.field(name) for name in columns], schema.metadata)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of the file, their times read."""
        first = 0
        for batch in self._scan.batches(columns):
            rows = self._with_times(pa.Table.from_batches([batch]), first)
            yield rows
            first += len(rows)

    def _with_times(self, rows: pa.Table, first: int) -> pa.Table:
        for name in self._times:
            if name not in rows.column_names:
                continue
            column = frame(rows).column(name)
            times = self._read_times(
                column, name, first_row=first, arrival=name != self._spec.on
            )
            if times is column:
                continue
            kind = self._time_types.setdefault(name, times.type)
            if times.type != kind:
                raise SpecError(
                    f"column {name!r} holds times of another kind from row {first} on "
                    f"({times.type}, {kind} before): write all of them alike, or give "
                    "more memory than the file takes"
                )
            rows = rows.set_column(rows.column_names.index(name), name, times)
        return rows

    def _sort(
        self, wanted: Sequence[str], chunk: int, done: Progress
    ) -> tuple[SampleSort, int]:
        """The rows, numbered and to be sorted, and how many there are."""
        sort = SampleSort(self._folder, self._marks, chunk)
        count = read = 0
        size = table_bytes(self._scan.path)
        for rows in self._batches(wanted):
            self._check_times(rows, count)
            numbers = pa.array(range(count, count + len(rows)), pa.int64())
            source = frame(rows)
            by = [(name, source.column(name)) for name in self._spec.by]
            keys = key_hashes(by, len(rows))
            times = [read_times(source.column(name), name) for name in self._order]
            marks = [keys, *(each.ticks for each in times), numbers]
            rows = append_columns(rows, self._marks, marks)
            # Arrow cannot take rows of views. They are cast back when they are written.
            sort.add(rows.cast(_without_views(rows.schema)))
            count += len(rows)
            read += rows.nbytes
            done(min(read / size, 1.0))
        if count == 0:
            nothing = self._scan.schema.empty_table()
            nothing = self._with_times(nothing, 0)
            nothing = with_empty_times(nothing, self._scan.path, self._spec)
            self._time_types = {
                name: nothing.schema.field(name).type for name in self._times
            }
        return sort, count

    def _check_times(self, rows: pa.Table, first: int) -> None:
        for name in self._times:
            if rows[name].null_count:
                row = first + pc.index(pc.is_null(rows[name]), True).as_py()
                raise SpecError(
                    f"column {name!r} has no time in row {row} (counting from 0): "
                    "drop the rows without a time, or fill them in, first"
                )

    def _with_results(self, parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows of the file once more, with their results."""
        rest: list[pa.Table] = []
        for rows in self._batches(self._scan.schema.names):
            while sum(map(len, rest)) < len(rows):
                rest.append(next(parts))
            results = pa.concat_tables(rest)
            found = results.select(self._spec.results).slice(0, len(rows))
            rows = append_columns(rows, found.column_names, found.columns)
            rest = [results.slice(len(rows))]
            yield rows

    def _write(
        self, parts: Iterator[pa.Table], schema: pa.Schema, count: int, done: Progress
    ) -> None:
        written = 0
        with writing(self._target, self._kind, schema) as sink:
            for part in parts:
                sink.write_table(part.select(schema.names).cast(schema))
                written += len(part)
                done(written / count)
            if not count:
                sink.write_table(schema.empty_table())
