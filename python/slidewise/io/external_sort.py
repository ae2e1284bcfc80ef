"""Sorting rows on disk, for tables that do not fit into memory.

A bucket sort. `SpillPartitions` cuts rows by bounds into partitions on disk, each of
which fits into memory and is sorted there. Where the bounds are not known in advance,
`SampleSort` spills the rows first as they come, and takes the bounds from a sample
(samplesort: Frazer and McKellar, JACM 17(3), 1970).

Rows are sorted by some int64 columns without nulls, which together are unique: so
bounds divide any rows evenly. Other columns may have any Arrow type, and keep it.
"""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["SampleSort", "SpillPartitions"]

# The rows per sorted batch of a partition.
_BLOCK_ROWS = 1 << 13
# Rows in the sample per chunk; the sizes of partitions differ by a few percent.
_SAMPLE_ROWS = 1 << 10
_WRITE_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpillPartitions:
    """Rows on disk, in partitions that follow one another in order.

    Args:
        folder: Where the partitions are written.
        bounds: The columns to sort by, in ascending order: the last row of each
            partition but the last, or a place between two of them.
        chunk: How many bytes of rows to gather before they are written.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     spilled = SpillPartitions(Path(folder), pa.table({"n": [1]}), chunk=1)
        ...     spilled.add(pa.table({"n": [2, 0, 1], "x": ["c", "a", "b"]}))
        ...     [part["x"].to_pylist() for part in spilled.sorted()]
        [['a', 'b'], ['c']]
    """

    def __init__(self, folder: Path, bounds: pa.Table, chunk: int) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._bounds = bounds
        self._chunk = chunk
        self._buffered: list[pa.Table] = []
        self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        """Adds rows, in any order. Cost: O(n log n) for a chunk of n rows."""
        self._buffered.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._chunk:
            self._flush()

    def _flush(self) -> None:
        if not self._buffered:
            return
        rows = pa.concat_tables(self._buffered)
        self._buffered, self._bytes = [], 0
        order = self._bounds.column_names
        indices = _sort_indices(
            pa.concat_tables([rows.select(order), self._bounds]), order
        )
        ends = pc.indices_nonzero(pc.greater_equal(indices, len(rows))).to_pylist()
        for number, (end, next_end) in enumerate(pairwise([-1, *ends, len(indices)])):
            if end + 1 < next_end:
                part = rows.take(indices.slice(end + 1, next_end - end - 1))
                _append(self._folder / str(number), part)
        _release()

    def sorted(self) -> Iterator[pa.Table]:
        """All rows in order, in parts; none may be added afterwards."""
        self._flush()
        for number in range(len(self._bounds) + 1):
            path = self._folder / str(number)
            if path.exists():
                rows = pa.concat_tables(_read(path))
                path.unlink()
                yield from _sorted_parts(rows, self._bounds.column_names)


class SampleSort:
    """Rows to be sorted, on disk if they are more than a chunk.

    Args:
        folder: Where rows are spilled.
        order: The columns to sort by.
        chunk: How many bytes may be sorted in memory at a time.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = SampleSort(Path(folder), ["t"], chunk=8)
        ...     for t in (3, 1, 2):
        ...         rows.add(pa.table({"t": [t]}))
        ...     parts = list(rows.sorted())
        >>> pa.concat_tables(parts)["t"].to_pylist()
        [1, 2, 3]
    """

    def __init__(self, folder: Path, order: Sequence[str], chunk: int) -> None:
        self._folder = folder
        self._order = list(order)
        self._chunk = chunk
        self._file = folder / "unsorted"
        self._buffered: list[pa.Table] = []
        self._bytes = self._spilled_bytes = 0
        self._sample: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Adds rows, in any order."""
        self._buffered.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._chunk:
            self._spill()

    def _spill(self) -> None:
        rows = pa.concat_tables(self._buffered)
        share = min(self._bytes / self._chunk, 1.0)
        drawn = pc.random(int(_SAMPLE_ROWS * share) + 1, initializer=len(self._sample))
        places = pc.floor(pc.multiply(drawn, len(rows))).cast(pa.int64())
        self._sample.append(rows.select(self._order).take(places))
        _append(self._file, rows)
        self._spilled_bytes += self._bytes
        self._buffered, self._bytes = [], 0
        _release()

    def sorted(self) -> Iterator[pa.Table]:
        """All rows in order, in parts; none may be added afterwards."""
        if not self._sample:
            if self._buffered:
                yield from _sorted_parts(pa.concat_tables(self._buffered), self._order)
            return
        if self._buffered:
            self._spill()
        partitions = SpillPartitions(self._folder, self._bounds(), self._chunk)
        for rows in _read(self._file):
            partitions.add(rows)
        self._file.unlink()
        yield from partitions.sorted()

    def _bounds(self) -> pa.Table:
        """Bounds of partitions of about half a chunk."""
        sample = pa.concat_tables(self._sample)
        parts = min(2 * self._spilled_bytes // self._chunk + 1, len(sample))
        places = [number * len(sample) // parts for number in range(1, parts)]
        return sample.take(_sort_indices(sample, self._order).take(pa.array(places)))


def _sort_indices(rows: pa.Table, order: Sequence[str]) -> pa.Array:
    return pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in order])


def _sorted_parts(rows: pa.Table, order: Sequence[str]) -> Iterator[pa.Table]:
    indices = _sort_indices(rows.select(order), order)
    for start in range(0, len(indices), _BLOCK_ROWS):
        yield rows.take(indices.slice(start, _BLOCK_ROWS))


def _append(path: Path, rows: pa.Table) -> None:
    """Appends rows to a file, as a separate Arrow stream."""
    with (
        path.open("ab") as file,
        pa.ipc.new_stream(file, rows.schema, options=_WRITE_OPTIONS) as writer,
    ):
        writer.write_table(rows)


def _read(path: Path) -> Iterator[pa.Table]:
    """The tables that were appended to a file."""
    with pa.OSFile(str(path)) as source:
        while source.tell() < source.size():
            with pa.ipc.open_stream(source) as reader:
                yield reader.read_all()


def _release() -> None:
    """Returns unused memory of Arrow to the system."""
    pa.default_memory_pool().release_unused()
