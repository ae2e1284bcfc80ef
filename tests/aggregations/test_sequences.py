"""Aggregations of the order of values, over types that the catalogue leaves out."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw

BAR = ("open", "high", "low", "close")


def rolled(values: pa.Array, agg: sw.Aggregation) -> pa.ChunkedArray:
    """The results over all values up to each row."""
    table = pa.table({"t": range(len(values)), "x": values})
    return sw.rolling(table, on="t", windows=99, aggs={"a": agg})["a_99"]


def test_differences_of_times_are_durations() -> None:
    days = [datetime(2024, 1, 1), datetime(2024, 1, 4), datetime(2024, 1, 2)]
    values = pa.array(days, pa.timestamp("ms", "UTC"))
    for agg, days_of in ((sw.delta("x"), [0, 3, 1]), (sw.drawdown("x"), [0, 0, 2])):
        found = rolled(values, agg)
        assert found.type == pa.duration("ms")
        assert found.to_pylist() == [timedelta(days) for days in days_of]


def test_differences_of_uint64_are_exact_int64() -> None:
    values = pa.array([2**64 - 1, 2**64 - 5, 2**63], pa.uint64())
    found = rolled(values.slice(0, 2), sw.delta("x"))
    assert (found.type, found.to_pylist()) == (pa.int64(), [0, -4])
    assert rolled(values.slice(0, 2), sw.drawdown("x")).to_pylist() == [0, 4]
    with pytest.raises(sw.ResultOverflowError):
        rolled(pa.array([2**64 - 1, 0], pa.uint64()), sw.delta("x"))
    with pytest.raises(sw.SpecError, match="is 18446744073709551615, beyond int64"):
        rolled(values, sw.increase("x"))


@pytest.mark.parametrize("agg", [sw.delta, sw.drawdown, sw.increase])
def test_differences_beyond_int64_are_refused(
    agg: Callable[..., sw.Aggregation],
) -> None:
    ends = [-(2**63), 2**63 - 1] if agg is not sw.drawdown else [2**63 - 1, -(2**63)]
    w = sw.Window(agg())
    w.insert_many([1, 2], ends)
    with pytest.raises(sw.ResultOverflowError):
        w.query()
    with pytest.raises(sw.ResultOverflowError):
        rolled(pa.array(ends), agg("x"))


@pytest.mark.parametrize("agg", [sw.delta, sw.drawdown, sw.increase])
def test_differences_of_bools_are_refused(agg: Callable[..., sw.Aggregation]) -> None:
    w = sw.Window(agg())
    with pytest.raises(sw.SpecError):
        w.insert_many([1, 2], [True, False])
    with pytest.raises(sw.SpecError):
        rolled(pa.array([True, False]), agg("x"))


def test_decimals_are_exact_in_a_window() -> None:
    w = sw.Window(
        {"d": sw.delta(), "i": sw.increase(), "f": sw.drawdown()}, dtype="object"
    )
    w.insert_many([1, 2, 3], [Decimal("1e-30"), Decimal(10**20), Decimal(7)])
    assert w.query() == {
        "d": Decimal("6.999999999999999999999999999999"),
        "i": Decimal("100000000000000000006.999999999999999999999999999999"),
        "f": Decimal(10**20 - 7),
    }


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False, True]),
        (pa.uint64(), [2**64 - 1, 3, 5]),
        (pa.string(), ["b", "c", "a"]),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("2.25"), Decimal("0.75")]),
        (pa.date32(), [datetime(2024, 1, day).date() for day in (2, 9, 1)]),
        (pa.duration("s"), [timedelta(1), timedelta(3), timedelta(2)]),
    ],
    ids=str,
)
def test_bars_and_ends_keep_the_type(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    bars = rolled(column, sw.ohlc("x"))
    assert bars.type == pa.struct([(name, kind) for name in BAR])
    last = [values[0], max(values), min(values), values[-1]]
    assert bars.to_pylist()[-1] == dict(zip(BAR, last, strict=True))
    assert rolled(column, sw.lag("x")).to_pylist() == [None, *values[:-1]]
    for agg, want in (
        (sw.first_k("x", 2), values[:2]),
        (sw.last_k("x", 2), values[1:]),
    ):
        found = rolled(column, agg)
        assert found.type == pa.list_(kind)
        assert found.to_pylist()[-1] == want
    assert rolled(column, sw.changes("x")).to_pylist() == [0, 1, 2]


def test_a_bar_over_nothing_is_null() -> None:
    assert rolled(pa.array([None, 1]), sw.ohlc("x")).to_pylist() == [
        None,
        dict.fromkeys(BAR, 1),
    ]
    assert sw.Window(sw.ohlc()).query() is None


def test_order_is_that_of_time_however_rows_arrive() -> None:
    aggs = {
        "d": sw.delta(),
        "i": sw.increase(),
        "c": sw.changes(),
        "f": sw.drawdown(),
        "o": sw.ohlc(),
        "l": sw.lag(k=2),
        "first": sw.first_k(k=2),
        "last": sw.last_k(k=2),
    }
    times, values = [5, 1, 4, 2, 3], [50, 10, 20, 40, 40]
    bulk, one_by_one = sw.Window(aggs), sw.Window(aggs)
    bulk.insert_many(times, values)
    for t, value in zip(times, values, strict=True):
        one_by_one.insert(t, value)
    assert bulk.query() == one_by_one.query()
    assert bulk.query() == {
        "d": 40,
        "i": 80,
        "c": 3,
        "f": 20,
        "o": dict(zip(BAR, [10, 50, 10, 50], strict=True)),
        "l": 40,
        "first": [10, 40],
        "last": [20, 50],
    }


def test_delta_is_a_window_with_a_width_and_an_aggregation_without() -> None:
    assert isinstance(sw.delta("km"), sw.Aggregation)
    assert sw.delta("km", where="ok") == sw.aggregations.delta("km", where="ok")
    assert not isinstance(sw.delta("km", 5.0), sw.Aggregation)
    with pytest.raises(sw.SpecError, match="is a window, and where='ok' belongs in"):
        sw.delta("km", 5.0, where="ok")  # type: ignore[call-overload]


def test_types_of_frames_do_not_depend_on_missing_lags() -> None:
    frame = pd.DataFrame({"t": [1, 2, 3], "x": [5, 6, 7]})
    aggs = {"lag": sw.lag("x"), "gap": sw.max_gap(), "d": sw.delta("x")}
    out = sw.rolling(frame, on="t", windows=9, aggs=aggs)
    later = sw.rolling(frame, on="t", windows=9, aggs=aggs, at=frame[1:])
    assert out.dtypes.astype(str)[2:].to_list() == ["Int64", "Int64", "int64"]
    assert later.dtypes.astype(str)[-3:].to_list() == ["Int64", "Int64", "Int64"]
    assert out["lag_9"].to_list() == [pd.NA, 5, 6]
