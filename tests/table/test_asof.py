"""Answers at the rows of another table, and windows that end earlier."""

import random
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables_oracle import inside

import slidewise as sw
from slidewise.spec.durations import Rows

AGGS = {"n": sw.count(), "values": sw.collect("x"), "distinct": sw.count_distinct("x")}


def seen(
    table: dict[str, list[Any]],
    moment: dict[str, Any],
    window: Any,
    closed: str,
    offset: int = 0,
) -> list[int]:
    """The rows of the window at a time, earliest first."""
    arrived = [
        row
        for row in range(len(table["t"]))
        if table["k"][row] == moment["k"]
        and ("a" not in moment or table["a"][row] <= moment["a"])
    ]
    arrived.sort(key=lambda row: (table["t"][row], table["a"][row], row))
    if isinstance(window, int):
        end = moment["t"] - offset
        return [row for row in arrived if inside(end - table["t"][row], window, closed)]
    if "a" in moment:
        return arrived[-window.n :]
    return [row for row in arrived if table["t"][row] <= moment["t"]][-window.n :]


def made(rng: random.Random, rows: int) -> dict[str, list[Any]]:
    return {
        "t": [rng.randrange(40) for _ in range(rows)],
        "k": [rng.choice(["a", "b", None]) for _ in range(rows)],
        "a": [rng.randrange(60) for _ in range(rows)],
        "x": [rng.randrange(5) for _ in range(rows)],
    }


