"""Batch and stream on a cluster of two executors, in a separate process.

    python on_cluster.py FOLDER

Workers import slidewise only from FOLDER/slidewise.zip, which is shipped with the job.
"""

import os
import site
import sys
from pathlib import Path

from streams import LATE, ROLLING, read

import slidewise as sw
from slidewise.spark import hopping, rolling, session

# Defined in this script, and so pickled by value.
SPREAD = sw.aggregation(
    lift=lambda value: (value, value),
    combine=lambda older, younger: (
        min(older[0], younger[0]),
        max(older[1], younger[1]),
    ),
    lower=lambda partial: partial[1] - partial[0],
    identity=(1_000, -1_000),
    returns=int,
    commutative=True,
)
BATCH = {**ROLLING, "aggs": {"n": sw.count(), "spread": SPREAD("x")}}


def python(folder: Path) -> str:
    """Writes a Python that imports installed packages, but no editable ones."""
    places = os.pathsep.join(site.getsitepackages())
    made = folder / "python"
    made.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{places}" exec {sys.executable} -S "$@"\n'
    )
    made.chmod(0o755)
    return str(made)


def main() -> None:
    """Answers the rows of a source both queries."""
    folder = Path(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = python(folder)
    config = {
        "spark.archives": f"{folder / 'slidewise.zip'}#shipped",
        "spark.executorEnv.PYTHONPATH": "shipped",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = session(master="local-cluster[2,1,1024]", config=config)
    source = str(folder / "in")
    table = spark.read.parquet(source)
    rolling(table, **BATCH, split=3).write.parquet(str(folder / "batch"))
    queries = []
    for name, answers in [
        ("final", rolling(read(spark, folder), **ROLLING, late=LATE)),
        (
            "slide",
            hopping(
                read(spark, folder),
                on="t",
                by="key",
                window="1m",
                every="10s",
                aggs={"n": sw.count()},
                late=LATE,
            ),
        ),
    ]:
        writer = answers.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"{name}-state"))
        queries.append(writer.start(str(folder / name)))
    for query in queries:
        query.awaitTermination()
    hosts = spark.sparkContext.range(0, 8, 1, 4).map(lambda _: os.getppid()).distinct()
    print("executors", hosts.count(), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
