"""`Ids`: the ids of the rows of a stream, by `unique_by=`.

Of rows with equal keys and ids, the first to arrive counts. Its id is remembered until
the watermark has passed its time by the horizon, so the memory is bounded. The bound is
the time alone, not what was evicted: the same batches have the same duplicates after a
snapshot, and in however many shards their keys are.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.frames.base import empty_table, one_array
from slidewise.keyed.columns import EARLIEST, TIME, later_than, order_of, repeated
from slidewise.keyed.query import KeyedQuery
from slidewise.table.arrays import row_numbers

__all__ = ["Ids"]

# Ids are forgotten when there are twice as many as after the last time, and these more.
_SPARE = 4096


class Ids:
    """The ids of the rows of some keys, each with the time of its row.

    They are made from the log of rows, which has the columns of ids, and follow it.

    Args:
        query: The query, whose Spec has `unique_by`.
        horizon: How long an id is remembered behind the watermark, in ticks.
        ordered: Whether the rows of a batch are in order of arrival. Otherwise those
            without `arrival=` are taken by time and `then_by`.
    """

    def __init__(self, query: KeyedQuery, horizon: int, *, ordered: bool) -> None:
        spec = query.spec
        self._horizon = horizon
        self._ids = [TIME if name == spec.on else name for name in spec.unique_by]
        self._names = [*dict.fromkeys([*spec.by, *self._ids])]
        order = [*spec.arrivals, *(() if ordered else (TIME, *query.then_by))]
        self._order = [TIME if name == spec.on else name for name in order]
        keys = self._columns(empty_table(query.stored_schema))
        self._store = _core.KeyedStore([], keys, [], [], False)
        self._kept = 0

    def counting(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        """The rows of a batch that count, in their order."""
        if not len(rows):
            return rows
        columns = self._columns(rows)
        numbers = places = row_numbers(len(rows))
        ordered = columns
        if self._order:
            places = order_of(rows, self._order).cast(numbers.type)
            ordered = [column.take(places) for column in columns]
        found, _ = _core.distinct_keys(ordered, repeated(0, len(rows)))
        last = pa.array(self._store.last_times(columns))
        held = last.is_valid()
        if watermark is not None:
            held = pc.fill_null(later_than(last, watermark - self._horizon), False)
        if len(found) == len(rows) and not pc.any(held).as_py():
            return rows
        is_first = pc.is_in(numbers, places.take(pa.array(found)))
        counts = pc.and_not(is_first, held)
        for name in self._ids:
            counts = pc.or_(counts, one_array(rows[name]).is_null())
        return rows.filter(counts).combine_chunks()

    def add(self, rows: pa.Table) -> None:
        """Remembers the ids of rows of the state; a row without one has none."""
        for name in self._ids:
            if rows[name].null_count:
                rows = rows.filter(rows[name].is_valid())
        ticks = one_array(rows[TIME])
        self._store.insert(self._columns(rows), ticks, [], None, None)

    def forget(self, watermark: int | None) -> None:
        """Forgets ids behind the horizon, if there are many."""
        if watermark is not None and len(self._store) > 2 * self._kept + _SPARE:
            self._store.evict(max(watermark - self._horizon, EARLIEST))
            self._kept = len(self._store)

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return int(self._store.nbytes)

    def _columns(self, rows: pa.Table) -> list[Any]:
        return [one_array(rows[name]) for name in self._names]
