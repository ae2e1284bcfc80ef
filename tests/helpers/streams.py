"""Streams of files for tests, one file per micro-batch, and their expected results."""

import copy
import datetime as dt
import itertools
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import slidewise as sw
from slidewise.io.readers import read_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("t", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("x", pa.int64()),
        ("y", pa.float64()),
        ("word", pa.string()),
        ("came", pa.int64()),
    ]
)
# The late= and the aggregations of most tests.
LATE = dt.timedelta(seconds=30)
AGGS = {
    "n": sw.count(),
    "x": sw.sum("x"),
    "top": sw.max("y"),
    "mean": sw.mean("y"),
    "sd": sw.stddev("y"),
    "word": sw.max("word"),
    "mid": sw.median("x"),
}
ROLLING: dict[str, Any] = {
    "on": "t",
    "by": "key",
    "windows": ["10s", "2m"],
    "aggs": AGGS,
}
# The gap of sessions.
GAP = dt.timedelta(seconds=5)
NOTHING = dt.timedelta()
START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
# The relative distance of two results that are both within 2⁻⁵⁰ of the exact one.
NEAR = 2.0**-48
_MICROSECOND = dt.timedelta(microseconds=1)
# JVM options for few cores: fewer threads for compilation and garbage collection.
JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m -XX:+UseSerialGC"
# Renames checkpoint files without a process for each.
RENAMES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    )
}
# Forks Python workers with their imports done; of tests/helpers/spark_workers.
WORKERS = {"spark.python.daemon.module": "warm_workers"}


