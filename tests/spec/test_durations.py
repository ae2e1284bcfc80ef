"""Lengths of time as numpy and pandas write them."""

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.spec.durations import parse_length, parse_offset

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("given", "nanoseconds", "label"),
    [
        (np.timedelta64(1, "h"), HOUR, "1h"),
        (np.timedelta64(90, "m"), 90 * 60 * 10**9, "90m"),
        (np.timedelta64(2, "W"), 14 * 24 * HOUR, "14d"),
        (np.timedelta64(3, "25s"), 75 * 10**9, "75s"),
        (np.timedelta64(5, "ns"), 5, "5ns"),
        (np.timedelta64(2_000, "ps"), 2, "2ns"),
        (np.timedelta64(2**63 - 1, "s"), (2**63 - 1) * 10**9, f"{2**63 - 1}s"),
        (pd.Timedelta("1h"), HOUR, "1h"),
        (pd.Timedelta(5, "ns"), 5, "5ns"),
        (timedelta(days=7), 7 * 24 * HOUR, "7d"),
    ],
)
def test_lengths_of_numpy_and_pandas(given: Any, nanoseconds: int, label: str) -> None:
    length = parse_length(given)
    assert (length.kind, length.amount, length.label) == ("time", nanoseconds, label)


def test_rows_are_accepted_like_durations() -> None:
    hour = np.timedelta64(1, "h")
    times = pa.array([0, 1_800, 3_600, 9_000], pa.timestamp("s"))
    table = pa.table({"t": times, "x": [1, 2, 4, 8]})
    base: Any = {"on": "t", "aggs": {"s": sw.sum("x")}}
    assert sw.rolling(table, windows=hour, **base)["s_1h"].to_pylist() == [1, 3, 6, 8]
    assert sw.rolling(table, windows=np.array([60, 120], "m8[m]"), **base).equals(
        sw.rolling(table, windows=["1h", "2h"], **base).rename_columns(
            ["t", "x", "s_1h", "s_2h"]
        )
    )
    assert sw.rolling(table, windows="1h", offset=np.timedelta64(30, "m"), **base)[
        "s_1h"
    ].to_pylist() == [None, 1, 3, None]
    for window in (hour, sw.session(hour)):
        ours = sw.hopping(table, window=window, every=None, **base)
        theirs = "1h" if window is hour else sw.session("1h")
        assert ours.equals(sw.hopping(table, window=theirs, **base))
    w = sw.Window(sw.count(), last=hour, granularity=np.timedelta64(1, "m"))
    w.insert_many(times, [1, 2, 4, 8])
    assert w.query() == 1
    assert "1h and 2h" in repr(sw.SharedWindow(sw.count(), ranges=[hour, "2h"]))
    sw.KeyedWindows(windows=hour, late=hour, **base).ingest(table)


# Without a unit: 5 and NaT. NumPy 2.5 warns when these are made from Python values.
GENERIC = np.array([5, -(2**63)]).view("m8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.timedelta64(1, "M"), "has no fixed length"),
        (np.timedelta64(1, "Y"), "has no fixed length"),
        (GENERIC[0], "is not a length of time: it has no unit"),
        (GENERIC[1], "is not a length of time: it is missing"),
        (np.timedelta64("NaT", "s"), "is not a length of time: it is missing"),
        (np.timedelta64(1_500, "ps"), "is not a whole number of nanoseconds"),
        (np.timedelta64(-1, "h"), "must be longer than zero"),
    ],
)
def test_numpy_lengths_that_are_refused(given: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=rf"windows=.*{message}"):
        parse_length(given, "windows")


def test_offsets_of_numpy_may_be_negative() -> None:
    assert parse_offset(np.timedelta64(-15, "m")).amount == -15 * 60 * 10**9
    assert parse_offset(np.timedelta64(0, "s")).amount == 0


def test_too_long_a_duration_is_refused() -> None:
    table = pa.table({"t": [1, 2, 3], "x": [1, 2, 3]})
    with pytest.raises(sw.SpecError, match=r"'9999.* is too long"):
        sw.rolling(table, on="t", windows="9" * 5000 + "d", aggs={"n": sw.count()})
