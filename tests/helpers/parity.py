"""Random streams, stopped and restarted, compared with the same call over a table.

Each stream runs with `final` and `arrival` and, in turn, one of the other queries, or
with all of them. It has random numbers of partitions and buckets, and is stopped once
or twice after a random batch, or during one.

    python tests/helpers/parity.py --streams 100 --steps 30
"""

import argparse
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pyarrow as pa
from streams import (
    AGGS,
    GAP,
    JVM,
    LATE,
    RENAMES,
    ROLLING,
    FileSource,
    assert_same,
    read,
    start,
    written,
)

import slidewise as sw
from slidewise.spark import hopping, rolling, session

ORDERED = {"all": sw.collect("x"), "last": sw.last("word")}
HOPPING: dict[str, Any] = {
    "on": "t",
    "by": "key",
    "window": "1m",
    "every": "10s",
    "aggs": AGGS,
}
BY = {"slide": ["key", "window_end"], "update": ["key", "t", "n_2m"]}
SOME = {"on": "t", "by": "key", "aggs": AGGS}
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "final": ("final", ROLLING),
    "arrival": ("arrival", ROLLING),
    "slide": ("slide", HOPPING),
    "update": ("update", ROLLING),
    "by-columns": ("arrival", {**ROLLING, "arrival": ["came", "t"]}),
    "sessions": ("slide", {**SOME, "window": sw.session(GAP)}),
    "empty": ("slide", {**SOME, "window": "4s", "every": "4s", "empty": True}),
    "ordered": ("final", {**ROLLING, "aggs": ORDERED, "windows": [sw.rows(3), "1m"]}),
}
# The number of queries that every stream runs.
ALWAYS = 2
_CONFIG = {
    "spark.driver.extraJavaOptions": JVM,
    "spark.driver.memory": "3g",
    "spark.default.parallelism": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
    "spark.ui.showConsoleProgress": "false",
    **RENAMES,
}
# Spark waits ten seconds for the Python process that starts with each query.
_STARTING = threading.Semaphore(2)
_BUSY = "Python worker failed to connect back"


class Script:
    """A stream: its batches, its stops and its queries.

    Args:
        spark: The session; the script runs in a new session of its context.
        folder: Where files go.
        seed: The seed of all random choices.
        steps: The number of batches.
        names: Keys of `QUERIES`.
    """

    def __init__(
        self, spark: Any, folder: Path, seed: int, steps: int, names: Sequence[str]
    ) -> None:
        self.random = random.Random(f"stops of {seed}")
        self.spark = spark.newSession()
        partitions = self.random.choice([1, 1, 2, 2, 3, 4])
        self.spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        self.buckets = self.random.choice([1, 3, 8])
        self.source, self.folder = FileSource(folder, seed, LATE), folder
        self.steps, self.names = steps, names
        self.counts: Counter[str] = Counter(streams=1)

    def run(self) -> Counter[str]:
        """Runs the stream; returns the numbers of compared cells.

        Raises:
            AssertionError: Naming the first cell that differs.
        """
        many = self.random.choice([1, 1, 2])
        stops = sorted(self.random.sample(range(1, self.steps), many))
        before = 0
        for stop in [*stops, self.steps]:
            self.source.write(stop - before)
            # The next round reads the rest of an interrupted one.
            interrupt = stop < self.steps and self.random.random() < 0.5
            after = self.random.randrange(stop - before) if interrupt else None
            self._round(after)
            before = stop
        for name in self.names:
            self._compare(name)
        rows = sum(map(len, self.source.batches))
        accepted = sum(map(len, self.source.accepted()))
        self.counts.update(batches=self.steps, rows=rows, late=rows - accepted)
        return self.counts

    def _round(self, after: int | None) -> None:
        """Starts all queries; they end by themselves, or are stopped after batches."""
        queries = [self._started(name) for name in self.names]
        for query, began in queries:
            if after is not None:
                while query.isActive and _batch(query) < began + after:
                    time.sleep(0.02)
                self.counts["interrupted"] += query.isActive
                query.stop()
            query.awaitTermination()
            self.counts["starts"] += 1

    def _started(self, name: str) -> tuple[Any, int]:
        """Starts a query; returns it, and its first micro-batch."""
        emit, spec = QUERIES[name]
        function = hopping if emit == "slide" else rolling
        then_by = "id" if name == "ordered" else None
        call = {**spec, "late": LATE, "emit": emit, "then_by": then_by}
        answers = function(read(self.spark, self.folder), **call, buckets=self.buckets)
        with _STARTING:
            while True:
                query = start(answers, self.folder, name)
                while query.isActive and query.lastProgress is None:
                    time.sleep(0.02)
                if _BUSY not in str(query.exception()):
                    return query, _batch(query)
                self.counts["started again"] += 1

    def _compare(self, name: str) -> None:
        emit, spec = QUERIES[name]
        source = self.source.as_read(self.folder / f"{name}-checkpoint")
        expected = source.expected(emit, spec, then_by="id")
        ours = written(self.spark, self.folder, name)
        assert_same(ours, expected, BY.get(emit, ["id"]))
        self.counts["answers"] += len(expected)
        self.counts["cells"] += len(expected) * expected.num_columns


def _batch(query: Any) -> int:
    """The last micro-batch that is committed."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def names_of(seed: int) -> list[str]:
    """The queries of one stream among many."""
    names = list(QUERIES)
    return [*names[:ALWAYS], names[ALWAYS + seed % (len(names) - ALWAYS)]]


def main() -> int:
    """Runs the streams; returns 1 if one of them differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30, help="batches of each")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument(
        "--all", action="store_true", help="all queries for each stream"
    )
    options = parser.parse_args()
    pa.set_cpu_count(2)
    spark = session("parity", master="local[2]", config=_CONFIG)
    counts: Counter[str] = Counter()
    began, differing = time.monotonic(), 0

    def run(seed: int) -> Counter[str]:
        with tempfile.TemporaryDirectory(
            prefix="parity-", ignore_cleanup_errors=True
        ) as folder:
            names = list(QUERIES) if options.all else names_of(seed)
            return Script(spark, Path(folder), seed, options.steps, names).run()

    seeds = range(options.first, options.first + options.streams)
    with ThreadPoolExecutor(options.at_once) as pool:
        runs = {pool.submit(run, seed): seed for seed in seeds}
        for done in as_completed(runs):
            try:
                counts += done.result()
                summary = ", ".join(
                    f"{value:,} {name}" for name, value in counts.items()
                )
            except Exception:  # noqa: BLE001 - the others go on
                traceback.print_exc()
                differing += 1
                summary = "DIFFERS OR FAILED"
            seconds = time.monotonic() - began
            print(f"{seconds:,.0f} s, seed {runs[done]}: {summary}", flush=True)
    spark.stop()
    print(f"{len(seeds)} streams from seed {options.first}, {differing} of them differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
