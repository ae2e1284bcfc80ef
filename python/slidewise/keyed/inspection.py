"""`Inspection`: describes the state of `KeyedWindows`: keys, watermark, memory."""

from typing import Any

import pyarrow as pa

from slidewise.formatting import format_count
from slidewise.keyed.explain import explain_lines, format_bytes, format_windows
from slidewise.keyed.locked import synchronized
from slidewise.keyed.processor import encode_directory
from slidewise.keyed.saved import Snapshots
from slidewise.keyed.single_times import format_tick, shown_time

__all__ = ["Inspection"]


class Inspection(Snapshots):
    """The calls of `KeyedWindows` that describe the state.

    Attributes:
        _emit: The `emit=` of the windows.
    """

    _emit: str

    @property
    def watermark(self) -> Any:
        """The time up to which the stream is complete; None before `advance`.

        Raises:
            SpecError: If it is out of the range of Python's datetimes.

        Cost: O(1).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, late=2)
            >>> w.ingest(pa.table({"t": [3, 9]}))
            >>> w.advance()
            >>> w.watermark
            7
        """
        view = self._view
        if view is None or view.watermark is None:
            return None
        return shown_time(view.watermark, view.query.times)

    @synchronized
    def keys(self) -> pa.Table:
        """Returns the keys that have rows in the horizon, each with its latest time.

        Returns:
            An Arrow table: the columns of `by=`, and the column of times.

        Cost: O(keys).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", by="card", windows=5,
            ...                     aggs={"n": sw.count()})
            >>> w.ingest(pa.table({"t": [3, 1, 9], "card": [*"AAB"]}))
            >>> w.keys().to_pydict()
            {'card': ['A', 'B'], 't': [3, 9]}
        """
        shard, view = self._require_state().shard, self._view
        return shard.keys(None if view is None else view.watermark)

    @synchronized
    def __len__(self) -> int:
        """The number of keys that have rows. Cost: as for `keys`."""
        view, state = self._view, self._processor
        if view is None or state is None:
            return 0
        return len(state.shard.keys(view.watermark))

    @property
    def nbytes(self) -> int:
        """The bytes of the rows, of their index, and of results that wait.

        Rows that share the memory of a page count once.

        Cost: O(pages).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
            >>> w.ingest(pa.table({"t": [3, 1, 9]}))
            >>> w.nbytes > 3 * 8  # the times alone
            True
        """
        with self._locked():
            return self._nbytes()

    def _nbytes(self) -> int:
        pages = self._store.nbytes
        waiting: int = sum(table.nbytes for table in self._answers)
        if self._processor is None:
            return pages + waiting
        own = self._processor.shard.nbytes(self._store.tables())
        return pages + len(encode_directory(self._directory)) + waiting + own

    @synchronized
    def __repr__(self) -> str:
        head = f"<{type(self).__name__} {format_windows(self._spec)}"
        view = self._view
        if view is None or view.largest is None:
            return f"{head}: empty>"
        times = view.query.times
        parts = [f"latest {format_tick(view.largest, times)}"]
        if view.watermark is not None:
            parts.append(f"watermark {format_tick(view.watermark, times)}")
        if self.late_count:
            parts.append(format_count(self.late_count, "late row"))
        return f"{head}: {', '.join([*parts, format_bytes(self._nbytes())])}>"

    @synchronized
    def explain(self) -> str:
        """Describes in a few lines the results, their input, and possible queries.

        Cost: O(pages).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> cards = sw.KeyedWindows(on="t", by="card", windows=10, late=5,
            ...                         aggs={"mid": sw.median("x")}, emit="arrival")
            >>> cards.ingest(pa.table({"t": [1, 8], "card": [*"AA"], "x": [5, 7]}))
            >>> print(cards.explain())  # doctest: +ELLIPSIS
            rolling 10 over t by card: a result per row when it arrives
            state: ..., the entries of 1 key and a log
            results: from all rows of a window, because median('x') cannot be folded
            query: any window up to 15, at any time: no row was evicted yet
        """
        watermark = None if self._view is None else self._view.watermark
        shard = None if self._processor is None else self._processor.shard
        return explain_lines(self._spec, self._emit, shard, watermark, self._nbytes())

    @synchronized
    def check(self) -> None:
        """Checks the invariants of the state.

        Raises:
            AssertionError: If one is violated: a bug in slidewise, not in the data.

        Cost: O(n).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
            >>> w.ingest(pa.table({"t": [3, 1, 9]}))
            >>> w.check()
        """
        if self._processor is not None:
            self._processor.shard.check()
