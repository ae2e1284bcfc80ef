"""Columns of Python objects keep nanoseconds, and integers up to 64 bits."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.frames.objects import array_of_objects

TIME = pd.Timestamp(1_234_567_891)
LENGTH = pd.Timedelta(5, "ns")
KINDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "timestamp": ([TIME, None], pa.timestamp("ns")),
    "zoned": ([TIME.tz_localize("UTC"), None], pa.timestamp("ns", "UTC")),
    "duration": ([LENGTH, None], pa.duration("ns")),
    "list": ([[TIME], None], pa.list_(pa.timestamp("ns"))),
    "struct": ([{"a": [LENGTH]}, None], pa.struct({"a": pa.list_(pa.duration("ns"))})),
    "uint64": ([2**64 - 1, None], pa.uint64()),
    "list of uint64": ([[2**64 - 1, 0], None], pa.list_(pa.uint64())),
    "struct of uint64": (
        [{"a": 2**64 - 1, "b": -1, "c": TIME}, None],
        pa.struct({"a": pa.uint64(), "b": pa.int64(), "c": pa.timestamp("ns")}),
    ),
}
FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "numpy": lambda columns: columns,
}


def objects(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", FRAMES)
def test_columns_of_objects_change_no_value(library: str, kind: str) -> None:
    values, _ = KINDS[kind]
    frame = FRAMES[library]({"t": np.array([1, 2]), "x": objects(values)})
    at = pa.table({"t": [1, 2]})
    found = sw.rolling(frame, on="t", windows=1, at=at, aggs={"x": sw.collect("x")})
    assert found["x_1"].to_pylist() == [values[:1], []]


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_objects_hold_every_value(kind: str) -> None:
    values, expected = KINDS[kind]
    array = array_of_objects(objects(values), pandas=True)
    assert (array.type, array.to_pylist()) == (expected, values)


def test_times_without_nanoseconds_stay_microseconds() -> None:
    """Years beyond 2262 do not fit nanoseconds."""
    array = array_of_objects([pd.Timestamp("2026-01-01"), None])
    assert array.type == pa.timestamp("us")


@pytest.mark.parametrize("values", [[2**63, -1], [2**64], [2**63, True]])
@pytest.mark.parametrize("library", FRAMES)
def test_integers_of_no_type_are_refused(library: str, values: list[int]) -> None:
    times = np.arange(len(values))
    frame = FRAMES[library]({"t": times, "x": objects(values)})
    with pytest.raises(sw.SpecError, match="column 'x'"):
        sw.rolling(frame, on="t", windows=1, aggs={"x": sw.last("x")})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**64, "18446744073709551616 does not fit an integer of 64 bits; give Deci"),
        ({"a": [-(2**63) - 1]}, "-9223372036854775809 does not fit an integer"),
        ([2**63, -1], "no type of integers holds both -1 and 9223372036854775808; gi"),
    ],
)
@pytest.mark.parametrize("library", FRAMES)
def test_refused_integers_are_named(library: str, value: Any, message: str) -> None:
    frame = FRAMES[library]({"t": np.array([1]), "x": objects([value])})
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(frame, on="t", windows=1, aggs={"x": sw.last("x")})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": np.datetime64("2026-01-01")}, r"'2026-01-01'\) .* to datetime64\[s\]"),
        ([np.timedelta64(1, "h")], r"timedelta64\(1,'h'\) has .* timedelta64\[s\]"),
    ],
)
@pytest.mark.parametrize("library", FRAMES)
def test_units_that_arrow_lacks_are_named(
    library: str, value: Any, message: str
) -> None:
    frame = FRAMES[library]({"t": np.array([1]), "x": objects([value])})
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(frame, on="t", windows=1, aggs={"x": sw.last("x")})
    own = sw.aggregation(
        identity=None,
        lift=lambda value: value,
        combine=lambda earlier, later: later,
        lower=lambda _: value,
    )
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(frame, on="t", windows=1, aggs={"x": own("t")})


NESTED: dict[str, list[Any]] = {
    "timestamp": [{"a": TIME}, {"a": None}, None],
    "zoned": [{"a": TIME.tz_localize("UTC")}],
    "duration": [{"a": {"b": LENGTH}}],
    "integer beside null": [{"a": 2**53 + 1}, {"a": None}],
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("library", FRAMES)
def test_results_of_structs_change_no_value(library: str, kind: str) -> None:
    values = NESTED[kind]
    times = np.arange(len(values))
    frame = FRAMES[library]({"t": times, "x": objects(values)})
    aggs = {"x": sw.last("x"), "all": sw.collect("x")}
    found = sw.rolling(frame, on="t", windows=1, aggs=aggs)
    assert list(found["x_1"]) == values
    lists = [list(one) for one in found["all_1"]]
    assert lists == [[one] if one is not None else [] for one in values]
    assert repr(found["x_1"][0]) == repr(values[0])


@pytest.mark.parametrize("library", FRAMES)
def test_results_of_lists_change_no_integer(library: str) -> None:
    frame = FRAMES[library]({"t": np.array([1]), "x": objects([[2**53 + 1, None]])})
    found = sw.rolling(frame, on="t", windows=1, aggs={"x": sw.last("x")})["x_1"]
    assert found[0].tolist() == [2**53 + 1, None]


def test_dates_in_lists_stay_dates_in_pandas() -> None:
    day = dt.date(2026, 1, 1)
    frame = pd.DataFrame({"t": [1], "x": objects([day])})
    found = sw.rolling(frame, on="t", windows=1, aggs={"x": sw.collect("x")})["x_1"]
    assert found[0].tolist() == [day]
    assert found[0].dtype == object


@pytest.mark.parametrize("nested", [False, True])
def test_no_nanosecond_of_a_time_of_day_is_cut(nested: bool) -> None:
    """Python has no such times; Arrow cuts them."""

    def stream(nanoseconds: int) -> sw.KeyedWindows:
        windows = sw.KeyedWindows(on="t", windows=5, aggs={"x": sw.last("x")})
        times = pa.array([nanoseconds], pa.time64("ns"))
        values = pa.StructArray.from_arrays([times], ["a"]) if nested else times
        windows.ingest(pa.table({"t": [1], "x": values}))
        return windows

    value = {"a": dt.time(microsecond=5)} if nested else dt.time(microsecond=5)
    assert stream(5000).query() == {"x_5": value}
    rows = {"t": np.array([1])}
    for keys in (pd.DataFrame(rows), rows):
        assert stream(5000).query_many(keys)["x_5"][0] == value
        with pytest.raises(sw.SpecError, match=r"'x_5' of .*time64.* cannot be conv"):
            stream(5001).query_many(keys)
    with pytest.raises(sw.SpecError, match=r"'x_5' .* a time that Python cannot hold"):
        stream(5001).query()
    found = stream(5001).query_many(pa.table({"t": [1]}))["x_5"]
    assert found.cast(pa.struct({"a": pa.int64()}) if nested else pa.int64())[0].as_py()


def test_query_many_gives_pandas_the_nanoseconds_of_structs() -> None:
    stream = sw.KeyedWindows(on="t", by="k", windows=5, aggs={"x": sw.last("x")})
    keys = pd.DataFrame({"k": ["a"]})
    stream.ingest(pd.DataFrame({"t": [1], "k": ["a"], "x": objects([{"a": TIME}])}))
    assert stream.query_many(keys)["x_5"][0] == {"a": TIME}
    assert stream.query("a") == {"x_5": {"a": TIME}}


LATEST = sw.aggregation(
    identity=None,
    lift=lambda value: value,
    combine=lambda earlier, later: later or earlier,
    lower=lambda partial: partial,
)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_user_defined_aggregations_change_no_value(kind: str) -> None:
    values, expected = KINDS[kind]
    table = pa.table({"t": [1, 2], "x": pa.array(values, expected)})
    aggs = {"x": LATEST("x")}
    found = sw.rolling(table, on="t", windows=1, aggs=aggs)
    assert found["x_1"].type == expected
    assert found["x_1"].to_pylist()[0] == values[0]
    window = sw.SharedWindow(LATEST(), queries=[sw.Query(1, every=1)])
    due = window.insert_many([1, 2, 3], objects([values[0]] * 3))
    assert due["value"].to_pylist() == [values[0]] * 2
