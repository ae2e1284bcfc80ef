"""Event times of a `Window`: int64 ticks inside, outside the kind of its first time.

The first time decides the kind of a window's times: ints, dates, datetimes, numpy
datetimes or pandas timestamps, and their unit and zone. The window returns times of
that kind. It accepts instants of another class or unit if they are exact in its own
unit. Ints, dates, times with a zone and times without one do not mix.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from zoneinfo import ZoneInfo

from slidewise.aggregations.scalars import as_int
from slidewise.errors import Argument, SpecError
from slidewise.spec.durations import UNITS, DurationLike, Length, unit_in_ticks
from slidewise.window.scalar_codec import zone_record

__all__ = [
    "KINDS",
    "SIZES",
    "Clock",
    "clock_for",
    "identify",
    "numpy_unit",
    "ticks_of",
    "zone_named",
]

# Nanoseconds per unit, by numpy's names.
SIZES = {{"w": "W", "d": "D"}.get(unit, unit): size for unit, size in UNITS.items()}

KINDS = ("int", "date", "datetime", "numpy", "pandas")

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_INT64 = range(-(2**63), 2**63)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


@dataclass(frozen=True, slots=True)
class Clock:
    """The codec of a window's times: between values of one kind and int64 ticks.

    Attributes:
        kind: One of `KINDS`.
        unit: The unit of a tick, by numpy's name; "" for ints.
        zone: The zone of the times that it returns, or None.
        last: The length of the window in ticks, or None.
        ranges: The ranges of a shared window: "rows" and their number, or "time" and a
            number of ticks.
        granularity: Times are rounded down to multiples of this many ticks.
        latency: The latency bound in ticks, or None.
        schedule: The queries of a window that has some, in ticks.
    """

    kind: str
    unit: str
    zone: tzinfo | None
    last: int | None = None
    granularity: int = 1
    ranges: tuple[tuple[str, int], ...] = ()
    latency: int | None = None
    schedule: Any = None

    @property
    def key(self) -> str:
        """Equal for clocks that read all times alike."""
        if self.kind == "int":
            return "int"
        return f"{self.kind} {self.unit} {'aware' if self.zone else 'naive'}"

    @property
    def tick(self) -> int:
        """Nanoseconds per tick; 1 for ints."""
        return 1 if self.kind == "int" else SIZES[self.unit]

    @property
    def certain(self) -> tuple[int, int]:
        """The first and the last tick of the range in which `restore` never fails."""
        if self.kind in ("int", "numpy"):
            return _INT64[0] + (self.kind == "numpy"), _INT64[-1]
        days = (date(year, 1, 1).toordinal() - _EPOCH_DAY for year in (2, 9999))
        first, last = (day * SIZES["D"] // SIZES[self.unit] for day in days)
        return max(first, _INT64[0] + 1), min(last, _INT64[-1])

    @property
    def described(self) -> str:
        """The kind of times, for messages."""
        if self.kind in ("int", "date"):
            return f"{self.kind}s"
        zone = f"in zone {self.zone}" if self.zone else "without a zone"
        return f"{_CLASSES[self.kind]} {zone} (unit {self.unit})"

    def ticks(self, time: object) -> int:
        """The ticks of a time.

        Raises:
            SpecError: If it is of another kind, or finer than the unit.
        """
        if self.unit == "us" and type(time) is datetime:
            microseconds = _microseconds(time, self.zone)
            if microseconds is not None:
                return microseconds
        if self.kind == "int":
            return _integer(time, self)
        if self.kind == "date":
            return _day(time, self)
        nanoseconds, aware = _instant(time, self)
        if aware != (self.zone is not None):
            raise SpecError(_wrong_kind(time, self))
        ticks, rest = divmod(nanoseconds, SIZES[self.unit])
        if rest:
            raise SpecError(
                f"{time!r} is not a whole number of this window's units ({self.unit}), "
                "which its first time decided: round it, or begin with a finer unit"
            )
        return _in_int64(ticks, time)

    def restore(self, ticks: int) -> object:
        """The time of a tick, in the kind of this clock.

        Raises:
            SpecError: If it is out of the range of that kind.
        """
        if self.kind == "int":
            return ticks
        try:
            if self.kind != "datetime":
                return self._restore_other(ticks)
            since = timedelta(microseconds=ticks * SIZES[self.unit] // 1_000)
            if self.zone is None:
                return _EPOCH + since
            instant = _EPOCH_UTC + since
        except (OverflowError, ValueError) as error:
            raise SpecError(
                f"{ticks} {self.unit} since 1970 is a time out of the range of "
                f"{self.described}"
            ) from error
        return instant.astimezone(self.zone)

    def scaled(self, ticks: float, scale: str, unit: DurationLike | None) -> Any:
        """A result in units of time, from one in ticks, or per tick.

        Args:
            ticks: The result.
            scale: "rate" (per `unit`), "seconds", or "gap": a difference of two times,
                which is an int, or a duration of the times' library.
            unit: The unit of a rate.

        Raises:
            SpecError: If the unit is not one of these times.
        """
        tick = None if self.kind == "int" else SIZES[self.unit]
        if scale == "rate":
            return ticks * unit_in_ticks(unit, tick)
        if scale == "seconds":
            return ticks / unit_in_ticks(None, tick)
        if tick is None:
            return ticks
        if self.kind == "numpy":
            return _module("numpy").timedelta64(ticks, self.unit)
        if self.kind == "pandas":
            return _module("pandas").Timedelta(ticks, unit=self.unit)
        return timedelta(microseconds=ticks * tick // 1_000)

    def _restore_other(self, ticks: int) -> Any:
        if self.kind == "date":
            return date.fromordinal(ticks + _EPOCH_DAY)
        if ticks == _INT64[0]:
            raise ValueError("NaT")
        if self.kind == "numpy":
            return _module("numpy").datetime64(ticks, self.unit)
        stamp = _module("pandas").Timestamp(ticks, unit=self.unit, tz=self.zone)
        return stamp.as_unit(self.unit)

    def record(self) -> list[object]:
        """The kind, unit and zone as JSON.

        Raises:
            SnapshotError: If the zone has no name.
        """
        zone = None if self.zone is None else zone_record(self.zone)
        return [self.kind, self.unit, zone]


_CLASSES = {
    "datetime": "datetimes",
    "numpy": "numpy.datetime64",
    "pandas": "pandas.Timestamp",
}


def clock_for(
    kind: str,
    unit: str,
    zone: tzinfo | None,
    last: Length | None,
    granularity: Length | None,
    ranges: Sequence[Length] = (),
    latency: Length | None = None,
    schedule: Any = None,
) -> Clock:
    """Makes a clock, converting lengths to its ticks."""
    return Clock(
        kind,
        unit,
        zone,
        None if last is None else ticks_of(last, "last", kind, unit),
        1 if granularity is None else ticks_of(granularity, "granularity", kind, unit),
        tuple(_range_of(length, kind, unit) for length in ranges),
        None if latency is None else ticks_of(latency, "latency", kind, unit),
        schedule,
    )


def _range_of(length: Length, kind: str, unit: str) -> tuple[str, int]:
    if length.kind == "rows":
        return "rows", min(length.amount, 2**63 - 1)
    if kind == "int":
        raise SpecError(
            f"ranges= has the duration {length.label!r}, but the times are ints: give "
            "numbers of entries, or insert datetimes"
        )
    return "time", ticks_of(length, "ranges", kind, unit)


def identify(time: object) -> tuple[str, str, tzinfo | None]:
    """The kind, unit and zone of a time.

    Raises:
        SpecError: If it is not a time.

    Example:
        >>> from datetime import date
        >>> identify(7), identify(date(2024, 2, 29))
        (('int', '', None), ('date', 'D', None))
    """
    pandas, numpy = sys.modules.get("pandas"), sys.modules.get("numpy")
    if pandas is not None and isinstance(time, pandas.Timestamp):
        return "pandas", str(time.unit), time.tzinfo
    if isinstance(time, datetime) and not _missing(time):
        return "datetime", "us", time.tzinfo if time.utcoffset() is not None else None
    if isinstance(time, date) and not _missing(time):
        return "date", "D", None
    if numpy is not None and isinstance(time, numpy.datetime64):
        return "numpy", _numpy_unit(time), None
    _integer(time, None)
    return "int", "", None


def _integer(time: object, clock: Clock | None) -> int:
    number = as_int(time)
    if number is None:
        if clock is not None and _is_time(time):
            raise SpecError(_wrong_kind(time, clock))
        raise SpecError(_not_a_time(time))
    return _in_int64(number, time)


def _day(time: object, clock: Clock) -> int:
    if not isinstance(time, date) or isinstance(time, datetime):
        raise SpecError(
            _wrong_kind(time, clock) if _is_time(time) else _not_a_time(time)
        )
    return time.toordinal() - _EPOCH_DAY


def _microseconds(time: datetime, zone: tzinfo | None) -> int | None:
    """The fast path for most datetimes; None for those that `_instant` must read."""
    if time.tzinfo is None:
        if zone is not None:
            return None
        since = time - _EPOCH
    elif zone is None or type(time.tzinfo) not in (timezone, ZoneInfo):
        return None
    else:
        since = time - _EPOCH_UTC
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _instant(time: object, clock: Clock) -> tuple[int, bool]:
    """Nanoseconds since the epoch, and whether the time has a zone."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if pandas is not None and isinstance(time, pandas.Timestamp):
        ticks = int(time.asm8.view("int64"))
        return ticks * SIZES[time.unit], time.tzinfo is not None
    if isinstance(time, datetime) and not _missing(time):
        aware = time.utcoffset() is not None
        since = time - (_EPOCH_UTC if aware else _EPOCH.replace(tzinfo=time.tzinfo))
        seconds = since.days * 86_400 + since.seconds
        return seconds * 1_000_000_000 + since.microseconds * 1_000, aware
    if numpy is not None and isinstance(time, numpy.datetime64):
        return int(time.view("int64")) * SIZES[_numpy_unit(time)], False
    raise SpecError(_wrong_kind(time, clock) if _is_time(time) else _not_a_time(time))


