"""Ranks of a row's own value, against their definition over the rows of its window."""

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_tables import in_pieces, sorted_by
from seeds import SEED

import slidewise as sw
from slidewise.table.batched_rolling import Order, rolling_batches
from slidewise.testing import check_stream

METHODS = ("average", "min", "max", "dense")
RANKS = {method: sw.rank("x", method) for method in METHODS}
RANKS["percent"] = sw.percent_rank("x")
# The rows of each window, as their numbers.
AGGS = {**RANKS, "held": sw.collect("row")}
REFUSED = r"rank\('x'\) ranks the value of a row in its window, and here is no row"


def key_of(value: Any) -> Any:
    """NaN is the largest value, and one value."""
    return (1, 0) if value != value else (0, value)


def meant(own: Any, others: list[Any], method: str) -> float | None:
    """The rank of a value among others of its window, which may be missing."""
    values = [key_of(value) for value in others if value is not None]
    if own is None:
        return None
    own = key_of(own)
    less, equal = sum(value < own for value in values), values.count(own) + 1
    return {
        "average": less + (equal + 1) / 2,
        "min": less + 1,
        "max": less + equal,
        "dense": len({value for value in values if value < own}) + 1,
        "percent": less / len(values) if values else 0.0,
    }[method]


def rows_of(draw: random.Random, count: int, values: list[Any]) -> pa.Table:
    """Rows of two keys, some of equal time."""
    times = [draw.randrange(count) for _ in range(count)]
    arrivals = list(range(count))
    draw.shuffle(arrivals)
    return pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "k": [draw.choice("ab") for _ in times],
            "x": [draw.choice(values) for _ in times],
            "row": pa.array(range(count), pa.int64()),
            "a": pa.array(arrivals, pa.int64()),
            "w": [draw.choice([True, True, False, None]) for _ in times],
            "l": [draw.randrange(9) for _ in times],
            "m": pa.array([draw.random() < 0.2 for _ in times]),
        }
    )


def check(out: pa.Table, label: str, min_rows: int = 0) -> None:
    """Compares the ranks of rows with those among the rows that `collect` found."""
    rows = {row["row"]: row for row in out.to_pylist()}
    for row in rows.values():
        held = row[f"held_{label}"] or []
        seen = [rows[n]["x"] for n in held]
        others = [rows[n]["x"] for n in held if n != row["row"]]
        count = sum(x is not None for x in seen)
        for method in RANKS:
            found, want = row[f"{method}_{label}"], meant(row["x"], others, method)
            want = want if count >= max(min_rows, 1) else None
            assert found == want, (method, row, seen)
            exact = method not in ("average", "percent")
            assert found is None or type(found) is (int if exact else float)


INTEGERS = [None, *range(6), 2**62, -(2**62)]
FLOATS = [None, 0.0, -0.0, 0.1, math.nan, -math.nan, math.inf, -math.inf, 1e300]
TEXT = [None, "", "a", "b", "ba", "ä"]
WINDOWS: dict[str, dict[str, Any]] = {
    "right": {},
    "rows apart": {"ties": "rows"},
    "left": {"closed": "left"},
    "both": {"closed": "both"},
    "neither": {"closed": "neither"},
    "without self": {"exclude": "self"},
    "earlier": {"offset": 4},
    "later": {"offset": -4},
    "as of arrival": {"arrival": "a"},
    "as of arrival, without self": {"arrival": "a", "exclude": "self"},
    "at least two": {"min_rows": 2},
}


@pytest.mark.parametrize(
    "values", [INTEGERS, FLOATS, TEXT], ids=["int", "float", "text"]
)
@pytest.mark.parametrize("name", WINDOWS)
def test_ranks_are_those_among_the_rows_of_the_window(
    name: str, values: list[Any]
) -> None:
    options = WINDOWS[name]
    draw = random.Random(f"{SEED} {name} {values}")
    for count in (0, 1, 40):
        table = rows_of(draw, count, values)
        windows: list[Any] = [1, 7, 2**40]
        if not options.keys() & {"closed", "offset"}:
            windows += [sw.rows(1), sw.rows(5), sw.unbounded()]
        out = sw.rolling(table, on="t", by="k", windows=windows, aggs=AGGS, **options)
        for window in windows:
            label = str(window)
            if not isinstance(window, int):
                label = "unbounded" if window == sw.unbounded() else f"{window.n}rows"
            check(out, label, options.get("min_rows", 0))


@pytest.mark.parametrize(
    "window",
    [sw.landmark("m"), sw.delta("t", 3), sw.length("l")],
    ids=repr,
)
def test_ranks_in_windows_whose_ends_are_rows(window: Any) -> None:
    draw = random.Random(SEED)
    table = rows_of(draw, 60, INTEGERS)
    for options in ({}, {"by": "k"}):
        out = sw.rolling(table, on="t", windows=window, aggs=AGGS, **options)
        check(out, window.label)


