"""The entry before each window, whose value a window with `edge="carry"` begins with.

It is the last entry at or before the start of the window, so it takes a second pass of
the kernel: everything up to the starts. Windows of rows, and those that begin at a row,
have no start before their first entry: nothing is carried into them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

import slidewise._core as _core
from slidewise.aggregations.call import Call
from slidewise.spec.windows.base import Span
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import RowKeys, subtract_clamped

__all__ = ["Before", "entries_before", "starts_of"]


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
