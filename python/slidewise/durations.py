"""Lengths of windows, as people write them.

A length is a duration (`"90s"`, `"15m"`, `"1h"`, `"7d"`, a `timedelta`), an integer in
the units of an integer time column, or a number of rows (`rows(100)`). Calendar months
and years have no fixed length and are refused: `"1d"` is 24 hours, always.
"""

import operator
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import SupportsIndex, TypeAlias

from slidewise.errors import SpecError

__all__ = [
    "Length",
    "Rows",
    "Session",
    "WindowLike",
    "parse_duration",
    "parse_length",
    "parse_offset",
    "rows",
    "session",
]

# Nanoseconds per unit, from the longest to the shortest.
_UNITS = {
    "w": 604_800_000_000_000,
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}

_WORDS = {
    "week": "w",
    "day": "d",
    "hour": "h",
    "minute": "m",
    "min": "m",
    "second": "s",
    "sec": "s",
    "millisecond": "ms",
    "microsecond": "us",
    "nanosecond": "ns",
}

_CALENDAR = {
    "month",
    "mo",
    "mon",
    "M",
    "MS",
    "ME",
    "quarter",
    "q",
    "Q",
    "year",
    "y",
    "Y",
}

# Beyond what any time can hold.
_MOST_DIGITS = 100
_DURATION = re.compile(r"\s*([+-]?)\s*(\d+)\s*([A-Za-z]+)\s*", re.ASCII)

_FORMS = (
    "give a duration such as '1h', a timedelta, an int (for integer time columns), "
    "or sw.rows(n)"
)
_EXAMPLES = "write it like '90s', '15m', '1h' or '7d'"


@dataclass(frozen=True, slots=True)
class Rows:
    """A window of the last `n` rows. Made by `rows`."""

    n: int

    def __repr__(self) -> str:
        return f"rows({self.n})"


WindowLike: TypeAlias = str | timedelta | Rows | SupportsIndex


@dataclass(frozen=True, slots=True)
class Session:
    """Windows between gaps. Made by `session`."""

    gap: "Length"

    def __repr__(self) -> str:
        return f"session({self.gap.label})"


@dataclass(frozen=True, slots=True)
class Length:
    """How far a window reaches.

    Attributes:
        kind: "time" (`amount` in nanoseconds), "integer" (`amount` in the units of an
            integer time column) or "rows".
        amount: Always positive.
        label: As the user wrote it; the end of the result columns' names.
    """

    kind: str
    amount: int
    label: str


def rows(n: int) -> Rows:
    """A window of the last `n` rows, up to and including the row itself.

    Rows count whether or not their values are missing. In a keyed table the rows are
    those of the same key. With `arrival=` they are the `n` youngest by time among the
    rows that had arrived.

    Args:
        n: How many rows, at least 1.

    Raises:
        SpecError: If `n` is not a positive integer.

    Example:
        >>> import slidewise as sw
        >>> sw.rows(100)
        rows(100)
    """
    number = _positive(n, "number of rows")
    if number >= 2**63:
        raise SpecError(f"a window holds fewer than 2**63 rows, got {number}")
    return Rows(number)


def session(gap: str | timedelta | SupportsIndex) -> Session:
    """Windows from the first to the last of rows that follow closely: for `hopping`.

    A row belongs to the session of the row before it (of the same key) if it comes at
    most `gap` later; a longer gap begins a new session.

    Args:
        gap: A duration such as `"30m"`, a `timedelta`, or an int in the units of an
            integer time column.

    Raises:
        SpecError: If `gap` is no positive length of time.

    Example:
        >>> import slidewise as sw
        >>> sw.session("30m")
        session(30m)
    """
    length = parse_length(gap)
    if length.kind == "rows":
        raise SpecError(f"a session ends with a gap of time, got {gap!r}: {_EXAMPLES}")
    return Session(length)


