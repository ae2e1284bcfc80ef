"""The entry before each window, whose value a window with `edge="carry"` begins with.

It is the last entry at or before the start of the window, so it takes a second pass of
the kernel: everything up to the starts. Windows of rows, and those that begin at a row,
have no start before their first entry: nothing is carried into them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.spec.windows.base import Span
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import RowKeys, subtract_clamped

__all__ = ["Before", "area_from_start", "entries_before", "starts_of"]

_FLOAT64 = pa.float64()


class Before(NamedTuple):
    """The entries before windows: null without one.

    Attributes:
        starts: The starts of the windows, in ticks.
        times: The times of the entries, in ticks.
        values: Their values.
    """

    starts: pa.Array
    times: pa.Array
    values: pa.Array


def starts_of(
    span: Span, points: QueryPoints | None, ends: pa.Array
) -> pa.Array | None:
    """The starts of windows with some ends; None if they are no times before them."""
    if points is not None and points.by_position:
        return points.since
    if points is not None and points.starts is not None:
        return points.starts
    if span.kind == "calendar":
        return pa.array(span.calendar.starts(ends)[0])
    return subtract_clamped(ends, span.length) if span.kind == "time" else None


def entries_before(
    starts: pa.Array,
    includes_start: bool,
    groups: pa.Array | None,
    rows: RowKeys,
    columns: Sequence[pa.Array],
    call: Call,
    layout: _core.SortLayout,
    threads: int,
) -> Before:
    """The last entries at or before the starts of windows.

    Args:
        starts: The starts.
        includes_start: Whether the starts belong to the windows: an entry there is
            none before.
        groups: The key codes of the windows.
        rows: The keys of the rows.
        columns: The inputs of the kernel.
        call: A call over the column and the times.
        layout: The rows sorted by key and time.
        threads: The number of threads.
    """
    until = subtract_clamped(starts, 1) if includes_start else starts
    points = QueryPoints(until, None, groups, None, "row")
    calls = [Call("max", call.by), Call("last", call.of)]
    span = Span("unbounded", 2**63 - 1, "right")
    (answers,), _ = _core.rolling(
        rows, columns, calls, [span], "peers", points, [], 0, threads, layout, True
    )
    return Before(starts, *map(pa.array, answers))


def area_from_start(
    agg: Aggregation, before: Before, first: pa.Array, value: pa.Array, ends: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """The area from the start of each window to its first entry, or to its end.

    Args:
        agg: The aggregation, which decides how values go on.
        before: The entries before the windows.
        first: The times of the first entries; null without one.
        value: Their values.
        ends: The ends of the windows.

    Returns:
        The areas, 0 where nothing is carried; and the times from which values hold.
    """
    held = before.values.cast(_FLOAT64, safe=False)
    until = pc.coalesce(first, ends)
    height = held
    if agg.hold == "linear":
        to = pc.coalesce(value.cast(_FLOAT64, safe=False), held)
        rise, run = pc.subtract(to, held), _ticks(before.times, until)
        # Where no time passes, in a window of length zero, any share will do.
        run = pc.max_element_wise(run, 1.0)
        share = pc.divide(_ticks(before.times, before.starts), run)
        at_start = pc.add(held, pc.multiply(rise, share))
        height = pc.multiply(pc.add(at_start, to), 0.5)
    area = pc.multiply(height, _ticks(before.starts, until))
    area = pc.if_else(before.times.is_valid(), area, 0.0)
    since = pc.if_else(before.times.is_valid(), before.starts, first)
    return area, since


def _ticks(since: pa.Array, until: pa.Array) -> pa.Array:
    return pc.subtract(until, since).cast(_FLOAT64, safe=False)
