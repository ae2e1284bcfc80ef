"""`only=`: some rows have the results of the whole call, and little is read."""

import datetime as dt
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_tables import AGGS, random_table, same, with_batches
from seeds import SEED
from test_batch import in_spark, timed

import slidewise as sw
from slidewise.spark import explain, hopping, rolling, skew

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
START, END = (EPOCH + dt.timedelta(milliseconds=ms) for ms in (20, 40))
COUNT: dict[str, Any] = {"n": sw.count()}
# Aggregations that do not depend on the order of rows of equal time.
ANY_ORDER = {name: AGGS[name] for name in ("n", "sum", "max", "mid", "kinds", "some")}
CALLS: list[dict[str, Any]] = [
    {"by": None},
    {"by": ["k", "g"], "closed": "left", "min_rows": 2},
    {"closed": "both", "offset": "5ms"},
    {"closed": "neither", "offset": "-7ms"},
    {"ties": "rows", "exclude": "self"},
    {"exclude": "self", "nan": "skip", "fill": {"n": -1}},
    {"arrival": ["batch", "a"]},
    {"arrival": "a", "closed": "left", "offset": "-3ms"},
    {
        "windows": ["4ms", sw.trailing("9ms", resolution="4ms")],
        "aggs": {name: AGGS[name] for name in ("n", "total", "max", "first", "all")},
    },
]
HOPS: list[dict[str, Any]] = [
    {"window": "10ms", "every": "3ms"},
    {"window": "4ms", "offset": "1ms", "closed": "right"},
    {"window": sw.cumulate("10ms", every="4ms")},
    {"windows": ["5ms", sw.Query("20ms", every="5ms")], "closed": "right"},
]


def rows_of(rng: random.Random, rows: int = 300) -> pa.Table:
    return timed(with_batches(rng, random_table(rng, rows, keys=3, span=60)))


def between(table: pa.Table, start: Any, end: Any, on: str = "t") -> pa.Table:
    kind = table.schema.field(on).type
    if start is not None:
        table = table.filter(pc.greater_equal(table[on], pa.scalar(start, kind)))
    if end is not None:
        table = table.filter(pc.less(table[on], pa.scalar(end, kind)))
    return table


def expect_same(frame: Any, expected: pa.Table) -> None:
    assert len(expected)
    got = frame.toArrow()
    same(got, expected.cast(got.schema))


def expect_same_windows(frame: Any, expected: pa.Table, by: list[str]) -> None:
    names = [name for name in (*by, "window_end", "window") if name in frame.columns]
    order = [(name, "ascending") for name in names]
    got, expected = frame.toArrow().sort_by(order), expected.sort_by(order)
    assert len(got) == len(expected) > 0
    numbers = pa.array(range(len(got)), pa.int64())
    got = got.append_column("row", numbers)
    same(got, expected.append_column("row", numbers).cast(got.schema))


@pytest.mark.parametrize("more", CALLS, ids=str)
def test_rows_of_a_range_have_the_results_of_the_whole_call(
    spark: Any, more: dict[str, Any]
) -> None:
    table = rows_of(random.Random(f"{SEED} {more}"))
    call: dict[str, Any] = {
        "on": "t",
        "by": "k",
        "windows": ["1ms", "9ms"],
        "aggs": AGGS,
        **more,
    }
    frame = rolling(in_spark(spark, table), then_by="row", only=(START, END), **call)
    arrived = {"at": table} if "arrival" in more else {}
    expect_same(frame, between(sw.rolling(table, **call, **arrived), START, END))


@pytest.mark.parametrize("hops", HOPS, ids=str)
def test_windows_of_a_range_have_the_results_of_the_whole_call(
    spark: Any, hops: dict[str, Any]
) -> None:
    table = rows_of(random.Random(f"{SEED} {hops}"))
    call: dict[str, Any] = {"on": "t", "by": ["k", "g"], "aggs": AGGS, **hops}
    frame = hopping(in_spark(spark, table), then_by="row", only=(START, END), **call)
    tick = dt.timedelta(microseconds=0 if "closed" in hops else 1)
    expected = between(
        sw.hopping(table, **call), START + tick, END + tick, "window_end"
    )
    expect_same_windows(frame, expected, ["k", "g"])


