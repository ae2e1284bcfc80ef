"""A stream into a sink in a separate process, which is killed at planned points.

    python sink_killing.py FOLDER KIND URL SERVER PLAN

KIND is "postgres" or "redis", SERVER the process of the server, and PLAN a list of
[point, batch]: what is killed, and in which micro-batch.

- "driver in a task", "server in a task": when a task has sent some of its rows;
- "driver before the end", "server before the end": when all tasks have sent theirs, and
  the driver has not recorded the micro-batch;
- "driver before commit": when the sink has returned, before Spark's own commit.

Each happens once.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streams import LATE, RENAMES, ROLLING, WORKERS, read

from slidewise.spark import rolling, session
from slidewise.spark.sinks import postgres_sink, redis_sink

# pytest imports the module to look for examples, and gives it no arguments.
ARGUMENTS = sys.argv[1:] if __name__ == "__main__" else [".", "postgres", "", "0", "[]"]
FOLDER, KIND, URL = Path(ARGUMENTS[0]), ARGUMENTS[1], ARGUMENTS[2]
SERVER, PLAN = int(ARGUMENTS[3]), json.loads(ARGUMENTS[4])
SINK = {"postgres": postgres_sink.PostgresSink, "redis": redis_sink.RedisSink}[KIND]
TASK = {"postgres": postgres_sink._Copy, "redis": redis_sink._Put}[KIND]


def happen(where: str, batch: int) -> None:
    """Kills what is planned for a point of a micro-batch, once."""
    for point, when in PLAN:
        done = FOLDER / f"{point} {when}"
        if when != batch or not point.endswith(where) or done.exists():
            continue
        done.touch()
        if point.startswith("server"):
            quick = signal.SIGQUIT if KIND == "postgres" else signal.SIGKILL
            os.kill(SERVER, quick)
            return
        for pid in json.loads((FOLDER / "pids").read_text()):
            os.kill(pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


class Task(TASK):  # type: ignore[misc, valid-type]
    """The task, which is killed after its first batch of rows, or at its end."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Runs the task."""
        return super().__call__(self.killing(batches))

    def killing(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches, with a kill after the first one that has rows."""
        number, sent = self.of[1] if KIND == "postgres" else self.batch, False
        for batch in batches:
            if sent:
                happen("in a task", number)
            yield batch
            sent = sent or len(batch) > 0
        happen("in a task", number)


class Sink(SINK):  # type: ignore[misc, valid-type]
    """The sink, which is killed before and after the end of a micro-batch."""

    batch = -1

    def __call__(self, results: Any, batch: int) -> None:
        """Writes a micro-batch."""
        self.batch = batch
        super().__call__(results, batch)
        happen("before commit", batch)


def main() -> None:
    """Runs the stream to the end of its files, or until it is killed."""
    spark = session(
        master="local[2]",
        config={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
            "spark.ui.showConsoleProgress": "false",
            **RENAMES,
            **WORKERS,
        },
    )
    pids = [spark.sparkContext._gateway.proc.pid, os.getpid()]
    (FOLDER / "pids").write_text(json.dumps(pids))
    module = {"postgres": postgres_sink, "redis": redis_sink}[KIND]
    of_query = module.query_of

    def query_of(copied: Any) -> Any:
        happen("before the end", sink.batch)
        return of_query(copied)

    module.query_of = query_of
    setattr(module, TASK.__name__, Task)
    options = {"emit": "change", "late": LATE, "buckets": 2}
    answers = rolling(read(spark, FOLDER), **ROLLING, **options)
    sink = Sink("features", URL) if KIND == "postgres" else Sink(URL, "features:")
    writer = answers.writeStream.foreachBatch(sink).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(FOLDER / "checkpoint"))
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
