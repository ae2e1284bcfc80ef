"""Both engines on the same trips: in process, and on Spark as a table and as a stream.

    python examples/trips/demo_spark.py

The stream comes in bursts and out of order, as a server receives trips. Answers that
wait for late rows are compared with the batch answer over the rows that were not too
late, and answers on arrival with the batch answer as of each row's arrival.
"""

import argparse
import os
import random
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slidewise as sw
import trips
from demo import AGGS
from slidewise.cli.terminal import print_table
from slidewise.spark import rolling, session

REQUEST: dict[str, Any] = {
    "on": "starttime",
    "by": "start station id",
    "windows": ["1h", "24h"],
    "aggs": AGGS,
}
RESULTS = [f"{name}_{window}" for window in REQUEST["windows"] for name in AGGS]
LATE = "30m"
# The relative difference allowed between sums of floats that were added in another
# order.
ROUNDING = 1e-12
UTC = pa.timestamp("us", "UTC")


def main() -> None:
    """Reads the command line, starts Spark and runs the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000, help="how many trips")
    parser.add_argument("--seed", type=int, default=7, help="of the generator")
    options = parser.parse_args()
    if options.rows < 1:
        parser.error(f"--rows is 1 or more, got {options.rows}")
    config = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)}
    config["spark.ui.showConsoleProgress"] = "false"
    spark = session("slidewise demo", config=config)
    try:
        run(spark, options.rows, options.seed)
    finally:
        spark.stop()


def run(spark: Any, rows: int = 200_000, seed: int = 7, count: int = 9) -> None:
    """Runs the demo on a session of Spark, the stream in `count` bursts.

    Raises:
        SystemExit: If the engines disagree in a cell.
    """
    bursts = burst(trips.generate(rows, seed=seed), count, seed)
    print(
        f"{rows:,} trips, in the order in which a server receives them, in "
        f"{len(bursts)} bursts of {min(map(len, bursts)):,} to "
        f"{max(map(len, bursts)):,}.\n"
        f"{', '.join(AGGS)} over {', '.join(REQUEST['windows'])} per station:\n"
    )
    with TemporaryDirectory(prefix="slidewise-") as folder:
        lines = compare(spark, bursts, Path(folder))
    print_table(pa.Table.from_pylist(lines))
    cells = sum(line["cells differ"] or 0 for line in lines)
    if cells:
        raise SystemExit(f"the engines disagree in {cells:,} cells")
    print(
        f"\nThe watermark is {LATE} behind the latest trip; late rows were left out "
        "and counted.\n0 cells differ."
    )


def compare(spark: Any, bursts: list[pa.Table], folder: Path) -> list[dict[str, Any]]:
    """Computes the same with both engines and prints a line for each."""
    table = pa.concat_tables(bursts)
    pq.write_table(table, folder / "trips.parquet")
    write_bursts(bursts, folder / "in")
    lines = []

    def add(name: str, answers: pa.Table, began: float, **more: int) -> None:
        line = {"engine": name, "rows": len(answers), "late": None}
        line["answers"] = len(answers) * len(RESULTS)
        line["seconds"] = round(time.perf_counter() - began, 2)
        lines.append({**line, "cells differ": None, **more})

    began = time.perf_counter()
    local = sw.rolling(table, **REQUEST)
    add("in process", local, began)
    began = time.perf_counter()
    rows = spark.read.parquet(str(folder / "trips.parquet"))
    answers = rolling(rows, **REQUEST).toArrow()
    add("Spark, table", answers, began, **{"cells differ": differing(answers, local)})
    for emit, name in (("final", "final"), ("arrival", "on arrival")):
        began = time.perf_counter()
        answers = stream(spark, folder, emit)
        late = answers.filter(answers["_late"])
        answers = answers.filter(pc.invert(answers["_late"]))
        is_late = pc.is_in(table["trip"], value_set=late["trip"])
        expected = batch_answer(table.filter(pc.invert(is_late)), emit)
        differ = {"late": len(late), "cells differ": differing(answers, expected)}
        add(f"Spark, stream, {name}", answers, began, **differ)
    return lines


def write_bursts(bursts: list[pa.Table], folder: Path) -> None:
    """Writes a file for each burst, and one that moves the watermark past the end."""
    folder.mkdir()
    first = bursts[0].slice(0, 1)
    last = pc.max(pa.concat_tables(bursts)["starttime"]).as_py()
    end = first.set_column(
        0, "starttime", pa.array([last.replace(year=last.year + 1)], UTC)
    )
    for number, rows in enumerate([*bursts, end]):
        marker = pa.array([number == len(bursts)] * len(rows))
        path = folder / f"{number:03}.parquet"
        pq.write_table(rows.append_column("flush", marker), path)
        # Spark takes files by their age.
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def stream(spark: Any, folder: Path, emit: str) -> pa.Table:
    """The answers of a stream that takes one file in each micro-batch."""
    source = str(folder / "in")
    schema = spark.read.parquet(source).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    answers = rolling(
        rows.parquet(source),
        **REQUEST,
        late=LATE,
        emit=emit,
        late_rows="flag",
        marker="flush",
    )
    out = str(folder / emit)
    writer = answers.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", out + "-checkpoint")
    writer.start(out).awaitTermination()
    written: pa.Table = spark.read.parquet(out).toArrow()
    return written


def burst(stream: pa.Table, count: int, seed: int) -> list[pa.Table]:
    """Splits the stream into numbered parts of very different sizes."""
    for name in ("starttime", "stoptime", "arrived"):
        at = stream.column_names.index(name)
        stream = stream.set_column(at, name, stream[name].cast(UTC))
    stream = stream.append_column("trip", pa.array(range(len(stream)), pa.int64()))
    draw = random.Random(seed)
    weights = [draw.lognormvariate(0.0, 1.0) for _ in range(count)]
    share = len(stream) / sum(weights)
    ends = [int(share * sum(weights[: at + 1])) for at in range(count - 1)]
    bounds = [0, *ends, len(stream)]
    parts = [
        stream.slice(begin, end - begin).append_column(
            "burst", pa.array([at] * (end - begin), pa.int64())
        )
        for at, (begin, end) in enumerate(pairwise(bounds))
    ]
    return [part for part in parts if len(part)]


def batch_answer(accepted: pa.Table, emit: str) -> pa.Table:
    """The batch answer that a stream must equal."""
    if emit == "final":
        return sw.rolling(accepted, **REQUEST)
    return sw.rolling(accepted, at=accepted, arrival="burst", **REQUEST)


def differing(ours: pa.Table, expected: pa.Table) -> int:
    """Counts the cells that differ, those of rows that one side lacks included."""
    found = pc.index_in(expected["trip"], value_set=ours["trip"])
    paired = ours.take(found)
    count: int = (len(ours) - (len(found) - found.null_count)) * len(RESULTS)
    for name in RESULTS:
        mine, theirs = paired[name], expected[name]
        same = pc.fill_null(equal(mine, theirs), False)
        both_null = pc.and_(pc.is_null(mine), pc.is_null(theirs))
        there = pc.and_(pc.or_(same, both_null), pc.is_valid(found))
        count += len(expected) - int(pc.sum(there).as_py() or 0)
    return count


def equal(mine: pa.ChunkedArray, theirs: pa.ChunkedArray) -> pa.ChunkedArray:
    """A mask of the equal values; floats may differ by rounding."""
    if not pa.types.is_floating(theirs.type):
        return pc.equal(mine, theirs)
    allowed = pc.multiply(pc.max_element_wise(pc.abs(theirs), 1.0), ROUNDING)
    return pc.less_equal(pc.abs(pc.subtract(mine, theirs)), allowed)


if __name__ == "__main__":
    main()
