"""Values of Python in the type of a column: exact, or refused."""

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.table.python_values import OfAnotherKindError, array_of

UTC = dt.UTC
NANO = 1_234_567_890_123_456_789


def of_ticks(ticks: int, kind: pa.DataType) -> pa.Scalar:
    """A time by its ticks."""
    width = pa.int64() if kind.bit_width == 64 else pa.int32()
    return pa.array([ticks], width).view(kind)[0]


# A type, a value of it as Arrow has it, and values of Python that are equal to it.
VALUES: list[tuple[pa.DataType, Any, list[Any]]] = [
    (pa.int8(), -5, [-5, np.int64(-5), np.int8(-5), pa.scalar(-5, pa.int32())]),
    (pa.uint64(), 2**63 + 1, [2**63 + 1, np.uint64(2**63 + 1)]),
    (pa.uint64(), 2**64 - 1, [2**64 - 1]),
    (pa.int64(), -(2**63), [-(2**63)]),
    (pa.float64(), 0.1, [0.1, np.float64(0.1)]),
    (pa.float64(), 3.0, [3, 3.0, np.int32(3), np.float32(3)]),
    (pa.float32(), 1.5, [1.5, np.float32(1.5), pa.scalar(1.5)]),
    (pa.bool_(), True, [True, np.True_, pa.scalar(True)]),
    (pa.string(), "ä", ["ä", np.str_("ä"), pa.scalar("ä", pa.large_string())]),
    (pa.large_string(), "", [""]),
    (pa.binary(), b"\0a", [b"\0a", pa.scalar(b"\0a", pa.large_binary())]),
    (pa.large_binary(), b"a", [b"a", pa.scalar(b"a")]),
    (pa.binary(2), b"ab", [b"ab"]),
    (pa.decimal128(9, 2), Decimal("1.50"), [Decimal("1.5"), Decimal("1.500")]),
    (pa.decimal128(9, 2), Decimal("2.00"), [2, Decimal(2)]),
    (pa.decimal256(50, 1), Decimal("-7.5"), [Decimal("-7.50")]),
    (pa.timestamp("ns"), NANO, [pd.Timestamp(NANO), np.datetime64(NANO, "ns")]),
    (pa.timestamp("ns", "UTC"), NANO, [pd.Timestamp(NANO, tz="Europe/Berlin")]),
    (pa.timestamp("us"), 5, [dt.datetime(1970, 1, 1, 0, 0, 0, 5), pd.Timestamp(5_000)]),
    (pa.timestamp("s"), 86_400, [dt.datetime(1970, 1, 2), dt.date(1970, 1, 2)]),
    (pa.timestamp("ms", "UTC"), 1, [dt.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)]),
    (pa.duration("ns"), 7, [pd.Timedelta(7, "ns"), np.timedelta64(7, "ns")]),
    (pa.duration("s"), 3600, [dt.timedelta(hours=1), np.timedelta64(1, "h")]),
    (
        pa.date32(),
        1,
        [dt.date(1970, 1, 2), dt.datetime(1970, 1, 2), pd.Timestamp(86400e9)],
    ),
    (pa.date64(), 86_400_000, [dt.date(1970, 1, 2)]),
    (pa.time64("us"), 1_000_001, [dt.time(0, 0, 1, 1)]),
    (pa.time32("s"), 61, [dt.time(0, 1, 1)]),
]