@pytest.mark.parametrize("by_arrival", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_each_moment_sees_its_window(seed: int, by_arrival: bool) -> None:
    rng = random.Random(seed)
    table = made(rng, rng.choice([0, 1, 30]))
    labels = made(rng, rng.choice([0, 1, 25]))
    closed = rng.choice(["right", "left", "both", "neither"])
    windows: list[Any] = [1, 7, 100]
    if closed == "right":
        windows.append(sw.rows(3))
    if not by_arrival:
        table["a"] = list(range(len(table["t"])))
    given = as_arrow(labels).drop_columns(["x"])
    got = sw.rolling(
        as_arrow(table),
        on="t",
        by="k",
        windows=windows,
        closed=closed,
        aggs=AGGS,
        arrival="a" if by_arrival else None,
        at=given,
    )
    assert got.select(given.column_names) == given
    for window in windows:
        label = f"{window.n}rows" if isinstance(window, Rows) else window
        for row, moment in enumerate(given.to_pylist()):
            if not by_arrival:
                del moment["a"]
            rows = seen(table, moment, window, closed)
            values = [table["x"][other] for other in rows]
            assert got[f"values_{label}"][row].as_py() == values, (row, window)
            assert got[f"n_{label}"][row].as_py() == len(values)
            assert got[f"distinct_{label}"][row].as_py() == len(set(values))


def as_arrow(table: dict[str, list[Any]]) -> pa.Table:
    columns = {name: pa.array(table[name], pa.int64()) for name in ("t", "a", "x")}
    return pa.table({**columns, "k": pa.array(table["k"], pa.string())})


@pytest.mark.parametrize("ties", ["peers", "rows"])
@pytest.mark.parametrize("offset", [-3, 1, 5])
def test_offset_ends_windows_earlier(offset: int, ties: str) -> None:
    table = made(random.Random(offset), 50)
    table["a"] = list(range(50))
    sides = (
        ("right", "both") if ties == "rows" else ("left", "right", "both", "neither")
    )
    for closed in sides:
        got = sw.rolling(
            as_arrow(table),
            on="t",
            by="k",
            windows=[4, 20],
            closed=closed,
            ties=ties,
            aggs=AGGS,
            offset=offset,
        )
        for row in range(50):
            moment = {"t": table["t"][row], "k": table["k"][row]}
            for window in (4, 20):
                rows = seen(table, moment, window, closed, offset)
                values = [table["x"][other] for other in rows]
                assert got[f"values_{window}"][row].as_py() == values


def test_offset_as_of_arrival() -> None:
    table = pa.table({"t": [1, 2, 3], "a": [5, 1, 9], "x": [10, 20, 30]})
    got = sw.rolling(
        table, on="t", windows=9, arrival="a", offset=1, aggs={"x": sw.collect("x")}
    )
    assert got["x_9"].to_pylist() == [[], [], [10, 20]]


def test_labels_come_back_as_they_are() -> None:
    start = datetime(2024, 1, 1)
    trades = pl.DataFrame(
        {"t": [start, start + timedelta(hours=1)], "k": ["x", "y"], "p": [1.5, 2.5]}
    )
    labels = pd.DataFrame(
        {
            "t": [start + timedelta(minutes=90)] * 3,
            "k": ["y", "x", "none"],
            "churned": [True, False, True],
        },
        index=[7, 8, 9],
    )
    got = sw.rolling(
        trades, on="t", by="k", windows="2h", aggs={"p": sw.sum("p")}, at=labels
    )
    assert isinstance(got, pd.DataFrame)
    assert got.index.tolist() == [7, 8, 9]
    assert got.columns.tolist() == ["t", "k", "churned", "p_2h"]
    assert got["p_2h"].tolist()[:2] == [2.5, 1.5]
    assert pd.isna(got["p_2h"][9])


def test_integers_at_query_points_can_be_missing() -> None:
    table = pd.DataFrame({"t": [5], "x": [3]})
    got = sw.rolling(
        table,
        on="t",
        windows=2,
        aggs={"x": sw.sum("x")},
        at=pd.DataFrame({"t": [1, 6]}),
    )
    assert got["x_2"].dtype == "Int64"
    assert got["x_2"].tolist() == [pd.NA, 3]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"k": [1]}, "at= has no column 't'"),
        ({"t": [1]}, "at= has no column 'k'"),
        ({"t": [1], "k": ["a"]}, "the key 'k' is int64 in the table, and string"),
        ({"t": [datetime(2024, 1, 1)], "k": [1]}, "does not convert without loss"),
        ({"t": [None], "k": [1]}, "no time in row 0"),
        ({"t": [1], "k": [1], "n_5": [0]}, "has a column 'n_5' already"),
    ],
)
def test_labels_that_do_not_fit(labels: dict[str, Any], message: str) -> None:
    table = pa.table({"t": [1], "k": [1]})
    at = pa.table(labels)
    if labels.get("t") == [None]:
        at = at.set_column(0, "t", pa.array([None], pa.int64()))
    with pytest.raises(sw.SpecError) as raised:
        sw.rolling(table, on="t", by="k", windows=5, aggs={"n": sw.count()}, at=at)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"windows": sw.rows(2), "offset": 1},
            "offset=1 does not apply to windows=rows(2)",
        ),
        ({"windows": 5, "offset": "1h"}, "and the window 5 differ in kind"),
        ({"windows": "1h", "offset": 5}, "and the window '1h' differ in kind"),
        ({"windows": 5, "offset": 1.5}, "offset=1.5 is not a length of time"),
        (
            {"windows": 5, "offset": sw.rows(1)},
            "offset=rows(1) and the window 5 differ in kind",
        ),
        ({"windows": "1h", "offset": "1 month"}, "no fixed length"),
        ({"windows": "1h", "offset": "--5m"}, "offset='--5m' is not a duration"),
        ({"windows": 5, "offset": 2**70}, f"offset={2**70} is too long"),
    ],
)
def test_offsets_that_do_not_apply(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.SpecError) as raised:
        sw.rolling(pa.table({"t": [1]}), on="t", aggs={"n": sw.count()}, **options)
    assert message in str(raised.value)


