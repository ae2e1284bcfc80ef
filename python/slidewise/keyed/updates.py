"""Results for `emit="update"`: per batch, the changed keys at their latest rows."""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed.page_store import TIME
from slidewise.keyed.partitions import Slot
from slidewise.keyed.query import later_than
from slidewise.keyed.shard_state import ShardState
from slidewise.table.encoding import row_numbers

__all__ = ["answer", "latest", "were_given"]


def answer(
    shard: ShardState,
    rows: pa.Table,
    touched: list[Slot],
    deleted: pa.Table,
    watermark: int | None,
) -> pa.Table:
    """A row per key with new or deleted rows: the window at its latest row.

    Keys whose latest row is behind the watermark are left out: rows of their windows
    may have been evicted.
    """
    by = list(shard.query.spec.by)
    if len(deleted):
        touched = touched + [
            slot for slot, _ in shard.partition_rows(deleted) if slot not in touched
        ]
        # Their keys need results, but their times are no rows.
        no_times = pa.nulls(len(deleted), pa.int64())
        changed = deleted.select(by).append_column(TIME, no_times)
        rows = pa.concat_tables([changed, rows.select([*by, TIME])])
    tables, slots = [], []
    for at, slot in enumerate(touched):
        for table in shard.forest.latest(slot.tree):
            tables.append(table.select([*by, TIME]))
            slots.append(pa.repeat(pa.scalar(at, pa.int64()), len(table)))
    tables.append(rows.select([*by, TIME]))
    slots.append(pa.nulls(len(rows), pa.int64()))
    table = pa.concat_tables(tables).combine_chunks()
    spread = pa.table(
        {
            "code": shard.query.codes([table.select(by)]),
            "time": table.column(TIME),
            "slot": pa.concat_arrays(slots),
            "row": row_numbers(len(table)),
        }
    )
    aggs = [("time", "max"), ("slot", "max"), ("row", "max")]
    found = spread.group_by("code", use_threads=False).aggregate(aggs)
    # New rows are last in the table: a key with new rows has its last row among them.
    new = pc.greater_equal(found.column("row_max"), len(table) - len(rows))
    new = pc.and_(new, pc.is_valid(found.column("slot_max")))
    if watermark is not None:
        floor = watermark - shard.query.allowance
        new = pc.and_(new, later_than(found.column("time_max"), floor))
    found = found.filter(new).sort_by("slot_max").combine_chunks()
    latest = table.take(found.column("row_max")).select(by)
    latest = latest.append_column(TIME, found.column("time_max"))
    slot_points, start = [], 0
    for run in pc.value_counts(found.column("slot_max")).to_pylist():
        times = latest[TIME].slice(start, run["counts"])
        slot_points.append((touched[run["values"]], times))
        start += run["counts"]
    cover = shard.cover(slot_points)
    points = shard.query.query_points(latest.combine_chunks())
    answers = shard.query.answer_points(cover, points)
    return shard.query.answered(points, answers)


def latest(shard: ShardState, rows: pa.Table) -> pa.Table:
    """The keys of rows that have stored rows, each with its latest time."""
    by = list(shard.query.spec.by)
    tables = [shard.query.leaf.empty_table().select([*by, TIME])]
    for slot, _ in shard.partition_rows(rows):
        tables += [
            table.select([*by, TIME]) for table in shard.forest.latest(slot.tree)
        ]
    return shard.query.latest(pa.concat_tables(tables))


def were_given(shard: ShardState, answers: pa.Table, before: pa.Table) -> pa.Array:
    """A mask of the results whose keys had one before, at that time or later."""
    by, ticks = list(shard.query.spec.by), shard.query.ticks(answers)
    codes = shard.query.codes([answers.select(by), before.select(by)])
    known = codes.slice(len(answers))
    place = pc.index_in(codes.slice(0, len(answers)), known)
    last = before[TIME].combine_chunks().take(place)
    return pc.fill_null(pc.greater_equal(last, ticks), False)
