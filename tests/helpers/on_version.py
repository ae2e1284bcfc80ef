"""Compares results on the installed PySpark with those over tables, cell by cell.

    python tests/helpers/on_version.py

Prints a line per check, and last a JSON object; tests/helpers/versions.py runs it in an
environment per version.
"""

import datetime as dt
import json
import platform
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import pyarrow as pa  # noqa: E402
import pyspark  # noqa: E402
import pytest  # noqa: E402
from parity import HOPPING  # noqa: E402
from random_tables import NEAR, random_table  # noqa: E402
from streams import LATE, ROLLING, FileSource, read, start  # noqa: E402

import slidewise as sw  # noqa: E402
from slidewise.errors import SpecError  # noqa: E402
from slidewise.spark import (  # noqa: E402
    explain,
    hopping,
    metrics,
    rolling,
    session,
    skew,
)
from slidewise.spark.versions import VERSION, to_arrow  # noqa: E402

AGGS = {
    "n": sw.count(),
    "sum": sw.sum("i"),
    "total": sw.sum("x"),
    "avg": sw.mean("x"),
    "low": sw.min("x"),
    "high": sw.max("i"),
    "dev": sw.stddev("x"),
    "first": sw.first("s"),
    "last": sw.last("i"),
    "q": sw.quantile("i", 0.9),
    "all": sw.collect("i"),
}
CONFIG = {
    "spark.sql.shuffle.partitions": "3",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
}
STREAMS = (4, 1)


class Differing:
    """Counts compared cells, and collects differences."""

    def __init__(self) -> None:
        self.cells = 0
        self.found: list[str] = []

    def compare(self, what: str, ours: pa.Table, table: pa.Table, by: Any) -> None:
        """Compares two tables, in any order of rows."""
        before, found = self.cells, len(self.found)
        if ours.column_names != table.column_names or len(ours) != len(table):
            self.found.append(
                f"{what}: {len(ours)} rows of {ours.column_names}, not {len(table)} of "
                f"{table.column_names}"
            )
        else:
            order = [(name, "ascending") for name in by]
            ours, table = ours.sort_by(order), table.sort_by(order)
            for name in table.column_names:
                pairs = zip(
                    ours[name].to_pylist(), table[name].to_pylist(), strict=True
                )
                for at, (a, b) in enumerate(pairs):
                    self.cells += 1
                    if not _same(a, b):
                        self.found.append(f"{what}: {name} of row {at}: {a}, not {b}")
        print(
            f"  {what}: {self.cells - before} cells, "
            f"{len(self.found) - found} differences",
            flush=True,
        )


def _same(a: Any, b: Any) -> bool:
    if a == b or repr(a) == repr(b):
        return True
    if isinstance(a, dt.datetime) and isinstance(b, dt.datetime):
        # One may lack the time zone of the session, which is UTC.
        return a.replace(tzinfo=None) == b.replace(tzinfo=None)
    return (
        isinstance(a, float)
        and isinstance(b, float)
        and abs(a - b) <= NEAR * max(abs(a), abs(b))
    )


