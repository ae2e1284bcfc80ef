"""Which windows are over once a watermark has moved on, and what they give.

Hops are over with the watermark behind their end: those that hold a row are answered,
and with them the windows without rows between the key's last answered one and them, if
these are wanted. Sessions are over once no row may join them: the watermark has passed
their last row by the gap. Then their rows go.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed import hop_windows
from slidewise.keyed.page_store import LAST, SLOT, TIME
from slidewise.keyed.shard_state import ShardState

__all__ = ["answer", "due", "forget"]

_LATEST = 2**63 - 1
# Windows that are answered at once when hops end.
_ENDS = 64


def due(shard: ShardState) -> int | None:
    """The watermark from which on there may be something to answer; or None."""
    if not shard.job.sessions:
        ends = next(_ended(shard, _LATEST), None)
        return None if ends is None else ends[0] - 1
    if shard.oldest is None:
        return None
    closing = (slot.closing for slot in shard.slots if slot.closing is not None)
    first = min(closing, default=None)
    return None if first is None else first + shard.job.reach


def answer(shard: ShardState, watermark: int) -> pa.Table | None:
    """Per key and window that is over, a row."""
    if shard.job.sessions:
        return _answer_sessions(shard, watermark)
    job, tables = shard.job, []
    seen = job.leaf.empty_table().select([*job.spec.by, TIME])
    for ends in _ended(shard, watermark):
        times = pa.array(ends, pa.int64())
        cover = shard.cover((slot, pa.chunked_array([times])) for slot in shard.slots)
        tables.append(hop_windows.answer_slides(job, cover, times))
        if job.spec.empty:
            rows = (*cover.rows, *cover.folds)
            parts = [table.select([*job.spec.by, TIME]) for table in rows]
            seen = job.latest(pa.concat_tables([seen, *parts]))
    if not tables:
        return None
    answers = pa.concat_tables(tables)
    if not job.spec.empty:
        return answers
    return _with_empty(shard, answers, seen)


def _ended(shard: ShardState, watermark: int) -> Iterator[list[int]]:
    """The ends of windows that hold a row and are complete, some at a time."""
    grid = shard.job.grid
    since = shard.oldest if shard.flushed is None else shard.flushed + 1
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
    """The time of the first row that is not older."""
    found = (
        shard.forest.first_row(slot.tree, since)
        for slot in shard.slots
        if slot.youngest is not None and slot.youngest >= since
    )
    return min((time for time in found if time is not None), default=None)


def _with_empty(shard: ShardState, answers: pa.Table, latest: pa.Table) -> pa.Table:
    """And the windows without rows in front of each, back to the key's last one.

    Args:
        shard: What the answers are of.
        answers: Windows that hold rows.
        latest: Their keys, each with the time of its latest row.
    """
    job, by = shard.job, list(shard.job.spec.by)
    ends = job.ticks(answers.select(["window_end"]).rename_columns([job.spec.on]))
    asked = answers.select(by).append_column(TIME, ends).select([TIME, *by])
    codes = job.codes([answers.select(by), latest.select(by)])
    place = pc.index_in(codes.slice(0, len(asked)), codes.slice(len(asked)))
    rows = latest[TIME].combine_chunks().take(place)
    asked = asked.append_column(LAST, rows)
    tables = [answers]
    for slot, part in shard.deal(asked.cast(job.ended)):
        if slot.ended is not None:
            part = pa.concat_tables([shard.ends[slot.ended].rows, part])
        between = hop_windows.ends_between(job, part)
        if len(between):
            stops = between[TIME].combine_chunks()
            tables.append(hop_windows.answer_empty(job, between.select(by), stops))
        rows = part.select([*by, LAST]).rename_columns([*by, TIME])
        last = job.latest(rows)[TIME]
        ended = job.latest(part).select([TIME, *by]).append_column(LAST, last)
        shard.remember(slot, ended)
    return pa.concat_tables(tables)


def _answer_sessions(shard: ShardState, watermark: int) -> pa.Table | None:
    """Per session that is over, a row."""
    job, until = shard.job, watermark - shard.job.reach
    slots = [
        slot
        for slot in shard.slots
        if slot.closing is not None and slot.closing <= until
    ]
    if not slots or shard.oldest is None:
        return None
    tables, counts = [hop_windows.no_rows(job)], [0] * len(slots)
    for at, slot in enumerate(slots):
        for rows in shard.forest.rows(slot.tree):
            counts[at] += len(rows)
            number = pa.repeat(pa.scalar(at, pa.int64()), len(rows))
            tables.append(rows.append_column(SLOT, number))
    rows = pa.concat_tables(tables).combine_chunks()
    found = hop_windows.answer_sessions(job, rows, until, shard.oldest)
    for at, slot in enumerate(slots):
        slot.closing = found.closing.get(at)
        rest = found.rest.filter(pc.equal(found.rest[SLOT], at)).combine_chunks()
        if len(rest) != counts[at]:
            shard.forest.clear(slot.tree)
            shard.forest.insert(slot.tree, rest.drop_columns(SLOT))
        if not len(rest):
            slot.youngest = None
    shard.forest.settle()
    return found.answers


def forget(shard: ShardState, idle: pa.Table, until: int) -> None:
    """Forgets the last windows of keys that are idle, or have no rows since a time."""
    by = list(shard.job.spec.by)
    present = shard.keys(None)
    for slot in shard.slots:
        if slot.ended is None:
            continue
        ends = shard.ends[slot.ended].rows
        tables = [ends.select(by), idle.select(by), present.select(by)]
        codes = shard.job.codes(tables)
        own = codes.slice(0, len(ends))
        gone = pc.is_in(own, codes.slice(len(ends), len(idle)))
        here = pc.is_in(own, codes.slice(len(ends) + len(idle)))
        old = pc.and_(pc.less_equal(ends[LAST], until), pc.invert(here))
        shard.remember(slot, ends.filter(pc.invert(pc.or_(gone, old))))
