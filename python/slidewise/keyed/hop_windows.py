"""What windows at a distance from one another give: hops on a grid, and sessions.

As of a job: which rows there are, and which windows are over, its caller knows.
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


def answer_slides(job: Query, cover: Cover, ends: pa.Array) -> pa.Table:
    """A row per key and window that ends at one of these times and holds a row."""
    rows, request = job.request([*cover.rows, *cover.folds])
    keys = job.latest(rows)
    places = row_numbers(len(keys) * len(ends))
    of_key = pc.divide(places, max(1, len(ends)))
    of_end = pc.subtract(places, pc.multiply(of_key, len(ends)))
    asked = keys.take(of_key).select(list(job.spec.by))
    table, answers = _answered(job, request, asked, ends.take(of_end))
    return table.filter(pc.greater(answers[-1], 0))


def answer_empty(job: Query, keys: pa.Table, ends: pa.Array) -> pa.Table:
    """What windows without rows give, for the keys of a table with those columns."""
    _, request = job.request([])
    table, _ = _answered(job, request, keys, ends)
    return table


def _answered(
    job: Query, request: KernelCall, keys: pa.Table, stops: pa.Array
) -> tuple[pa.Table, list[pa.Array]]:
    """Windows that end at these times, and all answers, those not asked for, too."""
    starts = pc.subtract(stops, job.grid.length)
    asked = keys.append_column(job.spec.on, job.restore(stops))
    ended = keys.append_column("window_end", job.times.window_ends(stops))
    request.name_row = lambda row: describe_window(ended, row, job.spec.by)
    moments = query_points_of(frame(asked), request, job.spec_of_moments)
    (window,) = request.compute(replace(moments, starts=starts))
    answers = [result.array for result in window.values()]
    table = keys.append_column("window_start", job.times.window_ends(starts))
    table = table.append_column("window_end", job.times.window_ends(stops))
    for (name, _), array in zip(job.spec.aggs, answers, strict=False):
        table = table.append_column(name, array)
    return table, answers


def ends_between(job: Query, keys: pa.Table) -> pa.Table:
    """The ends of windows between the first and the last ones of keys, these left out.

    Args:
        job: What is asked.
        keys: Keys, and under `TIME` the ends of their windows that hold rows.

    Raises:
        SpecError: If there are too many.
    """
    every, by = job.grid.every, list(job.spec.by)
    codes = job.codes([keys.select(by)])
    ends = keys.column(TIME).combine_chunks()
    # Steps of the grid that each hold one end, at their last tick.
    last = pc.subtract(ends, 1)
    shift = (job.grid.offset + job.grid.length) % every
    try:
        steps = (last, codes, None)
        found = _core.hop_windows(
            steps, _core.sort_rows(steps, 1), every, every, shift, True
        )
    except (MemoryError, OverflowError) as error:
        raise SpecError(
            "empty=True: a key comes back after too many windows without rows "
            f"({error}): give a larger ",
            Argument("every"),
            ", or leave empty= out",
        ) from None
    _, stops, groups, rows = (pa.array(column) for column in found)
    pairs = [
        pa.table({"code": groups, TIME: stops}),
        pa.table({"code": codes, TIME: ends}),
    ]
    of_window = job.codes(pairs)
    there = pc.is_in(of_window.slice(0, len(stops)), of_window.slice(len(stops)))
    table = keys.take(rows)
    table = table.set_column(table.column_names.index(TIME), TIME, stops)
    return table.filter(pc.invert(there)).combine_chunks()


@dataclass(frozen=True, slots=True)
class Sessions:
    """What became of rows that wait for the end of their sessions.

    Attributes:
        answers: A row per session that is over.
        rest: The rows of the others.
        closing: Per slot that has such rows, when the first session may end.
    """

    answers: pa.Table
    rest: pa.Table
    closing: dict[int, int]


def answer_sessions(job: Query, rows: pa.Table, until: int, since: int) -> Sessions:
    """The sessions that end at or before a time.

    Args:
        job: What is asked.
        rows: Rows with the number of their slot under `SLOT`.
        until: The last time of a session that is over.
        since: Sessions that end before are over, too, and not answered.
    """
    table, request = job.request([rows])
    windows = find_windows(request, job.spec)
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
    job: Query, rows: pa.Table, watermark: int
) -> tuple[pa.Table, pa.Array]:
    """Windows that are over and hold a late row; and whether each was given before.

    Args:
        job: What is asked.
        rows: All rows of these windows, sorted; the late ones marked under `FRESH`.
        watermark: What it has passed is over.
    """
    spec = job.spec_of_moments
    spec = replace(spec, aggs=(*spec.aggs, (FRESH, count(FRESH))))
    _, request = job.request([rows], spec)
    windows = find_windows(request, spec)
    windows = windows.filter(pc.less_equal(windows.ends, watermark + 1))
    table = _table(request, windows)
    late = pc.greater(table[FRESH], 0)
    again = pc.greater(table[ROWS], table[FRESH])
    names = [name for name in table.column_names if name not in (ROWS, FRESH)]
    return table.select(names).filter(late), again.filter(late).combine_chunks()


def answer_none(job: Query) -> pa.Table:
    """No windows, in the columns of all."""
    if not job.sessions:
        return answer_slides(job, Cover(), pa.array([], pa.int64()))
    return answer_sessions(job, no_rows(job), 0, 0).answers


def no_rows(job: Query) -> pa.Table:
    """No rows, as `answer_sessions` takes them."""
    return job.leaf.empty_table().append_column(SLOT, pa.array([], pa.int64()))
