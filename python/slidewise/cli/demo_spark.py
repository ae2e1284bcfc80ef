"""Both engines on the same trips: in process, and on Spark as a table and as a stream.

The stream comes in bursts and out of order, as a server hears of trips. What waits for
late rows is compared with the batch answer over the rows that were not too late, and
what answers at once with the batch answer as of each row's arrival.
"""

import os
import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slidewise.cli import demo_trips
from slidewise.cli.demo import AGGS
from slidewise.cli.progress import Progress
from slidewise.cli.texts import format_table
from slidewise.errors import SlidewiseError, SpecError
from slidewise.spark.api import rolling
from slidewise.spark.local_session import existing_session, session
from slidewise.spark.versions import check_streams
from slidewise.table import rolling as tables

__all__ = ["run"]

_ASKED: dict[str, Any] = {
    "on": "starttime",
    "by": "start station id",
    "windows": ["1h", "24h"],
    "aggs": AGGS,
}
_RESULTS = [f"{name}_{window}" for window in _ASKED["windows"] for name in AGGS]
_LATE = "30m"
# Where two floats that were added up in another order may differ.
_ROUNDING = 1e-12
_ZONED = pa.timestamp("us", "UTC")


def run(
    *,
    rows: int = 200_000,
    seed: int = 7,
    bursts: int = 9,
    say: Callable[[str], None] = print,
) -> None:
    """Runs the demo.

    Args:
        rows: How many trips to generate, at least 1.
        seed: Of the generator.
        bursts: In how many micro-batches they come.
        say: Takes each line of what there is to say.

    Raises:
        SpecError: If `rows` is not positive, or PySpark too old for streams.
        SlidewiseError: If the engines disagree in a single cell.
    """
    check_streams()
    if rows < 1:
        raise SpecError(f"the demo needs at least one trip, got --rows {rows}")
    parts = _bursts(demo_trips.generate(rows, seed=seed), bursts, seed)
    say(
        f"{rows:,} trips, in the order in which a server hears of them, in "
        f"{len(parts)} bursts of {min(map(len, parts)):,} to {max(map(len, parts)):,}."
    )
    say(f"{', '.join(AGGS)} over {', '.join(_ASKED['windows'])} per station:\n")
    there = existing_session()
    ours = there is None
    config = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)}
    config["spark.ui.showConsoleProgress"] = "false"
    spark = session("slidewise demo", config=config) if ours else there
    try:
        with TemporaryDirectory(prefix="slidewise-") as folder:
            told = _Comparison(spark, parts, Path(folder)).told()
    finally:
        if ours:
            spark.stop()
    say(format_table(pa.Table.from_pylist(told)))
    differing = sum(line["cells differ"] or 0 for line in told)
    if differing:
        raise SlidewiseError(f"the engines disagree in {differing:,} cells")
    say(
        f"\nThe watermark follows {_LATE} behind; late rows were left out and "
        "counted.\n0 cells differ."
    )