def _numpy_unit(time: Any) -> str:
    numpy = _module("numpy")
    if numpy.isnat(time):
        raise SpecError(
            "a time is missing (NaT): leave the entry out, or give it a time"
        )
    return numpy_unit(time.dtype)


def numpy_unit(dtype: Any) -> str:
    """The unit of a numpy datetime type."""
    unit, count = _module("numpy").datetime_data(dtype)
    if unit not in SIZES or count != 1:
        raise SpecError(
            f"times of type {dtype} have no unit of fixed length: cast them, "
            "for example to datetime64[us]"
        )
    return str(unit)


def _in_int64(ticks: int, time: object) -> int:
    if ticks not in _INT64:
        raise SpecError(f"time {time!r} does not fit int64")
    return ticks


def _missing(time: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and time is pandas.NaT


def _is_time(time: object) -> bool:
    try:
        identify(time)
    except SpecError:
        return False
    return True


def _not_a_time(time: object) -> str:
    if time is None or _missing(time):
        return f"a time is missing ({time}): leave the entry out, or give it a time"
    shown = repr(time)[:60]
    kind = type(time).__name__
    if isinstance(time, str | bytes):
        return (
            f"{shown} is text, not a time: parse it first, for example with "
            "datetime.fromisoformat"
        )
    if isinstance(time, Real | Decimal) and not isinstance(time, Integral):
        return (
            f"{shown} is a {kind}, which cannot hold a time exactly: give an int in "
            "the unit you need, such as milliseconds, or a datetime"
        )
    return f"{shown} ({kind}) is not a time: give an int, a datetime or a date"


def _wrong_kind(time: object, clock: Clock) -> str:
    return (
        f"{time!r} ({type(time).__name__}) is not of the kind of this window's times: "
        f"its first time decided that they are {clock.described}"
    )


def ticks_of(length: Length, argument: str, kind: str, unit: str) -> int:
    """A length in ticks of a kind of times and a unit; `argument` is for messages.

    Example:
        >>> ticks_of(Length("time", 3_000_000_000, "3s"), "range", "datetime", "us")
        3000000
    """
    if kind == "int":
        if length.kind != "integer":
            raise SpecError(
                f"{argument}={length.label!r} is a duration, but the times are ints: "
                f"give {argument}= as an int in their unit, or insert datetimes"
            )
        return _length_in_range(length.amount, argument, length)
    if length.kind != "time":
        raise SpecError(
            f"{argument}={length.label} is a bare number, but the times are "
            f"{kind}s: give a duration such as '{length.label}s'"
        )
    ticks, rest = divmod(length.amount, SIZES[unit])
    if rest:
        raise SpecError(
            f"{argument}={length.label!r} is not a whole number of units of the times "
            f"({'days' if unit == 'D' else unit}): give a longer one, or times in a "
            "finer unit"
        )
    return _length_in_range(ticks, argument, length)


def _length_in_range(ticks: int, argument: str, length: Length) -> int:
    if ticks not in _INT64:
        given = Argument(argument, length.given.value)
        raise SpecError(given, " is too long: int64 cannot hold it")
    return ticks


def _module(name: str) -> Any:
    """A library whose times a window returns, imported when needed."""
    import importlib

    return importlib.import_module(name)


def zone_named(name: str) -> tzinfo:
    """The zone of an Arrow column: a name such as "Europe/Berlin", or "+02:00".

    Example:
        >>> zone_named("+02:00")
        datetime.timezone(datetime.timedelta(seconds=7200))
    """
    if name.upper() in ("UTC", "Z"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        if offset < timedelta(days=1):
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as error:
        message = f"there is no time zone {name!r} on this machine"
        raise SpecError(message) from error
