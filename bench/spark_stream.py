"""Streams on Spark: windows over streams compared with Spark's own operators.

- many keys: 500,000 rows per micro-batch over 50,000 keys, windows of 1 h and 24 h,
  each with count, sum and max, `emit="update"`; compared with Spark's running sum per
  key.
- huge windows: 20 keys with 10,000 or 1,000,000 rows in 24 h, 1,000 new ones per key
  and micro-batch, `emit="arrival"`, 1 h + 24 h; and with 10 % of the rows late by up to
  1 h. Earlier rows are given as `initial=`.
- restart: the first of these, killed with all its processes (-9) after a few
  micro-batches: from the start of the next process to its first micro-batch in a sink.
- hops: windows of 60 and of 1,440 slides, of several sets of aggregations, and the
  share of closed windows that were emitted; compared with Spark's `window()` at 60.

Each micro-batch has two Parquet files; the sink keeps nothing; checkpoints are
changelogs. Rates are per time of `addBatch`, which includes the commit of the state;
CPU time is that of the process with all its children, per event. The first batches
(compiling, initial state) are left out.

    python -m bench.spark_stream --filter keys --json record.json
"""

import argparse
import datetime as dt
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bench.measure import machine
from bench.spark_batch import tree_seconds
from bench.spark_restart import seconds_to_first

import slidewise as sw
from slidewise.spark import hopping, metrics, rolling, session

