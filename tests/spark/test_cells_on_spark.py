"""Cells of `resolution=` in the state of streams: their rows become partials."""

import copy
import datetime as dt
import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from seeds import SEED
from streams import (
    LATE,
    SCHEMA,
    START,
    FileSource,
    assert_same,
    read,
    start_keyed,
    written,
)

import slidewise as sw
from slidewise.keyed import cells, row_log
from slidewise.keyed.published import Folder
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.spark import migrate, operator, read_state, rolling
from slidewise.spark.arrow_ipc import read_ipc, write_ipc
from slidewise.spark.buckets import bucket_keys
from slidewise.spark.checkpoint_guard import Guard
from slidewise.spark.operator import Operator
from slidewise.spark.shard_cache import ShardCache
from slidewise.spark.watermarks import timer_for

AGGS = {
    "n": sw.count(),
    "x": sw.sum("x"),
    "least": sw.min("x"),
    "top": sw.max("y"),
    "mean": sw.mean("y"),
    "sd": sw.stddev("y"),
    "ids": sw.approx_count_distinct("id"),
    # These depend on the order of times.
    "gap": sw.max_gap(),
    "began": sw.since_first(),
    "near": sw.decayed_mean("y", half_life="1m"),
}
GRIDS = [("30s", "1m", None), ("2m", "30s", None), ("10m", "1m", "7s")]


@pytest.fixture
def folds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_log, "_MIN_FOLDED", 0)
    monkeypatch.setattr(row_log, "_SHARE", 1 << 30)
    monkeypatch.setattr(cells, "_PAGE", 3000)


class Bucket:
    """The state of a bucket, and the operator as Spark calls it, without a JVM."""

    def __init__(self, query: KeyedQuery, publish: str | None = None) -> None:
        self.query, self.publish = query, publish
        self.head: bytes | None = None
        self.pages: dict[int, bytes] = {}
        self.timer: int | None = None

    def copy(self) -> "Bucket":
        """The bucket as of a checkpoint."""
        copied = copy.copy(self)
        copied.pages = dict(self.pages)
        return copied

    def call(self, batch: pa.Table, watermark: int | None) -> list[pa.Table]:
        """The results of a micro-batch."""
        one = Operator(self.query, Guard.of(self.query, 1), self.publish, flags=())
        one.init(self)
        now = 0 if watermark is None else timer_for(watermark, None)
        times = SimpleNamespace(getCurrentWatermarkInMs=lambda: now)
        given = [SimpleNamespace(payload=write_ipc(batch))] if len(batch) else []
        rows: list[Any] = []
        (key,) = bucket_keys(1)
        if given:
            rows += one.handleInputRows((key,), iter(given), times)
        if self.timer is not None and self.timer <= now:
            fired, self.timer = self.timer, None
            expired = SimpleNamespace(getExpiryTimeInMs=lambda: fired)
            rows += one.handleExpiredTimer((key,), times, expired)
        return [read_ipc(row.payload) for row in rows if row.payload is not None]

    @property
    def shard(self) -> Any:
        """The directory in its head."""
        return None if self.head is None else json.loads(self.head)["shard"]

    # The handle that Spark gives, and its two state variables.

    def getValueState(self, *_: Any) -> Any:  # noqa: N802
        def update(row: tuple[bytes]) -> None:
            (self.head,) = row

        return SimpleNamespace(get=lambda: self.head and (self.head,), update=update)

    def getMapState(self, *_: Any) -> Any:  # noqa: N802
        def get(key: tuple[int]) -> tuple[bytes] | None:
            found = self.pages.get(key[0])
            return None if found is None else (found,)

        def put(key: tuple[int], row: tuple[bytes]) -> None:
            self.pages[key[0]] = row[0]

        def remove(key: tuple[int]) -> None:
            del self.pages[key[0]]

        return SimpleNamespace(getValue=get, updateValue=put, removeKey=remove)

    def registerTimer(self, at: int) -> None:  # noqa: N802
        self.timer = at

    def deleteTimer(self, _: int) -> None:  # noqa: N802
        self.timer = None


def ticks(time: Any) -> int | None:
    return None if time is None else pa.scalar(time).cast(pa.int64()).as_py()


def made(emit: str, spec: sw.Spec, publish: str | None = None) -> Bucket:
    schema = SCHEMA
    if emit == "update":
        schema = pa.schema([one for one in schema if one.name in spec.columns])
    return Bucket(checked(KeyedQuery(spec, schema, emit)), publish)


def run(
    bucket: Bucket, source: FileSource, since: int = 0
) -> Iterator[tuple[Bucket, list[pa.Table]]]:
    """The bucket after each micro-batch, and the results of this."""
    names = bucket.query.schema.names
    for at, batch in enumerate([*source.batches, source.batches[0].slice(0, 0)]):
        if at >= since:
            watermark = ticks(source.watermark(at))
            results = bucket.call(batch.select(names), watermark)
            yield bucket.copy(), results


