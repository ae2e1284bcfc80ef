"""Streams from a producer through Kafka and windows to a consumer, on a real broker."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka_broker
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from streams import SCHEMA, START, FileSource, assert_same

import slidewise as sw
from slidewise.spark import metrics, rolling

sf = pytest.importorskip("pyspark.sql.functions", reason="slidewise[spark]")

if why := kafka_broker.reason():
    pytest.skip(why, allow_module_level=True)

pytestmark = pytest.mark.nightly

LATE = dt.timedelta(seconds=30)
ROLLING: dict[str, Any] = {
    "on": "t",
    "by": "key",
    "windows": ["10s", "2m"],
    "aggs": {
        "n": sw.count(),
        "x": sw.sum("x"),
        "top": sw.max("word"),
        "mean": sw.mean("y"),
        "mid": sw.median("x"),
    },
}
# Spark writes milliseconds into JSON by default.
JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker.broker(tmp_path_factory.mktemp("kafka") / "broker") as found:
        yield found


class Topic:
    """A topic whose values are JSON."""

    def __init__(self, spark: Any, address: str, name: str) -> None:
        self.spark, self.name = spark, name
        self.servers = {"kafka.bootstrap.servers": address}

    def produce(self, rows: pa.Table) -> None:
        """Sends rows as a burst."""
        frame = self._values(self.spark.createDataFrame(rows))
        frame.write.format("kafka").options(**self._out()).save()

    def sink(self, answers: Any, checkpoint: Path) -> Any:
        """Starts a query that sends its rows."""
        writer = self._values(answers).writeStream.format("kafka")
        writer = writer.options(**self._out(), checkpointLocation=str(checkpoint))
        return writer.start()

    def stream(self, schema: Any) -> Any:
        """The rows in order of arrival."""
        reader = self.spark.readStream.format("kafka").options(**self._in())
        return self._rows(reader.load(), schema)

    def consume(self, schema: Any) -> pa.Table:
        """All rows so far, without the duplicates that a restart may send."""
        reader = self.spark.read.format("kafka").options(**self._in())
        rows = reader.load().dropDuplicates(["key"])
        return self._rows(rows, schema).toArrow()

    def records(self) -> list[tuple[bytes, bytes]]:
        """All keys and values so far, with duplicates."""
        reader = self.spark.read.format("kafka").options(**self._in())
        return [(row.key, row.value) for row in reader.load().collect()]

    def _values(self, rows: Any) -> Any:
        key, value = sf.col("id").cast("string"), sf.to_json(sf.struct("*"), JSON)
        return rows.select(key.alias("key"), value.alias("value"))

    def _rows(self, records: Any, schema: Any) -> Any:
        value = sf.from_json(sf.col("value").cast("string"), schema, JSON)
        return records.select(value.alias("row")).select("row.*")

    def _in(self) -> dict[str, str]:
        return {**self.servers, "subscribe": self.name, "startingOffsets": "earliest"}

    def _out(self) -> dict[str, str]:
        return {**self.servers, "topic": self.name}


def replay(topic: Topic, answers: Any, checkpoint: Path) -> int:
    """Restarts from before the last commit, as after a crash; counts duplicates."""
    before = topic.records()
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    for file in (checkpoint / "commits").glob(f"*{last}*"):
        file.unlink()
    query = topic.sink(answers, checkpoint)
    query.processAllAvailable()
    query.stop()
    after = topic.records()
    assert set(after) == set(before), "a double is its answer, to the last digit"
    return len(after) - len(before)


def test_from_kafka_to_kafka(spark: Any, address: str, tmp_path: Path) -> None:
    """After bursts out of order and a restart, the consumer has the batch results."""
    from pyspark.sql.pandas.types import from_arrow_schema

    source = FileSource(tmp_path, 21, LATE)
    source.write(6)
    schema = SCHEMA.append(pa.field("end", pa.bool_()))
    events, features = (Topic(spark, address, name) for name in ("events", "features"))
    end = {"id": -1, "t": START + dt.timedelta(days=1), "end": True}
    marker = pa.Table.from_pylist([end], schema)
    counts = []
    for bursts in (source.batches[:3], [*source.batches[3:], marker]):
        for at, burst in enumerate(bursts):
            if burst is not marker:
                burst = burst.append_column("end", pa.nulls(len(burst), pa.bool_()))
            events.produce(burst)
            if at == 0:
                stream = events.stream(from_arrow_schema(schema))
                answers = rolling(
                    stream, **ROLLING, late=LATE, late_rows="flag", marker="end"
                )
                query = features.sink(answers, tmp_path / "checkpoint")
            query.processAllAvailable()
        counts += [metrics(progress) for progress in query.recentProgress]
        query.stop()
    again = replay(features, answers, tmp_path / "checkpoint")
    assert again == counts[-1]["answers"] > 0
    ours = features.consume(answers.schema).drop_columns("end")
    late = ours.filter(ours["_late"])["id"].to_pylist()
    sent = pa.concat_tables(source.batches)
    assert sorted(ours["id"].to_pylist()) == sorted(sent["id"].to_pylist())
    assert len(late) == sum(row["late"] for row in counts) > 0
    accepted = sent.filter(pc.invert(pc.is_in(sent["id"], pa.array(late))))
    on_time = ours.filter(pc.invert(ours["_late"])).drop_columns("_late")
    assert_same(on_time, sw.rolling(accepted, **ROLLING), ["id"])
