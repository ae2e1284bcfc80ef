"""Updates: per batch, the keys that changed, each at its latest row."""

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
    """Per key with new or deleted rows, the window that ends at its latest one.

    Not where the latest one left is behind the watermark: what its window holds may
    have gone by then.
    """
    by = list(shard.job.spec.by)
    if len(deleted):
        touched = touched + [
            slot for slot, _ in shard.deal(deleted) if slot not in touched
        ]
        # Their keys are answered, and their times are nobody's.
        nowhere = pa.nulls(len(deleted), pa.int64())
        changed = deleted.select(by).append_column(TIME, nowhere)
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
            "code": shard.job.codes([table.select(by)]),
            "time": table.column(TIME),
            "slot": pa.concat_arrays(slots),
            "row": row_numbers(len(table)),
        }
    )
    asked = [("time", "max"), ("slot", "max"), ("row", "max")]
    found = spread.group_by("code", use_threads=False).aggregate(asked)
    # New rows come last, so a key that has some has its last row among them.
    new = pc.greater_equal(found.column("row_max"), len(table) - len(rows))
    new = pc.and_(new, pc.is_valid(found.column("slot_max")))
    if watermark is not None:
        floor = watermark - shard.job.allowance
        new = pc.and_(new, later_than(found.column("time_max"), floor))
    found = found.filter(new).sort_by("slot_max").combine_chunks()
    latest = table.take(found.column("row_max")).select(by)
    latest = latest.append_column(TIME, found.column("time_max"))
    asked_slots, start = [], 0
    for run in pc.value_counts(found.column("slot_max")).to_pylist():
        times = latest[TIME].slice(start, run["counts"])
        asked_slots.append((touched[run["values"]], times))
        start += run["counts"]
    cover = shard.cover(asked_slots)
    moments = shard.job.moments(latest.combine_chunks())
    answers = shard.job.answer_moments(cover, moments)
    return shard.job.answered(moments, answers)


def latest(shard: ShardState, rows: pa.Table) -> pa.Table:
    """The keys of rows that have rows already, each with its latest time."""
    by = list(shard.job.spec.by)
    tables = [shard.job.leaf.empty_table().select([*by, TIME])]
    for slot, _ in shard.deal(rows):
        tables += [
            table.select([*by, TIME]) for table in shard.forest.latest(slot.tree)
        ]
    return shard.job.latest(pa.concat_tables(tables))


def were_given(shard: ShardState, answers: pa.Table, before: pa.Table) -> pa.Array:
    """Which keys were answered before, at the time that is answered or later."""
    by, ticks = list(shard.job.spec.by), shard.job.ticks(answers)
    codes = shard.job.codes([answers.select(by), before.select(by)])
    known = codes.slice(len(answers))
    place = pc.index_in(codes.slice(0, len(answers)), known)
    last = before[TIME].combine_chunks().take(place)
    return pc.fill_null(pc.greater_equal(last, ticks), False)
