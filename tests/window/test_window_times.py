"""Event times of a window: every kind, extremes, and values that are not times."""

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1


def filled(agg, pairs, **options):
    window = sw.Window(agg, **options)
    for time, value in pairs:
        window.insert(time, value)
    return window


# -- times -----------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
KINDS = {
    "int": (5, 6, 7),
    "date": (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)),
    "datetime": tuple(datetime(2024, 3, 1, 12, 0, second) for second in (1, 2, 3)),
    "before the epoch": tuple(datetime(1901, 1, 1, 1, 1, 1, us) for us in (1, 2, 3)),
    "utc": tuple(datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3)),
    "zone": tuple(datetime(2024, 10, 27, 1, m, tzinfo=BERLIN) for m in (10, 20, 30)),
    "fixed": tuple(
        datetime(2024, 1, 1, hour, tzinfo=timezone(timedelta(hours=-5)))
        for hour in (1, 2, 3)
    ),
    "numpy us": tuple(
        np.datetime64(f"2024-01-01T00:00:00.00000{n}") for n in (1, 2, 3)
    ),
    "numpy D": tuple(np.datetime64(f"2024-01-0{n}") for n in (1, 2, 3)),
    "numpy ns": tuple(np.datetime64(n, "ns") for n in (1, 2, 3)),
    "pandas": tuple(
        pd.Timestamp(f"2024-01-01 00:00:0{n}").as_unit("us") for n in (1, 2, 3)
    ),
    "pandas ns": tuple(pd.Timestamp(n, unit="ns").as_unit("ns") for n in (1, 2, 3)),
    "pandas zone": tuple(
        pd.Timestamp(f"2024-01-0{n}", tz="Asia/Tokyo") for n in (1, 2, 3)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_times_come_back_in_their_kind(kind):
    first, second, third = KINDS[kind]
    w = filled(sw.collect(), [(second, "b"), (third, "c"), (first, "a")])
    assert w.query() == ["a", "b", "c"]
    assert [time for time, _ in w.items()] == [first, second, third]
    for time in (w.oldest, w.youngest, w.items()[1][0], w.copy().oldest):
        assert type(time) is type(first)
        assert getattr(time, "tzinfo", None) == getattr(first, "tzinfo", None)
    assert w.query(second, third) == ["b", "c"]
    assert w.query(hi=first) == ["a"]
    w2 = pickle.loads(pickle.dumps(w))
    assert w2.items() == w.items()
    assert type(w2.oldest) is type(first)
    assert w.evict() == first
    assert w.evict(third) is True
    assert w.evict(third) is False
    assert w.evict_until(third) == 1
    w.insert(first, "again")
    assert w.items() == [(first, ["again"])]


@pytest.mark.parametrize("kind", KINDS)
def test_times_in_bulk(kind):
    times = KINDS[kind]
    w = sw.Window(sw.collect())
    w.insert_many(list(times)[::-1], ["c", "b", "a"])
    assert w.query() == ["a", "b", "c"]
    assert w.oldest == times[0]
    one_by_one = filled(sw.collect(), zip(times, "abc", strict=True))
    assert w.items() == one_by_one.items()
    assert w._describe() == one_by_one._describe()


def test_arg_max_without_a_column_gives_the_time():
    w = sw.Window({"when": sw.arg_max(), "top": sw.max()})
    w.insert(datetime(2024, 1, 1), 1)
    w.insert(datetime(2024, 1, 3), 9)
    w.insert(datetime(2024, 1, 2), 9)
    assert w.query() == {"when": datetime(2024, 1, 2), "top": 9}


def test_extreme_int_times():
    w = filled(sw.collect(), [(MAX, "z"), (MIN, "a"), (0, "m")])
    assert w.items() == [(MIN, ["a"]), (0, ["m"]), (MAX, ["z"])]
    assert w.query(MIN, MAX) == ["a", "m", "z"]
    assert w.query(MIN, MIN) == ["a"]
    assert w.evict(MIN)
    assert w.evict_until(MAX) == 2


def test_extreme_times_of_a_self_evicting_window():
    w = sw.Window(sw.collect(), last=10)
    for time in (MIN, MIN + 5, MIN + 10):
        w.insert(time, time)
    assert w.query() == [MIN + 5, MIN + 10]
    w.insert(MAX, MAX)
    assert w.query() == [MAX]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (True, r"True \(bool\) is not a time"),
        (1.5, "1.5 is a float, which cannot hold a time exactly: give an int"),
        (np.timedelta64(5, "s"), r"'s'\) \(timedelta64\) is not a time: give an int"),
        ("2024-01-01", "'2024-01-01' is text, not a time: parse it first"),
        (None, r"a time is missing \(None\)"),
        (pd.NaT, r"a time is missing \(NaT\)"),
        (np.datetime64("NaT", "s"), r"a time is missing \(NaT\)"),
        (np.datetime64("2024-01", "M"), "have no unit of fixed length"),
        (2**63, "time 9223372036854775808 does not fit int64"),
        (object, "is not a time: give an int, a datetime or a date"),
    ],
)
def test_what_is_no_time(time, message):
    w = sw.Window(sw.sum())
    for use in (
        lambda: w.insert(time, 1),
        lambda: w.insert_many([time], [1]),
        lambda: w.evict_until(time),
    ):
        with pytest.raises(sw.SpecError, match=message):
            use()
    assert len(w) == 0
    w.insert(datetime(2024, 1, 1), 1)  # failed inserts decided no type
    with pytest.raises(sw.SpecError):
        w.insert(time, 1)


