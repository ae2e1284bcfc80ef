"""Rolling aggregates over files that do not fit into memory.

The way: the columns that are computed with are read in batches, numbered, and put into
order of key and time on disk (`spill`); one pass over them gives the results
(`batches`), which go back to where their rows were; then the file is read once more and
each batch is written with its results behind it. In memory are one chunk of rows at a
time, and what one key's longest window holds.

Keys are put into order by a hash of theirs. Keys that share one are told apart later.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import refuse_taken, require
from slidewise.frames.column_types import is_text
from slidewise.io.external_sort import Shelves, SortedRuns
from slidewise.io.parse_times import parse_times
from slidewise.io.readers import Progress, times_of_nothing, written_kind
from slidewise.io.scanner import Scan
from slidewise.io.writers import writing
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Order, result_schema, rolling_batches
from slidewise.table.encoding import ValueColumn
from slidewise.table.time_columns import read_times

__all__ = ["rolling_file"]

# Shows a stage by its name; what it gives takes the part that is done, from 0 to 1.
Stage = Callable[[str], AbstractContextManager[Progress]]

_RUN = "__slidewise_run"
_TICK = "__slidewise_tick"
_ROW = "__slidewise_row"
# Sorting a chunk takes it, its order and its sorted copy; Python and Arrow take theirs.
_SHARE = 8
_LEAST_CHUNK = 1 << 20


def rolling_file(
    source: str | Path,
    target: str | Path,
    spec: Spec,
    *,
    memory: int = 1 << 30,
    time_format: str | None = None,
    in_order: bool = True,
    folder: str | Path | None = None,
    stage: Stage | None = None,
) -> int:
    r"""Rolling aggregates from file to file, in bounded memory.

    The rows come out in the order of the file, with the results behind their columns:
    what `rolling` gives over the whole table.

    Args:
        source: The file to read.
        target: The file to write, replaced once all of it is written.
        spec: What is asked.
        memory: About how many bytes to take, beside what Python and Arrow take anyway
            and what one key's longest window holds (twice over; with `arrival`, one
            key as a whole).
        time_format: As for `read_table`.
        in_order: Whether rows are to come out in the order of the file. Otherwise they
            come key by key, in order of time, which saves reading the file once more.
        folder: Where to put rows for the time being: about twice the columns that are
            computed with. By default the system's folder for temporary files.
        stage: Is called with the name of each stage, and gives a context manager
            that gives a function of the part that is done.

    Returns:
        How many rows there are.

    Raises:
        SpecError: If the spec does not fit the file, or the file cannot be read so.
        ResultOverflowError: If an integer result does not fit its type.
        OSError: If a file cannot be read or written.

    Cost: reads the file twice (once more for each type of a column in delimited text
    that a later value widens, at most three per column) and writes what is computed
    with twice; O(n log n).

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
    with tempfile.TemporaryDirectory(prefix="slidewise-", dir=folder) as spilled:
        job = _Job(Path(source), Path(target), spec, time_format, Path(spilled))
        return job.run(memory, in_order, stage or _silent)


def _silent(_: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda _: None)


