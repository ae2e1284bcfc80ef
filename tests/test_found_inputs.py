"""Inputs that were misread, or refused in strange words, as found."""

from typing import Any

import numpy as np
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
