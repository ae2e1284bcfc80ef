"""Parses the lengths of windows.

A length is a duration (`"90s"`, `"15m"`, `"1h"`, `"7d"`, a `timedelta` of Python, of
pandas or of numpy), an integer in the units of an integer time column, or a number of
rows (`rows(100)`). Calendar months and years have no fixed length and are refused:
`"1d"` is 24 hours, always.
"""

import re
import sys
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from slidewise.aggregations.scalars import as_int
from slidewise.errors import Argument, SpecError

if TYPE_CHECKING:
    from numpy import timedelta64

__all__ = [
    "EXAMPLES",
    "UNITS",
    "DurationLike",
    "Length",
    "Rows",
    "WindowLike",
    "format_duration",
    "half_life_in_ticks",
    "monday_shift",
    "parse_length",
    "parse_offset",
    "read_half_life",
    "read_rows",
    "rows",
    "spell_duration",
    "unit_in_ticks",
]

# Nanoseconds per unit, from the longest to the shortest.
UNITS = {
    "w": 604_800_000_000_000,
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}

# The first Monday after the epoch.
_MONDAY = 4 * UNITS["d"]

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

# Further units of numpy durations, per nanosecond; numpy's "W" and "D" are weeks and
# days, its "M" and "Y" those of the calendar.
_PARTS = {"ps": 10**3, "fs": 10**6, "as": 10**9}

# More digits exceed int64 in every unit.
_MAX_DIGITS = 100
_DURATION = re.compile(r"\s*([+-]?)\s*(\d+)\s*([A-Za-z]+)\s*", re.ASCII)
_ROWS = re.compile(r"([+-]?\d+) ?rows?", re.ASCII)

