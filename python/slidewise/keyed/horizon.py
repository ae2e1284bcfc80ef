"""`Horizon`: how far back the rows of a stream are kept, and so be queried."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.caching import cached_property
from slidewise.errors import Argument, SpecError
from slidewise.keyed.columns import EARLIEST, LATEST
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.single_times import format_tick
from slidewise.spec.durations import (
    Length,
    Rows,
    WindowLike,
    format_duration,
    parse_offset,
    spell_duration,
)
from slidewise.spec.spec import Spec, parse_lengths
from slidewise.spec.windows.base import Window
from slidewise.spec.windows.trailing import Trailing
from slidewise.table.time_columns import cells_of, window_ticks

__all__ = ["Horizon", "parse_keep", "retention_ticks"]


def parse_keep(keep: WindowLike | None, spec: Spec) -> Length | None:
    """Parses `keep=`."""
    if keep is None:
        return None
    length = parse_offset(keep, "keep")
    given = Argument("keep", keep)
    if length.amount < 0:
        raise SpecError(given, " is negative: give a positive length")
    for window in spec.windows:
        window.check_keep(length)
    return length


def retention_ticks(query: KeyedQuery, late: int, keep: Length | None) -> int:
    """How long rows are kept behind the watermark, in ticks.

    Every window up to the horizon can then be queried at the watermark and later.
    """
    retention = query.reach + max(late, query.allowance)
    if keep is not None:
        retention = max(retention, window_ticks(keep, query.times))
    retention += query.step * any(window.needs_edge for window in query.spec.windows)
    return min(retention, LATEST)


@dataclass(frozen=True)
class Horizon:
    """How far back the rows of a query are kept.

    Attributes:
        query: The query.
        retention: How long rows are kept behind the watermark, in ticks.
        evicted: The time up to which rows may be evicted; None if none are.
        folding: The last tick of the cells that may be folded; None if none are.
    """

    query: KeyedQuery
    retention: int
    evicted: int | None
    folding: int | None = None

    @cached_property
    def _pattern(self) -> Window | None:
        """The first window of time of the Spec: all others have its ends and offset."""
        timed = (w.as_query() for w in self.query.spec.windows if w.timed is not None)
        return next(timed, None)

    @cached_property
    def _of_rows(self) -> tuple[int, Window | None]:
        """The longest window of rows of the Spec, and the first one."""
        alike = [w.as_query() for w in self.query.spec.windows if w.rows]
        longest = max((window.rows - window.behind for window in alike), default=0)
        return longest, next(iter(alike), None)

    @cached_property
    def longest(self) -> int:
        """The length of the longest window that can be queried, in ticks."""
        window = self._pattern
        if window is None:
            return self.retention
        step = self.query.step if window.includes_start else 0
        ticks = self.query.ticks_of
        assert window.timed is not None, "a pattern has a length"
        return self.retention - step - (window.reach(ticks) - ticks(window.timed))

    def _shift(self, window: Window) -> int:
        return 0 if window.lag is None else self.query.ticks_of(window.lag)

    @property
    def label(self) -> str:
        """The length of the longest window, in words."""
        times = self.query.times
        if times.unit is None:
            return str(self.longest)
        return format_duration(self.longest * times.unit)

    def windows(
        self, windows: WindowLike | Iterable[WindowLike] | None
    ) -> tuple[Window, ...]:
        """The windows of a query: those given, by default those of the Spec.

        Hopping windows become rolling ones of their length.

        Raises:
            SpecError: If one is not a length, or longer than the horizon.
        """
        if windows is None:
            windows_of = (window.as_query() for window in self.query.spec.windows)
            return tuple(dict.fromkeys(windows_of))
        if self.query.flag_column:
            raise SpecError(
                Argument("windows"),
                " does not apply beside a window that a flag closes, whose rows leave "
                "with it: leave it out for the open window, or ask KeyedWindows of "
                "their own",
            )
        return tuple(self._window(length) for length in parse_lengths(windows))

    def _window(self, length: Length) -> Window:
        if length.kind == "rows":
            known, pattern = self._of_rows
            if pattern is None or length.amount > known:
                has = f"rows({known})" if known else "none: no window of rows(n)"
                raise SpecError(
                    Argument("windows", Rows(length.amount)),
                    f" is beyond the horizon of rows, which is {has} in the Spec",
                )
            return pattern.with_length(length)
        ticks = window_ticks(length, self.query.times)
        if ticks > self.longest:
            raise SpecError(
                length.given,
                f" is beyond the horizon of {self.label}: rows are kept for the "
                "longest window and late=, or for ",
                Argument("keep"),
                " if KeyedWindows are made with it",
            )
        pattern = self._pattern
        return Trailing(length) if pattern is None else pattern.with_length(length)

    def bounds(self, window: Window, tick: int) -> tuple[int, int]:
        """The first and the last tick of a window of a query at a tick."""
        start = tick - window.reach(self.query.ticks_of)
        end = tick - self._shift(window)
        return start + (not window.includes_start), end - (not window.includes_end)

    def entering(self, window: Window) -> int:
        """The distance from a row's time to the first query whose window holds it."""
        return self._shift(window) + (0 if window.includes_end else self.query.step)

    def leaving(self, window: Window) -> int:
        """The distance from a row's time to the first query whose window lost it."""
        step = self.query.step if window.includes_start else 0
        return window.reach(self.query.ticks_of) + step

    def expiry(self, earliest: pa.Array, window: Window) -> pa.Array:
        """The times at which the earliest rows of windows leave; null for never."""
        if window.timed is None:
            return pa.nulls(len(earliest), pa.int64())
        begun = cells_of(window, self.query.ticks_of, earliest)
        if begun is not None:
            return self.after(begun, window.reach(self.query.ticks_of) + 1)
        return self.after(earliest, self.leaving(window))

    def after(self, times: pa.Array, lag: int) -> pa.Array:
        """Times and a distance; null beyond the last time that the column can hold."""
        is_date = pa.types.is_date32(self.query.times.original.type)
        latest = 2**31 - 1 if is_date else LATEST
        if lag > LATEST:  # Arrow cannot add it, though a sum may fit
            ticks = times.to_pylist()
            fits = (at is not None and at + lag <= latest for at in ticks)
            sums = [
                at + lag if fit else None for at, fit in zip(ticks, fits, strict=True)
            ]
            return pa.array(sums, pa.int64())
        beyond = pc.greater(times, latest - lag)
        return pc.add(pc.if_else(beyond, None, times), lag)

    def _earliest(self, window: Window, evicted: int) -> int:
        """The earliest time of a window that holds no row up to a time.

        A window without a length may begin anywhere before its end: it is whole at the
        bound of eviction or later.
        """
        reaches = window.reach(self.query.ticks_of) > 0
        return evicted + (self.leaving(window) if reaches else self.entering(window))

    def check_cells(
        self,
        ticks: pa.Array,
        windows: Sequence[Window],
        last_folded: Callable[[], int | None],
    ) -> None:
        """Checks that windows that end at these times have no part of a folded cell.

        Args:
            ticks: The times.
            windows: The windows.
            last_folded: Gives the last tick of the cells that were folded; None if none
                were. It is called if a window has a part of a cell that may be folded.
        """
        folding = self.folding
        if folding is None or self._cutting(ticks, windows, folding) is None:
            return
        folded = last_folded()
        found = None if folded is None else self._cutting(ticks, windows, folded)
        if found is None or folded is None:
            return
        window, tick = found
        times, cells = self.query.times, self.query.cells
        assert cells is not None, "cells were folded"
        _, last = self.bounds(window, tick)
        ends = [tick - last + cells.last_tick(last - back) for back in (cells.every, 0)]
        near = " or ".join(format_tick(end, times) for end in ends)
        whole = format_tick(folded + self.leaving(window), times)
        raise SpecError(
            f"the window {window.label!r} at {format_tick(tick, times)} has a part of "
            "a cell whose rows were folded, as the watermark has passed it: ask for "
            + (f"{near}, where cells end" if last < folded else f"{whole} or later")
        )

    def _cutting(
        self, ticks: pa.Array, windows: Sequence[Window], folded: int
    ) -> tuple[Window, int] | None:
        """The first window and time with a part of a cell up to a tick, or None."""
        cells, step = self.query.cells, self.query.step
        least = pc.min(ticks).as_py()
        if cells is None or least is None:
            return None
        for window in windows:
            on_grid = window.cell_grid(self.query.ticks_of) is not None
            ends_later = least > folded + self.entering(window)
            if ends_later if on_grid else least > folded + self.leaving(window):
                continue
            for tick in pc.unique(ticks).to_pylist():
                first, last = self.bounds(window, tick)
                if cells.cuts(None if on_grid else first, last, folded, step):
                    return window, tick
        return None

    def check(
        self,
        ticks: pa.Array,
        windows: Sequence[Window],
        latest_lost: Callable[[], int | None],
    ) -> None:
        """Checks that all rows of the windows that end at these times are kept.

        Args:
            ticks: The times.
            windows: The windows.
            latest_lost: Gives the time of the latest row that left; None if none did.
                It is called if a window ends before the bound of eviction allows.
        """
        evicted, first = self.evicted, pc.min(ticks).as_py()
        if evicted is None or first is None:
            return
        if all(first >= self._earliest(window, evicted) for window in windows):
            return
        lost = latest_lost()
        if lost is None:
            return
        times = self.query.times
        for window in windows:
            reaches = window.reach(self.query.ticks_of) > 0
            latest = min(lost, evicted) if reaches else evicted
            earliest = self._earliest(window, latest)
            bound = min(max(earliest, EARLIEST), LATEST)
            behind = pc.index(pc.less(ticks, bound), True).as_py()
            if behind < 0:
                continue
            tick = format_tick(ticks[behind].as_py(), times)
            if window.leaves_whole:
                raise SpecError(
                    f"the window {window.label!r} at {tick} may have had rows that "
                    "left with windows that were emitted: ask for "
                    f"{format_tick(earliest, times)}, the watermark, or later"
                )
            unit = times.unit
            length = (
                str(self.retention)
                if unit is None
                else spell_duration(self.retention * unit)
            )
            raise SpecError(
                f"the window {window.label!r} at {tick} begins before rows that were "
                f"evicted: the windows keep {length} behind the watermark. Ask for "
                f"{format_tick(earliest, times)} or later, for a shorter window, or "
                "make KeyedWindows with a longer ",
                Argument("keep"),
            )
