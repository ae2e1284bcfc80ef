"""Killed drivers and workers lose, repeat and change no result."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seeds import SEED
from streams import LATE, ROLLING, FileSource, assert_follows, assert_same, written

import slidewise as sw

HELPERS = Path(__file__).parents[1] / "helpers"
DRIVER = {
    "parquet": ("driver in handler", "driver after state"),
    "keyed": ("driver in sink", "driver before commit"),
}
WORKER = ("worker in handler", "stale cache", "task fails", "worker after state")
# Per sink: one each day. `make test-crash-recovery` has both, with more kills.
DRIVERS = int(os.environ.get("SLIDEWISE_DRIVER_KILLS", "1"))
WORKERS = int(os.environ.get("SLIDEWISE_WORKER_KILLS", "2"))
DAY = SEED // 1_000_000
SINKS = (
    list(DRIVER)
    if "SLIDEWISE_DRIVER_KILLS" in os.environ
    else [list(DRIVER)[DAY % len(DRIVER)]]
)
# Workers are killed in all batches of a run but the last, the driver in the last.
BATCHES = 3


def run(folder: Path, sink: str, plan: list[tuple[str, int]]) -> int:
    """Runs the stream in a process; returns its exit code."""
    workers = str(HELPERS / "spark_workers")
    paths = [workers, str(HELPERS), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    script = str(HELPERS / "killing.py")
    command = [sys.executable, script, str(folder), sink, json.dumps(plan)]
    with (folder / "log").open("ab") as log:
        done = subprocess.run(
            command, env=environment, stdout=log, stderr=log, timeout=600, check=False
        )
    return done.returncode


def committed(folder: Path) -> int:
    """The last micro-batch that Spark has committed."""
    found = (folder / "checkpoint" / "commits").glob("[0-9]*")
    return max(int(path.name) for path in found)


def plans(sink: str) -> Iterator[list[tuple[str, int]]]:
    """The kills of each run: a driver in its last batch, workers in those before."""
    each, over = divmod(WORKERS, DRIVERS + 1)
    turns = iter(range(WORKERS * DAY, WORKERS * (DAY + 1)))
    for at in range(DRIVERS + 1):
        share = each + (at < over)
        plan = [
            (WORKER[next(turns) % len(WORKER)], BATCHES * at + kill % (BATCHES - 1))
            for kill in range(share)
        ]
        if at < DRIVERS:
            what = DRIVER[sink][at % len(DRIVER[sink])]
            plan.append((what, BATCHES * at + BATCHES - 1))
        yield plan


@pytest.mark.timeout(240 + 60 * (DRIVERS + WORKERS))
@pytest.mark.parametrize("sink", SINKS)
def test_kills_lose_and_repeat_nothing(spark: Any, tmp_path: Path, sink: str) -> None:
    """Drivers are killed at named phases, workers and tasks in between.

    A follower goes on through all kills.
    """
    source = FileSource(tmp_path, 1, LATE)
    source.write(BATCHES * (DRIVERS + 1))
    follower: Any = None
    for at, plan in enumerate(plans(sink)):
        code = run(tmp_path, sink, plan)
        expected = -9 if at < DRIVERS else 0
        assert code == expected, (tmp_path / "log").read_text()[-4000:]
        if follower is None:
            follower = sw.follow(tmp_path / "published")
        else:
            follower.refresh()
        assert follower.batch <= committed(tmp_path)
    assert follower.batch == committed(tmp_path)
    assert_follows(follower, source)
    kills = (tmp_path / "kills").read_text()
    print(f"{sink}\n{kills}")
    assert kills.count("driver") == DRIVERS
    assert kills.count("\n") == DRIVERS + WORKERS
    ours = written(spark, tmp_path, "out")
    ours = ours.drop_columns([name for name in ours.column_names if name == "batch"])
    assert_same(ours, source.expected("final", ROLLING), ["id"])
