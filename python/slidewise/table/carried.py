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
from slidewise.spec.windows.base import Span, Window
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import RowKeys, subtract_clamped

__all__ = ["Before", "entries_before", "span_before", "starts_of"]

_LATEST = 2**63 - 1


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


def span_before(window: Window, span: Span) -> Span | None:
    """The window of all entries before another one, with the same query point.

    None if the other one does not begin a length of time before its end.
    """
    if span.kind != "time" or not window.begins_at_time:
        return None
    closed = "left" if window.includes_start else "right"
    return Span("unbounded", _LATEST, closed, min(span.offset + span.length, _LATEST))


def entries_before(
    starts: pa.Array,
    includes_start: bool,
    keys: tuple[pa.Array | None, pa.Array | None],
    rows: RowKeys,
    columns: Sequence[pa.Array],
    calls: tuple[Call, Call],
    layout: _core.SortLayout | None,
    threads: int,
) -> Before:
    """The last entries at or before the starts of windows.

    Args:
        starts: The starts.
        includes_start: Whether the starts belong to the windows: an entry there is
            none before.
        keys: The key codes of the windows, and when rows that count have arrived.
        rows: The keys of the rows.
        columns: The inputs of the kernel.
        calls: The calls that give the times and the values of last entries.
        layout: The rows sorted by key and time, if all of them count.
        threads: The number of threads.
    """
    until = subtract_clamped(starts, 1) if includes_start else starts
    points = QueryPoints(until, None, *keys, "row")
    span = Span("unbounded", _LATEST, "right")
    (answers,), _ = _core.rolling(
        rows, columns, [*calls], [span], "peers", points, [], 0, threads, layout, True
    )
    return Before(starts, *map(pa.array, answers))
