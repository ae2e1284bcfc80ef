"""The results per key, for `emit="update"` and "change".

Both emit, per batch, the changed keys at their latest rows. "change" also emits a key
when the watermark passes a time at which one of its rows leaves a window, or enters one
that ends before it (`offset=`, `closed="left"`). So a table with the last result of
each key has the windows at the watermark or later.

An accepted late row (`late_rows="correct"`) is like a new row: with "change" its key is
emitted at the watermark, or at its latest row if that is later, if a window there holds
the late row. Earlier results of the key have been replaced and are not emitted again.
"""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed.columns import TIME
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.query import later_than
from slidewise.keyed.shard_state import ShardState

__all__ = ["answer", "answer_expired", "are_updates", "due", "last_results"]


def answer(
    shard: ShardState, rows: pa.Table, deleted: pa.Table, watermark: int | None
) -> pa.Table:
    """A row per key with new or deleted rows: the window at its latest row.

    Keys whose latest row is behind the watermark are left out, since rows of their
    windows may have been evicted; with "change" these have the window at the watermark.
    """
    names = [*shard.query.spec.by, TIME]
    rows = pa.concat_tables([rows.select(names), deleted.select(names)])
    if shard.query.emit == "change":
        changed = _with_least_time(_latest(shard, rows, held=False), watermark)
        if shard.query.corrects and not shard.query.rows:
            newest = shard.query.latest(rows).column(TIME)
            lag = pc.subtract(changed.column(TIME), newest)
            held = pc.less(lag, _reach(shard))
            changed = changed.filter(held).combine_chunks()
        return _answered(shard, changed)
    changed = _latest(shard, rows)
    if watermark is not None:
        floor = watermark - shard.query.allowance
        changed = changed.filter(later_than(changed[TIME], floor)).combine_chunks()
    return _answered(shard, changed)


def _answered(shard: ShardState, keys: pa.Table) -> pa.Table:
    """The results of keys at the times in `TIME`."""
    query = shard.query
    points = query.query_points(keys)
    if query.folds:
        answers = shard.answers_at(keys, query.naming(points))
    else:
        answers = query.answer_points(shard.rows_near(keys), points)
    return query.answered(points, answers)


def _with_least_time(keys: pa.Table, time: int | None) -> pa.Table:
    """Keys with their times, each raised to a least time."""
    if time is None:
        return keys
    column = pc.max_element_wise(keys.column(TIME), time)
    return keys.set_column(keys.column_names.index(TIME), TIME, column)


def _latest(shard: ShardState, rows: pa.Table, *, held: bool = True) -> pa.Table:
    """The keys of rows, each with its latest time in `TIME`.

    Args:
        shard: The state.
        rows: Rows, with their times in `TIME`.
        held: Whether to leave out keys without rows in the state; otherwise they get
            their latest time in `rows`.
    """
    keys = shard.query.latest(rows).combine_chunks()
    times = shard.index.last_times(keys)
    if not held:
        times = pc.coalesce(times, keys.column(TIME)).combine_chunks()
    keys = keys.set_column(keys.column_names.index(TIME), TIME, times)
    return keys.filter(pc.is_valid(times)).combine_chunks()


def last_results(shard: ShardState, rows: pa.Table, watermark: int | None) -> pa.Table:
    """The keys of rows that had a result, with the time of the last one in `TIME`.

    With "change" only keys with a row in a window at that time; windows of rows always
    have one.
    """
    keys = _latest(shard, rows)
    if shard.query.emit != "change" or watermark is None:
        return keys
    if not shard.query.rows:
        near = later_than(keys[TIME], watermark - _reach(shard))
        keys = keys.filter(near).combine_chunks()
    return _with_least_time(keys, watermark)


def _reach(shard: ShardState) -> int:
    """The distance from a row's time to the first query without it in any window."""
    horizon = Horizon(shard.query, shard.kept, None)
    windows = (window for window in shard.windows if not window.rows)
    return max(map(horizon.leaving, windows), default=0)


def are_updates(shard: ShardState, answers: pa.Table, before: pa.Table) -> pa.Array:
    """A mask of the results that update one of their key at this time or later."""
    by, ticks = list(shard.query.spec.by), shard.query.ticks(answers)
    codes = shard.query.codes([answers.select(by), before.select(by)])
    known = codes.slice(len(answers))
    place = pc.index_in(codes.slice(0, len(answers)), known)
    last = before[TIME].combine_chunks().take(place)
    return pc.fill_null(pc.greater_equal(last, ticks), False)


def due(shard: ShardState) -> int | None:
    """The least watermark at which a result changes, or None."""
    _, changes = _expiring(shard)
    first: int | None = pc.min(changes).as_py()
    return first


def answer_expired(shard: ShardState, watermark: int) -> pa.Table | None:
    """The results at the watermark of keys whose windows a row left or entered."""
    keys, changes = _expiring(shard)
    changed = keys.filter(pc.less_equal(changes, watermark)).combine_chunks()
    if not len(changed):
        return None
    return _answered(shard, _with_least_time(changed, watermark))


def _expiring(shard: ShardState) -> tuple[pa.Table, pa.Array]:
    """Keys with the times of their last results, and when these change without rows.

    The time of a last result is the latest row, or the watermark if that is later.
    """
    windows = tuple(window for window in shard.windows if not window.rows)
    horizon = Horizon(shard.query, shard.kept, None)
    keys = shard.index.keys()
    if shard.flushed is not None:
        # Other keys have no row in a window.
        near = later_than(keys[TIME], shard.flushed - _reach(shard))
        keys = _with_least_time(keys.filter(near).combine_chunks(), shard.flushed)
    ticks = keys.column(TIME).combine_chunks()
    first = pa.nulls(len(keys), pa.int64())
    if len(keys) and windows:
        earliest = shard.index.first_times(keys, ticks, windows)
        for window, times in zip(windows, earliest, strict=True):
            first = pc.min_element_wise(first, horizon.expiry(times, window))
        for delay in {horizon.entering(window) for window in windows} - {0}:
            entering = shard.index.first_since(keys, ticks, delay)
            first = pc.min_element_wise(first, horizon.after(entering, delay))
    changes = pc.is_valid(first)
    return keys.filter(changes).combine_chunks(), first.filter(changes)
