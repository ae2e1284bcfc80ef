"""`Queryable`: the queries of `KeyedWindows`, and their keys."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Result, refuse_taken
from slidewise.frames.polars import is_lazy
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
from slidewise.keyed.processor import Processor
from slidewise.keyed.reader import RowReader
from slidewise.keyed.view import View, is_latest
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
        _processor: The state; None before the first batch.
        _view: What queries know of the state, without the lock; None before the first
            batch.
    """

    _spec: Spec
    _processor: Processor | None
    _view: View | None
    _before: Any

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
        view = self._view
        # Few steps for the defaults, which most queries have.
        if view is None or self._before is not None:
            view = self._view_for("query()")
        if valid_until is not False:
            check_bool(valid_until, "valid_until")
        if (
            view.reader is not None
            and windows is None
            and plus is None
            and not valid_until
        ):
            tick = view.tick(at)
            answer = view.reader.query_key(key, tick)
            if answer is not None and self._is_whole(tick):
                return answer

        def answered(view: View, tick: int) -> dict[str, Result]:
            query = view.query
            extra = None if plus is None else plus_row(query, plus)
            ticks = pa.array([tick], pa.int64())
            points = Points(key_table(query, key), ticks, extra)
            return self._results(view, points, windows, valid_until)

        results = self._at(at, "query()", answered)
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
            def at_time(view: View, tick: int | None) -> Any:
                return self._query_many(
                    view, table, at, tick, windows, plus, valid_until
                )

            if isinstance(at, str) and not is_latest(at):
                return at_time(self._view_for("query_many()"), None)
            return self._at(at, "query_many()", at_time)

        return (
            map_lazily(keys, self._spec, answered) if is_lazy(keys) else answered(keys)
        )

    def _query_many(
        self,
        view: View,
        keys: Any,
        at: Any,
        tick: int | None,
        windows: Any,
        plus: Any,
        valid_until: bool,
    ) -> Any:
        """`query_many` of a table that is not lazy, at a tick or a column of times."""
        reader, query = view.reader, view.query
        is_declared = windows is None and plus is None and not valid_until
        lists = _holds_lists(keys)
        is_fast = lists or isinstance(keys, _FAST)
        if reader and is_declared and tick is not None and is_fast:
            answer = reader.listed if lists else reader.appended
            found: Any = answer(keys, tick)
            if found is not None and self._is_whole(tick):
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
            if target.length and not self._is_whole(pc.min(ticks).as_py()):
                results = None
        if results is None:
            extra = None if plus is None else plus_of(query, target, plus)
            points = Points(own, ticks, extra)
            results = self._results(view, points, windows, valid_until)
        refuse_taken(target, list(results))
        return target.append(results)

    def _view_for(self, call: str) -> View:
        """The view for a query, after the rollback of a change that did not end."""
        if self._before is not None and not self._lock.locked():
            with self._locked():
                pass
        view = self._view
        if view is None or view.query.sessions:
            for window in self._spec.windows:
                window.as_query()
            raise SpecError(
                f"there are no rows yet: ingest some before {call}, or make "
                "KeyedWindows with schema="
            )
        return view

    def _at(self, at: Any, call: str, answer: Callable[[View, int], _T]) -> _T:
        """The answer at a time, which may be the latest time of the stream."""
        view = self._view_for(call)
        while True:
            tick = view.tick(at)
            try:
                return answer(view, tick)
            except SpecError:
                # Another thread may have advanced, and evicted rows of these windows.
                view = self._view_for(call)
                if not is_latest(at) or tick == view.tick(at):
                    raise

    def _is_whole(self, tick: int) -> bool:
        """Whether answers at a time, which are there, are those of whole windows."""
        view = self._view
        return view is not None and tick >= view.whole_from

    def _require_state(self) -> Processor:
        if self._processor is None:
            raise SpecError(
                "there are no rows yet: ingest some first, or make KeyedWindows with "
                "schema="
            )
        return self._processor

    def _results(
        self, view: View, points: Points, windows: Any, valid_until: bool
    ) -> dict[str, Result]:
        """The results of query points by column, window by window."""
        spans = view.horizon.windows(windows)
        if view.reader is None:
            with self._locked():
                # A call that failed meanwhile has rolled the state back.
                horizon = self._view_for("query()").horizon
                shard = self._require_state().shard
                horizon.check(points.ticks, spans, shard.log.latest_lost)
                answers = RowReader(shard).answer(
                    points, spans, horizon, expiry=valid_until
                )
        else:
            answers = view.reader.answer(
                points, spans, view.horizon, expiry=valid_until
            )
            view = self._view_for("query()")
            view.horizon.check(points.ticks, spans, self._latest_lost)
        return answers.named(spans, view.query)

    @synchronized
    def _latest_lost(self) -> int | None:
        """As `RowLog.latest_lost`, for a thread without the lock."""
        return self._require_state().shard.log.latest_lost()

    @synchronized
    def __contains__(self, key: object) -> bool:
        """Whether a key has rows, as `keys` gives it. Cost: O(1).

        Raises:
            SpecError: If it is not a key of these columns.
        """
        view, state = self._view, self._processor
        if view is None or state is None:
            return False
        return state.shard.holds(key_table(view.query, key), view.watermark)


def _holds_lists(keys: Any) -> bool:
    """Whether the keys are a dict with a list among its columns."""
    if isinstance(keys, dict):
        for values in keys.values():
            if isinstance(values, list):
                return True
    return False