class FileSource:
    """Random micro-batches with late rows, in bursts, written as files."""

    def __init__(self, folder: Path, seed: int, late: dt.timedelta) -> None:
        self.folder, self.late = folder, late
        self.random = random.Random(seed)
        self.batches: list[pa.Table] = []
        self.now = START
        (folder / "in").mkdir(parents=True)

    def write(self, count: int) -> None:
        """Writes random batches."""
        for _ in range(count):
            self.put(self._batch())

    def put(self, batch: pa.Table) -> None:
        """Writes one batch."""
        at = len(self.batches)
        self.batches.append(batch)
        path = self.folder / "in" / f"{at:04}.parquet"
        pq.write_table(batch, path)
        os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))

    def rewrite(self) -> None:
        """Deletes the files, and writes those of the present batches."""
        batches, self.batches = self.batches, []
        for path in (self.folder / "in").iterdir():
            path.unlink()
        for batch in batches:
            self.put(batch)

    def _batch(self) -> pa.Table:
        draw = self.random
        rows = [self._row(at) for at in range(draw.choice([1, 20, 80, 200]))]
        self.now += dt.timedelta(seconds=draw.choice([0, 5, 40, 400]))
        return pa.Table.from_pylist(rows, SCHEMA)

    def _row(self, at: int) -> dict[str, object]:
        draw = self.random
        self.now += dt.timedelta(microseconds=draw.choice([0, 0, 1, 700, 400_000]))
        behind = dt.timedelta(seconds=draw.choice([0, 1, 1, 20, 45, 100]))
        key = min(draw.randrange(30), draw.randrange(30))
        return {
            "id": len(self.batches) * 1_000 + at,
            "t": self.now - behind,
            "key": None if key == 2 else f"k{key}",
            "x": None if draw.random() < 0.1 else draw.randrange(-50, 50),
            "y": draw.choice([draw.random(), draw.gauss(1e6, 1.0), None]),
            "word": draw.choice(["a", "bb", "ccc", None, "dd"]),
            "came": draw.randrange(5),
        }

    def as_read(self, checkpoint: Path) -> "FileSource":
        """The batches as a query has read them, by its checkpoint.

        A query that is stopped after it has listed a file, and before the micro-batch
        of that file starts, reads it together with the next file.
        """
        offsets = {}
        for path in (checkpoint / "offsets").iterdir():
            if path.name.isdigit():
                last = path.read_text().splitlines()[-1]
                offsets[int(path.name)] = int(json.loads(last)["logOffset"]) + 1
        ends = sorted(set(offsets.values()))
        source = copy.copy(self)
        source.batches = [
            pa.concat_tables(self.batches[start:end])
            for start, end in itertools.pairwise([0, *ends])
        ]
        return source

    def watermark(self, batches: int) -> dt.datetime | None:
        """Spark's watermark after a number of batches."""
        times = [pc.max(batch["t"]).as_py() for batch in self.batches[:batches]]
        times = [time for time in times if time is not None]
        if not times:
            return None
        largest = max(times)
        return (
            largest - dt.timedelta(microseconds=largest.microsecond % 1000) - self.late
        )

    def accepted(self, allowance: dt.timedelta = NOTHING) -> list[pa.Table]:
        """The rows of each batch that are not late, with the number of the batch."""
        kept = []
        for at, batch in enumerate(self.batches):
            watermark = self.watermark(at)
            if watermark is not None:
                batch = batch.filter(pc.greater(batch["t"], watermark - allowance))
            number = pa.repeat(pa.scalar(at, pa.int64()), len(batch))
            kept.append(batch.append_column("batch", number))
        return kept

    def expected(
        self,
        emit: str,
        spec: dict[str, Any],
        then_by: str = "id",
        allowance: dt.timedelta = NOTHING,
    ) -> pa.Table:
        """All results so far; only the last of corrected ones."""
        batches, end = self.accepted(allowance), self.watermark(len(self.batches))
        table = pa.concat_tables(batches).sort_by(then_by)
        if emit == "final":
            answers = sw.rolling(table, **spec).drop_columns("batch")
            return answers.filter(pc.less_equal(answers["t"], end))
        if emit == "slide" and "every" not in spec:
            answers = sw.hopping(table, **spec)
            over = pc.less_equal(answers["window_end"], end - GAP)
            return answers.filter(over)
        if emit == "slide":
            return _over(sw.hopping(table, **spec), end + _MICROSECOND)
        if emit == "arrival":
            order = ["batch", *spec.get("arrival", ())]
            answers = sw.rolling(table, at=table, **{**spec, "arrival": order})
            return answers.drop_columns("batch")
        answers = [
            self._updates(pa.concat_tables(batches[: at + 1]), batch, spec)
            for at, batch in enumerate(batches)
        ]
        return pa.concat_tables(answers)

    def _updates(
        self, seen: pa.Table, batch: pa.Table, spec: dict[str, Any]
    ) -> pa.Table:
        latest = seen.group_by("key").aggregate([("t", "max"), ("batch", "max")])
        number = batch["batch"][0].as_py() if len(batch) else -1
        changed = latest.filter(pc.equal(latest["batch_max"], number))
        query_points = changed.select(["key", "t_max"]).rename_columns(["key", "t"])
        return sw.rolling(seen, at=query_points, **spec)


def _over(windows: pa.Table, end: dt.datetime) -> pa.Table:
    """Complete windows; an empty one once a later one of its key is complete."""
    last: dict[object, dt.datetime] = {}
    rows = windows.select(["key", "window_end", "n"]).to_pylist()
    for row in rows:
        if row["n"] and row["window_end"] <= end:
            last[row["key"]] = max(row["window_end"], last.get(row["key"], START))
    there = [
        row["key"] in last and row["window_end"] <= last[row["key"]] for row in rows
    ]
    return windows.filter(pa.array(there, pa.bool_()))


def trips() -> pa.Table:
    """Citi Bike trips as rows of a source, in the order of their ends."""
    path = _data("citibike-2018-07-sample.csv")
    times = ["starttime", "stoptime"]
    table = read_table(path, on=times, time_format="%m/%d/%y %H:%M:%S")
    table = table.sort_by("stoptime")
    station = table["start station id"].cast(pa.string())
    table = table.set_column(0, "tripduration", table["tripduration"].cast(pa.int64()))
    latitude = table["start station latitude"]
    return _rows(
        table["starttime"], station, table["tripduration"], latitude, table["usertype"]
    )


