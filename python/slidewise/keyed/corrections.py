"""Accepted late rows (`late_rows="correct"`), and the results that they change.

A late row behind the watermark by at most the longest window (`Query.allowance`) is
accepted. It changes emitted results: those of rows of its key whose windows hold its
time. The rows of these windows lie within another longest window, so rows are kept for
twice the longest window, and the last results are those of the whole table. Rows that
are later still are dropped.
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
    """The results that late rows change, and their own. Insert the rows afterwards.

    Args:
        shard: The state with the earlier rows, whose due results were emitted.
        late: Late rows, in the columns of waiting rows.
        watermark: Results after it are not emitted yet.
    """
    query = shard.query
    fresh = query.kept(late)
    fresh = fresh.append_column(FRESH, pa.repeat(pa.scalar(1, pa.int64()), len(late)))
    near = _near(shard, late, watermark)
    rows = pa.concat_tables([near, fresh], promote_options="default")
    rows = query.sort(rows.combine_chunks())
    if query.emit == "slide":
        return query.marked(*corrected_windows(query, rows, watermark))
    return query.marked(*_corrected_rows(query, rows))


def _near(shard: ShardState, late: pa.Table, watermark: int) -> pa.Table:
    """The rows of all windows that hold one of these rows."""
    query = shard.query
    by, tables = list(query.spec.by), [query.leaf.empty_table()]
    for slot, part in shard.partition_rows(late):
        first, last = part[TIME][0].as_py(), part[TIME][-1].as_py()
        # Windows of rows(n) may begin at any time.
        since = None if query.rows else first - query.reach
        until = watermark if query.rows else min(last + query.reach, watermark)
        rows = pa.concat_tables(
            [query.leaf.empty_table(), *shard.forest.between(slot.tree, since, until)]
        ).combine_chunks()
        codes = query.codes([rows.select(by), part.select(by)])
        same = pc.is_in(codes.slice(0, len(rows)), codes.slice(len(rows)))
        tables.append(rows.filter(same))
    return pa.concat_tables(tables)


def _corrected_rows(query: StreamQuery, rows: pa.Table) -> tuple[pa.Table, pa.Array]:
    """Results of rows whose windows hold a late row; whether each replaces another."""
    spec = query.spec_of_points
    spec = replace(spec, aggs=(*spec.aggs, (FRESH, count(FRESH))))
    table, request = query.request([rows], spec)
    own = pc.is_valid(table.column(FRESH)).combine_chunks()
    answers, touched = [], own
    for window in request.compute(None):
        held = window.pop(FRESH).array
        touched = pc.or_(touched, pc.greater(held, 0))
        answers += [result.array for result in window.values()]
    found = query.answered(table, answers)
    return found.filter(touched), pc.invert(own).filter(touched)
