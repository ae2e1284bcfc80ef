"""Windows whose ends are rows: `until`, slides by rows, `landmark` and `delta`.

The rows of a key have an order, which is final up to the watermark. So a window is
closed when the watermark passes the row that ends it. Rows that may end a window wait
for the watermark: those with a flag, or all rows if every k-th row ends a window.

The rows of a closed `until` leave the index, like those of a session. If every k-th row
ends a window, the first rows of a key leave in multiples of k. So the number of rows in
the index is that of all rows of the key, modulo k, and no count is stored.

The start of a window of `landmark` or `delta` never moves back from row to row. So the
first rows of a key leave, up to the start of the window of its last row.

A window with `edge="carry"` begins with the last entry of a column before it. So rows
behind the horizon leave but those with the last entries of the columns.
"""

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.frames.base import one_array
from slidewise.keyed.columns import EARLIEST, NUMBER, TIME
from slidewise.keyed.index import Index
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.row_log import RowLog
from slidewise.table.arrays import row_numbers
from slidewise.table.time_columns import subtract_clamped

__all__ = ["by_key", "closed_rows", "due_rows", "passed_rows", "surplus_rows"]


def by_key(
    query: KeyedQuery, rows: pa.Table
) -> tuple[pa.Table, pa.Array, pa.Array, pa.Array]:
    """A row of each key, in order of first occurrence.

    It also gives the earliest and the latest time of each key, and its number of rows.
    """
    codes = query.codes([rows.select(list(query.spec.by))])
    times = rows[TIME].combine_chunks()
    first, *found = map(pa.array, _core.group_ends(codes, times))
    return rows.take(first).combine_chunks(), *found


def closed_rows(
    query: KeyedQuery, index: Index, log: RowLog, ends: pa.Table
) -> pa.Table:
    """The rows of the windows of `until` that some rows close, key by key, in order.

    These `ends` have a flag, and are sorted by key, time and number. Per key, they are
    all flagged rows in the index up to the latest of them.
    """
    keys, _, until, _ = by_key(query, ends)
    points, numbers = index.numbers_by_key(keys, _always(len(keys)), until)
    is_end = pa.array(_core.are_among(numbers, ends[NUMBER].combine_chunks()))
    places = row_numbers(len(numbers)).cast(pa.int64())
    # The end of the window of each row: the next row of its key with a flag.
    end = pc.fill_null_backward(pc.if_else(is_end, places, None))
    closed = pc.fill_null(pc.equal(points.take(end), points), False)
    return _taken(log, numbers.filter(closed))


def due_rows(query: KeyedQuery, index: Index, log: RowLog, due: pa.Table) -> pa.Table:
    """The rows of the windows that every k-th row of a key ends, key by key, in order.

    The first rows of a key that are in none of these windows are left out, in multiples
    of the slide.

    Args:
        query: The query.
        index: The index.
        log: The log.
        due: The rows that a watermark passes, sorted by key, time and number. Windows
            that end with an earlier row are left out.
    """
    window = query.row_closed_window
    assert window is not None, "slides.answer calls this for windows that rows close"
    keys, earliest, latest, counts = by_key(query, due)
    always = _always(len(keys))
    points, numbers = index.numbers_by_key(keys, always, latest)
    held, places = _counts(points, len(keys))
    every = pa.scalar(window.slide_rows)
    before = pc.subtract(held, counts)
    first = pc.multiply(pc.add(pc.divide(before, every), 1), every)
    last = pc.multiply(pc.divide(held, every), every)
    if window.rows:
        idle = pc.max_element_wise(pc.subtract(first, window.rows), 0)
    else:
        behind = subtract_clamped(earliest, query.reach)
        if query.carries:
            behind = subtract_clamped(index.carried_since(keys, behind), 1)
        earlier, _ = index.numbers_by_key(keys, always, behind)
        idle, _ = _counts(earlier, len(keys))
    skipped = pc.multiply(pc.divide(idle, every), every)
    # Take no rows of keys without an end of a window.
    last = pc.if_else(pc.less_equal(first, last), last, 0)
    taken = pc.and_(
        pc.greater_equal(places, skipped.take(points)),
        pc.less(places, last.take(points)),
    )
    return _taken(log, numbers.filter(taken))


def surplus_rows(query: KeyedQuery, index: Index, log: RowLog, until: int) -> pa.Table:
    """The rows up to a time that no later window of a slide by rows holds.

    Their number per key is a multiple of the slide.
    """
    window = query.row_closed_window
    assert window is not None, "Shard calls this for windows that rows close"
    keys = index.keys()
    ends = pa.repeat(pa.scalar(until, pa.int64()), len(keys))
    points, numbers = index.numbers_by_key(keys, _always(len(keys)), ends)
    every = pa.scalar(window.slide_rows)
    held, places = _counts(points, len(keys))
    free = pc.max_element_wise(pc.subtract(held, query.rows), 0)
    if query.carries:
        behind = subtract_clamped(index.carried_since(keys, ends), 1)
        earlier, _ = index.numbers_by_key(keys, _always(len(keys)), behind)
        free = pc.min_element_wise(free, _counts(earlier, len(keys))[0])
    freed = pc.multiply(pc.divide(free, every), every)
    return _taken(log, numbers.filter(pc.less(places, freed.take(points))))


def passed_rows(query: KeyedQuery, index: Index, log: RowLog, until: int) -> pa.Table:
    """The rows up to a time that no window of a later row holds or begins with.

    With `carries`, the last row of each key is kept, too.
    """
    keys = index.keys()
    ends = pa.repeat(pa.scalar(until, pa.int64()), len(keys))
    points, numbers = index.numbers_by_key(keys, _always(len(keys)), ends)
    rows = _taken(log, numbers)
    held, places = _counts(points, len(keys))
    if not len(rows):
        return rows
    freed = pc.less(places, _before_last(query, rows, held).take(points))
    if query.carries:
        times = one_array(rows[TIME])
        for kept in (one_array(keys[TIME]), *index.carried_times(keys, ends)):
            leaves = pc.not_equal(times, kept.take(points))
            freed = pc.and_(freed, pc.fill_null(leaves, True))
    return rows.filter(freed).combine_chunks()


def _before_last(query: KeyedQuery, rows: pa.Table, held: pa.Array) -> pa.Array:
    """Of the rows of each key, the number before the window of its last row.

    Args:
        query: The query.
        rows: The rows, key by key, in order.
        held: The number of rows of each key.
    """
    free = pc.max_element_wise(pc.subtract(held, query.rows), 0)
    if not query.backward_windows:
        return free
    _, request = query.request([rows.drop_columns(NUMBER)])
    positions = request.positions
    last = pc.subtract(pc.cumulative_sum(held), 1)
    last = positions.of_rows.take(pc.if_else(pc.greater(held, 0), last, None))
    begins = positions.begins.take(last)
    for window in query.backward_windows:
        before = pc.subtract(window.starts(positions).take(last), begins)
        free = pc.min_element_wise(free, pc.fill_null(before, 0))
    return free


def _taken(log: RowLog, numbers: pa.Array) -> pa.Table:
    return log.take(numbers).append_column(NUMBER, numbers)


def _always(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(EARLIEST, pa.int64()), count)


def _counts(points: pa.Array, count: int) -> tuple[pa.Array, pa.Array]:
    """The count of each code below `count`, and each code's rank among equal codes."""
    counts, places = _core.places_in_groups(points, count)
    return pa.array(counts), pa.array(places)
