"""Streams of given files, compared with the table of all their rows."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streams import assert_same, start, written

import slidewise as sw
from slidewise.spark import hopping, rolling

pytest.importorskip("pyspark.sql.functions", reason="slidewise[spark]")

DAY = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)


def put(folder: Path, batches: list[pa.Table]) -> None:
    """Adds a file per micro-batch after the existing ones."""
    place = folder / "in"
    place.mkdir(exist_ok=True)
    for at, batch in enumerate(batches, start=len(list(place.iterdir()))):
        path = place / f"{at:04}.parquet"
        pq.write_table(batch, path)
        os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))


def stream(spark: Any, folder: Path) -> Any:
    """The rows of the files."""
    schema = spark.read.parquet(str(folder / "in")).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / "in"))


def test_hops_without_a_count_of_rows(spark: Any, tmp_path: Path) -> None:
    """Weeks have five days of 5,000 rows: more than a page per key.

    Other aggregations: tests/keyed/test_keyed_hops.py.
    """
    aggs = {"total": sw.sum("x"), "top": sw.max("x")}
    days = [DAY + dt.timedelta(day) for day in range(28)]
    days = [day for day in days if day.weekday() < 5 for _ in range(5000)]
    table = pa.table({"t": days, "x": [float(at % 7) for at in range(len(days))]})
    week = len(table) // 4
    end = pa.table({"t": [DAY + dt.timedelta(60)], "x": [0.0]})
    weeks = [table.slice(at * week, week) for at in range(4)]
    put(tmp_path, [*weeks, end])
    call: dict[str, Any] = {"on": "t", "window": "7d", "offset": "3d", "aggs": aggs}
    answers = hopping(stream(spark, tmp_path), **call, late="0 seconds")
    start(answers, tmp_path, "out").awaitTermination()
    expected = sw.hopping(table, **call)
    assert_same(written(spark, tmp_path, "out"), expected, ["window_end"])


def test_a_deletion_takes_the_first_row_by_then_by(spark: Any, tmp_path: Path) -> None:
    """A stream of a row per micro-batch and a table agree.

    Other micro-batches: tests/keyed/test_keyed_order.py.
    """
    table = pa.table(
        {
            "t": [DAY] * 3 + [DAY + dt.timedelta(1)],
            "o": [2, 1, 3, 4],
            "x": ["b", "a", "", "end"],
            "gone": [False, False, True, False],
        }
    )
    put(tmp_path, [table.slice(at, 1) for at in range(4)])
    call: dict[str, Any] = {"on": "t", "windows": "1h", "then_by": "o"}
    call |= {"aggs": {"c": sw.collect("x")}, "deletes": "gone"}
    answers = rolling(stream(spark, tmp_path), **call, late="1 hour", emit="final")
    start(answers, tmp_path, "out").awaitTermination()
    assert written(spark, tmp_path, "out")["c_1h"].to_pylist() == [["b"]]
    rows = spark.read.parquet(str(tmp_path / "in"))
    answered = rolling(rows, **call).toArrow().sort_by("t")
    assert answered["c_1h"].to_pylist() == [["b"], ["end"]]


def test_a_query_that_overflowed_continues_with_nulls(
    spark: Any, tmp_path: Path
) -> None:
    """It continues from its checkpoint, as overflow= is not part of the guard."""
    from pyspark.errors import StreamingQueryException

    times = [DAY, DAY, DAY + dt.timedelta(1), DAY + dt.timedelta(2)]
    table = pa.table({"t": times, "k": [*"aabb"], "x": [2**62, 2**62, 1, 1]})
    put(tmp_path, [table.slice(0, 3), table.slice(3)])
    call: dict[str, Any] = {"on": "t", "by": "k", "windows": "1h"}
    call |= {"aggs": {"s": sw.sum("x")}, "late": "0 seconds", "emit": "final"}
    answers = rolling(stream(spark, tmp_path), **call)
    with pytest.raises(StreamingQueryException, match="ResultOverflowError"):
        start(answers, tmp_path, "out").awaitTermination()
    answers = rolling(stream(spark, tmp_path), **call, overflow="null")
    start(answers, tmp_path, "out").awaitTermination()
    found = written(spark, tmp_path, "out").sort_by("t")
    assert found["s_1h"].to_pylist() == [None, None, 1, 1]
