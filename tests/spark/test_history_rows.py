"""`history` gives the rows that a stream needs as `initial=`, and no others."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from streams import AGGS, LATE, FileSource, assert_same, read, start, written

import slidewise as sw
from slidewise.spark import history, rolling

SPEC = sw.Spec(on="t", by="key", windows=["10s", "2m"], aggs=AGGS, offset="5s")
DAY = dt.datetime(2024, 4, 1, tzinfo=dt.UTC)


def test_a_stream_with_them_equals_a_table(spark: Any, tmp_path: Path) -> None:
    source = FileSource(tmp_path, 3, LATE)
    source.write(6)
    before, source.batches = pa.concat_tables(source.batches[:4]), source.batches[4:]
    source.rewrite()
    since = pc.min(pa.concat_tables(source.batches)["t"]).as_py()
    pq.write_table(before, tmp_path / "before.parquet")
    rows = spark.read.parquet(str(tmp_path / "before.parquet"))
    held = history(rows.withColumnRenamed("t", "T"), SPEC, since)
    assert held.columns[1] == "T"
    held = held.withColumnRenamed("T", "t").toArrow()
    first = since - dt.timedelta(seconds=125)
    assert_same(held, before.filter(pc.greater_equal(before["t"], first)), ["id"])
    assert 0 < len(held) < len(before)
    initial = history(rows, SPEC, since)
    answers = rolling(read(spark, tmp_path), SPEC, late=LATE, initial=initial)
    start(answers, tmp_path, "begun").awaitTermination()
    new = pa.concat_tables(source.accepted()).drop_columns("batch")
    expected = sw.rolling(pa.concat_tables([before, new]), SPEC).slice(len(before))
    end = source.watermark(len(source.batches))
    expected = expected.filter(pc.less_equal(expected["t"], end))
    assert len(expected) > 20
    assert_same(written(spark, tmp_path, "begun"), expected, ["id"])


@pytest.mark.parametrize(
    ("spec", "since", "message"),
    [
        (SPEC, "now", r"since= is a time: "),
        (
            SPEC.replace(windows=sw.unbounded(), offset=None),
            DAY,
            "rows of .* at any earlier time: p",
        ),
        (
            SPEC.replace(windows=sw.rows(3), offset=None),
            DAY,
            "at any earlier time: pas",
        ),
        (SPEC.replace(unique_by="id"), DAY, "unique_by= knows the ids of all its rows"),
        (
            sw.Spec(on="t", window="1h", aggs={"n": sw.count()}),
            DAY,
            "hopping goes on from the latest of all its rows: pass all rows as init",
        ),
        ("1h", DAY, "history takes the slidewise.Spec of the stream; got str"),
    ],
)
def test_what_needs_the_whole_history_is_named(
    spark: Any, spec: Any, since: Any, message: str
) -> None:
    kinds = "id long, t timestamp, key string, x long, y double, word string"
    rows = spark.createDataFrame([], kinds)
    with pytest.raises(sw.SpecError, match=message):
        history(rows, spec, since)


def test_a_stream_is_no_history(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    with pytest.raises(sw.SpecError, match="history takes a batch DataFrame"):
        history(rates, SPEC, DAY)
