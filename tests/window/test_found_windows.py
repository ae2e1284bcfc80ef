"""Bugs of windows that were found by looking for them; each stays mended."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

REFUSED: dict[str, Callable[[sw.Window], Any]] = {
    "lengths that differ": lambda w: w.insert_many([3, 4], ["a"]),
    "an item too many": lambda w: w.insert_many([3], iter(["a", "b"])),
    "a late object": lambda w: w.insert_many([4, "x"], ["a", "b"]),
}


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("algorithm", ["auto", "daba", "recalculate"])
@pytest.mark.parametrize("agg", [sw.last(), sw.max(), sw.sum()], ids=repr)
def test_a_refused_object_leaves_a_window_that_can_be_saved(
    how: str, algorithm: str, agg: sw.Aggregation
) -> None:
    window = sw.Window(agg, algorithm=algorithm)
    window.insert(1, None)
    before = window.to_bytes()
    with pytest.raises(sw.SpecError):
        REFUSED[how](window)
    assert window.to_bytes() == before
    window.insert(10, 5)
    again = sw.Window.from_bytes(window.to_bytes())
    assert again.query() == 5
    assert again.items() == window.items()
    assert window.copy().query() == 5


def test_a_late_object_leaves_a_window_that_can_be_saved() -> None:
    window = sw.Window(sw.max(), algorithm="daba")
    window.insert(2, None)
    with pytest.raises(sw.OutOfOrderError):
        window.insert(1, "a")
    window.insert(3, 4)
    assert sw.Window.from_bytes(window.to_bytes()).query() == 4


NOTHING = {
    "text": lambda n: pa.nulls(n, pa.string()),
    "timestamps": lambda n: pa.nulls(n, pa.timestamp("us")),
    "dates": lambda n: pa.nulls(n, pa.date32()),
    "dictionary": lambda n: pa.nulls(n, pa.dictionary(pa.int8(), pa.string())),
    "pandas text": lambda n: pd.Series([None] * n, dtype="str"),
    "pandas objects": lambda n: pd.Series([np.nan] * n, dtype=object),
    "polars text": lambda n: pl.Series([None] * n, dtype=pl.String),
}


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("made", NOTHING)
def test_a_first_batch_without_values_has_no_type(made: str, rows: int) -> None:
    times = list(range(rows))
    one = sw.Window(sw.last())
    one.insert_many(times, NOTHING[made](rows))
    assert one.query() is None
    assert len(one) == rows
    one.insert(9, "later")
    assert one.query() == "later"
    aggs = {"most": sw.max("s"), "v": sw.variance("f"), "n": sw.count("s")}
    many = sw.Window(aggs)
    many.insert_many(times, {"s": NOTHING[made](rows), "f": [1.0] * rows})
    assert many.query() == {"most": None, "v": 0.0 if rows else None, "n": 0}


def test_no_times_and_no_values_are_no_entries() -> None:
    window = sw.Window(sw.sum())
    window.insert_many(np.array([]), np.array([]))
    assert len(window) == 0
    window.insert(pd.Timestamp("2026-01-01"), 1)
    window.insert_many([], [])
    assert window.query() == 1


def test_no_times_have_no_kind() -> None:
    for none in (pd.DatetimeIndex([]), pa.array([], pa.timestamp("us")), np.array([])):
        window = sw.Window(sw.sum(), last="1h")
        window.insert_many(none, [])
        window.insert(pd.Timestamp("2026-01-01"), 1)
        assert window.query() == 1


def test_a_copy_during_the_first_insert_is_a_whole_window() -> None:
    times = np.arange(20_000).view("datetime64[s]")
    for _ in range(4):
        window = sw.Window(sw.max())
        words = [f"v{at}" for at in range(len(times))]
        copies: list[sw.Window] = []
        filling = threading.Thread(target=window.insert_many, args=(times, words))
        filling.start()
        while filling.is_alive():
            copies.append(window.copy())
        filling.join()
        copies.append(window.copy())
        for copy in copies:
            assert len(copy) in (0, len(times))
            if len(copy):
                assert copy.query() == max(words)
                assert copy.oldest == times[0]
            assert len(sw.Window.from_bytes(copy.to_bytes())) == len(copy)


def test_nan_in_a_pandas_column_of_objects_is_a_missing_value() -> None:
    column = pd.Series([np.nan, "a", np.nan], dtype=object)
    aggs = {"n": sw.count("x"), "l": sw.last("x"), "f": sw.first("x")}
    window = sw.Window(aggs)
    window.insert_many([1, 2, 3], pd.DataFrame({"x": column}))
    frame = pd.DataFrame({"t": [1, 2, 3], "x": column})
    table = sw.rolling(frame, on="t", windows=3, aggs=aggs)
    assert window.query() == {"n": 1, "l": "a", "f": "a"}
    assert table.iloc[-1][["n_3", "l_3", "f_3"]].tolist() == [1, "a", "a"]
    ints = sw.Window(sw.sum())
    ints.insert_many([1, 2], pd.Series([1, np.nan], dtype=object))
    assert ints.query() == 1


def test_values_are_counted_whatever_they_are() -> None:
    large = np.array([2**63 + 1, 5], np.uint64)
    window = sw.Window({"n": sw.count("x")})
    window.insert_many([1, 2], {"x": large})
    assert window.query() == {"n": 2}


@pytest.mark.parametrize("algorithm", ["subtract_on_evict", "slick_deque"])
def test_decimals_are_not_rounded_by_the_way(algorithm: str) -> None:
    window = sw.Window(sw.sum(), algorithm=algorithm)
    with pytest.raises(sw.SpecError, match="needs an inverse"):
        window.insert(1, Decimal("0.1"))
    assert len(window) == 0
    best = sw.Window(sw.product())
    with pytest.raises(sw.SpecError, match="computes with numbers"):
        best.insert_many([1, 2], [Decimal("12345678901234567890.12"), Decimal(1)])


def test_moments_of_decimals_are_floats() -> None:
    window = sw.Window({"n": sw.count("x"), "v": sw.variance("x")})
    window.insert_many([1, 2], {"x": [Decimal(1), Decimal(3)]})
    assert window.query() == {"n": 2, "v": 2.0}


@pytest.mark.parametrize("value", [np.datetime64(1, "s"), np.str_("a")])
def test_what_numpy_cannot_make_a_float_is_named(value: Any) -> None:
    with pytest.raises(sw.SpecError, match="is not a number"):
        sw.Window(sw.variance()).insert(1, value)


VALUELESS = [sw.count(), {"rows": sw.count(), "n": sw.count()}]
VALUED = [
    sw.sum(),
    sw.arg_max(),
    sw.count("x"),
    sw.count(where="x"),
    {"rows": sw.count(), "s": sw.sum("x")},
    sw.SharedWindow,
]


@pytest.mark.parametrize("agg", VALUED, ids=repr)
def test_a_value_is_left_out_where_only_rows_are_counted(agg: Any) -> None:
    shared = agg is sw.SharedWindow
    window: Any = sw.SharedWindow(sw.sum(), [2]) if shared else sw.Window(agg)
    for call in (lambda: window.insert(1), lambda: window.insert_many([1, 2])):
        with pytest.raises(sw.SpecError, match=r"value for every time.* count\(\)"):
            call()
    assert len(window) == 0
    window.insert(1, None)
    window.insert(1, value=None)
    window.insert_many([2, 3], [None, None])
    assert window.youngest == 3


@pytest.mark.parametrize("agg", VALUELESS, ids=repr)
def test_rows_are_counted_without_values(agg: Any) -> None:
    window = sw.Window(agg)
    window.insert(1)
    window.insert(time=2)
    window.insert_many([3, 4])
    assert len(window) == 4


def test_what_daba_late_can_answer_for() -> None:
    window = sw.Window(sw.sum(), algorithm="daba_late", latency=1)
    window.insert_many(range(10), range(10))
    with pytest.raises(
        sw.SpecError, match="its latency= keeps open, not for 2 to 3"
    ) as e:
        window.query(2, 3)
    assert "daba_late" not in str(e.value).partition("algorithms that")[2]
    assert window.query(9, 9) == 9


FAR = np.datetime64("20000-01-01", "us")
FIRST = datetime(1, 1, 1)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999)
ALMOST = LAST.replace(tzinfo=timezone(timedelta(hours=-5)))
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
        with pytest.raises(sw.SpecError, match="is a time beyond what datetimes") as e:
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


def test_parameters_may_be_of_numpy() -> None:
    window = sw.Window(sw.sum(), algorithm="btree", arity=np.int64(4))
    window.insert(1, 2)
    assert sw.Window.from_bytes(window.to_bytes()).query() == 2


def test_an_int_beyond_float64() -> None:
    window = sw.Window(sw.sum(), dtype="float64")
    with pytest.raises(sw.SpecError, match=r"does not fit float64.* dtype='object'$"):
        window.insert(1, 10**400)


def test_values_that_do_not_compare_have_a_repr() -> None:
    window = sw.Window(sw.mode())
    window.insert_many([1, 2], ["a", 1])
    with pytest.raises(sw.SpecError, match="do not compare"):
        window.query()
    assert repr(window) == "<Window mode(): 2 entries from 1 to 2; no answer>"
