"""Values of the standard library as text, for snapshots.

| first letter | value                                                   |
|--------------|---------------------------------------------------------|
| a digit, `[` | date, datetime: ISO 8601; see `_write_time`             |
| `d`          | timedelta: days, seconds, microseconds                  |
| `n`          | Decimal, as it prints                                   |
| `q`          | Fraction: numerator and denominator, hexadecimal        |
"""

import json
import re
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from slidewise.errors import SnapshotError

__all__ = ["read_form", "write_form", "zone_of_record", "zone_record"]

_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}")


def write_form(value: Any) -> str | None:
    """Writes a value as text; returns None if its type has no such form.

    Raises:
        SnapshotError: If the zone of a datetime has no name.

    Example:
        >>> write_form(Fraction(-1, 3)), write_form(timedelta(minutes=1))
        ('q-1/3', 'd0 60 0')
    """
    kind = type(value)
    if kind in (date, datetime):
        return _write_time(value)
    if kind is timedelta:
        return f"d{value.days} {value.seconds} {value.microseconds}"
    if kind is Decimal:
        return f"n{value}"
    if kind is Fraction:
        return f"q{value.numerator:x}/{value.denominator:x}"
    return None


def read_form(text: str) -> Any:
    """Reads the value that `write_form` wrote.

    Raises:
        SnapshotError: If the text is not in that format.

    Example:
        >>> read_form("n1.50")
        Decimal('1.50')
    """
    try:
        match text[:1]:
            case "d":
                days, seconds, microseconds = map(int, text[1:60].split(" "))
                return timedelta(days, seconds, microseconds)
            case "n":
                return Decimal(text[1:])
            case "q":
                numerator, denominator = text[1:].split("/")
                return Fraction(int(numerator, 16), int(denominator, 16))
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError) as error:
        raise SnapshotError(f"{text[:60]!r} is not a value in this format") from error
    return _read_time(text)


def zone_record(zone: tzinfo) -> list[object]:
    """Returns a time zone as a record for JSON.

    Raises:
        SnapshotError: If it has no name.

    Example:
        >>> zone_record(ZoneInfo("Europe/Berlin"))
        ['zone', 'Europe/Berlin']
    """
    if isinstance(zone, timezone):
        offset = zone.utcoffset(None)
        return ["offset", offset // timedelta(microseconds=1)]
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str) and _ZONE.fullmatch(name):
        return ["zone", name]
    raise SnapshotError(
        f"the zone {zone!r} has no name to write: use zoneinfo.ZoneInfo"
    )


def zone_of_record(record: object) -> tzinfo:
    """Reads the zone that `zone_record` wrote.

    Raises:
        SnapshotError: If it is not such a record, or the zone is unknown here.
    """
    match record:
        case ["offset", int(offset)] if abs(offset) < 86_400_000_000:
            return timezone(timedelta(microseconds=offset))
        case ["zone", str(name)] if _ZONE.fullmatch(name):
            try:
                return ZoneInfo(name)
            except (OSError, ValueError, LookupError) as error:
                raise SnapshotError(f"unknown time zone {name!r}") from error
    raise SnapshotError(f"{str(record)[:60]!r} is not a time zone")


def _write_time(value: date) -> str:
    """Writes a date or datetime as text, with zone and fold.

    Raises:
        SnapshotError: If its zone has no name.

    Example:
        >>> from datetime import date
        >>> _write_time(date(2024, 2, 29))
        '2024-02-29'
    """
    if not isinstance(value, datetime):
        return value.isoformat()
    zone = None if value.tzinfo is None else zone_record(value.tzinfo)
    wall = value.replace(tzinfo=None, fold=0).isoformat()
    return json.dumps([wall, value.fold, zone], separators=(",", ":"))


def _read_time(text: str) -> date:
    """Reads the value that `_write_time` wrote.

    Raises:
        SnapshotError: If the text is not in that format.

    Example:
        >>> _read_time('["2024-02-29T12:30:00",0,null]')
        datetime.datetime(2024, 2, 29, 12, 30)
    """
    try:
        if not text.startswith("["):
            return date.fromisoformat(text)
        wall, fold, zone = json.loads(text[:200])
        value = datetime.fromisoformat(wall).replace(fold=fold)
    except (ValueError, TypeError) as error:
        raise SnapshotError(f"{text[:60]!r} is not a date or time") from error
    return value if zone is None else value.replace(tzinfo=zone_of_record(zone))
