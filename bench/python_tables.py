"""`slidewise.rolling` over tables of several shapes: rows per second.

CPU time of the process, summed over its threads.

    python -m bench.python_tables [FILTER] [--count ROWS] [--repeat N] [--json FILE]
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from bench.measure import Report

import slidewise as sw

WINDOWS = ("1h", "24h")
COUNT_MEAN = {"n": sw.count(), "avg": sw.mean("x")}
SIX = {
    "n": sw.count(),
    "s": sw.sum("x"),
    "avg": sw.mean("x"),
    "lo": sw.min("x"),
    "hi": sw.max("x"),
    "sd": sw.stddev("x"),
}


def main() -> None:
    """Measures all cases."""
    title = "The speed of slidewise.rolling."
    report = Report(title, count=1_000_000, clock=time.process_time)
    table = trips(report.count)
    shapes(report, table)
    orders(report, table)
    frames(report, table)
    report.write()


def trips(rows: int) -> pa.Table:
    """A year of rows in order of time: a key among 1000, a number, an arrival."""
    rng = np.random.default_rng(42)
    times = np.sort(rng.integers(0, 365 * 86_400, rows))
    return pa.table(
        {
            "t": pa.array(times).cast(pa.timestamp("s")),
            "key": rng.integers(0, 1000, rows),
            "x": rng.normal(600.0, 200.0, rows),
            "arrived": pa.array(times + rng.integers(0, 3600, rows)).cast(
                pa.timestamp("s")
            ),
        }
    )


def measure(report: Report, case: str, table: Any, **options: Any) -> None:
    """One case: the same call, repeated."""
    call = partial(sw.rolling, table, on="t", **options)
    report.rate(case, len(table), lambda: call)


def shapes(report: Report, table: pa.Table) -> None:
    """The requests: windows and aggregations."""
    x, deviation = {"s": sw.sum("x")}, {"sd": sw.stddev("x")}
    measure(report, "sum, 1 window", table, windows="24h", aggs=x)
    measure(report, "max, 1 window", table, windows="24h", aggs={"m": sw.max("x")})
    measure(report, "stddev, 1 window", table, windows="24h", aggs=deviation)
    measure(report, "sum, 100 rows", table, windows=sw.rows(100), aggs=x)
    measure(report, "sum, 1 window, 1000 keys", table, by="key", windows="24h", aggs=x)
    measure(
        report,
        "count and mean, 2 windows, 1000 keys",
        table,
        by="key",
        windows=WINDOWS,
        aggs=COUNT_MEAN,
    )
    measure(
        report,
        "six aggregations, 3 windows, 1000 keys",
        table,
        by="key",
        windows=[*WINDOWS, sw.rows(100)],
        aggs=SIX,
    )


def orders(report: Report, table: pa.Table) -> None:
    """The order of the rows, `ties=` and `arrival=`."""
    options = {"by": "key", "windows": WINDOWS, "aggs": COUNT_MEAN}
    shuffled = table.take(np.random.default_rng(7).permutation(len(table)))
    measure(report, "count and mean, unsorted table", shuffled, **options)
    measure(report, "count and mean, ties=rows", table, ties="rows", **options)
    measure(report, "count and mean, arrival=", table, arrival="arrived", **options)
    one = {"windows": "24h", "aggs": {"s": sw.sum("x")}}
    measure(report, "sum, 1 window, arrival=, one key", table, arrival="arrived", **one)


def frames(report: Report, table: pa.Table) -> None:
    """The same table as other libraries hold it."""
    options = {"by": "key", "windows": WINDOWS, "aggs": COUNT_MEAN}
    measure(report, "count and mean, pandas", table.to_pandas(), **options)
    measure(report, "count and mean, polars", pl.from_arrow(table), **options)


if __name__ == "__main__":
    main()
