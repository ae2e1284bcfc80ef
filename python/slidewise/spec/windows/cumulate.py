"""`Cumulate`: windows that begin with a unit of time, and end ever later within it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import slidewise._core as _core
from slidewise.errors import Argument, SpecError
from slidewise.hints import readable
from slidewise.spec.durations import DurationLike, Length, monday_shift, parse_length
from slidewise.spec.windows.base import (
    ColumnTicks,
    Finder,
    Span,
    Ticks,
    Window,
    does_not_apply,
)
from slidewise.spec.windows.calendar import Calendar, calendar
from slidewise.spec.windows.to_date import ToDate

__all__ = ["Cumulate", "cumulate"]

# Units of no fixed length.
_MONTHS = ("1mo", "1q", "1y")


@dataclass(frozen=True, slots=True)
class Elapsed(Window):
    """A window from the first instant of a unit of one length up to a time.

    Attributes:
        unit: The length of the unit.
    """

    unit: Length

    by_calendar: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """With the unit."""
        return f"to_date_{self.unit.label}"

    @property
    def interval(self) -> str:
        """Its ends."""
        return f"[the last multiple of {self.unit.label}, t]"

    @property
    def includes_start(self) -> bool:
        """Always."""
        return True

    def reach(self, ticks: Ticks) -> int:
        """The unit."""
        return ticks(self.unit)

    def span(self, ticks: ColumnTicks) -> Span:
        """Its start lies on the grid of the units."""
        unit, length = self.unit, ticks(self.unit)
        offset = monday_shift(unit, unit) * length // unit.amount
        return Span("calendar", length, "both", calendar=_grid(length, offset))

    def check_expiry(self, given: Argument) -> None:
        """Refused: its length varies."""
        raise does_not_apply(given, f"windows since {self.unit.label} began")


@lru_cache(maxsize=256)
def _grid(every: int, offset: int) -> _core.Calendar:
    """The units of the core, whose memory is never freed."""
    return _core.Calendar.on_grid(every, offset, 0)


@dataclass(frozen=True, slots=True, repr=False)
class Cumulate(Window):
    """Windows that begin with a unit and end at each slide within it.

    Made by `cumulate`.

    Attributes:
        unit: The unit: a length, or one of a calendar.
        every: The slide.
    """

    unit: Length | Calendar
    every: Length

    per_row: ClassVar[bool] = False
    on_grid: ClassVar[bool] = True
    heading: ClassVar[str] = "hopping"
    keys: ClassVar[tuple[str, ...]] = ("cumulate", "every", "tz")
    form: ClassVar[str] = "cumulate:UNIT:EVERY[:TZ]"

    @property
    def _unit(self) -> str:
        return self.unit.unit if isinstance(self.unit, Calendar) else self.unit.label

    @property
    def label(self) -> str:
        """With the unit and the slide."""
        return f"cumulate_{self._unit}_{self.every.label}"

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        return f"[first instant of the {self._unit}, end), every {self.every.label}"

    @property
    def explained(self) -> str:
        """They share their start."""
        return "windows of a unit begin together: one combine per window"

    @property
    def includes_start(self) -> bool:
        """Always."""
        return True

    @property
    def includes_end(self) -> bool:
        """Never."""
        return False

    @property
    def needs_edge(self) -> bool:
        """A query of a unit of one length includes its start."""
        return isinstance(self.unit, Length)

    def span(self, ticks: ColumnTicks) -> Span:
        """Its start is found beforehand."""
        return Span("time", self.reach(ticks), "left")

    def reach(self, ticks: Ticks) -> int:
        """The most that a unit can have."""
        return self.as_query().reach(ticks)

    def grid(self, ticks: Ticks) -> tuple[int, int, int]:
        """The most that a unit can have, and the slide."""
        return self.reach(ticks), ticks(self.every), 0

    def units(self, ticks: ColumnTicks) -> Any:
        """The calendar of its units, as the core takes it."""
        return self.as_query().span(ticks).calendar

    def slide(self, ticks: Ticks) -> int:
        """The slide."""
        return ticks(self.every)

    def open_until(self, ticks: Ticks) -> int:
        """Windows that hold no later time than the latest are closed."""
        return 0

    def find(self, finder: Finder) -> Any:
        """By the units."""
        return finder.units(self)

    def as_query(self) -> ToDate | Elapsed:
        """The unit up to a time."""
        given = self.unit
        if isinstance(given, Calendar):
            return ToDate(given.unit, given.tz, given.start)
        return Elapsed(given)

    @property
    def document(self) -> dict[str, Any]:
        """The arguments."""
        unit = self.unit
        given = unit.document if isinstance(unit, Calendar) else unit.plain
        return {"cumulate": given, "every": self.every.plain}

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By the function."""
        unit, every, tz = (given.get(key) for key in cls.keys)
        if isinstance(unit, Mapping):
            unit = Calendar.of_document(unit)
        made = cumulate(unit, every, tz=tz)  # type: ignore[arg-type]
        return cls(made.unit, made.every)

    def __repr__(self) -> str:
        unit = self.unit
        shown = repr(unit) if isinstance(unit, Calendar) else unit.shown
        return f"cumulate({shown}, every={self.every.shown})"


