"""Accepted late rows (`late_rows="correct"`), and the results that they change.

A late row is accepted if it is behind the watermark by at most the longest window
(`KeyedQuery.allowance`); later ones are dropped. It changes the results of the rows of
its key whose windows hold its time. These windows begin at most the longest window
before it. So rows are kept for twice the longest window, and the last results are those
of the whole table.

With `edge="carry"` a window may begin with a late row that it does not hold. Such
results are computed without the late rows, too, and emitted if they differ.
"""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import count
from slidewise.keyed.columns import FRESH, LATEST, TIME
from slidewise.keyed.expiry import any_different
from slidewise.keyed.hop_windows import corrected_windows
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.shard import Shard
from slidewise.spec.spec import derive

__all__ = ["correct"]


def correct(
    shard: Shard, rows: pa.Table, watermark: int | None
) -> tuple[pa.Table, pa.Table | None]:
    """Appends accepted late rows; gives the other rows, and the corrected results.

    These are the results of late rows, and those that they change. All due results of
    the other rows of the state were emitted.
    """
    query = shard.query
    if watermark is None or not query.corrects:
        return rows, None
    in_time = pc.greater(rows[TIME], watermark)
    late = rows.filter(pc.invert(in_time)).combine_chunks()
    if not len(late):
        return rows, None
    results = _corrected(shard, late, watermark)
    shard.append(query.sort_batch(late), pending=False)
    return rows.filter(in_time).combine_chunks(), results


def _corrected(shard: Shard, late: pa.Table, watermark: int) -> pa.Table:
    """The results of late rows, and those that they change."""
    query = shard.query
    fresh = query.stored(late)
    fresh = fresh.append_column(FRESH, pa.repeat(pa.scalar(1, pa.int64()), len(late)))
    near = _near(shard, late, watermark)
    rows = pa.concat_tables([near, fresh], promote_options="default")
    rows = query.sort(rows.combine_chunks())
    if query.emit == "slide":
        return query.marked(*corrected_windows(query, rows, watermark))
    return query.marked(*_corrected_rows(query, rows))


def _near(shard: Shard, late: pa.Table, watermark: int) -> pa.Table:
    """The rows of all windows that hold one of the late rows."""
    # Windows of rows(n) may end at any time.
    behind = LATEST if shard.query.rows else shard.query.reach
    rows = shard.log.take(shard.numbers_between(late, shard.query.reach, behind))
    return rows.filter(pc.less_equal(rows[TIME], watermark)).combine_chunks()


def _moved(
    query: KeyedQuery, rows: pa.Table, answers: list[pa.Array], late: pa.Array
) -> pa.Array:
    """A mask of the rows, other than late ones, whose results these change."""
    earlier = pc.invert(late)
    _, request = query.request([rows.filter(earlier)])
    before = [r.array for window in request.compute(None) for r in window.values()]
    now = [answer.filter(earlier) for answer in answers]
    differ = any_different(zip(now, before, strict=True), len(now[0]))
    return pc.replace_with_mask(late, earlier, differ)


def _corrected_rows(query: KeyedQuery, rows: pa.Table) -> tuple[pa.Table, pa.Array]:
    """Results of rows whose windows hold a late row, and which are corrections."""
    spec = query.spec_of_points
    spec = derive(spec, aggs=(*spec.aggs, (FRESH, count(FRESH))))
    table, request = query.request([rows], spec)
    own = pc.is_valid(table.column(FRESH)).combine_chunks()
    answers, touched = [], own
    for window in request.compute(None):
        held = window.pop(FRESH).array
        touched = pc.or_(touched, pc.greater(held, 0))
        answers += [result.array for result in window.values()]
    if query.carries:
        touched = pc.or_(touched, _moved(query, table, answers, own))
    found = query.answered(table, answers)
    return found.filter(touched), pc.invert(own).filter(touched)
