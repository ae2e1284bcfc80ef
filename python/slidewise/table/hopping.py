"""Hopping, tumbling and session windows over a table: a row per key and window.

The kernel finds the windows that hold a row; these are evaluated as query points.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame, refuse_without_on
from slidewise.frames.base import Frame, Result, require
from slidewise.frames.lazy import is_lazy
from slidewise.hints import with_hints
from slidewise.spec.durations import Length, WindowLike
from slidewise.spec.given import given_spec
from slidewise.spec.outputs import column_of
from slidewise.spec.query import Query
from slidewise.spec.spec import EveryLike, HoppingLike, Spec, given_keywords
from slidewise.spec.windows.base import Window
from slidewise.table.arrays import one_column, take
from slidewise.table.batched_rolling import describe_window
from slidewise.table.kernel_call import KernelCall, map_lazily
from slidewise.table.points import QueryPoints
from slidewise.table.source import Source
from slidewise.table.threads import resolve_threads
from slidewise.table.time_columns import (
    RowKeys,
    TicksOf,
    subtract_clamped,
    window_ticks,
)
from slidewise.table.unique import UniqueRows

__all__ = [
    "Windows",
    "compute_several",
    "compute_windows",
    "find_windows",
    "hopping",
    "hopping_spec",
]

TableT = TypeVar("TableT")


@with_hints
def hopping(
    table: TableT,
    spec: Spec | None = None,
    *,
    on: str | None = None,
    aggs: Mapping[str, Aggregation] | None = None,
    window: HoppingLike | None = None,
    windows: Iterable[HoppingLike | Query] | None = None,
    every: EveryLike | None = None,
    by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    empty: bool = False,
    closed: str | None = None,
    nan: str = "propagate",
    min_rows: int = 0,
    unique_by: str | Sequence[str] | None = None,
    overflow: str = "raise",
    names: str | None = None,
    prefix: str = "",
    fill: Any = None,
    threads: int | None = None,
) -> TableT:
    """Aggregates over hopping, tumbling or session windows, or windows that rows close.

    A window holds the rows with start ≤ time < end. Windows begin at every multiple of
    `every` since the epoch (in UTC), plus `offset`; a row is in window / every of them.

    With `every=rows(n)` every n-th row of a key (in order of time, those of equal time
    as in the table) has a window that ends with it, as in `rolling`: the last rows of
    `window=rows(m)`, or those later than the row's time less the window's length.

    Args:
        table: A table that `rolling` takes, in any order.
        spec: A `Spec`, in place of the arguments that make one: all but `threads`.
        on: The column of event times.
        aggs: Names and aggregations, such as `{"avg": sw.mean("price")}`.
        window: The length of windows (`"1h"`, a `timedelta`, an int for integer times,
            `rows(n)`); `session("30m")`: windows from the first to the last of rows
            that follow one another within the gap; `until("flag")`: windows that rows
            close (one that no row has closed yet is left out); or
            `cumulate("1d", every="1h")`: the day so far, each hour.
        windows: Several of these instead. `Query` gives one its own slide, such as
            `["1h", sw.Query("1d", every="1h")]`.
        every: The distance between the starts of windows; by default their length
            (tumbling windows). With `rows(n)` a window ends with every n-th row.
            `calendar("1mo", tz="Europe/Berlin")` gives months, weeks or local days one
            after another, without `window=`.
        by: The key column, or several. Null is a key.
        offset: Moves the grid: `window="1d", offset="6h"` for days from 6 to 6 (in UTC;
            `"1d"` is 24 hours, also where clocks change). Weeks (`"1w"`, as `window` or
            `every`) begin on Mondays; `"7d"` counts from the epoch, a Thursday.
        empty: Whether to include windows without rows between the first and the last
            window of a key.
        closed: "left" for windows with start ≤ time < end, which is the default, or
            "right" for start < time ≤ end.
        nan: As for `rolling`.
        min_rows: A window with fewer values that are not null gives null. Counts are
            always given.
        unique_by: As for `rolling`; duplicates are in no window.
        overflow: As for `rolling`.
        names: As for `rolling`, for the columns of aggregations; default `"{agg}"`.
            `{window}` is for one window; with `windows=` a column tells it.
        prefix: As for `rolling`, for the columns of aggregations.
        fill: As for `rolling`.
        threads: As for `rolling`.

    Returns:
        A table of the same type with a row per key and window: the key columns,
        `window_start`, `window_end` (of sessions, `until` and `rows(n)`: the times of
        the first and last row), and a column per aggregation. With `windows=` a column
        `window` behind the keys names each, such as "1h" or "1d every 1h". Both ends
        have the type of the times, or int64 for integers of any width. Keys are in
        order of first occurrence, the windows of a key in order of time; of those that
        end together, in the order of `windows`.

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
        >>> weeks = sw.hopping(days, on="day", window="1w",
        ...                    aggs={"n": sw.count()})
        >>> [f"{start:%a %d %b}" for start in weeks["window_start"].to_pylist()]
        ['Mon 05 Jan', 'Mon 12 Jan']

        Several windows, up to and including their ends, and the last two rows each time
        two have come:

        >>> several = sw.hopping(trips, on="t", closed="right", aggs={"n": sw.count()},
        ...                      windows=[5, sw.Query(10, every=5)])
        >>> several.drop_columns("window_start").to_pylist()[:2]
        [{'window': '5', 'window_end': 5, 'n': 2}, {'window': '10 every 5', ...}]
        >>> twos = sw.hopping(trips, on="t", window=sw.rows(2), aggs={"n": sw.count()})
        >>> twos.to_pylist()
        [{'window_start': 1, 'window_end': 4, 'n': 2}]
    """
    request = given_keywords(locals())
    if spec is None and on is None:
        refuse_without_on(table)
    way_out = "they have a result per row: give them to rolling"
    spec = given_spec(spec, request, "hopping", way_out, is_hopping=True)
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
    rows = UniqueRows.of(Source.of(source), spec)
    request = KernelCall(
        rows.counted,
        spec,
        name_row=rows.name_row(rows.counting),
        threads=resolve_threads(threads, source.length),
    )
    if spec.several:
        places = range(len(spec.windows))
        found = [find_windows(request, spec, at) for at in places]
        columns = compute_several(request, found)
    else:
        columns = compute_windows(request, find_windows(request, spec))
    answer: TableT = source.make(columns)
    return answer


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `hopping`, in order of key and time.

    Attributes:
        starts: The starts, in ticks of the time column.
        ends: The ends, in ticks.
        groups: The key codes.
        rows: The number of a row with the same key.
        positions: The first and the last row of each by position, if rows are its ends.
    """

    starts: pa.Array
    ends: pa.Array
    groups: pa.Array
    rows: pa.Array
    positions: tuple[pa.Array, pa.Array] | None = None

    def filter(self, mask: pa.Array) -> "Windows":
        """The windows where the mask is true."""
        columns = (self.starts, self.ends, self.groups, self.rows)
        made = Windows(*(column.filter(mask) for column in columns))
        if self.positions is None:
            return made
        first, last = self.positions
        return replace(made, positions=(first.filter(mask), last.filter(mask)))


