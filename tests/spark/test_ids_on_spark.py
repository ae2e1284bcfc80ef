"""Rows that count once on Spark, by `unique_by=`: batch, streams and their history."""

import copy
import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from seeds import SEED
from streams import (
    LATE,
    ROLLING,
    SCHEMA,
    START,
    FileSource,
    assert_same,
    read,
    start,
    written,
)

import slidewise as sw
from slidewise.spark import explain, hopping, metrics, rolling

CALL: dict[str, Any] = {**ROLLING, "late": LATE, "unique_by": "id"}
HOPS: dict[str, Any] = {
    **{name: CALL[name] for name in ("on", "by", "late", "unique_by")},
    "aggs": {"n": sw.count(), "x": sw.sum("x")},
    "window": "40s",
}
# One of them each day.
EMIT = ["final", "slide", "update", "arrival"][SEED // 1_000_000 % 4]


def doubled(source: FileSource) -> FileSource:
    """Delivers rows of a source again, in their micro-batch and in later ones.

    Returns:
        The source as it was.
    """
    clean, draw = copy.copy(source), random.Random(SEED)
    batches, before = [], SCHEMA.empty_table()
    for batch in source.batches:
        parts = [batch]
        for rows in (batch, before):
            again = [at for at in range(len(rows)) if draw.random() < 0.1]
            parts.append(rows.take(pa.array(again, pa.int64())))
        order = list(range(sum(map(len, parts))))
        draw.shuffle(order)
        batches.append(pa.concat_tables(parts).take(pa.array(order, pa.int64())))
        before = batch
    source.batches = batches
    source.rewrite()
    return clean


def test_a_source_that_delivers_at_least_once_counts_once(
    spark: Any, tmp_path: Path
) -> None:
    """Also across a restart of the query."""
    emit = EMIT
    source = FileSource(tmp_path, 11, LATE)
    source.write(3)
    clean = doubled(source)
    batches, source.batches = source.batches, source.batches[:1]
    source.rewrite()
    call = HOPS if emit == "slide" else {**CALL, "emit": emit}
    answers = (hopping if emit == "slide" else rolling)(read(spark, tmp_path), **call)
    counts = []
    for new in ([], batches[1:]):
        for batch in new:
            source.put(batch)
        query = start(answers, tmp_path, "out")
        query.awaitTermination()
        counts.append(metrics(query))
    spec = {name: of for name, of in call.items() if name not in ("late", "emit")}
    del spec["unique_by"]
    expected = clean.expected(emit, spec)
    ids = ["key", "window_end"] if emit == "slide" else ["id"]
    ids = ["key", "t"] if emit == "update" else ids
    assert_same(written(spark, tmp_path, "out"), expected, ids)
    late = sum(len(a) - len(b) for a, b in zip(batches, source.accepted(), strict=True))
    rows = sum(map(len, clean.accepted()))
    found = {
        name: sum(each[name] for each in counts) for name in ("late", "duplicates")
    }
    whole = sum(map(len, batches))
    assert found == {"late": late, "duplicates": whole - late - rows}
    assert found["duplicates"] > 0


def test_history_and_stream_may_overlap(spark: Any, tmp_path: Path) -> None:
    source = FileSource(tmp_path, 12, LATE)
    source.write(3)
    batches = source.batches
    history = pa.concat_tables([*batches[:2], batches[0]])
    pq.write_table(history, tmp_path / "history.parquet")
    source.batches = batches[1:]
    source.rewrite()
    initial = spark.read.parquet(str(tmp_path / "history.parquet"))
    answers = rolling(read(spark, tmp_path), **CALL, emit="final", initial=initial)
    query = start(answers, tmp_path, "out")
    query.awaitTermination()
    late = [
        len(a) - len(b) for a, b in zip(batches[1:], source.accepted(), strict=True)
    ]
    new = pa.concat_tables(source.accepted()[1:]).drop_columns("batch")
    both = pa.concat_tables([*batches[:2], new])
    expected = sw.rolling(both, **ROLLING).slice(len(both) - len(new))
    end = source.watermark(len(source.batches))
    expected = expected.filter(pc.less_equal(expected["t"], end))
    assert_same(written(spark, tmp_path, "out"), expected, ["id"])
    counts = metrics(query)
    assert (counts["late"], counts["duplicates"]) == (sum(late), len(batches[1]))


def test_the_first_of_a_micro_batch_is_by_time_and_then_by(
    spark: Any, tmp_path: Path
) -> None:
    """As in a batch DataFrame; an id is remembered for the window and `late=`."""
    source = FileSource(tmp_path, 0, dt.timedelta())
    rows = [(5, 1, 7), (3, 1, 9), (3, 1, 8), (4, None, 1), (4, None, 2)]
    batches = [rows, [(4, 1, 0), (25, 2, 0)], [(26, 1, 3)], [(27, 1, 4), (27, 1, 4)]]
    for batch in batches:
        named = [
            {"id": id_, "t": START + dt.timedelta(seconds=t), "key": "a", "x": x}
            for t, id_, x in batch
        ]
        source.put(pa.Table.from_pylist(named, SCHEMA))
    call = {
        "on": "t",
        "windows": "10s",
        "by": "key",
        "aggs": {"x": sw.collect("x")},
        "unique_by": "id",
        "then_by": ["x"],
    }
    answers = rolling(read(spark, tmp_path), **call, late="6s", emit="arrival")
    query = start(answers, tmp_path, "out")
    query.awaitTermination()
    found = written(spark, tmp_path, "out").sort_by(
        [("t", "ascending"), ("x", "ascending")]
    )
    # At the third micro-batch the watermark is 19 s: the horizon begins after 3 s, so
    # the id counts again.
    assert found["x"].to_pylist() == [8, 1, 2, 0, 3]
    assert metrics(query)["duplicates"] == 5
    table = spark.read.parquet(str(tmp_path / "in"))
    whole = rolling(table, **call).toArrow()
    whole = whole.sort_by([("t", "ascending"), ("x", "ascending")])
    assert whole["x"].to_pylist() == [8, 1, 2, 0]
    assert whole["x_10s"].to_pylist() == [[8], [8, 1, 2], [8, 1, 2], [0]]


def test_results_of_batches_equal_tables(spark: Any) -> None:
    draw = random.Random(SEED)
    rows = [
        {
            "row": at,
            "t": draw.randrange(60),
            "k": draw.choice([None, 0.0, -0.0, 1.5]),
            "id": draw.choice([None, *range(40)]),
            "part": draw.choice("xy"),
            "x": draw.randrange(9),
        }
        for at in range(150)
    ]
    table = pa.Table.from_pylist(rows)
    df = spark.createDataFrame(table)
    aggs = {"n": sw.count(), "x": sw.sum("x")}
    labels = table.slice(0, 9).select(["t", "k", "row"])
    for ids in ("id", ["id", "part"]):
        call = {
            "on": "t",
            "by": "k",
            "aggs": aggs,
            "unique_by": ids,
            "windows": [7, 30],
        }
        first = table.sort_by([("t", "ascending"), ("row", "ascending")])
        given = rolling(df, **call, then_by="row").toArrow()
        counted = sw.rolling(first, **call)
        counted = counted.filter(
            pc.is_in(counted["row"], given["row"].combine_chunks())
        )
        assert 0 < len(given) == len(counted) < len(table)
        assert_same(given, counted.select(given.column_names), ["row"])
        at = spark.createDataFrame(labels)
        given = rolling(df, **call, then_by="row", at=at).toArrow()
        expected = sw.rolling(first, **call, at=labels)
        assert_same(given, expected.select(given.column_names), ["row"])
        del call["windows"]
        given = hopping(df, **call, window=9, then_by="row").toArrow()
        assert_same(given, sw.hopping(first, **call, window=9), ["k", "window_end"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"unique_by": "no"}, "the DataFrame has no column 'no'"),
        ({"deletes": "gone"}, "deletes='gone' deletes a row by its key and time"),
        (
            {"windows": sw.unbounded()},
            r"unique_by=\['id'\] does not go with the window unbounded\(\)",
        ),
    ],
)
def test_what_is_refused(
    spark: Any, tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    FileSource(tmp_path, 0, LATE).write(1)
    with pytest.raises(sw.SpecError, match=message):
        rolling(read(spark, tmp_path), **{**CALL, **more})


def test_features_that_drop_different_rows_are_refused(spark: Any) -> None:
    spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()}, unique_by="id")
    features = sw.Features(one=spec, other=spec.replace(by="k"))
    df = spark.createDataFrame([(1, "a", 1)], "t int, k string, id int")
    with pytest.raises(sw.SpecError, match="different keys or ids: call rolling for"):
        rolling(df, features)
    same = sw.Features(one=spec, other=spec.replace(windows=9))
    twice = df.union(df).toArrow()
    found = rolling(spark.createDataFrame(twice), same).toArrow()
    assert "  1. keep the first row of each id, by a shuffle" in explain(df, same)
    assert found.select(["one_n_5", "other_n_9"]).to_pylist() == [
        {"one_n_5": 1, "other_n_9": 1}
    ]