@pytest.mark.usefixtures("folds_at_once")
@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("grid", GRIDS)
def test_a_state_with_cells_goes_on_from_any_batch(
    emit: str, grid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same worker, in another one that was behind, and from the checkpoint."""
    draw = random.Random(f"{SEED} {emit} {grid}")
    source = FileSource(tmp_path, draw.randrange(1 << 30), LATE)
    source.write(7)
    length, cell, offset = grid
    windows = sw.trailing(length, resolution=cell, offset=offset)
    given: dict[str, Any] = {"on": "t", "by": "key", "windows": windows, "aggs": AGGS}
    workers = [ShardCache(), ShardCache()]
    states, results = [], []
    spec = sw.Spec(**given)
    for state, answers in run(made(emit, spec), source):
        states.append(state)
        results.append(answers)
        monkeypatch.setattr(operator, "_cache", draw.choice([*workers, ShardCache()]))
    by = ["key", "t", "n_" + windows.label] if emit == "update" else ["id"]
    ours = pa.concat_tables([table for each in results for table in each])
    assert_same(ours, source.expected(emit, given), by)
    logs = [state.shard["log"] for state in states]
    assert logs[-1]["folded"] is not None
    assert length != "10m" or any(log["cells"] for log in logs)
    for at, state in enumerate(states[:-1]):
        monkeypatch.setattr(operator, "_cache", ShardCache())
        after, answers = next(run(state.copy(), source, at + 1))
        expected = states[at + 1]
        pairs = zip(answers, results[at + 1], strict=True)
        assert all(found.equals(other) for found, other in pairs)
        same = after.pages == expected.pages and after.shard == expected.shard
        assert same, f"the state after micro-batch {at + 1} differs"


@pytest.mark.usefixtures("folds_at_once")
def test_a_follower_of_a_stream_has_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FileSource(tmp_path, SEED, LATE)
    source.write(6)
    windows = sw.trailing("10m", resolution="1m")
    given: dict[str, Any] = {"on": "t", "by": "key", "windows": windows, "aggs": AGGS}
    spec, properties = sw.Spec(**given), {"sql.streaming.queryId": "q"}
    context = SimpleNamespace(getLocalProperty=properties.get)
    monkeypatch.setattr(operator, "TaskContext", SimpleNamespace(get=lambda: context))
    monkeypatch.setattr(operator, "_cache", ShardCache())
    folder, follower, folded = tmp_path / "published", None, 0
    bucket = made("update", spec, str(folder))
    for at, batch in enumerate(source.batches):
        properties["streaming.sql.batchId"] = str(at)
        rows = batch.select(bucket.query.schema.names)
        bucket.call(rows, ticks(source.watermark(at)))
        Folder(folder).mark(at)
        follower = sw.follow(folder) if follower is None else follower
        follower.refresh()
        keys = follower.keys()
        least = pa.scalar(follower.watermark or START, keys["t"].type)
        later = pc.if_else(pc.less(keys["t"], least), least, keys["t"])
        points = keys.set_column(1, "t", later)
        accepted = pa.concat_tables(source.accepted()[: at + 1])
        expected = sw.rolling(accepted, **given, at=points)
        assert_same(follower.query_many(points, at="t"), expected, ["key"])
        folded += len(bucket.shard["log"]["cells"])
    assert folded


def minutes(source: FileSource, count: int) -> None:
    """Micro-batches of ten minutes each, of 200 rows a key, some of them late."""
    draw = source.random
    for _ in range(count):
        start = len(source.batches) * 600_000
        rows = [
            {
                "id": start + at,
                "t": START + dt.timedelta(milliseconds=start + draw.randrange(640_000)),
                "key": f"k{at % 30}",
                "x": draw.randrange(-50, 50),
                "y": draw.gauss(1e6, 1.0),
            }
            for at in range(6_000)
        ]
        source.put(pa.Table.from_pylist(rows, SCHEMA))


def test_a_stream_of_cells(spark: Any, tmp_path: Path) -> None:
    """Its state has a partial per key and cell, also after a migration."""
    source = FileSource(tmp_path, 41, LATE)
    windows = sw.trailing("20m", resolution="5m")
    given: dict[str, Any] = {"on": "t", "by": "key", "windows": windows, "aggs": AGGS}

    def results(name: str, spec: sw.Spec, **options: Any) -> pa.Table:
        stream = rolling(read(spark, tmp_path), spec, late=LATE, **options)
        start_keyed(stream, tmp_path, name).awaitTermination()
        return written(spark, tmp_path, name).drop_columns("batch")

    def held(name: str) -> tuple[pa.Table, pa.Table]:
        state = read_state(spark, str(tmp_path / f"{name}-checkpoint")).toArrow()
        assert state.column_names[-2:] == ["_pending", "_folded"]
        return state.filter(state["_folded"]), state.filter(pc.invert(state["_folded"]))

    minutes(source, 3)
    spec = sw.Spec(**given)
    first = results("old", spec)
    folded, rows = held("old")
    assert 30 * 4 <= len(folded) <= 30 * 8
    assert len(rows) < 3_000
    old, new = tmp_path / "old-checkpoint", tmp_path / "new-checkpoint"
    more = spec.replace(aggs=AGGS | {"most": sw.max("x")})
    with pytest.raises(sw.SpecError, match="its rows are folded by its aggregations"):
        migrate(old, new, spec=more)
    assert not new.exists()
    migrate(old, new, buckets=2)
    minutes(source, 1)
    again = results("new", spec, buckets=2)
    assert_same(
        pa.concat_tables([first, again]), source.expected("final", given), ["id"]
    )
    folded, rows = held("new")
    assert 30 * 4 <= len(folded) <= 30 * 8
    assert len(rows) < 3_000
