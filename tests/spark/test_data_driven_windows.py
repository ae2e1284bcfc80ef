"""Windows whose ends are rows, or several, on batch and streaming DataFrames."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from streams import LATE, FileSource, assert_same, read, start, written

import slidewise as sw
from slidewise.spark import explain, hopping, rolling

AGGS = {"n": sw.count(), "all": sw.collect("x"), "top": sw.max("x")}


def made(seed: int) -> pa.Table:
    """Rows in any order; `d` rises over all of them in order of time."""
    rng = random.Random(seed)
    count = 120
    times = [rng.randrange(60) for _ in range(count)]
    risen = {}
    value = 0
    for row in sorted(range(count), key=lambda row: times[row]):
        value += rng.choice([0, 1, 3])
        risen[row] = value
    return pa.table(
        {
            "row": range(count),
            "t": pc.multiply(pa.array(times), 1000).cast(pa.timestamp("us", "UTC")),
            "k": [rng.choice(["a", "b", None]) for _ in times],
            "x": [rng.choice([None, *range(9)]) for _ in times],
            "f": [rng.choice([None, False, False, True]) for _ in times],
            "d": [float(risen[row]) for row in range(count)],
        }
    )


def in_spark(spark: Any, table: pa.Table) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table, from_arrow_schema(table.schema, True))


@pytest.mark.parametrize("by", [None, "k"])
def test_rolling_is_that_of_the_table(spark: Any, by: Any) -> None:
    table = made(1)
    windows = [sw.landmark("f"), sw.delta("d", 5.0), "9ms", sw.rows(4)]
    call: dict[str, Any] = {"on": "t", "by": by, "windows": windows, "aggs": AGGS}
    frame = rolling(in_spark(spark, table), then_by="row", **call)
    got = frame.toArrow().sort_by("row")
    assert got.to_pylist() == sw.rolling(table, **call).cast(got.schema).to_pylist()


def test_calendars_and_others_are_those_of_the_table(spark: Any) -> None:
    """Windows of the calendar, from the first row on, and without their row."""
    table = made(4)
    days = pc.multiply(table["t"].cast("int64"), 40_000_000)
    table = table.set_column(1, "t", days.cast(pa.timestamp("us", "UTC")))
    zone = "America/New_York"
    windows = [sw.calendar("1mo", tz=zone), sw.to_date("1w"), sw.unbounded(), "9d"]
    all_changes: list[dict[str, Any]] = [
        {},
        {"exclude": "self"},
        {"arrival": "row", "exclude": "self"},
        {"windows": [sw.rows(3), "9d"], "closed": "left"},
        {"windows": sw.rows(3), "offset": sw.rows(2)},
        {"windows": sw.trailing("9d", resolution="2d")},
    ]
    for changes in all_changes:
        call: dict[str, Any] = {"on": "t", "by": "k", "windows": windows, "aggs": AGGS}
        call |= changes
        frame = rolling(in_spark(spark, table), then_by="row", **call)
        got = frame.toArrow().sort_by("row")
        assert got.to_pylist() == sw.rolling(table, **call).cast(got.schema).to_pylist()


WINDOWS: list[dict[str, Any]] = [
    {"window": sw.until("f")},
    {"window": sw.rows(5), "every": sw.rows(3)},
    {"window": "9ms", "every": sw.rows(2)},
    {"window": "9ms", "every": "4ms", "closed": "right"},
    {"window": "2w", "every": "1w"},
    {"every": sw.calendar("1d", tz="Asia/Kolkata")},
    {"window": sw.cumulate("9ms", every="4ms")},
    {
        "windows": [
            "9ms",
            sw.until("f"),
            sw.Query("20ms", every="5ms"),
            sw.session("3ms"),
        ]
    },
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_hopping_is_that_of_the_table(spark: Any, window: dict[str, Any]) -> None:
    table = made(2)
    call: dict[str, Any] = {"on": "t", "by": "k", "aggs": AGGS, **window}
    frame = hopping(in_spark(spark, table), then_by="row", **call)
    got = frame.toArrow()
    expected = sw.hopping(table, **call).cast(got.schema)
    assert sorted(map(str, got.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_weeks_begin_on_mondays(spark: Any) -> None:
    frame = hopping(
        in_spark(spark, made(2)), on="t", window="1w", aggs={"n": sw.count()}
    )
    begins = frame.toArrow()["window_start"].to_pylist()
    assert [f"{begin:%A %Y-%m-%d}" for begin in begins] == ["Monday 1969-12-29"]


def test_then_by_is_required() -> None:
    with pytest.raises(sw.SpecError, match="window 'until_f' depends on the order"):
        hopping(on="t", window=sw.until("f"), aggs={"n": sw.count()})


def test_explain_states_that_keys_are_held(spark: Any) -> None:
    frame = in_spark(spark, made(3))
    call: dict[str, Any] = {"on": "t", "by": "k", "aggs": AGGS, "then_by": "row"}
    text = explain(frame, windows=sw.landmark("f"), **call)
    assert "all rows of one key: its windows may begin at any of them" in text
    assert "the window 'landmark_f' may begin at any earlier row" in text


STREAMED: dict[str, dict[str, Any]] = {
    "until": {"window": sw.until("f")},
    "by rows": {"window": sw.rows(7), "every": sw.rows(3)},
    "range by rows": {"window": "40s", "every": sw.rows(2)},
    "so far": {"window": sw.cumulate("1m", every="20s")},
    "several": {"windows": ["40s", sw.Query("2m", every="20s")], "closed": "right"},
}


def flagged(batch: pa.Table) -> pa.Table:
    """A batch of a source with flags, some of them null."""
    flag = pc.equal(pc.bit_wise_and(batch["x"], 3), 0)
    return batch.append_column("f", flag)


@pytest.mark.parametrize("name", STREAMED)
def test_streams_answer_as_the_table(spark: Any, tmp_path: Path, name: str) -> None:
    """Two runs of the query give the answers up to the watermark."""
    source = FileSource(tmp_path, 7, LATE)
    call: dict[str, Any] = {"on": "t", "by": "key", "aggs": AGGS, **STREAMED[name]}
    for _ in range(2):
        source.write(3)
        rows = read(spark, tmp_path).selectExpr("*", "x & 3 = 0 AS f")
        answers = hopping(rows, **call, late=LATE, then_by="id")
        start(answers, tmp_path, "out").awaitTermination()
    table = flagged(pa.concat_tables(source.accepted()).sort_by("id"))
    expected = sw.hopping(table, **call)
    over = pc.less_equal(expected["window_end"], source.watermark(6))
    ours = written(spark, tmp_path, "out")
    expected = expected.filter(over).cast(ours.schema)
    assert len(expected) > 60
    by = [name for name in ("key", "window", "window_end") if name in ours.column_names]
    assert_same(ours, expected, [*by, "n"])


def test_streams_roll_as_the_table(spark: Any, tmp_path: Path) -> None:
    source = FileSource(tmp_path, 9, LATE)
    windows = [sw.landmark("f"), sw.delta("t", "40s"), "30s", sw.rows(4)]
    windows += [sw.unbounded(), sw.to_date("1d", tz="Asia/Kolkata")]
    windows += [sw.trailing("30s", resolution="20s")]
    call: dict[str, Any] = {"on": "t", "by": "key", "aggs": AGGS, "windows": windows}
    for _ in range(2):
        source.write(3)
        rows = read(spark, tmp_path).selectExpr("*", "x & 3 = 0 AS f")
        answers = rolling(rows, **call, late=LATE, then_by="id")
        start(answers, tmp_path, "out").awaitTermination()
    table = flagged(pa.concat_tables(source.accepted()).sort_by("id"))
    expected = sw.rolling(table.drop_columns("batch"), **call)
    expected = expected.filter(pc.less_equal(expected["t"], source.watermark(6)))
    ours = written(spark, tmp_path, "out")
    assert len(expected) > 60
    assert_same(ours, expected.cast(ours.schema), ["id"])


@pytest.mark.parametrize("hops", [False, True])
def test_streams_begin_windows_with_the_entry_before(
    spark: Any, tmp_path: Path, hops: bool
) -> None:
    source = FileSource(tmp_path, 11, LATE)
    aggs = {"n": sw.count(), "a": sw.integral("x"), "l": sw.time_weighted_mean("y")}
    call: dict[str, Any] = {"on": "t", "by": "key", "aggs": aggs}
    call |= {"window": "9s", "every": "3s"} if hops else {"windows": ["4s", "30s"]}
    of_stream, of_table = (hopping, sw.hopping) if hops else (rolling, sw.rolling)
    for _ in range(2):
        source.write(3)
        answers = of_stream(read(spark, tmp_path), **call, late=LATE, then_by="id")
        start(answers, tmp_path, "out").awaitTermination()
    ours = written(spark, tmp_path, "out")
    table = pa.concat_tables(source.accepted()).sort_by("id").drop_columns("batch")
    expected = of_table(table, **call).cast(ours.schema)
    end, by = ("window_end", ["key", "window_end"]) if hops else ("t", ["id"])
    expected = expected.filter(pc.less_equal(expected[end], source.watermark(6)))
    assert len(expected) > 60
    assert_same(ours, expected, by)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (
        rolling,
        {"windows": sw.landmark("f"), "emit": "update"},
        "emit='update' does not",
    ),
    (rolling, {"windows": sw.delta("d", 5.0), "late_rows": "correct"}, "late row may"),
    (hopping, {"window": sw.until("f"), "late_rows": "correct"}, "a late row of the"),
    (hopping, {"windows": ["9ms", sw.session("1s")]}, "beside other windows"),
]


@pytest.mark.parametrize(("call", "window", "message"), REFUSED)
def test_streams_refuse_results_that_cannot_be_retracted(
    spark: Any, call: Any, window: dict[str, Any], message: str
) -> None:
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr(
        "timestamp AS t", "value AS row", "true AS f", "0.0 AS d"
    )
    with pytest.raises(sw.SpecError, match=message):
        call(on="t", aggs={"n": sw.count()}, then_by="row", late="1s", **window)(stream)
