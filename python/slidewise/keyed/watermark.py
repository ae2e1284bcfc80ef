"""Closes hopping windows and sessions that the watermark passes.

A hopping window is closed when the watermark passes its end. Results are emitted for
non-empty windows and, with `empty=True`, for the empty ones since the last emitted
window of the key. A session is closed when the watermark passes its last row by the
gap, since no row may join it then; its rows are evicted.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed import hop_windows
from slidewise.keyed.page_store import LAST, SLOT, TIME
from slidewise.keyed.shard_state import ShardState

__all__ = ["answer", "drop_idle_keys", "due"]

_LATEST = 2**63 - 1
# Window ends per step when hopping windows are closed.
_ENDS = 64


def due(shard: ShardState) -> int | None:
    """The least watermark at which results may be due, or None."""
    if not shard.query.sessions:
        ends = next(_ended(shard, _LATEST), None)
        return None if ends is None else ends[0] - 1
    if shard.earliest is None:
        return None
    closing = (slot.closing for slot in shard.slots if slot.closing is not None)
    first = min(closing, default=None)
    return None if first is None else first + shard.query.reach


def answer(shard: ShardState, watermark: int) -> pa.Table | None:
    """A row per key and closed window."""
    if shard.query.sessions:
        return _answer_sessions(shard, watermark)
    query, tables = shard.query, []
    seen = query.leaf.empty_table().select([*query.spec.by, TIME])
    for ends in _ended(shard, watermark):
        times = pa.array(ends, pa.int64())
        cover = shard.cover((slot, pa.chunked_array([times])) for slot in shard.slots)
        tables.append(hop_windows.answer_slides(query, cover, times))
        if query.spec.empty:
            rows = (*cover.rows, *cover.folds)
            parts = [table.select([*query.spec.by, TIME]) for table in rows]
            seen = query.latest(pa.concat_tables([seen, *parts]))
    if not tables:
        return None
    answers = pa.concat_tables(tables)
    if not query.spec.empty:
        return answers
    return _with_empty(shard, answers, seen)


def _ended(shard: ShardState, watermark: int) -> Iterator[list[int]]:
    """The ends of closed windows, some at a time, from a non-empty one on."""
    grid = shard.query.grid
    since = shard.earliest if shard.flushed is None else shard.flushed + 1
    while since is not None:
        end = grid.end_after(since)
        row = _first_row(shard, end - grid.length)
        if row is None:
            return
        end = max(end, grid.end_after(row))
        ends = [end + at * grid.every for at in range(_ENDS)]
        ends = [end for end in ends if end <= min(watermark + 1, _LATEST)]
        if not ends:
            return
        yield ends
        since = ends[-1]


def _first_row(shard: ShardState, since: int) -> int | None:
    """The time of the first row at or after a time, or None."""
    found = (
        shard.forest.first_row(slot.tree, since)
        for slot in shard.slots
        if slot.latest_time is not None and slot.latest_time >= since
    )
    return min((time for time in found if time is not None), default=None)


def _with_empty(shard: ShardState, answers: pa.Table, latest: pa.Table) -> pa.Table:
    """Adds the empty windows between each window and the key's one before it.

    Args:
        shard: The state.
        answers: Non-empty windows.
        latest: Their keys, each with the time of its latest row.
    """
    query, by = shard.query, list(shard.query.spec.by)
    ends = query.ticks(answers.select(["window_end"]).rename_columns([query.spec.on]))
    closed = answers.select(by).append_column(TIME, ends).select([TIME, *by])
    codes = query.codes([answers.select(by), latest.select(by)])
    place = pc.index_in(codes.slice(0, len(closed)), codes.slice(len(closed)))
    rows = latest[TIME].combine_chunks().take(place)
    closed = closed.append_column(LAST, rows)
    tables = [answers]
    for slot, part in shard.partition_rows(closed.cast(query.ended)):
        if slot.ended is not None:
            part = pa.concat_tables([shard.ends[slot.ended].rows, part])
        between = hop_windows.ends_between(query, part)
        if len(between):
            stops = between[TIME].combine_chunks()
            tables.append(hop_windows.answer_empty(query, between.select(by), stops))
        rows = part.select([*by, LAST]).rename_columns([*by, TIME])
        last = query.latest(rows)[TIME]
        ended = query.latest(part).select([TIME, *by]).append_column(LAST, last)
        shard.store_ends(slot, ended)
    return pa.concat_tables(tables)


def _answer_sessions(shard: ShardState, watermark: int) -> pa.Table | None:
    """A row per closed session."""
    query, until = shard.query, watermark - shard.query.reach
    slots = [
        slot
        for slot in shard.slots
        if slot.closing is not None and slot.closing <= until
    ]
    if not slots or shard.earliest is None:
        return None
    tables, counts = [hop_windows.no_rows(query)], [0] * len(slots)
    for at, slot in enumerate(slots):
        for rows in shard.forest.rows(slot.tree):
            counts[at] += len(rows)
            number = pa.repeat(pa.scalar(at, pa.int64()), len(rows))
            tables.append(rows.append_column(SLOT, number))
    rows = pa.concat_tables(tables).combine_chunks()
    found = hop_windows.answer_sessions(query, rows, until, shard.earliest)
    for at, slot in enumerate(slots):
        slot.closing = found.closing.get(at)
        rest = found.rest.filter(pc.equal(found.rest[SLOT], at)).combine_chunks()
        if len(rest) != counts[at]:
            shard.forest.clear(slot.tree)
            shard.forest.insert(slot.tree, rest.drop_columns(SLOT))
        if not len(rest):
            slot.latest_time = None
    shard.forest.refold()
    return found.answers


def drop_idle_keys(shard: ShardState, idle: pa.Table, until: int) -> None:
    """Drops the last windows of keys that are idle or have no rows after a time."""
    by = list(shard.query.spec.by)
    present = shard.keys(None)
    for slot in shard.slots:
        if slot.ended is None:
            continue
        ends = shard.ends[slot.ended].rows
        tables = [ends.select(by), idle.select(by), present.select(by)]
        codes = shard.query.codes(tables)
        own = codes.slice(0, len(ends))
        gone = pc.is_in(own, codes.slice(len(ends), len(idle)))
        here = pc.is_in(own, codes.slice(len(ends) + len(idle)))
        old = pc.and_(pc.less_equal(ends[LAST], until), pc.invert(here))
        shard.store_ends(slot, ends.filter(pc.invert(pc.or_(gone, old))))