# The arguments that also take a number of rows.
_TAKE_ROWS = (*("windows", "last", "ranges", "range", "every", "offset", "half_life"),)
EXAMPLES = "write it like '90s', '15m', '1h' or '7d'"
# Parts of durations in several units, and units in other libraries' words.
_PART = re.compile(r"(\d{0,100}\.?\d{1,100})([A-Za-z]+)", re.ASCII)
_FOREIGN = {"hr": "h", "t": "m", "l": "ms", "u": "us", "n": "ns"}
# Months, quarters and years, and their units of the calendar.
_UNITS_OF_CALENDAR = {
    "m": ("month", "1mo"),
    "q": ("quarter", "1q"),
    "y": ("year", "1y"),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """A window of the last `n` rows. Made by `rows`."""

    n: int

    def __repr__(self) -> str:
        return f"rows({self.n})"

    def __str__(self) -> str:
        """Its form on the command line and in the names of result columns."""
        return f"{self.n}rows"


if TYPE_CHECKING:
    DurationLike: TypeAlias = str | timedelta | timedelta64[Any] | SupportsIndex
else:  # numpy is not needed
    DurationLike: TypeAlias = str | timedelta | SupportsIndex
WindowLike: TypeAlias = DurationLike | Rows


@dataclass(frozen=True, slots=True)
class Length:
    """The length of a window.

    Attributes:
        kind: "time" (`amount` in nanoseconds), "integer" (`amount` in the units of an
            integer time column) or "rows".
        amount: Positive; of an offset any.
        label: As the user wrote it; the suffix of the result columns' names.
        argument: The name of the argument, for messages.
    """

    kind: str
    amount: int
    label: str
    argument: str = field(
        default="window", compare=False, metadata={"canonical": False}
    )

    @property
    def plain(self) -> int | str:
        """Its form in documents: an int in the units of integer times, or text."""
        return self.amount if self.kind == "integer" else self.label

    @property
    def shown(self) -> str:
        """Its form in a call, for messages."""
        return repr(self.plain)

    @property
    def given(self) -> Argument:
        """The argument with its value, for messages."""
        return Argument(self.argument, self.plain)

    @property
    def in_weeks(self) -> bool:
        """Whether the user wrote it in weeks, not in days."""
        match = _DURATION.fullmatch(self.label) if self.kind == "time" else None
        return match is not None and match[3].lower() in ("w", "week", "weeks")


def rows(n: int) -> Rows:
    """A window of the last `n` rows, up to and including the current row.

    Rows with missing values count. With `by=` only rows of the same key count; with
    `arrival=` the `n` latest by time among the rows that had arrived.

    The first rows have results over fewer than `n` rows. To get null there, as from
    `rolling(n)` in pandas, give `min_rows=n`, which counts values that are not null.

    Args:
        n: The number of rows, from 1 to 2⁶³ − 1.

    Returns:
        A length for `windows=`, `last=` or `ranges=`, or beside windows of rows for
        `offset=`: they end `n` rows before the current one.

    Raises:
        SpecError: If `n` is not an integer in that range.

    Cost: O(1).

    Example:
        >>> import slidewise as sw
        >>> sw.rows(100)
        rows(100)
    """
    number = as_int(n)
    if number is None or not 1 <= number < 2**63:
        raise SpecError(
            f"{n!r} is not a number of rows: give an int from 1 to 2**63 - 1"
        )
    return Rows(number)


def read_rows(text: str) -> Rows | None:
    """The number of rows that a text names, as in files and on the command line.

    Example:
        >>> read_rows("100rows"), read_rows("1h")
        (rows(100), None)
    """
    match = _ROWS.fullmatch(text)
    return rows(int(match[1])) if match and len(match[1]) <= _MAX_DIGITS else None


def parse_offset(offset: WindowLike, argument: str = "offset") -> Length:
    """Reads an offset: a length that may also be zero or negative.

    Example:
        >>> parse_offset("-15m").amount, parse_offset(0).amount
        (-900000000000, 0)
    """
    if isinstance(offset, Rows) and argument == "offset":
        return Length("rows", rows(offset.n).n, str(offset), argument)
    if isinstance(offset, str):
        return Length("time", _parse_duration(offset, argument), offset, argument)
    if isinstance(offset, timedelta):
        return Length("time", _nanoseconds(offset), str(offset), argument)
    if _is_numpy(offset):
        return Length(
            "time", _numpy_nanoseconds(offset, argument), str(offset), argument
        )
    if _is_pandas_offset(offset):
        amount = _offset_nanoseconds(offset, argument)
        return Length("time", amount, format_duration(amount), argument)
    amount = _integer(offset, argument)
    return Length("integer", amount, str(amount), argument)


def parse_length(window: WindowLike | Length, argument: str = "window") -> Length:
    """Reads one window as a user wrote it; a length that was read stays as it is.

    Example:
        >>> parse_length("15m").amount, parse_length("15m").label
        (900000000000, '15m')
        >>> parse_length(rows(3)).label
        '3rows'
    """
    if isinstance(window, Length):
        return window
    if isinstance(window, Rows):
        return Length("rows", rows(window.n).n, str(window), argument)
    length = parse_offset(window, argument)
    if length.amount <= 0:
        raise SpecError(
            Argument(argument, window),
            " must be longer than zero: give a duration such as '1h', or an int for "
            "integer times",
        )
    if isinstance(window, timedelta) or _is_numpy(window):
        return replace(length, label=format_duration(length.amount))
    return length


def unit_in_ticks(unit: DurationLike | None, tick: int | None) -> float:
    """The `unit` of an aggregation in ticks; by default one second, or 1.

    Args:
        unit: A duration, or an int for integer times.
        tick: Nanoseconds per tick; None for integer times.

    Example:
        >>> unit_in_ticks("1h", 1_000_000_000), unit_in_ticks(None, None)
        (3600.0, 1.0)
    """
    if unit is None:
        return 1.0 if tick is None else UNITS["s"] / tick
    length = parse_length(unit, "unit")
    if length.kind != ("integer" if tick is None else "time"):
        needed = "an int, as times are" if tick is None else "a duration such as '1s'"
        raise SpecError(
            Argument("unit", unit), f" does not fit the times: give {needed}"
        )
    return length.amount / (tick or 1)


def half_life_in_ticks(
    half_life: WindowLike | None, tick: int | None
) -> tuple[int, int]:
    """The `half_life` of an aggregation as two numbers, whose quotient is in ticks.

    Args:
        half_life: A duration, or an int for integer times.
        tick: Nanoseconds per tick; None for integer times.

    Example:
        >>> half_life_in_ticks("1h", 1_000_000_000), half_life_in_ticks(5, None)
        ((3600000000000, 1000000000), (5, 1))
    """
    length = read_half_life(half_life)
    if length.kind != ("integer" if tick is None else "time"):
        needed = "an int, as times are" if tick is None else "a duration such as '1h'"
        raise SpecError(
            length.given, f" does not fit the times: give {needed}, or sw.rows(k)"
        )
    if length.amount >= 2**63:
        raise SpecError(length.given, " is too long: int64 cannot hold it")
    return length.amount, tick or 1


def read_half_life(half_life: WindowLike | None) -> Length:
    """The `half_life` of an aggregation.

    Example:
        >>> read_half_life("1h").amount, read_half_life(rows(3)).kind
        (3600000000000, 'rows')
    """
    if half_life is None:
        raise SpecError(
            Argument("half_life"),
            " is missing: give a duration such as '1h', an int for integer times, or "
            "sw.rows(k)",
        )
    return parse_length(half_life, "half_life")


def monday_shift(length: Length, slide: Length) -> int:
    """The shift from the epoch, a Thursday, of windows in weeks.

    Windows are shifted if their slide is a number of weeks and it or the length is
    written in weeks: "1w" begins on Mondays, "7d" is counted from the epoch.

    Returns:
        Nanoseconds.

    Example:
        >>> week, days = parse_length("1w"), parse_length("7d")
        >>> monday_shift(week, week) == 4 * parse_length("1d").amount
        True
        >>> monday_shift(days, days), monday_shift(week, parse_length("1d"))
        (0, 0)
    """
    whole = slide.kind == "time" and slide.amount % UNITS["w"] == 0
    return _MONDAY if whole and (length.in_weeks or slide.in_weeks) else 0


def format_duration(nanoseconds: int) -> str:
    """Formats a duration in its longest whole unit, up to days.

    Example:
        >>> format_duration(5_400_000_000_000), format_duration(-1_000_000)
        ('90m', '-1ms')
    """
    for unit, size in UNITS.items():
        if unit != "w" and nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    raise AssertionError("every number of nanoseconds is a multiple of 1 ns")


def spell_duration(nanoseconds: int) -> str:
    """Spells a duration of 0 or more in several units, the longest one hours.

    Whole days are days.

    Example:
        >>> spell_duration(86_700_000_000_000), spell_duration(172_800_000_000_000)
        ('24h5m', '2d')
    """
    if not nanoseconds % UNITS["d"]:
        return format_duration(nanoseconds)
    parts = []
    for unit, size in UNITS.items():
        if unit not in ("w", "d") and nanoseconds >= size:
            count, nanoseconds = divmod(nanoseconds, size)
            parts.append(f"{count}{unit}")
    return "".join(parts)


def _parse_duration(text: str, argument: str) -> int:
    """Parses a duration to nanoseconds, which may be zero or negative."""
    match = _DURATION.fullmatch(text)
    if match is None:
        whole = _in_one_unit(text)
        way = EXAMPLES if whole is None else f"write it in one unit, {whole!r}"
        raise SpecError(Argument(argument, text), f" is not a duration: {way}")
    sign, digits, unit = match.groups()
    if len(digits) > _MAX_DIGITS:
        raise SpecError(Argument(argument, f"{text[:20]}..."), " is too long")
    return int(sign + digits) * _unit(unit, Argument(argument, text))


def _unit(unit: str, given: Argument) -> int:
    if unit in UNITS:
        return UNITS[unit]
    singular = unit.lower().removesuffix("s")
    if singular in _WORDS:
        return UNITS[_WORDS[singular]]
    if unit in _CALENDAR or singular in _CALENDAR:
        raise _no_fixed_length(given, unit, " (in durations 'm' is minutes)")
    if singular == "row" and given.name in _TAKE_ROWS:
        number = re.sub(r"\D", "", str(given.value))
        raise SpecError(given, f" is a number of rows: give sw.rows({number})")
    known = " ".join(UNITS)
    way = _in_one_unit(str(given.value))
    raise SpecError(
        given,
        f" has the unknown unit {unit!r}: "
        f"{EXAMPLES if way is None else f'write it {way!r}'}; units are {known}",
    )


def _in_one_unit(text: str) -> str | None:
    """A duration as the user should write it; None if the text is none.

    Example:
        >>> _in_one_unit("1h30m"), _in_one_unit("1.5h"), _in_one_unit("2H")
        ('90m', '90m', '2h')
    """
    text = re.sub(r"[\s,]", "", text[: 2 * _MAX_DIGITS])
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    parts = [(number, _foreign_unit(unit)) for number, unit in _PART.findall(text)]
    if _PART.sub("", text) or not all(unit for _, unit in parts):
        return None
    if len(parts) == 1 and parts[0][0].isdigit():
        return sign + "".join(parts[0])  # a week stays one
    total = sum(Fraction(number) * UNITS[unit] for number, unit in parts)
    whole = total > 0 and total.denominator == 1
    return sign + format_duration(int(total)) if whole else None


def _foreign_unit(unit: str) -> str:
    """The unit that a word of another library means; empty if there is none."""
    known = unit.lower()
    if known not in UNITS:
        known = known.removesuffix("s")
        known = _WORDS.get(known, _FOREIGN.get(known, known))
    return known if known in UNITS and unit not in _CALENDAR else ""


@dataclass(frozen=True, slots=True)
class _Calendar:
    """A window that a message offers, in a call and on the command line."""

    function: str
    unit: str

    def __repr__(self) -> str:
        return f"sw.{self.function}({self.unit!r})"

    def __str__(self) -> str:
        return f"{self.function}:{self.unit}"


def _no_fixed_length(given: Argument, unit: str, hint: str = "") -> SpecError:
    name, short = _UNITS_OF_CALENDAR[unit[0].lower()]
    calendar: list[str | Argument] = []
    if given.name == "windows":
        calendar = [
            "give ",
            Argument("windows", _Calendar("calendar", short)),
            f" for a {name} back from each row, or ",
            Argument("windows", _Calendar("to_date", short)),
            f" for the {name} to date; or ",
        ]
    elif given.name in ("window", "every"):
        calendar = [
            "give ",
            Argument("window", _Calendar("calendar", short)),
            f" for calendar {name}s, one after another; or ",
        ]
    return SpecError(
        given,
        " has no fixed length: ",
        *calendar,
        f"give months and years in days, e.g. '30d'{hint}",
    )


def _integer(value: object, argument: str) -> int:
    number = as_int(value)
    if number is None:
        raise SpecError(
            Argument(argument, value),
            " is not a length of time: give a duration such as '1h', a timedelta, or "
            "an int for integer times",
            " (or sw.rows(n))" if argument in _TAKE_ROWS else "",
        )
    return number


def _nanoseconds(delta: timedelta) -> int:
    whole = delta // timedelta(microseconds=1)
    # pandas.Timedelta is a timedelta that also counts nanoseconds.
    return whole * 1_000 + int(getattr(delta, "nanoseconds", 0))


def _is_numpy(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and bool(isinstance(value, numpy.timedelta64))


def _is_pandas_offset(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.offsets.BaseOffset)


def _offset_nanoseconds(offset: Any, argument: str) -> int:
    try:
        return int(offset.nanos)
    except ValueError as error:
        raise SpecError(
            Argument(argument, offset),
            f" has no fixed length: {EXAMPLES}, or give a pandas.Timedelta",
        ) from error


def _numpy_nanoseconds(delta: Any, argument: str) -> int:
    numpy = sys.modules["numpy"]
    given = Argument(argument, delta)
    unit, each = numpy.datetime_data(delta.dtype)
    if numpy.isnat(delta):
        raise SpecError(given, f" is not a length of time: it is missing; {EXAMPLES}")
    if unit == "generic":
        raise SpecError(
            given,
            " is not a length of time: it has no unit; give one, such as "
            "numpy.timedelta64(1, 'h'), or an int for integer times",
        )
    if unit in ("M", "Y"):
        raise _no_fixed_length(given, unit)
    amount = int(delta.view("int64")) * int(each)
    if unit not in _PARTS:
        return amount * UNITS[unit.lower()]
    whole, rest = divmod(amount, _PARTS[unit])
    if rest:
        raise SpecError(given, " is not a whole number of nanoseconds: round it")
    return whole
