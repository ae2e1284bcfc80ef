"""Closes hopping windows, sessions and windows of rows that the watermark passes.

A hopping window is closed when the watermark passes its end. Results are emitted for
non-empty windows and, with `empty=True`, for the empty ones since the last emitted
window of the key. A session is closed when the watermark passes its last row by the
gap, since no later row can join it; its rows are evicted. A window that a row closes is
emitted when the watermark passes this row.
"""

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.keyed.answer import FromEntries, FromRows
from slidewise.keyed.columns import EARLIEST, LAST, LATEST, NUMBER, ROWS, TIME, Ends
from slidewise.keyed.emit.corrections import correct
from slidewise.keyed.emit.emitter import Emitter
from slidewise.keyed.emit.last_windows import LastWindows
from slidewise.keyed.formats import checked_ints
from slidewise.keyed.hop_windows import (
    answer_empty,
    answer_sessions,
    ends_between,
    joined,
    table_of_windows,
    without_marks,
)
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.row_ends import due_rows
from slidewise.keyed.shard import Directory, Shard

__all__ = ["PerWindow"]


class PerWindow(Emitter):
    """Emits a result per window when the watermark passes its end.

    Its state is the time of the earliest row, from which windows are closed before the
    first watermark, and with `empty=True` the last emitted window of each key.
    """

    def __init__(self, shard: Shard, answer: FromEntries | FromRows) -> None:
        self._shard, self._answer, self._query = shard, answer, shard.query
        self._earliest: int | None = None
        self._last = LastWindows(shard.query, shard.pages)

    def read(self, directory: Directory) -> None:
        """Reads the state from a directory."""
        self._earliest = directory["earliest"]
        checked_ints(0 if self._earliest is None else self._earliest)
        self._last = LastWindows(self._query, self._shard.pages, directory["last"])

    def record(self) -> Directory:
        """The state, for JSON."""
        return {"earliest": self._earliest, "last": self._last.record()}

    def resume(self, earliest: int | None, last: pa.Table) -> None:
        """Begins with the state of other emitters of the same stream."""
        self._earliest = earliest
        self._last.add(last)

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages of the last windows."""
        return self._last.page_numbers

    def check(self, pages: Collection[int] | None) -> None:
        """Checks these pages, or some of them, against the directory."""
        self._last.check(pages)

    def expire(self, until: int) -> None:
        """Notes the rows after the last window of each key that are evicted."""
        if self._query.spec.empty:
            self._note_history()
            keys = self._shard.index.keys()
            self._last.note(keys.filter(pc.less_equal(keys[TIME], until)))

    def drop_idle(self, idle: pa.Table, until: int) -> None:
        """Forgets the last windows of keys that were evicted as idle."""
        self._last.drop_idle(idle, self._shard.index, until)

    @property
    def due(self) -> int | None:
        """A lower bound of the watermark at which the next result is due, or None."""
        query, store, since = self._query, self._shard.index.store, self._since
        if since is None:
            return None
        if query.sessions:
            first = store.next_session(query.reach)
            return None if first is None else int(first) + query.reach
        if query.row_closed_window:
            return self._shard.pending.earliest
        grids = [part.grid for part in query.parts]
        stops = [store.next_window(grid, since) for grid in grids]
        found = (int(stop) for stop in stops if stop is not None)
        return min((stop - query.step for stop in found), default=None)

    @property
    def _since(self) -> int | None:
        """The time up to which windows are closed; None before the first row."""
        shard = self._shard
        known = [time for time in (shard.fired, shard.history) if time is not None]
        if not known:
            return self._earliest
        return min(max(known) + self._query.step, LATEST)

    def ingest(
        self, rows: pa.Table, watermark: int | None, ends: Ends | None
    ) -> pa.Table | None:
        """Inserts rows; gives the results that late ones correct."""
        count, shard = len(rows), self._shard
        rows, _ = shard.apply_deletes(rows)
        rows, corrections = correct(shard, rows, watermark)
        if corrections is not None and watermark is not None:
            # All non-empty windows up to the watermark have been emitted now.
            shard.fire(watermark)
        if len(rows):
            first = pc.min(rows[TIME]).as_py()
            known = self._earliest
            self._earliest = first if known is None else min(first, known)
        whole = ends if len(rows) == count else None
        shard.append(self._query.sort_batch(rows), pending=False, ends=whole)
        return corrections

    def advance(self, watermark: int) -> pa.Table | None:
        """A row per key and closed window."""
        found = [(part, self._closed(part, watermark)) for part in self._query.parts]
        tables = [(part, table) for part, table in found if table is not None]
        return joined(self._query, tables)

    def _closed(self, query: KeyedQuery, watermark: int) -> pa.Table | None:
        """`advance` for one of the windows."""
        if query.sessions:
            return self._sessions(query, watermark)
        if query.row_closed_window:
            return self._closed_by_rows(query, watermark)
        since = self._since
        if since is None:
            return None
        history = self._shard.history
        if query.spec.empty and history is not None and watermark >= history:
            self._note_history()
        until = min(query.grid.last_closed_stop(watermark), LATEST)
        windows = self._shard.index.windows(query.grid, since, until)
        if not len(windows):
            return None
        results = self._answer.of_windows(query, windows)
        # The index may still have entries of evicted rows.
        holds_rows = pc.greater(results[ROWS].array, 0)
        answers = without_marks(table_of_windows(query, windows, results))
        answers = answers.filter(holds_rows)
        if not query.spec.empty:
            return answers
        latest = self._shard.index.last_times(windows)
        closed = windows.append_column(LAST, latest).filter(holds_rows).combine_chunks()
        parts = [answers, *self._empty_between(closed)]
        # Results of a custom aggregation are nulls of no type over empty windows.
        return pa.concat_tables(parts, promote_options="default")

    def _note_history(self) -> None:
        """Records the last windows that count as emitted before the stream."""
        until, fired = self._shard.history, self._shard.fired
        if until is None or (fired is not None and fired >= until):
            return
        index, query = self._shard.index, self._query
        stop = min(query.grid.last_closed_stop(until), LATEST)
        windows = index.windows(query.grid, None, stop)
        closed = windows.append_column(LAST, index.last_times(windows))
        self._last.add(_latest_windows(query, closed))

    def _empty_between(self, closed: pa.Table) -> list[pa.Table]:
        """The empty windows between each window and the previous one of its key.

        Args:
            closed: Keys, with the stops of non-empty windows in `TIME`, and the times
                of the latest rows of the keys in `LAST`.
        """
        query, by = self._query, list(self._query.spec.by)
        closed = closed.select(query.ended.names).cast(query.ended)
        known = self._last.rows
        codes = query.codes([known.select(by), closed.select(by)])
        own = pc.is_in(codes.slice(0, len(known)), codes.slice(len(known)))
        both = pa.concat_tables([known.filter(own), closed]).combine_chunks()
        between = ends_between(query, both)
        self._last.add(_latest_windows(query, both))
        if not len(between):
            return []
        if not query.carries:
            return [answer_empty(query, between)]
        results = self._answer.of_windows(query, between)
        return [without_marks(table_of_windows(query, between, results))]

    def _sessions(self, query: KeyedQuery, watermark: int) -> pa.Table | None:
        """A row per closed session."""
        until = watermark - query.reach
        shard, since = self._shard, self._earliest
        if shard.history is not None:
            since = max(shard.history - query.reach, EARLIEST) + 1
        if since is None or until < EARLIEST:
            return None
        numbers = pa.array(shard.index.store.sessions(query.reach, until))
        if not len(numbers):
            return None
        shard.note_removed(numbers)
        rows = _by_first_row(query, shard.log.take(numbers), numbers)
        return answer_sessions(query, rows, since)

    def _closed_by_rows(self, query: KeyedQuery, watermark: int) -> pa.Table | None:
        """A row per window that a row closes."""
        shard, since = self._shard, self._earliest
        due = shard.pending.take_due(watermark)
        if shard.history is not None:
            since = shard.history + 1
        if since is None or due is None:
            return None
        if query.flag_column:
            rows = shard.close(shard.index, due)
        else:
            rows = due_rows(query, shard.index, shard.log, due)
            since = max(since, pc.min(due[TIME]).as_py())
        if not len(rows):
            return None
        rows = _by_first_row(query, rows, rows[NUMBER].combine_chunks())
        return answer_sessions(query, rows.drop_columns(NUMBER), since)


def _latest_windows(query: KeyedQuery, windows: pa.Table) -> pa.Table:
    """The last window of each key, in the columns of `KeyedQuery.ended`."""
    windows = windows.select(query.ended.names).cast(query.ended)
    latest = windows.take(pc.sort_indices(windows, [(TIME, "descending")]))
    latest = latest.combine_chunks()
    return latest.take(query.distinct(latest)).combine_chunks()


def _by_first_row(query: KeyedQuery, rows: pa.Table, numbers: pa.Array) -> pa.Table:
    """Sorts rows by key, in the order of the first row of each key.

    The order of keys in the index differs after a restart.
    """
    codes = query.codes([rows.select(list(query.spec.by))])
    _, first, _, _ = _core.group_ends(codes, numbers)
    own = pa.array(first).take(codes)
    return rows.take(pc.sort_indices(own)).combine_chunks()
