"""Rolling aggregates over tables: slidewise and its peers, one core, CPU time.

    pip install -r bench/requirements-peers.txt    # in an environment with slidewise
    taskset -c 0 python -m bench.rolling_peers [FILTER] [--rows 10000000] [--out docs]

Rows arrive at random (Poisson) times, one per millisecond on average; windows of 100
ms, 10 s and 1,000 s hold about 100, 10,000 and 1,000,000 of them. Each call makes new
results. A cell is millions of rows per second of CPU time of the process: the best of
three calls (fewer if they take seconds), followed by the first one. Writes `speed.md`
and `speed.png` into --out, and all figures as JSON into --json.

bottleneck and numbagg have windows of rows, which is an easier task, as they read no
times. Slow peers get fewer rows; the table states how many.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import argparse
import gc
import json
import platform
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from bench.peers import versions
from bench.rolling_cases import CASES, PEERS, Data

if TYPE_CHECKING:
    from bench.rolling_cases import Case, Peer

CALLS = 3
# No further call is made after this many seconds.
ENOUGH = 8
WINDOWS = {"100": "100ms", "10k": "10s", "1M": "1000s"}


@dataclass(slots=True)
class Row:
    """The figures of one library in one case, in M rows/s by window."""

    case: str
    peer: str
    rows: int
    warm: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)


def main() -> None:
    """Measures the selected cases, and writes the figures."""
    parser = argparse.ArgumentParser(description="Rolling aggregates beside peers.")
    parser.add_argument("filter", nargs="?", default="", help="only cases with this")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, help="a folder for speed.md and speed.png")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    before = os.getloadavg()[0]
    rows: list[Row] = []
    for case in CASES:
        if options.filter in case.name:
            rows += measured(case, options.rows)
    run = {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "load": f"{before:.1f} before, {os.getloadavg()[0]:.1f} after",
        "date": time.strftime("%Y-%m-%d"),
        "versions": versions(),
        "rows": options.rows,
    }
    if options.json:
        figures = [{slot: getattr(row, slot) for slot in Row.__slots__} for row in rows]
        record = {"run": run, "figures": figures}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.out:
        from bench.rolling_page import write  # needs matplotlib

        write(options.out, run, rows)


def measured(case: Case, count: int) -> list[Row]:
    """Measures a case with every library that has it."""
    rows = []
    for peer in PEERS:
        if case.key not in peer.can:
            continue
        most = min(count, peer.most.get(case.key, peer.most.get("", count)))
        data = rows_of(most)
        row = Row(case.name, peer.name, most)
        for label, window in WINDOWS.items():
            if label in case.windows:
                row.first[label], row.warm[label] = rates(peer, case, data, window)
        rows.append(row)
        cells = [f"{row.warm[at]:7.1f} ({row.first[at]:.1f})" for at in row.warm]
        print(f"{case.name:<28} {peer.name:<11} {'  '.join(cells)}", flush=True)
    return rows


@lru_cache(maxsize=4)
def rows_of(count: int) -> Data:
    """The data of this many rows, drawn once."""
    return Data(count)


def rates(peer: Peer, case: Case, data: Data, window: str) -> tuple[float, float]:
    """M rows/s of the first call and of the best one."""
    call = peer.prepare(case.key, data, window)
    spent = []
    for _ in range(1 + CALLS):
        gc.collect()
        start = time.process_time()
        answer: Any = call()
        spent.append(time.process_time() - start)
        del answer
        if sum(spent) > ENOUGH:
            break
    rate = [round(data.count / seconds / 1e6, 2) for seconds in spent]
    return rate[0], max(rate)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="ascii").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