def test_zones_and_units_meet() -> None:
    table = pa.table({"t": pa.array([60], pa.timestamp("s", "UTC"))})
    labels = pa.table({"t": pa.array([61_000_000], pa.timestamp("us", "Asia/Tokyo"))})
    got = sw.rolling(table, on="t", windows="5s", aggs={"n": sw.count()}, at=labels)
    assert got["n_5s"].to_pylist() == [1]
    naive = pa.table({"t": pa.array([61], pa.timestamp("s"))})
    options = {"on": "t", "windows": "5s", "aggs": {"n": sw.count()}}
    with pytest.raises(
        sw.SpecError, match=r"'t' of at= has no zone .*s\]\), .* has one"
    ):
        sw.rolling(table, at=naive, **options)
    with pytest.raises(sw.SpecError, match=r"'t' of at= has a zone .* has none .* by "):
        sw.rolling(naive, at=table, **options)
    rows, at = (pa.table({"t": [1], "k": one["t"]}) for one in (table, naive))
    with pytest.raises(
        sw.SpecError, match=r"key 'k' of at= has no zone .* has one .* by "
    ):
        sw.rolling(rows, at=at, **{**options, "windows": 5}, by="k")


def test_query_points_keep_their_time_of_day():
    table = pa.table({"t": pa.array([0, 1], pa.date32())})
    noon = pa.table({"t": pa.array([86_400 + 43_200], pa.timestamp("s"))})
    midnight = pa.table({"t": pa.array([86_400], pa.timestamp("s"))})
    options = {"on": "t", "windows": "1d", "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="without loss"):
        sw.rolling(table, at=noon, **options)
    assert sw.rolling(table, at=midnight, **options)["n_1d"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.array([True]), pa.array([2])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array([1], pa.date32()), pa.array([86_405], pa.timestamp("s"))),
        (pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("s", "UTC"))),
        (pa.array([1]), pa.array([1.0])),
    ],
)
def test_keys_of_other_kinds_are_not_the_same(ours, theirs):
    table, at = pa.table({"t": [1], "k": ours}), pa.table({"t": [1], "k": theirs})
    with pytest.raises(sw.SpecError, match=r"(cast|convert) one of them"):
        sw.rolling(table, on="t", by="k", windows=3, at=at, aggs={"n": sw.count()})


def test_nan_is_the_same_key_in_either_width():
    keys = pa.array([float("nan"), None, 1.5], pa.float32())
    table = pa.table({"t": [1, 1, 1], "k": keys})
    at = pa.table({"t": [1, 1, 1], "k": [None, float("nan"), 1.5]})
    out = sw.rolling(table, on="t", by="k", windows=3, at=at, aggs={"n": sw.count()})
    assert out["n_3"].to_pylist() == [1, 1, 1]
    with pytest.raises(sw.SpecError, match="cast one of them"):
        sw.rolling(
            table,
            on="t",
            by="k",
            windows=3,
            at=pa.table({"t": [1], "k": [0.1]}),
            aggs={"n": sw.count()},
        )


@pytest.mark.parametrize("other", ["a", pd.Categorical(["a"])[0]])
def test_categories_as_keys_at_other_rows(other):
    table = pd.DataFrame({"t": [1, 2], "k": pd.Categorical(["a", "b"])})
    for at in (table, pd.DataFrame({"t": [1], "k": [other]})):
        out = sw.rolling(
            table, on="t", by="k", windows=3, at=at, aggs={"n": sw.count()}
        )
        assert out["n_3"].tolist() == [1] * len(at)


@pytest.mark.parametrize("times", [[1.0], [True], ["1"]])
def test_at_takes_times_of_the_kind_of_the_table(times):
    table = pa.table({"t": [1, 2]})
    with pytest.raises(sw.SpecError, match="cast one of them"):
        sw.rolling(
            table, on="t", windows=5, aggs={"n": sw.count()}, at=pa.table({"t": times})
        )


# Columns of `at=` with other names.

LABELS = pa.table(
    {"id": [1, 2, 3], "when": [9, 3, 20], "card": [*"aba"], "shop": [*"xyx"]}
)
TRIPS = pa.table(
    {
        "t": [1, 3, 8, 9],
        "k": [*"abaa"],
        "s": [*"xyxx"],
        "x": [1, 2, 4, 8],
        "a": [9, 1, 8, 10],
    }
)
SUM: dict[str, Any] = {"windows": [5, sw.rows(2)], "aggs": {"s": sw.sum("x")}}


