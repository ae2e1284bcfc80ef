"""`Calendar`: the rows of a unit of the calendar up to a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import slidewise._core as _core
from slidewise.errors import Argument, SpecError
from slidewise.spec.arguments import one_of
from slidewise.spec.durations import UNITS, Length
from slidewise.spec.windows.base import ColumnTicks, Span, Ticks, Window, does_not_apply
from slidewise.spec.zones import offset_changes, zone_name

__all__ = ["Calendar", "calendar", "checked"]

# Of each unit: "days" or "months", how many, and the most days that it can have.
_UNITS = {
    "1d": ("days", 1, 1),
    "1w": ("days", 7, 7),
    "1mo": ("months", 1, 31),
    "1q": ("months", 3, 92),
    "1y": ("months", 12, 366),
}
# Of each pair of ends that belong to a window, the name.
_CLOSED = {
    (False, True): "right",
    (True, False): "left",
    (True, True): "both",
    (False, False): "neither",
}
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# The epoch is a Thursday.
_EPOCH_DAY = 3
# A zone may change its offset by a day, on either side.
_OFFSETS = 2


@dataclass(frozen=True, slots=True)
class Calendar(Window):
    """A window that begins at the same local time, a unit before its row.

    Made by `calendar`.

    Attributes:
        unit: "1d", "1w", "1mo", "1q" or "1y".
        tz: The zone of local time; None for that of the column of times.
        start: The first day of weeks, where windows are weeks.
        closed: As for a window of a length.
    """

    unit: str
    tz: str | None = None
    start: str = "mon"
    closed: str = "right"

    by_calendar: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("calendar", "tz", "start")
    form: ClassVar[str] = "calendar:UNIT[:TZ]"
    closes: ClassVar[tuple[str, ...]] = ("right", "left", "both", "neither")
    # Whether it begins with the unit that holds its row.
    begins_with_unit: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """With the unit."""
        return f"{self.keys[0]}_{self.unit}"

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        left = "[" if self.includes_start else "("
        return f"{left}t − {self.unit} of the calendar{self._zone}, {self._end}"

    @property
    def _zone(self) -> str:
        return "" if self.tz is None else f" of {self.tz}"

    @property
    def _end(self) -> str:
        return f"t{']' if self.includes_end else ')'}"

    @property
    def explained(self) -> str:
        """By local time."""
        return "its start is found in local time, then windows are ranges of rows"

    @property
    def includes_start(self) -> bool:
        """By `closed`."""
        return self.closed in ("left", "both")

    @property
    def includes_end(self) -> bool:
        """By `closed`."""
        return self.closed in ("right", "both")

    @property
    def holds_its_row(self) -> bool:
        """If it ends with its row."""
        return self.includes_end

    def span(self, ticks: ColumnTicks) -> Span:
        """The calendar; its length is the most that a window can have."""
        day = ticks(Length("time", UNITS["d"], self.unit, "windows"))
        unit, count, _ = _UNITS[self.unit]
        shift = None
        if self.begins_with_unit:
            first_day = _WEEKDAYS.index(self.start) if self.unit == "1w" else _EPOCH_DAY
            shift = (first_day - _EPOCH_DAY) % 7
        zone = self.tz if self.tz is not None else ticks.zone
        made = _calendar(unit, count, shift, day, zone)
        closed = _CLOSED[self.includes_start, self.includes_end]
        return Span("calendar", self.reach(ticks), closed, calendar=made)

    def reach(self, ticks: Ticks) -> int:
        """The most that a window can have."""
        day = ticks(Length("time", UNITS["d"], self.unit, "windows"))
        return (_UNITS[self.unit][2] + _OFFSETS) * day

    def check_expiry(self, given: Argument) -> None:
        """Refused: a row that left may be in a later window again."""
        raise does_not_apply(given, f"the window {self!r}, whose length varies")

    def closed_by(self, closed: str) -> Self:
        """The window with other ends."""
        one_of(closed, "closed", self.closes)
        return type(self)(self.unit, self.tz, self.start, closed)

    @property
    def document(self) -> dict[str, Any]:
        """The arguments, without defaults."""
        given = {self.keys[0]: self.unit}
        if self.tz is not None:
            given["tz"] = self.tz
        if self.start != "mon":
            given["start"] = self.start
        return given

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By the function."""
        unit, tz, start = (given.get(key) for key in cls.keys)
        return cls(*checked(cls.keys[0], unit, tz, "mon" if start is None else start))

    def __repr__(self) -> str:
        name, *others = self.document.items()
        given = [repr(name[1]), *(f"{key}={value!r}" for key, value in others)]
        return f"{name[0]}({', '.join(given)})"


@lru_cache(maxsize=256)
def _calendar(
    unit: str, count: int, shift: int | None, day: int, zone: str | None
) -> _core.Calendar:
    """The calendar of the core, whose memory is never freed."""
    changes: tuple[tuple[int, int], ...] = ((-(2**63), 0),)
    seconds = day // 86_400
    if zone is not None and seconds:
        changes = offset_changes(zone)
    ticks = [(max(at * seconds, -(2**63)), offset * seconds) for at, offset in changes]
    return _core.Calendar(unit, count, shift, day, [t for t in ticks if t[0] < 2**63])


def checked(
    function: str, unit: object, tz: object, start: object
) -> tuple[str, str | None, str]:
    """The arguments of `calendar` or `to_date`, checked."""
    if not isinstance(unit, str) or unit not in _UNITS:
        known = ", ".join(map(repr, _UNITS))
        raise SpecError(f"{function}() takes one of {known}, got {unit!r}")
    if not isinstance(start, str) or start not in _WEEKDAYS:
        raise SpecError(
            Argument("start", start),
            f" is not a day of the week: give one of {', '.join(_WEEKDAYS)}",
        )
    if start != "mon" and unit != "1w":
        raise SpecError(
            Argument("start", start),
            f" is the first day of weeks, and does not apply to {unit!r}: leave it out",
        )
    return unit, zone_name(tz), start


def calendar(unit: str, *, tz: Any = None, start: str = "mon") -> Calendar:
    """A month, local day, week, quarter or year up to a row: for `rolling` and streams.

    The window of a row begins at the same local time one unit before. A day that the
    month does not have is its last: a month before 31 March 10:00 is 28 or 29 February
    10:00. A local time that does not exist is the first instant after the gap; one that
    exists twice is the earlier. A local day has 23 to 25 hours; the window `"1d"`
    always has 24.

    Args:
        unit: `"1d"`, `"1w"`, `"1mo"`, `"1q"` (three months) or `"1y"`.
        tz: The zone of local time, such as `"Europe/Berlin"`; by default that of the
            column of times. Times without a zone are in UTC.
        start: The first day of weeks, where windows begin with them.

    Returns:
        A window for `windows=`, beside windows of a length.

    Raises:
        SpecError: If there is no such unit or zone.

    Cost: as a window of a length. The first use of a zone takes 0.2 s.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from datetime import datetime
        >>> days = [datetime(2026, 2, 28), datetime(2026, 3, 27), datetime(2026, 3, 28)]
        >>> table = pa.table({"t": pa.array(days, pa.timestamp("s"))})
        >>> out = sw.rolling(table, on="t", windows=sw.calendar("1mo"),
        ...                  aggs={"n": sw.count()})
        >>> out["n_calendar_1mo"].to_pylist()
        [1, 2, 2]
    """
    return Calendar(*checked("calendar", unit, tz, start))
