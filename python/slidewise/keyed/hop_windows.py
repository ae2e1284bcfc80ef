"""The results of hopping windows and sessions of a query.

The caller gives the rows, and decides which windows are closed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations import count
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.arrow import append_columns
from slidewise.frames.base import Result, empty_table, one_array
from slidewise.keyed.columns import FRESH, LATEST, ROWS, TIME
from slidewise.keyed.expiry import any_different
from slidewise.keyed.query import KeyedQuery
from slidewise.spec.spec import derive
from slidewise.table.asof import query_points_of
from slidewise.table.batched_rolling import describe_window
from slidewise.table.hopping import Windows, compute_windows, find_windows
from slidewise.table.kernel_call import KernelCall
from slidewise.table.time_columns import RowKeys

__all__ = [
    "answer_empty",
    "answer_none",
    "answer_sessions",
    "answer_windows",
    "corrected_windows",
    "ends_between",
    "joined",
    "naming_windows",
    "table_of_windows",
    "without_marks",
]


def answer_windows(
    query: KeyedQuery, rows: pa.Table, windows: pa.Table
) -> dict[str, Result]:
    """The results of windows, computed from their rows; more rows are allowed.

    Windows are given by their keys, with their stops in `TIME`.
    """
    _, request = query.request([rows])
    request.name_row = naming_windows(query, windows)
    ends = query.grid.ends(windows.column(TIME).combine_chunks())
    keys = windows.select(list(query.spec.by))
    points = keys.append_column(query.spec.on, query.times.restore(ends))
    found = query_points_of(frame(points), request, query.spec_of_points)
    starts = query.grid.starts(ends)
    (results,) = request.compute(replace(found, starts=starts))
    return results


def naming_windows(query: KeyedQuery, windows: pa.Table) -> Callable[[int], str]:
    """Returns a function that names a window in messages, by key and end."""
    ends = query.grid.ends(windows.column(TIME).combine_chunks())
    ended = windows.select(list(query.spec.by)).append_column(
        "window_end", query.times.window_ends(ends)
    )
    return lambda row: describe_window(ended, row, query.spec.by)


def table_of_windows(
    query: KeyedQuery, windows: pa.Table, results: dict[str, Result]
) -> pa.Table:
    """A table of windows: keys, start, end and results.

    It includes the results that only `spec_of_points` has.
    """
    ends = query.grid.ends(windows.column(TIME).combine_chunks())
    starts = query.grid.starts(ends)
    columns = {
        "window_start": query.times.window_ends(starts),
        "window_end": query.times.window_ends(ends),
        **{name: results[name].array for name, _ in query.spec_of_points.aggs},
    }
    table = windows.select(list(query.spec.by))
    return append_columns(table, columns, columns.values())


def answer_empty(query: KeyedQuery, windows: pa.Table) -> pa.Table:
    """The results of empty windows, given by keys and their stops in `TIME`."""
    results = answer_windows(query, empty_table(query.stored_schema), windows)
    table = table_of_windows(query, windows, results)
    return without_marks(table)


def without_marks(windows: pa.Table) -> pa.Table:
    """Drops the results that are not in the Spec."""
    marks = (ROWS, FRESH)
    return windows.select([name for name in windows.column_names if name not in marks])


def ends_between(query: KeyedQuery, keys: pa.Table) -> pa.Table:
    """The stops of the empty windows between the non-empty ones of each key.

    Args:
        query: The query.
        keys: Keys, with the stops of their non-empty windows in `TIME`.
    """
    every, by = query.grid.every, list(query.spec.by)
    codes = query.codes([keys.select(by)])
    ends = keys.column(TIME).combine_chunks()
    # Windows of length `every`, with a row at the last tick of each non-empty one.
    last = pc.subtract(ends, 1)
    shift = (query.grid.offset + query.grid.length) % every
    try:
        steps = RowKeys(last, codes)
        found = _core.hop_windows(
            steps, _core.sort_rows(steps, 1), every, every, shift, True
        )
    except (MemoryError, OverflowError) as error:
        raise SpecError(
            "empty=True: a key has rows again after too many empty windows "
            f"({error}): give a larger ",
            Argument("every"),
            ", or leave empty= out",
        ) from None
    _, stops, groups, rows = (pa.array(column) for column in found)
    pairs = [
        pa.table({"code": groups, TIME: stops}),
        pa.table({"code": codes, TIME: ends}),
    ]
    of_window = query.codes(pairs)
    present = pc.is_in(of_window.slice(0, len(stops)), of_window.slice(len(stops)))
    table = keys.take(rows)
    table = table.set_column(table.column_names.index(TIME), TIME, stops)
    return table.filter(pc.invert(present)).combine_chunks()


def answer_sessions(query: KeyedQuery, rows: pa.Table, since: int) -> pa.Table:
    """Results of sessions, or of windows that rows close, from all of their rows.

    Only windows that end at or after `since` get results.
    """
    _, request = query.request([rows])
    windows = find_windows(request, query.spec)
    return _table(request, windows.filter(pc.greater_equal(windows.ends, since)))


def _table(request: KernelCall, windows: Windows) -> pa.Table:
    found = compute_windows(request, windows)
    return pa.table({name: result.array for name, result in found.items()})


def joined(
    query: KeyedQuery, parts: Sequence[tuple[KeyedQuery, pa.Table]]
) -> pa.Table | None:
    """The results of the parts of a query, by end, then by part; None for no parts."""
    if not query.spec.several:
        return parts[0][1] if parts else None
    place, tables = len(query.spec.by), []
    for part, table in parts:
        (window,) = part.spec.windows
        label = pa.repeat(pa.scalar(window.name), len(table))
        tables.append(table.add_column(place, "window", label))
    if not tables:
        return None
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return table.take(pc.sort_indices(table, [("window_end", "ascending")]))


def corrected_windows(
    query: KeyedQuery, rows: pa.Table, watermark: int
) -> tuple[pa.Table, pa.Array]:
    """Closed windows that hold a late row, and whether each was emitted before.

    The rows are all rows of these windows, sorted; late ones are marked in `FRESH`.
    Windows without times after the watermark are closed.
    """
    parts = []
    for part in query.parts:
        table, again = _corrected(part, rows, watermark)
        parts.append((part, table.append_column(FRESH, again)))
    table = joined(query, parts)
    assert table is not None, "a query has a part"
    return table.drop_columns(FRESH), table[FRESH].combine_chunks()


def _corrected(
    query: KeyedQuery, rows: pa.Table, watermark: int
) -> tuple[pa.Table, pa.Array]:
    """`corrected_windows` for one of the windows."""
    spec = query.spec_of_points
    spec = derive(spec, aggs=(*spec.aggs, (FRESH, count(FRESH))))
    _, request = query.request([rows], spec)
    windows = find_windows(request, spec)
    closed = min(query.grid.last_closed_end(watermark), LATEST)
    windows = windows.filter(pc.less_equal(windows.ends, closed))
    table = _table(request, windows)
    late = pc.greater(table[FRESH], 0)
    again = pc.greater(table[ROWS], table[FRESH])
    if query.carries:
        late = pc.or_(late, pc.and_(again, _moved(query, rows, windows, table)))
    return without_marks(table).filter(late), again.filter(late).combine_chunks()


def _moved(
    query: KeyedQuery, rows: pa.Table, windows: Windows, table: pa.Table
) -> pa.Array:
    """A mask of the windows with other results than without the late rows."""
    earlier = rows.filter(rows[FRESH].is_null()).drop_columns(FRESH)
    stops = pc.add(windows.ends, query.grid.stop_shift)
    points = table.select(list(query.spec.by)).append_column(TIME, stops)
    before = answer_windows(query, earlier, points)
    pairs = (
        (one_array(table[name]), before[name].array) for name, _ in query.spec.aggs
    )
    return any_different(pairs, len(table))


def answer_none(query: KeyedQuery) -> pa.Table:
    """An empty table of results."""
    if query.spec.several:
        table = joined(query, [(part, answer_none(part)) for part in query.parts])
        assert table is not None, "a query has a part"
        return table
    rows = empty_table(query.stored_schema)
    if query.sessions or query.row_closed_window:
        return answer_sessions(query, rows, 0)
    return answer_empty(query, empty_table(query.ended))
