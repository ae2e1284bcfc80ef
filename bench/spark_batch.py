"""Batch on Spark: `slidewise.spark.rolling` compared with Spark's window frames.

Three tables in Parquet: many keys (1 M rows, 10,000 keys, two days), with a fifth
as many labels for `at=`, and one skewed key (5 M rows, thirty days). Windows of 1 h and
24 h, of each count, sum, max and stddev. A third table of 90 days, with windows of one
and seven, is answered whole and for its last day alone (`only=`). Measures the whole
job into a sink that keeps nothing: wall clock, and the CPU time of the process with all
its children (JVM and Python workers), compiling included. Spark's frames run with and
without its segment tree; without it the time is proportional to the rows of a window,
so the skewed key is skipped.

The same turns measure the largest possible gain of two cores: two processes of plain
arithmetic, each alone and both at once.

    python -m bench.spark_batch --rows 1000000 --skewed 5000000 --cores 2
"""

import argparse
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.measure import machine

import slidewise as sw
from slidewise.spark import rolling, session

AGGS = {
    "n": sw.count(),
    "sum": sw.sum("v"),
    "max": sw.max("v"),
    "dev": sw.stddev("v"),
}
HOURS = {"1h": 1, "24h": 24}
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
DAY = 86_400_000_000
ARITHMETIC = """
import time
began, total = time.perf_counter(), 0
for number in range(15_000_000):
    total += number * number & 7
print(time.perf_counter() - began)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--skewed", type=int, default=5_000_000)
    parser.add_argument("--daily", type=int, default=9_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--filter", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    environment = {**machine(), "load": f"{os.getloadavg()[0]:.1f}"}
    for name, value in environment.items():
        print(f"{name:<10} {value}")
    with tempfile.TemporaryDirectory() as folder:
        figures = run(options, Path(folder))
    if options.json is not None:
        record = {"machine": environment, "figures": figures}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def run(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    many = write(folder / "many.parquet", options.rows, options.keys, days=2)
    skewed = write(folder / "skewed.parquet", options.skewed, 1, days=30)
    config = {"spark.driver.memory": "6g", "spark.ui.showConsoleProgress": "false"}
    spark = session("bench", master=f"local[{options.cores}]", config=config)
    rows, heat = spark.read.parquet(many), spark.read.parquet(skewed)
    asked = write(folder / "labels.parquet", options.rows // 5, options.keys, days=2)
    labels = spark.read.parquet(asked)
    # A row group per day.
    path = folder / "days.parquet"
    written = write(path, options.daily, options.keys, days=90, groups=90)
    days = spark.read.parquet(written)
    keys = f"{options.rows:,} rows, {options.keys:,} keys"
    whole = f"{options.daily:,} rows of 90 days"
    one = f"{options.skewed:,} rows, one key"
    cases: list[tuple[str, int, Callable[[], Any]]] = [
        (f"slidewise: {keys}", options.rows, lambda: ours(rows)),
        (f"slidewise, sampled: {keys}", options.rows, lambda: ours(rows, "sample")),
        (f"slidewise, at labels: {keys}", options.rows, lambda: ours(rows, at=labels)),
        (f"no windows at all: {keys}", options.rows, lambda: passed(rows)),
        (f"Spark, segment tree: {keys}", options.rows, lambda: theirs(rows, True)),
        (f"Spark: {keys}", options.rows, lambda: theirs(rows, False)),
        (f"slidewise: {one}", options.skewed, lambda: ours(heat)),
        (f"slidewise, sampled: {one}", options.skewed, lambda: ours(heat, "sample")),
        (f"slidewise, split=4: {one}", options.skewed, lambda: ours(heat, 4)),
        (f"Spark, segment tree: {one}", options.skewed, lambda: theirs(heat, True)),
        (f"slidewise: {whole}", options.daily, lambda: of_days(days)),
        (f"slidewise, the last day: {whole}", options.daily, lambda: of_days(days, 89)),
    ]
    selected = [case for case in cases if options.filter in case[0]]
    runs: dict[str, list[tuple[float, float]]] = {case: [] for case, _, _ in selected}
    # In turn, so that the JVM's compiler is equally warm for all cases.
    gains = []
    for _ in range(options.repeat + 1):
        gains.append(gain())
        for case, count, make in selected:
            runs[case].append(measured(count, make))
    spark.stop()
    shown = " ".join(f"{one:.2f}" for one in gains)
    print(f"two busy processes do {statistics.median(gains):.2f} x of one ({shown})")
    return [summary(case, runs[case]) for case, _, _ in selected]


def write(path: Path, count: int, keys: int, *, days: int, groups: int = 8) -> str:
    random = np.random.default_rng(7)
    times = np.sort(random.integers(0, days * DAY, count))
    table = pa.table(
        {
            "k": random.integers(0, keys, count),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": random.normal(size=count),
        }
    )
    pq.write_table(table, path, row_group_size=count // groups)
    return str(path)


def ours(df: Any, split: str | bool | int = "auto", at: Any = None) -> Any:
    call: dict[str, Any] = {"on": "ts", "by": "k", "windows": [*HOURS], "aggs": AGGS}
    return rolling(df, **call, split=split, at=at)


def of_days(df: Any, day: int | None = None) -> Any:
    """The results of one day, or of all."""
    only = None
    if day is not None:
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        only = tuple(epoch + dt.timedelta(days=of) for of in (day, day + 1))
    windows = ["1d", "7d"]
    return rolling(df, on="ts", by="k", windows=windows, aggs=AGGS, only=only)


def passed(df: Any) -> Any:
    """Only the shuffle, the sort and the transfer through Python."""
    rows = df.repartition(4, "k").sortWithinPartitions("k", "ts")
    return rows.mapInArrow(lambda batches: batches, df.schema)


def theirs(df: Any, tree: bool) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    df.sparkSession.conf.set(SEGMENT_TREE, str(tree).lower())
    functions = {"n": sf.count, "sum": sf.sum, "max": sf.max, "dev": sf.stddev}
    micros = Window.partitionBy("k").orderBy(sf.unix_micros("ts"))
    columns = {}
    for label, hours in HOURS.items():
        frame = micros.rangeBetween(1 - hours * DAY // 24, 0)
        for name, function in functions.items():
            columns[f"{name}_{label}"] = function("v").over(frame)
    return df.withColumns(columns)


def gain() -> float:
    """The throughput of two processes of plain arithmetic relative to one."""

    def seconds(many: int) -> float:
        command = [sys.executable, "-c", ARITHMETIC]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            for _ in range(many)
        ]
        return max(float(process.communicate()[0]) for process in running)

    return 2 * seconds(1) / seconds(2)


def measured(count: int, make: Callable[[], Any]) -> tuple[float, float]:
    """Runs a case: seconds of the clock, and microseconds of CPU per row."""
    wall, cpu = time.perf_counter(), tree_seconds()
    make().write.format("noop").mode("overwrite").save()
    wall, cpu = time.perf_counter() - wall, tree_seconds() - cpu
    return round(wall, 2), round(cpu / count * 1e6, 2)


def summary(case: str, runs: list[tuple[float, float]]) -> dict[str, Any]:
    """The figures of a case: the first run compiles, the others count."""
    walls, cpus = ([run[at] for run in runs] for at in (0, 1))
    figure = {
        "case": case,
        "first_wall_s": walls[0],
        "wall_s": statistics.median(walls[1:]),
        "cpu_us_per_row": statistics.median(cpus[1:]),
        "walls": walls[1:],
        "cpus": cpus[1:],
    }
    print(
        f"{case:<52} {figure['wall_s']:>7.2f} s {figure['cpu_us_per_row']:>8.2f} us CPU"
        f" per row   first {walls[0]:.2f} s   {cpus[1:]}",
        flush=True,
    )
    return figure


def tree_seconds() -> float:
    """CPU time of this process and all its children, also of those that have ended."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = entry.joinpath("stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    total, rest = 0, [os.getpid()]
    while rest:
        process = rest.pop()
        total += ticks.get(process, 0)
        rest += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
