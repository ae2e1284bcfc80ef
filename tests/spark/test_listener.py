"""`metrics` of queries: running, ended, and restarted."""

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from streams import SCHEMA, START, FileSource, read, start

import slidewise as sw
from slidewise.errors import SpecError
from slidewise.metrics import prometheus
from slidewise.spark import Listener, metrics, rolling

CALL: dict[str, Any] = {"on": "t", "windows": "1m", "aggs": {"n": sw.count()}}


def test_metrics_of_a_query(spark: Any, tmp_path: Path) -> None:
    source = FileSource(tmp_path, 0, dt.timedelta())
    for minutes in ([0, 1], [2, 0], [3]):
        rows = [{"id": 0, "t": START + dt.timedelta(minutes=at)} for at in minutes]
        source.put(pa.Table.from_pylist(rows, SCHEMA))
    answers = rolling(read(spark, tmp_path), **CALL, late="0s")
    query = start(answers, tmp_path, "out")
    query.awaitTermination()
    counts = metrics(query)
    assert [counts[name] for name in ("rows", "late", "answers")] == [5, 1, 4]
    # The fourth has no rows: it emits what its watermark has passed.
    assert counts["batches"] == 4
    assert counts["watermark"] == (START + dt.timedelta(minutes=3)).timestamp()
    last = metrics(query, total=False)
    assert last == metrics(query.lastProgress)
    assert [last[name] for name in ("rows", "late", "answers")] == [0, 0, 1]
    assert last["batches"] == 1
    assert last["state_bytes"] == counts["state_bytes"] > 0
    # Restarted without new data: no metrics, and no error.
    query = start(answers, tmp_path, "out")
    query.awaitTermination()
    assert query.recentProgress
    assert metrics(query) == metrics(query, total=False) == {}
    assert metrics(query.lastProgress) == {}
    writer = answers.writeStream.format("parquet").trigger(processingTime="1 second")
    writer = writer.option("checkpointLocation", str(tmp_path / "out-checkpoint"))
    query = writer.start(str(tmp_path / "out"))
    try:
        while query.lastProgress is None:
            assert query.isActive, query.exception()
            time.sleep(0.1)
        assert metrics(query) == {}
    finally:
        query.stop()


def test_a_listener_keeps_the_metrics_of_queries_for_exporters(
    spark: Any, tmp_path: Path
) -> None:
    source, told = FileSource(tmp_path, 0, dt.timedelta()), []
    for minutes in ([0, 1], [2, 0], [3]):
        rows = [{"id": 0, "t": START + dt.timedelta(minutes=at)} for at in minutes]
        source.put(pa.Table.from_pylist(rows, SCHEMA))
    listener, plain = Listener(), Listener(lambda _, counts: told.append(counts))
    registry, end = CollectorRegistry(), (START + dt.timedelta(minutes=3)).timestamp()
    prometheus(listener, registry=registry, clock=lambda: end + 7.5)
    for each in (listener, plain):
        spark.streams.addListener(each)
    try:
        answers = rolling(read(spark, tmp_path), **CALL, late="0s")
        writer = answers.writeStream.format("parquet").queryName("clicks")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer = writer.trigger(availableNow=True)
        query = writer.start(str(tmp_path / "out"))
        query.awaitTermination()
        expected = metrics(query)
        for each in (listener, plain):
            until = time.monotonic() + 30
            while each.metrics().get("clicks", {}).get("batches") != 4:
                assert time.monotonic() < until, each.metrics()
                time.sleep(0.05)
    finally:
        for each in (listener, plain):
            spark.streams.removeListener(each)
    found = dict(listener.metrics()["clicks"])
    assert found.pop("latest") == end
    assert found == pytest.approx(expected)
    assert sum(counts["rows"] for counts in told) == 5

    def value(name: str, **labels: str) -> float | None:
        labels["stream"] = "clicks"
        return registry.get_sample_value(f"slidewise_{name}", labels)

    counters = {"rows": 5, "rows_late": 1, "rows_ahead": 0, "rows_duplicate": 0}
    counters |= {"answers": 4, "batches": 4}
    assert {name: value(f"{name}_total") for name in counters} == counters
    assert value("watermark_lag_seconds") == value("latest_lag_seconds") == 7.5
    assert value("state_bytes") == expected["state_bytes"]
    assert value("operator_seconds_total") == pytest.approx(expected["seconds"])
    assert value("batch_duration_seconds_count") == 4
    # The last micro-batch has no rows; the others have rows of 2024.
    assert value("freshness_seconds_count") == 3
    assert value("freshness_seconds_bucket", le="86400.0") == 0


def test_other_queries_are_refused(spark: Any, tmp_path: Path) -> None:
    FileSource(tmp_path, 0, dt.timedelta()).write(1)
    query = start(read(spark, tmp_path), tmp_path, "out")
    query.awaitTermination()
    with pytest.raises(SpecError, match="no windows of slidewise"):
        metrics(query)
