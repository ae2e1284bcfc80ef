"""`Pending`: the rows that wait for the watermark."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.frames.base import one_array
from slidewise.keyed.columns import NUMBER, TIME, one_batch

__all__ = ["Pending", "without"]

# This number of tables are joined, if they have no more rows than this.
_JOINED_TABLES, _JOINED_ROWS = 8, 4096


@dataclass(frozen=True, slots=True)
class _Rows:
    """Pending rows, in order of their numbers.

    Attributes:
        table: The rows; with their numbers if the index has them.
        earliest: The time of the earliest, in ticks.
        latest: The time of the latest, in ticks.
        after: Rows at or before this time are pending no longer; None if all are.
    """

    table: pa.Table
    earliest: int
    latest: int
    after: int | None = None

    @property
    def pending(self) -> pa.Table:
        """The rows that are still pending."""
        if self.after is None:
            return self.table
        return self.table.filter(pc.greater(self.table[TIME], self.after))

    def since(self, earliest: int, after: int) -> "_Rows":
        """The rows that are pending after a time, given the time of the earliest.

        They stay in the memory of their batch while they are at least half of it.
        """
        rest = replace(self, earliest=earliest, after=after)
        waits = pc.greater(self.table[TIME], after)
        if 2 * pc.sum(waits).as_py() >= len(self.table):
            return rest
        return replace(
            rest, table=self.table.filter(waits).combine_chunks(), after=None
        )


class Pending:
    """The rows that wait for the watermark, as tables in order of their numbers."""

    def __init__(self) -> None:
        self._held: list[_Rows] = []

    @property
    def earliest(self) -> int | None:
        """The time of the earliest row; None without rows."""
        return min((rows.earliest for rows in self._held), default=None)

    @property
    def tables(self) -> Iterator[pa.Table]:
        """The tables in memory."""
        return (rows.table for rows in self._held)

    def __len__(self) -> int:
        """The number of tables."""
        return len(self._held)

    def add(
        self, rows: pa.Table, earliest: int | None = None, latest: int | None = None
    ) -> None:
        """Adds rows, with the earliest and latest of their times if these are known."""
        if not len(rows):
            return
        if earliest is None or latest is None:
            ends = pc.min_max(rows[TIME])
            earliest, latest = ends["min"].as_py(), ends["max"].as_py()
        self._held.append(_Rows(rows, earliest, latest))
        self._join()

    def _join(self) -> None:
        """Joins the last tables, if they are several of about one size.

        A table of one row takes as much memory as a hundred rows, and each advance of
        the watermark looks at all tables.
        """
        while len(self._held) >= _JOINED_TABLES:
            last = self._held[-_JOINED_TABLES:]
            sizes = [len(rows.table) for rows in last]
            if max(sizes) >= len(last) * sizes[-1] or sum(sizes) > _JOINED_ROWS:
                return
            table = pa.concat_tables([rows.pending for rows in last]).combine_chunks()
            earliest = min(rows.earliest for rows in last)
            latest = max(rows.latest for rows in last)
            self._held[-len(last) :] = [_Rows(table, earliest, latest)]

    def take(self) -> list[pa.Table]:
        """Removes and returns all rows."""
        held, self._held = self._held, []
        return [rows.pending for rows in held]

    def take_due(self, watermark: int, *, ordered: bool = True) -> pa.Table | None:
        """Removes and returns the rows up to a watermark; None without such rows.

        They are sorted by time if `ordered`, otherwise in order of arrival.
        """
        due = [rows for rows in self._held if rows.earliest <= watermark]
        if not due:
            return None
        batches = [(one_batch(rows.table), rows.after) for rows in due]
        taken, earliest = _core.take_due(batches, watermark, ordered)
        first_of = dict(zip(map(id, due), earliest, strict=True))
        held, self._held = self._held, []
        for rows in held:
            if id(rows) not in first_of:
                self._held.append(rows)
                continue
            first = first_of[id(rows)]
            if first is not None:
                self._held.append(rows.since(first, watermark))
        return pa.Table.from_batches([pa.record_batch(taken)])


def without(rows: pa.Table, removed: pa.Table) -> pa.Table:
    """The rows that are not among removed ones, by their numbers."""
    if not len(removed):
        return rows
    among = _core.are_among(one_array(rows[NUMBER]), one_array(removed[NUMBER]))
    return rows.filter(pc.invert(pa.array(among))).combine_chunks()
