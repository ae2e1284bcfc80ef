"""Inputs that were misread, or refused in strange words, as found."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

TABLE = pa.table({"t": [1, 2, 3], "x": [1, 2, 3]})
ENCODED = pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([5, None]))


def rolling(**options: Any) -> Any:
    asked = {"on": "t", "windows": 2, "aggs": {"n": sw.sum("x")}, **options}
    return sw.rolling(TABLE, **asked)


def test_a_time_is_asked_for_as_it_was_rounded() -> None:
    window = sw.Window(sw.sum(), granularity=10)
    window.insert_many([17, 23, 38], [1, 2, 4])
    assert (window.query(17, 23), window.query(23, 23), window.query(18)) == (3, 2, 7)
    assert window.query(-(2**63), 19) == 1
    assert window.evict(13)
    assert window.evict_until(25) == 1
    assert window.items() == [(30, 4)]


def test_entries_without_values_come_in_bulk_too() -> None:
    window = sw.Window({"n": sw.count(), "s": sw.sum("x")})
    window.insert(1, None)
    window.insert_many([2, 3, 4], [None, {"x": 5}, None])
    assert window.query() == {"n": 4, "s": 5}


@pytest.mark.parametrize("whole", [ENCODED, pa.chunked_array([ENCODED])])
def test_runs_are_columns_like_others(whole: Any) -> None:
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


def test_huge_numbers_are_answered_or_named() -> None:
    with pytest.raises(sw.SpecError, match=r"min_rows= takes an int from 0 to 2\*\*63"):
        rolling(min_rows=2**70)
    assert rolling(min_rows=2**62)["n_2"].to_pylist() == [None] * 3
    assert rolling(threads=2**70).equals(rolling())
    for offset in (2**70, -(2**70)):
        with pytest.raises(sw.SpecError, match="int64 cannot hold it"):
            rolling(offset=offset)


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates_take_whole_days(kind: pa.DataType) -> None:
    days = pa.array([0, 1, 2], pa.int32()).cast(pa.date32()).cast(kind)
    table = pa.table({"t": days, "x": [1, 2, 3]})
    with pytest.raises(sw.SpecError, match="'36h' is no whole number of units"):
        sw.hopping(table, on="t", window="36h", every="12h", aggs={"n": sw.count()})
    aggs = {"n": sw.sum("x")}
    out = sw.hopping(table, on="t", window="2d", every="1d", aggs=aggs)
    assert out["n"].to_pylist() == [1, 3, 5, 3]
    assert out["window_end"].type == kind


def test_a_partial_without_bytes_is_refused_with_both_ways_out() -> None:
    made = sw.aggregation(
        lift=lambda value: [value], combine=lambda a, b: a + b, identity=[]
    )
    window = sw.Window(made)
    window.insert_many([1, 2], [1, 2])
    with pytest.raises(sw.SnapshotError, match=r"name='module:name'"):
        sw.Window.from_bytes(window.to_bytes())


def objects(*values: Any) -> pd.DataFrame:
    """A pandas column of Python's objects, as three times or values."""
    column = pd.Series(list(values), dtype=object)
    return pd.DataFrame({"o": column, "t": range(len(column))})


NOON = dt.datetime(2020, 1, 1, 12)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((NOON.date(), NOON), "row 1 .* is no date like the others"),
        ((NOON, NOON.replace(tzinfo=dt.UTC)), "row 1 .* is no time without a zone"),
        ((b"a", None, "a"), "row 2 .* is no bytes like the others"),
        ((2**70, 1), "of several types"),
        ((np.datetime64("2020-01-01"), 1), "of several types"),
    ],
)
@pytest.mark.parametrize("where", ["on", "by", "of"])
def test_objects_that_are_not_alike_are_refused(
    where: str, values: tuple[Any, ...], why: str
) -> None:
    """Arrow would cut off times of day, move zones, and take text for bytes."""
    asked: dict[str, Any] = {"on": "t", "windows": 2, "aggs": {"n": sw.count()}}
    asked |= {"on": {"on": "o", "windows": "1d"}, "by": {"by": "o"}}.get(where, {})
    if where == "of":
        asked["aggs"] = {"l": sw.last("o")}
    with pytest.raises(sw.SpecError, match=f"column 'o' .*{why}"):
        sw.rolling(objects(*values), **asked)


def test_objects_that_are_alike_are_taken() -> None:
    late = NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))
    for values in ([NOON.date()] * 2, [NOON] * 2, [b"a", None], [late, pd.NaT]):
        got = sw.rolling(objects(*values), on="t", windows=9, aggs={"n": sw.count("o")})
        assert got["n_9"].tolist()[-1] == sum(not pd.isna(value) for value in values)


def ordered_columns() -> list[Any]:
    names = ["small", "medium", "large"]
    values = ["small", "large", "medium", "large"]
    category = pd.Categorical(values, categories=names, ordered=True)
    return [
        pd.DataFrame({"t": [1, 2, 3, 4], "x": category}),
        pl.DataFrame({"t": [1, 2, 3, 4], "x": pl.Series(values, dtype=pl.Enum(names))}),
        pa.table({"t": [1, 2, 3, 4], "x": pa.Array.from_pandas(category)}),
    ]


@pytest.mark.parametrize("table", ordered_columns(), ids=["pandas", "polars", "Arrow"])
def test_categories_go_by_the_order_they_declare(table: Any) -> None:
    aggs = {
        "max": sw.max("x"),
        "min": sw.min("x"),
        "top": sw.top_k("x", 2),
        "where": sw.arg_max("t", by="x"),
        "times": sw.max_count("x"),
    }
    got = sw.rolling(table, on="t", windows=3, aggs=aggs)
    column = {name: list(got[f"{name}_3"]) for name in aggs}
    column = {
        n: [getattr(v, "as_py", lambda v=v: v)() for v in c] for n, c in column.items()
    }
    assert column["max"] == ["small", "large", "large", "large"]
    assert column["min"] == ["small", "small", "small", "medium"]
    assert [list(best) for best in column["top"]] == [
        ["small"],
        ["large", "small"],
        ["large", "medium"],
        ["large", "large"],
    ]
    assert column["where"] == [1, 2, 2, 2]
    assert column["times"] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
        pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)).cast(pa.uuid()),
        pa.array([1, None, 0], pa.bool8()),
        pa.array([[1], None, [2]]),
    ],
    ids=lambda column: str(column.type),
)
def test_few_rows_give_nothing_whatever_their_type(column: Any) -> None:
    table = pa.table({"t": [1, 2, 3], "x": column})
    asked = {"on": "t", "windows": 5, "aggs": {"f": sw.first("x"), "l": sw.last("x")}}
    whole = sw.rolling(table, **asked)
    few = sw.rolling(table, **asked, min_rows=2)
    for name in ("f_5", "l_5"):
        assert few[name].type == whole[name].type
        expected = [None, None, whole[name][2].as_py()]
        assert few[name].to_pylist() == expected


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame(columns=["t", "x"]), pl.DataFrame({"t": [], "x": []})],
    ids=["pandas", "polars"],
)
def test_an_empty_column_of_no_type_is_no_time(table: Any) -> None:
    with pytest.raises(sw.SpecError, match="'t' is empty and has no type: cast it"):
        sw.rolling(table, on="t", windows=2, aggs={"n": sw.count()})


def test_durations_are_not_endless() -> None:
    with pytest.raises(sw.SpecError, match=r"'9999.* is too long"):
        sw.rolling(TABLE, on="t", windows="9" * 5000 + "d", aggs={"n": sw.count()})
