"""Windows that leave their own row out, against the definition."""

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from calendars import start_before
from seeds import SEED

import slidewise as sw
from slidewise.testing import check_stream

AGGS = {
    "all": sw.collect("n"),
    "c": sw.count(),
    "s": sw.sum("x"),
    "f": sw.sum("y"),
    "low": sw.min("x"),
    "first": sw.first("n"),
    "most": sw.arg_max("n", by="x"),
    "median": sw.median("x"),
    "mode": sw.mode("x"),
    "distinct": sw.count_distinct("x"),
    "sd": sw.stddev("x"),
}


def rows_of(draw, count, density):
    """Rows of two keys; the lower the density, the fewer have equal times."""
    times = [draw.randrange(count * density + 1) for _ in range(count)]
    return pa.table(
        {
            "t": times,
            "k": [draw.choice("ab") for _ in times],
            "x": [draw.choice([None, *range(9)]) for _ in times],
            "y": [draw.choice([None, 0.5, 1.25, -3.0]) for _ in times],
            "n": range(count),
            "flag": [draw.random() < 0.2 for _ in times],
            "a": [draw.randrange(count) for _ in times],
        }
    )


def others(rows, window, closed, ties, *, arrival=False, offset=0):
    """Per row the numbers of the other rows in its window, in order."""
    key = (
        (lambda r: (r["t"], r["a"], r["n"]))
        if arrival
        else (lambda r: (r["t"], r["n"]))
    )
    ordered = sorted(rows, key=key)
    found = []
    for own in rows:
        seen = [
            r
            for r in ordered
            if r["k"] == own["k"] and (not arrival or r["a"] <= own["a"])
        ]
        if isinstance(window, int):
            end, held = own["t"] - offset, []
            for r in seen:
                after = r["t"] > end - window or (
                    closed in ("left", "both") and r["t"] == end - window
                )
                before = r["t"] < end or (closed in ("right", "both") and r["t"] == end)
                late = ties == "rows" and r["t"] == own["t"] and r["n"] > own["n"]
                if after and before and not late and r is not own:
                    held.append(r["n"])
        else:
            before = seen if arrival else seen[: seen.index(own)]
            held = [r["n"] for r in before if r is not own][-window.n :]
        found.append(held)
    return found