@readable
def cumulate(
    unit: DurationLike | Calendar, every: DurationLike, *, tz: Any = None
) -> Cumulate:
    """Windows that begin with a unit and end at each slide within it: for `hopping`.

    For every unit and every end there is a window of the rows since the unit began:
    `cumulate("1d", every="1h")` gives the day so far, each hour. The start belongs to a
    window, its end does not. If the slide does not divide the unit, the last window
    ends with the unit.

    Args:
        unit: A duration such as `"1d"`, counted from the epoch in UTC (weeks from
            Mondays); an int in the units of integer times; or a unit of the calendar:
            `"1mo"`, `"1q"`, `"1y"`, or `calendar("1d", tz="Europe/Berlin")`.
        every: The slide: a duration or an int, also within a unit of the calendar.
        tz: The zone of local time, for a unit of the calendar.

    Returns:
        A window for `window=` or `windows=`.

    Raises:
        SpecError: If one is not a length, or the slide is longer than the unit.

    Source: cumulate windows, in the windowing table-valued functions of Flink SQL.

    Cost: as for hopping windows: one combine per window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> sales = pa.table({"t": [1, 4, 12], "eur": [5, 7, 9]})
        >>> out = sw.hopping(sales, on="t", window=sw.cumulate(10, every=5),
        ...                  aggs={"eur": sw.sum("eur")})
        >>> out["window_start"].to_pylist(), out["window_end"].to_pylist()
        ([0, 0, 10, 10], [5, 10, 15, 20])
        >>> out["eur"].to_pylist()
        [12, 12, 9, 9]
    """
    if isinstance(unit, str) and (unit in _MONTHS or tz is not None):
        unit = calendar(unit, tz=tz)
    elif tz is not None:
        raise SpecError(
            Argument("tz", tz), " belongs in the unit: sw.calendar('1d', tz=...)"
        )
    step = parse_length(every, "every")
    if isinstance(unit, Calendar):
        if unit.begins_with_unit:
            raise SpecError(f"cumulate() takes sw.calendar('1mo'), got {unit!r}")
        if step.kind == "time":
            return Cumulate(unit, step)
        raise _differ(repr(unit), step)
    length = parse_length(unit, "unit")
    if length.kind != step.kind or length.kind == "rows":
        raise _differ(length.shown, step)
    if step.amount > length.amount:
        raise SpecError(
            step.given, f" is longer than the unit {length.shown}: give a shorter one"
        )
    return Cumulate(length, step)


def _differ(unit: str, step: Length) -> SpecError:
    return SpecError(
        step.given,
        f" and the unit {unit} differ in kind: give both as durations, or both as "
        "ints for an integer time column",
    )
