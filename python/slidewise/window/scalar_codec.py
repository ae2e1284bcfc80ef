"""Values of the standard library as text, for snapshots.

| first letter | value                                                   |
|--------------|---------------------------------------------------------|
| a digit, `[` | date, datetime: see `instants.write_moment`             |
| `d`          | timedelta: days, seconds, microseconds                  |
| `n`          | Decimal, as it prints                                   |
| `q`          | Fraction: numerator and denominator, hexadecimal        |
"""

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from slidewise.errors import SnapshotError
from slidewise.window.time_codec import read_moment, write_moment

__all__ = ["read_form", "write_form"]


def write_form(value: Any) -> str | None:
    """A value as text; None where its type has no such form.

    Raises:
        SnapshotError: If the zone of a datetime has no name.

    Example:
        >>> write_form(Fraction(-1, 3)), write_form(timedelta(minutes=1))
        ('q-1/3', 'd0 60 0')
    """
    kind = type(value)
    if kind in (date, datetime):
        return write_moment(value)
    if kind is timedelta:
        return f"d{value.days} {value.seconds} {value.microseconds}"
    if kind is Decimal:
        return f"n{value}"
    if kind is Fraction:
        return f"q{value.numerator:x}/{value.denominator:x}"
    return None


def read_form(text: str) -> Any:
    """What `write_form` wrote.

    Raises:
        SnapshotError: If it is something else.

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
        raise SnapshotError(f"{text[:60]!r} is no value in its form") from error
    return read_moment(text)