def test_ranks_in_windows_of_a_calendar() -> None:
    draw = random.Random(SEED)
    zone = "Europe/Berlin"
    table = rows_of(draw, 80, INTEGERS)
    start = datetime(2024, 10, 20, tzinfo=UTC)
    times = [start + timedelta(hours=5 * n, minutes=n % 3) for n in range(80)]
    table = table.set_column(0, "t", pa.array(times, pa.timestamp("us", zone)))
    for window in (sw.calendar("1d", tz=zone), sw.to_date("1w", tz=zone)):
        for exclude in (None, "self"):
            out = sw.rolling(table, on="t", windows=window, aggs=AGGS, exclude=exclude)
            check(out, window.label)


def test_many_rows_and_threads() -> None:
    """Values that leave the chunk in which their ranks are known."""
    draw = random.Random(SEED)
    values = [draw.randrange(50) for _ in range(40_000)]
    times = sorted(draw.randrange(10**6) for _ in values)
    table = pa.table({"t": times, "x": values, "k": [n % 3 for n in range(len(times))]})
    aggs = {"r": sw.rank("x", "min"), "p": sw.percent_rank("x"), "n": sw.count()}
    spec = sw.Spec(on="t", by="k", windows=[3000, sw.rows(20_000)], aggs=aggs)
    out = sw.rolling(table, spec, threads=3)
    assert out.equals(sw.rolling(table, spec, threads=1))
    shifted = {
        "aggs": {"r": sw.rank("x", "min")},
        "on": "t",
        "by": "k",
        "offset": 10**5,
    }
    far = sw.rolling(table, windows=3000, **shifted)
    for at in draw.sample(range(len(times)), 40):
        for earlier, column in ((0, out["r_3000"]), (10**5, far["r_3000"])):
            end = times[at] - earlier
            seen = [
                x
                for t, x, k in zip(times, values, table["k"].to_pylist(), strict=True)
                if end - 3000 < t <= end and k == at % 3
            ]
            want = 1 + sum(x < values[at] for x in seen) if seen else None
            assert column[at].as_py() == want


def test_where_leaves_rows_out_and_their_own_ranks() -> None:
    table = pa.table({"t": range(4), "x": [5, 1, 7, 6], "w": [True, False, None, True]})
    aggs = {"r": sw.rank("x", "min", where="w")}
    out = sw.rolling(table, on="t", windows=9, aggs=aggs)
    assert out["r_9"].to_pylist() == [1, None, None, 2]
    nan = pa.table({"t": range(3), "x": [math.nan, 1.0, 2.0]})
    skipped = sw.rolling(nan, on="t", windows=9, aggs={"r": sw.rank("x")}, nan="skip")
    assert skipped["r_9"].to_pylist() == [None, 1.0, 2.0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([date(2024, 1, 2), date(2024, 1, 1), None]),
        pa.array([timedelta(2), timedelta(1), None]),
        pa.array([Decimal("1.50"), Decimal("-2.25"), None]),
        pa.array([True, False, None]),
        pa.array([2**64 - 1, 3, None], pa.uint64()),
        pa.array([b"b", b"a", None]),
        pa.array(["b", "a", None]).dictionary_encode(),
        pa.array([0.5, 0.25, None], pa.float32()),
    ],
    ids=lambda values: str(values.type),
)
def test_every_ordered_type_has_ranks(values: pa.Array) -> None:
    table = pa.table({"t": [1, 1, 1], "x": values})
    out = sw.rolling(table, on="t", windows=9, aggs=RANKS)
    assert out["average_9"].to_pylist() == [2.0, 1.0, None]
    assert out["dense_9"].to_pylist() == [2, 1, None]
    assert out["percent_9"].to_pylist() == [1.0, 0.0, None]


def test_pandas_polars_and_duckdb_agree() -> None:
    draw = random.Random(SEED)
    values = [float(draw.randrange(9)) for _ in range(300)]
    table = pa.table({"t": range(300), "x": values})
    out = sw.rolling(table, on="t", windows=sw.rows(20), aggs=RANKS)
    windows = pd.Series(values).rolling(20, min_periods=1)
    for method in ("average", "min", "max"):
        assert out[f"{method}_20rows"].to_pylist() == windows.rank(method).tolist()
    series = pl.Series(values)
    for method in METHODS:
        found = series.rolling_rank(20, method=method, min_samples=1)  # type: ignore[arg-type]
        assert out[f"{method}_20rows"].to_pylist() == found.to_list()
    # In SQL, the rows of a frame are joined to rank them by a column.
    connection = duckdb.connect()
    connection.register("held", table)
    shares = connection.sql(
        "with frames as (select o.t as own, f.t, percent_rank() over (partition by o.t "
        "order by f.x) as share from held as o join held as f on f.t > o.t - 20 and "
        "f.t <= o.t) select share from frames where own = t order by own"
    )
    assert out["percent_20rows"].to_pylist() == [one for (one,) in shares.fetchall()]