def batch(spark: Any, differing: Differing, folder: Path) -> None:
    """Compares keys of text and floats, skewed keys, orders, deletions and hops."""
    import pyarrow.parquet as pq

    def frame(table: pa.Table, name: str) -> Any:
        pq.write_table(table, folder / f"{name}.parquet")
        return spark.read.parquet(str(folder / f"{name}.parquet"))

    rng = random.Random(5)
    table = random_table(rng, 400, keys=4, span=300)
    zeros = [rng.choice([0.0, -0.0, 1.5, None]) for _ in range(400)]
    table = table.append_column("z", pa.array(zeros, pa.float64()))
    ticks = table["t"].cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
    timed = table.set_column(table.column_names.index("t"), "t", ticks)
    whole, instants = frame(table, "whole"), frame(timed, "instants")
    assert to_arrow(instants.where("false")).num_rows == 0
    call: dict[str, Any]
    for by in ("k", "z"):
        call = {"on": "t", "by": by, "windows": [9, sw.rows(3)], "aggs": AGGS}
        answers = to_arrow(rolling(whole, then_by="row", **call))
        differing.compare(f"rolling by {by}", answers, _table(call, table), ["row"])
        call = {"on": "t", "by": by, "window": 20, "every": 5, "aggs": AGGS}
        windows = to_arrow(hopping(whole, then_by="row", **call))
        expected = sw.hopping(table, **call)
        differing.compare(f"hopping by {by}", windows, expected, [by, "window_end"])
    plain = {name: AGGS[name] for name in ("n", "sum", "avg", "dev", "q")}
    call = {"on": "t", "by": "k", "windows": ["9us", "80us"], "aggs": plain}
    answers = to_arrow(rolling(instants, **call))
    differing.compare("sorted by the sort key", answers, _table(call, timed), ["row"])
    for name, rows, windows in (("whole", table, 60), ("instants", timed, "60us")):
        call = {"on": "t", "by": ["k", "z"], "windows": windows, "aggs": plain}
        df = {"whole": whole, "instants": instants}[name]
        least, skew._MIN_SKEWED_ROWS_EXPLICIT = skew._MIN_SKEWED_ROWS_EXPLICIT, 10
        answers = to_arrow(rolling(df, split=3, partitions=5, **call))
        skew._MIN_SKEWED_ROWS_EXPLICIT = least
        differing.compare(f"splits of {name}", answers, _table(call, rows), ["row"])
    call = {"on": "t", "by": "k", "windows": 30, "aggs": AGGS, "arrival": "a"}
    answers = to_arrow(rolling(whole, then_by="row", **call))
    expected = sw.rolling(table, at=table, **call)
    differing.compare("arrival=", answers, expected, ["row"])
    order = pa.array([rng.choice([None, 1.0, 2.0]) for _ in range(400)], pa.float64())
    ordered = table.append_column("o", order)
    ordered = ordered.append_column(
        "gone", pa.array([at % 9 == 4 for at in range(400)])
    )
    call = {"on": "t", "by": "k", "windows": 30, "aggs": AGGS}
    df = frame(ordered, "ordered").select(ordered.column_names)
    sorted_rows = ordered.sort_by([("o", "ascending"), ("row", "ascending")])
    answers = to_arrow(rolling(df, then_by=["o", "row"], **call))
    expected = _table(call, sorted_rows)
    differing.compare("then_by= with nulls", answers, expected, ["row"])
    answers = to_arrow(rolling(df, then_by=["o", "row"], deletes="gone", **call))
    expected = _table(call, _left(sorted_rows))
    differing.compare("deletes=", answers, expected, ["row"])
    assert explain(df, then_by="row", **call)


def _table(call: dict[str, Any], table: pa.Table) -> pa.Table:
    return sw.rolling(table, **call)


def _left(rows: pa.Table) -> pa.Table:
    """The rows that are neither deletions nor deleted, in their order."""
    kept = [row for row in rows.to_pylist() if not row["gone"]]
    for row in rows.to_pylist():
        place = row["k"], row["t"]
        there = [one for one in kept if (one["k"], one["t"]) == place]
        if row["gone"] and there:
            kept.remove(there[0])
    return pa.Table.from_pylist(kept, rows.schema)


def streams(spark: Any, differing: Differing, folder: Path) -> None:
    """Runs a stream per emit, stopped and restarted from its checkpoint."""
    source = FileSource(folder, 8, LATE)
    queries = {
        "final": (rolling, ROLLING),
        "arrival": (rolling, ROLLING),
        "update": (rolling, ROLLING),
        "slide": (hopping, HOPPING),
    }
    by = {"slide": ["key", "window_end"], "update": ["key", "t", "n_2m"]}
    for restart in (False, True):
        source.write(3)
        for emit, (function, call) in queries.items():
            answers = function(read(spark, folder), **call, late=LATE, emit=emit)
            query = start(answers, folder, emit)
            query.awaitTermination()
            assert metrics(query)["batches"] >= 3
            ours = to_arrow(spark.read.parquet(str(folder / emit)))
            expected = source.expected(emit, call)
            if "batch" in expected.column_names:
                expected = expected.drop_columns("batch")
            what = f"stream, {emit}" + (", from its checkpoint" if restart else "")
            differing.compare(what, ours, expected, by.get(emit, ["id"]))


def refused(spark: Any) -> None:
    """Checks that streams are refused in one line."""
    df = spark.readStream.format("rate").load()
    call: Any = {"on": "timestamp", "windows": "1h", "aggs": {"n": sw.count()}}
    message = f"streams need PySpark 4.1 or later; this is {pyspark.__version__}"
    with pytest.raises(SpecError, match=re.escape(message)):
        rolling(df, late="1m", **call)
    print(f"  refused: {message}")


def main() -> None:
    """Runs all checks, and prints a report."""
    differing = Differing()
    spark = session("versions", master="local[2]", config=CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        batch(spark, differing, Path(folder))
        ran = "batch"
        if VERSION >= STREAMS:
            streams(spark, differing, Path(folder) / "feed")
            ran = "batch, streams, restarts"
        else:
            refused(spark)
            ran = "batch; streams are refused"
    spark.stop()
    report = {
        "version": pyspark.__version__,
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "ran": ran,
        "cells": differing.cells,
        "differences": differing.found,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
