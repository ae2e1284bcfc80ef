"""`LastWindows`: per key, the last hopping window that was emitted, for `empty=True`.

The empty windows of a key between two non-empty ones are emitted with the second. So
the end of the first must be known, even when its rows are evicted.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.frames.base import empty_table
from slidewise.keyed.columns import LAST, TIME
from slidewise.keyed.formats import checked_ints
from slidewise.keyed.index import Index
from slidewise.keyed.page_store import Pages
from slidewise.keyed.query import KeyedQuery

__all__ = ["LastWindows"]


class LastWindows:
    """The last emitted window of each key.

    Its stop is in `TIME`, the time of the latest row in `LAST`.

    Changes are written as pages of their own, which are merged while one is less than
    twice as large as the next. If these have more rows than there are keys, all rows
    are written as one page.
    """

    def __init__(
        self, query: KeyedQuery, pages: Pages, state: Sequence[Sequence[int]] = ()
    ) -> None:
        self._query, self._pages = query, pages
        self._parts = [(page, count) for page, count in state]
        for page, count in self._parts:
            checked_ints(page, count)
        self._rows: pa.Table | None = None

    def record(self) -> list[tuple[int, int]]:
        """Returns the pages and their numbers of rows, for JSON."""
        return [*self._parts]

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages."""
        return (page for page, _ in self._parts)

    def check(self, pages: Collection[int] | None = None) -> None:
        """Checks the pages against the directory, as for the log.

        Raises:
            SnapshotError: If one is missing or damaged, or holds other rows.
        """
        for page, count in self._parts:
            if pages is None or page in pages:
                self._pages.check(page, self._query.ended, count)

    @property
    def rows(self) -> pa.Table:
        """A row per key."""
        if self._rows is None:
            self._rows = self._read(self.page_numbers)
        return self._rows

    def _latest(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The last row of each key."""
        rows = pa.concat_tables(tables[::-1]).combine_chunks()
        return rows.take(self._query.distinct(rows)).combine_chunks()

    def update(self, rows: pa.Table) -> None:
        """Replaces the windows of some keys; each key occurs once."""
        if not len(rows):
            return
        self._rows = self._latest([self.rows, rows])
        self._parts.append((self._pages.add(rows), len(rows)))
        if sum(count for _, count in self._parts) > 2 * len(self._rows):
            self._rewrite()
        while len(self._parts) > 1 and self._parts[-2][1] < 2 * self._parts[-1][1]:
            pages = [page for page, _ in self._parts[-2:]]
            both = self._read(pages)
            for page in pages:
                self._pages.remove(page)
            self._parts[-2:] = [(self._pages.add(both), len(both))]

    def _read(self, pages: Iterable[int]) -> pa.Table:
        """The last row of each key in some pages."""
        schema = self._query.ended
        tables = [self._pages.read(page, schema) for page in pages]
        return self._latest([empty_table(schema), *tables])

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
        self.update(rows.set_column(at, LAST, times).filter(other).combine_chunks())

    def _rewrite(self) -> None:
        for page, _ in self._parts:
            self._pages.remove(page)
        rows = self.rows
        self._parts = [(self._pages.add(rows), len(rows))] if len(rows) else []

    def drop_idle(self, idle: pa.Table, index: Index, until: int) -> None:
        """Drops keys that are idle, or have no rows after a time."""
        if not self._parts:
            return
        by, rows = list(self._query.spec.by), self.rows
        codes = self._query.codes([rows.select(by), idle.select(by)])
        repeated = pc.is_in(codes.slice(0, len(rows)), codes.slice(len(rows)))
        absent = pc.is_null(index.last_times(rows))
        old = pc.and_(pc.less_equal(rows[LAST], until), absent)
        self._rows = rows.filter(pc.invert(pc.or_(repeated, old))).combine_chunks()
        self._rewrite()
