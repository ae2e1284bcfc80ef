"""Lists, counts of values and ranks: types, ties, and what they refuse."""

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw


def last(table: pa.Table, agg: sw.Aggregation, windows: Any = 9) -> Any:
    """The answer in the last row, over all rows."""
    spec = sw.Spec(on="t", windows=windows, aggs={"a": agg})
    kw = sw.KeyedWindows(spec, late=99, emit="none")
    order = [3, 0, 4, 1, 2][-len(table) :]
    for row in sorted(range(len(table)), key=lambda at: order[at]):
        kw.ingest(table.slice(row, 1))
    out = sw.rolling(table, spec)["a_9"]
    if len(table):
        assert repr(kw.query(at=table["t"][-1].as_py())["a_9"]) == repr(out[-1].as_py())
    return out


def table_of(values: list[Any], kind: pa.DataType, **more: Any) -> pa.Table:
    times = pa.array(range(len(values)), pa.int64())
    return pa.table({"t": times, "x": pa.array(values, kind), **more})


COUNTED: list[tuple[pa.DataType, list[Any], list[tuple[Any, int]]]] = [
    (pa.string(), ["b", "a", None, "b", "c"], [("b", 2), ("a", 1), ("c", 1)]),
    (pa.int8(), [5, -1, 5, -1, 7], [(-1, 2), (5, 2), (7, 1)]),
    (pa.uint64(), [2**64 - 1, 3, 2**64 - 1], [(2**64 - 1, 2), (3, 1)]),
    (pa.float32(), [0.5, 0.0, -0.0], [(0.0, 2), (0.5, 1)]),
    (pa.bool_(), [True, True, False], [(True, 2), (False, 1)]),
    (pa.date32(), [date(2024, 1, 2), None], [(date(2024, 1, 2), 1)]),
    (pa.decimal128(9, 2), [Decimal("1.50")] * 2, [(Decimal("1.50"), 2)]),
]


@pytest.mark.parametrize(("kind", "values", "counts"), COUNTED, ids=str)
def test_values_keep_their_type_beside_their_counts(
    kind: pa.DataType, values: list[Any], counts: list[tuple[Any, int]]
) -> None:
    found = last(table_of(values, kind), sw.value_counts("x"))
    item = pa.struct([("value", kind), ("count", pa.int64())])
    assert found.type == pa.list_(item)
    expected = [{"value": value, "count": count} for value, count in counts]
    assert found[-1].as_py() == expected
    window = sw.Window(sw.value_counts(top=1))
    window.insert_many(range(len(values)), values)
    assert window.query() == expected[:1]
    assert sw.Window.from_bytes(window.to_bytes()).query() == expected[:1]


def test_nans_are_one_value_and_the_last_of_equal_counts() -> None:
    values = [math.nan, 1.0, math.nan, 1.0, 2.0]
    for found in (
        last(table_of(values, pa.float64()), sw.value_counts("x"))[-1].as_py(),
        last(table_of(values, pa.float64()), sw.value_counts("x", 9))[-1].as_py(),
    ):
        assert repr([(one["value"], one["count"]) for one in found]) == (
            "[(1.0, 2), (nan, 2), (2.0, 1)]"
        )
    distinct = last(table_of(values, pa.float64()), sw.last_distinct("x", 2))
    assert distinct[-1].as_py() == [1.0, 2.0]


def test_values_of_equal_counts_must_compare() -> None:
    window = sw.Window(sw.value_counts())
    window.insert_many([1, 2], ["a", 1])
    with pytest.raises(sw.SpecError, match=r"value_counts\(\) orders values of equal"):
        window.query()


def test_few_values_of_many_rows_have_an_exact_entropy() -> None:
    table = table_of(["a"] * 5, pa.string())
    assert last(table, sw.entropy("x"))[-1].as_py() == 0.0
    window = sw.Window(sw.entropy())
    window.insert_many(range(10**5), [0] * (10**5 - 1) + [1])
    share = 1e-5
    expected = -share * math.log(share) - (1 - share) * math.log1p(-share)
    assert math.isclose(window.query(), expected, rel_tol=2**-49)
    other = sw.Window(sw.entropy())
    other.insert_many(range(10**5), [1] + [0] * (10**5 - 1))
    assert other.query() == window.query()
    assert sw.Window(sw.entropy()).query() is None


