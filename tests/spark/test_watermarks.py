"""Watermarks before 1970, which Spark itself does not have."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from parity import HOPPING
from seeds import SEED
from streams import LATE, ROLLING, SCHEMA, FileSource, assert_same, read, start, written

import slidewise as sw
from slidewise.spark import hopping, metrics, rolling

CALL = {**ROLLING, "aggs": {"n": sw.count(), "x": sw.sum("x"), "top": sw.max("y")}}
# Two of them each day.
EMITS = [["final", "update"], ["slide", "arrival"]][SEED // 1_000_000 % 2]


def test_seven_rows_of_1960_have_seven_results(spark: Any, tmp_path: Path) -> None:
    first, hour = dt.datetime(1960, 1, 1, tzinfo=dt.UTC), dt.timedelta(hours=1)
    source = FileSource(tmp_path, 0, dt.timedelta())
    for ids in ([0, 1], [2, 3], [4, 5], [6]):
        rows = [{"id": at, "t": first + at * hour} for at in ids]
        source.put(pa.Table.from_pylist(rows, SCHEMA))
    call = {"on": "t", "windows": "5h", "aggs": {"n": sw.count()}}
    answers = rolling(read(spark, tmp_path), **call, late="0s", emit="final")
    query = start(answers, tmp_path, "out")
    query.awaitTermination()
    got = written(spark, tmp_path, "out").sort_by("id")
    assert got["n_5h"].to_pylist() == [1, 2, 3, 4, 5, 5, 5]
    watermarks = [
        metrics(progress).get("watermark") for progress in query.recentProgress
    ]
    ends = [(first + at * hour).timestamp() for at in (1, 3, 5, 6)]
    assert watermarks == [None, *ends]


def test_rows_ahead_of_their_micro_batch_do_not_move_the_watermark(
    spark: Any, tmp_path: Path
) -> None:
    """A replay decides as before, by the time that the checkpoint has."""
    source = FileSource(tmp_path, 0, dt.timedelta())
    first, hour = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.timedelta(hours=1)
    century = dt.datetime(2124, 1, 1, tzinfo=dt.UTC)
    for ids in ([0, 9, 1], [2, 0], [8, 3]):
        rows = [{"id": at, "t": century if at > 7 else first + at * hour} for at in ids]
        source.put(pa.Table.from_pylist(rows, SCHEMA))
    call = {"on": "t", "windows": "5h", "aggs": {"n": sw.count()}, "late": "0s"}
    options = {"ahead": "1 hour", "late_rows": "flag"}
    answers = rolling(read(spark, tmp_path), **call, **options)
    query = start(answers, tmp_path, "out")
    query.awaitTermination()
    got = written(spark, tmp_path, "out").sort_by(
        [("id", "ascending"), ("_late", "ascending")]
    )
    assert got.select(["id", "n_5h", "_late", "_ahead"]).to_pydict() == {
        "id": [0, 0, 1, 2, 3, 8, 9],
        "n_5h": [1, None, 2, 3, 4, None, None],
        "_late": [False, True, False, False, False, False, False],
        "_ahead": [False, False, False, False, False, True, True],
    }
    counts = metrics(query)
    assert [counts[name] for name in ("rows", "late", "ahead")] == [7, 1, 2]
    assert counts["watermark"] == (first + 3 * hour).timestamp()


@pytest.mark.parametrize("year", [1960, [1, 1969][SEED // 1_000_000 % 2]])
def test_streams_before_1970_equal_tables(
    spark: Any, tmp_path: Path, year: int
) -> None:
    """Streams have late rows; the last one continues beyond 1970."""
    source = FileSource(tmp_path, 3, LATE)
    source.now = dt.datetime(year, 12, 31, 23, 59, 30, tzinfo=dt.UTC)
    source.write(5)
    expected = {emit: source.expected(emit, CALL) for emit in ("final", "arrival")}
    expected["update"] = source.expected("update", CALL)
    accepted = pa.concat_tables(source.accepted())
    hops = {**HOPPING, "aggs": CALL["aggs"], "empty": False}
    windows = sw.hopping(accepted, **hops)
    end = source.watermark(len(source.batches)) + dt.timedelta(microseconds=1)
    expected["slide"] = windows.filter(pc.less_equal(windows["window_end"], end))
    late = sum(map(len, source.batches)) - len(accepted)
    assert late > 0
    queries = {}
    for emit in EMITS if year == 1960 else ["final"]:
        function, call = (hopping, hops) if emit == "slide" else (rolling, CALL)
        answers = function(read(spark, tmp_path), **call, late=LATE, emit=emit)
        queries[emit] = start(answers, tmp_path, emit)
    for emit, query in queries.items():
        query.awaitTermination()
        counts = [metrics(progress) for progress in query.recentProgress]
        assert sum(batch["late"] for batch in counts) == late
        ours = written(spark, tmp_path, emit)
        by = {"slide": ["key", "window_end"], "update": ["key", "t", "n_2m"]}
        theirs = expected[emit]
        if "batch" in theirs.column_names:
            theirs = theirs.drop_columns("batch")
        assert len(theirs) > 0
        assert_same(ours, theirs, by.get(emit, ["id"]))
