"""`fill=`: values in place of null results, wherever results are given."""

import math
import re
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slidewise as sw

ROWS = pa.table({"t": [1, 3, 4, 9, 9], "k": [*"abaab"], "x": [None, 2, None, 7, None]})
AGGS = {
    "n": sw.count("x"),
    "sum": sw.sum("x"),
    "avg": sw.mean("x"),
    "max": sw.max("x"),
}
WITH_ROWS = AGGS | {"mid": sw.median("x")}
FILLS: list[Any] = [0, {"sum": -1, "avg": 0.5}, {"max": 3}]
BARE: dict[str, Any] = {}


def roll(**changes: Any) -> dict[str, Any]:
    return {"on": "t", "by": "k", "windows": [2, 4], "aggs": AGGS} | changes


def value_of(fill: Any, column: str) -> Any:
    """The value for a column of results, named `<name>_<window>` or `<name>`."""
    return fill.get(column.split("_")[0]) if isinstance(fill, dict) else fill


def by_hand(results: pa.Table, columns: list[str], fill: Any) -> pa.Table:
    for name in columns:
        value, at = value_of(fill, name), results.column_names.index(name)
        if value is not None:
            column = pc.fill_null(results[name], pa.scalar(value, results[name].type))
            results = results.set_column(at, name, column)
    return results


@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_null_results_of_tables_are_filled(fill: Any) -> None:
    spec = sw.Spec(**roll(aggs=WITH_ROWS, min_rows=1))
    results = sw.rolling(ROWS, spec)
    assert results["sum_2"].null_count
    assert results["mid_4"].null_count
    filled = sw.rolling(ROWS, spec.replace(fill=fill))
    assert filled.equals(by_hand(results, [*spec.results], fill))
    labels = pa.table({"k": [*"zab"], "t": [4, 9, 20]})
    results = sw.rolling(ROWS, spec, at=labels)
    filled = sw.rolling(ROWS, spec.replace(fill=fill), at=labels)
    assert filled.equals(by_hand(results, [*spec.results], fill))


@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_null_results_of_hopping_windows_are_filled(fill: Any) -> None:
    request: dict[str, Any] = {"on": "t", "by": "k", "window": 2, "aggs": WITH_ROWS}
    results = sw.hopping(ROWS, **request, empty=True)
    assert results["mid"].null_count
    expected = by_hand(results, [*WITH_ROWS], fill)
    assert sw.hopping(ROWS, **request, empty=True, fill=fill).equals(expected)
    stream = sw.KeyedWindows(**request, empty=True, fill=fill)
    stream.ingest(ROWS)
    stream.advance(30)
    order = [("k", "ascending"), ("window_start", "ascending")]
    assert stream.collect().sort_by(order).equals(expected.sort_by(order))


@pytest.mark.parametrize("fill", FILLS, ids=str)
@pytest.mark.parametrize("emit", ["arrival", "final", "update", "change"])
@pytest.mark.parametrize("aggs", [AGGS, WITH_ROWS], ids=len)
def test_null_results_of_streams_are_filled(fill: Any, emit: str, aggs: Any) -> None:
    request, found = roll(aggs=aggs), []
    for more in (BARE, {"fill": fill}):
        stream = sw.KeyedWindows(**request, **more, emit=emit, late=2)
        for start in range(0, 5, 2):
            stream.ingest(ROWS.slice(start, 2))
            stream.advance()
        stream.advance(30)
        found.append(stream.collect())
    names = [*sw.Spec(**request).results]
    assert found[1].equals(by_hand(found[0], names, fill))


def test_late_rows_have_no_results_to_fill() -> None:
    stream = sw.KeyedWindows(**roll(), fill=0, late_rows="flag")
    stream.ingest(ROWS)
    stream.advance()
    stream.collect()
    stream.ingest(ROWS.slice(0, 1))
    assert stream.collect()["sum_2"].to_pylist() == [None]


@pytest.mark.parametrize("fill", FILLS, ids=str)
@pytest.mark.parametrize("aggs", [AGGS, WITH_ROWS], ids=len)
def test_null_results_of_queries_are_filled(fill: Any, aggs: Any) -> None:
    streams = []
    for more in (BARE, {"fill": fill}):
        stream = sw.KeyedWindows(**roll(aggs=aggs), **more, late=30)
        stream.ingest(ROWS)
        streams.append(stream)
    one, other = streams
    queries: list[dict[str, Any]] = [
        {"at": 4},
        {"at": 30},
        {"at": 4, "windows": [1, 3]},
        {"at": 4, "plus": {"x": None}},
    ]
    for given in queries:
        expected = {
            name: value_of(fill, name) if value is None else value
            for name, value in one.query("a", **given).items()
        }
        for name, value in one.query("a", **given).items():
            if value is None and value_of(fill, name) is None:
                expected[name] = None
        found = other.query("a", **given)
        assert found == expected
        kinds = {type(value) for name, value in found.items() if "avg" in name}
        assert kinds <= {float, type(None)}
    for keys in (pa.table({"k": [*"abz"]}), pa.table({"k": [*"ab"], "y": [[1], [2]]})):
        results = one.query_many(keys, at=4)
        named = [name for name in results.column_names if "_" in name]
        assert other.query_many(keys, at=4).equals(by_hand(results, named, fill))
        batch = keys.combine_chunks().to_batches()[0]
        results = pa.table(other.query_many(batch, at=4))
        assert results.equals(other.query_many(keys, at=4))
    lists = other.query_many({"k": [*"abz"]}, at=4)
    table = other.query_many(pa.table({"k": [*"abz"]}), at=4)
    assert lists == table.to_pydict()


