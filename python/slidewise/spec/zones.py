"""Offsets of local time: when they change, by the database of `zoneinfo`.

The core needs the changes as a list. `zoneinfo` does not list them, but it knows the
offset at any instant, so they are searched: once per zone and process.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slidewise.errors import Argument, SpecError

__all__ = ["offset_changes", "zone_name"]

# Offsets are known for these years; other times have the first or the last of them.
_YEARS = (1800, 2400)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_DAY = 86_400
_FIXED = re.compile(r"([+-])(\d\d):?(\d\d)")


def zone_name(given: object) -> str | None:
    """Checks a time zone; gives its name.

    Args:
        given: A name such as "Europe/Berlin", an offset such as "+02:00", or a
            `ZoneInfo`. None for the zone of the column of times.

    Raises:
        SpecError: If there is no such zone.

    Example:
        >>> zone_name(ZoneInfo("Asia/Kolkata")), zone_name("+05:30")
        ('Asia/Kolkata', '+05:30')
    """
    if given is None:
        return None
    name = getattr(given, "key", given)
    if isinstance(given, tzinfo) and given is UTC:
        name = "UTC"
    if isinstance(name, str):
        offset_changes(name)
        return name
    raise SpecError(
        Argument("tz", given), " is not a zone: give its name, such as 'Europe/Berlin'"
    )


@lru_cache(maxsize=64)
def offset_changes(zone: str) -> tuple[tuple[int, int], ...]:
    """The offsets of a zone from UTC, in seconds, each with the instant of its begin.

    Raises:
        SpecError: If there is no such zone.

    Example:
        >>> offset_changes("+02:00")
        ((-9223372036854775808, 7200),)
        >>> sum(at > 1_700_000_000 for at, _ in offset_changes("Asia/Kolkata"))
        0
    """
    first = -(2**63)
    if match := _FIXED.fullmatch(zone):
        seconds = int(match[2]) * 3_600 + int(match[3]) * 60
        return ((first, -seconds if match[1] == "-" else seconds),)
    try:
        rules = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SpecError(
            Argument("tz", zone),
            " is not a time zone that this machine knows: give a name such as "
            "'Europe/Berlin'; the package tzdata has all zones",
        ) from error

    def offset(at: int) -> int:
        local = (_EPOCH + at * _SECOND).astimezone(rules)
        found = local.utcoffset()
        assert found is not None, "every zone has an offset"
        return found // _SECOND

    start, end = (
        (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _SECOND for year in _YEARS
    )
    changes = [(first, offset(start))]
    for at in range(start, end, _DAY):
        while changes[-1][1] != offset(at + _DAY):
            # The last instant with the offset so far, and one with another.
            low, high = max(at, changes[-1][0]), at + _DAY
            while high - low > 1:
                middle = (low + high) // 2
                if offset(middle) == changes[-1][1]:
                    low = middle
                else:
                    high = middle
            changes.append((high, offset(high)))
    return tuple(changes)
