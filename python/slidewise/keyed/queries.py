"""`Queryable`: the queries of `KeyedWindows`, and their keys."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Result, refuse_taken
from slidewise.frames.polars import is_lazy
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.locked import Locked, synchronized
from slidewise.keyed.points import (
    LATEST,
    Lists,
    Points,
    key_table,
    keys_of,
    plus_of,
    plus_row,
    python_value,
    times_of,
)
from slidewise.keyed.reader import FoldReader, RowReader
from slidewise.keyed.shard import Shard
from slidewise.keyed.single_times import tick_of
from slidewise.spec.arguments import check_bool
from slidewise.spec.durations import WindowLike
from slidewise.spec.spec import Spec
from slidewise.table.kernel_call import map_lazily

__all__ = ["Queryable"]

_T = TypeVar("_T")

# Tables of keys that are used without conversion by `frames`.
_FAST = (pa.Table, pa.RecordBatch)


class Queryable(Locked):
    """The side of `KeyedWindows` that reads.

    Attributes:
        _spec: The Spec.
        _shard: The state; None before the first batch.
        _largest: The latest time seen, in ticks; None without rows.
        _watermark: The watermark, in ticks; None before the first.
        _reader: Answers from the entries of the state; None before the first query,
            and if results cannot be folded.
    """

    _spec: Spec
    _shard: Shard | None
    _largest: int | None
    _watermark: int | None
    _reader: FoldReader | None
    _before: Any

    _derived = ("_reader", "_shard")

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
        whatever `emit` is. A key without rows has the results of an empty window.
        Hopping windows are rolling ones of their length here: (at − length, at]. An
        `until` window holds the rows since the last flag; `plus=` adds its row to them,
        and closes the window if its flag is true. It can be queried at the watermark or
        later.

        Args:
            key: The key: a mapping from the columns of `by=`, a tuple in their order,
                or the bare value of the only one. Without `by=`, leave it out.
            at: A time, as for `advance`, or "latest": the latest time seen, or the
                watermark if that is later.
            windows: A length, or several, as in the Spec: any up to the horizon, which
                is the longest window and `late`, or `keep=`. By default the windows of
                the Spec.
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
                horizon, or may have had rows that were evicted; if there were no rows
                yet; or for sessions and `delta`.
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
        shard, reader = self._queried("query()")
        query = shard.query
        # Few steps for the defaults, which most queries have.
        is_latest = at is LATEST or _is_latest(at)
        tick = self._latest() if is_latest else tick_of(at, query.times)
        if valid_until is not False:
            check_bool(valid_until, "valid_until")
        is_declared = windows is None and plus is None and not valid_until
        if reader is not None and is_declared:
            answer = reader.query_key(key, tick)
            # Rows are evicted after the watermark has moved, so check the bound last.
            evicted = shard.evicted(self._watermark)
            if answer is not None and tick >= reader.earliest(evicted):
                return answer
        keys = key_table(query, key)
        extra = None if plus is None else plus_row(query, plus)

        def answered(tick: int) -> dict[str, Result]:
            points = Points(keys, pa.array([tick], pa.int64()), extra)
            return self._results(shard, points, windows, valid_until)

        results = self._at_latest(answered) if is_latest else answered(tick)
        return {name: python_value(name, of.array[0]) for name, of in results.items()}

    def query_many(
        self,
        keys: Any,
        at: Any = None,
        windows: WindowLike | Iterable[WindowLike] | None = None,
        plus: Mapping[str, str] | Sequence[str] | None = None,
        valid_until: bool = False,
    ) -> Any:
        """Appends to a table of keys the results of each, as `query` gives them.

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
        if valid_until is not False:
            check_bool(valid_until, "valid_until")

        def answered(table: Any) -> Any:
            def at_time(tick: int | None) -> Any:
                return self._query_many(table, at, tick, windows, plus, valid_until)

            times = self._queried("query_many()")[0].query.times
            if _is_latest(at):
                return self._at_latest(at_time)
            return at_time(None if isinstance(at, str) else tick_of(at, times))

        return (
            map_lazily(keys, self._spec, answered) if is_lazy(keys) else answered(keys)
        )

    def _query_many(
        self,
        keys: Any,
        at: Any,
        tick: int | None,
        windows: Any,
        plus: Any,
        valid_until: bool,
    ) -> Any:
        """`query_many` of a table that is not lazy, at a tick or a column of times."""
        shard, reader = self._queried("query_many()")
        query = shard.query
        is_declared = windows is None and plus is None and not valid_until
        lists = _holds_lists(keys)
        is_fast = lists or isinstance(keys, _FAST)
        if reader and is_declared and tick is not None and is_fast:
            answer = reader.listed if lists else reader.appended
            found: Any = answer(keys, tick)
            # Rows are evicted after the watermark has moved, so check the bound last.
            evicted = shard.evicted(self._watermark)
            if found is not None and tick >= reader.earliest(evicted):
                return found
        target = Lists(keys) if lists else frame(keys)
        own = keys_of(query, target)
        if tick is None:
            ticks = times_of(query, target, at)
        else:
            ticks = pa.repeat(pa.scalar(tick, pa.int64()), target.length)
        results = None
        if reader is not None and is_declared:
            results = reader.query_keys(own, ticks)
            # Rows are evicted after the watermark has moved, so check the bound last.
            least = reader.earliest(shard.evicted(self._watermark))
            if target.length and pc.min(ticks).as_py() < least:
                results = None
        if results is None:
            extra = None if plus is None else plus_of(query, target, plus)
            points = Points(own, ticks, extra)
            results = self._results(shard, points, windows, valid_until)
        refuse_taken(target, list(results))
        return target.append(results)

    def _shard_to_query(self, call: str) -> Shard:
        """The state, for a query."""
        if self._before is not None and not self._lock.locked():
            # Roll back a change that was interrupted.
            with self._locked():
                pass
        shard = self._shard
        if shard is None or shard.query.sessions:
            for window in self._spec.windows:
                window.as_query()
            raise SpecError(
                f"there are no rows yet: ingest some before {call}, or make "
                "KeyedWindows with schema="
            )
        return shard

    def _queried(self, call: str) -> tuple[Shard, FoldReader | None]:
        """The state, for a query, and the reader of its entries: see `_fold_reader`."""
        shard, reader = self._shard, self._reader
        # Few steps for most queries: the reader is that of the state.
        if (
            shard is None
            or reader is None
            or reader.index is not shard.index
            or self._before is not None
        ):
            shard = self._shard_to_query(call)
            reader = self._fold_reader(shard)
        return shard, reader

    def _fold_reader(self, shard: Shard) -> FoldReader | None:
        """The reader of the entries of a state; None if results cannot be folded."""
        reader = self._reader
        if shard.query.folds and (reader is None or reader.index is not shard.index):
            reader = self._reader = FoldReader(shard)
        return reader

    def _latest(self) -> int:
        """The latest time of the stream."""
        largest, watermark = self._largest, self._watermark
        if largest is None or (watermark is not None and watermark > largest):
            largest = watermark
        if largest is None:
            raise SpecError("there are no rows yet, and no latest time: give at=")
        return largest

    def _at_latest(self, answer: Callable[[int], _T]) -> _T:
        """The answer at the latest time of the stream."""
        while True:
            tick = self._latest()
            try:
                return answer(tick)
            except SpecError:
                # Another thread may have advanced, and evicted rows of these windows.
                if tick == self._latest():
                    raise

    def _results(
        self, shard: Shard, points: Points, windows: Any, valid_until: bool
    ) -> dict[str, Result]:
        """The results of query points by column, window by window."""
        spans = self._horizon(shard).windows(windows)
        reader = self._fold_reader(shard)
        if reader is None:
            with self._locked():
                # A call that failed meanwhile has rolled the state back.
                shard = self._shard_to_query("query()")
                horizon = self._horizon(shard)
                horizon.check(points.ticks, spans, shard.log.latest_lost)
                answers = RowReader(shard).answer(
                    points, spans, horizon, expiry=valid_until
                )
            return answers.named(spans, shard.query)
        answers = reader.answer(points, spans, self._horizon(shard), expiry=valid_until)
        # Rows are evicted after the watermark has moved, so this is checked last.
        self._horizon(shard).check(points.ticks, spans, self._latest_lost)
        return answers.named(spans, shard.query)

    @synchronized
    def _latest_lost(self) -> int | None:
        """As `RowLog.latest_lost`, for a thread without the lock."""
        return self._shard_to_query("query()").log.latest_lost()

    def _horizon(self, shard: Shard) -> Horizon:
        evicted = shard.evicted(self._watermark)
        if shard.query.until:  # rows leave with the windows that were emitted
            evicted = self._watermark
        return Horizon(shard.query, shard.kept, evicted)

    @synchronized
    def __contains__(self, key: object) -> bool:
        """Whether a key has rows, as `keys` gives it. Cost: O(1).

        Raises:
            SpecError: If it is not a key of these columns.
        """
        return self._shard is not None and self._shard.holds(
            key_table(self._shard.query, key), self._watermark
        )


def _holds_lists(keys: Any) -> bool:
    """Whether the keys are a dict with a list among its columns."""
    if isinstance(keys, dict):
        for values in keys.values():
            if isinstance(values, list):
                return True
    return False


def _is_latest(at: object) -> bool:
    return at is None or (isinstance(at, str) and at == LATEST)