def flights() -> pa.Table:
    """Flights as rows of a source, in the order of their departures."""
    rows = json.loads(_data("flights-2001-20k.json").read_text())
    table = pa.Table.from_pylist(rows)
    minutes = pc.cast(table["delay"], pa.int64())
    times = pc.strptime(table["date"], format="%Y/%m/%d %H:%M", unit="us")
    left = pc.add(times, pc.multiply(minutes, 60_000_000).cast(pa.duration("us")))
    order = pc.sort_indices(left)
    columns = [times, table["origin"], minutes, table["distance"], table["destination"]]
    return _rows(*(column.take(order) for column in columns))


def _rows(t: Any, key: Any, x: Any, y: Any, word: Any) -> pa.Table:
    place = pa.array(range(len(t)), pa.int64())
    columns = [place, t, key, x, y, word, place]
    return pa.table(columns, names=SCHEMA.names).cast(SCHEMA)


def _data(name: str) -> Path:
    folder = Path(__file__).parents[3] / "shared" / "data"
    path = Path(os.environ.get("SLIDEWISE_TEST_DATA", folder)) / name
    if not path.exists():
        pytest.skip(f"{name} is not in {path.parent}")
    return path


def read(spark: Any, folder: Path) -> Any:
    """The streaming DataFrame of a source."""
    from pyspark.sql.pandas.types import from_arrow_schema

    stream = spark.readStream.schema(from_arrow_schema(SCHEMA))
    return stream.option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))


def start(answers: Any, folder: Path, name: str) -> Any:
    """Starts a query that ends once all files are processed."""
    writer = answers.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    return writer.start(str(folder / name))


def start_keyed(answers: Any, folder: Path, name: str) -> Any:
    """As `start`, with a folder of files per micro-batch, `batch=0`, ..."""

    def put(rows: Any, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(folder / name / f"batch={batch}"))

    writer = answers.writeStream.foreachBatch(put).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    return writer.start()


def last_of(answers: pa.Table, by: list[str]) -> pa.Table:
    """The last result per key; checks that all but the first are corrections."""
    if "_late" in answers.column_names:
        answers = answers.filter(pc.invert(answers["_late"])).drop_columns("_late")
    answers = answers.sort_by("batch")
    last: dict[tuple[object, ...], int] = {}
    for at, row in enumerate(answers.select([*by, "_correction"]).to_pylist()):
        key = tuple(row[name] for name in by)
        assert row["_correction"] == (key in last), row
        last[key] = at
    found = answers.take(pa.array(sorted(last.values()), pa.int64()))
    return found.drop_columns(["batch", "_correction"])


def written(spark: Any, folder: Path, name: str) -> pa.Table:
    """The rows that a query has written."""
    return spark.read.parquet(str(folder / name)).toArrow()


def assert_same(ours: pa.Table, expected: pa.Table, by: Sequence[str]) -> None:
    """Checks for equal rows, with floats equal up to rounding."""
    assert ours.column_names == expected.column_names
    keys = [(name, "ascending") for name in by]
    ours, expected = ours.sort_by(keys), expected.sort_by(keys)
    assert len(ours) == len(expected)
    for name in ours.column_names:
        mine, theirs = ours[name].to_pylist(), expected[name].to_pylist()
        for at, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            same = a == b or (
                isinstance(a, float)
                and isinstance(b, float)
                and abs(a - b) <= NEAR * max(abs(a), abs(b))
            )
            assert same, f"{name} of {ours.slice(at, 1).to_pylist()}: {a}, not {b}"


def assert_follows(follower: Any, source: FileSource) -> None:
    """Checks the answers of a follower at the latest time of each key, and later.

    Before the watermark rows may be missing.
    """
    rows = pa.concat_tables(source.accepted()).drop_columns("batch")
    keys = follower.keys().sort_by("key")
    assert len(keys) == len(follower) > 10
    least = pa.scalar(follower.watermark, keys["t"].type)
    latest = pc.if_else(pc.less(keys["t"], least), least, keys["t"])
    for later in (0, 3):
        at = pc.add(latest, pa.scalar(later, pa.duration("s")))
        points = keys.set_column(1, "t", at)
        expected = sw.rolling(rows, **ROLLING, at=points)
        assert_same(follower.query_many(points, at="t"), expected, ["key"])
