"""Results of hopping windows and sessions of a query.

The caller provides the rows, and decides which windows are closed.
"""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations import count
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.keyed.page_store import FRESH, ROWS, SLOT, TIME
from slidewise.keyed.page_tree import Cover
from slidewise.keyed.query import Query
from slidewise.table.asof import query_points_of
from slidewise.table.batched_rolling import describe_window
from slidewise.table.encoding import row_numbers, single_group
from slidewise.table.hopping import Windows, compute_windows, find_windows
from slidewise.table.kernel_call import KernelCall

__all__ = [
    "Sessions",
    "answer_empty",
    "answer_none",
    "answer_sessions",
    "answer_slides",
    "corrected_windows",
    "ends_between",
]


def answer_slides(query: Query, cover: Cover, ends: pa.Array) -> pa.Table:
    """A row per key and non-empty window that ends at one of these times."""
    rows, request = query.request([*cover.rows, *cover.folds])
    keys = query.latest(rows)
    places = row_numbers(len(keys) * len(ends))
    of_key = pc.divide(places, max(1, len(ends)))
    of_end = pc.subtract(places, pc.multiply(of_key, len(ends)))
    keys_of_windows = keys.take(of_key).select(list(query.spec.by))
    table, answers = _answered(query, request, keys_of_windows, ends.take(of_end))
    return table.filter(pc.greater(answers[-1], 0))


def answer_empty(query: Query, keys: pa.Table, ends: pa.Array) -> pa.Table:
    """Results of empty windows, for the keys of a table."""
    _, request = query.request([])
    table, _ = _answered(query, request, keys, ends)
    return table


def _answered(
    query: Query, request: KernelCall, keys: pa.Table, stops: pa.Array
) -> tuple[pa.Table, list[pa.Array]]:
    """Windows that end at these times, with all results, `ROWS` among them."""
    starts = pc.subtract(stops, query.grid.length)
    keys_of_windows = keys.append_column(query.spec.on, query.restore(stops))
    ended = keys.append_column("window_end", query.times.window_ends(stops))
    request.name_row = lambda row: describe_window(ended, row, query.spec.by)
    points = query_points_of(frame(keys_of_windows), request, query.spec_of_points)
    (window,) = request.compute(replace(points, starts=starts))
    answers = [result.array for result in window.values()]
    table = keys.append_column("window_start", query.times.window_ends(starts))
    table = table.append_column("window_end", query.times.window_ends(stops))
    for (name, _), array in zip(query.spec.aggs, answers, strict=False):
        table = table.append_column(name, array)
    return table, answers


def ends_between(query: Query, keys: pa.Table) -> pa.Table:
    """The ends of the empty windows between the non-empty ones of each key.

    Args:
        query: The query.
        keys: Keys, with the ends of their non-empty windows in `TIME`.

    Raises:
        SpecError: If there are too many.
    """
    every, by = query.grid.every, list(query.spec.by)
    codes = query.codes([keys.select(by)])
    ends = keys.column(TIME).combine_chunks()
    # Hops of length `every`, each with one end at its last tick.
    last = pc.subtract(ends, 1)
    shift = (query.grid.offset + query.grid.length) % every
    try:
        steps = (last, codes, None)
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


@dataclass(frozen=True, slots=True)
class Sessions:
    """Results of closed sessions, and the rows of open ones.

    Attributes:
        answers: A row per closed session.
        rest: The rows of open sessions.
        closing: Per slot with open sessions, the earliest time one may end.
    """

    answers: pa.Table
    rest: pa.Table
    closing: dict[int, int]


def answer_sessions(query: Query, rows: pa.Table, until: int, since: int) -> Sessions:
    """Closes the sessions that end at or before a time.

    Args:
        query: The query.
        rows: Rows, with the number of their slot in `SLOT`.
        until: Sessions are closed if they end at or before this time.
        since: Results are given only for sessions that end at or after this time.
    """
    table, request = query.request([rows])
    windows = find_windows(request, query.spec)
    is_over = pc.less_equal(windows.ends, until)
    over = windows.filter(is_over)
    given = over.filter(pc.greater_equal(over.ends, since))
    answers = _table(request, given)
    left = windows.filter(pc.invert(is_over))
    ends = pa.table({"slot": table[SLOT].take(left.rows), "end": left.ends})
    found = ends.group_by("slot", use_threads=False).aggregate([("end", "min")])
    closing = {row["slot"]: row["end_min"] for row in found.to_pylist()}
    groups = request.groups
    if groups is None:
        groups = single_group(len(table))
    last = pa.table({"code": over.groups, "end": over.ends})
    last = last.group_by("code", use_threads=False).aggregate([("end", "max")])
    last = last.combine_chunks()
    place = pc.index_in(groups, last["code"].combine_chunks())
    cutoff = last["end_max"].combine_chunks().take(place)
    gone = pc.fill_null(pc.less_equal(table[TIME], cutoff), False)
    rest = table.filter(pc.invert(gone)).select(rows.column_names).combine_chunks()
    return Sessions(answers, rest, closing)


def _table(request: KernelCall, windows: Windows) -> pa.Table:
    found = compute_windows(request, windows)
    return pa.table({name: result.array for name, result in found.items()})


def corrected_windows(
    query: Query, rows: pa.Table, watermark: int
) -> tuple[pa.Table, pa.Array]:
    """Closed windows that hold a late row, and whether each was emitted before.

    Args:
        query: The query.
        rows: All rows of these windows, sorted; late ones are marked in `FRESH`.
        watermark: Windows that end before it are closed.
    """
    spec = query.spec_of_points
    spec = replace(spec, aggs=(*spec.aggs, (FRESH, count(FRESH))))
    _, request = query.request([rows], spec)
    windows = find_windows(request, spec)
    windows = windows.filter(pc.less_equal(windows.ends, watermark + 1))
    table = _table(request, windows)
    late = pc.greater(table[FRESH], 0)
    again = pc.greater(table[ROWS], table[FRESH])
    names = [name for name in table.column_names if name not in (ROWS, FRESH)]
    return table.select(names).filter(late), again.filter(late).combine_chunks()


def answer_none(query: Query) -> pa.Table:
    """An empty table of results."""
    if not query.sessions:
        return answer_slides(query, Cover(), pa.array([], pa.int64()))
    return answer_sessions(query, no_rows(query), 0, 0).answers


def no_rows(query: Query) -> pa.Table:
    """An empty table of rows, for `answer_sessions`."""
    return query.leaf.empty_table().append_column(SLOT, pa.array([], pa.int64()))
