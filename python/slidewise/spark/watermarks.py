"""Watermarks at any time, over those of Spark, which begin in 1970 and only rise.

Spark says 0 before it has a watermark, and for each one that would be earlier. So it is
given the times of rows 10,000 years later, of which 0 is the year -8030: no stream is
as old. The Gregorian calendar repeats itself after 400 years, so in what Spark shows of
a watermark only the year differs: +12018-07-03T17:48:39Z is 2018-07-03T17:48:39Z.
"""

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import functions as sf

from slidewise.spark.columns import column

__all__ = ["MOVED", "alarm", "from_progress", "moved", "seconds", "watermark_of"]

# The column that Spark keeps the watermark of.
MOVED = "__slidewise_moved"
_YEARS = 10_000
_DAYS = 146_097 * _YEARS // 400
_MILLISECONDS = _DAYS * 86_400_000
_LATEST = 2**63 - 1 - _MILLISECONDS * 1_000


def moved(on: str) -> Any:
    """The times of a column of timestamps, as Spark is given them.

    Times of the last 10,000 years that a timestamp can hold become the same one.
    """
    ticks = sf.unix_micros(column(on))
    ticks = sf.when(ticks > _LATEST, sf.lit(_LATEST)).otherwise(ticks)
    return sf.timestamp_micros(ticks + sf.lit(_MILLISECONDS * 1_000))


def watermark_of(milliseconds: int) -> int | None:
    """What Spark says is the watermark, in ticks; None before there is one.

    Example:
        >>> watermark_of(0)
        >>> watermark_of(315569520000001)
        1000
    """
    if milliseconds <= 0:
        return None
    return (milliseconds - _MILLISECONDS) * 1_000


def alarm(due: int, watermark: int | None) -> int:
    """When Spark is to wake for what is due at a tick, behind the watermark.

    Example:
        >>> alarm(1000, None), alarm(1000, 1000)
        (315569520000001, 315569520000002)
    """
    now = 0 if watermark is None else watermark // 1_000 + _MILLISECONDS
    return max(-(-due // 1_000) + _MILLISECONDS, now + 1)


def from_progress(told: str) -> str | None:
    """The watermark that a query's progress tells; None before there is one.

    Example:
        >>> from_progress("1970-01-01T00:00:00.000Z")
        >>> from_progress("+12018-07-03T17:48:39.250Z")
        '2018-07-03T17:48:39.250Z'
    """
    if told.startswith("1970-01-01T00:00:00"):
        return None
    year, rest = _parts(told)
    year -= _YEARS
    return f"{year:05}{rest}" if year < 0 else f"{year:04}{rest}"


def seconds(told: str) -> float | None:
    """The same in seconds since 1970.

    Example:
        >>> seconds("+12018-07-03T17:48:39.250Z")
        1530640119.25
    """
    text = from_progress(told)
    if text is None:
        return None
    year, rest = _parts(text)
    # Of any year, which Python's own times are not.
    cycles, year = divmod(year - 2_000, 400)
    time = datetime.fromisoformat(f"{year + 2_000}{rest}").astimezone(UTC)
    return time.timestamp() + cycles * 146_097 * 86_400.0


def _parts(told: str) -> tuple[int, str]:
    """The year, and the rest of a time."""
    year, dash, rest = told[1:].partition("-")
    return int(told[0] + year), dash + rest
