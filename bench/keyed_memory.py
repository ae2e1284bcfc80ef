"""Measures the memory of `KeyedWindows`: bytes per entry and per key.

    make bench-memory [ARGS="--only late"] [RECORD=prefix]

A process per case ingests rows of a time, a key of 8 bytes and a value of 8 bytes, in
batches, over a day, and asks for two windows and three aggregations. `index`: the
bytes of the entries (`KeyedStore.nbytes`); `all`: `KeyedWindows.nbytes`, with the
rows as they came, from which snapshots and changes are made; `resident`: what the
process grew by.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import slidewise as sw

HOUR = 3_600_000_000
SPEC = {
    "on": "t",
    "by": "key",
    "windows": [HOUR, 24 * HOUR],
    "aggs": {"n": sw.count(), "sum": sw.sum("x"), "max": sw.max("x")},
    "emit": "update",
    "keep": 48 * HOUR,
}


@dataclass(frozen=True)
class Case:
    """So many keys of so many entries, of which a share is late."""

    name: str
    keys: int
    entries: int
    late: float = 0.0
    batch: int = 500_000


CASES = [
    Case("20 keys of 250,000", 20, 250_000),
    Case("20 keys of 250,000, 10 % late", 20, 250_000, 0.1),
    Case("5 k keys of 1,000", 5_000, 1_000),
    Case("5 k keys of 1,000, 10 % late", 5_000, 1_000, 0.1),
    Case("50 k keys of 100", 50_000, 100),
    Case("50 k keys of 100, 10 % late", 50_000, 100, 0.1),
    Case("50 k keys of 100, batches of 1 k rows", 50_000, 100, batch=1_000),
    Case("1 M keys of 5", 1_000_000, 5),
    Case("1 M keys of 1", 1_000_000, 1),
]


def resident() -> int:
    """The bytes of this process that are in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def batches(case: Case) -> list[tuple[int, int]]:
    """The first and last row of each batch."""
    rows = case.keys * case.entries
    starts = range(0, rows, case.batch)
    return [(start, min(start + case.batch, rows)) for start in starts]


def ingest(case: Case, windows: sw.KeyedWindows) -> None:
    """Ingests the rows of a case; each key has as many as any other."""
    draw = np.random.default_rng(1)
    rows = case.keys * case.entries
    for start, end in batches(case):
        times = np.arange(start, end) * 24 * HOUR // rows
        is_late = draw.random(end - start) < case.late
        times[is_late] -= draw.integers(0, HOUR // 6, is_late.sum())
        # Rows of all keys by turns, each time in another order.
        turn, place = np.divmod(np.arange(start, end), case.keys)
        keys = (place * 7_368_787 + turn * 104_729) % case.keys
        columns = {"t": times, "key": keys, "x": draw.random(end - start) * 100}
        windows.ingest(pa.table(columns))
        windows.collect()


def measure(case: Case) -> dict[str, float]:
    """The bytes of one case."""
    warm = sw.KeyedWindows(**SPEC)
    ingest(Case("", 10, 1000, case.late, case.batch), warm)
    windows = sw.KeyedWindows(**SPEC)
    before = resident()
    ingest(case, windows)
    pa.default_memory_pool().release_unused()
    grown = resident() - before
    entries = case.keys * case.entries
    index = windows._state.processor.shard.index.store.nbytes
    return {
        "index, per entry": index / entries,
        "index beyond 16 an entry, per key": (index - 16 * entries) / case.keys,
        "all, per entry": windows.nbytes / entries,
        "resident, per entry": grown / entries,
    }


def main() -> None:
    """Prints each figure, and records them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--case", help="measures this case in this process")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(Case(**json.loads(options.case)))))
        return
    figures: dict[str, float] = {}
    for case in CASES:
        if options.only not in case.name:
            continue
        command = [sys.executable, "-m", "bench.keyed_memory", "--case"]
        command.append(json.dumps(asdict(case)))
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for name, value in json.loads(done.stdout).items():
            figures[f"{case.name}: {name}"] = value
            print(f"{case.name:38} {name:34} {value:8.1f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
