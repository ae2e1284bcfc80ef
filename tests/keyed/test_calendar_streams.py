"""Streams of calendar and unbounded windows, against tables."""

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from calendars import start_before, start_of_unit
from seeds import SEED

import slidewise as sw
from slidewise.testing import check_stream

AGGS = {
    "folds": {"s": sw.sum("x"), "c": sw.count(), "mean": sw.mean("x")},
    "rows": {"all": sw.collect("n"), "median": sw.median("x"), "f": sw.first("n")},
}
ZONES = ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", None]


def rows_of(draw, count):
    """Rows of keys in 75 days around a change of the offset, some of equal time."""
    begin = datetime(2024, draw.choice([1, 3, 10]), 20, tzinfo=UTC)
    hours = [draw.randrange(24 * 75 * 4) for _ in range(count)]
    times = [begin + timedelta(minutes=15 * hour) for hour in hours]
    return pa.table(
        {
            "t": pa.array(times, pa.timestamp("us", "UTC")),
            "k": [draw.choice("ab") for _ in times],
            "x": [draw.choice([None, *range(9)]) for _ in times],
            "n": range(count),
        }
    )


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("kind", [*AGGS])
@pytest.mark.parametrize("seed", range(6))
def test_streams_equal_tables(emit, kind, seed):
    draw = random.Random(f"{SEED} {emit} {kind} {seed}")
    unit, zone = draw.choice(["1d", "1w", "1mo", "1q", "1y"]), draw.choice(ZONES)
    windows = draw.choice(
        [
            [sw.calendar(unit, tz=zone)],
            [sw.to_date(unit, tz=zone)],
            [sw.unbounded()],
            [sw.calendar(unit, tz=zone), sw.to_date(unit), "3d", sw.unbounded()],
        ]
    )
    closed = draw.choice(["right", "left"])
    ties = "peers" if closed == "left" else draw.choice(["peers", "rows"])
    spec = sw.Spec(
        on="t", by="k", windows=windows, aggs=AGGS[kind], closed=closed, ties=ties
    )
    rows = rows_of(draw, draw.choice([5, 40, 120]))
    late = draw.choice(["1d", "40d", "0s"])
    check_stream(spec, rows, late=late, emit=emit, runs=2, seed=seed)


@pytest.mark.parametrize("kind", [*AGGS])
@pytest.mark.parametrize("seed", range(6))
def test_streams_of_units(kind, seed):
    draw = random.Random(f"{SEED} {kind} {seed}")
    calendar = sw.calendar(draw.choice(["1d", "1w", "1mo"]), tz=draw.choice(ZONES))
    windows = draw.choice([{"every": calendar}, {"windows": [calendar, "36h"]}])
    if draw.random() < 0.3:
        windows = {"windows": [calendar, sw.Query("3d", every="1d")]}
    spec = sw.Spec(on="t", by="k", aggs=AGGS[kind], **windows)
    rows = rows_of(draw, draw.choice([5, 40, 120]))
    check_stream(spec, rows, late=draw.choice(["1d", "40d", "0s"]), runs=2, seed=seed)


def test_queries_of_many_times_of_a_key():
    """Starts that go back, and windows of which now one is longer, now another."""
    draw = random.Random(SEED)
    begin = datetime(2024, 2, 20, tzinfo=UTC)
    times = sorted(
        begin + timedelta(minutes=draw.randrange(90_000)) for _ in range(900)
    )
    numbers = range(len(times))
    rows = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "n": numbers})
    zone = "America/New_York"
    windows = [sw.calendar("1mo", tz=zone), sw.to_date("1mo", tz=zone), "14d"]
    windows += [sw.calendar("1d", tz=zone), sw.to_date("1d", tz=zone), "1d"]
    aggs = {"s": sw.sum("n"), "c": sw.count(), "first": sw.min("n")}
    streamed = sw.KeyedWindows(on="t", windows=windows, aggs=aggs, keep="400d")
    streamed.ingest(rows)
    points = [begin + timedelta(hours=6 * n) for n in range(280)]
    asked = pa.table({"t": pa.array(points, pa.timestamp("us", "UTC"))})
    answers = streamed.query_many(asked, at="t")
    assert answers == sw.rolling(rows, on="t", windows=windows, aggs=aggs, at=asked)
    starts = [start_before(at, "1mo", zone) for at in points]
    assert answers["c_calendar_1mo"].to_pylist() == [
        sum(start < at <= end for at in times)
        for start, end in zip(starts, points, strict=True)
    ]
    starts = [start_of_unit(at, "1d", zone) for at in points]
    assert answers["c_to_date_1d"].to_pylist() == [
        sum(start <= at <= end for at in times)
        for start, end in zip(starts, points, strict=True)
    ]


def test_snapshots_and_late_rows_that_correct():
    draw = random.Random(SEED)
    rows = rows_of(draw, 60).sort_by("t")
    windows = [sw.calendar("1mo", tz="Europe/Berlin"), sw.unbounded()]
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=AGGS["folds"])
    late = rows.take([20])
    others = rows.filter([n != 20 for n in range(60)])
    streamed = sw.KeyedWindows(spec, late_rows="correct")
    streamed.ingest(others.slice(0, 40))
    streamed = sw.KeyedWindows.from_bytes(streamed.to_bytes(), spec)
    streamed.ingest(others.slice(40))
    streamed.ingest(late)
    streamed.advance()
    last = {row["n"]: row for row in streamed.collect().to_pylist()}
    want = sw.rolling(rows, spec)
    for row in want.to_pylist():
        found = last[row["n"]]
        assert {name: found[name] for name in want.column_names} == row


def test_what_a_calendar_cannot_tell():
    months = {"on": "t", "every": sw.calendar("1mo"), "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="empty=True for calendar"):
        sw.KeyedWindows(**months, empty=True)
    windows = sw.calendar("1mo")
    given = {"on": "t", "windows": windows, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match=r"emit='change'.*varies"):
        sw.KeyedWindows(**given, emit="change")
    streamed = sw.KeyedWindows(**given)
    streamed.ingest(pa.table({"t": pa.array([1], pa.timestamp("s"))}))
    with pytest.raises(sw.SpecError, match=r"valid_until=True.*varies"):
        streamed.query((), valid_until=True)
    assert streamed.query((), windows="1d") == {"n_1d": 1}
