"""Watermarks of any year, on top of Spark's, which start in 1970 and never fall.

Spark reports 0 while it has no watermark, and for every watermark before 1970. So its
event times are shifted 10,000 years into the future: Spark's 0 is then the year -8030,
before any event. The Gregorian calendar repeats every 400 years, so a shifted watermark
in Spark's UI differs in its year alone: +12018-07-03T17:48:39Z is 2018-07-03T17:48:39Z.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import functions as sf

from slidewise.spark.columns import RESERVED_PREFIX, column

__all__ = [
    "SHIFTED",
    "WATERMARK",
    "in_spark",
    "seconds",
    "shift_times",
    "text_of",
    "timer_for",
    "watermark_of",
]

# The column of shifted event times, on which Spark keeps its watermark.
SHIFTED = f"{RESERVED_PREFIX}moved"
# The metric of the watermark of the operator, in microseconds since 1970.
WATERMARK = "watermark"
_YEARS = 10_000
_DAYS_IN_400_YEARS = 146_097
_SHIFT_DAYS = _DAYS_IN_400_YEARS * _YEARS // 400
_SHIFT_MILLISECONDS = _SHIFT_DAYS * 86_400_000
_MAX_MICROSECONDS = 2**63 - 1 - _SHIFT_MILLISECONDS * 1_000


def shift_times(on: str) -> Any:
    """Returns the column of event times, shifted by 10,000 years.

    Timestamps within 10,000 years of the latest that Spark can hold are clipped to one
    value.
    """
    ticks = sf.unix_micros(column(on))
    ticks = sf.when(ticks > _MAX_MICROSECONDS, sf.lit(_MAX_MICROSECONDS)).otherwise(
        ticks
    )
    return sf.timestamp_micros(ticks + sf.lit(_SHIFT_MILLISECONDS * 1_000))


def watermark_of(milliseconds: int) -> int | None:
    """Converts Spark's watermark to microseconds since 1970; None before the first.

    Example:
        >>> watermark_of(0)
        >>> watermark_of(315569520000001)
        1000
    """
    if milliseconds <= 0:
        return None
    return (milliseconds - _SHIFT_MILLISECONDS) * 1_000


def in_spark(watermark: int) -> int:
    """Converts a watermark in microseconds since 1970 to that of Spark.

    Example:
        >>> in_spark(1000)
        315569520000001
    """
    return watermark // 1_000 + _SHIFT_MILLISECONDS


def timer_for(due: int, watermark: int | None) -> int:
    """Returns Spark's event-time timer for a time in microseconds since 1970.

    Spark refuses a timer at or before the watermark: the timer is then one millisecond
    after it.

    Example:
        >>> timer_for(1000, None), timer_for(1000, 1000)
        (315569520000001, 315569520000002)
    """
    now = 0 if watermark is None else in_spark(watermark)
    return max(-(-due // 1_000) + _SHIFT_MILLISECONDS, now + 1)


def seconds(shifted: str) -> float | None:
    """Converts the watermark in a query's progress to seconds since 1970.

    None before the first one.

    Example:
        >>> seconds("1970-01-01T00:00:00.000Z")
        >>> seconds("+12018-07-03T17:48:39.250Z")
        1530640119.25
    """
    if shifted.startswith("1970-01-01T00:00:00"):
        return None
    year, dash, rest = shifted[1:].partition("-")
    # Python's datetime holds the years 1 to 9999 only.
    cycles, year_of = divmod(int(shifted[0] + year) - _YEARS - 2_000, 400)
    time = datetime.fromisoformat(f"{year_of + 2_000}{dash}{rest}").astimezone(UTC)
    return time.timestamp() + cycles * _DAYS_IN_400_YEARS * 86_400.0


def text_of(seconds: float) -> str:
    """Converts seconds since 1970 to a time in ISO 8601, by milliseconds.

    Example:
        >>> text_of(1530640119.25), text_of(-62198755200.0)
        ('2018-07-03T17:48:39.250Z', '-0001-01-01T00:00:00.000Z')
    """
    cycle = _DAYS_IN_400_YEARS * 86_400
    cycles, rest = divmod(round(seconds * 1_000), cycle * 1_000)
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=rest)
    year = time.year + 400 * cycles
    text = time.isoformat(timespec="milliseconds")[4:].replace("+00:00", "Z")
    return f"{year:05}{text}" if year < 0 else f"{year:04}{text}"
