"""`ReadCalls`: the calls of `KeyedWindows` that read: queries, counts, descriptions.

None of them changes the windows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slidewise.hints import readable
from slidewise.keyed.feature_windows import FeatureWindows
from slidewise.keyed.measured import Answers, Measured
from slidewise.keyed.points import LATEST
from slidewise.keyed.spec_windows import SpecWindows
from slidewise.keyed.transaction import State, synchronized
from slidewise.measuring import Reading
from slidewise.spec.durations import WindowLike

__all__ = ["ReadCalls"]


class ReadCalls:
    """The calls of `KeyedWindows` that read its windows."""

    def __init__(self, windows: SpecWindows | FeatureWindows, state: State) -> None:
        self._windows, self._state = windows, state
        self._queries: Answers = windows.queries

    @readable
    def query(
        self,
        key: Any = (),
        at: Any = LATEST,
        windows: WindowLike | Iterable[WindowLike] | None = None,
        plus: Mapping[str, Any] | None = None,
        valid_until: bool = False,
    ) -> dict[str, Any]:
        """Returns the results of a key at any time, over all accepted rows.

        The results equal those of `rolling(rows, ..., at=)` over all rows that were not
        late, whether the watermark has passed them or not. Windows end at the time,
        whatever `emit` is. A key without rows has the results of an empty window; rows
        that `evict_idle` evicted do not count. Hopping windows are rolling ones of
        their length here: (at − length, at]. An `until` window holds the rows since the
        last flag; `plus=` adds its row to them, and closes the window if its flag is
        true. It can be queried at the watermark or later.

        Args:
            key: The key: a mapping from the columns of `by=`, a tuple in their order,
                or the bare value of the only one. Without `by=`, leave it out. With
                `Features`, the key columns of all Specs, each once.
            at: A time, as for `advance`, or "latest": the latest time seen, or the
                watermark if that is later.
            windows: A length, or several, as in the Spec: any up to the horizon, which
                is the longest window and `late`, or `keep=`. By default the windows of
                the Spec. Aggregations with windows of their own keep these.
            plus: The values, by column, of an extra row: it counts as if it had arrived
                at that time, after all others of the key. It is not stored. Columns
                that are left out are null.
            valid_until: Whether to return also `valid_until_<window>` per window: the
                first time at which the results change because rows leave it, if no rows
                arrive. None if they never do, as for `rows(n)`, `landmark` and `until`.

        Returns:
            The results by column, such as `{"n_1h": 3}`, in the order of the windows.

        Raises:
            SpecError: If a column or a time is wrong, a window is longer than the
                horizon, or may have had rows that the watermark evicted; if there were
                no rows yet; or for sessions and `delta`.
            ResultOverflowError: As for `rolling`.

        Cost: O(log n) combines of the key's n entries, some microseconds; threads may
            call it while one ingests. `valid_until=True` costs as much for each time at
            which rows leave before the results change: O(n log n) where all leave. With
            aggregations that read all rows of a window (quantiles and such, text,
            Python) and with `rows(n)`, the cost is that of these rows and of a kernel
            call, some milliseconds, and calls wait for one another.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> cards = sw.KeyedWindows(on="t", by="card", windows=10, late=5,
            ...                         aggs={"n": sw.count(), "sum": sw.sum("x")})
            >>> cards.ingest(pa.table({"t": [1, 8], "card": [*"AA"], "x": [5, 7]}))
            >>> cards.query("A", at=8)
            {'n_10': 2, 'sum_10': 12}
            >>> cards.query({"card": "A"}, at=12, windows=3, plus={"x": 100})
            {'n_3': 1, 'sum_3': 100}
            >>> cards.query("A", at=8, valid_until=True)["valid_until_10"]
            11
        """
        return self._queries.query(key, at, windows, plus, valid_until)

    @readable
    def query_many(
        self,
        keys: Any,
        at: Any = None,
        windows: WindowLike | Iterable[WindowLike] | None = None,
        plus: Mapping[str, str] | Sequence[str] | None = None,
        valid_until: bool = False,
    ) -> Any:
        """Appends to a table of keys the results of each, as `query` gives them.

        Rows that `evict_idle` evicted do not count.

        Args:
            keys: A table that `rolling` takes, with the columns of `by=`; or a dict of
                lists of Python values, which is the fastest for some ten keys.
            at: The name of a column of times of that table, a time for all of its rows,
                or "latest". Default "latest".
            windows: As for `query`.
            plus: Columns of the stream that are in the table: they are the values of an
                extra row, as for `query`, for this row's results only. If their names
                differ, a mapping from columns of the stream to those of the table.
            valid_until: As for `query`.

        Returns:
            The table, of the same type and in the same order, with the results. For a
            dict of lists, a dict with the same lists, not copies.

        Raises:
            SpecError: As for `query`.
            ResultOverflowError: As for `rolling`.

        Cost: as for `query`, for all rows together.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> cards = sw.KeyedWindows(on="t", by="card", windows=10, late=5,
            ...                         aggs={"n": sw.count()})
            >>> cards.ingest(pa.table({"t": [1, 8], "card": [*"AB"]}))
            >>> keys = pa.table({"card": [*"BAC"], "when": [9, 10, 11]})
            >>> cards.query_many(keys, at="when")["n_10"].to_pylist()
            [1, 1, 0]
            >>> cards.query_many({"card": ["B", "A"]}, at=9)
            {'card': ['B', 'A'], 'n_10': [1, 1]}
        """
        return self._queries.query_many(keys, at, windows, plus, valid_until)

    @synchronized
    def __contains__(self, key: object) -> bool:
        """Whether a key has rows, as `keys` gives it. Cost: O(1).

        With `Features`, whether it has rows in the windows of any Spec.

        Raises:
            SpecError: If it is not a key of these columns.
        """
        return self._windows.holds(key)

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
        return self._windows.watermark

    @property
    def late_count(self) -> int:
        """The number of late rows, without those that `late_rows="correct"` accepts.

        Cost: O(1).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
            >>> w.ingest(pa.table({"t": [3, 9]}))
            >>> w.advance()
            >>> w.ingest(pa.table({"t": [8, 11]}))
            >>> w.late_count
            1
        """
        return self._windows.late_count

    @property
    def ahead_count(self) -> int:
        """The number of rows that were further after the clock than `ahead=`.

        Cost: O(1).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, ahead=60,
            ...                     clock=lambda: 100)
            >>> w.ingest(pa.table({"t": [99, 4_102_444_800]}))
            >>> w.advance()
            >>> w.ahead_count, w.watermark
            (1, 99)
        """
        return self._windows.ahead_count

    @property
    def duplicate_count(self) -> int:
        """The number of duplicates that `unique_by=` dropped.

        A duplicate that is late counts as late.

        Cost: O(1).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, late=2,
            ...                     unique_by="id")
            >>> w.ingest(pa.table({"t": [3, 3, 9], "id": [1, 1, 2]}))
            >>> w.ingest(pa.table({"t": [9], "id": [2]}))
            >>> w.duplicate_count, w.query(at=9)
            (2, {'n_5': 1})
        """
        return self._windows.duplicate_count

    @synchronized
    def keys(self) -> Any:
        """Returns the keys that have rows in the horizon, each with its latest time.

        Returns:
            An Arrow table: the columns of `by=`, and the column of times. With
            `Features`, a dict of such tables by the names of the Specs.

        Cost: O(keys).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", by="card", windows=5,
            ...                     aggs={"n": sw.count()})
            >>> w.ingest(pa.table({"t": [3, 1, 9], "card": [*"AAB"]}))
            >>> w.keys().to_pydict()
            {'card': ['A', 'B'], 't': [3, 9]}
        """
        return self._windows.keys()

    @synchronized
    def __len__(self) -> int:
        """The number of keys that have rows, of all Specs. Cost: as for `keys`."""
        return self._windows.count()

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
        with self._state:
            return self._windows.nbytes

    @synchronized
    def metrics(self) -> dict[str, float]:
        """Returns what a monitor asks of a stream; `slidewise.metrics` exports it.

        Returns:
            A dict of numbers:

            - `late`, `ahead` and `duplicates`: `late_count`, `ahead_count` and
              `duplicate_count`;
            - `state_bytes`: `nbytes`;
            - `latest`: the latest time seen, in seconds since 1970;
            - `watermark`: in seconds since 1970.

            The last two are missing before they are known, and for integer times and
            durations.

        Cost: O(pages).

        Example:
            >>> import datetime as dt, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows="5m", aggs={"n": sw.count()},
            ...                     late="1m", schema={"t": "timestamp[us]"})
            >>> w.ingest({"t": dt.datetime(1970, 1, 1, 0, 2)})
            >>> w.advance()
            >>> counts = w.metrics()
            >>> counts["late"], counts["latest"], counts["watermark"]
            (0, 120.0, 60.0)
        """
        return self._windows.metrics()

    def _measured(self) -> list[Reading]:
        """What an exporter reads; from the first call on, queries are counted."""
        with self._state:
            if not isinstance(self._queries, Measured):
                self._queries = Measured(self._queries, self._windows.state)
            return [self._queries.reading(self._windows.metrics())]

    @synchronized
    def __repr__(self) -> str:
        windows = self._windows
        position = windows.position(windows.nbytes)
        return f"<{type(self).__name__} {windows.title()}: {position}>"

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
        return self._windows.explain()

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
        self._windows.check()
