"""`idle=`: while no rows come, the watermark follows the times of micro-batches."""

import copy
import datetime as dt
import random
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from seeds import SEED
from streams import SCHEMA, START, FileSource, assert_same, read

import slidewise as sw
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.spark import explain, metrics, migrate, rolling
from slidewise.spark.arrow_ipc import read_ipc
from slidewise.spark.checkpoint_guard import GUARD_BUCKET, Guard
from slidewise.spark.columns import BEAT, EARLY, NOW
from slidewise.spark.operator import Operator
from slidewise.spark.payload import Packer
from slidewise.spark.watermarks import in_spark, watermark_of
from slidewise.spec.spec import Spec

KINDS = pa.schema(
    [("id", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("key", pa.string())]
)
CALL: dict[str, Any] = {"on": "t", "by": "key", "windows": "3s"}
CALL["aggs"] = {"n": sw.count(), "ids": sw.sum("id")}
LATE, IDLE = 2_000, 5_000
WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


class Bucket:
    """What Spark keeps for a bucket: its state and timers."""

    def __init__(self) -> None:
        self.head: Any = None
        self.pages: dict[Any, Any] = {}
        self.timers: set[int] = set()

    def getValueState(self, *_: Any) -> Any:  # noqa: N802
        return SimpleNamespace(get=lambda: self.head, update=self._update)

    def _update(self, head: Any) -> None:
        self.head = head

    def getMapState(self, *_: Any) -> Any:  # noqa: N802
        return SimpleNamespace(
            getValue=self.pages.get,
            updateValue=self.pages.__setitem__,
            removeKey=lambda page: self.pages.pop(page, None),
        )

    def registerTimer(self, timer: int) -> None:  # noqa: N802
        self.timers.add(timer)

    def deleteTimer(self, timer: int) -> None:  # noqa: N802
        self.timers.discard(timer)


class Stream:
    """A stream without a JVM: tasks that pack, and buckets of the operator."""

    def __init__(self, buckets: int) -> None:
        query = KeyedQuery(Spec.make(**CALL), KINDS, "final")
        self.query, self.guard = checked(query), Guard.of(query, buckets)
        self.packer = Packer(self.query, buckets, None, early=True, beats=True)
        self.buckets: dict[int, Bucket] = {}
        self.watermark = 0

    def run(self, tasks: list[pa.Table]) -> pa.Table:
        """Runs a micro-batch of some tasks, and gives what it emits."""
        groups: dict[int, list[Any]] = {}
        for rows in tasks:
            for packed in self.packer(iter(rows.to_batches(7))):
                for row in packed.to_pylist():
                    one = SimpleNamespace(**row)
                    groups.setdefault(one.bucket, []).append(one)
        groups.pop(GUARD_BUCKET)
        now = SimpleNamespace(getCurrentWatermarkInMs=lambda: self.watermark)
        found = [self.query.output.empty_table()]
        for key, rows in groups.items():
            bucket = self.buckets.setdefault(key, Bucket())
            operator = self._operator(bucket)
            found += _tables(operator.handleInputRows((key,), iter(rows), now))
        for key, bucket in self.buckets.items():
            for timer in sorted(bucket.timers):
                if timer > self.watermark:
                    continue
                bucket.timers.discard(timer)
                fired = SimpleNamespace(getExpiryTimeInMs=lambda at=timer: at)
                operator = self._operator(bucket)
                found += _tables(operator.handleExpiredTimer((key,), now, fired))
        return pa.concat_tables(found)

    def _operator(self, bucket: Bucket) -> Operator:
        operator = Operator(self.query, self.guard, None, flags=(), idle=IDLE)
        operator.init(bucket)
        return operator


def _tables(rows: Iterator[Any]) -> list[pa.Table]:
    return [read_ipc(row.payload) for row in rows if row.payload is not None]


def task(now: int, rows: list[dict[str, Any]]) -> pa.Table:
    """The rows of a task, or a heartbeat."""
    fields = [(EARLY, pa.bool_()), (BEAT, pa.bool_()), (NOW, pa.int64())]
    schema = pa.schema([*KINDS, *(pa.field(*each) for each in fields)])
    own = {EARLY: False, BEAT: not rows, NOW: now}
    return pa.Table.from_pylist([{**row, **own} for row in rows or [{}]], schema)


@pytest.mark.parametrize("buckets", [1, 2])
def test_the_watermark_is_that_of_rows_and_silences(buckets: int) -> None:
    """Each micro-batch emits the rows that it passes, again when it is repeated."""
    draw = random.Random(f"{SEED} {buckets}")
    for _ in range(2):
        stream, now, latest = Stream(buckets), 1_000_000, -LATE
        mark, since, rows_at, accepted = None, 0, None, []
        emitted = [stream.query.output.empty_table()]
        for at in range(16):
            now += draw.choice([0, 400, 1_500, 3_000, 20_000])
            count = draw.choice([0, 0, 0, 1, 9])
            rows = [
                {
                    "id": 100 * at + place,
                    "t": _time(latest + draw.randrange(-4_000, 6_000)),
                    "key": draw.choice("abcd"),
                }
                for place in range(count)
            ]
            spark = watermark_of(stream.watermark)
            known = [each for each in (mark, spark) if each is not None]
            mark = max(known, default=None)
            if rows:
                rows_at, since = now, 0
            elif mark is not None and rows_at is not None:
                over = max(0, now - rows_at - IDLE)
                mark += (over - since) * 1_000
                since = over
            accepted += [row for row in rows if mark is None or _ticks(row["t"]) > mark]
            beat = draw.random() < 0.7 or not rows
            tasks = [task(now, rows)] if rows else []
            tasks += [task(now, [])] if beat else []
            again = copy.deepcopy(stream)
            found = stream.run(tasks)
            assert again.run(tasks).sort_by("id") == found.sort_by("id")
            emitted.append(found)
            ids = pa.concat_tables(emitted)["id"].to_pylist()
            passed = [
                row["id"]
                for row in accepted
                if mark is not None and _ticks(row["t"]) <= mark
            ]
            assert sorted(ids) == sorted(passed)
            if rows:
                latest = max(latest, *(_ticks(row["t"]) // 1_000 for row in rows))
                stream.watermark = in_spark((latest - LATE) * 1_000)
        table = pa.Table.from_pylist(accepted, KINDS)
        expected = sw.rolling(table, **CALL)
        expected = expected.filter(pc.is_in(expected["id"], pa.array(ids, pa.int64())))
        assert_same(pa.concat_tables(emitted), expected, ["id"])


def _time(milliseconds: int) -> dt.datetime:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return epoch + dt.timedelta(milliseconds=milliseconds)


def _ticks(time: dt.datetime) -> int:
    return (time - _time(0)) // dt.timedelta(microseconds=1)


def test_rows_ahead_do_not_end_a_silence() -> None:
    """Nor do heartbeats; a late row does."""
    stream = Stream(1)
    rows = [{"id": 1, "t": _time(10_000), "key": "a"}]
    assert len(stream.run([task(0, rows)])) == 0
    stream.watermark = in_spark(8_000_000)
    early = task(6_000, [{"id": 2, "t": _time(99_000), "key": "a"}])
    place = early.column_names.index(EARLY)
    early = early.set_column(place, EARLY, pa.array([True]))
    assert len(stream.run([early])) == 0  # it is at 9 s
    late = task(6_900, [{"id": 3, "t": _time(1_000), "key": "a"}])
    assert len(stream.run([late, task(6_900, [])])) == 0
    assert len(stream.run([task(11_900, [])])) == 0
    assert len(stream.run([task(12_899, [])])) == 0
    assert stream.run([task(12_900, [])])["id"].to_pylist() == [1]


def begin(
    answers: Any, folder: Path, found: dict[int, pa.Table], **trigger: Any
) -> Any:
    """Starts a query whose sink keeps the rows of each micro-batch."""

    def put(rows: Any, batch: int) -> None:
        found[batch] = rows.toArrow()

    writer = answers.writeStream.foreachBatch(put).option("checkpointLocation", folder)
    return (writer.trigger(**trigger) if trigger else writer).start()


def put_rows(source: FileSource, seconds: dict[int, float]) -> None:
    """Writes a file of rows, by their ids."""
    rows = [
        {"id": number, "t": START + dt.timedelta(seconds=at), "key": "k"}
        for number, at in seconds.items()
    ]
    source.put(pa.Table.from_pylist(rows, SCHEMA))


def test_a_stream_without_rows_emits_the_last_ones(spark: Any, tmp_path: Path) -> None:
    """A replay decides as before, and migrate keeps the watermark."""
    source = FileSource(tmp_path, 41, dt.timedelta(seconds=1))
    put_rows(source, {number: number for number in range(6)})
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    answers = rolling(read(spark, tmp_path), **CALL, late="1s", idle="1s")
    old, found = str(tmp_path / "old"), dict[int, pa.Table]()
    query = begin(answers, old, found)
    ends = time.monotonic() + 120
    last_time = (START + dt.timedelta(seconds=5)).timestamp()
    # Spark's own watermark stays a second before it.
    while query.isActive and metrics(query).get("watermark", 0) < last_time:
        assert time.monotonic() < ends, f"no results after {query.lastProgress}"
        time.sleep(0.05)
    query.stop()
    assert query.exception() is None
    ours = pa.concat_tables(table for table in found.values() if len(table))
    table = pa.concat_tables(source.batches)
    assert_same(ours, sw.rolling(table, **CALL), ["id"])
    (last,) = (batch for batch, rows in found.items() if 5 in rows["id"].to_pylist())
    for log, least in (("commits", last), ("offsets", last + 1)):
        for path in (tmp_path / "old" / log).iterdir():
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= least:
                path.unlink()
    again: dict[int, pa.Table] = {}
    begin(answers, old, again, availableNow=True).awaitTermination()
    assert again[last].sort_by("id") == found[last].sort_by("id")
    assert sum(map(len, again.values())) == len(found[last])
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    migrate(old, str(tmp_path / "new"), buckets=1)
    put_rows(source, {6: 4.5, 7: 3_600.0})
    query = begin(answers, str(tmp_path / "new"), again, availableNow=True)
    query.awaitTermination()
    counts = metrics(query)
    assert (counts["rows"], counts["late"]) == (2, 1)


def test_heartbeats_need_a_setting(spark: Any, tmp_path: Path) -> None:
    """Without it, availableNow reads some files and ends."""
    stream = spark.readStream.schema("t timestamp, key string, id long")
    stream = stream.parquet(str(tmp_path))
    held = spark.conf.get(WRAPPER)
    spark.conf.set(WRAPPER, "false")
    try:
        with pytest.raises(sw.SpecError, match=f"spark.conf.set..{WRAPPER}', 'true'"):
            rolling(stream, **CALL, late="1s", idle="5m")
        assert rolling(stream, **CALL, late="1s").isStreaming
    finally:
        spark.conf.set(WRAPPER, held)
    plan = explain(stream, **CALL, late="1s", idle="5m")
    assert "; while no rows come, it follows the clock after 5m (heartbeats)" in plan
    with pytest.raises(
        sw.SpecError, match="idle= is a whole number of microseconds, 0"
    ):
        rolling(stream, **CALL, late="1s", idle="-1s")