def answers(at: Any, **request: Any) -> list[list[Any]]:
    found = sw.rolling(TRIPS, at=at, **request, **SUM)
    named = pa.table(found) if isinstance(found, pa.Table) else pa.table(dict(found))
    return [named[name].to_pylist() for name in ("s_5", "s_2rows")]


def test_columns_of_labels_may_have_other_names() -> None:
    same = LABELS.rename_columns(["id", "t", "k", "s"])
    one: dict[str, Any] = {"on": "t", "by": "k"}
    expected = answers(same, **one)
    assert expected == [[12, 2, None], [12, 2, 12]]
    assert answers(LABELS, **one, at_on="when", at_by="card") == expected
    assert answers(LABELS, **one, at_on="when", at_by=["card"]) == expected
    assert answers(LABELS, **one, at_on="when", at_by={"k": "card"}) == expected
    two: dict[str, Any] = {"on": "t", "by": ["s", "k"]}
    expected = answers(same, **two)
    assert answers(LABELS, **two, at_on="when", at_by=["shop", "card"]) == expected
    partly = LABELS.rename_columns(["id", "t", "card", "s"])
    assert answers(partly, **two, at_by={"k": "card"}) == expected
    found = sw.rolling(TRIPS, at=LABELS, at_on="when", at_by="card", **one, **SUM)
    assert found.column_names == [*LABELS.column_names, "s_5", "s_2rows"]
    lazy = sw.rolling(
        pl.from_arrow(TRIPS).lazy(),  # type: ignore[union-attr]
        at=pl.from_arrow(LABELS).lazy(),  # type: ignore[union-attr]
        at_on="when",
        at_by="card",
        **one,
        **SUM,
    )
    assert lazy.collect()["s_5"].to_list() == [12, 2, None]


def test_the_time_of_labels_may_also_be_their_arrival_and_key() -> None:
    when = LABELS.select(["when", "card"])
    same = when.rename_columns(["t", "k"])
    for request in (
        {"on": "t", "by": "k", "arrival": "t"},
        {"on": "t", "by": ["k", "t"]},
    ):
        spec: dict[str, Any] = {**request, "windows": 5, "aggs": {"s": sw.sum("x")}}
        expected = sw.rolling(TRIPS, at=same, **spec)["s_5"]
        by = {"k": "card", "t": "when"} if len(request["by"]) == 2 else "card"
        found = sw.rolling(TRIPS, at=when, at_on="when", at_by=by, **spec)["s_5"]
        assert found.equals(expected)
    late = when.append_column("a", pa.array([9, 9, 9]))
    spec = {"on": "t", "by": "k", "arrival": "a", **SUM}
    found = sw.rolling(TRIPS, at=late, at_on="when", at_by="card", **spec)
    assert found["s_5"].to_pylist() == [4, 2, None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at": None}, "at_on='when' names columns of the table at=, which is missing"),
        ({"at_on": 3}, "at_on= takes the name of a column, got 3"),
        ({"at_on": "then"}, "at= has no column 'then'"),
        ({"at_by": "key"}, "at= has no column 'key'"),
        ({"at_by": ["card", "shop"]}, r"names other columns than one for each of by="),
        ({"at_by": {"card": "card"}}, r"at_by= names 'card', which is not in by="),
        ({"at_by": 3}, "at_by= takes a column or a list of columns, got 3"),
        ({"at_on": "card"}, "column 'card' of at= is string, which does not convert"),
    ],
)
def test_wrong_columns_of_labels_are_refused(changes: Any, message: str) -> None:
    request: dict[str, Any] = {"on": "t", "by": "k", "at": LABELS, "at_on": "when"}
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(TRIPS, **{**request, "at_by": "card", **changes}, **SUM)