@pytest.mark.parametrize("more", [{}, {"offset": "-7ms", "closed": "left"}], ids=str)
def test_ranges_of_skewed_keys(
    spark: Any, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS_EXPLICIT", 20)
    table = rows_of(random.Random(f"{SEED} {more}"), rows=500)
    df, only = in_spark(spark, table), (START, END)
    options: dict[str, Any] = {"split": 3, "partitions": 4, "only": only}
    call: dict[str, Any] = {
        "on": "t",
        "by": "k",
        "windows": ["1ms", "4ms"],
        "aggs": ANY_ORDER,
        **more,
    }
    assert " splits by time" in explain(df, **call, **options)
    expect_same(
        rolling(df, **call, **options), between(sw.rolling(table, **call), *only)
    )
    if not more:
        hops: dict[str, Any] = {
            "on": "t",
            "by": ["k"],
            "window": "4ms",
            "aggs": ANY_ORDER,
        }
        tick = dt.timedelta(microseconds=1)
        whole = sw.hopping(table, **hops)
        expected = between(whole, START + tick, END + tick, "window_end")
        expect_same_windows(hopping(df, **hops, **options), expected, ["k"])


@pytest.mark.parametrize(
    ("on", "kind", "windows", "only"),
    [
        ("day", pa.date32(), ["3d", "9d"], (dt.date(1970, 1, 21), dt.date(1970, 2, 1))),
        ("tick", pa.int8(), [3, 90], (-20, 7)),
        ("since", pa.duration("us"), "9us", (dt.timedelta(0, 0, 9), None)),
        ("local", pa.timestamp("us"), "9us", (dt.datetime(1970, 1, 1), None)),
        ("tick", pa.int64(), [2**62], (None, 9)),
    ],
)
def test_ranges_of_times_of_any_type(
    spark: Any, on: str, kind: pa.DataType, windows: Any, only: tuple[Any, Any]
) -> None:
    ticks = pa.array([n // 3 - 30 for n in range(200)], pa.int32())
    table = pa.table({on: ticks.cast(pa.int64()), "row": range(200)})
    wide = pa.int32() if on == "day" else pa.int64()
    table = table.set_column(0, on, ticks.cast(wide).cast(kind))
    call: dict[str, Any] = {"on": on, "windows": windows, "aggs": COUNT}
    expected = between(sw.rolling(table, **call), *only, on)
    assert len(expected) < len(table)
    expect_same(rolling(in_spark(spark, table), only=only, **call), expected)


def test_windows_of_a_calendar(spark: Any) -> None:
    """Across the change of clocks, and from months of 28 days to those of 31."""
    hours = pa.array(range(24 * 75), pa.int64())
    first = int(dt.datetime(2026, 2, 1, tzinfo=dt.UTC).timestamp()) * 1_000_000
    times = pc.add(pc.multiply(hours, 3_600_000_000), first)
    table = pa.table({"t": times.cast(pa.timestamp("us", "UTC")), "row": hours})
    start = dt.datetime(2026, 3, 28, 12, tzinfo=dt.UTC)
    only = start, start + dt.timedelta(days=3)
    zone = "Europe/Berlin"
    units = [sw.calendar("1mo", tz=zone), sw.to_date("1mo"), sw.to_date("1d", tz=zone)]
    call: dict[str, Any] = {"on": "t", "windows": units, "aggs": COUNT}
    df = in_spark(spark, table)
    expected = between(sw.rolling(table, **call), *only)
    expect_same(rolling(df, only=only, **call), expected)
    days: dict[str, Any] = {"on": "t", "every": sw.calendar("1d", tz=zone)}
    days["aggs"] = COUNT
    expected = between(sw.hopping(table, **days), *only, "window_end")
    expect_same_windows(hopping(df, only=only, **days), expected, [])


@pytest.mark.parametrize("more", [{"offset": "-3ms"}, {"arrival": "a"}], ids=str)
def test_rows_of_a_condition_have_the_results_of_the_whole_call(
    spark: Any, more: dict[str, Any]
) -> None:
    """Not those of one range: rows that are not asked for lie between them."""
    table = rows_of(random.Random(f"{SEED} {more}"))
    call: dict[str, Any] = {
        "on": "t",
        "by": "k",
        "windows": ["1ms", "9ms"],
        "aggs": AGGS,
        **more,
    }
    arrived = {"at": table} if "arrival" in more else {}
    whole = sw.rolling(table, **call, **arrived)
    middle = between(whole, START, END)
    expected = middle.filter(pc.fill_null(pc.equal(middle["g"], "a"), False))
    df = in_spark(spark, table)
    milliseconds = "unix_millis(t) >= 20 and unix_millis(t) < 40 and g = 'a'"
    asked = rolling(df, only=milliseconds, then_by="row", **call)
    assert asked.columns == whole.column_names
    expect_same(asked, expected)
    assert not rolling(df, only=df.row < 0, then_by="row", **call).count()


@pytest.mark.parametrize("condition", [False, True])
def test_features_of_a_range(spark: Any, condition: bool) -> None:
    """Each Spec sees all that was read, not what another one answered."""
    table = rows_of(random.Random(SEED))
    one = sw.Spec(on="t", by="k", windows="9ms", aggs=ANY_ORDER)
    features = sw.Features(k=one, g=one.replace(by="g", windows="20ms"))
    df = in_spark(spark, table)
    only = df.row < 40 if condition else (START, END)
    whole = sw.rolling(table, features)
    expected = between(whole, START, END)
    if condition:
        expected = whole.filter(pc.less(whole["row"], 40))
    expect_same(rolling(df, features, only=only), expected)


def test_labels_of_a_range(spark: Any) -> None:
    rng = random.Random(SEED)
    table, at = rows_of(rng), rows_of(rng).select(["k", "t", "row"])
    call: dict[str, Any] = {
        "on": "t",
        "by": "k",
        "windows": ["2ms", "9ms"],
        "aggs": ANY_ORDER,
    }
    at = at.rename_columns(["k", "due", "row"])
    labels: dict[str, Any] = {
        "at": in_spark(spark, at),
        "at_on": "due",
        "only": (START, END),
    }
    df = in_spark(spark, table)
    expected = sw.rolling(table, at=at, at_on="due", **call)
    expect_same(rolling(df, **call, **labels), between(expected, START, END, "due"))
    assert "  answers labels with 1970-01-01" in explain(df, **call, **labels)


def test_markers_and_deleted_rows_of_a_range(spark: Any) -> None:
    table = rows_of(random.Random(SEED))
    call: dict[str, Any] = {"on": "t", "by": "k", "windows": "9ms", "aggs": ANY_ORDER}
    options: dict[str, Any] = {"marker": "m", "deletes": "d", "then_by": "row"}
    df = in_spark(spark, table).selectExpr("*", "row % 9 = 0 m", "row % 7 = 0 d")
    whole = rolling(df, **call, **options).toArrow()
    part = rolling(df, **call, **options, only=(START, END))
    expect_same(part, between(whole, START, END))


def test_what_is_read_is_a_filter_of_the_source(spark: Any, tmp_path: Path) -> None:
    """Of row groups by times, of folders where times are those of partitions."""
    df = spark.range(40).selectExpr("date_add(date'2026-01-01', int(id)) day", "id")
    df.selectExpr("*", "timestamp(day) t").write.partitionBy("day").parquet(
        str(tmp_path / "rows")
    )
    df = spark.read.parquet(str(tmp_path / "rows"))
    day = dt.date(2026, 1, 20)
    start = dt.datetime(2026, 1, 20, tzinfo=dt.UTC)
    call: dict[str, Any] = {"windows": "7d", "aggs": COUNT}
    name = "spark.sql.maxMetadataStringLength"
    spark.conf.set(name, "1000")
    try:
        range_of_days = day, day + dt.timedelta(days=1)
        by_day = rolling(df, on="day", only=range_of_days, **call)
        range_of_times = start, start + dt.timedelta(days=1)
        by_time = rolling(df, on="t", only=range_of_times, **call)
        asked = rolling(df, on="t", only=f"day = '{day}'", **call)
        plans = [
            frame._jdf.queryExecution().toString() for frame in (by_day, by_time, asked)
        ]
    finally:
        spark.conf.unset(name)
    assert re.search(r"PartitionFilters: \[.*>= 2026-01-13.*< 2026-01-21", plans[0])
    pushed = "And(GreaterThanOrEqual(t,2026-01-13 00:00:00.0),LessThan(t,2026-01-21 "
    assert pushed in plans[1].partition("PushedFilters: ")[2]
    assert re.search(r"PartitionFilters: \[.*= 2026-01-20", plans[2])
    for frame in (by_day, by_time, asked):
        assert [(row.day, row.n_7d) for row in frame.collect()] == [(day, 7)]


def test_a_call_runs_no_job(spark: Any) -> None:
    df = in_spark(spark, rows_of(random.Random(5)))
    call: dict[str, Any] = {"on": "t", "by": "k", "windows": "9ms", "aggs": COUNT}
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("only", "")
    for only in ((START, END), "row < 7"):
        rolling(df, only=only, **call)
        explain(df, only=only, **call)
    assert not tracker.getJobIdsForGroup("only")


def test_rows_that_are_read_alone_raise_nothing(spark: Any) -> None:
    """The sum of a window of which a part is read may be beyond int64."""
    rows = [(0, -(2**62)), (2, 2**62), (3, 2**62), (6, -(2**62)), (7, 5)]
    df = spark.createDataFrame(rows, "t long, x long")
    call: dict[str, Any] = {"on": "t", "windows": 5, "aggs": {"s": sw.sum("x")}}
    (whole,) = rolling(df, **call).where("t = 7").collect()
    for only in ((7, 8), "t = 7"):
        assert rolling(df, only=only, **call).collect() == [whole]
    hops: dict[str, Any] = {"on": "t", "window": 8, "every": 4}
    hops["aggs"] = call["aggs"]
    (window,) = hopping(df, **hops).where("window_end = 12").collect()
    assert hopping(df, only=(10, 12), **hops).collect() == [window]


def test_a_missing_time_fails_the_job(spark: Any) -> None:
    df = spark.createDataFrame([(1,), (None,), (70,)], "t long")
    for only in ((60, 80), "t > 60"):
        frame = rolling(df, on="t", windows=4, aggs=COUNT, only=only)
        with pytest.raises(Exception, match="column 't' has no time in the row of"):
            frame.collect()


UNBOUNDED: list[tuple[Any, dict[str, Any], str]] = [
    (rolling, {"windows": sw.rows(3), "then_by": "row"}, "the rows of rows\\(3\\) may"),
    (rolling, {"windows": sw.unbounded()}, "the rows of unbounded\\(\\) may be at any"),
    (
        rolling,
        {"windows": sw.landmark("w"), "then_by": "row"},
        "'landmark_w' may begin",
    ),
    (hopping, {"window": sw.session("3ms")}, "may begin at any earlier row"),
    (hopping, {"window": "3ms", "empty": True}, "empty=True needs the rows on both"),
]


@pytest.mark.parametrize(("call", "more", "message"), UNBOUNDED)
def test_windows_that_may_hold_any_earlier_row_are_refused(
    spark: Any, call: Any, more: dict[str, Any], message: str
) -> None:
    df = in_spark(spark, rows_of(random.Random(1), rows=9))
    with pytest.raises(sw.SpecError, match=message):
        call(df, on="t", aggs=COUNT, only=(START, END), **more)


def test_wrong_rows_to_answer_are_refused(spark: Any) -> None:
    df = in_spark(spark, rows_of(random.Random(1), rows=9))
    call: dict[str, Any] = {"on": "t", "windows": "3ms", "aggs": COUNT}
    carried = {"area": sw.time_weighted_mean("x")}
    for only, message in (
        (7, "only=7 is neither a range of time"),
        ((None, None), "is neither a range of time"),
        ((END, START), "has no time: its start is not before its end"),
        ((dt.date(2026, 1, 1), None), "only= .* give a datetime with a zone"),
    ):
        with pytest.raises(sw.SpecError, match=message):
            rolling(df, only=only, **call)
    with pytest.raises(sw.SpecError, match="edge='carry' takes the last"):
        rolling(df, only=(START, END), **{**call, "aggs": carried, "then_by": "row"})
    with pytest.raises(sw.SpecError, match="the results are those of windows"):
        hopping(df, on="t", window="3ms", aggs=COUNT, only="row < 3")
    with pytest.raises(sw.SpecError, match="the results are those of labels"):
        rolling(df, at=df, only="row < 3", **call)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(sw.SpecError, match="leave it out for a stream"):
        rolling(stream, on="timestamp", windows="3ms", aggs=COUNT, late="1s", only="x")


def test_the_plan_says_what_is_answered_and_read(spark: Any) -> None:
    df = in_spark(spark, rows_of(random.Random(1), rows=9))
    call: dict[str, Any] = {"on": "t", "windows": ["3ms", "9ms"], "aggs": COUNT}
    call["offset"] = "1ms"
    text = explain(df, only=(START, END), **call)
    assert "\n  answers rows with 1970-01-01 00:00:00.020000+00:00 <= t < " in text
    assert "\n  reads rows with 1970-01-01 00:00:00.010000+00:00 <= t < 1970" in text
    text = explain(df, only="row < 3", **call)
    assert "\n  answers rows where row < 3\n  reads t from 10ms before the " in text
    text = explain(df, on="t", window="9ms", aggs=COUNT, only=(START, None))
    assert (
        "\n  answers windows with 1970-01-01 00:00:00.020000+00:00 < window_end\n"
        in text
    )