@pytest.mark.parametrize(("kind", "held", "given"), VALUES, ids=str)
def test_values_are_exact(kind: pa.DataType, held: Any, given: list[Any]) -> None:
    is_time = pa.types.is_temporal(kind)
    right = of_ticks(held, kind) if is_time else pa.scalar(held, kind)
    for value in [*given, right]:
        assert array_of([value], kind).equals(pa.array([right], kind)), value
        nested = pa.struct([("a", pa.list_(kind)), ("b", kind)])
        made = array_of([{"a": [None, value], "b": None}, None], nested)
        assert made.field("a").values.to_pylist() == [None, right.as_py()]
        assert made.to_pylist()[1] is None


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (pa.int64(), 1.5, "not a whole number"),
        (pa.int64(), True, "not a number"),
        (pa.int64(), "1", "it is text"),
        (pa.int8(), 128, "too large"),
        (pa.uint64(), 2**64, "too (big|large)|out of"),
        (pa.uint64(), -1, "negative|unsigned|out of"),
        (pa.float64(), 2**53 + 1, "a float would round it"),
        (pa.float64(), 10**400, "a float would round it"),
        (pa.float32(), 0.1, "float would round it"),
        (pa.string(), b"a", "not text"),
        (pa.string(), 1, "not text"),
        (pa.binary(), "a", "it is text"),
        (pa.binary(2), b"a", "length|expected"),
        (pa.bool_(), 1, "not True or False"),
        (pa.decimal128(5, 1), Decimal("1.25"), "data loss|[Rr]escal"),
        (pa.decimal128(5, 1), 1.5, "not a decimal"),
        (pa.timestamp("us"), pd.Timestamp(1), "not a whole number of us"),
        (pa.timestamp("us"), dt.datetime(2026, 1, 1, tzinfo=UTC), "different kinds"),
        (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 1), "different kinds"),
        (pa.timestamp("ns"), dt.datetime(9999, 1, 1), "beyond the range"),
        (pa.timestamp("s"), 5, "different kinds"),
        (pa.date32(), dt.datetime(2026, 1, 1, 1), "not a whole number of days"),
        (pa.duration("s"), dt.timedelta(0, 0, 1), "not a whole number of s"),
        (pa.duration("s"), np.timedelta64(1, "M"), "no fixed length"),
        (pa.time32("s"), dt.time(0, 0, 0, 1), "not a whole number of s"),
        (pa.struct([("a", pa.int8())]), {"b": 1}, "its fields are"),
        (pa.list_(pa.int8()), [1, "a"], "it is text"),
    ],
    ids=str,
)
def test_values_that_would_change_are_refused(
    kind: pa.DataType, value: Any, error: str
) -> None:
    with pytest.raises((ValueError, OverflowError), match=error):
        array_of([value], kind)


def test_what_is_missing_is_null() -> None:
    missing = [None, pd.NaT, pd.NA, np.datetime64("NaT"), pa.scalar(None, pa.int8())]
    for kind, _, _ in VALUES:
        assert array_of(missing, kind).null_count == len(missing)
    assert array_of([float("nan")], pa.float64()).null_count == 0


def test_floats_may_be_rounded_to_narrow_ones() -> None:
    assert array_of([0.1], pa.float32(), rounds=True)[0] == pa.scalar(0.1, pa.float32())
    assert issubclass(OfAnotherKindError, ValueError)


def test_every_entry_point_takes_values_of_every_type() -> None:
    """As key and as value of an extra row, alone and in lists."""
    rng = random.Random(SEED)
    for kind, held, _ in VALUES:
        is_time = pa.types.is_temporal(kind)
        right = of_ticks(held, kind) if is_time else pa.scalar(held, kind)
        column = pa.array([right, None], kind)
        windows = sw.KeyedWindows(
            on="t", by="k", windows=9, aggs={"n": sw.count(), "x": sw.last("x")}
        )
        windows.ingest(pa.table({"t": [1, 2], "k": column, "x": column}))
        keys = windows.keys()["k"].to_pylist()
        rng.shuffle(keys)
        many = windows.query_many({"k": keys}, at=9)
        assert many["n_9"] == [1, 1], kind
        for key in keys:
            assert (key,) in windows, kind
            alone = windows.query((key,), at=9, plus={"x": right.as_py()})
            assert (alone["n_9"], alone["x_9"]) == (2, right.as_py()), kind
        lists = {"k": keys, "x": [right.as_py()] * 2}
        assert windows.query_many(lists, at=9, plus=["x"])["x_9"] == lists["x"], kind


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.timestamp(unit, "UTC") for unit in ("s", "ns")),
        *(pa.duration(unit) for unit in ("ms", "ns")),
        *(pa.date32(), pa.date64(), pa.int64(), pa.uint32()),
    ],
    ids=str,
)
def test_every_entry_point_takes_times_of_every_type(kind: pa.DataType) -> None:
    ticks = pa.array([86_400_000 * day for day in (1, 2, 3)], pa.int64())
    if pa.types.is_date32(kind):
        ticks = pa.array([1, 2, 3], pa.int32())
    times = ticks.cast(kind) if pa.types.is_integer(kind) else ticks.view(kind)
    first, second, third = times.to_pylist()
    length = 86_400_000 if pa.types.is_integer(kind) else "1d"
    if not pa.types.is_integer(kind) and not pa.types.is_date(kind):
        length = (second - first) if hasattr(second - first, "total_seconds") else "1d"
    windows = sw.KeyedWindows(
        on="t", windows=length, aggs={"n": sw.count()}, late=length, emit="update"
    )
    windows.ingest(pa.table({"t": times}))
    (name,) = windows.query(at=third)
    assert windows.query(at=second)[name] == 1
    assert windows.query(at=times[1])[name] == 1
    assert windows.query_many({"at": [second, third]}, at="at")[name] == [1, 1]
    assert windows.query_many({"at": [0]}, at=third)[name] == [1]
    windows.advance(second)
    assert windows.watermark == second
    windows.evict_idle(first)
    assert windows.query(at=third)[name] == 1
