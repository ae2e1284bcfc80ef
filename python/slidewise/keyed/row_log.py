"""`RowLog`: the rows of a stream in order of arrival, in pages that never change.

Each row has a number. A batch is appended as one or several *segments*, pages of up to
`SEGMENT` bytes. As in a log-structured merge tree, sizes grow by a factor of `FAN`. The
last segments are merged when they are together as large as one of the next size, and
are at least half of `FAN`: a merge of two large ones would write both again to save one
page. So a row is written once per size, O(log n) times, and a batch writes in
proportion to its rows. Rows that are behind the horizon, or were deleted, are left out
when their segment is merged; a segment of only such rows is dropped.

```text
number   0          64         128  136 144 152
         | segment  | segment  |    |   |   |  new batches
```

The rows of cells that were folded are in no segment: the log has their entries instead
([cells.py](cells.py)).

Rows that wait for the watermark are in segments of all columns. When no row of a
segment waits any more, it is rewritten without the columns that no window needs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.errors import SnapshotError
from slidewise.frames.base import empty_table
from slidewise.keyed.cells import CellLog
from slidewise.keyed.columns import NUMBER, TIME, Ends, bytes_of, later_than
from slidewise.keyed.formats import checked_ints
from slidewise.keyed.page_store import Pages
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.tiers import Tiers
from slidewise.table.arrays import row_numbers

__all__ = ["FAN", "SEGMENT", "RowLog"]

# Bytes of a segment of a large batch; segments of a quarter of this are not merged.
SEGMENT = 1 << 22
# The factor between sizes.
FAN = 8
# A log of up to this number of rows is not rewritten to remove dead rows.
_MIN_ROWS = 4096
# Cells are folded when they have more rows than this, since each time has a fixed cost,
# and than this share of the entries, since those of a key with new cells are moved.
_MIN_FOLDED, _SHARE = 1024, 8
_NUMBERS = pa.field(NUMBER, pa.int64())

# Returns a mask of rows, which have their numbers.
Mask = Callable[[pa.Table], pa.Array]


class Segment(NamedTuple):
    """A range of rows of the log, in order of their numbers; in JSON a list.

    Attributes:
        page: Its page.
        first: The number of its first row.
        end: The number of its last row plus one.
        rows: The number of its rows.
        earliest: The time of its earliest row, in ticks.
        latest: The time of its latest row, in ticks.
        nbytes: The bytes of its page.
        pending: Whether it has all columns, since rows may wait for the watermark.
    """

    page: int
    first: int
    end: int
    rows: int
    earliest: int
    latest: int
    nbytes: int
    pending: bool

    @property
    def is_dense(self) -> bool:
        """Whether its numbers have no gaps: then no column stores them."""
        return self.end - self.first == self.rows


class RowLog:
    """The rows of a stream.

    Args:
        query: The query.
        pages: The pages.
        state: The result of `record`; None for an empty log.

    Raises:
        SnapshotError: If the state is not consistent; or an error of `BROKEN`.
    """

    def __init__(
        self, query: KeyedQuery, pages: Pages, state: dict[str, Any] | None = None
    ) -> None:
        self._query, self._pages = query, pages
        # The bits of a row, pending or not; 0 if a column has no fixed width.
        self._bits = [_bits(self._schema(pending=pending)) for pending in (False, True)]
        self.segments: list[Segment] = []
        # The number of the next row.
        self.next_row = 0
        # The time up to which rows may be evicted; None before the first eviction.
        self.until: int | None = None
        # The latest time of the rows that left, other than deleted ones, or a later
        # one; None if none left.
        self.lost: int | None = None
        # How often rows left, other than behind the horizon or by a recorded deletion.
        self.generation = 0
        names = [TIME, *query.spec.by]
        schema = pa.schema([*map(query.stored_schema.field, names), _NUMBERS])
        deletions = () if state is None else state["deletions"]
        # The keys, times and numbers of deleted rows that may still be stored.
        self.deletions = Tiers(pages, schema, deletions)
        # The last tick of the cells that were folded; None before the first.
        self.folded: int | None = None
        # A state that was made before there were cells has none.
        cells = () if state is None else state.get("cells", ())
        self.cells = CellLog(pages, query.folded_schema, cells)
        # The number of rows after the last compaction.
        self._compacted = 0
        if state is not None:
            self._read(state)

    def record(self) -> dict[str, Any]:
        """The state besides the pages, for JSON."""
        return {
            "next": self.next_row,
            "until": self.until,
            "lost": self.lost,
            "generation": self.generation,
            "compacted": self._compacted,
            "segments": [*self.segments],
            "deletions": self.deletions.record(),
            "folded": self.folded,
            "cells": self.cells.record(),
        }

    def _read(self, state: dict[str, Any]) -> None:
        self.next_row, self.until = state["next"], state["until"]
        self.generation, self._compacted = state["generation"], state["compacted"]
        checked_ints(self.next_row, self.generation, self._compacted)
        self.lost, self.folded = state["lost"], state.get("folded")
        for time in (self.until, self.lost, self.folded):
            checked_ints(0 if time is None else time)
        self.segments = [Segment(*fields) for fields in state["segments"]]
        before = 0
        for segment in self.segments:
            *numbers, pending = segment
            checked_ints(*numbers)
            spans = before <= segment.first < segment.end <= self.next_row
            if not spans or not 0 < segment.rows <= segment.end - segment.first:
                raise SnapshotError(f"segment {segment.page} overlaps another")
            if type(pending) is not bool:
                raise TypeError(f"{pending!r} is not a bool")
            before = segment.end

    def check(self, pages: Collection[int] | None = None) -> None:
        """Checks the pages, or some of them, against the directory.

        Raises:
            SnapshotError: If one is missing or damaged, or holds other rows.
        """
        for segment in self.segments:
            if pages is None or segment.page in pages:
                _check(segment, self._stored_rows(segment))
        self.deletions.check(pages)
        self.cells.check(pages)

    def __len__(self) -> int:
        """The number of rows, including dead ones that are still stored."""
        return sum(segment.rows for segment in self.segments)

    @property
    def nbytes(self) -> int:
        """The bytes of the pages of rows, about."""
        return sum(segment.nbytes for segment in self.segments)

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages of the log."""
        yield from (segment.page for segment in self.segments)
        yield from self.deletions.page_numbers
        yield from self.cells.page_numbers

    def append(
        self, rows: pa.Table, *, pending: bool, ends: Ends | None = None
    ) -> list[tuple[Segment, pa.Table]]:
        """Appends rows in the columns of pending rows.

        Args:
            rows: The rows, in memory that does not change.
            pending: Whether they wait for the watermark.
            ends: Their earliest and latest times, if these are known.

        Returns:
            The segments that they make, in order, with the stored rows of each, in the
            memory of its page.
        """
        first = self.next_row
        self.next_row += len(rows)
        rows, stored = self._select(rows, pending=pending), []
        nbytes = self._fixed_size(rows, pending=pending) or bytes_of(rows)
        most = max(1, len(rows) * SEGMENT // max(1, nbytes))
        for start in range(0, len(rows), most):
            part = rows.slice(start, most) if len(rows) > most else rows
            known = ends if part is rows else None
            segment = self._stored(part, first + start, pending=pending, ends=known)
            stored.append((segment, self._stored_rows(segment)))
        self.segments += [segment for segment, _ in stored]
        self._merge()
        return stored

    def _select(self, rows: pa.Table, *, pending: bool) -> pa.Table:
        schema = self._schema(pending=pending)
        names = [*schema.names, *([NUMBER] if NUMBER in rows.column_names else [])]
        return rows.select(names)

    def _schema(self, *, pending: bool) -> pa.Schema:
        return self._query.pending_schema if pending else self._query.stored_schema

    def _stored(
        self, rows: pa.Table, first: int, *, pending: bool, ends: Ends | None = None
    ) -> Segment:
        """Stores rows as a segment; numbers are stored only if they have gaps."""
        end = first + len(rows)
        if NUMBER in rows.column_names:
            first, end = rows[NUMBER][0].as_py(), rows[NUMBER][-1].as_py() + 1
            if end - first == len(rows):
                rows = rows.drop_columns(NUMBER)
        if ends is None:
            times = pc.min_max(rows[TIME])
            ends = times["min"].as_py(), times["max"].as_py()
        page, size = self._added(rows, pending=pending)
        return Segment(page, first, end, len(rows), *ends, size, pending)

    def _added(self, rows: pa.Table, *, pending: bool) -> tuple[int, int]:
        """Adds a page of rows; returns it and its approximate bytes.

        The bytes depend on the rows alone, not on their memory.
        """
        page = self._pages.add(rows)
        return page, self._fixed_size(rows, pending=pending) or self._pages.size(page)

    def _fixed_size(self, rows: pa.Table, *, pending: bool) -> int:
        """The bytes of rows whose columns all have a fixed width; 0 for others."""
        bits = self._bits[pending]
        numbers = 64 if NUMBER in rows.column_names else 0
        return len(rows) * (bits + numbers) // 8 if bits else 0

    def rows(self, segment: Segment) -> pa.Table:
        """The rows of a segment with their numbers."""
        rows = self._stored_rows(segment)
        if not segment.is_dense:
            return rows
        numbers = pc.add(row_numbers(len(rows)).cast(pa.int64()), segment.first)
        return rows.append_column(_NUMBERS, numbers)

    def _stored_rows(self, segment: Segment) -> pa.Table:
        """The rows of a segment as stored, with numbers only if they have gaps."""
        schema = self._schema(pending=segment.pending)
        if not segment.is_dense:
            schema = schema.append(_NUMBERS)
        return self._pages.read(segment.page, schema)

    def alive(self, since: int = 0) -> Iterator[tuple[pa.Table, bool]]:
        """Yields, per segment, the rows that are not dead, from the number `since` on.

        Also yields whether they may wait.
        """
        for segment in self.segments:
            if segment.end <= since:
                continue
            rows = self._without_dead(self.rows(segment))
            if segment.first < since:
                rows = rows.filter(pc.greater_equal(rows[NUMBER], since))
            yield rows.combine_chunks(), segment.pending

    def take(self, numbers: pa.Array) -> pa.Table:
        """The rows with some numbers, all of them alive, in the order of these."""
        schema = self._query.stored_schema
        ends = [segment.end for segment in self.segments]
        counts, by_segment, back = _core.split_numbers(numbers, ends)
        wanted, start, parts = pa.array(by_segment), 0, [empty_table(schema)]
        for segment, count in zip(self.segments, counts, strict=False):
            if not count:
                continue
            own = wanted.slice(start, count)
            held = self._stored_rows(segment)
            if segment.is_dense:
                places = pc.subtract(own, segment.first)
            else:
                places = pc.index_in(own, held[NUMBER].combine_chunks())
                places = places.drop_null()
            parts.append(held.select(schema.names).take(places))
            start += count
        rows = pa.concat_tables(parts).combine_chunks()
        assert len(rows) == len(numbers), (
            "the index has rows that the log does not have"
        )
        return rows if back is None else rows.take(pa.array(back)).combine_chunks()

    # Rows that leave.

    def delete(self, rows: pa.Table) -> None:
        """Deletes rows, with their numbers."""
        names = self.deletions.schema.names
        self.deletions.add(rows.select(names).combine_chunks())
        if len(self.deletions.rows) > len(self) // 4 + _MIN_ROWS:
            self.compact()

    def _without_dead(self, rows: pa.Table) -> pa.Table:
        """Drops the rows that are behind the horizon, were folded, or were deleted."""
        mask, passed = None, self.passed
        if passed is not None:
            mask = later_than(rows[TIME], passed)
        if len(self.deletions.rows):
            numbers = self.deletions.rows[NUMBER].combine_chunks()
            stays = pc.invert(pc.is_in(rows[NUMBER], numbers))
            mask = stays if mask is None else pc.and_(mask, stays)
        return rows if mask is None else rows.filter(mask).combine_chunks()

    @property
    def passed(self) -> int | None:
        """The time up to which rows leave segments; None if none do."""
        until = None if self._query.rows else self.until
        times = [time for time in (until, self.folded) if time is not None]
        return max(times, default=None)

    def is_worth_folding(self, until: int) -> bool:
        """Whether cells up to a time hold many rows, about, compared with entries."""
        passed, rows = self.passed, 0
        if passed is not None and until <= passed:
            return False
        for segment in self.segments:
            since = segment.earliest - 1
            since = since if passed is None else max(since, passed)
            span = max(0, min(until, segment.latest) - since)
            rows += segment.rows * span // (segment.latest - segment.earliest + 1)
        return rows > max(_MIN_FOLDED, len(self.cells) // _SHARE)

    def fold(self, until: int, entries: pa.Table) -> None:
        """Replaces the rows of cells up to a time by the entries they fold into."""
        self.folded = until
        self.cells.add(entries, self.until)
        remaining: list[Segment] = []
        for segment in self.segments:
            if segment.latest <= until:
                self._pages.remove(segment.page)
                continue
            kept = [segment]
            if segment.earliest <= until:
                rows = self._without_dead(self.rows(segment))
                if 2 * len(rows) <= segment.rows:
                    kept = [*self._replaced(kept, rows)]
            remaining += kept
        self.segments = remaining

    def evict(self, until: int) -> None:
        """Drops segments whose rows are all at or before a time.

        Other segments lose such rows when they are merged, or the log is compacted.
        With windows of `rows(n)`, only `compact` drops rows.
        """
        self.until = until if self.until is None else max(until, self.until)
        if self._query.rows:
            if any(segment.earliest <= self.until for segment in self.segments):
                self.lose(self.until)
            return
        remaining = []
        for segment in self.segments:
            if segment.latest <= self.until:
                self.lose(segment.latest)
                self._pages.remove(segment.page)
            else:
                remaining.append(segment)
        self.segments = remaining
        lost = self.cells.evict(self.until)
        if lost is not None:
            self.lose(lost)

    def lose(self, time: int) -> None:
        """Records that rows up to a time, other than deleted ones, have left."""
        self.lost = time if self.lost is None else max(time, self.lost)

    def latest_lost(self) -> int | None:
        """The latest time of rows that left, or may leave; None without such rows.

        Cost: it reads the segments with rows on both sides of the bound.
        """
        lost = self.lost
        for segment in self.segments:
            if self.until is not None and segment.earliest <= self.until:
                dead = self._latest_expired(self._stored_rows(segment))
                lost = dead if lost is None else max(dead, lost)
        if self.until is not None and self.cells.holds_until(self.until):
            lost = self.until if lost is None else max(self.until, lost)
        return lost

    def _latest_expired(self, rows: pa.Table) -> int:
        """The time of the latest of some rows at or before the bound."""
        passed = pc.less_equal(rows[TIME], self.until)
        return int(pc.max(rows[TIME].filter(passed)).as_py())

    def _drop_dead(self, rows: pa.Table) -> pa.Table:
        """Drops dead rows, and records their times."""
        dead = self.until is not None and pc.min(rows[TIME]).as_py() <= self.until
        if dead:
            self.lose(self._latest_expired(rows))
        return self._without_dead(rows)

    @property
    def is_sparse(self) -> bool:
        """Whether it has doubled since it was compacted."""
        return len(self) > 2 * self._compacted + _MIN_ROWS

    def compact(self, is_alive: Mask | None = None) -> None:
        """Rewrites the log without rows that are behind the horizon or deleted.

        Args:
            is_alive: Returns the mask of the other rows that stay; None for all.
        """
        remaining: list[Segment] = []
        for segment in self.segments:
            rows = self._drop_dead(self.rows(segment))
            if is_alive is not None:
                rows = rows.filter(is_alive(rows)).combine_chunks()
            remaining += self._replaced([segment], rows)
        self.segments = remaining
        if is_alive is not None and self.folded is not None:
            self.cells.filter(is_alive)
        self.deletions.rewrite(empty_table(self.deletions.schema))
        self.generation += 1
        self._compacted = len(self)
        self._merge()

    def _replaced(self, segments: list[Segment], rows: pa.Table) -> Iterable[Segment]:
        """Replaces neighbouring segments by segments of their remaining rows."""
        first = segments[0]
        if len(segments) == 1 and len(rows) == first.rows:
            return segments
        for segment in segments:
            self._pages.remove(segment.page)
        return (
            [self._stored(rows, first.first, pending=first.pending)]
            if len(rows)
            else []
        )

    def release(self, watermark: int) -> None:
        """Drops the columns that only pending rows need from segments without any."""
        if all(not held.pending or held.latest > watermark for held in self.segments):
            return
        same = self._query.pending_schema == self._query.stored_schema
        for at, segment in enumerate(self.segments):
            if not segment.pending or segment.latest > watermark:
                continue
            if not same:
                rows = self._select(self._stored_rows(segment), pending=False)
                self._pages.remove(segment.page)
                page, size = self._added(rows, pending=False)
                segment = segment._replace(page=page, nbytes=size)
            self.segments[at] = segment._replace(pending=False)
        self._merge()

    def _merge(self) -> None:
        """Merges neighbours while some are together as large as the next size."""
        while (merged := self._mergeable()) is not None:
            segments = self.segments[merged]
            whole = self._joined(segments)
            if whole is None:
                rows = pa.concat_tables([self.rows(segment) for segment in segments])
                rows = self._drop_dead(rows.combine_chunks())
                self.segments[merged] = self._replaced(segments, rows)
            else:
                self.segments[merged] = [whole]

    def _joined(self, segments: list[Segment]) -> Segment | None:
        """Concatenates neighbouring segments; None if rows must be left out."""
        first, last = segments[0], segments[-1]
        count = sum(segment.rows for segment in segments)
        earliest = min(segment.earliest for segment in segments)
        passed = self.passed
        has_dead = passed is not None and earliest <= passed
        if has_dead or len(self.deletions.rows) or last.end - first.first != count:
            return None
        rows = pa.concat_tables(map(self._stored_rows, segments))
        for segment in segments:
            self._pages.remove(segment.page)
        ends = earliest, max(segment.latest for segment in segments)
        return self._stored(rows, first.first, pending=first.pending, ends=ends)

    def _mergeable(self) -> slice | None:
        """The segments to merge: the last ones of a run, up to some size.

        A run is neighbours that all wait, or none of which does.
        """
        segments, end = self.segments, len(self.segments)
        least = max(2, FAN // 2)
        sizes = _sizes(SEGMENT // least, FAN)
        while end:
            pending, start, held = segments[end - 1].pending, end, 0
            for size in sizes:
                while (
                    start
                    and segments[start - 1].pending == pending
                    and segments[start - 1].nbytes < size
                ):
                    start -= 1
                    held += segments[start].nbytes
                if end - start >= least and held >= size:
                    return slice(start, end)
            while start and segments[start - 1].pending == pending:
                start -= 1
            end = start
        return None


def _check(segment: Segment, rows: pa.Table) -> None:
    """Checks the rows of a segment against the directory.

    Raises:
        SnapshotError: If they differ.
    """
    right = len(rows) == segment.rows and not rows[TIME].null_count
    if right and NUMBER in rows.column_names:
        numbers = rows[NUMBER]
        inner = numbers.null_count == 0 and segment.first == numbers[0].as_py()
        steps = pc.pairwise_diff(numbers.combine_chunks(), 1)
        right = inner and numbers[-1].as_py() == segment.end - 1
        right = right and pc.all(pc.greater(steps, 0)).as_py() is not False
    if right:
        times = pc.min_max(rows[TIME])
        found = (times["min"].as_py(), times["max"].as_py())
        right = found == (segment.earliest, segment.latest)
    if not right:
        raise SnapshotError(
            f"page {segment.page} differs from the directory of the log"
        )


@lru_cache(maxsize=8)
def _sizes(most: int, fan: int) -> list[int]:
    """Sizes up to `most`, each `fan` times the one before it."""
    sizes = []
    while most > 1:
        sizes.append(most)
        most //= fan
    return sizes[::-1]


def _bits(schema: pa.Schema) -> int:
    """The bits of a row; 0 if a column has no fixed width."""
    try:
        return sum(kind.bit_width for kind in schema.types)
    except ValueError:
        return 0
