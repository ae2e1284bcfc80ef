"""Windows whose ends are rows, over tables and streams: rows per second.

CPU time of the process; tables run on one thread. Windows of time are measured for
comparison.

    python -m bench.data_driven [FILTER] [--count ROWS] [--repeat N] [--json FILE]
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from bench.measure import Report

import slidewise as sw

AGGS = {"s": sw.sum("x"), "avg": sw.mean("x"), "hi": sw.max("x"), "last": sw.last("x")}
COLLECT = {"all": sw.collect("x")}
KEYS = (20, 50_000)
# Times are seconds over some days; a key has a row about once in this many.
SECONDS_PER_ROW = 1


def main() -> None:
    """Measures all cases."""
    title = "The speed of windows whose ends are rows."
    report = Report(title, count=1_000_000, clock=time.process_time)
    for keys in KEYS:
        table = readings(report.count, keys)
        for order, rows in (("", table), (", unsorted", unsorted(table))):
            cases(report, rows, f"{keys} keys{order}")
        streams(report, table, f"{keys} keys")
    report.write()


def readings(rows: int, keys: int) -> pa.Table:
    """Rows in order of time; every tenth has a flag, and one in fifty flags is null."""
    rng = np.random.default_rng(42)
    flags = rng.random(rows) < 0.1
    return pa.table(
        {
            "t": pa.array(np.arange(rows) * SECONDS_PER_ROW).cast(pa.timestamp("s")),
            "k": rng.integers(0, keys, rows),
            "x": rng.normal(600.0, 200.0, rows),
            "f": pa.array(flags, mask=rng.random(rows) < 0.02),
            "d": np.cumsum(rng.random(rows)),
        }
    )


def unsorted(table: pa.Table) -> pa.Table:
    """The same rows in any order."""
    return table.take(np.random.default_rng(7).permutation(len(table)))


def cases(report: Report, table: pa.Table, shape: str) -> None:
    """Each kind of window; a window of a key holds about ten rows."""
    for name, options in windows(len(table["k"].unique())).items():
        call = sw.rolling if "windows" in options else sw.hopping
        for called, aggs in (("", AGGS), (", collect", COLLECT)):
            timed = partial(
                call, table, on="t", by="k", aggs=aggs, threads=1, **options
            )
            report.rate(f"{name}, {shape}{called}", len(table), partial(_same, timed))


def streams(report: Report, table: pa.Table, shape: str) -> None:
    """The same rows in batches, and the watermark behind each."""
    kinds = windows(len(table["k"].unique()))
    for size, rows in (
        (100_000, table),
        (1000, table.slice(0, min(len(table), 100_000))),
    ):
        for name, options in kinds.items():
            case = f"stream of {name}, {shape}, {size} rows a batch"
            timed = partial(_stream, rows, size, options)
            report.rate(case, len(rows), partial(_same, timed))


def windows(keys: int) -> dict[str, dict[str, Any]]:
    """The windows of `rolling` and `hopping`, by name."""
    span = 10 * keys * SECONDS_PER_ROW
    return {
        "landmark": {"windows": sw.landmark("f")},
        "delta": {"windows": sw.delta("d", span / 2)},
        "time": {"windows": f"{span}s"},
        "rows": {"windows": sw.rows(10)},
        "until": {"window": sw.until("f")},
        "session": {"window": sw.session(f"{2 * keys}s")},
        "rows every 10 rows": {"window": sw.rows(10)},
        "tumbling": {"window": f"{span}s"},
    }


def _same(timed: Any) -> Any:
    return timed


def _stream(table: pa.Table, size: int, options: dict[str, Any]) -> None:
    made = sw.KeyedWindows(on="t", by="k", aggs=AGGS, late="1m", **options)
    for start in range(0, len(table), size):
        made.ingest(table.slice(start, size))
        made.advance()
        made.collect()


if __name__ == "__main__":
    main()
