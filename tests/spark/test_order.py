"""Rows of equal time have one order in every engine: values, NaN, nulls."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streams import start, written

import slidewise as sw
from slidewise.spark import rolling

AGGS = {
    "all": sw.collect("id"),
    "first": sw.first("id"),
    "last": sw.last("id"),
}
EXPECTED = {
    "all_1h": [3, 0, 2, 1],
    "first_1h": 3,
    "last_1h": 1,
    "first_2rows": {3: 3, 0: 3, 2: 0, 1: 2},
    "all_2rows": {3: [3], 0: [3, 0], 2: [0, 2], 1: [2, 1]},
}


def check(answers: pa.Table) -> None:
    rows = answers.to_pylist()
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 3]
    for row in rows:
        for name, expected in EXPECTED.items():
            value = expected[row["id"]] if isinstance(expected, dict) else expected
            assert row[name] == value, (name, row)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_nulls_are_last(spark: Any, tmp_path: Path, kind: str) -> None:
    kinds = {"double": pa.float64(), "float": pa.float32()}
    order = pa.array([2.0, None, float("nan"), 1.0], kinds[kind])
    times = pa.array([0] * 4, pa.timestamp("us", "UTC"))
    table = pa.table({"id": range(4), "t": times, "o": order})
    windows = ["1h", sw.rows(2)]
    call: dict[str, Any] = {"on": "t", "windows": windows, "aggs": AGGS}
    check(rolling(spark.createDataFrame(table), then_by="o", **call).toArrow())
    keyed = sw.KeyedWindows(**call, then_by="o")
    keyed.ingest(table)
    keyed.advance(times[0].as_py())
    check(keyed.collect())
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    schema = f"id long, t timestamp, o {kind}"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    answers = rolling(stream, then_by="o", late="0s", **call)
    start(answers, tmp_path, "out").awaitTermination()
    check(written(spark, tmp_path, "out"))