@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_kinds_of_times_do_not_mix(there, given):
    def family(kind):
        time = KINDS[kind][0]
        if kind in ("int", "date"):
            return kind
        return "aware" if getattr(time, "tzinfo", None) else "naive"

    w = filled(sw.sum(), [(KINDS[there][0], 1)])
    before = w.to_bytes()
    time = KINDS[given][1]
    if family(there) != family(given):
        for use in (
            lambda: w.insert(time, 1),
            lambda: w.insert_many([time], [1]),
            lambda: w.evict(time),
            lambda: w.evict_until(time),
            lambda: w.query(lo=time),
            lambda: w.query(hi=time),
        ):
            with pytest.raises(
                sw.SpecError, match="is not of the kind of this window's times"
            ):
                use()
        assert w.to_bytes() == before
    else:
        finer = there == "numpy D" != given or (
            given.endswith("ns") and not there.endswith("ns")
        )
        if finer:
            with pytest.raises(
                sw.SpecError, match="not a whole number of this window's units"
            ):
                w.insert(time, 1)
            assert w.to_bytes() == before
        else:
            w.insert(time, 1)
            assert len(w) == 2


def test_bounds_in_the_wrong_order():
    w = filled(sw.sum(), [(1, 1)])
    with pytest.raises(
        sw.SpecError, match=r"query\(lo, hi\) needs lo <= hi, got lo=5 and hi=4"
    ):
        w.query(5, 4)
    with pytest.raises(sw.SpecError, match="lo <= hi"):
        sw.Window(sw.sum()).query(5, 4)


def test_evict_on_an_empty_window():
    w = sw.Window(sw.sum())
    with pytest.raises(sw.EmptyWindowError, match=r"evict\(\) on an empty window"):
        w.evict()
    with pytest.raises(IndexError):
        w.evict()
    assert w.evict(5) is False
    assert w.evict_until(5) == 0
    assert w.oldest is None
    assert w.youngest is None
    assert w.items() == []


LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999)


ALMOST = LAST.replace(tzinfo=timezone(timedelta(hours=-5)))


FAR = np.datetime64("20000-01-01", "us")


FIRST = datetime(1, 1, 1)


BEYOND: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "numpy among datetimes": ({}, datetime(2024, 1, 1), FAR),
    "pandas among datetimes": ({}, datetime(2024, 1, 1), pd.Timestamp(FAR)),
    "rounded down": ({"granularity": "7s"}, datetime(2024, 1, 1), FIRST),
    "another zone": ({}, datetime(2024, 1, 1, tzinfo=UTC), ALMOST),
}


@pytest.mark.parametrize("how", BEYOND)
def test_times_that_could_not_be_given_back_are_refused(how: str) -> None:
    options, first, beyond = BEYOND[how]
    window = sw.Window(sw.sum(), **options)
    window.insert(first, 1)
    before = window.items()
    for insert in (
        lambda: window.insert(beyond, 2),
        lambda: window.insert_many([beyond, first], [2, 3]),
        lambda: window.insert_many(iter([first, beyond]), [2, 3]),
    ):
        with pytest.raises(
            sw.SpecError, match="is a time out of the range of datetimes"
        ) as e:
            insert()
        assert ("rounded down by granularity=" in str(e.value)) == bool(options)
    assert window.items() == before
    assert "1 entry" in repr(window)


def test_the_first_and_the_last_days_are_given_back() -> None:
    for time in (FIRST, LAST, FIRST.replace(tzinfo=UTC)):
        window = sw.Window(sw.sum())
        window.insert(time, 1)
        window.insert_many([time], [2])
        assert window.items() == [(time, 3)]
    for day in (date.min, date.max):
        window = sw.Window(sw.sum())
        window.insert(day, 1)
        assert window.evict() == day


def test_queries_round_times_as_inserts_do() -> None:
    window = sw.Window(sw.sum(), granularity=10)
    window.insert_many([17, 23, 38], [1, 2, 4])
    assert (window.query(17, 23), window.query(23, 23), window.query(18)) == (3, 2, 7)
    assert window.query(-(2**63), 19) == 1
    assert window.evict(13)
    assert window.evict_until(25) == 1
    assert window.items() == [(30, 4)]