HOUR, DAY = 3_600_000_000, 86_400_000_000
SCHEMA = pa.schema(
    [("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())]
)
AGGS = {"n": sw.count(), "sum": sw.sum("v"), "max": sw.max("v")}
WINDOWS = ["1h", "24h"]
# The aggregations of hops: with and without a count of rows, in one call and in
# several.
HOPS = {
    "count": {"n": sw.count()},
    "mean": {"mean": sw.mean("v")},
    "sum": {"sum": sw.sum("v")},
    "sum + max": {"sum": sw.sum("v"), "max": sw.max("v")},
    "sum + max + count": {"sum": sw.sum("v"), "max": sw.max("v"), "n": sw.count()},
}
CONFIG = {
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
}
# Micro-batches that are not counted.
WARM_UP_BATCHES = 3
# Files per micro-batch: two, so that both cores read.
FILES = 2


class Source:
    """Files of random rows, two per micro-batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.random = np.random.default_rng(3)

    def write(self, at: int, keys: Any, times: Any) -> None:
        halves = zip(
            np.array_split(keys, FILES), np.array_split(times, FILES), strict=True
        )
        for part, (keys, times) in enumerate(halves):
            values = self.random.random(len(keys))
            columns = [pa.array(keys), pa.array(times.astype("int64")), values]
            table = pa.table(columns, names=SCHEMA.names).cast(SCHEMA)
            place = FILES * at + part
            path = self.folder / f"{place:05}.parquet"
            # Moved in whole: a running query must not read an incomplete file.
            hidden = self.folder / f".{place:05}"
            pq.write_table(table, hidden)
            hidden.rename(path)
            os.utime(path, (1_000_000_000 + place, 1_000_000_000 + place))

    def stream(self, spark: Any) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = spark.readStream.schema(from_arrow_schema(SCHEMA))
        return reader.option("maxFilesPerTrigger", FILES).parquet(str(self.folder))


def many_keys(folder: Path, batches: int, rows: int, keys: int) -> Source:
    source, span = Source(folder), 600_000_000
    for at in range(batches):
        times = DAY + at * span + source.random.integers(0, span, rows)
        source.write(at, source.random.integers(0, keys, rows), times)
    return source


def huge(folder: Path, batches: int, entries: int, late: float) -> tuple[Source, str]:
    """New rows, and the file of earlier rows."""
    source, keys, new = Source(folder / "new"), 20, 1000
    step = DAY // entries
    history = Source(folder / "history")
    places = np.arange(entries)
    for at, part in enumerate(np.array_split(places, max(1, entries // 50_000))):
        times = DAY + np.repeat(part, keys) * step
        history.write(at, np.tile(np.arange(keys), len(part)), times)
    for at in range(batches):
        places = np.repeat(entries + at * new + np.arange(new), keys)
        times = DAY + places * step
        behind = source.random.integers(0, HOUR, len(times))
        times = np.where(source.random.random(len(times)) < late, times - behind, times)
        source.write(at, np.tile(np.arange(keys), new), times)
    return source, str(folder / "history")


def hops(folder: Path, batches: int, rows: int) -> Source:
    """20 keys; ten minutes of event time per micro-batch."""
    source, span = Source(folder), 600_000_000
    for at in range(batches):
        times = DAY + at * span + source.random.integers(0, span, rows)
        source.write(at, source.random.integers(0, 20, rows), times)
    return source


def run(answers: Any, folder: Path, name: str, mode: str = "append") -> dict[str, Any]:
    """Runs a query over its files; returns the times of its micro-batches."""
    progress: list[Any] = []
    spent = tree_seconds()
    writer = answers.writeStream.format("noop").outputMode(mode)
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    spent = tree_seconds() - spent
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
    counted = progress[WARM_UP_BATCHES:]
    added = [batch["durationMs"]["addBatch"] / 1000 for batch in counted]
    rows = [batch["numInputRows"] for batch in counted]
    figure: dict[str, Any] = {
        "batches": len(counted),
        "rows_per_s": round(
            statistics.median(r / s for r, s in zip(rows, added, strict=True))
        ),
        "add_batch_s": round(statistics.median(added), 3),
        "all_add_batch_s": [round(seconds, 2) for seconds in added],
        "cpu_us_per_row_whole_query": round(
            spent / sum(batch["numInputRows"] for batch in progress) * 1e6, 2
        ),
    }
    if "slidewise" in progress[-1]["observedMetrics"]:
        whole = metrics(query)
        figure |= {name: whole[name] for name in ("answers", "watermark")}
        measured = [metrics(batch) for batch in counted]
        for key in (
            "bytes_read",
            "bytes_written",
            "pages_read",
            "pages_written",
            "cached_pages",
            "cached",
            "seconds",
        ):
            figure[key] = round(statistics.median(one[key] for one in measured), 3)
    return figure


def cases(options: argparse.Namespace, spark: Any, folder: Path) -> Iterator[Any]:
    """The cases: names and functions."""
    from pyspark.sql import functions as sf

    count, rows = options.batches + WARM_UP_BATCHES, options.rows

    def keys() -> Source:
        return many_keys(folder / "keys", count, rows, options.keys)

    def ours_keys() -> dict[str, Any]:
        stream = keys().stream(spark)
        answers = rolling(
            stream,
            on="ts",
            by="k",
            windows=WINDOWS,
            aggs=AGGS,
            late="10m",
            emit="update",
        )
        return run(answers, folder, "keys")

    def theirs_keys() -> dict[str, Any]:
        stream = Source.stream(_again(folder / "keys", keys), spark)
        return run(stream.groupBy("k").agg(sf.sum("v")), folder, "sums", "update")

    yield "keys: slidewise, 1h+24h, update", ours_keys
    yield "keys: Spark, running sum", theirs_keys
    for engine in ("slidewise", "spark"):

        def restart(engine: str = engine) -> dict[str, Any]:
            place = folder / "restart"
            source = _again(place, lambda: many_keys(place, 30, rows, options.keys))
            found = seconds_to_first(source.folder, engine, options.restarts)
            return {"first_result_s": statistics.median(found), "all": found}

        yield f"restart after kill -9: {engine}", restart
    for entries in options.entries:
        for late in (0.0, 0.1):

            def ours_huge(entries: int = entries, late: float = late) -> dict[str, Any]:
                place = folder / f"huge-{entries}-{late}"
                source, history = huge(place, count, entries, late)
                answers = rolling(
                    source.stream(spark),
                    on="ts",
                    by="k",
                    windows=WINDOWS,
                    aggs={"sum": sw.sum("v"), "max": sw.max("v")},
                    late="2h",
                    emit="arrival",
                    initial=spark.read.parquet(history),
                )
                return run(answers, place, "query")

            yield f"huge: {entries:,} rows per key, {late:.0%} late", ours_huge
    for slides, name in ((slides, name) for slides in (60, 1440) for name in HOPS):

        def ours_hops(slides: int = slides, name: str = name) -> dict[str, Any]:
            source = _again(
                folder / "hops", lambda: hops(folder / "hops", count, options.events)
            )
            request: dict[str, Any] = {"on": "ts", "by": "k", "window": f"{slides}m"}
            request |= {"every": "1m", "aggs": HOPS[name]}
            answers = hopping(source.stream(spark), **request, late="1m")
            figure = run(answers, folder, f"hops-{slides}-{name}")
            rows = pq.read_table(source.folder, schema=SCHEMA)
            ends = sw.hopping(rows, **request)["window_end"]
            watermark = dt.datetime.fromtimestamp(figure["watermark"], dt.UTC)
            over = pc.less_equal(ends, watermark)
            return {**figure, "windows_over": pc.sum(over).as_py()}

        yield f"hops: slidewise, {slides} slides, {name}", ours_hops

    def theirs_hops() -> dict[str, Any]:
        source = hops(folder / "hops-spark", count, options.events // 50)
        stream = source.stream(spark).withWatermark("ts", "1 minute")
        window = sf.window("ts", "60 minutes", "1 minute")
        answers = stream.groupBy("k", window).agg(sf.sum("v"), sf.max("v"))
        return run(answers, folder, "hops-spark")

    yield "hops: Spark's window(), 60 slides", theirs_hops


def _again(folder: Path, make: Callable[[], Source]) -> Source:
    """A source whose files may already exist."""
    if not folder.exists():
        return make()
    source = Source.__new__(Source)
    source.folder = folder
    return source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=8, help="counted ones")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--entries", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--filter", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    environment = {**machine(), "load": f"{os.getloadavg()[0]:.1f}"}
    for name, value in environment.items():
        print(f"{name:<10} {value}")
    spark = session("bench", master="local[2]", config=CONFIG)
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in cases(options, spark, Path(folder)):
            if options.filter in name:
                figure = {"case": name, **measure()}
                figures.append(figure)
                print(json.dumps(figure), flush=True)
    spark.stop()
    if options.json is not None:
        record = {"machine": environment, "figures": figures}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