def compute_several(request: KernelCall, found: list[Windows]) -> dict[str, Result]:
    """Computes windows of several lengths, found before, by key, end and length."""
    spec = request.spec
    parts = [compute_windows(request, each, at) for at, each in enumerate(found)]
    which = pa.concat_arrays(
        [
            pa.repeat(pa.scalar(at), len(windows.ends))
            for at, windows in enumerate(found)
        ]
    )
    names = ("group", "end", "which")
    keys = (
        pa.concat_arrays([windows.groups for windows in found]),
        pa.concat_arrays([windows.ends for windows in found]),
        which,
    )
    order = pc.sort_indices(
        pa.table(dict(zip(names, keys, strict=True))),
        [(name, "ascending") for name in names],
    )
    labels = pa.array([window.name for window in spec.windows])
    label = Result(
        labels.take(which.take(order)), None, same_type=False, nullable=False
    )
    columns = {
        name: part._replace(
            array=take(one_column([each[name].array for each in parts]), order)
        )
        for name, part in parts[0].items()
    }
    by = {name: columns.pop(name) for name in spec.by}
    return {**by, "window": label, **columns}


def compute_windows(
    request: KernelCall, windows: Windows, at: int = 0
) -> dict[str, Result]:
    """Computes the windows of one length: key columns, both ends and results."""
    source, spec = request.source, request.spec
    starts, ends = windows.positions or (windows.starts, windows.ends)
    points = QueryPoints(
        ends=ends,
        starts=starts,
        groups=windows.groups if spec.by else None,
        arrival=None,
        noun="window",
        by_position=windows.positions is not None,
        times=windows.ends if windows.positions else None,
        since=None if spec.windows[at].timed is None else windows.starts,
    )
    keys = [(name, take(column, windows.rows)) for name, column in request.key_columns]
    ends = request.times.window_ends(windows.ends)
    named = pa.table({**dict(keys), "window_end": ends})
    request.name_row = lambda row: describe_window(named, row, spec.by)
    answers = request.compute_window(at, points)
    columns = {name: _key_result(source, name, column) for name, column in keys}
    dtype = source.dtype(spec.on)
    starts = request.times.window_ends(windows.starts)
    for name, times in (("window_start", starts), ("window_end", ends)):
        same_type = times.type == request.times.original.type
        columns[name] = Result(times, dtype, same_type, nullable=False)
    window = spec.windows[at]
    named = {column_of(spec, name, window): answer for name, answer in answers.items()}
    return {**columns, **named}


