"""Rows on disk, for what does not fit into memory.

- `SortedRuns`: rows put into order. Chunks that fit are sorted and written as *runs*;
  runs are merged a block at a time: of all runs, the rows up to the smallest of their
  last ones can go out, since no row that is still to be read comes before these.
- `Shelves`: rows put back to where they were, by their numbers. Each shelf holds the
  rows of one range of numbers, which fits into memory and is put in order there.

Order is that of some int64 columns without nulls, one after the other.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Shelves", "SortedRuns"]

# So many runs are merged at once; more are merged in rounds.
_FAN = 64
_BLOCK_ROWS = 1 << 13
# So many shelves are open at once: systems allow some hundred files.
_OPEN = 128
_WRITTEN = pa.ipc.IpcWriteOptions(compression="lz4")


class SortedRuns:
    """Rows to be put into order.

    Args:
        folder: Where runs are written.
        order: The columns to sort by.
        chunk: How many bytes are sorted in memory.

    Example:
        >>> import pyarrow as pa, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     runs = SortedRuns(Path(folder), ["t"], chunk=8)
        ...     for t in (3, 1, 2):
        ...         runs.add(pa.table({"t": [t]}))
        ...     parts = list(runs.merged())
        >>> pa.Table.from_batches(parts)["t"].to_pylist()
        [1, 2, 3]
    """

    def __init__(self, folder: Path, order: Sequence[str], chunk: int) -> None:
        self._folder = folder
        self._order = list(order)
        self._chunk = chunk
        self._held: list[pa.Table] = []
        self._bytes = 0
        self._runs: list[Path] = []

    def add(self, rows: pa.Table) -> None:
        """More rows, in any order."""
        self._held.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._chunk:
            self._settle()

    def merged(self) -> Iterator[pa.RecordBatch]:
        """All rows in order."""
        if not self._runs:
            yield from _sorted(self._held, self._order)
            return
        self._settle()
        while len(self._runs) > _FAN:
            some, self._runs = self._runs[:_FAN], self._runs[_FAN:]
            self._write(self._merge(some))
        yield from self._merge(self._runs)

    def _settle(self) -> None:
        if self._held:
            self._write(_sorted(self._held, self._order))
        self._held, self._bytes = [], 0
        pa.default_memory_pool().release_unused()

    def _write(self, batches: Iterable[pa.RecordBatch]) -> None:
        handle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - the folder outlives it
            dir=self._folder, suffix=".run", delete=False
        )
        with handle, ExitStack() as stack:
            writer = None
            for batch in batches:
                if writer is None:
                    opened = pa.ipc.new_stream(handle, batch.schema, options=_WRITTEN)
                    writer = stack.enter_context(opened)
                writer.write_batch(batch)
        self._runs.append(Path(handle.name))

    def _merge(self, paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            runs = [_Run(stack, path, self._order) for path in paths]
            while going := [run for run in runs if run.rows is not None]:
                bound = min(run.last for run in going)
                taken = [run.take(bound) for run in going]
                yield from _sorted([rows for rows in taken if len(rows)], self._order)
        for path in paths:
            path.unlink()


class _Run:
    """A run that is read a block at a time."""

    def __init__(self, stack: ExitStack, path: Path, order: list[str]) -> None:
        source = stack.enter_context(pa.OSFile(str(path)))
        self._reader = stack.enter_context(pa.ipc.open_stream(source))
        self._order = order
        self.rows: pa.RecordBatch | None = None
        self._next()

    @property
    def last(self) -> tuple[int, ...]:
        """The place of the last row at hand."""
        assert self.rows is not None, "runs without rows are not asked"
        return self._place(self.rows.num_rows - 1)

    def take(self, bound: tuple[int, ...]) -> pa.Table:
        """The rows at hand up to a place."""
        assert self.rows is not None, "runs without rows are not asked"
        low, high = 0, self.rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if self._place(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken = pa.Table.from_batches([self.rows.slice(0, low)])
        self.rows = self.rows.slice(low)
        if self.rows.num_rows == 0:
            self._next()
        return taken

    def _place(self, row: int) -> tuple[int, ...]:
        assert self.rows is not None, "there is a row"
        return tuple(self.rows.column(name)[row].as_py() for name in self._order)

    def _next(self) -> None:
        try:
            self.rows = self._reader.read_next_batch()
        except StopIteration:
            self.rows = None


def _sorted(parts: list[pa.Table], order: list[str]) -> Iterator[pa.RecordBatch]:
    if not parts:
        return
    rows = pa.concat_tables(parts)
    places = pc.sort_indices(
        rows.select(order), sort_keys=[(name, "ascending") for name in order]
    )
    for start in range(0, len(places), _BLOCK_ROWS):
        block = rows.take(places.slice(start, _BLOCK_ROWS))
        yield from block.combine_chunks().to_batches()


class Shelves:
    """Rows to be put back where they were.

    Args:
        folder: Where they are written.
        number: The column of their numbers.
        each: How many rows a shelf holds.

    Example:
        >>> import pyarrow as pa, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shelves = Shelves(Path(folder), "n", each=2)
        ...     shelves.add(pa.table({"n": [2, 0, 1], "x": ["c", "a", "b"]}))
        ...     shelves.close()
        ...     [part["x"].to_pylist() for part in shelves.rows()]
        [['a', 'b'], ['c']]
    """

    def __init__(self, folder: Path, number: str, each: int) -> None:
        self._folder = folder
        self._number = number
        self._each = each
        # Of those that can be written to, the one used longest ago comes first.
        self._open: dict[int, tuple[Any, Any]] = {}
        self._used: set[int] = set()

    def add(self, rows: pa.Table) -> None:
        """More rows, in any order."""
        shelves = pc.divide(rows[self._number], self._each)
        for shelf in pc.unique(shelves).to_pylist():
            some = rows.filter(pc.equal(shelves, shelf))
            self._writer(shelf, rows.schema).write_table(some)

    def _writer(self, shelf: int, schema: pa.Schema) -> Any:
        """A stream of rows into a shelf; one file may hold several."""
        found = self._open.pop(shelf, None)
        if found is None:
            if len(self._open) >= _OPEN:
                self._shut(next(iter(self._open)))
            file = self._path(shelf).open("ab")
            found = file, pa.ipc.new_stream(file, schema, options=_WRITTEN)
            self._used.add(shelf)
        self._open[shelf] = found
        return found[1]

    def _shut(self, shelf: int) -> None:
        file, writer = self._open.pop(shelf)
        writer.close()
        file.close()

    def close(self) -> None:
        """No more rows come."""
        for shelf in list(self._open):
            self._shut(shelf)

    def rows(self) -> Iterator[pa.Table]:
        """All rows by their numbers, a shelf at a time."""
        for shelf in sorted(self._used):
            path, streams = self._path(shelf), []
            with pa.OSFile(str(path)) as source:
                while source.tell() < source.size():
                    with pa.ipc.open_stream(source) as reader:
                        streams.append(reader.read_all())
            path.unlink()
            rows = pa.concat_tables(streams)
            yield rows.sort_by(self._number).drop_columns([self._number])

    def _path(self, shelf: int) -> Path:
        return self._folder / f"{shelf}.shelf"