def test_a_filled_result_changes_when_its_value_does() -> None:
    """The sum of a window that loses its last row, a zero, stays 0 with `fill=0`."""
    rows = pa.table({"t": [1, 3], "x": [5, 0]})
    for aggs in ({"s": sw.sum("x")}, {"s": sw.median("x")}):
        for more, until in [(BARE, 13), ({"fill": 0}, None)]:
            stream = sw.KeyedWindows(on="t", windows=10, aggs=aggs, late=30, **more)
            stream.ingest(rows)
            assert stream.query(at=12, valid_until=True)["valid_until_10"] == until


def test_filled_integers_are_integers_in_pandas() -> None:
    frame = pd.DataFrame({"t": [1, 5], "x": pd.array([None, 3], "Int64")})
    numbers = {"t": np.array([1, 5]), "x": np.array([1, 3])}
    request: dict[str, Any] = {"on": "t", "windows": 2, "aggs": {"s": sw.sum("x")}}
    assert sw.rolling(frame, **request, fill=0)["s_2"].tolist() == [0, 3]
    found = sw.rolling(numbers, **request, min_rows=2, fill=0)["s_2"]
    assert not isinstance(found, np.ma.MaskedArray)
    assert found.tolist() == [0, 0]


def test_fill_is_part_of_a_spec() -> None:
    for fill in [0, 0.5, "none", True, {"sum": 0, "avg": None}]:
        spec = sw.Spec(**roll(), fill=fill)
        again = sw.Spec.from_json(spec.to_json())
        assert (again, again.hash, hash(again)) == (spec, spec.hash, hash(spec))
        assert f"fill={fill!r}" in repr(again)
        assert spec.replace(fill=None).hash == sw.Spec(**roll()).hash
    same = [
        sw.Spec(**roll(), fill=fill) for fill in (0, 0.0, np.int64(0), np.float32(0))
    ]
    assert len({*same}) == len({spec.hash for spec in same}) == 1
    assert same[3].to_json() == sw.Spec(**roll(), fill=0.0).to_json()


def test_a_mapping_that_changes_later_is_no_part_of_a_spec() -> None:
    fill = {"sum": 0}
    spec = sw.Spec(**roll(), fill=fill)
    fill["avg"] = 1
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert "fill={'sum': 0}" in repr(spec)


def test_a_kind_of_aggregation_stands_for_all_of_it() -> None:
    aggs = {"a": sw.sum("x"), "b": sw.mean("x"), "c": sw.sum("x"), "mean": sw.max("x")}
    spec = sw.Spec(**roll(aggs=aggs), fill={"sum": 0, "c": 1, "mean": 2})
    # "mean" is the name of an aggregation first.
    assert spec.fill == (("a", 0), ("c", 1), ("mean", 2))


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ({"s": 0}, "fill= names 's', which is not in aggs=: there are 'n', 'sum'"),
        ([0], "fill=[0] is not one value"),
        ({"sum": [0]}, "fill['sum']=[0] is not one value"),
        (np.zeros(2), "is not one value"),
        ("x", "fill='x' does not fit the result 'n_2', which holds int64"),
        ({"max": 0.5}, "fill=0.5 does not fit the result 'max_2', which holds int64"),
    ],
)
def test_wrong_values_are_refused(fill: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.rolling(ROWS, **roll(), fill=fill)
    with pytest.raises(sw.SpecError, match=re.escape(message)):
        sw.KeyedWindows(**roll(), fill=fill, schema=ROWS.schema)


def test_lists_are_not_filled() -> None:
    aggs = {"all": sw.collect("x"), "n": sw.count()}
    with pytest.raises(
        sw.SpecError, match="fill= does not apply to the result 'all_2'"
    ):
        sw.rolling(ROWS, **roll(aggs=aggs), fill=0)
    assert sw.rolling(ROWS, **roll(aggs=aggs), fill={"n": 0}).num_rows == 5


def test_a_document_holds_numbers_and_text() -> None:
    for fill in (timedelta(1), math.nan, {"sum": b"a"}):
        spec = sw.Spec(**roll(), fill=fill)
        assert spec.hash != sw.Spec(**roll()).hash
        with pytest.raises(sw.SpecError, match="cannot be written to a document"):
            spec.to_json()
