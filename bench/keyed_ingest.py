"""Times `KeyedWindows`: ingest, answers, and the changes that followers apply.

    make bench-keyed [ARGS="--only '50 k'"] [RECORD=prefix]

CPU time of the process per row: `ingest`, `advance` and `collect` of batches of random
rows that span ten minutes each, from empty, two windows and three aggregations.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import slidewise as sw

MINUTE = 60_000_000
SPEC = {
    "on": "t",
    "by": "key",
    "windows": [60 * MINUTE, 24 * 60 * MINUTE],
    "aggs": {"n": sw.count(), "sum": sw.sum("x"), "max": sw.max("x")},
}


@dataclass(frozen=True)
class Case:
    """A stream: its keys, rows per batch, batches, and share of late rows."""

    name: str
    keys: int
    rows: int
    batches: int
    emit: str
    late: float = 0.0


CASES = [
    Case("50 k keys, 500 k rows a batch", 50_000, 500_000, 6, "final"),
    Case("50 k keys, 500 k rows a batch, 10 % late", 50_000, 500_000, 6, "final", 0.1),
    Case("50 k keys, 500 k rows a batch, arrival", 50_000, 500_000, 6, "arrival"),
    Case("50 k keys, 1 k rows a batch", 50_000, 1_000, 200, "final"),
    Case("50 k keys, 1 k rows a batch, arrival", 50_000, 1_000, 200, "arrival"),
    Case("1 M keys, 500 k rows a batch", 1_000_000, 500_000, 6, "final"),
    Case("20 keys, 500 k rows a batch", 20, 500_000, 10, "final"),
]


def batches(case: Case) -> list[pa.Table]:
    """The batches of a case."""
    draw = np.random.default_rng(1)
    made = []
    for number in range(case.batches):
        times = number * 10 * MINUTE + draw.integers(0, 10 * MINUTE, case.rows)
        late = draw.random(case.rows) < case.late
        times[late] -= draw.integers(0, 10 * MINUTE, late.sum())
        columns = {
            "t": times,
            "key": draw.integers(0, case.keys, case.rows),
            "x": draw.random(case.rows) * 100,
        }
        made.append(pa.table(columns))
    return made


def per_row(case: Case) -> float:
    """Microseconds of CPU per row, the first batch left out."""
    windows = sw.KeyedWindows(**SPEC, emit=case.emit, late=10 * MINUTE)
    spent = []
    for batch in batches(case):
        started = time.process_time()
        windows.ingest(batch)
        windows.advance()
        windows.collect()
        spent.append(time.process_time() - started)
    return sum(spent[1:]) / (len(spent) - 1) / case.rows * 1e6


def followed(keys: int, rounds: int) -> dict[str, float]:
    """One new row of each key: the size and time of `changes`, and of `apply`."""
    leader = sw.KeyedWindows(**SPEC, emit="update")
    names = np.array([f"card{at:08}" for at in range(keys)])
    follower, sizes, gave, took = None, [], [], []
    for number in range(rounds):
        columns = {"t": np.full(keys, number), "key": names, "x": np.ones(keys)}
        leader.ingest(pa.table(columns))
        leader.collect()
        if follower is None:
            follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **SPEC)
            continue
        started = time.process_time()
        changes = leader.changes()
        made = time.process_time()
        follower.apply(changes)
        took.append(time.process_time() - made)
        gave.append(made - started)
        sizes.append(len(changes))
    return {
        "changes, median MB": statistics.median(sizes) / 1e6,
        "changes, mean MB": statistics.mean(sizes) / 1e6,
        "changes, median ms": statistics.median(gave) * 1e3,
        "apply, median M rows/s": keys / statistics.median(took) / 1e6,
        "apply, mean M rows/s": keys / statistics.mean(took) / 1e6,
    }


def main() -> None:
    """Prints each figure, and records them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    for case in CASES:
        if options.only in case.name:
            figures[f"{case.name}, µs/row"] = per_row(case)
            print(f"{case.name:45} {figures[f'{case.name}, µs/row']:8.2f} µs/row")
    if options.only in "10 k changes":
        for name, value in followed(10_000, 60).items():
            figures[f"10 k keys: {name}"] = value
            print(f"10 k keys: {name:34} {value:8.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