class _Comparison:
    """The same question to both engines, and what each took."""

    def __init__(self, spark: Any, bursts: list[pa.Table], folder: Path) -> None:
        self._spark, self._bursts, self._folder = spark, bursts, folder
        self._trips = pa.concat_tables(bursts)
        self._progress = Progress()

    def told(self) -> list[dict[str, Any]]:
        """A line per way to ask."""
        local = self._shown("in process", lambda: tables.rolling(self._trips, **_ASKED))
        table = self._shown("Spark, table", self._table)
        lines = [self._line("in process", local), self._line("Spark, table", table)]
        lines[1]["cells differ"] = _differing(table, local)
        self._write_bursts()
        for emit, name in (("final", "final"), ("arrival", "on arrival")):
            what = f"Spark, stream, {name}"
            answers = self._shown(what, partial(self._stream, emit))
            late = answers.filter(answers["_late"])
            answers = answers.filter(pc.invert(answers["_late"]))
            expected = _as_tables_say(self._accepted(late), emit)
            lines.append(self._line(what, answers, len(late)))
            lines[-1]["cells differ"] = _differing(answers, expected)
        return lines

    def _shown(self, what: str, ask: Callable[[], pa.Table]) -> pa.Table:
        with self._progress.stage(what):
            return ask()

    def _line(
        self, what: str, answers: pa.Table, late: int | None = None
    ) -> dict[str, Any]:
        return {
            "engine": what,
            "rows": len(answers),
            "late": late,
            "answers": len(answers) * len(_RESULTS),
            "seconds": round(self._progress.seconds[what], 2),
            "cells differ": None,
        }

    def _table(self) -> pa.Table:
        file = str(self._folder / "trips.parquet")
        pq.write_table(self._trips, file)
        answers: pa.Table = rolling(self._spark.read.parquet(file), **_ASKED).toArrow()
        return answers

    def _write_bursts(self) -> None:
        (self._folder / "in").mkdir()
        last = pc.max(self._trips["starttime"]).as_py()
        # A row that only moves the watermark brings the answers of the last trips.
        flush = self._trips.slice(0, 1)
        moved = pa.array([last.replace(year=last.year + 1)], _ZONED)
        flush = flush.set_column(0, "starttime", moved)
        for at, burst in enumerate([*self._bursts, flush]):
            marker = pa.array([at == len(self._bursts)] * len(burst))
            path = self._folder / "in" / f"{at:03}.parquet"
            pq.write_table(burst.append_column("flush", marker), path)
            # Files are taken by their age.
            os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))

    def _stream(self, emit: str) -> pa.Table:
        there = self._spark.read.parquet(str(self._folder / "in"))
        source = self._spark.readStream.schema(there.schema)
        source = source.option("maxFilesPerTrigger", 1)
        answers = rolling(
            source.parquet(str(self._folder / "in")),
            **_ASKED,
            late=_LATE,
            emit=emit,
            late_rows="flag",
            marker="flush",
        )
        out = str(self._folder / emit)
        writer = answers.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", out + "-checkpoint")
        writer.start(out).awaitTermination()
        read: pa.Table = self._spark.read.parquet(out).toArrow()
        return read

    def _accepted(self, late: pa.Table) -> pa.Table:
        left_out = pc.is_in(self._trips["trip"], value_set=late["trip"])
        return self._trips.filter(pc.invert(left_out))


def _bursts(stream: pa.Table, count: int, seed: int) -> list[pa.Table]:
    """The stream in parts of very different sizes, numbered."""
    for name in ("starttime", "stoptime", "arrived"):
        at = stream.column_names.index(name)
        stream = stream.set_column(at, name, stream[name].cast(_ZONED))
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


def _as_tables_say(accepted: pa.Table, emit: str) -> pa.Table:
    """The batch answer that a stream has to give."""
    if emit == "final":
        return tables.rolling(accepted, **_ASKED)
    return tables.rolling(accepted, at=accepted, arrival="burst", **_ASKED)


def _differing(ours: pa.Table, expected: pa.Table) -> int:
    """How many cells are not the same; those of rows that one side lacks count too."""
    found = pc.index_in(expected["trip"], value_set=ours["trip"])
    beside = ours.take(found)
    count: int = (len(ours) - (len(found) - found.null_count)) * len(_RESULTS)
    for name in _RESULTS:
        mine, theirs = beside[name], expected[name]
        same = pc.fill_null(_alike(mine, theirs), False)
        both_null = pc.and_(pc.is_null(mine), pc.is_null(theirs))
        there = pc.and_(pc.or_(same, both_null), pc.is_valid(found))
        count += len(expected) - int(pc.sum(there).as_py() or 0)
    return count


def _alike(mine: pa.ChunkedArray, theirs: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(theirs.type):
        return pc.equal(mine, theirs)
    allowed = pc.multiply(pc.max_element_wise(pc.abs(theirs), 1.0), _ROUNDING)
    return pc.less_equal(pc.abs(pc.subtract(mine, theirs)), allowed)