class _Job:
    """One file on its way to another."""

    def __init__(
        self,
        source: Path,
        target: Path,
        spec: Spec,
        time_format: str | None,
        folder: Path,
    ) -> None:
        self._spec = spec
        self._time_format = time_format
        self._folder = folder
        self._target = target
        self._kind = written_kind(target)
        self._times = [spec.on] + ([spec.arrival] if spec.arrival else [])
        self._scan = Scan(source, self._times)
        nothing = frame(self._scan.schema.empty_table())
        require(nothing, spec.columns)
        refuse_taken(nothing, spec.results)

    def run(self, memory: int, in_order: bool, stage: Stage) -> int:
        """Does it all, and says how many rows there were."""
        chunk = max(memory // _SHARE, _LEAST_CHUNK)
        wanted = self._spec.columns if in_order else self._scan.schema.names
        with stage("sorting") as done:
            runs, schema, count = self._sort(wanted, chunk, done)
        answered = self._answered(runs, schema)
        if not in_order:
            with stage("rolling") as done:
                self._write_as_they_come(answered, schema, count, done)
            return count
        each = max(chunk // (16 * (len(self._spec.results) + 1)), 1 << 12)
        shelves = Shelves(self._folder, _ROW, each)
        with stage("rolling") as done:
            told = 0
            for part in answered:
                shelves.add(part.select([_ROW, *self._spec.results]))
                told += len(part)
                done(told / max(count, 1))
            shelves.close()
        with stage("writing") as done:
            self._write_beside(shelves, schema, count, done)
        return count

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of the file, their times read."""
        first = 0
        kinds: dict[str, pa.DataType] = {}
        for batch in self._scan.batches(columns):
            rows = pa.Table.from_batches([batch])
            for name in self._times:
                if name in columns and is_text(rows[name].type):
                    rows = self._with_times(rows, name, first, kinds)
            yield rows
            first += len(rows)

    def _with_times(
        self, rows: pa.Table, name: str, first: int, kinds: dict[str, pa.DataType]
    ) -> pa.Table:
        column = frame(rows).column(name)
        times = parse_times(column, name, self._time_format, first_row=first)
        kind = kinds.setdefault(name, times.type)
        if times.type != kind:
            raise SpecError(
                f"column {name!r} holds times of another kind from row {first} on "
                f"({times.type}, {kind} before): write all of them alike, or give "
                "more memory than the file takes"
            )
        return rows.set_column(rows.column_names.index(name), name, times)

    def _sort(
        self, wanted: Sequence[str], chunk: int, done: Progress
    ) -> tuple[SortedRuns, pa.Schema, int]:
        """The rows, numbered and on their way into order, and their schema."""
        runs = SortedRuns(self._folder, [_RUN, _TICK, _ROW], chunk)
        by = self._spec.arrival or self._spec.on
        schema, count, read = None, 0, 0
        for rows in self._batches(wanted):
            schema = rows.schema
            self._check_times(rows, count)
            ticks = read_times(frame(rows).column(by), by).ticks
            marks = {
                _RUN: _run_of(rows, self._spec.by),
                _TICK: ticks,
                _ROW: pa.array(range(count, count + len(rows)), pa.int64()),
            }
            for name, column in marks.items():
                rows = rows.append_column(name, column)
            runs.add(rows)
            count += len(rows)
            read += rows.nbytes
            done(min(read / self._scan.bytes, 1.0))
        if schema is None:
            schema = self._empty_schema(wanted)
        return runs, schema, count

    def _empty_schema(self, wanted: Sequence[str]) -> pa.Schema:
        rows = self._scan.schema.empty_table().select(list(wanted))
        for name in self._times:
            rows = self._with_times(rows, name, 0, {})
        return times_of_nothing(rows, self._scan.path, self._spec).schema

    def _check_times(self, rows: pa.Table, first: int) -> None:
        for name in self._times:
            if rows[name].null_count:
                row = first + pc.index(pc.is_null(rows[name]), True).as_py()
                raise SpecError(
                    f"column {name!r} has no time in row {row} (counting from 0): "
                    "drop the rows without a time, or fill them in, first"
                )

    def _answered(self, runs: SortedRuns, schema: pa.Schema) -> Iterator[pa.Table]:
        marks = [pa.field(name, pa.int64()) for name in (_RUN, _TICK, _ROW)]
        whole = pa.schema([*schema, *marks])
        order = Order(runs=(_RUN,) if self._spec.by else None)
        return rolling_batches(runs.merged(), self._spec, whole, order)

    def _write_as_they_come(
        self,
        answered: Iterator[pa.Table],
        schema: pa.Schema,
        count: int,
        done: Progress,
    ) -> None:
        out = result_schema(self._spec, schema)
        told = 0
        with writing(self._target, self._kind, out) as sink:
            for part in answered:
                sink.write_table(part.select(out.names))
                told += len(part)
                done(told / max(count, 1))

    def _write_beside(
        self, shelves: Shelves, schema: pa.Schema, count: int, done: Progress
    ) -> None:
        """The file once more, with the results beside its rows."""
        answers = result_schema(self._spec, schema)
        results = [answers.field(name) for name in self._spec.results]
        with ExitStack() as stack:
            sink, told = None, 0
            rest = pa.schema(results).empty_table()
            shelved = shelves.rows()
            for rows in self._batches(self._scan.schema.names):
                while len(rest) < len(rows):
                    rest = pa.concat_tables([rest, next(shelved)])
                for field in results:
                    rows = rows.append_column(
                        field, rest[field.name].slice(0, len(rows))
                    )
                rest = rest.slice(len(rows))
                if sink is None:
                    opened = writing(self._target, self._kind, rows.schema)
                    sink = stack.enter_context(opened)
                sink.write_table(rows)
                told += len(rows)
                done(told / count)
            if sink is None:
                nothing = self._empty_schema(self._scan.schema.names)
                whole = pa.schema([*nothing, *results])
                opened = writing(self._target, self._kind, whole)
                stack.enter_context(opened).write_table(whole.empty_table())


def _run_of(rows: pa.Table, by: Sequence[str]) -> pa.Array:
    """A hash of the key of each row."""
    run = pa.repeat(pa.scalar(0, pa.int64()), len(rows))
    for name in by:
        run = pc.add(pc.multiply(run, pa.scalar(31, pa.int64())), _hash_of(rows, name))
    return run


def _hash_of(rows: pa.Table, name: str) -> pa.Array:
    column = frame(rows).column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    values = ValueColumn(name, column, nan="skip")
    if values.family == "text":
        hashes = values.hashes
    elif values.family == "other":
        raise SpecError(
            f"column {name!r} ({column.type}) cannot be a key: "
            "keys are numbers, text, times and the like"
        )
    elif pa.types.is_floating(column.type):
        # −0.0 and 0.0 are one key.
        wide = pc.add(values.original.cast(pa.float64()), 0.0)
        hashes = pa.array(_core.hashes(wide))
    else:
        hashes = pa.array(_core.hashes(values.order))
    return pc.fill_null(hashes, 0)
