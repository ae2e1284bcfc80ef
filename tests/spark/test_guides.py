"""The code blocks of the guides for Spark run as they are."""

import datetime as dt
import re
import time
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TRIPS = "id long, starttime timestamp, station string, tripduration long"


def blocks(page: str) -> list[str]:
    """The Python blocks that need no broker."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.S)
    return [block for block in found if "kafka" not in block and "avro" not in block]


def after(trip: int) -> dt.datetime:
    return dt.datetime(2024, 4, 1, tzinfo=dt.UTC) + trip * dt.timedelta(minutes=7)


@pytest.fixture
def trips(spark: Any) -> Any:
    rows = [(at, after(at), "a", at) for at in range(50)]
    return spark.createDataFrame(rows, TRIPS)


def test_the_guide(spark: Any, trips: Any, tmp_path: Path) -> None:
    known = {"spark": spark, "trips": trips}
    overwrites = "spark.sql.sources.partitionOverwriteMode"
    settings = ["spark.sql.window.segmentTree.enabled", overwrites]
    days = str(tmp_path / "features-by-day")
    trips.selectExpr("id", "date'2024-03-31' day").write.partitionBy("day").parquet(
        days
    )
    try:
        for block in blocks("spark.md"):
            placed = block.replace('"features-by-day"', repr(days))
            exec(compile(placed, "spark.md", "exec"), known)
    finally:
        for setting in settings:
            spark.conf.unset(setting)
    # The day of the job, beside the one that was there.
    written = spark.read.parquet(days).groupBy("day").count().orderBy("day").collect()
    assert [row["count"] for row in written] == [50, 50]
    assert known["features"].count() == 50
    assert known["training"].agg({"n_24h": "max"}).collect()[0][0] == 50


def test_the_guide_for_operation(spark: Any, trips: Any, tmp_path: Path) -> None:
    trips.write.parquet(str(tmp_path / "trips"))
    source = str(tmp_path / "trips")
    stream = spark.readStream.schema(TRIPS).parquet(source)
    known: dict[str, Any] = {"spark": spark, "trips": stream}
    names = "trips|checkpoints/blue|features-before|features-blue|features-green"
    for block in blocks("spark-operating.md"):
        placed = re.sub(f'"({names})"', rf'"{tmp_path}/\1"', block)
        exec(compile(placed, "spark-operating.md", "exec"), known)
        if "held" in known and "alerts" not in known:
            # The rows of the last day, those of the history among them.
            assert known["held"].count() == 50
    assert spark.read.parquet(str(tmp_path / "features-before")).count() == 20
    refused = known["wrong"]
    more = spark.createDataFrame([(50, after(50), "a", 50)], TRIPS)
    more.write.mode("append").parquet(source)
    with pytest.raises(Exception, match="checkpoint was made for another query"):
        refused.processAllAvailable()
    again = (
        known["features"]
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{tmp_path}/checkpoints/blue")
        .start(f"{tmp_path}/features-blue")
    )
    again.processAllAvailable()
    again.stop()
    # It went on: its history was not read again, and no row has two results.
    answered = spark.read.parquet(str(tmp_path / "features-blue"))
    rows = answered.orderBy("id").select("id", "n_24h").collect()
    assert [row.n_24h for row in rows] == [row.id + 1 for row in rows]
    assert rows[0].id == 20
    # Spark tells listeners in a thread of its own.
    while "watermark behind" not in known["alerts"]:
        time.sleep(0.05)
    spark.streams.removeListener(known["listener"])


def test_the_guide_for_streams(spark: Any, trips: Any, tmp_path: Path) -> None:
    history = str(tmp_path / "trips-until-april")
    trips.where("id < 20").write.parquet(history)
    trips.where("id >= 20").write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(TRIPS).parquet(str(tmp_path / "in"))
    known: dict[str, Any] = {"spark": spark, "trips": stream}
    for block in blocks("spark-streams.md"):
        # Spark's paths are those of the JVM, which stays where it was started.
        names = "checkpoints/features|features|trips-until-april|features-until-april"
        names += "|published"
        placed = re.sub(f'"({names})"', rf'"{tmp_path}/\1"', block)
        exec(compile(placed, "spark-streams.md", "exec"), known)
    query = known["query"]
    query.processAllAvailable()
    query.stop()
    assert spark.read.parquet(str(tmp_path / "features")).count() > 0
    assert known["metrics"](query)["late"] == 0
    answered = spark.read.parquet(str(tmp_path / "features-until-april"))
    assert answered.count() == 20
    assert known["features"].isStreaming
