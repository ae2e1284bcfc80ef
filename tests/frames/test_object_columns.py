"""Columns of Python objects keep nanoseconds, and integers up to 64 bits."""

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