def _key_result(source: Frame, name: str, column: pa.Array) -> Result:
    nullable = not source.never_null(name)
    return Result(column, source.dtype(name), same_type=True, nullable=nullable)


def find_windows(request: KernelCall, spec: Spec, at: int = 0) -> Windows:
    """Finds the windows that hold a row and, with `spec.empty`, those between them."""
    window = spec.windows[at]
    try:
        found: Windows = window.find(_Finder(request, spec.empty))
    except OverflowError as error:
        name_row = request.name_row or "row {} (counting from 0)".format
        raise SpecError(
            f"the window of {window.label!r} around {name_row(int(str(error)))} "
            "reaches beyond the times that int64 can hold: drop the row, or cast the "
            f"column {spec.on!r} to a coarser unit"
        ) from None
    except MemoryError as error:
        raise SpecError(
            f"there are {error} windows, which do not fit into memory: give a larger ",
            Argument("every"),
            ", or leave empty= out" if spec.empty else "",
        ) from None
    return found


class _Finder:
    """Finds the windows of a table.

    Methods raise OverflowError with a row whose window reaches beyond int64.
    """

    def __init__(self, request: KernelCall, empty: bool) -> None:
        self._request, self._empty = request, empty

    def hops(self, window: Window) -> Windows:
        """The windows of a grid that hold a row, and those between if `empty`."""
        request, times = self._request, self._request.times
        grid = window.grid(lambda length: window_ticks(length, times))
        rows, layout = request.rows, request.layout
        if not window.includes_start:
            # start < t <= end, where start <= t - 1 < end.
            least = pc.index(rows.times, -(2**63)).as_py()
            if least >= 0:
                raise OverflowError(least)
            rows = RowKeys(pc.subtract(rows.times, 1), rows.groups)
            layout = _core.sort_rows(rows, request.threads)
        return Windows(
            *map(pa.array, _core.hop_windows(rows, layout, *grid, self._empty))
        )

    def units(self, window: Window) -> Windows:
        """The units of a calendar that hold a row, and those between if `empty`."""
        request = self._request
        ticks = TicksOf(request.times)
        calendar, slide = window.units(ticks), window.slide(ticks)
        found = _core.unit_windows(
            request.rows, request.layout, calendar, slide, self._empty
        )
        return Windows(*map(pa.array, found))

    def sessions(self, gap: Length) -> Windows:
        """The windows between gaps."""
        request = self._request
        length = window_ticks(gap, request.times)
        found = _core.session_windows(request.rows, request.layout, length)
        return Windows(*map(pa.array, found))

    def closed_by_rows(self, window: Window) -> Windows:
        """The windows that rows close."""
        request, positions = self._request, self._request.positions
        last = window.ends(positions)
        first = window.starts(positions).take(last)
        rows = positions.rows.take(last)
        ticks = request.times.ticks
        starts, ends = ticks.take(positions.rows.take(first)), ticks.take(rows)
        if window.timed is not None:
            length = window_ticks(window.timed, request.times)
            starts = subtract_clamped(ends, length)
        if request.groups is None:
            groups = pa.repeat(pa.scalar(0, pa.uint32()), len(rows))
        else:
            groups = request.groups.take(rows)
        return Windows(starts, ends, groups, rows, (first, last))
