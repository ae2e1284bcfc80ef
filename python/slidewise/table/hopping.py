"""Hopping, tumbling and session windows over a table: a row per key and window.

The kernel finds the windows that hold a row; these are evaluated as query points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Frame, Result, require
from slidewise.frames.polars import is_lazy
from slidewise.hints import with_hints
from slidewise.spec.durations import Session, WindowLike
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import describe_window
from slidewise.table.kernel_call import (
    KernelCall,
    QueryPoints,
    map_lazily,
    resolve_threads,
)
from slidewise.table.time_columns import window_ticks

__all__ = ["Windows", "compute_windows", "find_windows", "hopping", "hopping_spec"]

TableT = TypeVar("TableT")


@with_hints
def hopping(
    table: TableT,
    *,
    on: str,
    window: WindowLike | Session,
    aggs: Mapping[str, Aggregation],
    every: WindowLike | None = None,
    by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    empty: bool = False,
    nan: str = "propagate",
    min_rows: int = 0,
    overflow: str = "raise",
    threads: int | None = None,
) -> TableT:
    """Aggregates over hopping, tumbling or session windows.

    A window holds the rows with start ≤ time < end. Windows begin at every multiple of
    `every` since the epoch (in UTC), plus `offset`; a row is in window / every of them.

    Args:
        table: A table that `rolling` takes, in any order.
        on: The column of event times.
        window: The length of windows (`"1h"`, a `timedelta`, an int for integer times),
            or `session("30m")`: windows from the first to the last of rows that follow
            one another within the gap.
        aggs: Names and aggregations, such as `{"avg": sw.mean("price")}`.
        every: The distance between the starts of windows; by default their length
            (tumbling windows).
        by: The key column, or several. Null is a key.
        offset: Moves the grid: `window="1d", offset="6h"` for days from 6 to 6 (in UTC;
            `"1d"` is 24 hours, also where clocks change). The epoch was a Thursday, so
            windows of `"1w"` begin on Thursdays: with `offset="4d"` on Mondays.
        empty: Whether to include windows without rows between the first and the last
            window of a key.
        nan: As for `rolling`.
        min_rows: Windows with fewer values that are not null give null, except for
            counts.
        overflow: As for `rolling`.
        threads: As for `rolling`.

    Returns:
        A table of the same type with a row per key and window: the key columns,
        `window_start`, `window_end` (of a session: the times of its first and last
        row), and a column per aggregation. Both ends have the type of the times, or
        int64 for integers of any width. Keys are in order of first occurrence, the
        windows of a key in order of time.

    Raises:
        SpecError: If an argument, a column or a value is wrong; nothing is computed.
        ResultOverflowError: If an integer result does not fit its type, unless
            `overflow` or `min_rows` makes it null.

    Cost: O(n log n) to sort, if not sorted; then ≤ 3 combines per row and one per
    window, for any overlap.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [1, 4, 11], "km": [3, 5, 4]})
        >>> out = sw.hopping(trips, on="t", window=10, every=5,
        ...                  aggs={"n": sw.count(), "km": sw.sum("km")})
        >>> out["window_end"].to_pylist(), out["n"].to_pylist(), out["km"].to_pylist()
        ([5, 10, 15, 20], [2, 2, 1, 1], [8, 8, 4, 4])

        Weeks from Monday to Sunday:

        >>> import datetime as dt
        >>> days = pa.table({"day": [dt.date(2026, 1, 11), dt.date(2026, 1, 12)]})
        >>> weeks = sw.hopping(days, on="day", window="1w", offset="4d",
        ...                    aggs={"n": sw.count()})
        >>> [f"{start:%a %d %b}" for start in weeks["window_start"].to_pylist()]
        ['Mon 05 Jan', 'Mon 12 Jan']
    """
    spec = Spec.make_hopping(
        on=on,
        window=window,
        aggs=aggs,
        every=every,
        by=by,
        offset=offset,
        empty=empty,
        nan=nan,
        min_rows=min_rows,
        overflow=overflow,
    )
    return hopping_spec(table, spec, threads=threads)


def hopping_spec(table: TableT, spec: Spec, *, threads: int | None = None) -> TableT:
    """`hopping` for a `Spec`.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.spec.spec import Spec
        >>> spec = Spec.make_hopping(on="t", window=5, aggs={"n": sw.count()})
        >>> hopping_spec(pa.table({"t": [1, 2]}), spec)["n"].to_pylist()
        [2]
    """
    if is_lazy(table):
        lazy: TableT = map_lazily(
            table, spec, lambda rows: hopping_spec(rows, spec, threads=threads)
        )
        return lazy
    source = frame(table)
    require(source, spec.columns)
    request = KernelCall(source, spec, threads=resolve_threads(threads))
    answer: TableT = source.make(compute_windows(request, find_windows(request, spec)))
    return answer


@dataclass(frozen=True, slots=True)
class Windows:
    """Hopping or session windows, in order of key and time.

    Attributes:
        starts: The starts, in ticks of the time column.
        ends: The ends, in ticks.
        groups: The key codes.
        rows: The number of a row with the same key.
    """

    starts: pa.Array
    ends: pa.Array
    groups: pa.Array
    rows: pa.Array

    def filter(self, mask: pa.Array) -> "Windows":
        """The windows where the mask is true."""
        columns = (self.starts, self.ends, self.groups, self.rows)
        return Windows(*(column.filter(mask) for column in columns))


def compute_windows(request: KernelCall, windows: Windows) -> dict[str, Result]:
    """Computes windows: key columns, both ends and results, by name."""
    source, spec = request.source, request.spec
    points = QueryPoints(
        ends=windows.ends,
        starts=windows.starts,
        groups=windows.groups if spec.by else None,
        arrival=None,
        noun="window",
    )
    keys = [(name, column.take(windows.rows)) for name, column in request.key_columns]
    ends = request.times.window_ends(windows.ends)
    named = pa.table({**dict(keys), "window_end": ends})
    request.name_row = lambda row: describe_window(named, row, spec.by)
    (answers,) = request.compute(points)
    columns = {name: _key_result(source, name, column) for name, column in keys}
    dtype = source.dtype(spec.on)
    starts = request.times.window_ends(windows.starts)
    for name, times in (("window_start", starts), ("window_end", ends)):
        same_type = times.type == request.times.original.type
        columns[name] = Result(times, dtype, same_type, nullable=False)
    return {**columns, **answers}


def _key_result(source: Frame, name: str, column: pa.Array) -> Result:
    nullable = not source.never_null(name)
    return Result(column, source.dtype(name), same_type=True, nullable=nullable)


def find_windows(request: KernelCall, spec: Spec) -> Windows:
    """Finds the windows that hold a row, and those between them if `spec.empty`.

    Raises:
        SpecError: If there are too many, or one reaches beyond int64.
    """
    (window,) = spec.windows
    length = window_ticks(window.as_length, request.times)
    try:
        if window.is_session:
            found = _core.session_windows(request.rows, request.layout, length)
        else:
            every = window_ticks(window.as_every, request.times)
            shift = window_ticks(window.as_offset, request.times)
            found = _core.hop_windows(
                request.rows, request.layout, length, every, shift % every, spec.empty
            )
    except OverflowError as error:
        raise SpecError(
            f"the window of {window.label!r} around row {error} (counting from 0) "
            "reaches beyond the times that int64 can hold: drop the row, or cast the "
            f"column {spec.on!r} to a coarser unit"
        ) from None
    except MemoryError as error:
        raise SpecError(
            f"there are {error} windows, which do not fit into memory: give a larger ",
            Argument("every"),
            ", or leave empty= out" if spec.empty else "",
        ) from None
    return Windows(*(pa.array(column) for column in found))
