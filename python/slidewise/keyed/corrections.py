"""Late rows that are taken in after all: which answers they change.

A late row no further behind the watermark than the longest window (`Query.allowance`)
changes answers that were given: of rows of its key whose windows reach over its time,
or of windows that hold it. The rows of all these windows lie within another longest
window, so that is for how long rows are kept, and the answers are those of the whole
table. Rows that are older still are late for good.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import count
from slidewise.keyed.hop_windows import corrected_windows
from slidewise.keyed.page_store import FRESH, TIME
from slidewise.keyed.shard_state import ShardState
from slidewise.keyed.stream_query import StreamQuery

__all__ = ["corrected"]


def corrected(shard: ShardState, late: pa.Table, watermark: int) -> pa.Table:
    """The answers that late rows change, and their own; to be inserted behind.

    Args:
        shard: Where the rows before are; all is answered that its watermark has passed.
        late: Late rows, arranged.
        watermark: All later rows have no answer yet.
    """
    job = shard.job
    fresh = job.kept(late)
    fresh = fresh.append_column(FRESH, pa.repeat(pa.scalar(1, pa.int64()), len(late)))
    near = _near(shard, late, watermark)
    rows = pa.concat_tables([near, fresh], promote_options="default")
    rows = job.sort(rows.combine_chunks())
    if job.emit == "slide":
        return job.marked(*corrected_windows(job, rows, watermark))
    return job.marked(*_corrected_rows(job, rows))


def _near(shard: ShardState, late: pa.Table, watermark: int) -> pa.Table:
    """The rows that windows with one of these rows can hold."""
    job = shard.job
    by, tables = list(job.spec.by), [job.leaf.empty_table()]
    for slot, part in shard.deal(late):
        first, last = part[TIME][0].as_py(), part[TIME][-1].as_py()
        # Of windows of rows, the rows before and behind may lie anywhere.
        since = None if job.rows else first - job.reach
        until = watermark if job.rows else min(last + job.reach, watermark)
        rows = pa.concat_tables(
            [job.leaf.empty_table(), *shard.forest.between(slot.tree, since, until)]
        ).combine_chunks()
        codes = job.codes([rows.select(by), part.select(by)])
        same = pc.is_in(codes.slice(0, len(rows)), codes.slice(len(rows)))
        tables.append(rows.filter(same))
    return pa.concat_tables(tables)


def _corrected_rows(job: StreamQuery, rows: pa.Table) -> tuple[pa.Table, pa.Array]:
    """The rows whose windows hold a late one, and these; whether each is sent again."""
    spec = job.spec_of_moments
    spec = replace(spec, aggs=(*spec.aggs, (FRESH, count(FRESH))))
    table, request = job.request([rows], spec)
    own = pc.is_valid(table.column(FRESH)).combine_chunks()
    answers, touched = [], own
    for window in request.compute(None):
        held = window.pop(FRESH).array
        touched = pc.or_(touched, pc.greater(held, 0))
        answers += [result.array for result in window.values()]
    found = job.answered(table, answers)
    return found.filter(touched), pc.invert(own).filter(touched)
