"""Times how long a killed stream takes until it answers again.

It is a separate process, so that all of it can be killed: `bench.spark_stream` runs it
as `python -m bench.spark_restart folder slidewise`, and counts the time from its start
to the first micro-batch that a sink has got.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from slidewise.spark import rolling, session

__all__ = ["seconds_to_first"]


def seconds_to_first(folder: Path, engine: str, times: int) -> list[float]:
    """Starts the stream, then kills and restarts it `times` times.

    Args:
        folder: The folder of the source's files; with the suffix `-checkpoint`, that of
            the query.
        engine: "slidewise" or "spark".
        times: How many restarts.
    """
    begun = _started(folder, engine)
    for _ in range(3):
        _line(begun)
    _kill(begun)
    found = []
    for _ in range(times):
        start = time.perf_counter()
        again = _started(folder, engine)
        _line(again)
        found.append(round(time.perf_counter() - start, 2))
        _kill(again)
    return found


def _started(folder: Path, engine: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.spark_restart", str(folder), engine],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )


def _line(running: subprocess.Popen[str]) -> None:
    assert running.stdout is not None
    while not running.stdout.readline().startswith("batch"):
        assert running.poll() is None, "the stream ended: give it more files"


def _kill(running: subprocess.Popen[str]) -> None:
    """Kills the driver, its JVM and all workers with SIGKILL."""
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _answers(stream: Any, engine: str) -> Any:
    from bench.spark_stream import AGGS, WINDOWS
    from pyspark.sql import functions as sf

    if engine == "spark":
        return stream.groupBy("k").agg(sf.sum("v"))
    return rolling(
        stream, on="ts", by="k", windows=WINDOWS, aggs=AGGS, late="10m", emit="update"
    )


def main() -> None:
    from bench.spark_stream import CONFIG, Source

    folder, engine = Path(sys.argv[1]), sys.argv[2]
    spark = session("bench", master="local[2]", config=CONFIG)
    source = Source.__new__(Source)
    source.folder = folder
    answers = _answers(source.stream(spark), engine)

    def put(rows: Any, batch: int) -> None:
        rows.write.format("noop").mode("overwrite").save()
        print(f"batch {batch}", flush=True)

    writer = answers.writeStream.foreachBatch(put)
    writer = writer.outputMode("append" if engine == "slidewise" else "update")
    place = folder.with_name(f"{folder.name}-{engine}-checkpoint")
    writer.option("checkpointLocation", str(place)).start().awaitTermination()


if __name__ == "__main__":
    main()
