"""What a bucket of a stream costs: time and memory of a micro-batch by `buckets=`.

The same small micro-batches with each number of buckets, and by an operator that does
nothing (`Idle` of `spark_rates`): the latter bounds what Spark's own protocol costs per
group. Times are medians of the micro-batches after the warm-up; memory is the largest
of a Python worker at the end.

    python -m bench.spark_buckets --json record.json
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import machine
from bench.spark_batch import tree_seconds
from bench.spark_rates import Idle
from bench.spark_soak import below, resident
from bench.spark_stream import AGGS, CONFIG, many_keys

from slidewise.spark import metrics, rolling, session, stream

BUCKETS = [8, 64, 256, 1024]


@contextmanager
def watched(peaks: list[float]) -> Iterator[None]:
    """Adds the largest resident memory of a Python worker meanwhile, in MiB."""
    done, largest = threading.Event(), [0.0]

    def watch() -> None:
        while not done.wait(0.5):
            for pid, name in below(os.getpid()).items():
                if "python" in name:
                    try:
                        largest[0] = max(largest[0], resident(pid))
                    except OSError:
                        continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        peaks.append(largest[0])


def measure(spark: Any, folder: Path, buckets: int, options: Any) -> dict[str, Any]:
    """Runs the query over its files."""
    count = options.batches + options.warm
    source = many_keys(folder / "in", count, options.rows, options.keys)
    answers = rolling(
        source.stream(spark),
        on="ts",
        by="k",
        windows=["30m", "2h"],
        aggs=AGGS,
        late="10m",
        emit=options.emit,
        buckets=buckets,
    )
    writer = answers.writeStream.format("noop").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    peaks: list[float] = []
    started, spent = time.perf_counter(), tree_seconds()
    with watched(peaks):
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    spent = tree_seconds() - spent
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
    counted = progress[options.warm :]
    added = [batch["durationMs"]["addBatch"] / 1000 for batch in counted]
    measured = [metrics(batch) for batch in counted]
    return {
        "add_batch_s": round(statistics.median(added), 3),
        "operator_s": round(statistics.median(one["seconds"] for one in measured), 3),
        "calls": statistics.median(one["calls"] for one in measured),
        "pages_written": statistics.median(one["pages_written"] for one in measured),
        "pages_read": statistics.median(one["pages_read"] for one in measured),
        "cached": statistics.median(one["cached"] for one in measured),
        "worker_mib": round(peaks[0]),
        "cpu_s_per_batch": round(spent / len(progress), 2),
        "wall_s": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=12, help="counted ones")
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=5_000)
    parser.add_argument("--buckets", type=int, nargs="*", default=BUCKETS)
    parser.add_argument("--modes", nargs="*", default=["slidewise", "nothing"])
    parser.add_argument("--emit", default="update")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    environment = {**machine(), "load": f"{os.getloadavg()[0]:.1f}"}
    for name, value in environment.items():
        print(f"{name:<10} {value}")
    operator, figures = stream.Operator, []
    for mode in options.modes:
        for buckets in options.buckets:
            # Workers keep the memory that they once had: each case has its own.
            spark = session("bench", master="local[2]", config=CONFIG)
            stream.Operator = Idle if mode == "nothing" else operator  # type: ignore[misc]
            with tempfile.TemporaryDirectory() as folder:
                found = measure(spark, Path(folder), buckets, options)
            spark.stop()
            figures.append({"mode": mode, "buckets": buckets, **found})
            print(json.dumps(figures[-1]), flush=True)
    stream.Operator = operator  # type: ignore[misc]
    if options.json is not None:
        record = {"machine": environment, "figures": figures}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