def parse_offset(offset: str | timedelta | SupportsIndex) -> Length:
    """Reads an offset: a length that may also be zero or negative.

    Raises:
        SpecError: If it has no fixed length, or is none.

    Example:
        >>> parse_offset("-15m").amount, parse_offset(0).amount
        (-900000000000, 0)
    """
    if isinstance(offset, str):
        sign = -1 if offset.lstrip().startswith("-") else 1
        bare = offset.replace("-", "", 1) if sign < 0 else offset
        if re.fullmatch(r"\s*0+\s*[A-Za-z]+\s*", bare):
            _unit(bare.strip(" 0"), offset)
            return Length("time", 0, offset)
        return Length("time", sign * parse_duration(bare), offset)
    if isinstance(offset, timedelta):
        return Length("time", _nanoseconds(offset), str(offset))
    if isinstance(offset, bool) or not isinstance(offset, SupportsIndex):
        raise SpecError(f"{offset!r} is no offset: {_EXAMPLES}")
    return Length("integer", operator.index(offset), str(operator.index(offset)))


def parse_length(window: WindowLike) -> Length:
    """Reads one window as a user wrote it.

    Raises:
        SpecError: If it is not positive, has no fixed length (months, years), or is no
            window at all.

    Example:
        >>> parse_length("15m")
        Length(kind='time', amount=900000000000, label='15m')
        >>> parse_length(rows(3)).label
        '3rows'
    """
    if isinstance(window, Rows):
        return Length("rows", _positive(window.n, "number of rows"), f"{window.n}rows")
    if isinstance(window, str):
        return Length("time", parse_duration(window), window)
    if isinstance(window, timedelta):
        nanoseconds = _nanoseconds(window)
        if nanoseconds <= 0:
            raise SpecError(f"a window must be longer than zero, got {window!r}")
        return Length("time", nanoseconds, _shortest(nanoseconds))
    amount = _positive(window, "window")
    return Length("integer", amount, str(amount))


def parse_duration(text: str) -> int:
    """Reads a duration such as "90s" as nanoseconds.

    Raises:
        SpecError: If it is no duration, not positive, or a calendar month or year.

    Example:
        >>> parse_duration("90s")
        90000000000
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise SpecError(f"cannot read the duration {text!r}: {_EXAMPLES}")
    sign, digits, unit = match.groups()
    if len(digits) > _MOST_DIGITS:
        raise SpecError(f"the duration {text[:20]!r}... is too long")
    nanoseconds = int(digits) * _unit(unit, text)
    if sign == "-" or nanoseconds == 0:
        raise SpecError(f"a duration must be longer than zero, got {text!r}")
    return nanoseconds


def _unit(unit: str, text: str) -> int:
    if unit in _UNITS:
        return _UNITS[unit]
    singular = unit.lower().removesuffix("s")
    if singular in _WORDS:
        return _UNITS[_WORDS[singular]]
    if unit in _CALENDAR or singular in _CALENDAR:
        raise SpecError(
            f"{text!r} has no fixed length, because months and years differ in theirs: "
            "give the days, e.g. '30d' (in durations 'm' is minutes)"
        )
    known = " ".join(_UNITS)
    raise SpecError(
        f"unknown unit {unit!r} in the duration {text!r}: {_EXAMPLES}; "
        f"units are {known}"
    )


def _positive(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise SpecError(f"{value!r} is no {what}: {_FORMS}")
    number = operator.index(value)
    if number <= 0:
        raise SpecError(f"a window must be longer than zero, got {what} {number}")
    return number


def _nanoseconds(delta: timedelta) -> int:
    whole = delta // timedelta(microseconds=1)
    # pandas.Timedelta is a timedelta that also counts nanoseconds.
    return whole * 1_000 + int(getattr(delta, "nanoseconds", 0))


def _shortest(nanoseconds: int) -> str:
    for unit, size in _UNITS.items():
        if unit != "w" and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    raise AssertionError("every number of nanoseconds is a multiple of 1 ns")
