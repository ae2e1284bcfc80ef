"""Columns of every type of a library, also of those that Arrow lacks."""

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw


def test_units_of_numpy_that_are_refused():
    for unit in ("10s", "ps", "M"):
        table = {"t": np.arange(3), "x": np.arange(3).astype(f"M8[{unit}]")}
        with pytest.raises(sw.SpecError, match="has a unit that Arrow lacks"):
            sw.rolling(table, on="t", windows=1, aggs={"x": sw.max("x")})
    weeks = {"t": np.arange(2), "x": np.arange(2).astype("M8[W]")}
    out = sw.rolling(weeks, on="t", windows=1, aggs={"x": sw.max("x")})
    assert out["x_1"].tolist() == weeks["x"].astype("M8[s]").tolist()


def test_masked_arrays_stay_exact():
    large = np.ma.masked_array([2**53 + 1, 7, 2**62 + 1], mask=[False, True, False])
    out = sw.rolling(
        {"t": np.arange(3), "x": large}, on="t", windows=1, aggs={"s": sw.sum("x")}
    )
    assert out["s_1"].tolist() == [2**53 + 1, None, 2**62 + 1]


def test_a_series_is_refused_as_a_table():
    for series in (pd.Series([1, 2]), pl.Series([1, 2])):
        with pytest.raises(sw.SpecError, match="is not a table"):
            sw.rolling(series, on="t", windows=1, aggs={"n": sw.count()})


@pytest.mark.parametrize("missing", [pd.NA, math.nan])
def test_text_keeps_its_missing_value(missing):
    dtype = pd.StringDtype(na_value=missing)
    table = pd.DataFrame({"t": [1, 2], "x": pd.array(["a", None], dtype=dtype)})
    out = sw.rolling(table, on="t", windows=1, aggs={"x": sw.last("x")})
    assert out["x_1"].dtype == dtype
    assert out["x_1"].isna().tolist() == [False, True]
    hopped = sw.hopping(table, on="t", by="x", window=1, aggs={"n": sw.count()})
    assert hopped["x"].dtype == dtype


def test_types_of_polars_that_arrow_lacks():
    table = pl.DataFrame({"t": [1, 2], "x": pl.Series([1, 2], dtype=pl.Int128)})
    with pytest.raises(sw.SpecError, match="'x' holds Int128"):
        sw.rolling(table, on="t", windows=1, aggs={"s": sw.sum("x")})
    out = sw.rolling(table, on="t", windows=1, aggs={"n": sw.count()})
    assert out.schema["x"] == pl.Int128


def test_columns_that_arrow_has_no_type_for():
    wide = pl.DataFrame({"t": [1, 2], "x": pl.Series([1, 2], dtype=pl.Int128)})
    sparse = pd.DataFrame({"t": [1, 2], "x": pd.arrays.SparseArray([1, 2])})
    for table in (wide, sparse):
        for window, values in [
            (sw.Window(sw.sum()), table["x"]),
            (sw.Window(sw.sum("x")), table),
        ]:
            window.insert_many([1, 2], values)
            assert window.query() == 3
    assert list(sw.rolling(sparse, on="t", windows=5, aggs={"s": sw.sum("x")}).s_5) == [
        1,
        3,
    ]
    complexes = pd.DataFrame({"t": [1, 2], "x": [1j, 2j]})
    for table in (wide, complexes, {"t": np.arange(2), "x": np.array([1j, 2j])}):
        with pytest.raises(sw.SpecError, match="column 'x' "):
            sw.rolling(table, on="t", windows=5, aggs={"s": sw.sum("x")})
        with pytest.raises(sw.SpecError, match="column 'x' "):
            sw.KeyedWindows(on="t", windows=5, aggs={"s": sw.sum("x")}).ingest(table)
    window = sw.Window(sw.first())
    window.insert_many([1, 2], complexes["x"])
    assert window.query() == 1j


ENCODED = pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([5, None]))


@pytest.mark.parametrize("whole", [ENCODED, pa.chunked_array([ENCODED])])
def test_run_end_encoded_columns(whole: Any) -> None:
    table = pa.table({"t": [1, 2, 3], "x": whole})
    aggs = {"n": sw.count("x"), "s": sw.sum("x"), "l": sw.last("x")}
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    assert out["n_2"].to_pylist() == [1, 1, 0]
    assert out["s_2"].to_pylist() == [5, 5, None]
    assert out["l_2"].to_pylist() == [5, 5, None]
    window = sw.Window({"n": sw.count("x"), "s": sw.sum("x")})
    window.insert_many([1, 2, 3], table)
    assert window.query() == {"n": 1, "s": 5}


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy < 2")
def test_numpys_text_is_text() -> None:
    text = np.array(["b", "a", "c"], dtype=np.dtypes.StringDType())
    out = sw.rolling(
        {"t": np.array([1, 2, 3]), "x": text},
        on="t",
        windows=2,
        aggs={"m": sw.max("x"), "n": sw.count("x")},
    )
    assert out["m_2"].tolist() == ["b", "b", "c"]
    window = sw.Window(sw.min())
    window.insert_many([1, 2, 3], text)
    assert window.query() == "a"


NOON = dt.datetime(2020, 1, 1, 12)


def objects(*values: Any) -> pd.DataFrame:
    """A pandas column of Python's objects, as three times or values."""
    column = pd.Series(list(values), dtype=object)
    return pd.DataFrame({"o": column, "t": range(len(column))})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((NOON.date(), NOON), "row 1 .* is not a date like the others"),
        ((NOON, NOON.replace(tzinfo=dt.UTC)), "row 1 .* is not a time without a zone"),
        ((b"a", None, "a"), "row 2 .* is not a bytes value like the others"),
        ((2**70, 1), "of several types"),
        ((np.datetime64("2020-01-01"), 1), "of several types"),
    ],
)
@pytest.mark.parametrize("where", ["on", "by", "of"])
def test_object_columns_of_several_types_are_refused(
    where: str, values: tuple[Any, ...], why: str
) -> None:
    """Arrow would drop times of day, shift zones, and read text as bytes."""
    options: dict[str, Any] = {"on": "t", "windows": 2, "aggs": {"n": sw.count()}}
    options |= {"on": {"on": "o", "windows": "1d"}, "by": {"by": "o"}}.get(where, {})
    if where == "of":
        options["aggs"] = {"l": sw.last("o")}
    with pytest.raises(sw.SpecError, match=f"column 'o' .*{why}"):
        sw.rolling(objects(*values), **options)


def test_object_columns_of_one_type_are_taken() -> None:
    late = NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))
    for values in ([NOON.date()] * 2, [NOON] * 2, [b"a", None], [late, pd.NaT]):
        got = sw.rolling(objects(*values), on="t", windows=9, aggs={"n": sw.count("o")})
        assert got["n_9"].tolist()[-1] == sum(not pd.isna(value) for value in values)


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame(columns=["t", "x"]), pl.DataFrame({"t": [], "x": []})],
    ids=["pandas", "polars"],
)
def test_an_empty_untyped_column_is_refused_as_times(table: Any) -> None:
    with pytest.raises(sw.SpecError, match="'t' is empty and has no type: cast it"):
        sw.rolling(table, on="t", windows=2, aggs={"n": sw.count()})
