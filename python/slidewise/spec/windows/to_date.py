"""`ToDate`: from the first instant of a unit of the calendar up to a row."""

from dataclasses import dataclass
from typing import Any, ClassVar

from slidewise.spec.windows.calendar import Calendar, checked

__all__ = ["ToDate", "to_date"]


@dataclass(frozen=True, slots=True, repr=False)
class ToDate(Calendar):
    """A window that begins with the calendar unit that holds its row.

    Made by `to_date`. The attributes are those of `Calendar`.
    """

    keys: ClassVar[tuple[str, ...]] = ("to_date", "tz", "start")
    form: ClassVar[str] = "to_date:UNIT[:TZ]"
    closes: ClassVar[tuple[str, ...]] = ("right", "left")
    begins_with_unit: ClassVar[bool] = True

    @property
    def interval(self) -> str:
        """Its ends."""
        return f"[the first instant of the {self.unit}{self._zone}, {self._end}"

    @property
    def includes_start(self) -> bool:
        """Always."""
        return True


def to_date(unit: str, *, tz: Any = None, start: str = "mon") -> ToDate:
    """From the first instant of a calendar unit up to a row: month to date.

    Args:
        unit: `"1d"`, `"1w"`, `"1mo"`, `"1q"` (from January, April, July or October) or
            `"1y"`.
        tz: The zone of local time, such as `"Europe/Berlin"`; by default that of the
            column of times. Times without a zone are in UTC.
        start: The first day of weeks.

    Returns:
        A window for `windows=`.

    Raises:
        SpecError: If there is no such unit or zone.

    Cost: as a window of a length. The first use of a zone takes 0.2 s.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from datetime import datetime
        >>> days = [datetime(2026, 2, 28), datetime(2026, 3, 1), datetime(2026, 3, 28)]
        >>> table = pa.table({"t": pa.array(days, pa.timestamp("s"))})
        >>> out = sw.rolling(table, on="t", windows=sw.to_date("1mo"),
        ...                  aggs={"n": sw.count()})
        >>> out["n_to_date_1mo"].to_pylist()
        [1, 1, 2]
    """
    return ToDate(*checked("to_date", unit, tz, start))
