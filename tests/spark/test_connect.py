"""Spark Connect has DataFrames of its own, which serve as well."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc_status", reason="pyspark[connect] is not there")

SCRIPT = """
import os, random, sys
import slidewise as sw
from pyspark.sql import SparkSession
from random_tables import AGGS, random_table, same
from slidewise.spark import hopping, hot, rolling
from slidewise.spark.java import java_home

os.environ["JAVA_HOME"] = java_home() or os.environ.get("JAVA_HOME", "")
if not os.environ["JAVA_HOME"]:
    del os.environ["JAVA_HOME"]
os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "3")
hot._LEAST_BY_HAND = 10
table = random_table(random.Random(1), 200, keys=3, span=90)
df = spark.createDataFrame(table)
asked = {"on": "t", "by": "k", "windows": [3, 9], "aggs": AGGS}
for split in (False, 3):
    got = rolling(df, then_by="row", split=split, **asked).toArrow()
    same(got, sw.rolling(table, **asked))
asked = {"on": "t", "window": 9, "aggs": {"n": sw.count()}}
hops = df.transform(hopping(**asked)).toArrow().sort_by("window_end")
assert hops.to_pylist() == sw.hopping(table, **asked).to_pylist()
spark.stop()
"""


def test_batch_by_connect() -> None:
    here = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
