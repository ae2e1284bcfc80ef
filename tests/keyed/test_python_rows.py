"""Rows of Python values: they take the types of the stream, or are refused."""

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw

BERLIN = pa.timestamp("us", "Europe/Berlin")
SCHEMA = {
    "t": BERLIN,
    "k": pa.int32(),
    "x": pa.float32(),
    "d": pa.decimal128(9, 2),
    "s": pa.large_string(),
    "c": pa.dictionary(pa.int32(), pa.string()),
    "list": pa.list_(pa.int16()),
    "row": pa.struct({"a": pa.int8()}),
    "f": pa.bool_(),
}
TIME = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
ROW: dict[str, Any] = {
    "t": TIME,
    "k": 7,
    "x": 0.5,
    "d": Decimal("1.25"),
    "s": "a",
    "c": "b",
    "list": [1, None],
    "row": {"a": 3},
    "f": True,
}
LAST = {name: sw.last(name) for name in SCHEMA if name not in ("t", "k", "row", "list")}


def stream(**options: Any) -> sw.KeyedWindows:
    request: dict[str, Any] = {"on": "t", "by": "k", "windows": "1h", "aggs": LAST}
    return sw.KeyedWindows(**request | {"schema": SCHEMA, "emit": "arrival"} | options)


def test_a_row_is_that_of_a_table() -> None:
    one, other = stream(), stream()
    one.ingest(ROW)
    other.ingest(pa.Table.from_pylist([ROW], pa.schema([*SCHEMA.items()])))
    assert one.collect().equals(other.collect())
    assert one.query(7) == other.query(7)
    assert one.to_bytes() == other.to_bytes()


def test_lists_are_the_columns_of_a_table() -> None:
    later = ROW | {"t": TIME + dt.timedelta(minutes=1), "x": None, "list": None}
    rows = [ROW, later]
    columns = {name: [row[name] for row in rows] for name in ROW}
    table = pa.Table.from_pylist(rows, pa.schema([*SCHEMA.items()]))
    arrays = columns | {"k": np.array([7, 7]), "x": pa.array([0.5, None])}
    for given in (columns, arrays, {name: tuple(x) for name, x in columns.items()}):
        one, other = stream(), stream()
        one.ingest(given)
        other.ingest(table)
        assert one.collect().equals(other.collect())
    one.ingest({name: [] for name in ROW})
    assert one.collect().num_rows == 0


def test_values_of_libraries_take_the_types_of_the_stream() -> None:
    same = stream()
    same.ingest(ROW)
    values = {
        "t": pd.Timestamp(TIME),
        "k": np.int64(7),
        "x": np.float64(0.5),
        "s": pa.scalar("a"),
        "f": np.bool_(True),
    }
    for name, value in values.items():
        one = stream()
        one.ingest(ROW | {name: value})
        assert one.query(7) == same.query(7)
    one = stream()
    # As for extra rows of queries, float32 rounds floats of Python.
    one.ingest(ROW | {"x": 0.1, "d": 3, "unknown": object()})
    assert one.query(7)["x_1h"] == pytest.approx(0.1)
    assert one.query(7)["d_1h"] == Decimal("3.00")


def test_types_are_those_of_the_first_batch() -> None:
    one = sw.KeyedWindows(on="t", windows=5, aggs={"s": sw.sum("x")}, emit="none")
    one.ingest({"t": 1, "x": 2.5})
    one.ingest({"t": 2, "x": 1})
    one.ingest({"t": [3], "x": [None]})
    one.ingest(pa.table({"t": [4], "x": [2]}))
    assert one.query() == {"s_5": 5.5}
    with pytest.raises(sw.SpecError, match=r"column 't' has 2.5 in row 0"):
        one.ingest({"t": 2.5, "x": 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"k": 2**31},
            "column 'k' has 2147483648 in row 0 (counting from 0), which do",
        ),
        (
            {"k": "7"},
            "column 'k' has '7' in row 0 (counting from 0), which does not fit",
        ),
        ({"k": 7.5}, "which does not fit int32: it is not a whole number"),
        ({"d": Decimal("1.255")}, "which does not fit decimal128(9, 2)"),
        ({"t": TIME.replace(tzinfo=None)}, "they are of different kinds"),
        ({"t": None}, "time"),
        ({"f": 1}, "it is not True or False"),
        ({"row": {"b": 3}}, "its fields are ['b'], not ['a']"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    one = stream()
    one.ingest(ROW)
    before = one.query(7)
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        one.ingest(ROW | changes)
    assert one.query(7) == before
    rows = {name: [value] * 3 for name, value in ROW.items()}
    ((name, value),) = changes.items()
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        one.ingest(rows | {name: [value, value, value]})
    assert one.query(7) == before


def test_rows_of_other_shapes_are_refused() -> None:
    one = stream()
    with pytest.raises(sw.SpecError, match="the batch has no column 'x'; it has t, k"):
        one.ingest({name: value for name, value in ROW.items() if name != "x"})
    rows = {name: [value] for name, value in ROW.items()}
    with pytest.raises(sw.SpecError, match="the columns differ in length: t 1, k 2"):
        one.ingest(rows | {"k": [7, 8]})
    with pytest.raises(
        sw.SpecError, match="column 'k' is not a list, as that of times"
    ):
        one.ingest(rows | {"k": 7})
    with pytest.raises(sw.SpecError, match="the batch has no column 't'; it has none"):
        one.ingest({})
    rows = {name: [value, value] for name, value in ROW.items()}
    with pytest.raises(sw.SpecError, match="column 'x' has '7' in row 1"):
        one.ingest(rows | {"x": [0.5, "7"]})
