"""Spark Connect: batch and streams, with its own class of DataFrames."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc_status", reason="pyspark[connect] is not there")

pytestmark = pytest.mark.nightly

SESSION = """
import os, sys
from pyspark.sql import SparkSession
from slidewise.spark.jre import java_home

os.environ["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
if not os.environ["JAVA_HOME"]:
    del os.environ["JAVA_HOME"]
os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
spark = SparkSession.builder.remote("local[2]").getOrCreate()
"""

BATCH = """
import random
from slidewise.spark import session

before = spark.conf.getAll
assert session() is spark
assert spark.conf.getAll == before
import slidewise as sw
from random_tables import AGGS, random_table, same
from slidewise.spark import hopping, rolling, skew

spark.conf.set("spark.sql.shuffle.partitions", "3")
skew._MIN_SKEWED_ROWS_EXPLICIT = 10
table = random_table(random.Random(1), 200, keys=3, span=90)
df = spark.createDataFrame(table)
call = {"on": "t", "by": "k", "windows": [3, 9], "aggs": AGGS}
for split in (False, 3):
    got = rolling(df, then_by="row", split=split, **call).toArrow()
    same(got, sw.rolling(table, **call))
call = {"on": "t", "window": 9, "aggs": {"n": sw.count()}}
hops = df.transform(hopping(**call)).toArrow().sort_by("window_end")
assert hops.to_pylist() == sw.hopping(table, **call).to_pylist()
"""


STREAM = """
from pathlib import Path
from slidewise.spark import Listener, metrics, rolling
from streams import LATE, ROLLING, FileSource, assert_same, read, start, written

provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
for name, value in [
    ("spark.sql.shuffle.partitions", "2"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.streaming.stateStore.providerClass", provider),
]:
    spark.conf.set(name, value)
folder = Path(sys.argv[1])
source, reported = FileSource(folder, 8, LATE), []
source.write(4)
history, source.batches = source.batches[0], source.batches[1:]
source.rewrite()
spark.streams.addListener(Listener(lambda _, counts: reported.append(counts["rows"])))
query = start(rolling(read(spark, folder), **ROLLING, late=LATE), folder, "final")
query.awaitTermination()
ours = written(spark, folder, "final")
assert_same(ours, source.expected("final", ROLLING), ["id"])
counts = [metrics(progress) for progress in query.recentProgress]
assert sum(batch["rows"] for batch in counts) == sum(map(len, source.batches))
assert metrics(query)["state_bytes"] > 0
history = spark.createDataFrame(history)
begun = rolling(read(spark, folder), **ROLLING, late=LATE, initial=history)
query = start(begun, folder, "begun")
query.awaitTermination()
assert len(written(spark, folder, "begun")) == len(ours)
assert sum(reported) >= sum(map(len, source.batches))
spark.stop()
"""


def test_batch_and_streams_by_connect(tmp_path: Path) -> None:
    """Batch and stream run on one server, because its start takes longest."""
    helpers = Path(__file__).parents[1] / "helpers"
    paths = [str(helpers), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SESSION + BATCH + STREAM, str(tmp_path)],
        cwd=helpers,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
