"""`Queries`: results of keys at any time, beside the thread that changes the state."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Result, refuse_taken
from slidewise.frames.lazy import is_lazy
from slidewise.keyed.points import (
    Lists,
    Points,
    key_table,
    key_values,
    plus_row,
    points_of,
    python_value,
)
from slidewise.keyed.reader import RowReader
from slidewise.keyed.transaction import State
from slidewise.keyed.validation import refuse_ended
from slidewise.keyed.view import View, is_latest
from slidewise.spec.arguments import check_bool
from slidewise.spec.durations import WindowLike
from slidewise.spec.spec import Spec
from slidewise.spec.windows.base import Window
from slidewise.table.kernel_call import map_lazily

__all__ = ["Queries", "holds_lists"]

_T = TypeVar("_T")

# Tables of keys that are used without conversion by `frames`.
_FAST = (pa.Table, pa.RecordBatch)


class Queries:
    """Answers queries of a state, without its lock if its results can be folded."""

    def __init__(self, spec: Spec, state: State) -> None:
        self._spec, self._state = spec, state

    def query(
        self,
        key: Any,
        at: Any,
        windows: WindowLike | Iterable[WindowLike] | None,
        plus: Mapping[str, Any] | None,
        valid_until: bool,
    ) -> dict[str, Any]:
        """The results of a key: see `KeyedWindows.query`."""
        # Few steps for the defaults, which most queries have.
        view = self._view_for("query()")
        if valid_until is not False:
            check_bool(valid_until, "valid_until")
        if isinstance(key, Mapping):  # the store takes values
            key = (*key_values(self._spec.by, key).values(),)
        if (
            view.reader is not None
            and windows is None
            and plus is None
            and not valid_until
        ):
            tick = view.tick(at)
            answer = view.reader.query_key(key, tick)
            now = self._state.view
            if answer is not None and now is not None and tick >= now.whole_from:
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
        at: Any,
        windows: WindowLike | Iterable[WindowLike] | None,
        plus: Mapping[str, str] | Sequence[str] | None,
        valid_until: bool,
    ) -> Any:
        """A table of keys with their results: see `KeyedWindows.query_many`."""
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
        lists = holds_lists(keys)
        is_fast = lists or isinstance(keys, _FAST)
        if reader and is_declared and tick is not None and is_fast:
            answer = reader.listed if lists else reader.appended
            found: Any = answer(keys, tick)
            if found is not None and self._is_whole(tick):
                return found
        target = Lists(keys) if lists else frame(keys)
        points = points_of(query, target, at, tick, plus)
        results = self.results(view, points, windows, valid_until)
        refuse_taken(target, list(results))
        return target.append(results)

    def results(
        self, view: View, points: Points, windows: Any, valid_until: bool
    ) -> dict[str, Result]:
        """The results of query points by column, window by window."""
        reader = view.reader
        is_declared = windows is None and points.plus is None and not valid_until
        if reader is not None and is_declared:
            found = reader.query_keys(points.keys, points.ticks)
            earliest = pc.min(points.ticks).as_py()
            if found is not None and (earliest is None or self._is_whole(earliest)):
                return found
        return self._results(view, points, windows, valid_until)

    def _view_for(self, call: str) -> View:
        """The view for a query, after the rollback of a change that did not end."""
        view = self._state.published()
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
        """Whether answers at a time, computed before, are those of whole windows."""
        view = self._state.view
        return view is not None and tick >= view.whole_from

    def _results(
        self, view: View, points: Points, windows: Any, valid_until: bool
    ) -> dict[str, Result]:
        """As `results`, of any windows and with extra rows."""
        spans = view.horizon.windows(windows)
        if valid_until:
            refuse_ended(view.query.spec, Argument("valid_until", True))
            for window in spans:
                window.check_expiry(Argument("valid_until", True))
        if windows is not None and view.query.spec.own:
            # Aggregations with windows of their own keep these.
            points = replace(points, asked=tuple(window.label for window in spans))
            spans = tuple(dict.fromkeys([*spans, *self._own_windows(view)]))
        if view.reader is None:
            with self._state:
                # A call that failed meanwhile has rolled the state back.
                horizon = self._view_for("query()").horizon
                shard = self._state.require().shard
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
            view.horizon.check_cells(points.ticks, spans, self._last_folded)
        return answers.named(spans, view.query)

    def _own_windows(self, view: View) -> list[Window]:
        """The windows that aggregations have of their own, as queried."""
        spec = view.query.spec
        windows = {one.label: one for one in view.horizon.windows(None)}
        return [
            windows[label]
            for own, (_, agg) in zip(spec.own, spec.aggs, strict=True)
            for label in (() if agg.windows is None else own)
        ]

    def _latest_lost(self) -> int | None:
        """As `RowLog.latest_lost`, for a thread without the lock."""
        with self._state:
            return self._state.require().shard.log.latest_lost()

    def _last_folded(self) -> int | None:
        """As `RowLog.folded`, for a thread without the lock."""
        with self._state:
            return self._state.require().shard.log.folded


def holds_lists(keys: Any) -> bool:
    """Whether the keys are a dict with a list among its columns."""
    if isinstance(keys, dict):
        for values in keys.values():
            if isinstance(values, list):
                return True
    return False