def test_bins_hold_their_lower_edge_and_compare_integers_exactly() -> None:
    near = 2**53
    table = table_of([near - 1, near, near + 1, None], pa.int64())
    edges = [near, near + 2]
    found = last(table, sw.histogram("x", edges=edges))
    assert found.type == pa.list_(pa.int64())
    assert found[-1].as_py() == [1, 2, 0]
    floats = table_of([math.nan, -math.inf, 1.0, -0.0], pa.float64())
    assert last(floats, sw.histogram("x", edges=[0, 1]))[-1].as_py() == [1, 1, 2]
    window = sw.Window(sw.histogram(edges=[0.5]), algorithm="subtract_on_evict")
    window.insert_many([1, 2, 3], [0, 1, 0])
    window.evict()
    assert window.query() == [1, 1]
    assert sw.Window.from_bytes(window.to_bytes()).query() == [1, 1]
    assert sw.Window(sw.histogram(edges=[0.5])).query() == [0, 0]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "takes from 1 to 1000 numbers, got 0"),
        (range(1001), "takes from 1 to 1000 numbers, got 1001"),
        ([1, 1], r"must ascend, got 1\.0 before 1\.0"),
        ([2, 1], r"must ascend, got 2\.0 before 1\.0"),
        ([0, math.nan], "takes finite numbers, got nan"),
        ([0, math.inf], "takes finite numbers, got inf"),
        ([2**53 + 1], "the edge 9007199254740993 is no float64"),
        ("12", "takes numbers that ascend, got '12'"),
        (5, "takes numbers that ascend, got 5"),
        (["a"], "takes numbers, got 'a'"),
        ([True], "takes numbers, got True"),
    ],
)
def test_other_edges_are_refused(edges: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        sw.histogram("x", edges=edges)


def test_rows_with_the_most_extreme_values() -> None:
    who = pa.array(["a", "b", None, "d", "e"])
    table = table_of([2, 7, 9, None, 2], pa.int32(), who=who)
    assert last(table, sw.top_k("who", 3, by="x"))[-1].as_py() == ["b", "a", "e"]
    assert last(table, sw.bottom_k("who", 1, by="x"))[-1].as_py() == ["a"]
    window = sw.Window(sw.top_k("who", 2, by="x"))
    window.insert_many([4, 3, 2], {"who": ["d", None, "b"], "x": [7, 9, 7]})
    assert window.query() == ["b", "d"]
    window.insert(1, {"who": "a", "x": 7})
    assert sw.Window.from_bytes(window.to_bytes()).query() == ["a", "b"]
    shared = sw.SharedWindow(sw.top_k("who", 1, by="x"), ranges=[1, 9])
    shared.insert_many([1, 2], {"who": [10, 20], "x": [0.5, 0.25]})
    assert shared.query() == [[20], [10]]


def test_the_column_to_return_must_be_named() -> None:
    with pytest.raises(sw.SpecError, match="needs the column to return: top_k"):
        sw.Spec(on="t", windows=1, aggs={"a": sw.top_k(k=2, by="x")})
    with pytest.raises(sw.SpecError, match=r"first_k\(\) takes no by="):
        sw.Aggregation("first_k", "x", "y", k=1)


def test_distinct_values_follow_their_latest_occurrence() -> None:
    table = table_of(["a", "b", None, "a", "c"], pa.large_string())
    found = last(table, sw.last_distinct("x", 2))
    assert found.type == pa.list_(pa.large_string())
    assert found.to_pylist() == [["a"], ["a", "b"], ["a", "b"], ["b", "a"], ["a", "c"]]
    window = sw.Window(sw.last_distinct(k=2))
    window.insert_many([5, 1, 3, 2], ["a", "a", "b", "c"])
    assert window.query() == ["b", "a"]
    assert window.query(1, 3) == ["c", "b"]
    window = sw.Window(sw.last_distinct(k=2), dtype="object")
    window.insert_many([1, 2], [[1], [1]])
    with pytest.raises(sw.SpecError, match=r"last_distinct\(\) takes hashable"):
        window.query()


def test_a_run_ends_where_a_row_is_false() -> None:
    table = table_of([True, True, None, True, False], pa.bool_())
    spec = sw.Spec(on="t", windows=9, aggs={"a": sw.longest_run(where="x")})
    assert sw.rolling(table, spec)["a_9"].to_pylist() == [1, 2, 2, 3, 3]
    assert spec == sw.Spec.from_json(spec.to_json())
    assert '{"kind": "longest_run", "where": "x"}' in spec.to_json()
    shared = sw.SharedWindow(sw.longest_run(), ranges=[2, 9])
    shared.insert_many([3, 1, 2, 4], [True, True, False, True])
    assert shared.query() == [2, 2]
    assert sw.Window(sw.longest_run()).query() == 0


@pytest.mark.parametrize("top", [0, -1, True, 1.5, 2**31])
def test_other_tops_are_refused(top: Any) -> None:
    with pytest.raises(sw.SpecError, match="top must be 1 or more"):
        sw.value_counts("x", top)
