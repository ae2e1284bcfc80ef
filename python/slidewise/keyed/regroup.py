"""Moves rows into shards of another number, or of a query that has grown.

A key has all of its rows in one shard, before and after. Only the order of rows of
equal key and time matters, and these are all emitted or all waiting. So the rows of a
shard are taken out as two tables, and each is split by the new shards of its keys.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.frames.base import empty_table
from slidewise.keyed.columns import TIME, later_than
from slidewise.keyed.emit.last_windows import LastWindows
from slidewise.keyed.page_store import Pages, Store
from slidewise.keyed.processor import Processor
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.row_log import RowLog
from slidewise.keyed.shard import Directory

__all__ = [
    "CELLS",
    "EMITTED",
    "LAST_WINDOWS",
    "PENDING",
    "Position",
    "put_together",
    "take_out",
]

# The tables of a shard: rows that do not wait for the watermark, those that do, the
# last emitted windows of keys, and folded entries.
EMITTED, PENDING, LAST_WINDOWS, CELLS = "emitted", "pending", "last_windows", "cells"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream came, in all of its shards together.

    A shard emits what is due with each watermark, so what one has emitted up to a time,
    the others have, too.

    Attributes:
        fired: The watermark up to which results were emitted.
        history: The latest time of the rows before the stream.
        earliest: The time of the earliest row, which emitters of windows know.
        until: The time up to which rows may have been evicted.
        lost: The latest time of the rows that left, or a later one.
        folded: The last tick of the cells that were folded.
    """

    fired: int | None
    history: int | None
    earliest: int | None
    until: int | None
    lost: int | None
    folded: int | None

    @classmethod
    def of(cls, directories: Sequence[Directory]) -> Self:
        """The position of a stream with these shards."""
        logs = [directory["log"] for directory in directories]
        until = _most(log["until"] for log in logs)
        return cls(
            fired=_most(directory["flushed"] for directory in directories),
            history=_most(directory.get("history") for directory in directories),
            earliest=min(
                _known(each["earliest"] for each in directories), default=None
            ),
            until=until,
            lost=_most([until, *(log["lost"] for log in logs)]),
            folded=_most(log.get("folded") for log in logs),
        )


def _known(times: Iterable[int | None]) -> list[int]:
    return [time for time in times if time is not None]


def _most(times: Iterable[int | None]) -> int | None:
    return max(_known(times), default=None)


def take_out(
    query: KeyedQuery, store: Store, directory: Directory
) -> dict[str, pa.Table]:
    """The tables of a shard, by their names.

    Raises:
        SnapshotError: If a page is missing or damaged.
    """
    pages, fired = Pages(store), directory["flushed"]
    emitted, pending = [empty_table(query.stored_schema)], [_no_pending(query)]
    log = RowLog(query, pages, directory["log"])
    for rows, waits in log.alive():
        is_waiting = pa.repeat(pa.scalar(waits), len(rows))
        if waits and fired is not None:
            is_waiting = later_than(rows[TIME], fired)
        if waits:
            pending.append(rows.filter(is_waiting).select(pending[0].column_names))
            rows = rows.filter(pc.invert(is_waiting))
        emitted.append(rows.select(emitted[0].column_names))
    last = LastWindows(query, pages, directory["last"])
    return {
        EMITTED: pa.concat_tables(emitted),
        PENDING: pa.concat_tables(pending),
        LAST_WINDOWS: last.rows,
        CELLS: pa.concat_tables(
            [empty_table(query.folded_schema), *log.cells.entries(log.until)]
        ),
    }


def put_together(
    query: KeyedQuery,
    store: Store,
    position: Position,
    tables: Mapping[str, Sequence[pa.Table]],
) -> tuple[Directory, Processor]:
    """Makes a shard of tables of other shards, which had kept at least its columns.

    Args:
        query: The query of the shard.
        store: The store of its pages.
        position: The position of the stream.
        tables: The tables of its keys, by the names of `take_out`.

    Returns:
        The directory, and the shard as it is opened from it.
    """
    processor = Processor(query, store)
    shard = processor.shard
    for name in (EMITTED, PENDING):
        is_pending = name == PENDING
        schema = query.pending_schema if is_pending else query.stored_schema
        for part in tables.get(name, ()):
            rows = part.select(schema.names).combine_chunks()
            if len(rows):
                shard.log.append(rows, pending=is_pending)
    shard.fired, shard.history = position.fired, position.history
    shard.log.until, shard.log.lost = position.until, position.lost
    # Rows behind the bound of another shard leave.
    shard.log.compact()
    if position.folded is not None:
        shard.put_together(tables.get(CELLS, ()), position.folded)
    last = [empty_table(query.ended), *tables.get(LAST_WINDOWS, ())]
    processor.resume(position.earliest, pa.concat_tables(last).combine_chunks())
    directory = processor.commit()
    return directory, Processor(query, store, directory)


def _no_pending(query: KeyedQuery) -> pa.Table:
    return empty_table(query.pending_schema)
