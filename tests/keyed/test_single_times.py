"""Single times from users: the fast path equals that by a column."""

import random
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from seeds import SEED

from slidewise.errors import SpecError
from slidewise.keyed.single_times import tick_of
from slidewise.table.time_columns import read_times

ZONES = [UTC, timezone(timedelta(hours=-3, minutes=-30)), ZoneInfo("Europe/Berlin")]


def tick_or_error(time: object, kind: pa.DataType) -> int | str:
    try:
        return tick_of(time, read_times(pa.array([], kind), "t"))
    except SpecError:
        return "refused"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, *ZONES], ids=str)
def test_a_datetime_is_read_as_a_column_of_it(unit: str, zone: ZoneInfo | None) -> None:
    chance = random.Random(SEED)
    kind = pa.timestamp(unit, None if zone is None else "Asia/Tokyo")
    for _ in range(200):
        time = datetime(chance.randint(1, 9999), 10, chance.randint(2, 30), tzinfo=zone)
        # The hours of a day that one zone has twice.
        time += timedelta(
            seconds=chance.randint(0, 10_000),
            microseconds=chance.choice([0, 0, 1_000, 7]),
        )
        time = time.replace(fold=chance.randint(0, 1))
        utc = time if zone is None else time.astimezone(UTC)
        column = pa.scalar(utc, pa.timestamp("us", None if zone is None else "UTC"))
        assert tick_or_error(time, kind) == tick_or_error(column, kind), time


def test_times_of_another_kind_are_refused() -> None:
    now = datetime(2026, 1, 1)
    assert tick_or_error(now, pa.timestamp("us", "UTC")) == "refused"
    assert tick_or_error(now.replace(tzinfo=UTC), pa.timestamp("us")) == "refused"
    assert tick_or_error(now, pa.int64()) == "refused"
    assert tick_or_error(5, pa.timestamp("us")) == "refused"


def test_an_int_is_its_tick() -> None:
    assert tick_or_error(-7, pa.int16()) == -7
    assert tick_or_error(2**40, pa.int16()) == 2**40
    assert tick_or_error(True, pa.int64()) == tick_or_error(pa.scalar(True), pa.int64())
