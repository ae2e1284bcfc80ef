"""`arrival=` of several columns: rows arrived in the order of their tuples."""

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables_oracle import inside, windows

import slidewise as sw
from slidewise.table.time_columns import order_by

EPOCH = datetime(2026, 6, 6, tzinfo=UTC)
# Columns of arrival, of few values, so that many are equal: their types in the table
# and in at=.
TYPES = {
    "a": (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    "b": (pa.int8(), pa.uint32()),
    "c": (pa.date32(), pa.date32()),
}
LISTS = {"got": sw.collect("x")}


def made(rng: random.Random, rows: int) -> dict[str, list[Any]]:
    return {
        "t": [rng.randrange(20) for _ in range(rows)],
        "k": [rng.choice(["p", "q", None]) for _ in range(rows)],
        "g": [rng.choice([0, 1]) for _ in range(rows)],
        "a": [EPOCH + timedelta(seconds=rng.randrange(3)) for _ in range(rows)],
        "b": [rng.randrange(4) for _ in range(rows)],
        "c": [date(2026, 6, rng.randrange(1, 3)) for _ in range(rows)],
        "x": list(range(rows)),
    }


def as_arrow(table: dict[str, list[Any]], which: int = 0) -> pa.Table:
    kinds = {name: TYPES[name][which] for name in TYPES}
    kinds |= {"k": pa.string(), **dict.fromkeys("tgx", pa.int64())}
    return pa.table({name: pa.array(table[name], kinds[name]) for name in table})


def tuples(table: dict[str, list[Any]], names: list[str]) -> list[Any]:
    return list(zip(*(table[name] for name in names), strict=True))


BY: list[Any] = [None, ["k"], ["k", "g"]]


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("by", BY, ids=str)
def test_rows_see_those_that_arrived_no_later(by: Any, closed: str) -> None:
    rng = random.Random(f"{by} {closed}")
    for rows in (0, 1, 40, 60):
        table = made(rng, rows)
        names = rng.sample(["a", "b", "c"], rng.choice([2, 2, 3]))
        lengths: list[Any] = [1, 6, 100]
        lengths += [sw.rows(1), sw.rows(5)] if closed == "right" else []
        request = {"on": "t", "by": by, "windows": lengths, "closed": closed}
        given = rng.choice([tuple(names), names])
        got = sw.rolling(as_arrow(table), **request, aggs=LISTS, arrival=given)
        keys = tuples(table, by) if by else None
        order: Any = tuples(table, names)
        for length in lengths:
            expected = windows(
                table["t"], length, keys=keys, closed=closed, arrival=order
            )
            name = length if isinstance(length, int) else f"{length.n}rows"
            assert got[f"got_{name}"].to_pylist() == expected, (names, length)


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("offset", [None, 2, -3])
def test_labels_see_rows_that_arrived_no_later(closed: str, offset: Any) -> None:
    rng = random.Random(f"{closed} {offset}")
    table, labels = made(rng, 50), made(rng, 40)
    names = rng.sample(["a", "b", "c"], 3)[: rng.choice([2, 3])]
    got = sw.rolling(
        as_arrow(table),
        at=as_arrow(labels, 1).drop_columns("x"),
        on="t",
        by="k",
        windows=[1, 6],
        closed=closed,
        offset=offset,
        aggs=LISTS,
        arrival=names,
    )
    came, label_arrivals = tuples(table, names), tuples(labels, names)
    for row, until in enumerate(label_arrivals):
        seen = [
            at
            for at in range(50)
            if table["k"][at] == labels["k"][row] and came[at] <= until
        ]
        seen.sort(key=lambda at: (table["t"][at], came[at], at))
        end = labels["t"][row] - (offset or 0)
        for length in (1, 6):
            kept = [at for at in seen if inside(end - table["t"][at], length, closed)]
            assert got[f"got_{length}"][row].as_py() == kept, (names, row)


@pytest.mark.parametrize("offset", [None, 2])
def test_rows_as_labels_get_their_own_results(offset: Any) -> None:
    table = as_arrow(made(random.Random(1), 60))
    request = {"on": "t", "by": "k", "windows": [4, 9], "offset": offset}
    request |= {"aggs": {**LISTS, "n": sw.count()}, "arrival": ["b", "a"]}
    assert sw.rolling(table, at=table, **request).equals(sw.rolling(table, **request))


def test_one_column_in_a_list_is_that_column() -> None:
    table = as_arrow(made(random.Random(2), 30))
    request = {"on": "t", "windows": 5, "aggs": LISTS}
    expected = sw.rolling(table, **request, arrival="b")
    assert sw.rolling(table, **request, arrival=["b"]).equals(expected)
    spec = sw.Spec(**request, arrival=("b",))
    assert spec == sw.Spec(**request, arrival="b")
    assert spec.hash == sw.Spec(**request, arrival="b").hash


def test_columns_may_be_the_times_and_keys_themselves() -> None:
    table = as_arrow(made(random.Random(3), 40))
    copies = table.append_column("u", table["t"]).append_column("h", table["g"])
    request = {"on": "t", "by": "g", "windows": 5, "aggs": LISTS}
    got = sw.rolling(table, **request, arrival=["g", "t"])
    expected = sw.rolling(copies, **request, arrival=["h", "u"])
    assert got["got_5"].equals(expected["got_5"])


def test_other_libraries() -> None:
    table = as_arrow(made(random.Random(4), 40)).select(["t", "a", "b", "x"])
    request = {"on": "t", "windows": 5, "aggs": {"n": sw.sum("x")}}
    request["arrival"] = ["a", "b"]
    expected = sw.rolling(table, **request)["n_5"].to_pylist()
    lazy = sw.rolling(pl.from_arrow(table).lazy(), **request)
    assert lazy.collect()["n_5"].to_list() == expected
    indexed = table.to_pandas().set_index(["a", "t"])
    assert isinstance(indexed.index, pd.MultiIndex)
    assert sw.rolling(indexed, **request)["n_5"].tolist() == expected


def test_order_by_is_that_of_tuples() -> None:
    rng = random.Random(5)
    pools = [range(3), range(-9, 9), [-(2**63), 2**63 - 1, 0], [2**62, -(2**62)]]
    for _ in range(60):
        rows = rng.randrange(12)
        columns = [
            [rng.choice(rng.choice(pools)) for _ in range(rows)]
            for _ in range(rng.randrange(1, 5))
        ]
        order = order_by([pa.array(column, pa.int64()) for column in columns])
        ordered = sorted(set(zip(*columns, strict=True)))
        places = [ordered.index(each) for each in zip(*columns, strict=True)]
        codes = sorted(set(order.to_pylist()))
        assert [codes.index(each) for each in order.to_pylist()] == places


BAD: list[tuple[Any, str]] = [
    ((), r"arrival=\(\) names no column: name one or several, or leave it out"),
    (["a", "b", "a"], r"arrival=\('a', 'b', 'a'\) names 'a' twice: name it once"),
    (["a", "d"], "the table has no column 'd'; it has t, k, g, a, b, c, x"),
    (["a", 3], "arrival= takes the name of a column, got 3"),
    (3, "arrival= takes a column, or a list of columns in order, got 3"),
    ({"a"}, r"arrival= takes a column, or a list of columns in order, got \{'a'\}"),
    (["b", "k"], r"column 'k' holds string, not times"),
    (["b", "nulls"], r"column 'nulls' has no time in row 1 \(counting from 0\): drop"),
]


@pytest.mark.parametrize(("arrival", "message"), BAD, ids=str)
def test_wrong_columns(arrival: Any, message: str) -> None:
    table = as_arrow(made(random.Random(6), 3))
    table = table.append_column("nulls", pa.array([1, None, 2]))
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(table, on="t", windows=5, aggs=LISTS, arrival=arrival)


def test_wrong_columns_of_labels() -> None:
    table = as_arrow(made(random.Random(7), 3))
    request = {"on": "t", "windows": 5, "aggs": LISTS, "arrival": ["a", "b"]}
    for labels, message in (
        (table.drop_columns("b"), "at= has no column 'b'"),
        (
            table.set_column(4, "b", table["c"]),
            "column 'b' of at= is .*column 'b' .int8",
        ),
        (
            table.set_column(4, "b", pa.array([1, 2, None], pa.int8())),
            "column 'b' of at= has no time in row 2",
        ),
    ):
        with pytest.raises(sw.SpecError, match=message):
            sw.rolling(table, at=labels.drop_columns("x"), **request)


def test_explain_names_the_columns() -> None:
    table = as_arrow(made(random.Random(8), 3))
    text = sw.explain(table, on="t", windows=5, aggs=LISTS, arrival=("a", "b"))
    assert "3 rows, one group, taken in order of a, b" in text
