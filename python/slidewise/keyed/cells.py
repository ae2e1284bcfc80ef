"""`CellLog`: the entries of folded cells ([cell_grid.py](cell_grid.py)), in pages."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SnapshotError
from slidewise.keyed.columns import ENTRY, TIME, bytes_of, later_than
from slidewise.keyed.formats import checked_ints
from slidewise.keyed.page_store import Pages

__all__ = ["CellLog"]

# Bytes of a page of many entries.
_PAGE = 1 << 22
# A page is rewritten when one of this number of its entries has left.
_DEAD = 8


class CellPage(NamedTuple):
    """A page of entries; in JSON a list.

    Attributes:
        page: The page.
        rows: The number of its entries.
        earliest: The time of the earliest entry, in ticks.
        latest: The time of the latest entry, in ticks.
        nbytes: Its bytes in memory, about.
    """

    page: int
    rows: int
    earliest: int
    latest: int
    nbytes: int


class CellLog:
    """The folded entries of a stream, in pages in order of time.

    A page is merged with the one before it while that is less than twice as large, up
    to 4 MB.

    Args:
        pages: The pages.
        schema: The columns of entries: keys, times and bytes.
        state: The result of `record`.

    Raises:
        SnapshotError: If the state is not consistent; or an error of `BROKEN`.
    """

    def __init__(
        self, pages: Pages, schema: pa.Schema, state: Iterable[Iterable[int]] = ()
    ) -> None:
        self._pages, self.schema = pages, schema
        self._parts = [CellPage(*fields) for fields in state]
        for part in self._parts:
            checked_ints(*part)

    def record(self) -> list[CellPage]:
        """The pages, for JSON."""
        return [*self._parts]

    def __len__(self) -> int:
        """The number of entries, including those behind the horizon."""
        return sum(part.rows for part in self._parts)

    @property
    def nbytes(self) -> int:
        """The bytes of the pages, about."""
        return sum(part.nbytes for part in self._parts)

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages."""
        return (part.page for part in self._parts)

    def check(self, pages: Collection[int] | None = None) -> None:
        """Checks the pages, or some of them, against the directory.

        Raises:
            SnapshotError: If one is missing or damaged, or holds other entries.
        """
        for part in self._parts:
            if pages is not None and part.page not in pages:
                continue
            self._pages.check(part.page, self.schema, part.rows)
            entries = self._pages.read(part.page, self.schema)
            ends = pc.min_max(entries[TIME])
            same = (ends["min"].as_py(), ends["max"].as_py()) == (
                part.earliest,
                part.latest,
            )
            if not same or entries[ENTRY].null_count:
                raise SnapshotError(
                    f"page {part.page} differs from the directory of the log"
                )

    def entries(self, until: int | None) -> Iterator[pa.Table]:
        """Yields the entries of each page that are later than a time."""
        return (self._later(part, until) for part in self._parts)

    def _later(self, part: CellPage, until: int | None) -> pa.Table:
        entries = self._pages.read(part.page, self.schema)
        if until is None or part.earliest > until:
            return entries
        return entries.filter(later_than(entries[TIME], until)).combine_chunks()

    def add(self, entries: pa.Table, until: int | None) -> None:
        """Adds entries that are later than all others; those up to `until` leave."""
        if not len(entries):
            return
        most = max(1, len(entries) * _PAGE // max(1, bytes_of(entries)))
        for start in range(0, len(entries), most):
            self._parts.append(self._stored(entries.slice(start, most)))
            self._merge(until)

    def _merge(self, until: int | None) -> None:
        while len(self._parts) > 1:
            *_, before, last = self._parts
            small = before.nbytes < 2 * last.nbytes
            if not small or before.nbytes + last.nbytes > _PAGE:
                return
            both = pa.concat_tables(
                [self._later(part, until) for part in (before, last)]
            )
            self._pages.remove(before.page)
            self._pages.remove(last.page)
            self._parts[-2:] = [self._stored(both)]

    def _stored(self, entries: pa.Table) -> CellPage:
        entries = entries.cast(self.schema).combine_chunks()
        ends = pc.min_max(entries[TIME])
        earliest, latest = ends["min"].as_py(), ends["max"].as_py()
        page = self._pages.add(entries)
        return CellPage(page, len(entries), earliest, latest, bytes_of(entries))

    def evict(self, until: int) -> int | None:
        """Drops entries up to a time; gives a time up to which some have left, or None.

        Pages with a few of them, about, are kept as they are.
        """
        lost, parts, self._parts = None, self._parts, []
        for part in parts:
            if _DEAD * (until - part.earliest) < part.latest - part.earliest:
                self._parts.append(part)
                continue
            lost = until
            self._rewrite(part, self._later(part, until))
        return lost

    def holds_until(self, until: int) -> bool:
        """Whether it holds entries up to a time."""
        return any(part.earliest <= until for part in self._parts)

    def filter(self, is_alive: Callable[[pa.Table], pa.Array]) -> None:
        """Drops the entries that a mask does not have."""
        parts, self._parts = self._parts, []
        for part in parts:
            entries = self._pages.read(part.page, self.schema)
            alive = entries.filter(is_alive(entries))
            if len(alive) == len(entries):
                self._parts.append(part)
            else:
                self._rewrite(part, alive)

    def _rewrite(self, part: CellPage, entries: pa.Table) -> None:
        """Replaces a page by one of some of its entries, if any."""
        self._pages.remove(part.page)
        if len(entries):
            self._parts.append(self._stored(entries))
