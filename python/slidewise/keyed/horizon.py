"""`Horizon`: how far back the rows of a stream are kept, and so be queried."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.caching import cached_property
from slidewise.errors import Argument, SpecError
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
from slidewise.spec.spec import Spec, WindowSpec, parse_lengths
from slidewise.spec.windows import shown_length, written
from slidewise.table.time_columns import window_ticks

__all__ = ["Horizon", "has_no_length", "kept_ticks", "parse_keep", "refuse_sessions"]

_LARGEST = 2**63 - 1


def refuse_sessions(spec: Spec) -> None:
    """Refuses windows that a query cannot end at any time: sessions and `delta`."""
    for window in spec.windows:
        if window.is_session:
            raise SpecError(
                "a session has no length, so a query cannot end it at any time: ask "
                "for windows of a length, by KeyedWindows of their own"
            )
        if window.kind.startswith("delta"):
            raise SpecError(
                f"the window {written(window)} is measured from the "
                f"{window.column!r} of a row, which a query does not have: ask for "
                "windows of a length, by windows="
            )


def has_no_length(window: WindowSpec) -> bool:
    """Whether a window begins at a row, not at a distance from its end."""
    return window.kind == "rows" or bool(window.column)


def parse_keep(keep: WindowLike | None, spec: Spec) -> Length | None:
    """Parses `keep=`."""
    if keep is None:
        return None
    length = parse_offset(keep, "keep")
    given = Argument("keep", keep)
    if length.amount < 0:
        raise SpecError(given, " is negative: give a positive length")
    for window in spec.windows:
        if window.column and not window.is_hop:
            continue
        if window.is_session or window.column:
            what = "sessions" if window.is_session else f"the window {written(window)}"
            raise SpecError(given, f" does not apply to {what}: leave it out")
        if window.kind == "rows":
            continue
        if window.kind != length.kind:
            raise SpecError(
                given,
                f" and the window {shown_length(window)} differ in kind: give both as "
                "durations, or both as ints for an integer time column",
            )
        needed = window.length + (0 if window.every else window.offset)
        if length.amount < needed:
            behind = " with its offset" if needed != window.length else ""
            raise SpecError(
                given,
                f" is shorter than the window {shown_length(window)}{behind}, whose "
                "rows are kept anyway: leave it out, or give more",
            )
    return length


def _includes_start(window: WindowSpec) -> bool:
    return window.kind != "rows" and window.closed in ("left", "both")


def kept_ticks(query: KeyedQuery, late: int, keep: Length | None) -> int:
    """How long rows are kept behind the watermark, in ticks.

    Every window up to the horizon can then be queried at the watermark and later.
    """
    kept = query.reach + max(late, query.allowance)
    if keep is not None:
        kept = max(kept, window_ticks(keep, query.times))
    rolling = [window for window in query.spec.windows if not window.every]
    starts = any(map(_includes_start, rolling))
    kept += query.step if starts else 0
    return min(kept, _LARGEST)


@dataclass(frozen=True)
class Horizon:
    """How far back the rows of a query are kept.

    Attributes:
        query: The query.
        kept: How long rows are kept behind the watermark, in ticks.
        evicted: The time up to which rows may be evicted; None if none are.
    """

    query: KeyedQuery
    kept: int
    evicted: int | None

    @cached_property
    def _pattern(self) -> WindowSpec | None:
        """The first window of time of the Spec: all others have its ends and offset."""
        found = self.query.spec.windows
        windows = (w for w in found if w.kind != "rows" and not w.column)
        window = next(windows, None)
        return None if window is None else _as_rolling(window)

    @cached_property
    def longest(self) -> int:
        """The length of the longest window that can be queried, in ticks."""
        window = self._pattern
        if window is None:
            return self.kept
        step = self.query.step if _includes_start(window) else 0
        return self.kept - step - self._shift(window)

    def _shift(self, window: WindowSpec) -> int:
        if not window.offset:
            return 0
        return window_ticks(window.as_offset, self.query.times)

    @property
    def label(self) -> str:
        """The length of the longest window, in words."""
        times = self.query.times
        if times.unit is None:
            return str(self.longest)
        return format_duration(self.longest * times.unit)

    def windows(
        self, windows: WindowLike | Iterable[WindowLike] | None
    ) -> tuple[WindowSpec, ...]:
        """The windows of a query: those given, by default those of the Spec.

        Hopping windows become rolling ones of their length.

        Raises:
            SpecError: If one is not a length, or longer than the horizon.
        """
        if windows is None:
            refuse_sessions(self.query.spec)
            return tuple(dict.fromkeys(map(_as_rolling, self.query.spec.windows)))
        if self.query.until:
            raise SpecError(
                Argument("windows"),
                " does not apply beside a window that a flag closes, whose rows leave "
                "with it: leave it out for the open window, or ask KeyedWindows of "
                "their own",
            )
        return tuple(self._window(length) for length in parse_lengths(windows))

    def _window(self, length: Length) -> WindowSpec:
        if length.kind == "rows":
            if length.amount > self.query.rows:
                known = self.query.rows
                has = f"rows({known})" if known else "none: no window of rows(n)"
                raise SpecError(
                    Argument("windows", Rows(length.amount)),
                    f" is beyond the horizon of rows, which is {has} in the Spec",
                )
            return WindowSpec("rows", length.amount, 0, 0, "right", length.label)
        ticks = window_ticks(length, self.query.times)
        if ticks > self.longest:
            raise SpecError(
                length.given,
                f" is beyond the horizon of {self.label}: rows are kept for the "
                "longest window and late=, or for ",
                Argument("keep"),
                " if KeyedWindows are made with it",
            )
        known_window = self._pattern
        closed = "right" if known_window is None else known_window.closed
        offset = 0 if known_window is None else known_window.offset
        return WindowSpec(length.kind, length.amount, 0, offset, closed, length.label)

    def lag(self, window: WindowSpec) -> tuple[int, int]:
        """The distances from the time of a query back to a window's end and start."""
        shift = self._shift(window)
        return shift, shift + window_ticks(window.as_length, self.query.times)

    def bounds(self, window: WindowSpec, tick: int) -> tuple[int, int]:
        """The first and the last tick of a window of a query at a tick."""
        end, start = (tick - lag for lag in self.lag(window))
        ends_before = window.closed in ("left", "neither")
        return start + (not _includes_start(window)), end - ends_before

    def entering(self, window: WindowSpec) -> int:
        """The distance from a row's time to the first query whose window holds it."""
        ends_before = window.closed in ("left", "neither")
        return self._shift(window) + (self.query.step if ends_before else 0)

    def leaving(self, window: WindowSpec) -> int:
        """The distance from a row's time to the first query whose window lost it."""
        step = self.query.step if _includes_start(window) else 0
        return self.lag(window)[1] + step

    def expiry(self, earliest: pa.Array, window: WindowSpec) -> pa.Array:
        """The times at which the earliest rows of windows leave; null for never."""
        if has_no_length(window):
            return pa.nulls(len(earliest), pa.int64())
        return self.after(earliest, self.leaving(window))

    def after(self, times: pa.Array, lag: int) -> pa.Array:
        """Times and a distance; null beyond the last time that the column can hold."""
        is_date = pa.types.is_date32(self.query.times.original.type)
        latest = 2**31 - 1 if is_date else _LARGEST
        if lag > _LARGEST:  # Arrow cannot add it, though a sum may fit
            ticks = times.to_pylist()
            fits = (at is not None and at + lag <= latest for at in ticks)
            sums = [
                at + lag if fit else None for at, fit in zip(ticks, fits, strict=True)
            ]
            return pa.array(sums, pa.int64())
        beyond = pc.greater(times, latest - lag)
        return pc.add(pc.if_else(beyond, None, times), lag)

    def _earliest(self, window: WindowSpec, evicted: int) -> int:
        """The earliest time of a window that holds no row up to a time.

        A window without a length may begin anywhere before its end: it is whole at the
        bound of eviction or later.
        """
        return evicted if has_no_length(window) else evicted + self.leaving(window)

    def check(
        self,
        ticks: pa.Array,
        windows: Sequence[WindowSpec],
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
            latest = evicted if has_no_length(window) else min(lost, evicted)
            earliest = self._earliest(window, latest)
            bound = min(max(earliest, -_LARGEST - 1), _LARGEST)
            behind = pc.index(pc.less(ticks, bound), True).as_py()
            if behind < 0:
                continue
            tick = format_tick(ticks[behind].as_py(), times)
            if window.kind == "open":
                raise SpecError(
                    f"the window {window.label!r} at {tick} may have had rows that "
                    "left with windows that were emitted: ask for "
                    f"{format_tick(earliest, times)}, the watermark, or later"
                )
            unit = times.unit
            kept = str(self.kept) if unit is None else spell_duration(self.kept * unit)
            raise SpecError(
                f"the window {window.label!r} at {tick} begins before rows that were "
                f"evicted: the windows keep {kept} behind the watermark. Ask for "
                f"{format_tick(earliest, times)} or later, for a shorter window, or "
                "make KeyedWindows with a longer ",
                Argument("keep"),
            )


def _as_rolling(window: WindowSpec) -> WindowSpec:
    """The rolling window with the length of a hopping one: (end − length, end]."""
    if window.kind == "until":
        return replace(window, kind="open", closed="right")
    if not (window.every or window.every_rows):
        return window
    # With several windows, labels include the slide.
    label, _, _ = window.label.partition(" every ")
    return WindowSpec(window.kind, window.length, 0, 0, "right", label)
