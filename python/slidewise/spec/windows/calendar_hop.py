"""`CalendarHop`: the months, weeks or local days of a calendar, one after another."""

from dataclasses import dataclass
from typing import Any, ClassVar

from slidewise.spec.windows.base import ColumnTicks, Finder, Span, Ticks, Window
from slidewise.spec.windows.calendar import Calendar
from slidewise.spec.windows.to_date import ToDate

__all__ = ["CalendarHop"]


@dataclass(frozen=True, slots=True)
class CalendarHop(Window):
    """The units of a calendar, which do not overlap.

    Attributes:
        calendar: The calendar that the user gave.
    """

    calendar: Calendar

    per_row: ClassVar[bool] = False
    on_grid: ClassVar[bool] = True
    heading: ClassVar[str] = "hopping"

    @property
    def label(self) -> str:
        """With the unit."""
        return self.calendar.label

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        unit = self.calendar.unit
        return f"[first instant of the {unit}, first instant of the next)"

    @property
    def explained(self) -> str:
        """By local time."""
        return "windows do not overlap; their ends are found in local time"

    @property
    def includes_start(self) -> bool:
        """Always."""
        return True

    @property
    def includes_end(self) -> bool:
        """Never."""
        return False

    def span(self, ticks: ColumnTicks) -> Span:
        """Its start is found beforehand."""
        return Span("time", self.reach(ticks), "left")

    def reach(self, ticks: Ticks) -> int:
        """The most that a unit can have."""
        return self.calendar.reach(ticks)

    def grid(self, ticks: Ticks) -> tuple[int, int, int]:
        """The most that a unit can have, for the length and the slide."""
        return self.reach(ticks), self.reach(ticks), 0

    def units(self, ticks: ColumnTicks) -> Any:
        """Its calendar, as the core takes it."""
        return self.as_query().span(ticks).calendar

    def open_until(self, ticks: Ticks) -> int:
        """Windows that hold no later time than the latest are closed."""
        return 0

    def find(self, finder: Finder) -> Any:
        """By the calendar."""
        return finder.units(self)

    def as_query(self) -> ToDate:
        """The unit up to a time."""
        given = self.calendar
        return ToDate(given.unit, given.tz, given.start)

    def __repr__(self) -> str:
        return repr(self.calendar)
