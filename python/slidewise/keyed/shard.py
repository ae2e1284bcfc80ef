"""The state of some keys of a stream: a log of rows, and an index of their entries.

The log ([row_log.py](row_log.py)) is what is stored. In memory an index holds the
entries of each key in order of time ([index.py](index.py)), from which results are
computed. It is made from the log when the state is opened, and follows the log from
then on.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.caching import cached_property
from slidewise.frames.base import empty_table, one_array
from slidewise.keyed.columns import (
    EARLIEST,
    LATEST,
    NUMBER,
    TIME,
    Ends,
    int64_view,
    joined,
    later_than,
)
from slidewise.keyed.formats import checked_ints
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.ids import Ids
from slidewise.keyed.index import Index
from slidewise.keyed.page_store import Pages, buffers_of
from slidewise.keyed.pending import Pending, without
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.row_ends import by_key, closed_rows, passed_rows, surplus_rows
from slidewise.keyed.row_log import RowLog
from slidewise.spec.windows.base import Window
from slidewise.table.arrays import row_numbers
from slidewise.table.time_columns import subtract_clamped

__all__ = ["Directory", "Shard"]

# The position of a stream and the places of its rows, as values that JSON can hold.
Directory = dict[str, Any]

# The number of rows of small segments that enter the index in one step.
_STEP = 65_536
# Entries are evicted each time a further 1/16 of the retention has passed.
_SHARE = 16


class Shard:
    """The rows of some keys: those of the log, which is stored, and their index.

    It emits nothing.

    Args:
        query: The query.
        pages: The pages.
        retention: The least time for which rows are kept behind the watermark, in
            ticks.
        ordered: Whether results are sorted by time even where that costs a sort.

    Attributes:
        changed_keys: The number of keys with new or removed rows, summed over batches.
        pending: The rows that wait for the watermark.
        ids: The ids of the rows; None if all rows count.
        fired: The watermark up to which results were emitted; None before the first.
        history: The latest time of the rows before the stream, in all shards: windows
            that a watermark of this time closes were emitted before. None without such
            rows.
    """

    log: RowLog
    index: Index
    ids: Ids | None

    def __init__(
        self, query: KeyedQuery, pages: Pages, retention: int, *, ordered: bool
    ) -> None:
        self.query, self.pages, self.ordered = query, pages, ordered
        self.changed_keys = 0
        self.retention = max(retention, query.reach + query.allowance)
        self._by = list(query.spec.by)
        self.fired: int | None = None
        self.history: int | None = None

    def read(self, directory: Directory | None) -> None:
        """Reads the position of the stream, and where its rows are; None for nowhere.

        Raises:
            SnapshotError: If the directory is damaged; or an error of `BROKEN`.
        """
        if directory is None:
            self.log = RowLog(self.query, self.pages)
            return
        self.fired, self.history = directory["flushed"], directory.get("history")
        for time in (self.fired, self.history):
            checked_ints(0 if time is None else time)
        self.log = RowLog(self.query, self.pages, directory["log"])

    def record(self) -> Directory:
        """What `read` reads, for JSON."""
        begun = {} if self.history is None else {"history": self.history}
        return {"flushed": self.fired, "log": self.log.record(), **begun}

    def open(self) -> None:
        """Builds the index from the log, and the ids."""
        self.ids = self._new_ids()
        self.pending = Pending()
        # The numbers of rows that are in the log, but no more in the index.
        self._removed = array("q")
        # The changes of the current batch, until they are applied in one step.
        self._inserts: list[pa.Table] = []
        self.removals = self.no_rows
        index = Index(self.query)
        self._fill(index, 0)
        self.index = index

    def _new_ids(self) -> Ids | None:
        """No ids yet; None if all rows count."""
        if not self.query.spec.unique_by:
            return None
        horizon = self.query.id_horizon(self.retention)
        return Ids(self.query, horizon, ordered=self.ordered)

    def _fill(self, index: Index, since: int) -> None:
        """Inserts the rows of the log from a number on into an index."""
        if not since:
            for entries in self.log.cells.entries(self.log.until):
                index.insert_folded(entries)
        # Small segments enter together, because each step has a fixed cost.
        for rows in joined(self._indexed(since), _STEP):
            self._insert(index, rows)
        self._expire(index)

    def _expire(self, index: Index) -> None:
        """Removes the entries that leave before their rows leave the log."""
        if self.log.until is not None:
            index.store.evict(self.log.until, self.query.rows)
        reach = self.query.reach
        if self.query.sessions and self.fired is not None:
            until = max(self.fired - reach, EARLIEST)
            self.note_removed(pa.array(index.store.sessions(reach, until)))
        if self.query.flag_column and self.fired is not None:
            self.close(index, self.pending.take_due(self.fired))

    def _indexed(self, since: int) -> Iterator[pa.Table]:
        """Yields the rows of segments from a number on; records those that wait."""
        for rows, pending in self.log.alive(since):
            if self.query.row_closed_window:
                self._add_pending(self._not_fired(self.query.closing_rows(rows)))
            elif pending:
                self._add_pending(self._not_fired(rows))
            yield rows.select(self.no_rows.column_names)

    def close(self, index: Index, ends: pa.Table | None) -> pa.Table:
        """Removes the windows of `until` that some rows close; gives their rows."""
        if ends is None:
            return self.no_rows
        rows = closed_rows(self.query, index, self.log, ends)
        if len(rows):
            self.log.lose(pc.max(rows[TIME]).as_py())
        index.insert(self.no_rows, rows)
        self.note_removed(rows[NUMBER].combine_chunks())
        return rows

    def note_removed(self, numbers: pa.Array) -> None:
        """Records the numbers of rows that were removed from the index alone.

        Each call may have a few, so they are not kept as arrays of Arrow.
        """
        self._removed.frombytes(int64_view(numbers).cast("B"))

    def compact(self) -> None:
        """Rewrites the log without the rows that have left the index, if many have."""
        if self.log.is_sparse:
            removed, self._removed = self._removed, array("q")
            buffers = [None, pa.py_buffer(removed)]
            removals = pa.Array.from_buffers(pa.int64(), len(removed), buffers)
            self.log.compact(
                lambda rows: pc.invert(_among(one_array(rows[NUMBER]), removals))
            )

    def follow(self, log: RowLog, deleted: pa.Array) -> None:
        """Applies what is in the log and was not in an earlier one of this state.

        If the log was compacted since, it does not tell which rows were removed, so the
        index is built again; likewise if cells were folded.

        Args:
            log: The earlier log.
            deleted: The numbers of its deleted rows.
        """
        before = (log.generation, log.folded)
        if (self.log.generation, self.log.folded) != before:
            self.open()
            return
        rows = self.log.deletions.rows
        new = pc.and_(
            pc.invert(pc.is_in(rows[NUMBER], deleted)),
            pc.less(rows[NUMBER], log.next_row),
        )
        removals = rows.filter(new).combine_chunks()
        for pending in self.pending.take():
            self._add_pending(self._not_fired(without(pending, removals)))
        inserts = [self.no_rows, *self._indexed(log.next_row)]
        rows = pa.concat_tables(inserts).combine_chunks()
        self._insert(self.index, rows, removals)
        self._expire(self.index)

    def _not_fired(self, rows: pa.Table) -> pa.Table:
        """The rows whose results were not emitted yet.

        If flags close windows, all rows: `close` removes those that were emitted.
        """
        if self.fired is None or self.query.flag_column:
            return rows
        return rows.filter(pc.greater(rows[TIME], self.fired))

    @cached_property
    def no_rows(self) -> pa.Table:
        """No rows of the state, with their numbers."""
        numbered = self.query.stored_schema.append(pa.field(NUMBER, pa.int64()))
        return empty_table(numbered)

    def check(self) -> None:
        """Checks the invariants.

        Raises:
            AssertionError: If one is violated.
        """
        self.index.store.check_invariants()
        for rows, _ in self.log.alive():
            rows.validate(full=True)

    def apply_deletes(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Applies deletions; gives the rows to insert, and the deletions."""
        query = self.query
        if query.deletes is None:
            return rows, rows.slice(0, 0)
        marked = pc.fill_null(rows.column(query.deletes), False)
        deleted = rows.filter(marked).combine_chunks()
        rows = rows.filter(pc.invert(marked)).combine_chunks()
        if not len(deleted):
            return rows, deleted
        # Rows of the batch get negative numbers, since it may delete its own rows.
        own = pc.subtract(-1, row_numbers(len(rows)).cast(pa.int64()))
        new = query.sort_batch(rows.append_column(NUMBER, own))
        held = self.held_at(deleted)
        both = pa.concat_tables([held, new.select(held.column_names)]).combine_chunks()
        rest = query.without(both, deleted)[NUMBER].combine_chunks()
        stays = pc.is_in(own, rest)
        removals = held.filter(pc.invert(pc.is_in(held[NUMBER], rest)))
        self._remove(removals.combine_chunks())
        return rows.filter(stays).combine_chunks(), deleted

    def _remove(self, rows: pa.Table) -> None:
        """Removes rows with their numbers."""
        if not len(rows):
            return
        self.removals = rows
        self.log.delete(rows)
        for pending in self.pending.take():
            self._add_pending(without(pending, rows))

    def fire(self, watermark: int) -> None:
        """Records that the results up to a watermark were emitted."""
        known = watermark if self.fired is None else self.fired
        self.fired = max(known, watermark)

    def release(self) -> None:
        """Drops what was needed for results that have fired now."""
        if self.query.emit == "final" and self.fired is not None:
            self.log.release(self.fired)
        if self.query.sessions or self.query.flag_column:
            self.compact()

    def evict_idle(self, idle: pa.Table, until: int) -> None:
        """Evicts idle keys: those whose latest row is at or before a time."""
        self.index.store.drop_idle(until)
        if len(idle):
            self.log.lose(pc.max(self.query.ticks(idle)).as_py())
            self.log.compact(self.index.is_held)
            if self.ids is not None:
                self.ids = self._new_ids()
                for rows, _ in self.log.alive():
                    self._add_ids(rows)

    def expiring(self, watermark: int | None) -> int | None:
        """The time up to which rows are evicted now; None if it is not worth it."""
        until = self.evicted(watermark)
        if until is None or until < EARLIEST:
            return None
        if self.query.evicts_rows:
            return until if self.log.is_sparse else None
        known = self.log.until
        is_worth = known is None or until - known > self.retention // _SHARE
        return until if is_worth else None

    def fold(self, watermark: int | None) -> None:
        """From time to time, folds the rows of the cells that the watermark passed."""
        cells = self.query.cells
        if cells is None or watermark is None:
            return
        until = cells.until(watermark)
        if until >= EARLIEST and self.log.is_worth_folding(until):
            self.log.fold(until, self.index.fold_cells(self.log.passed, until))

    def put_together(self, entries: Iterable[pa.Table], folded: int) -> None:
        """Folds the cells of a log of rows and of the entries of other states.

        Args:
            entries: The entries, each of whole cells.
            folded: The last tick of the cells to fold.
        """
        self._fill(self.index, 0)
        for some in entries:
            self.index.insert_folded(some)
        self.log.fold(folded, self.index.fold_cells(self.log.until, folded))

    def evict(self, until: int) -> None:
        """Evicts the rows up to a time that no window can hold."""
        if self.query.evicts_rows:
            find = surplus_rows if self.query.row_closed_window else passed_rows
            expired = find(self.query, self.index, self.log, until)
            if len(expired):
                self.log.lose(until)
            self.index.insert(self.no_rows, expired)
            self.note_removed(expired[NUMBER].combine_chunks())
            self.compact()
            return
        self.log.evict(until)
        self.index.store.evict(until, self.query.rows)
        if self.log.is_sparse:
            self.log.compact(self.index.is_held if self.query.rows else None)

    def evicted(self, watermark: int | None) -> int | None:
        """The time up to which rows may be evicted; None if all rows are kept."""
        if watermark is None or self.query.sessions or self.query.flag_column:
            return self.log.until
        until = watermark - self.retention
        return until if self.log.until is None else max(until, self.log.until)

    def nbytes(self, stored: Iterable[pa.Table] = ()) -> int:
        """The bytes of the index, and of the rows in memory besides those `stored`."""
        shared = {address for table in stored for address in buffers_of(table)}
        tables = [*self.pages.decoded(), *self.pending.tables]
        own = {key: size for each in tables for key, size in buffers_of(each).items()}
        rows = sum(size for key, size in own.items() if key not in shared)
        removed = len(self._removed) * self._removed.itemsize
        ids = 0 if self.ids is None else self.ids.nbytes
        return rows + removed + ids + int(self.index.store.nbytes)

    def append(
        self, rows: pa.Table, *, pending: bool, ends: Ends | None = None
    ) -> None:
        """Appends rows of a batch to the log; `apply` inserts them into the index."""
        if not len(rows):
            return
        for segment, part in self.log.append(rows, pending=pending, ends=ends):
            if pending:
                numbered = self._numbered(part, segment.first)
                self._add_pending(numbered, segment.earliest, segment.latest)
        numbered = self._numbered(rows, self.log.next_row - len(rows))
        self._inserts.append(numbered)
        if self.query.row_closed_window:
            self._add_pending(self.query.closing_rows(numbered))

    def apply(self) -> None:
        """Applies a batch to the index: readers see all of it or nothing."""
        inserts, self._inserts = self._inserts, []
        removals, self.removals = self.removals, self.no_rows
        if inserts or len(removals):
            rows = inserts[0] if inserts else self.no_rows
            if len(inserts) > 1:
                rows = pa.concat_tables(inserts).combine_chunks()
            self.changed_keys += self._insert(self.index, rows, removals)

    def apply_answering(self, batch: pa.Table) -> list[pa.Array]:
        """Appends and applies a sorted batch; gives its results as of arrival.

        They are in the order of the batch, window by window.
        """
        query = self.query
        self._add_ids(batch)
        rows = self._numbered(batch, self.log.next_row)
        self.log.append(batch, pending=False)
        naming, arrivals = query.naming(batch), query.arrivals(batch)
        removals, self.removals = self.removals, self.no_rows
        found, keys = self.index.insert_answering(
            rows, arrivals, self.windows, naming, removals
        )
        self.changed_keys += keys
        return [result.array for window in found for result in window.values()]

    def _add_ids(self, rows: pa.Table) -> None:
        if self.ids is not None and len(rows):
            self.ids.add(rows)

    def _numbered(self, rows: pa.Table, first: int) -> pa.Table:
        """Rows with their numbers, if the index has them."""
        if not self.index.numbered:
            return rows
        numbers = pc.add(row_numbers(len(rows)).cast(pa.int64()), first)
        return rows.append_column(NUMBER, numbers)

    def _add_pending(
        self, rows: pa.Table, earliest: int | None = None, latest: int | None = None
    ) -> None:
        """Adds rows that wait for the watermark."""
        if not self.query.row_closed_window:
            numbers = [NUMBER] if self.query.finds_rows else []
            rows = rows.select([*self.query.pending_schema.names, *numbers])
        self.pending.add(rows, earliest, latest)

    def _insert(
        self, index: Index, rows: pa.Table, removals: pa.Table | None = None
    ) -> int:
        """Inserts rows into an index; rows of equal time in the order of the query.

        The rows in `removals`, with their numbers, are removed in the same step.

        Returns:
            The number of keys of these rows, those of `removals` included.
        """
        query = self.query
        self._add_ids(rows)
        if not query.then_by or query.spec.arrival is not None or not len(rows):
            return index.insert(rows, removals)
        rows = rows.select([*query.stored_schema.names, NUMBER])
        held = self._held_in(index, rows, removals)
        both = pa.concat_tables([held, rows]).combine_chunks()
        if removals is not None:
            names = [*self._by, TIME, NUMBER]
            held = pa.concat_tables([held.select(names), removals.select(names)])
        return index.insert(query.sort(both), held)

    def held_at(self, rows: pa.Table) -> pa.Table:
        """The rows in the index with the key and time of one of these rows."""
        return self._held_in(self.index, rows)

    def _held_in(
        self, index: Index, rows: pa.Table, removals: pa.Table | None = None
    ) -> pa.Table:
        points = rows.take(self.query.distinct(rows, TIME)).combine_chunks()
        ticks = points.column(TIME).combine_chunks()
        numbers = _not_removed(index.numbers(points, ticks, ticks), removals)
        return self.log.take(numbers).append_column(NUMBER, numbers)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The windows of the Spec; hopping ones as rolling ones of their length."""
        return Horizon(self.query, self.retention, None).windows(None)

    def rows_near(self, points: pa.Table) -> pa.Table:
        """The rows of all windows of keys at times, key by key, in order."""
        return self.log.take(self.numbers_near(points))

    def numbers_near(self, points: pa.Table) -> pa.Array:
        """The numbers of the rows of `rows_near`."""
        return self.numbers_between(points, self.query.reach, 0)

    def numbers_between(self, points: pa.Table, before: int, behind: int) -> pa.Array:
        """The numbers of the rows of keys around their first and last points.

        With windows of `rows(n)`, from the first row of the key on.

        Args:
            points: The keys, and times in `TIME`.
            before: The ticks before the first time.
            behind: The ticks after the last time.
        """
        if not len(points):
            return pa.array([], pa.int64())
        keys, first, last, _ = by_key(self.query, points.select([*self._by, TIME]))
        if self.query.rows or self.query.backward_windows:
            since = pa.repeat(pa.scalar(EARLIEST, pa.int64()), len(keys))
        else:
            # The index may still have entries of evicted rows.
            least = EARLIEST if self.log.until is None else self.log.until + 1
            since = pc.max_element_wise(subtract_clamped(first, before), least)
            if self.query.carries:
                earlier = subtract_clamped(since, 1)
                since = pc.min_element_wise(
                    since, self.index.carried_since(keys, earlier)
                )
        until = pc.add(pc.min_element_wise(last, LATEST - behind), behind)
        return _not_removed(self.index.numbers(keys, since, until), self.removals)

    def keys(self, watermark: int | None) -> pa.Table:
        """The keys with rows in the horizon, each with its latest time."""
        found = self.index.keys()
        if watermark is not None and not self.query.keeps_rows:
            reached = later_than(found[TIME], watermark - self.retention)
            found = found.filter(reached)
        times = self.query.times.restore(found.column(TIME).combine_chunks())
        on = self.query.spec.on
        return found.set_column(len(self._by), on, times)

    def holds(self, key: pa.Table, watermark: int | None) -> bool:
        """Whether a key has rows in the horizon."""
        last = self.index.last_times(key)[0].as_py()
        if last is None or watermark is None or self.query.keeps_rows:
            return last is not None
        return bool(last > watermark - self.retention)


def _not_removed(numbers: pa.Array, removals: pa.Table | None) -> pa.Array:
    """The numbers that are not in `removals`: the index may still have those."""
    if removals is None or not len(removals):
        return numbers
    return numbers.filter(pc.invert(_among(numbers, one_array(removals[NUMBER]))))


def _among(numbers: pa.Array, some: pa.Array) -> pa.Array:
    """A mask of the numbers that are in `some`."""
    return pa.array(_core.are_among(numbers, some))
