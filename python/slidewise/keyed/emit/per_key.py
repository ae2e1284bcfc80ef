"""The results per key, for `emit="update"` and "change".

Both emit, per batch, the changed keys at their latest rows. "change" also emits a key
when the watermark passes a time at which one of its rows leaves a window, or enters one
that ends before it (`offset=`, `closed="left"`). So a table with the last result of
each key has the windows at the watermark or later.

An accepted late row (`late_rows="correct"`) is like a new row: with "change" its key is
emitted at the watermark, or at its latest row if that is later, if a window that ends
then holds the late row. Earlier results of the key have been replaced and are not
emitted again.

With `changed=True` a result that equals the last one of its key is left out. That is
the one at the key's latest row, or at the watermark if that is later, so it is computed
again and not stored. A key without rows in its windows has none. With
`valid_until=True` the times at which results change count as results.
"""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.caching import cached_property
from slidewise.keyed.answer import FromEntries, FromRows
from slidewise.keyed.columns import TIME, Ends, later_than
from slidewise.keyed.emit.emitter import Emitter
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.points import Points
from slidewise.keyed.reader import RowReader
from slidewise.keyed.shard import Shard
from slidewise.spec.windows.base import Window

__all__ = ["PerKey"]


class PerKey(Emitter):
    """Emits a result per changed key, for `emit="update"` and "change"."""

    def __init__(self, shard: Shard, answer: FromEntries | FromRows) -> None:
        self._shard, self._answer, self._query = shard, answer, shard.query
        self._changes = shard.query.emit == "change"
        # For distances only, which do not depend on what was evicted.
        self._horizon = Horizon(shard.query, shard.retention, None)

    @cached_property
    def _timed(self) -> tuple[Window, ...]:
        """The windows of time."""
        return tuple(window for window in self._shard.windows if not window.rows)

    @cached_property
    def _reach(self) -> int:
        """The distance from a row's time to the first query that has it no more."""
        horizon, windows = self._horizon, self._shard.windows
        distances = [(horizon.leaving(w), horizon.entering(w)) for w in windows]
        return max(map(max, distances))

    @property
    def due(self) -> int | None:
        """The least watermark at which a result changes, or None."""
        if not self._changes:
            return None
        _, changes = self._expiring()
        first: int | None = pc.min(changes).as_py()
        return first

    def ingest(
        self,
        rows: pa.Table,
        watermark: int | None,
        ends: Ends | None,  # noqa: ARG002
    ) -> pa.Table | None:
        """Inserts rows; gives a result per key with new or deleted ones."""
        query, shard, before = self._query, self._shard, None
        if query.corrects or query.changed:
            before = self._last_results(rows, watermark)
        last = None
        if before is not None and query.changed:
            last = self._answered(before)
        rows, deleted = shard.apply_deletes(rows)
        shard.append(query.sort_batch(rows), pending=False)
        shard.apply()
        results = self._updates(rows, deleted, watermark)
        if last is not None:
            results = self._changed(results, last)
        if before is None or not query.corrects:
            return results
        return query.marked(results, self._are_updates(results, before))

    def advance(self, watermark: int) -> pa.Table | None:
        """With "change", the results of keys whose windows a row left or entered."""
        if not self._changes:
            return None
        keys, changes = self._expiring()
        changed = keys.filter(pc.less_equal(changes, watermark)).combine_chunks()
        if not len(changed):
            return None
        results = self._answered(_with_least_time(changed, watermark))
        if not self._query.changed:
            return results
        return self._changed(results, self._answered(changed))

    def _changed(self, results: pa.Table, last: pa.Table) -> pa.Table:
        """The results that differ from the last ones of their keys."""
        names = [*self._query.spec.by, *self._query.computed]
        tables = [results.select(names), last.select(names)]
        # Custom aggregations may give nulls of another type.
        both = pa.concat_tables(tables, promote_options="permissive")
        codes = self._query.codes([both])
        new, known = codes.slice(0, len(results)), codes.slice(len(results))
        return results.filter(pc.invert(pc.is_in(new, known))).combine_chunks()

    def _updates(
        self, rows: pa.Table, deleted: pa.Table, watermark: int | None
    ) -> pa.Table:
        """A row per key with new or deleted rows: the window at its latest row.

        Keys whose latest row is behind the watermark are left out, since rows of their
        windows may have been evicted; with "change" these have the window at the
        watermark.
        """
        query = self._query
        names = [*query.spec.by, TIME]
        rows = pa.concat_tables([rows.select(names), deleted.select(names)])
        if self._changes:
            changed = _with_least_time(self._latest(rows, held=False), watermark)
            if query.corrects and not query.rows:
                newest = query.latest(rows).column(TIME)
                lag = pc.subtract(changed.column(TIME), newest)
                changed = changed.filter(pc.less(lag, self._reach)).combine_chunks()
            return self._answered(changed)
        changed = self._latest(rows)
        if watermark is not None:
            floor = watermark - query.allowance
            changed = changed.filter(later_than(changed[TIME], floor)).combine_chunks()
        return self._answered(changed)

    def _answered(self, keys: pa.Table) -> pa.Table:
        """The results of keys at the times in `TIME`."""
        query = self._query
        points = query.query_points(keys)
        if not query.valid_until:
            return query.answered(points, self._answer.at(keys))
        reader = self._answer.reader() or RowReader(self._shard)
        asked = Points(keys.select(list(query.spec.by)), query.ticks(keys), None)
        spans = self._horizon.windows(None)
        found = reader.answer(asked, spans, self._horizon, expiry=True)
        results = found.named(spans, query).values()
        return query.answered(points, [result.array for result in results])

    def _latest(self, rows: pa.Table, *, held: bool = True) -> pa.Table:
        """The keys of rows, each with its latest time in `TIME`.

        Args:
            rows: Rows, with their times in `TIME`.
            held: Whether to leave out keys without rows in the state; otherwise they
                get their latest time in `rows`.
        """
        keys = self._query.latest(rows).combine_chunks()
        times = self._shard.index.last_times(keys)
        if not held:
            times = pc.coalesce(times, keys.column(TIME)).combine_chunks()
        keys = keys.set_column(keys.column_names.index(TIME), TIME, times)
        return keys.filter(pc.is_valid(times)).combine_chunks()

    def _last_results(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        """The keys of rows that had a result, with the time of the last one in `TIME`.

        With "change" only keys with a row in a window at that time; windows of rows
        always have one.
        """
        keys = self._latest(rows)
        if not self._changes or watermark is None:
            return keys
        if not self._query.rows:
            near = later_than(keys[TIME], watermark - self._reach)
            keys = keys.filter(near).combine_chunks()
        return _with_least_time(keys, watermark)

    def _are_updates(self, results: pa.Table, before: pa.Table) -> pa.Array:
        """A mask of the results that update one of their key at this time or later."""
        by, ticks = list(self._query.spec.by), self._query.ticks(results)
        codes = self._query.codes([results.select(by), before.select(by)])
        known = codes.slice(len(results))
        place = pc.index_in(codes.slice(0, len(results)), known)
        last = before[TIME].combine_chunks().take(place)
        return pc.fill_null(pc.greater_equal(last, ticks), False)

    def _expiring(self) -> tuple[pa.Table, pa.Array]:
        """Keys with the times of their last results, and when these change by expiry.

        The time of a last result is the latest row, or the watermark if that is later.
        """
        shard, horizon = self._shard, self._horizon
        keys = shard.index.keys()
        if shard.fired is not None:
            # Other keys have no row in a window.
            near = later_than(keys[TIME], shard.fired - self._reach)
            keys = _with_least_time(keys.filter(near).combine_chunks(), shard.fired)
        ticks = keys.column(TIME).combine_chunks()
        first = pa.nulls(len(keys), pa.int64())
        if len(keys):
            earliest = []
            if self._timed:
                earliest = shard.index.first_times(keys, ticks, self._timed)
            for window, times in zip(self._timed, earliest, strict=True):
                first = pc.min_element_wise(first, horizon.expiry(times, window))
            for delay in {horizon.entering(window) for window in shard.windows} - {0}:
                entering = shard.index.first_since(keys, ticks, delay)
                first = pc.min_element_wise(first, horizon.after(entering, delay))
        changes = pc.is_valid(first)
        return keys.filter(changes).combine_chunks(), first.filter(changes)


def _with_least_time(keys: pa.Table, time: int | None) -> pa.Table:
    """Keys with their times, each raised to a least time."""
    if time is None:
        return keys
    column = pc.max_element_wise(keys.column(TIME), time)
    return keys.set_column(keys.column_names.index(TIME), TIME, column)
