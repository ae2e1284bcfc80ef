"""Deletions in batch DataFrames, compared with their definition."""

import random
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.errors import SpecError
from slidewise.spark import hopping, rolling

KINDS = pa.schema(
    [
        ("id", pa.int64()),
        ("t", pa.int64()),
        ("k", pa.float64()),
        ("o", pa.float64()),
        ("gone", pa.bool_()),
    ]
)


def left(table: pa.Table, then_by: list[str]) -> pa.Table:
    """Each deletion takes the first row by `then_by`, nulls last, else the first."""
    kept: list[dict[str, Any]] = []
    rows = table.to_pylist()
    for row in sorted(rows, key=lambda row: [_rank(row[name]) for name in then_by]):
        if not row["gone"]:
            kept.append(row)
    for row in rows:
        if row["gone"]:
            there = [
                one for one in kept if (one["k"], one["t"]) == (row["k"], row["t"])
            ]
            if there:
                kept.remove(there[0])
    return pa.Table.from_pylist(kept, KINDS).sort_by("id")


def _rank(value: float | None) -> tuple[int, float]:
    """The order is values, then NaN, then nulls."""
    if value is None:
        return 2, 0.0
    return (1, 0.0) if value != value else (0, value)


@pytest.mark.parametrize("then_by", [["o", "id"], []])
def test_the_first_row_of_equal_time_is_deleted(spark: Any, then_by: list[str]) -> None:
    rng = random.Random(str(then_by))
    rows = [
        {
            "id": at,
            "t": rng.randrange(6),
            "k": rng.choice([0.0, -0.0, 1.0, None]),
            "o": rng.choice([None, float("nan"), 0.0, 1.0, 2.0]) if then_by else 0.0,
            "gone": rng.choice([True, False, False, None]),
        }
        for at in range(200)
    ]
    table = pa.Table.from_pylist(rows, KINDS)
    df = spark.createDataFrame(table)
    # Spark asks for an order where the answers depend on it.
    agg = sw.collect("id") if then_by else sw.sum("id")
    call = {"on": "t", "by": "k", "windows": 3, "aggs": {"ids": agg}}
    answers = rolling(df, **call, deletes="gone", then_by=then_by).toArrow()
    accepted = left(table, then_by)
    assert 0 < len(accepted) < sum(not row["gone"] for row in rows)
    if then_by:
        accepted = _sorted(accepted)
    expected = sw.rolling(accepted, **call).sort_by("id")
    answers = answers.sort_by("id")
    assert answers["id"].to_pylist() == expected["id"].to_pylist()
    assert answers["ids_3"].to_pylist() == expected["ids_3"].to_pylist()


def _sorted(table: pa.Table) -> pa.Table:
    """Rows in the order of `then_by`, by a stable sort."""
    rows = sorted(table.to_pylist(), key=lambda row: (_rank(row["o"]), row["id"]))
    return pa.Table.from_pylist(rows, table.schema)


def test_columns_of_debezium_are_kept(spark: Any) -> None:
    """Unwrapped records of Debezium mark deletions in a column `__deleted`."""
    table = pa.table(
        {
            "t": [1, 1, 2],
            "x": [5, 5, 7],
            "__place": ["a", "b", "c"],
            "__deleted": [False, True, False],
        }
    )
    df = spark.createDataFrame(table)
    call = {"on": "t", "windows": 5, "aggs": {"p": sw.max("__place")}}
    got = rolling(df, **call, deletes="__deleted").toArrow()
    assert got.column_names == [*table.column_names, "p_5"]
    assert got.to_pylist() == [
        {"t": 2, "x": 7, "__place": "c", "__deleted": False, "p_5": "c"}
    ]
    table = table.rename_columns(["t", "__deleted", "__place", "gone"])
    df = spark.createDataFrame(table)
    call["aggs"] = {"d": sw.sum("__deleted"), "p": sw.max("__place")}
    got = rolling(df, **call, deletes="gone").toArrow()
    assert got.drop_columns("gone").to_pylist() == [
        {"t": 2, "__deleted": 7, "__place": "c", "d_5": 7, "p_5": "c"}
    ]
    call["window"] = call.pop("windows")
    windows = hopping(df, **call, deletes="gone").toArrow()
    assert windows.select(["d", "p"]).to_pylist() == [{"d": 7, "p": "c"}]


def test_reserved_names_are_refused(spark: Any) -> None:
    df = spark.range(3).selectExpr("id t", "id __SLIDEWISE_row", "id = 1 gone")
    call = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    message = "column '__SLIDEWISE_row' begins with '__slidewise_', .* rename"
    for more in ({}, {"deletes": "gone"}):
        with pytest.raises(SpecError, match=message):
            rolling(df, **call, **more)
