"""Closes hopping windows, sessions and windows of rows that the watermark passes.

A hopping window is closed when the watermark passes its end. Results are emitted for
non-empty windows and, with `empty=True`, for the empty ones since the last emitted
window of the key. A session is closed when the watermark passes its last row by the
gap, since no later row can join it; its rows are evicted. A window that a row closes is
emitted when the watermark passes this row.
"""

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.frames.base import Result
from slidewise.keyed.columns import LAST, NUMBER, ROWS, TIME
from slidewise.keyed.hop_windows import (
    answer_empty,
    answer_sessions,
    answer_windows,
    ends_between,
    joined,
    naming_windows,
    table_of_windows,
    without_marks,
)
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.index import EARLIEST, LATEST
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.row_ends import due_rows
from slidewise.keyed.shard_state import ShardState

__all__ = ["answer", "due", "note_history"]


def due(shard: ShardState) -> int | None:
    """A lower bound of the watermark at which the next result is due, or None."""
    query, store = shard.query, shard.index.store
    if query.sessions:
        if _since(shard) is None:
            return None
        first = store.next_session(query.reach)
        return None if first is None else int(first) + query.reach
    since = _since(shard)
    if since is None:
        return None
    if query.closing:
        ends = (held.earliest for held in shard.waiting)
        return min(ends, default=None)
    grids = [part.grid for part in query.parts]
    stops = [store.next_window(g.length, g.every, g.offset, since) for g in grids]
    found = (int(stop) for stop in stops if stop is not None)
    return min((stop - query.step for stop in found), default=None)


def _since(shard: ShardState) -> int | None:
    """The time up to which windows are closed; None before the first row."""
    known = [time for time in (shard.flushed, shard.history) if time is not None]
    return min(max(known) + shard.query.step, LATEST) if known else shard.earliest


def answer(shard: ShardState, watermark: int) -> pa.Table | None:
    """A row per key and closed window."""
    query = shard.query
    found = [(part, _answer(shard, part, watermark)) for part in query.parts]
    return joined(query, [(part, table) for part, table in found if table is not None])


def _answer(shard: ShardState, query: KeyedQuery, watermark: int) -> pa.Table | None:
    """`answer` for one of the windows."""
    if query.sessions:
        return _answer_sessions(shard, query, watermark)
    if query.closing:
        return _answer_closed_by_rows(shard, query, watermark)
    since = _since(shard)
    if since is None:
        return None
    if query.spec.empty and shard.history is not None and watermark >= shard.history:
        note_history(shard)
    until = min(query.grid.last_closed_stop(watermark), LATEST)
    windows = shard.index.windows(query.grid, since, until)
    if not len(windows):
        return None
    results = _results(shard, query, windows)
    # The index may still have entries of evicted rows.
    holds_rows = pc.greater(results[ROWS].array, 0)
    answers = without_marks(table_of_windows(query, windows, results))
    answers = answers.filter(holds_rows)
    if not query.spec.empty:
        return answers
    latest = shard.index.last_times(windows)
    closed = windows.append_column(LAST, latest).filter(holds_rows).combine_chunks()
    parts = [answers, *_empty_between(shard, closed)]
    # Results of a custom aggregation are nulls of no type over empty windows.
    return pa.concat_tables(parts, promote_options="default")


def note_history(shard: ShardState) -> None:
    """Records the last windows that count as emitted before the stream."""
    until, flushed = shard.history, shard.flushed
    if until is None or (flushed is not None and flushed >= until):
        return
    index = shard.index
    stop = min(shard.query.grid.last_closed_stop(until), LATEST)
    windows = index.windows(shard.query.grid, None, stop)
    closed = windows.append_column(LAST, index.last_times(windows))
    shard.last.update(_latest_windows(shard.query, closed))


def _latest_windows(query: KeyedQuery, windows: pa.Table) -> pa.Table:
    """The last window of each key, in the columns of `KeyedQuery.ended`."""
    windows = windows.select(query.ended.names).cast(query.ended)
    latest = windows.take(pc.sort_indices(windows, [(TIME, "descending")]))
    latest = latest.combine_chunks()
    return latest.take(query.distinct(latest)).combine_chunks()


def _results(
    shard: ShardState, query: KeyedQuery, windows: pa.Table
) -> dict[str, Result]:
    last = pc.subtract(windows.column(TIME), 1)
    points = windows.set_column(windows.column_names.index(TIME), TIME, last)
    if query.folds:
        ticks = last.combine_chunks()
        name_row = naming_windows(query, windows)
        results: dict[str, Result]
        spans = Horizon(query, shard.kept, None).windows(None)
        (results,) = shard.index.answers(points, ticks, spans, name_row)
        return results
    return answer_windows(query, shard.rows_near(points), windows)


def _empty_between(shard: ShardState, closed: pa.Table) -> list[pa.Table]:
    """The empty windows between each window and the previous one of its key.

    Args:
        shard: The state, which records the last windows of the keys.
        closed: Keys, with the stops of non-empty windows in `TIME`, and the times of
            the latest rows of the keys in `LAST`.
    """
    query, by = shard.query, list(shard.query.spec.by)
    closed = closed.select(query.ended.names).cast(query.ended)
    known = shard.last.rows
    codes = query.codes([known.select(by), closed.select(by)])
    own = pc.is_in(codes.slice(0, len(known)), codes.slice(len(known)))
    both = pa.concat_tables([known.filter(own), closed]).combine_chunks()
    between = ends_between(query, both)
    shard.last.update(_latest_windows(query, both))
    return [answer_empty(query, between)] if len(between) else []


def _answer_sessions(
    shard: ShardState, query: KeyedQuery, watermark: int
) -> pa.Table | None:
    """A row per closed session."""
    until = watermark - query.reach
    since = shard.earliest
    if shard.history is not None:
        since = max(shard.history - query.reach, EARLIEST) + 1
    if since is None or until < EARLIEST:
        return None
    numbers = pa.array(shard.index.store.sessions(query.reach, until))
    if not len(numbers):
        return None
    shard.note_left(numbers)
    rows = _by_first_row(query, shard.log.take(numbers), numbers)
    return answer_sessions(query, rows, since)


def _answer_closed_by_rows(
    shard: ShardState, query: KeyedQuery, watermark: int
) -> pa.Table | None:
    """A row per window that a row closes."""
    since, due = shard.earliest, shard.take_due(watermark)
    if shard.history is not None:
        since = shard.history + 1
    if since is None or due is None:
        return None
    if query.until:
        rows = shard.close(shard.index, due)
    else:
        rows = due_rows(query, shard.index, shard.log, due)
        since = max(since, pc.min(due[TIME]).as_py())
    if not len(rows):
        return None
    rows = _by_first_row(query, rows, rows[NUMBER].combine_chunks())
    return answer_sessions(query, rows.drop_columns(NUMBER), since)


def _by_first_row(query: KeyedQuery, rows: pa.Table, numbers: pa.Array) -> pa.Table:
    """Sorts rows by key, in the order of the first row of each key.

    The order of keys in the index differs after a restart.
    """
    codes = query.codes([rows.select(list(query.spec.by))])
    _, first, _, _ = _core.group_ends(codes, numbers)
    own = pa.array(first).take(codes)
    return rows.take(pc.sort_indices(own)).combine_chunks()
