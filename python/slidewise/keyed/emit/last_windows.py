"""`LastWindows`: per key, the last hopping window that was emitted, for `empty=True`.

The empty windows of a key between two non-empty ones are emitted with the second. So
the end of the first must be known, even when its rows are evicted.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed.columns import LAST, TIME
from slidewise.keyed.index import Index
from slidewise.keyed.page_store import Pages
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.tiers import Tiers

__all__ = ["LastWindows"]


class LastWindows(Tiers):
    """The last emitted window of each key.

    Its stop is in `TIME`, the time of the latest row in `LAST`. Added windows replace
    those of their keys.
    """

    def __init__(
        self, query: KeyedQuery, pages: Pages, state: Sequence[Sequence[int]] = ()
    ) -> None:
        self._query = query
        super().__init__(pages, query.ended, state)

    def _merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The last row of each key."""
        rows = pa.concat_tables(tables[::-1]).combine_chunks()
        return rows.take(self._query.distinct(rows)).combine_chunks()

    def note(self, keys: pa.Table) -> None:
        """Notes the latest times of keys whose rows are about to leave the index.

        Such a row may lie after the last window, in a gap between windows.
        """
        by, rows = list(self._query.spec.by), self.rows
        codes = self._query.codes([rows.select(by), keys.select(by)])
        place = pc.index_in(codes.slice(0, len(rows)), codes.slice(len(rows)))
        times = keys.column(TIME).combine_chunks().take(place)
        other = pc.fill_null(pc.not_equal(times, rows[LAST]), False)
        at = rows.column_names.index(LAST)
        self.add(rows.set_column(at, LAST, times).filter(other).combine_chunks())

    def drop_idle(self, idle: pa.Table, index: Index, until: int) -> None:
        """Drops keys that are idle, or have no rows after a time."""
        if not self._parts:
            return
        by, rows = list(self._query.spec.by), self.rows
        codes = self._query.codes([rows.select(by), idle.select(by)])
        repeated = pc.is_in(codes.slice(0, len(rows)), codes.slice(len(rows)))
        absent = pc.is_null(index.last_times(rows))
        old = pc.and_(pc.less_equal(rows[LAST], until), absent)
        self.rewrite(rows.filter(pc.invert(pc.or_(repeated, old))).combine_chunks())
