"""Times queries of `KeyedWindows`: one key, ten, a thousand, and while rows come.

    make bench-queries [ARGS="--keys 100000 --entries 1000"] [RECORD=prefix]

Wall-clock time of single calls, in random order of keys, so that a call finds its key's
entries outside of the caches; CPU time of the thread where a row says so.
"""

import argparse
import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import slidewise as sw

HOUR = 3_600_000_000
AGGS = {
    "count": sw.count(),
    "sum": sw.sum("x"),
    "max": sw.max("x"),
    "stddev": sw.stddev("x"),
}


def filled(keys: int, entries: int, late: float) -> sw.KeyedWindows:
    """Windows over so many keys with so many entries each, over a day."""
    windows = sw.KeyedWindows(
        on="t",
        by="key",
        windows=[HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR],
        aggs=AGGS,
        emit="update",
    )
    random_rows = np.random.default_rng(1)
    rows, batch = keys * entries, 500_000
    for start in range(0, rows, batch):
        count = min(batch, rows - start)
        span = 24 * HOUR * count // rows
        times = start * 24 * HOUR // rows + np.sort(
            random_rows.integers(0, span, count)
        )
        is_late = random_rows.random(count) < late
        times[is_late] -= random_rows.integers(0, HOUR // 6, is_late.sum())
        windows.ingest(
            pa.table(
                {
                    "t": times,
                    "key": random_rows.integers(0, keys, count),
                    "x": random_rows.random(count) * 100,
                }
            )
        )
        windows.collect()
    return windows


def percentiles(call: Callable[[], object], calls: int) -> dict[str, float]:
    """The wall-clock microseconds of a call."""
    taken = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        call()
        taken.append(time.perf_counter_ns() - start)
    taken.sort()
    at = {name: taken[int(calls * share)] for name, share in SHARES.items()}
    return {name: nanoseconds / 1000 for name, nanoseconds in at.items()}


SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def main() -> None:
    """Prints a line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=100, help="per key")
    parser.add_argument("--late", type=float, default=0.0, help="share of late rows")
    parser.add_argument("--json", help="where to write the figures")
    given = parser.parse_args()
    windows = filled(given.keys, given.entries, given.late)
    figures: dict[str, object] = {}
    pick = random.Random(1)

    def some(count: int) -> pa.Table:
        return pa.table({"key": [pick.randrange(given.keys) for _ in range(count)]})

    figures["one key: us"] = percentiles(
        lambda: windows.query(pick.randrange(given.keys)), 20_000
    )
    figures["ten keys: us"] = percentiles(lambda: windows.query_many(some(10)), 2_000)
    tables = iter([some(10) for _ in range(2_000)])
    figures["ten keys, their table at hand: us"] = percentiles(
        lambda: windows.query_many(next(tables)), 2_000
    )
    batches = iter([some(10).to_batches()[0] for _ in range(2_000)])
    figures["ten keys, a record batch: us"] = percentiles(
        lambda: windows.query_many(next(batches)), 2_000
    )
    lists = iter([some(10).to_pydict() for _ in range(2_000)])
    figures["ten keys, lists: us"] = percentiles(
        lambda: windows.query_many(next(lists)), 2_000
    )
    thousand = some(1000)
    figures["thousand keys: us"] = percentiles(lambda: windows.query_many(thousand), 50)
    figures["one key beside a writer: us"] = beside_a_writer(windows, given.keys, pick)
    for name, figure in figures.items():
        print(name, figure)
    if given.json:
        text = json.dumps(vars(given) | figures, indent=2)
        Path(given.json).write_text(text, encoding="utf-8")


def beside_a_writer(
    windows: sw.KeyedWindows, keys: int, pick: random.Random
) -> dict[str, float]:
    """Queries while another thread ingests batches of 1,000 rows."""
    done = threading.Event()

    def write() -> None:
        at, random_rows = 24 * HOUR, np.random.default_rng(2)
        while not done.is_set():
            at += 1000
            batch = {
                "t": at + np.arange(1000),
                "key": random_rows.integers(0, keys, 1000),
                "x": random_rows.random(1000),
            }
            windows.ingest(pa.table(batch))
            windows.collect()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return percentiles(lambda: windows.query(pick.randrange(keys)), 20_000)
    finally:
        done.set()
        writer.join()


if __name__ == "__main__":
    main()
