"""A stream in a separate process, which is killed at planned steps.

    python killing.py FOLDER SINK PLAN

The plan is a list of [event, batch]: what is killed, and in which micro-batch.

- "driver in handler", "driver after state": the JVM and its Python, from within the
  operator, before it touches the state and after it has written all of it;
- "driver in sink", "driver before commit": from within the sink, before and after it
  has written the answers; for the sink "keyed", which writes a folder per batch;
- "worker in handler", "worker after state": the Python worker alone, whose task is
  retried; "task fails": an exception in place of a kill, in a worker that lives on;
- "stale cache": the shard of another attempt is put into the worker's cache.

Each event happens once, and writes a line with the number of commits to FOLDER/kills.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from streams import LATE, ROLLING, WORKERS, read

from slidewise.keyed.index import Index
from slidewise.keyed.pending import Pending
from slidewise.spark import operator, rolling, session, stream
from slidewise.spark.checkpoint_guard import GUARD_BUCKET


def commits(folder: Path) -> int:
    """The number of committed micro-batches."""
    found = folder / "checkpoint" / "commits"
    return len(list(found.glob("[0-9]*"))) if found.exists() else 0


def claim(folder: Path, what: str, batch: int) -> bool:
    """Claims a planned event, for one process only; False if it has happened."""
    try:
        (folder / f"{what} {batch}".replace(" ", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    with (folder / "kills").open("a") as log:
        log.write(f"{what} in batch {batch}, after {commits(folder)} commits\n")
    return True


def kill_driver(folder: Path) -> None:
    """Kills the JVM and the process that started it."""
    for pid in json.loads((folder / "pids").read_text()):
        os.kill(pid, signal.SIGKILL)
    # This worker must not finish its call.
    os.kill(os.getpid(), signal.SIGKILL)


class Killing(operator.Operator):
    """The operator, with planned kills."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.folder = Path(sys.argv[1])
        self.plan = json.loads(sys.argv[3])

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Any,
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        """Runs the operator, with the kills planned for this micro-batch."""
        batch = int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))
        planned = [what for what, when in self.plan if when == batch]
        if key[0] == GUARD_BUCKET:
            planned = []
        self.happen(planned, "in handler", batch)
        if "task fails" in planned and claim(self.folder, "task fails", batch):
            raise RuntimeError("planned")
        if "stale cache" in planned:
            self.plant(batch)
        answers = list(super().handleInputRows(key, rows, timerValues))
        self.happen(planned, "after state", batch)
        return iter(answers)

    def happen(self, planned: list[str], where: str, batch: int) -> None:
        if f"driver {where}" in planned and claim(
            self.folder, f"driver {where}", batch
        ):
            kill_driver(self.folder)
        if f"worker {where}" in planned and claim(
            self.folder, f"worker {where}", batch
        ):
            os.kill(os.getpid(), signal.SIGKILL)

    def plant(self, batch: int) -> None:
        """Empties every cached shard, under a token that is not that of the state."""
        for cached in operator._cache.entries.values():
            shard = cached.processor.shard
            shard.pending, shard.index = Pending(), Index(shard.query)
            cached.token = f"{cached.token} of another attempt"
            claim(self.folder, "stale cache", batch)


def keyed(folder: Path, plan: list[list[Any]]) -> Any:
    """A sink that writes each micro-batch to its own folder, in overwrite mode."""

    def write(answers: Any, batch: int) -> None:
        if ["driver in sink", batch] in plan and claim(folder, "driver in sink", batch):
            kill_driver(folder)
        answers.write.mode("overwrite").parquet(str(folder / "out" / f"batch={batch}"))
        before = "driver before commit"
        if [before, batch] in plan and claim(folder, before, batch):
            kill_driver(folder)

    return write


def main() -> None:
    """Runs the stream to the end of its files, or until it is killed."""
    folder, sink, plan = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    spark = session(
        master="local[2,4]",
        config={
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.showConsoleProgress": "false",
            **WORKERS,
        },
    )
    pids = [spark.sparkContext._gateway.proc.pid, os.getpid()]
    (folder / "pids").write_text(json.dumps(pids))
    stream.Operator = Killing
    options = {"emit": "final", "buckets": 4, "publish": folder / "published"}
    answers = rolling(read(spark, folder), **ROLLING, late=LATE, **options)
    writer = answers.writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    if sink == "keyed":
        writer.foreachBatch(keyed(folder, plan)).start().awaitTermination()
    else:
        writer.format("parquet").start(str(folder / "out")).awaitTermination()


if __name__ == "__main__":
    main()