def check(out, label, numbers, rows):
    assert out[f"all_{label}"].to_pylist() == numbers
    assert out[f"c_{label}"].to_pylist() == [len(each) for each in numbers]
    values = [[rows[n]["x"] for n in each] for each in numbers]
    values = [[x for x in each if x is not None] for each in values]
    assert out[f"s_{label}"].to_pylist() == [sum(v) if v else None for v in values]
    assert out[f"low_{label}"].to_pylist() == [min(v, default=None) for v in values]
    assert out[f"distinct_{label}"].to_pylist() == [len({*v}) for v in values]
    assert out[f"median_{label}"].to_pylist() == [
        None if not v else (sorted(v)[(len(v) - 1) // 2] + sorted(v)[len(v) // 2]) / 2
        for v in values
    ]
    floats = [[rows[n]["y"] for n in each] for each in numbers]
    floats = [[y for y in each if y is not None] for each in floats]
    assert out[f"f_{label}"].to_pylist() == [sum(v) if v else None for v in floats]
    assert out[f"first_{label}"].to_pylist() == [n[0] if n else None for n in numbers]
    most = []
    for each in numbers:
        held = [n for n in each if rows[n]["x"] is not None]
        most.append(max(held, key=lambda n: rows[n]["x"], default=None))
    assert out[f"most_{label}"].to_pylist() == most


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("ties", ["peers", "rows"])
@pytest.mark.parametrize("seed", range(6))
def test_the_others_of_a_window(closed, ties, seed):
    if ties == "rows" and closed in ("left", "neither"):
        ties = "peers"
    draw = random.Random(f"{SEED} {closed} {ties} {seed}")
    count = draw.choice([1, 2, 63, 64, 65, 300])
    table = rows_of(draw, count, draw.choice([0, 1, 10]))
    rows = table.to_pylist()
    given = {"on": "t", "by": "k", "aggs": AGGS, "closed": closed, "ties": ties}
    given |= {"exclude": "self", "threads": draw.choice([1, 2])}
    windows = [1, draw.randrange(2, 40)]
    out = sw.rolling(table, windows=windows, **given)
    for window in windows:
        check(out, window, others(rows, window, closed, ties), rows)
    if closed == "right":
        three = sw.rows(3)
        out = sw.rolling(table, windows=three, **given)
        check(out, "3rows", others(rows, three, closed, ties), rows)
        out = sw.rolling(table, windows=9, offset=2, **given | {"ties": "peers"})
        check(out, 9, others(rows, 9, closed, "peers", offset=2), rows)


@pytest.mark.parametrize("seed", range(6))
def test_as_of_arrival(seed):
    draw = random.Random(f"{SEED} {seed}")
    table = rows_of(draw, draw.choice([1, 65, 200]), draw.choice([0, 1, 10]))
    rows = table.to_pylist()
    windows = [1, 20, sw.rows(2)]
    given = {"on": "t", "by": "k", "windows": windows, "aggs": AGGS, "arrival": "a"}
    out = sw.rolling(table, **given, exclude="self")
    for window, label in zip(windows, ["1", "20", "2rows"], strict=True):
        numbers = others(rows, window, "right", "peers", arrival=True)
        check(out, label, numbers, rows)


@pytest.mark.parametrize("seed", range(3))
def test_windows_by_position_and_of_the_calendar(seed):
    """The same as the whole window, without the row that it ends with."""
    draw = random.Random(f"{SEED} {seed}")
    table = rows_of(draw, 120, draw.choice([0, 1, 10]))
    begin = datetime(2024, 2, 25, tzinfo=UTC)
    days = [begin + timedelta(hours=9 * t) for t in table["t"].to_pylist()]
    table = table.append_column("day", pa.array(days, pa.timestamp("s", "UTC")))
    month = sw.calendar("1mo", tz="America/New_York")
    windows = [sw.landmark("flag"), month, sw.to_date("1mo"), sw.unbounded()]
    for ties in ("peers", "rows"):
        given = {"on": "day", "by": "k", "windows": windows, "ties": ties}
        given["aggs"] = {"all": sw.collect("n")}
        whole = sw.rolling(table, **given)
        out = sw.rolling(table, **given, exclude="self")
        for window in windows:
            name = f"all_{window.label}"
            assert out[name].to_pylist() == [
                [other for other in each if other != n]
                for n, each in enumerate(whole[name].to_pylist())
            ]
    assert start_before(begin, "1mo", "UTC") < begin


def test_an_own_aggregation():
    own = sw.aggregation(
        identity="",
        lift=str,
        combine=lambda earlier, later: f"{earlier} {later}".strip(),
        lower=str,
        returns=str,
    )
    table = rows_of(random.Random(SEED), 100, 1)
    aggs = {"own": own("n"), "all": sw.collect("n")}
    out = sw.rolling(table, on="t", by="k", windows=9, aggs=aggs, exclude="self")
    wanted = [" ".join(map(str, each)) or None for each in out["all_9"].to_pylist()]
    assert out["own_9"].to_pylist() == wanted


def test_integers_that_overflow_with_their_row_alone():
    """The sum of the others fits, that of the rows of earlier times does not."""
    big = 2**62
    table = pa.table({"t": [1, 1, 2, 2, 2], "x": [big, big, -big, 5, -big]})
    given = {"on": "t", "windows": 9, "aggs": {"s": sw.sum("x")}, "exclude": "self"}
    out = sw.rolling(table, **given, overflow="null")
    assert out["s_9"].to_pylist() == [big, big, big + 5, 0, big + 5]
    table = pa.table({"t": [1, 1, 1], "x": [big, big, 1]})
    with pytest.raises(sw.ResultOverflowError, match="row 2 "):
        sw.rolling(table, **given)
    out = sw.rolling(table, **given, overflow="null")
    assert out["s_9"].to_pylist() == [big + 1, big + 1, None]


@pytest.mark.parametrize("emit", ["final", "arrival"])
@pytest.mark.parametrize("seed", range(6))
def test_streams_equal_tables(emit, seed):
    draw = random.Random(f"{SEED} {emit} {seed}")
    table = rows_of(draw, draw.choice([5, 60]), draw.choice([0, 1, 10]))
    windows = draw.choice([[5], [5, 30], [sw.rows(2)], [30, sw.rows(2)]])
    aggs = draw.choice([AGGS, {"s": sw.sum("x"), "c": sw.count()}])
    spec = sw.Spec(
        on="t",
        by="k",
        windows=windows,
        aggs=aggs,
        ties=draw.choice(["peers", "rows"]),
        exclude="self",
    )
    check_stream(spec, table, late=draw.choice([0, 7]), emit=emit, runs=2, seed=seed)


def test_what_has_no_row_to_leave_out():
    table = pa.table({"t": [1, 1, 4], "x": [1, 2, 4]})
    given = {"on": "t", "windows": 5, "aggs": {"s": sw.sum("x")}, "exclude": "self"}
    labels = pa.table({"t": [1, 4]})
    assert sw.rolling(table, **given, at=labels)["s_5"].to_pylist() == [3, 7]
    stream = sw.KeyedWindows(**given)
    stream.ingest(table)
    assert stream.query((), at=4) == {"s_5": 7}
    assert stream.query((), at=4, plus={"x": 8}) == {"s_5": 15}
    for emit in ("update", "change"):
        with pytest.raises(sw.SpecError, match=r"exclude='self'.*emit="):
            sw.KeyedWindows(**given, emit=emit)
    with pytest.raises(sw.SpecError, match=r"exclude='self'.*offset=-2"):
        sw.rolling(table, **given, offset=-2)
    with pytest.raises(sw.SpecError, match=r"exclude= is one of self"):
        sw.rolling(table, **given | {"exclude": "row"})
    spec = sw.Spec(**given)
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert spec.hash != sw.Spec(**given | {"exclude": None}).hash
