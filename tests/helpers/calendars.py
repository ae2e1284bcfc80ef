"""Starts of calendar windows by their definition, with `zoneinfo`."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MONTHS = {"1mo": 1, "1q": 3, "1y": 12}
DAYS = {"1d": 1, "1w": 7}
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
SECOND = timedelta(seconds=1)


def instant(local, zone):
    """A naive local time as an instant: the earlier of two, the first after a gap."""
    rules = ZoneInfo(zone)
    at = local.replace(tzinfo=rules, fold=0).astimezone(UTC)
    if at.astimezone(rules).replace(tzinfo=None) == local:
        return at
    # In the gap, fold 0 has the offset before and fold 1 the one after.
    after = local.replace(tzinfo=rules, fold=1).astimezone(UTC)
    low, high = sorted((at, after))
    while high - low > SECOND:
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        later = middle.astimezone(rules).replace(tzinfo=None) >= local
        low, high = (low, middle) if later else (middle, high)
    return high


def months_before(local, months):
    """The same local time some months before, at most the last day of the month."""
    year, month = divmod(local.year * 12 + local.month - 1 - months, 12)
    day = min(local.day, monthrange(year, month + 1)[1])
    return local.replace(year=year, month=month + 1, day=day)


def start_before(at, unit, zone):
    """The start of `calendar(unit, tz=zone)` for an instant."""
    local = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if unit in DAYS:
        return instant(local - timedelta(days=DAYS[unit]), zone)
    return instant(months_before(local, MONTHS[unit]), zone)


def start_of_unit(at, unit, zone, first="mon"):
    """The start of `to_date(unit, tz=zone, start=first)` for an instant."""
    local = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    day = datetime(local.year, local.month, local.day)
    if unit == "1w":
        day -= timedelta(days=(day.weekday() - WEEKDAYS.index(first)) % 7)
    if unit in MONTHS:
        day = day.replace(day=1)
        day = months_before(day, (day.month - 1) % MONTHS[unit])
    return instant(day, zone)