@pytest.mark.parametrize("name", WINDOWS)
def test_ranks_over_batches(name: str) -> None:
    options = {**WINDOWS[name]}
    draw = random.Random(f"{SEED} {name}")
    table = rows_of(draw, 120, INTEGERS)
    windows: list[Any] = [1, 30]
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=RANKS, **options)
    pieces = in_pieces(draw, sorted_by(table, spec), 7)
    parts = pa.concat_tables(
        rolling_batches(pieces, spec, table.schema, Order(min_rows=1))
    )
    want = sw.rolling(table, spec)
    assert parts.sort_by("row").equals(want)


@pytest.mark.parametrize("emit", ["final", "arrival"])
@pytest.mark.parametrize("exclude", [None, "self"])
def test_streams_equal_tables(emit: str, exclude: str | None) -> None:
    draw = random.Random(f"{SEED} {emit}")
    rows = rows_of(draw, 40, FLOATS).select(["t", "k", "x"])
    windows: list[Any] = [5, sw.rows(3)]
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=RANKS, exclude=exclude)
    check_stream(spec, rows, late=6, emit=emit, runs=3, seed=SEED)


@pytest.mark.parametrize("extra", [0.1, None, math.nan])
def test_an_extra_row_is_ranked_as_in_a_table(extra: float | None) -> None:
    draw, at = random.Random(SEED), 25
    rows = rows_of(draw, 40, FLOATS).select(["t", "k", "x"])
    windows: list[Any] = [5, sw.rows(3)]
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=RANKS)
    kw = sw.KeyedWindows(spec, late=99, emit="none")
    kw.ingest(rows)
    own = pa.table({"t": [at], "k": ["a"], "x": pa.array([extra], pa.float64())})
    whole = pa.concat_tables([rows, own])
    seen = whole.filter(pc.less_equal(whole["t"], at))
    want = sw.rolling(seen, spec).slice(len(seen) - 1).to_pylist()[0]
    found = kw.query("a", at=at, plus={"x": extra})
    assert found == {name: want[name] for name in found}
    keys = pa.table({"k": ["a", "b"], "x": pa.array([extra] * 2, pa.float64())})
    many = kw.query_many(keys, at=at, plus=["x"])
    assert {name: many[name][0].as_py() for name in found} == found


def test_an_extra_row_is_ranked_among_those_of_its_key() -> None:
    spec = sw.Spec(on="t", by="k", windows=10, aggs={"r": sw.rank("x", "min")})
    kw = sw.KeyedWindows(spec, late=5, emit="none")
    kw.ingest(pa.table({"t": [1, 2, 3], "k": ["a", "a", "b"], "x": [5, 7, 1]}))
    assert kw.query("a", at=4, plus={"x": 6}) == {"r_10": 2}
    assert kw.query("c", at=4, plus={"x": 6}) == {"r_10": 1}
    assert kw.query("a", at=4, plus={"x": None}) == {"r_10": None}
    with pytest.raises(sw.SpecError, match=REFUSED.replace("'x'", "'x', method='min'")):
        kw.query("a", at=4)
    with pytest.raises(sw.SpecError, match="does not tell: leave it out"):
        kw.query("a", at=4, plus={"x": 6}, valid_until=True)


def test_where_there_is_no_row_ranks_are_refused_by_name() -> None:
    table = pa.table({"t": [1, 2], "k": ["a", "b"], "x": [1, 2]})
    aggs = {"n": sw.count(), "r": sw.rank("x")}
    schema = {"t": "int64", "k": "string", "x": "int64"}
    spec = sw.Spec(on="t", by="k", windows=9, aggs=aggs)
    for refused in (
        lambda: sw.hopping(table, on="t", window=9, aggs=aggs),
        lambda: sw.hopping(table, on="t", window=sw.session(3), aggs=aggs),
        lambda: sw.rolling(table, spec, at=table),
        lambda: sw.Window(sw.rank("x")),
        lambda: sw.SharedWindow(sw.rank("x"), ranges=[3]),
        lambda: sw.KeyedWindows(spec, schema=schema, late=0, emit="update"),
        lambda: sw.KeyedWindows(spec, schema=schema, late=0, emit="change"),
    ):
        with pytest.raises(sw.SpecError, match=REFUSED):
            refused()


def test_the_method_is_checked_and_shown() -> None:
    assert repr(sw.rank("x", "dense")) == "rank('x', method='dense')"
    with pytest.raises(sw.SpecError, match="method= is 'average' or 'min'"):
        sw.rank("x", "first")
    with pytest.raises(sw.SpecError, match=r"median\(\) takes no method="):
        sw.aggregations.Aggregation("median", "x", method="min")
