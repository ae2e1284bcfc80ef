"""`Tiers`: rows in pages of which each is at least twice as large as the next."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa

from slidewise.frames.base import empty_table
from slidewise.keyed.formats import checked_ints
from slidewise.keyed.page_store import Pages

__all__ = ["Tiers"]


class Tiers:
    """Rows in pages, as in a log-structured merge tree with a factor of two.

    Added rows are a page of their own. Pages are merged while one is less than twice as
    large as the next, and all of them when less than half of their rows still count.

    Args:
        pages: The pages.
        schema: The columns of the rows.
        state: The result of `record`.

    Raises:
        SnapshotError: If the state is not consistent; or an error of `BROKEN`.
    """

    def __init__(
        self, pages: Pages, schema: pa.Schema, state: Sequence[Sequence[int]] = ()
    ) -> None:
        self._pages, self.schema = pages, schema
        # The pages with their numbers of rows.
        self._parts = [(page, count) for page, count in state]
        for page, count in self._parts:
            checked_ints(page, count)
        self._rows: pa.Table | None = None

    def record(self) -> list[tuple[int, int]]:
        """The pages and their numbers of rows, for JSON."""
        return [*self._parts]

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages."""
        return (page for page, _ in self._parts)

    def check(self, pages: Collection[int] | None = None) -> None:
        """Checks the pages, or some of them, against the directory.

        Raises:
            SnapshotError: If one is missing or damaged, or holds other rows.
        """
        for page, count in self._parts:
            if pages is None or page in pages:
                self._pages.check(page, self.schema, count)

    @property
    def rows(self) -> pa.Table:
        """The rows of all pages, merged."""
        if self._rows is None:
            self._rows = self._read(self.page_numbers)
        return self._rows

    def add(self, rows: pa.Table) -> None:
        """Adds rows, in memory that does not change."""
        if not len(rows):
            return
        self._rows = self._merged([self.rows, rows])
        self._replace(0, rows)
        if sum(count for _, count in self._parts) > 2 * len(self._rows):
            self.rewrite(self._rows)
        while len(self._parts) > 1 and self._parts[-2][1] < 2 * self._parts[-1][1]:
            self._replace(2, self._read(page for page, _ in self._parts[-2:]))

    def rewrite(self, rows: pa.Table) -> None:
        """Replaces all rows by these."""
        self._rows = rows
        self._replace(len(self._parts), rows)

    def _merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of some tables, of which later ones were added later."""
        return pa.concat_tables(tables)

    def _read(self, pages: Iterable[int]) -> pa.Table:
        tables = [self._pages.read(page, self.schema) for page in pages]
        return self._merged([empty_table(self.schema), *tables])

    def _replace(self, count: int, rows: pa.Table) -> None:
        """Replaces the last pages by a page of these rows."""
        start = len(self._parts) - count
        for page, _ in self._parts[start:]:
            self._pages.remove(page)
        written = [(self._pages.add(rows), len(rows))] if len(rows) else []
        self._parts[start:] = written
